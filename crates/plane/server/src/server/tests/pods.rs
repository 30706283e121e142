//! Logs, commands, streams and ports with a node that echoes.

use std::{collections::BTreeMap, io};

use futures_util::{SinkExt, StreamExt, future::BoxFuture};
use hotmap_object::Status;
use tokio::io::AsyncReadExt;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{Message, protocol::Role},
};

use super::*;
use crate::{
    AttachRequest, Duplex, ExecRequest, ExecStreams, ExitStatus, LogRequest, LogStream, NodeAccess,
    NodeDoorConfig, NodeGate, NodeUser, PodPorts, PortForward, PortForwardRequest, ServingPair, TerminalSize,
    open_node_door,
};

/// Logs its container's name; a command answers its input backwards once that has ended, and exits with 7. Who attaches
/// meets such a command too. Every port but 81 echoes.
struct Echo;

impl PodPorts for Echo {
    fn connect(&self, port: u16) -> BoxFuture<'_, Result<Box<dyn Duplex>, String>> {
        Box::pin(async move {
            if port == 81 {
                return Err("connection refused".to_owned());
            }
            let (ours, theirs) = tokio::io::duplex(64);
            tokio::spawn(async move {
                let (mut from, mut to) = tokio::io::split(theirs);
                tokio::io::copy(&mut from, &mut to).await.expect("echoed");
                tokio::io::AsyncWriteExt::shutdown(&mut to).await.expect("shut");
            });
            Ok(Box::new(ours) as Box<dyn Duplex>)
        })
    }
}

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

    fn attach(&self, request: AttachRequest) -> BoxFuture<'_, Result<ExecStreams, Status>> {
        self.exec(ExecRequest {
            namespace: request.namespace,
            pod: request.pod,
            uid: request.uid,
            node: request.node,
            container: request.container,
            command: vec!["attached".to_owned()],
            stdin: request.stdin,
            stdout: request.stdout,
            stderr: request.stderr,
            tty: request.tty,
        })
    }

    fn port_forward(&self, request: PortForwardRequest) -> BoxFuture<'_, Result<PortForward, Status>> {
        Box::pin(async move {
            match request.pod.as_str() {
                "p" => Ok(PortForward::Ports(Arc::new(Echo))),
                _ => Err(Status::bad_request("it does not run")),
            }
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

/// Where the pod's node is.
#[derive(Debug, Clone, Copy)]
enum Place {
    Here,
    /// An agent that serves it on a port of its own.
    Elsewhere,
}

const PLACES: [Place; 2] = [Place::Here, Place::Elsewhere];

/// Nobody but the API server has a right.
struct Closed;

impl NodeGate for Closed {
    fn who<'a>(&'a self, token: &'a str) -> BoxFuture<'a, Result<Option<NodeUser>, Status>> {
        let user = (token == "known").then(|| NodeUser {
            name: "somebody".to_owned(),
            groups: Vec::new(),
        });
        Box::pin(async { Ok(user) })
    }

    fn may<'a>(
        &'a self,
        _: &'a NodeUser,
        _: &'static str,
        _: &'static str,
    ) -> BoxFuture<'a, Result<bool, Status>> {
        Box::pin(async { Ok(false) })
    }
}

/// Opens an agent's door and tells the server where it is.
async fn open_door(server: &TestServer) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let pair = server.credentials.serving();
    let (_, certificate) = tokio::sync::watch::channel(ServingPair {
        certificate_pem: pair.certificate,
        key_pem: pair.key,
    });
    let config = NodeDoorConfig {
        node: Arc::new(Echo),
        node_name: "n".to_owned(),
        gate: Arc::new(Closed),
        authority_pem: server.credentials.authority_pem().to_owned(),
        certificate,
        metrics: Registry::default(),
    };
    tokio::spawn(open_node_door(config, listener, std::future::pending()));
    let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}});
    let nodes = request("POST", "/api/v1/nodes", &[], node.to_string());
    assert_eq!(server.send(ADMIN, nodes).await.code, 201);
    let status = json!({"status": {"addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": address.port()}}}});
    let merge = [("content-type", "application/merge-patch+json")];
    let patch = request("PATCH", "/api/v1/nodes/n/status", &merge, status.to_string());
    assert_eq!(server.send(ADMIN, patch).await.code, 200);
    address
}

async fn server_with_pod(place: Place) -> TestServer {
    let local = LocalNode {
        name: "n".to_owned(),
        access: Arc::new(Echo),
    };
    let server = match place {
        Place::Here => start_with(Some(local)).await,
        Place::Elsewhere => {
            let server = start_with(None).await;
            open_door(&server).await;
            server
        }
    };
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
    for place in PLACES {
        let server = server_with_pod(place).await;
        let log = server
            .get(ADMIN, &format!("{POD}/log?container=c&tailLines=3"))
            .await;
        assert_eq!((log.code, log.text()), (200, "c\nSome(3)\n"));
        assert_eq!(log.headers["content-type"], "text/plain");
        assert_eq!(
            server.get(ADMIN, &format!("{POD}/log?container=x")).await.code,
            400
        );
        assert_eq!(server.get(ADMIN, &format!("{POD}/proxy")).await.code, 501);
        server.stop().await;
    }
}

#[tokio::test]
async fn commands_run_over_a_websocket() {
    for place in PLACES {
        let server = server_with_pod(place).await;
        let path = format!("{POD}/exec?command=rev&stdin=true&stdout=true&container=c");
        let spdy = [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")];
        let refused = server.send(ADMIN, request("POST", &path, &spdy, "")).await;
        assert_eq!(refused.code, 400);
        assert!(refused.text().contains("SPDY is not served"));

        let (output, status) = converse(&server, &path, &[b"\x00abc", b"\x00def", b"\xff\x00"]).await;
        assert_eq!(output, "fedcba");
        let path = format!("{POD}/attach?stdin=true&stdout=true");
        let (attached, _) = converse(&server, &path, &[b"\x00ab", b"\xff\x00"]).await;
        assert_eq!(attached, "ba");
        assert_eq!(
            (&status["reason"], &status["details"]["causes"][0]["message"]),
            (&json!("NonZeroExitCode"), &json!("7"))
        );
        server.stop().await;
    }
}

#[tokio::test]
async fn a_command_that_never_started_says_why_in_its_session() {
    for place in PLACES {
        let server = server_with_pod(place).await;
        let path = format!("{POD}/exec?command=ended&stdout=true&container=c");
        let (output, status) = converse(&server, &path, &[]).await;
        assert_eq!(output, "");
        assert_eq!(
            (&status["status"], &status["message"]),
            (&json!("Failure"), &json!("container \"c\" is not running"))
        );
        server.stop().await;
    }
}

#[tokio::test]
async fn a_terminal_hears_its_sizes_while_the_command_runs() {
    for place in PLACES {
        let server = server_with_pod(place).await;
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
}

/// A SYN_STREAM, its headers in a stored block; `is_first`: the compressed stream begins with it.
fn syn_stream(stream: u32, kind: &str, port: u16, request: u32, is_first: bool) -> Vec<u8> {
    let (port, request) = (port.to_string(), request.to_string());
    let headers = [
        ("port", port.as_str()),
        ("requestid", request.as_str()),
        ("streamtype", kind),
    ];
    let mut block = 3u32.to_be_bytes().to_vec();
    for text in headers.iter().flat_map(|(name, value)| [name, value]) {
        block.extend((text.len() as u32).to_be_bytes());
        block.extend(text.as_bytes());
    }
    let mut body = stream.to_be_bytes().to_vec();
    body.extend([0; 6]);
    if is_first {
        body.extend([0x78, 0x01]);
    }
    let length = block.len() as u16;
    body.push(0);
    body.extend(length.to_le_bytes());
    body.extend((!length).to_le_bytes());
    body.extend(block);
    let mut frame = vec![0x80, 3, 0, 1, 0];
    frame.extend(&(body.len() as u32).to_be_bytes()[1..]);
    frame.extend(body);
    frame
}

fn data_frame(stream: u32, data: &[u8], is_last: bool) -> Vec<u8> {
    let mut frame = stream.to_be_bytes().to_vec();
    frame.push(is_last.into());
    frame.extend(&(data.len() as u32).to_be_bytes()[1..]);
    frame.extend(data);
    frame
}

/// What came on each stream until all of these have ended.
async fn until_ended(socket: &mut Socket, streams: &[u32]) -> BTreeMap<u32, String> {
    let (mut heard, mut ended) = (BTreeMap::<u32, String>::new(), Vec::new());
    while !streams.iter().all(|stream| ended.contains(stream)) {
        let Some(Ok(Message::Binary(frame))) = socket.next().await else {
            panic!("the session ended: {heard:?}");
        };
        if frame[0] & 0x80 == 0 {
            let stream = u32::from_be_bytes(frame[..4].try_into().expect("four"));
            *heard.entry(stream).or_default() += std::str::from_utf8(&frame[8..]).expect("text");
            if frame[4] & 1 != 0 {
                ended.push(stream);
            }
        }
    }
    heard
}

#[tokio::test]
async fn connections_to_ports_share_one_tunnel() {
    for place in PLACES {
        let server = server_with_pod(place).await;
        let path = format!("{POD}/portforward");
        let mut socket = open(&server, &path, "SPDY/3.1+portforward.k8s.io").await;
        let mut sent = Vec::new();
        // The first one breaks nothing for those after it.
        for (request, port) in [(0, 81), (1, 8080), (2, 80)] {
            let stream = 1 + 4 * request;
            sent.extend(syn_stream(stream, "error", port, request, request == 0));
            sent.extend(data_frame(stream, b"", true));
            sent.extend(syn_stream(stream + 2, "data", port, request, false));
        }
        sent.extend(data_frame(7, b"half ", false));
        sent.extend(data_frame(11, &[b'x'; 1_000], true));
        // Cut where no frame ends.
        for piece in sent.chunks(100) {
            let message = Message::Binary(Bytes::copy_from_slice(piece));
            socket.send(message).await.expect("sent");
        }
        let heard = until_ended(&mut socket, &[1, 3, 9, 11]).await;
        assert_eq!(heard[&11], "x".repeat(1_000));
        assert_eq!((heard[&3].as_str(), heard[&9].as_str()), ("", ""));
        assert!(
            heard[&1].starts_with("error forwarding port 81 to pod p, uid")
                && heard[&1].ends_with("connection refused"),
            "{heard:?}"
        );
        let rest = Message::Binary(data_frame(7, b"and half", true).into());
        socket.send(rest).await.expect("sent");
        let heard = [heard, until_ended(&mut socket, &[5, 7]).await];
        let echoed: String = heard.iter().filter_map(|heard| heard.get(&7).cloned()).collect();
        assert_eq!(echoed, "half and half");
        drop(socket);

        let spdy = [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")];
        let refused = server.send(ADMIN, request("POST", &path, &spdy, "")).await;
        assert_eq!(refused.code, 400);
        assert!(refused.text().contains("SPDY/3.1+portforward.k8s.io"));
        server.stop().await;
    }
}

#[tokio::test]
async fn an_agent_lets_nobody_in_without_a_right() {
    let server = server_with_pod(Place::Here).await;
    let other = start().await;
    let door = TestServer {
        address: open_door(&server).await,
        ..server
    };
    let path = "/containerLogs/default/p/c";
    let bearer = |token| [("authorization", token)];
    for (client, headers, path, code) in [
        (None, &bearer("Bearer nobody")[..], path, 401),
        (None, &[], path, 401),
        (None, &bearer("Bearer known"), path, 403),
        (Some(&Identity::Node("m".to_owned())), &[], path, 403),
        (Some(&Identity::ApiServer), &[], path, 200),
        (Some(&Identity::ApiServer), &[], "/healthz", 200),
        (Some(&Identity::ApiServer), &[], "/metrics", 200),
        (Some(&Identity::ApiServer), &[], "/pods", 404),
    ] {
        let answer = door.send(client, request("GET", path, headers, "")).await;
        assert_eq!(
            answer.code,
            code,
            "{client:?} {headers:?} {path}: {}",
            answer.text()
        );
    }
    // A certificate of another authority is nobody's.
    let stranger = other.certificate(&Identity::ApiServer);
    let mut sender = door.connect(Some(stranger)).await;
    let refused = sender
        .send_request(request("GET", path, &[], ""))
        .await
        .expect("an answer");
    assert_eq!(refused.status().as_u16(), 401);
}

#[tokio::test]
async fn a_node_that_cannot_be_reached_is_named() {
    let server = start_with(None).await;
    let address = open_door(&server).await;
    let pod = |name: &str, node: &str| {
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name},
            "spec": {"nodeName": node, "containers": [{"name": "c", "image": "i"}]}});
        request("POST", "/api/v1/namespaces/default/pods", &[], pod.to_string())
    };
    let nobody = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let closed = nobody.local_addr().expect("an address").port();
    drop(nobody);
    assert_eq!(server.send(ADMIN, pod("here", "n")).await.code, 201);
    assert_eq!(server.send(ADMIN, pod("lost", "unknown")).await.code, 201);
    assert_eq!(
        server
            .get(ADMIN, "/api/v1/namespaces/default/pods/here/log")
            .await
            .code,
        200
    );
    let lost = server
        .get(ADMIN, "/api/v1/namespaces/default/pods/lost/log")
        .await;
    assert_eq!(
        (lost.code, lost.json()["message"].as_str()),
        (
            400,
            Some(r#"the pod is bound to node "unknown", which does not exist"#)
        )
    );
    let status = json!({"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": closed}}}});
    let merge = [("content-type", "application/merge-patch+json")];
    let patch = request("PATCH", "/api/v1/nodes/n/status", &merge, status.to_string());
    assert_eq!(server.send(ADMIN, patch).await.code, 200);
    let silent = server
        .get(ADMIN, "/api/v1/namespaces/default/pods/here/log")
        .await;
    assert_eq!(silent.code, 503);
    assert!(
        silent
            .text()
            .contains(&format!("node \\\"n\\\" (127.0.0.1:{closed}) does not answer")),
        "{}",
        silent.text()
    );
    assert_ne!(address.port(), closed);
    server.stop().await;
}

type Socket = WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>;

fn websocket(protocol: &'static str) -> [(&'static str, &'static str); 5] {
    [
        ("connection", "Upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", "13"),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
        ("sec-websocket-protocol", protocol),
    ]
}

async fn open(server: &TestServer, path: &str, protocol: &'static str) -> Socket {
    let mut sender = server.connect(Some(server.certificate(&Identity::Admin))).await;
    let response = sender
        .send_request(request("GET", path, &websocket(protocol), ""))
        .await
        .expect("an answer");
    assert_eq!(response.status().as_u16(), 101);
    let upgraded = hyper::upgrade::on(response).await.expect("an upgrade");
    WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, None).await
}

/// Sends frames, then reads until the server says goodbye: standard output, and the last word on the error channel.
async fn converse(server: &TestServer, path: &str, frames: &[&'static [u8]]) -> (String, Value) {
    let mut socket = open(server, path, "v5.channel.k8s.io").await;
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
