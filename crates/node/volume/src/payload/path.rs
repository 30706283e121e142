//! A checked relative path.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;

/// The longest path, in bytes (`PATH_MAX` of Linux).
const PATH_BYTES_MAX: usize = 4096;
/// The longest element of a path, in bytes (`NAME_MAX` of Linux).
const NAME_BYTES_MAX: usize = 255;

/// A clean path beneath a volume: relative, without `.` or `..` elements, its first element not starting with
/// `..` because those names belong to the writer.
///
/// Rules and texts: Kubernetes 1.36 `pkg/volume/util/atomic_writer.go`, checked on the raw text; on top of
/// them the cleaned path is checked again, so that `./..data` cannot name the writer's own link.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PayloadPath(String);

impl PayloadPath {
    /// The clean path.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The first element: the name that shows at the top of the volume.
    pub fn top_level(&self) -> &str {
        self.0.split_once('/').map_or(&self.0, |(first, _)| first)
    }

    /// The directories above this path, outermost first, without the volume itself.
    pub fn parents(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').map(|(at, _)| &self.0[..at])
    }
}

impl FromStr for PayloadPath {
    type Err = PathError;

    fn from_str(raw: &str) -> Result<Self, PathError> {
        if raw.is_empty() {
            return Err(PathError::Empty);
        }
        if raw.starts_with('/') {
            return Err(PathError::Absolute(raw.to_owned()));
        }
        if raw.len() > PATH_BYTES_MAX {
            return Err(PathError::TooLong);
        }
        for element in raw.split('/') {
            if element == ".." {
                return Err(PathError::Parent(raw.to_owned()));
            }
            if element.len() > NAME_BYTES_MAX {
                return Err(PathError::NameTooLong);
            }
        }
        if raw.contains('\0') {
            return Err(PathError::Nul(raw.to_owned()));
        }
        let elements: Vec<&str> = raw
            .split('/')
            .filter(|element| !matches!(*element, "" | "."))
            .collect();
        match elements.first() {
            None => Err(PathError::VolumeItself(raw.to_owned())),
            Some(first) if first.starts_with("..") => Err(PathError::Reserved(raw.to_owned())),
            Some(_) => Ok(Self(elements.join("/"))),
        }
    }
}

impl fmt::Display for PayloadPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for PayloadPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl Borrow<str> for PayloadPath {
    fn borrow(&self) -> &str {
        &self.0
    }
}

/// Why a text is not a [`PayloadPath`]; the first six texts are upstream's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// The text is empty.
    #[error("invalid path: must not be empty: \"\"")]
    Empty,
    /// The path starts at the root.
    #[error("invalid path: must be relative path: {0}")]
    Absolute(String),
    /// More than 4096 bytes.
    #[error("invalid path: must be less than or equal to {PATH_BYTES_MAX} characters")]
    TooLong,
    /// An element is `..`.
    #[error("invalid path: must not contain '..': {0}")]
    Parent(String),
    /// An element has more than 255 bytes.
    #[error("invalid path: filenames must be less than or equal to {NAME_BYTES_MAX} characters")]
    NameTooLong,
    /// The first element starts with `..`.
    #[error("invalid path: must not start with '..': {0}")]
    Reserved(String),
    /// The path cleans to nothing: `.` or `./`.
    #[error("invalid path: must name a file: {0}")]
    VolumeItself(String),
    /// No file system can hold a NUL byte in a name.
    #[error("invalid path: must not contain NUL: {0:?}")]
    Nul(String),
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn bad_paths_are_refused_in_upstreams_words() {
        let long_name = "x".repeat(256);
        let long_path = "x/".repeat(2049);
        for (raw, text) in [
            ("", r#"invalid path: must not be empty: """#),
            ("/etc/passwd", "invalid path: must be relative path: /etc/passwd"),
            ("..", "invalid path: must not contain '..': .."),
            ("../foo", "invalid path: must not contain '..': ../foo"),
            ("foo/../bar", "invalid path: must not contain '..': foo/../bar"),
            ("..x", "invalid path: must not start with '..': ..x"),
            ("...", "invalid path: must not start with '..': ..."),
            ("..data/x", "invalid path: must not start with '..': ..data/x"),
            ("./..data", "invalid path: must not start with '..': ./..data"),
            (".", "invalid path: must name a file: ."),
            ("a\0b", "invalid path: must not contain NUL: \"a\\0b\""),
            (
                &long_name,
                "invalid path: filenames must be less than or equal to 255 characters",
            ),
            (
                &long_path,
                "invalid path: must be less than or equal to 4096 characters",
            ),
        ] {
            assert_eq!(raw.parse::<PayloadPath>().expect_err(raw).to_string(), text);
        }
    }

    #[test]
    fn good_paths_are_cleaned() {
        for (raw, clean, parents) in [
            ("foo", "foo", &[][..]),
            (".a", ".a", &[]),
            ("a..b", "a..b", &[]),
            ("./bar", "bar", &[]),
            ("foo///bar/", "foo/bar", &["foo"]),
            ("foo/..bar", "foo/..bar", &["foo"]),
            ("a/./b/c", "a/b/c", &["a", "a/b"]),
        ] {
            let path: PayloadPath = raw.parse().expect(raw);
            assert_eq!(path.as_str(), clean);
            assert_eq!(path.parents().collect::<Vec<_>>(), parents, "{raw}");
        }
    }

    proptest! {
        #[test]
        fn what_parses_stays_inside_and_is_a_fixed_point(raw in "[./a-c\u{e9}]{0,12}") {
            if let Ok(path) = raw.parse::<PayloadPath>() {
                prop_assert!(!path.as_str().starts_with(['/']) && !path.top_level().starts_with(".."));
                prop_assert!(path.as_str().split('/').all(|element| !matches!(element, "" | "." | "..")));
                prop_assert_eq!(path.as_str().parse::<PayloadPath>(), Ok(path.clone()));
            }
        }
    }
}
