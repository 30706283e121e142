//! What the store holds, decoded and in memory: the truth that every read, list and watch is answered from.
//!
//! ```text
//!   Store::watch("/registry/") ──feed──▶ ResourceCache (one per key prefix)
//!                                           │ objects: key → Arc<Object>
//!                                           │ ring:    the last minutes of changes, with what each replaced
//!                                           ├──▶ get, list (now, or at a revision the ring still reaches)
//!                                           └──▶ watchers: a cursor into the ring, woken together
//! ```
//!
//! A revision is published only after every change up to it has been applied, so what waits for a revision reads it.

mod decode;
mod event;
mod feed;
mod lane;
mod load;
mod resource_cache;

use std::{sync::Arc, time::Duration};

use hotmap_kinds::Resource;
use hotmap_object::{Object, Revision, Status};
use hotmap_store::{Store, StoreError};
use tokio::sync::watch;

pub(crate) use decode::Prepared;
pub(crate) use event::{CachedEvent, EventType, FrameKey, IncludeObject, States};
pub(crate) use feed::Feed;
pub(crate) use lane::{Lagged, Subscription};
pub(crate) use resource_cache::{Page, ResourceCache, Selection};

/// How long a read waits for a revision that the cache has not seen yet; upstream's cacher waits as long.
const FRESHNESS_WAIT_MAX: Duration = Duration::from_secs(3);

/// How much of the past stays readable and watchable; as long as the store itself keeps it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HistoryLimits {
    /// Changes older than this may go.
    pub(crate) age_max: Duration,
    /// The oldest changes go when all rings together hold more.
    pub(crate) bytes_max: usize,
    /// Changes that stay in spite of both limits above.
    pub(crate) events_min: usize,
    /// Never exceeded.
    pub(crate) bytes_hard_max: usize,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        use hotmap_store::limits;
        Self {
            age_max: limits::HISTORY_AGE_MAX,
            bytes_max: limits::HISTORY_BYTES_MAX,
            events_min: limits::HISTORY_EVENTS_MIN,
            bytes_hard_max: limits::HISTORY_BYTES_HARD_MAX,
        }
    }
}

/// Is told of every change before its revision is published, so that what waits for a revision finds it known here.
pub(crate) trait Observer: Send + Sync {
    /// These are all objects of a resource, whatever was told before; `key` is without the resource's prefix.
    fn reset(&self, resource: &Resource, objects: &mut dyn Iterator<Item = (&str, &Object)>);

    /// An object is as it is now; `None` if it is gone.
    fn changed(&self, resource: &Resource, key: &str, object: Option<&Object>);
}

/// The caches of all stored resources, fed by one watch.
pub(crate) struct Cache {
    resources: Vec<Arc<ResourceCache>>,
    observer: Arc<dyn Observer>,
    applied: watch::Sender<Revision>,
    store: Arc<dyn Store>,
}

impl Cache {
    /// Reads everything and the history that leads there. The feed must be run for the cache to move on.
    ///
    /// # Errors
    ///
    /// What the store answers when it cannot be read.
    pub(crate) async fn load(
        store: Arc<dyn Store>,
        limits: HistoryLimits,
        observer: Arc<dyn Observer>,
    ) -> Result<(Arc<Self>, Feed), StoreError> {
        let (applied, _) = watch::channel(Revision::ZERO);
        let cache = Arc::new(Self {
            resources: stored_resources()
                .into_iter()
                .map(ResourceCache::new)
                .map(Arc::new)
                .collect(),
            observer,
            applied,
            store,
        });
        let feed = Feed::start(cache.clone(), limits).await?;
        Ok((cache, feed))
    }

    /// The cache that holds a resource's objects, in their stored shape.
    pub(crate) fn of(&self, resource: &Resource) -> Option<&Arc<ResourceCache>> {
        self.resources
            .iter()
            .find(|held| held.prefix() == resource.prefix)
    }

    /// Every change up to this revision is applied.
    pub(crate) fn revision(&self) -> Revision {
        *self.applied.borrow()
    }

    /// Waits until the cache shows everything that is durable now.
    ///
    /// # Errors
    ///
    /// 504 if it does not get there in time.
    pub(crate) async fn fresh(&self) -> Result<Revision, Status> {
        self.wait_for(self.store.revision()).await
    }

    /// Waits until the cache shows `revision`.
    ///
    /// # Errors
    ///
    /// 504 for a revision that does not come within [`FRESHNESS_WAIT_MAX`].
    pub(crate) async fn wait_for(&self, revision: Revision) -> Result<Revision, Status> {
        let now = self.revision();
        if now >= revision {
            return Ok(now);
        }
        let mut applied = self.applied.subscribe();
        let reached = tokio::time::timeout(FRESHNESS_WAIT_MAX, applied.wait_for(|at| *at >= revision)).await;
        match reached {
            Ok(Ok(at)) => Ok(*at),
            _ => Err(Status::future_revision(revision, self.revision())),
        }
    }

    fn store(&self) -> &dyn Store {
        &*self.store
    }

    fn observer(&self) -> &dyn Observer {
        &*self.observer
    }

    fn resources(&self) -> &[Arc<ResourceCache>] {
        &self.resources
    }

    /// The resource of a store key, and the key without the resource's prefix.
    fn locate<'k>(&self, key: &'k str) -> Option<(usize, &'k str)> {
        let mut held = self.resources.iter().enumerate();
        held.find_map(|(at, resource)| Some((at, key.strip_prefix(resource.prefix())?)))
    }

    fn publish(&self, revision: Revision) {
        self.applied.send_if_modified(|applied| {
            let moves = revision > *applied;
            *applied = revision.max(*applied);
            moves
        });
    }
}

/// One resource per key prefix: the one whose shape is stored. Where two groups share a prefix that is the core group's.
fn stored_resources() -> Vec<&'static Resource> {
    let mut stored: Vec<&'static Resource> = Vec::new();
    for resource in hotmap_kinds::resources()
        .iter()
        .filter(|one| !one.prefix.is_empty())
    {
        match stored.iter_mut().find(|held| held.prefix == resource.prefix) {
            None => stored.push(resource),
            Some(held) if resource.group.is_empty() => *held = resource,
            Some(_) => {}
        }
    }
    stored
}

#[cfg(test)]
mod tests;
