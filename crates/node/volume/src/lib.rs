//! Makes a payload appear in a directory, whole or not at all.
//!
//! ```text
//!   sources ──project──▶ Payload ──AtomicWriter::write──▶ ..data ──▶ ..2026_01_31_09_05_07.1234567890/
//!   (ConfigMap, Secret,   path → bytes, mode               app.yaml ──▶ ..data/app.yaml
//!    downward values)
//! ```
//!
//! The layout on disk, the order of the steps and the error texts are those of a kubelet, so a program that
//! watches a Kubernetes volume works unchanged. The crate takes a directory handle, a payload, an owner and
//! modes; it knows no API server, no pods and no processes.
//!
//! Guarantees, at every point where the writer may die, and on every error:
//! - through `..data` a reader sees one whole payload: the old one or the new one;
//! - nothing is read or written outside the directory, whatever links somebody planted in it;
//! - the next write removes what an interrupted one left behind, and nothing that is not the writer's own.
//!
//! Linux only, 5.6 or newer: every path goes through `openat2` beneath a directory handle.

mod atomic_writer;
mod directory;
mod disk;
mod payload;
mod plan;
mod projection;
mod removal;

pub use atomic_writer::{
    AtomicWriter, Durability, Leftover, Options, Outcome, Ownership, Removal, RevisionName, RevisionNames,
    SystemNames, WriteError, Written,
};
pub use directory::Directory;
pub use payload::{FileMode, ModeError, PathConflict, PathError, Payload, PayloadFile, PayloadPath};
pub use plan::{ActualVolume, DesiredVolume, Step, plan};
pub use projection::{
    ConfigMapSource, DownwardFile, KeyToPath, Keys, Lookup, ProjectionError, SecretSource, Source, TokenFile,
    project,
};
pub use removal::{RemoveError, remove_tree};
