//! `GET /v1/config` and `/v1/config/KEY`.

use super::*;

#[tokio::test]
async fn everything_is_said_of_each_volume() {
    let bench = Bench::new(&["app", "site"]);
    let revision = bench.load(
        "app",
        &[("app.yaml", b"level: debug\n"), ("logo.png", &[0x89, b'P', 0xff])],
    );
    let answer = bench.get(loopback(), "/v1/config?volume=app", &[]).await;
    let expected = json!({
        "phase": "loaded",
        "volumes": [{
            "volume": "app",
            "path": bench.path("app").display().to_string(),
            "revision": revision.as_str(),
            "seen": revision.as_str(),
            "loaded": revision.as_str(),
            "secret": false,
            "keys": ["app.yaml", "logo.png"],
            "data": {"app.yaml": "level: debug\n"},
            "binaryData": {"logo.png": "iVD/"},
        }],
    });
    assert_eq!((answer.status, answer.json()), (200, expected));

    let all = bench.get(loopback(), "/v1/config?values=false", &[]).await.json();
    let [app, site] = all["volumes"].as_array().unwrap().as_slice() else {
        panic!("two volumes: {all}")
    };
    assert_eq!(app["data"], Value::Null);
    assert_eq!(app["keys"], json!(["app.yaml", "logo.png"]));
    assert_eq!((&site["seen"], &site["loaded"]), (&Value::Null, &Value::Null));
    assert!(
        site["revision"].is_string(),
        "what is in the files is known without anybody having seen it"
    );

    bench.progress.send_modify(|progress| {
        progress.phase = Phase::HeldBack("exit code 1".to_owned());
        progress.deaf = Some("no watches left".to_owned());
    });
    std::fs::remove_dir_all(bench.path("site")).unwrap();
    let all = bench.get(loopback(), "/v1/config", &[]).await.json();
    assert_eq!(
        (&all["phase"], &all["reason"]),
        (&json!("held-back"), &json!("exit code 1"))
    );
    assert_eq!(all["deaf"], json!("no watches left"));
    assert_eq!(all["volumes"][1]["revision"], Value::Null);
    assert!(
        all["volumes"][1]["error"]
            .as_str()
            .unwrap()
            .contains("is not there"),
        "{all}"
    );
}

#[tokio::test]
async fn a_key_is_given_raw_with_its_revision_until_the_client_has_it() {
    let bench = Bench::new(&["app"]);
    let revision = bench.load("app", &[("app.yaml", b"level: debug\n"), ("a/b.bin", &[0xff])]);
    let tag = format!("\"{revision}\"");
    let answer = bench.get(loopback(), "/v1/config/app.yaml", &[]).await;
    assert_eq!(
        (answer.status, answer.text(), answer.etag.as_deref()),
        (200, "level: debug\n", Some(&*tag))
    );
    assert_eq!(answer.content_type.as_deref(), Some("text/plain; charset=utf-8"));
    for uri in ["/v1/config/a/b.bin", "/v1/config/a%2Fb.bin"] {
        let answer = bench.get(loopback(), uri, &[]).await;
        assert_eq!((answer.status, answer.body.as_ref()), (200, &[0xff][..]));
        assert_eq!(answer.content_type.as_deref(), Some("application/octet-stream"));
    }
    let has_it = [(IF_NONE_MATCH.as_str(), &*tag)];
    let answer = bench.get(loopback(), "/v1/config/app.yaml", &has_it).await;
    assert_eq!((answer.status, answer.etag.as_deref()), (304, Some(&*tag)));
    for elsewhere in [
        "..%2F..%2Fetc%2Fshadow",
        "/etc/passwd",
        "..data%2Fapp.yaml",
        "%00",
    ] {
        let uri = format!("/v1/config/{elsewhere}");
        let answer = bench.get(loopback(), &uri, &[]).await;
        assert_eq!(answer.status, 404, "{elsewhere}");
    }
    let answer = bench.get(loopback(), "/v1/config/absent", &[]).await;
    assert_eq!(answer.status, 404);
    assert!(answer.json()["error"].as_str().unwrap().contains("\"absent\""));
}

#[tokio::test]
async fn who_waits_is_told_of_what_has_passed_the_check() {
    let bench = Bench::new(&["app"]);
    let first = bench.load("app", &[("app.yaml", b"1")]);
    let tag = format!("\"{first}\"");
    let headers = [(IF_NONE_MATCH.as_str(), &*tag)];
    let waiting = bench.get(loopback(), "/v1/config/app.yaml?wait=10m", &headers);
    let acting = async {
        // Held back: it is in the files, and nobody who waits is told.
        let bad = bench.write("app", &[("app.yaml", b"bad")]);
        bench.progress.send_modify(|progress| {
            progress.volumes[0].seen = Some(bad);
            progress.phase = Phase::HeldBack("no".to_owned());
        });
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        bench.load("app", &[("app.yaml", b"2")])
    };
    let (answer, second) = tokio::join!(waiting, acting);
    assert_eq!((answer.status, answer.text()), (200, "2"));
    assert_eq!(answer.etag, Some(format!("\"{second}\"")));
}

#[tokio::test(start_paused = true)]
async fn a_wait_ends_and_needs_no_revision_to_wait_for() {
    let bench = Bench::new(&["app"]);
    let revision = bench.load("app", &[("app.yaml", b"1")]);
    let answer = bench.get(loopback(), "/v1/config/app.yaml?wait=10m", &[]).await;
    assert_eq!(answer.status, 200, "a client that has nothing gets what there is");
    let tag = format!("\"{revision}\"");
    let started = tokio::time::Instant::now();
    let answer = bench
        .get(
            loopback(),
            "/v1/config/app.yaml?wait=30s",
            &[("if-none-match", &tag)],
        )
        .await;
    assert_eq!(answer.status, 304);
    assert_eq!(started.elapsed().as_secs(), 30);
}

#[tokio::test]
async fn values_of_secrets_are_given_over_the_unix_socket_only() {
    let mut bench = Bench::new(&["app"]);
    bench.load("app", &[("password", b"hunter2")]);
    bench.mark_secret("app");
    bench
        .progress
        .send_modify(|progress| progress.phase = Phase::Failed("line 1: hunter2".to_owned()));
    for uri in ["/v1/config/password", "/v1/config/absent"] {
        let refused = bench.get(loopback(), uri, &[]).await;
        assert_eq!(refused.status, 403);
        let sentence = refused.json()["error"].as_str().unwrap().to_owned();
        assert!(
            sentence.contains("is a Secret") && sentence.contains("--serve unix:PATH"),
            "{sentence}"
        );
    }
    for uri in ["/v1/config", "/healthz", "/metrics"] {
        let told = bench.get(loopback(), uri, &[]).await;
        assert!(!told.text().contains("hunter2"), "{uri}: {}", told.text());
    }
    let document = bench.get(loopback(), "/v1/config", &[]).await.json();
    assert_eq!(document["volumes"][0]["secret"], json!(true));
    assert_eq!(document["volumes"][0]["keys"], json!(["password"]));
    assert!(document["volumes"][0]["withheld"].is_string());
    let document = bench.get(Door::Unix, "/v1/config", &[]).await.json();
    assert_eq!(document["volumes"][0]["data"], json!({"password": "hunter2"}));
    assert_eq!(document["reason"], json!("line 1: hunter2"));
    assert_eq!(
        bench.get(Door::Unix, "/v1/config/password", &[]).await.text(),
        "hunter2"
    );
}
