//! Ephemeral containers: put beside a pod that runs, through a sub-resource of their own, to look at it.
//!
//! Rules follow `podEphemeralContainersStrategy` in `pkg/registry/core/pod/strategy.go`, and `validateEphemeralContainers` and
//! `ValidatePodEphemeralContainersUpdate` in `pkg/apis/core/validation/validation.go`, Kubernetes 1.36. Where upstream prints a
//! difference of its structures, here are the paths that differ, without values.

use std::collections::BTreeSet;

use hotmap_object::FieldError;
use serde_json::{Map, Value};

use super::{
    container::{self, Surroundings},
    spec, unenforced, update,
};
use crate::{
    fields::{Fields, keep, map_mut},
    rules::{Errors, child, index},
};

/// The path that ephemeral containers come through, and nothing else does.
pub(super) const SUBRESOURCE: &str = "ephemeralcontainers";

const LIST: &str = "ephemeralContainers";
const PATH: &str = "spec.ephemeralContainers";
const NOT_EPHEMERAL: &str = "cannot be set for an Ephemeral Container";

/// What only a container has that is part of the workload: these count when they hold something,
const FORBIDDEN_WHEN_FILLED: [&str; 4] = ["ports", "resources", "resizePolicy", "restartPolicyRules"];
/// and these when they are there at all.
const FORBIDDEN: [&str; 5] = [
    "restartPolicy",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

/// Everything but the list of ephemeral containers is what it was.
pub(super) fn keep_the_rest(new: &mut Map<String, Value>, old: &Map<String, Value>) {
    let list = new.map("spec").get(LIST).cloned();
    for field in ["spec", "status"] {
        keep(new, old, field);
    }
    if let Some(spec) = map_mut(new, "spec") {
        match list.filter(|list| list != &Value::Array(Vec::new())) {
            Some(list) => spec.insert(LIST.to_owned(), list),
            None => spec.remove(LIST),
        };
    }
    if let Some(metadata) = map_mut(new, "metadata") {
        let before = old.map("metadata");
        for field in [
            "labels",
            "annotations",
            "finalizers",
            "ownerReferences",
            "deletionTimestamp",
        ] {
            keep(metadata, before, field);
        }
    }
}

/// Warnings about what a change has brought.
pub(super) fn warnings(new: &Map<String, Value>, old: &Map<String, Value>) -> Vec<String> {
    let (new, old) = (new.map("spec").get(LIST), old.map("spec").get(LIST));
    match new.filter(|list| Some(*list) != old) {
        Some(list) => {
            let spec = Map::from_iter([(LIST.to_owned(), list.clone())]);
            unenforced::of("spec", &spec)
        }
        None => Vec::new(),
    }
}

/// Everything that is wrong with a change through the sub-resource.
pub(super) fn validate_update(new: &Map<String, Value>, old: &Map<String, Value>) -> Vec<FieldError> {
    let annotations = old.map("metadata").map("annotations");
    if annotations.contains_key(update::MIRROR_ANNOTATION) {
        let rule = "static pods do not support ephemeral containers";
        return vec![FieldError::forbidden("", rule)];
    }
    let mut errors = Vec::new();
    spec::metadata_and_spec(&mut errors, new);
    update::mirror_annotation(&mut errors, new, old);
    let (new, old) = (new.map("spec").list(LIST), old.map("spec").list(LIST));
    for before in old {
        let name = before.text("name");
        // A patch does not keep the order.
        let Some(at) = new.iter().rposition(|after| after.text("name") == name) else {
            let rule = format!("existing ephemeral containers {name:?} may not be removed\n");
            errors.push(FieldError::forbidden(PATH, rule));
            continue;
        };
        let mut paths = BTreeSet::new();
        update::differences(&mut paths, &index(PATH, at), before, &new[at]);
        if !paths.is_empty() {
            let changed = Vec::from_iter(paths).join(", ");
            let rule =
                format!("existing ephemeral containers {name:?} may not be changed\nchanged: {changed}");
            errors.push(FieldError::forbidden(PATH, rule));
        }
    }
    errors
}

/// Checks the ephemeral containers of a spec.
pub(super) fn validate(errors: &mut Errors, spec: &Map<String, Value>, surroundings: &Surroundings<'_>) {
    let (containers, init) = (spec.list("containers"), spec.list("initContainers"));
    let all = spec.list(LIST);
    for (at, one) in all.iter().enumerate() {
        let path = index(PATH, at);
        container::common(errors, &path, one, surroundings);
        container::trimmed_image(errors, &path, one);
        container::unique_name(errors, &path, one, &[containers, init, &all[..at]]);
        let target = one.text("targetContainerName");
        let mut targets = containers.iter().chain(init);
        if !target.is_empty() && !targets.any(|other| other.text("name") == target) {
            errors.push(FieldError::not_found(child(&path, "targetContainerName"), target));
        }
        let filled = FORBIDDEN_WHEN_FILLED.into_iter().filter(|field| one.has(field));
        let there = FORBIDDEN.into_iter().filter(|field| one.member(field).is_some());
        let forbidden = filled.chain(there);
        errors.extend(forbidden.map(|field| FieldError::forbidden(child(&path, field), NOT_EPHEMERAL)));
        for (mount_at, mount) in one.list("volumeMounts").iter().enumerate() {
            let path = index(&child(&path, "volumeMounts"), mount_at);
            let parts = ["subPath", "subPathExpr"]
                .into_iter()
                .filter(|part| mount.has(part));
            errors.extend(parts.map(|part| FieldError::forbidden(child(&path, part), NOT_EPHEMERAL)));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{
        Strategy,
        pod::Pod,
        testing::{map, texts},
    };

    fn pod(ephemeral: Value) -> Map<String, Value> {
        let mut pod = map(json!({"metadata": {"labels": {"a": "b"}}, "spec": {
            "containers": [{"name": "app", "image": "i:1"}], "initContainers": [{"name": "init", "image": "i:1"}],
            "volumes": [{"name": "v", "emptyDir": {}}], "ephemeralContainers": ephemeral}}));
        Pod.default(&mut pod);
        pod
    }

    fn check(old: Value, new: Value, wanted: &[&str]) {
        let found = Pod.validate_update(&pod(new.clone()), &pod(old), SUBRESOURCE);
        assert_eq!(texts(&found), wanted, "{new}");
    }

    #[test]
    fn an_ephemeral_container_is_no_part_of_the_workload() {
        let good = json!({"name": "e", "image": "busybox", "command": ["sh"], "env": [{"name": "A", "value": "b"}],
            "volumeMounts": [{"name": "v", "mountPath": "/v"}], "stdin": true, "tty": true, "resources": {},
            "securityContext": {"capabilities": {"add": ["SYS_PTRACE"]}}, "targetContainerName": "app"});
        check(json!([]), json!([good]), &[]);
        check(
            json!([]),
            json!([{"name": "e", "image": " busybox", "targetContainerName": "init", "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "1"}}, "restartPolicy": "Always", "lifecycle": {},
                "readinessProbe": {"exec": {"command": ["true"]}},
                "volumeMounts": [{"name": "v", "mountPath": "/v", "subPath": "a"}, {"name": "w", "mountPath": "/w"}]}]),
            &[
                "spec.ephemeralContainers[0].volumeMounts[1].name: Not found: \"w\"",
                "spec.ephemeralContainers[0].image: Invalid value: \" busybox\": must not have leading or trailing whitespace",
                "spec.ephemeralContainers[0].ports: Forbidden: cannot be set for an Ephemeral Container",
                "spec.ephemeralContainers[0].resources: Forbidden: cannot be set for an Ephemeral Container",
                "spec.ephemeralContainers[0].restartPolicy: Forbidden: cannot be set for an Ephemeral Container",
                "spec.ephemeralContainers[0].readinessProbe: Forbidden: cannot be set for an Ephemeral Container",
                "spec.ephemeralContainers[0].lifecycle: Forbidden: cannot be set for an Ephemeral Container",
                "spec.ephemeralContainers[0].volumeMounts[0].subPath: Forbidden: cannot be set for an Ephemeral Container",
            ],
        );
    }

    #[test]
    fn names_are_unique_in_the_pod_and_a_target_is_no_ephemeral_container() {
        let named = |name: &str| json!({"name": name, "image": "i:1"});
        check(
            json!([]),
            json!([named("app"), named("init"), named("e"), named("e")]),
            &[
                "spec.ephemeralContainers[0].name: Duplicate value: \"app\"",
                "spec.ephemeralContainers[1].name: Duplicate value: \"init\"",
                "spec.ephemeralContainers[3].name: Duplicate value: \"e\"",
            ],
        );
        check(
            json!([]),
            json!([named("e"), {"name": "f", "image": "i:1", "targetContainerName": "e"}]),
            &["spec.ephemeralContainers[1].targetContainerName: Not found: \"e\""],
        );
    }

    #[test]
    fn those_that_are_there_stay_as_they_are() {
        let (one, two) = (
            json!({"name": "e", "image": "i:1"}),
            json!({"name": "f", "image": "i:1"}),
        );
        check(json!([one]), json!([two, one]), &[]);
        check(
            json!([one, two]),
            json!([two]),
            &[
                "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"e\" may not be removed\n",
            ],
        );
        check(
            json!([one]),
            json!([two, {"name": "e", "image": "i:1", "command": ["sh"]}]),
            &[
                "spec.ephemeralContainers: Forbidden: existing ephemeral containers \"e\" may not be changed\nchanged: spec.ephemeralContainers[1].command",
            ],
        );
        let mut mirror = pod(json!([]));
        mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "x"});
        let found = Pod.validate_update(&mirror, &mirror, SUBRESOURCE);
        assert_eq!(
            texts(&found),
            [": Forbidden: static pods do not support ephemeral containers"]
        );
        // Nor does the pod's own path take one.
        let found = texts(&Pod.validate_update(&pod(json!([one])), &pod(json!([])), ""));
        assert!(
            found[0].starts_with("spec: Forbidden: pod updates may not change fields other than"),
            "{found:?}"
        );
    }

    #[test]
    fn the_sub_resource_changes_nothing_else() {
        let (old, mut new) = (pod(json!([])), pod(json!([{"name": "e", "image": "i:1"}])));
        let wanted = new.clone();
        assert!(Pod.bumps_generation(&new, &old));
        new["metadata"]["labels"] = json!({});
        new["spec"]["hostname"] = json!("h");
        new.insert("status".to_owned(), json!({"phase": "Running"}));
        Pod.prepare_for_update(&mut new, &old, SUBRESOURCE);
        assert_eq!(new, wanted);
        assert_eq!(Pod.warnings(&new, Some(&old)), [""; 0]);
        new["spec"][LIST][0]["securityContext"] = json!({"procMount": "Unmasked"});
        assert_eq!(
            Pod.warnings(&new, Some(&old)),
            [
                "spec.ephemeralContainers[0].securityContext.procMount: stored, but without effect: /proc is always masked"
            ]
        );
        // An empty list is as good as none.
        let mut new = map(json!({"metadata": {}, "spec": {"ephemeralContainers": []}}));
        Pod.prepare_for_update(&mut new, &wanted, SUBRESOURCE);
        assert_eq!(new["spec"].get(LIST), None);
    }
}
