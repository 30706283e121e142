//! The news that the clock was set, for each who waits for a time of day.

use std::future::pending;

use tokio::sync::watch;

/// Hears of jumps of the wall clock. A clone hears of those that come after it was made.
#[derive(Debug)]
pub struct ClockJumps {
    /// `None`: nobody ever sets the clock.
    count: Option<watch::Receiver<u64>>,
}

/// Tells of jumps: the kernel's listener has one, and a test that moves its own clock.
#[derive(Debug)]
pub struct Jumper {
    count: watch::Sender<u64>,
}

impl ClockJumps {
    /// Jumps that are told by hand.
    pub fn by_hand() -> (Jumper, Self) {
        let (sender, receiver) = watch::channel(0);
        let jumps = Self {
            count: Some(receiver),
        };
        (Jumper { count: sender }, jumps)
    }

    /// Of a clock that nobody sets.
    pub fn never() -> Self {
        Self { count: None }
    }

    /// Returns when the clock has jumped since the last time that this returned, or since this handle was made.
    /// Jumps that nobody has waited for are one; none is lost. Cancel safe.
    pub async fn next(&mut self) {
        if let Some(count) = &mut self.count
            && count.changed().await.is_ok()
        {
            return;
        }
        // Nobody tells any more.
        self.count = None;
        pending().await
    }
}

impl Clone for ClockJumps {
    fn clone(&self) -> Self {
        let mut count = self.count.clone();
        if let Some(count) = &mut count {
            count.mark_unchanged();
        }
        Self { count }
    }
}

impl Jumper {
    /// Wakes everybody who hears. The clock has its new time already.
    pub fn jump(&self) {
        self.count.send_modify(|count| *count = count.wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn has_jumped(jumps: &mut ClockJumps) -> bool {
        jumps.next().now_or_never().is_some()
    }

    #[test]
    fn everybody_hears_of_a_jump_once_and_of_none_before_they_listened() {
        let (jumper, mut first) = ClockJumps::by_hand();
        assert!(!has_jumped(&mut first));
        jumper.jump();
        jumper.jump();
        let mut late = first.clone();
        assert!(!has_jumped(&mut late));
        assert!(has_jumped(&mut first) && !has_jumped(&mut first));
        let mut second = first.clone();
        assert!(!has_jumped(&mut second));
        jumper.jump();
        for jumps in [&mut first, &mut second, &mut late] {
            assert!(has_jumped(jumps) && !has_jumped(jumps));
        }
    }

    #[test]
    fn a_clock_that_nobody_tells_of_never_jumps() {
        let (jumper, mut jumps) = ClockJumps::by_hand();
        drop(jumper);
        assert!(!has_jumped(&mut jumps) && !has_jumped(&mut jumps));
        assert!(!has_jumped(&mut ClockJumps::never()));
    }
}
