//! The server's objects for whoever lives in the same process: the very objects of the cache, without a connection.
//!
//! It is for parts of the control plane that may see everything; there is no authorization here.

use std::{collections::VecDeque, pin::Pin, sync::Arc};

use hotmap_object::{Object, Revision, Status};
use tokio::sync::futures::OwnedNotified;

use crate::cache::{Cache, CachedEvent, Lagged, Selection, States, Subscription};

/// Changes taken from the cache under one hold of its lock.
const CHANGES_PER_STEP: usize = 64;

/// Lists and follows what the server holds; cloning is cheap.
#[derive(Clone)]
pub struct LocalObjects {
    cache: Arc<Cache>,
}

/// One change of one object.
#[derive(Debug, Clone)]
pub enum LocalChange {
    /// It is new.
    Added(Arc<Object>),
    /// It changed.
    Modified(Arc<Object>),
    /// It is gone: its last state, with the revision of the deletion.
    Deleted(Arc<Object>),
}

/// The changes of one resource after a revision, in order and without a gap.
pub struct LocalChanges {
    subscription: Subscription,
    /// Registered before the lane is read, so that no wake-up is lost.
    notified: Pin<Box<OwnedNotified>>,
    ready: VecDeque<Arc<CachedEvent>>,
}

impl LocalObjects {
    pub(crate) fn new(cache: Arc<Cache>) -> Self {
        Self { cache }
    }

    /// All objects of a resource as of one revision, which is at least that of the last answered write.
    ///
    /// # Errors
    ///
    /// 404 for a resource that is not stored, 504 if the cache does not catch up in time.
    pub async fn list(&self, group: &str, plural: &str) -> Result<(Vec<Arc<Object>>, Revision), Status> {
        let applied = self.cache.fresh().await?;
        let cache = self.resource(group, plural)?;
        let selection = Selection {
            start: "",
            prefix: "",
            key: None,
            limit: None,
            matches: &|_| true,
        };
        let page = cache.list(&selection, applied);
        Ok((page.items, page.revision))
    }

    /// Follows a resource from behind `since`.
    ///
    /// # Errors
    ///
    /// 404 for a resource that is not stored, 410 if changes since then are gone.
    pub fn changes(&self, group: &str, plural: &str, since: Revision) -> Result<LocalChanges, Status> {
        let subscription = self
            .resource(group, plural)?
            .subscribe(None, since)
            .map_err(expired)?;
        Ok(LocalChanges {
            notified: Box::pin(subscription.changed().clone().notified_owned()),
            subscription,
            ready: VecDeque::new(),
        })
    }

    fn resource(&self, group: &str, plural: &str) -> Result<&Arc<crate::cache::ResourceCache>, Status> {
        let resource = hotmap_kinds::resources()
            .iter()
            .find(|one| one.group == group && one.plural == plural);
        let cache = resource.and_then(|resource| self.cache.of(resource));
        cache.ok_or_else(|| {
            Status::new(
                404,
                "NotFound",
                format!("no {plural} of group {group:?} are stored"),
            )
        })
    }
}

impl LocalChanges {
    /// The next change. Dropping the future loses nothing.
    ///
    /// # Errors
    ///
    /// 410 for a reader so slow that changes went by; it must list again.
    pub async fn next(&mut self) -> Result<LocalChange, Status> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(change(&event));
            }
            self.notified.as_mut().enable();
            let mut events = Vec::new();
            self.subscription
                .read(CHANGES_PER_STEP, &mut events)
                .map_err(expired)?;
            self.ready.extend(events);
            if self.ready.is_empty() {
                self.notified.as_mut().await;
                self.notified = Box::pin(self.subscription.changed().clone().notified_owned());
            }
        }
    }
}

fn change(event: &CachedEvent) -> LocalChange {
    let States { object, previous } = event.states();
    match (object, previous) {
        (Some(object), None) => LocalChange::Added(object),
        (Some(object), Some(_)) => LocalChange::Modified(object),
        (None, _) => LocalChange::Deleted(
            event
                .farewell()
                .expect("what is gone was there before: the cache tells nothing else"),
        ),
    }
}

fn expired(lagged: Lagged) -> Status {
    Status::expired(format!("changes up to {} are gone", lagged.oldest))
}
