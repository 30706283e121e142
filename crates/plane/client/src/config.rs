//! Which server, whom it trusts, and who we are.

mod find;
mod kubeconfig;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use find::Surroundings;
use hyper::Uri;

/// Everything a [`crate::Client`] needs to know.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// The server.
    pub server: Server,
    /// The certificates that may sign the server's, PEM; the system's own are never trusted.
    pub ca_pem: Vec<u8>,
    /// How the server proves who it is.
    pub server_proof: ServerProof,
    /// A client certificate, if that is who we are.
    pub identity: Option<Identity>,
    /// A bearer token, if that is who we are.
    pub token: Option<Token>,
    /// The namespace of who names none, where the kubeconfig's context or the pod's account says one.
    pub namespace: Option<String>,
    /// Sent as `User-Agent`.
    pub user_agent: String,
    /// How long things may take.
    pub timeouts: Timeouts,
}

impl ClientConfig {
    /// A config without credentials, with default timeouts.
    pub fn new(server: Server, ca_pem: impl Into<Vec<u8>>) -> Self {
        let user_agent = concat!("hotmap/", env!("CARGO_PKG_VERSION")).to_owned();
        let timeouts = Timeouts::default();
        Self {
            server,
            ca_pem: ca_pem.into(),
            server_proof: ServerProof::default(),
            identity: None,
            token: None,
            namespace: None,
            user_agent,
            timeouts,
        }
    }
}

/// How a server proves who it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ServerProof {
    /// By a certificate that [`ClientConfig::ca_pem`] has signed.
    #[default]
    Certificate,
    /// Not at all: whoever stands between reads the token and answers in the server's place. Never without being asked for
    /// by name.
    None,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Name or address to connect to.
    pub host: String,
    /// TCP port.
    pub port: u16,
    /// What the server's certificate must be for; `host` in most cases.
    pub tls_name: String,
    /// What stands before `/api` in each path; empty, or starting with `/`.
    pub base_path: String,
}

impl Server {
    /// Reads `https://host[:port][/prefix]`; the port is 443 by default.
    ///
    /// # Errors
    /// [`ConfigError::Url`] for anything else, plain HTTP above all: credentials go over TLS only.
    pub fn parse(url: &str) -> Result<Self, ConfigError> {
        let bad = |why: &str| ConfigError::Url {
            url: url.to_owned(),
            why: why.to_owned(),
        };
        let uri: Uri = url.parse().map_err(|_| bad("not a URL"))?;
        if uri.scheme_str() != Some("https") {
            return Err(bad("must start with https://"));
        }
        let authority = uri.authority().ok_or_else(|| bad("no host"))?;
        if authority.as_str().contains('@') || uri.query().is_some() {
            return Err(bad("only host, port and path are allowed"));
        }
        let host = authority
            .host()
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        if host.is_empty() {
            return Err(bad("no host"));
        }
        let port = authority.port_u16().unwrap_or(443);
        let base_path = uri.path().trim_end_matches('/').to_owned();
        Ok(Self {
            tls_name: host.clone(),
            host,
            port,
            base_path,
        })
    }

    /// `https://host:port`, and the prefix if there is one: what [`Server::parse`] reads.
    pub fn url(&self) -> String {
        format!("https://{}{}", self.authority(), self.base_path)
    }

    /// Host and port as a URL has them.
    pub(crate) fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

/// A client certificate with its key.
#[derive(Clone)]
pub struct Identity {
    /// The certificate, then those that signed it, PEM.
    pub certificate_pem: Vec<u8>,
    /// The private key, PEM: PKCS#8, PKCS#1 or SEC1.
    pub key_pem: Vec<u8>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Identity(…)")
    }
}

/// A bearer token.
#[derive(Clone)]
pub enum Token {
    /// Always the same.
    Fixed(String),
    /// In a file that somebody renews; read again once a minute.
    File(PathBuf),
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(_) => f.write_str("Fixed(…)"),
            Self::File(path) => write!(f, "File({})", path.display()),
        }
    }
}

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// From the first packet to the end of the TLS handshake.
    pub connect: Duration,
    /// From sending a request to the last byte of its answer; for a watch, to the head of the answer.
    pub request: Duration,
    /// Between two PINGs on a connection.
    pub ping_interval: Duration,
    /// For the answer to a PING; together with the interval the time in which a dead connection is found.
    pub ping_timeout: Duration,
    /// The longest pause between two attempts to connect; the shortest is 50 ms.
    pub reconnect_max: Duration,
}

impl Timeouts {
    /// For a server in this very process: it dies with its client, and a PING would only wake both.
    pub fn in_process() -> Self {
        Self {
            ping_interval: Duration::from_secs(60 * 60),
            ..Self::default()
        }
    }
}

impl Default for Timeouts {
    /// A dead connection is found within 9 s, a server that comes back within 2 s.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            request: Duration::from_secs(30),
            ping_interval: Duration::from_secs(5),
            ping_timeout: Duration::from_secs(4),
            reconnect_max: Duration::from_secs(2),
        }
    }
}

/// A config that cannot work.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The kubeconfig is no YAML, or not of its shape. The parser's text is left out: it may quote a key.
    #[error("{} is not a kubeconfig{}", .path.display(), place(*.line))]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where, if the parser says so; lines start at 1.
        line: Option<u64>,
    },
    /// A context, cluster or user that is referred to is not there.
    #[error("the kubeconfig has no {what} {name:?}")]
    Missing {
        /// `context`, `cluster` or `user`.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// Nothing says where the API is.
    #[error(
        "no API found: there is no --kubeconfig, no KUBECONFIG, no ~/.kube/config, and this is no pod with an account"
    )]
    NoApi,
    /// The kubeconfig has no current context and none was named.
    #[error("the kubeconfig has no current-context")]
    NoContext,
    /// `KUBECONFIG` lists several files.
    #[error("KUBECONFIG lists several files; name one of them with --kubeconfig")]
    SeveralFiles,
    /// The kubeconfig asks for something this client does not do.
    #[error("{field} of a kubeconfig is not supported{hint}")]
    Unsupported {
        /// The field.
        field: &'static str,
        /// What to do, or empty.
        hint: &'static str,
    },
    /// The server's URL cannot be used.
    #[error("server {url:?}: {why}")]
    Url {
        /// The URL.
        url: String,
        /// What is wrong.
        why: String,
    },
    /// A certificate or key is malformed.
    #[error("{what}: {why}")]
    Certificate {
        /// Which one.
        what: &'static str,
        /// What is wrong.
        why: String,
    },
}

fn place(line: Option<u64>) -> String {
    line.map(|line| format!(", see line {line}")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_an_https_url() {
        for (url, expected) in [
            ("https://127.0.0.1:6443", Some(("127.0.0.1:6443", ""))),
            ("https://api.example.com", Some(("api.example.com:443", ""))),
            ("https://[::1]:6443/", Some(("[::1]:6443", ""))),
            (
                "https://rancher/k8s/clusters/c1/",
                Some(("rancher:443", "/k8s/clusters/c1")),
            ),
            ("http://127.0.0.1:8080", None),
            ("https://user@host", None),
            ("https://host?x=1", None),
            ("host:6443", None),
            ("", None),
        ] {
            let parsed = Server::parse(url)
                .ok()
                .map(|server| (server.authority(), server.base_path));
            let expected = expected.map(|(authority, path)| (authority.to_owned(), path.to_owned()));
            assert_eq!(parsed, expected, "{url}");
        }
    }

    #[test]
    fn debug_output_never_shows_credentials() {
        let mut config = ClientConfig::new(Server::parse("https://host").unwrap(), "");
        config.token = Some(Token::Fixed("hunter2".to_owned()));
        config.identity = Some(Identity {
            certificate_pem: b"c".to_vec(),
            key_pem: b"hunter2".to_vec(),
        });
        let shown = format!("{config:?}");
        assert!(
            !shown.contains("hunter2") && !shown.contains("104, 117"),
            "{shown}"
        );
    }
}
