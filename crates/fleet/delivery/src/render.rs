//! The answer for people: a table in kubectl's manner, a summary, a line of progress.

use hotmap_object::timestamp;
use jiff::Timestamp;

use crate::{PodRow, Since, State, Status};

/// Longest delivery that is told as one; what takes longer was a pod's start.
const DELIVERY_MAX_MICROSECONDS: i64 = 60_000_000;
/// Cells of the bar of progress.
const BAR: usize = 20;

/// One line for each row, headings first. `is_wide` adds what narrow terminals have no room for.
pub fn table(status: &Status, now: Timestamp, is_wide: bool) -> Vec<String> {
    let mut rows = vec![["POD", "NODE", "VIA", "REVISION", "STATE", "SINCE", "REASON"].map(str::to_owned)];
    rows.extend(status.rows.iter().map(|row| cells(row, now, is_wide)));
    let mut widths = [0; 7];
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: &[String; 7]| {
        let cells = row
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("   ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

fn cells(row: &PodRow, now: Timestamp, is_wide: bool) -> [String; 7] {
    let or_none = |text: &str| if text.is_empty() { "<none>" } else { text }.to_owned();
    let since = row.since.map_or_else(
        || "<unknown>".to_owned(),
        |since| match is_wide {
            true => timestamp::micros(since),
            false => timestamp::human_age(since, now),
        },
    );
    [
        row.pod.clone(),
        or_none(&row.node),
        row.via.to_string(),
        or_none(&row.resource_version),
        row.state.as_str().to_owned(),
        since,
        row.reason.clone(),
    ]
}

/// Who has it, in a sentence or two.
pub fn summary(status: &Status) -> String {
    let target = &status.target;
    if status.pods == 0 {
        return match status.resource_version.as_str() {
            "" => format!("{target} is not there, and no pod refers to it"),
            _ => format!("no pod refers to {target}"),
        };
    }
    let late = status.pods - status.pods_current;
    let mut text = match status.resource_version.as_str() {
        "" => format!(
            "{target} is not there; {late} of {} miss it",
            counted(status.pods, "pod")
        ),
        version => format!(
            "{} of {} {} revision {version}{}",
            status.pods_current,
            counted(status.pods, "pod"),
            if status.pods_current == 1 { "has" } else { "have" },
            delay(status)
        ),
    };
    if status.loaded_reporting > 0 {
        let loaded = format!(
            "; {} of {} that report have loaded it",
            status.loaded_current, status.loaded_reporting
        );
        text.push_str(&loaded);
    }
    if let Some(first) = status.rows.iter().find(|row| row.state != State::Current) {
        let which = match first.state {
            State::Behind | State::Current => "behind",
            State::NotLoaded => "not loaded",
            State::Waiting => "waiting",
            State::Unknown => "unknown",
        };
        let more = if late > 1 {
            format!(" and {} more", late - 1)
        } else {
            String::new()
        };
        text.push_str(&format!(
            "; {which}: {} ({}){more}: {}",
            first.pod, first.via, first.reason
        ));
    }
    text
}

fn delay(status: &Status) -> String {
    match status.slowest_microseconds {
        Some(micros) if micros <= DELIVERY_MAX_MICROSECONDS => {
            let millis = micros / 1_000;
            let shown = if millis < 10 {
                format!("{}.{}", millis, micros / 100 % 10)
            } else {
                millis.to_string()
            };
            let begun = match status.slowest_since {
                Some(Since::Commit) => "the edit",
                Some(Since::Heard) | None => "the node heard of it",
            };
            format!(", {shown} ms after {begun}")
        }
        _ => String::new(),
    }
}

fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        _ => format!("{count} {what}s"),
    }
}

/// `[#####---------------] 1/4 pods`, for a terminal.
pub fn progress(status: &Status) -> String {
    let done = (status.pods_current * BAR)
        .checked_div(status.pods)
        .unwrap_or(BAR);
    let (full, empty) = ("#".repeat(done), "-".repeat(BAR - done));
    format!("[{full}{empty}] {}", summary(status))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Target, Via};

    fn status() -> Status {
        let row = |pod: &str, state, reason: &str| PodRow {
            pod: pod.to_owned(),
            node: "node-a".to_owned(),
            via: Via::Volume("cfg".to_owned()),
            resource_version: "812".to_owned(),
            state,
            since: Some(Timestamp::from_second(10).expect("in range")),
            reason: reason.to_owned(),
        };
        Status {
            target: Target::parse("cm/app", "default").expect("a target"),
            resource_version: "812".to_owned(),
            digest: String::new(),
            note: String::new(),
            pods: 4,
            pods_current: 3,
            loaded_reporting: 0,
            loaded_current: 0,
            slowest_microseconds: Some(12_345),
            slowest_since: Some(Since::Commit),
            rows: vec![
                row("web-1", State::Current, ""),
                row("web-10", State::Behind, "no key"),
            ],
        }
    }

    #[test]
    fn tables_line_up() {
        let now = Timestamp::from_second(13).expect("in range");
        assert_eq!(
            table(&status(), now, false),
            [
                "POD      NODE     VIA          REVISION   STATE     SINCE   REASON",
                "web-1    node-a   volume/cfg   812        Current   3s",
                "web-10   node-a   volume/cfg   812        Behind    3s      no key",
            ]
        );
        assert!(table(&status(), now, true)[1].ends_with("1970-01-01T00:00:10.000000Z"));
    }

    #[test]
    fn a_summary_says_who_is_late_and_why() {
        let mut status = status();
        assert_eq!(
            summary(&status),
            "3 of 4 pods have revision 812, 12 ms after the edit; behind: web-10 (volume/cfg): no key"
        );
        assert!(
            progress(&status).starts_with("[###############-----] 3 of 4"),
            "{}",
            progress(&status)
        );
        (status.loaded_reporting, status.loaded_current) = (2, 1);
        (status.slowest_microseconds, status.pods_current) = (Some(1_278), 2);
        status.slowest_since = Some(Since::Heard);
        assert_eq!(
            summary(&status),
            "2 of 4 pods have revision 812, 1.2 ms after the node heard of it; 1 of 2 that report have loaded it; \
             behind: web-10 (volume/cfg) and 1 more: no key"
        );
        (status.pods, status.pods_current, status.rows) = (0, 0, Vec::new());
        assert_eq!(summary(&status), "no pod refers to configmap/app");
        assert!(progress(&status).starts_with("[####################]"));
    }
}
