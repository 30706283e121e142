//! Whether a watcher hears everything, and what to do when it does not.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// How well a watched path is heard. Shown by `Display` in one line for a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Health {
    /// Why changes may come late or not at all; empty when the next change will be told at once.
    pub deafness: Vec<Deafness>,
}

/// Why a change may come late or not at all. The message says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Deafness {
    /// The path leads nowhere. Its appearance is heard.
    #[error("{} is not there; waiting for it to appear in {}", .missing.display(), .watched.display())]
    Missing {
        /// The first part of the path that does not exist, links resolved.
        missing: PathBuf,
        /// The directory that is watched for it.
        watched: PathBuf,
    },
    /// A projected volume has lost its `..data`: it is being taken down, or somebody has removed it.
    #[error("{} has lost its link ..data; waiting for it to come back", .directory.display())]
    Unprojected {
        /// The directory.
        directory: PathBuf,
    },
    /// There is no inotify instance left for this user.
    #[error(
        "no event is heard: this user has used up the inotify instances or this process its file descriptors ({message}); \
         looking every {period:?} instead; raise fs.inotify.max_user_instances (sysctl -w fs.inotify.max_user_instances=1024) \
         or the limit of open files"
    )]
    NoInstance {
        /// The system's words.
        message: String,
        /// The time between two looks.
        period: Duration,
    },
    /// There is no inotify watch left for this user.
    #[error(
        "events of {} are not heard: this user has used up the inotify watches; looking every {period:?} instead; raise \
         fs.inotify.max_user_watches (sysctl -w fs.inotify.max_user_watches=524288)", .directory.display()
    )]
    NoWatch {
        /// What could not be watched.
        directory: PathBuf,
        /// The time between two looks.
        period: Duration,
    },
    /// The system refuses to watch it.
    #[error("events of {} are not heard: {message}; looking every {period:?} instead", .path.display())]
    Refused {
        /// What could not be watched.
        path: PathBuf,
        /// The system's words.
        message: String,
        /// The time between two looks.
        period: Duration,
    },
    /// A file system that does not tell of every change.
    #[error(
        "{} is on {file_system}, which does not tell of changes that are made elsewhere or beneath it; looking every \
         {period:?} as well", .directory.display()
    )]
    NoEvents {
        /// What lies on it.
        directory: PathBuf,
        /// Its name.
        file_system: &'static str,
        /// The time between two looks.
        period: Duration,
    },
    /// More than a watcher takes on.
    #[error("changes of {} are not seen: {limit}; watch a smaller directory", .path.display())]
    TooMuch {
        /// The watched path.
        path: PathBuf,
        /// Which limit, with its number.
        limit: String,
    },
    /// A file or directory that this process may not read.
    #[error("cannot read {}: {message}; a change of it is told by its times alone", .path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// The system's words.
        message: String,
    },
    /// The watched path cannot be looked at.
    #[error("cannot look at {}: {message}; looking again every {period:?}", .path.display())]
    Unseen {
        /// The watched path, or the part of it that fails.
        path: PathBuf,
        /// The system's words.
        message: String,
        /// The time between two looks.
        period: Duration,
    },
}

impl Deafness {
    /// Whether only looking helps against it. What appears is heard, and what cannot be read is heard being written.
    pub(crate) fn is_polled(&self) -> bool {
        !matches!(
            self,
            Self::Missing { .. } | Self::Unprojected { .. } | Self::Unreadable { .. }
        )
    }
}

impl Health {
    /// Whether a change may come late or not at all.
    pub fn is_deaf(&self) -> bool {
        !self.deafness.is_empty()
    }
}

impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.deafness.is_empty() {
            return f.write_str("every change is heard");
        }
        for (index, deafness) in self.deafness.iter().enumerate() {
            let separator = if index == 0 { "" } else { "; " };
            write!(f, "{separator}{deafness}")?;
        }
        Ok(())
    }
}
