//! The ConfigMaps and Secrets that pods of this node refer to: one watch each, all on one connection.
//!
//! A reference starts a watch, the last one gone ends it. While the API cannot be reached the last value stands.

mod held;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use hotmap_client::{
    Client, ClientListWatch, FollowEvent, Follower, FollowerConfig, RawObject, ResourcePath,
};
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tracing::{debug, info, warn};

pub(crate) use held::{Heard, Held};

use crate::{
    environment::Known,
    metrics::Metrics,
    references::{ObjectKind, ObjectRef},
};

/// Told of every change right after it is known: the object, and the uids of the pods that refer to it.
///
/// Runs on the task of the watch, so it only queues.
pub(crate) type OnChange = Arc<dyn Fn(&ObjectRef, &[String]) + Send + Sync>;

/// The objects that are followed.
pub(crate) struct ObjectCache {
    client: Client,
    on_change: OnChange,
    /// A fault: changes that a watch brings are not taken.
    hold_watches: bool,
    metrics: Metrics,
    followed: Mutex<BTreeMap<ObjectRef, Followed>>,
}

struct Followed {
    pods: BTreeSet<String>,
    known: Known,
    /// Counts what was learned, so that an answer asked for before can be told from news.
    learned: u64,
    task: AbortHandle,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ObjectCache {
    pub(crate) fn new(
        client: Client,
        on_change: OnChange,
        hold_watches: bool,
        metrics: Metrics,
    ) -> Arc<Self> {
        Arc::new(Self {
            client,
            on_change,
            hold_watches,
            metrics,
            followed: Mutex::default(),
        })
    }

    /// Follows what a pod refers to now, and lets go of what it no longer does; an empty set forgets the pod.
    pub(crate) fn set_references(self: &Arc<Self>, pod_uid: &str, references: &BTreeSet<ObjectRef>) {
        let mut followed = self.followed.lock();
        followed.retain(|reference, entry| {
            if !references.contains(reference) {
                entry.pods.remove(pod_uid);
            }
            !entry.pods.is_empty()
        });
        for reference in references {
            let entry = followed.entry(reference.clone()).or_insert_with(|| Followed {
                pods: BTreeSet::new(),
                known: Known::Unknown,
                learned: 0,
                task: tokio::spawn(Arc::clone(self).follow(reference.clone())).abort_handle(),
            });
            entry.pods.insert(pod_uid.to_owned());
        }
        self.metrics.set_followed_objects(followed.len());
    }

    /// Lets go of everything: the node ends.
    pub(crate) fn end(&self) {
        // Dropped after the lock: each drop ends a watch.
        let followed = std::mem::take(&mut *self.followed.lock());
        drop(followed);
    }

    /// What is known of an object now; one that nobody follows is unknown.
    pub(crate) fn get(&self, reference: &ObjectRef) -> Known {
        self.followed
            .lock()
            .get(reference)
            .map_or(Known::Unknown, |entry| entry.known.clone())
    }

    /// Reads these objects anew, beside their watches.
    pub(crate) fn refresh(self: &Arc<Self>, references: &BTreeSet<ObjectRef>) {
        for reference in references.iter().cloned() {
            let cache = Arc::clone(self);
            let Some(asked_at) = self.learned(&reference) else {
                continue;
            };
            tokio::spawn(async move {
                match cache
                    .client
                    .get(&reference.collection().name(reference.name.as_str()))
                    .await
                {
                    Ok(object) => cache.learn(&reference, Some(&object), Some(asked_at)),
                    Err(error) if error.is_not_found() => cache.learn(&reference, None, Some(asked_at)),
                    Err(error) => {
                        let (namespace, name) = (&reference.namespace, &reference.name);
                        debug!(kind = reference.kind.name(), %namespace, %name, %error, "object not read, the last value stands");
                    }
                }
            });
        }
    }

    async fn follow(self: Arc<Self>, reference: ObjectRef) {
        let source = ClientListWatch::new(self.client.clone(), reference.collection())
            .with_field_selector(format!("metadata.name={}", reference.name))
            .with_commit_time();
        let mut follower = Follower::new(source, FollowerConfig::NODE);
        // A failure is told at every try; one line about it is enough.
        let mut is_interrupted = false;
        loop {
            match follower.next().await {
                FollowEvent::Initial(objects) => self.learn(&reference, objects.first(), None),
                FollowEvent::Applied(_) | FollowEvent::Deleted(_) if self.hold_watches => {}
                FollowEvent::Applied(object) => self.learn(&reference, Some(&object), None),
                FollowEvent::Deleted(_) => self.learn(&reference, None, None),
                FollowEvent::Interrupted(error) => {
                    if std::mem::replace(&mut is_interrupted, true) {
                        continue;
                    }
                    let (namespace, name) = (&reference.namespace, &reference.name);
                    warn!(kind = reference.kind.name(), %namespace, %name, %error, "watch interrupted, the last value stands");
                }
                FollowEvent::Resumed => {
                    is_interrupted = false;
                    let (namespace, name) = (&reference.namespace, &reference.name);
                    info!(kind = reference.kind.name(), %namespace, %name, "watch resumed");
                }
            }
        }
    }

    fn learned(&self, reference: &ObjectRef) -> Option<u64> {
        self.followed.lock().get(reference).map(|entry| entry.learned)
    }

    /// `asked_at`: this is an answer to a question put when so much was known. If the watch has spoken since, its word stands:
    /// whether an object is there cannot be put in order by revision.
    fn learn(&self, reference: &ObjectRef, object: Option<&RawObject>, asked_at: Option<u64>) {
        let known = match object
            .map(|object| Held::parse(reference.kind, object.json(), Heard::now(object.committed())))
        {
            None => Known::Missing,
            Some(Ok(held)) => {
                debug!(kind = reference.kind.name(), namespace = %reference.namespace, name = %reference.name,
                    resource_version = held.resource_version(), "object changed");
                Known::Present(Arc::new(held))
            }
            Some(Err(error)) => {
                // The last good content stays: an answer nobody can read is no reason to take it away.
                warn!(kind = reference.kind.name(), namespace = %reference.namespace, name = %reference.name, %error,
                    "object cannot be read, the last value stands");
                return;
            }
        };
        let pods = {
            let mut followed = self.followed.lock();
            let Some(entry) = followed.get_mut(reference) else {
                return;
            };
            let is_overtaken = asked_at.is_some_and(|asked_at| asked_at != entry.learned);
            if is_overtaken || known.is_older_than(&entry.known) {
                return;
            }
            entry.known = known;
            entry.learned += 1;
            Vec::from_iter(entry.pods.iter().cloned())
        };
        (self.on_change)(reference, &pods);
    }
}

impl ObjectRef {
    fn collection(&self) -> ResourcePath {
        ResourcePath::new("", "v1", self.kind.plural()).in_namespace(self.namespace.as_str())
    }
}

impl Known {
    /// Whether this is an earlier state of the same object than `held`: a watch and a read may cross.
    fn is_older_than(&self, held: &Known) -> bool {
        match (self, held) {
            (Known::Present(new), Known::Present(held)) => new.is_older_than(held),
            _ => false,
        }
    }
}

/// How the kubelet says that an object is not there.
pub(crate) fn not_found(kind: ObjectKind, name: &str) -> String {
    format!("{} {name:?} not found", kind.singular())
}

/// How the kubelet says that nothing has been heard of an object.
pub(crate) fn not_synced(kind: ObjectKind) -> String {
    format!(
        "failed to sync {} cache: timed out waiting for the condition",
        kind.singular()
    )
}
