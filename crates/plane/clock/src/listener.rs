//! Hears it from the kernel: a timer that is never due, and that the kernel cancels when the clock is set.
//!
//! `TFD_TIMER_CANCEL_ON_SET` (timerfd_create(2)) is about every change of the distance between CLOCK_REALTIME and
//! CLOCK_MONOTONIC: `settimeofday`, `clock_settime`, a step of `adjtimex`, and the resume from suspend, in which the
//! second clock stands still (`timekeeping_resume` and `timerfd_resume` in Linux). Slewing moves both and is none.

use std::{
    convert::Infallible,
    future::pending,
    io,
    os::fd::OwnedFd,
    time::{Instant, SystemTime},
};

use rustix::{
    io::Errno,
    time::{
        Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
        timerfd_settime,
    },
};
use tokio::io::{Interest, unix::AsyncFd};
use tracing::{info, warn};

use crate::{
    drift::{Drift, Jump},
    jumps::{ClockJumps, Jumper},
};

/// In the year 2242: the kernel lets nobody set its clock to a time so late.
const NEVER_SECONDS: i64 = 1 << 33;

/// Listens to the kernel; tells whoever has the [`ClockJumps`] that came with it.
#[derive(Debug)]
pub struct Listener {
    timer: AsyncFd<OwnedFd>,
    jumper: Jumper,
    drift: Drift,
}

/// Begins to listen. Where the kernel has no such timer that is said once in the log, and no jump is ever told.
///
/// # Panics
/// Outside of a tokio runtime with I/O.
pub fn listen() -> (Option<Listener>, ClockJumps) {
    match Listener::new() {
        Ok((listener, jumps)) => (Some(listener), jumps),
        Err(error) => {
            warn!(
                %error,
                "the kernel does not tell when the clock is set: restart hotmap whenever it jumps, or tokens in pods may \
                 be refused until they are renewed"
            );
            (None, ClockJumps::never())
        }
    }
}

impl Listener {
    fn new() -> io::Result<(Self, ClockJumps)> {
        // Before the timer is armed: what comes in between is a jump too.
        let drift = Drift::new(SystemTime::now(), Instant::now());
        // SAFETY: an OwnedFd is one descriptor as long as it lives, and nobody replaces it in here.
        let timer = unsafe { AsyncFd::register_with_interest(armed()?, Interest::READABLE)? };
        let (jumper, jumps) = ClockJumps::by_hand();
        let listener = Self { timer, jumper, drift };
        Ok((listener, jumps))
    }

    /// Tells of each jump, for ever.
    pub async fn run(mut self) -> Infallible {
        loop {
            if let Err(error) = self.set().await {
                warn!(%error, "the kernel has stopped telling when the clock is set: restart hotmap whenever it jumps");
                return pending().await;
            }
            match self.drift.observe(SystemTime::now(), Instant::now()) {
                Some(Jump::Forward(by)) => {
                    info!(
                        seconds = by.as_secs(),
                        "the clock was set forward, or this machine has slept"
                    );
                }
                Some(Jump::Back(by)) => info!(seconds = by.as_secs(), "the clock was set back"),
                None => continue,
            }
            self.jumper.jump();
        }
    }

    /// Returns when the clock was set, however little.
    async fn set(&self) -> io::Result<()> {
        let read = |timer: &OwnedFd| match rustix::io::read(timer, &mut [0; 8]) {
            // What is cancelled stays armed: the next change is told as this one is.
            Err(Errno::CANCELED) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) => Err(io::Error::other("a timer of the year 2242 is over")),
        };
        self.timer.async_io(Interest::READABLE, read).await
    }
}

fn armed() -> io::Result<OwnedFd> {
    let timer = timerfd_create(
        TimerfdClockId::Realtime,
        TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
    )?;
    let seconds = |tv_sec| Timespec { tv_sec, tv_nsec: 0 };
    let never = Itimerspec {
        it_interval: seconds(0),
        it_value: seconds(NEVER_SECONDS),
    };
    let flags = TimerfdTimerFlags::ABSTIME | TimerfdTimerFlags::CANCEL_ON_SET;
    match timerfd_settime(&timer, flags, &never) {
        // Armed all the same; the clock was set since the timer was made, and drift says so with the next jump.
        Ok(_) | Err(Errno::CANCELED) => Ok(timer),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use futures_util::FutureExt;

    use super::*;

    #[tokio::test]
    async fn the_kernel_takes_the_timer_and_says_nothing_while_nobody_sets_the_clock() {
        let (listener, mut jumps) = listen();
        let listener = listener.expect("Linux has timers that are cancelled when the clock is set");
        let timer = listener.timer.get_ref().as_raw_fd();
        let armed =
            std::fs::read_to_string(format!("/proc/self/fdinfo/{timer}")).expect("a descriptor of ours");
        // TFD_TIMER_ABSTIME and TFD_TIMER_CANCEL_ON_SET.
        assert!(armed.contains("settime flags: 03"), "{armed}");
        assert!(listener.run().now_or_never().is_none() && jumps.next().now_or_never().is_none());
    }
}
