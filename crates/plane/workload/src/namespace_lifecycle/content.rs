//! What lies in a namespace.

use std::{collections::HashSet, future::poll_fn, pin::Pin};

use futures_util::{Stream, StreamExt, future::select_all, stream};
use hotmap_client::{
    Client, ClientError, DeleteParams, ListParams, ObjectList, Propagation, RawObject, ResourcePath,
    WatchEvent, WatchParams, WatchStream,
};
use hotmap_kinds::Resource;
use serde::Deserialize;

use super::conditions::Totals;
use crate::view::or_default;

/// Collections that are emptied at the same time.
const CONCURRENT_COLLECTIONS: usize = 8;
/// Objects per page of a list.
const PAGE_OBJECTS: u32 = 500;

/// Every kind of stored objects in namespaces. A store that two groups show (events) is named once.
pub(super) fn kinds() -> Vec<&'static Resource> {
    let mut prefixes = HashSet::new();
    let stored = hotmap_kinds::resources().iter().filter(|resource| {
        resource.namespaced && resource.verbs.contains(&"deletecollection") && !resource.prefix.is_empty()
    });
    stored
        .filter(|resource| prefixes.insert(resource.prefix))
        .collect()
}

pub(super) fn is_pods(resource: &Resource) -> bool {
    resource.group.is_empty() && resource.plural == "pods"
}

/// What is left of some kinds in a namespace.
#[derive(Default)]
pub(super) struct Left {
    pub(super) totals: Totals,
    /// The collections that are not empty, and the revision they were read at.
    collections: Vec<(ResourcePath, String)>,
}

/// Asks for everything of these kinds to be deleted and says what is left. Pods get their grace.
pub(super) async fn delete_all(client: &Client, namespace: &str, kinds: &[&'static Resource]) -> Left {
    let mut deletions = Vec::new();
    for kind in kinds {
        let path = ResourcePath::new(kind.group, kind.version, kind.plural).in_namespace(namespace);
        deletions.push(async move {
            let left = delete_collection(client, &path).await;
            (*kind, path, left)
        });
    }
    let emptied: Vec<_> = stream::iter(deletions)
        .buffered(CONCURRENT_COLLECTIONS)
        .collect()
        .await;
    let mut all = Left::default();
    for (kind, path, left) in emptied {
        match left {
            Ok(left) if left.items.is_empty() => {}
            Ok(left) => {
                let resource = format!("{}.{}", kind.plural, kind.group);
                left.items
                    .iter()
                    .for_each(|object| all.totals.add(&resource, finalizers(object)));
                all.collections.push((path, left.resource_version));
            }
            Err(error) => all.totals.errors.push(format!("{}: {error}", kind.plural)),
        }
    }
    all
}

async fn delete_collection(client: &Client, path: &ResourcePath) -> Result<ObjectList, ClientError> {
    // What lies in the namespace goes in any case; nobody is to make orphans of it.
    let params = DeleteParams {
        propagation: Some(Propagation::Background),
        ..DeleteParams::default()
    };
    let list = |continue_token: String| ListParams {
        limit: PAGE_OBJECTS,
        continue_token,
        ..ListParams::default()
    };
    client.delete(path, &params).await?;
    let mut left = client.list(path, &list(String::new())).await?;
    while !left.continue_token.is_empty() {
        let page = client
            .list(path, &list(std::mem::take(&mut left.continue_token)))
            .await?;
        left.items.extend(page.items);
        left.continue_token = page.continue_token;
    }
    Ok(left)
}

impl Left {
    pub(super) fn is_empty(&self) -> bool {
        self.totals.is_empty()
    }

    /// Waits until something happens in one of the collections that are not empty.
    pub(super) async fn changes(&self, client: &Client) -> Result<(), ClientError> {
        let mut watches: Vec<WatchStream> = Vec::new();
        for (path, resource_version) in &self.collections {
            let params = WatchParams {
                resource_version: resource_version.clone(),
                ..WatchParams::default()
            };
            match client.watch(path, &params).await {
                Ok(watch) => watches.push(watch),
                // So much has happened that it cannot be told any more.
                Err(error) if error.is_expired() => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        if watches.is_empty() {
            return Ok(());
        }
        let first = select_all(watches.into_iter().map(|watch| Box::pin(event(watch)))).await;
        first.0
    }
}

/// The first event of a watch. That it ends is none, and a reason to look again.
async fn event(mut watch: WatchStream) -> Result<(), ClientError> {
    match poll_fn(|cx| Pin::new(&mut watch).poll_next(cx)).await {
        Some(Ok(WatchEvent::Error(status))) if status.code != 410 => Err(status.into()),
        Some(Err(error)) => Err(error),
        _ => Ok(()),
    }
}

fn finalizers(object: &RawObject) -> Vec<String> {
    #[derive(Deserialize)]
    struct View {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(deserialize_with = "or_default", default)]
        finalizers: Vec<String>,
    }
    object
        .parse::<View>()
        .map_or_else(|_| Vec::new(), |view| view.metadata.finalizers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_namespaced_kind_is_named_once() {
        let kinds: Vec<_> = kinds()
            .iter()
            .map(|kind| format!("{}.{}", kind.plural, kind.group))
            .collect();
        for wanted in ["pods.", "secrets.", "events.", "leases.coordination.k8s.io"] {
            assert_eq!(
                kinds.iter().filter(|kind| *kind == wanted).count(),
                1,
                "{wanted} in {kinds:?}"
            );
        }
        for unwanted in [
            "nodes.",
            "namespaces.",
            "events.events.k8s.io",
            "selfsubjectreviews.authentication.k8s.io",
        ] {
            assert!(!kinds.iter().any(|kind| kind == unwanted), "{unwanted}");
        }
    }
}
