//! Logs, commands, streams and ports of pods on other machines, asked of their agent as upstream's server asks a kubelet.
//!
//! Paths and parameters: `pkg/kubelet/server/server.go` and `pkg/registry/core/pod/strategy.go`, Kubernetes 1.36; `uid` is
//! ours, and makes sure that it is this pod and not another one of its name.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt, future::BoxFuture};
use hotmap_object::Status;
use http_body_util::{BodyExt, BodyStream, Empty, Limited};
use hyper::{Request, StatusCode, client::conn::http1, header, http::request};
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::{self, handshake::client::generate_key};
use tokio_util::task::AbortOnDropHandle;

use super::dial::{Dialer, Endpoint};
use crate::{
    credentials::Credentials,
    node_access::{
        AttachRequest, ExecRequest, ExecStreams, LogRequest, LogStream, NodeAccess, PortForward,
        PortForwardRequest,
    },
    request::percent_encode,
    streams::{self, Wanted},
    tokens::Held,
};

/// An agent's failure is a `Status` of a few lines.
const FAILURE_BYTES_MAX: usize = 64 * 1024;

/// Every node but that of this process.
pub(super) struct RemoteNode {
    dialer: Dialer,
}

impl RemoteNode {
    pub(super) fn new(objects: Arc<dyn Held>, credentials: Credentials) -> Self {
        Self {
            dialer: Dialer::new(objects, credentials),
        }
    }

    async fn log(&self, request: LogRequest) -> Result<LogStream, Status> {
        let (stream, endpoint) = self.dialer.connect(&request.node).await?;
        let gone = |error: hyper::Error| left(&request.node, &error);
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(gone)?;
        let connection = AbortOnDropHandle::new(tokio::spawn(connection));
        let asked = Request::get(log_target(&request))
            .header(header::HOST, endpoint.authority())
            .body(Empty::<Bytes>::new())
            .map_err(Status::internal)?;
        let answer = sender.send_request(asked).await.map_err(gone)?;
        let (head, body) = answer.into_parts();
        if !head.status.is_success() {
            let text = Limited::new(body, FAILURE_BYTES_MAX).collect().await;
            let text = text.map(|whole| whole.to_bytes()).unwrap_or_default();
            return Err(failure(&request.node, head.status.as_u16(), &text));
        }
        // The connection lives as long as the log is read.
        let pieces = BodyStream::new(body).filter_map(move |frame| {
            let _connection = &connection;
            let piece = match frame {
                Ok(frame) => frame.into_data().ok().map(Ok),
                Err(error) => Some(Err(std::io::Error::other(error))),
            };
            std::future::ready(piece)
        });
        Ok(pieces.boxed())
    }

    async fn streams(&self, node: &str, target: &str, wanted: Wanted) -> Result<ExecStreams, Status> {
        let (stream, endpoint) = self.dialer.connect(node).await?;
        let target = format!("wss://{}{target}", endpoint.authority());
        let upgrade = upgrade(&target, &endpoint, streams::Protocol::V5.name())
            .body(())
            .map_err(Status::internal)?;
        let config = Some(streams::socket_config());
        match tokio_tungstenite::client_async_with_config(upgrade, stream, config).await {
            Ok((socket, _)) => Ok(streams::running(socket, wanted)),
            Err(tungstenite::Error::Http(refused)) => {
                let (head, body) = refused.into_parts();
                Err(failure(node, head.status.as_u16(), &body.unwrap_or_default()))
            }
            Err(error) => Err(left(node, &error)),
        }
    }

    /// The upgrade is the client's, as far as the agent knows: what the client sends is passed on to it, frames and all.
    async fn tunnel(&self, request: PortForwardRequest) -> Result<PortForward, Status> {
        let node = &request.node;
        let (stream, endpoint) = self.dialer.connect(node).await?;
        let gone = |error: hyper::Error| left(node, &error);
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(gone)?;
        let connection = AbortOnDropHandle::new(tokio::spawn(connection.with_upgrades()));
        let target = port_forward_target(&request);
        let asked = upgrade(&target, &endpoint, streams::TUNNEL)
            .body(Empty::<Bytes>::new())
            .map_err(Status::internal)?;
        let mut answer = sender.send_request(asked).await.map_err(gone)?;
        if answer.status() != StatusCode::SWITCHING_PROTOCOLS {
            let (head, body) = answer.into_parts();
            let text = Limited::new(body, FAILURE_BYTES_MAX).collect().await;
            let text = text.map(|whole| whole.to_bytes()).unwrap_or_default();
            return Err(failure(node, head.status.as_u16(), &text));
        }
        let upgraded = hyper::upgrade::on(&mut answer).await.map_err(gone)?;
        // It has handed its stream over, and ends.
        drop(connection);
        Ok(PortForward::Agent(Box::new(TokioIo::new(upgraded))))
    }
}

impl NodeAccess for RemoteNode {
    fn logs(&self, request: LogRequest) -> BoxFuture<'_, Result<LogStream, Status>> {
        self.log(request).boxed()
    }

    fn exec(&self, request: ExecRequest) -> BoxFuture<'_, Result<ExecStreams, Status>> {
        let wanted = Wanted {
            stdin: request.stdin,
            stdout: request.stdout,
            stderr: request.stderr,
            tty: request.tty,
        };
        async move { self.streams(&request.node, &exec_target(&request), wanted).await }.boxed()
    }

    fn attach(&self, request: AttachRequest) -> BoxFuture<'_, Result<ExecStreams, Status>> {
        let wanted = Wanted {
            stdin: request.stdin,
            stdout: request.stdout,
            stderr: request.stderr,
            tty: request.tty,
        };
        async move {
            self.streams(&request.node, &attach_target(&request), wanted)
                .await
        }
        .boxed()
    }

    fn port_forward(&self, request: PortForwardRequest) -> BoxFuture<'_, Result<PortForward, Status>> {
        self.tunnel(request).boxed()
    }
}

/// A WebSocket asked of an agent.
fn upgrade(target: &str, endpoint: &Endpoint, protocol: &str) -> request::Builder {
    Request::get(target)
        .header(header::HOST, endpoint.authority())
        .header(header::CONNECTION, "Upgrade")
        .header(header::UPGRADE, "websocket")
        .header(header::SEC_WEBSOCKET_VERSION, "13")
        .header(header::SEC_WEBSOCKET_KEY, generate_key())
        .header(header::SEC_WEBSOCKET_PROTOCOL, protocol)
}

fn left(node: &str, error: &dyn std::error::Error) -> Status {
    let message = format!("node {node:?} broke the connection off: {error}");
    Status::new(503, "ServiceUnavailable", message)
}

/// What an agent says is passed on; anything else that listens there has no word for our clients.
fn failure(node: &str, code: u16, body: &[u8]) -> Status {
    serde_json::from_slice(body)
        .unwrap_or_else(|_| Status::internal(format!("node {node:?} answers with code {code} and no reason")))
}

fn log_target(request: &LogRequest) -> String {
    let LogRequest {
        namespace,
        pod,
        container,
        ..
    } = request;
    let mut target = format!(
        "/containerLogs/{namespace}/{pod}/{container}?uid={}",
        percent_encode(&request.uid)
    );
    let flags = [
        ("follow", request.follow),
        ("previous", request.previous),
        ("timestamps", request.timestamps),
    ];
    for (flag, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
        target += &format!("&{flag}=true");
    }
    if let Some(lines) = request.tail_lines {
        target += &format!("&tailLines={lines}");
    }
    if let Some(since) = request.since {
        target += &format!("&sinceTime={}", percent_encode(&since.to_string()));
    }
    if let Some(bytes) = request.limit_bytes {
        target += &format!("&limitBytes={bytes}");
    }
    target
}

fn exec_target(request: &ExecRequest) -> String {
    let ExecRequest {
        namespace,
        pod,
        container,
        ..
    } = request;
    let mut target = format!(
        "/exec/{namespace}/{pod}/{container}?uid={}",
        percent_encode(&request.uid)
    );
    target += &stream_flags([request.stdin, request.stdout, request.stderr, request.tty]);
    for word in &request.command {
        target += &format!("&command={}", percent_encode(word));
    }
    target
}

fn attach_target(request: &AttachRequest) -> String {
    let AttachRequest {
        namespace,
        pod,
        container,
        ..
    } = request;
    format!(
        "/attach/{namespace}/{pod}/{container}?uid={}{}",
        percent_encode(&request.uid),
        stream_flags([request.stdin, request.stdout, request.stderr, request.tty])
    )
}

fn port_forward_target(request: &PortForwardRequest) -> String {
    let PortForwardRequest { namespace, pod, .. } = request;
    format!(
        "/portForward/{namespace}/{pod}?uid={}",
        percent_encode(&request.uid)
    )
}

/// In a kubelet's words.
fn stream_flags(wanted: [bool; 4]) -> String {
    let flags = ["input", "output", "error", "tty"].into_iter().zip(wanted);
    let set = flags.filter(|(_, is_set)| *is_set);
    set.map(|(flag, _)| format!("&{flag}=1")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Query;

    #[test]
    fn what_is_asked_of_a_node_survives_the_way() {
        let request = ExecRequest {
            namespace: "ns".to_owned(),
            pod: "p".to_owned(),
            uid: "u".to_owned(),
            node: "n".to_owned(),
            container: "c".to_owned(),
            command: ["sh", "-c", "echo a&b = ü+%"].map(str::to_owned).to_vec(),
            stdin: true,
            stdout: true,
            stderr: false,
            tty: true,
        };
        let target = exec_target(&request);
        let (path, query) = target.split_once('?').expect("a query");
        assert_eq!(path, "/exec/ns/p/c");
        let query = Query::parse(query);
        assert_eq!(query.all("command").collect::<Vec<_>>(), request.command);
        let flags = ["input", "output", "error", "tty"].map(|flag| query.flag(flag));
        assert_eq!(flags, [true, true, false, true]);
    }

    #[test]
    fn a_failure_is_passed_on_and_anything_else_is_not() {
        let said = Status::bad_request("no such container").to_value().to_string();
        assert_eq!(failure("n", 400, said.as_bytes()).message, "no such container");
        let strange = failure("n", 404, b"<html>");
        assert!(
            strange.message.contains("node \"n\" answers with code 404"),
            "{}",
            strange.message
        );
    }
}
