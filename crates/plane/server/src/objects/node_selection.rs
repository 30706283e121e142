//! `fieldSelector=hotmap.dev/node=NAME` on ConfigMaps and Secrets: what the pods bound to a node refer to, and nothing else.
//!
//! Who is a member follows from pods as they were at a revision, and objects are shown as they were at that same revision:
//! two histories are read as one, in the order of their revisions. So an answer is true at its revision, and a watch that
//! begins there misses nothing, whether an object changes or a pod comes or goes.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    pin::Pin,
    sync::Arc,
    task::Context,
};

use hotmap_kinds::{Resource, find};
use hotmap_object::{Object, ObjectIndex, Revision};
use tokio::sync::futures::OwnedNotified;

use super::{Objects, pod_references::PodReferenceIndex, selector::Selector};
use crate::{
    authorization::references::Referenced,
    cache::{CachedEvent, Lagged, Page, ResourceCache, Selection, Subscription},
};

/// The field by which nodes select.
pub(crate) const NODE_FIELD: &str = "hotmap.dev/node";

/// Events copied under one hold of a lock.
const EVENTS_PER_READ: usize = 64;

/// The kind as pods refer to it; `None` for what cannot be selected by node.
pub(super) fn selectable(resource: &Resource) -> Option<Referenced> {
    match (resource.group, resource.plural) {
        ("", "configmaps") => Some(Referenced::ConfigMap),
        ("", "secrets") => Some(Referenced::Secret),
        _ => None,
    }
}

/// Which objects of a kind the pods of a node refer to, at one place in the history of pods.
pub(super) struct Members {
    node: Box<str>,
    kind: Referenced,
    index: Arc<PodReferenceIndex>,
    /// What each pod of the node refers to, as keys, by the pod's key.
    pods: HashMap<Arc<str>, Vec<Box<str>>>,
    /// Pods that refer to an object, by its key.
    counts: BTreeMap<Box<str>, usize>,
}

/// What a change of a pod does to the members: keys of objects, whether they exist or not.
#[derive(Debug, Default, PartialEq, Eq)]
struct Shift {
    entered: Vec<Box<str>>,
    left: Vec<Box<str>>,
}

impl Members {
    fn contains(&self, key: &str) -> bool {
        self.counts.contains_key(key)
    }

    fn selects(&self, index: &ObjectIndex) -> bool {
        self.contains(&format!("{}/{}", index.namespace, index.name))
    }

    /// A pod is as it is now.
    fn set(&mut self, pod_key: &Arc<str>, pod: Option<&Object>) -> Shift {
        let now = pod.map(|pod| self.references(pod)).unwrap_or_default();
        let before = self.pods.remove(pod_key).unwrap_or_default();
        let mut shift = Shift::default();
        if now == before {
            if !now.is_empty() {
                self.pods.insert(Arc::clone(pod_key), now);
            }
            return shift;
        }
        for key in &now {
            let count = self.counts.entry(key.clone()).or_default();
            *count += 1;
            if *count == 1 {
                shift.entered.push(key.clone());
            }
        }
        for key in before {
            let Some(count) = self.counts.get_mut(&key) else {
                continue;
            };
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&key);
                shift.left.push(key);
            }
        }
        if !now.is_empty() {
            self.pods.insert(Arc::clone(pod_key), now);
        }
        shift
    }

    /// Keys of what a pod of the node refers to, each once and in order; nothing of others'.
    fn references(&self, pod: &Object) -> Vec<Box<str>> {
        if pod.index().field("spec.nodeName") != Some(&self.node) {
            return Vec::new();
        }
        let namespace = &pod.index().namespace;
        let references = self.index.of(pod, self.pods.len());
        let names = references.iter().filter(|(kind, _)| *kind == self.kind);
        let mut keys: Vec<Box<str>> = names
            .map(|(_, name)| format!("{namespace}/{name}").into())
            .collect();
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

impl Objects {
    /// The members as they were at `revision`, which the cache must have reached; `None` for a selector without a node.
    ///
    /// # Errors
    ///
    /// [`Lagged`] if the history of pods does not reach back so far.
    pub(super) fn members(
        &self,
        resource: &Resource,
        selector: &Selector,
        revision: Revision,
    ) -> Result<Option<Members>, Lagged> {
        let (Some(node), Some(kind)) = (selector.node(), selectable(resource)) else {
            return Ok(None);
        };
        let mut members = Members {
            node: node.into(),
            kind,
            index: Arc::clone(&self.pod_references),
            pods: HashMap::new(),
            counts: BTreeMap::new(),
        };
        let is_bound = |index: &ObjectIndex| index.field("spec.nodeName") == Some(node);
        let selection = Selection {
            start: "",
            prefix: "",
            key: None,
            limit: None,
            matches: &is_bound,
        };
        for pod in self.pods().list_at(&selection, revision)?.items {
            let key = format!("{}/{}", pod.index().namespace, pod.index().name);
            members.set(&key.into(), Some(&pod));
        }
        Ok(Some(members))
    }

    /// What of a selection the members are, both as they were at `revision`.
    ///
    /// # Errors
    ///
    /// [`Lagged`] if the history of objects does not reach back so far.
    pub(super) fn page_of_members(
        &self,
        cache: &ResourceCache,
        members: &Members,
        selection: &Selection<'_>,
        revision: Revision,
    ) -> Result<Page, Lagged> {
        let matches = |index: &ObjectIndex| (selection.matches)(index) && members.selects(index);
        let of_members = Selection {
            matches: &matches,
            ..*selection
        };
        cache.list_at(&of_members, revision)
    }

    /// Follows members from the place they are at.
    ///
    /// # Errors
    ///
    /// [`Lagged`] if the history of pods does not reach back so far.
    pub(super) fn follow_members(
        &self,
        cache: &Arc<ResourceCache>,
        members: Members,
        after: Revision,
    ) -> Result<NodeFeed, Lagged> {
        let pods = self.pods().subscribe(None, after)?;
        Ok(NodeFeed {
            notified: Box::pin(pods.changed().clone().notified_owned()),
            pods,
            pod_events: VecDeque::new(),
            object_events: VecDeque::new(),
            members,
            objects: Arc::clone(cache),
        })
    }

    fn pods(&self) -> &Arc<ResourceCache> {
        let pods = find("", "v1", "pods").expect("pods are served");
        self.cache.of(pods).expect("pods are stored")
    }
}

/// The two histories of a watch by node, read as one.
pub(super) struct NodeFeed {
    pods: Subscription,
    /// Registered before the lane is read, so that no wake-up is lost.
    notified: Pin<Box<OwnedNotified>>,
    pod_events: VecDeque<Arc<CachedEvent>>,
    object_events: VecDeque<Arc<CachedEvent>>,
    members: Members,
    objects: Arc<ResourceCache>,
}

/// One thing that happened to the members.
pub(super) enum Happened {
    /// A member changed.
    Changed(Arc<CachedEvent>),
    /// Pods came or went, and with them these objects, as they were then.
    Shifted {
        entered: Vec<Arc<Object>>,
        left: Vec<Arc<Object>>,
        at: Revision,
    },
    /// Something that concerns no member.
    Elsewhere,
}

impl NodeFeed {
    /// Registers for the next change of a pod.
    pub(super) fn poll_notified(&mut self, context: &mut Context<'_>) {
        if self.notified.as_mut().poll(context).is_ready() {
            self.notified.set(self.pods.changed().clone().notified_owned());
            let _ = self.notified.as_mut().poll(context);
        }
    }

    /// What happened next, up to `reached`, which must have been read before; `objects` is the watch's own place.
    ///
    /// # Errors
    ///
    /// [`Lagged`] once what is next has left a history.
    pub(super) fn next(
        &mut self,
        objects: &mut Subscription,
        reached: Revision,
    ) -> Result<Option<Happened>, Lagged> {
        refill(&mut self.object_events, objects)?;
        refill(&mut self.pod_events, &mut self.pods)?;
        let next = |events: &VecDeque<Arc<CachedEvent>>| {
            let revision = events.front().map(|event| event.revision);
            revision.filter(|revision| *revision <= reached)
        };
        let is_pod = match (next(&self.pod_events), next(&self.object_events)) {
            (None, None) => return Ok(None),
            (Some(pod), Some(object)) => pod <= object,
            (pod, _) => pod.is_some(),
        };
        let events = match is_pod {
            true => &mut self.pod_events,
            false => &mut self.object_events,
        };
        let event = events.pop_front().expect("looked at");
        if !is_pod {
            let is_member = self.members.contains(&event.key);
            return Ok(Some(match is_member {
                true => Happened::Changed(event),
                false => Happened::Elsewhere,
            }));
        }
        let shift = self.members.set(&event.key, event.object().as_deref());
        if shift == Shift::default() {
            return Ok(Some(Happened::Elsewhere));
        }
        let as_then = |keys: &[Box<str>]| {
            let found = keys.iter().map(|key| self.object_at(key, event.revision));
            found.filter_map(Result::transpose).collect::<Result<_, _>>()
        };
        Ok(Some(Happened::Shifted {
            entered: as_then(&shift.entered)?,
            left: as_then(&shift.left)?,
            at: event.revision,
        }))
    }

    fn object_at(&self, key: &str, revision: Revision) -> Result<Option<Arc<Object>>, Lagged> {
        let selection = Selection {
            start: "",
            prefix: "",
            key: Some(key),
            limit: None,
            matches: &|_| true,
        };
        Ok(self.objects.list_at(&selection, revision)?.items.pop())
    }
}

fn refill(events: &mut VecDeque<Arc<CachedEvent>>, from: &mut Subscription) -> Result<(), Lagged> {
    if events.is_empty() {
        let mut read = Vec::new();
        from.read(EVENTS_PER_READ, &mut read)?;
        events.extend(read);
    }
    Ok(())
}
