//! What a sub-path of a volume names now.

use std::{io, os::fd::OwnedFd, path::Path};

use rustix::{
    fs::{CWD, Mode, OFlags, ResolveFlags, openat2, readlinkat},
    io::Errno,
};

/// Why there is nothing to show.
#[derive(Debug, thiserror::Error)]
pub(super) enum OpenError {
    /// An object may bring it back.
    #[error("nothing in the volume is called {0:?} any more")]
    Gone(String),
    /// A container that starts before its key is there gets a directory, as in Kubernetes, and that stays.
    #[error(
        "nothing in the volume was called {0:?} when the container started, so a directory stands there; it takes a new pod"
    )]
    Shadowed(String),
    #[error("cannot open {sub_path:?} in the volume: {source}")]
    Io { sub_path: String, source: io::Error },
}

impl OpenError {
    /// Whether it may work without any change of the volume.
    pub(super) fn may_pass(&self) -> bool {
        matches!(self, Self::Io { .. })
    }
}

/// Opens it, through links of the volume and none that leaves it.
pub(super) fn open(volume: &Path, sub_path: &str) -> Result<OwnedFd, OpenError> {
    let failed = |error: Errno| OpenError::Io {
        sub_path: sub_path.to_owned(),
        source: error.into(),
    };
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let directory = openat2(
        CWD,
        volume,
        flags | OFlags::DIRECTORY,
        Mode::empty(),
        ResolveFlags::empty(),
    )
    .map_err(failed)?;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let found = match openat2(&directory, sub_path, flags, Mode::empty(), resolve) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Err(OpenError::Gone(sub_path.to_owned())),
        found => found.map_err(failed)?,
    };
    let top = Path::new(sub_path)
        .components()
        .find_map(|component| match component {
            std::path::Component::Normal(name) => Some(name),
            _ => None,
        });
    // Every name of the volume's own is a link.
    match top.map(|name| readlinkat(&directory, name, Vec::new())) {
        Some(Err(Errno::INVAL)) => Err(OpenError::Shadowed(sub_path.to_owned())),
        _ => Ok(found),
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_sub_path_is_opened_through_the_volumes_links_and_none_that_leaves_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let volume = directory.path().join("volume");
        fs::create_dir_all(volume.join("..1/sub")).expect("made");
        fs::create_dir(volume.join("early")).expect("made");
        fs::write(volume.join("..1/key"), "x").expect("written");
        fs::write(volume.join("..1/sub/key"), "x").expect("written");
        for (text, name) in [
            ("..1", "..data"),
            ("..data/key", "key"),
            ("..data/sub", "sub"),
            ("..data/gone", "gone"),
            ("../../etc/passwd", "out"),
        ] {
            symlink(text, volume.join(name)).expect("linked");
        }
        let said = |sub_path: &str| match open(&volume, sub_path) {
            Ok(_) => "shown",
            Err(OpenError::Gone(_)) => "gone",
            Err(OpenError::Shadowed(_)) => "shadowed",
            Err(OpenError::Io { .. }) => "failed",
        };
        for (sub_path, expected) in [
            ("key", "shown"),
            ("./key", "shown"),
            ("sub", "shown"),
            ("sub/key", "shown"),
            ("gone", "gone"),
            ("none", "gone"),
            ("key/none", "gone"),
            ("early", "shadowed"),
            ("out", "failed"),
        ] {
            assert_eq!(said(sub_path), expected, "{sub_path}");
        }
    }
}
