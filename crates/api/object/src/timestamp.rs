//! The two spellings of time in Kubernetes objects; both in UTC.

use jiff::{Timestamp, Unit};

/// `2026-01-02T15:04:05Z`: seconds, as in `creationTimestamp`.
pub fn seconds(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// `2026-01-02T15:04:05.000000Z`: microseconds, as in a Lease's `renewTime`.
pub fn micros(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// How long ago, as `kubectl get` shows it: `5s`, `3m20s`, `2d4h`; `<invalid>` for a time more than two seconds ahead.
///
/// Steps follow `apimachinery/pkg/util/duration/duration.go` (`HumanDuration`), Kubernetes 1.36.
pub fn human_age(since: Timestamp, now: Timestamp) -> String {
    let span = now
        .since((Unit::Second, since))
        .map(|span| span.get_seconds())
        .unwrap_or(i64::MAX);
    match span {
        ..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        seconds => human_seconds(seconds),
    }
}

fn human_seconds(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const YEAR: i64 = 365 * DAY;
    let two = |major: i64, major_unit: &str, minor: i64, minor_unit: &str| match minor {
        0 => format!("{major}{major_unit}"),
        minor => format!("{major}{major_unit}{minor}{minor_unit}"),
    };
    match seconds {
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(s / MINUTE, "m", s % MINUTE, "s"),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(s / HOUR, "h", s / MINUTE % 60, "m"),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(s / DAY, "d", s / HOUR % 24, "h"),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => two(s / YEAR, "y", s / DAY % 365, "d"),
        s => format!("{}y", s / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectl_users_know_them() {
        for (seconds, text) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (200, "3m20s"),
            (601, "10m"),
            (10_800, "3h"),
            (11_000, "3h3m"),
            (28_800, "8h"),
            (187_200, "2d4h"),
            (691_200, "8d"),
            (94_608_000, "3y"),
            (-1, "0s"),
            (-5, "<invalid>"),
        ] {
            let since = Timestamp::from_second(1_700_000_000).expect("in range");
            let now = Timestamp::from_second(1_700_000_000 + seconds).expect("in range");
            assert_eq!(human_age(since, now), text, "{seconds}");
        }
    }

    #[test]
    fn both_spellings_are_utc() {
        let at: Timestamp = "2026-01-02T17:04:05.6789+02:00".parse().expect("valid");
        assert_eq!(seconds(at), "2026-01-02T15:04:05Z");
        assert_eq!(micros(at), "2026-01-02T15:04:05.678900Z");
    }
}
