//! The rolling update: new pods come as far as `maxSurge` lets them, old ones go as far as `maxUnavailable` lets them.
//!
//! Source: `pkg/controller/deployment/rolling.go`, Kubernetes 1.36.

use super::plan::{Plan, Which};
use crate::view::deployment::StrategyType;

impl Plan<'_> {
    pub(super) fn roll(&mut self) {
        if self.new.is_none() {
            self.create_new();
        }
        if self.grow_new() || self.shrink_old() {
            return;
        }
        self.clean_up_if_complete();
    }

    pub(super) fn clean_up_if_complete(&mut self) {
        if self.is_complete(&self.status) {
            self.clean_up_history();
        }
    }

    /// Plans the new ReplicaSet's size: down to what the deployment wants, or up as far as there is room.
    fn grow_new(&mut self) -> bool {
        let size = i64::from(self.get(Which::New).spec.replicas);
        if size == self.replicas() {
            return false;
        }
        let target = if size > self.replicas() {
            self.replicas()
        } else {
            self.room_for_new(size)
        };
        self.resize(Which::New, target, false)
    }

    /// How large the new ReplicaSet may be, now that it has this size.
    ///
    /// Source: `NewRSNewReplicas` in `pkg/controller/deployment/util/deployment_util.go`, Kubernetes 1.36.
    pub(super) fn room_for_new(&self, size: i64) -> i64 {
        if self.deployment.spec.strategy.kind == StrategyType::Recreate {
            return self.replicas();
        }
        let others: i64 = self.old.iter().map(|set| i64::from(set.spec.replicas)).sum();
        let room = self.max_replicas() - others - size;
        if room <= 0 {
            size
        } else {
            size + room.min(self.replicas() - size)
        }
    }

    /// Plans smaller old ReplicaSets: unhealthy pods first, for they only hold up the rollout.
    fn shrink_old(&mut self) -> bool {
        let old = |plan: &Self| {
            plan.old
                .iter()
                .map(|set| i64::from(set.spec.replicas))
                .sum::<i64>()
        };
        if old(self) == 0 {
            return false;
        }
        let min_available = self.replicas() - self.bounds.max_unavailable;
        let new = self.get(Which::New);
        // Unavailable new pods count as if they will never come: old ones must not go for them.
        let new_unavailable = i64::from(new.spec.replicas) - i64::from(new.status.available_replicas);
        let spare = self.asked_for() - min_available - new_unavailable;
        if spare <= 0 || !self.statuses_are_current() {
            return false;
        }
        let cleaned = self.shrink_unhealthy(spare);
        let shrunk = self.shrink_healthy(min_available);
        cleaned + shrunk > 0
    }

    /// A ReplicaSet that was just made smaller still counts the pods that are about to go; nobody's availability may rest
    /// on those. Upstream sees only more available pods of an old one than it has, and takes that for an error; here the
    /// generation tells it of all.
    fn statuses_are_current(&self) -> bool {
        self.all()
            .filter(|set| set.status.available_replicas > 0)
            .all(|set| {
                set.status.observed_generation >= set.metadata.generation
                    && set.status.available_replicas <= set.spec.replicas
            })
    }

    fn shrink_unhealthy(&mut self, spare: i64) -> i64 {
        let mut total = 0;
        for at in 0..self.old.len() {
            let set = &self.old[at];
            let size = i64::from(set.spec.replicas);
            let unhealthy = (size - i64::from(set.status.available_replicas)).min(spare - total);
            if unhealthy > 0 {
                self.resize(Which::Old(at), size - unhealthy, false);
                total += unhealthy;
            }
        }
        total
    }

    fn shrink_healthy(&mut self, min_available: i64) -> i64 {
        let available: i64 = self
            .all()
            .map(|set| i64::from(set.status.available_replicas))
            .sum();
        let spare = available - min_available;
        let mut total = 0;
        for at in 0..self.old.len() {
            let size = i64::from(self.old[at].spec.replicas);
            let going = size.min(spare - total);
            if going > 0 {
                self.resize(Which::Old(at), size - going, false);
                total += going;
            }
        }
        total
    }
}
