//! Makes a payload appear in a directory, whole or not at all.
//!
//! ```text
//!   ..2026_01_31_09_05_07.1234567890/    the files of one revision, complete before anyone can see them
//!   ..data     ──▶ ..2026_01_31_09_05_07.1234567890     the swap is one rename onto this link
//!   app.yaml   ──▶ ..data/app.yaml                      one link per first path element; it never changes
//! ```
//!
//! Steps, in the order a watcher of the directory sees them: make and chmod the revision directory, link
//! `..data_tmp` to it, rename that onto `..data`, add links of new keys, remove links of dropped keys, remove
//! the old revision. Source of layout and order: Kubernetes 1.36 `pkg/volume/util/atomic_writer.go`.

mod held;
mod observe;
mod ownership;
mod revision_name;
mod staging;
mod visible_names;

#[cfg(test)]
mod crash_tests;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod model_disk;
#[cfg(test)]
mod power_loss_tests;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use ownership::{Options, Ownership};
pub use revision_name::{RevisionName, RevisionNames, SystemNames};

use crate::directory::Directory;
use crate::disk::Disk;
use crate::payload::Payload;
use crate::plan::{ActualVolume, Step, plan};
use staging::Staged;

/// The link that names the visible revision.
pub(crate) const DATA_LINK: &str = "..data";
/// What becomes [`DATA_LINK`]; exists only between two system calls, or after a crash there.
pub(crate) const STAGED_DATA_LINK: &str = "..data_tmp";

/// What a write survives, beyond the death of the process, which it always does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// The process may die at any point. For volumes on tmpfs, where nothing survives a reboot anyway.
    Process,
    /// The machine may lose power at any point: files, directories and links are synced, in the order that
    /// keeps `..data` whole.
    #[default]
    PowerLoss,
}

/// When a replaced revision goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Removal {
    /// Before the write returns, as with a kubelet. A reader that was on its way through `..data` at the moment
    /// of the swap may find nothing and must look again; at full speed one in some hundred thousand does.
    #[default]
    AtOnce,
    /// With [`AtomicWriter::sweep`], or with the next swap but one: readers on their way, and those that hold the
    /// directory behind `..data`, finish what they began. At most two revisions are on disk.
    Deferred,
}

/// Writes payloads into one directory.
///
/// One directory has one writer: two writers of the same directory, in one process or in two, would take each
/// other's revisions for leftovers. Calls on one writer are serialised.
pub struct AtomicWriter {
    root: Directory,
    options: Options,
    names: Arc<dyn RevisionNames>,
    disk: Disk,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The revision that was replaced last and still serves readers on their way.
    lingering: Option<RevisionName>,
    /// What the last write left, as long as nothing failed since.
    last: Option<Last>,
    /// A sync failed after a swap: what the disk holds and what memory shows may differ from now on, so
    /// comparing proves nothing and the next write must be a new revision.
    suspect: bool,
}

struct Last {
    revision: RevisionName,
    payload: Payload,
    /// Whether the sweep after it removed everything it found.
    swept: bool,
}

/// A write that did what it should.
#[derive(Debug)]
pub struct Written {
    /// Whether there is a new revision.
    pub outcome: Outcome,
    /// The visible revision: the target of `..data`.
    pub revision: RevisionName,
    /// Names of the payload that show something else at the top of the directory, because a file that is not
    /// the writer's own is in the way. The file stays; the content is under `..data` only.
    pub shadowed: Vec<String>,
    /// What should be gone and is still there; the next write tries again. No reader is affected.
    pub leftovers: Vec<Leftover>,
}

/// Whether a write made a new revision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// `..data` names a new revision.
    Swapped,
    /// The visible revision holds the payload already, with its modes and owners.
    Unchanged,
}

/// A name in the directory that could not be removed.
#[derive(Debug)]
pub struct Leftover {
    /// The old link or the old revision.
    pub name: String,
    /// Why it is still there.
    pub error: io::Error,
}

impl Leftover {
    fn of_directory(error: WriteError) -> Self {
        Self {
            name: String::from("."),
            error: io::Error::other(error),
        }
    }
}

/// A write that did not do all it should.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The old payload, if any, is still the visible one; nothing was touched.
    #[error("cannot read {name}")]
    Observe {
        /// `..data`, the link of a key, or `.` for the directory itself.
        name: String,
        /// Why; `InvalidInput` when `..data` is not a link.
        source: io::Error,
    },
    /// The old payload is still the visible one; what was written of the new one is removed.
    #[error("cannot stage {path:?}")]
    Stage {
        /// The file or directory, relative to the volume.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The old payload is still the visible one; the new one is removed.
    #[error("cannot swap {DATA_LINK}")]
    Swap {
        /// Why.
        source: io::Error,
    },
    /// The new payload is the visible one through `..data`, but the link of a new name is missing.
    #[error("cannot link {name:?}")]
    Link {
        /// The first path element.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// The new payload is the visible one, but may not survive a power loss.
    #[error("cannot sync the directory")]
    Sync {
        /// Why.
        source: io::Error,
    },
}

impl WriteError {
    /// True when readers see the new payload through `..data` in spite of the error.
    pub fn is_published(&self) -> bool {
        matches!(self, Self::Link { .. } | Self::Sync { .. })
    }
}

impl AtomicWriter {
    /// A writer for `root` that names revisions by the system's clock and random numbers.
    pub fn new(root: Directory, options: Options) -> Self {
        Self::with_names(root, options, Arc::new(SystemNames))
    }

    /// A writer for `root` with another source of revision names.
    pub fn with_names(root: Directory, options: Options, names: Arc<dyn RevisionNames>) -> Self {
        Self {
            root,
            options,
            names,
            disk: Disk::default(),
            state: Mutex::default(),
        }
    }

    #[cfg(test)]
    fn with_disk(mut self, disk: Disk) -> Self {
        self.disk = disk;
        self
    }

    /// Makes `payload` the visible content.
    ///
    /// The files on disk are read for comparison once per writer; after that the writer trusts its memory as
    /// long as `..data` names the revision it wrote. Links of keys are looked at every time.
    ///
    /// # Errors
    /// [`WriteError`]; [`WriteError::is_published`] tells which payload readers see. Calling again with the same
    /// payload finishes what is missing.
    pub fn write(&self, payload: &Payload) -> Result<Written, WriteError> {
        self.publish(payload, Trust::Memory)
    }

    /// Makes `payload` the visible content, comparing with what is on disk in any case: finds and mends files
    /// that somebody else changed. For a periodic resync.
    ///
    /// # Errors
    /// As [`AtomicWriter::write`].
    pub fn verify_and_write(&self, payload: &Payload) -> Result<Written, WriteError> {
        self.publish(payload, Trust::Disk)
    }

    /// What [`AtomicWriter::write`] would do for `payload` now, without doing it. Reads only.
    ///
    /// # Errors
    /// [`WriteError::Observe`].
    pub fn plan(&self, payload: &Payload) -> Result<Vec<Step>, WriteError> {
        let state = self.lock();
        let actual = self.observe(payload, Trust::Memory, &state)?;
        Ok(plan(payload, self.options.durability, &actual))
    }

    /// Removes what a write with [`Removal::Deferred`] left for readers on their way. Returns what is still
    /// there. Does nothing after a failed write: the next one looks at everything anew.
    pub fn sweep(&self) -> Vec<Leftover> {
        let mut state = self.lock();
        state.lingering = None;
        let Some(mut last) = state.last.take() else {
            return Vec::new();
        };
        last.swept = false;
        let payload = last.payload.clone();
        state.last = Some(last);
        let actual = match self.observe(&payload, Trust::Memory, &state) {
            Ok(actual) if actual.is_desired => actual,
            // Somebody changed the volume: the next write sees to it.
            Ok(_) => return Vec::new(),
            Err(error) => return vec![Leftover::of_directory(error)],
        };
        let removals = plan(&payload, self.options.durability, &actual)
            .into_iter()
            .filter(|step| matches!(step, Step::Unlink(_) | Step::Remove(_)));
        let leftovers: Vec<Leftover> = removals.filter_map(|step| self.remove(step)).collect();
        if let Some(last) = &mut state.last {
            last.swept = leftovers.is_empty();
        }
        leftovers
    }

    fn publish(&self, payload: &Payload, trust: Trust) -> Result<Written, WriteError> {
        let mut state = self.lock();
        let actual = self.observe(payload, trust, &state)?;
        // Whatever fails from here on, the next write trusts nothing but the disk.
        state.last = None;
        let steps = plan(payload, self.options.durability, &actual);
        let shadowed = actual.shadowed(payload);
        let ActualVolume { data, lingering, .. } = actual;

        let mut done = Done {
            outcome: Outcome::Unchanged,
            revision: data.into_revision(),
            staged: None,
            lingering,
            leftovers: Vec::new(),
        };
        for step in steps {
            self.execute(step, payload, &mut state, &mut done)?;
        }
        let revision = done
            .revision
            .expect("plan() swaps unless a revision holds the payload");
        state.last = Some(Last {
            revision: revision.clone(),
            payload: payload.clone(),
            swept: done.leftovers.is_empty(),
        });
        Ok(Written {
            outcome: done.outcome,
            revision,
            shadowed,
            leftovers: done.leftovers,
        })
    }

    /// The shell of [`plan`]: the only code that changes a volume.
    fn execute(
        &self,
        step: Step,
        payload: &Payload,
        state: &mut State,
        done: &mut Done,
    ) -> Result<(), WriteError> {
        match step {
            Step::Stage => done.staged = Some(self.stage(payload)?),
            Step::Swap => {
                let staged = done.staged.take().expect("plan() stages before it swaps");
                done.revision = Some(self.swap(staged)?);
                state.lingering = done.lingering.take();
                done.outcome = Outcome::Swapped;
            }
            Step::SyncRevision => {
                let revision = done.revision.as_ref();
                let revision = revision.expect("plan() syncs the revision that holds the payload");
                self.sync_revision(revision, payload)?;
            }
            Step::Link(name) => self.link(name)?,
            Step::Sync => self.sync(state)?,
            Step::Unlink(_) | Step::Remove(_) => done.leftovers.extend(self.remove(step)),
        }
        Ok(())
    }

    /// A writer that panicked left its state as "trust nothing", which is safe to go on with.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The one moment of change: a rename onto `..data`.
    fn swap(&self, staged: Staged) -> Result<RevisionName, WriteError> {
        match self.rename_onto_data(staged.name()) {
            Ok(()) => Ok(staged.into_name()),
            Err(source) => {
                // Best effort: what `..data` does not name is invisible, and the next write sweeps it.
                let _ = self.disk.unlink(&self.root, STAGED_DATA_LINK);
                self.discard(staged);
                Err(WriteError::Swap { source })
            }
        }
    }

    fn rename_onto_data(&self, revision: &RevisionName) -> io::Result<()> {
        let linked = self.create_link(revision.as_str(), STAGED_DATA_LINK);
        if linked
            .as_ref()
            .is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists)
        {
            // An earlier run died between link and rename.
            self.remove_reserved(STAGED_DATA_LINK)?;
            self.create_link(revision.as_str(), STAGED_DATA_LINK)?;
        } else {
            linked?;
        }
        if self.options.durability == Durability::PowerLoss {
            self.disk.sync(&self.root)?;
        }
        // Rename over the old link, never remove and re-create: a reader must not find `..data` missing.
        self.disk.rename(&self.root, STAGED_DATA_LINK, DATA_LINK)
    }

    fn sync(&self, state: &mut State) -> Result<(), WriteError> {
        let synced = self.disk.sync(&self.root);
        state.suspect = synced.is_err();
        synced.map_err(|source| WriteError::Sync { source })
    }
}

/// How far a write has come.
struct Done {
    outcome: Outcome,
    revision: Option<RevisionName>,
    staged: Option<Staged>,
    /// What lingers once the swap is done.
    lingering: Option<RevisionName>,
    leftovers: Vec<Leftover>,
}

/// What a write may believe without looking.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Trust {
    Memory,
    Disk,
}
