//! One life of a Job per row.

use serde_json::{Value, json};

use super::simulation::Simulation;
use crate::view::Job;

/// What happens, in order.
enum Act {
    /// Pods at these places end with a code.
    End(&'static [usize], i32),
    Delete(usize),
    Pass(i64),
    Edit(Value),
}
use Act::{Delete, Edit, End, Pass};

/// The last true condition of an ending and its reason, or where the Job stands.
fn standing(job: &Job) -> String {
    let ended = job
        .status
        .conditions
        .iter()
        .rev()
        .find(|condition| condition.status == "True");
    let status = &job.status;
    let counts = format!(
        "{}a {}t {}s {}f",
        status.active,
        status.terminating.unwrap_or(-1),
        status.succeeded,
        status.failed
    );
    match ended {
        Some(condition) => format!("{} {}: {counts}", condition.kind, condition.reason),
        None => counts,
    }
}

#[test]
fn jobs_go_where_upstreams_go() {
    let indexed = |completions: i32, more: Value| {
        let mut spec =
            json!({"completions": completions, "completionMode": "Indexed", "parallelism": completions});
        spec.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        spec
    };
    let on_42 = |action: &str| json!({"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": [42]}}]});
    for (what, spec, acts, expected) in [
        ("one pod", json!({"completions": 1}), vec![], "1a 0t 0s 0f"),
        (
            "one success",
            json!({"completions": 1}),
            vec![End(&[0], 0)],
            "Complete CompletionsReached: 0a 0t 1s 0f",
        ),
        (
            "no more than parallelism",
            json!({"completions": 5, "parallelism": 2}),
            vec![End(&[0], 0)],
            "2a 0t 1s 0f",
        ),
        (
            "no more than what is left",
            json!({"completions": 3, "parallelism": 2}),
            vec![End(&[0, 1], 0)],
            "1a 0t 2s 0f",
        ),
        (
            "none at all",
            json!({"completions": 0}),
            vec![],
            "Complete CompletionsReached: 0a 0t 0s 0f",
        ),
        (
            "parallelism 0 holds",
            json!({"completions": 1, "parallelism": 0}),
            vec![],
            "0a 0t 0s 0f",
        ),
        (
            "a work queue runs on after a success",
            json!({"parallelism": 3}),
            vec![End(&[0], 0)],
            "2a 0t 1s 0f",
        ),
        (
            "a work queue is done with its last pod",
            json!({"parallelism": 3}),
            vec![End(&[0], 0), End(&[1], 1), End(&[2], 0)],
            "Complete CompletionsReached: 0a 0t 2s 1f",
        ),
        (
            "a failure waits for its back-off",
            json!({"completions": 1}),
            vec![End(&[0], 1), Pass(9)],
            "0a 0t 0s 1f",
        ),
        (
            "and is replaced",
            json!({"completions": 1}),
            vec![End(&[0], 1), Pass(10)],
            "1a 0t 0s 1f",
        ),
        (
            "the limit",
            json!({"completions": 1, "backoffLimit": 1}),
            vec![End(&[0], 1), Pass(10), End(&[1], 1)],
            "Failed BackoffLimitExceeded: 0a 0t 0s 2f",
        ),
        (
            "the limit stops the others",
            json!({"completions": 3, "parallelism": 3, "backoffLimit": 0}),
            vec![End(&[0], 1)],
            "FailureTarget BackoffLimitExceeded: 0a 2t 0s 3f",
        ),
        (
            "and ends when they have ended",
            json!({"completions": 3, "parallelism": 3, "backoffLimit": 0}),
            vec![End(&[0], 1), End(&[2, 1], 1)],
            "Failed BackoffLimitExceeded: 0a 0t 0s 3f",
        ),
        (
            "a deleted pod is a failure, and replaced after a pause",
            json!({"completions": 1}),
            vec![Delete(0), Pass(10)],
            "1a 1t 0s 1f",
        ),
        (
            "unless only failed ones are replaced",
            json!({"completions": 1, "podReplacementPolicy": "Failed"}),
            vec![Delete(0), Pass(10)],
            "0a 1t 0s 0f",
        ),
        (
            "then it counts when it has ended",
            json!({"completions": 1, "podReplacementPolicy": "Failed"}),
            vec![Delete(0), Pass(10), End(&[0], 1), Pass(10)],
            "1a 0t 0s 1f",
        ),
        (
            "the deadline",
            json!({"completions": 1, "activeDeadlineSeconds": 30}),
            vec![Pass(30), End(&[0], 0)],
            "Failed DeadlineExceeded: 0a 0t 0s 1f",
        ),
        (
            "not before it",
            json!({"completions": 1, "activeDeadlineSeconds": 30}),
            vec![Pass(29)],
            "1a 0t 0s 0f",
        ),
        (
            "suspended from the beginning",
            json!({"completions": 1, "suspend": true}),
            vec![],
            "Suspended JobSuspended: 0a 0t 0s 0f",
        ),
        (
            "a suspension stops pods and counts none",
            json!({"completions": 2, "parallelism": 2}),
            vec![Edit(json!({"suspend": true}))],
            "Suspended JobSuspended: 0a 2t 0s 0f",
        ),
        (
            "resumed",
            json!({"completions": 1, "suspend": true, "activeDeadlineSeconds": 30}),
            vec![Pass(100), Edit(json!({"suspend": false})), Pass(29)],
            "1a 0t 0s 0f",
        ),
        (
            "a smaller parallelism stops without counting",
            json!({"completions": 5, "parallelism": 3}),
            vec![Edit(json!({"parallelism": 1}))],
            "1a 2t 0s 0f",
        ),
        (
            "indexes",
            indexed(3, json!({})),
            vec![End(&[0, 1], 0)],
            "1a 0t 2s 0f",
        ),
        (
            "all indexes",
            indexed(2, json!({})),
            vec![End(&[0, 1], 0)],
            "Complete CompletionsReached: 0a 0t 2s 0f",
        ),
        (
            "an elastic Job shrinks",
            indexed(3, json!({})),
            vec![End(&[0, 1], 0), Edit(json!({"completions": 2, "parallelism": 2}))],
            "SuccessCriteriaMet CompletionsReached: 0a 1t 2s 0f",
        ),
        (
            "an index that failed for good",
            indexed(2, json!({"backoffLimitPerIndex": 0, "backoffLimit": 99})),
            vec![End(&[0], 1)],
            "1a 0t 0s 1f",
        ),
        (
            "when all is done",
            indexed(2, json!({"backoffLimitPerIndex": 0, "backoffLimit": 99})),
            vec![End(&[0], 1), End(&[1], 0)],
            "Failed FailedIndexes: 0a 0t 1s 1f",
        ),
        (
            "an index is tried again, its failed pod held until then",
            indexed(1, json!({"backoffLimitPerIndex": 1, "backoffLimit": 99})),
            vec![End(&[0], 1)],
            "0a 0t 0s 0f",
        ),
        (
            "and counted then",
            indexed(1, json!({"backoffLimitPerIndex": 1, "backoffLimit": 99})),
            vec![End(&[0], 1), Pass(10)],
            "1a 0t 0s 1f",
        ),
        (
            "too many failed indexes",
            indexed(
                3,
                json!({"backoffLimitPerIndex": 0, "backoffLimit": 99, "maxFailedIndexes": 0}),
            ),
            vec![End(&[0], 1), End(&[2, 1], 1)],
            "Failed MaxFailedIndexesExceeded: 0a 0t 0s 3f",
        ),
        (
            "a success policy",
            indexed(
                3,
                json!({"successPolicy": {"rules": [{"succeededIndexes": "0"}]}}),
            ),
            vec![End(&[0], 0)],
            "SuccessCriteriaMet SuccessPolicy: 0a 2t 1s 2f",
        ),
        (
            "is met when the rest has ended",
            indexed(
                3,
                json!({"successPolicy": {"rules": [{"succeededIndexes": "0"}]}}),
            ),
            vec![End(&[0], 0), End(&[2, 1], 0)],
            "Complete SuccessPolicy: 0a 0t 1s 2f",
        ),
        (
            "an ignored failure",
            json!({"completions": 1, "backoffLimit": 0, "podFailurePolicy": on_42("Ignore")}),
            vec![End(&[0], 42), Pass(10)],
            "1a 0t 0s 0f",
        ),
        (
            "a failure that ends the Job",
            json!({"completions": 1, "podFailurePolicy": on_42("FailJob")}),
            vec![End(&[0], 42)],
            "Failed PodFailurePolicy: 0a 0t 0s 1f",
        ),
        (
            "a failure that ends its index",
            indexed(
                2,
                json!({"backoffLimitPerIndex": 5, "backoffLimit": 99, "podFailurePolicy": on_42("FailIndex")}),
            ),
            vec![End(&[0], 42), End(&[1], 0)],
            "Failed FailedIndexes: 0a 0t 1s 1f",
        ),
        (
            "somebody else's Job",
            json!({"completions": 1, "managedBy": "kueue.x-k8s.io/multikueue"}),
            vec![],
            "0a -1t 0s 0f",
        ),
    ] {
        let mut simulation = Simulation::new(spec);
        simulation.settle();
        for act in acts {
            match act {
                End(pods, code) => pods.iter().for_each(|pod| simulation.end(*pod, code)),
                Delete(pod) => simulation.delete(pod),
                Pass(seconds) => simulation.pass(seconds),
                Edit(spec) => simulation.edit(spec),
            }
            simulation.settle();
        }
        assert_eq!(
            standing(&simulation.view()),
            expected,
            "{what}: {:#}",
            simulation.job
        );
    }
}

#[test]
fn conditions_events_and_times_tell_the_whole_life() {
    let mut simulation = Simulation::new(json!({"completions": 1, "suspend": true}));
    simulation.settle();
    assert_eq!(simulation.view().status.start_time, None);
    simulation.edit(json!({"suspend": false}));
    simulation.pass(60);
    simulation.settle();
    assert_eq!(simulation.view().status.start_time, Some(simulation.now));
    simulation.pass(5);
    simulation.end(0, 0);
    simulation.settle();
    let job = simulation.view();
    let conditions: Vec<_> = job
        .status
        .conditions
        .iter()
        .map(|condition| {
            (
                condition.kind.as_str(),
                condition.status.as_str(),
                condition.reason.as_str(),
            )
        })
        .collect();
    assert_eq!(
        conditions,
        [
            ("Suspended", "False", "JobResumed"),
            ("SuccessCriteriaMet", "True", "CompletionsReached"),
            ("Complete", "True", "CompletionsReached"),
        ]
    );
    assert_eq!(job.status.completion_time, Some(simulation.now));
    assert_eq!(simulation.news, ["Suspended", "Resumed", "Completed"]);
}

#[test]
fn a_controller_at_rest_waits_for_exactly_one_time() {
    for (what, spec, end, expected) in [
        ("nothing to wait for", json!({"completions": 1}), None, None),
        (
            "a deadline",
            json!({"completions": 1, "activeDeadlineSeconds": 30}),
            None,
            Some(30),
        ),
        ("a back-off", json!({"completions": 1}), Some(1), Some(10)),
        (
            "the earlier of both",
            json!({"completions": 1, "activeDeadlineSeconds": 7}),
            Some(1),
            Some(7),
        ),
        (
            "none once it is finished",
            json!({"completions": 1, "activeDeadlineSeconds": 30}),
            Some(0),
            None,
        ),
        (
            "none while it is suspended",
            json!({"completions": 1, "suspend": true, "activeDeadlineSeconds": 30}),
            None,
            None,
        ),
    ] {
        let mut simulation = Simulation::new(spec);
        simulation.settle();
        if let Some(code) = end {
            simulation.end(0, code);
            simulation.settle();
        }
        let seconds = simulation
            .again_at
            .map(|at| at.duration_since(simulation.now).as_secs());
        assert_eq!(seconds, expected, "{what}");
    }
}

#[test]
fn the_successor_of_a_failed_index_carries_its_count_on() {
    let mut simulation = Simulation::new(
        json!({"completions": 1, "completionMode": "Indexed", "backoffLimitPerIndex": 3, "backoffLimit": 99}),
    );
    simulation.settle();
    let counts = |simulation: &Simulation| simulation.pod_views().last().expect("a pod").index_failures();
    for (failures, pause) in [(0, 10), (1, 20), (2, 40)] {
        assert_eq!(counts(&simulation), (failures, 0));
        let last = simulation.pods.len() - 1;
        simulation.end(last, 1);
        simulation.settle();
        assert_eq!(simulation.active(), 0);
        simulation.pass(pause);
        simulation.settle();
        assert_eq!(simulation.active(), 1, "after {pause} s");
    }
    let last = simulation.pods.len() - 1;
    simulation.end(last, 1);
    simulation.settle();
    assert_eq!(simulation.view().status.failed_indexes.as_deref(), Some("0"));
    assert!(simulation.view().is_finished());
}
