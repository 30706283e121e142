//! Which revisions a StatefulSet still needs.
//!
//! Source: `getStatefulSetRevisions` and `truncateHistory` in `pkg/controller/statefulset/stateful_set_control.go`,
//! Kubernetes 1.36.

use std::{collections::BTreeSet, sync::Arc};

use crate::{revision::beyond_limit, view::ControllerRevision};

/// The name of the current revision: the one in the status, or if it is gone or was never written, the update revision.
pub(super) fn current_name<'a>(
    history: &[Arc<ControllerRevision>],
    status: &'a str,
    update: &'a str,
) -> &'a str {
    if history.iter().any(|revision| revision.metadata.name == status) {
        status
    } else {
        update
    }
}

/// The revisions to delete. Current, update and those of pods do not count against the limit.
pub(super) fn idle<'a>(
    history: &'a [Arc<ControllerRevision>],
    current: &str,
    update: &str,
    of_pods: &BTreeSet<&str>,
    limit: usize,
) -> Vec<&'a Arc<ControllerRevision>> {
    let is_live = |name: &str| name == current || name == update || of_pods.contains(name);
    let idle: Vec<_> = history
        .iter()
        .filter(|revision| !is_live(&revision.metadata.name))
        .collect();
    beyond_limit(&idle, limit, |_| false)
}
