//! How long a process has been running.

use std::fs;
use std::io;
use std::time::Duration;

/// Ticks a second in `/proc`: USER_HZ, which is 100 on every architecture that Linux has today.
const TICKS_PER_SECOND: u64 = 100;

/// The age of a process that started this many ticks after the boot (field 22 of its `stat`).
///
/// # Errors
/// `/proc/uptime` cannot be read.
pub(crate) fn age_of(start_ticks: u64) -> io::Result<Duration> {
    // Of the same clock as start times: it goes on while the machine sleeps, and is a time namespace's own.
    let uptime = fs::read_to_string("/proc/uptime")?;
    let seconds = uptime.split(' ').next().and_then(|seconds| seconds.parse().ok());
    let uptime = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let uptime =
        uptime.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no number in /proc/uptime"))?;
    let started = Duration::from_millis(start_ticks.saturating_mul(1_000 / TICKS_PER_SECOND));
    Ok(uptime.saturating_sub(started))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_process_is_as_old_as_the_boot_and_none_is_older() {
        let first = age_of(0).expect("it is Linux");
        assert!(first > Duration::ZERO);
        assert_eq!(age_of(u64::MAX).expect("it is Linux"), Duration::ZERO);
    }
}
