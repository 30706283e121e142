//! The loop: what is heard becomes a desired revision, and that is written.

use std::collections::BTreeMap;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

use hotmap_client::{Backoff, Client, ClientConfig, FollowEvent, Surroundings};
use hotmap_volume::Payload;
use tokio::time::{Instant, sleep_until};
use tracing::{debug, info, warn};

use crate::sync::config::SyncConfig;
use crate::sync::destination::{Destination, DestinationError, DestinationOptions, Placed};
use crate::sync::follow::{Following, Heard, interruption};
use crate::sync::merge::{Desired, DesiredRevision, Removal, Waiting, World, shown};
use crate::sync::object::Document;
use crate::sync::writer_thread::WriterThread;

/// The pauses after a write that failed: a full disk is asked again soon, and not all the time.
const REWRITE_MIN: Duration = Duration::from_millis(100);
const REWRITE_MAX: Duration = Duration::from_secs(30);

/// Why nothing is synced any more.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SyncError {
    #[error("cannot find the API")]
    Api(#[from] hotmap_client::ConfigError),
    #[error(transparent)]
    Destination(#[from] DestinationError),
    #[error("cannot start the thread that writes")]
    Thread(#[from] io::Error),
    #[error("nothing was written within {} s: {why}", .after.as_secs_f64())]
    TimedOut { after: Duration, why: String },
}

impl SyncError {
    /// 2 where the call was wrong, 1 otherwise.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Destination(DestinationError::SecretsOnDisk { .. }) => ExitCode::from(2),
            _ => ExitCode::FAILURE,
        }
    }
}

/// Syncs until `stop`, or until it is done once.
pub(crate) async fn run(config: SyncConfig, stop: impl Future<Output = ()>) -> Result<(), SyncError> {
    let destination = Destination::open(
        &config.directory,
        DestinationOptions {
            owner: config.owner,
            has_secrets: config.has_secrets(),
            secrets_on_disk: config.secrets_on_disk,
        },
    )?;
    let api = ClientConfig::find(
        config.kubeconfig.as_deref(),
        config.context.as_deref(),
        &Surroundings::of_process(),
    )?;
    let selections = config.selections(&api);
    let client = Client::new(api)?;
    let following = Following::start(&client, &selections);
    let world = World::new(
        selections,
        config.modes,
        config.is_optional,
        config.sidecar.clone(),
    );
    let mut sync = Sync {
        world,
        following,
        writer: WriterThread::start(destination)?,
        held: None,
        interrupted: BTreeMap::new(),
        said: Said::default(),
        backoff: Backoff::seeded(REWRITE_MIN, REWRITE_MAX),
        rewrite_at: None,
    };
    sync.run(config.once, stop).await
}

struct Sync {
    world: World,
    following: Following,
    writer: WriterThread,
    /// What the directory holds, once something was written.
    held: Option<Payload>,
    /// Selections the API cannot be heard about, with the reason.
    interrupted: BTreeMap<usize, String>,
    said: Said,
    backoff: Backoff,
    /// When a write that failed is tried again.
    rewrite_at: Option<Instant>,
}

/// What was logged last: each state is told once.
#[derive(Default)]
struct Said {
    missing: Vec<String>,
    impossible: Option<String>,
    refused: Vec<String>,
    shadowed: Vec<String>,
}

impl Sync {
    async fn run(&mut self, once: Option<Duration>, stop: impl Future<Output = ()>) -> Result<(), SyncError> {
        let deadline = once.map(|after| Instant::now() + after);
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                biased;
                () = &mut stop => return Ok(()),
                heard = self.following.next() => self.take_all(heard),
                () = until(self.rewrite_at) => {}
                () = until(deadline) => {
                    let after = once.unwrap_or_default();
                    return Err(SyncError::TimedOut { after, why: self.why_not() });
                }
            }
            let is_done = self.settle().await;
            if is_done && once.is_some() {
                return Ok(());
            }
        }
    }

    /// Several changes that came together make one revision.
    fn take_all(&mut self, first: Heard) {
        let mut next = Some(first);
        while let Some(heard) = next {
            self.take(heard);
            next = self.following.try_next();
        }
    }

    fn take(&mut self, heard: Heard) {
        let Heard { selection, event } = heard;
        let kind = self.world.selection(selection).kind;
        let parse = |json: &[u8]| Document::parse(kind, json);
        match event {
            FollowEvent::Initial(objects) => {
                let parsed = objects.iter().filter_map(|object| {
                    parse(object.json())
                        .inspect_err(|error| warn!(%kind, namespace = object.namespace(), name = object.name(), %error, "object left out"))
                        .ok()
                });
                self.world.replace(selection, parsed.collect());
                self.heard_again(selection);
            }
            FollowEvent::Applied(object) => {
                let (namespace, name) = (object.namespace(), object.name());
                match parse(object.json()) {
                    Ok(document) => {
                        debug!(%kind, namespace, name, resource_version = object.resource_version(), "object changed");
                        self.world.apply(selection, document);
                    }
                    Err(error) => {
                        warn!(%kind, namespace, name, %error, "object cannot be read, its last content stays")
                    }
                }
            }
            FollowEvent::Deleted(object) => {
                let (namespace, name) = (object.namespace(), object.name());
                match self.world.delete(selection, namespace, name) {
                    Removal::Kept => warn!(%kind, namespace, name, "object is gone, its last content stays"),
                    Removal::Removed => {
                        info!(%kind, namespace, name, "object is gone, and its files with it")
                    }
                }
            }
            FollowEvent::Interrupted(error) => {
                let why = interruption(self.world.selection(selection), &error);
                let before = self.interrupted.insert(selection, why.clone());
                if before.as_deref() == Some(why.as_str()) {
                    debug!(error = %why, "the API still cannot be heard");
                } else {
                    warn!(error = %why, "the API cannot be heard, the last content stays");
                }
            }
            FollowEvent::Resumed => self.heard_again(selection),
        }
    }

    fn heard_again(&mut self, selection: usize) {
        if self.interrupted.remove(&selection).is_some() && self.interrupted.is_empty() {
            info!("the API is heard again");
        }
    }

    /// Brings the directory to what is desired. True if it is there.
    async fn settle(&mut self) -> bool {
        match self.world.desired() {
            Desired::Waiting(waiting) => {
                self.say_missing(waiting);
                false
            }
            Desired::Impossible(why) => {
                if self.said.impossible.as_ref() != Some(&why) {
                    warn!(error = %why, "the objects make no set of files, the last content stays");
                    self.said.impossible = Some(why);
                }
                false
            }
            Desired::Revision(revision) => {
                self.said.impossible = None;
                self.say_missing(Waiting::default());
                self.write(revision).await
            }
        }
    }

    async fn write(&mut self, desired: DesiredRevision) -> bool {
        if self.held.as_ref() == Some(&desired.payload) {
            self.rewrite_at = None;
            return true;
        }
        self.say_left_out(&desired);
        match self.writer.place(desired.payload.clone()).await {
            Ok(placed) => {
                self.backoff.reset();
                self.rewrite_at = None;
                self.held = Some(desired.payload.clone());
                self.say_placed(&desired, placed);
                true
            }
            Err(error) => {
                let pause = self.backoff.next_delay();
                self.rewrite_at = Some(Instant::now() + pause);
                let is_published = error.is_published;
                warn!(%error, is_published, retry_in_ms = pause.as_millis(), "cannot write, the last good content stays");
                false
            }
        }
    }

    fn say_missing(&mut self, waiting: Waiting) {
        if waiting.missing != self.said.missing {
            for whom in &waiting.missing {
                warn!(object = %whom, "waiting for an object that does not exist");
            }
            self.said.missing = waiting.missing;
        }
    }

    fn say_left_out(&mut self, desired: &DesiredRevision) {
        for over in &desired.overridden {
            debug!(
                path = over.path,
                loser = over.loser,
                winner = over.winner,
                "two objects have one key, the later one wins"
            );
        }
        if desired.refused != self.said.refused {
            for why in &desired.refused {
                warn!(error = %why, "left out");
            }
            self.said.refused.clone_from(&desired.refused);
        }
    }

    fn say_placed(&mut self, desired: &DesiredRevision, placed: Placed) {
        let Placed {
            revision,
            is_new,
            shadowed,
            leftovers,
        } = placed;
        let objects: Vec<String> = desired
            .versions
            .iter()
            .map(|version| format!("{}@{}", shown(version), version.resource_version))
            .collect();
        let (files, objects) = (desired.payload.len(), objects.join(" "));
        if is_new {
            info!(%revision, files, objects, "revision written");
        } else {
            info!(%revision, files, objects, "the directory has this content already");
        }
        if shadowed != self.said.shadowed {
            for name in &shadowed {
                warn!(
                    name,
                    "a file that is not ours is in the way of this one, which shows beneath ..data only"
                );
            }
            self.said.shadowed = shadowed;
        }
        for error in leftovers {
            warn!(
                error,
                "what should be gone is still there, and is tried again with the next revision"
            );
        }
    }

    /// For whoever waited in vain.
    fn why_not(&self) -> String {
        let mut reasons: Vec<String> = self.interrupted.values().cloned().collect();
        match self.world.desired() {
            Desired::Waiting(waiting) => {
                reasons.extend(
                    waiting
                        .missing
                        .iter()
                        .map(|whom| format!("{whom} does not exist")),
                );
                if reasons.is_empty() {
                    reasons.extend(
                        waiting
                            .unheard
                            .iter()
                            .map(|whom| format!("no answer about {whom}")),
                    );
                }
            }
            Desired::Impossible(why) => reasons.push(why),
            Desired::Revision(_) if reasons.is_empty() => {
                reasons.push("the directory cannot be written, see the lines above".to_owned());
            }
            Desired::Revision(_) => {}
        }
        reasons.join("; ")
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
