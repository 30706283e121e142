//! Jobs as people write them, and how they go wrong.

use super::*;
use crate::testing::{created, map, texts, updated, with};

fn pi() -> Value {
    json!({"metadata": {"name": "pi", "namespace": "n", "uid": "u"}, "spec": {
        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}}}})
}

/// The spec of a Job with these changes.
fn spec(changes: Value) -> Value {
    with(pi(), json!({ "spec": changes }))
}

fn indexed(changes: Value) -> Value {
    with(
        spec(json!({"completionMode": "Indexed", "completions": 3})),
        json!({ "spec": changes }),
    )
}

#[test]
fn a_bare_job_gets_defaults_selector_and_labels() {
    let (job, errors) = created("batch", "jobs", pi());
    assert_eq!(errors, [""; 0]);
    let labels = json!({"batch.kubernetes.io/controller-uid": "u", "batch.kubernetes.io/job-name": "pi",
                        "controller-uid": "u", "job-name": "pi"});
    let mut found = job["spec"].clone();
    assert_eq!(found["template"]["metadata"]["labels"], labels);
    found.as_object_mut().expect("an object").remove("template");
    assert_eq!(
        found,
        json!({"completions": 1, "parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false,
            "podReplacementPolicy": "TerminatingOrFailed", "manualSelector": false,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}})
    );
    assert_eq!(job["status"], json!({}));
}

#[test]
fn defaults_follow_what_is_set() {
    for (changes, path, wanted) in [
        (json!({"parallelism": 3}), "/spec/completions", Value::Null),
        (json!({"completions": 3}), "/spec/parallelism", json!(1)),
        (
            json!({"completionMode": "Indexed", "completions": 2, "backoffLimitPerIndex": 1}),
            "/spec/backoffLimit",
            json!(i32::MAX),
        ),
        (
            json!({"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}}),
            "/spec/podReplacementPolicy",
            json!("Failed"),
        ),
        (
            json!({"podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}}),
            "/spec/podFailurePolicy/rules/0/onPodConditions/0/status",
            json!("True"),
        ),
        (
            json!({"template": {"metadata": {"labels": {"app": "pi"}}}}),
            "/metadata/labels",
            json!({"app": "pi"}),
        ),
    ] {
        let (job, errors) = created("batch", "jobs", spec(changes.clone()));
        assert_eq!(errors, [""; 0], "{changes}");
        let job = Value::Object(job);
        assert_eq!(
            job.pointer(path).cloned().unwrap_or_default(),
            wanted,
            "{changes}"
        );
    }
}

#[test]
fn rules_of_jobs_answer_with_the_known_sentences() {
    const INDEXED: &str = "requires indexed completion mode";
    let policy = |rule: Value| json!({"podFailurePolicy": {"rules": [rule]}});
    let table = [
        (spec(json!({"backoffLimit": 0, "ttlSecondsAfterFinished": 0})), vec![]),
        (
            spec(json!({"completions": -1, "activeDeadlineSeconds": -1})),
            vec![
                "spec.completions: Invalid value: -1: must be greater than or equal to 0".to_owned(),
                "spec.activeDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0".to_owned(),
            ],
        ),
        (
            spec(json!({"template": {"spec": {"restartPolicy": null}}})),
            vec![
                "spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"".to_owned(),
            ],
        ),
        (
            spec(json!({"template": {"metadata": {"labels": {"job-name": "other"}}}})),
            vec![
                "spec.template.metadata.labels[job-name]: Invalid value: {\"batch.kubernetes.io/controller-uid\":\"u\",\"batch.kubernetes.io/job-name\":\"pi\",\"controller-uid\":\"u\",\"job-name\":\"other\"}: must be 'pi'".to_owned(),
            ],
        ),
        (
            spec(json!({"selector": {"matchLabels": {"app": "x"}}})),
            vec![
                "spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"x\",\"batch.kubernetes.io/controller-uid\":\"u\"}}: `selector` not auto-generated".to_owned(),
                "spec.template.metadata.labels: Invalid value: {\"batch.kubernetes.io/controller-uid\":\"u\",\"batch.kubernetes.io/job-name\":\"pi\",\"controller-uid\":\"u\",\"job-name\":\"pi\"}: `selector` does not match template `labels`".to_owned(),
            ],
        ),
        (
            spec(json!({"manualSelector": true})),
            vec![
                "spec.selector: Required value".to_owned(),
                "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`".to_owned(),
            ],
        ),
        (
            spec(json!({"manualSelector": true, "selector": {"matchLabels": {"a": "b"}},
                        "template": {"metadata": {"labels": {"a": "b"}}}})),
            vec![],
        ),
        (
            spec(json!({"completionMode": "Indexed", "completions": null, "parallelism": 1})),
            vec!["spec.completions: Required value: when completion mode is Indexed".to_owned()],
        ),
        (
            spec(json!({"backoffLimitPerIndex": 1})),
            vec![format!("spec.backoffLimitPerIndex: Invalid value: 1: {INDEXED}")],
        ),
        (
            spec(json!({"completionMode": "Odd"})),
            vec![
                "spec.completionMode: Unsupported value: \"Odd\": supported values: \"NonIndexed\", \"Indexed\"".to_owned(),
            ],
        ),
        (
            indexed(json!({"maxFailedIndexes": 4})),
            vec![
                "spec.backoffLimitPerIndex: Required value: when maxFailedIndexes is specified".to_owned(),
                "spec.maxFailedIndexes: Invalid value: 4: must be less than or equal to completions".to_owned(),
            ],
        ),
        (
            with(indexed(json!({})), json!({"metadata": {"name": "a".repeat(62)}})),
            vec![format!(
                "metadata.name: Invalid value: \"{0}\": will not able to create pod with invalid DNS label: {0}-2",
                "a".repeat(62)
            )],
        ),
        (
            spec(policy(json!({"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [0, 3, 2, 2]}}))),
            vec![
                "spec.podFailurePolicy.rules[0].action: Invalid value: \"FailIndex\": requires the backoffLimitPerIndex to be set".to_owned(),
                "spec.podFailurePolicy.rules[0].onExitCodes.values[0]: Invalid value: 0: must not be 0 for the In operator".to_owned(),
                "spec.podFailurePolicy.rules[0].onExitCodes.values[3]: Duplicate value: 2".to_owned(),
                "spec.podFailurePolicy.rules[0].onExitCodes.values: Invalid value: [0,3,2,2]: must be ordered".to_owned(),
            ],
        ),
        (
            with(
                spec(policy(json!({"action": "Count", "onExitCodes": {"containerName": "x", "operator": "NotIn", "values": [1]}}))),
                json!({"spec": {"template": {"spec": {"restartPolicy": "OnFailure"}}}}),
            ),
            vec![
                "spec.podFailurePolicy.rules[0].onExitCodes.containerName: Invalid value: \"x\": must be one of the container or initContainer names in the pod template".to_owned(),
                "spec.template.spec.restartPolicy: Invalid value: \"OnFailure\": only \"Never\" is supported when podFailurePolicy is specified".to_owned(),
            ],
        ),
        (
            spec(json!({"successPolicy": {"rules": []}})),
            vec![format!("spec.successPolicy: Invalid value: {{\"rules\":[]}}: {INDEXED}")],
        ),
        (
            indexed(json!({"successPolicy": {"rules": [{"succeededIndexes": "0-1", "succeededCount": 3}, {"succeededIndexes": "9"}, {}]}})),
            vec![
                "spec.successPolicy.rules[0].succeededCount: Invalid value: 3: must be less than or equal to 2 (the number of indexes in the specified succeededIndexes field)".to_owned(),
                "spec.successPolicy.rules[1].succeededIndexes: Invalid value: \"9\": error parsing succeededIndexes: too large index: \"9\"".to_owned(),
                "spec.successPolicy.rules[2]: Required value: at least one of succeededCount or succeededIndexes must be specified".to_owned(),
            ],
        ),
        (
            spec(json!({"managedBy": "kueue"})),
            vec![
                "spec.managedBy: Invalid value: \"kueue\": must be a domain-prefixed path (such as \"acme.io/foo\")".to_owned(),
            ],
        ),
    ];
    for (job, wanted) in table {
        let (_, errors) = created("batch", "jobs", job.clone());
        assert_eq!(errors, wanted, "{job}");
    }
}

/// A change to a Job that was created as `old` and has `status`.
fn change(old: Value, status: Value, changes: Value) -> Vec<String> {
    let (mut old, _) = created("batch", "jobs", old);
    old.insert("status".to_owned(), status);
    let mut new = map(with(Value::Object(old.clone()), json!({ "spec": changes })));
    Job.default(&mut new);
    Job.prepare_for_update(&mut new, &old, "");
    texts(&Job.validate_update(&new, &old, ""))
}

#[test]
fn little_of_a_job_may_change() {
    let template = json!({"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}});
    let elsewhere = json!({"template": {"spec": {"nodeSelector": {"disk": "ssd"},
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{}]}}}}}});
    let suspended = spec(json!({"suspend": true}));
    let fields = |errors: Vec<String>| -> Vec<String> {
        let heads = errors.iter().filter_map(|error| error.split_once(": "));
        heads.map(|(field, _)| field.to_owned()).collect()
    };
    for (old, status, changes, wanted) in [
        (
            pi(),
            json!({}),
            json!({"parallelism": 3, "activeDeadlineSeconds": 5, "suspend": true}),
            &[][..],
        ),
        (pi(), json!({}), json!({"completions": 2}), &["spec.completions"]),
        (pi(), json!({}), template.clone(), &["spec.template"]),
        (pi(), json!({}), elsewhere.clone(), &["spec.template"]),
        (suspended.clone(), json!({}), elsewhere.clone(), &[]),
        (suspended.clone(), json!({}), template, &["spec.template.spec"]),
        (
            suspended,
            json!({"startTime": "2026-01-01T00:00:00Z", "active": 1}),
            elsewhere,
            &["spec.template"],
        ),
        (
            indexed(json!({})),
            json!({}),
            json!({"completions": 5}),
            &["spec.completions"],
        ),
        (
            indexed(json!({})),
            json!({}),
            json!({"completions": 5, "parallelism": 5}),
            &[],
        ),
        (
            indexed(json!({})),
            json!({}),
            json!({"completionMode": "NonIndexed"}),
            &["spec.completionMode"],
        ),
    ] {
        let found = change(old.clone(), status, changes.clone());
        assert_eq!(fields(found), wanted, "{old} {changes}");
    }
}

#[test]
fn writing_a_job_back_changes_nothing() {
    let (job, _) = created("batch", "jobs", pi());
    let mut again = job.clone();
    Job.default(&mut again);
    Job.prepare_for_update(&mut again, &job, "");
    // Labels of the template become the Job's own where it has none, as upstream does it on each write.
    again["metadata"]["labels"].take();
    let mut job = Value::Object(job);
    job["metadata"]["labels"].take();
    assert_eq!(Value::Object(again), job);
}

#[test]
fn an_end_is_an_end() {
    let condition = |name: &str| json!({"type": name, "status": "True"});
    let complete = json!({"conditions": [condition("SuccessCriteriaMet"), condition("Complete")], "succeeded": 1,
        "startTime": "2026-01-01T00:00:00Z", "completionTime": "2026-01-01T00:01:00Z"});
    let running = json!({"active": 1, "ready": 1, "startTime": "2026-01-01T00:00:00Z"});
    let failed = json!({"conditions": [condition("FailureTarget"), condition("Failed")], "failed": 7,
        "startTime": "2026-01-01T00:00:00Z"});
    let check = |old: &Value, new: &Value| {
        let object = |status: &Value| map(with(pi(), json!({ "status": status })));
        texts(&Job.validate_update(&object(new), &object(old), "status"))
    };
    for (old, new, wanted) in [
        (json!({}), running.clone(), vec![]),
        (running.clone(), complete.clone(), vec![]),
        (running.clone(), failed.clone(), vec![]),
        (
            complete.clone(),
            running.clone(),
            vec![
                "status.conditions: Invalid value: null: cannot disable the SuccessCriteriaMet=True condition",
                "status.conditions: Invalid value: null: cannot disable the terminal Complete=True condition",
                "status.succeeded: Invalid value: 0: cannot decrease the succeeded counter",
            ],
        ),
        (
            running.clone(),
            json!({"conditions": [condition("Complete")], "startTime": "2026-01-01T00:00:00Z"}),
            vec![
                "status.conditions: Invalid value: null: cannot set Complete=True condition without the SuccessCriteriaMet=true condition",
                "status.completionTime: Required value: completionTime is required for Complete jobs",
            ],
        ),
        (
            running.clone(),
            json!({"active": 1, "ready": 2, "startTime": "2026-01-02T00:00:00Z", "completedIndexes": "0"}),
            vec![
                "status.startTime: Invalid value: \"2026-01-02T00:00:00Z\": field is immutable for unsuspended job once set",
                "status.ready: Invalid value: 2: cannot set more ready pods than active",
                "status.completedIndexes: Invalid value: \"0\": cannot set non-empty completedIndexes when non-indexed completion mode",
            ],
        ),
        (
            running,
            with(
                failed,
                json!({"active": 1, "uncountedTerminatedPods": {"failed": ["a", "a", ""]}}),
            ),
            vec![
                "status.uncountedTerminatedPods.failed[1]: Duplicate value: \"a\"",
                "status.uncountedTerminatedPods.failed[2]: Invalid value: \"\": must not be empty",
                "status.active: Invalid value: 1: active>0 is invalid for finished job",
                "status.uncountedTerminatedPods: Invalid value: {\"failed\":[\"a\",\"a\",\"\"]}: must be empty for finished job",
            ],
        ),
    ] {
        assert_eq!(check(&old, &new), wanted, "{new}");
    }
}

#[test]
fn a_row_tells_where_a_job_stands() {
    let now = "2026-01-01T00:02:00Z".parse().expect("a time");
    let cells = |object: Value| Job.cells(&map(object), now)[1..4].to_vec();
    let status = |status: Value| with(pi(), json!({"spec": {"completions": 3}, "status": status}));
    let start = json!({"startTime": "2026-01-01T00:00:00Z"});
    for (object, wanted) in [
        (pi(), ["Running", "0/1", ""]),
        (status(start.clone()), ["Running", "0/3", "2m"]),
        (
            status(with(
                start,
                json!({"completionTime": "2026-01-01T00:00:30Z", "succeeded": 3,
                "conditions": [{"type": "Complete", "status": "True"}]}),
            )),
            ["Complete", "3/3", "30s"],
        ),
        (
            status(json!({"conditions": [{"type": "Suspended", "status": "True"}]})),
            ["Suspended", "0/3", ""],
        ),
        (
            with(
                pi(),
                json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"parallelism": 2}}),
            ),
            ["Terminating", "0/1 of 2", ""],
        ),
    ] {
        assert_eq!(cells(object.clone()), wanted.map(Value::from), "{object}");
    }
}

#[test]
fn successes_can_be_selected() {
    let job = map(json!({"status": {"succeeded": 2}}));
    assert_eq!(Job.field_values(&job), [("status.successful", "2".to_owned())]);
    assert_eq!(updated("batch", "jobs", pi(), pi(), "status"), [""; 0]);
}
