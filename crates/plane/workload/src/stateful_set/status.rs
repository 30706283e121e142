//! The status of a StatefulSet, and whether it needs writing.

use serde_json::{Value, json};

use super::decision::Counts;
use crate::view::{StatefulSet, stateful_set::StatefulSetStatus};

/// The merge patch that writes the status; nothing if it says all this already.
pub(super) fn patch(
    set: &StatefulSet,
    counts: &Counts,
    current_revision: &str,
    update_revision: &str,
    collisions: i32,
) -> Option<Value> {
    let status = StatefulSetStatus {
        observed_generation: set.metadata.generation,
        replicas: counts.replicas,
        ready_replicas: counts.ready,
        available_replicas: counts.available,
        current_replicas: counts.current,
        updated_replicas: counts.updated,
        current_revision: current_revision.to_owned(),
        update_revision: update_revision.to_owned(),
        collision_count: Some(collisions),
    };
    (status != set.status).then(|| {
        json!({
            "metadata": {"uid": set.metadata.uid},
            "status": {
                "observedGeneration": status.observed_generation,
                "replicas": status.replicas,
                "readyReplicas": unless_zero(status.ready_replicas),
                "availableReplicas": status.available_replicas,
                "currentReplicas": unless_zero(status.current_replicas),
                "updatedReplicas": unless_zero(status.updated_replicas),
                "currentRevision": status.current_revision,
                "updateRevision": status.update_revision,
                "collisionCount": collisions,
            },
        })
    })
}

/// Upstream leaves these out when they are zero.
fn unless_zero(count: i32) -> Option<i32> {
    (count != 0).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_written_when_it_says_something_new() {
        let set = |status: Value| -> StatefulSet {
            let set = json!({"metadata": {"generation": 2, "uid": "u"}, "status": status});
            serde_json::from_value(set).expect("a set")
        };
        let counts = Counts {
            replicas: 3,
            ready: 2,
            ..Counts::default()
        };
        let written = patch(&set(json!({})), &counts, "a", "b", 0).expect("it is new");
        assert_eq!(
            written["status"],
            json!({
                "observedGeneration": 2, "replicas": 3, "readyReplicas": 2, "availableReplicas": 0,
                "currentReplicas": null, "updatedReplicas": null, "currentRevision": "a", "updateRevision": "b",
                "collisionCount": 0,
            })
        );
        let same = set(written["status"].clone());
        assert_eq!(patch(&same, &counts, "a", "b", 0), None);
        assert!(patch(&same, &counts, "b", "b", 0).is_some());
        assert!(patch(&same, &counts, "a", "b", 1).is_some());
        let mut edited = same.clone();
        edited.metadata.generation = 3;
        assert!(patch(&edited, &counts, "a", "b", 0).is_some());
    }
}
