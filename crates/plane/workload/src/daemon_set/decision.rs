//! What a DaemonSet does next: a pure function of its strategy, the nodes and its pods on them.
//!
//! Source: `podsShouldBeOnNode` and `updateDaemonSetStatus` in `pkg/controller/daemon/daemon_controller.go`,
//! Kubernetes 1.36.

mod rolling;

use std::time::Duration;

use jiff::Timestamp;

use super::eligibility::Fit;
use crate::view::int_or_percent::{IntOrPercent, Round};

/// Pods created, and pods deleted, in one look; the rest waits for the next one. Upstream's `BurstReplicas`.
const BURST_MAX: usize = 250;

/// How old pods are replaced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Update {
    OnDelete,
    Rolling {
        max_unavailable: IntOrPercent,
        max_surge: IntOrPercent,
    },
}

/// A node, and the pods of the set that run there or are meant for it.
#[derive(Debug, Clone)]
pub(super) struct NodeState<'a> {
    pub(super) name: &'a str,
    pub(super) fit: Fit,
    pub(super) pods: Vec<DaemonPod<'a>>,
}

/// A pod of the set. Those that are finished and terminate have no part in anything any more and are left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DaemonPod<'a> {
    pub(super) name: &'a str,
    pub(super) created: Option<Timestamp>,
    /// Whether it is bound to its node, and not only meant for it.
    pub(super) is_bound: bool,
    pub(super) progress: Progress,
    pub(super) is_terminating: bool,
    /// Whether it is of the template as it is.
    pub(super) is_updated: bool,
}

/// How far a pod has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    Failed,
    Succeeded,
    /// Not ready.
    Waiting,
    /// Ready, but not for `minReadySeconds`.
    Ready,
    Available,
}

impl DaemonPod<'_> {
    fn is_available(&self) -> bool {
        self.progress == Progress::Available
    }

    fn is_ready(&self) -> bool {
        self.progress >= Progress::Ready
    }
}

/// What to do now, and what the status says meanwhile.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Decision<'a> {
    /// The nodes that get a pod.
    pub(super) create: Vec<&'a str>,
    /// The names of the pods to delete.
    pub(super) delete: Vec<&'a str>,
    /// Node and name of pods among them that have failed or succeeded.
    pub(super) failed: Vec<(&'a str, &'a str)>,
    pub(super) succeeded: Vec<(&'a str, &'a str)>,
    /// When a failed pod that is left alone for now is due.
    pub(super) again: Option<Duration>,
    pub(super) counts: Counts,
}

/// The numbers of the status.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) desired: i64,
    pub(super) current: i64,
    pub(super) misscheduled: i64,
    pub(super) ready: i64,
    pub(super) available: i64,
    pub(super) updated: i64,
}

/// Decides. `held` says how long failed pods of a node are left alone, if they are.
///
/// First every node gets what it must have and loses what it must not; only when that is so the update goes on.
pub(super) fn decide<'a>(
    update: Update,
    nodes: &[NodeState<'a>],
    held: impl Fn(&str) -> Option<Duration>,
) -> Decision<'a> {
    let mut decision = Decision {
        counts: count(nodes),
        ..Decision::default()
    };
    let allows_surge = matches!(update, Update::Rolling { max_surge, .. } if max_surge.of(1, Round::Up) > 0);
    for node in nodes {
        decision.manage(node, allows_surge, &held);
    }
    if decision.create.is_empty() && decision.delete.is_empty() {
        (decision.create, decision.delete) = rolling::replace(update, nodes, decision.counts.desired);
    }
    decision.create.truncate(BURST_MAX);
    decision.delete.truncate(BURST_MAX);
    decision
}

impl<'a> Decision<'a> {
    fn manage(&mut self, node: &NodeState<'a>, allows_surge: bool, held: &impl Fn(&str) -> Option<Duration>) {
        let staying = || node.pods.iter().filter(|pod| !pod.is_terminating);
        match node.fit {
            Fit::Runs if node.pods.is_empty() => self.create.push(node.name),
            Fit::Runs | Fit::Stays => {
                let running = self.replace_finished(node, held);
                if allows_surge {
                    self.prune_surge(node, &running);
                } else {
                    self.delete.extend(running.iter().skip(1).map(|pod| pod.name));
                }
            }
            Fit::Leaves => self.delete.extend(staying().map(|pod| pod.name)),
            // What was bound to it belongs to nobody but the garbage collector; what was not would wait for ever.
            Fit::Gone => self
                .delete
                .extend(staying().filter(|pod| !pod.is_bound).map(|pod| pod.name)),
        }
    }

    /// Deletes pods that ended, failed ones not too often, and returns the others, those to keep first.
    fn replace_finished(
        &mut self,
        node: &NodeState<'a>,
        held: &impl Fn(&str) -> Option<Duration>,
    ) -> Vec<DaemonPod<'a>> {
        let mut running = Vec::new();
        for pod in node.pods.iter().filter(|pod| !pod.is_terminating) {
            match (pod.progress, held(node.name)) {
                (Progress::Failed, Some(delay)) => {
                    self.again = Some(self.again.map_or(delay, |earlier| earlier.min(delay)));
                }
                (Progress::Failed, None) => {
                    self.failed.push((node.name, pod.name));
                    self.delete.push(pod.name);
                }
                (Progress::Succeeded, _) => {
                    self.succeeded.push((node.name, pod.name));
                    self.delete.push(pod.name);
                }
                _ => running.push(*pod),
            }
        }
        sort(&mut running);
        running
    }

    /// With a surge there may be two: the old one while it is ready, and the new one until it is available.
    fn prune_surge(&mut self, node: &NodeState<'a>, running: &[DaemonPod<'a>]) {
        if running.is_empty() && node.fit == Fit::Runs {
            self.create.push(node.name);
        }
        let (mut new, mut old) = (None, None);
        for pod in running {
            let place = if pod.is_updated { &mut new } else { &mut old };
            match place {
                None => *place = Some(pod),
                Some(_) => self.delete.push(pod.name),
            }
        }
        if let (Some(new), Some(old)) = (new, old)
            && (!old.is_ready() || new.is_available())
        {
            self.delete.push(old.name);
        }
    }
}

/// Bound pods first, then the oldest.
fn sort(pods: &mut [DaemonPod<'_>]) {
    pods.sort_by(|one, other| {
        (!one.is_bound, one.created, one.name).cmp(&(!other.is_bound, other.created, other.name))
    });
}

fn count(nodes: &[NodeState<'_>]) -> Counts {
    let mut counts = Counts::default();
    for node in nodes.iter().filter(|node| node.fit != Fit::Gone) {
        let mut pods = node.pods.clone();
        sort(&mut pods);
        match (node.fit, pods.first()) {
            (Fit::Runs, None) => counts.desired += 1,
            (Fit::Runs, Some(first)) => {
                counts.desired += 1;
                counts.current += 1;
                counts.ready += i64::from(first.is_ready());
                counts.available += i64::from(first.is_available());
                counts.updated += i64::from(first.is_updated);
            }
            (_, Some(_)) => counts.misscheduled += 1,
            (_, None) => {}
        }
    }
    counts
}

#[cfg(test)]
mod tests;
