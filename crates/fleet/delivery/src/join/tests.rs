use serde_json::{Value, json};

use super::*;

const LATER: &str = "2026-01-01T00:00:00.012000Z";

fn pod(name: &str, node: &str, more: Value) -> PodView {
    let mut pod = json!({"metadata": {"name": name, "uid": name}, "spec": {"nodeName": node,
            "containers": [{"name": "c", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
            "volumes": [{"name": "v", "configMap": {"name": "app"}}]},
        "status": {"phase": "Running", "containerStatuses": [{"name": "c", "state": {"running": {}}}]}});
    for (field, value) in more.as_object().into_iter().flatten() {
        pod[field] = value.clone();
    }
    serde_json::from_value(pod).expect("a pod")
}

fn with_env(name: &str, state: Value) -> PodView {
    let container = json!({"name": "c", "envFrom": [{"configMapRef": {"name": "app"}}]});
    let status = json!({"phase": "Running", "containerStatuses": [{"name": "c", "state": state}]});
    pod(
        name,
        "n1",
        json!({"spec": {"nodeName": "n1", "containers": [container]}, "status": status}),
    )
}

/// The report of a node that has heard of `version` at 0 s.
fn report(node: &str, version: &str, more: Value) -> ReportView {
    let mut entry = json!({"ref": {"kind": "ConfigMap", "namespace": "default", "name": "app"}, "uid": "u", "consumers": 1,
        "current": {"resourceVersion": version, "digest": "sha256:1", "heardAt": "2026-01-01T00:00:00.000000Z"},
        "visibleAt": {"first": LATER, "last": LATER}});
    for (field, value) in more.as_object().into_iter().flatten() {
        entry[field] = value.clone();
    }
    let report = json!({"metadata": {"name": node}, "objects": [entry]});
    serde_json::from_value(report).expect("a report")
}

fn behind(pod: &str, way: Value, stage: &str, version: &str) -> Value {
    let mut row = json!({"pod": pod, "podUID": pod, "stage": stage, "resourceVersion": version, "since": LATER, "reason": "why"});
    for (field, value) in way.as_object().into_iter().flatten() {
        row[field] = value.clone();
    }
    json!({"behind": [row], "behindCount": 1})
}

fn at(version: &str) -> Current {
    Current::At {
        uid: "u".to_owned(),
        resource_version: version.to_owned(),
    }
}

#[track_caller]
fn check(current: &Current, pods: &[PodView], reports: &[ReportView], wanted: &[&str]) -> Status {
    let target = Target::parse("cm/app", "default").expect("a target");
    let status = join(&target, current, pods, reports);
    let rows: Vec<String> = status
        .rows
        .iter()
        .map(|row| {
            let words = [
                row.pod.as_str(),
                &row.via.to_string(),
                &row.resource_version,
                row.state.as_str(),
                &row.reason,
            ];
            words
                .into_iter()
                .filter(|word| !word.is_empty())
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert_eq!(rows, wanted);
    status
}

#[test]
fn who_is_in_no_row_has_the_revision_that_its_node_has_heard_of() {
    let pods = [pod("a", "n1", json!({})), pod("b", "n2", json!({}))];
    let reports = [
        report("n1", "8", json!({})),
        report("n2", "8", behind("b", json!({"volume": "v"}), "projected", "7")),
    ];
    let status = check(
        &at("8"),
        &pods,
        &reports,
        &["a volume/v 8 Current", "b volume/v 7 Behind why"],
    );
    assert_eq!(
        (status.pods, status.pods_current, status.is_complete()),
        (2, 1, false)
    );
    assert_eq!(
        (status.slowest_microseconds, status.slowest_since),
        (Some(12_000), Some(Since::Heard))
    );
    assert_eq!(status.digest, "sha256:1");
    let status = check(&at("8"), &pods[..1], &reports, &["a volume/v 8 Current"]);
    assert!(status.is_complete());
}

#[test]
fn a_change_takes_from_its_commit_where_every_node_can_tell() {
    let pods = [pod("a", "n1", json!({})), pod("b", "n2", json!({}))];
    let current = json!({"resourceVersion": "8", "heardAt": "2026-01-01T00:00:00.010000Z",
        "committedAt": "2026-01-01T00:00:00.009000Z"});
    let rows = ["a volume/v 8 Current", "b volume/v 8 Current"];
    let told = |node: &str| report(node, "8", json!({"current": current}));
    // Pods that came later say nothing of the change.
    let only_late = report("n2", "8", json!({"visibleAt": null}));
    for (other, expected) in [
        (told("n2"), (3_000, Since::Commit)),
        (only_late, (3_000, Since::Commit)),
        (report("n2", "8", json!({})), (12_000, Since::Heard)),
    ] {
        let status = check(&at("8"), &pods, &[told("n1"), other], &rows);
        let (micros, since) = expected;
        assert_eq!(
            (status.slowest_microseconds, status.slowest_since),
            (Some(micros), Some(since))
        );
    }
}

#[test]
fn an_old_report_proves_nothing() {
    let pods = [pod("a", "n1", json!({}))];
    let waiting = "a volume/v 8 Waiting node n1 has not reported on revision 9 yet";
    check(&at("9"), &pods, &[report("n1", "8", json!({}))], &[waiting]);
    // Newer than what was read of the object: the report was first.
    check(
        &at("9"),
        &pods,
        &[report("n1", "10", json!({}))],
        &["a volume/v 9 Current"],
    );
    let other = report("n1", "9", json!({"uid": "the one before"}));
    check(
        &at("9"),
        &pods,
        &[other],
        &["a volume/v 9 Waiting node n1 has not reported on revision 9 yet"],
    );
    check(
        &at("9"),
        &pods,
        &[],
        &["a volume/v Unknown node n1 has no DeliveryReport"],
    );
    let homeless = [pod("a", "", json!({}))];
    check(
        &at("9"),
        &homeless,
        &[],
        &["a volume/v Waiting the pod has no node yet"],
    );
    let empty: ReportView = serde_json::from_value(json!({"metadata": {"name": "n1"}})).expect("a report");
    let unsaid = "a volume/v Waiting the report of node n1 does not speak of configmap/app yet";
    check(&at("9"), &pods, &[empty], &[unsaid]);
    let full: ReportView =
        serde_json::from_value(json!({"metadata": {"name": "n1"}, "objectsOmitted": 1})).expect("a report");
    let unsaid = "a volume/v Unknown the report of node n1 does not speak of configmap/app: it is full";
    check(&at("9"), &pods, &[full], &[unsaid]);
    let cut = report("n1", "9", json!({"behindCount": 4}));
    check(
        &at("9"),
        &pods,
        &[cut],
        &["a volume/v Unknown the report of node n1 has no room for all who are behind"],
    );
}

#[test]
fn variables_count_while_their_container_runs() {
    let reports = [report("n1", "8", json!({}))];
    check(
        &at("8"),
        &[with_env("a", json!({"running": {}}))],
        &reports,
        &["a env/c 8 Current"],
    );
    check(
        &at("8"),
        &[with_env("a", json!({"waiting": {}}))],
        &reports,
        &["a env/c Waiting it has not started"],
    );
    check(
        &at("8"),
        &[with_env("a", json!({"terminated": {}}))],
        &reports,
        &[],
    );
    let late = [report(
        "n1",
        "8",
        behind("a", json!({"container": "c"}), "projected", "7"),
    )];
    check(
        &at("8"),
        &[with_env("a", json!({"running": {}}))],
        &late,
        &["a env/c 7 Behind why"],
    );
    let new = pod("a", "n1", json!({"status": {"phase": "Pending"}}));
    check(
        &at("8"),
        &[new],
        &reports,
        &["a volume/v Waiting it has not started"],
    );
    let done = pod("a", "n1", json!({"status": {"phase": "Succeeded"}}));
    let status = check(&at("8"), &[done], &reports, &[]);
    assert!(status.is_complete() && status.pods == 0);
}

#[test]
fn loading_is_told_apart_from_delivery() {
    let mut entry = behind("a", json!({"volume": "v"}), "loaded", "7");
    entry["loaded"] = json!({"reporting": 2, "current": 1});
    let pods = [pod("a", "n1", json!({})), pod("b", "n1", json!({}))];
    let status = check(
        &at("8"),
        &pods,
        &[report("n1", "8", entry)],
        &["a volume/v 7 NotLoaded why", "b volume/v 8 Current"],
    );
    assert_eq!((status.loaded_reporting, status.loaded_current), (2, 1));
}

#[test]
fn an_object_that_cannot_be_read_is_as_new_as_the_newest_report() {
    let pods = [pod("a", "n1", json!({})), pod("b", "n2", json!({}))];
    let reports = [report("n1", "10", json!({})), report("n2", "9", json!({}))];
    let unreadable = Current::Unreadable("forbidden".to_owned());
    let status = check(
        &unreadable,
        &pods,
        &reports,
        &[
            "a volume/v 10 Current",
            "b volume/v 9 Waiting node n2 has not reported on revision 10 yet",
        ],
    );
    assert_eq!(status.note, "the newest version is what nodes report: forbidden");
    let gone = json!({"current": null, "uid": ""});
    check(
        &Current::Missing,
        &pods[..1],
        &[report("n1", "", gone)],
        &["a volume/v Current"],
    );
    check(
        &Current::Missing,
        &pods[..1],
        &[report("n1", "8", json!({}))],
        &["a volume/v 8 Waiting node n1 has not reported yet that the object is gone"],
    );
}
