//! Why there is no answer, for a person.

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use tokio_rustls::rustls;
use tokio_rustls::rustls::{AlertDescription, CertificateError};

use super::{Place, TlsFileError, TlsFiles};

/// There is no answer. The messages name the place, the cause, and where there is one the remedy.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    #[error("cannot find the address of {host}: {}", resolver_says(.source))]
    Resolve { host: String, source: io::Error },
    #[error("cannot connect to {place}{at}: {}", socket_says(.source))]
    Connect {
        place: String,
        /// The address, where the place is a name.
        at: String,
        source: io::Error,
    },
    #[error("cannot connect to the unix socket {}: {}", .path.display(), unix_says(.source))]
    Unix { path: PathBuf, source: io::Error },
    #[error("cannot use TLS: {0}")]
    Files(TlsFileError),
    #[error("{host} is neither a name nor an address that a certificate can be for")]
    ServerName { host: String },
    #[error("no TLS with {place}: {why}")]
    Tls { place: String, why: String },
    #[error("{place} does not answer in HTTP/1.1: {why}")]
    Protocol { place: String, why: String },
    #[error("{place} has closed the connection before it answered")]
    Broken { place: String },
    #[error("{place} has not answered within {} s", .after.as_secs_f64())]
    Timeout { place: String, after: Duration },
    #[error("the answer of {place} has more than {bytes_max} bytes")]
    TooLong { place: String, bytes_max: usize },
}

impl HttpError {
    /// The word for metrics.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Resolve { .. } => "resolve",
            Self::Connect { .. } | Self::Unix { .. } => "connect",
            Self::Files(_) => "file",
            Self::ServerName { .. } | Self::Tls { .. } => "tls",
            Self::Protocol { .. } => "protocol",
            Self::Broken { .. } => "broken",
            Self::Timeout { .. } => "timeout",
            Self::TooLong { .. } => "too_long",
        }
    }

    /// Whether it may work later as it is. Servers start late, names appear, certificates and files are renewed; a socket
    /// that we may not open stays closed until somebody changes its mode.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Unix { source, .. } => source.kind() != io::ErrorKind::PermissionDenied,
            Self::ServerName { .. } | Self::TooLong { .. } => false,
            _ => true,
        }
    }

    pub(super) fn connect(place: &Place, address: SocketAddr, source: io::Error) -> Self {
        let is_named = matches!(place, Place::Tcp { host, .. } if *host != address.ip().to_string());
        let at = if is_named {
            format!(" at {address}")
        } else {
            String::new()
        };
        Self::Connect {
            place: place.to_string(),
            at,
            source,
        }
    }

    pub(super) fn timeout(place: &Place, after: Duration) -> Self {
        Self::Timeout {
            place: place.to_string(),
            after,
        }
    }

    pub(super) fn exchange(place: &Place, files: &TlsFiles, error: &hyper::Error) -> Self {
        let place = place.to_string();
        // Under TLS 1.3 a server refuses a client's certificate only after the handshake.
        if let Some(error) = error.source().and_then(of_tls) {
            let why = tls_says(error, files);
            Self::Tls { place, why }
        } else if error.is_parse_too_large() {
            let why = "the head of its answer is too long".to_owned();
            Self::Protocol { place, why }
        } else if error.is_parse() {
            let why = "what it sends is something else (is the port the right one, and is it plain http?)"
                .to_owned();
            Self::Protocol { place, why }
        } else {
            Self::Broken { place }
        }
    }

    pub(super) fn tls(place: &Place, files: &TlsFiles, error: &io::Error) -> Self {
        Self::Tls {
            place: place.to_string(),
            why: of_tls(error).map_or_else(|| broke_off(error), |error| tls_says(error, files)),
        }
    }
}

fn of_tls<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let inner = error.downcast_ref::<io::Error>()?.get_ref()?;
    inner.downcast_ref()
}

fn broke_off(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
            "it has closed the connection during the handshake".to_owned()
        }
        _ => error.to_string(),
    }
}

fn tls_says(error: &rustls::Error, files: &TlsFiles) -> String {
    let flag = files.flags;
    match error {
        // A bad signature is that of another authority of the same name.
        rustls::Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => {
            let known = files.authorities();
            format!(
                "its certificate is not signed by an authority of {known} (--{flag}-ca FILE names others)"
            )
        }
        rustls::Error::InvalidCertificate(
            CertificateError::Expired | CertificateError::ExpiredContext { .. },
        ) => "its certificate has expired".to_owned(),
        rustls::Error::InvalidCertificate(error) => format!("its certificate is refused: {error}"),
        rustls::Error::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnknownCA
            | AlertDescription::HandshakeFailure,
        ) if !files.has_identity() => format!(
            "it refuses us ({error}); if it asks for a client certificate, --{flag}-client-cert and \
             --{flag}-client-key name one"
        ),
        rustls::Error::InvalidMessage(_) => "what it sends is no TLS (is it an http:// place?)".to_owned(),
        error => error.to_string(),
    }
}

/// The resolver's sentence without the standard library's words in front.
fn resolver_says(error: &io::Error) -> String {
    let text = error.to_string();
    let said = text
        .strip_prefix("failed to lookup address information: ")
        .unwrap_or(&text);
    said.to_lowercase()
}

fn socket_says(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            "connection refused (nothing listens there, or not yet)".to_owned()
        }
        io::ErrorKind::TimedOut => "no answer (a firewall, or the machine is away)".to_owned(),
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => {
            "there is no way to it".to_owned()
        }
        _ => error.to_string(),
    }
}

fn unix_says(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "it is not there (is the directory mounted, has its owner started?)".to_owned()
        }
        io::ErrorKind::ConnectionRefused => "nobody listens on it any more".to_owned(),
        io::ErrorKind::PermissionDenied => {
            let uid = rustix::process::geteuid().as_raw();
            format!(
                "permission denied to uid {uid} (its mode, or its group, must let this process write to it)"
            )
        }
        _ => error.to_string(),
    }
}
