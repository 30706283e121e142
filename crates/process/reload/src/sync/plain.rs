//! The plain layout: files in place of links, for programs that dislike links.
//!
//! Each file is replaced by a rename of its own, so a reader sees one whole file, but may see two files of two
//! revisions. Nothing is touched that was not written here: `..hotmap-sync` lists what was.

use std::fs::File;
use std::io::{self, Read, Write};

use hotmap_projection::Revision;
use hotmap_volume::{Directory, Ownership, Payload, PayloadFile, PayloadPath};
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Uid};
use rustix::io::Errno;

use crate::sync::destination::{PlaceError, Placed};
use crate::sync::state::State;

/// What becomes a file; exists only while it is written, or after a crash there.
const STAGED: &str = "..hotmap-sync-new";

/// Fills a directory file by file.
pub(crate) struct PlainWriter {
    root: Directory,
    owner: Option<Ownership>,
}

/// A step that failed.
struct Failed {
    what: String,
    source: io::Error,
}

trait During<T> {
    fn during(self, what: impl FnOnce() -> String) -> Result<T, Failed>;
}

impl<T, E: Into<io::Error>> During<T> for Result<T, E> {
    fn during(self, what: impl FnOnce() -> String) -> Result<T, Failed> {
        self.map_err(|error| Failed {
            what: what(),
            source: error.into(),
        })
    }
}

impl PlainWriter {
    pub(crate) fn new(root: Directory, owner: Option<Ownership>) -> Self {
        Self { root, owner }
    }

    /// Makes `payload` the content of the directory, as far as it is ours. Calling it again finishes what failed.
    pub(crate) fn place(&self, payload: &Payload, state: &mut State) -> Result<Placed, PlaceError> {
        let mut is_published = false;
        self.write(payload, state, &mut is_published)
            .map_err(|failed| PlaceError {
                message: format!("{}: {}", failed.what, failed.source),
                is_published,
            })
    }

    fn write(&self, payload: &Payload, state: &mut State, is_new: &mut bool) -> Result<Placed, Failed> {
        let mut shadowed = Vec::new();
        let mut due = Vec::new();
        for (path, file) in payload.iter() {
            match self.look(path, file)? {
                Found::Same if state.owns(path) => {}
                Found::Nothing => due.push((path, file)),
                Found::Other if state.owns(path) => due.push((path, file)),
                Found::Same | Found::Other | Found::InTheWay => shadowed.push(path.to_string()),
            }
        }
        let gone: Vec<PayloadPath> = state
            .files
            .iter()
            .filter(|path| payload.get(path).is_none())
            .filter_map(|path| path.parse().ok())
            .collect();
        // What will be ours is known to be ours before it is there: a crash in between leaves no file of nobody's.
        let mut is_other_state = false;
        for (path, _) in &due {
            is_other_state |= state.files.insert(path.to_string());
        }
        if is_other_state {
            state
                .save(&self.root)
                .during(|| "cannot write the list of files".to_owned())?;
        }
        for (path, file) in due {
            self.make_parents(path, state)?;
            self.replace(path, file)?;
            *is_new = true;
        }
        let mut leftovers = Vec::new();
        let is_any_gone = !gone.is_empty();
        for path in gone {
            match self.remove(&path) {
                Ok(()) => {
                    *is_new = true;
                    state.files.remove(path.as_str());
                }
                Err(error) => leftovers.push(format!("{path}: {error}")),
            }
        }
        if is_any_gone {
            self.remove_empty_directories(payload, state);
            state
                .save(&self.root)
                .during(|| "cannot write the list of files".to_owned())?;
        }
        rustix::fs::fsync(&self.root).during(|| "cannot sync the directory".to_owned())?;
        Ok(Placed {
            revision: Revision::new(format!("{:016x}", getrandom::u64().unwrap_or_default())),
            is_new: *is_new,
            shadowed,
            leftovers,
        })
    }

    /// What is at the place of a file.
    fn look(&self, path: &PayloadPath, file: &PayloadFile) -> Result<Found, Failed> {
        let during = || format!("cannot read {path}");
        let Some(parent) = self.parent(path).during(during)? else {
            return Ok(Found::Nothing);
        };
        let is = match rustix::fs::statat(&parent, name(path), AtFlags::SYMLINK_NOFOLLOW) {
            Ok(is) => is,
            Err(Errno::NOENT) => return Ok(Found::Nothing),
            Err(error) => return Err(error).during(during),
        };
        if FileType::from_raw_mode(is.st_mode) != FileType::RegularFile {
            return Ok(Found::InTheWay);
        }
        let is_owned = self
            .owner
            .is_none_or(|owner| (owner.uid, owner.gid) == (is.st_uid, is.st_gid));
        let is_alike = is.st_mode & 0o7777 == file.mode.bits()
            && u64::try_from(is.st_size) == Ok(file.bytes.len() as u64);
        if !is_owned || !is_alike {
            return Ok(Found::Other);
        }
        // NONBLOCK: it may have become a FIFO meanwhile.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let Ok(open) = rustix::fs::openat(&parent, name(path), flags, Mode::empty()) else {
            return Ok(Found::Other);
        };
        let mut bytes = Vec::with_capacity(file.bytes.len());
        let read = File::from(open)
            .take(file.bytes.len() as u64 + 1)
            .read_to_end(&mut bytes);
        Ok(if read.is_ok() && bytes == file.bytes {
            Found::Same
        } else {
            Found::Other
        })
    }

    /// The directory that holds `path`; `None` if it is not there. An error if it is not beneath ours.
    fn parent(&self, path: &PayloadPath) -> io::Result<Option<Directory>> {
        let opened = match path.parents().last() {
            Some(parent) => self.root.open_directory(parent),
            None => Directory::from_fd(&self.root),
        };
        match opened {
            Ok(parent) => Ok(Some(parent)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn make_parents(&self, path: &PayloadPath, state: &mut State) -> Result<(), Failed> {
        for parent in path.parents() {
            let during = || format!("cannot make the directory {parent}");
            let exists = match self.root.open_directory(parent) {
                Ok(_) => true,
                Err(error) if error.kind() == io::ErrorKind::NotFound => false,
                Err(error) => return Err(error).during(during),
            };
            if !exists {
                state.directories.insert(parent.to_owned());
                state.save(&self.root).during(during)?;
                let parent: PayloadPath = parent.parse().expect("a part of a clean path is one");
                self.root.create_directories(&parent).during(during)?;
            }
        }
        Ok(())
    }

    fn replace(&self, path: &PayloadPath, file: &PayloadFile) -> Result<(), Failed> {
        let during = || format!("cannot write {path}");
        let parent = self.parent(path).during(during)?;
        let parent = parent
            .ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
            .during(during)?;
        let staged = stage(&parent, file, self.owner).and_then(|()| {
            rustix::fs::renameat(&parent, STAGED, &parent, name(path))?;
            Ok(rustix::fs::fsync(&parent)?)
        });
        if staged.is_err() {
            // Best effort: the next write removes it first.
            let _ = rustix::fs::unlinkat(&parent, STAGED, AtFlags::empty());
        }
        staged.during(during)
    }

    fn remove(&self, path: &PayloadPath) -> io::Result<()> {
        let Some(parent) = self.parent(path)? else {
            return Ok(());
        };
        match rustix::fs::unlinkat(&parent, name(path), AtFlags::empty()) {
            Ok(()) => Ok(rustix::fs::fsync(&parent)?),
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Directories that were made here and hold nothing any more.
    fn remove_empty_directories(&self, payload: &Payload, state: &mut State) {
        let needed = |directory: &str| {
            payload
                .iter()
                .any(|(path, _)| path.parents().any(|parent| parent == directory))
        };
        let unneeded: Vec<String> = state
            .directories
            .iter()
            .rev() // what lies deeper sorts later
            .filter(|directory| !needed(directory))
            .cloned()
            .collect();
        for directory in unneeded {
            let Ok(path) = directory.parse::<PayloadPath>() else {
                continue;
            };
            let removed = match self.parent(&path) {
                Ok(Some(parent)) => rustix::fs::unlinkat(&parent, name(&path), AtFlags::REMOVEDIR),
                Ok(None) => Ok(()),
                Err(_) => continue,
            };
            // Somebody else's file keeps it; then it is theirs.
            if matches!(removed, Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY)) {
                state.directories.remove(&directory);
            }
        }
    }
}

enum Found {
    Nothing,
    Same,
    Other,
    /// A link, a directory, a device.
    InTheWay,
}

fn stage(parent: &Directory, file: &PayloadFile, owner: Option<Ownership>) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let create = || rustix::fs::openat(parent, STAGED, flags, Mode::from_raw_mode(0o600));
    let staged = match create() {
        Err(Errno::EXIST) => {
            rustix::fs::unlinkat(parent, STAGED, AtFlags::empty())?;
            create()?
        }
        other => other?,
    };
    let mut staged = File::from(staged);
    staged.write_all(&file.bytes)?;
    if let Some(Ownership { uid, gid }) = owner {
        rustix::fs::fchown(&staged, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))?;
    }
    rustix::fs::fchmod(&staged, Mode::from_raw_mode(file.mode.bits()))?;
    staged.sync_all()
}

fn name(path: &PayloadPath) -> &str {
    path.as_str().rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::path::Path;

    use hotmap_volume::FileMode;

    use super::*;

    fn payload(files: &[(&str, &str)]) -> Payload {
        let mut payload = Payload::new();
        for (path, content) in files {
            let file = PayloadFile::new(content.as_bytes().to_vec(), FileMode::new(0o640).expect("a mode"));
            payload
                .insert(path.parse().expect("a path"), file)
                .expect("no conflict");
        }
        payload
    }

    struct Plain {
        temporary: tempfile::TempDir,
        writer: PlainWriter,
    }

    impl Plain {
        fn new() -> Self {
            let temporary = tempfile::tempdir().expect("a directory");
            let root = Directory::open(temporary.path()).expect("it is there");
            Self {
                writer: PlainWriter::new(root, None),
                temporary,
            }
        }

        /// Each time as a process that was just started.
        fn place(&self, files: &[(&str, &str)]) -> Result<Placed, PlaceError> {
            let root = Directory::open(self.path()).expect("it is there");
            let mut state = State::load(&root).expect("a state");
            self.writer.place(&payload(files), &mut state)
        }

        fn path(&self) -> &Path {
            self.temporary.path()
        }

        fn write(&self, name: &str, content: &str) {
            fs::write(self.path().join(name), content).expect("a file");
        }

        /// `path=content`, the state and directories left out.
        fn shown(&self) -> String {
            let mut shown = Vec::new();
            collect(self.path(), "", &mut shown);
            shown.sort();
            shown.join(" ")
        }
    }

    fn collect(directory: &Path, prefix: &str, shown: &mut Vec<String>) {
        for entry in fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            let name = format!("{prefix}{}", path.file_name().expect("a name").to_string_lossy());
            if path.is_dir() {
                shown.push(format!("{name}/"));
                collect(&path, &format!("{name}/"), shown);
            } else if !name.starts_with("..") {
                shown.push(format!("{name}={}", fs::read_to_string(&path).expect("a file")));
            }
        }
    }

    #[test]
    fn files_are_written_replaced_and_removed_and_those_of_others_stay() {
        let plain = Plain::new();
        plain.write("theirs", "x");
        let placed = plain
            .place(&[("a", "1"), ("conf.d/b", "1"), ("theirs", "ours")])
            .expect("placed");
        assert!(placed.is_new);
        assert_eq!(placed.shadowed, ["theirs"]);
        assert_eq!(plain.shown(), "a=1 conf.d/ conf.d/b=1 theirs=x");
        let mode = fs::metadata(plain.path().join("a"))
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o7777, 0o640);

        assert!(
            !plain
                .place(&[("a", "1"), ("conf.d/b", "1")])
                .expect("placed")
                .is_new
        );
        plain.write("conf.d/mine", "m");
        plain.write("a", "edited");
        assert!(plain.place(&[("a", "2")]).expect("placed").is_new);
        assert_eq!(plain.shown(), "a=2 conf.d/ conf.d/mine=m theirs=x");
        plain.place(&[]).expect("placed");
        assert_eq!(plain.shown(), "conf.d/ conf.d/mine=m theirs=x");
    }

    #[test]
    fn directories_of_ours_go_with_their_last_file() {
        let plain = Plain::new();
        plain.place(&[("a/b/c", "1"), ("a/d", "1")]).expect("placed");
        plain.place(&[("a/d", "1")]).expect("placed");
        assert_eq!(plain.shown(), "a/ a/d=1");
        plain.place(&[]).expect("placed");
        assert_eq!(plain.shown(), "");
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let plain = Plain::new();
        let outside = tempfile::tempdir().expect("a directory");
        symlink(outside.path(), plain.path().join("conf.d")).expect("a link");
        symlink(outside.path().join("x"), plain.path().join("a")).expect("a link");
        assert_eq!(plain.place(&[("a", "1")]).expect("placed").shadowed, ["a"]);
        let error = plain
            .place(&[("conf.d/b", "1")])
            .expect_err("a link is in the way");
        assert!(error.message.starts_with("cannot read conf.d/b: "), "{error}");
        assert!(!error.is_published);
        assert_eq!(fs::read_dir(outside.path()).expect("a directory").count(), 0);
    }

    #[test]
    fn what_a_crash_left_is_found_again() {
        let plain = Plain::new();
        plain.place(&[("a", "1")]).expect("placed");
        plain.write(STAGED, "half");
        let root = Directory::open(plain.path()).expect("it is there");
        let mut state = State::load(&root).expect("a state");
        state.files.insert("never-written".to_owned());
        state.save(&root).expect("saved");
        plain.place(&[("a", "2")]).expect("placed");
        assert_eq!(plain.shown(), "a=2");
        assert!(!plain.path().join(STAGED).exists());
    }
}
