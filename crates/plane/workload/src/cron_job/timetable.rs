//! Which start of a CronJob is due, and when the next one is.
//!
//! Source: `pkg/controller/cronjob/utils.go`, Kubernetes 1.36.

use hotmap_object::CronSchedule;
use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use crate::view::CronJob;

/// Starts missed in a row that are worth a warning.
const MISSED_MAX: i64 = 100;

/// A schedule that comes to no second start, such as 31 February.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("time difference between two schedules is less than 1 second")]
pub(super) struct NoInterval;

/// A schedule in its time zone.
pub(super) struct Timetable<'a> {
    pub(super) schedule: &'a CronSchedule,
    pub(super) zone: &'a TimeZone,
}

/// What lies between the last start and now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Missed {
    /// From when on starts count.
    since: Timestamp,
    /// The latest start that is due.
    pub(super) latest: Option<Timestamp>,
    /// About how many starts are due; all but the latest are missed.
    count: i64,
}

impl Missed {
    pub(super) fn is_too_many(&self) -> bool {
        self.count > MISSED_MAX
    }
}

impl Timetable<'_> {
    fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.schedule.next(after, self.zone)
    }

    /// The start to make now, if its deadline is not over.
    pub(super) fn due(&self, cron_job: &CronJob, now: Timestamp) -> Result<Missed, NoInterval> {
        let deadline = cron_job.spec.starting_deadline_seconds;
        let in_time = deadline.and_then(|limit| now.checked_sub(SignedDuration::from_secs(limit)).ok());
        let last = last_start(cron_job, now);
        self.missed(in_time.map_or(last, |in_time| last.max(in_time)), now)
    }

    /// When to look again: the start after the latest that is due. `None` if there is none.
    pub(super) fn next_start(&self, cron_job: &CronJob, now: Timestamp) -> Option<Timestamp> {
        match self.missed(last_start(cron_job, now), now) {
            Ok(missed) => self.next(missed.latest.unwrap_or(missed.since)),
            Err(NoInterval) => self.next(now),
        }
    }

    fn missed(&self, since: Timestamp, now: Timestamp) -> Result<Missed, NoInterval> {
        let missed = |latest, count| Ok(Missed { since, latest, count });
        let Some(first) = self.next(since) else {
            return Err(NoInterval);
        };
        if now < first {
            return missed(None, 0);
        }
        let Some(second) = self.next(first) else {
            return Err(NoInterval);
        };
        if now < second {
            return missed(Some(first), 0);
        }
        let interval = second.duration_since(first).as_secs();
        if interval < 1 {
            return Err(NoInterval);
        }
        // Not all of them are counted out: after a year of rest, or with a clock that is wrong by decades, that would take
        // for ever. The search goes back from now, twice as far each time, so that it finds the latest start also of uneven
        // schedules, where upstream's estimate does not.
        let count = now.duration_since(first).as_secs() / interval + 1;
        let mut back = 2;
        while back < count {
            let skipped = SignedDuration::from_secs(interval.saturating_mul(count - back));
            if let Ok(from) = first.checked_add(skipped)
                && let Some(latest) = self.latest(from, now)
            {
                return missed(Some(latest), count);
            }
            back *= 2;
        }
        missed(Some(self.latest(first, now).unwrap_or(first)), count)
    }

    /// The latest start after `from` that is due.
    fn latest(&self, from: Timestamp, now: Timestamp) -> Option<Timestamp> {
        let due = |after: &Timestamp| self.next(*after).filter(|start| *start <= now);
        std::iter::successors(due(&from), due).last()
    }
}

/// Starts count from here: the last one, or the creation.
fn last_start(cron_job: &CronJob, now: Timestamp) -> Timestamp {
    let last = cron_job.status.last_schedule_time;
    last.or(cron_job.metadata.creation_timestamp).unwrap_or(now)
}
