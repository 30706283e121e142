use std::collections::BTreeMap;
use std::time::SystemTime;

use bytes::Bytes;
use hotmap_object::{Draft, Object};
use hotmap_schema::encode_object;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::event::Stored;
use super::resource_cache::Change;
use super::*;

fn config_maps() -> &'static Resource {
    stored_resources()
        .into_iter()
        .find(|resource| resource.plural == "configmaps")
        .expect("it is served")
}

/// What a store would tell of puts (with the content) and deletes, one revision each.
fn changes(history: &[(u8, Option<u8>)]) -> Vec<Change> {
    let mut held: BTreeMap<u8, (Revision, Bytes)> = BTreeMap::new();
    let mut changes = Vec::new();
    let mut revision = Revision::ZERO.next();
    for (name, content) in history {
        let previous = match content {
            None if !held.contains_key(name) => continue,
            _ => held.remove(name),
        };
        revision = revision.next();
        let key = format!("default/c-{name}");
        let written = content.map(|content| {
            let metadata = json!({"name": format!("c-{name}"), "namespace": "default", "labels": {"content": content.to_string()}});
            let Value::Object(object) =
                json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata, "data": {"k": "v"}})
            else {
                unreachable!("braces make an object");
            };
            let draft = Draft::new(&object, config_maps().strategy.field_values(&object));
            let value: Bytes = encode_object(config_maps().schema, &Value::Object(object))
                .expect("canonical")
                .into();
            held.insert(*name, (revision, value.clone()));
            (Arc::new(draft.at(revision)), value)
        });
        let (object, value) = written.unzip();
        changes.push(Change {
            revision,
            key: key.into(),
            object,
            stored: Stored {
                object: value,
                previous,
            },
            trace: None,
        });
    }
    changes
}

fn cache_after(history: &[(u8, Option<u8>)]) -> (Arc<ResourceCache>, Vec<Revision>) {
    let cache = Arc::new(ResourceCache::new(config_maps()));
    let applied = cache.apply(changes(history), SystemTime::UNIX_EPOCH, &mut Vec::new());
    (cache, applied.into_iter().map(|(revision, _)| revision).collect())
}

fn events(cache: &Arc<ResourceCache>) -> Vec<Arc<CachedEvent>> {
    let mut events = Vec::new();
    cache
        .subscribe(None, Revision::ZERO.next())
        .and_then(|mut all| all.read(usize::MAX, &mut events))
        .expect("nothing is gone");
    events
}

/// The JSON that is shown, revision included.
fn shown(object: Option<Arc<Object>>) -> Option<Bytes> {
    object.map(|object| object.json().clone())
}

fn everything(matches: &(dyn Fn(&hotmap_object::ObjectIndex) -> bool + Sync)) -> Selection<'_> {
    Selection {
        start: "",
        prefix: "default/",
        key: None,
        limit: None,
        matches,
    }
}

proptest! {
    /// Whether a change is warm or cold is nothing that a client can see.
    #[test]
    fn cold_events_tell_what_they_told_when_they_were_warm(
        history in proptest::collection::vec((0..5u8, proptest::option::weighted(0.7, 0..3u8)), 1..40),
        cold in 0..40usize,
    ) {
        let (warm, revisions) = cache_after(&history);
        let (cooled, _) = cache_after(&history);
        revisions.iter().take(cold).for_each(|revision| cooled.cool(*revision));
        for (warm, cold) in events(&warm).iter().zip(events(&cooled)) {
            prop_assert_eq!(warm.revision, cold.revision);
            prop_assert_eq!(shown(warm.states().object), shown(cold.states().object));
            prop_assert_eq!(shown(warm.states().previous), shown(cold.states().previous));
            prop_assert_eq!(shown(warm.object()), shown(cold.object()));
            prop_assert_eq!(shown(warm.previous()), shown(cold.previous()));
            prop_assert_eq!(shown(warm.farewell()), shown(cold.farewell()));
            let (now, then) = (warm.object(), cold.object());
            prop_assert_eq!(now.as_ref().map(|now| now.index()), then.as_ref().map(|then| then.index()));
        }
        let is_first = |index: &hotmap_object::ObjectIndex| index.label("content") == Some("1");
        for matches in [&(|_: &hotmap_object::ObjectIndex| true) as &(dyn Fn(&_) -> bool + Sync), &is_first] {
            for revision in &revisions {
                let list = |cache: &ResourceCache| {
                    let page = cache.list_at(&everything(matches), *revision).expect("nothing is gone");
                    page.items.into_iter().map(|object| object.json().clone()).collect::<Vec<_>>()
                };
                prop_assert_eq!(list(&warm), list(&cooled), "at {}", revision);
            }
        }
    }
}

#[test]
fn a_cold_event_holds_no_more_than_the_store_does() {
    let (cache, revisions) = cache_after(&[(0, Some(1)), (0, Some(2)), (0, None)]);
    let event = events(&cache).swap_remove(1);
    let previous = Arc::downgrade(&event.previous().expect("it was there"));
    assert!(previous.upgrade().is_some(), "warm events share their objects");
    revisions.iter().for_each(|revision| cache.cool(*revision));
    assert!(previous.upgrade().is_none());
    assert_eq!(
        shown(event.previous()),
        shown(events(&cache)[0].object()),
        "it is decoded from the stored form"
    );
}

#[tokio::test]
async fn an_event_is_cold_after_a_while() {
    struct Nobody;
    impl Observer for Nobody {
        fn reset(&self, _: &Resource, _: &mut dyn Iterator<Item = (&str, &Object)>) {}
        fn changed(&self, _: &Resource, _: &str, _: Option<&Object>) {}
    }
    let directory = tempfile::tempdir().expect("there is space");
    let store = hotmap_store::Embedded::open(directory.path(), Arc::new(hotmap_store::SystemClock));
    let store = Arc::new(store.expect("it is new"));
    let (cache, feed) = Cache::load(store.clone(), HistoryLimits::default(), Arc::new(Nobody))
        .await
        .expect("it is empty");
    let following = tokio::spawn(feed.run());
    let written = changes(&[(0, Some(1)), (1, Some(1))]);
    let mut seen = Vec::new();
    for change in written {
        let write = hotmap_store::Write {
            key: format!("{}{}", config_maps().prefix, change.key).into(),
            expect: hotmap_store::Expect::Absent,
            op: hotmap_store::Op::Put {
                value: change.stored.object.expect("it is a put"),
                ttl: None,
            },
            memo: None,
        };
        let committed = store.commit(write).await.expect("nobody else writes");
        cache.wait_for(committed.revision).await.expect("it is followed");
        let held = cache.of(config_maps()).expect("it is stored");
        let event = events(held).pop().expect("it was just written");
        seen.push((Arc::as_ptr(&event.object().expect("a put")), event));
        tokio::time::pause();
        tokio::time::advance(feed::WARM_AGE_MAX + Duration::from_secs(1)).await;
        tokio::time::resume();
    }
    let is_shared = |(object, event): &(*const Object, Arc<CachedEvent>)| {
        event.object().is_some_and(|now| Arc::as_ptr(&now) == *object)
    };
    assert!(!is_shared(&seen[0]), "it is decoded anew for each reader");
    assert!(is_shared(&seen[1]), "nothing has happened since");
    following.abort();
}
