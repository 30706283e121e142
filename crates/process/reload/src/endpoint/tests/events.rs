//! `GET /v1/events`.

use super::*;

#[tokio::test]
async fn streams_begin_with_what_is_there_and_go_on_where_the_client_was() {
    let bench = Bench::new(&["app", "site"]);
    let one = bench.load("app", &[("app.yaml", b"1")]);
    let mut stream = events(&bench, "/v1/events", None).await;
    assert_eq!(next(&mut stream).await, "retry: 1000");
    let current = |volume: &str, revision: &Revision| {
        let data = json!({"volume": volume, "revision": revision.as_str()});
        format!("event: current\nid: {revision}\ndata: {data}")
    };
    assert_eq!(next(&mut stream).await, current("app", &one));
    let two = bench.load("app", &[("app.yaml", b"2")]);
    let change = |volume: &str, revision: &Revision| {
        let data = json!({
            "volume": volume, "revision": revision.as_str(), "added": [], "modified": ["app.yaml"], "removed": [],
        });
        format!("event: change\nid: {revision}\ndata: {data}")
    };
    assert_eq!(next(&mut stream).await, change("app", &two));

    let site = bench.load("site", &[("app.yaml", b"3")]);
    let mut resumed = events(&bench, "/v1/events", Some(&one)).await;
    for expected in ["retry: 1000", &change("app", &two), &change("site", &site)] {
        assert_eq!(next(&mut resumed).await, expected);
    }
    let mut of_site = events(&bench, "/v1/events?volume=site", Some(&one)).await;
    for expected in ["retry: 1000", &change("site", &site)] {
        assert_eq!(next(&mut of_site).await, expected);
    }
    let mut unknown = events(&bench, "/v1/events", Some(&Revision::new("long-ago"))).await;
    for expected in ["retry: 1000", &current("app", &two), &current("site", &site)] {
        assert_eq!(next(&mut unknown).await, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_shows_that_it_lives_and_one_that_is_too_far_behind_ends() {
    let bench = Bench::new(&["app"]);
    let mut stream = events(&bench, "/v1/events", None).await;
    assert_eq!(next(&mut stream).await, "retry: 1000");
    let started = tokio::time::Instant::now();
    assert_eq!(next(&mut stream).await, ":");
    assert_eq!(started.elapsed().as_secs(), 15);
    for number in 0..65 {
        bench.loaded("app", &Revision::new(number.to_string()), Vec::new());
    }
    assert!(stream.frame().await.is_none(), "it has missed one");
    let metrics = bench.get(Door::Unix, "/metrics", &[]).await;
    assert!(
        metrics
            .text()
            .contains("hotmap_endpoint_connections_cut_off_total 1"),
        "{}",
        metrics.text()
    );
}

async fn events(bench: &Bench, uri: &str, after: Option<&Revision>) -> AnswerBody {
    let mut request = Request::builder().uri(uri);
    if let Some(after) = after {
        request = request.header("Last-Event-ID", after.as_str());
    }
    let request = request.body(Full::new(Bytes::new())).unwrap();
    bench.sources.answer(Door::Unix, request).await.into_body()
}

/// The next event, without the empty line behind it.
async fn next(stream: &mut AnswerBody) -> String {
    let frame = stream.frame().await.expect("a stream has no end").unwrap();
    let text = String::from_utf8(frame.into_data().unwrap().to_vec()).unwrap();
    text.strip_suffix("\n\n")
        .expect("an empty line ends it")
        .to_owned()
}
