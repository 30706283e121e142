//! The `httpGet` of probes and lifecycle hooks.

use std::collections::BTreeMap;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, Limited};
use hyper::{Request, client::conn::http1, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::pod::{Container, HttpGetAction, Port};

/// Bytes of a body that are read before the connection is closed (`pkg/probe/http`, Kubernetes 1.36).
const BODY_BYTES_MAX: usize = 10 * 1024;

/// Asks `get` of a container and says the status code of the answer; the body is read, as far as it may matter to the server,
/// and dropped.
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
    let url = format!("http://{host}:{port}{path}");
    let failed = |error: &dyn std::fmt::Display| format!("Get {url:?}: {error}");
    let stream = TcpStream::connect((host.as_str(), port))
        .await
        .map_err(|error| failed(&error))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| failed(&error))?;
    let mut request = Request::get(path);
    let own = get.http_headers.iter();
    let names = |name: &str| own.clone().any(|one| one.name.eq_ignore_ascii_case(name));
    if !names("host") {
        request = request.header(header::HOST, format!("{host}:{port}"));
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
        .map_err(|error| failed(&error))?;
    let exchange = async {
        let answer = sender
            .send_request(request)
            .await
            .map_err(|error| failed(&error))?;
        let code = answer.status().as_u16();
        if !(200..400).contains(&code) {
            // Read, so that a server that logs broken connections has nothing to log.
            let _ = Limited::new(answer.into_body(), BODY_BYTES_MAX).collect().await;
        }
        Ok(code)
    };
    // A server may answer and close in one go: an end in good order says nothing until the answer was looked for.
    let broken = async {
        match connection.await {
            Err(error) => error,
            Ok(()) => std::future::pending().await,
        }
    };
    tokio::select! {
        answered = exchange => answered,
        error = broken => Err(failed(&error)),
    }
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
