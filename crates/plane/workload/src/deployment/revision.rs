//! The revision numbers of a deployment: one for each template it had, and which ReplicaSets are kept for them.
//!
//! Source: `pkg/controller/deployment/util/deployment_util.go` and `sync.go`, Kubernetes 1.36.

use serde_json::{Map, Value, json};

use super::plan::{DESIRED_REPLICAS, MAX_REPLICAS, Plan, Step};
use crate::view::{Metadata, ReplicaSet};

/// On deployments and ReplicaSets: the number of the rollout.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// On ReplicaSets: the numbers it had before it was rolled back to.
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// A hundred rollbacks to one template or so.
const REVISION_HISTORY_CHARS_MAX: usize = 2000;
/// What a ReplicaSet does not take over from its deployment.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    "deprecated.deployment.rollback.to",
];

/// Gives the new ReplicaSet, if there is one, the deployment's annotations and the highest revision, and the deployment
/// its revision.
pub(super) fn sync(plan: &mut Plan<'_>) {
    let revision = next_revision(plan);
    let deployment = plan.deployment;
    let Some(new) = &mut plan.new else {
        return;
    };
    let mut annotations = copied(&deployment.metadata, &new.metadata);
    annotations.extend(promoted(&new.metadata, revision));
    let mut patch = Map::new();
    if !annotations.is_empty() {
        let said = annotations
            .iter()
            .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
        new.metadata.annotations.extend(said);
        patch.insert("metadata".to_owned(), json!({"annotations": annotations}));
    }
    if new.spec.min_ready_seconds != deployment.spec.min_ready_seconds {
        new.spec.min_ready_seconds = deployment.spec.min_ready_seconds;
        patch.insert(
            "spec".to_owned(),
            json!({"minReadySeconds": deployment.spec.min_ready_seconds}),
        );
    }
    let (name, current) = (
        new.metadata.name.clone(),
        new.metadata.annotation(REVISION).map(str::to_owned),
    );
    if !patch.is_empty() {
        let (name, patch) = (name.clone(), patch.into());
        plan.steps.push(Step::ChangeReplicaSet {
            name,
            patch,
            scaled: None,
        });
    }
    plan.revision = current;
    plan.note_found(&name);
}

/// What a new ReplicaSet is created with.
pub(super) fn annotations_of_new(plan: &Plan<'_>) -> Map<String, Value> {
    let mut annotations = copied(&plan.deployment.metadata, &Metadata::default());
    annotations.insert(REVISION.to_owned(), next_revision(plan).to_string().into());
    annotations.extend(
        plan.size_annotations()
            .into_iter()
            .map(|(key, count)| (key, count.into())),
    );
    annotations
}

/// The number of a rollout that begins now.
pub(super) fn next_revision(plan: &Plan<'_>) -> i64 {
    plan.old.iter().filter_map(revision_of).max().unwrap_or(0).max(0) + 1
}

/// Nothing if somebody wrote something that is no number; zero if there is none.
fn revision_of(set: &ReplicaSet) -> Option<i64> {
    set.metadata
        .annotation(REVISION)
        .map_or(Some(0), |revision| revision.parse().ok())
}

fn copied(from: &Metadata, to: &Metadata) -> Map<String, Value> {
    from.annotations
        .iter()
        .filter(|(key, _)| !NOT_COPIED.contains(&key.as_str()))
        .filter(|(key, value)| to.annotations.get(*key) != Some(value))
        .map(|(key, value)| (key.clone(), value.as_str().into()))
        .collect()
}

/// A higher revision, and the one it had with those before.
fn promoted(new: &Metadata, revision: i64) -> Map<String, Value> {
    let mut annotations = Map::new();
    let before = new.annotation(REVISION);
    let number = match before {
        None | Some("") => 0,
        Some(text) => match text.parse::<i64>() {
            Ok(number) => number,
            // Somebody wrote something else there: it is theirs.
            Err(_) => return annotations,
        },
    };
    // Old ones may have been deleted: a revision never goes back.
    if number < revision {
        annotations.insert(REVISION.to_owned(), revision.to_string().into());
        if let Some(before) = before {
            let history = new.annotation(REVISION_HISTORY).unwrap_or_default();
            if let Some(history) = with_revision(history, before) {
                annotations.insert(REVISION_HISTORY.to_owned(), history.into());
            }
        }
    }
    annotations
}

/// The history with one more; the oldest go when it gets too long.
fn with_revision(history: &str, revision: &str) -> Option<String> {
    let mut kept = history;
    while !kept.is_empty() && kept.len() + 1 + revision.len() > REVISION_HISTORY_CHARS_MAX {
        kept = kept.split_once(',').map_or("", |(_, rest)| rest);
    }
    match kept {
        "" if revision.len() > REVISION_HISTORY_CHARS_MAX => None,
        "" => Some(revision.to_owned()),
        kept => Some(format!("{kept},{revision}")),
    }
}

impl Plan<'_> {
    /// Deletes the oldest ReplicaSets beyond `revisionHistoryLimit`, if they have no pods and know that they shall have
    /// none.
    pub(super) fn clean_up_history(&mut self) {
        let limit = match self.deployment.spec.revision_history_limit {
            None | Some(i32::MAX) => return,
            Some(limit) => usize::try_from(limit).unwrap_or(0),
        };
        let mut cleanable: Vec<&ReplicaSet> = self
            .old
            .iter()
            .filter(|set| !set.metadata.is_deleting())
            .collect();
        // They are sorted by age; that decides where revisions do not.
        cleanable.sort_by(|one, other| match (revision_of(one), revision_of(other)) {
            (Some(one), Some(other)) => one.cmp(&other),
            _ => std::cmp::Ordering::Equal,
        });
        let too_many = cleanable.len().saturating_sub(limit);
        let is_done = |set: &&ReplicaSet| {
            set.spec.replicas == 0
                && set.status.replicas == 0
                && set.metadata.generation <= set.status.observed_generation
        };
        let names = cleanable.into_iter().take(too_many).filter(is_done);
        let steps: Vec<Step> = names
            .map(|set| Step::DeleteReplicaSet {
                name: set.metadata.name.clone(),
            })
            .collect();
        self.steps.extend(steps);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn history_grows_at_its_end_and_forgets_its_beginning() {
        assert_eq!(with_revision("", "1").as_deref(), Some("1"));
        assert_eq!(with_revision("1,4", "9").as_deref(), Some("1,4,9"));
        let long = vec!["1000"; 400].join(",");
        let longer = with_revision(&long, "12345").expect("it fits");
        assert!(
            longer.len() <= REVISION_HISTORY_CHARS_MAX && longer.ends_with("1000,12345"),
            "{longer}"
        );
        let huge = "1".repeat(REVISION_HISTORY_CHARS_MAX + 1);
        assert_eq!(with_revision("1", &huge), None);
    }
}
