//! A file or directory of the host that a pod names.
//!
//! Types, what is made when it is missing, and texts follow `pkg/volume/hostpath` (`checkType`), Kubernetes 1.36; that a path
//! without a type is made when it is missing follows containerd. What is found is pinned: nobody can exchange it, or a link on
//! the way to it, between the look and the mount.

use std::{
    fs, io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{FileType, Mode, OFlags},
    io::Errno,
};

use super::placement::{PlacementError, io_error};
use crate::pod::HostPathSource;

/// What a pod named.
#[derive(Debug)]
pub(crate) struct HostPath {
    pub(crate) pinned: OwnedFd,
    /// A directory above it through which other users of the host may not pass: they could not see what the pod sees.
    pub(crate) closed_above: Option<PathBuf>,
}

/// Finds it, makes it where its type says so, and checks that it is what the type says. `own` is the instance's directory, of
/// which no pod is shown anything.
pub(super) fn find(source: &HostPathSource, own: &Path) -> Result<HostPath, PlacementError> {
    let path = Path::new(&source.path);
    let own = fs::canonicalize(own).map_err(|error| io_error("look at", own, error))?;
    // Nothing is made in there either.
    let nearest = path.ancestors().find_map(|above| fs::canonicalize(above).ok());
    if nearest.is_some_and(|nearest| nearest.starts_with(&own)) {
        return Err(PlacementError::Own(path.to_owned()));
    }
    let pinned = match open(path) {
        Err(Errno::NOENT) => {
            make(source, path)?;
            open(path)
        }
        opened => opened,
    };
    let failed = |error: Errno| io_error("open", path, error.into());
    let pinned = match pinned {
        Err(Errno::NOENT) => return Err(wrong_type(source, path)),
        pinned => pinned.map_err(failed)?,
    };
    let found = rustix::fs::fstat(&pinned).map_err(failed)?;
    if !is_of_type(&source.kind, FileType::from_raw_mode(found.st_mode)) {
        return Err(wrong_type(source, path));
    }
    let real = fs::read_link(format!("/proc/self/fd/{}", pinned.as_raw_fd()))
        .map_err(|error| io_error("name", path, error))?;
    // Again, for what is pinned: a link may lead elsewhere by now. And by device, for what is mounted twice.
    let volumes = fs::metadata(own.join("volumes")).map(|volumes| volumes.dev());
    if real.starts_with(&own) || volumes.is_ok_and(|device| device == found.st_dev) {
        return Err(PlacementError::Own(path.to_owned()));
    }
    let above = real.ancestors().skip(1);
    let is_closed = |directory: &&Path| fs::metadata(directory).is_ok_and(|found| found.mode() & 0o001 == 0);
    Ok(HostPath {
        closed_above: above.filter(is_closed).last().map(Path::to_owned),
        pinned,
    })
}

fn open(path: &Path) -> Result<OwnedFd, Errno> {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
}

/// Makes what the type allows to make: for others nothing is there, which the caller finds out.
fn make(source: &HostPathSource, path: &Path) -> Result<(), PlacementError> {
    let made = match source.kind.as_str() {
        "" | "DirectoryOrCreate" => fs::DirBuilder::new().recursive(true).mode(0o755).create(path),
        "FileOrCreate" => {
            let mut options = fs::OpenOptions::new();
            match options.write(true).create_new(true).mode(0o644).open(path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
                _ => Ok(()),
            }
        }
        _ => Ok(()),
    };
    made.map_err(|error| io_error("create", path, error))
}

fn is_of_type(kind: &str, found: FileType) -> bool {
    match kind {
        "" => true,
        "Directory" | "DirectoryOrCreate" => found == FileType::Directory,
        "File" | "FileOrCreate" => found == FileType::RegularFile,
        "Socket" => found == FileType::Socket,
        "CharDevice" => found == FileType::CharacterDevice,
        "BlockDevice" => found == FileType::BlockDevice,
        _ => false,
    }
}

fn wrong_type(source: &HostPathSource, path: &Path) -> PlacementError {
    let expected = match source.kind.as_str() {
        "File" | "FileOrCreate" => "file",
        "Socket" => "socket file",
        "CharDevice" => "character device",
        "BlockDevice" => "block device",
        _ => "directory",
    };
    PlacementError::WrongType {
        path: path.to_owned(),
        expected,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::{
        fs::{PermissionsExt, symlink},
        net::UnixListener,
    };

    use super::*;

    fn source(path: &Path, kind: &str) -> HostPathSource {
        HostPathSource {
            path: path.display().to_string(),
            kind: kind.to_owned(),
        }
    }

    #[test]
    fn what_is_there_must_be_of_its_type_and_some_types_are_made() {
        let own = tempfile::tempdir().expect("a directory");
        let host = tempfile::tempdir().expect("a directory");
        let place = |name: &str| host.path().join(name);
        fs::create_dir(place("directory")).expect("made");
        fs::write(place("file"), "x").expect("written");
        symlink(place("file"), place("link")).expect("linked");
        let _listener = UnixListener::bind(place("socket")).expect("bound");
        let null = Path::new("/dev/null");
        for (path, kind, expected) in [
            (place("directory"), "", None),
            (place("file"), "", None),
            (place("directory"), "Directory", None),
            (place("file"), "Directory", Some("directory")),
            (place("file"), "DirectoryOrCreate", Some("directory")),
            (place("no-directory"), "Directory", Some("directory")),
            (place("made/too"), "DirectoryOrCreate", None),
            (place("made/unasked"), "", None),
            (place("file"), "File", None),
            (place("link"), "File", None),
            (place("directory"), "File", Some("file")),
            (place("no-file"), "File", Some("file")),
            (place("made-file"), "FileOrCreate", None),
            (place("directory"), "FileOrCreate", Some("file")),
            (place("socket"), "Socket", None),
            (place("file"), "Socket", Some("socket file")),
            (null.to_owned(), "CharDevice", None),
            (place("file"), "CharDevice", Some("character device")),
            (null.to_owned(), "BlockDevice", Some("block device")),
        ] {
            let found = find(&source(&path, kind), own.path()).map_err(|error| error.to_string());
            let expected = expected.map(|expected| {
                format!(
                    "hostPath type check failed: {} is not a {expected}",
                    path.display()
                )
            });
            assert_eq!(found.err(), expected, "{kind:?} {}", path.display());
        }
        assert!(place("made/unasked").is_dir() && place("made-file").is_file());
        assert!(!place("no-directory").exists() && !place("no-file").exists());
    }

    #[test]
    fn nothing_of_the_instance_is_shown_or_made_by_whatever_name() {
        let own = tempfile::tempdir().expect("a directory");
        fs::create_dir(own.path().join("volumes")).expect("made");
        let elsewhere = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let link = elsewhere.path().join("link");
        symlink(own.path(), &link).expect("linked");
        for path in [
            own.path().to_owned(),
            own.path().join("volumes"),
            own.path().join("new"),
            link.clone(),
            link.join("volumes"),
            link.join("new/below"),
        ] {
            for kind in ["", "Directory", "DirectoryOrCreate", "FileOrCreate"] {
                let refused = find(&source(&path, kind), own.path()).expect_err("of the instance");
                assert!(refused.to_string().contains("no pod is shown"), "{refused}");
            }
        }
        assert!(!own.path().join("new").exists());
    }

    #[test]
    fn a_closed_directory_above_is_named() {
        let own = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let host = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(host.path().join("closed/below")).expect("made");
        for (mode, closed) in [(0o755, false), (0o700, true), (0o711, false)] {
            fs::set_permissions(host.path(), fs::Permissions::from_mode(mode)).expect("changed");
            let found = find(&source(&host.path().join("closed/below"), ""), own.path()).expect("found");
            let expected = closed.then(|| fs::canonicalize(host.path()).expect("there"));
            assert_eq!(found.closed_above, expected, "{mode:o}");
        }
    }
}
