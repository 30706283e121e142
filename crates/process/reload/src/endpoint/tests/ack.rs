//! `POST /v1/ack`.

use super::*;

#[tokio::test]
async fn what_a_program_says_is_what_is_loaded() {
    let bench = Bench::new(&["app"]);
    let one = bench.load("app", &[("app.yaml", b"1")]);
    let two = bench.load("app", &[("app.yaml", b"2")]);
    assert_eq!(
        bench
            .post(&json!({"revision": one.as_str(), "ok": true}).to_string())
            .await
            .status,
        200
    );
    let document = bench.get(Door::Unix, "/v1/config?values=false", &[]).await.json();
    assert_eq!(document["phase"], json!("loading"));
    assert_eq!(document["volumes"][0]["loaded"], json!(one.as_str()));
    assert_eq!(document["volumes"][0]["seen"], json!(two.as_str()));

    let refusal = json!({"revision": two.as_str(), "ok": false, "message": "line 3", "volume": "app"});
    assert_eq!(bench.post(&refusal.to_string()).await.status, 200);
    let document = bench.get(Door::Unix, "/v1/config?values=false", &[]).await.json();
    assert_eq!(
        document["volumes"][0]["acknowledged"],
        json!({"revision": two.as_str(), "ok": false, "message": "line 3"})
    );
    let health = bench.get(Door::Metrics, "/healthz", &[]).await;
    assert_eq!(
        health.text(),
        "the last change is not loaded: the program has refused it: line 3\n"
    );
    let metrics = bench.get(Door::Metrics, "/metrics", &[]).await;
    let path = bench.path("app");
    for line in [
        format!(
            "hotmap_loaded_info{{volume=\"{}\",revision=\"{one}\"}} 1",
            path.display()
        ),
        "hotmap_endpoint_acknowledgements_total{outcome=\"refused\"} 1".to_owned(),
        "hotmap_endpoint_requests_total{path=\"/v1/ack\",code=\"200\"} 2".to_owned(),
    ] {
        assert!(
            metrics.text().contains(&line),
            "{line} is not in\n{}",
            metrics.text()
        );
    }
    assert_eq!(metrics.text().matches("# EOF").count(), 1);
}

#[tokio::test]
async fn a_program_may_be_faster_than_the_watcher() {
    let bench = Bench::new(&["app"]);
    bench.load("app", &[("app.yaml", b"1")]);
    let unseen = bench.write("app", &[("app.yaml", b"2")]);
    let word = json!({"revision": unseen.as_str(), "ok": true}).to_string();
    assert_eq!(bench.post(&word).await.status, 200);
    let document = bench.get(Door::Unix, "/v1/config?values=false", &[]).await.json();
    assert_eq!(document["volumes"][0]["loaded"], json!(unseen.as_str()));
    bench.loaded("app", &unseen, Vec::new());
    let document = bench.get(Door::Unix, "/v1/config?values=false", &[]).await.json();
    assert_eq!(document["phase"], json!("loaded"));
}

#[tokio::test]
async fn acknowledgements_that_are_not_understood_are_refused_by_name() {
    let bench = Bench::new(&["app", "site"]);
    let revision = bench.load("app", &[("app.yaml", b"1")]);
    for (body, status, error) in [
        (json!({"ok": true}), 400, "missing field `revision`"),
        (json!({"revision": "x"}), 400, "missing field `ok`"),
        (
            json!({"revision": "x", "ok": true, "pod": "web-0"}),
            400,
            "unknown field `pod`",
        ),
        (json!({"revision": "..2020", "ok": true}), 409, "\"..2020\""),
        (
            json!({"revision": revision.as_str(), "ok": true, "volume": "site"}),
            409,
            "lately",
        ),
        (
            json!({"revision": revision.as_str(), "ok": true, "volume": "etc"}),
            404,
            "app, site",
        ),
        (
            json!({"revision": "x".repeat(5_000), "ok": true}),
            413,
            "4096 bytes",
        ),
    ] {
        let answer = bench.post(&body.to_string()).await;
        let told = answer.json()["error"].as_str().unwrap().to_owned();
        assert!(
            answer.status == status && told.contains(error),
            "{body}: {} {told}",
            answer.status
        );
    }
    let document = bench.get(Door::Unix, "/v1/config", &[]).await.json();
    assert_eq!(document["volumes"][0]["acknowledged"], Value::Null);
}
