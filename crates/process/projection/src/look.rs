//! One look at a watched path: where it leads, and fingerprints of what is there.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::buffer::spare_capacity;
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;

use crate::annotations::{ANNOTATIONS_BYTES_MAX, parts_that_count};
use crate::content::{Content, Fingerprint, Identity};
use crate::digest::{Digest, Digester};
use crate::ground::Role;
use crate::layout::{DATA_LINK, is_content_name};
use crate::limits::Limits;
use crate::revision::Revision;
use crate::way::{self, Destination};

/// A file that was changed this shortly before it was read may be changed again without another time: file systems count
/// in ticks (4 ms; FAT: 2 s). Such a file is read again at the next look.
const TICK_MAX: Duration = Duration::from_secs(2);

/// A writer that overtakes a look this often is no writer.
const LOOKS_MAX: u32 = 100;

/// Bytes that are read at once from files that are too large to be held.
const CHUNK_BYTES: usize = 32 * 1024;

/// Room for some hundred names per system call.
const ENTRIES_BYTES: usize = 8 * 1024;

/// Who goes along with a look.
pub(crate) trait Surroundings {
    /// Before `path` is looked at.
    fn watch(&mut self, path: &Path, role: Role);

    /// Content lies in this directory. False if nobody can be sure there that the same times mean the same content.
    fn trusts(&mut self, directory: &Path) -> bool;

    /// A part of the content cannot be read.
    fn cannot_read(&mut self, path: &Path, error: &io::Error);
}

/// There is nothing to see.
#[derive(Debug)]
pub(crate) enum LookError {
    /// The path leads nowhere.
    Missing { missing: PathBuf, watched: PathBuf },
    /// It held a projected volume, and holds nothing now.
    Unprojected { directory: PathBuf },
    /// A limit.
    TooMuch(String),
    /// The system refuses.
    Unseen { path: PathBuf, source: io::Error },
    /// It changed meanwhile.
    Restless,
}

impl LookError {
    pub(crate) fn unseen(path: &Path, source: io::Error) -> Self {
        Self::Unseen {
            path: path.to_owned(),
            source,
        }
    }
}

/// What a look has seen.
#[derive(Debug)]
pub(crate) struct Seen {
    pub(crate) content: Content,
    /// If all of the content is files in one directory that `..data` names directly: where that link is, without links.
    /// Then nothing but the link has to be followed when it is swapped ([`look_behind_swap`]).
    pub(crate) flat: Option<PathBuf>,
}

/// Looks at `path`, which is absolute. Files of which `known` says that they are the same are not read.
pub(crate) fn look(
    path: &Path,
    limits: &Limits,
    known: Option<&Content>,
    digester: &Digester,
    surroundings: &mut dyn Surroundings,
) -> Result<Seen, LookError> {
    for _ in 0..LOOKS_MAX {
        let mut look = Look::new(limits, known, digester, &mut *surroundings);
        match look.path(path) {
            Ok(is_projected) => return Ok(look.seen(is_projected)),
            Err(LookError::Restless) => {}
            Err(error) => return Err(error),
        }
    }
    Err(LookError::unseen(
        path,
        io::Error::other("it is replaced faster than it can be read"),
    ))
}

/// Looks at what the link `..data` in `directory` names now, when nothing but this link has changed since a look that
/// has found all content to be [flat](Seen::flat). `None`: there is more to it, or it changes meanwhile, and the whole
/// way has to be looked at.
pub(crate) fn look_behind_swap(
    directory: &Path,
    limits: &Limits,
    known: Option<&Content>,
    digester: &Digester,
    surroundings: &mut dyn Surroundings,
) -> Option<Seen> {
    let mut look = Look::new(limits, known, digester, surroundings);
    look.flat = Some(directory.to_owned());
    let opened = look.open(directory, OFlags::empty()).ok()?;
    let target = read_data_link(&opened.directory).ok()??;
    if !is_name(&target) {
        return None;
    }
    look.found_revision(Revision::new(&*target));
    let revision = directory.join(&target);
    look.surroundings.watch(&revision, Role::Revision);
    let taken = look
        .open(&revision, OFlags::NOFOLLOW)
        .and_then(|revision| look.entries(revision, "", Role::Revision));
    let is_whole = taken.is_ok() && look.flat.is_some() && still_names(&opened, &target);
    is_whole.then(|| look.seen(true))
}

/// Whether a link's text is one name in its own directory.
fn is_name(target: &str) -> bool {
    !target.contains('/') && !matches!(target, "" | "." | "..")
}

/// The digest of a file's bytes, those of files of annotations without what hotmap itself writes there.
pub(crate) fn digest_of(bytes: &[u8], digester: &Digester) -> Digest {
    let mut digester = digester.clone();
    if bytes.len() as u64 > ANNOTATIONS_BYTES_MAX {
        digester.update(bytes);
    } else {
        // An end of line after each line that counts, and after a whole file: to get or to lose lines that do not count
        // makes no difference. An empty file is one without such lines.
        for part in parts_that_count(bytes).filter(|part| !part.is_empty()) {
            digester.update(part);
            digester.update(b"\n");
        }
    }
    digester.finish()
}

struct Look<'a> {
    limits: &'a Limits,
    known: Option<&'a Content>,
    digester: &'a Digester,
    surroundings: &'a mut dyn Surroundings,
    files: Vec<(Arc<str>, Fingerprint)>,
    bytes: u64,
    /// The directories that this one is in: a link back to one of them leads round for ever.
    directories: Vec<(u64, u64)>,
    directories_seen: usize,
    revision: Option<Revision>,
    /// Whether files may be those that were known: not in a revision of another name, whose files are all new.
    may_be_known: bool,
    /// See [`Seen::flat`]; `None` once something else was come upon.
    flat: Option<PathBuf>,
    /// By the clock of the file systems.
    began: Duration,
    buffer: Vec<u8>,
}

/// An open directory and what a look at its entries needs.
struct Opened {
    directory: OwnedFd,
    path: PathBuf,
    is_trusted: bool,
}

impl<'a> Look<'a> {
    fn new(
        limits: &'a Limits,
        known: Option<&'a Content>,
        digester: &'a Digester,
        surroundings: &'a mut dyn Surroundings,
    ) -> Self {
        Self {
            limits,
            known,
            digester,
            surroundings,
            files: Vec::with_capacity(known.map_or(0, |known| known.keys().len())),
            bytes: 0,
            directories: Vec::new(),
            directories_seen: 0,
            revision: None,
            may_be_known: true,
            flat: None,
            began: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            buffer: Vec::new(),
        }
    }

    fn seen(self, is_projected: bool) -> Seen {
        Seen {
            content: Content::new(self.files, self.digester.clone(), self.revision, is_projected),
            flat: self.flat,
        }
    }

    fn found_revision(&mut self, revision: Revision) {
        self.may_be_known = self.known.is_none_or(|known| known.revision == revision);
        self.revision = Some(revision);
    }

    /// True if the content lies behind a link that is swapped.
    fn path(&mut self, path: &Path) -> Result<bool, LookError> {
        let found = way::walk(Path::new("/"), path, self.surroundings)?;
        self.revision = found.revision.clone();
        if found.is_directory() {
            return self.directory(&found.path, "", true);
        }
        if found.kind != FileType::RegularFile {
            let what = io::Error::new(
                io::ErrorKind::InvalidInput,
                "it is neither a file nor a directory",
            );
            return Err(LookError::unseen(&found.path, what));
        }
        let name = path.file_name().unwrap_or_default();
        let is_projected = found.revision.is_some();
        self.linked_file(&found, &key_of(name.as_bytes()))?;
        if self.files.is_empty() {
            return Err(LookError::Restless);
        }
        Ok(is_projected)
    }

    /// Takes in what is in a directory without links in its path. True if its content is a projection.
    fn directory(&mut self, path: &Path, prefix: &str, is_top: bool) -> Result<bool, LookError> {
        self.surroundings.watch(path, Role::Directory);
        let opened = self.open(path, OFlags::empty())?;
        match read_data_link(&opened.directory) {
            Ok(Some(target)) => {
                self.surroundings.watch(path, Role::Projected);
                self.projection(path, &opened, &target, prefix, is_top)?;
                Ok(true)
            }
            Ok(None) => {
                self.entries(opened, prefix, Role::Directory)?;
                let had_revision = || self.known.is_some_and(|known| known.is_projected);
                if is_top && self.revision.is_none() && self.files.is_empty() && had_revision() {
                    return Err(LookError::Unprojected {
                        directory: path.to_owned(),
                    });
                }
                Ok(is_top && self.revision.is_some())
            }
            Err(errno) => Err(LookError::unseen(&path.join(DATA_LINK), errno.into())),
        }
    }

    /// Takes in what `..data` names.
    fn projection(
        &mut self,
        path: &Path,
        opened: &Opened,
        target: &str,
        prefix: &str,
        is_top: bool,
    ) -> Result<(), LookError> {
        let revision = match way::walk(path, Path::new(target), self.surroundings) {
            Ok(found) if found.is_directory() => found.path,
            Ok(_) => return Err(LookError::unseen(&path.join(DATA_LINK), Errno::NOTDIR.into())),
            // Overtaken, unless the link has led nowhere from the start.
            Err(LookError::Missing { .. }) if !still_names(opened, target) => {
                return Err(LookError::Restless);
            }
            Err(error) => return Err(error),
        };
        if is_top {
            self.found_revision(Revision::new(target));
            self.flat = is_name(target).then(|| path.to_owned());
        }
        self.surroundings.watch(&revision, Role::Revision);
        let taken = self
            .open(&revision, OFlags::empty())
            .and_then(|revision| self.entries(revision, prefix, Role::Revision));
        // Files that went away while they were read are no change of the content, but the end of this revision.
        if still_names(opened, target) {
            taken
        } else {
            Err(LookError::Restless)
        }
    }

    fn open(&mut self, path: &Path, more: OFlags) -> Result<Opened, LookError> {
        self.directories_seen += 1;
        if self.directories_seen > self.limits.directories {
            let limit = format!("there are more than {} directories", self.limits.directories);
            return Err(LookError::TooMuch(limit));
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match rustix::fs::openat(CWD, path, flags | more, Mode::empty()) {
            Ok(directory) => Ok(Opened {
                directory,
                path: path.to_owned(),
                is_trusted: self.surroundings.trusts(path),
            }),
            Err(Errno::NOENT | Errno::NOTDIR) => Err(LookError::Restless),
            Err(errno) => Err(LookError::unseen(path, errno.into())),
        }
    }

    fn entries(&mut self, opened: Opened, prefix: &str, role: Role) -> Result<(), LookError> {
        let failed = |errno: Errno| LookError::unseen(&opened.path, errno.into());
        let stat = rustix::fs::fstat(&opened.directory).map_err(failed)?;
        let id = (stat.st_dev, stat.st_ino);
        if self.directories.contains(&id) {
            return Ok(());
        }
        if self.directories.len() > self.limits.depth {
            return Err(LookError::TooMuch(format!(
                "directories are more than {} deep",
                self.limits.depth
            )));
        }
        self.directories.push(id);
        let mut room = [MaybeUninit::uninit(); ENTRIES_BYTES];
        let mut entries = RawDir::new(&opened.directory, &mut room);
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            let is_content = match role {
                Role::Revision => name != b"." && name != b"..",
                _ => is_content_name(name),
            };
            if is_content {
                self.entry(&opened, name, entry.file_type(), prefix, &role)?;
            }
        }
        self.directories.pop();
        Ok(())
    }

    fn entry(
        &mut self,
        opened: &Opened,
        name: &[u8],
        mut kind: FileType,
        prefix: &str,
        role: &Role,
    ) -> Result<(), LookError> {
        let os_name = std::ffi::OsStr::from_bytes(name);
        let mut key = String::with_capacity(prefix.len() + name.len());
        key.push_str(prefix);
        key.push_str(&key_of(name));
        if kind == FileType::Unknown {
            match rustix::fs::statat(&opened.directory, os_name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => kind = FileType::from_raw_mode(stat.st_mode),
                Err(_) => return Ok(()),
            }
        }
        match kind {
            FileType::RegularFile => self.file(opened, os_name, &key),
            FileType::Directory => {
                self.flat = None;
                key.push('/');
                self.inner(&opened.path.join(os_name), &key, role)
            }
            FileType::Symlink => {
                self.flat = None;
                match way::walk(&opened.path, Path::new(os_name), self.surroundings) {
                    Ok(found) if found.is_directory() => {
                        key.push('/');
                        self.inner(&found.path, &key, &Role::Directory)
                    }
                    Ok(found) if found.kind == FileType::RegularFile => self.linked_file(&found, &key),
                    // A device, a socket, a FIFO: no content.
                    Ok(_) => Ok(()),
                    // A link that leads nowhere is no content; where it would lead is watched.
                    Err(LookError::Missing { .. }) => Ok(()),
                    Err(LookError::Unseen { path, source }) => {
                        self.surroundings.cannot_read(&path, &source);
                        Ok(())
                    }
                    Err(error) => Err(error),
                }
            }
            _ => Ok(()),
        }
    }

    /// A directory in the content. One that cannot be read is named, and the rest is taken in.
    fn inner(&mut self, path: &Path, prefix: &str, role: &Role) -> Result<(), LookError> {
        let taken = match role {
            Role::Revision => {
                self.surroundings.watch(path, Role::Revision);
                self.open(path, OFlags::empty())
                    .and_then(|opened| self.entries(opened, prefix, Role::Revision))
            }
            _ => self.directory(path, prefix, false).map(drop),
        };
        match taken {
            Err(LookError::Unseen { path, source }) => {
                self.surroundings.cannot_read(&path, &source);
                Ok(())
            }
            // It went away, and its event has come or is on its way.
            Err(LookError::Restless) if *role == Role::Directory && !path.exists() => Ok(()),
            taken => taken,
        }
    }

    fn linked_file(&mut self, found: &Destination, key: &str) -> Result<(), LookError> {
        let (Some(directory), Some(name)) = (found.path.parent(), found.path.file_name()) else {
            return Ok(());
        };
        let opened = self.open(directory, OFlags::empty())?;
        // Directories of links are not content themselves.
        self.directories_seen -= 1;
        self.file(&opened, name, key)
    }

    fn file(&mut self, opened: &Opened, name: &std::ffi::OsStr, key: &str) -> Result<(), LookError> {
        if self.files.len() >= self.limits.files {
            return Err(LookError::TooMuch(format!(
                "there are more than {} files",
                self.limits.files
            )));
        }
        let known = self.known.and_then(|known| known.get(key));
        // The one string that all looks share.
        let key = known.map_or_else(|| Arc::from(key), |(key, _)| key.clone());
        if let Some((_, known)) = known
            && self.may_be_known
            && known.identity != Identity::UNSURE
            && opened.is_trusted
            && let Ok(stat) = rustix::fs::statat(&opened.directory, name, AtFlags::SYMLINK_NOFOLLOW)
            && Identity::of(&stat) == known.identity
        {
            self.count(&stat)?;
            self.files.push((key, known));
            return Ok(());
        }
        // NONBLOCK: it may have become a FIFO.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fingerprint = match rustix::fs::openat(&opened.directory, name, flags, Mode::empty()) {
            Ok(file) => self.fingerprint(&file, opened.is_trusted)?,
            // It went away, or became a link: both are events.
            Err(Errno::NOENT | Errno::LOOP | Errno::NXIO | Errno::STALE) => None,
            Err(errno) => {
                let path = opened.path.join(name);
                self.surroundings.cannot_read(&path, &errno.into());
                self.unread(opened, name)
            }
        };
        self.files
            .extend(fingerprint.map(|fingerprint| (key, fingerprint)));
        Ok(())
    }

    /// `None`: not a file, or a file that cannot be read to its end any more.
    fn fingerprint(&mut self, file: &OwnedFd, is_trusted: bool) -> Result<Option<Fingerprint>, LookError> {
        let Ok(stat) = rustix::fs::fstat(file) else {
            return Ok(None);
        };
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Ok(None);
        }
        self.count(&stat)?;
        let size = usize::try_from(stat.st_size).unwrap_or(usize::MAX);
        let digest = if size as u64 <= ANNOTATIONS_BYTES_MAX {
            self.buffer.clear();
            // One byte more than there should be: a read that does not get it has come to the end.
            self.buffer.reserve(size + 1);
            loop {
                let asked = self.buffer.capacity() - self.buffer.len();
                match rustix::io::read(file, spare_capacity(&mut self.buffer)) {
                    Ok(0) => break,
                    Ok(got) if got < asked && self.buffer.len() >= size => break,
                    Ok(_) if self.buffer.len() as u64 > ANNOTATIONS_BYTES_MAX => break,
                    Ok(_) => self.buffer.reserve(CHUNK_BYTES),
                    Err(Errno::INTR) => {}
                    Err(_) => return Ok(None),
                }
            }
            digest_of(&self.buffer, self.digester)
        } else {
            let mut digester = self.digester.clone();
            self.buffer.resize(CHUNK_BYTES, 0);
            loop {
                match rustix::io::read(file, &mut self.buffer[..CHUNK_BYTES]) {
                    Ok(0) => break,
                    Ok(length) => digester.update(&self.buffer[..length]),
                    Err(Errno::INTR) => {}
                    Err(_) => return Ok(None),
                }
            }
            digester.finish()
        };
        let changed = Duration::new(
            u64::try_from(stat.st_ctime).unwrap_or(0),
            u32::try_from(stat.st_ctime_nsec).unwrap_or(0),
        );
        let identity = if is_trusted && changed + TICK_MAX <= self.began {
            Identity::of(&stat)
        } else {
            Identity::UNSURE
        };
        Ok(Some(Fingerprint { digest, identity }))
    }

    /// What stands for a file that cannot be read: the time of its last change, of whatever kind.
    fn unread(&self, opened: &Opened, name: &std::ffi::OsStr) -> Option<Fingerprint> {
        let stat = rustix::fs::statat(&opened.directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let mut digester = self.digester.clone();
        digester.update_field(b"unread");
        digester.update(format!("{:?}", Identity::of(&stat)).as_bytes());
        Some(Fingerprint {
            digest: digester.finish(),
            identity: Identity::UNSURE,
        })
    }

    fn count(&mut self, stat: &Stat) -> Result<(), LookError> {
        self.bytes = self
            .bytes
            .saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
        if self.bytes > self.limits.bytes {
            return Err(LookError::TooMuch(format!(
                "there are more than {} bytes",
                self.limits.bytes
            )));
        }
        Ok(())
    }
}

/// The target of `..data` in a directory; `None` if there is no such link.
pub(crate) fn read_data_link(directory: &OwnedFd) -> Result<Option<String>, Errno> {
    match rustix::fs::readlinkat(directory, DATA_LINK, Vec::new()) {
        Ok(target) => Ok(Some(String::from_utf8_lossy(target.as_bytes()).into_owned())),
        Err(Errno::NOENT | Errno::INVAL) => Ok(None),
        Err(errno) => Err(errno),
    }
}

fn still_names(opened: &Opened, target: &str) -> bool {
    read_data_link(&opened.directory).is_ok_and(|now| now.as_deref() == Some(target))
}

/// A file's name as a key: what is not UTF-8 in it as `\xff`.
fn key_of(name: &[u8]) -> String {
    let mut key = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        key.push_str(chunk.valid());
        for byte in chunk.invalid() {
            key.push_str(&format!("\\x{byte:02x}"));
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// Notes where it was sent.
    #[derive(Default)]
    struct Noting(Vec<(PathBuf, Role)>);

    impl Surroundings for Noting {
        fn watch(&mut self, path: &Path, role: Role) {
            self.0.push((path.to_owned(), role));
        }

        fn trusts(&mut self, _: &Path) -> bool {
            true
        }

        fn cannot_read(&mut self, path: &Path, error: &io::Error) {
            panic!("{}: {error}", path.display());
        }
    }

    fn whole(volume: &Path) -> Seen {
        let digester = Digester::of_this_process().unwrap();
        look(
            volume,
            &Limits::default(),
            None,
            &digester,
            &mut Noting::default(),
        )
        .unwrap()
    }

    /// What is seen behind a swap, and where the look went.
    fn behind_swap(volume: &Path, known: &Seen) -> (Option<Seen>, Vec<(PathBuf, Role)>) {
        let digester = Digester::of_this_process().unwrap();
        let mut noting = Noting::default();
        let flat = known.flat.as_ref().expect("it was flat");
        assert_eq!(flat, volume);
        let known = Some(&known.content);
        let seen = look_behind_swap(flat, &Limits::default(), known, &digester, &mut noting);
        (seen, noting.0)
    }

    fn revision(volume: &Path, name: &str, files: &[(&str, &str)]) {
        fs::create_dir(volume.join(name)).unwrap();
        for (key, content) in files {
            fs::write(volume.join(name).join(key), content).unwrap();
        }
        point(volume, name);
    }

    fn point(volume: &Path, target: &str) {
        symlink(target, volume.join("..new")).unwrap();
        fs::rename(volume.join("..new"), volume.join("..data")).unwrap();
    }

    #[test]
    fn behind_a_swap_only_the_revision_is_visited_and_all_of_it_is_seen() {
        let temporary = tempfile::tempdir().unwrap();
        let volume = temporary.path().canonicalize().unwrap();
        revision(&volume, "..1", &[("a", "1"), ("b", "1")]);
        let first = whole(&volume);
        revision(&volume, "..2", &[("a", "2"), ("c", "1")]);
        let (seen, visited) = behind_swap(&volume, &first);
        let (seen, again) = (seen.unwrap(), whole(&volume));
        assert_eq!(visited, [(volume.join("..2"), Role::Revision)]);
        assert!(seen.content.is_same(&again.content) && seen.content.is_projected);
        assert_eq!(seen.content.revision, again.content.revision);
        assert_eq!((&seen.flat, &again.flat), (&Some(volume.clone()), &Some(volume)));
    }

    #[test]
    fn what_is_not_flat_any_more_wants_the_whole_way() {
        let temporary = tempfile::tempdir().unwrap();
        let volume = temporary.path().canonicalize().unwrap();
        revision(&volume, "..1", &[("a", "1")]);
        let first = whole(&volume);
        let deep = volume.join("..deep/inner");
        fs::create_dir_all(&deep).unwrap();
        let linked = volume.join("..linked");
        fs::create_dir(&linked).unwrap();
        symlink("../..1/a", linked.join("a")).unwrap();
        symlink("..1", volume.join("..alias")).unwrap();
        for target in ["..deep", "..linked", "..alias", "..deep/inner", "..nowhere", ".."] {
            point(&volume, target);
            assert!(behind_swap(&volume, &first).0.is_none(), "{target}");
        }
        for target in ["..deep", "..linked", "..deep/inner"] {
            point(&volume, target);
            assert_eq!(whole(&volume).flat, None, "{target}");
        }
        fs::remove_file(volume.join("..data")).unwrap();
        assert!(behind_swap(&volume, &first).0.is_none());
        point(&volume, "..1");
        assert!(behind_swap(&volume, &first).0.is_some());
    }
}
