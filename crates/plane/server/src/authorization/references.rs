//! What a node's identity may read follows from the pods bound to it. The cache of pods answers these questions.

/// The kinds whose objects a pod can refer to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Referenced {
    ConfigMap,
    Secret,
    ServiceAccount,
}

/// What authorization asks about pods. Answers come from memory, at once.
pub(crate) trait PodReferences: Send + Sync {
    /// Whether a pod of `namespace` that is bound to `node` refers to the object: in volumes, env, envFrom,
    /// imagePullSecrets or as its service account. Ended pods that still exist count.
    fn node_refers_to(&self, node: &str, kind: Referenced, namespace: &str, name: &str) -> bool;

    /// The node a pod is bound to; `None` if there is no such pod or it is not bound.
    fn node_of(&self, namespace: &str, pod: &str) -> Option<String>;
}
