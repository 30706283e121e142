//! The loop: what is desired is written, told, and verified.

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant as Moment};

use hotmap_client::{Backoff, Client, ClientConfig, ServerProof, Surroundings};
use hotmap_projection::{Change, Revision};
use hotmap_volume::Payload;
use tokio::time::{Instant, sleep_until};
use tracing::{info, warn};

use crate::announcer::{Announcer, AnnouncerError};
use crate::metrics::Metrics;
use crate::pending::Pending;
use crate::reloader::{Outcome, Reloader};
use crate::sync::changes::changed_keys;
use crate::sync::config::SyncConfig;
use crate::sync::destination::{Destination, DestinationError, DestinationOptions, PlaceError, Placed};
use crate::sync::follow::Following;
use crate::sync::hearing::Hearing;
use crate::sync::manifests::ManifestsError;
use crate::sync::merge::{DesiredRevision, World, shown};
use crate::sync::metrics::{SyncMetrics, Write};
use crate::sync::object::ObjectVersion;
use crate::sync::verify::Verify;
use crate::sync::writer_thread::WriterThread;

/// The pauses after a write that failed: a full disk is asked again soon, and not all the time.
const REWRITE_MIN: Duration = Duration::from_millis(100);
const REWRITE_MAX: Duration = Duration::from_secs(30);
/// How often a target's failed call is repeated with --once, where nobody waits for ever.
const ONCE_RETRIES: u32 = 8;

/// Why nothing is synced any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SyncError {
    #[error("cannot find the API")]
    Api(#[from] hotmap_client::ConfigError),
    #[error(transparent)]
    Manifests(#[from] ManifestsError),
    #[error(transparent)]
    Destination(#[from] DestinationError),
    #[error(transparent)]
    Announcer(#[from] AnnouncerError),
    #[error("{0}")]
    Flags(String),
    #[error("cannot start the thread that writes")]
    Thread(#[from] io::Error),
    #[error("nothing was written within {} s: {why}", .after.as_secs_f64())]
    TimedOut { after: Duration, why: String },
    #[error("the revision was written, and then: {0}")]
    NotLoaded(String),
}

impl SyncError {
    /// 2 where the call was wrong, 1 otherwise.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Flags(_)
            | Self::Announcer(AnnouncerError::NotWatched { .. })
            | Self::Destination(
                DestinationError::SecretsOnDisk { .. } | DestinationError::OtherLayout { .. },
            ) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

/// Syncs until `stop`, or until it is done once.
pub(crate) async fn run(mut config: SyncConfig, stop: impl Future<Output = ()>) -> Result<(), SyncError> {
    let once = config.once;
    let announcer = Announcer::open(
        std::mem::take(&mut config.announcer),
        std::slice::from_ref(&config.directory),
    )?;
    let mut sync = Sync::start(config)?;
    let announcing = announcer.run(&sync.reloader);
    let deadline = once.map(|after| Instant::now() + after);
    tokio::select! {
        biased;
        // Whatever is given up here is whole: a write ends in its thread, a command is killed.
        () = stop => Ok(()),
        () = announcing => Ok(()),
        ended = sync.run(once, deadline) => ended,
    }
}

struct Sync {
    path: Arc<PathBuf>,
    hearing: Hearing,
    writer: WriterThread,
    reloader: Reloader,
    /// What was written and not taken by all targets.
    pending: Pending,
    verify: Option<Verify>,
    /// What the directory holds.
    held: Option<Payload>,
    /// Whether this process has written it, or found it to be right.
    is_placed: bool,
    /// The last revision that has passed.
    verified: Option<Payload>,
    refused: Refused,
    metrics: SyncMetrics,
    shadowed: Vec<String>,
    backoff: Backoff,
    /// When a write that failed is tried again.
    rewrite_at: Option<Instant>,
    write_error: Option<PlaceError>,
}

/// The revision that has not passed: it is not tried again.
#[derive(Default)]
struct Refused {
    payload: Option<Payload>,
    versions: Vec<ObjectVersion>,
    why: String,
    is_told: bool,
}

impl Refused {
    /// By its content in this process, by the versions of its objects after a restart. Manifests have no versions.
    fn is(&self, desired: &DesiredRevision) -> bool {
        let has_versions = !desired.has_fetched
            && desired
                .versions
                .iter()
                .all(|version| !version.resource_version.is_empty());
        self.payload.as_ref() == Some(&desired.payload)
            || (has_versions && !self.versions.is_empty() && self.versions == desired.versions)
    }
}

/// What came of bringing the directory to what is desired.
enum Settled {
    /// Nothing is desired yet, or the disk has failed.
    NotYet,
    /// Something newer is desired, or the former revision.
    Again,
    Done,
    Failed(String),
}

impl Sync {
    fn start(config: SyncConfig) -> Result<Self, SyncError> {
        let path = config.directory.clone();
        let destination = Destination::open(
            &path,
            DestinationOptions {
                layout: config.layout,
                owner: config.owner,
                has_secrets: config.has_secrets(),
                secrets_on_disk: config.secrets_on_disk,
                keeps_verified: config.verify.is_some(),
            },
        )?;
        let mut reloader = config
            .reloader
            .config(vec![path.clone()], crate::cli::environment())
            .map_err(SyncError::Flags)?;
        let (all, metrics) = Metrics::with(config.reloader.metric_names, SyncMetrics::register);
        reloader.metrics = all;
        if config.once.is_some() {
            reloader.pace.retries = reloader.pace.retries.or(Some(ONCE_RETRIES));
        }
        let verify = config.verify.as_ref().map(Verify::new);
        let held = destination.held();
        let verified = destination
            .verified()
            .or_else(|| held.clone().filter(|_| verify.is_some()));
        let refused = Refused {
            versions: destination.refused().to_vec(),
            why: "it has not passed before".to_owned(),
            ..Refused::default()
        };
        let (selections, following) = sources(&config)?;
        let world = World::new(selections, config.modes, config.is_optional, config.sidecar);
        let fetches = config
            .fetch
            .map(|fetch| fetch.start(reloader.pace.clone(), reloader.seed, config.once.is_some()));
        Ok(Self {
            path: Arc::new(path),
            hearing: Hearing::new(world, following, fetches, metrics.clone()),
            writer: WriterThread::start(destination)?,
            reloader: Reloader::new(reloader),
            pending: Pending::default(),
            verify,
            held,
            is_placed: false,
            verified,
            refused,
            metrics,
            shadowed: Vec::new(),
            backoff: Backoff::seeded(REWRITE_MIN, REWRITE_MAX),
            rewrite_at: None,
            write_error: None,
        })
    }

    async fn run(&mut self, once: Option<Duration>, deadline: Option<Instant>) -> Result<(), SyncError> {
        self.tell_deafness();
        self.restore_verified().await;
        loop {
            tokio::select! {
                biased;
                () = self.hearing.next() => self.tell_deafness(),
                () = until(self.rewrite_at) => {}
                () = until(deadline) => {
                    let after = once.unwrap_or_default();
                    return Err(SyncError::TimedOut { after, why: self.why_not() });
                }
            }
            loop {
                match self.settle().await {
                    Settled::Again => {}
                    Settled::NotYet => break,
                    Settled::Done if once.is_some() => return Ok(()),
                    Settled::Failed(why) if once.is_some() => return Err(SyncError::NotLoaded(why)),
                    Settled::Done | Settled::Failed(_) => break,
                }
            }
        }
    }

    /// The process may have ended between a write and its verification: then the directory holds what nobody has found
    /// good. The last that was is put back before anybody is asked for news.
    async fn restore_verified(&mut self) {
        if self.verify.is_none() || self.held.is_none() || self.held == self.verified {
            return;
        }
        if let Some(verified) = self.verified.clone() {
            warn!("what the directory holds was never verified, the last verified revision is put back");
            if self.place(&verified, Moment::now()).await.is_some() {
                let changes = self.pending.changes().to_vec();
                // Whoever is to be told may start only later: news is not kept waiting for that.
                let refused = &self.refused;
                let is_newer = |newer: &DesiredRevision| newer.payload != verified && !refused.is(newer);
                let newer = self.hearing.newer(is_newer);
                let outcome = self.reloader.apply(&changes, newer).await;
                self.conclude(&outcome).await;
            }
        }
    }

    /// Brings the directory and the targets to what is desired.
    async fn settle(&mut self) -> Settled {
        let heard = Moment::now();
        let Some(desired) = self.hearing.desired() else {
            return Settled::NotYet;
        };
        let is_refused = self.refused.is(&desired);
        let payload = if is_refused {
            self.say_refused(&desired);
            match &self.verified {
                Some(verified) => verified.clone(),
                None => return Settled::Failed(self.refused.why.clone()),
            }
        } else {
            desired.payload.clone()
        };
        if self.is_placed && self.held.as_ref() == Some(&payload) {
            self.rewrite_at = None;
            return match is_refused {
                true => Settled::Failed(self.refused.why.clone()),
                false => Settled::Done,
            };
        }
        let Some(placed) = self.place(&payload, heard).await else {
            return Settled::NotYet;
        };
        self.tell_deafness();
        self.say_placed(&desired, &payload, &placed, is_refused);
        if self.pending.is_empty() {
            self.adopt(&payload, placed.revision).await;
            return self.verify_what_is_there(&desired, is_refused).await;
        }
        let changes = self.pending.changes().to_vec();
        let (hearing, refused) = (&mut self.hearing, &self.refused);
        let is_newer = |newer: &DesiredRevision| newer.payload != desired.payload && !refused.is(newer);
        let outcome = self.reloader.apply(&changes, hearing.newer(is_newer)).await;
        self.conclude(&outcome).await;
        match outcome {
            Outcome::Superseded => Settled::Again,
            Outcome::Loaded if is_refused => Settled::Failed(self.refused.why.clone()),
            Outcome::Loaded => self.verify(desired, &changes).await,
            Outcome::HeldBack(why) | Outcome::Failed(why) if is_refused || self.verify.is_none() => {
                Settled::Failed(why)
            }
            Outcome::HeldBack(why) | Outcome::Failed(why) => self.refuse(desired, why).await,
        }
    }

    /// The directory had this content already: whoever uses it has read it.
    async fn adopt(&mut self, payload: &Payload, revision: Revision) {
        let found = Change {
            path: Arc::clone(&self.path),
            revision,
            keys: changed_keys(None, payload).into(),
            is_initial: true,
            seen: Moment::now(),
        };
        let refused = &self.refused;
        let is_newer = |newer: &DesiredRevision| newer.payload != *payload && !refused.is(newer);
        let newer = self.hearing.newer(is_newer);
        let _ = self.reloader.adopt(&[found], newer).await;
    }

    /// The directory had this content already: nobody is told. Whether it is good may not be known.
    async fn verify_what_is_there(&mut self, desired: &DesiredRevision, is_refused: bool) -> Settled {
        if is_refused {
            return Settled::Failed(self.refused.why.clone());
        }
        if self.verify.is_some() && self.verified.as_ref() == Some(&desired.payload) {
            self.keep_verified(&desired.payload).await;
        }
        Settled::Done
    }

    async fn verify(&mut self, desired: DesiredRevision, changes: &[Change]) -> Settled {
        let Some(verify) = &self.verify else {
            return Settled::Done;
        };
        let (hearing, refused) = (&mut self.hearing, &self.refused);
        let is_newer = |newer: &DesiredRevision| newer.payload != desired.payload && !refused.is(newer);
        let answer = tokio::select! {
            biased;
            answer = verify.run(changes) => answer,
            () = hearing.newer(is_newer) => return Settled::Again,
        };
        self.metrics.verified(answer.is_ok());
        match answer {
            Ok(()) => {
                self.keep_verified(&desired.payload).await;
                info!("revision verified");
                Settled::Done
            }
            Err(why) => self.refuse(desired, why).await,
        }
    }

    async fn keep_verified(&mut self, payload: &Payload) {
        self.verified = Some(payload.clone());
        self.refused = Refused::default();
        let payload = payload.clone();
        if let Err(error) = self.writer.run(move |to| to.keep_verified(&payload)).await {
            warn!(%error, "cannot keep the verified revision: after a restart it cannot be put back");
        }
    }

    /// The next round puts the former revision back.
    async fn refuse(&mut self, desired: DesiredRevision, why: String) -> Settled {
        let has_former = self.verified.is_some();
        warn!(error = %why, has_former, "the revision has not passed; the former one is put back, if there is one");
        let versions = desired.versions.clone();
        self.refused = Refused {
            payload: Some(desired.payload),
            versions: desired.versions,
            why: why.clone(),
            is_told: true,
        };
        if let Err(error) = self.writer.run(move |to| to.set_refused(versions)).await {
            warn!(%error, "cannot remember the bad revision: after a restart it is tried again");
        }
        if has_former {
            Settled::Again
        } else {
            Settled::Failed(why)
        }
    }

    /// Writes; what has changed is pending then. `None` if it failed.
    async fn place(&mut self, payload: &Payload, heard: Moment) -> Option<Placed> {
        let job = payload.clone();
        let written = self.writer.run(move |to| to.place(&job)).await;
        let placed = match written {
            Ok(placed) => placed,
            Err(error) => {
                let pause = self.backoff.next_delay();
                self.rewrite_at = Some(Instant::now() + pause);
                self.metrics.wrote(Write::Failed, heard.elapsed());
                let (is_published, retry_in_ms) = (error.is_published, pause.as_millis());
                warn!(%error, is_published, retry_in_ms, "cannot write, the last good content stays");
                self.write_error = Some(error);
                self.tell_deafness();
                // What is there now is not known well enough to leave it alone.
                self.is_placed = false;
                return None;
            }
        };
        self.backoff.reset();
        self.rewrite_at = None;
        self.write_error = None;
        let write = if placed.is_new {
            Write::New
        } else {
            Write::Unchanged
        };
        self.metrics.wrote(write, heard.elapsed());
        if placed.is_new {
            self.pending.absorb(Change {
                path: Arc::clone(&self.path),
                revision: placed.revision.clone(),
                keys: changed_keys(self.held.as_ref(), payload).into(),
                is_initial: false,
                seen: heard,
            });
        }
        self.held = Some(payload.clone());
        self.is_placed = true;
        Some(placed)
    }

    /// Whoever was told has read the new files, or never will: those of before go.
    async fn conclude(&mut self, outcome: &Outcome) {
        if *outcome == Outcome::Loaded {
            self.pending.clear();
        }
        for error in self.writer.run(|to| to.sweep()).await {
            warn!(
                error,
                "what should be gone is still there, and is tried again with the next revision"
            );
        }
    }

    /// Who asks for health hears of it: also of content that is not there yet.
    fn tell_deafness(&self) {
        let nothing_yet = || {
            let is_waiting = self.held.is_none() || self.write_error.is_some();
            is_waiting.then(|| format!("nothing could be written yet: {}", self.why_not()))
        };
        let deaf = self.hearing.deaf().or_else(nothing_yet);
        self.reloader.progress_sender().send_if_modified(|progress| {
            let is_other = progress.deaf != deaf;
            progress.deaf.clone_from(&deaf);
            is_other
        });
    }

    fn say_refused(&mut self, desired: &DesiredRevision) {
        if !self.refused.is_told {
            let objects = names(desired);
            warn!(objects, error = %self.refused.why, "not tried again until an object changes");
            self.refused.is_told = true;
        }
    }

    fn say_placed(&mut self, desired: &DesiredRevision, payload: &Payload, placed: &Placed, is_former: bool) {
        let (revision, files) = (&placed.revision, payload.len());
        let objects = names(desired);
        match (is_former, placed.is_new) {
            (true, _) => info!(%revision, files, "former revision put back"),
            (false, true) => info!(%revision, files, objects, "revision written"),
            (false, false) => info!(%revision, files, objects, "the directory has this content already"),
        }
        if placed.shadowed != self.shadowed {
            for name in &placed.shadowed {
                warn!(
                    name,
                    "a file that is not ours is in the way of this one, and stays"
                );
            }
            self.metrics.shadowed(placed.shadowed.len());
            self.shadowed.clone_from(&placed.shadowed);
        }
        for error in &placed.leftovers {
            warn!(
                error,
                "what should be gone is still there, and is tried again with the next revision"
            );
        }
    }

    /// For whoever waited in vain.
    fn why_not(&self) -> String {
        let mut reasons = self.hearing.why_not();
        reasons.extend(self.write_error.as_ref().map(ToString::to_string));
        reasons.join("; ")
    }
}

type Sources = (Vec<crate::sync::merge::Selection>, Following);

fn sources(config: &SyncConfig) -> Result<Sources, SyncError> {
    if let Some(from) = &config.from {
        let namespace = config.home_namespace(None);
        let selections = config.selections(Some(&namespace));
        let following = Following::of_manifests(from.clone(), namespace, selections.clone())?;
        return Ok((selections, following));
    }
    let mut api = ClientConfig::find(
        config.kubeconfig.as_deref(),
        config.context.as_deref(),
        &Surroundings::of_process(),
    )?;
    if config.trusts_any_server {
        api.server_proof = ServerProof::None;
        warn!(
            server = %api.server.url(),
            "the certificate of the API is not looked at (--insecure-skip-tls-verify): whoever stands between reads the \
             credentials and decides what is written"
        );
    }
    let selections = config.selections(api.namespace.as_deref());
    let following = Following::of_api(&Client::new(api)?, &selections);
    Ok((selections, following))
}

/// `shop/configmap/app@7 …`; objects of manifests have no version.
fn names(desired: &DesiredRevision) -> String {
    let names = desired
        .versions
        .iter()
        .map(|version| match version.resource_version.as_str() {
            "" => shown(version),
            resource_version => format!("{}@{resource_version}", shown(version)),
        });
    names.collect::<Vec<_>>().join(" ")
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
