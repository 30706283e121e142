//! What a pod asks for and this node cannot give: the pod is refused for it, an ephemeral container is alone.

use hotmap_support::State;
use serde_json::Value;

use super::{Wanted, Worker};
use crate::{events::Subject, pod::Container, status::Refusal};

/// Where findings about ephemeral containers are.
const EPHEMERAL: &str = "ephemeralContainers[";

/// What is wrong with a spec, in sentences.
#[derive(Debug, Default)]
struct Findings {
    refused: Vec<String>,
    noted: Vec<String>,
}

impl Findings {
    /// What is at paths that `is_meant`.
    fn of(spec: &Value, is_meant: impl Fn(&str) -> bool) -> Self {
        let mut findings = Self::default();
        for found in spec.as_object().map(hotmap_support::judge).unwrap_or_default() {
            if is_meant(&found.path) {
                let list = match found.state {
                    State::Refused => &mut findings.refused,
                    State::Warned | State::Works => &mut findings.noted,
                };
                list.push(format!("spec.{}: {}", found.path, found.why));
            }
        }
        findings
    }
}

impl Worker {
    /// Refuses the pod if its spec asks for what this node cannot give, and says what it leaves aside.
    pub(super) fn judge(&mut self) {
        let Wanted::Here { pod, spec } = self.wanted.borrow().clone() else {
            return;
        };
        if pod.is_deleting() || self.failure.is_some() {
            return;
        }
        let Findings { mut refused, noted } = Findings::of(&spec, |path| !path.starts_with(EPHEMERAL));
        if pod.is_unreadable {
            refused.push("a value in the pod is of a kind that this node cannot read".to_owned());
        }
        refused.extend(pod.workload().filter_map(|container| self.privilege(container)));
        if !refused.is_empty() {
            let message = refused.join("; ");
            self.shared
                .recorder
                .warning(Subject::pod(&pod), "Unsupported", message.clone());
            self.refusal = Some(Refusal {
                reason: "Unsupported",
                message,
            });
        } else if self.records.values().all(|record| record.attempt.is_none()) {
            for note in noted {
                self.shared.recorder.warning(Subject::pod(&pod), "Ignored", note);
            }
        }
    }

    /// What the node leaves aside of an ephemeral container.
    ///
    /// # Errors
    ///
    /// Why it is not started, if this node cannot give what it asks for: the pod goes on without it.
    pub(super) fn judge_ephemeral(&self, container: &Container) -> Result<Vec<String>, String> {
        let Wanted::Here { spec, .. } = self.wanted.borrow().clone() else {
            return Ok(Vec::new());
        };
        let mut named = spec["ephemeralContainers"].as_array().into_iter().flatten();
        let Some(index) = named.position(|one| one["name"] == *container.name) else {
            return Ok(Vec::new());
        };
        let place = format!("{EPHEMERAL}{index}]");
        let Findings { mut refused, noted } = Findings::of(&spec, |path| path.starts_with(&place));
        refused.extend(self.privilege(container));
        if !refused.is_empty() {
            return Err(refused.join("; "));
        }
        Ok(noted)
    }

    /// What is wrong with a container that wants to be privileged.
    fn privilege(&self, container: &Container) -> Option<String> {
        let is_refused = container.security_context.privileged == Some(true) && !self.shared.allow_privileged;
        is_refused.then(|| {
            let name = &container.name;
            format!("container {name} is privileged: this node was started without --allow-privileged")
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_an_ephemeral_container_asks_for_is_no_fault_of_its_pod() {
        let spec = json!({"containers": [{"name": "a"}], "hostPID": true, "ephemeralContainers": [{"name": "e"},
            {"name": "f", "volumeDevices": [{"name": "d"}], "securityContext": {"procMount": "Unmasked"}}]});
        let of_pod = Findings::of(&spec, |path| !path.starts_with(EPHEMERAL));
        assert_eq!(
            of_pod.refused,
            ["spec.hostPID: pods do not share the host's namespaces"]
        );
        assert!(of_pod.noted.is_empty(), "{of_pod:?}");
        let of_container = Findings::of(&spec, |path| path.starts_with("ephemeralContainers[1]"));
        assert_eq!(
            of_container.refused,
            [
                "spec.ephemeralContainers[1].volumeDevices: there are no persistent volumes here, and no block device is given to a pod"
            ]
        );
        assert_eq!(
            of_container.noted,
            ["spec.ephemeralContainers[1].securityContext.procMount: /proc is always masked"]
        );
    }
}
