//! The next step of a rolling update.
//!
//! Source: `rollingUpdate` in `pkg/controller/daemon/update.go`, Kubernetes 1.36. Nodes take their turns by name, where
//! upstream lets chance decide.

use super::{DaemonPod, NodeState, Update};
use crate::{
    daemon_set::eligibility::Fit,
    view::int_or_percent::{IntOrPercent, Round},
};

/// Names of nodes that get a pod, and of pods to delete.
pub(super) type Step<'a> = (Vec<&'a str>, Vec<&'a str>);

/// What the update may replace now, `desired` being the number of nodes that shall run a pod.
pub(super) fn replace<'a>(update: Update, nodes: &[NodeState<'a>], desired: i64) -> Step<'a> {
    let Update::Rolling {
        max_unavailable,
        max_surge,
    } = update
    else {
        return Step::default();
    };
    let count = |share: IntOrPercent| usize::try_from(share.of(desired, Round::Up)).unwrap_or(0);
    let nodes = nodes
        .iter()
        .filter(|node| node.fit == Fit::Runs || (node.fit != Fit::Gone && !node.pods.is_empty()));
    match (count(max_unavailable), count(max_surge)) {
        // The server refuses this, so that an update can go on at all.
        (0, 0) if desired > 0 => (Vec::new(), in_place(nodes, 1)),
        (max_unavailable, 0) => (Vec::new(), in_place(nodes, max_unavailable)),
        (_, max_surge) => surging(nodes, max_surge, usize::try_from(desired).unwrap_or(0)),
    }
}

/// The pods of a node that do not terminate.
enum Found<'p, 'a> {
    /// At most one of each.
    Pods {
        new: Option<&'p DaemonPod<'a>>,
        old: Option<&'p DaemonPod<'a>>,
    },
    /// The next look prunes them first.
    TooMany,
}

fn find<'p, 'a>(node: &'p NodeState<'a>) -> Found<'p, 'a> {
    let (mut new, mut old) = (None, None);
    for pod in node.pods.iter().filter(|pod| !pod.is_terminating) {
        let place = if pod.is_updated { &mut new } else { &mut old };
        if place.replace(pod).is_some() {
            return Found::TooMany;
        }
    }
    Found::Pods { new, old }
}

/// Old pods to delete, so that no more than `max_unavailable` nodes are without an available pod. Those that are not
/// available now lose nothing.
fn in_place<'p, 'a: 'p>(
    nodes: impl Iterator<Item = &'p NodeState<'a>>,
    max_unavailable: usize,
) -> Vec<&'a str> {
    let mut unavailable = 0;
    let (mut lost_anyway, mut candidates) = (Vec::new(), Vec::new());
    for node in nodes {
        match find(node) {
            Found::Pods {
                new: Some(new),
                old: None,
            } => unavailable += usize::from(!new.is_available()),
            Found::Pods {
                new: None,
                old: Some(old),
            } if old.is_available() => candidates.push(old.name),
            Found::Pods {
                new: None,
                old: Some(old),
            } => {
                unavailable += 1;
                lost_anyway.push(old.name);
            }
            Found::Pods { .. } | Found::TooMany => unavailable += 1,
        }
    }
    candidates.truncate(max_unavailable.saturating_sub(unavailable));
    lost_anyway.extend(candidates);
    lost_anyway
}

/// Nodes that get a second pod, no more than `max_surge` at a time beside an available old one, and old pods whose
/// successor is available.
fn surging<'p, 'a: 'p>(
    nodes: impl Iterator<Item = &'p NodeState<'a>>,
    max_surge: usize,
    desired: usize,
) -> Step<'a> {
    let (mut surging, mut available) = (0, 0);
    let (mut create, mut candidates) = (Vec::new(), Vec::new());
    let (mut delete, mut unwanted) = (Vec::new(), Vec::new());
    for node in nodes {
        let Found::Pods { new, old } = find(node) else {
            surging += 1;
            continue;
        };
        available += usize::from(old.or(new).is_some_and(DaemonPod::is_available));
        match (old, new) {
            (None, _) => {}
            (Some(old), Some(new)) if new.is_available() => delete.push(old.name),
            (Some(_), Some(_)) => surging += 1,
            // The node shall run no pod any more. The old one is needed while others do not do its work yet.
            (Some(old), None) if node.fit != Fit::Runs => {
                if old.is_available() {
                    unwanted.push(old.name);
                } else {
                    delete.push(old.name);
                }
            }
            (Some(old), None) if old.is_available() => candidates.push(node.name),
            (Some(_), None) => create.push(node.name),
        }
    }
    delete.extend(unwanted.into_iter().take(available.saturating_sub(desired)));
    create.extend(candidates.into_iter().take(max_surge.saturating_sub(surging)));
    (create, delete)
}
