//! Wakes the worker of a pod. What happened is not said: the worker looks for itself.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::Notify;

/// One worker's bell. A ring that nobody hears yet is kept.
#[derive(Debug, Default)]
pub(crate) struct Nudge {
    bell: Notify,
    waits_for_objects: AtomicBool,
}

impl Nudge {
    pub(crate) fn wake(&self) {
        self.bell.notify_one();
    }

    /// A ConfigMap or Secret of the pod changed. Volumes follow on their own: this is for containers that could not start,
    /// and most pods have none.
    pub(crate) fn wake_for_object(&self) {
        if self.waits_for_objects.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    /// Says whether a container's start hangs on objects. To be said before they are looked at, or a change between the look
    /// and the word would go unheard.
    pub(crate) fn wait_for_objects(&self, waits: bool) {
        self.waits_for_objects.store(waits, Ordering::SeqCst);
    }

    /// Returns at the next ring. Cancel safe.
    pub(crate) async fn woken(&self) {
        self.bell.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn objects_wake_who_waits_for_them() {
        let nudge = Nudge::default();
        nudge.wake_for_object();
        assert!(nudge.woken().now_or_never().is_none());
        nudge.wait_for_objects(true);
        nudge.wake_for_object();
        assert!(nudge.woken().now_or_never().is_some());
        nudge.wake();
        nudge.wake();
        assert!(nudge.woken().now_or_never().is_some());
        assert!(nudge.woken().now_or_never().is_none(), "two rings are one look");
    }
}
