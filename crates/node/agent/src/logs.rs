//! A container's log, as `kubectl logs` wants it.
//!
//! ```text
//!   0.log.<time> … 0.log ──pread, 64 KiB──▶ decoder ──bytes──▶ Stream ──▶ client
//!        ▲ tail: backwards                    │ stream, since, timestamps, limit_bytes
//!        └── inotify on the directory (follow): written, renamed, truncated
//! ```
//!
//! The stream is pulled: nothing is read before the client took what came before, so a slow reader costs one block of
//! memory and no thread. Files are touched on blocking threads only; while nothing is written, nothing runs.
//!
//! Beyond upstream (`pkg/kubelet/kuberuntime/logs`, `k8s.io/cri-client/pkg/logs`, Kubernetes 1.36), which reads the current
//! file only, a log is all that is kept of it: rotated files are read too, whether for all lines, the last ones or those
//! since a time. A line is what a reader sees as one, however many pieces the runtime wrote it in; and a slow follower
//! misses no rotated file that is still kept.

mod decoder;
mod files;
mod header;
mod reader;
mod tail;
#[cfg(test)]
mod testing;
mod watch;

use std::io;
use std::path::PathBuf;

use bytes::Bytes;
use futures_core::Stream;
use futures_util::stream;
use tokio::sync::watch::Receiver;

use reader::{Reader, Step};
use watch::Changes;

/// What of a log is wanted: the query of `pods/log`. The default is all that is kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Whether to wait for what is still to be written.
    pub follow: bool,
    /// Begin with this many last lines; rotated files that are still kept count. Of one stream, if `stream` is set.
    pub tail_lines: Option<u64>,
    /// Leave out lines that began earlier. Applied to the lines that `tail_lines` chose, as upstream does.
    pub since: Option<jiff::Timestamp>,
    /// Put the time of its first byte before each line: RFC 3339 in UTC, nine digits of a second, one space.
    pub timestamps: bool,
    /// End after exactly this many bytes, prefixes included.
    pub limit_bytes: Option<u64>,
    /// Only what was written to this stream; else both in the order of their writing.
    pub stream: Option<LogStream>,
}

/// One of a container's two output streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStream {
    /// Standard output; with a terminal, all output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Reads the log at `file`; the rotated files lie beside it. A file that does not exist is an empty log, or with
/// `follow` one to wait for.
///
/// With `follow` the stream ends when `ended` holds true, or its sender is gone, and all is read; so set it after the
/// last line was written. Lines that are damaged are left out. Poll it inside a tokio runtime. Dropping it frees
/// everything.
///
/// # Errors
///
/// The first error of the file system ends the stream; with `follow` also `EMFILE`, when the user's inotify instances
/// (`fs.inotify.max_user_instances`) are used up.
pub(crate) fn read(
    file: PathBuf,
    options: LogOptions,
    ended: Receiver<bool>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + 'static {
    let follow = options.follow;
    let session = Session {
        reader: Reader::new(file, options),
        follow,
        changes: None,
        ended,
    };
    stream::try_unfold(session, Session::next)
}

/// The asynchronous side: it waits, and lets a blocking thread read.
struct Session {
    reader: Reader,
    follow: bool,
    changes: Option<Changes>,
    ended: Receiver<bool>,
}

impl Session {
    async fn next(mut self) -> io::Result<Option<(Bytes, Self)>> {
        if self.follow && self.changes.is_none() {
            let (changes, watch) = watch::open()?;
            self.changes = Some(changes);
            self.reader.follow(watch);
        }
        loop {
            // Asked before the file is read: what was written before the end is then surely seen.
            let is_ended = *self.ended.borrow() || self.ended.has_changed().is_err();
            let step;
            (self, step) = self.step().await?;
            match step {
                Step::Bytes(bytes) if bytes.is_empty() => {}
                Step::Bytes(bytes) => return Ok(Some((bytes.into(), self))),
                Step::Idle if is_ended => return Ok(None),
                Step::Idle => self.change().await?,
                Step::Finished => return Ok(None),
            }
        }
    }

    async fn step(self) -> io::Result<(Self, Step)> {
        let Self {
            mut reader,
            follow,
            changes,
            ended,
        } = self;
        let (reader, step) = tokio::task::spawn_blocking(move || {
            let step = reader.step();
            (reader, step)
        })
        .await
        .map_err(io::Error::other)?;
        Ok((
            Self {
                reader,
                follow,
                changes,
                ended,
            },
            step?,
        ))
    }

    async fn change(&mut self) -> io::Result<()> {
        let changes = self.changes.as_ref().expect("only a follower is idle");
        tokio::select! {
            changed = changes.next() => changed,
            // An error says that the sender is gone; the next round sees that too.
            _ = self.ended.changed() => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
