//! Restores what every namespace has when somebody deletes or edits it: the account `default`, and the ConfigMap
//! `kube-root-ca.crt` with the authority of the API.
//!
//! The server makes both with the namespace itself, so as a rule there is nothing to do here. Objects of other names are
//! not held. Sources: `pkg/controller/serviceaccount/serviceaccounts_controller.go` and
//! `pkg/controller/certificates/rootcacertpublisher/publisher.go`, Kubernetes 1.36.

mod known;
mod named;

use std::sync::Arc;

use hotmap_client::{
    ClientError, FollowEvent, Follower, ListWatch, PatchType, RawObject, ResourcePath, WriteParams,
};
use hotmap_clock::ClockJumps;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tracing::{info, warn};

use self::{
    known::{ACCOUNT, Authority, DESCRIPTION, DESCRIPTION_KEY, Known, ROOT_CA},
    named::Named,
};
use crate::{
    context::Context,
    controller::{self, Controller, ReconcileError, Requeue},
    informers::Collections,
    queue::Queue,
    view::Key,
};

struct Defaults {
    context: Context,
    root_ca: Arc<str>,
    known: Arc<Mutex<Known>>,
}

/// Restores for as long as the tasks live. `root_ca` is PEM.
pub(crate) fn start<C: Collections>(
    context: &Context,
    collections: &C,
    root_ca: &str,
    tasks: &mut JoinSet<()>,
) {
    let queue = Queue::default();
    let known = Arc::new(Mutex::new(Known::new(root_ca)));
    let follow = |plural, name| {
        let collection = collections.collection(core(plural));
        Follower::new(Named { collection, name }, C::PATIENCE)
    };
    tasks.spawn(hear(
        Follower::new(collections.collection(core("namespaces")), C::PATIENCE),
        follow("serviceaccounts", ACCOUNT),
        follow("configmaps", ROOT_CA),
        known.clone(),
        queue.clone(),
    ));
    let controller = Arc::new(Defaults {
        context: context.clone(),
        root_ca: root_ca.into(),
        known,
    });
    tasks.spawn(controller::run(controller, queue, ClockJumps::never()));
}

fn core(plural: &'static str) -> ResourcePath {
    ResourcePath::new("", "v1", plural)
}

/// Tells `known` of everything, and the queue of the namespaces that lack something.
async fn hear<S: ListWatch, N: ListWatch>(
    mut namespaces: Follower<S>,
    mut accounts: Follower<N>,
    mut config_maps: Follower<N>,
    known: Arc<Mutex<Known>>,
    queue: Queue<Key>,
) {
    let take = |applied: fn(&mut Known, &RawObject), deleted: fn(&mut Known, &RawObject), event| {
        let mut known = known.lock();
        match event {
            FollowEvent::Initial(objects) => {
                objects.iter().for_each(|object| applied(&mut known, object));
                known.heard();
            }
            FollowEvent::Applied(object) => applied(&mut known, &object),
            FollowEvent::Deleted(object) => deleted(&mut known, &object),
            FollowEvent::Interrupted(error) => {
                warn!(%error, "cannot follow what every namespace has");
            }
            FollowEvent::Resumed => info!("following what every namespace has again"),
        }
        for namespace in known.take_lacking() {
            queue.add(Key::new("", namespace));
        }
    };
    loop {
        tokio::select! {
            event = namespaces.next() => take(Known::namespace_applied, Known::namespace_deleted, event),
            event = accounts.next() => take(Known::account_applied, Known::account_deleted, event),
            event = config_maps.next() => take(Known::config_map_applied, Known::config_map_deleted, event),
        }
    }
}

impl Controller for Defaults {
    const NAME: &'static str = "namespace-defaults";

    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        let namespace = &key.name;
        let (lacks_account, authority) = self.known.lock().state_of(namespace);
        if lacks_account {
            let account =
                json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}});
            self.create("serviceaccounts", namespace, account).await?;
        }
        match authority {
            Authority::Good => {}
            Authority::Missing => {
                let config_map = json!({
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": ROOT_CA, "annotations": {DESCRIPTION_KEY: DESCRIPTION}},
                    "data": {"ca.crt": &*self.root_ca},
                });
                self.create("configmaps", namespace, config_map).await?;
            }
            Authority::Wrong(patch) => {
                let path = core("configmaps").in_namespace(namespace).name(ROOT_CA);
                let patched = self
                    .context
                    .client
                    .patch(&path, PatchType::Merge, &patch, &WriteParams::default())
                    .await;
                unless_too_late(patched)?;
            }
        }
        Ok(Requeue::Done)
    }
}

impl Defaults {
    async fn create(&self, plural: &'static str, namespace: &str, object: Value) -> Result<(), ClientError> {
        let path = core(plural).in_namespace(namespace);
        let created = self
            .context
            .client
            .create(&path, &object, &WriteParams::default())
            .await;
        match created {
            Err(taken) if taken.is_already_exists() => Ok(()),
            created => unless_too_late(created),
        }
    }
}

/// The namespace is gone or on its way out, or what was to be changed is: what follows tells.
fn unless_too_late(written: Result<RawObject, ClientError>) -> Result<(), ClientError> {
    match written {
        Err(error) if error.is_not_found() || is_terminating(&error) => Ok(()),
        written => written.map(drop),
    }
}

fn is_terminating(error: &ClientError) -> bool {
    let details = error.status().and_then(|status| status.details.as_ref());
    details.is_some_and(|details| {
        details
            .causes
            .iter()
            .any(|cause| cause.reason == "NamespaceTerminating")
    })
}
