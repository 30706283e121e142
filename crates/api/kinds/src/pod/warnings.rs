//! What is valid and still worth a word.
//!
//! Sentences follow `pkg/api/pod/warnings.go` and `pkg/registry/core/pod/strategy.go`, Kubernetes 1.36.

use serde_json::{Map, Value};

use super::unenforced;
use crate::{
    fields::Fields,
    rules::{child, index, label},
};

/// Warnings about a new pod.
pub(super) fn of_pod(pod: &Map<String, Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    let rules = label(pod.map("metadata").text("name"));
    if !rules.is_empty() {
        warnings.push(format!(
            "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [{}]",
            rules.join(" ")
        ));
    }
    warnings.extend(of_spec("spec", pod.map("spec")));
    warnings
}

/// Warnings about the spec of a pod or of a pod template, which stands at `path`.
pub(super) fn of_spec(path: &str, spec: &Map<String, Value>) -> Vec<String> {
    let mut warnings = Vec::new();
    for list in ["initContainers", "containers"] {
        for (at, container) in spec.list(list).iter().enumerate() {
            hidden_variables(
                &mut warnings,
                &child(&index(&child(path, list), at), "env"),
                container,
            );
        }
    }
    if spec
        .int("terminationGracePeriodSeconds")
        .is_some_and(|seconds| seconds < 0)
    {
        warnings.push(format!(
            "{}: must be >= 0; negative values are invalid and will be treated as 1",
            child(path, "terminationGracePeriodSeconds")
        ));
    }
    warnings.extend(unenforced::of(path, spec));
    warnings
}

fn hidden_variables(warnings: &mut Vec<String>, path: &str, container: &Value) {
    let variables = container.list("env");
    for (at, variable) in variables.iter().enumerate() {
        let name = variable.text("name");
        if variables[..at].iter().any(|earlier| earlier.text("name") == name) {
            warnings.push(format!(
                "{}: hides previous definition of {name:?}, which may be dropped when using apply",
                index(path, at)
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::map;

    #[test]
    fn surprises_are_announced() {
        let pod = map(
            json!({"metadata": {"name": "a.b"}, "spec": {"terminationGracePeriodSeconds": -1,
            "containers": [{"env": [{"name": "A"}, {"name": "A"}]}]}}),
        );
        assert_eq!(
            of_pod(&pod),
            [
                "metadata.name: this is used in the Pod's hostname, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
                "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
                "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
            ]
        );
        assert_eq!(of_pod(&map(json!({"metadata": {"name": "a"}}))), [""; 0]);
    }
}
