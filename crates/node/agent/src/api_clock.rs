//! What time it is for the API server, as far as its answers tell.
//!
//! ```text
//!   sent ────▶ the server reads its clock: `Date`, cut to the second ────▶ received
//! ```
//!
//! Tokens and the node's certificates are judged by that clock, and the kernel tells of jumps of ours alone. Where the server
//! runs on another machine every answer to the heartbeat says how far its clock is from ours, within the time that the answer
//! took; when that distance jumps one of both was set, and whoever waits for a time of day looks again.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use hotmap_client::AnswerDate;
use hotmap_clock::{ClockJumps, Jumper};
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tracing::info;

use crate::clock::Clock;

/// How much later than `Date` says the server may have read its clock: that is cut to the second, and some keep the text for one.
const DATE_LATE_MAX: SignedDuration = SignedDuration::from_secs(2);

/// A smaller step changes nothing for anybody: tokens are replaced minutes before they end, and no API server minds one from the
/// next minute (`pkg/serviceaccount/claims.go`, Kubernetes 1.36). NTP makes smaller ones.
const JUMP_MIN: SignedDuration = SignedDuration::from_secs(5);

/// The clock of an API server. Clones are the same clock.
#[derive(Debug, Clone)]
pub struct ApiClock {
    shared: Arc<Shared>,
    /// Of the clock of this machine.
    own_jumps: ClockJumps,
    /// Of both.
    jumps: ClockJumps,
}

#[derive(Debug)]
struct Shared {
    distance: Mutex<Option<Distance>>,
    jumper: Jumper,
}

impl ApiClock {
    /// A clock that is ours until an answer tells otherwise. `own_jumps` are those of the clock of this machine.
    pub fn new(own_jumps: ClockJumps) -> Self {
        let (jumper, of_api) = ClockJumps::by_hand();
        let shared = Shared {
            distance: Mutex::default(),
            jumper,
        };
        Self {
            shared: Arc::new(shared),
            jumps: own_jumps.clone().or(of_api),
            own_jumps,
        }
    }

    /// Tells when the clock of this machine was set, or that of the server.
    pub(crate) fn jumps(&self) -> ClockJumps {
        self.jumps.clone()
    }

    /// Tells when the clock of this machine was set.
    pub(crate) fn own_jumps(&self) -> ClockJumps {
        self.own_jumps.clone()
    }

    /// Learns from an answer of the server.
    pub(crate) fn observe(&self, answer: AnswerDate) {
        let Some(seen) = Distance::of(answer) else {
            return;
        };
        let jump = {
            let mut known = self.shared.distance.lock();
            let jump = known.and_then(|known| known.jump_to(seen));
            *known = Some(known.map_or(seen, |known| known.refined(seen)));
            jump
        };
        if let Some(jump) = jump {
            info!(
                seconds = jump.as_secs(),
                "the clock of the API server was set, or that of this machine was"
            );
            self.shared.jumper.jump();
        }
    }
}

impl Clock for ApiClock {
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        let ahead = self.shared.distance.lock().map(|distance| distance.least);
        ahead.and_then(|ahead| now.checked_add(ahead).ok()).unwrap_or(now)
    }

    async fn sleep(&self, pause: Duration) {
        tokio::time::sleep(pause).await;
    }
}

/// How far the server's clock is ahead of ours: somewhere between both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Distance {
    least: SignedDuration,
    most: SignedDuration,
}

impl Distance {
    /// `None` for a date that no calendar holds.
    fn of(answer: AnswerDate) -> Option<Self> {
        let time = |time: SystemTime| Timestamp::try_from(time).ok();
        let least = time(answer.date)?.duration_since(time(answer.received)?);
        let took = SignedDuration::try_from(answer.took).ok()?;
        let most = least.checked_add(took)?.checked_add(DATE_LATE_MAX)?;
        Some(Self { least, most })
    }

    /// How far it has moved at least, if that is more than a small step.
    fn jump_to(self, seen: Self) -> Option<SignedDuration> {
        let (forward, back) = (seen.least - self.most, seen.most - self.least);
        if forward >= JUMP_MIN {
            Some(forward)
        } else if back <= -JUMP_MIN {
            Some(back)
        } else {
            None
        }
    }

    /// What both say, so that a slow answer makes nothing vague; clocks that have drifted apart are where they are now.
    fn refined(self, seen: Self) -> Self {
        let (least, most) = (self.least.max(seen.least), self.most.min(seen.most));
        if least <= most { Self { least, most } } else { seen }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const DAY: i64 = 24 * 60 * 60;

    /// An answer that came `at` so many milliseconds by our clock, took so long, and has a date so many seconds after the
    /// same beginning.
    fn answer(at: u64, took: u64, date: i64) -> AnswerDate {
        let beginning = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let whole = Duration::from_secs(date.unsigned_abs());
        AnswerDate {
            date: if date < 0 {
                beginning - whole
            } else {
                beginning + whole
            },
            received: beginning + Duration::from_millis(at),
            took: Duration::from_millis(took),
        }
    }

    #[test]
    fn a_jump_is_what_the_time_of_an_answer_does_not_explain() {
        for (what, answers) in [
            (
                "a heartbeat every ten seconds",
                vec![(0, 1, 0, false), (10_900, 1, 10, false), (20_001, 1, 18, false)],
            ),
            (
                "an answer that took long",
                vec![
                    (0, 1, 0, false),
                    (30_000, 20_000, 10, false),
                    (40_000, 1, 40, false),
                ],
            ),
            (
                "a small step",
                vec![(0, 1, 0, false), (10_000, 1, 14, false), (20_000, 1, 24, false)],
            ),
            (
                "a day forward, and back",
                vec![
                    (0, 1, 0, false),
                    (10_000, 1, 10 + DAY, true),
                    (20_000, 1, 20 + DAY, false),
                    (30_000, 1, 30, true),
                ],
            ),
            (
                "a minute back",
                vec![(0, 1, 0, false), (10_000, 1, -50, true), (20_000, 1, -40, false)],
            ),
            (
                "a jump behind an answer that took long",
                vec![
                    (0, 1, 0, false),
                    (30_000, 20_000, 10, false),
                    (40_000, 1, 55, true),
                ],
            ),
            (
                "clocks that drift apart",
                (0..600)
                    .map(|tick| (tick * 10_000, 1, (tick * 10 + tick / 10) as i64, false))
                    .collect(),
            ),
        ] {
            let clock = ApiClock::new(ClockJumps::never());
            let mut jumps = clock.jumps();
            for (at, took, date, is_jump) in answers {
                clock.observe(answer(at, took, date));
                let has_jumped = jumps.next().now_or_never().is_some();
                assert_eq!(has_jumped, is_jump, "{what}, at {at}");
            }
        }
    }

    #[test]
    fn it_is_as_late_as_the_answers_say() {
        let clock = ApiClock::new(ClockJumps::never());
        let ahead = || clock.now().duration_since(Timestamp::now()).as_secs();
        // Whole days: what passes between two looks at the clock does not count.
        let rounded = || (ahead() + DAY / 2).div_euclid(DAY);
        assert_eq!(rounded(), 0, "nothing is known");
        for days in [0_i64, 3, -2] {
            clock.observe(answer(0, 1, days * DAY));
            assert_eq!(rounded(), days);
        }
    }

    #[test]
    fn who_waits_hears_of_both_clocks_and_the_lease_of_ours() {
        let (jumper, own) = ClockJumps::by_hand();
        let clock = ApiClock::new(own);
        let (mut both, mut own) = (clock.jumps(), clock.own_jumps());
        let has_jumped = |jumps: &mut ClockJumps| jumps.next().now_or_never().is_some();
        jumper.jump();
        assert!(has_jumped(&mut both) && has_jumped(&mut own));
        clock.observe(answer(0, 1, 0));
        clock.observe(answer(10_000, 1, DAY));
        assert!(has_jumped(&mut both) && !has_jumped(&mut own));
    }
}
