//! What a StatefulSet does next: a pure function of its spec and its pods.
//!
//! Source: `updateStatefulSet` in `pkg/controller/statefulset/stateful_set_control.go`, Kubernetes 1.36, with
//! `MaxUnavailableStatefulSet` off, which is that release's default.
//!
//! ```text
//!   replicas, lowest ordinal first:   missing ▶ create · finished ▶ delete · else must be available
//!   pods beyond them, highest first:  delete
//!   replicas, highest ordinal first:  of an old revision ▶ delete · else must be available
//! ```
//!
//! With `OrderedReady` whatever is not as it must be ends the look: one step at a time, in order. With `Parallel` only
//! the third pass waits. A finished pod is replaced however it ended: an eviction may end with exit code 0.
//!
//! A rollout that breaks stays broken, as upstream: a pod of a bad revision that never becomes ready ends every later look
//! of an `OrderedReady` set at the first pass, so that putting the template back changes nothing until somebody deletes
//! that pod.

use std::collections::BTreeMap;

/// Pods created or deleted in one look; the rest waits for the next one. Bounds what a wish for a billion replicas costs.
const ACTIONS_MAX: usize = 500;

/// What the spec asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Desired<'a> {
    pub(super) replicas: i64,
    /// The first ordinal.
    pub(super) start: i64,
    pub(super) order: Order,
    pub(super) update: Update,
    /// The set is being deleted: it only counts.
    pub(super) is_deleting: bool,
    pub(super) current_revision: &'a str,
    pub(super) update_revision: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    OrderedReady,
    Parallel,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Update {
    OnDelete,
    /// All but the first `partition` replicas are updated.
    Rolling {
        partition: i64,
    },
}

/// A pod of the set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member<'a> {
    pub(super) ordinal: i64,
    pub(super) revision: &'a str,
    pub(super) progress: Progress,
    pub(super) is_terminating: bool,
    /// Whether it has the labels that say which pod it is.
    pub(super) is_labelled: bool,
}

/// How far a pod has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Progress {
    /// Succeeded or failed.
    Finished,
    /// Not running, or not ready.
    Waiting,
    /// Ready, but not for `minReadySeconds`.
    Ready,
    Available,
}

impl Member<'_> {
    fn is_available(&self) -> bool {
        self.progress == Progress::Available && !self.is_terminating
    }
}

/// One request, about the pod with this ordinal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    Create {
        ordinal: i64,
        revision: Revision,
    },
    Delete {
        ordinal: i64,
    },
    /// Give the pod the labels that say which one it is.
    Label {
        ordinal: i64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Revision {
    Current,
    Update,
}

/// What to do now, and what the status says meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decision {
    pub(super) actions: Vec<Action>,
    pub(super) counts: Counts,
    /// Every replica is updated and ready: the update revision is the current one from now on.
    pub(super) is_complete: bool,
}

/// The numbers of the status. A pod that terminates is a replica, but of no revision.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) replicas: i32,
    pub(super) ready: i32,
    pub(super) available: i32,
    pub(super) current: i32,
    pub(super) updated: i32,
}

/// Decides. `members` are all pods of the set, at most one per ordinal.
pub(super) fn decide(desired: &Desired<'_>, members: &[Member<'_>]) -> Decision {
    let mut counts = count(desired, members);
    let mut steps = Steps {
        desired,
        members: members.iter().map(|member| (member.ordinal, member)).collect(),
        actions: Vec::new(),
    };
    if !desired.is_deleting && steps.keep_replicas().is_continue() && steps.remove_condemned().is_continue() {
        steps.update();
    }
    let replicas = i32::try_from(desired.replicas).unwrap_or(i32::MAX);
    let is_complete = matches!(desired.update, Update::Rolling { .. })
        && [counts.replicas, counts.ready, counts.updated]
            .iter()
            .all(|count| *count == replicas);
    if is_complete {
        counts.current = counts.updated;
    }
    Decision {
        actions: steps.actions,
        counts,
        is_complete,
    }
}

fn count(desired: &Desired<'_>, members: &[Member<'_>]) -> Counts {
    let number = |counted: &dyn Fn(&Member<'_>) -> bool| {
        i32::try_from(members.iter().filter(|member| counted(member)).count()).unwrap_or(i32::MAX)
    };
    let of = |revision: &str| number(&|member| member.revision == revision && !member.is_terminating);
    Counts {
        replicas: number(&|_| true),
        ready: number(&|member| member.progress >= Progress::Ready),
        available: number(&|member| member.progress == Progress::Available),
        current: of(desired.current_revision),
        updated: of(desired.update_revision),
    }
}

type Flow = std::ops::ControlFlow<()>;

struct Steps<'a> {
    desired: &'a Desired<'a>,
    members: BTreeMap<i64, &'a Member<'a>>,
    actions: Vec<Action>,
}

impl Steps<'_> {
    fn is_ordered(&self) -> bool {
        self.desired.order == Order::OrderedReady
    }

    /// An obstacle: it ends the look of an ordered set, and nothing else.
    fn obstacle(&self) -> Flow {
        if self.is_ordered() {
            Flow::Break(())
        } else {
            Flow::Continue(())
        }
    }

    fn end(&self) -> i64 {
        self.desired.start + self.desired.replicas
    }

    fn keep_replicas(&mut self) -> Flow {
        for ordinal in self.desired.start..self.end() {
            if self.actions.len() >= ACTIONS_MAX {
                return Flow::Break(());
            }
            self.keep_replica(ordinal)?;
        }
        Flow::Continue(())
    }

    fn keep_replica(&mut self, ordinal: i64) -> Flow {
        let Some(member) = self.members.get(&ordinal).copied() else {
            let revision = self.revision_of_new(ordinal);
            self.actions.push(Action::Create { ordinal, revision });
            return self.obstacle();
        };
        if member.progress == Progress::Finished {
            if !member.is_terminating {
                self.actions.push(Action::Delete { ordinal });
            }
            return self.obstacle();
        }
        if !member.is_available() {
            self.obstacle()?;
        }
        if !member.is_labelled && !member.is_terminating {
            self.actions.push(Action::Label { ordinal });
        }
        Flow::Continue(())
    }

    /// Below the partition a lost pod comes back as it was.
    fn revision_of_new(&self, ordinal: i64) -> Revision {
        match self.desired.update {
            Update::Rolling { partition } if ordinal < self.desired.start + partition => Revision::Current,
            Update::Rolling { .. } | Update::OnDelete => Revision::Update,
        }
    }

    fn remove_condemned(&mut self) -> Flow {
        let range = self.desired.start..self.end();
        let condemned: Vec<_> = self
            .members
            .values()
            .filter(|member| !range.contains(&member.ordinal))
            .copied()
            .collect();
        // Upstream waits here for finished pods too, which never get well: two of them end its scaling down for good.
        let may_get_well =
            |member: &&&Member<'_>| !member.is_available() && member.progress != Progress::Finished;
        let first_ill = condemned.iter().find(may_get_well).map(|member| member.ordinal);
        for member in condemned.iter().rev() {
            if member.is_terminating {
                self.obstacle()?;
                continue;
            }
            // An ordered set goes down from a healthy state: a pod that is not well may go only if all before it are.
            if may_get_well(&member) && first_ill != Some(member.ordinal) {
                self.obstacle()?;
            }
            if self.actions.len() >= ACTIONS_MAX {
                return Flow::Break(());
            }
            self.actions.push(Action::Delete {
                ordinal: member.ordinal,
            });
            self.obstacle()?;
        }
        Flow::Continue(())
    }

    fn update(&mut self) {
        let Update::Rolling { partition } = self.desired.update else {
            return;
        };
        for ordinal in (self.desired.start + partition..self.end()).rev() {
            let Some(member) = self.members.get(&ordinal) else {
                return;
            };
            if member.revision != self.desired.update_revision && !member.is_terminating {
                // One that has finished is deleted already.
                if member.progress != Progress::Finished {
                    self.actions.push(Action::Delete { ordinal });
                }
                return;
            }
            if !member.is_available() {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
