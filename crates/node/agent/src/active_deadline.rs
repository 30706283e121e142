//! What is said of a pod that has been active on its node for too long.
//!
//! Rules and words follow `pkg/kubelet/active_deadline.go`, Kubernetes 1.36: the time counts from `status.startTime`, init
//! containers and everything that is waited for included.

/// The reason of the pod's status and of the event.
pub(crate) const REASON: &str = "DeadlineExceeded";
/// What both say.
pub(crate) const MESSAGE: &str = "Pod was active on the node longer than the specified deadline";
