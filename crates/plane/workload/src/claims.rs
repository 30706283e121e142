//! Which objects belong to a controller: by its selector, and by the owner reference that says so.
//!
//! Source: `pkg/controller/controller_ref_manager.go`, Kubernetes 1.36.

use std::sync::Arc;

use hotmap_client::PatchType;
use serde_json::{Value, json};

use crate::view::{Key, Metadata, OwnerReference, Selector, View};
use crate::{
    context::{Context, unless_gone},
    controller::ReconcileError,
};

/// What a controller has, takes and gives back.
#[derive(Debug)]
pub(crate) struct Claims<V> {
    /// It controls these and its selector matches them.
    pub(crate) owned: Vec<Arc<V>>,
    /// Nobody controls these, and its selector matches them.
    pub(crate) adopt: Vec<Arc<V>>,
    /// It controls these, and its selector matches them no longer.
    pub(crate) release: Vec<Arc<V>>,
}

/// Sorts `candidates`, all of one namespace. An owner that is being deleted takes and gives nothing.
pub(crate) fn claim<V: View>(
    owner: &Metadata,
    selector: &Selector,
    candidates: impl IntoIterator<Item = Arc<V>>,
) -> Claims<V> {
    let mut claims = Claims {
        owned: Vec::new(),
        adopt: Vec::new(),
        release: Vec::new(),
    };
    for candidate in candidates {
        let metadata = candidate.metadata();
        let matches = selector.matches(&metadata.labels);
        match metadata.controller() {
            Some(controller) if controller.uid != owner.uid => {}
            Some(_) if matches => claims.owned.push(candidate),
            Some(_) if !owner.is_deleting() => claims.release.push(candidate),
            None if matches && !owner.is_deleting() && !metadata.is_deleting() => {
                claims.adopt.push(candidate)
            }
            Some(_) | None => {}
        }
    }
    claims
}

/// Takes and gives back what there is to take and to give back. Answers with all that `owner` controls now.
///
/// # Errors
/// [`ReconcileError`] of the first request that failed; what was taken until then stays taken.
pub(crate) async fn settle<O: View, V: View>(
    context: &Context,
    owner: &O,
    claims: Claims<V>,
) -> Result<Vec<Arc<V>>, ReconcileError> {
    let Claims {
        mut owned,
        adopt,
        release: released,
    } = claims;
    // An owner that was deleted and left its objects behind must not take them back because it is shown late.
    if !adopt.is_empty() && is_staying(context, owner).await? {
        for object in adopt {
            let patch = adoption(owner, &object.metadata().uid);
            let adopted = context
                .patch(&*object, "", PatchType::StrategicMerge, &patch)
                .await;
            owned.extend(unless_gone(adopted)?);
        }
    }
    for object in released {
        let patch = release(owner, &object.metadata().uid);
        unless_gone(
            context
                .patch(&*object, "", PatchType::StrategicMerge, &patch)
                .await,
        )?;
    }
    Ok(owned)
}

/// Whether the server has the very object, and nobody deletes it.
async fn is_staying<O: View>(context: &Context, owner: &O) -> Result<bool, ReconcileError> {
    match context.client.get(&owner.path()).await {
        Ok(found) => {
            let found = found.parse::<O>()?;
            Ok(found.metadata().uid == owner.metadata().uid && !found.metadata().is_deleting())
        }
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// Who controls an object, in the eyes of the controller of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Controlled {
    /// An object of that kind with this key.
    By(Key),
    /// Something else.
    ByAnother,
    ByNobody,
}

/// Whether an `O` controls `object`, and which one.
pub(crate) fn controlled_by<O: View>(object: &impl View) -> Controlled {
    let metadata = object.metadata();
    match metadata.controller() {
        None => Controlled::ByNobody,
        Some(owner) if owner.kind == O::KIND && owner.api_version == O::API_VERSION => {
            Controlled::By(Key::new(&metadata.namespace, &owner.name))
        }
        Some(_) => Controlled::ByAnother,
    }
}

/// The reference by which `owner` controls what it creates and adopts.
pub(crate) fn controller_reference<V: View>(owner: &V) -> OwnerReference {
    let metadata = owner.metadata();
    OwnerReference {
        api_version: V::API_VERSION.to_owned(),
        kind: V::KIND.to_owned(),
        name: metadata.name.clone(),
        uid: metadata.uid.clone(),
        controller: true,
        block_owner_deletion: true,
    }
}

/// The strategic merge patch that makes `owner` the controller of the object with this uid.
pub(crate) fn adoption<V: View>(owner: &V, uid: &str) -> Value {
    json!({"metadata": {"uid": uid, "ownerReferences": [controller_reference(owner)]}})
}

/// The strategic merge patch that ends `owner`'s control of the object with this uid.
pub(crate) fn release<V: View>(owner: &V, uid: &str) -> Value {
    json!({"metadata": {"uid": uid, "ownerReferences": [{"$patch": "delete", "uid": owner.metadata().uid}]}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::Pod;

    #[test]
    fn objects_are_owned_adopted_released_or_none_of_our_business() {
        let pod = |owner: &str, label: &str, deleting: bool| {
            let owners = match owner {
                "" => json!([]),
                uid => json!([{"uid": uid, "controller": true}, {"uid": "not-its-controller"}]),
            };
            let deletion = deleting.then_some("2026-01-02T15:04:05Z");
            let pod = json!({"metadata": {"name": format!("{owner}/{label}/{deleting}"), "labels": {"app": label},
                "ownerReferences": owners, "deletionTimestamp": deletion}});
            Arc::new(serde_json::from_value::<Pod>(pod).expect("a pod"))
        };
        let candidates = || {
            ["", "us", "them"].into_iter().flat_map(|owner| {
                ["web", "other"]
                    .into_iter()
                    .flat_map(move |label| [false, true].map(|deleting| (owner, label, deleting)))
            })
        };
        let selector = Selector {
            match_labels: [("app".to_owned(), "web".to_owned())].into(),
            ..Selector::default()
        };
        for (is_deleting, owned, adopt, release) in [
            (
                false,
                vec!["us/web/false", "us/web/true"],
                vec!["/web/false"],
                vec!["us/other/false", "us/other/true"],
            ),
            (true, vec!["us/web/false", "us/web/true"], vec![], vec![]),
        ] {
            let owner = Metadata {
                uid: "us".to_owned(),
                deletion_timestamp: is_deleting.then(|| "2026-01-02T15:04:05Z".parse().expect("a time")),
                ..Metadata::default()
            };
            let all = candidates().map(|(owner, label, deleting)| pod(owner, label, deleting));
            let claims = claim(&owner, &selector, all);
            let names = |pods: &[Arc<Pod>]| {
                pods.iter()
                    .map(|pod| pod.metadata.name.clone())
                    .collect::<Vec<_>>()
            };
            assert_eq!(
                (names(&claims.owned), names(&claims.adopt), names(&claims.release)),
                (
                    owned.into_iter().map(str::to_owned).collect(),
                    adopt.into_iter().map(str::to_owned).collect(),
                    release.into_iter().map(str::to_owned).collect()
                )
            );
        }
    }
}
