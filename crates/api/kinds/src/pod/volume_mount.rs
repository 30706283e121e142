//! Where containers see volumes.
//!
//! Paths and texts follow `ValidateVolumeMounts` in `pkg/apis/core/validation/validation.go`, Kubernetes 1.36; some of
//! its paths name the list instead of the item.

use std::collections::BTreeSet;

use hotmap_object::FieldError;
use serde_json::Value;

use crate::{
    fields::Fields,
    rules::{self, Errors, child, index},
};

const PROPAGATIONS: &[&str] = &["Bidirectional", "HostToContainer", "None"];
const RECURSIVE_READ_ONLY: &[&str] = &["Disabled", "Enabled", "IfPossible"];

/// Checks the mounts of one container against the valid volumes of its pod.
pub(super) fn validate(errors: &mut Errors, path: &str, container: &Value, volumes: &BTreeSet<&str>) {
    let mut mounted = BTreeSet::new();
    let devices = container.list("volumeDevices");
    for (at, mount) in container.list("volumeMounts").iter().enumerate() {
        let of_path = index(path, at);
        let (name, target) = (mount.text("name"), mount.text("mountPath"));
        if name.is_empty() {
            errors.push(FieldError::required(child(&of_path, "name"), ""));
        }
        if !volumes.contains(name) {
            errors.push(FieldError::not_found(child(&of_path, "name"), name));
        }
        if target.is_empty() {
            errors.push(FieldError::required(child(&of_path, "mountPath"), ""));
        }
        if !mounted.insert(target) {
            errors.push(FieldError::invalid(
                child(&of_path, "mountPath"),
                target,
                "must be unique",
            ));
        }
        if devices.iter().any(|device| device.text("name") == name) {
            let rule = "must not already exist in volumeDevices";
            errors.push(FieldError::invalid(child(&of_path, "name"), name, rule));
        }
        if devices.iter().any(|device| device.text("devicePath") == target) {
            let rule = "must not already exist as a path in volumeDevices";
            errors.push(FieldError::invalid(child(&of_path, "mountPath"), target, rule));
        }
        sub_path(errors, path, &of_path, mount);
        propagation(errors, path, container, mount);
        recursive_read_only(errors, child(path, "recursiveReadOnly"), mount);
    }
}

fn sub_path(errors: &mut Errors, path: &str, of_path: &str, mount: &Value) {
    let (fixed, expression) = (mount.text("subPath"), mount.text("subPathExpr"));
    if !fixed.is_empty() {
        rules::descending_path(errors, &child(path, "subPath"), fixed);
    }
    if !expression.is_empty() {
        if !fixed.is_empty() {
            errors.push(FieldError::invalid(
                child(of_path, "subPathExpr"),
                expression,
                "subPathExpr and subPath are mutually exclusive",
            ));
        }
        rules::descending_path(errors, &child(path, "subPathExpr"), expression);
    }
}

fn propagation(errors: &mut Errors, path: &str, container: &Value, mount: &Value) {
    let Some(propagation) = mount.member("mountPropagation").and_then(Value::as_str) else {
        return;
    };
    let path = child(path, "mountPropagation");
    if !PROPAGATIONS.contains(&propagation) {
        errors.push(FieldError::not_supported(
            path.as_str(),
            propagation,
            PROPAGATIONS,
        ));
    }
    let is_privileged = container.map("securityContext").is_set("privileged");
    if propagation == "Bidirectional" && !is_privileged {
        errors.push(FieldError::forbidden(
            path,
            "Bidirectional mount propagation is available only to privileged containers",
        ));
    }
}

fn recursive_read_only(errors: &mut Errors, path: String, mount: &Value) {
    match mount.member("recursiveReadOnly").and_then(Value::as_str) {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !mount.is_set("readOnly") {
                let rule = "may only be specified when readOnly is true";
                errors.push(FieldError::forbidden(path.as_str(), rule));
            }
            if !matches!(mount.text("mountPropagation"), "" | "None") {
                let rule = "may only be specified when mountPropagation is None or not specified";
                errors.push(FieldError::forbidden(path, rule));
            }
        }
        Some(other) => errors.push(FieldError::not_supported(path, other, RECURSIVE_READ_ONLY)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::texts;

    #[test]
    fn mounts_name_volumes_and_free_places() {
        let table = [
            (
                json!([{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b", "subPath": "x/y"}]),
                vec![],
            ),
            (
                json!([{"name": "w", "mountPath": "/a"}]),
                vec!["m[0].name: Not found: \"w\""],
            ),
            (
                json!([{"mountPath": "/a"}]),
                vec!["m[0].name: Required value", "m[0].name: Not found: \"\""],
            ),
            (json!([{"name": "v"}]), vec!["m[0].mountPath: Required value"]),
            (
                json!([{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}]),
                vec!["m[1].mountPath: Invalid value: \"/a\": must be unique"],
            ),
            (
                json!([{"name": "v", "mountPath": "/a", "subPath": "../x"}]),
                vec!["m.subPath: Invalid value: \"../x\": must not contain '..'"],
            ),
            (
                json!([{"name": "v", "mountPath": "/a", "subPath": "x", "subPathExpr": "/y"}]),
                vec![
                    "m[0].subPathExpr: Invalid value: \"/y\": subPathExpr and subPath are mutually exclusive",
                    "m.subPathExpr: Invalid value: \"/y\": must be a relative path",
                ],
            ),
            (
                json!([{"name": "v", "mountPath": "/a", "mountPropagation": "Bidirectional"}]),
                vec![
                    "m.mountPropagation: Forbidden: Bidirectional mount propagation is available only to privileged containers",
                ],
            ),
            (
                json!([{"name": "v", "mountPath": "/a", "recursiveReadOnly": "Enabled"}]),
                vec!["m.recursiveReadOnly: Forbidden: may only be specified when readOnly is true"],
            ),
        ];
        for (mounts, wanted) in table {
            let mut errors = Vec::new();
            let volumes = BTreeSet::from(["v"]);
            validate(&mut errors, "m", &json!({ "volumeMounts": mounts }), &volumes);
            assert_eq!(texts(&errors), wanted, "{mounts}");
        }
    }
}
