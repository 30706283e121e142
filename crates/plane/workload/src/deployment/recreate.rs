//! All old pods go before the first new one comes.
//!
//! Source: `pkg/controller/deployment/recreate.go`, Kubernetes 1.36.

use super::plan::{Plan, Which};

impl Plan<'_> {
    pub(super) fn recreate(&mut self) {
        if self.empty_old() || self.old_pods_run() {
            return;
        }
        if self.new.is_none() {
            self.create_new();
        }
        self.resize(Which::New, self.replicas(), false);
        self.clean_up_if_complete();
    }

    fn empty_old(&mut self) -> bool {
        let mut shrunk = false;
        for at in 0..self.old.len() {
            shrunk |= self.resize(Which::Old(at), 0, false);
        }
        shrunk
    }

    /// Whether a pod of another template has not ended yet, or a ReplicaSet still counts one.
    fn old_pods_run(&self) -> bool {
        let new = self.new.as_ref().map(|new| new.metadata.uid.as_str());
        let is_new = |uid: &str| new == Some(uid);
        let controlled_by = |pod: &crate::view::Pod| pod.metadata.controller().map(|owner| owner.uid.clone());
        self.old.iter().any(|set| set.status.replicas > 0)
            || self
                .pods
                .iter()
                .any(|pod| !pod.is_finished() && controlled_by(pod).is_some_and(|uid| !is_new(&uid)))
    }
}
