//! Brings changes to those who load them: render, check, tell, repeat.

mod tell;

use std::fmt;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use hotmap_projection::{Change, Revision};
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::{info, warn};

use crate::check::Check;
use crate::endpoint::Changes;
use crate::metrics::Metrics;
use crate::pace::{Draw, Pace};
use crate::progress::{Phase, Progress, VolumeProgress};
use crate::target::Target;
use tell::{Told, tell};

/// What a [`Reloader`] does for each change.
pub struct ReloaderConfig {
    /// The watched paths, as they were given: the order of [`Progress::volumes`].
    pub paths: Vec<PathBuf>,
    /// Files that are made first.
    pub renders: Vec<Box<dyn Target>>,
    /// What the change has to pass then.
    pub check: Option<Check>,
    /// Who is told last.
    pub targets: Vec<Box<dyn Target>>,
    /// Whether one target waits for the one before it.
    pub order: Order,
    /// Pauses, limits and repetitions.
    pub pace: Pace,
    /// What counts it.
    pub metrics: Metrics,
    /// Draws jitter: equal seeds draw equal pauses.
    pub seed: u64,
}

/// How several targets are told.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// In the order of the flags; each waits until the one before it has taken the change.
    #[default]
    Sequence,
    /// All at once; none waits for another.
    Parallel,
}

/// How a change ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Everything was done, and all targets have taken it.
    Loaded,
    /// The check or a template refuses it; nobody was told. Why.
    HeldBack(String),
    /// A target has not taken it, for good or as often as it may be asked. Why.
    Failed(String),
    /// A newer change is there, and this one was not brought to the end.
    Superseded,
}

impl Outcome {
    /// The label `outcome` of metrics.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Loaded => "loaded",
            Self::HeldBack(_) => "held_back",
            Self::Failed(_) => "failed",
            Self::Superseded => "superseded",
        }
    }
}

/// Brings changes to targets, one after the other, and says how far it is.
///
/// ```text
///   due (delay, jitter, interval) ─▶ render ─▶ check ─▶ targets, each with a limit, repeated with back-off
///      │ superseded                    │ refused  │ refused       │ superseded between two calls
///      ▼                               ▼          ▼               ▼
///   Superseded                        HeldBack              Superseded · Failed · Loaded
/// ```
pub struct Reloader {
    config: ReloaderConfig,
    progress: watch::Sender<Progress>,
    changes: Changes,
    draw: Draw,
    last_brought: Option<Instant>,
    /// How much of the jitter the pending change waits; drawn once, however often it is superseded.
    drawn: Option<f64>,
}

impl Reloader {
    /// A reloader that has not seen anything yet.
    pub fn new(config: ReloaderConfig) -> Self {
        let volumes = config
            .paths
            .iter()
            .map(|path| VolumeProgress::new(path.clone()))
            .collect();
        let progress = Progress {
            volumes,
            phase: Phase::Starting,
            deaf: None,
        };
        config.metrics.watched(config.paths.len());
        let draw = Draw::new(config.seed);
        Self {
            config,
            progress: watch::Sender::new(progress),
            changes: Changes::default(),
            draw,
            last_brought: None,
            drawn: None,
        }
    }

    /// How far it is, now and from now on.
    pub fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Where it says how far it is: what feeds it says there that it is deaf.
    pub fn progress_sender(&self) -> watch::Sender<Progress> {
        self.progress.clone()
    }

    /// The changes that have passed the check, as they do.
    pub(crate) fn changes(&self) -> Changes {
        self.changes.clone()
    }

    /// Whether anybody is told of changes, so that what was taken is known.
    pub(crate) fn has_targets(&self) -> bool {
        !self.config.targets.is_empty()
    }

    /// What counts it.
    pub fn metrics(&self) -> &Metrics {
        &self.config.metrics
    }

    /// Adds one more who is told, after all others.
    pub fn add_target(&mut self, target: Box<dyn Target>) {
        self.config.targets.push(target);
    }

    /// Takes the state that was found at the start as loaded, without telling anybody: who starts reads its files
    /// itself. Files are rendered, for somebody may be waiting for them.
    pub async fn adopt(&mut self, changes: &[Change], superseded: impl Future<Output = ()>) -> Outcome {
        self.saw(changes, Phase::Loading);
        let outcome = interruptible(superseded, async |newer| {
            match tell(
                &self.config,
                &self.config.renders,
                Order::Sequence,
                changes,
                &mut self.draw,
                newer,
            )
            .await
            {
                Told::Failed {
                    reason,
                    is_temporary: false,
                } => Outcome::HeldBack(reason),
                rendered => told(rendered),
            }
        })
        .await;
        if outcome == Outcome::Loaded {
            self.changes.passed(changes);
            info!(
                revision = revisions(changes),
                "content found, targets are told of changes"
            );
        }
        self.conclude(changes, &outcome);
        outcome
    }

    /// Brings changes to the targets. A newer change (`superseded`) ends it while it waits, never in the middle of a
    /// check or of a call; these have limits of their own.
    pub async fn apply(&mut self, changes: &[Change], superseded: impl Future<Output = ()>) -> Outcome {
        self.saw(changes, Phase::Loading);
        self.config.metrics.seen();
        let outcome = interruptible(superseded, async |newer| self.bring(changes, newer).await).await;
        if outcome != Outcome::Superseded {
            self.drawn = None;
        }
        let since_seen = changes
            .iter()
            .map(|change| change.seen.elapsed())
            .max()
            .unwrap_or_default();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.config
            .metrics
            .ended(outcome.as_str(), since_seen, unix.as_secs_f64());
        if outcome == Outcome::Loaded {
            info!(revision = revisions(changes), "change loaded");
        }
        self.conclude(changes, &outcome);
        outcome
    }

    async fn bring(&mut self, changes: &[Change], mut newer: watch::Receiver<bool>) -> Outcome {
        let Some(seen) = changes.iter().map(|change| change.seen).min() else {
            return Outcome::Loaded;
        };
        let drawn = *self.drawn.get_or_insert_with(|| self.draw.next());
        let due = self
            .config
            .pace
            .due(Instant::from_std(seen), self.last_brought, drawn);
        if due > Instant::now() {
            tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                _ = newer.wait_for(|is_newer| *is_newer) => return Outcome::Superseded,
            }
        }
        self.last_brought = Some(Instant::now());
        let config = &self.config;
        match tell(
            config,
            &config.renders,
            Order::Sequence,
            changes,
            &mut self.draw,
            newer.clone(),
        )
        .await
        {
            Told::All => {}
            Told::Failed {
                reason,
                is_temporary: false,
            } => return Outcome::HeldBack(reason),
            Told::Failed { reason, .. } => return Outcome::Failed(reason),
            Told::Superseded => return Outcome::Superseded,
        }
        if let Some(check) = &config.check {
            let refusal = check.run(changes).await.err();
            config
                .metrics
                .checked(refusal.as_ref().map(|refusal| refusal.reason));
            if let Some(refusal) = refusal {
                return Outcome::HeldBack(refusal.message);
            }
        }
        self.changes.passed(changes);
        told(
            tell(
                config,
                &config.targets,
                config.order,
                changes,
                &mut self.draw,
                newer,
            )
            .await,
        )
    }

    fn saw(&self, changes: &[Change], phase: Phase) {
        self.progress.send_modify(|progress| {
            for change in changes {
                if let Some(volume) = volume(progress, change) {
                    volume.changed(&change.revision);
                }
            }
            progress.phase = phase;
        });
    }

    fn conclude(&self, changes: &[Change], outcome: &Outcome) {
        let revision = revisions(changes);
        match outcome {
            Outcome::HeldBack(reason) => warn!(revision, error = %reason, "change held back"),
            Outcome::Failed(reason) => warn!(revision, error = %reason, "change not loaded"),
            Outcome::Loaded | Outcome::Superseded => {}
        }
        self.progress.send_modify(|progress| match outcome {
            Outcome::Loaded => {
                for change in changes {
                    if let Some(volume) = volume(progress, change) {
                        volume.loaded = Some(volume.now(&change.revision));
                    }
                }
                progress.phase = Phase::Loaded;
            }
            Outcome::HeldBack(reason) => progress.phase = Phase::HeldBack(reason.clone()),
            Outcome::Failed(reason) => progress.phase = Phase::Failed(reason.clone()),
            Outcome::Superseded => {}
        });
        if *outcome == Outcome::Loaded {
            let progress = self.progress.borrow();
            let loaded = progress.volumes.iter().filter_map(|volume| {
                let loaded: Option<&Revision> = volume.loaded.as_ref();
                Some((volume.path.to_str()?, loaded?))
            });
            self.config.metrics.loaded(loaded);
        }
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader")
            .field("progress", &*self.progress.borrow())
            .finish_non_exhaustive()
    }
}

fn volume<'a>(progress: &'a mut Progress, change: &Change) -> Option<&'a mut VolumeProgress> {
    progress
        .volumes
        .iter_mut()
        .find(|volume| volume.path == *change.path)
}

fn revisions(changes: &[Change]) -> String {
    changes
        .iter()
        .map(|change| change.revision.as_str())
        .collect::<Vec<_>>()
        .join(" ")
}

fn told(told: Told) -> Outcome {
    match told {
        Told::All => Outcome::Loaded,
        Told::Failed { reason, .. } => Outcome::Failed(reason),
        Told::Superseded => Outcome::Superseded,
    }
}

/// Runs the work to its end, and tells it when `superseded` resolves; when to stop is its own matter.
async fn interruptible<T>(
    superseded: impl Future<Output = ()>,
    work: impl AsyncFnOnce(watch::Receiver<bool>) -> T,
) -> T {
    let (tell_newer, newer) = watch::channel(false);
    let mut work = std::pin::pin!(work(newer));
    let superseded = std::pin::pin!(superseded);
    tokio::select! {
        biased;
        done = &mut work => return done,
        () = superseded => {}
    }
    tell_newer.send_replace(true);
    work.await
}

#[cfg(test)]
mod tests;
