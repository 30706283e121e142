//! Security contexts of pods and containers. Whether a node runs privileged containers is the node's to say.
//!
//! Paths and texts follow `ValidateSecurityContext` and `validatePodSpecSecurityContext` in
//! `pkg/apis/core/validation/validation.go`, Kubernetes 1.36.

use hotmap_object::FieldError;
use serde_json::{Map, Value};

use crate::{
    fields::Fields,
    rules::{self, Errors, child, index},
};

const PATH: &str = "spec.securityContext";
const SECCOMP_TYPES: &[&str] = &["Localhost", "RuntimeDefault", "Unconfined"];
const PROC_MOUNTS: &[&str] = &["Default", "Unmasked"];
const FS_GROUP_POLICIES: &[&str] = &["Always", "OnRootMismatch"];
const GROUP_POLICIES: &[&str] = &["Merge", "Strict"];

/// Checks `securityContext` of a container.
pub(super) fn container(errors: &mut Errors, path: &str, context: &Value, on_host_users: bool) {
    ids(errors, path, context, &["runAsUser", "runAsGroup"]);
    if let Some(mount) = context.member("procMount").and_then(Value::as_str) {
        let path = child(path, "procMount");
        if !PROC_MOUNTS.contains(&mount) {
            errors.push(FieldError::not_supported(path.as_str(), mount, PROC_MOUNTS));
        }
        if on_host_users && mount == "Unmasked" {
            let rule = "`hostUsers` must be false to use `Unmasked`";
            errors.push(FieldError::invalid(path, mount, rule));
        }
    }
    seccomp(errors, path, context);
    let may_not_escalate = context.member("allowPrivilegeEscalation") == Some(&Value::Bool(false));
    if !may_not_escalate {
        return;
    }
    if context.is_set("privileged") {
        let rule = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
        errors.push(FieldError::invalid(path, context.clone(), rule));
    }
    if context
        .map("capabilities")
        .list("add")
        .iter()
        .any(|one| one == "CAP_SYS_ADMIN")
    {
        let rule = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
        errors.push(FieldError::invalid(path, context.clone(), rule));
    }
}

/// Checks `securityContext` of a pod.
pub(super) fn pod(errors: &mut Errors, spec: &Map<String, Value>) {
    let Some(context) = spec.member("securityContext") else {
        return;
    };
    ids(errors, PATH, context, &["fsGroup", "runAsUser", "runAsGroup"]);
    for (at, group) in context.list("supplementalGroups").iter().enumerate() {
        let path = index(&child(PATH, "supplementalGroups"), at);
        rules::posix_id(errors, &path, group.as_i64().unwrap_or(-1));
    }
    if spec.is_set("shareProcessNamespace") && spec.is_set("hostPID") {
        errors.push(FieldError::invalid(
            child(PATH, "shareProcessNamespace"),
            true,
            "ShareProcessNamespace and HostPID cannot both be enabled",
        ));
    }
    sysctls(errors, context.list("sysctls"));
    seccomp(errors, PATH, context);
    for (field, supported) in [
        ("fsGroupChangePolicy", FS_GROUP_POLICIES),
        ("supplementalGroupsPolicy", GROUP_POLICIES),
    ] {
        if let Some(policy) = context.member(field).and_then(Value::as_str)
            && !supported.contains(&policy)
        {
            errors.push(FieldError::not_supported(child(PATH, field), policy, supported));
        }
    }
}

/// A pod with its own user namespace has its own everything else too.
pub(super) fn host_users(errors: &mut Errors, spec: &Map<String, Value>) {
    if on_host_users(spec) {
        return;
    }
    for (field, element) in [
        ("hostNetwork", "hostNetwork"),
        ("hostPID", "HostPID"),
        ("hostIPC", "HostIPC"),
    ] {
        if spec.is_set(field) {
            let rule = "when `hostUsers` is false";
            errors.push(FieldError::forbidden(child("spec", element), rule));
        }
    }
}

/// Whether the pod shares the users of its node; it does unless it says otherwise.
pub(super) fn on_host_users(spec: &Map<String, Value>) -> bool {
    spec.member("hostUsers") != Some(&Value::Bool(false))
}

fn ids(errors: &mut Errors, path: &str, context: &Value, fields: &[&str]) {
    for field in fields {
        if let Some(id) = context.int(field) {
            rules::posix_id(errors, &child(path, field), id);
        }
    }
}

fn seccomp(errors: &mut Errors, path: &str, context: &Value) {
    let Some(profile) = context.member("seccompProfile") else {
        return;
    };
    let path = child(path, "seccompProfile");
    let of = profile.text("type");
    if of.is_empty() {
        let rule = "type is required when seccompProfile is set";
        errors.push(FieldError::required(child(&path, "type"), rule));
    } else if !SECCOMP_TYPES.contains(&of) {
        errors.push(FieldError::not_supported(child(&path, "type"), of, SECCOMP_TYPES));
    }
    let file_path = child(&path, "localhostProfile");
    match (of, profile.member("localhostProfile").and_then(Value::as_str)) {
        ("Localhost", None) => {
            let rule = "must be set when seccomp type is Localhost";
            errors.push(FieldError::required(file_path, rule));
        }
        ("Localhost", Some(file)) => rules::descending_path(errors, &file_path, file),
        (_, Some(_)) => {
            let rule = "can only be set when seccomp type is Localhost";
            errors.push(FieldError::invalid(file_path, profile.clone(), rule));
        }
        (_, None) => {}
    }
}

fn sysctls(errors: &mut Errors, sysctls: &[Value]) {
    for (at, sysctl) in sysctls.iter().enumerate() {
        let path = child(&index(&child(PATH, "sysctls"), at), "name");
        let name = sysctl.text("name");
        if name.is_empty() {
            errors.push(FieldError::required(path, ""));
        } else if sysctls[..at].iter().any(|earlier| earlier.text("name") == name) {
            errors.push(FieldError::duplicate(path, name));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{map, texts};

    #[test]
    fn ids_have_a_range() {
        let mut errors = Vec::new();
        pod(
            &mut errors,
            &map(
                json!({"securityContext": {"fsGroup": -1, "runAsUser": 2_147_483_648_i64, "supplementalGroups": [0, -2],
                "seccompProfile": {"type": "Localhost"}, "fsGroupChangePolicy": "Never"}}),
            ),
        );
        assert_eq!(
            texts(&errors),
            [
                "spec.securityContext.fsGroup: Invalid value: -1: must be between 0 and 2147483647, inclusive",
                "spec.securityContext.runAsUser: Invalid value: 2147483648: must be between 0 and 2147483647, inclusive",
                "spec.securityContext.supplementalGroups[1]: Invalid value: -2: must be between 0 and 2147483647, inclusive",
                "spec.securityContext.seccompProfile.localhostProfile: Required value: must be set when seccomp type is Localhost",
                "spec.securityContext.fsGroupChangePolicy: Unsupported value: \"Never\": supported values: \"Always\", \"OnRootMismatch\"",
            ]
        );
    }

    #[test]
    fn privileged_containers_escalate() {
        let mut errors = Vec::new();
        let context = json!({"privileged": true, "allowPrivilegeEscalation": false});
        container(&mut errors, "c", &context, true);
        assert_eq!(errors.len(), 1);
        assert_eq!(
            errors[0].detail,
            "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
        );
    }

    #[test]
    fn own_users_do_not_meet_the_host() {
        let mut errors = Vec::new();
        host_users(&mut errors, &map(json!({"hostUsers": false, "hostPID": true})));
        assert_eq!(
            texts(&errors),
            ["spec.HostPID: Forbidden: when `hostUsers` is false"]
        );
    }
}
