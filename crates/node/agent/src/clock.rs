//! What time it is, and waiting: handed in where a test has to say both.

use std::{future::Future, time::Duration};

use jiff::Timestamp;

/// Wall-clock time and a timer.
pub(crate) trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;

    /// Returns after `pause`. Cancel safe.
    fn sleep(&self, pause: Duration) -> impl Future<Output = ()> + Send;
}

/// The machine's own.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }

    async fn sleep(&self, pause: Duration) {
        tokio::time::sleep(pause).await;
    }
}
