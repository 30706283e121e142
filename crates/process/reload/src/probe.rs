//! `hotmap probe`: is what is on the disk what the process has loaded?
//!
//! Decides from what it is given; no clock, no file.

mod disk;
mod process;
mod state;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub(crate) use disk::{OnDisk, look};
pub(crate) use process::age_of;
pub(crate) use state::{StateSource, read};

use crate::state_file::{HELD_BACK, State};

/// How strict a probe is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Strictness {
    /// How long content may be on the disk without being loaded.
    pub(crate) within: Duration,
    /// How long ago content may have been written; any time if there is none.
    pub(crate) max_age: Option<Duration>,
    /// Whether a change that the check has refused counts as loaded: the process does well with what it had.
    pub(crate) allows_held_back: bool,
}

/// What the process has loaded.
#[derive(Debug)]
pub(crate) enum Loaded {
    /// Somebody says so.
    Told(State),
    /// It reads at its start, which was so long ago.
    AtStart(Duration),
}

/// What a probe says: one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// All of it is loaded, or may still be loading.
    Good(String),
    /// It is not.
    Bad(String),
}

impl Verdict {
    pub(crate) fn is_good(&self) -> bool {
        matches!(self, Self::Good(_))
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Good(line) | Self::Bad(line) => f.write_str(line),
        }
    }
}

/// How far a process's start may be after the swap that it has seen all the same: the kernel counts starts in ticks of
/// 10 ms, and gives links times that are as coarse.
const TICKS: Duration = Duration::from_millis(20);

/// What is to be said of these directories.
pub(crate) fn judge(volumes: &[OnDisk], loaded: &Loaded, strictness: &Strictness) -> Verdict {
    let mut notes = Vec::new();
    for volume in volumes {
        let path = volume.path.display();
        if let Some(max_age) = strictness.max_age.filter(|max_age| volume.age > *max_age) {
            return Verdict::Bad(format!(
                "{path} was written {} ago, more than {max_age:?}",
                seconds(volume.age)
            ));
        }
        let Some(why) = unloaded(volume, loaded) else {
            notes.push(format!("{path} is loaded"));
            continue;
        };
        if let Loaded::Told(state) = loaded
            && state.phase == HELD_BACK
            && strictness.allows_held_back
        {
            notes.push(format!("{path}: {why}, which is allowed"));
        } else if volume.age <= strictness.within {
            notes.push(format!(
                "{path}: {why}; since {} of {:?}",
                seconds(volume.age),
                strictness.within
            ));
        } else {
            return Verdict::Bad(format!("{path}: {why}; since {}", seconds(volume.age)));
        }
    }
    Verdict::Good(notes.join("; "))
}

/// Why what is in this directory is not loaded; none if it is.
fn unloaded(volume: &OnDisk, loaded: &Loaded) -> Option<String> {
    let state = match loaded {
        Loaded::AtStart(age) if *age <= volume.age + TICKS => return None,
        Loaded::AtStart(age) => {
            return Some(format!(
                "the process started {} ago and has read what was there before",
                seconds(*age)
            ));
        }
        Loaded::Told(state) => state,
    };
    let same = |path: &PathBuf| std::path::absolute(path).ok() == std::path::absolute(&volume.path).ok();
    let Some(told) = state.volumes.iter().find(|told| same(&told.path)) else {
        return Some("nobody watches it".to_owned());
    };
    // A projected volume has a name that everybody reads alike; that of plain files only its watcher knows.
    let current = volume
        .revision
        .as_ref()
        .or(told.revision.as_ref())
        .or(told.seen.as_ref());
    let Some(current) = current else {
        return Some("nothing has been seen of it".to_owned());
    };
    if told.loaded.as_ref() == Some(current) {
        return None;
    }
    let reason = state
        .reason
        .as_ref()
        .map(|reason| format!(" ({}: {reason})", state.phase))
        .unwrap_or_default();
    Some(match &told.loaded {
        Some(loaded) => format!("{current} is there, {loaded} is loaded{reason}"),
        None => format!("{current} is there, nothing is loaded{reason}"),
    })
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state_file::VolumeState;

    fn on_disk(revision: Option<&str>, age: u64) -> OnDisk {
        OnDisk {
            path: PathBuf::from("/etc/app"),
            revision: revision.map(str::to_owned),
            age: Duration::from_secs(age),
        }
    }

    fn told(phase: &str, seen: Option<&str>, loaded: Option<&str>) -> Loaded {
        let owned = |name: Option<&str>| name.map(str::to_owned);
        Loaded::Told(State {
            phase: phase.to_owned(),
            reason: (phase == HELD_BACK).then(|| "exit code 1".to_owned()),
            deaf: None,
            volumes: vec![VolumeState {
                path: PathBuf::from("/etc/app"),
                revision: None,
                seen: owned(seen),
                loaded: owned(loaded),
            }],
        })
    }

    #[test]
    fn what_is_told_is_compared_with_what_is_there() {
        let within = Strictness {
            within: Duration::from_secs(30),
            ..Strictness::default()
        };
        let held_back = Strictness {
            allows_held_back: true,
            ..Strictness::default()
        };
        for (there, age, loaded, strictness, good, says) in [
            (
                Some("..2"),
                5,
                told("loaded", Some("..2"), Some("..2")),
                &within,
                true,
                "is loaded",
            ),
            (
                Some("..2"),
                5,
                told("loading", Some("..2"), Some("..1")),
                &within,
                true,
                "since 5.0 s of 30s",
            ),
            (
                Some("..2"),
                31,
                told("loading", Some("..2"), Some("..1")),
                &within,
                false,
                "..2 is there, ..1 is loaded",
            ),
            (
                Some("..2"),
                31,
                told("loaded", Some("..1"), Some("..1")),
                &within,
                false,
                "..2 is there, ..1 is loaded",
            ),
            (
                Some("..2"),
                31,
                told("starting", None, None),
                &within,
                false,
                "nothing is loaded",
            ),
            (
                None,
                31,
                told("loaded", Some("abc"), Some("abc")),
                &within,
                true,
                "is loaded",
            ),
            (
                None,
                31,
                told("loading", Some("abc"), Some("abb")),
                &within,
                false,
                "abc is there",
            ),
            (
                Some("..2"),
                99,
                told(HELD_BACK, Some("..2"), Some("..1")),
                &within,
                false,
                "held-back: exit code 1",
            ),
            (
                Some("..2"),
                99,
                told(HELD_BACK, Some("..2"), Some("..1")),
                &held_back,
                true,
                "allowed",
            ),
        ] {
            let verdict = judge(&[on_disk(there, age)], &loaded, strictness);
            assert_eq!(verdict.is_good(), good, "{verdict}");
            assert!(verdict.to_string().contains(says), "{verdict}");
        }
        let other = OnDisk {
            path: PathBuf::from("/etc/other"),
            ..on_disk(Some("..2"), 99)
        };
        let verdict = judge(&[other], &told("loaded", Some("..2"), Some("..2")), &within);
        assert_eq!(
            verdict,
            Verdict::Bad("/etc/other: nobody watches it; since 99.0 s".to_owned())
        );
    }

    #[test]
    fn a_process_has_loaded_what_was_there_when_it_started() {
        let seconds = Duration::from_secs;
        for (process, volume, within, good) in [
            (5, 10, 0, true),
            (10, 10, 0, true),
            (11, 10, 0, false),
            (11, 10, 30, true),
            (99, 31, 30, false),
        ] {
            let strictness = Strictness {
                within: seconds(within),
                ..Strictness::default()
            };
            let verdict = judge(
                &[on_disk(Some("..2"), volume)],
                &Loaded::AtStart(seconds(process)),
                &strictness,
            );
            assert_eq!(verdict.is_good(), good, "{process} {volume}: {verdict}");
        }
    }

    #[test]
    fn content_may_be_too_old() {
        let strictness = Strictness {
            max_age: Some(Duration::from_secs(60)),
            ..Strictness::default()
        };
        for (age, good) in [(60, true), (61, false)] {
            let loaded = told("loaded", Some("..2"), Some("..2"));
            assert_eq!(
                judge(&[on_disk(Some("..2"), age)], &loaded, &strictness).is_good(),
                good
            );
        }
    }
}
