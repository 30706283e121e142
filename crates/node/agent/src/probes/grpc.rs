//! Asks `grpc.health.v1.Health/Check`, in plain text over HTTP/2.
//!
//! Words follow `pkg/probe/grpc/grpc.go`, Kubernetes 1.36. The call is one message each way with one field of interest in it,
//! so it is written and read by hand:
//!
//! ```text
//!   HealthCheckRequest  { string service = 1; }
//!   HealthCheckResponse { enum status = 1 { UNKNOWN 0, SERVING 1, NOT_SERVING 2, SERVICE_UNKNOWN 3 } }
//! ```

use bytes::{BufMut, Bytes, BytesMut};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{HeaderMap, Request, client::conn::http2, header};
use hyper_util::rt::{TokioExecutor, TokioIo};

use crate::{dial::dial, http_get::carried};

/// Bytes of an answer: a health service has no more to say.
const ANSWER_BYTES_MAX: usize = 16 * 1024;
const PATH: &str = "/grpc.health.v1.Health/Check";
const USER_AGENT: &str = concat!("kube-probe/1.36 hotmap/", env!("CARGO_PKG_VERSION"));
/// Status codes of gRPC.
const OK: &str = "0";
const UNIMPLEMENTED: &str = "12";

/// Asks for the health of a service, `""` for the server itself; fails unless it is SERVING.
pub(super) async fn check(host: &str, port: u16, service: &str) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("error: health rpc probe failed: {error}");
    let stream = dial(host, port)
        .await
        .map_err(|error| format!("failed to connect service {:?}: {error}", authority(host, port)))?;
    let (mut sender, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .map_err(|error| failed(&error))?;
    let request = Request::post(format!("http://{}{PATH}", authority(host, port)))
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, "trailers")
        .header(header::USER_AGENT, USER_AGENT)
        .body(Full::new(request(service)))
        .map_err(|error| failed(&error))?;
    let exchange = async {
        let answer = sender
            .send_request(request)
            .await
            .map_err(|error| failed(&error))?;
        if !answer.status().is_success() {
            return Err(failed(&format_args!(
                "the server answered HTTP {}",
                answer.status()
            )));
        }
        let headers = answer.headers().clone();
        let body = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect();
        let body = body.await.map_err(|error| failed(&error))?;
        // A call that fails at once has its status in the headers.
        let trailers = body.trailers().cloned().unwrap_or(headers);
        judge(&trailers, &body.to_bytes())
    };
    carried(exchange, connection).await
}

fn authority(host: &str, port: u16) -> String {
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// A message with its length before it, not compressed.
fn framed(message: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(message.len() + 5);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).expect("a service's name is short"));
    frame.put_slice(message);
    frame.freeze()
}

fn request(service: &str) -> Bytes {
    let mut message = Vec::new();
    if !service.is_empty() {
        message.push(0x0a);
        put_varint(&mut message, service.len() as u64);
        message.extend_from_slice(service.as_bytes());
    }
    framed(&message)
}

fn judge(trailers: &HeaderMap, body: &[u8]) -> Result<(), String> {
    let text = |name: &str| trailers.get(name).and_then(|value| value.to_str().ok());
    match text("grpc-status") {
        Some(OK) => {}
        Some(UNIMPLEMENTED) => {
            return Err(format!(
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): {}",
                text("grpc-message").unwrap_or_default()
            ));
        }
        Some(code) => {
            let message = text("grpc-message").unwrap_or_default();
            return Err(format!(
                "error: health rpc probe failed: rpc error: code = {code} desc = {message}"
            ));
        }
        None => return Err("error: health rpc probe failed: the answer has no grpc-status".to_owned()),
    }
    let message = body.get(5..).unwrap_or_default();
    match status(message) {
        Some(1) => Ok(()),
        Some(other) => Err(format!("service unhealthy (responded with {:?})", name(other))),
        None => Err("error: health rpc probe failed: the answer cannot be read".to_owned()),
    }
}

fn name(status: u64) -> String {
    match status {
        0 => "UNKNOWN".to_owned(),
        2 => "NOT_SERVING".to_owned(),
        3 => "SERVICE_UNKNOWN".to_owned(),
        other => other.to_string(),
    }
}

/// Field 1 of a message whose other fields are passed over; 0 if it is not there.
fn status(mut message: &[u8]) -> Option<u64> {
    let mut status = 0;
    while !message.is_empty() {
        let key = varint(&mut message)?;
        match key & 7 {
            0 => {
                let value = varint(&mut message)?;
                if key >> 3 == 1 {
                    status = value;
                }
            }
            1 => message = message.get(8..)?,
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                message = message.get(length..)?;
            }
            5 => message = message.get(4..)?,
            _ => return None,
        }
    }
    Some(status)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(first & 0x7f) << shift;
        if first & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use http_body_util::StreamBody;
    use hyper::{Response, body::Frame, server::conn::http2 as server, service::service_fn};
    use tokio::net::TcpListener;

    use super::*;

    /// Asks a server of this kind once.
    async fn asked(
        service: &str,
        code: &'static str,
        message: &'static [u8],
    ) -> (Result<(), String>, Vec<u8>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let (seen, mut request) = tokio::sync::mpsc::channel(1);
        let served = tokio::spawn(async move {
            let (client, _) = listener.accept().await.expect("a client");
            let answer = service_fn(move |request: Request<hyper::body::Incoming>| {
                let seen = seen.clone();
                async move {
                    assert_eq!(request.uri().path(), PATH);
                    assert_eq!(request.headers()["content-type"], "application/grpc");
                    let body = request.into_body().collect().await.expect("a request").to_bytes();
                    seen.send(body.to_vec()).await.expect("somebody listens");
                    let mut trailers = HeaderMap::new();
                    trailers.insert("grpc-status", code.parse().expect("a header"));
                    trailers.insert("grpc-message", "unknown method".parse().expect("a header"));
                    let frames = [Frame::data(framed(message)), Frame::trailers(trailers)];
                    let frames = frames.map(Ok::<_, Infallible>);
                    let body = StreamBody::new(futures_util::stream::iter(frames));
                    let answer = Response::builder().header("content-type", "application/grpc");
                    Ok::<_, Infallible>(answer.body(body).expect("an answer"))
                }
            });
            let served =
                server::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(client), answer);
            // A client that has its answer hangs up.
            let _ = served.await;
        });
        let outcome = check("127.0.0.1", port, service).await;
        let request = request.recv().await.expect("a request");
        served.await.expect("no panic");
        (outcome, request)
    }

    #[tokio::test]
    async fn only_who_says_serving_is_healthy() {
        let (outcome, request) = asked("shop", "0", &[0x08, 1]).await;
        assert_eq!(outcome, Ok(()));
        assert_eq!(request, b"\0\0\0\0\x06\x0a\x04shop");
        let (outcome, request) = asked("", "0", &[0x12, 1, b'x', 0x08, 2]).await;
        let unhealthy = r#"service unhealthy (responded with "NOT_SERVING")"#;
        assert_eq!((outcome, request), (Err(unhealthy.to_owned()), vec![0; 5]));
        for (code, message, said) in [
            ("0", &[][..], r#"service unhealthy (responded with "UNKNOWN")"#),
            (
                "0",
                &[0x08],
                "error: health rpc probe failed: the answer cannot be read",
            ),
            (
                "5",
                &[],
                "error: health rpc probe failed: rpc error: code = 5 desc = unknown method",
            ),
            (
                "12",
                &[],
                "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown method",
            ),
        ] {
            assert_eq!(asked("", code, message).await.0, Err(said.to_owned()));
        }
    }

    #[tokio::test]
    async fn who_speaks_something_else_has_failed() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let served = tokio::spawn(async move {
            let (client, _) = listener.accept().await.expect("a client");
            client.readable().await.expect("a request");
            client
                .try_write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                .expect("sent");
        });
        let refused = check("127.0.0.1", port, "").await.expect_err("no gRPC");
        assert!(
            refused.starts_with("error: health rpc probe failed: "),
            "{refused}"
        );
        served.await.expect("no panic");
        let nobody = check("127.0.0.1", port, "").await.expect_err("nobody there");
        assert!(
            nobody.starts_with("failed to connect service \"127.0.0.1:"),
            "{nobody}"
        );
    }
}
