//! The embedded engine against its contract, on a storage that fails on purpose.

#![allow(clippy::unwrap_used, reason = "tests")]

mod behaviour;
mod concurrency;
mod crash;
mod disk;
mod files;
mod full_disk;
mod model;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use hotmap_store::{Embedded, Event, ManualClock, Revision, Store};

use disk::Disk;

/// The time at which every test begins.
pub(crate) fn clock() -> Arc<ManualClock> {
    Arc::new(ManualClock::new(
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000),
    ))
}

pub(crate) fn open(disk: &Disk, clock: &Arc<ManualClock>) -> Embedded {
    Embedded::open_with(disk.clone(), Arc::clone(clock) as _).unwrap()
}

/// The changes under `prefix` after a revision, up to the current one.
pub(crate) async fn history(store: &Embedded, prefix: &str, after: Revision) -> Vec<Event> {
    let mut watch = store.watch(prefix, after).unwrap();
    let mut events = Vec::new();
    let now = store.revision();
    // A watch that has nothing more to say is pending: then its progress tells that it has said everything.
    while watch.progress() < now {
        let next = std::future::poll_fn(|context| {
            std::task::Poll::Ready(futures_util::StreamExt::poll_next_unpin(&mut watch, context))
        });
        if let std::task::Poll::Ready(event) = next.await {
            events.push(event.unwrap().unwrap());
        }
    }
    events
}
