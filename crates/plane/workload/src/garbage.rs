//! Collects what nobody owns any more, and ends deletions that wait for dependents.
//!
//! ```text
//!   one follower per kind ──metadata──▶ Graph ──uids──▶ queue ──▶ step: verify · delete · disown · orphan · release
//!         ▲                                                            │
//!         └───────────────────────── the server ◀──────────────────────┘
//! ```
//!
//! Nothing is scanned and nothing polled. The graph says what to do, from what it was told; what is destroyed is destroyed
//! only in the very state the graph knew (uid and resourceVersion), after the server confirmed that the owners are gone.
//! Source: `pkg/controller/garbagecollector`, Kubernetes 1.36.

mod graph;
mod object;

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use futures_util::{StreamExt, TryStreamExt, stream};
use hotmap_client::{
    Client, ClientError, DeleteParams, FollowEvent, Follower, ListWatch, PatchType, Propagation, RawObject,
    WriteParams,
};
use hotmap_clock::ClockJumps;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{sync::watch, task::JoinSet};
use tracing::{info, warn};

use self::{
    graph::{Changes, Graph, Policy, Step, Target},
    object::{Kind, Object, Place, Uid},
};
use crate::{
    context::Context,
    controller::{self, Controller, ReconcileError, Requeue},
    events::EventType,
    informers::Collections,
    queue::Queue,
    view::Key,
};

/// Dependents of one owner that are changed at the same time.
const CONCURRENT_PATCHES: usize = 16;
/// An owner that the server has and no follower has told of yet: a matter of milliseconds, but nobody says when.
const UNHEARD_PAUSE: Duration = Duration::from_secs(1);
/// Who says so in events; upstream's name.
const COMPONENT: &str = "garbage-collector-controller";

/// Collects for as long as the tasks live.
pub(crate) fn start<C: Collections>(context: &Context, collections: &C, tasks: &mut JoinSet<()>) {
    let queue = Queue::default();
    let collector = Arc::new(Collector {
        context: context.clone(),
        graph: Mutex::default(),
        queue: queue.clone(),
    });
    let unheard = watch::Sender::new(Kind::all().len());
    let mut all_heard = unheard.subscribe();
    for kind in Kind::all() {
        let source = collections.collection(kind.collection());
        tasks.spawn(
            collector
                .clone()
                .follow(*kind, Follower::new(source, C::PATIENCE), unheard.clone()),
        );
    }
    tasks.spawn(async move {
        // Before that an owner that is only not known yet would be asked for, dependent by dependent.
        all_heard
            .wait_for(|kinds| *kinds == 0)
            .await
            .expect("the followers hold the sender for ever");
        controller::run(collector, queue, ClockJumps::never()).await;
    });
}

struct Collector {
    context: Context,
    graph: Mutex<Graph>,
    queue: Queue<Key>,
}

impl Collector {
    async fn follow(
        self: Arc<Self>,
        kind: Kind,
        mut follower: Follower<impl ListWatch>,
        unheard: watch::Sender<usize>,
    ) {
        loop {
            match follower.next().await {
                FollowEvent::Initial(objects) => {
                    objects.iter().for_each(|object| self.applied(kind, object));
                    unheard.send_modify(|kinds| *kinds -= 1);
                }
                FollowEvent::Applied(object) => self.applied(kind, &object),
                FollowEvent::Deleted(object) => {
                    let changes = self.graph.lock().deleted(object.uid());
                    self.heed(changes);
                }
                FollowEvent::Interrupted(error) => warn!(kind = kind.0.kind, %error, "cannot follow a kind"),
                FollowEvent::Resumed => info!(kind = kind.0.kind, "following a kind again"),
            }
        }
    }

    fn applied(&self, kind: Kind, raw: &RawObject) {
        match Object::read(kind, raw) {
            Ok(object) => {
                let changes = self.graph.lock().applied(object);
                self.heed(changes);
            }
            // The last state that could be read stays: an owner that is there.
            Err(error) => {
                warn!(kind = kind.0.kind, namespace = raw.namespace(), name = raw.name(), %error, "cannot read an object's metadata");
            }
        }
    }

    fn heed(&self, changes: Changes) {
        for uid in changes.check {
            self.queue.add(Key::new("", &*uid));
        }
        for (dependent, owner) in changes.invalid {
            self.complain(&dependent, &owner);
        }
    }

    /// Tells of a reference across namespaces.
    fn complain(&self, dependent: &str, owner: &str) {
        let graph = self.graph.lock();
        let Some((object, reference)) = graph
            .object(dependent)
            .and_then(|object| Some((object, object.references_to(owner).next()?)))
        else {
            return;
        };
        let Some(place) = reference.at.place() else {
            return;
        };
        let namespace = &object.place.namespace;
        let message = format!(
            "ownerRef [{}/{}, namespace: {namespace}, name: {}, uid: {owner}] does not exist in namespace {namespace:?}",
            place.kind.api_version(),
            place.kind.0.kind,
            place.name,
        );
        let subject = crate::events::Subject {
            api_version: object.place.kind.api_version(),
            kind: object.place.kind.0.kind,
            namespace: namespace.to_string(),
            name: object.place.name.to_string(),
            uid: dependent.to_owned(),
        };
        let version = object.resource_version.to_string();
        drop(graph);
        let now = self.context.now();
        let (kind, reason) = (EventType::Warning, "OwnerRefInvalidNamespace");
        self.context
            .events
            .publish_about(subject, version, COMPONENT, kind, reason, message, now);
    }

    /// Asks the server for owners that nobody has told of.
    async fn verify(&self, owners: Vec<(Uid, Place)>) -> Result<Requeue, ClientError> {
        let mut is_unheard = false;
        for (uid, place) in owners {
            if is_there(self.client(), &uid, &place).await? {
                is_unheard = true;
            } else {
                let changes = self.graph.lock().absent(&uid, place);
                self.heed(changes);
            }
        }
        Ok(match is_unheard {
            true => Requeue::After(UNHEARD_PAUSE),
            false => Requeue::Done,
        })
    }

    async fn delete(&self, target: &Target, policy: Policy) -> Result<(), ClientError> {
        let params = DeleteParams {
            propagation: Some(match policy {
                Policy::Background => Propagation::Background,
                Policy::Foreground => Propagation::Foreground,
                Policy::Orphan => Propagation::Orphan,
            }),
            uid: target.uid.to_string(),
            resource_version: target.resource_version.to_string(),
            ..DeleteParams::default()
        };
        match self.client().delete(&target.place.path(), &params).await {
            Ok(_) => {
                info!(object = %target.place, uid = &*target.uid, ?policy, "deleted what nobody owns any more")
            }
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    async fn disown(&self, target: &Target, owners: &[Uid]) -> Result<(), ClientError> {
        let patch = without_owners(&target.uid, owners);
        let (path, params) = (target.place.path(), WriteParams::default());
        let patched = self
            .client()
            .patch(&path, PatchType::StrategicMerge, &patch, &params)
            .await;
        match patched {
            Ok(_) => Ok(()),
            // Gone, or the name belongs to another object by now: nothing is left to change.
            Err(error) if error.is_not_found() || error.is_conflict() => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Makes orphans of all dependents, also of those that come to light meanwhile, then lets the owner go.
    async fn orphan(&self, owner: &Uid, first: Vec<Target>) -> Result<(), ClientError> {
        let mut done: BTreeSet<Uid> = BTreeSet::new();
        let mut dependents = first;
        loop {
            let patched: Vec<Uid> = stream::iter(std::mem::take(&mut dependents))
                .map(|dependent| async move {
                    self.disown(&dependent, std::slice::from_ref(owner)).await?;
                    Ok::<_, ClientError>(dependent.uid)
                })
                .buffer_unordered(CONCURRENT_PATCHES)
                .try_collect()
                .await?;
            done.extend(patched);
            let step = self.graph.lock().step(owner);
            match step {
                Step::Orphan {
                    owner,
                    left,
                    dependents: now,
                } => {
                    dependents.extend(now.into_iter().filter(|one| !done.contains(&one.uid)));
                    if dependents.is_empty() {
                        return self.release(&owner, &left).await;
                    }
                }
                Step::Release(target, left) => return self.release(&target, &left).await,
                _ => return Ok(()),
            }
        }
    }

    async fn release(&self, target: &Target, left: &[Box<str>]) -> Result<(), ClientError> {
        let patch = with_finalizers(target, left);
        let (path, params) = (target.place.path(), WriteParams::default());
        match self
            .client()
            .patch(&path, PatchType::Merge, &patch, &params)
            .await
        {
            Ok(_) => Ok(()),
            Err(error) if error.is_not_found() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn client(&self) -> &Client {
        &self.context.client
    }
}

impl Controller for Collector {
    const NAME: &'static str = "garbage-collector";

    /// The name in the key is a uid.
    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        let step = self.graph.lock().step(&key.name);
        match step {
            Step::Rest => {}
            Step::Verify(owners) => return Ok(self.verify(owners).await?),
            Step::Delete(target, policy) => self.delete(&target, policy).await?,
            Step::Disown(target, owners) => self.disown(&target, &owners).await?,
            Step::Orphan {
                owner, dependents, ..
            } => self.orphan(&owner.uid, dependents).await?,
            Step::Release(target, left) => self.release(&target, &left).await?,
        }
        Ok(Requeue::Done)
    }
}

/// Whether the object of this uid is at this place now.
async fn is_there(client: &Client, uid: &str, place: &Place) -> Result<bool, ClientError> {
    match client.get(&place.path()).await {
        Ok(found) => Ok(found.uid() == uid),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The uid makes it a patch of this very object.
fn without_owners(uid: &str, owners: &[Uid]) -> Value {
    let gone: Vec<Value> = owners
        .iter()
        .map(|owner| json!({"$patch": "delete", "uid": &**owner}))
        .collect();
    json!({"metadata": {"uid": uid, "ownerReferences": gone}})
}

/// The version makes sure that no finalizer is lost that somebody added meanwhile.
fn with_finalizers(target: &Target, left: &[Box<str>]) -> Value {
    json!({"metadata": {"uid": &*target.uid, "resourceVersion": &*target.resource_version, "finalizers": left}})
}
