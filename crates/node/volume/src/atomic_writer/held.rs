//! What the volume holds now: where `..data` points, and whether that revision is the payload.

use std::fs::File;
use std::io::{self, Read};

use rustix::fs::{FileType, Mode, OFlags, Stat};

use crate::atomic_writer::{DATA_LINK, Options, RevisionName};
use crate::directory::Directory;
use crate::payload::{Payload, PayloadFile};
use crate::plan::DataLink;

/// Reads `..data`.
///
/// # Errors
/// The system's; `InvalidInput` when it exists and is no link.
pub(crate) fn read_data_link(root: &Directory) -> io::Result<DataLink> {
    match root.read_link(DATA_LINK) {
        Ok(Some(target)) => Ok(RevisionName::parse(&target).map_or(DataLink::Foreign, DataLink::Revision)),
        Ok(None) => Ok(DataLink::Foreign),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(DataLink::Missing),
        Err(error) => Err(error),
    }
}

/// Whether a revision on disk is exactly this payload: files, bytes, modes, owners, and nothing else.
///
/// Whatever cannot be read is not the payload: writing it anew is the cure.
pub(super) fn holds(root: &Directory, revision: &RevisionName, payload: &Payload, options: &Options) -> bool {
    Comparison {
        payload,
        options,
        files_found: 0,
    }
    .holds(root, revision)
    .unwrap_or(false)
}

struct Comparison<'a> {
    payload: &'a Payload,
    options: &'a Options,
    files_found: usize,
}

impl Comparison<'_> {
    fn holds(mut self, root: &Directory, revision: &RevisionName) -> io::Result<bool> {
        let top = root.open_directory(revision.as_str())?;
        let mut directories = vec![(top, String::new())];
        while let Some((directory, prefix)) = directories.pop() {
            let is = rustix::fs::fstat(&directory)?;
            if !permits(self.options, &is, self.options.directory_bits()) {
                return Ok(false);
            }
            // One more than can be right is enough to see that it is wrong.
            for (name, _) in directory.names(self.payload.len() + 1)? {
                let Ok(name) = name.into_string() else {
                    return Ok(false);
                };
                let path = format!("{prefix}{name}");
                match FileType::from_raw_mode(directory.stat(&*name)?.st_mode) {
                    FileType::Directory if self.payload.has_directory(&path) => {
                        directories.push((directory.open_directory(&*name)?, format!("{path}/")));
                    }
                    FileType::RegularFile => {
                        let Some(file) = self.payload.get(&path) else {
                            return Ok(false);
                        };
                        if !self.file_is(&directory, &name, file)? {
                            return Ok(false);
                        }
                        self.files_found += 1;
                    }
                    _ => return Ok(false),
                }
            }
        }
        Ok(self.files_found == self.payload.len())
    }

    fn file_is(&self, directory: &Directory, name: &str, wanted: &PayloadFile) -> io::Result<bool> {
        // NONBLOCK: what was a file a moment ago may be a FIFO now.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let file = File::from(directory.open_beneath(name, flags, Mode::empty())?);
        let is = rustix::fs::fstat(&file)?;
        let size = u64::try_from(is.st_size).unwrap_or(u64::MAX);
        let options = self.options.owned_by(wanted.owner);
        if size != wanted.bytes.len() as u64 || !permits(&options, &is, options.file_bits(wanted.mode)) {
            return Ok(false);
        }
        let mut bytes = Vec::with_capacity(wanted.bytes.len() + 1);
        file.take(size + 1).read_to_end(&mut bytes)?;
        Ok(bytes == wanted.bytes)
    }
}

fn permits(options: &Options, is: &Stat, bits: u32) -> bool {
    is.st_mode & 0o7777 == bits && options.owns(is.st_uid, is.st_gid)
}
