//! The news that the clock was set, for each who waits for a time of day.

use std::{
    future::{Future as _, poll_fn},
    task::Poll,
};

use tokio::sync::watch;

/// Hears of jumps of the wall clock. A clone hears of those that come after it was made.
#[derive(Debug)]
pub struct ClockJumps {
    /// Of each clock that may jump.
    counts: Vec<watch::Receiver<u64>>,
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
            counts: vec![receiver],
        };
        (Jumper { count: sender }, jumps)
    }

    /// Of a clock that nobody sets.
    pub fn never() -> Self {
        Self { counts: Vec::new() }
    }

    /// Hears of the jumps of another clock too.
    pub fn or(mut self, other: Self) -> Self {
        self.counts.extend(other.counts);
        self
    }

    /// Returns when the clock has jumped since the last time that this returned, or since this handle was made.
    /// Jumps that nobody has waited for are one; none is lost. Cancel safe.
    pub async fn next(&mut self) {
        loop {
            let counts = self.counts.iter_mut();
            let mut waits: Vec<_> = counts.map(|count| Box::pin(count.changed())).collect();
            let (index, is_jump) = poll_fn(|context| {
                let first = waits.iter_mut().enumerate().find_map(|(index, wait)| {
                    match wait.as_mut().poll(context) {
                        Poll::Ready(told) => Some((index, told.is_ok())),
                        Poll::Pending => None,
                    }
                });
                first.map_or(Poll::Pending, Poll::Ready)
            })
            .await;
            drop(waits);
            if is_jump {
                return;
            }
            // Nobody tells of this one any more.
            self.counts.swap_remove(index);
        }
    }
}

impl Clone for ClockJumps {
    fn clone(&self) -> Self {
        let mut counts = self.counts.clone();
        counts.iter_mut().for_each(watch::Receiver::mark_unchanged);
        Self { counts }
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
    fn who_listens_to_two_clocks_hears_of_each_for_as_long_as_somebody_tells() {
        let ((one, first), (other, second)) = (ClockJumps::by_hand(), ClockJumps::by_hand());
        let mut both = first.clone().or(second);
        assert!(!has_jumped(&mut both));
        for jumper in [&one, &other, &one] {
            jumper.jump();
            assert!(has_jumped(&mut both) && !has_jumped(&mut both));
        }
        drop(one);
        assert!(!has_jumped(&mut both));
        other.jump();
        assert!(has_jumped(&mut both) && !has_jumped(&mut both.clone().or(ClockJumps::never())));
    }

    #[test]
    fn a_clock_that_nobody_tells_of_never_jumps() {
        let (jumper, mut jumps) = ClockJumps::by_hand();
        drop(jumper);
        assert!(!has_jumped(&mut jumps) && !has_jumped(&mut jumps));
        assert!(!has_jumped(&mut ClockJumps::never()));
    }
}
