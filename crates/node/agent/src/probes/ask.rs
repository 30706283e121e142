//! Asks one probe once.

use std::time::Duration;

use hotmap_runtime::{ExecError, Runtime};

use super::grpc;
use crate::{
    dial::dial,
    http_get,
    pod::{Container, HttpGetAction, Pod, Port, Probe},
};

/// Bytes of a probe's output that an event shows (`pkg/probe/exec`, Kubernetes 1.36).
const OUTPUT_BYTES_MAX: usize = 10 * 1024;

/// How one probe came out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Success,
    /// With what the event says.
    Failure(String),
}

/// Asks. A probe that takes longer than its timeout has failed.
pub(super) async fn ask(
    runtime: &Runtime,
    pod: &Pod,
    container: &Container,
    pod_ip: &str,
    probe: &Probe,
) -> Outcome {
    let timeout = Duration::from_secs(probe.timeout_seconds.max(1));
    let handler = &probe.handler;
    if let Some(exec) = &handler.exec {
        return ask_exec(runtime, pod, container, exec.command.clone(), timeout).await;
    }
    let asked = async {
        if let Some(get) = &handler.http_get {
            ask_http(get, container, pod_ip).await
        } else if let Some(tcp) = &handler.tcp_socket {
            ask_tcp(&tcp.port, &tcp.host, container, pod_ip).await
        } else if let Some(call) = &handler.grpc {
            grpc::check(pod_ip, call.port, &call.service).await
        } else {
            Err("the probe names no handler".to_owned())
        }
    };
    match tokio::time::timeout(timeout, asked).await {
        Ok(Ok(())) => Outcome::Success,
        Ok(Err(output)) => Outcome::Failure(output),
        Err(_) => {
            Outcome::Failure("context deadline exceeded (timed out while awaiting an answer)".to_owned())
        }
    }
}

async fn ask_exec(
    runtime: &Runtime,
    pod: &Pod,
    container: &Container,
    argv: Vec<String>,
    timeout: Duration,
) -> Outcome {
    match runtime
        .exec_sync(
            &pod.metadata.uid,
            &container.name,
            argv,
            timeout,
            OUTPUT_BYTES_MAX,
        )
        .await
    {
        Ok(done) if done.exit_code == 0 => Outcome::Success,
        Ok(done) => {
            let printed = [done.stdout, done.stderr].concat();
            Outcome::Failure(String::from_utf8_lossy(&printed).trim_end().to_owned())
        }
        Err(ExecError::Timeout(after)) => {
            Outcome::Failure(format!("command timed out after {}s", after.as_secs()))
        }
        Err(error) => Outcome::Failure(error.to_string()),
    }
}

async fn ask_tcp(port: &Port, host: &str, container: &Container, pod_ip: &str) -> Result<(), String> {
    let address = http_get::address(port, host, container, pod_ip)?;
    dial(&address.0, address.1)
        .await
        .map(drop)
        .map_err(|error| format!("dial tcp {}:{}: {error}", address.0, address.1))
}

async fn ask_http(get: &HttpGetAction, container: &Container, pod_ip: &str) -> Result<(), String> {
    let agent = concat!("kube-probe/1.36 hotmap/", env!("CARGO_PKG_VERSION"));
    let code = http_get::status(get, container, pod_ip, agent).await?;
    if (200..400).contains(&code) {
        Ok(())
    } else {
        Err(format!("HTTP probe failed with statuscode: {code}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    /// Asks a server that says this to whoever connects, and closes.
    async fn asked(answer: &'static str) -> Result<(), String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let server = tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.expect("a client");
            let mut request = [0; 1024];
            let length = client.read(&mut request).await.expect("a request");
            assert!(request[..length].starts_with(b"GET /ok HTTP/1.1\r\n"));
            client.write_all(answer.as_bytes()).await.expect("sent");
        });
        let get: HttpGetAction =
            serde_json::from_value(json!({"path": "ok", "port": port})).expect("a probe");
        let container: Container = serde_json::from_value(json!({"name": "c"})).expect("a container");
        let outcome = ask_http(&get, &container, "127.0.0.1").await;
        server.await.expect("no panic");
        outcome
    }

    #[tokio::test]
    async fn headers_are_sent_along_and_stand_for_ours() {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        let server = tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.expect("a client");
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                client.read_buf(&mut request).await.expect("a request");
            }
            client
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                .await
                .expect("sent");
            String::from_utf8(request).expect("text")
        });
        let get: HttpGetAction = serde_json::from_value(json!({"path": "/ok?deep=1", "port": port, "httpHeaders":
            [{"name": "Host", "value": "shop"}, {"name": "X-Probe", "value": "1"}, {"name": "User-Agent", "value": "me"}]}))
        .expect("a probe");
        let container: Container = serde_json::from_value(json!({"name": "c"})).expect("a container");
        assert_eq!(ask_http(&get, &container, "127.0.0.1").await, Ok(()));
        let request = server.await.expect("no panic");
        let mut lines: Vec<&str> = request.trim_end().lines().collect();
        lines[1..].sort_unstable();
        let expected = [
            "GET /ok?deep=1 HTTP/1.1",
            "accept: */*",
            "host: shop",
            "user-agent: me",
            "x-probe: 1",
        ];
        assert_eq!(lines, expected);
    }

    #[tokio::test]
    async fn a_server_may_close_right_behind_its_answer() {
        let answered = asked("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nyes").await;
        assert_eq!(answered, Ok(()));
        let missing = asked("HTTP/1.0 404 Not Found\r\n\r\nno").await;
        assert_eq!(missing, Err("HTTP probe failed with statuscode: 404".to_owned()));
        let nothing = asked("").await.expect_err("no answer");
        assert!(nothing.contains("Get \"http://127.0.0.1:"), "{nothing}");
    }
}
