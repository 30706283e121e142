//! Which files make up one log, and in which order.
//!
//! The order of the rotated files is that of their names, which are times, as the kubelet takes it. A file is known by
//! its inode while it is open, whatever it is called meanwhile.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// One file of a log, open, and how far it is read.
#[derive(Debug)]
pub(crate) struct Part {
    file: File,
    pub(crate) offset: u64,
    /// Files with greater names are newer than this one; it may be among them, when it was current.
    newest_older: Option<OsString>,
}

/// What happened to a file behind the read offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Growth {
    Nothing,
    Appended,
    Truncated,
}

/// The files of a log: the path of the current one, with the rotated beside it.
#[derive(Debug)]
pub(crate) struct LogFiles {
    current: PathBuf,
}

impl Part {
    /// Reads the next bytes; 0 at the end of what is written by now.
    pub(crate) fn read(&mut self, block: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read_at(block, self.offset)?;
        self.offset += read as u64;
        Ok(read)
    }

    pub(crate) fn growth(&self) -> io::Result<Growth> {
        let length = self.file.metadata()?.len();
        Ok(match length.cmp(&self.offset) {
            std::cmp::Ordering::Less => Growth::Truncated,
            std::cmp::Ordering::Equal => Growth::Nothing,
            std::cmp::Ordering::Greater => Growth::Appended,
        })
    }

    /// Whether its last line was written before this. Where nobody can say, it was not.
    pub(crate) fn is_over_before(&self, time: jiff::Timestamp) -> bool {
        let written = self.file.metadata().and_then(|file| file.modified());
        let written = written.map(jiff::Timestamp::try_from);
        matches!(written, Ok(Ok(written)) if written < time)
    }

    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

impl LogFiles {
    pub(crate) fn new(current: PathBuf) -> Self {
        Self { current }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.current
    }

    pub(crate) fn directory(&self) -> &Path {
        self.current.parent().unwrap_or(Path::new("."))
    }

    /// The newest file, and the names of the older ones, oldest first.
    ///
    /// Between the two halves of a rotation there is no current file: then the newest is the one just rotated, with
    /// nothing left to read of it.
    pub(crate) fn newest(&self) -> io::Result<Option<(Part, Vec<OsString>)>> {
        let current = open(&self.current)?;
        // Listed after it was opened: a name that is missing here is newer than the file.
        let mut older = self.rotated()?;
        if let Some(file) = current {
            let own = self.position(&older, &file)?;
            let newest_older = own.map_or_else(|| older.last(), |own| older.get(own)).cloned();
            older.truncate(own.unwrap_or(older.len()));
            return Ok(Some((
                Part {
                    file,
                    offset: 0,
                    newest_older,
                },
                older,
            )));
        }
        while let Some(name) = older.pop() {
            if let Some(mut part) = self.open_rotated(name)? {
                part.offset = part.file.metadata()?.len();
                return Ok(Some((part, older)));
            }
        }
        Ok(None)
    }

    /// The file that was begun when `part` was rotated away; for None the oldest there is. None when `part` is the newest.
    pub(crate) fn after(&self, part: Option<&Part>) -> io::Result<Option<Part>> {
        loop {
            let current = open(&self.current)?;
            if let (Some(part), Some(current)) = (part, &current)
                && is_same(&part.file.metadata()?, &current.metadata()?)
            {
                return Ok(None);
            }
            // Listed after the current one was opened: so nothing that lies between the two is overlooked.
            let mut newer = self.rotated()?;
            let newest = newer.last().cloned();
            if let Some(part) = part {
                newer.retain(|name| part.newest_older.as_ref().is_none_or(|older| name > older));
                if let Some(own) = self.position(&newer, &part.file)? {
                    newer.drain(..=own);
                }
            }
            let Some(name) = newer.into_iter().next() else {
                return Ok(current.map(|file| Part {
                    file,
                    offset: 0,
                    newest_older: newest,
                }));
            };
            // It may just have been removed as the oldest one; then the one after it is next.
            if let Some(next) = self.open_rotated(name)? {
                return Ok(Some(next));
            }
        }
    }

    /// Opens a rotated file at its start; None when it is gone.
    pub(crate) fn open_rotated(&self, name: OsString) -> io::Result<Option<Part>> {
        let file = open(&self.current.with_file_name(&name))?;
        Ok(file.map(|file| Part {
            file,
            offset: 0,
            newest_older: Some(name),
        }))
    }

    /// The names of the rotated files, oldest first.
    fn rotated(&self) -> io::Result<Vec<OsString>> {
        let entries = match fs::read_dir(self.directory()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry?.file_name();
            if self.is_rotated(&name) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Whether it is the current name and `.YYYYMMDD-hhmmss`.
    fn is_rotated(&self, name: &OsStr) -> bool {
        let current = self.current.file_name().unwrap_or_default();
        let Some(time) = name.as_bytes().strip_prefix(current.as_bytes()) else {
            return false;
        };
        time.len() == 16
            && time.iter().enumerate().all(|(index, byte)| match index {
                0 => *byte == b'.',
                9 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            })
    }

    fn position(&self, names: &[OsString], file: &File) -> io::Result<Option<usize>> {
        let file = file.metadata()?;
        for (index, name) in names.iter().enumerate() {
            match fs::symlink_metadata(self.current.with_file_name(name)) {
                Ok(other) if is_same(&file, &other) => return Ok(Some(index)),
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(None)
    }
}

/// None when there is no such file. A link is never followed, and nothing but a file is read.
fn open(path: &Path) -> io::Result<Option<File>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = match OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
    {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "the log is not a regular file",
        ));
    }
    Ok(Some(file))
}

fn is_same(one: &Metadata, other: &Metadata) -> bool {
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}
