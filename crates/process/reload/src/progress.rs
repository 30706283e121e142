//! How far the last change has come: what the endpoint, `/healthz`, metrics and reports tell.

use std::path::PathBuf;

use hotmap_projection::Revision;

/// What is on the disk, and what is loaded. Published in a `tokio::sync::watch` channel; one per process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// One for each watched path, in the order of the flags.
    pub volumes: Vec<VolumeProgress>,
    /// What happens now, or has happened last.
    pub phase: Phase,
    /// Why changes may be missed, if they may: the watch has failed, the API is away.
    pub deaf: Option<String>,
}

/// What is known of one watched path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeProgress {
    /// The path as it was given.
    pub path: PathBuf,
    /// What was seen last.
    pub seen: Option<Revision>,
    /// The name by which what was seen was told as a change. `seen` is another one after a swap that changed nothing.
    pub told: Option<Revision>,
    /// What the targets have taken last.
    pub loaded: Option<Revision>,
}

impl VolumeProgress {
    /// Nothing is known of it yet.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            seen: None,
            told: None,
            loaded: None,
        }
    }

    /// A change brought this revision.
    pub(crate) fn changed(&mut self, revision: &Revision) {
        self.seen = Some(revision.clone());
        self.told = Some(revision.clone());
    }

    /// What is there has another name now, and is what it was.
    pub(crate) fn renamed(&mut self, revision: &Revision) {
        if self.loaded == self.seen {
            self.loaded = Some(revision.clone());
        }
        self.seen = Some(revision.clone());
    }

    /// The name by which this revision is known now.
    pub(crate) fn now(&self, revision: &Revision) -> Revision {
        match &self.seen {
            Some(seen) if self.told.as_ref() == Some(revision) => seen.clone(),
            _ => revision.clone(),
        }
    }
}

/// Where the last change is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Phase {
    /// Nothing has been seen yet.
    Starting,
    /// Seen, and on its way: waiting, checked, or told to the targets.
    Loading,
    /// All targets have taken it.
    Loaded,
    /// The check refused it: the targets still have what they had. Why.
    HeldBack(String),
    /// A target has not taken it. Why. It is tried again unless the reason is for good.
    Failed(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_that_changes_nothing_leaves_what_is_loaded_loaded() {
        let revision = |name: &str| Revision::new(name);
        let mut volume = VolumeProgress::new("/etc/app".into());
        volume.changed(&revision("a"));
        volume.loaded = Some(volume.now(&revision("a")));
        volume.renamed(&revision("b"));
        assert_eq!(
            (volume.loaded.clone(), volume.seen.clone()),
            (Some(revision("b")), Some(revision("b")))
        );

        // While it is on its way.
        volume.changed(&revision("c"));
        volume.renamed(&revision("d"));
        assert_eq!(volume.loaded, Some(revision("b")));
        assert_eq!(volume.now(&revision("c")), revision("d"));
        assert_eq!(volume.now(&revision("b")), revision("b"));
    }
}
