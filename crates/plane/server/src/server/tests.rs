//! The whole front over real TLS on a port of its own.

use std::{net::SocketAddr, sync::Arc};

use bytes::Bytes;
use hotmap_store::{Embedded, SystemClock};
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, client::conn::http1, header::HeaderMap};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::*;
use crate::credentials::{ClientCertificate, Identity};

struct TestServer {
    address: SocketAddr,
    credentials: Credentials,
    directory: tempfile::TempDir,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<Result<(), ServeError>>,
}

struct Answered {
    code: u16,
    headers: HeaderMap,
    body: Vec<u8>,
}

impl Answered {
    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("JSON")
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }
}

async fn start() -> TestServer {
    start_with(None).await
}

async fn start_with(node: Option<LocalNode>) -> TestServer {
    let directory = tempfile::tempdir().expect("a directory");
    let credentials = Credentials::open(directory.path(), &[], Timestamp::now()).expect("credentials");
    let store = Embedded::open(&directory.path().join("store"), Arc::new(SystemClock)).expect("a store");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (ready, is_ready) = oneshot::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let config = ServerConfig {
        version: "0.1.0".to_owned(),
        credentials: credentials.clone(),
        node,
        audit: None,
        pods_door: None,
        metrics: Registry::default(),
        ready: Some(ready),
    };
    let shutdown = async move {
        stopped.await.expect("the test says when");
    };
    let serving = tokio::spawn(run(config, Arc::new(store), listener, shutdown));
    is_ready.await.expect("the server gets ready");
    TestServer {
        address,
        credentials,
        directory,
        stop: Some(stop),
        serving,
    }
}

impl TestServer {
    fn certificate(&self, identity: &Identity) -> ClientCertificate {
        self.credentials
            .client(identity, Timestamp::now())
            .expect("a certificate")
    }

    async fn connect(&self, client: Option<ClientCertificate>) -> http1::SendRequest<Full<Bytes>> {
        let mut roots = RootCertStore::empty();
        let authority =
            CertificateDer::from_pem_slice(self.credentials.authority_pem().as_bytes()).expect("PEM");
        roots.add(authority).expect("a root");
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots);
        let config = match client {
            None => config.with_no_client_auth(),
            Some(pair) => {
                let chain =
                    vec![CertificateDer::from_pem_slice(pair.certificate_pem.as_bytes()).expect("PEM")];
                let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).expect("PEM");
                // The library leaves out a certificate that the server's hints do not name: foreign ones too must go.
                let provider = ring::default_provider();
                let held = rustls::sign::CertifiedKey::from_der(chain, key, &provider).expect("a pair");
                config.with_client_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(held)))
            }
        };
        let stream = TcpStream::connect(self.address).await.expect("a connection");
        let name = ServerName::try_from("localhost").expect("a name");
        let stream = tokio_rustls::TlsConnector::from(Arc::new(config))
            .connect(name, stream)
            .await
            .expect("TLS");
        let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection.with_upgrades());
        sender
    }

    async fn send(&self, client: Option<&Identity>, request: Request<Full<Bytes>>) -> Answered {
        let mut sender = self
            .connect(client.map(|identity| self.certificate(identity)))
            .await;
        answered(sender.send_request(request).await.expect("an answer")).await
    }

    async fn get(&self, client: Option<&Identity>, path: &str) -> Answered {
        self.send(client, request("GET", path, &[], Bytes::new())).await
    }

    async fn stop(mut self) {
        self.stop
            .take()
            .expect("once")
            .send(())
            .expect("the server listens");
        self.serving.await.expect("no panic").expect("a clean end");
        drop(self.directory);
    }
}

async fn answered(response: Response<hyper::body::Incoming>) -> Answered {
    let (head, body) = response.into_parts();
    let body = body.collect().await.expect("a body").to_bytes().to_vec();
    Answered {
        code: head.status.as_u16(),
        headers: head.headers,
        body,
    }
}

fn request(
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: impl Into<Bytes>,
) -> Request<Full<Bytes>> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Full::new(body.into())).expect("a request")
}

const ADMIN: Option<&Identity> = Some(&Identity::Admin);

#[tokio::test]
async fn everybody_gets_the_answer_that_is_theirs() {
    let server = start().await;
    let node = Identity::Node("n".to_owned());
    for (client, path, code) in [
        (None, "/version", 200),
        (None, "/readyz?verbose", 200),
        (None, "/livez", 200),
        (None, "/livez/ping", 403),
        (None, "/api", 403),
        (None, "/api/v1/namespaces/default/secrets", 403),
        (None, "/metrics", 403),
        (ADMIN, "/metrics", 200),
        (ADMIN, "/api", 200),
        (ADMIN, "/nothing", 404),
        (ADMIN, "/openapi/v2", 200),
        (ADMIN, "/openapi/v3", 200),
        (ADMIN, "/api/v1/namespaces/default", 200),
        (ADMIN, "/api/v1/namespaces/default/configmaps/none", 404),
        (ADMIN, "/api/v1/namespaces/default/configmaps?timeout=soon", 400),
        (Some(&node), "/api/v1/namespaces/default/configmaps", 403),
        (Some(&node), "/api/v1/pods?fieldSelector=spec.nodeName%3Dn", 200),
    ] {
        let answer = server.get(client, path).await;
        assert_eq!(answer.code, code, "{client:?} {path}: {}", answer.text());
        assert!(answer.headers.contains_key("audit-id"));
    }
    let version = server.get(None, "/version").await.json();
    assert_eq!(version["gitVersion"], "v1.36.0+hotmap.0.1.0");
    let missing = server.get(ADMIN, "/nothing").await;
    assert_eq!(missing.text(), "404 page not found\n");
    let denied = server.get(None, "/api/v1/namespaces/default/secrets").await;
    assert_eq!(
        denied.json()["message"],
        r#"secrets is forbidden: User "system:anonymous" cannot list resource "secrets" in API group "" in the namespace "default""#
    );
    assert_eq!(denied.headers["x-content-type-options"], "nosniff");
    server.stop().await;
}

#[tokio::test]
async fn credentials_that_are_not_ours_are_refused() {
    let server = start().await;
    let elsewhere = tempfile::tempdir().expect("a directory");
    let foreign = Credentials::open(elsewhere.path(), &[], Timestamp::now()).expect("credentials");
    let foreign = foreign
        .client(&Identity::Admin, Timestamp::now())
        .expect("a certificate");
    let mut sender = server.connect(Some(foreign)).await;
    let refused = sender
        .send_request(request("GET", "/version", &[], ""))
        .await
        .expect("an answer");
    assert_eq!(answered(refused).await.code, 401);
    let token = request("GET", "/version", &[("authorization", "Bearer nonsense")], "");
    let refused = server.send(None, token).await;
    assert_eq!(
        (refused.code, refused.json()["message"].as_str()),
        (401, Some("Unauthorized"))
    );
    server.stop().await;
}

#[tokio::test]
async fn large_bodies_are_refused_with_an_answer() {
    let server = start().await;
    let path = "/api/v1/namespaces/default/configmaps";
    let anonymous = server
        .send(None, request("POST", path, &[], vec![b' '; 4 * 1024 * 1024]))
        .await;
    assert_eq!(anonymous.code, 403);
    let answer = server
        .send(ADMIN, request("POST", path, &[], vec![b' '; 4 * 1024 * 1024]))
        .await;
    assert_eq!(
        (answer.code, answer.json()["message"].as_str()),
        (413, Some("Request entity too large: limit is 3145728"))
    );
    server.stop().await;
}

#[tokio::test]
async fn documents_are_pretty_for_people_and_errors_come_in_the_type_asked_for() {
    let server = start().await;
    let path = "/api/v1/namespaces/default/configmaps/none";
    let pretty = server
        .send(ADMIN, request("GET", path, &[("user-agent", "curl/8")], ""))
        .await;
    assert!(pretty.text().starts_with("{\n  \""), "{}", pretty.text());
    let protobuf = [("accept", "application/vnd.kubernetes.protobuf,application/json")];
    let encoded = server.send(ADMIN, request("GET", path, &protobuf, "")).await;
    assert_eq!(&encoded.body[..4], b"k8s\0");
    let refused = server
        .send(ADMIN, request("GET", path, &[("accept", "image/png")], ""))
        .await;
    assert_eq!(refused.code, 406);
    let head = server
        .send(ADMIN, request("HEAD", "/api/v1/namespaces/default", &[], ""))
        .await;
    assert_eq!((head.code, head.body.len()), (200, 0));
    server.stop().await;
}

#[tokio::test]
async fn discovery_is_revalidated_by_its_etag() {
    let server = start().await;
    let accept = (
        "accept",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    );
    let first = server.send(ADMIN, request("GET", "/apis", &[accept], "")).await;
    assert_eq!(first.json()["kind"], "APIGroupDiscoveryList");
    let etag = first.headers["etag"].to_str().expect("text").to_owned();
    let again = server
        .send(
            ADMIN,
            request("GET", "/apis", &[accept, ("if-none-match", &etag)], ""),
        )
        .await;
    assert_eq!((again.code, again.body.len()), (304, 0));
    server.stop().await;
}

#[tokio::test]
async fn watches_end_cleanly_when_the_server_stops() {
    let server = start().await;
    let mut sender = server.connect(Some(server.certificate(&Identity::Admin))).await;
    let path = "/api/v1/namespaces/default/configmaps";
    let watch = sender
        .send_request(request(
            "GET",
            &format!("{path}?watch=true&labelSelector=app%3Dweb"),
            &[],
            "",
        ))
        .await
        .expect("a watch");
    assert_eq!(watch.status().as_u16(), 200);
    let created = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "labels": {"app": "web"}}, "data": {"k": "v"}});
    let created = server
        .send(ADMIN, request("POST", path, &[], created.to_string()))
        .await;
    assert_eq!(created.code, 201, "{}", created.text());
    let mut body = watch.into_body();
    let frame = body
        .frame()
        .await
        .expect("an event")
        .expect("a frame")
        .into_data()
        .expect("data");
    let event: Value = serde_json::from_slice(&frame).expect("an event");
    assert_eq!(
        (&event["type"], &event["object"]["metadata"]["name"]),
        (&json!("ADDED"), &json!("a"))
    );
    server.stop().await;
    assert!(body.frame().await.is_none(), "the stream ends, it does not break");
}

mod pods;
