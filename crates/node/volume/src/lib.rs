#![doc = include_str!("../README.md")]

#[cfg(not(target_os = "linux"))]
compile_error!("hotmap-volume needs openat2, which only Linux has");

mod atomic_writer;
mod directory;
mod disk;
mod payload;
mod plan;
#[cfg(feature = "kubernetes")]
mod projection;
mod removal;

pub use atomic_writer::{
    AtomicWriter, Durability, Leftover, Options, Outcome, Ownership, Removal, RevisionName, RevisionNames,
    SystemNames, WriteError, Written,
};
pub use directory::Directory;
pub use payload::{FileMode, ModeError, PathConflict, PathError, Payload, PayloadFile, PayloadPath};
pub use plan::{ActualVolume, DataLink, Name, Step, plan};
#[cfg(feature = "kubernetes")]
pub use projection::{
    ConfigMapSource, DownwardFile, KeyToPath, Keys, Lookup, ProjectionError, SecretSource, Source, TokenFile,
    project,
};
pub use removal::{RemoveError, remove_tree};
