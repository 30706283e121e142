//! Logs and exec with a node that echoes.

use std::io;

use futures_util::{SinkExt, StreamExt, future::BoxFuture};
use hotmap_object::Status;
use tokio::io::AsyncReadExt;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::Role},
};

use super::*;
use crate::{ExecRequest, ExecStreams, ExitStatus, LogRequest, LogStream, TerminalSize};

/// Logs its container's name; a command answers its input backwards once that has ended, and exits with 7.
struct Echo;

impl NodeAccess for Echo {
    fn logs(&self, request: LogRequest) -> BoxFuture<'_, Result<LogStream, Status>> {
        let lines = [
            format!("{}\n", request.container),
            format!("{:?}\n", request.tail_lines),
        ];
        let lines = lines.map(|line| Ok::<_, io::Error>(Bytes::from(line)));
        Box::pin(async move { Ok(futures_util::stream::iter(lines).boxed()) })
    }

    fn exec(&self, request: ExecRequest) -> BoxFuture<'_, Result<ExecStreams, Status>> {
        if request.command == ["ended"] {
            return Box::pin(async { Err(Status::bad_request("container \"c\" is not running")) });
        }
        if request.tty {
            return Box::pin(async { Ok(terminal()) });
        }
        let (stdin, mut input) = tokio::io::duplex(64);
        let (mut output, stdout) = tokio::io::duplex(64);
        let running = tokio::spawn(async move {
            let mut text = Vec::new();
            input.read_to_end(&mut text).await.expect("input");
            text.reverse();
            tokio::io::AsyncWriteExt::write_all(&mut output, &text)
                .await
                .expect("output");
        });
        let exit = async move {
            running.await.expect("no panic");
            Ok(ExitStatus(7))
        };
        Box::pin(async move {
            Ok(ExecStreams {
                stdin: Some(Box::pin(stdin)),
                stdout: Some(Box::pin(stdout)),
                stderr: None,
                resize: None,
                exit: Box::pin(exit),
            })
        })
    }
}

/// A command that prints each size its terminal gets, and ends once it is one column wide.
fn terminal() -> ExecStreams {
    let (mut output, stdout) = tokio::io::duplex(64);
    let (resize, mut sizes) = tokio::sync::mpsc::channel::<TerminalSize>(1);
    let exit = async move {
        while let Some(TerminalSize { width, height }) = sizes.recv().await {
            let line = format!("{width}x{height} ");
            tokio::io::AsyncWriteExt::write_all(&mut output, line.as_bytes())
                .await
                .expect("output");
            if width == 1 {
                break;
            }
        }
        Ok(ExitStatus(0))
    };
    ExecStreams {
        stdin: None,
        stdout: Some(Box::pin(stdout)),
        stderr: None,
        resize: Some(resize),
        exit: Box::pin(exit),
    }
}

const POD: &str = "/api/v1/namespaces/default/pods/p";

async fn server_with_pod() -> TestServer {
    let server = start_with(Some(Arc::new(Echo))).await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    let created = server
        .send(
            ADMIN,
            request("POST", "/api/v1/namespaces/default/pods", &[], pod.to_string()),
        )
        .await;
    assert_eq!(created.code, 201, "{}", created.text());
    server
}

#[tokio::test]
async fn logs_are_streamed_as_text() {
    let server = server_with_pod().await;
    let log = server
        .get(ADMIN, &format!("{POD}/log?container=c&tailLines=3"))
        .await;
    assert_eq!((log.code, log.text()), (200, "c\nSome(3)\n"));
    assert_eq!(log.headers["content-type"], "text/plain");
    assert_eq!(
        server.get(ADMIN, &format!("{POD}/log?container=x")).await.code,
        400
    );
    assert_eq!(server.get(ADMIN, &format!("{POD}/attach")).await.code, 501);
    server.stop().await;
}

#[tokio::test]
async fn commands_run_over_a_websocket() {
    let server = server_with_pod().await;
    let path = format!("{POD}/exec?command=rev&stdin=true&stdout=true&container=c");
    let spdy = [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")];
    let refused = server.send(ADMIN, request("POST", &path, &spdy, "")).await;
    assert_eq!(refused.code, 400);
    assert!(refused.text().contains("SPDY is not served"));

    let (output, status) = converse(&server, &path, &[b"\x00abc", b"\x00def", b"\xff\x00"]).await;
    assert_eq!(output, "fedcba");
    assert_eq!(
        (&status["reason"], &status["details"]["causes"][0]["message"]),
        (&json!("NonZeroExitCode"), &json!("7"))
    );
    server.stop().await;
}

#[tokio::test]
async fn a_command_that_never_started_says_why_in_its_session() {
    let server = server_with_pod().await;
    let path = format!("{POD}/exec?command=ended&stdout=true&container=c");
    let (output, status) = converse(&server, &path, &[]).await;
    assert_eq!(output, "");
    assert_eq!(
        (&status["status"], &status["message"]),
        (&json!("Failure"), &json!("container \"c\" is not running"))
    );
    server.stop().await;
}

#[tokio::test]
async fn a_terminal_hears_its_sizes_while_the_command_runs() {
    let server = server_with_pod().await;
    let path = format!("{POD}/exec?command=sizes&stdout=true&tty=true&container=c");
    let sizes: [&[u8]; 2] = [
        b"\x04{\"Width\":80,\"Height\":24}",
        b"\x04{\"Width\":1,\"Height\":2}",
    ];
    let (output, status) = converse(&server, &path, &sizes).await;
    assert_eq!(
        (output.as_str(), &status["status"]),
        ("80x24 1x2 ", &json!("Success"))
    );
    server.stop().await;
}

/// Sends frames, then reads until the server says goodbye: standard output, and the last word on the error channel.
async fn converse(server: &TestServer, path: &str, frames: &[&'static [u8]]) -> (String, Value) {
    let mut sender = server.connect(Some(server.certificate(&Identity::Admin))).await;
    let headers = [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-protocol", "v5.channel.k8s.io"),
    ];
    let response = sender
        .send_request(request("GET", path, &headers, ""))
        .await
        .expect("an answer");
    assert_eq!(response.status().as_u16(), 101);
    let upgraded = hyper::upgrade::on(response).await.expect("an upgrade");
    let mut socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, None).await;
    for frame in frames {
        socket
            .send(Message::Binary(Bytes::from_static(frame)))
            .await
            .expect("sent");
    }
    let (mut output, mut status) = (Vec::new(), Value::Null);
    while let Some(Ok(message)) = socket.next().await {
        match message {
            Message::Binary(frame) if frame[0] == 1 => output.extend_from_slice(&frame[1..]),
            Message::Binary(frame) if frame[0] == 3 => {
                status = serde_json::from_slice(&frame[1..]).expect("a Status")
            }
            Message::Close(_) => break,
            other => panic!("{other:?}"),
        }
    }
    (String::from_utf8(output).expect("text"), status)
}
