//! Where is listened.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;

/// Bytes of a socket's path: what `sockaddr_un` has room for, with the zero at its end and the suffix of the name that
/// it is bound under first.
const SOCKET_PATH_BYTES_MAX: usize = 107 - super::unix::STAGED_SUFFIX_BYTES;

/// A place where all of the endpoint is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServeAddress {
    /// A Unix stream socket.
    Unix(PathBuf),
    /// An address of the loopback interface. Port 0: any that is free.
    Loopback(SocketAddr),
}

/// A place where only `/metrics` and `/healthz` are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MetricsAddress {
    /// Any address of this network namespace.
    Any {
        /// 0: any that is free.
        port: u16,
    },
    /// This one.
    One(SocketAddr),
}

/// What is typed is not an address that may be served on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    #[error("{0:?} is neither unix:PATH nor an address and port such as 127.0.0.1:7070")]
    Shape(String),
    #[error(
        "{0} is not an address of the loopback interface: configuration is served on unix:PATH, 127.0.0.1:PORT or \
         [::1]:PORT only; --metrics-address serves /metrics and /healthz on any address"
    )]
    NotLoopback(SocketAddr),
    #[error("the path of a socket is absolute and has at most {SOCKET_PATH_BYTES_MAX} bytes: {0:?} is not")]
    SocketPath(String),
}

impl FromStr for ServeAddress {
    type Err = AddressError;

    fn from_str(typed: &str) -> Result<Self, AddressError> {
        if let Some(path) = typed.strip_prefix("unix:") {
            // `unix:///run/x` is how URLs of sockets are often written.
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path.starts_with('/') && path.len() <= SOCKET_PATH_BYTES_MAX && !path.ends_with('/')
            {
                true => Ok(Self::Unix(PathBuf::from(path))),
                false => Err(AddressError::SocketPath(path.to_owned())),
            };
        }
        let address: SocketAddr = typed.parse().map_err(|_| AddressError::Shape(typed.to_owned()))?;
        match address.ip().is_loopback() {
            true => Ok(Self::Loopback(address)),
            false => Err(AddressError::NotLoopback(address)),
        }
    }
}

impl fmt::Display for ServeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
            Self::Loopback(address) => write!(f, "{address}"),
        }
    }
}

impl FromStr for MetricsAddress {
    type Err = AddressError;

    /// `ADDRESS:PORT`, or `:PORT` for all addresses, as Go programs have it.
    fn from_str(typed: &str) -> Result<Self, AddressError> {
        let shape = || AddressError::Shape(typed.to_owned());
        match typed.strip_prefix(':') {
            Some(port) => Ok(Self::Any {
                port: port.parse().map_err(|_| shape())?,
            }),
            None => Ok(Self::One(typed.parse().map_err(|_| shape())?)),
        }
    }
}

impl fmt::Display for MetricsAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any { port } => write!(f, ":{port}"),
            Self::One(address) => write!(f, "{address}"),
        }
    }
}

impl MetricsAddress {
    /// What to try, in order: a machine without IPv6 has no `[::]`.
    pub(crate) fn candidates(self) -> Vec<SocketAddr> {
        match self {
            Self::Any { port } => {
                let any: [IpAddr; 2] = [Ipv6Addr::UNSPECIFIED.into(), Ipv4Addr::UNSPECIFIED.into()];
                any.map(|ip| SocketAddr::new(ip, port)).to_vec()
            }
            Self::One(address) => vec![address],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_and_loopback_addresses_are_served_on_and_nothing_else() {
        let good = [
            ("unix:/run/app/hotmap.sock", "unix:/run/app/hotmap.sock"),
            ("unix:///run/app/hotmap.sock", "unix:/run/app/hotmap.sock"),
            ("127.0.0.1:7070", "127.0.0.1:7070"),
            ("127.8.0.1:0", "127.8.0.1:0"),
            ("[::1]:7070", "[::1]:7070"),
        ];
        for (typed, shown) in good {
            assert_eq!(typed.parse::<ServeAddress>().unwrap().to_string(), shown);
        }
        let long = format!("unix:/{}", "x".repeat(SOCKET_PATH_BYTES_MAX));
        for (typed, error) in [
            ("0.0.0.0:7070", "--metrics-address"),
            ("[::]:7070", "not an address of the loopback"),
            ("10.0.0.1:7070", "not an address of the loopback"),
            ("localhost:7070", "neither unix:PATH"),
            ("7070", "neither unix:PATH"),
            ("unix:", "absolute"),
            ("unix:run/app.sock", "absolute"),
            ("unix:/run/", "absolute"),
            (&long, "at most"),
        ] {
            let told = typed.parse::<ServeAddress>().unwrap_err().to_string();
            assert!(told.contains(error), "{typed}: {told}");
        }
    }

    #[test]
    fn metrics_are_served_on_any_address() {
        for (typed, first) in [
            (":9533", "[::]:9533"),
            ("0.0.0.0:9533", "0.0.0.0:9533"),
            ("[::1]:0", "[::1]:0"),
        ] {
            let address: MetricsAddress = typed.parse().unwrap();
            assert_eq!(address.candidates()[0].to_string(), first);
            assert_eq!(address.to_string(), typed);
        }
        assert!("9533".parse::<MetricsAddress>().is_err());
        assert!(":x".parse::<MetricsAddress>().is_err());
    }
}
