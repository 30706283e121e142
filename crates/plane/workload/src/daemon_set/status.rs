//! The status of a DaemonSet, and whether it needs writing.

use serde_json::{Value, json};

use super::decision::Counts;
use crate::view::{DaemonSet, daemon_set::DaemonSetStatus};

/// The merge patch that writes the status; nothing if it says all this already.
pub(super) fn patch(set: &DaemonSet, counts: &Counts, collisions: i32) -> Option<Value> {
    let status = DaemonSetStatus {
        observed_generation: set.metadata.generation,
        desired_number_scheduled: counts.desired,
        current_number_scheduled: counts.current,
        number_misscheduled: counts.misscheduled,
        number_ready: counts.ready,
        updated_number_scheduled: counts.updated,
        number_available: counts.available,
        number_unavailable: counts.desired - counts.available,
        // As upstream: unset until the first collision.
        collision_count: set
            .status
            .collision_count
            .or((collisions > 0).then_some(0))
            .map(|_| collisions),
    };
    (status != set.status).then(|| {
        json!({
            "metadata": {"uid": set.metadata.uid},
            "status": {
                "observedGeneration": status.observed_generation,
                "desiredNumberScheduled": status.desired_number_scheduled,
                "currentNumberScheduled": status.current_number_scheduled,
                "numberMisscheduled": status.number_misscheduled,
                "numberReady": status.number_ready,
                "updatedNumberScheduled": unless_zero(status.updated_number_scheduled),
                "numberAvailable": unless_zero(status.number_available),
                "numberUnavailable": unless_zero(status.number_unavailable),
                "collisionCount": status.collision_count,
            },
        })
    })
}

/// Upstream leaves these out when they are zero.
fn unless_zero(count: i64) -> Option<i64> {
    (count != 0).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_written_when_it_says_something_new() {
        let set = |status: Value| -> DaemonSet {
            let set = json!({"metadata": {"generation": 2, "uid": "u"}, "status": status});
            serde_json::from_value(set).expect("a set")
        };
        let counts = Counts {
            desired: 3,
            current: 3,
            ready: 2,
            available: 1,
            ..Counts::default()
        };
        let written = patch(&set(json!({})), &counts, 0).expect("it is new");
        assert_eq!(
            written["status"],
            json!({
                "observedGeneration": 2, "desiredNumberScheduled": 3, "currentNumberScheduled": 3,
                "numberMisscheduled": 0, "numberReady": 2, "updatedNumberScheduled": null, "numberAvailable": 1,
                "numberUnavailable": 2, "collisionCount": null,
            })
        );
        let same = set(written["status"].clone());
        assert_eq!(patch(&same, &counts, 0), None);
        assert_eq!(
            patch(&same, &counts, 1).expect("it is new")["status"]["collisionCount"],
            1
        );
    }
}
