//! Who a pod's processes are.

use serde::Deserialize;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodSecurityContext {
    pub(crate) run_as_user: Option<u32>,
    pub(crate) run_as_group: Option<u32>,
    pub(crate) run_as_non_root: Option<bool>,
    pub(crate) fs_group: Option<u32>,
    pub(crate) supplemental_groups: Vec<u32>,
    pub(crate) supplemental_groups_policy: GroupsPolicy,
    pub(crate) seccomp_profile: Option<SeccompProfile>,
}

/// Whether the groups that an image gives its user count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum GroupsPolicy {
    #[default]
    Merge,
    Strict,
}

/// Profiles of the host's files (`Localhost`) are refused in the table of fields.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SeccompProfile {
    #[serde(rename = "type")]
    pub(crate) kind: String,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SecurityContext {
    pub(crate) run_as_user: Option<u32>,
    pub(crate) run_as_group: Option<u32>,
    pub(crate) run_as_non_root: Option<bool>,
    pub(crate) privileged: Option<bool>,
    pub(crate) allow_privilege_escalation: Option<bool>,
    pub(crate) capabilities: Capabilities,
    pub(crate) read_only_root_filesystem: bool,
    pub(crate) seccomp_profile: Option<SeccompProfile>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Capabilities {
    pub(crate) add: Vec<String>,
    pub(crate) drop: Vec<String>,
}

impl super::Pod {
    /// A container's own profile, else its pod's, else none.
    pub(crate) fn seccomp_of(&self, container: &super::Container) -> hotmap_runtime::SeccompProfile {
        let own = container.security_context.seccomp_profile.as_ref();
        let profile = own.or(self.spec.security_context.seccomp_profile.as_ref());
        match profile.map(|profile| profile.kind.as_str()) {
            Some("RuntimeDefault") => hotmap_runtime::SeccompProfile::RuntimeDefault,
            _ => hotmap_runtime::SeccompProfile::Unconfined,
        }
    }

    /// The user that all containers run as, if the pod says so for each of them and always the same: whom a projected
    /// token belongs to (`FsUserFrom` in `pkg/volume/util`, Kubernetes 1.36). What images say does not count,
    /// and whoever looks at the pod takes no token from it.
    pub(crate) fn common_user(&self) -> Option<u32> {
        let shared = self.spec.security_context.run_as_user;
        let mut users = self
            .workload()
            .map(|container| container.security_context.run_as_user.or(shared));
        let first = users.next().flatten();
        first.filter(|_| users.all(|user| user == first))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::pod::Pod;

    #[test]
    fn a_containers_own_profile_outranks_that_of_its_pod() {
        use hotmap_runtime::SeccompProfile::{RuntimeDefault, Unconfined};
        let profile = |kind: &str| json!({"seccompProfile": {"type": kind}});
        for (shared, own, expected) in [
            (json!({}), json!({}), Unconfined),
            (profile("RuntimeDefault"), json!({}), RuntimeDefault),
            (json!({}), profile("RuntimeDefault"), RuntimeDefault),
            (profile("RuntimeDefault"), profile("Unconfined"), Unconfined),
            (profile("Unconfined"), profile("RuntimeDefault"), RuntimeDefault),
        ] {
            let document = json!({"metadata": {}, "spec": {"securityContext": shared, "containers": [{"securityContext": own}]}});
            let pod = Pod::from_document(&document).expect("a pod");
            assert_eq!(pod.seccomp_of(&pod.spec.containers[0]), expected, "{document}");
        }
    }

    #[test]
    fn a_pod_has_one_user_if_every_container_has_it() {
        let own = |user: u32| json!({"securityContext": {"runAsUser": user}});
        for (shared, containers, user) in [
            (json!({}), json!([{}]), None),
            (json!({"runAsUser": 7}), json!([{}, {}]), Some(7)),
            (json!({"runAsUser": 7}), json!([{}, own(8)]), None),
            (json!({"runAsUser": 7}), json!([own(8), own(8)]), Some(8)),
            (json!({}), json!([own(8), {}]), None),
            (json!({}), json!([{}, own(8)]), None),
            (json!({}), json!([own(0)]), Some(0)),
        ] {
            let document =
                json!({"metadata": {}, "spec": {"securityContext": shared, "containers": containers}});
            let pod = Pod::from_document(&document).expect("a pod");
            assert_eq!(pod.common_user(), user, "{document}");
        }
    }
}
