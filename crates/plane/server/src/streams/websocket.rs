//! The upgrade to a WebSocket that carries streams, or a tunnel.

use hotmap_object::Status;
use hyper::{
    Request, Version,
    body::Incoming,
    header::{
        CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
        SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
    },
};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// Which sub-protocol the streams are framed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    V4,
    /// Like v4, and a client can close a channel: the end of input.
    V5,
}

impl Protocol {
    /// Best first.
    const ALL: [Protocol; 2] = [Protocol::V5, Protocol::V4];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Protocol::V4 => "v4.channel.k8s.io",
            Protocol::V5 => "v5.channel.k8s.io",
        }
    }
}

/// An accepted upgrade: what is said and what goes into the 101.
#[derive(Debug)]
pub(crate) struct Handshake {
    pub(crate) protocol: Protocol,
    pub(crate) headers: HeaderMap,
}

/// Accepts an upgrade for the streams of a command or a container.
///
/// # Errors
///
/// 400 for everything that is no WebSocket of a known sub-protocol over HTTP/1.1; for SPDY it names what to use.
pub(crate) fn handshake(request: &Request<Incoming>) -> Result<Handshake, Status> {
    require_http_1(request)?;
    let (protocol, headers) = negotiate(request.headers(), &Protocol::ALL, Protocol::name)?;
    Ok(Handshake { protocol, headers })
}

/// A tunnel's only sub-protocol: SPDY/3.1 in binary messages, cut anywhere
/// (`apimachinery/pkg/util/portforward/constants.go`, Kubernetes 1.36).
pub(crate) const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";

/// Accepts an upgrade for a tunnel; these go into the 101.
///
/// # Errors
///
/// As [`handshake`].
pub(crate) fn tunnel_handshake(request: &Request<Incoming>) -> Result<HeaderMap, Status> {
    require_http_1(request)?;
    negotiate(request.headers(), &[TUNNEL], |name| name).map(|(_, headers)| headers)
}

fn require_http_1(request: &Request<Incoming>) -> Result<(), Status> {
    if request.version() == Version::HTTP_2 {
        return Err(Status::bad_request(
            "this needs a WebSocket over HTTP/1.1; upgrades over HTTP/2 are not served",
        ));
    }
    Ok(())
}

/// The first of the known sub-protocols that is offered, and what accepts it.
fn negotiate<P: Copy>(
    headers: &HeaderMap,
    known: &[P],
    name: impl Fn(P) -> &'static str,
) -> Result<(P, HeaderMap), Status> {
    let names = || known.iter().map(|one| name(*one)).collect::<Vec<_>>().join(", ");
    if has_token(headers, UPGRADE, "SPDY/3.1") {
        return Err(Status::bad_request(format!(
            "SPDY is not served: use a client that speaks WebSocket ({}), such as kubectl 1.31 or newer",
            names()
        )));
    }
    if !has_token(headers, CONNECTION, "upgrade") || !has_token(headers, UPGRADE, "websocket") {
        return Err(Status::bad_request("Upgrade request required"));
    }
    let offered = known
        .iter()
        .copied()
        .find(|one| has_token(headers, SEC_WEBSOCKET_PROTOCOL, name(*one)));
    let protocol = offered.ok_or_else(|| {
        Status::bad_request(format!(
            "unable to upgrade: none of the offered sub-protocols is served: {}",
            names()
        ))
    })?;
    let key = headers.get(SEC_WEBSOCKET_KEY);
    let is_current = headers
        .get(SEC_WEBSOCKET_VERSION)
        .is_some_and(|version| version == "13");
    let Some(key) = key.filter(|_| is_current) else {
        return Err(Status::bad_request(
            "the WebSocket handshake needs a key and version 13",
        ));
    };
    let accept = HeaderValue::try_from(derive_accept_key(key.as_bytes())).expect("base64 is plain text");
    let answered = HeaderMap::from_iter([
        (CONNECTION, HeaderValue::from_static("Upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (SEC_WEBSOCKET_ACCEPT, accept),
        (SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(name(protocol))),
    ]);
    Ok((protocol, answered))
}

fn has_token(headers: &HeaderMap, name: HeaderName, token: &str) -> bool {
    let values = headers.get_all(name);
    let mut tokens = values
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','));
    tokens.any(|held| held.trim().eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_known_websockets_are_accepted() {
        for (upgrade, protocols, accepted) in [
            ("websocket", "v5.channel.k8s.io", Some(Protocol::V5)),
            (
                "WebSocket",
                "v4.channel.k8s.io, v5.channel.k8s.io",
                Some(Protocol::V5),
            ),
            ("websocket", "v4.channel.k8s.io", Some(Protocol::V4)),
            ("websocket", "channel.k8s.io", None),
            ("SPDY/3.1", "", None),
            ("", "", None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONNECTION, HeaderValue::from_static("keep-alive, Upgrade"));
            headers.insert(UPGRADE, HeaderValue::from_static(upgrade));
            headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocols));
            headers.insert(
                SEC_WEBSOCKET_KEY,
                HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ=="),
            );
            headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
            let answer = negotiate(&headers, &Protocol::ALL, Protocol::name);
            assert_eq!(
                answer.as_ref().ok().map(|(protocol, _)| *protocol),
                accepted,
                "{upgrade} {protocols}"
            );
            if let Ok((_, answered)) = answer {
                assert_eq!(answered[SEC_WEBSOCKET_ACCEPT], "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
            }
        }
    }
}
