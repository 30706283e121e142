//! Who a pod's processes are.

use serde::Deserialize;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct PodSecurityContext {
    pub(crate) run_as_user: Option<u32>,
    pub(crate) run_as_group: Option<u32>,
    pub(crate) run_as_non_root: Option<bool>,
    pub(crate) fs_group: Option<u32>,
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
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Capabilities {
    pub(crate) add: Vec<String>,
    pub(crate) drop: Vec<String>,
}

impl super::Pod {
    /// The user that all containers run as, if the pod says so for each of them and always the same: whom a projected
    /// token belongs to (`FsUserFrom` in `pkg/volume/util`, Kubernetes 1.36). What images say does not count.
    pub(crate) fn common_user(&self) -> Option<u32> {
        let shared = self.spec.security_context.run_as_user;
        let mut users = self
            .all_containers()
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
