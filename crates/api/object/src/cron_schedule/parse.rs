//! Text to schedule.

use super::{CronSchedule, CronScheduleError, Fields, STAR, Times, time_zone};

/// What one field may hold.
struct Bounds {
    min: u64,
    max: u64,
    /// Names of the values from `min` on, in lower case.
    names: &'static [&'static str],
}

const MINUTE: Bounds = Bounds {
    min: 0,
    max: 59,
    names: &[],
};
const HOUR: Bounds = Bounds {
    min: 0,
    max: 23,
    names: &[],
};
const DAY_OF_MONTH: Bounds = Bounds {
    min: 1,
    max: 31,
    names: &[],
};
const MONTH: Bounds = Bounds {
    min: 1,
    max: 12,
    names: &[
        "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
    ],
};
const DAY_OF_WEEK: Bounds = Bounds {
    min: 0,
    max: 6,
    names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
};

type Result<T> = std::result::Result<T, CronScheduleError>;

fn error<T>(text: String) -> Result<T> {
    Err(CronScheduleError(text))
}

pub(super) fn schedule(text: &str) -> Result<CronSchedule> {
    if text.is_empty() {
        return error("empty spec string".to_owned());
    }
    let (zone, text) = match text.strip_prefix("TZ=").or_else(|| text.strip_prefix("CRON_TZ=")) {
        None => (None, text),
        Some(rest) => {
            let Some((name, rest)) = rest.split_once(' ') else {
                // What the API server says when upstream's parser breaks on this input.
                return error(
                    "invalid schedule format: runtime error: slice bounds out of range [:-1]".to_owned(),
                );
            };
            match time_zone(name) {
                Ok(zone) => (Some(zone), rest.trim()),
                Err(unknown) => return error(format!("provided bad location {name}: {unknown}")),
            }
        }
    };
    let times = match text.starts_with('@') {
        true => descriptor(text)?,
        false => Times::Matching(fields(text)?),
    };
    Ok(CronSchedule { times, zone })
}

fn fields(text: &str) -> Result<Fields> {
    let fields: Vec<&str> = text.split_whitespace().collect();
    let [minute, hour, day_of_month, month, day_of_week] = fields[..] else {
        let found = fields.len();
        return error(format!(
            "expected exactly 5 fields, found {found}: [{}]",
            fields.join(" ")
        ));
    };
    Ok(Fields {
        minute: field(minute, &MINUTE)?,
        hour: field(hour, &HOUR)?,
        day_of_month: field(day_of_month, &DAY_OF_MONTH)?,
        month: field(month, &MONTH)?,
        day_of_week: field(day_of_week, &DAY_OF_WEEK)?,
    })
}

/// A list of ranges. Nothing between two commas is nothing, so that `,` never matches.
fn field(text: &str, bounds: &Bounds) -> Result<u64> {
    let ranges = text.split(',').filter(|range| !range.is_empty());
    ranges
        .map(|text| range(text, bounds))
        .try_fold(0, |all, bits| Ok(all | bits?))
}

/// `*`, `?`, `5`, `mon-fri`, each with an optional `/step`; `5/15` goes from 5 to the end.
fn range(text: &str, bounds: &Bounds) -> Result<u64> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let (start, mut end, mut star) = match ends[..] {
        ["*" | "?", ..] => (bounds.min, bounds.max, STAR),
        [only] => {
            let value = number_or_name(only, bounds)?;
            (value, value, 0)
        }
        [start, end] => (number_or_name(start, bounds)?, number_or_name(end, bounds)?, 0),
        _ => {
            number_or_name(ends[0], bounds)?;
            return error(format!("too many hyphens: {text}"));
        }
    };
    let step = match parts[..] {
        [_] => 1,
        [_, step] => {
            let step = number(step)?;
            if ends.len() == 1 {
                end = bounds.max;
            }
            if step > 1 {
                star = 0;
            }
            step
        }
        _ => return error(format!("too many slashes: {text}")),
    };
    let Bounds { min, max, .. } = bounds;
    if start < *min {
        return error(format!(
            "beginning of range ({start}) below minimum ({min}): {text}"
        ));
    }
    if end > *max {
        return error(format!("end of range ({end}) above maximum ({max}): {text}"));
    }
    if start > end {
        return error(format!(
            "beginning of range ({start}) beyond end of range ({end}): {text}"
        ));
    }
    if step == 0 {
        return error(format!("step of range should be a positive number: {text}"));
    }
    // A step beyond every field is as good as 64, and fits any machine word.
    let step = usize::try_from(step.min(64)).expect("at most 64");
    Ok((start..=end)
        .step_by(step)
        .fold(star, |bits, value| bits | 1 << value))
}

fn number_or_name(text: &str, bounds: &Bounds) -> Result<u64> {
    let name = text.to_lowercase();
    match bounds.names.iter().position(|known| *known == name) {
        Some(position) => Ok(bounds.min + position as u64),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u64> {
    use std::num::IntErrorKind::{NegOverflow, PosOverflow};
    match text.parse::<i64>() {
        Ok(number) if number < 0 => error(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => Ok(number.unsigned_abs()),
        Err(cause) => {
            let cause = match cause.kind() {
                PosOverflow | NegOverflow => "value out of range",
                _ => "invalid syntax",
            };
            error(format!(
                "failed to parse int from {text}: strconv.Atoi: parsing {text:?}: {cause}"
            ))
        }
    }
}

fn descriptor(text: &str) -> Result<Times> {
    let standard = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => {
            let Some(duration) = text.strip_prefix("@every ") else {
                return error(format!("unrecognized descriptor: {text}"));
            };
            return match nanos(duration) {
                Ok(nanos) => Ok(Times::Every((nanos / 1_000_000_000).max(1))),
                Err(cause) => error(format!("failed to parse duration {text}: time: {cause}")),
            };
        }
    };
    fields(standard).map(Times::Matching)
}

/// A duration as Go writes it: `1h30m`, `-1.5h`, `300ms`.
///
/// Source: `time.ParseDuration` of Go.
fn nanos(text: &str) -> std::result::Result<i64, String> {
    let invalid = || format!("invalid duration {text:?}");
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: i128 = 0;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (amount, after) = rest.split_at(digits);
        let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
        if (whole.is_empty() && fraction.is_empty()) || fraction.contains('.') {
            return Err(invalid());
        }
        let unit_end = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(unit_end);
        let scale: i128 = match unit {
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60 * 1_000_000_000,
            "h" => 3600 * 1_000_000_000,
            "" => return Err(format!("missing unit in duration {text:?}")),
            unknown => return Err(format!("unknown unit {unknown:?} in duration {text:?}")),
        };
        // Digits beyond nanoseconds of an hour change nothing.
        let fraction = &fraction[..fraction.len().min(18)];
        let whole: i128 = if whole.is_empty() {
            0
        } else {
            whole.parse().map_err(|_| invalid())?
        };
        let part: i128 = if fraction.is_empty() {
            0
        } else {
            fraction.parse().map_err(|_| invalid())?
        };
        let power = 10_i128.pow(u32::try_from(fraction.len()).expect("at most 18"));
        let amount = whole.checked_mul(scale).ok_or_else(invalid)? + part * scale / power;
        total = total
            .checked_add(amount)
            .filter(|total| *total <= i64::MAX.into())
            .ok_or_else(invalid)?;
        rest = next;
    }
    let total = i64::try_from(total).expect("checked against the largest");
    Ok(if negative { -total } else { total })
}
