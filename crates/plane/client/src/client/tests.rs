//! A client against a small server over TLS.

mod server;

use std::pin::Pin;
use std::sync::atomic::Ordering;

use rcgen::ExtendedKeyUsagePurpose;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::{TlsAcceptor, rustls};

use super::*;
use crate::config::{Identity, Server, Timeouts, Token};
use crate::follower::{ClientListWatch, FollowEvent, Follower, FollowerConfig};
use crate::watch::WatchEvent;
use server::{HTTP1, HTTP2, Pki, Reply, ReplyBody, Seen, Setup, TestServer, serve, whole};

fn config_maps() -> ResourcePath {
    ResourcePath::new("", "v1", "configmaps").in_namespace("default")
}

/// Answers with an object whose name is the request line and whose data are its body and headers.
fn echo(seen: Seen) -> Reply {
    let object = serde_json::json!({
        "metadata": {"name": seen.line, "resourceVersion": "1"},
        "body": String::from_utf8_lossy(&seen.body),
        "contentType": seen.header("content-type"),
        "userAgent": seen.header("user-agent"),
        "authorization": seen.header("authorization"),
        "host": seen.header("host"),
    });
    whole(200, object.to_string())
}

#[tokio::test]
async fn the_date_of_the_newest_answer_is_known_to_all_clones() {
    for code in [200, 404] {
        let server = TestServer::start(HTTP2, move |_| whole(code, "{}")).await;
        let client = server.client();
        assert_eq!(client.newest_date(), None);
        let clone = client.clone();
        assert_eq!(clone.get(&config_maps().name("a")).await.is_ok(), code == 200);
        assert!(client.newest_date().is_some(), "servers say what time it is");
    }
}

#[tokio::test]
async fn requests_have_the_method_path_and_media_type_of_the_api() {
    for setup in [HTTP2, HTTP1] {
        let server = TestServer::start(setup, echo).await;
        let (client, path) = (server.client(), config_maps().name("a"));
        let body = serde_json::json!({"x": 1});
        let write = WriteParams {
            field_manager: "me".to_owned(),
            ..WriteParams::default()
        };
        let object = "/api/v1/namespaces/default/configmaps/a";

        let got = client.get(&path).await.unwrap();
        assert_eq!(got.name(), format!("GET {object}"));
        let got = client
            .update(&path, &body, &WriteParams::default())
            .await
            .unwrap();
        assert_eq!(got.name(), format!("PUT {object}"));
        let got = client.create(&config_maps(), &body, &write).await.unwrap();
        assert_eq!(
            got.name(),
            "POST /api/v1/namespaces/default/configmaps?fieldManager=me"
        );
        let parsed: serde_json::Value = got.parse().unwrap();
        assert_eq!(parsed["body"], r#"{"x":1}"#);
        assert_eq!(parsed["contentType"], "application/json");
        assert!(parsed["userAgent"].as_str().unwrap().starts_with("hotmap/"));
        let got = client
            .patch(&path, PatchType::StrategicMerge, &body, &write)
            .await
            .unwrap();
        assert_eq!(got.name(), format!("PATCH {object}?fieldManager=me"));
        let parsed: serde_json::Value = got.parse().unwrap();
        assert_eq!(parsed["contentType"], "application/strategic-merge-patch+json");
        let got = client.delete(&path, &DeleteParams::default()).await.unwrap();
        assert_eq!(
            RawObject::from_json(got).unwrap().name(),
            format!("DELETE {object}")
        );
    }
}

#[tokio::test]
async fn a_prefix_and_a_token_go_with_every_request() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("token");
    std::fs::write(&file, "from-file\n").unwrap();
    let server = TestServer::start(HTTP2, echo).await;
    for (token, sent) in [
        (Token::Fixed("fixed".to_owned()), "Bearer fixed"),
        (Token::File(file), "Bearer from-file"),
    ] {
        let mut config = server.config();
        config.server.base_path = "/k8s".to_owned();
        config.token = Some(token);
        let got = Client::new(config)
            .unwrap()
            .get(&config_maps().name("a"))
            .await
            .unwrap();
        assert_eq!(got.name(), "GET /k8s/api/v1/namespaces/default/configmaps/a");
        assert_eq!(got.parse::<serde_json::Value>().unwrap()["authorization"], sent);
    }
}

#[tokio::test]
async fn another_certificate_means_another_connection_and_no_broken_watch() {
    let (lines, written) = mpsc::unbounded_channel();
    let written = parking_lot::Mutex::new(Some(written));
    let server = TestServer::start(HTTP2, move |seen| match seen.line.contains("watch=") {
        true => Reply {
            code: 200,
            body: ReplyBody::Written(written.lock().take().unwrap()),
        },
        false => echo(seen),
    })
    .await;
    let client = server.client();
    let mut watch = client
        .watch(&config_maps(), &WatchParams::default())
        .await
        .unwrap();
    client.get(&config_maps().name("a")).await.unwrap();
    assert_eq!(server.accepted.load(Ordering::SeqCst), 1);

    let (certificate, key) = server.pki.issue("node", ExtendedKeyUsagePurpose::ClientAuth);
    let renewed = Identity {
        certificate_pem: certificate.into(),
        key_pem: key.into(),
    };
    client.exchange_identity(&renewed).unwrap();
    client.get(&config_maps().name("a")).await.unwrap();
    client.get(&config_maps().name("b")).await.unwrap();
    assert_eq!(server.accepted.load(Ordering::SeqCst), 2);
    let event = r#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"2"}}}"#;
    lines.send(Ok(format!("{event}\n").into())).unwrap();
    let told = std::future::poll_fn(|cx| {
        let watch = Pin::new(&mut watch);
        futures_core::Stream::poll_next(watch, cx)
    });
    assert!(matches!(told.await, Some(Ok(WatchEvent::Added(object))) if object.name() == "a"));

    let broken = Identity {
        certificate_pem: b"none".to_vec(),
        ..renewed
    };
    assert!(client.exchange_identity(&broken).is_err());
    client.get(&config_maps().name("a")).await.unwrap();
}

#[tokio::test]
async fn an_authority_is_found_by_its_hash_where_the_chain_or_cluster_info_shows_it() {
    use crate::authority::{AuthorityError, AuthorityHash, find_authority};
    let pki = Pki::new();
    let ca = pki.ca.as_ref().pem();
    let (certificate, key) = pki.issue("127.0.0.1", ExtendedKeyUsagePurpose::ServerAuth);
    let start = async |shows_chain: bool, tells: bool| {
        let mut chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
        chain.extend(shows_chain.then(|| pki.ca.as_ref().der().clone()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap())
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let ca = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &ca);
        let handler = move |seen: Seen| {
            assert_eq!(
                seen.line,
                "GET /api/v1/namespaces/kube-public/configmaps/cluster-info"
            );
            let kubeconfig = format!("clusters:\n- cluster: {{certificate-authority-data: {ca}}}\n");
            match tells {
                true => whole(
                    200,
                    serde_json::json!({"data": {"kubeconfig": kubeconfig}}).to_string(),
                ),
                false => whole(403, "{}"),
            }
        };
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let (accepted, freeze) = (Arc::default(), Arc::default());
        let mut running = JoinSet::new();
        running.spawn(serve(
            listener,
            acceptor,
            HTTP1,
            Arc::new(handler),
            accepted,
            freeze,
        ));
        (Server::parse(&format!("https://{address}")).unwrap(), running)
    };
    let right = AuthorityHash::of_pem(ca.as_bytes()).unwrap();
    let wrong = AuthorityHash::of_pem(Pki::new().ca.as_ref().pem().as_bytes()).unwrap();
    for (shows_chain, tells) in [(true, false), (false, true)] {
        let (server, _running) = start(shows_chain, tells).await;
        let found = find_authority(&server, right).await.unwrap();
        assert_eq!(AuthorityHash::of_pem(&found).unwrap(), right);
        let refused = find_authority(&server, wrong)
            .await
            .expect_err("another authority");
        assert!(
            matches!(&refused, AuthorityError::Other { seen, .. } if *seen == right.to_string()),
            "{refused}"
        );
    }
    let (server, _running) = start(false, false).await;
    let refused = find_authority(&server, right)
        .await
        .expect_err("nothing to compare");
    assert!(
        refused.to_string().ends_with("its authority is not shown"),
        "{refused}"
    );
}

#[tokio::test]
async fn refusals_are_statuses_whatever_their_body() {
    let server = TestServer::start(HTTP2, |seen| match seen.line.rsplit('/').next() {
        Some("status") => whole(
            409,
            r#"{"kind":"Status","status":"Failure","message":"m","reason":"Conflict","details":{"retryAfterSeconds":3},"code":409}"#,
        ),
        Some("text") => whole(502, "bad gateway\n"),
        _ => whole(404, ""),
    })
    .await;
    let client = server.client();
    let error = client.get(&config_maps().name("status")).await.expect_err("409");
    assert!(error.is_conflict() && !error.is_outcome_unknown());
    assert_eq!(
        (error.to_string().as_str(), error.retry_after()),
        ("m", Some(Duration::from_secs(3)))
    );
    let error = client.get(&config_maps().name("text")).await.expect_err("502");
    assert_eq!(error.to_string(), "502 Bad Gateway: bad gateway");
    assert!(
        client
            .get(&config_maps().name("none"))
            .await
            .expect_err("404")
            .is_not_found()
    );
}

#[tokio::test]
async fn many_requests_at_once_share_one_connection() {
    let server = TestServer::start(HTTP2, echo).await;
    let client = server.client();
    let mut requests = JoinSet::new();
    for number in 0..100 {
        let client = client.clone();
        requests.spawn(async move { client.get(&config_maps().name(number.to_string())).await.unwrap() });
    }
    assert_eq!(requests.join_all().await.len(), 100);
    assert_eq!(server.accepted.load(Ordering::SeqCst), 1);
}

/// A server whose watches are written by the test: each opened watch arrives with its request line.
type OpenedWatch = (String, mpsc::UnboundedSender<Result<Bytes, std::io::Error>>);

fn watch_handler() -> (
    impl Fn(Seen) -> Reply + Send + Sync + 'static,
    mpsc::UnboundedReceiver<OpenedWatch>,
) {
    let (opened, watches) = mpsc::unbounded_channel();
    let handler = move |seen: Seen| {
        if !seen.line.contains("watch=true") {
            return whole(
                200,
                r#"{"metadata":{"resourceVersion":"5"},"items":[{"metadata":{"name":"a","uid":"1","resourceVersion":"4"}}]}"#,
            );
        }
        let (writer, chunks) = mpsc::unbounded_channel();
        opened.send((seen.line, writer)).unwrap();
        Reply {
            code: 200,
            body: ReplyBody::Written(chunks),
        }
    };
    (handler, watches)
}

fn line(kind: &str, version: u32) -> String {
    format!(
        "{{\"type\":\"{kind}\",\"object\":{{\"metadata\":{{\"name\":\"a\",\"uid\":\"1\",\"resourceVersion\":\"{version}\"}}}}}}\n"
    )
}

#[tokio::test]
async fn watch_events_come_whole_however_the_chunks_are_cut() {
    for setup in [HTTP2, HTTP1] {
        let (handler, mut watches) = watch_handler();
        let server = TestServer::start(setup, handler).await;
        let mut watch = server
            .client()
            .watch(&config_maps(), &WatchParams::default())
            .await
            .unwrap();
        let (_, writer) = watches.recv().await.unwrap();
        let text = format!(
            "{}{}\n{}",
            line("ADDED", 1),
            line("MODIFIED", 2),
            line("DELETED", 3)
        );
        for chunk in text.as_bytes().chunks(7) {
            writer.send(Ok(Bytes::copy_from_slice(chunk))).unwrap();
        }
        let mut versions = Vec::new();
        for _ in 0..3 {
            let (WatchEvent::Added(object) | WatchEvent::Modified(object) | WatchEvent::Deleted(object)) =
                watch.next().await.unwrap().unwrap()
            else {
                panic!("no object event")
            };
            versions.push(object.resource_version().to_owned());
        }
        assert_eq!(versions, ["1", "2", "3"]);
        drop(writer);
        assert!(watch.next().await.is_none());
    }
}

#[tokio::test]
async fn a_watch_cut_within_a_line_or_too_long_a_line_is_an_error_once() {
    let (handler, mut watches) = watch_handler();
    let server = TestServer::start(HTTP2, handler).await;
    let client = server.client();
    for (bytes, expected) in [
        (
            Bytes::from_static(b"{\"type\":"),
            "cannot understand the answer: the watch ended within an event",
        ),
        (
            vec![b'x'; 5 * 1024 * 1024].into(),
            "the answer is larger than 4194304 bytes",
        ),
    ] {
        let mut watch = client
            .watch(&config_maps(), &WatchParams::default())
            .await
            .unwrap();
        let (_, writer) = watches.recv().await.unwrap();
        writer.send(Ok(bytes)).unwrap();
        drop(writer);
        assert_eq!(
            watch.next().await.unwrap().expect_err("cut").to_string(),
            expected
        );
        assert!(watch.next().await.is_none());
    }
}

#[tokio::test]
async fn watches_beyond_the_servers_limit_get_another_connection() {
    let (handler, mut watches) = watch_handler();
    let server = TestServer::start(
        Setup {
            streams_max: 10,
            ..HTTP2
        },
        handler,
    )
    .await;
    let client = server.client();
    // The limit arrives with the first answer.
    client.list(&config_maps(), &ListParams::default()).await.unwrap();
    let mut open = Vec::new();
    for _ in 0..25 {
        let watch = client
            .watch(&config_maps(), &WatchParams::default())
            .await
            .unwrap();
        open.push((watch, watches.recv().await.unwrap()));
    }
    client.list(&config_maps(), &ListParams::default()).await.unwrap();
    assert_eq!(server.accepted.load(Ordering::SeqCst), 3);
    drop(open);
    client.list(&config_maps(), &ListParams::default()).await.unwrap();
    assert_eq!(server.accepted.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_and_found_when_it_comes() {
    let server = TestServer::start(HTTP2, echo).await;
    let client = server.client();
    let (address, pki) = server.kill().await;
    let error = client
        .get(&config_maps().name("a"))
        .await
        .expect_err("nobody listens");
    assert!(matches!(error, ClientError::Connect { .. }) && !error.is_outcome_unknown());
    assert_eq!(error.to_string(), format!("cannot connect to {address}"));
    let _server = TestServer::start_at(address, pki, HTTP2, Arc::new(echo)).await;
    client.get(&config_maps().name("a")).await.unwrap();
}

#[tokio::test]
async fn a_broken_connection_ends_its_watches_and_the_next_request_makes_a_new_one() {
    let (handler, mut watches) = watch_handler();
    let server = TestServer::start(HTTP2, handler).await;
    let client = server.client();
    let mut watch = client
        .watch(&config_maps(), &WatchParams::default())
        .await
        .unwrap();
    let _writer = watches.recv().await.unwrap();
    let (address, pki) = server.kill().await;
    assert!(matches!(
        watch.next().await,
        Some(Err(ClientError::Transport { .. }))
    ));
    let _server = TestServer::start_at(address, pki, HTTP2, Arc::new(echo)).await;
    client.get(&config_maps().name("a")).await.unwrap();
}

#[tokio::test]
async fn a_dead_connection_is_found_by_pings() {
    let (handler, mut watches) = watch_handler();
    let server = TestServer::start(HTTP2, handler).await;
    let mut config = server.config();
    let (ping_interval, ping_timeout) = (Duration::from_millis(50), Duration::from_millis(50));
    config.timeouts = Timeouts {
        ping_interval,
        ping_timeout,
        ..config.timeouts
    };
    let client = Client::new(config).unwrap();
    let mut watch = client
        .watch(&config_maps(), &WatchParams::default())
        .await
        .unwrap();
    let _writer = watches.recv().await.unwrap();
    server.freeze.notify_waiters();
    assert!(matches!(
        watch.next().await,
        Some(Err(ClientError::Transport { .. }))
    ));
    client.list(&config_maps(), &ListParams::default()).await.unwrap();
}

#[tokio::test]
async fn an_answer_that_does_not_come_is_a_timeout() {
    let server = TestServer::start(HTTP2, |_| {
        let (writer, chunks) = mpsc::unbounded_channel();
        std::mem::forget(writer); // nobody ever ends this body
        Reply {
            code: 200,
            body: ReplyBody::Written(chunks),
        }
    })
    .await;
    let mut config = server.config();
    config.timeouts.request = Duration::from_millis(50);
    let error = Client::new(config)
        .unwrap()
        .get(&config_maps().name("a"))
        .await
        .expect_err("no end");
    assert_eq!(error.to_string(), "no answer within 50 ms");
    assert!(error.is_outcome_unknown());
}

#[tokio::test]
async fn only_the_right_ca_and_a_client_certificate_connect() {
    let server = TestServer::start(HTTP2, echo).await;
    let mut stranger = server.config();
    stranger.ca_pem = Pki::new().ca.as_ref().pem().into();
    let error = Client::new(stranger)
        .unwrap()
        .get(&config_maps().name("a"))
        .await
        .expect_err("another CA");
    assert!(matches!(error, ClientError::Connect { .. }), "{error}");

    let mut careless = server.config();
    careless.ca_pem = Pki::new().ca.as_ref().pem().into();
    careless.server_proof = crate::ServerProof::None;
    Client::new(careless)
        .unwrap()
        .get(&config_maps().name("a"))
        .await
        .expect("nobody looks at the certificate");

    // TLS 1.3 tells the client only after its own handshake.
    let mut anonymous = server.config();
    anonymous.identity = None;
    Client::new(anonymous)
        .unwrap()
        .get(&config_maps().name("a"))
        .await
        .expect_err("no certificate");

    let mut malformed = server.config();
    malformed.ca_pem = b"no certificate".to_vec();
    let error = Client::new(malformed).err().map(|error| error.to_string());
    assert_eq!(
        error.as_deref(),
        Some("certificate-authority: no certificate in it")
    );
}

#[tokio::test]
async fn a_list_in_pages_is_one_list() {
    let server = TestServer::start(HTTP2, |seen| {
        let (next, name) = match &seen.line {
            line if line.contains("continue=two") => ("", "b"),
            _ => ("two", "a"),
        };
        whole(200, format!(r#"{{"metadata":{{"resourceVersion":"9","continue":"{next}"}},"items":[{{"metadata":{{"name":"{name}"}}}}]}}"#))
    })
    .await;
    let mut source = ClientListWatch::new(server.client(), config_maps());
    let list = crate::follower::ListWatch::list(&mut source).await.unwrap();
    assert_eq!(
        list.items.iter().map(RawObject::name).collect::<Vec<_>>(),
        ["a", "b"]
    );
    assert!(list.continue_token.is_empty());
}

#[tokio::test]
async fn a_follower_goes_on_where_it_was_after_the_server_was_killed() {
    let (handler, mut watches) = watch_handler();
    let server = TestServer::start(HTTP2, handler).await;
    let source = ClientListWatch::new(server.client(), config_maps()).with_field_selector("metadata.name=a");
    let mut follower = Follower::new(source, FollowerConfig::NODE);
    let FollowEvent::Initial(items) = follower.next().await else {
        panic!("the list comes first")
    };
    assert_eq!(items.len(), 1);

    let first = async {
        let (request, writer) = watches.recv().await.unwrap();
        assert!(
            request.contains("resourceVersion=5") && request.contains("fieldSelector=metadata.name%3Da"),
            "{request}"
        );
        writer.send(Ok(line("MODIFIED", 6).into())).unwrap();
        writer
    };
    let (event, _writer) = tokio::join!(follower.next(), first);
    assert!(matches!(event, FollowEvent::Applied(object) if object.resource_version() == "6"));

    let (address, pki) = server.kill().await;
    assert!(matches!(
        follower.next().await,
        FollowEvent::Interrupted(ClientError::Connect { .. })
    ));
    let (handler, mut watches) = watch_handler();
    let _server = TestServer::start_at(address, pki, HTTP2, Arc::new(handler)).await;
    let second = async {
        let (request, writer) = watches.recv().await.unwrap();
        assert!(request.contains("resourceVersion=6"), "{request}");
        writer.send(Ok(line("DELETED", 7).into())).unwrap();
        writer
    };
    let told = async {
        loop {
            match follower.next().await {
                FollowEvent::Interrupted(_) => {}
                FollowEvent::Resumed => break follower.next().await,
                other => panic!("{other:?}"),
            }
        }
    };
    let (event, _writer) = tokio::join!(told, second);
    assert!(matches!(event, FollowEvent::Deleted(object) if object.resource_version() == "7"));
}

/// Each pod of a node has tasks that wait between two requests, most of the time.
#[tokio::test]
async fn whoever_waits_between_requests_keeps_no_room_for_one() {
    const ROOM_BYTES_MAX: usize = 3 << 10;
    let server = TestServer::start(HTTP2, echo).await;
    let (client, path, body) = (server.client(), config_maps().name("a"), serde_json::json!({}));
    let (write, delete) = (WriteParams::default(), DeleteParams::default());
    let rooms = [
        ("get", size_of_val(&client.get(&path))),
        ("create", size_of_val(&client.create(&path, &body, &write))),
        (
            "patch",
            size_of_val(&client.patch(&path, PatchType::Merge, &body, &write)),
        ),
        ("delete", size_of_val(&client.delete(&path, &delete))),
    ];
    for (request, bytes) in rooms {
        assert!(bytes <= ROOM_BYTES_MAX, "{request} keeps {bytes} bytes");
    }
}
