//! What a pod may learn about itself: `fieldRef` and `resourceFieldRef`, in volumes and in env.
//!
//! Rules follow `pkg/fieldpath/fieldpath.go` and `pkg/api/v1/resource/helpers.go`, Kubernetes 1.36.

use std::{collections::BTreeMap, fmt::Write};

use hotmap_object::Quantity;

use crate::pod::{Container, Pod, ResourceFieldSelector};

/// Facts about a pod that its API object does not hold yet.
#[derive(Debug, Clone, Default)]
pub(crate) struct PodFacts {
    pub(crate) node_name: String,
    pub(crate) host_ip: String,
    pub(crate) pod_ip: String,
    /// What the node can give, by resource name: limits a container leaves out fall back to it.
    pub(crate) allocatable: BTreeMap<String, Quantity>,
}

/// A field that cannot be resolved, in the kubelet's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FieldError {
    #[error("unsupported fieldPath: {0}")]
    Unsupported(String),
    #[error("fieldPath {0:?} does not support subscript")]
    NoSubscript(String),
    #[error("container {0} not found")]
    NoContainer(String),
    #[error("unsupported container resource : {0}")]
    UnsupportedResource(String),
    #[error("{resource} of container {container} is {text:?}, not a quantity")]
    NotAQuantity {
        container: String,
        resource: String,
        text: String,
    },
}

/// A field for a file of a downwardAPI volume: metadata only, whole maps included.
pub(crate) fn for_volume(pod: &Pod, path: &str) -> Result<String, FieldError> {
    let metadata = &pod.metadata;
    match path {
        "metadata.labels" => Ok(printed_map(&metadata.labels)),
        "metadata.annotations" => Ok(printed_map(&metadata.annotations)),
        path => of_metadata(pod, path),
    }
}

/// A field for an environment variable: no whole maps, but facts of the running pod.
pub(crate) fn for_environment(pod: &Pod, facts: &PodFacts, path: &str) -> Result<String, FieldError> {
    match path {
        "spec.nodeName" | "spec.host" => Ok(facts.node_name.clone()),
        "spec.serviceAccountName" => Ok(pod.spec.service_account_name.clone()),
        "status.hostIP" | "status.hostIPs" => Ok(facts.host_ip.clone()),
        "status.podIP" | "status.podIPs" => Ok(facts.pod_ip.clone()),
        path => of_metadata(pod, path),
    }
}

fn of_metadata(pod: &Pod, path: &str) -> Result<String, FieldError> {
    let metadata = &pod.metadata;
    if let Some((field, key)) = subscript(path) {
        return match field {
            "metadata.labels" => Ok(metadata.labels.get(key).cloned().unwrap_or_default()),
            "metadata.annotations" => Ok(metadata.annotations.get(key).cloned().unwrap_or_default()),
            _ => Err(FieldError::NoSubscript(field.to_owned())),
        };
    }
    match path {
        "metadata.name" => Ok(metadata.name.clone()),
        "metadata.namespace" => Ok(metadata.namespace.clone()),
        "metadata.uid" => Ok(metadata.uid.clone()),
        path => Err(FieldError::Unsupported(path.to_owned())),
    }
}

/// Splits `metadata.labels['key']`.
fn subscript(path: &str) -> Option<(&str, &str)> {
    path.strip_suffix("']")?.split_once("['")
}

/// `key="value"` lines, sorted, without a newline at the end.
fn printed_map(map: &BTreeMap<String, String>) -> String {
    let lines: Vec<String> = map
        .iter()
        .map(|(key, value)| format!("{key}={}", go_quoted(value)))
        .collect();
    lines.join("\n")
}

/// A string as Go's `%q` prints it.
fn go_quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\u{7}' => quoted.push_str("\\a"),
            '\u{8}' => quoted.push_str("\\b"),
            '\u{c}' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            '\u{b}' => quoted.push_str("\\v"),
            c if (c as u32) < 0x20 || c == '\u{7f}' => drop(write!(quoted, "\\x{:02x}", c as u32)),
            c if is_printable(c) => quoted.push(c),
            c if (c as u32) < 0x1_0000 => drop(write!(quoted, "\\u{:04x}", c as u32)),
            c => drop(write!(quoted, "\\U{:08x}", c as u32)),
        }
    }
    quoted.push('"');
    quoted
}

/// Close to Go's `strconv.IsPrint`: controls, spaces other than U+0020, format characters and surrogates are not.
fn is_printable(c: char) -> bool {
    let is_format = matches!(c, '\u{ad}' | '\u{600}'..='\u{605}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e000}'..='\u{f8ff}' | '\u{fff9}'..='\u{fffb}');
    !c.is_control() && (c == ' ' || !c.is_whitespace()) && !is_format
}

/// The amount a container may use or asks for, in units of the divisor, rounded up.
///
/// `own` is the container the variable belongs to; in a volume there is none and the selector names one.
pub(crate) fn resource(
    pod: &Pod,
    own: Option<&Container>,
    facts: &PodFacts,
    selector: &ResourceFieldSelector,
) -> Result<String, FieldError> {
    let named = || pod.spec.containers.iter().chain(&pod.spec.init_containers);
    let container = match own.filter(|_| selector.container_name.is_empty()) {
        Some(own) => own,
        None => named()
            .find(|container| container.name == selector.container_name)
            .ok_or_else(|| FieldError::NoContainer(selector.container_name.clone()))?,
    };
    let unsupported = || FieldError::UnsupportedResource(selector.resource.clone());
    let (amounts, name, falls_back) = match selector.resource.split_once('.') {
        Some(("limits", name)) => (&container.resources.limits, name, true),
        Some(("requests", name)) => (&container.resources.requests, name, false),
        _ => return Err(unsupported()),
    };
    if !matches!(name, "cpu" | "memory" | "ephemeral-storage") && !name.starts_with("hugepages-") {
        return Err(unsupported());
    }
    let parsed = |text: &String| {
        text.parse::<Quantity>().map_err(|_| FieldError::NotAQuantity {
            container: container.name.clone(),
            resource: selector.resource.clone(),
            text: text.clone(),
        })
    };
    let amount = match amounts.get(name) {
        Some(text) => parsed(text)?,
        None if falls_back => facts.allocatable.get(name).copied().unwrap_or_default(),
        None => Quantity::default(),
    };
    let divisor = if selector.divisor.is_empty() {
        Quantity::default()
    } else {
        parsed(&selector.divisor)?
    };
    Ok(amount.div_ceil(divisor).to_string())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod() -> Pod {
        Pod::from_document(&json!({
            "metadata": {"name": "p", "namespace": "n", "uid": "u", "labels": {"b": "2", "a": "x\"\n\u{1}é\u{200b}"}},
            "spec": {"serviceAccountName": "sa", "containers": [
                {"name": "c", "resources": {"limits": {"memory": "64Mi"}, "requests": {"cpu": "250m"}}}]}
        }))
        .expect("a pod")
    }

    fn facts() -> PodFacts {
        PodFacts {
            node_name: "node".into(),
            host_ip: "10.0.0.1".into(),
            pod_ip: "10.88.0.2".into(),
            allocatable: BTreeMap::from([("cpu".to_owned(), Quantity::whole(2))]),
        }
    }

    #[test]
    fn volumes_see_metadata_and_env_sees_the_running_pod() {
        let (pod, facts) = (pod(), facts());
        for (path, volume, environment) in [
            ("metadata.name", Ok("p"), Ok("p")),
            ("metadata.labels['b']", Ok("2"), Ok("2")),
            ("metadata.labels['none']", Ok(""), Ok("")),
            (
                "metadata.labels",
                Ok("a=\"x\\\"\\n\\x01é\\u200b\"\nb=\"2\""),
                Err("unsupported fieldPath: metadata.labels"),
            ),
            (
                "metadata.annotations",
                Ok(""),
                Err("unsupported fieldPath: metadata.annotations"),
            ),
            (
                "status.podIP",
                Err("unsupported fieldPath: status.podIP"),
                Ok("10.88.0.2"),
            ),
            (
                "spec.nodeName",
                Err("unsupported fieldPath: spec.nodeName"),
                Ok("node"),
            ),
            (
                "metadata.name['x']",
                Err("fieldPath \"metadata.name\" does not support subscript"),
                Err("fieldPath \"metadata.name\" does not support subscript"),
            ),
        ] {
            let owned = |result: Result<&str, &str>| result.map(str::to_owned).map_err(str::to_owned);
            assert_eq!(
                for_volume(&pod, path).map_err(|error| error.to_string()),
                owned(volume),
                "{path}"
            );
            assert_eq!(
                for_environment(&pod, &facts, path).map_err(|error| error.to_string()),
                owned(environment),
                "{path}"
            );
        }
    }

    #[test]
    fn resources_round_up_and_limits_fall_back_to_the_node() {
        let (pod, facts) = (pod(), facts());
        for (container, name, divisor, expected) in [
            ("c", "limits.memory", "1Mi", Ok("64")),
            ("c", "requests.cpu", "", Ok("1")),
            ("c", "requests.cpu", "1m", Ok("250")),
            ("c", "limits.cpu", "", Ok("2")),
            ("c", "requests.memory", "", Ok("0")),
            ("x", "limits.cpu", "", Err("container x not found")),
            (
                "c",
                "limits.gpu",
                "",
                Err("unsupported container resource : limits.gpu"),
            ),
        ] {
            let selector = ResourceFieldSelector {
                container_name: container.into(),
                resource: name.into(),
                divisor: divisor.into(),
            };
            let found = resource(&pod, None, &facts, &selector).map_err(|error| error.to_string());
            assert_eq!(
                found,
                expected.map(str::to_owned).map_err(str::to_owned),
                "{container} {name} / {divisor:?}"
            );
        }
    }
}
