//! Through which door a request came, and whom it lets in.

use std::net::SocketAddr;

use hyper::header::{HOST, HeaderMap, ORIGIN};

/// What a listener is to those who come through it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Door {
    /// A Unix socket: its mode says who may come, and they may have everything.
    Unix,
    /// The loopback interface: every process of the network namespace, and every web page in a browser on it.
    Loopback(SocketAddr),
    /// Any address: metrics and health only.
    Metrics,
}

impl Door {
    /// Whether configuration is given at all.
    pub(crate) fn has_config(self) -> bool {
        self != Self::Metrics
    }

    /// Whether values of Secrets are given.
    pub(crate) fn has_secrets(self) -> bool {
        self == Self::Unix
    }

    /// Refuses what a web page sends: it comes with an `Origin`, or with the name of a host that somebody has pointed at
    /// the loopback interface (DNS rebinding).
    ///
    /// # Errors
    /// A sentence for the client.
    pub(crate) fn admit(self, headers: &HeaderMap) -> Result<(), String> {
        let Self::Loopback(address) = self else {
            return Ok(());
        };
        if headers.contains_key(ORIGIN) {
            return Err("requests with an Origin are refused: this endpoint is not for web pages".to_owned());
        }
        let mut hosts = headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().unwrap_or_default(),
            _ => "",
        };
        match is_ours(host, address) {
            true => Ok(()),
            false => Err(format!(
                "the Host of the request must be localhost:{port}, 127.0.0.1:{port} or [::1]:{port}",
                port = address.port()
            )),
        }
    }
}

fn is_ours(host: &str, address: SocketAddr) -> bool {
    const HTTP_PORT: u16 = 80;
    let (name, port) = match host.rsplit_once(':') {
        // The colons of `[::1]` are inside its brackets.
        Some((name, port)) if !port.ends_with(']') => (name, port.parse().ok()),
        _ => (host, Some(HTTP_PORT)),
    };
    let own = match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    };
    let is_named = name.eq_ignore_ascii_case("localhost") || ["127.0.0.1", "[::1]", &own].contains(&name);
    is_named && port == Some(address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        let pair = |(name, value): &(&'static str, &str)| (name.parse().unwrap(), value.parse().unwrap());
        pairs.iter().map(pair).collect()
    }

    #[test]
    fn over_tcp_foreign_hosts_and_any_origin_are_refused() {
        let door = Door::Loopback("127.0.0.1:7070".parse().unwrap());
        for host in ["127.0.0.1:7070", "localhost:7070", "LocalHost:7070", "[::1]:7070"] {
            assert_eq!(door.admit(&headers(&[("host", host)])), Ok(()), "{host}");
        }
        for host in [
            "evil.example:7070",
            "127.0.0.1",
            "127.0.0.1:7071",
            "localhost.evil.example:7070",
            "127.0.0.2:7070",
            "localhost:07070x",
            "",
        ] {
            let told = door.admit(&headers(&[("host", host)])).unwrap_err();
            assert!(told.contains("localhost:7070"), "{host}: {told}");
        }
        assert!(door.admit(&HeaderMap::new()).is_err(), "HTTP/1.0 without a Host");
        let origin = headers(&[("host", "127.0.0.1:7070"), ("origin", "http://127.0.0.1:7070")]);
        assert!(door.admit(&origin).unwrap_err().contains("Origin"));
        let null = headers(&[("host", "127.0.0.1:7070"), ("origin", "null")]);
        assert!(door.admit(&null).is_err());
    }

    #[test]
    fn each_listener_is_known_by_its_own_address_and_port() {
        for (listener, host) in [
            ("127.0.0.9:7070", "127.0.0.9:7070"),
            ("[::1]:7070", "[::1]:7070"),
            ("127.0.0.1:80", "localhost"),
            ("[::1]:80", "[::1]"),
        ] {
            let door = Door::Loopback(listener.parse().unwrap());
            assert_eq!(door.admit(&headers(&[("host", host)])), Ok(()), "{host}");
        }
        for door in [Door::Unix, Door::Metrics] {
            assert_eq!(
                door.admit(&headers(&[("host", "10.0.0.7:9533"), ("origin", "x")])),
                Ok(())
            );
        }
    }
}
