//! What a node's identity may do: read what its pods refer to, run them, and speak about itself.
//!
//! In the spirit of `plugin/pkg/auth/authorizer/node` and `plugin/pkg/admission/noderestriction`, Kubernetes 1.36, and
//! narrower: a pod's status and deletion are for the node it is bound to alone.

use hotmap_schema::{decode_protobuf, envelope, json, yaml};
use serde_json::Value;

use super::{
    Attributes, Decision,
    references::{PodReferences, Referenced},
};
use crate::{http::negotiation::Media, objects::NODE_FIELD, request::User};

/// The namespace of the leases by which nodes say that they live.
const LEASE_NAMESPACE: &str = "kube-node-lease";

/// The node a user stands for.
pub(crate) fn name(user: &User) -> Option<&str> {
    let name = user
        .name
        .strip_prefix("system:node:")
        .filter(|name| !name.is_empty())?;
    user.is_in("system:nodes").then_some(name)
}

/// Whether node `node` may do this.
pub(super) fn decide(node: &str, wanted: &Attributes, pods: &dyn PodReferences) -> Decision {
    let verb = wanted.verb.as_str();
    match wanted.what().as_str() {
        "configmaps" => reads_reference(node, wanted, Referenced::ConfigMap, pods),
        "secrets" => reads_reference(node, wanted, Referenced::Secret, pods),
        "serviceaccounts" => reads_reference(node, wanted, Referenced::ServiceAccount, pods),
        "serviceaccounts/token" => makes_token(node, wanted, pods),
        "pods" => on_pods(node, wanted, pods),
        "pods/eviction" if verb == "create" => is_mine(node, wanted, pods),
        "pods/status" => match verb {
            "get" | "update" | "patch" => is_mine(node, wanted, pods),
            _ => Decision::when(false),
        },
        "nodes" => match verb {
            // Whose Node is created stands in the body: `writes_itself` looks there.
            "create" => Decision::Allowed,
            "get" | "list" | "watch" | "update" | "patch" => about_itself(node, wanted),
            _ => Decision::when(false),
        },
        "nodes/status" => match verb {
            "get" | "update" | "patch" => about_itself(node, wanted),
            _ => Decision::when(false),
        },
        "coordination.k8s.io/leases" => lease(node, wanted),
        "hotmap.dev/deliveryreports" => delivery_report(node, wanted),
        "events" | "events.k8s.io/events" => Decision::when(matches!(verb, "create" | "update" | "patch")),
        // It asks for certificates of its own: for whom they are is looked at when they are approved.
        "certificates.k8s.io/certificatesigningrequests" => {
            Decision::when(verb == "create" || wanted.reads())
        }
        "services" | "namespaces" => Decision::when(wanted.reads()),
        // Who asks the node for something shall be known and allowed: these are questions and change nothing.
        "authentication.k8s.io/tokenreviews"
        | "authorization.k8s.io/subjectaccessreviews"
        | "authorization.k8s.io/localsubjectaccessreviews" => Decision::when(verb == "create"),
        _ => Decision::when(false),
    }
}

fn reads_reference(node: &str, wanted: &Attributes, kind: Referenced, pods: &dyn PodReferences) -> Decision {
    if !wanted.reads() {
        return denied("can only read resources of this type");
    }
    let is_selectable = kind != Referenced::ServiceAccount && wanted.verb != "get";
    if is_selectable && wanted.fields.exact(NODE_FIELD) == Some(node) {
        return Decision::Allowed;
    }
    if wanted.namespace.is_empty() {
        return denied("can only read namespaced object of this type");
    }
    if wanted.name.is_empty() {
        return denied("No Object name found");
    }
    if pods.node_refers_to(node, kind, &wanted.namespace, &wanted.name) {
        return Decision::Allowed;
    }
    denied(format!(
        "no relationship found between node '{node}' and this object"
    ))
}

/// Which pod the token is for stands in the body: the request for it is refused there if the pod is not the node's.
fn makes_token(node: &str, wanted: &Attributes, pods: &dyn PodReferences) -> Decision {
    if wanted.verb != "create" || wanted.name.is_empty() {
        return denied("can only create tokens for individual service accounts");
    }
    if pods.node_refers_to(node, Referenced::ServiceAccount, &wanted.namespace, &wanted.name) {
        return Decision::Allowed;
    }
    denied(format!(
        "no relationship found between node '{node}' and this object"
    ))
}

fn on_pods(node: &str, wanted: &Attributes, pods: &dyn PodReferences) -> Decision {
    match wanted.verb.as_str() {
        "list" | "watch" if wanted.fields.exact("spec.nodeName") == Some(node) => Decision::Allowed,
        "list" | "watch" if wanted.name.is_empty() => {
            denied("can only list/watch pods with spec.nodeName field selector")
        }
        "get" | "list" | "watch" | "delete" => is_mine(node, wanted, pods),
        _ => Decision::when(false),
    }
}

fn is_mine(node: &str, wanted: &Attributes, pods: &dyn PodReferences) -> Decision {
    if pods.node_of(&wanted.namespace, &wanted.name).as_deref() == Some(node) {
        return Decision::Allowed;
    }
    denied(format!(
        "no relationship found between node '{node}' and this object"
    ))
}

fn about_itself(node: &str, wanted: &Attributes) -> Decision {
    match wanted.name.as_str() {
        name if name == node => Decision::Allowed,
        "" => denied(format!(
            "node '{node}' cannot read all nodes, only its own Node object"
        )),
        name if wanted.reads() => denied(format!(
            "node '{node}' cannot read '{name}', only its own Node object"
        )),
        name => denied(format!("node '{node}' is not allowed to modify node '{name}'")),
    }
}

fn lease(node: &str, wanted: &Attributes) -> Decision {
    match wanted.verb.as_str() {
        "get" | "create" | "update" | "patch" | "delete" => {}
        _ => return denied("can only get, create, update, patch, or delete a node lease"),
    }
    if wanted.namespace != LEASE_NAMESPACE {
        return denied(format!(
            "can only access leases in the {LEASE_NAMESPACE:?} system namespace"
        ));
    }
    if wanted.verb != "create" && wanted.name != node {
        return denied("can only access node lease with the same name as the requesting node");
    }
    Decision::Allowed
}

/// A node speaks for itself alone; what others deliver is none of its business.
fn delivery_report(node: &str, wanted: &Attributes) -> Decision {
    match wanted.verb.as_str() {
        // Whose report is created stands in the body: `writes_itself` looks there.
        "create" => Decision::Allowed,
        "get" | "update" | "patch" | "delete" if wanted.name == node => Decision::Allowed,
        "get" | "update" | "patch" | "delete" => {
            denied("can only access the delivery report with the same name as the requesting node")
        }
        _ => denied("can only get, create, update, patch, or delete a delivery report"),
    }
}

fn denied(why: impl Into<String>) -> Decision {
    Decision::Denied(why.into())
}

/// Whether a node that creates a Node, a Lease or a DeliveryReport names it after itself; true for everybody and everything
/// else.
///
/// A body that cannot be read is let through: the write refuses it with a better sentence.
pub(crate) fn writes_itself(
    user: &User,
    wanted: &Attributes,
    content_type: Option<&str>,
    body: &[u8],
) -> bool {
    let kind = match wanted.what().as_str() {
        "nodes" => ("", "v1", "Node"),
        "coordination.k8s.io/leases" => ("coordination.k8s.io", "v1", "Lease"),
        "hotmap.dev/deliveryreports" => ("hotmap.dev", "v1alpha1", "DeliveryReport"),
        _ => return true,
    };
    let Some(node) = name(user).filter(|_| wanted.verb == "create") else {
        return true;
    };
    let object = match Media::of_body(content_type) {
        Ok(Media::Json) => json::parse(body).ok().map(|(object, _)| object),
        Ok(Media::Yaml) => yaml::parse(body).ok().map(|(object, _)| object),
        Ok(Media::Protobuf) => decode(kind, body),
        Err(_) => None,
    };
    object.is_none_or(|object| object["metadata"]["name"] == node)
}

fn decode((group, version, kind): (&str, &str, &str), body: &[u8]) -> Option<Value> {
    let unknown = envelope::unwrap(body).ok()?;
    decode_protobuf(hotmap_schema::kind(group, version, kind)?.message, unknown.raw).ok()
}
