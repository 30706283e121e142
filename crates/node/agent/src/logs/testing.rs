//! What the tests of this module share: a runtime's side of a log.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::LogStream;

/// Where the runtime cuts lines into pieces.
pub(crate) const LINE_BYTES_MAX: usize = 16 << 10;

/// The records of this content, as the runtime writes them.
pub(crate) fn records(time: &str, stream: LogStream, content: &[u8]) -> Vec<u8> {
    let stream = match stream {
        LogStream::Stdout => "stdout",
        LogStream::Stderr => "stderr",
    };
    let mut log = Vec::new();
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        let (body, is_ended) = line
            .strip_suffix(b"\n")
            .map_or((line, false), |body| (body, true));
        let mut pieces = body.chunks(LINE_BYTES_MAX).collect::<Vec<_>>();
        if pieces.is_empty() {
            pieces.push(b"");
        }
        for (index, piece) in pieces.iter().enumerate() {
            let tag = if is_ended && index + 1 == pieces.len() {
                "F"
            } else {
                "P"
            };
            write!(log, "{time} {stream} {tag} ").expect("a vector takes every write");
            log.extend_from_slice(piece);
            log.push(b'\n');
        }
    }
    log
}

/// A log that is written and rotated as the shim does it, with a clock that only counts.
pub(crate) struct Writer {
    path: PathBuf,
    file: File,
    rotations: u32,
}

impl Writer {
    pub(crate) fn create(path: &Path) -> Self {
        fs::create_dir_all(path.parent().expect("a directory")).expect("made");
        Self {
            path: path.to_owned(),
            file: Self::open(path),
            rotations: 0,
        }
    }

    /// Opens a log anew; its next rotated file gets this number.
    pub(crate) fn resume(path: &Path, rotations: u32) -> Self {
        Self {
            path: path.to_owned(),
            file: Self::open(path),
            rotations,
        }
    }

    fn open(path: &Path) -> File {
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .expect("opened")
    }

    pub(crate) fn append(&mut self, records: &[u8]) {
        self.file.write_all(records).expect("written");
    }

    /// One line on stdout.
    pub(crate) fn line(&mut self, text: &str) {
        let content = format!("{text}\n");
        self.append(&records(
            "2026-01-01T00:00:00Z",
            LogStream::Stdout,
            content.as_bytes(),
        ));
    }

    pub(crate) fn truncate(&mut self) {
        self.file.set_len(0).expect("truncated");
    }

    pub(crate) fn rotate(&mut self) {
        self.rename();
        self.file = Self::open(&self.path);
    }

    /// The first half of a rotation.
    pub(crate) fn rename(&mut self) {
        fs::rename(&self.path, self.rotated(self.rotations)).expect("renamed");
        self.rotations += 1;
    }

    /// The name of the rotated file with this number, from 0.
    pub(crate) fn rotated(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".20260101-{number:06}"));
        name.into()
    }
}
