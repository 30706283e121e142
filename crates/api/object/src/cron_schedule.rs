//! When a CronJob is due: five fields, a descriptor, or an interval, in a time zone.
//!
//! ```text
//!   ┌ minute 0–59   ┌ month 1–12, jan–dec
//!   │ ┌ hour 0–23   │ ┌ day of week 0–6, sun–sat         @yearly @monthly @weekly @daily @hourly
//!   * * * * *  ◀────┘ ┘                                  @every 1h30m
//!       └ day of month 1–31                              TZ=Europe/Rome 0 3 * * *   (old objects only)
//! ```
//!
//! Syntax, error texts and the walk to the next time are those of robfig/cron 3.0.1 (`parser.go`, `spec.go`), which
//! Kubernetes 1.36 uses, in all their peculiarities: a day matches if day of month *or* day of week does, unless one of
//! them is a star; `*/2` is no star; `7` is no Sunday.
//!
//! Where clocks are set forward, a time that does not exist is skipped for that day; where they are set back, a time that
//! comes twice is due twice.

mod parse;
mod walk;

use jiff::{Timestamp, tz::TimeZone};

/// A schedule as in `spec.schedule` of a CronJob.
#[derive(Debug, Clone, PartialEq)]
pub struct CronSchedule {
    times: Times,
    zone: Option<TimeZone>,
}

/// Text that is no schedule; displays as upstream says it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CronScheduleError(String);

/// A name that the time zone database does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown time zone {0}")]
pub struct UnknownTimeZone(String);

#[derive(Debug, Clone, PartialEq)]
enum Times {
    /// Whole seconds, at least one.
    Every(i64),
    Matching(Fields),
}

/// One bit per value; the top bit says that the field is a star.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Fields {
    minute: u64,
    hour: u64,
    day_of_month: u64,
    month: u64,
    day_of_week: u64,
}

const STAR: u64 = 1 << 63;

impl CronSchedule {
    /// Reads a schedule.
    ///
    /// # Errors
    /// [`CronScheduleError`] in upstream's words.
    pub fn parse(text: &str) -> Result<Self, CronScheduleError> {
        parse::schedule(text)
    }

    /// Whether it names its own time zone, with `TZ=` or `CRON_TZ=`.
    pub fn names_its_zone(&self) -> bool {
        self.zone.is_some()
    }

    /// The first time after `after`, in the zone that the schedule names, or else in `zone`. `None` if there is none in
    /// the next five years, as for 31 April.
    pub fn next(&self, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match &self.times {
            Times::Every(seconds) => Timestamp::from_second(after.as_second().checked_add(*seconds)?).ok(),
            Times::Matching(fields) => walk::next(fields, after, self.zone.as_ref().unwrap_or(zone)),
        }
    }
}

/// Finds a time zone by its name in the time zone database: the system's, else the one built in. `""` is UTC.
///
/// # Errors
/// [`UnknownTimeZone`] for a name that is not there in exactly this spelling.
///
/// Source: `time.LoadLocation` of Go, without its `Local`.
pub fn time_zone(name: &str) -> Result<TimeZone, UnknownTimeZone> {
    match name {
        "" | "UTC" => Ok(TimeZone::UTC),
        name => TimeZone::get(name)
            .ok()
            .filter(|zone| zone.iana_name() == Some(name))
            .ok_or_else(|| UnknownTimeZone(name.to_owned())),
    }
}

#[cfg(test)]
mod tests;
