//! The first look at the store: every object, decoded on two threads, and the history that leads there.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use hotmap_object::{Object, Revision};
use hotmap_store::{Entry, Event, EventKind, Range, StoreError, Watch};
use tokio::time::Instant;
use tracing::error;

use super::{
    Cache, CachedEvent, decode,
    event::Stored,
    feed::{History, ROOT},
};

type Objects = BTreeMap<Arc<str>, Arc<Object>>;

/// Entries handed to one thread at least; less is not worth a thread.
const ENTRIES_PER_THREAD_MIN: usize = 256;

/// Fills the cache. The watch goes on where the cache stands then.
pub(super) async fn load(cache: &Arc<Cache>) -> Result<(Watch, History), StoreError> {
    let listed = cache.store().range(Range::prefix(ROOT)).await?;
    let (mut watch, floor) = oldest_watch(cache, listed.revision)?;
    let entries = listed.items;
    let decoding = {
        let cache = cache.clone();
        tokio::task::spawn_blocking(move || decode_all(&cache, &entries))
    };
    let objects = decoding.await.map_err(|error| StoreError::Unavailable {
        reason: format!("decoding what is stored has failed: {error}"),
    })?;
    let events = read_history(&mut watch, listed.revision).await?;
    let mut past: Vec<Vec<CachedEvent>> = histories(cache, &objects, events);
    let since = Instant::now();
    let mut retained = Vec::new();
    for (at, (resource, objects)) in cache.resources().iter().zip(objects).enumerate() {
        let mut known = objects.iter().map(|(key, object)| (&**key, &**object));
        cache.observer().reset(resource.resource(), &mut known);
        let sizes = resource.reset(objects, std::mem::take(&mut past[at]), floor, listed.revision);
        retained.extend(sizes.into_iter().map(|(revision, bytes)| (revision, at, bytes)));
    }
    retained.sort_unstable();
    let mut history = History::default();
    for (revision, resource, bytes) in retained {
        history.push(resource, revision, bytes, since);
    }
    cache.publish(listed.revision);
    Ok((watch, history))
}

/// A watch from as far back as the store remembers.
fn oldest_watch(cache: &Cache, now: Revision) -> Result<(Watch, Revision), StoreError> {
    let mut after = Revision::ZERO.next();
    loop {
        match cache.store().watch(ROOT, after.min(now)) {
            Ok(watch) => return Ok((watch, after.min(now))),
            // The history moves on while we ask; each answer is further ahead than the last.
            Err(StoreError::Compacted { oldest }) if oldest > after => after = oldest,
            Err(error) => return Err(error),
        }
    }
}

/// Reads what has happened up to and including `until`. Later events stay in the watch.
async fn read_history(watch: &mut Watch, until: Revision) -> Result<Vec<Event>, StoreError> {
    use futures_util::StreamExt;
    let mut events = Vec::new();
    // Everything up to `until` is there already: the first pause beyond it is the end.
    loop {
        let next = std::future::poll_fn(|context| match watch.poll_next_unpin(context) {
            std::task::Poll::Pending if watch.progress() >= until => std::task::Poll::Ready(None),
            polled => polled,
        });
        match next.await {
            None => return Ok(events),
            Some(Ok(event)) => {
                let is_last = event.revision >= until;
                events.push(event);
                if is_last {
                    return Ok(events);
                }
            }
            Some(Err(error)) => return Err(error),
        }
    }
}

fn decode_all(cache: &Cache, entries: &[Entry]) -> Vec<Objects> {
    let half = entries.len().div_ceil(2).max(ENTRIES_PER_THREAD_MIN);
    let parts: Vec<Vec<Objects>> = std::thread::scope(|scope| {
        let threads: Vec<_> = entries
            .chunks(half)
            .map(|part| scope.spawn(move || decode_part(cache, part)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().expect("decoding does not panic"))
            .collect()
    });
    let mut all: Vec<Objects> = cache.resources().iter().map(|_| Objects::new()).collect();
    for part in parts {
        for (objects, mut more) in all.iter_mut().zip(part) {
            objects.append(&mut more);
        }
    }
    all
}

fn decode_part(cache: &Cache, entries: &[Entry]) -> Vec<Objects> {
    let mut all: Vec<Vec<(Arc<str>, Arc<Object>)>> = cache.resources().iter().map(|_| Vec::new()).collect();
    for entry in entries {
        let Some((resource, key)) = cache.locate(&entry.key) else {
            continue;
        };
        match decode::object(
            cache.resources()[resource].resource(),
            &entry.value,
            None,
            entry.revision,
        ) {
            Ok(object) => all[resource].push((key.into(), object)),
            Err(error) => error!(key = %entry.key, %error, "a stored value is no object and is not shown"),
        }
    }
    // Sorted input: the maps are built in one go.
    all.into_iter()
        .map(|objects| objects.into_iter().collect())
        .collect()
}

/// The changes that led to `objects`, per resource. States that the changes share are decoded once.
fn histories(cache: &Cache, objects: &[Objects], events: Vec<Event>) -> Vec<Vec<CachedEvent>> {
    let mut past: Vec<Vec<CachedEvent>> = cache.resources().iter().map(|_| Vec::new()).collect();
    let mut latest: HashMap<(usize, String), Arc<Object>> = HashMap::new();
    for event in events {
        let Some((at, key)) = cache.locate(&event.key) else {
            continue;
        };
        let resource = cache.resources()[at].resource();
        let held = latest.remove(&(at, key.to_owned()));
        let previous = event.previous.as_ref().and_then(|(revision, value)| match held {
            Some(held) if held.revision() == *revision => Some(held),
            _ => decode::past(resource, key, value, *revision),
        });
        let current = objects[at]
            .get(key)
            .filter(|object| object.revision() == event.revision);
        let object = match (event.kind, &event.value, current) {
            (EventKind::Put, _, Some(current)) => Some(current.clone()),
            (EventKind::Put, Some(value), None) => decode::past(resource, key, value, event.revision),
            _ => None,
        };
        if object.is_none() && previous.is_none() {
            continue;
        }
        if let Some(object) = &object {
            latest.insert((at, key.to_owned()), object.clone());
        }
        let stored = Stored {
            object: event.value,
            previous: event.previous,
        };
        past[at].push(CachedEvent::cold(resource, event.revision, key.into(), stored));
    }
    past
}
