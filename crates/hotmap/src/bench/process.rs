//! What the kernel says about the server's process.

use std::{fs, io, time::Duration};

use serde::Serialize;

/// The unit of `/proc/PID/stat` on every Linux: USER_HZ.
const TICKS_PER_SECOND: u64 = 100;

/// Memory of a process, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Memory {
    /// All pages in RAM, shared ones and the binary's included.
    pub(super) resident_bytes: u64,
    /// The part no file stands behind: what the process really costs.
    pub(super) anonymous_bytes: u64,
}

/// User and system time of all threads of a process so far, those that have ended included. Steps of 10 ms.
pub(super) fn cpu_time(pid: u32) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse_cpu_time(&stat).ok_or_else(|| malformed("stat"))
}

/// Memory of a process now.
pub(super) fn memory(pid: u32) -> io::Result<Memory> {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    parse_memory(&rollup).ok_or_else(|| malformed("smaps_rollup"))
}

fn malformed(file: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("cannot read {file} of the server's process"),
    )
}

fn parse_cpu_time(stat: &str) -> Option<Duration> {
    // The name in parentheses may hold anything, so count fields from behind it: utime and stime are 14 and 15.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_ascii_whitespace().skip(11).map(str::parse::<u64>);
    let ticks = times.next()?.ok()? + times.next()?.ok()?;
    Some(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

fn parse_memory(rollup: &str) -> Option<Memory> {
    let kib = |label: &str| {
        let line = rollup
            .lines()
            .find_map(|line| line.strip_prefix(label)?.strip_prefix(':'))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    Some(Memory {
        resident_bytes: kib("Rss")? * 1024,
        anonymous_bytes: kib("Anonymous")? * 1024,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_parentheses_do_not_shift_the_fields() {
        let stat = "77 (a) b (c) S 1 77 77 0 -1 4194560 2200 0 0 0 150 25 3 4 20 0 9 0 12 1000 200";
        assert_eq!(parse_cpu_time(stat), Some(Duration::from_millis(1750)));
        assert_eq!(parse_cpu_time("77 (a) S 1"), None);
    }

    #[test]
    fn memory_is_read_in_bytes() {
        let rollup = "00400000-7ffd [rollup]\nRss:               10240 kB\nPss:                9000 kB\nAnonymous:          2048 kB\n";
        assert_eq!(
            parse_memory(rollup),
            Some(Memory {
                resident_bytes: 10_485_760,
                anonymous_bytes: 2_097_152
            })
        );
        assert_eq!(parse_memory("Rss: many kB"), None);
    }

    #[test]
    fn the_own_process_has_both() {
        let pid = std::process::id();
        cpu_time(pid).expect("stat is readable");
        assert!(memory(pid).expect("smaps_rollup is readable").anonymous_bytes > 0);
    }
}
