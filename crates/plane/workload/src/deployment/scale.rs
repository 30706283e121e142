//! A deployment whose size was edited while several of its ReplicaSets have pods: all grow or shrink in proportion, so that
//! a rollout is neither hurried nor held up.
//!
//! Source: `scale` in `pkg/controller/deployment/sync.go` and `GetReplicaSetProportion` in
//! `pkg/controller/deployment/util/deployment_util.go`, Kubernetes 1.36.

use std::cmp::Reverse;

use super::plan::{DESIRED_REPLICAS, MAX_REPLICAS, Plan, Which};
use crate::view::{ReplicaSet, deployment::StrategyType};

impl Plan<'_> {
    /// Whether the deployment's size is another one than when its active ReplicaSets got theirs.
    pub(super) fn was_resized(&self) -> bool {
        let resized = |which: &Which| self.was_sized_for_another(*which);
        self.active().iter().any(resized)
    }

    fn was_sized_for_another(&self, which: Which) -> bool {
        count(self.get(which), DESIRED_REPLICAS).is_some_and(|desired| desired != self.replicas())
    }

    /// Plans the new sizes. Answers whether anything was planned.
    pub(super) fn scale(&mut self) -> bool {
        let planned = self.steps.len();
        match self.active().as_slice() {
            [] => {
                let latest = match &self.new {
                    Some(_) => Some(Which::New),
                    None => self.old.len().checked_sub(1).map(Which::Old),
                };
                if let Some(latest) = latest {
                    self.resize(latest, self.replicas(), false);
                }
            }
            [only] => {
                // Also when somebody else made it the right size: else it would look resized for ever.
                let stale = self.was_sized_for_another(*only);
                self.resize(*only, self.replicas(), stale);
            }
            several if self.is_saturated() => {
                for old in several.iter().filter(|which| **which != Which::New) {
                    self.resize(*old, 0, false);
                }
            }
            several if self.deployment.spec.strategy.kind == StrategyType::RollingUpdate => {
                self.scale_in_proportion(several.to_vec());
            }
            _ => {}
        }
        self.steps.len() > planned
    }

    /// Whether the new ReplicaSet has all the pods, available, and knows that it shall.
    fn is_saturated(&self) -> bool {
        self.new.as_ref().is_some_and(|new| {
            i64::from(new.spec.replicas) == self.replicas()
                && count(new, DESIRED_REPLICAS) == Some(self.replicas())
                && i64::from(new.status.available_replicas) == self.replicas()
        })
    }

    fn scale_in_proportion(&mut self, mut sets: Vec<Which>) {
        let allowed = if self.replicas() > 0 {
            self.max_replicas()
        } else {
            0
        };
        let to_add = allowed - self.asked_for();
        // The largest first; of equals those that matter more when pods are added, less when they go.
        let size = |which: &Which| Reverse(self.get(*which).spec.replicas);
        let age = |which: &Which| {
            let metadata = &self.get(*which).metadata;
            (metadata.creation_timestamp, metadata.name.clone())
        };
        if to_add > 0 {
            sets.sort_by_key(|which| (size(which), Reverse(age(which))));
        } else if to_add < 0 {
            sets.sort_by_key(|which| (size(which), age(which)));
        }
        let mut added = 0;
        let mut sizes = Vec::new();
        for which in &sets {
            let share = self.proportion(self.get(*which), to_add, added);
            added += share;
            sizes.push(i64::from(self.get(*which).spec.replicas) + share);
        }
        // What rounding left over is the largest one's.
        if let Some(largest) = sizes.first_mut() {
            *largest = (*largest + to_add - added).max(0);
        }
        for (which, size) in sets.into_iter().zip(sizes) {
            self.resize(which, size, true);
        }
    }

    /// One ReplicaSet's share of the pods to add, negative if they are to go.
    fn proportion(&self, set: &ReplicaSet, to_add: i64, added: i64) -> i64 {
        let left = to_add - added;
        match to_add {
            0 => 0,
            _ if left == 0 => 0,
            1.. => self.fraction(set).min(left),
            _ => self.fraction(set).max(left),
        }
    }

    fn fraction(&self, set: &ReplicaSet) -> i64 {
        let size = i64::from(set.spec.replicas);
        if self.replicas() == 0 {
            return -size;
        }
        let before = match count(set, MAX_REPLICAS) {
            None | Some(0) => self.status.replicas.into(),
            Some(before) => before,
        };
        if before == 0 {
            return 0;
        }
        rounded(size * self.max_replicas(), before) - size
    }
}

/// The nearest whole number, away from zero in the middle. None of both is negative.
fn rounded(dividend: i64, divisor: i64) -> i64 {
    (2 * dividend + divisor) / (2 * divisor)
}

/// A number in an annotation; nothing if it is none, or not one of a size.
fn count(set: &ReplicaSet, annotation: &str) -> Option<i64> {
    let count = set.metadata.annotation(annotation)?.parse::<u32>().ok()?;
    i32::try_from(count).ok().map(i64::from)
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn halves_round_up() {
        for (dividend, divisor, expected) in
            [(5, 2, 3), (7, 5, 1), (8, 5, 2), (0, 3, 0), (1, 2, 1), (9, 3, 3)]
        {
            assert_eq!(rounded(dividend, divisor), expected, "{dividend}/{divisor}");
        }
    }
}
