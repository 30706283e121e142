//! What lies in a namespace.

use std::collections::HashSet;

use hotmap_client::{
    Client, ClientError, ClientListWatch, DeleteParams, FollowEvent, Follower, FollowerConfig, RawObject,
    ResourcePath,
};
use serde::Deserialize;
use tracing::warn;

/// Every collection of stored objects in a namespace. A store that two groups show (events) is named once.
pub(super) fn collections(namespace: &str) -> Vec<ResourcePath> {
    let mut prefixes = HashSet::new();
    let stored = hotmap_kinds::resources().iter().filter(|resource| {
        resource.namespaced && resource.verbs.contains(&"deletecollection") && !resource.prefix.is_empty()
    });
    let distinct = stored.filter(|resource| prefixes.insert(resource.prefix));
    distinct
        .map(|resource| {
            ResourcePath::new(resource.group, resource.version, resource.plural).in_namespace(namespace)
        })
        .collect()
}

/// Asks for all of a collection to be deleted. Pods get their grace.
pub(super) async fn delete(client: &Client, collection: &ResourcePath) -> Result<(), ClientError> {
    match client.delete(collection, &DeleteParams::default()).await {
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Follows a collection until nothing is left. What slipped in before the server refused new objects is deleted too.
pub(super) async fn wait_until_empty(client: &Client, collection: &ResourcePath) -> Result<(), ClientError> {
    let source = ClientListWatch::new(client.clone(), collection.clone());
    let mut follower = Follower::new(source, FollowerConfig::STOCK);
    let mut left = Remaining::default();
    loop {
        let missed = match follower.next().await {
            FollowEvent::Initial(objects) => objects
                .iter()
                .map(|object| left.insert(object))
                .fold(false, |missed, one| missed | one),
            FollowEvent::Applied(object) => left.insert(&object),
            FollowEvent::Deleted(object) => {
                left.remove(&object);
                false
            }
            FollowEvent::Interrupted(error) => {
                warn!(%collection, %error, "cannot follow what is left in a namespace");
                continue;
            }
            FollowEvent::Resumed => continue,
        };
        if left.is_empty() {
            return Ok(());
        }
        if missed {
            delete(client, collection).await?;
        }
    }
}

/// The names that are still there.
#[derive(Debug, Default)]
struct Remaining(HashSet<String>);

impl Remaining {
    /// Whether nobody has asked for the object's deletion yet.
    fn insert(&mut self, object: &RawObject) -> bool {
        self.0.insert(object.name().to_owned());
        !is_deleting(object)
    }

    fn remove(&mut self, object: &RawObject) {
        self.0.remove(object.name());
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Whether the object has a `deletionTimestamp`.
pub(super) fn is_deleting(object: &RawObject) -> bool {
    #[derive(Deserialize)]
    struct View {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Metadata {
        deletion_timestamp: Option<String>,
    }
    object
        .parse::<View>()
        .is_ok_and(|view| view.metadata.deletion_timestamp.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stored_namespaced_kind_is_named_once() {
        let paths: Vec<_> = collections("shop").iter().map(ToString::to_string).collect();
        for expected in [
            "/api/v1/namespaces/shop/pods",
            "/api/v1/namespaces/shop/secrets",
            "/api/v1/namespaces/shop/events",
            "/apis/coordination.k8s.io/v1/namespaces/shop/leases",
        ] {
            assert!(
                paths.iter().any(|path| path == expected),
                "{expected} is not in {paths:?}"
            );
        }
        let events = paths.iter().filter(|path| path.ends_with("/events")).count();
        assert_eq!(events, 1);
        assert!(
            !paths
                .iter()
                .any(|path| path.ends_with("/nodes") || path.ends_with("reviews")),
            "{paths:?}"
        );
    }

    #[test]
    fn a_deletion_timestamp_of_null_is_none() {
        for (json, deleting) in [
            (
                r#"{"metadata":{"name":"a","deletionTimestamp":"2026-01-02T15:04:05Z"}}"#,
                true,
            ),
            (r#"{"metadata":{"name":"a","deletionTimestamp":null}}"#, false),
            (r#"{"metadata":{"name":"a"}}"#, false),
        ] {
            let object = RawObject::from_json(json.into()).expect("an object");
            assert_eq!(is_deleting(&object), deleting, "{json}");
        }
    }
}
