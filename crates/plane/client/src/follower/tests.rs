//! A follower against a script: what the server does, what the consumer is told.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hotmap_object::Status;
use parking_lot::Mutex;

use super::*;
use crate::object::ObjectList;

/// What the server does next. Objects are `name/uid@revision`.
enum Act {
    List {
        at: &'static str,
        items: &'static str,
    },
    ListFails(ClientError),
    /// A watch that must start after `from`; `+` applied, `-` deleted, `b5` bookmark, `410` expired.
    Watch {
        from: &'static str,
        events: &'static str,
        then: Then,
    },
    WatchFails {
        from: &'static str,
        error: ClientError,
    },
}

#[derive(Clone, Copy)]
enum Then {
    End,
    Break,
    Silence,
}

#[derive(Clone)]
struct Script(Arc<Mutex<VecDeque<Act>>>);

struct ScriptedWatch {
    events: VecDeque<WatchEvent>,
    then: Then,
}

fn object(text: &str) -> RawObject {
    let (identity, version) = text.split_once('@').expect("name/uid@revision");
    let (name, uid) = identity.split_once('/').expect("name/uid@revision");
    let metadata = serde_json::json!({"name": name, "uid": uid, "resourceVersion": version});
    RawObject::from_json(serde_json::json!({"metadata": metadata}).to_string().into()).unwrap()
}

fn event(text: &str) -> WatchEvent {
    match text.split_at(1) {
        ("+", text) => WatchEvent::Modified(object(text)),
        ("-", text) => WatchEvent::Deleted(object(text)),
        ("b", version) => WatchEvent::Bookmark {
            resource_version: version.to_owned(),
            initial_events_end: false,
        },
        _ => WatchEvent::Error(Status::expired("too old resource version")),
    }
}

impl ListWatch for Script {
    type Watch = ScriptedWatch;

    async fn list(&mut self) -> Result<ObjectList, ClientError> {
        let act = self.0.lock().pop_front();
        match act {
            Some(Act::List { at, items }) => Ok(ObjectList {
                resource_version: at.to_owned(),
                continue_token: String::new(),
                items: items.split_whitespace().map(object).collect(),
            }),
            Some(Act::ListFails(error)) => Err(error),
            Some(_) => panic!("listed where a watch was due"),
            None => std::future::pending().await,
        }
    }

    async fn watch(&mut self, resource_version: &str) -> Result<ScriptedWatch, ClientError> {
        let act = self.0.lock().pop_front();
        match act {
            Some(Act::Watch { from, events, then }) => {
                assert_eq!(resource_version, from, "watched from the wrong revision");
                Ok(ScriptedWatch {
                    events: events.split_whitespace().map(event).collect(),
                    then,
                })
            }
            Some(Act::WatchFails { from, error }) => {
                assert_eq!(resource_version, from, "watched from the wrong revision");
                Err(error)
            }
            Some(_) => panic!("watched where a list was due"),
            None => std::future::pending().await,
        }
    }
}

impl Stream for ScriptedWatch {
    type Item = Result<WatchEvent, ClientError>;

    fn poll_next(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        match (self.events.pop_front(), self.then) {
            (Some(event), _) => Poll::Ready(Some(Ok(event))),
            (None, Then::End) => Poll::Ready(None),
            (None, Then::Break) => Poll::Ready(Some(Err(ClientError::transport("cut")))),
            (None, Then::Silence) => Poll::Pending,
        }
    }
}

fn told(event: &FollowEvent) -> String {
    let show =
        |object: &RawObject| format!("{}/{}@{}", object.name(), object.uid(), object.resource_version());
    match event {
        FollowEvent::Initial(items) => format!("={}", items.iter().map(show).collect::<Vec<_>>().join(",")),
        FollowEvent::Applied(object) => format!("+{}", show(object)),
        FollowEvent::Deleted(object) => format!("-{}", show(object)),
        FollowEvent::Interrupted(_) => "interrupted".to_owned(),
        FollowEvent::Resumed => "resumed".to_owned(),
    }
}

/// Plays the script to its end and compares what was told.
async fn check(script: Vec<Act>, expected: &str) -> FollowerCounts {
    let config = FollowerConfig {
        seed: Some(1),
        ..FollowerConfig::NODE
    };
    let mut follower = Follower::new(Script(Arc::new(Mutex::new(script.into()))), config);
    let mut events = Vec::new();
    // Time is paused: an hour without an event means that nothing is left to do.
    let hour = Duration::from_secs(3_600);
    while let Ok(event) = tokio::time::timeout(hour, follower.next()).await {
        events.push(told(&event));
        assert!(events.len() < 1_000, "tells for ever: {events:?}");
    }
    assert!(
        follower.source.0.lock().is_empty(),
        "the script was not played to its end: {events:?}"
    );
    assert_eq!(events.join(" "), expected);
    follower.counts()
}

fn list(at: &'static str, items: &'static str) -> Act {
    Act::List { at, items }
}

fn watch(from: &'static str, events: &'static str, then: Then) -> Act {
    Act::Watch { from, events, then }
}

fn refused() -> ClientError {
    ClientError::Connect {
        server: "s".to_owned(),
        source: Arc::new(std::io::Error::other("refused")),
    }
}

fn expired() -> ClientError {
    Status::expired("too old resource version").into()
}

#[tokio::test(start_paused = true)]
async fn a_list_is_told_once_then_every_change_after_it() {
    let script = vec![
        list("5", "a/1@3 b/2@4"),
        watch("5", "+a/1@6 +c/3@7 -b/2@8", Then::End),
        watch("8", "", Then::Silence),
    ];
    check_start(script, "=a/1@3,b/2@4 +a/1@6 +c/3@7 -b/2@8").await;
}

/// As [`check`], for scripts that end in silence: what the follower does about it is not of interest.
async fn check_start(script: Vec<Act>, expected: &str) {
    let config = FollowerConfig {
        silence_max: Duration::from_secs(1_000_000),
        ..FollowerConfig::NODE
    };
    let mut follower = Follower::new(Script(Arc::new(Mutex::new(script.into()))), config);
    let mut events = Vec::new();
    while let Ok(event) = tokio::time::timeout(Duration::from_secs(3_600), follower.next()).await {
        events.push(told(&event));
    }
    assert_eq!(events.join(" "), expected);
}

#[tokio::test(start_paused = true)]
async fn a_watch_goes_on_from_the_last_event_or_bookmark() {
    let counts = check(
        vec![
            list("5", ""),
            watch("5", "+a/1@6", Then::End),
            watch("6", "b9", Then::Break),
            watch("9", "+a/1@10", Then::End),
        ],
        "= +a/1@6 +a/1@10",
    )
    .await;
    assert_eq!(
        counts,
        FollowerCounts {
            lists: 1,
            watches: 3,
            failures: 1
        }
    );
}

#[tokio::test(start_paused = true)]
async fn an_expired_revision_is_listed_again_and_only_the_difference_is_told() {
    for act in [
        watch("6", "410", Then::End),
        Act::WatchFails {
            from: "6",
            error: expired(),
        },
    ] {
        let counts = check(
            vec![
                list("5", "a/1@1 b/2@2 c/3@3 d/4@4"),
                watch("5", "+a/1@6", Then::End),
                act,
                list("20", "a/1@6 b/2@15 c/33@16 e/5@17"),
                watch("20", "+e/5@21", Then::End),
            ],
            "=a/1@1,b/2@2,c/3@3,d/4@4 +a/1@6 -d/4@4 +b/2@15 -c/3@3 +c/33@16 +e/5@17 +e/5@21",
        )
        .await;
        assert_eq!((counts.lists, counts.failures), (2, 0));
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_created_again_under_its_name_is_another_object() {
    check_start(
        vec![
            list("5", "a/1@1"),
            watch("5", "+a/2@9 -a/2@10 -gone/7@11", Then::Silence),
        ],
        "=a/1@1 -a/1@1 +a/2@9 -a/2@10",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_change_that_was_told_is_not_told_again() {
    check_start(
        vec![
            list("5", "a/1@5"),
            watch("5", "+a/1@5 +a/1@6 +a/1@6", Then::Silence),
        ],
        "=a/1@5 +a/1@6",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn failures_are_shown_and_retried_until_the_server_is_heard_again() {
    let counts = check(
        vec![
            Act::ListFails(refused()),
            Act::ListFails(refused()),
            list("5", "a/1@1"),
            watch("5", "+a/1@6", Then::Break),
            Act::WatchFails {
                from: "6",
                error: refused(),
            },
            watch("6", "+a/1@7", Then::End),
        ],
        "interrupted interrupted =a/1@1 resumed +a/1@6 interrupted resumed +a/1@7",
    )
    .await;
    assert_eq!(counts.failures, 4);
}

#[tokio::test(start_paused = true)]
async fn a_silent_watch_is_opened_again_within_its_time_and_then_shown() {
    let script = vec![
        list("5", ""),
        watch("5", "b6", Then::Silence),
        watch("6", "", Then::Silence),
        watch("6", "b7", Then::End),
    ];
    let started = Instant::now();
    let counts = check(script, "= interrupted resumed").await;
    // Twice 10 s of silence, one pause, and the hour at the end.
    assert!(
        started.elapsed() < Duration::from_secs(3_600 + 22),
        "{:?}",
        started.elapsed()
    );
    assert_eq!((counts.watches, counts.failures), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn what_fails_at_once_is_not_asked_again_at_once() {
    for act in [
        || watch("5", "", Then::End),
        || watch("5", "", Then::Break),
        || Act::WatchFails {
            from: "5",
            error: Status::new(403, "Forbidden", "no").into(),
        },
    ] {
        let mut script = vec![list("5", "")];
        script.extend((0..10).map(|_| act()));
        script.push(watch("5", "", Then::Silence));
        let config = FollowerConfig {
            silence_max: Duration::from_secs(1_000_000),
            ..FollowerConfig::NODE
        };
        let mut follower = Follower::new(Script(Arc::new(Mutex::new(script.into()))), config);
        let started = Instant::now();
        let mut last = started;
        while tokio::time::timeout(Duration::from_secs(3_600), follower.next())
            .await
            .is_ok()
        {
            last = Instant::now();
        }
        // Half of 50 ms, doubled to 10 s, ten times.
        assert!(last - started >= Duration::from_secs(16), "{:?}", last - started);
        assert!(last - started <= Duration::from_secs(40), "{:?}", last - started);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_expires_every_list_is_asked_with_pauses() {
    let mut script = Vec::new();
    for _ in 0..8 {
        script.extend([list("5", "a/1@1"), watch("5", "410", Then::End)]);
    }
    script.push(list("9", "a/1@9"));
    let mut follower = Follower::new(Script(Arc::new(Mutex::new(script.into()))), FollowerConfig::NODE);
    let started = Instant::now();
    assert_eq!(told(&follower.next().await), "=a/1@1");
    assert_eq!(told(&follower.next().await), "+a/1@9");
    // The first 410 is normal life; then half of 50 ms, doubled, seven times.
    assert!(
        started.elapsed() >= Duration::from_secs(3),
        "{:?}",
        started.elapsed()
    );
    assert_eq!(follower.counts().lists, 9);
}

#[tokio::test(start_paused = true)]
async fn the_server_decides_how_long_to_stay_away() {
    let script = vec![
        Act::ListFails(Status::too_many_requests("wait", 7).into()),
        list("5", ""),
    ];
    let mut follower = Follower::new(Script(Arc::new(Mutex::new(script.into()))), FollowerConfig::NODE);
    assert!(matches!(follower.next().await, FollowEvent::Interrupted(_)));
    let asked = Instant::now();
    assert!(matches!(follower.next().await, FollowEvent::Initial(_)));
    assert!(asked.elapsed() >= Duration::from_secs(7));
}

#[derive(Default)]
struct Ends(Mutex<(usize, Vec<WatchEnd>)>);

impl FollowObserver for Ends {
    fn opened(&self) {
        self.0.lock().0 += 1;
    }

    fn ended(&self, end: WatchEnd) {
        self.0.lock().1.push(end);
    }
}

#[tokio::test(start_paused = true)]
async fn every_end_of_a_watch_is_heard_with_its_reason() {
    let script = vec![
        list("5", ""),
        watch("5", "b6", Then::End),
        watch("6", "b7", Then::Break),
        watch("7", "b8", Then::Silence),
        watch("8", "410", Then::Silence),
        list("9", ""),
        watch("9", "", Then::Silence),
    ];
    let ends = Arc::new(Ends::default());
    let config = FollowerConfig {
        seed: Some(1),
        ..FollowerConfig::NODE
    };
    let mut follower =
        Follower::new(Script(Arc::new(Mutex::new(script.into()))), config).observed_by(ends.clone());
    while ends.0.lock().0 < 5 {
        // Looked at each second, so that the last watch is let go of before its silence counts.
        let _ = timeout_at(Instant::now() + Duration::from_secs(1), follower.next()).await;
    }
    drop(follower);
    let (opened, ends) = std::mem::take(&mut *ends.0.lock());
    assert_eq!(opened, ends.len(), "what was opened has ended");
    let words: Vec<_> = ends.iter().take(4).map(|end| end.as_str()).collect();
    assert_eq!(words, ["closed", "broken", "silent", "expired"]);
    assert_eq!(ends.last(), Some(&WatchEnd::LetGo));
}
