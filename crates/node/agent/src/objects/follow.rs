//! The watches: of one object, of all that the node's pods refer to, and of what the Node says about freshness.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use hotmap_client::{ClientListWatch, FollowEvent, Follower, RawObject, ResourcePath};
use serde::Deserialize;
use tracing::{debug_span, info, warn};

use super::{Entry, ObjectCache, Read, TTL_DEFAULT, news, server_kind::NODE_FIELD};
use crate::references::{ObjectKind, ObjectRef};

/// Where the Node says how many whole seconds an object is fresh (`pkg/apis/core/annotation_key_constants.go`,
/// Kubernetes 1.36).
const TTL_ANNOTATION: &str = "node.alpha.kubernetes.io/ttl";

impl ObjectCache {
    /// Follows one object until it is immutable: then only the net and new pods ask whether it is still the same.
    pub(super) async fn follow(self: Arc<Self>, reference: ObjectRef) {
        let source = ClientListWatch::new(self.client.clone(), reference.collection())
            .with_field_selector(format!("metadata.name={}", reference.name));
        let mut follower = self.follower(source);
        let mut state = Interruption::default();
        while !self
            .with_entry(&reference, |entry| entry.is_immutable())
            .unwrap_or(true)
        {
            match follower.next().await {
                FollowEvent::Initial(objects) => self.heard(&reference, objects.first()),
                FollowEvent::Applied(_) | FollowEvent::Deleted(_) if self.following.hold_watches => {}
                FollowEvent::Applied(object) => self.heard(&reference, Some(&object)),
                FollowEvent::Deleted(_) => self.heard(&reference, None),
                other => state.note(
                    &other,
                    &format!(
                        "{} {}/{}",
                        reference.kind.name(),
                        reference.namespace,
                        reference.name
                    ),
                ),
            }
        }
    }

    /// Follows what pods of this node refer to, in one watch that the server keeps to just that. What a new pod brings
    /// along is read as well: an object that is not there cannot be told of.
    pub(super) async fn follow_node(self: Arc<Self>, kind: ObjectKind) {
        let source = ClientListWatch::new(self.client.clone(), ResourcePath::new("", "v1", kind.plural()))
            .with_field_selector(format!("{NODE_FIELD}={}", self.following.node_name));
        let mut follower = self.follower(source);
        let mut state = Interruption::default();
        loop {
            match follower.next().await {
                FollowEvent::Initial(objects) => {
                    for object in &objects {
                        self.heard(&ObjectRef::of(kind, object), Some(object));
                    }
                }
                FollowEvent::Applied(_) | FollowEvent::Deleted(_) if self.following.hold_watches => {}
                FollowEvent::Applied(object) => self.heard(&ObjectRef::of(kind, &object), Some(&object)),
                FollowEvent::Deleted(object) => self.left(&ObjectRef::of(kind, &object)),
                other => state.note(&other, kind.plural()),
            }
        }
    }

    fn follower(&self, source: ClientListWatch) -> Follower<ClientListWatch> {
        self.following.server.follow(source, &self.metrics)
    }

    fn heard(&self, reference: &ObjectRef, object: Option<&RawObject>) {
        if self.with_entry(reference, |_| ()).is_none() {
            return;
        }
        let span = debug_span!(
            target: hotmap_trace::TARGET, "heard", kind = reference.kind.name(), namespace = %reference.namespace,
            name = %reference.name, resource_version = object.map(RawObject::resource_version),
        );
        hotmap_trace::continue_from(&span, object.and_then(RawObject::trace));
        let _entered = span.entered();
        if let Some(news) = news(reference, object) {
            self.told(reference, news);
        }
    }

    /// An object left the node's watch: it is gone, or the last pod that the API has here is. Pods that are gone there may
    /// still end here, with what they have.
    fn left(self: &Arc<Self>, reference: &ObjectRef) {
        let Some(ticket) = self.with_entry(reference, Entry::ask) else {
            return;
        };
        let (cache, reference) = (Arc::clone(self), reference.clone());
        self.spawn_detached(async move {
            if let Some(news) = cache.fetch(&reference, Read::Newest).await {
                cache.answered(&reference, ticket, news);
            }
        });
    }

    /// Follows what the Node says about the freshness of objects.
    pub(super) async fn follow_ttl(self: Arc<Self>) {
        let source = ClientListWatch::new(self.client.clone(), ResourcePath::new("", "v1", "nodes"))
            .with_field_selector(format!("metadata.name={}", self.following.node_name));
        let mut follower = self.follower(source);
        loop {
            let ttl = match follower.next().await {
                FollowEvent::Initial(nodes) => nodes.first().map(ttl),
                FollowEvent::Applied(node) => Some(ttl(&node)),
                _ => None,
            };
            if let Some(ttl) = ttl {
                let millis = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
                if self.ttl_ms.swap(millis, Ordering::Relaxed) != millis {
                    info!(?ttl, "objects are taken for fresh so long");
                }
            }
        }
    }
}

/// How long objects are fresh as a Node says it; the default if it says nothing that is a number.
fn ttl(node: &RawObject) -> Duration {
    #[derive(Deserialize)]
    struct Node {
        metadata: Metadata,
    }
    #[derive(Deserialize)]
    struct Metadata {
        #[serde(default)]
        annotations: std::collections::BTreeMap<String, String>,
    }
    let annotations = node.parse::<Node>().map(|node| node.metadata.annotations);
    let seconds = annotations
        .ok()
        .and_then(|annotations| annotations.get(TTL_ANNOTATION)?.parse().ok());
    seconds.map_or(TTL_DEFAULT, Duration::from_secs)
}

/// A failure is told at every try; one line about it is enough.
#[derive(Default)]
struct Interruption {
    is_told: bool,
}

impl Interruption {
    fn note(&mut self, event: &FollowEvent, what: &str) {
        match event {
            FollowEvent::Interrupted(error) if !std::mem::replace(&mut self.is_told, true) => {
                warn!(what, %error, "watch interrupted, the last value stands");
            }
            FollowEvent::Resumed => {
                self.is_told = false;
                info!(what, "watch resumed");
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_says_how_long_objects_are_fresh() {
        for (annotations, seconds) in [
            (r#"{"node.alpha.kubernetes.io/ttl": "0"}"#, 0),
            (r#"{"node.alpha.kubernetes.io/ttl": "300"}"#, 300),
            (r#"{"node.alpha.kubernetes.io/ttl": "5s"}"#, 60),
            (r#"{"node.alpha.kubernetes.io/ttl": "-1"}"#, 60),
            (r#"{"other": "1"}"#, 60),
        ] {
            let json = format!(r#"{{"metadata": {{"name": "n", "annotations": {annotations}}}}}"#);
            let node = RawObject::from_json(json.into()).expect("an object");
            assert_eq!(ttl(&node), Duration::from_secs(seconds), "{annotations}");
        }
    }
}
