//! Follows all objects of one kind, once for all controllers.
//!
//! ```text
//!   list + watch ──▶ objects by key, by controller ──▶ handlers (they add keys to queues)
//!                                │
//!                                └──▶ shown(revision): a writer waits here until it sees its own write
//! ```

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Bound,
    sync::{Arc, OnceLock},
    time::Duration,
};

use hotmap_client::{FollowEvent, Follower, FollowerConfig, ListWatch, RawObject};
use parking_lot::RwLock;
use tokio::sync::watch;
use tracing::{info, warn};

use crate::view::{Key, View};

/// How long a writer waits for its own write. In process that is microseconds; a follower that cannot hear its server
/// needs longer than this, and then the reconcile starts over.
const SHOWN_WAIT_MAX: Duration = Duration::from_secs(10);

/// What happened to one object.
#[derive(Debug)]
pub(crate) enum Change<'a, V> {
    /// It is new or changed.
    Applied {
        old: Option<&'a Arc<V>>,
        new: &'a Arc<V>,
    },
    /// It is gone.
    Deleted { last: &'a Arc<V> },
}

impl<'a, V> Change<'a, V> {
    /// The object as it is, or as it last was.
    pub(crate) fn object(&self) -> &'a Arc<V> {
        match self {
            Self::Applied { new, .. } => new,
            Self::Deleted { last } => last,
        }
    }
}

type Handler<V> = Box<dyn Fn(Change<'_, V>) + Send + Sync>;

/// All objects of one kind as they are.
pub(crate) struct Informer<V> {
    state: RwLock<State<V>>,
    handlers: RwLock<Vec<Handler<V>>>,
    /// The newest revision whose change was applied; `None` until all objects were listed.
    shown: watch::Sender<Option<u64>>,
    /// Somebody wants this kind: it is followed.
    wanted: OnceLock<()>,
}

/// The uid of nobody, under which objects without a controller are found.
const ORPHANED: &str = "";

struct State<V> {
    objects: BTreeMap<Key, Arc<V>>,
    by_controller: HashMap<String, BTreeSet<Key>>,
}

/// The follower of a kind does not hear its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a change was written and is not shown after {} s", SHOWN_WAIT_MAX.as_secs())]
pub(crate) struct NotShown;

impl<V> Default for Informer<V> {
    fn default() -> Self {
        let state = State {
            objects: BTreeMap::new(),
            by_controller: HashMap::new(),
        };
        Self {
            state: RwLock::new(state),
            handlers: RwLock::default(),
            shown: watch::Sender::new(None),
            wanted: OnceLock::new(),
        }
    }
}

impl<V: View> Informer<V> {
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<V>> {
        self.state.read().objects.get(key).cloned()
    }

    /// All objects, by key.
    pub(crate) fn all(&self) -> Vec<Arc<V>> {
        self.state.read().objects.values().cloned().collect()
    }

    /// The objects of a namespace, by name.
    pub(crate) fn in_namespace(&self, namespace: &str) -> Vec<Arc<V>> {
        let first = Bound::Included(Key::new(namespace, ""));
        let state = self.state.read();
        let objects = state.objects.range((first, Bound::Unbounded));
        objects
            .take_while(|(key, _)| key.namespace == namespace)
            .map(|(_, object)| object.clone())
            .collect()
    }

    /// The objects that the owner with this uid controls, by key.
    pub(crate) fn owned_by(&self, uid: &str) -> Vec<Arc<V>> {
        let state = self.state.read();
        let keys = state.by_controller.get(uid).into_iter().flatten();
        keys.filter_map(|key| state.objects.get(key).cloned()).collect()
    }

    /// The objects of a namespace that nobody controls, by name.
    pub(crate) fn orphans_in(&self, namespace: &str) -> Vec<Arc<V>> {
        let first = Bound::Included(Key::new(namespace, ""));
        let state = self.state.read();
        let orphans = state.by_controller.get(ORPHANED).into_iter();
        orphans
            .flat_map(|keys| keys.range((first.clone(), Bound::Unbounded)))
            .take_while(|key| key.namespace == namespace)
            .filter_map(|key| state.objects.get(key).cloned())
            .collect()
    }

    /// Calls `handler` at every change from now on, and for every object there is. It must be quick and must not write.
    pub(crate) fn on_change(&self, handler: impl Fn(Change<'_, V>) + Send + Sync + 'static) {
        self.want();
        let mut handlers = self.handlers.write();
        for new in self.all() {
            handler(Change::Applied { old: None, new: &new });
        }
        handlers.push(Box::new(handler));
    }

    /// Says that this kind is needed: nobody follows what nobody wants.
    pub(crate) fn want(&self) {
        let _ = self.wanted.set(());
    }

    /// Whether somebody needs this kind.
    pub(crate) fn is_wanted(&self) -> bool {
        self.wanted.get().is_some()
    }

    /// Waits until all objects are known.
    pub(crate) async fn synced(&self) {
        let mut shown = self.shown.subscribe();
        shown
            .wait_for(Option::is_some)
            .await
            .expect("the informer holds the sender");
    }

    /// Waits until every change up to that of `written` is shown.
    ///
    /// # Errors
    /// [`NotShown`] after ten seconds.
    pub(crate) async fn shows(&self, written: &RawObject) -> Result<(), NotShown> {
        let revision = revision_of(written);
        let mut shown = self.shown.subscribe();
        let reached = shown.wait_for(|shown| shown.is_some_and(|shown| shown >= revision));
        match tokio::time::timeout(SHOWN_WAIT_MAX, reached).await {
            Ok(_) => Ok(()),
            Err(_) => Err(NotShown),
        }
    }

    /// Waits until the object with this uid is gone or on its way out.
    ///
    /// # Errors
    /// [`NotShown`] after ten seconds.
    pub(crate) async fn shows_deletion(&self, key: &Key, uid: &str) -> Result<(), NotShown> {
        let is_leaving = || {
            self.get(key)
                .is_none_or(|held| held.metadata().uid != uid || held.metadata().is_deleting())
        };
        let mut shown = self.shown.subscribe();
        let left = shown.wait_for(|_| is_leaving());
        match tokio::time::timeout(SHOWN_WAIT_MAX, left).await {
            Ok(_) => Ok(()),
            Err(_) => Err(NotShown),
        }
    }

    /// Follows the collection for ever.
    pub(crate) async fn run(&self, source: impl ListWatch, patience: FollowerConfig) {
        let mut follower = Follower::new(source, patience);
        loop {
            match follower.next().await {
                FollowEvent::Initial(objects) => {
                    let newest = objects.iter().map(revision_of).max();
                    objects.iter().for_each(|object| self.apply(object));
                    self.shown.send_replace(Some(newest.unwrap_or_default()));
                }
                FollowEvent::Applied(object) => {
                    self.apply(&object);
                    self.show(&object);
                }
                FollowEvent::Deleted(object) => {
                    self.remove(&Key::of(&object));
                    self.show(&object);
                }
                FollowEvent::Interrupted(error) => warn!(kind = V::KIND, %error, "cannot follow a kind"),
                FollowEvent::Resumed => info!(kind = V::KIND, "following a kind again"),
            }
        }
    }

    /// Wakes those who wait for this change, also where its revision is no news.
    fn show(&self, object: &RawObject) {
        let revision = revision_of(object);
        self.shown
            .send_modify(|shown| *shown = shown.map(|shown| shown.max(revision)));
    }

    fn apply(&self, raw: &RawObject) {
        match raw.parse::<V>() {
            Ok(object) => self.put(Arc::new(object)),
            // The last state that could be read stays.
            Err(error) => {
                warn!(kind = V::KIND, namespace = raw.namespace(), name = raw.name(), %error, "cannot read an object");
            }
        }
    }

    /// Takes an object in as if it had been told.
    pub(crate) fn put(&self, new: Arc<V>) {
        let old = self.state.write().put(new.clone());
        self.tell(|| Change::Applied {
            old: old.as_ref(),
            new: &new,
        });
    }

    /// Takes an object out as if it had been told.
    pub(crate) fn remove(&self, key: &Key) {
        let removed = self.state.write().remove(key);
        if let Some(last) = removed {
            self.tell(|| Change::Deleted { last: &last });
        }
    }

    fn tell<'a>(&self, change: impl Fn() -> Change<'a, V>)
    where
        V: 'a,
    {
        self.handlers.read().iter().for_each(|handler| handler(change()));
    }
}

impl<V: View> State<V> {
    fn put(&mut self, new: Arc<V>) -> Option<Arc<V>> {
        let key = new.metadata().key();
        let old = self.objects.insert(key.clone(), new.clone());
        let (before, after) = (old.as_ref().map(controller_of), controller_of(&new));
        if before != Some(after) {
            let after = after.to_owned();
            if let Some(before) = before.map(str::to_owned) {
                self.disown(&before, &key);
            }
            self.by_controller.entry(after).or_default().insert(key);
        }
        old
    }

    fn remove(&mut self, key: &Key) -> Option<Arc<V>> {
        let removed = self.objects.remove(key)?;
        self.disown(controller_of(&removed), key);
        Some(removed)
    }

    fn disown(&mut self, uid: &str, key: &Key) {
        if let Some(keys) = self.by_controller.get_mut(uid) {
            keys.remove(key);
            if keys.is_empty() {
                self.by_controller.remove(uid);
            }
        }
    }
}

fn controller_of<V: View>(object: &Arc<V>) -> &str {
    object
        .metadata()
        .controller()
        .map_or(ORPHANED, |owner| &owner.uid)
}

/// Revisions are numbers on every server there is; what is none is older than all.
fn revision_of(object: &RawObject) -> u64 {
    object.resource_version().parse().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;
    use serde_json::{Value, json};

    use super::*;
    use crate::view::Pod;

    fn raw(name: &str, revision: u64, owner: Value) -> RawObject {
        let owners = match owner {
            Value::Null => json!(null),
            uid => {
                json!([{"uid": uid, "controller": true, "kind": "ReplicaSet", "name": "r", "apiVersion": "apps/v1"}])
            }
        };
        let object = json!({"metadata": {"namespace": "a", "name": name, "uid": format!("uid-{name}"),
            "resourceVersion": revision.to_string(), "ownerReferences": owners}});
        RawObject::from_json(object.to_string().into()).expect("an object")
    }

    fn names(pods: &[Arc<Pod>]) -> Vec<&str> {
        pods.iter().map(|pod| pod.metadata.name.as_str()).collect()
    }

    #[test]
    fn objects_are_found_by_namespace_and_by_their_controller() {
        let informer = Informer::<Pod>::default();
        informer.apply(&raw("one", 1, json!("u")));
        informer.apply(&raw("two", 2, json!("u")));
        informer.apply(&raw("three", 3, Value::Null));
        assert_eq!(names(&informer.owned_by("u")), ["one", "two"]);
        informer.apply(&raw("one", 4, Value::Null));
        informer.apply(&raw("three", 5, json!("v")));
        assert_eq!(names(&informer.owned_by("u")), ["two"]);
        assert_eq!(names(&informer.owned_by("v")), ["three"]);
        assert_eq!(names(&informer.orphans_in("a")), ["one"]);
        assert!(informer.orphans_in("b").is_empty() && informer.orphans_in("").is_empty());
        assert_eq!(names(&informer.in_namespace("a")), ["one", "three", "two"]);
        assert!(informer.in_namespace("b").is_empty() && informer.in_namespace("").is_empty());
        informer.remove(&Key::new("a", "two"));
        assert!(informer.owned_by("u").is_empty());
        informer.remove(&Key::new("a", "one"));
        assert!(informer.state.read().by_controller.len() == 1);
    }

    #[test]
    fn handlers_hear_what_is_and_what_changes() {
        let informer = Informer::<Pod>::default();
        informer.apply(&raw("one", 1, Value::Null));
        let heard = Arc::new(Mutex::new(Vec::new()));
        let told = heard.clone();
        informer.on_change(move |change| {
            let kind = match change {
                Change::Applied { old: None, .. } => "new",
                Change::Applied { .. } => "changed",
                Change::Deleted { .. } => "gone",
            };
            told.lock()
                .push(format!("{kind} {}", change.object().metadata.name));
        });
        informer.apply(&raw("one", 2, Value::Null));
        informer.remove(&Key::new("a", "one"));
        informer.remove(&Key::new("a", "one"));
        assert_eq!(*heard.lock(), ["new one", "changed one", "gone one"]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_writer_waits_until_its_write_is_shown() {
        let informer = Informer::<Pod>::default();
        let written = raw("one", 7, Value::Null);
        assert_eq!(informer.shows(&written).await, Err(NotShown));
        informer.shown.send_replace(Some(6));
        let both = tokio::join!(informer.shows(&written), async {
            informer.apply(&written);
            informer.show(&written);
        });
        assert_eq!(both.0, Ok(()));
        let key = Key::new("a", "one");
        assert_eq!(informer.shows_deletion(&key, "another").await, Ok(()));
        assert_eq!(informer.shows_deletion(&key, "uid-one").await, Err(NotShown));
        let both = tokio::join!(informer.shows_deletion(&key, "uid-one"), async {
            informer.remove(&key);
            informer.show(&written);
        });
        assert_eq!(both.0, Ok(()));
    }
}
