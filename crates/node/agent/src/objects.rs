//! The ConfigMaps and Secrets that pods of this node refer to: followed, or asked for, each once however many pods there are.
//!
//! ```text
//!   references of pods ──▶ entries ◀── told ──── watches: one for the node, or one per object
//!                            │     ◀── answered ─ reads: the first one, looks of Cache and Get, the net
//!                            ▼
//!                       on_change: volumes, containers that wait
//! ```
//!
//! A reference begins to follow, the last one gone ends it. While the API cannot be reached the last value stands.

mod detection;
mod entry;
mod follow;
mod held;
mod resync;
mod server_kind;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, stream};
use hotmap_client::{Backoff, Client, RawObject, ResourcePath};
use hyper::Method;
use parking_lot::Mutex;
use tokio::{runtime::Handle, sync::Semaphore, task::AbortHandle, time::Instant};
use tracing::{debug, warn};

pub use detection::{ChangeDetection, UnknownChangeDetection};
pub(crate) use detection::{random_fraction, sync_period};
use entry::{Entry, News, Read, Ticket};
pub(crate) use held::{Heard, Held};
pub(crate) use server_kind::{ServerKind, probe};

use crate::{
    environment::{Known, Wording},
    metrics::Metrics,
    references::{ObjectKind, ObjectRef},
};

/// How long what was read is fresh where the Node does not say (`pkg/kubelet/configmap`, Kubernetes 1.36).
const TTL_DEFAULT: Duration = Duration::from_secs(60);
/// So many objects are asked for at once: enough to hide the way there, few enough that watches and reads together find room
/// on one connection, also when a node with many pods starts.
const READS_AT_ONCE: usize = 16;
/// Pauses between tries of the first read of an object, without which a pod does not start.
const FIRST_READ_RETRY_MIN: Duration = Duration::from_millis(50);
const FIRST_READ_RETRY_MAX: Duration = Duration::from_secs(2);

/// Told of every change right after it is known: the object, and the uids of the pods that refer to it.
///
/// Runs on the task of the watch, so it only queues.
pub(crate) type OnChange = Arc<dyn Fn(&ObjectRef, &[String]) + Send + Sync>;

/// How objects are followed.
#[derive(Debug, Clone)]
pub(crate) struct Following {
    pub(crate) node_name: String,
    pub(crate) detection: ChangeDetection,
    /// The net is cast so often, or up to half as often again as chance has it.
    pub(crate) sync_frequency: Duration,
    pub(crate) server: ServerKind,
    /// A fault: one watch per object, although the server has one for the node.
    pub(crate) avoid_node_selector: bool,
    /// A fault: changes that a watch brings are not taken.
    pub(crate) hold_watches: bool,
}

/// The objects that are followed.
pub(crate) struct ObjectCache {
    client: Client,
    on_change: OnChange,
    following: Following,
    /// For who asks from a thread of its own.
    runtime: Handle,
    ttl_ms: AtomicU64,
    metrics: Metrics,
    /// The right to ask: [`READS_AT_ONCE`] of them.
    reads: Semaphore,
    followed: Mutex<BTreeMap<ObjectRef, Followed>>,
    /// The watches of the node, and the net.
    tasks: Mutex<Vec<Task>>,
}

struct Followed {
    entry: Entry,
    /// Its own watch, where it has one.
    watch: Option<Task>,
}

/// A task that ends with its owner.
struct Task(AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl ObjectCache {
    /// Starts to follow. To be called within a runtime.
    pub(crate) fn start(
        client: Client,
        following: Following,
        on_change: OnChange,
        metrics: Metrics,
    ) -> Arc<Self> {
        let cache = Arc::new(Self {
            client,
            on_change,
            following,
            runtime: Handle::current(),
            ttl_ms: AtomicU64::new(TTL_DEFAULT.as_millis() as u64),
            metrics,
            reads: Semaphore::new(READS_AT_ONCE),
            followed: Mutex::default(),
            tasks: Mutex::default(),
        });
        let mut tasks = cache.tasks.lock();
        match cache.following.detection {
            ChangeDetection::Watch => {
                if cache.follows_node() {
                    for kind in [ObjectKind::ConfigMap, ObjectKind::Secret] {
                        tasks.push(cache.spawn(Arc::clone(&cache).follow_node(kind)));
                    }
                }
                tasks.push(cache.spawn(Arc::clone(&cache).resync_for_ever()));
            }
            ChangeDetection::Cache => tasks.push(cache.spawn(Arc::clone(&cache).follow_ttl())),
            ChangeDetection::Get => {}
        }
        drop(tasks);
        cache
    }

    /// Follows what a pod refers to now, and lets go of what it no longer does; an empty set forgets the pod.
    pub(crate) fn set_references(self: &Arc<Self>, pod_uid: &str, references: &BTreeSet<ObjectRef>) {
        let mut followed = self.followed.lock();
        followed.retain(|reference, one| {
            if !references.contains(reference) {
                one.entry.pods.remove(pod_uid);
            }
            !one.entry.pods.is_empty()
        });
        for reference in references {
            let is_followed = followed.contains_key(reference);
            let one = followed.entry(reference.clone()).or_insert_with(|| Followed {
                entry: Entry::new(),
                watch: None,
            });
            if !one.entry.refer(pod_uid) {
                continue;
            }
            match self.following.detection {
                ChangeDetection::Watch if is_followed && !one.entry.is_immutable() => {}
                ChangeDetection::Watch if !is_followed && !self.follows_node() => {
                    one.watch = Some(self.spawn(Arc::clone(self).follow(reference.clone())));
                }
                _ => self.spawn_detached(Arc::clone(self).read_until_known(reference.clone())),
            }
        }
        self.metrics.set_followed_objects(followed.len());
    }

    /// Lets go of everything: the node ends.
    pub(crate) fn end(&self) {
        // Dropped after the locks: each drop ends a watch.
        let followed = std::mem::take(&mut *self.followed.lock());
        let tasks = std::mem::take(&mut *self.tasks.lock());
        drop((followed, tasks));
    }

    /// What is held of an object now; one that nobody follows is unknown.
    pub(crate) fn get(&self, reference: &ObjectRef) -> Known {
        let followed = self.followed.lock();
        followed
            .get(reference)
            .map_or(Known::Unknown, |one| one.entry.known().clone())
    }

    /// Whether changes are found by asking only.
    pub(crate) fn has_to_ask(&self) -> bool {
        self.following.detection != ChangeDetection::Watch
    }

    /// How often pods are looked at although nothing happens.
    pub(crate) fn sync_frequency(&self) -> Duration {
        self.following.sync_frequency
    }

    /// Reads these objects anew, beside their watches, whatever their age: the pod was edited.
    pub(crate) fn refresh(self: &Arc<Self>, references: &BTreeSet<ObjectRef>) {
        let mut followed = self.followed.lock();
        for reference in references {
            if let Some(one) = followed.get_mut(reference) {
                one.entry.invalidate();
                let ticket = one.entry.ask();
                let cache = Arc::clone(self);
                let reference = reference.clone();
                self.spawn_detached(async move { cache.read(&reference, ticket, Read::Newest).await });
            }
        }
    }

    /// Reads what of these objects may be old by now; ends when all answers are here. Nothing, where watches tell.
    pub(crate) async fn look(&self, references: &BTreeSet<ObjectRef>) {
        let due = self.due(references);
        stream::iter(due)
            .for_each_concurrent(READS_AT_ONCE, async |(reference, ticket, read)| {
                self.read(&reference, ticket, read).await;
            })
            .await;
    }

    /// As [`ObjectCache::look`], for who does not wait; from any thread.
    pub(crate) fn look_soon(self: &Arc<Self>, references: BTreeSet<ObjectRef>) {
        if self.has_to_ask() {
            let cache = Arc::clone(self);
            self.spawn_detached(async move { cache.look(&references).await });
        }
    }

    fn due(&self, references: &BTreeSet<ObjectRef>) -> Vec<(ObjectRef, Ticket, Read)> {
        let ttl = Duration::from_millis(self.ttl_ms.load(Ordering::Relaxed));
        let now = Instant::now();
        let mut followed = self.followed.lock();
        let due = references.iter().filter_map(|reference| {
            let entry = &mut followed.get_mut(reference)?.entry;
            let read = entry.due(self.following.detection, ttl, now)?;
            Some((reference.clone(), entry.ask(), read))
        });
        due.collect()
    }

    /// The first read, and that of a pod that comes to an object others have: tried until there is an answer, unless one
    /// came otherwise.
    async fn read_until_known(self: Arc<Self>, reference: ObjectRef) {
        let mut retries = Backoff::seeded(FIRST_READ_RETRY_MIN, FIRST_READ_RETRY_MAX);
        loop {
            let Some(ticket) = self.with_entry(&reference, Entry::ask) else {
                return;
            };
            self.read(&reference, ticket, Read::Newest).await;
            if self.with_entry(&reference, |entry| entry.is_known()) != Some(false) {
                return self.watch_if_mutable(&reference);
            }
            tokio::time::sleep(retries.next_delay()).await;
        }
    }

    async fn read(&self, reference: &ObjectRef, ticket: Ticket, read: Read) {
        match self.fetch(reference, read).await {
            Some(news) => self.answered(reference, ticket, news),
            None => {
                self.with_entry(reference, |entry| entry.failed(ticket));
            }
        }
    }

    /// Asks the API. `None`: no answer, or one that cannot be read; that was said.
    async fn fetch(&self, reference: &ObjectRef, read: Read) -> Option<News> {
        let (namespace, name) = (&reference.namespace, &reference.name);
        let kind = reference.kind.name();
        let path = reference.collection().name(name.as_str());
        let query = match read {
            Read::Newest => "",
            Read::Any => "?resourceVersion=0",
        };
        let _turn = self.reads.acquire().await.expect("nobody closes it");
        let answer = self
            .client
            .raw(Method::GET, &format!("{path}{query}"), None)
            .await;
        match answer.and_then(RawObject::from_json) {
            Ok(object) => news(reference, Some(&object)),
            Err(error) if error.is_not_found() => Some(News::Missing),
            Err(error) => {
                debug!(kind, %namespace, %name, %error, "object not read, the last value stands");
                None
            }
        }
    }

    fn told(&self, reference: &ObjectRef, news: News) {
        let wording = self.wording();
        self.learn(reference, |entry| entry.told(news, wording));
    }

    fn answered(&self, reference: &ObjectRef, ticket: Ticket, news: News) {
        let (wording, now) = (self.wording(), Instant::now());
        self.learn(reference, |entry| entry.answered(ticket, news, wording, now));
    }

    fn learn(&self, reference: &ObjectRef, learn: impl FnOnce(&mut Entry) -> bool) {
        let learned = self.with_entry(reference, |entry| {
            let resource_version = |known: &Known| match known {
                Known::Present(held) => held.resource_version().to_owned(),
                Known::Missing(_) | Known::Unknown => String::new(),
            };
            learn(entry).then(|| {
                (
                    Vec::from_iter(entry.pods.iter().cloned()),
                    resource_version(entry.known()),
                )
            })
        });
        if let Some((pods, resource_version)) = learned.flatten() {
            debug!(kind = reference.kind.name(), namespace = %reference.namespace, name = %reference.name, resource_version,
                "object changed");
            (self.on_change)(reference, &pods);
        }
    }

    fn with_entry<T>(&self, reference: &ObjectRef, work: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        self.followed
            .lock()
            .get_mut(reference)
            .map(|one| work(&mut one.entry))
    }

    /// Whether one watch tells of all objects of the node.
    fn follows_node(&self) -> bool {
        self.following.server == ServerKind::Own && !self.following.avoid_node_selector
    }

    /// Who asks the API is told in its words, who watches in the kubelet's.
    fn wording(&self) -> Wording {
        if self.has_to_ask() {
            Wording::Plural
        } else {
            Wording::Singular
        }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> Task {
        Task(self.runtime.spawn(task).abort_handle())
    }

    /// A task that ends by itself, within the time that requests have.
    fn spawn_detached(&self, task: impl Future<Output = ()> + Send + 'static) {
        self.runtime.spawn(task);
    }
}

/// What an object says; nothing if it cannot be read: an answer nobody understands is no reason to take away what stands.
fn news(reference: &ObjectRef, object: Option<&RawObject>) -> Option<News> {
    let Some(object) = object else {
        return Some(News::Missing);
    };
    match Held::parse(reference.kind, object.json(), Heard::now(object.committed())) {
        Ok(held) => Some(News::Present(Arc::new(held))),
        Err(error) => {
            warn!(kind = reference.kind.name(), namespace = %reference.namespace, name = %reference.name, %error,
                "object cannot be read, the last value stands");
            None
        }
    }
}

impl ObjectRef {
    fn collection(&self) -> ResourcePath {
        ResourcePath::new("", "v1", self.kind.plural()).in_namespace(self.namespace.as_str())
    }

    fn of(kind: ObjectKind, object: &RawObject) -> Self {
        Self {
            kind,
            namespace: object.namespace().to_owned(),
            name: object.name().to_owned(),
        }
    }
}

/// How the kubelet says that an object is not there: as its watch's store does, or as the API does.
pub(crate) fn not_found(kind: ObjectKind, name: &str, wording: Wording) -> String {
    let what = match wording {
        Wording::Singular => kind.singular(),
        Wording::Plural => kind.plural(),
    };
    format!("{what} {name:?} not found")
}

/// How the kubelet says that nothing has been heard of an object.
pub(crate) fn not_synced(kind: ObjectKind) -> String {
    format!(
        "failed to sync {} cache: timed out waiting for the condition",
        kind.singular()
    )
}
