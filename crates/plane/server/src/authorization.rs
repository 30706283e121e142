//! Who may do what.
//!
//! ```text
//!   system:masters ──▶ a node: what its pods need ──▶ the controllers: their list ──▶ roles and bindings ──▶ 403
//! ```
//!
//! The first that allows decides; nobody in the row forbids. `system:masters` asks nothing and nobody, so that no broken
//! role locks its members out. What everybody may do (discovery, health, asking about oneself) stands in default roles.
//! All else is 403, with upstream's sentence.

mod controllers;
mod node;
pub(crate) mod rbac;
pub(crate) mod references;

use std::sync::Arc;

use hotmap_object::{FieldSelector, GroupResource, Status};

use crate::{credentials::CONTROLLERS_USER, request::User};
pub(crate) use node::{name as node_name, writes_itself};
use rbac::{PolicyRule, RoleIndex, Verdict};
use references::PodReferences;

/// What somebody wants to do: the same words for a request and for an access review.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Attributes {
    /// A verb of resources, or the HTTP method in lower case for a path.
    pub(crate) verb: String,
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) resource: String,
    pub(crate) subresource: String,
    /// Empty across namespaces and for cluster-scoped kinds; the own name for a Namespace.
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// Set for what is no resource.
    pub(crate) path: Option<String>,
    /// The field selector of a list or watch.
    pub(crate) fields: FieldSelector,
}

impl Attributes {
    /// What a request to something that is no resource wants.
    pub(crate) fn of_path(method: &str, path: &str) -> Self {
        Self {
            verb: method.to_ascii_lowercase(),
            path: Some(path.to_owned()),
            ..Self::default()
        }
    }

    fn reads(&self) -> bool {
        matches!(self.verb.as_str(), "get" | "list" | "watch")
    }

    /// Group, resource and sub-resource in one word: `pods/status`, `coordination.k8s.io/leases`.
    fn what(&self) -> String {
        let mut what = self.resource.clone();
        if !self.group.is_empty() {
            what = format!("{}/{what}", self.group);
        }
        if !self.subresource.is_empty() {
            what = format!("{what}/{}", self.subresource);
        }
        what
    }
}

/// Whether something is allowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decision {
    Allowed,
    /// With a reason for the end of the sentence; empty if there is none to give.
    Denied(String),
}

impl Decision {
    fn when(allowed: bool) -> Self {
        if allowed {
            Decision::Allowed
        } else {
            Decision::Denied(String::new())
        }
    }

    pub(crate) fn is_allowed(&self) -> bool {
        *self == Decision::Allowed
    }
}

/// Decides. Answers come from memory, at once.
#[derive(Clone)]
pub(crate) struct Authorizer {
    pods: Arc<dyn PodReferences>,
    roles: Arc<RoleIndex>,
}

/// All that somebody may do in a namespace, as far as it can be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct HeldRules {
    pub(crate) rules: Vec<PolicyRule>,
    /// There is more, which only single questions find.
    pub(crate) is_incomplete: bool,
    /// What went wrong; empty if nothing did.
    pub(crate) error: String,
}

impl Authorizer {
    pub(crate) fn new(pods: Arc<dyn PodReferences>, roles: Arc<RoleIndex>) -> Self {
        Self { pods, roles }
    }

    pub(crate) fn decide(&self, user: &User, wanted: &Attributes) -> Decision {
        let before = self.before_roles(user, wanted);
        let Decision::Denied(reason) = before else {
            return before;
        };
        if self.roles.allows(user, wanted) {
            return Decision::Allowed;
        }
        match self.roles.explain(user, wanted) {
            // Granted at this very moment.
            Verdict::Allowed(_) => Decision::Allowed,
            Verdict::NoOpinion(more) => Decision::Denied(joined(reason, &more)),
        }
    }

    /// The decision, and what an access review gives as its reason.
    pub(crate) fn explain(&self, user: &User, wanted: &Attributes) -> (bool, String) {
        match self.before_roles(user, wanted) {
            Decision::Allowed => (true, String::new()),
            Decision::Denied(reason) => match self.roles.explain(user, wanted) {
                Verdict::Allowed(reason) => (true, reason),
                Verdict::NoOpinion(more) => (false, joined(reason, &more)),
            },
        }
    }

    /// What a user may do in a namespace.
    pub(crate) fn rules_of(&self, user: &User, namespace: &str) -> HeldRules {
        let (rules, missing) = self.roles.rules_of(user, namespace);
        let is_node = node::name(user).is_some();
        let mut errors = Vec::new();
        if is_node {
            errors.push("node authorizer does not support user rule resolution".to_owned());
        }
        errors.extend(missing);
        let error = match errors.as_slice() {
            [] => String::new(),
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        HeldRules {
            rules,
            is_incomplete: is_node || user.name == CONTROLLERS_USER,
            error,
        }
    }

    /// What is decided without roles.
    fn before_roles(&self, user: &User, wanted: &Attributes) -> Decision {
        if user.is_in("system:masters") {
            return Decision::Allowed;
        }
        if wanted.path.is_some() {
            return Decision::when(false);
        }
        if let Some(node) = node::name(user) {
            return node::decide(node, wanted, &*self.pods);
        }
        Decision::when(user.name == CONTROLLERS_USER && controllers::allow(wanted))
    }

    /// Nothing if it is allowed.
    ///
    /// # Errors
    ///
    /// 403.
    pub(crate) fn authorize(&self, user: &User, wanted: &Attributes) -> Result<(), Status> {
        match self.decide(user, wanted) {
            Decision::Allowed => Ok(()),
            Decision::Denied(reason) => Err(refusal(user, wanted, &reason)),
        }
    }
}

/// Whether somebody may `approve` requests to a signer, or `sign` for it: by its whole name, or for its domain.
///
/// Follows `pkg/registry/../certificates/authorization` (`IsAuthorizedForSignerName`), Kubernetes 1.36.
pub(crate) fn may_with_signer(roles: &RoleIndex, user: &User, verb: &str, signer: &str) -> bool {
    if user.is_in("system:masters") {
        return true;
    }
    let domain = signer.split('/').next().unwrap_or_default();
    let names = [signer.to_owned(), format!("{domain}/*")];
    names.into_iter().any(|name| {
        let wanted = Attributes {
            verb: verb.to_owned(),
            group: "certificates.k8s.io".to_owned(),
            version: "*".to_owned(),
            resource: "signers".to_owned(),
            name,
            ..Attributes::default()
        };
        (user.name == CONTROLLERS_USER && controllers::allow(&wanted)) || roles.allows(user, &wanted)
    })
}

/// The 403 that upstream's `ForbiddenStatusError` makes of it.
pub(crate) fn refusal(user: &User, wanted: &Attributes, reason: &str) -> Status {
    let Attributes {
        verb,
        group,
        namespace,
        ..
    } = wanted;
    let user = escape(&format!("User {:?} cannot {verb}", user.name));
    let mut why = match &wanted.path {
        Some(path) => format!("{user} path {}", escape(&format!("{path:?}"))),
        None => {
            let resource = match wanted.subresource.as_str() {
                "" => wanted.resource.clone(),
                subresource => format!("{}/{subresource}", wanted.resource),
            };
            let place = match namespace.as_str() {
                "" => "at the cluster scope".to_owned(),
                namespace => format!("in the namespace {namespace:?}"),
            };
            user + &escape(&format!(" resource {resource:?} in API group {group:?} {place}"))
        }
    };
    if !reason.is_empty() {
        why = format!("{why}: {reason}");
    }
    let resource = GroupResource {
        group: group.clone().into(),
        resource: wanted.resource.clone().into(),
    };
    match &wanted.path {
        // Upstream's constructor leaves out what a path does not have.
        Some(_) => Status {
            message: format!("forbidden: {why}"),
            ..Status::forbidden(&resource, "", "")
        },
        None => Status::forbidden(&resource, &wanted.name, why),
    }
}

/// `& < >` never reach a browser as markup.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Two reasons in one, as upstream's union of authorizers writes them.
fn joined(reason: String, more: &str) -> String {
    match (reason.is_empty(), more.is_empty()) {
        (_, true) => reason,
        (true, false) => more.to_owned(),
        (false, false) => format!("{reason}\n{more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::{references::Referenced, *};

    /// Pod `ns/mine` runs on node `n` and refers to ConfigMap `used`; `ns/other` runs elsewhere.
    struct Pods;

    impl PodReferences for Pods {
        fn node_refers_to(&self, node: &str, kind: Referenced, namespace: &str, name: &str) -> bool {
            let used = matches!(
                (kind, name),
                (Referenced::ConfigMap, "used") | (Referenced::ServiceAccount, "robot")
            );
            used && (node, namespace) == ("n", "ns")
        }

        fn node_of(&self, namespace: &str, pod: &str) -> Option<String> {
            match (namespace, pod) {
                ("ns", "mine") => Some("n".into()),
                ("ns", "other") => Some("m".into()),
                _ => None,
            }
        }
    }

    fn user(name: &str) -> User {
        let groups: &[&str] = match name {
            "system:anonymous" => &["system:unauthenticated"],
            "admin" => &["system:masters", "system:authenticated"],
            _ if name.starts_with("system:node:") => &["system:nodes", "system:authenticated"],
            _ => &["system:authenticated"],
        };
        User {
            name: name.into(),
            groups: groups.iter().map(|&group| group.into()).collect(),
            ..User::default()
        }
    }

    /// `verb [group/]resource[/subresource] [namespace/]name [field selector]`, or `verb /path`.
    fn attributes(wanted: &str) -> Attributes {
        let parts: Vec<&str> = wanted.split(' ').collect();
        if parts[1].starts_with('/') {
            return Attributes::of_path(parts[0], parts[1]);
        }
        let mut what: Vec<&str> = parts[1].split('/').collect();
        let group = if what[0].contains('.') { what.remove(0) } else { "" };
        let (namespace, name) = parts
            .get(2)
            .copied()
            .unwrap_or("/")
            .split_once('/')
            .expect("namespace/name");
        Attributes {
            verb: parts[0].into(),
            group: group.into(),
            version: "v1".into(),
            resource: what[0].into(),
            subresource: what.get(1).copied().unwrap_or_default().into(),
            namespace: namespace.into(),
            name: name.into(),
            path: None,
            fields: parts
                .get(3)
                .copied()
                .unwrap_or_default()
                .parse()
                .expect("a selector"),
        }
    }

    #[test]
    fn everybody_may_what_is_theirs_and_nothing_more() {
        let authorizer = Authorizer::new(Arc::new(Pods), Arc::new(RoleIndex::with_defaults()));
        let table: &[(&str, &str, bool)] = &[
            ("admin", "delete secrets kube-system/x", true),
            ("admin", "get /metrics", true),
            ("system:anonymous", "get /livez", true),
            ("system:anonymous", "get /livez/ping", false),
            ("system:anonymous", "head /livez", false),
            ("system:anonymous", "get /version", true),
            ("system:anonymous", "get /version/", true),
            ("system:anonymous", "post /version", false),
            ("system:anonymous", "get /versions", false),
            ("system:anonymous", "get /api", false),
            (
                "system:anonymous",
                "create authentication.k8s.io/selfsubjectreviews",
                false,
            ),
            ("somebody", "get /openapi/v3", true),
            ("somebody", "get /metrics", false),
            (
                "somebody",
                "create authorization.k8s.io/selfsubjectaccessreviews",
                true,
            ),
            ("somebody", "get configmaps ns/used", false),
            // What the pods of a node refer to, by name.
            ("system:node:n", "get configmaps ns/used", true),
            (
                "system:node:n",
                "watch configmaps ns/used metadata.name=used",
                true,
            ),
            ("system:node:n", "get configmaps ns/unused", false),
            ("system:node:n", "list configmaps ns/", false),
            ("system:node:n", "get secrets ns/used", false),
            ("system:node:n", "watch configmaps / hotmap.dev/node=n", true),
            ("system:node:n", "list secrets ns/ hotmap.dev/node=n", true),
            ("system:node:n", "watch configmaps / hotmap.dev/node=m", false),
            ("system:node:n", "watch configmaps / hotmap.dev/node!=n", false),
            (
                "system:node:n",
                "watch configmaps / hotmap.dev/node=m,hotmap.dev/node=n",
                false,
            ),
            (
                "system:node:n",
                "deletecollection secrets ns/ hotmap.dev/node=n",
                false,
            ),
            (
                "system:node:n",
                "list serviceaccounts ns/ hotmap.dev/node=n",
                false,
            ),
            ("system:node:n", "get secrets ns/other hotmap.dev/node=n", false),
            ("system:node:n", "update configmaps ns/used", false),
            ("system:node:m", "get configmaps ns/used", false),
            // Its pods.
            ("system:node:n", "watch pods / spec.nodeName=n", true),
            ("system:node:n", "watch pods / spec.nodeName=m", false),
            ("system:node:n", "watch pods / spec.nodeName!=n", false),
            ("system:node:n", "list pods /", false),
            ("system:node:n", "get pods ns/mine", true),
            ("system:node:n", "get pods ns/other", false),
            ("system:node:n", "patch pods/status ns/mine", true),
            ("system:node:n", "patch pods/status ns/other", false),
            ("system:node:n", "delete pods ns/mine", true),
            ("system:node:n", "delete pods ns/other", false),
            ("system:node:n", "create pods/binding ns/mine", false),
            ("system:node:n", "create pods ns/", false),
            // Itself.
            ("system:node:n", "create nodes /", true),
            ("system:node:n", "patch nodes/status /n", true),
            ("system:node:n", "patch nodes /m", false),
            ("system:node:n", "list nodes / metadata.name=n", false),
            ("system:node:n", "delete nodes /n", false),
            (
                "system:node:n",
                "update coordination.k8s.io/leases kube-node-lease/n",
                true,
            ),
            (
                "system:node:n",
                "update coordination.k8s.io/leases kube-node-lease/m",
                false,
            ),
            (
                "system:node:n",
                "create coordination.k8s.io/leases default/",
                false,
            ),
            ("system:node:n", "create events ns/", true),
            ("system:node:n", "list events ns/", false),
            ("system:node:n", "list services /", true),
            // Tokens for the accounts of its pods, evictions of its pods, questions about who asks it.
            ("system:node:n", "create serviceaccounts/token ns/robot", true),
            ("system:node:m", "create serviceaccounts/token ns/robot", false),
            ("system:node:n", "create serviceaccounts/token ns/other", false),
            ("system:node:n", "create serviceaccounts/token ns/", false),
            ("system:node:n", "get serviceaccounts ns/robot", true),
            ("system:node:n", "update serviceaccounts ns/robot", false),
            ("system:node:n", "create pods/eviction ns/mine", true),
            ("system:node:n", "create pods/eviction ns/other", false),
            (
                "system:node:n",
                "create authorization.k8s.io/subjectaccessreviews",
                true,
            ),
            (
                "system:node:n",
                "create authorization.k8s.io/selfsubjectaccessreviews",
                true,
            ),
            ("system:node:n", "create hotmap.dev/deliveryreports /", true),
            ("system:node:n", "patch hotmap.dev/deliveryreports /n", true),
            ("system:node:n", "get hotmap.dev/deliveryreports /n", true),
            ("system:node:n", "patch hotmap.dev/deliveryreports /m", false),
            ("system:node:n", "get hotmap.dev/deliveryreports /m", false),
            ("system:node:n", "list hotmap.dev/deliveryreports /", false),
            ("system:node:n", "get /version", true),
            ("system:node:n", "get /metrics", false),
            // The controllers.
            ("system:hotmap-controllers", "create pods/binding ns/mine", true),
            ("system:hotmap-controllers", "patch pods/status ns/mine", true),
            (
                "system:hotmap-controllers",
                "update namespaces/finalize ns/ns",
                true,
            ),
            ("system:hotmap-controllers", "deletecollection secrets ns/", true),
            ("system:hotmap-controllers", "watch secrets ns/", true),
            ("system:hotmap-controllers", "get secrets ns/a", true),
            ("system:hotmap-controllers", "update secrets ns/a", false),
            ("system:hotmap-controllers", "create secrets ns/", false),
            ("system:hotmap-controllers", "create pods ns/", true),
            ("system:hotmap-controllers", "get pods/log ns/mine", false),
        ];
        for (name, wanted, allowed) in table {
            let decision = authorizer.decide(&user(name), &attributes(wanted));
            assert_eq!(decision.is_allowed(), *allowed, "{name}: {wanted}");
        }
    }

    #[test]
    fn refusals_are_upstreams() {
        for (wanted, message) in [
            (
                "list configmaps default/",
                r#"configmaps is forbidden: User "u" cannot list resource "configmaps" in API group "" in the namespace "default""#,
            ),
            (
                "get nodes /a",
                r#"nodes "a" is forbidden: User "u" cannot get resource "nodes" in API group "" at the cluster scope"#,
            ),
            (
                "get /metrics",
                r#"forbidden: User "u" cannot get path "/metrics""#,
            ),
            ("get /<x>", r#"forbidden: User "u" cannot get path "/&lt;x&gt;""#),
        ] {
            assert_eq!(refusal(&user("u"), &attributes(wanted), "").message, message);
        }
        let denied = refusal(&user("u"), &attributes("create pods/exec a/b"), "no reason");
        assert!(
            denied
                .message
                .ends_with(r#"resource "pods/exec" in API group "" in the namespace "a": no reason"#)
        );
    }
}
