//! Addresses and connections.

use super::*;

#[tokio::test]
async fn at_an_address_for_metrics_nothing_else_is_served() {
    let bench = Bench::new(&["app"]);
    let anywhere = [("host", "10.0.0.7:9533")];
    for (uri, status) in [
        ("/metrics", 200),
        ("/healthz", 200),
        ("/v1/config", 404),
        ("/v1/config/app.yaml", 404),
        ("/v1/events", 404),
        ("/v1/ack", 404),
        ("/", 404),
    ] {
        assert_eq!(
            bench.get(Door::Metrics, uri, &anywhere).await.status,
            status,
            "{uri}"
        );
    }
}

#[tokio::test]
async fn several_addresses_are_served_over_real_connections() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let bench = Bench::new(&["app"]);
    bench.load("app", &[("app.yaml", b"level: debug\n")]);
    let socket = bench.path("hotmap.sock");
    let endpoint = Endpoint::bind(&EndpointConfig {
        addresses: vec![ServeAddress::Unix(socket.clone()), "127.0.0.1:0".parse().unwrap()],
        socket_mode: 0o600,
        metrics_addresses: vec!["127.0.0.1:0".parse().unwrap()],
    })
    .unwrap();
    let ports: Vec<u16> = endpoint.tcp_addresses().map(|address| address.port()).collect();
    let serving = tokio::spawn(endpoint.serve(bench.sources.clone()));
    let ask = async |stream: &mut dyn ReadWrite, host: &str, uri: &str| {
        let request = format!("GET {uri} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    let mut unix = tokio::net::UnixStream::connect(&socket).await.unwrap();
    let answer = ask(&mut unix, "localhost", "/v1/config/app.yaml").await;
    assert!(
        answer.starts_with("HTTP/1.1 200") && answer.ends_with("level: debug\n"),
        "{answer}"
    );
    let mut tcp = tokio::net::TcpStream::connect(("127.0.0.1", ports[0]))
        .await
        .unwrap();
    let answer = ask(
        &mut tcp,
        &format!("localhost:{}", ports[0]),
        "/v1/config/app.yaml",
    )
    .await;
    assert!(answer.ends_with("level: debug\n"), "{answer}");
    let mut tcp = tokio::net::TcpStream::connect(("127.0.0.1", ports[0]))
        .await
        .unwrap();
    let answer = ask(&mut tcp, "evil.example", "/v1/config/app.yaml").await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
    let mut tcp = tokio::net::TcpStream::connect(("127.0.0.1", ports[1]))
        .await
        .unwrap();
    let answer = ask(&mut tcp, "evil.example", "/v1/config/app.yaml").await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");

    // One more than there may be is closed at once.
    let mut held = Vec::new();
    for _ in 0..CONNECTIONS_MAX {
        let mut stream = tokio::net::UnixStream::connect(&socket).await.unwrap();
        stream
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            .await
            .unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        held.push(stream);
    }
    let mut refused = tokio::net::UnixStream::connect(&socket).await.unwrap();
    // Nothing was written, so the end is in order.
    assert_eq!(refused.read(&mut [0; 1]).await.unwrap(), 0);
    serving.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
    assert!(!Path::new(&socket).exists(), "the socket goes with the endpoint");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_takes_nothing_is_cut_off_and_counted() {
    use tokio::io::AsyncWriteExt;

    let bench = Bench::new(&["app"]);
    bench.load("app", &[("app.yaml", "level: debug\n".repeat(10_000).as_bytes())]);
    let (near, mut far) = tokio::io::duplex(1_024);
    far.write_all(b"GET /v1/config/app.yaml HTTP/1.1\r\nHost: x\r\n\r\n")
        .await
        .unwrap();
    let started = tokio::time::Instant::now();
    converse(near, Door::Unix, &bench.sources).await;
    assert_eq!(started.elapsed(), stall::STALL_MAX);
    let metrics = bench.get(Door::Unix, "/metrics", &[]).await;
    assert!(
        metrics
            .text()
            .contains("hotmap_endpoint_connections_cut_off_total 1"),
        "{}",
        metrics.text()
    );
}

trait ReadWrite: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> ReadWrite for T {}
