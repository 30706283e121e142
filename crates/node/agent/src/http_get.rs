//! The `httpGet` of probes and lifecycle hooks.

mod target;
mod tls;

use std::{collections::BTreeMap, convert::Infallible};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::{Request, StatusCode, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use self::target::{REQUESTS_MAX, Target};
use crate::{
    dial::dial,
    pod::{Container, HttpGetAction, Port},
};

/// Bytes of a body that are read before the connection is closed (`pkg/probe/http`, Kubernetes 1.36).
const BODY_BYTES_MAX: usize = 10 * 1024;

/// Asks `get` of a container and says the status code of the answer, redirects within the host followed; the body is read, as far
/// as it may matter to the server, and dropped.
pub(crate) async fn status(
    get: &HttpGetAction,
    container: &Container,
    pod_ip: &str,
    user_agent: &'static str,
) -> Result<u16, String> {
    let (host, port) = address(&get.port, &get.host, container, pod_ip)?;
    let path = if get.path.starts_with('/') {
        get.path.clone()
    } else {
        format!("/{}", get.path)
    };
    let mut target = Target {
        is_https: get.is_https(),
        host,
        port,
        path,
    };
    for _ in 0..REQUESTS_MAX {
        let answer = ask(&target, get, user_agent)
            .await
            .map_err(|error| format!("Get {:?}: {error}", target.url()))?;
        match target.redirected(answer.code, answer.location.as_deref()) {
            Some(next) => target = next,
            None => return Ok(answer.code.as_u16()),
        }
    }
    Err(format!(
        "Get {:?}: stopped after {REQUESTS_MAX} redirects",
        target.url()
    ))
}

/// What of an answer matters.
struct Answer {
    code: StatusCode,
    location: Option<String>,
}

async fn ask(target: &Target, get: &HttpGetAction, user_agent: &'static str) -> Result<Answer, String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let mut request = Request::get(target.path.as_str());
    let own = get.http_headers.iter();
    let names = |name: &str| own.clone().any(|one| one.name.eq_ignore_ascii_case(name));
    if !names("host") {
        request = request.header(header::HOST, target.authority());
    }
    if !names("user-agent") {
        request = request.header(header::USER_AGENT, user_agent);
    }
    if !names("accept") {
        request = request.header(header::ACCEPT, "*/*");
    }
    for one in &get.http_headers {
        request = request.header(one.name.as_str(), one.value.as_str());
    }
    let request = request
        .body(Empty::<Bytes>::new())
        .map_err(|error| text(&error))?;
    let stream = dial(&target.host, target.port)
        .await
        .map_err(|error| text(&error))?;
    if target.is_https {
        let stream = tls::connect(&target.host, stream).await;
        exchange(stream.map_err(|error| text(&error))?, request).await
    } else {
        exchange(stream, request).await
    }
}

/// Sends a request over a connection of its own.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    request: Request<Empty<Bytes>>,
) -> Result<Answer, String> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| error.to_string())?;
    let exchange = async {
        let answer = sender
            .send_request(request)
            .await
            .map_err(|error| error.to_string())?;
        let code = answer.status();
        let location = answer.headers().get(header::LOCATION);
        let location = location.and_then(|value| value.to_str().ok()).map(str::to_owned);
        if !(200..400).contains(&code.as_u16()) {
            // Read, so that a server that logs broken connections has nothing to log.
            let _ = Limited::new(answer.into_body(), BODY_BYTES_MAX).collect().await;
        }
        Ok(Answer { code, location })
    };
    carried(exchange, connection).await
}

/// The outcome of an exchange, with its connection driven beside it. A server may answer and close in one go, well or not: what
/// ends the connection is told by the exchange, after what has arrived before.
pub(crate) async fn carried<T>(exchange: impl Future<Output = T>, connection: impl Future) -> T {
    let driver = async {
        let _ = connection.await;
        std::future::pending::<Infallible>().await
    };
    tokio::select! {
        outcome = exchange => outcome,
        never = driver => match never {},
    }
}

/// Whether a failed request was refused by a server without TLS.
pub(crate) fn wants_plain_http(error: &str) -> bool {
    error.ends_with(tls::NOT_TLS)
}

/// Where a port of a container is: on the pod's own address unless a host is named.
pub(crate) fn address(
    port: &Port,
    host: &str,
    container: &Container,
    pod_ip: &str,
) -> Result<(String, u16), String> {
    let named: BTreeMap<&str, u16> = container
        .ports
        .iter()
        .map(|one| (one.name.as_str(), one.container_port))
        .collect();
    let number = port
        .number(&named)
        .ok_or_else(|| format!("couldn't find port {port:?} in container {}", container.name))?;
    Ok((
        if host.is_empty() {
            pod_ip.to_owned()
        } else {
            host.to_owned()
        },
        number,
    ))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rcgen::{CertificateParams, KeyPair};
    use serde_json::json;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };
    use tokio_rustls::{
        TlsAcceptor,
        rustls::{ServerConfig, crypto::ring, pki_types::PrivateKeyDer},
    };

    use super::*;

    /// Somebody whose certificate is long out of date and for another name.
    fn impostor() -> TlsAcceptor {
        let key = KeyPair::generate().expect("a key");
        let mut certificate = CertificateParams::new(["elsewhere.example".to_owned()]).expect("a name");
        certificate.not_after = rcgen::date_time_ymd(1999, 1, 1);
        let certificate = certificate.self_signed(&key).expect("signed");
        let key = PrivateKeyDer::try_from(key.serialize_der()).expect("a key");
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .expect("a certificate");
        TlsAcceptor::from(Arc::new(config))
    }

    fn get(port: u16) -> (HttpGetAction, Container) {
        let get = json!({"path": "/ok", "port": port, "scheme": "HTTPS",
            "httpHeaders": [{"name": "authorization", "value": "secret"}]});
        let container = json!({"name": "c"});
        (
            serde_json::from_value(get).expect("a probe"),
            serde_json::from_value(container).expect("a container"),
        )
    }

    #[tokio::test]
    async fn a_server_that_sends_on_and_on_has_failed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let (mut get, container) = get(listener.local_addr().expect("bound").port());
        get.scheme = "HTTP".to_owned();
        let served = tokio::spawn(async move {
            for number in 0..10 {
                let (mut client, _) = listener.accept().await.expect("a client");
                let mut request = Vec::new();
                while !request.ends_with(b"\r\n\r\n") {
                    client.read_buf(&mut request).await.expect("a request");
                }
                let answer =
                    format!("HTTP/1.1 302 Found\r\nLocation: /{number}\r\nContent-Length: 0\r\n\r\n");
                client.write_all(answer.as_bytes()).await.expect("sent");
            }
        });
        let stopped = status(&get, &container, "127.0.0.1", "test")
            .await
            .expect_err("no end");
        assert!(stopped.ends_with("/9\": stopped after 10 redirects"), "{stopped}");
        served.await.expect("no panic");
    }

    #[tokio::test]
    async fn anybody_may_answer_over_https() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let (get, container) = get(listener.local_addr().expect("bound").port());
        let served = tokio::spawn(async move {
            let (client, _) = listener.accept().await.expect("a client");
            let mut client = impostor().accept(client).await.expect("a handshake");
            let mut request = [0; 1024];
            let length = client.read(&mut request).await.expect("a request");
            assert!(request[..length].starts_with(b"GET /ok HTTP/1.1\r\n"));
            let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
            client.write_all(answer).await.expect("sent");
            client.flush().await.expect("sent");
        });
        assert_eq!(status(&get, &container, "127.0.0.1", "test").await, Ok(204));
        served.await.expect("no panic");
    }

    #[tokio::test]
    async fn a_server_without_tls_is_told_from_one_that_fails() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let (get, container) = get(listener.local_addr().expect("bound").port());
        let served = tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.expect("a client");
            let mut hello = [0; 1024];
            let length = client.read(&mut hello).await.expect("a hello");
            assert_ne!(length, 0);
            let answer = b"HTTP/1.1 400 Bad Request\r\n\r\n";
            client.write_all(answer).await.expect("sent");
        });
        let refused = status(&get, &container, "127.0.0.1", "test")
            .await
            .expect_err("no TLS");
        assert!(wants_plain_http(&refused), "{refused}");
        served.await.expect("no panic");
        let gone = status(&get, &container, "127.0.0.1", "test")
            .await
            .expect_err("nobody there");
        assert!(!wants_plain_http(&gone), "{gone}");
        let plain = get.over_plain_http();
        assert!(!plain.is_https() && plain.http_headers.is_empty());
    }
}
