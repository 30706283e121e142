//! One listener for all of this process who wait for a time of day.

use hotmap_clock::ClockJumps;
use tokio_util::task::AbortOnDropHandle;

/// Listens until the handle is dropped.
pub(crate) fn listen() -> (AbortOnDropHandle<()>, ClockJumps) {
    let (listener, clock_jumps) = hotmap_clock::listen();
    let listening = tokio::spawn(async {
        if let Some(listener) = listener {
            match listener.run().await {}
        }
    });
    (AbortOnDropHandle::new(listening), clock_jumps)
}
