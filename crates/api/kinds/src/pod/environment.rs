//! Environment variables: names, values, and where values come from.
//!
//! Paths and texts follow `ValidateEnv` and `ValidateEnvFrom` in `pkg/apis/core/validation/validation.go`, Kubernetes 1.36.

use hotmap_object::{FieldError, Quantity, names};
use serde_json::{Map, Value};

use crate::{
    fields::Fields,
    quantity,
    rules::{self, Errors, broken, child, index},
};

const ENV_FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// Fields that the conversion of paths knows, be they allowed in this place or not.
const KNOWN_FIELDS: [&str; 14] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCE_FIELDS: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
const HUGE_PAGES: [&str; 2] = ["limits.hugepages-", "requests.hugepages-"];
const BYTE_DIVISORS: [&str; 13] = [
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
];
const TWO_SOURCES: &str = "may not have more than one field specified at a time";

/// Checks `env`.
pub(super) fn variables(errors: &mut Errors, path: &str, variables: &[Value]) {
    for (at, variable) in variables.iter().enumerate() {
        let path = index(path, at);
        match variable.text("name") {
            "" => errors.push(FieldError::required(child(&path, "name"), "")),
            name => broken(errors, &child(&path, "name"), name, rules::env_name(name)),
        }
        if let Some(from) = variable.member("valueFrom") {
            value_from(errors, &child(&path, "valueFrom"), from, variable.has("value"));
        }
    }
}

fn value_from(errors: &mut Errors, path: &str, from: &Value, has_value: bool) {
    let mut count = 0;
    if let Some(field) = from.member("fieldRef") {
        count += 1;
        field_reference(errors, &child(path, "fieldRef"), field, ENV_FIELDS);
    }
    if let Some(resource) = from.member("resourceFieldRef") {
        count += 1;
        resource_reference(errors, &child(path, "resourceFieldRef"), resource, false);
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(reference) = from.member(kind) {
            count += 1;
            key_reference(errors, &child(path, kind), reference);
        }
    }
    if let Some(reference) = from.member("fileKeyRef") {
        count += 1;
        file_reference(errors, &child(path, "fileKeyRef"), reference);
    }
    let rule = match (count, has_value) {
        (0, _) => {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        }
        (_, true) => "may not be specified when `value` is not empty",
        (1, false) => return,
        (_, false) => TWO_SOURCES,
    };
    errors.push(FieldError::invalid(path, "", rule));
}

fn key_reference(errors: &mut Errors, path: &str, reference: &Value) {
    let name = reference.text("name");
    broken(errors, &child(path, "name"), name, rules::subdomain(name));
    match reference.text("key") {
        "" => errors.push(FieldError::required(child(path, "key"), "")),
        key => broken(errors, &child(path, "key"), key, names::config_key(key)),
    }
}

fn file_reference(errors: &mut Errors, path: &str, reference: &Value) {
    match reference.text("key") {
        "" => errors.push(FieldError::required(child(path, "key"), "")),
        key => broken(errors, &child(path, "key"), key, rules::env_name(key)),
    }
    match reference.text("volumeName") {
        "" => errors.push(FieldError::required(child(path, "volumeName"), "")),
        name => broken(errors, &child(path, "volumeName"), name, rules::label(name)),
    }
    match reference.text("path") {
        "" => errors.push(FieldError::required(child(path, "path"), "")),
        target => rules::no_backsteps(errors, &child(path, "path"), target),
    }
}

/// Checks that variables which come from files name an emptyDir of the pod.
pub(super) fn file_volumes(errors: &mut Errors, spec: &Map<String, Value>) {
    for list in ["initContainers", "containers"] {
        for (at, container) in spec.list(list).iter().enumerate() {
            let env = child(&index(&child("spec", list), at), "env");
            for (env_at, variable) in container.list("env").iter().enumerate() {
                let Some(reference) = variable.map("valueFrom").member("fileKeyRef") else {
                    continue;
                };
                let path = child(&index(&env, env_at), "valueFrom.fileKeyRef.volumeName");
                let name = reference.text("volumeName");
                match spec
                    .list("volumes")
                    .iter()
                    .rfind(|volume| volume.text("name") == name)
                {
                    None => errors.push(FieldError::not_found(path, name)),
                    Some(volume) if volume.member("emptyDir").is_none() => {
                        let rule = "referenced volume must be of type emptyDir";
                        errors.push(FieldError::invalid(path, name, rule));
                    }
                    Some(_) => {}
                }
            }
        }
    }
}

/// Checks `envFrom`.
pub(super) fn sources(errors: &mut Errors, path: &str, sources: &[Value]) {
    for (at, source) in sources.iter().enumerate() {
        let of_path = index(path, at);
        let prefix = source.text("prefix");
        if !prefix.is_empty() {
            broken(
                errors,
                &child(&of_path, "prefix"),
                prefix,
                rules::env_name(prefix),
            );
        }
        let mut count = 0;
        for kind in ["configMapRef", "secretRef"] {
            let Some(reference) = source.member(kind) else {
                continue;
            };
            count += 1;
            let name_path = child(&child(&of_path, kind), "name");
            match reference.text("name") {
                "" => errors.push(FieldError::required(name_path, "")),
                name => {
                    let rules = rules::subdomain(&rules::without_trailing_dash(name));
                    broken(errors, &name_path, name, rules);
                }
            }
        }
        let rule = match count {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => TWO_SOURCES,
        };
        // Upstream names the list, not the item.
        errors.push(FieldError::invalid(path, "", rule));
    }
}

/// Checks a reference to a field of the pod; `allowed` depends on where it stands.
pub(super) fn field_reference(errors: &mut Errors, path: &str, reference: &Value, allowed: &[&str]) {
    let version = reference.text("apiVersion");
    let field = reference.text("fieldPath");
    for (name, text) in [("apiVersion", version), ("fieldPath", field)] {
        if text.is_empty() {
            errors.push(FieldError::required(child(path, name), ""));
            return;
        }
    }
    let field_path = child(path, "fieldPath");
    let cannot = |why: String| {
        FieldError::invalid(
            field_path.as_str(),
            field,
            format!("error converting fieldPath: {why}"),
        )
    };
    if version != "v1" {
        errors.push(cannot(format!("unsupported pod version: {version}")));
        return;
    }
    match subscript(field) {
        Some(("metadata.annotations", key)) => {
            let key = key.to_lowercase();
            rules::qualified_name(errors, path, &key);
        }
        Some(("metadata.labels", key)) => rules::qualified_name(errors, path, key),
        Some(_) => errors.push(cannot(format!("field label does not support subscript: {field}"))),
        None => {
            // An old name that clients may still send.
            let field = if field == "spec.host" {
                "spec.nodeName"
            } else {
                field
            };
            if !KNOWN_FIELDS.contains(&field) {
                errors.push(cannot(format!("field label not supported: {field}")));
            } else if !allowed.contains(&field) {
                errors.push(FieldError::not_supported(field_path.as_str(), field, allowed));
            }
        }
    }
}

/// `metadata.labels['a/b']` is `metadata.labels` and `a/b`.
fn subscript(field: &str) -> Option<(&str, &str)> {
    let (path, key) = field.strip_suffix("']")?.split_once("['")?;
    (!path.is_empty()).then_some((path, key))
}

/// Checks a reference to a request or limit; in a volume it must say of which container.
pub(super) fn resource_reference(errors: &mut Errors, path: &str, reference: &Value, in_volume: bool) {
    let resource = reference.text("resource");
    if in_volume && !reference.has("containerName") {
        errors.push(FieldError::required(child(path, "containerName"), ""));
    } else if resource.is_empty() {
        errors.push(FieldError::required(child(path, "resource"), ""));
    } else if !RESOURCE_FIELDS.contains(&resource)
        && !HUGE_PAGES.iter().any(|prefix| resource.starts_with(prefix))
    {
        errors.push(FieldError::not_supported(
            child(path, "resource"),
            resource,
            RESOURCE_FIELDS,
        ));
    }
    if let Some(divisor) = reference.member("divisor") {
        check_divisor(errors, child(path, "divisor"), resource, divisor);
    }
}

fn check_divisor(errors: &mut Errors, path: String, resource: &str, divisor: &Value) {
    let text = quantity::text(divisor);
    if quantity::parse(divisor) == Some(Quantity::whole(0)) {
        return;
    }
    let of = match resource.split_once('.') {
        Some(("limits" | "requests", "cpu")) => {
            if !["1m", "1"].contains(&text.as_str()) {
                let rule = "only divisor's values 1m and 1 are supported with the cpu resource";
                errors.push(FieldError::invalid(path, resource, rule));
            }
            return;
        }
        Some(("limits" | "requests", "memory")) => "memory",
        Some(("limits" | "requests", "ephemeral-storage")) => "local ephemeral storage",
        Some(("limits" | "requests", name)) if quantity::is_huge_pages(name) => "hugepages",
        _ => return,
    };
    if !BYTE_DIVISORS.contains(&text.as_str()) {
        let known = BYTE_DIVISORS.join(", ");
        let rule = format!("only divisor's values {known} are supported with the {of} resource");
        errors.push(FieldError::invalid(path, resource, rule));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::texts;

    #[test]
    fn variables_have_names_and_one_source() {
        let field = |path: &str| json!({"fieldRef": {"apiVersion": "v1", "fieldPath": path}});
        let table = [
            (json!({"name": "A", "value": "x"}), vec![]),
            (json!({"name": "a b.c"}), vec![]),
            (json!({}), vec!["e[0].name: Required value"]),
            (
                json!({"name": "A=B"}),
                vec![
                    "e[0].name: Invalid value: \"A=B\": a valid environment variable name must consist only of printable ASCII characters other than '='",
                ],
            ),
            (json!({"name": "A", "valueFrom": field("status.podIP")}), vec![]),
            (
                json!({"name": "A", "valueFrom": field("metadata.labels['x']")}),
                vec![],
            ),
            (
                json!({"name": "A", "valueFrom": field("metadata.labels")}),
                vec![
                    "e[0].valueFrom.fieldRef.fieldPath: Unsupported value: \"metadata.labels\": supported values: \"metadata.name\", \"metadata.namespace\", \"metadata.uid\", \"spec.nodeName\", \"spec.serviceAccountName\", \"status.hostIP\", \"status.hostIPs\", \"status.podIP\", \"status.podIPs\"",
                ],
            ),
            (
                json!({"name": "A", "valueFrom": {}}),
                vec![
                    "e[0].valueFrom: Invalid value: \"\": must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`",
                ],
            ),
            (
                json!({"name": "A", "value": "x", "valueFrom": field("metadata.name")}),
                vec!["e[0].valueFrom: Invalid value: \"\": may not be specified when `value` is not empty"],
            ),
            (
                json!({"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}, "secretKeyRef": {"name": "s"}}}),
                vec![
                    "e[0].valueFrom.secretKeyRef.key: Required value",
                    "e[0].valueFrom: Invalid value: \"\": may not have more than one field specified at a time",
                ],
            ),
            (
                json!({"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.gpu"}}}),
                vec![
                    "e[0].valueFrom.resourceFieldRef.resource: Unsupported value: \"limits.gpu\": supported values: \"limits.cpu\", \"limits.ephemeral-storage\", \"limits.memory\", \"requests.cpu\", \"requests.ephemeral-storage\", \"requests.memory\"",
                ],
            ),
            (
                json!({"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1Mi"}}}),
                vec![
                    "e[0].valueFrom.resourceFieldRef.divisor: Invalid value: \"limits.cpu\": only divisor's values 1m and 1 are supported with the cpu resource",
                ],
            ),
        ];
        for (variable, wanted) in table {
            let mut errors = Vec::new();
            variables(&mut errors, "e", std::slice::from_ref(&variable));
            assert_eq!(texts(&errors), wanted, "{variable}");
        }
    }

    #[test]
    fn files_come_from_an_empty_directory() {
        let file = |volume: &str| json!({"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": volume, "path": "f", "key": "K"}}});
        let spec = json!({"volumes": [{"name": "v", "emptyDir": {}}, {"name": "c", "configMap": {"name": "c"}}],
                          "containers": [{"env": [file("v"), file("c"), file("w")]}]});
        let mut errors = Vec::new();
        file_volumes(&mut errors, spec.as_object().expect("an object"));
        assert_eq!(
            texts(&errors),
            [
                "spec.containers[0].env[1].valueFrom.fileKeyRef.volumeName: Invalid value: \"c\": referenced volume must be of type emptyDir",
                "spec.containers[0].env[2].valueFrom.fileKeyRef.volumeName: Not found: \"w\"",
            ]
        );
    }

    #[test]
    fn whole_objects_are_named() {
        let table = [
            (json!({"configMapRef": {"name": "c"}, "prefix": "P_"}), vec![]),
            (
                json!({}),
                vec!["f: Invalid value: \"\": must specify one of: `configMapRef` or `secretRef`"],
            ),
            (
                json!({"secretRef": {}}),
                vec!["f[0].secretRef.name: Required value"],
            ),
            (
                json!({"configMapRef": {"name": "c"}, "secretRef": {"name": "s"}}),
                vec!["f: Invalid value: \"\": may not have more than one field specified at a time"],
            ),
        ];
        for (source, wanted) in table {
            let mut errors = Vec::new();
            sources(&mut errors, "f", std::slice::from_ref(&source));
            assert_eq!(texts(&errors), wanted, "{source}");
        }
    }
}
