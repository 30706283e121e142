//! How a node joins: TLS bootstrapping, with upstream's own requests, so that it also works beside other control planes.
//!
//! ```text
//!   URL, hash of the authority ──▶ whom to trust ──token──▶ CertificateSigningRequest ──watch──▶ certificate
//!                                                                                                   │
//!   70–90 % of its life: another request, with the certificate itself ◀── agent.kubeconfig, 0600 ◀──┘
//! ```
//!
//! The key is made here and never leaves. The token is used for one request and written nowhere.
//! Source: `pkg/kubelet/certificate/bootstrap/bootstrap.go`, Kubernetes 1.36.

mod certificate;
mod kubeconfig;
mod rotation;

use std::{io, path::PathBuf};

use hotmap_client::{
    AuthorityError, AuthorityHash, Client, ClientConfig, ClientError, ConfigError, Server, Token,
    find_authority,
};
use jiff::Timestamp;

use certificate::Purpose;
pub use rotation::{Rotation, ServingRotation};

/// What a node needs to join.
pub struct JoinConfig {
    /// Where the API is: `https://host:port`.
    pub url: String,
    /// A bootstrap token, `abcdef.0123456789abcdef`.
    pub token: String,
    /// What the API's authority is known by.
    pub authority: AuthorityHash,
    /// Name of the node.
    pub node_name: String,
    /// Where to write who the node is from then on.
    pub kubeconfig: PathBuf,
}

/// Why a node has no certificate. Nothing was written.
#[derive(Debug, thiserror::Error)]
pub enum JoinError {
    /// The API is not the one of the hash, or cannot be reached.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
    /// The URL or a certificate cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Who asks is not known: 401.
    #[error(
        "the API does not take the token: it is unknown, has expired or is not for authentication; `hotmap token create` makes another"
    )]
    Token,
    /// The certificate is not taken any more: 401.
    #[error(
        "the API does not take the node's certificate: it has expired or is another authority's; join again with a token"
    )]
    Certificate,
    /// A request failed.
    #[error("cannot request a certificate")]
    Request(#[source] ClientError),
    /// Somebody has said no.
    #[error("certificate request {name} was denied: {message}")]
    Denied {
        /// Name of the request.
        name: String,
        /// Why, in the words of who denied it.
        message: String,
    },
    /// The signer does not sign it.
    #[error("certificate request {name} cannot be signed: {message}")]
    Failed {
        /// Name of the request.
        name: String,
        /// Why, in the signer's words.
        message: String,
    },
    /// It was deleted before anybody had signed it.
    #[error("certificate request {name} was deleted before it was signed")]
    Deleted {
        /// Name of the request.
        name: String,
    },
    /// The clocks of this machine and of the signer do not agree.
    #[error(
        "the certificate is good from {from} until {until}, and this machine's clock says {now}: set the clock"
    )]
    Clock {
        /// Beginning of its life.
        from: Timestamp,
        /// End of its life.
        until: Timestamp,
        /// What time it is here.
        now: Timestamp,
    },
    /// What was signed is no certificate for the key that was sent.
    #[error("the certificate that was signed is not for this node's key")]
    Foreign,
    /// No key and no request can be made: a name cannot stand in one.
    #[error("cannot make a key or a request for it")]
    Key(#[source] rcgen::Error),
    /// The result cannot be kept.
    #[error("cannot write {}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// Gets a certificate for the node and writes the kubeconfig. Waits, for as long as that takes, where somebody has to
/// approve it.
///
/// # Errors
///
/// [`JoinError`]
pub async fn join(config: &JoinConfig) -> Result<(), JoinError> {
    let server = Server::parse(&config.url)?;
    let authority = find_authority(&server, config.authority).await?;
    let mut with_token = ClientConfig::new(server.clone(), authority.clone());
    with_token.token = Some(Token::Fixed(config.token.clone()));
    let client = Client::new(with_token)?;
    let identity = certificate::obtain(&client, &config.node_name, Purpose::Client, Timestamp::now).await?;
    let text = kubeconfig::render(&server, &authority, &config.node_name, &identity);
    kubeconfig::write(config.kubeconfig.clone(), text).await
}

/// When the first certificate in a PEM ends; nothing for what is none.
pub fn certificate_end(pem: &[u8]) -> Option<Timestamp> {
    Some(certificate::validity(pem)?.until)
}

fn refused(error: ClientError, is_token: bool) -> JoinError {
    match error.status().map(|status| status.code) {
        Some(401) if is_token => JoinError::Token,
        Some(401) => JoinError::Certificate,
        _ => JoinError::Request(error),
    }
}
