//! How far changes have come, by what the targets and the programs say.
//!
//! ```text
//!   Progress (what targets have taken) ─┐
//!                                       ├─▶ Standing ─▶ /v1/config · /healthz · /metrics · reports
//!   acknowledgements (what programs say)┘
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use hotmap_projection::Revision;
use tokio::sync::watch;

use crate::progress::{Phase, Progress, VolumeProgress};

/// Bytes of a program's message that are kept: as many as the agent keeps.
pub(crate) const MESSAGE_BYTES_MAX: usize = 256;

/// What is known now, and waiting for it to change. Clones are one.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    progress: watch::Receiver<Progress>,
    /// Whether anybody is told of changes. Otherwise only programs know what is loaded.
    has_targets: bool,
    said: watch::Sender<Said>,
    heard: watch::Receiver<Said>,
}

/// What programs have said of each watched path.
type Said = BTreeMap<PathBuf, Acknowledged>;

/// What programs have said of one watched path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Acknowledged {
    /// The last word.
    pub(crate) last: Option<Acknowledgement>,
    /// The revision that was said to be in use.
    in_use: Option<Revision>,
}

/// A program's word on one revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Acknowledgement {
    pub(crate) revision: Revision,
    pub(crate) is_ok: bool,
    pub(crate) message: Option<String>,
}

impl Standing {
    pub(crate) fn new(progress: watch::Receiver<Progress>, has_targets: bool) -> Self {
        let (said, heard) = watch::channel(Said::new());
        Self {
            progress,
            has_targets,
            said,
            heard,
        }
    }

    /// What is known now.
    pub(crate) fn now(&self) -> Progress {
        let mut progress = self.progress.borrow().clone();
        let said = self.said.borrow();
        let mut phase = None;
        for volume in &mut progress.volumes {
            let unsaid = (!self.has_targets).then(Acknowledged::default);
            if let Some(acknowledged) = said.get(&volume.path).or(unsaid.as_ref())
                && let Some(behind) = follow(volume, acknowledged)
                // A refusal is worth more than a word that is still to come.
                && !matches!(phase, Some(Phase::Failed(_)))
            {
                phase = Some(behind);
            }
        }
        // What the targets lack is told as they tell it.
        if progress.phase == Phase::Loaded
            && let Some(phase) = phase
        {
            progress.phase = phase;
        }
        progress
    }

    /// One that waits for what comes from now on.
    pub(crate) fn watch(&self) -> Self {
        let mut watching = self.clone();
        watching.progress.mark_unchanged();
        watching.heard.mark_unchanged();
        watching
    }

    /// Returns after something has changed since this clone last returned from here. Cancel safe.
    ///
    /// # Errors
    /// Whoever told of progress has ended.
    pub(crate) async fn changed(&mut self) -> Result<(), watch::error::RecvError> {
        tokio::select! {
            changed = self.progress.changed() => changed,
            changed = self.heard.changed() => changed,
        }
    }

    /// What a program has said last of this path.
    pub(crate) fn acknowledged(&self, path: &Path) -> Option<Acknowledgement> {
        self.said.borrow().get(path)?.last.clone()
    }

    /// A program says what it did with a revision of this path.
    pub(crate) fn acknowledge(&self, path: &Path, mut word: Acknowledgement) {
        if let Some(message) = &mut word.message {
            message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
        }
        self.said.send_if_modified(|said| {
            let acknowledged = said.entry(path.to_owned()).or_default();
            if acknowledged.last.as_ref() == Some(&word) {
                return false;
            }
            if word.is_ok {
                acknowledged.in_use = Some(word.revision.clone());
            }
            acknowledged.last = Some(word);
            true
        });
    }
}

/// Makes `loaded` what programs say it is. Returns the phase that this volume is in for them, if they are behind what
/// was seen.
fn follow(volume: &mut VolumeProgress, acknowledged: &Acknowledged) -> Option<Phase> {
    volume.loaded = acknowledged.in_use.as_ref().map(|in_use| volume.now(in_use));
    if volume.loaded == volume.seen {
        return None;
    }
    let last = acknowledged.last.as_ref();
    Some(
        match last.filter(|last| !last.is_ok && Some(volume.now(&last.revision)) == volume.seen) {
            Some(last) => Phase::Failed(refusal(last.message.as_deref())),
            None => Phase::Loading,
        },
    )
}

fn refusal(message: Option<&str>) -> String {
    match message {
        Some(message) => format!("the program has refused it: {message}"),
        None => "the program has refused it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(seen: &str, loaded: &str, phase: Phase) -> Progress {
        let volume = VolumeProgress {
            path: PathBuf::from("/etc/app"),
            seen: Some(Revision::new(seen)),
            told: None,
            loaded: Some(Revision::new(loaded)),
        };
        Progress {
            volumes: vec![volume],
            phase,
            deaf: None,
        }
    }

    fn word(revision: &str, message: Option<&str>) -> Acknowledgement {
        Acknowledgement {
            revision: Revision::new(revision),
            is_ok: message.is_none(),
            message: message.map(str::to_owned),
        }
    }

    #[test]
    fn what_programs_say_is_what_is_loaded() {
        let refused = || Phase::Failed("the program has refused it: line 3".to_owned());
        let held_back = || Phase::HeldBack("the check".to_owned());
        // What the targets have taken, what was said, and what follows.
        let table = [
            (told("b", "b", Phase::Loaded), vec![], (Some("b"), Phase::Loaded)),
            (
                told("b", "b", Phase::Loaded),
                vec![word("b", None)],
                (Some("b"), Phase::Loaded),
            ),
            (
                told("b", "b", Phase::Loaded),
                vec![word("a", None)],
                (Some("a"), Phase::Loading),
            ),
            (
                told("b", "b", Phase::Loaded),
                vec![word("a", None), word("b", Some("line 3"))],
                (Some("a"), refused()),
            ),
            (
                told("b", "b", Phase::Loaded),
                vec![word("b", Some("line 3"))],
                (None, refused()),
            ),
            (
                told("b", "b", Phase::Loaded),
                vec![word("b", Some("line 3")), word("b", None)],
                (Some("b"), Phase::Loaded),
            ),
            (
                told("c", "b", held_back()),
                vec![word("b", None)],
                (Some("b"), held_back()),
            ),
            (
                told("c", "c", Phase::Loaded),
                vec![word("b", Some("line 3"))],
                (None, Phase::Loading),
            ),
        ];
        for (progress, words, (loaded, phase)) in table {
            let (_sender, receiver) = watch::channel(progress.clone());
            let standing = Standing::new(receiver, true);
            for word in &words {
                standing.acknowledge(Path::new("/etc/app"), word.clone());
            }
            let now = standing.now();
            assert_eq!(now.volumes[0].loaded, loaded.map(Revision::new), "{words:?}");
            assert_eq!(now.phase, phase, "{words:?}");
            assert_eq!(
                standing.acknowledged(Path::new("/etc/app")),
                words.last().cloned()
            );
        }
    }

    #[test]
    fn where_nobody_is_told_only_programs_know_what_is_loaded() {
        let (_sender, receiver) = watch::channel(told("a", "a", Phase::Loaded));
        let standing = Standing::new(receiver, false);
        assert_eq!(
            (standing.now().volumes[0].loaded.clone(), standing.now().phase),
            (None, Phase::Loading)
        );
        standing.acknowledge(Path::new("/etc/app"), word("a", None));
        assert_eq!(standing.now(), told("a", "a", Phase::Loaded));
    }

    #[tokio::test]
    async fn both_sides_wake_those_who_wait() {
        let (sender, receiver) = watch::channel(told("a", "a", Phase::Loaded));
        let standing = Standing::new(receiver, true);
        let mut waiting = standing.clone();
        standing.acknowledge(Path::new("/etc/app"), word("a", None));
        waiting.changed().await.unwrap();
        sender.send_replace(told("b", "a", Phase::Loading));
        waiting.changed().await.unwrap();
        drop(sender);
        assert!(waiting.changed().await.is_err());
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let (_sender, receiver) = watch::channel(told("a", "a", Phase::Loaded));
        let standing = Standing::new(receiver, true);
        standing.acknowledge(Path::new("/etc/app"), word("a", Some(&"ü".repeat(200))));
        let message = standing
            .acknowledged(Path::new("/etc/app"))
            .unwrap()
            .message
            .unwrap();
        assert_eq!(message.len(), MESSAGE_BYTES_MAX);
    }
}
