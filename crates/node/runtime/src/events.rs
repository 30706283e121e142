//! What happens in pods without anybody asking: exits, and shims that die.

use std::collections::VecDeque;

use tokio::sync::broadcast;

use crate::status::Exit;

/// Events a consumer may be behind before it is told to list instead.
pub(crate) const EVENT_LAG_MAX: usize = 1_024;

/// Something that happened to a pod.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// A container ended. May be told more than once; (pod, container, attempt) identifies it.
    ContainerExited(ContainerExited),
    /// A pod's shim died and took the pod's processes along. The exits of its containers came before.
    SandboxLost {
        /// The pod.
        pod_uid: String,
    },
    /// Events were missed: compare with [`Runtime::sandboxes`](crate::Runtime::sandboxes).
    Resync,
}

/// The end of one attempt of a container.
#[derive(Debug, Clone, PartialEq)]
pub struct ContainerExited {
    /// The pod.
    pub pod_uid: String,
    /// The container's name.
    pub container: String,
    /// The attempt.
    pub attempt: u32,
    /// How it ended.
    pub exit: Exit,
}

/// A stream of [`Event`]s. It begins with every container that has already ended and is not yet removed, so that a
/// restarted agent misses no exit.
#[derive(Debug)]
pub struct Events {
    pub(crate) already: VecDeque<Event>,
    pub(crate) receiver: broadcast::Receiver<Event>,
}

impl Events {
    /// The next event; `None` once the runtime is gone. Cancel safe.
    pub async fn next(&mut self) -> Option<Event> {
        if let Some(event) = self.already.pop_front() {
            return Some(event);
        }
        match self.receiver.recv().await {
            Ok(event) => Some(event),
            Err(broadcast::error::RecvError::Lagged(_)) => Some(Event::Resync),
            Err(broadcast::error::RecvError::Closed) => None,
        }
    }
}
