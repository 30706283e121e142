//! The upgrade to a WebSocket that carries a command's streams.

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

/// Accepts an upgrade.
///
/// # Errors
///
/// 400 for everything that is no WebSocket of a known sub-protocol over HTTP/1.1; for SPDY it names what to use.
pub(crate) fn handshake(request: &Request<Incoming>) -> Result<Handshake, Status> {
    if request.version() == Version::HTTP_2 {
        return Err(Status::bad_request(
            "exec needs a WebSocket over HTTP/1.1; upgrades over HTTP/2 are not served",
        ));
    }
    negotiate(request.headers())
}

fn negotiate(headers: &HeaderMap) -> Result<Handshake, Status> {
    if has_token(headers, UPGRADE, "SPDY/3.1") {
        return Err(Status::bad_request(
            "SPDY is not served: use a client that speaks WebSocket (v5.channel.k8s.io or v4.channel.k8s.io), such as kubectl 1.31 or newer",
        ));
    }
    if !has_token(headers, CONNECTION, "upgrade") || !has_token(headers, UPGRADE, "websocket") {
        return Err(Status::bad_request("Upgrade request required"));
    }
    let offered = Protocol::ALL
        .into_iter()
        .find(|one| has_token(headers, SEC_WEBSOCKET_PROTOCOL, one.name()));
    let protocol = offered.ok_or_else(|| {
        Status::bad_request("unable to upgrade: none of the offered sub-protocols is served: v5.channel.k8s.io, v4.channel.k8s.io")
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
        (SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol.name())),
    ]);
    Ok(Handshake {
        protocol,
        headers: answered,
    })
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
            let answer = negotiate(&headers);
            assert_eq!(
                answer.as_ref().ok().map(|one| one.protocol),
                accepted,
                "{upgrade} {protocols}"
            );
            if let Ok(handshake) = answer {
                assert_eq!(
                    handshake.headers[SEC_WEBSOCKET_ACCEPT],
                    "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
                );
            }
        }
    }
}
