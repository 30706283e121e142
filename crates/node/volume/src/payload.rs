//! What a volume shall hold: relative paths, each with bytes and a mode.

mod path;

use std::collections::BTreeMap;
use std::fmt;

use bytes::Bytes;

pub use path::{PathError, PayloadPath};

/// The files of one volume revision.
///
/// A payload is consistent by construction: no path is both a file and a directory, so a write never fails
/// half-way because of its input. Cloning is cheap, the bytes are shared.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Payload {
    files: BTreeMap<PayloadPath, PayloadFile>,
}

impl Payload {
    /// A payload without files; writing it still creates `..data`.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, or replaces the one at the same path and returns it: the last source of a projection wins.
    ///
    /// # Errors
    /// [`PathConflict`] when one of the two paths would have to be a directory for the other; the payload is
    /// unchanged then.
    pub fn insert(
        &mut self,
        path: PayloadPath,
        file: PayloadFile,
    ) -> Result<Option<PayloadFile>, PathConflict> {
        if let Some(above) = path.parents().find(|above| self.files.contains_key(*above)) {
            return Err(PathConflict {
                file: above.to_owned(),
                beneath: path.to_string(),
            });
        }
        if let Some(beneath) = self.first_beneath(&path) {
            return Err(PathConflict {
                file: path.to_string(),
                beneath: beneath.to_string(),
            });
        }
        Ok(self.files.insert(path, file))
    }

    /// The file at `path`, if there is one.
    pub fn get(&self, path: &str) -> Option<&PayloadFile> {
        self.files.get(path)
    }

    /// All files in the order of their paths.
    pub fn iter(&self) -> impl Iterator<Item = (&PayloadPath, &PayloadFile)> {
        self.files.iter()
    }

    /// How many files there are.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// True when there is no file.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The names that show at the top of the volume, each once, in the order of the paths.
    pub fn top_level_names(&self) -> impl Iterator<Item = &str> {
        let mut previous = None;
        // Paths are sorted, so those of one directory follow each other.
        self.files
            .keys()
            .map(PayloadPath::top_level)
            .filter(move |name| previous.replace(*name) != Some(*name))
    }

    /// True when a file or directory of this payload is called `name` at the top of the volume.
    pub(crate) fn has_top_level(&self, name: &str) -> bool {
        self.files.contains_key(name) || self.has_directory(name)
    }

    /// True when a file of this payload lies beneath `path`.
    pub(crate) fn has_directory(&self, path: &str) -> bool {
        self.range_beneath(path).next().is_some()
    }

    fn first_beneath(&self, path: &PayloadPath) -> Option<&PayloadPath> {
        self.range_beneath(path.as_str()).next()
    }

    fn range_beneath(&self, directory: &str) -> impl Iterator<Item = &PayloadPath> {
        let prefix = format!("{directory}/");
        self.files
            .range::<str, _>((
                std::ops::Bound::Excluded(prefix.as_str()),
                std::ops::Bound::Unbounded,
            ))
            .map(|(path, _)| path)
            .take_while(move |path| path.as_str().starts_with(&prefix))
    }
}

/// Paths, sizes and modes only: a payload may hold a Secret.
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.files.iter()).finish()
    }
}

/// One file of a payload.
#[derive(Clone, PartialEq, Eq)]
pub struct PayloadFile {
    /// The content, written byte for byte.
    pub bytes: Bytes,
    /// The permission bits, set exactly, whatever the umask says.
    pub mode: FileMode,
    /// Who owns this file instead of the volume's owner, as an id of the host.
    pub owner: Option<u32>,
}

impl PayloadFile {
    /// A file with these bytes and this mode, owned as the volume is.
    pub fn new(bytes: impl Into<Bytes>, mode: FileMode) -> Self {
        Self {
            bytes: bytes.into(),
            mode,
            owner: None,
        }
    }
}

impl fmt::Debug for PayloadFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes, {:?}", self.bytes.len(), self.mode)
    }
}

/// Permission bits of a projected file: 0 to 0777; setuid, setgid and sticky cannot be asked for.
///
/// Source: Kubernetes 1.36 `pkg/apis/core/validation/validation.go`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileMode(u32);

impl FileMode {
    /// 0644, what a volume source without `defaultMode` gets (`pkg/apis/core/v1/defaults.go`).
    pub const DEFAULT: Self = Self(0o644);

    /// Checks the range.
    ///
    /// # Errors
    /// [`ModeError`] outside 0–0777.
    pub const fn new(bits: u32) -> Result<Self, ModeError> {
        if bits > 0o777 {
            Err(ModeError)
        } else {
            Ok(Self(bits))
        }
    }

    /// The nine permission bits.
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl TryFrom<i32> for FileMode {
    type Error = ModeError;

    fn try_from(bits: i32) -> Result<Self, ModeError> {
        u32::try_from(bits).map_err(|_| ModeError).and_then(Self::new)
    }
}

impl fmt::Debug for FileMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0{:03o}", self.0)
    }
}

/// A file mode outside 0–0777, in the words of the Kubernetes API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be a number between 0 and 0777 (octal), both inclusive")]
pub struct ModeError;

/// Two paths of one payload exclude each other: one is a file where the other needs a directory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file:?} cannot be a file and the directory of {beneath:?}")]
pub struct PathConflict {
    /// The path that is a file.
    pub file: String,
    /// The path that lies beneath it.
    pub beneath: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(paths: &[&str]) -> Result<Payload, PathConflict> {
        let mut payload = Payload::new();
        for path in paths {
            let path = path.parse().expect("test paths are valid");
            payload.insert(path, PayloadFile::new("x", FileMode::DEFAULT))?;
        }
        Ok(payload)
    }

    #[test]
    fn a_path_is_never_both_a_file_and_a_directory() {
        for (paths, valid) in [
            (&["foo", "bar"][..], true),
            (&["foo/a", "foo/b"], true),
            (&["foo", "foo-x", "foobar/baz"], true),
            (&["foo", "foo-x", "foo/bar"], false),
            (&["foo/bar", "foo-x", "foo"], false),
            (&["a/b/c/d", "a/b"], false),
            (&["a/b", "a/b/c/d"], false),
            (&["foo", "./foo"], true),
        ] {
            assert_eq!(payload(paths).is_ok(), valid, "{paths:?}");
        }
        let conflict = payload(&["foo", "foo/bar"]).expect_err("excluded above");
        assert_eq!(
            conflict.to_string(),
            r#""foo" cannot be a file and the directory of "foo/bar""#
        );
    }

    #[test]
    fn the_later_file_replaces_the_earlier_one_at_the_same_clean_path() {
        let mut files = payload(&["foo"]).unwrap();
        let old = files
            .insert("./foo".parse().unwrap(), PayloadFile::new("y", FileMode::DEFAULT))
            .unwrap();
        assert_eq!(old.map(|file| file.bytes), Some("x".into()));
        assert_eq!(files.len(), 1);
        assert_eq!(files.get("foo").map(|file| &file.bytes[..]), Some(&b"y"[..]));
    }

    #[test]
    fn modes_are_nine_bits() {
        for (bits, valid) in [
            (0, true),
            (0o644, true),
            (0o777, true),
            (0o1000, false),
            (0o4755, false),
            (-1, false),
        ] {
            assert_eq!(FileMode::try_from(bits).is_ok(), valid, "{bits:o}");
        }
    }

    #[test]
    fn debug_output_never_shows_content() {
        let mut secret = Payload::new();
        secret
            .insert(
                "token".parse().unwrap(),
                PayloadFile::new("hunter2", FileMode::DEFAULT),
            )
            .unwrap();
        let shown = format!("{secret:?}");
        assert!(shown.contains("7 bytes") && !shown.contains("hunter2"), "{shown}");
    }
}
