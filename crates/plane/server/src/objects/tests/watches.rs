//! Watches: order, resumption, edges, bookmarks, ends.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::{Server, config_map, labelled, names, revision};
use crate::{answer::Body, cache::HistoryLimits};

/// Six changes of three objects; answers with the revision before each of them, and after the last.
async fn history(server: &Server) -> Vec<u64> {
    let mut revisions = vec![server.objects.cache.revision().0];
    for (call, body) in [
        ("create default/configmaps", config_map("a", "1")),
        ("create default/configmaps", config_map("b", "1")),
        ("update default/configmaps/a", config_map("a", "2")),
        ("delete default/configmaps/b", Value::Null),
        ("create kube-system/configmaps", config_map("other", "1")),
        ("create default/configmaps", config_map("c", "1")),
    ] {
        server.ok(call, body).await;
        revisions.push(server.objects.cache.revision().0);
    }
    revisions
}

const EVENTS: [&str; 5] = [
    "ADDED a 1",
    "ADDED b 1",
    "MODIFIED a 2",
    "DELETED b 1",
    "ADDED c 1",
];

#[tokio::test]
async fn a_watch_resumes_after_every_revision_also_after_a_restart() {
    let server = Server::start().await;
    let revisions = history(&server).await;
    let check = async |server: &Server| {
        for (at, revision) in revisions.iter().enumerate().filter(|(at, _)| *at != 5) {
            let missed = &EVENTS[at.min(5)..];
            let missed = if at == 6 { &EVENTS[5..] } else { missed };
            let mut frames = server
                .watch(&format!("resourceVersion={revision}&timeoutSeconds=1"))
                .await;
            assert_eq!(frames.take(missed.len()).await, missed, "after {revision}");
        }
    };
    check(&server).await;
    let server = server.restart().await;
    check(&server).await;
}

#[tokio::test]
async fn a_deletion_carries_the_last_state_and_the_new_revision() {
    let server = Server::start().await;
    let created = server.config_map("a", "1").await;
    let mut frames = server
        .watch(&format!("resourceVersion={}", revision(&created)))
        .await;
    server.ok("delete default/configmaps/a", Value::Null).await;
    let event = frames.next().await.expect("an event");
    assert_eq!(
        (&event["type"], &event["object"]["data"]["k"]),
        (&"DELETED".into(), &"1".into())
    );
    assert_eq!(revision(&event["object"]), server.objects.cache.revision().0);
}

#[tokio::test]
async fn without_a_revision_a_watch_begins_with_what_there_is() {
    let server = Server::start().await;
    server.config_map("a", "1").await;
    for query in ["", "resourceVersion=0", "timeoutSeconds=9223372036854775807"] {
        let mut frames = server.watch(query).await;
        assert_eq!(frames.take(1).await, ["ADDED a 1"], "{query:?}");
    }
    let mut frames = server.watch("").await;
    frames.take(1).await;
    server.config_map("b", "1").await;
    assert_eq!(frames.take(1).await, ["ADDED b 1"]);
}

#[tokio::test]
async fn initial_events_end_with_a_bookmark() {
    let server = Server::start().await;
    server.config_map("a", "1").await;
    let last = revision(&server.config_map("b", "1").await);
    for since in [
        String::new(),
        format!("&resourceVersion={last}"),
        "&resourceVersion=0".to_owned(),
    ] {
        let query = format!(
            "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true{since}"
        );
        let mut frames = server.watch(&query).await;
        assert_eq!(frames.take(2).await, ["ADDED a 1", "ADDED b 1"], "{query}");
        let bookmark = frames.next().await.expect("a bookmark");
        let wanted = json!({"type": "BOOKMARK", "object": {
            "kind": "ConfigMap", "apiVersion": "v1",
            "metadata": {"resourceVersion": last.to_string(), "annotations": {"k8s.io/initial-events-end": "true"}},
        }});
        assert_eq!(bookmark, wanted);
    }
}

#[tokio::test]
async fn only_those_who_ask_are_told_when_a_change_was_committed() {
    let server = Server::start().await;
    let since = server.objects.cache.revision();
    let mut told = server
        .watch(&format!("resourceVersion={since}&hotmap.dev/commit-time=true"))
        .await;
    let mut untold = server.watch(&format!("resourceVersion={since}")).await;
    let earliest = SystemTime::now();
    server.config_map("a", "1").await;
    let event = told.next().await.expect("an event");
    let committed = Duration::from_nanos(event["committedUnixNano"].as_u64().expect("a time"));
    assert!(UNIX_EPOCH + committed >= earliest && UNIX_EPOCH + committed <= SystemTime::now());
    assert_eq!(
        untold.next().await.expect("an event").get("committedUnixNano"),
        None
    );
}

#[tokio::test]
async fn selectors_have_edges() {
    let server = Server::start().await;
    let since = server.objects.cache.revision();
    let mut frames = server
        .watch(&format!("resourceVersion={since}&labelSelector=l=x"))
        .await;
    for (call, body) in [
        ("create default/configmaps", labelled("a", "1", "y")),
        ("update default/configmaps/a", labelled("a", "2", "x")),
        ("update default/configmaps/a", labelled("a", "3", "x")),
        ("update default/configmaps/a", labelled("a", "4", "y")),
        ("delete default/configmaps/a", Value::Null),
        ("create default/configmaps", labelled("b", "1", "x")),
    ] {
        server.ok(call, body).await;
    }
    assert_eq!(
        frames.take(4).await,
        ["ADDED a 2", "MODIFIED a 3", "DELETED a 3", "ADDED b 1"]
    );
}

#[tokio::test]
async fn a_single_name_is_watched_alone() {
    let server = Server::start().await;
    let since = server.objects.cache.revision();
    server.config_map("a", "1").await;
    server.config_map("b", "1").await;
    let call = format!("fieldSelector=metadata.name=b&resourceVersion={since}");
    let (mut early, mut late) = (
        server.watch(&call).await,
        server.watch("fieldSelector=metadata.name=b").await,
    );
    server
        .ok("update default/configmaps/a", config_map("a", "2"))
        .await;
    server
        .ok("update default/configmaps/b", config_map("b", "2"))
        .await;
    assert_eq!(early.take(2).await, ["ADDED b 1", "MODIFIED b 2"]);
    assert_eq!(late.take(2).await, ["ADDED b 1", "MODIFIED b 2"]);
    let mut earlier = server.watch(&call).await;
    assert_eq!(
        earlier.take(2).await,
        ["ADDED b 1", "MODIFIED b 2"],
        "a lane that exists reaches back"
    );
}

fn short_history() -> HistoryLimits {
    HistoryLimits {
        age_max: Duration::ZERO,
        events_min: 4,
        ..HistoryLimits::default()
    }
}

#[tokio::test]
async fn a_watch_from_too_far_back_gets_one_error_and_ends() {
    let server = Server::start_with(short_history()).await;
    let since = server.objects.cache.revision();
    for at in 0..10 {
        server.config_map(&format!("m{at}"), "1").await;
    }
    for name in ["", "&fieldSelector=metadata.name=m1"] {
        let mut frames = server.watch(&format!("resourceVersion={since}{name}")).await;
        let event = frames.next().await.expect("an error");
        assert_eq!(
            (
                &event["type"],
                &event["object"]["code"],
                &event["object"]["reason"]
            ),
            (&"ERROR".into(), &410.into(), &"Expired".into())
        );
        let message = event["object"]["message"].as_str().expect("a message");
        assert!(
            message.starts_with(&format!("too old resource version: {since} (")),
            "{message}"
        );
        assert!(frames.next().await.is_none());
    }
    let (code, message) = server
        .refused(
            &format!("list configmaps?resourceVersion={since}&resourceVersionMatch=Exact"),
            Value::Null,
        )
        .await;
    assert!(
        code == 410 && message.starts_with("too old resource version: "),
        "{message}"
    );
}

#[tokio::test]
async fn an_expired_page_offers_a_token_for_the_newest_state() {
    let server = Server::start_with(short_history()).await;
    for at in 0..4 {
        server.config_map(&format!("m{at}"), "1").await;
    }
    let page = server.ok("list default/configmaps?limit=2", Value::Null).await;
    let token = page["metadata"]["continue"].as_str().expect("a token");
    for at in 4..12 {
        server.config_map(&format!("m{at}"), "1").await;
    }
    let (code, expired) = server
        .send(
            &format!("list default/configmaps?limit=2&continue={token}"),
            Value::Null,
        )
        .await;
    assert_eq!((code, &expired["reason"]), (410, &"Expired".into()));
    let message = expired["message"].as_str().expect("a message");
    assert!(
        message
            .starts_with("The provided continue parameter is too old to display a consistent list result."),
        "{message}"
    );
    let token = expired["metadata"]["continue"].as_str().expect("another token");
    let rest = server
        .ok(
            &format!("list default/configmaps?limit=2&continue={token}"),
            Value::Null,
        )
        .await;
    assert_eq!(names(&rest), ["m10", "m11"]);
    assert!(revision(&rest) > revision(&page));
}

#[tokio::test]
async fn a_watcher_that_stands_still_is_cut_off() {
    let server = Server::start_with(short_history()).await;
    let since = server.objects.cache.revision();
    let mut frames = server.watch(&format!("resourceVersion={since}")).await;
    for at in 0..10 {
        server.config_map(&format!("m{at}"), "1").await;
    }
    let event = frames.next().await.expect("an error");
    assert_eq!(
        (&event["type"], &event["object"]["code"]),
        (&"ERROR".into(), &410.into())
    );
    assert!(frames.next().await.is_none());
}

#[tokio::test]
async fn a_selective_watch_outlives_changes_it_does_not_see() {
    let server = Server::start_with(short_history()).await;
    server.config_map("quiet", "1").await;
    let mut frames = server.watch("fieldSelector=metadata.name=quiet").await;
    assert_eq!(frames.take(1).await, ["ADDED quiet 1"]);
    for at in 0..10 {
        server.config_map(&format!("m{at}"), "1").await;
    }
    server
        .ok("update default/configmaps/quiet", config_map("quiet", "2"))
        .await;
    assert_eq!(frames.take(1).await, ["MODIFIED quiet 2"]);
}

#[tokio::test(start_paused = true)]
async fn bookmarks_come_in_time_and_before_the_end() {
    let server = Server::start().await;
    let since = server.objects.cache.revision();
    for (who, bookmarks) in [
        ("", 2),
        ("&group=system:nodes", 20),
        ("&hotmap.dev/commit-time=true", 20),
    ] {
        let query = format!("resourceVersion={since}&allowWatchBookmarks=true&timeoutSeconds=100{who}");
        let begun = tokio::time::Instant::now();
        let mut frames = server.watch(&query).await;
        let mut seen = 0;
        while let Some(event) = frames.next().await {
            let wanted = json!({"type": "BOOKMARK", "object": {
                "kind": "ConfigMap", "apiVersion": "v1", "metadata": {"resourceVersion": since.to_string()},
            }});
            assert_eq!(event, wanted);
            seen += 1;
        }
        assert_eq!((seen, begun.elapsed().as_secs()), (bookmarks, 100), "{who:?}");
    }
    let begun = tokio::time::Instant::now();
    let mut frames = server
        .watch(&format!("resourceVersion={since}&timeoutSeconds=7"))
        .await;
    assert!(frames.next().await.is_none());
    assert_eq!(begun.elapsed().as_secs(), 7);
}

#[tokio::test]
async fn watch_options_are_checked_before_the_stream_begins() {
    let server = Server::start().await;
    for (query, code, message) in [
        (
            "sendInitialEvents=true",
            422,
            r#"ListOptions.meta.k8s.io "" is invalid: resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"#,
        ),
        (
            "resourceVersion=x",
            500,
            r#"resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax"#,
        ),
        (
            "accept=application/yaml",
            406,
            "only the following media types are accepted: application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch",
        ),
    ] {
        let call = format!("watch default/configmaps?{query}");
        assert_eq!(
            server.refused(&call, Value::Null).await,
            (code, message.to_owned()),
            "{query}"
        );
    }
}

#[tokio::test]
async fn tables_name_their_columns_once() {
    let server = Server::start().await;
    server.config_map("a", "1").await;
    server.config_map("b", "1").await;
    let mut frames = server
        .watch("accept=application/json;as=Table;v=v1;g=meta.k8s.io")
        .await;
    let (first, second) = (frames.next().await.expect("a"), frames.next().await.expect("b"));
    assert_eq!(first["object"]["columnDefinitions"][0]["name"], "Name");
    assert_eq!(second["object"]["columnDefinitions"], Value::Null);
    assert_eq!(second["object"]["rows"][0]["cells"][0], "b");
}

#[tokio::test]
async fn protobuf_frames_have_their_length_in_front() {
    let server = Server::start().await;
    server.config_map("a", "1").await;
    let call = "watch default/configmaps?accept=application/vnd.kubernetes.protobuf;stream=watch";
    let answer = server.answer(call, Bytes::new()).await.expect("a watch");
    assert_eq!(
        answer.content_type,
        "application/vnd.kubernetes.protobuf;stream=watch"
    );
    let Body::Stream(mut stream) = answer.body else {
        panic!("a watch streams")
    };
    let frame = stream.next().await.expect("a frame");
    let (length, event) = frame.split_at(4);
    assert_eq!(
        u32::from_be_bytes(length.try_into().expect("four bytes")) as usize,
        event.len()
    );
    assert_eq!(&event[..7], b"\x0a\x05ADDED");
    let at = event
        .windows(4)
        .position(|four| four == b"k8s\0")
        .expect("an envelope");
    let (kind, object) = hotmap_schema::decode_object(&event[at..]).expect("decodes");
    assert_eq!((kind.kind, &object["data"]["k"]), ("ConfigMap", &"1".into()));
}

#[tokio::test]
async fn watchers_of_one_event_share_its_bytes() {
    let server = Server::start().await;
    let since = server.objects.cache.revision();
    let call = format!("watch default/configmaps?resourceVersion={since}");
    let mut frames = Vec::new();
    server.config_map("a", "1").await;
    for _ in 0..2 {
        let Body::Stream(mut stream) = server.answer(&call, Bytes::new()).await.expect("a watch").body else {
            panic!("a watch streams")
        };
        frames.push(stream.next().await.expect("a frame"));
    }
    assert_eq!(frames[0].as_ptr(), frames[1].as_ptr());
}
