//! The row of a pod: above all, one word for what its containers do.
//!
//! Follows `printPod` in `pkg/printers/internalversion/printers.go`, Kubernetes 1.36.

use hotmap_object::timestamp::human_age;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{fields::Fields, table};

/// What is counted on the way to the word.
struct Summary {
    word: String,
    ready: usize,
    total: usize,
    restarts: i64,
    last_restart: Option<Timestamp>,
}

/// The cells of the row.
pub(super) fn cells(pod: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
    let (spec, status) = (pod.map("spec"), pod.map("status"));
    let summary = summarize(pod);
    let restarts = match summary.last_restart {
        Some(at) if summary.restarts != 0 => {
            format!("{} ({} ago)", summary.restarts, human_age(at, now))
        }
        _ => summary.restarts.to_string(),
    };
    vec![
        table::name(pod),
        format!("{}/{}", summary.ready, summary.total).into(),
        summary.word.into(),
        restarts.into(),
        table::age(pod, now),
        table::or_none(first_ip(status)),
        table::or_none(spec.text("nodeName")),
        table::or_none(status.text("nominatedNodeName")),
        readiness_gates(spec, status).into(),
    ]
}

/// Pods that have ended carry the condition by which clients hide them.
pub(super) fn row_conditions(pod: &Map<String, Value>) -> Vec<Value> {
    let phase = pod.map("status").text("phase");
    let message = match phase {
        "Succeeded" => "The pod has completed successfully.",
        "Failed" => "The pod failed.",
        _ => return Vec::new(),
    };
    vec![json!({"type": "Completed", "status": "True", "reason": phase, "message": message})]
}

/// The first address of the pod; old writers set only the single field.
pub(super) fn first_ip(status: &Map<String, Value>) -> &str {
    status
        .list("podIPs")
        .first()
        .map_or_else(|| status.text("podIP"), |ip| ip.text("ip"))
}

fn summarize(pod: &Map<String, Value>) -> Summary {
    let (spec, status) = (pod.map("spec"), pod.map("status"));
    let phase = status.text("phase");
    let mut summary = Summary {
        word: if status.has("reason") {
            status.text("reason")
        } else {
            phase
        }
        .to_owned(),
        ready: 0,
        total: spec.list("containers").len(),
        restarts: 0,
        last_restart: None,
    };
    let is_gated = |condition: &Value| {
        condition.text("type") == "PodScheduled" && condition.text("reason") == "SchedulingGated"
    };
    if status.list("conditions").iter().any(is_gated) {
        summary.word = "SchedulingGated".to_owned();
    }
    let sidecars = initialize(&mut summary, spec, status);
    if let Some((restarts, last_restart)) = sidecars {
        summary.restarts = restarts;
        summary.last_restart = last_restart;
        run(&mut summary, status);
    }
    if pod.map("metadata").has("deletionTimestamp") {
        if status.text("reason") == "NodeLost" {
            summary.word = "Unknown".to_owned();
        } else if !matches!(phase, "Succeeded" | "Failed") {
            summary.word = "Terminating".to_owned();
        }
    }
    summary
}

/// Looks at init containers; once they are through, only the restarts of sidecars count, which it returns.
fn initialize(
    summary: &mut Summary,
    spec: &Map<String, Value>,
    status: &Map<String, Value>,
) -> Option<(i64, Option<Timestamp>)> {
    let init = spec.list("initContainers");
    let is_sidecar = |name: &str| {
        let mut found = init.iter().filter(|one| one.text("name") == name);
        found.any(|one| one.text("restartPolicy") == "Always")
    };
    summary.total += init
        .iter()
        .filter(|one| one.text("restartPolicy") == "Always")
        .count();
    let (mut sidecar_restarts, mut sidecar_last) = (0, None);
    let mut initializing = None;
    for (at, container) in status.list("initContainerStatuses").iter().enumerate() {
        let restarts = container.int("restartCount").unwrap_or_default();
        let last = last_end(container);
        summary.restarts += restarts;
        summary.last_restart = summary.last_restart.max(last);
        let sidecar = is_sidecar(container.text("name"));
        if sidecar {
            sidecar_restarts += restarts;
            sidecar_last = sidecar_last.max(last);
        }
        let state = container.map("state");
        let ended = state.member("terminated");
        let waiting = state.map("waiting").text("reason");
        if ended.is_some_and(|ended| ended.int("exitCode").unwrap_or_default() == 0) {
            continue;
        }
        if sidecar && container.is_set("started") {
            summary.ready += usize::from(container.is_set("ready"));
            continue;
        }
        initializing = Some(match ended {
            Some(ended) => format!("Init:{}", end_word(ended)),
            None if !matches!(waiting, "" | "PodInitializing") => format!("Init:{waiting}"),
            None => format!("Init:{at}/{}", init.len()),
        });
        break;
    }
    let is_initialized = condition_is_true(status, "Initialized");
    match initializing {
        Some(word) => {
            summary.word = word;
            is_initialized.then_some((sidecar_restarts, sidecar_last))
        }
        None => Some((sidecar_restarts, sidecar_last)),
    }
}

/// Looks at containers, the last one first: the first one has the last word.
fn run(summary: &mut Summary, status: &Map<String, Value>) {
    let mut is_running = false;
    let mut error = None;
    for container in status.list("containerStatuses").iter().rev() {
        summary.restarts += container.int("restartCount").unwrap_or_default();
        summary.last_restart = summary.last_restart.max(last_end(container));
        let state = container.map("state");
        let waiting = state.map("waiting").text("reason");
        if !waiting.is_empty() {
            summary.word = waiting.to_owned();
        } else if let Some(ended) = state.member("terminated") {
            summary.word = end_word(ended);
            if ended.int("exitCode").unwrap_or_default() != 0 {
                error = Some(summary.word.clone());
            }
        } else if container.is_set("ready") && state.member("running").is_some() {
            is_running = true;
            summary.ready += 1;
        }
    }
    if summary.word != "Completed" {
        return;
    }
    if is_running && condition_is_true(status, "Ready") {
        summary.word = "Running".to_owned();
    } else if let Some(error) = error {
        summary.word = error;
    } else if is_running {
        summary.word = "NotReady".to_owned();
    }
}

fn end_word(ended: &Value) -> String {
    let signal = ended.int("signal").unwrap_or_default();
    match ended.text("reason") {
        "" if signal != 0 => format!("Signal:{signal}"),
        "" => format!("ExitCode:{}", ended.int("exitCode").unwrap_or_default()),
        reason => reason.to_owned(),
    }
}

fn last_end(container: &Value) -> Option<Timestamp> {
    container.map("lastState").map("terminated").time("finishedAt")
}

fn condition_is_true(status: &Map<String, Value>, of: &str) -> bool {
    let found = status
        .list("conditions")
        .iter()
        .find(|condition| condition.text("type") == of);
    found.is_some_and(|condition| condition.text("status") == "True")
}

fn readiness_gates(spec: &Map<String, Value>, status: &Map<String, Value>) -> String {
    let gates = spec.list("readinessGates");
    if gates.is_empty() {
        return table::NONE.to_owned();
    }
    let open = gates
        .iter()
        .filter(|gate| condition_is_true(status, gate.text("conditionType")));
    format!("{}/{}", open.count(), gates.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::map;

    fn check(pod: Value, ready: &str, word: &str, restarts: &str) {
        let now = "2026-01-01T00:10:00Z".parse().expect("a time");
        let row = cells(&map(pod.clone()), now);
        assert_eq!(
            [&row[1], &row[2], &row[3]],
            [&json!(ready), &json!(word), &json!(restarts)],
            "{pod}"
        );
    }

    fn pod(status: Value) -> Value {
        json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}, {"name": "b"}],
               "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}]}, "status": status})
    }

    #[test]
    fn one_word_tells_what_containers_do() {
        let running = json!({"ready": true, "restartCount": 0, "state": {"running": {}}});
        let waiting = |reason: &str| {
            json!({"restartCount": 2, "state": {"waiting": {"reason": reason}},
                                            "lastState": {"terminated": {"finishedAt": "2026-01-01T00:05:00Z"}}})
        };
        let ended = |code: i64, reason: &str| json!({"restartCount": 0, "state": {"terminated": {"exitCode": code, "reason": reason}}});
        check(pod(json!({"phase": "Pending"})), "0/3", "Pending", "0");
        check(
            pod(json!({"phase": "Failed", "reason": "Evicted"})),
            "0/3",
            "Evicted",
            "0",
        );
        check(
            pod(json!({"phase": "Running", "containerStatuses": [running, running]})),
            "2/3",
            "Running",
            "0",
        );
        check(
            pod(json!({"phase": "Running", "containerStatuses": [running, waiting("CrashLoopBackOff")]})),
            "1/3",
            "CrashLoopBackOff",
            "2 (5m ago)",
        );
        check(
            pod(json!({"phase": "Failed", "containerStatuses": [ended(3, "")]})),
            "0/3",
            "ExitCode:3",
            "0",
        );
        check(
            pod(
                json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}],
                       "containerStatuses": [ended(0, "Completed"), running]}),
            ),
            "1/3",
            "Running",
            "0",
        );
        check(
            pod(json!({"phase": "Running", "containerStatuses": [ended(0, "Completed"), running]})),
            "1/3",
            "NotReady",
            "0",
        );
    }

    #[test]
    fn initialization_has_its_own_words() {
        let sidecar =
            json!({"name": "s", "started": true, "ready": true, "restartCount": 4, "state": {"running": {}}});
        let done = json!({"name": "i", "restartCount": 1, "state": {"terminated": {"exitCode": 0}}});
        check(
            pod(
                json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "restartCount": 1, "state": {"running": {}}}]}),
            ),
            "0/3",
            "Init:0/2",
            "1",
        );
        check(
            pod(
                json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"terminated": {"exitCode": 2}}}]}),
            ),
            "0/3",
            "Init:ExitCode:2",
            "0",
        );
        check(
            pod(
                json!({"phase": "Pending", "initContainerStatuses": [{"name": "i", "state": {"waiting": {"reason": "ErrImageNeverPull"}}}]}),
            ),
            "0/3",
            "Init:ErrImageNeverPull",
            "0",
        );
        check(
            pod(
                json!({"phase": "Running", "initContainerStatuses": [done, sidecar],
                       "containerStatuses": [{"ready": true, "state": {"running": {}}}]}),
            ),
            "2/3",
            "Running",
            "4",
        );
    }

    #[test]
    fn deletion_has_the_last_word() {
        let mut deleted = pod(json!({"phase": "Running"}));
        deleted["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        check(deleted.clone(), "0/3", "Terminating", "0");
        deleted["status"]["phase"] = json!("Succeeded");
        check(deleted.clone(), "0/3", "Succeeded", "0");
        assert_eq!(
            row_conditions(&map(deleted.clone())),
            [
                json!({"type": "Completed", "status": "True", "reason": "Succeeded", "message": "The pod has completed successfully."})
            ]
        );
        deleted["status"]["reason"] = json!("NodeLost");
        check(deleted, "0/3", "Unknown", "0");
    }

    #[test]
    fn wide_columns_show_where_the_pod_is() {
        let now = "2026-01-01T00:00:00Z".parse().expect("a time");
        let row = cells(
            &map(
                json!({"spec": {"nodeName": "n", "readinessGates": [{"conditionType": "a"}, {"conditionType": "b"}]},
                        "status": {"podIPs": [{"ip": "10.0.0.1"}], "conditions": [{"type": "a", "status": "True"}]}}),
            ),
            now,
        );
        assert_eq!(
            Value::from(row[5..].to_vec()),
            json!(["10.0.0.1", "n", "<none>", "1/2"])
        );
    }
}
