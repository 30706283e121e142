//! Why a configuration was not loaded.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use hotmap_projection::SnapshotError;

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// A file, `environment variable NAME`, or `defaults`.
    pub source: Arc<str>,
    /// Counted from 1; of an environment variable or a default there is none.
    pub line: Option<u32>,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.source)?;
        match self.line {
            Some(line) => write!(f, ":{line}"),
            None => Ok(()),
        }
    }
}

/// A configuration was not loaded; what was live before still is. The messages name file, line and field, and hold no
/// value, except where the words of a type of yours or of your validation do.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// A file or directory that must be there is not.
    #[error("{} is not there", .path.display())]
    Missing {
        /// Which.
        path: PathBuf,
    },
    /// A file or directory cannot be read.
    #[error("cannot read {}", .path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: Arc<SnapshotError>,
    },
    /// The local endpoint does not answer as it should.
    #[error("cannot read from the endpoint {address}: {message}")]
    Unreachable {
        /// Where.
        address: String,
        /// Why.
        message: String,
    },
    /// A file is not what its name says.
    #[error("{place}: {message}")]
    Syntax {
        /// Where.
        place: Place,
        /// What is wrong, in the parser's words.
        message: String,
    },
    /// A value does not fit its field.
    #[error("{}{field}: {message}", At(.place))]
    Type {
        /// Where the value was written; none of a field that is written nowhere.
        place: Option<Place>,
        /// The field: `server.ports[2]`.
        field: String,
        /// What is expected.
        message: String,
    },
    /// The validation has refused it.
    #[error("refused: {message}")]
    Invalid {
        /// Its words.
        message: String,
    },
    /// A type's `Deserialize` or the validation has panicked.
    #[error("the check of the configuration panicked; see the message on standard error")]
    Panicked,
}

impl LoadError {
    /// Whether the same load may succeed later although nothing was changed.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(
            self,
            Self::Missing { .. } | Self::Read { .. } | Self::Unreachable { .. }
        )
    }

    /// The same in words that hold no value whatever: for those who hear of it far away.
    pub(crate) fn without_values(&self) -> String {
        match self {
            Self::Missing { .. } | Self::Panicked => self.to_string(),
            Self::Unreachable { address, .. } => format!("cannot read from the endpoint {address}"),
            Self::Read { path, .. } => format!("cannot read {}", path.display()),
            Self::Syntax { place, .. } => format!("{place}: syntax error"),
            Self::Type { place, field, .. } => format!("{}{field}: wrong value", At(place)),
            Self::Invalid { .. } => "refused by the program's validation".to_owned(),
        }
    }
}

struct At<'a>(&'a Option<Place>);

impl fmt::Display for At<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |place| write!(f, "{place}: "))
    }
}
