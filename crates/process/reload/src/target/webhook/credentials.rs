//! Who we say we are, from files: arguments and environments are seen by others.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;

/// Tokens are a few KiB; what is longer is another file.
const FILE_BYTES_MAX: usize = 64 * 1024;

/// A file with credentials. It is read for each request, as tokens are renewed in place.
#[derive(Debug, Clone)]
pub(crate) enum Credentials {
    /// `USER:PASSWORD`.
    Basic(PathBuf),
    /// A token.
    Bearer(PathBuf),
}

/// The file holds nothing to be known by. Its content is never repeated.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CredentialsError {
    #[error("cannot read the credentials in {}: {source}", .path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{} holds no {wanted}", .path.display())]
    Content { path: PathBuf, wanted: &'static str },
}

impl Credentials {
    /// The value of `Authorization`.
    pub(crate) fn header(&self) -> Result<HeaderValue, CredentialsError> {
        let (path, wanted) = match self {
            Self::Basic(path) => (path, "USER:PASSWORD in one line"),
            Self::Bearer(path) => (path, "token in one line"),
        };
        let bad = || CredentialsError::Content {
            path: path.clone(),
            wanted,
        };
        let text = line(path)?;
        let value = match self {
            Self::Basic(_) if !text.contains(':') => return Err(bad()),
            Self::Basic(_) => format!("Basic {}", STANDARD.encode(&text)),
            Self::Bearer(_) => format!("Bearer {text}"),
        };
        if text.is_empty() || text.contains(char::is_control) || text.len() > FILE_BYTES_MAX {
            return Err(bad());
        }
        let mut value = HeaderValue::from_str(&value).map_err(|_| bad())?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// The content without the line's end that editors add. Other spaces may be part of a password.
fn line(path: &Path) -> Result<String, CredentialsError> {
    let text = fs::read_to_string(path).map_err(|source| CredentialsError::Read {
        path: path.to_owned(),
        source,
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_one_line_of_a_file_and_never_shown() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("credentials");
        let basic: fn(PathBuf) -> Credentials = Credentials::Basic;
        let bearer: fn(PathBuf) -> Credentials = Credentials::Bearer;
        for (kind, content, expected) in [
            (basic, "user:pass word\n", Some("Basic dXNlcjpwYXNzIHdvcmQ=")),
            (basic, "user:", Some("Basic dXNlcjo=")),
            (basic, "hunter2", None),
            (basic, "", None),
            (bearer, "hunter2\r\n", Some("Bearer hunter2")),
            (bearer, "hun\nter2", None),
            (bearer, "\n", None),
        ] {
            fs::write(&path, content).unwrap();
            match kind(path.clone()).header() {
                Ok(value) => {
                    assert_eq!(value.to_str().ok(), expected, "{content:?}");
                    assert!(value.is_sensitive());
                }
                Err(error) => {
                    assert!(expected.is_none(), "{content:?}: {error}");
                    assert!(!error.to_string().contains("hunter2"), "{error}");
                }
            }
        }
        let missing = basic(directory.path().join("missing")).header().unwrap_err();
        assert!(missing.to_string().contains("missing"), "{missing}");
    }
}
