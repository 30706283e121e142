//! Writes, reads and watches, one by one.

use std::{sync::Arc, task::Poll, time::Duration};

use futures_util::{FutureExt, StreamExt, future::join_all, poll};
use hotmap_store::{
    Embedded, EventKind, Expect, Health, Op, Range, Revision, Store, StoreError, Write, limits,
};

use crate::{clock, disk::Disk, history, open};

fn fresh() -> Embedded {
    open(&Disk::new(), &clock())
}

/// `count` keys, named so that they sort by number, in as few batches as possible.
async fn fill(store: &Embedded, count: usize) {
    let writes = (0..count).map(|n| store.commit(Write::create(format!("/n/{n:06}"), n.to_string())));
    for answer in join_all(writes).await {
        answer.unwrap();
    }
}

#[tokio::test]
async fn a_write_happens_only_if_the_key_is_as_expected() {
    let put = || Op::Put {
        value: "new".into(),
        ttl: None,
    };
    let held = Some((Revision(2), "old".into()));
    for (name, key, expect, op, outcome) in [
        ("create a new key", "/b", Expect::Absent, put(), Ok(3)),
        (
            "create at revision zero",
            "/b",
            Expect::At(Revision(0)),
            put(),
            Ok(3),
        ),
        (
            "create over a key",
            "/a",
            Expect::Absent,
            put(),
            Err(StoreError::Exists),
        ),
        (
            "update what was seen",
            "/a",
            Expect::At(Revision(2)),
            put(),
            Ok(3),
        ),
        (
            "update another state",
            "/a",
            Expect::At(Revision(1)),
            put(),
            Err(StoreError::Conflict { current: held }),
        ),
        (
            "update nothing",
            "/b",
            Expect::At(Revision(2)),
            put(),
            Err(StoreError::NotFound),
        ),
        (
            "delete what was seen",
            "/a",
            Expect::At(Revision(2)),
            Op::Delete,
            Ok(3),
        ),
        (
            "delete nothing",
            "/b",
            Expect::At(Revision(2)),
            Op::Delete,
            Err(StoreError::NotFound),
        ),
        (
            "delete what is not",
            "/b",
            Expect::Absent,
            Op::Delete,
            Err(StoreError::NotFound),
        ),
    ] {
        let store = fresh();
        store.commit(Write::create("/a", "old")).await.unwrap();
        let answer = store
            .commit(Write {
                key: key.into(),
                expect,
                op,
                memo: None,
            })
            .await;
        assert_eq!(answer.map(|committed| committed.revision.0), outcome, "{name}");
    }
}

#[tokio::test]
async fn an_answer_says_what_was_there_before() {
    let store = fresh();
    let created = store.commit(Write::create("/a", "one")).await.unwrap();
    assert_eq!((created.created, created.previous), (created.revision, None));
    let updated = store
        .commit(Write::update("/a", created.revision, "two"))
        .await
        .unwrap();
    assert_eq!(updated.previous, Some((created.revision, "one".into())));
    let entry = store.get("/a").await.unwrap().unwrap();
    assert_eq!(
        (entry.revision, entry.created, entry.version),
        (updated.revision, created.revision, 2)
    );
    let deleted = store.commit(Write::delete("/a", updated.revision)).await.unwrap();
    assert_eq!(deleted.created, created.revision);
    assert_eq!(deleted.previous, Some((updated.revision, "two".into())));
    assert_eq!(store.get("/a").await.unwrap(), None);
}

#[tokio::test]
async fn a_value_may_be_as_large_as_the_limit_and_no_larger() {
    let store = fresh();
    let room = limits::WRITE_BYTES_MAX - "/a".len();
    store.commit(Write::create("/a", vec![1; room])).await.unwrap();
    let answer = store.commit(Write::create("/b", vec![1; room + 1])).await;
    assert_eq!(
        answer,
        Err(StoreError::TooLarge {
            size: limits::WRITE_BYTES_MAX + 1,
            limit: limits::WRITE_BYTES_MAX
        })
    );
}

#[tokio::test]
async fn pages_of_a_list_are_from_one_revision() {
    let store = fresh();
    fill(&store, 10).await;
    let first = store.range(Range::prefix("/n/").limit(4)).await.unwrap();
    assert_eq!((first.items.len(), first.remaining, first.more()), (4, 6, true));
    let gone = store.get("/n/000007").await.unwrap().unwrap();
    store
        .commit(Write::delete("/n/000007", gone.revision))
        .await
        .unwrap();
    store.commit(Write::create("/n/000007a", "later")).await.unwrap();
    let next = format!("{}\0", first.items[3].key);
    let rest = store
        .range(Range::prefix("/n/").starting_at(next).at(first.revision))
        .await
        .unwrap();
    assert_eq!((rest.revision, rest.remaining), (first.revision, 0));
    let keys: Vec<_> = rest.items.iter().map(|entry| entry.key.as_str()).collect();
    assert_eq!(
        keys,
        [
            "/n/000004",
            "/n/000005",
            "/n/000006",
            "/n/000007",
            "/n/000008",
            "/n/000009"
        ]
    );
    assert_eq!(rest.items[3], gone);
}

#[tokio::test]
async fn a_long_list_is_complete() {
    let store = fresh();
    fill(&store, 5_000).await;
    let listed = store.range(Range::prefix("/n/")).await.unwrap();
    assert_eq!((listed.items.len(), listed.remaining), (5_000, 0));
    assert!(listed.items.is_sorted_by(|a, b| a.key < b.key));
    let page = store.range(Range::prefix("/n/").limit(10)).await.unwrap();
    assert_eq!((page.items.len(), page.remaining), (10, 4_990));
    let empty = store.range(Range::prefix("/n/").starting_at("/o")).await.unwrap();
    assert_eq!(empty.items.len(), 0);
}

#[tokio::test]
async fn revisions_out_of_reach_are_refused() {
    let store = fresh();
    let future = StoreError::FutureRevision { current: Revision(1) };
    assert_eq!(
        store.range(Range::prefix("").at(Revision(2))).await,
        Err(future.clone())
    );
    assert_eq!(store.watch("", Revision(2)).map(drop), Err(future));
    assert!(store.watch("", Revision(0)).is_ok(), "from the beginning");
}

#[tokio::test]
async fn old_history_is_compacted_and_slow_watchers_are_cut_off() {
    let (disk, clock) = (Disk::new(), clock());
    let store = open(&disk, &clock);
    let mut slow = store.watch("/n/", Revision(1)).unwrap();
    fill(&store, 1_100).await;
    let unread = store.watch("/n/", Revision(1)).unwrap();
    clock.advance(limits::HISTORY_AGE_MAX + Duration::from_secs(1));
    let revision = store.commit(Write::create("/x", "")).await.unwrap().revision;
    for n in 0..8 {
        store.commit(Write::create(format!("/y/{n}"), "")).await.unwrap();
    }
    let oldest = store.stats().compacted;
    assert_eq!(store.stats().history_events, limits::HISTORY_EVENTS_MIN);
    assert_eq!(oldest.0 + limits::HISTORY_EVENTS_MIN as u64, revision.0 + 8);
    let compacted = StoreError::Compacted { oldest };
    assert_eq!(slow.next().await.unwrap().unwrap_err(), compacted);
    assert!(slow.next().await.is_none(), "it ends after its error");
    drop(unread);
    assert_eq!(
        store.watch("", Revision(oldest.0 - 1)).map(drop),
        Err(compacted.clone())
    );
    assert_eq!(
        store.range(Range::prefix("").at(Revision(oldest.0 - 1))).await,
        Err(compacted)
    );
    assert!(store.range(Range::prefix("").at(oldest)).await.is_ok());
    let kept = history(&store, "", oldest).await.len();
    drop(store);
    let store = open(&disk, &clock);
    assert_eq!(
        (store.stats().compacted, history(&store, "", oldest).await.len()),
        (oldest, kept)
    );
}

#[tokio::test]
async fn a_watch_tells_what_happened_and_hands_memos_through() {
    let store = fresh();
    let mut watch = store.watch("/a/", store.revision()).unwrap();
    assert!(poll!(watch.next().boxed()).is_pending());
    let memo = Arc::new("decoded".to_owned());
    let created = store
        .commit(Write::create("/a/x", "1").with_memo(memo.clone()))
        .await
        .unwrap();
    store.commit(Write::create("/b/x", "elsewhere")).await.unwrap();
    let deleted = store
        .commit(Write::delete("/a/x", created.revision))
        .await
        .unwrap();
    let event = watch.next().await.unwrap().unwrap();
    assert_eq!(
        (event.kind, event.revision, event.previous),
        (EventKind::Put, created.revision, None)
    );
    let handed = event.memo.unwrap().downcast::<String>().unwrap();
    assert!(Arc::ptr_eq(&handed, &memo), "the very same memo");
    let event = watch.next().await.unwrap().unwrap();
    assert_eq!(
        (event.kind, event.revision, event.value),
        (EventKind::Delete, deleted.revision, None)
    );
    assert_eq!(event.previous, Some((created.revision, "1".into())));
    assert!(event.memo.is_none());
    assert_eq!(watch.progress(), deleted.revision);
}

#[tokio::test]
async fn the_progress_of_a_watch_never_runs_ahead_of_its_events() {
    let store = fresh();
    fill(&store, 20).await;
    store.commit(Write::create("/other", "")).await.unwrap();
    let mut watch = store.watch("/n/", Revision(1)).unwrap();
    assert_eq!(watch.progress(), Revision(1));
    for revision in 2..=21 {
        assert_eq!(watch.next().await.unwrap().unwrap().revision, Revision(revision));
        assert!(watch.progress() >= Revision(revision));
        assert!(revision == 21 || watch.progress() == Revision(revision));
    }
    assert!(matches!(poll!(watch.next().boxed()), Poll::Pending));
    assert_eq!(
        watch.progress(),
        Revision(22),
        "other keys count once they have been looked at"
    );
}

#[tokio::test]
async fn a_key_leaves_when_its_time_is_over() {
    let (disk, clock) = (Disk::new(), clock());
    let store = open(&disk, &clock);
    let minute = Duration::from_secs(60);
    for (key, ttl) in [("/short", minute), ("/long", 10 * minute), ("/renewed", minute)] {
        store.commit(Write::create(key, "x").with_ttl(ttl)).await.unwrap();
    }
    store
        .commit(Write::create("/kept", "x").with_ttl(minute))
        .await
        .unwrap();
    store
        .commit(Write::update("/renewed", Revision(4), "y").with_ttl(5 * minute))
        .await
        .unwrap();
    store
        .commit(Write::update("/kept", Revision(5), "y"))
        .await
        .unwrap();
    let mut watch = store.watch("", store.revision()).unwrap();
    clock.advance(2 * minute);
    let event = watch.next().await.unwrap().unwrap();
    assert_eq!(
        (event.key.as_str(), event.kind, event.revision),
        ("/short", EventKind::Delete, Revision(8))
    );
    drop(store);

    let store = open(&disk, &clock);
    let mut watch = store.watch("", store.revision()).unwrap();
    clock.advance(20 * minute);
    let mut gone = Vec::new();
    for _ in 0..2 {
        gone.push(watch.next().await.unwrap().unwrap().key.to_string());
    }
    assert_eq!(
        gone,
        ["/renewed", "/long"],
        "also after a restart, in the order of their times"
    );
    assert!(
        store.get("/kept").await.unwrap().is_some(),
        "an update without a time takes it away"
    );
}

#[tokio::test]
async fn a_closed_store_ends_watches_and_refuses_writes_but_can_be_read() {
    let store = fresh();
    store.commit(Write::create("/a", "1")).await.unwrap();
    let mut watch = store.watch("", Revision(1)).unwrap();
    store.close();
    store.close();
    assert_eq!(
        watch.next().await.unwrap().unwrap().revision,
        Revision(2),
        "what happened is still told"
    );
    assert!(matches!(
        watch.next().await,
        Some(Err(StoreError::Unavailable { .. }))
    ));
    assert!(watch.next().await.is_none());
    let refused = store.commit(Write::create("/b", "1")).await;
    assert!(matches!(refused, Err(StoreError::Unavailable { .. })));
    assert!(matches!(store.health(), Health::ReadOnly { .. }));
    assert!(store.get("/a").await.unwrap().is_some());
}

#[tokio::test]
async fn a_write_nobody_waits_for_still_happens_once() {
    let store = fresh();
    let mut abandoned = store.commit(Write::create("/a", "1"));
    let answered = poll!(&mut abandoned).is_ready();
    drop(abandoned);
    let after = store.commit(Write::create("/b", "1")).await.unwrap();
    assert_eq!(after.revision, Revision(3), "{answered}");
    let listed = store.range(Range::prefix("")).await.unwrap();
    assert_eq!(listed.items.len(), 2);
    let events: Vec<_> = history(&store, "", Revision(1)).await;
    assert_eq!(futures_util::stream::iter(events).count().await, 2);
}
