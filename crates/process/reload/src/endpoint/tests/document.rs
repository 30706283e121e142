//! The OpenAPI document against what is answered.

use super::*;

/// The document and the program say the same.
#[tokio::test(start_paused = true)]
async fn every_path_method_and_status_of_the_document_is_served_and_no_other() {
    let mut bench = Bench::new(&["app", "site"]);
    let revision = bench.load("app", &[("app.yaml", b"1")]);
    let tag = format!("\"{revision}\"");
    let ack = json!({"revision": revision.as_str(), "ok": true}).to_string();
    let evil = [("host", "evil.example")];
    let mut served = BTreeSet::new();
    type Case<'a> = (Route, &'a str, &'a [(&'a str, &'a str)], &'a str);
    let cases: [Case<'_>; 24] = [
        (Route::Config, "/v1/config", &[], ""),
        (Route::Config, "/v1/config?wiat=3s", &[], ""),
        (Route::Config, "/v1/config?volume=etc", &[], ""),
        (Route::Config, "/v1/config", &evil, ""),
        (Route::Key, "/v1/config/app.yaml?volume=app", &[], ""),
        (
            Route::Key,
            "/v1/config/app.yaml?volume=app",
            &[("if-none-match", &tag)],
            "",
        ),
        (Route::Key, "/v1/config/app.yaml", &[], ""),
        (Route::Key, "/v1/config/absent?volume=app", &[], ""),
        (Route::Key, "/v1/config/app.yaml?volume=app", &evil, ""),
        (Route::Key, "/v1/config/app.yaml?volume=gone", &[], ""),
        (Route::Events, "/v1/events", &[], ""),
        (Route::Events, "/v1/events?wait=3s", &[], ""),
        (Route::Events, "/v1/events?volume=etc", &[], ""),
        (Route::Events, "/v1/events", &evil, ""),
        (Route::Ack, "/v1/ack", &[], &ack),
        (Route::Ack, "/v1/ack", &[], "{}"),
        (Route::Ack, "/v1/ack", &[], "{\"revision\": \"x\", \"ok\": true}"),
        (
            Route::Ack,
            "/v1/ack",
            &[],
            "{\"revision\": \"x\", \"ok\": true, \"volume\": \"etc\"}",
        ),
        (Route::Ack, "/v1/ack", &evil, &ack),
        (Route::Metrics, "/metrics", &[], ""),
        (Route::Metrics, "/metrics", &evil, ""),
        (Route::Healthz, "/healthz", &[], ""),
        (Route::Healthz, "/healthz", &evil, ""),
        (Route::Ack, "/v1/ack", &[], &"x".repeat(5_000)),
    ];
    bench.progress.send_modify(|progress| {
        let path = bench.directory.path().join("gone");
        progress.volumes.push(VolumeProgress {
            path,
            seen: None,
            told: None,
            loaded: None,
        });
    });
    bench.sources.secrecy = Arc::new(Secrecy {
        secret: Vec::new(),
        public: vec![bench.path("app"), bench.path("site"), bench.path("gone")],
    });
    for (route, uri, headers, body) in cases {
        let answer = bench.ask(loopback(), route.method(), uri, headers, body).await;
        served.insert((route.template(), route.method().to_lowercase(), answer.status));
        let other = if route.method() == "GET" { "PUT" } else { "GET" };
        assert_eq!(
            bench.ask(loopback(), other, uri, &[], "").await.status,
            405,
            "{uri}"
        );
    }
    bench
        .progress
        .send_modify(|progress| progress.deaf = Some("no watches left".to_owned()));
    let answer = bench.get(loopback(), "/healthz", &[]).await;
    served.insert(("/healthz", "get".to_owned(), answer.status));
    // A body that never comes.
    let body = StreamBody::new(stream::pending::<Result<Frame<Bytes>, std::io::Error>>());
    let request = Request::builder()
        .method("POST")
        .uri("/v1/ack")
        .header(HOST, LOOPBACK);
    let answer = bench
        .sources
        .answer(loopback(), request.body(body).unwrap())
        .await;
    served.insert(("/v1/ack", "post".to_owned(), answer.status().as_u16()));

    let document: Value =
        serde_saphyr::from_str(include_str!("../../../../../../docs/endpoint.openapi.yaml")).unwrap();
    let mut documented = BTreeSet::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            for status in operation["responses"].as_object().unwrap().keys() {
                documented.insert((path.as_str(), method.clone(), status.parse().unwrap()));
            }
        }
    }
    assert_eq!(served, documented);
    let routes: BTreeSet<&str> = Route::ALL.iter().map(|route| route.template()).collect();
    assert_eq!(routes, documented.iter().map(|(path, ..)| *path).collect());
}
