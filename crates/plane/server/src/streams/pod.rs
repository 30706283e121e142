//! Which pod and which container a stream is for.
//!
//! Texts follow `pkg/registry/core/pod/strategy.go`, Kubernetes 1.36.

use hotmap_object::Status;
use serde_json::Value;

/// What a stream needs to know of its pod.
pub(super) struct PodFacts<'a> {
    pub(super) namespace: &'a str,
    pub(super) name: &'a str,
    pub(super) uid: &'a str,
    /// Empty for a pod that is not bound.
    pub(super) node: &'a str,
    spec: &'a Value,
}

impl<'a> PodFacts<'a> {
    pub(super) fn of(pod: &'a Value) -> Self {
        let metadata = |key: &str| pod["metadata"][key].as_str().unwrap_or_default();
        Self {
            namespace: metadata("namespace"),
            name: metadata("name"),
            uid: metadata("uid"),
            node: pod["spec"]["nodeName"].as_str().unwrap_or_default(),
            spec: &pod["spec"],
        }
    }

    /// # Errors
    ///
    /// 400 for a pod that no node has.
    pub(super) fn require_node(&self) -> Result<(), Status> {
        if self.node.is_empty() {
            return Err(Status::bad_request(format!(
                "pod {} does not have a host assigned",
                self.name
            )));
        }
        Ok(())
    }

    /// The container asked for; the only one if none was.
    ///
    /// # Errors
    ///
    /// 400 with the names to choose from.
    pub(super) fn container(&self, asked: Option<&str>) -> Result<&'a str, Status> {
        let containers = self.names("containers");
        let init = self.names("initContainers");
        if let Some(asked) = asked {
            let ephemeral = self.names("ephemeralContainers");
            let mut all = containers.iter().chain(&init).chain(&ephemeral);
            return all.find(|name| **name == asked).copied().ok_or_else(|| {
                Status::bad_request(format!("container {asked} is not valid for pod {}", self.name))
            });
        }
        match containers.as_slice() {
            [only] => Ok(only),
            [] => Err(Status::bad_request(format!(
                "a container name must be specified for pod {}",
                self.name
            ))),
            many => {
                let mut text = format!(
                    "a container name must be specified for pod {}, choose one of: [{}]",
                    self.name,
                    many.join(" ")
                );
                if !init.is_empty() {
                    text += &format!(" or one of the init containers: [{}]", init.join(" "));
                }
                Err(Status::bad_request(text))
            }
        }
    }

    fn names(&self, field: &str) -> Vec<&'a str> {
        let containers = self.spec[field].as_array().into_iter().flatten();
        containers
            .filter_map(|container| container["name"].as_str())
            .collect()
    }
}
