//! Reads and writes histories.

use std::sync::Arc;

use hotmap_client::{DeleteParams, PatchType};
use serde_json::{Map, Value, json};
use tracing::info;

use super::{Current, Snapshot, current, sort};
use crate::{
    claims::{claim, controller_reference, settle},
    context::{Context, client_error},
    controller::ReconcileError,
    view::{ControllerRevision, PodTemplate, Selector, View},
};

/// The history of `owner`, oldest first: the revisions it controls, and those it adopts.
///
/// # Errors
/// [`ReconcileError`] of a failed adoption.
pub(crate) async fn history<O: View>(
    context: &Context,
    owner: &O,
    selector: &Selector,
) -> Result<Vec<Arc<ControllerRevision>>, ReconcileError> {
    let revisions = context
        .informers
        .controller_revisions
        .in_namespace(&owner.metadata().namespace);
    let claims = claim(owner.metadata(), selector, revisions);
    let mut history = settle(context, owner, claims).await?;
    sort(&mut history);
    Ok(history)
}

/// The revision that stands for `template`, as the newest of `history`; it is created or renumbered if need be.
///
/// `hash_label` holds the hash in its labels. `collisions` counts names that were taken by something else.
///
/// # Errors
/// [`ReconcileError`] of a failed request.
pub(crate) async fn establish<O: View>(
    context: &Context,
    owner: &O,
    template: &PodTemplate,
    hash_label: &str,
    history: &mut Vec<Arc<ControllerRevision>>,
    collisions: &mut i32,
) -> Result<Arc<ControllerRevision>, ReconcileError> {
    let snapshot = Snapshot::of(template.value());
    let established = match current(history, &snapshot) {
        Current::Is(revision) => return Ok(revision),
        Current::Again { revision, number } => {
            let patch = json!({"metadata": {"uid": revision.metadata.uid}, "revision": number});
            context.patch(&*revision, "", PatchType::Merge, &patch).await?
        }
        Current::New { number } => {
            let new = New {
                owner,
                template,
                hash_label,
                snapshot: &snapshot,
                number,
            };
            new.create(context, collisions).await?
        }
    };
    history.retain(|revision| revision.metadata.name != established.metadata.name);
    history.push(established.clone());
    sort(history);
    Ok(established)
}

struct New<'a, O> {
    owner: &'a O,
    template: &'a PodTemplate,
    hash_label: &'a str,
    snapshot: &'a Snapshot,
    number: i64,
}

impl<O: View> New<'_, O> {
    /// Creates the revision under the first name that is free, or finds that it is there already.
    async fn create(
        &self,
        context: &Context,
        collisions: &mut i32,
    ) -> Result<Arc<ControllerRevision>, ReconcileError> {
        let owner = self.owner.metadata();
        let collection = ControllerRevision::collection().in_namespace(&owner.namespace);
        loop {
            let hash = self.snapshot.hash(*collisions);
            let name = Snapshot::name(&owner.name, &hash);
            match context.create(&collection, &self.body(&name, &hash)).await {
                Err(error) if client_error(&error).is_some_and(|error| error.is_already_exists()) => {
                    let taken = context.client.get(&collection.clone().name(&name)).await?;
                    let taken = taken.parse::<ControllerRevision>()?;
                    let controller = taken.metadata.controller();
                    if self.snapshot.is(&taken.data)
                        && controller.is_some_and(|controller| controller.uid == owner.uid)
                    {
                        return Ok(Arc::new(taken));
                    }
                    *collisions += 1;
                    info!(
                        namespace = owner.namespace,
                        name, "the name of a revision is taken, trying another"
                    );
                }
                created => return created,
            }
        }
    }

    fn body(&self, name: &str, hash: &str) -> Value {
        let owner = self.owner.metadata();
        let labels = self.template.labels().chain([(self.hash_label, hash)]);
        let labels: Map<_, _> = labels
            .map(|(key, value)| (key.to_owned(), value.into()))
            .collect();
        json!({
            "apiVersion": ControllerRevision::API_VERSION,
            "kind": ControllerRevision::KIND,
            "metadata": {
                "name": name,
                "namespace": owner.namespace,
                "labels": labels,
                // With them comes the cause of the change that `kubectl rollout history` shows.
                "annotations": owner.annotations,
                "ownerReferences": [controller_reference(self.owner)],
            },
            "data": self.snapshot.data(),
            "revision": self.number,
        })
    }
}

/// Deletes revisions that nobody needs.
///
/// # Errors
/// [`ReconcileError`] of the first request that failed.
pub(crate) async fn delete(
    context: &Context,
    revisions: &[&Arc<ControllerRevision>],
) -> Result<(), ReconcileError> {
    for revision in revisions {
        context.delete(&***revision, DeleteParams::default()).await?;
    }
    Ok(())
}
