//! How far the wall clock has run away from one that nobody sets. Pure: both times are handed in.

use std::time::{Duration, Instant, SystemTime};

/// A smaller step changes nothing that anybody waits for: NTP makes such steps, virtual machines make them often.
const JUMP_MIN: Duration = Duration::from_secs(1);

/// A step of the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Jump {
    /// It was set forward by so much, or the machine has slept so long.
    Forward(Duration),
    /// It was set back by so much.
    Back(Duration),
}

/// Both clocks at the last jump.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Drift {
    wall: SystemTime,
    steady: Instant,
}

impl Drift {
    pub(crate) fn new(wall: SystemTime, steady: Instant) -> Self {
        Self { wall, steady }
    }

    /// The jump since the last one that was told, if it is one by now: small steps add up.
    ///
    /// Both clocks are slewed alike, so nothing but a step takes them apart.
    pub(crate) fn observe(&mut self, wall: SystemTime, steady: Instant) -> Option<Jump> {
        let expected = self.wall + steady.saturating_duration_since(self.steady);
        let jump = match wall.duration_since(expected) {
            Ok(ahead) => Jump::Forward(ahead),
            Err(behind) => Jump::Back(behind.duration()),
        };
        let (Jump::Forward(size) | Jump::Back(size)) = jump;
        if size < JUMP_MIN {
            return None;
        }
        *self = Self { wall, steady };
        Some(jump)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(24 * 60 * 60);

    #[test]
    fn a_jump_is_what_the_wall_clock_has_moved_more_than_time_has_passed() {
        let (wall, steady) = (SystemTime::UNIX_EPOCH + 20_000 * DAY, Instant::now());
        let mut drift = Drift::new(wall, steady);
        let millis = Duration::from_millis;
        // Seconds that have passed; how far the wall clock is off the one that nobody sets, in all; what is told.
        for (passed, ahead, told) in [
            (0, millis(0), None),
            (3600, millis(0), None),
            (3601, millis(400), None),
            (3602, millis(800), None),
            (3603, millis(1200), Some(Jump::Forward(millis(1200)))),
            (3604, millis(1200), None),
            (3605, DAY, Some(Jump::Forward(DAY - millis(1200)))),
            (3606, millis(0), Some(Jump::Back(DAY))),
            (9_000_000, millis(0), None),
        ] {
            let steady = steady + Duration::from_secs(passed);
            let wall = wall + Duration::from_secs(passed) + ahead;
            assert_eq!(drift.observe(wall, steady), told, "{passed} {ahead:?}");
        }
    }
}
