//! What the controllers' identity may do: create, change and bind pods, empty a deleted namespace, say what happened.

use super::Attributes;

/// Whether the controllers may do this.
pub(super) fn allow(wanted: &Attributes) -> bool {
    match (wanted.verb.as_str(), wanted.what().as_str()) {
        ("get" | "list" | "watch", "pods" | "nodes" | "namespaces" | "coordination.k8s.io/leases") => true,
        ("create", "pods/binding") | ("update" | "patch", "pods/status") => true,
        ("create" | "patch", "pods") => true,
        ("get" | "create" | "patch", "apps/replicasets") | ("get", "apps/deployments") => true,
        ("patch", "apps/replicasets/status" | "apps/deployments/status") => true,
        ("create", "batch/jobs") => true,
        ("patch", "batch/jobs/status" | "batch/cronjobs/status") => true,
        ("create", "apps/controllerrevisions") => true,
        ("patch", "apps/statefulsets/status" | "apps/daemonsets/status") => true,
        ("patch", "nodes/status" | "policy/poddisruptionbudgets/status") => true,
        ("update", "namespaces/finalize") | ("update" | "patch", "namespaces/status") => true,
        ("create" | "patch" | "update", "events" | "events.k8s.io/events") => true,
        // Nodes' certificates, and nobody else's, are approved; those of other clients are only signed.
        ("patch", "certificates.k8s.io/certificatesigningrequests/approval") => true,
        ("patch", "certificates.k8s.io/certificatesigningrequests/status") => true,
        ("approve" | "sign", "certificates.k8s.io/signers") => match wanted.name.as_str() {
            "kubernetes.io/kube-apiserver-client-kubelet" | "kubernetes.io/kubelet-serving" => true,
            name => wanted.verb == "sign" && name == "kubernetes.io/kube-apiserver-client",
        },
        ("create", "authorization.k8s.io/subjectaccessreviews") => true,
        // What every namespace has is restored.
        ("create" | "get" | "update" | "patch", "serviceaccounts") | ("create", "configmaps") => true,
        // A deleted namespace is emptied kind by kind, whatever the kinds are, and followed until it is empty. What nobody
        // owns any more is collected, owner references and finalizers are taken away, also whatever the kinds are.
        ("delete" | "deletecollection" | "get" | "list" | "patch" | "watch", _) => {
            wanted.subresource.is_empty()
        }
        _ => false,
    }
}
