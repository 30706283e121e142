//! From one time to the next that matches.

use jiff::{
    Timestamp, ToSpan as _,
    civil::{DateTime, Time},
    tz::{Offset, TimeZone},
};

use super::{Fields, STAR};

/// A schedule that nothing satisfies in this many years is given up.
const YEARS_MAX: i16 = 5;

/// The first time after `after` that matches: months are skipped until one does, then days, hours and minutes; whenever a
/// field wraps around, all are looked at again.
pub(super) fn next(fields: &Fields, after: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
    let mut wall = Wall::at(after.as_second().checked_add(1)?, zone)?;
    let year_limit = wall.civil.year() + YEARS_MAX;
    // Once something was skipped, the walk is at the beginning of what it skipped to.
    let mut skipped = false;
    'again: while wall.civil.year() <= year_limit {
        while !has(fields.month, wall.civil.month()) {
            if !skipped {
                skipped = true;
                wall = wall.date(wall.civil.first_of_month().date().to_datetime(Time::midnight()))?;
            }
            wall = wall.date(wall.civil.checked_add(1.month()).ok()?)?;
            if wall.civil.month() == 1 {
                continue 'again;
            }
        }
        while !day_matches(fields, wall.civil) {
            if !skipped {
                skipped = true;
                wall = wall.date(wall.civil.date().to_datetime(Time::midnight()))?;
            }
            wall = wall.date(wall.civil.checked_add(1.day()).ok()?)?;
            // Where clocks are set forward at midnight, the day begins at one, or the walk ended up at eleven of the
            // day before.
            match i64::from(wall.civil.hour()) {
                0 => {}
                late if late > 12 => wall = wall.plus((24 - late) * 3600)?,
                early => wall = wall.plus(-early * 3600)?,
            }
            if wall.civil.day() == 1 {
                continue 'again;
            }
        }
        while !has(fields.hour, wall.civil.hour()) {
            if !skipped {
                skipped = true;
                let hour = Time::constant(wall.civil.hour(), 0, 0, 0);
                wall = wall.date(wall.civil.date().to_datetime(hour))?;
            }
            wall = wall.plus(3600)?;
            if wall.civil.hour() == 0 {
                continue 'again;
            }
        }
        while !has(fields.minute, wall.civil.minute()) {
            if !skipped {
                skipped = true;
                wall = Wall::at(wall.unix - wall.unix.rem_euclid(60), zone)?;
            }
            wall = wall.plus(60)?;
            if wall.civil.minute() == 0 {
                continue 'again;
            }
        }
        match i64::from(wall.civil.second()) {
            0 => return Timestamp::from_second(wall.unix).ok(),
            second => {
                skipped = true;
                wall = wall.plus(60 - second)?;
            }
        }
    }
    None
}

fn has(bits: u64, value: i8) -> bool {
    bits & (1 << value) != 0
}

fn day_matches(fields: &Fields, civil: DateTime) -> bool {
    let of_month = has(fields.day_of_month, civil.day());
    let of_week = has(fields.day_of_week, civil.weekday().to_sunday_zero_offset());
    if (fields.day_of_month | fields.day_of_week) & STAR != 0 {
        of_month && of_week
    } else {
        of_month || of_week
    }
}

/// A time, and what the clock on the wall shows then.
#[derive(Clone, Copy)]
struct Wall<'z> {
    unix: i64,
    civil: DateTime,
    zone: &'z TimeZone,
}

impl<'z> Wall<'z> {
    fn at(unix: i64, zone: &'z TimeZone) -> Option<Self> {
        let civil = zone.to_datetime(Timestamp::from_second(unix).ok()?);
        Some(Self { unix, civil, zone })
    }

    fn plus(self, seconds: i64) -> Option<Self> {
        Self::at(self.unix.checked_add(seconds)?, self.zone)
    }

    /// When the wall shows `civil`. For what it never shows, or twice, the choice is Go's (`time.Date`): the offset that
    /// holds at the time that the offset of `civil`, read as UTC, leads to.
    fn date(self, civil: DateTime) -> Option<Self> {
        let as_utc = Offset::UTC.to_timestamp(civil).ok()?;
        let offset = |at: Timestamp| i64::from(self.zone.to_offset(at).seconds());
        let guess = Timestamp::from_second(as_utc.as_second() - offset(as_utc)).ok()?;
        Self::at(as_utc.as_second() - offset(guess), self.zone)
    }
}
