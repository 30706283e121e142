//! What is sent to the server for a Job: its pods, and the patches of its status and of pods.

use hotmap_object::timestamp;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use super::{
    decision::NewPod,
    own_pod::{COMPLETION_INDEX, INDEX_FAILURE_COUNT, INDEX_IGNORED_FAILURE_COUNT, TRACKING_FINALIZER},
};
use crate::{
    claims,
    pod_template::pod_from,
    view::{Job, Pod, job::JobStatus},
};

const COMPLETION_INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";
/// The longest beginning of a generated name.
const GENERATE_NAME_CHARS_MAX: usize = 58;

/// The pod to be created.
///
/// Source: `manageJob` in `pkg/controller/job/job_controller.go`, Kubernetes 1.36.
pub(super) fn pod(job: &Job, new: &NewPod) -> Value {
    let mut pod = pod_from(job.spec.template.value(), job);
    let finalizers = list(&mut pod["metadata"], "finalizers");
    if !finalizers.iter().any(|finalizer| finalizer == TRACKING_FINALIZER) {
        finalizers.push(TRACKING_FINALIZER.into());
    }
    let Some(index) = new.index else { return pod };
    let name = &job.metadata.name;
    pod["metadata"]["generateName"] = generate_name(name, index).into();
    pod["spec"]["hostname"] = format!("{name}-{index}").into();
    for field in ["labels", "annotations"] {
        map(&mut pod["metadata"], field).insert(COMPLETION_INDEX.to_owned(), index.to_string().into());
    }
    if let Some((counted, ignored)) = new.index_failures {
        let annotations = map(&mut pod["metadata"], "annotations");
        annotations.insert(INDEX_FAILURE_COUNT.to_owned(), counted.to_string().into());
        if ignored > 0 {
            annotations.insert(INDEX_IGNORED_FAILURE_COUNT.to_owned(), ignored.to_string().into());
        }
    }
    for containers in ["initContainers", "containers"] {
        let containers = pod["spec"].get_mut(containers).and_then(Value::as_array_mut);
        containers.into_iter().flatten().for_each(tell_index);
    }
    pod
}

/// Beginning of the names of an index's pods; of a long one the end of the Job's name is cut, never the index.
fn generate_name(job: &str, index: u32) -> String {
    let index = format!("-{index}-");
    let kept = job.len().min(GENERATE_NAME_CHARS_MAX - index.len());
    // Names are ASCII, the server has checked that.
    format!("{}{index}", job.get(..kept).unwrap_or(job))
}

/// A container learns its index from the environment, unless the template says otherwise.
fn tell_index(container: &mut Value) {
    let variables = list(container, "env");
    if variables
        .iter()
        .any(|variable| variable["name"] == COMPLETION_INDEX_VARIABLE)
    {
        return;
    }
    let path = format!("metadata.labels['{COMPLETION_INDEX}']");
    variables
        .push(json!({"name": COMPLETION_INDEX_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": path}}}));
}

fn list<'a>(parent: &'a mut Value, field: &str) -> &'a mut Vec<Value> {
    if !parent[field].is_array() {
        parent[field] = json!([]);
    }
    parent[field].as_array_mut().expect("just made one")
}

fn map<'a>(parent: &'a mut Value, field: &str) -> &'a mut Map<String, Value> {
    if !parent[field].is_object() {
        parent[field] = json!({});
    }
    parent[field].as_object_mut().expect("just made one")
}

/// The merge patch that makes the status what it should be, of this very version of the Job.
pub(super) fn status_patch(job: &Job, status: &JobStatus) -> Value {
    let (before, after) = (document(&job.status), document(status));
    let changed: Map<String, Value> = after
        .into_iter()
        .filter(|(field, value)| before.get(field) != Some(value))
        .collect();
    let metadata = &job.metadata;
    json!({"metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version}, "status": changed})
}

/// All fields of a status; `null` for those that are not there.
fn document(status: &JobStatus) -> Map<String, Value> {
    let counter = |number: i32| if number == 0 { Value::Null } else { number.into() };
    let time = |at: Option<Timestamp>| at.map(timestamp::seconds);
    let conditions: Vec<Value> = status
        .conditions
        .iter()
        .map(|condition| {
            json!({
                "type": condition.kind,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
                "lastProbeTime": time(condition.last_probe_time),
                "lastTransitionTime": time(condition.last_transition_time),
            })
        })
        .collect();
    let document = json!({
        "active": counter(status.active),
        "ready": status.ready,
        "terminating": status.terminating,
        "succeeded": counter(status.succeeded),
        "failed": counter(status.failed),
        "startTime": time(status.start_time),
        "completionTime": time(status.completion_time),
        "completedIndexes": Some(&status.completed_indexes).filter(|text| !text.is_empty()),
        "failedIndexes": status.failed_indexes,
        "uncountedTerminatedPods": status.uncounted_terminated_pods,
        "conditions": conditions,
    });
    match document {
        Value::Object(document) => document,
        _ => unreachable!("the literal is an object"),
    }
}

/// The strategic merge patch that lets a pod go.
pub(super) fn release(pod: &Pod) -> Value {
    json!({"metadata": {"uid": pod.metadata.uid, "$deleteFromPrimitiveList/finalizers": [TRACKING_FINALIZER]}})
}

/// The strategic merge patch that makes a pod the Job's own, to be counted.
pub(super) fn adoption(job: &Job, pod: &Pod) -> Value {
    let mut patch = claims::adoption(job, &pod.metadata.uid);
    patch["metadata"]["finalizers"] = json!([TRACKING_FINALIZER]);
    patch
}

/// The strategic merge patch that makes a pod the Job's own no longer.
pub(super) fn disowning(job: &Job, pod: &Pod) -> Value {
    let mut patch = claims::release(job, &pod.metadata.uid);
    patch["metadata"]["$deleteFromPrimitiveList/finalizers"] = json!([TRACKING_FINALIZER]);
    patch
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(value: Value) -> Job {
        serde_json::from_value(value).expect("a job")
    }

    #[test]
    fn an_indexed_pod_knows_its_index_in_every_way_upstream_tells_it() {
        let job = job(
            json!({"metadata": {"namespace": "a", "name": "sum", "uid": "u"}, "spec": {"template": {
            "metadata": {"labels": {"app": "x"}, "finalizers": ["a/b"]},
            "spec": {"initContainers": [{"name": "i"}], "containers": [{"name": "c", "env": [{"name": "A", "value": "1"}]},
                {"name": "own", "env": [{"name": "JOB_COMPLETION_INDEX", "value": "7"}]}]}}}}),
        );
        let new = NewPod {
            index: Some(3),
            index_failures: Some((2, 1)),
        };
        let pod = pod(&job, &new);
        let variable = json!({"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef":
            {"fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"}}});
        assert_eq!(pod["metadata"]["generateName"], "sum-3-");
        assert_eq!(
            pod["metadata"]["labels"],
            json!({"app": "x", COMPLETION_INDEX: "3"})
        );
        assert_eq!(
            pod["metadata"]["annotations"],
            json!({COMPLETION_INDEX: "3", INDEX_FAILURE_COUNT: "2", INDEX_IGNORED_FAILURE_COUNT: "1"})
        );
        assert_eq!(pod["metadata"]["finalizers"], json!(["a/b", TRACKING_FINALIZER]));
        assert_eq!(pod["metadata"]["ownerReferences"][0]["uid"], "u");
        assert_eq!(pod["spec"]["hostname"], "sum-3");
        assert_eq!(pod["spec"]["initContainers"][0]["env"], json!([variable]));
        assert_eq!(
            pod["spec"]["containers"][0]["env"],
            json!([{"name": "A", "value": "1"}, variable])
        );
        assert_eq!(pod["spec"]["containers"][1]["env"][0]["value"], "7");
    }

    #[test]
    fn a_pod_without_index_is_the_template_with_our_finalizer() {
        let job = job(
            json!({"metadata": {"namespace": "a", "name": "pi", "uid": "u"}, "spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}}),
        );
        let pod = pod(&job, &NewPod::default());
        assert_eq!(pod["spec"], json!({"containers": [{"name": "c"}]}));
        assert_eq!(pod["metadata"]["finalizers"], json!([TRACKING_FINALIZER]));
        assert_eq!(pod["metadata"]["generateName"], "pi-");
    }

    #[test]
    fn a_long_name_is_cut_before_the_index() {
        let long = "j".repeat(63);
        assert_eq!(generate_name(&long, 123), format!("{}-123-", "j".repeat(53)));
        assert_eq!(generate_name("j", 0), "j-0-");
    }

    #[test]
    fn a_status_patch_holds_what_changes_and_null_for_what_goes() {
        let job = job(
            json!({"metadata": {"uid": "u", "resourceVersion": "7"}, "status": {"active": 2, "ready": 1, "failed": 1,
            "startTime": "2026-01-02T15:04:05Z", "uncountedTerminatedPods": {"failed": ["p"]}}}),
        );
        let mut status = job.status.clone();
        assert_eq!(status_patch(&job, &status)["status"], json!({}));
        status.active = 0;
        status.ready = Some(0);
        status.start_time = None;
        status.uncounted_terminated_pods.failed.clear();
        assert_eq!(
            status_patch(&job, &status),
            json!({"metadata": {"uid": "u", "resourceVersion": "7"}, "status": {"active": null, "ready": 0, "startTime": null,
                "uncountedTerminatedPods": {"succeeded": [], "failed": []}}})
        );
    }
}
