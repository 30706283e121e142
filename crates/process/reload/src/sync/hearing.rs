//! What is known of the objects, kept up to date with what is heard, and told once.

use std::collections::BTreeMap;

use hotmap_client::FollowEvent;
use tracing::{debug, info, warn};

use crate::sync::fetch::{Fetched, Fetches};
use crate::sync::follow::{Following, Heard, interruption};
use crate::sync::merge::{Desired, DesiredRevision, Removal, Waiting, World};
use crate::sync::metrics::SyncMetrics;
use crate::sync::object::Document;

/// The world, and who tells of it.
pub(crate) struct Hearing {
    world: World,
    following: Following,
    /// Who fetches what is at the URLs of keys.
    fetches: Option<Fetches>,
    /// Selections the API cannot be heard about, with the reason.
    interrupted: BTreeMap<usize, String>,
    /// Why the manifests cannot be read.
    unreadable: Option<String>,
    said: Said,
    metrics: SyncMetrics,
}

/// What was logged last: each state is told once.
#[derive(Default)]
struct Said {
    missing: Vec<String>,
    impossible: Option<String>,
    refused: Vec<String>,
    overridden: Vec<crate::sync::merge::Overridden>,
}

impl Hearing {
    pub(crate) fn new(
        world: World,
        following: Following,
        fetches: Option<Fetches>,
        metrics: SyncMetrics,
    ) -> Self {
        Self {
            world,
            following,
            fetches,
            interrupted: BTreeMap::new(),
            unreadable: None,
            said: Said::default(),
            metrics,
        }
    }

    /// Waits for news, and takes all there is: changes that came together make one revision. Dropping the future loses
    /// nothing.
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            heard = self.following.next() => self.take(heard),
            fetched = fetched(&mut self.fetches) => self.take_fetched(fetched),
        }
        while let Some(heard) = self.following.try_next() {
            self.take(heard);
        }
        if let Some(fetches) = &mut self.fetches {
            for (key, address) in self.world.urls_to_ask() {
                fetches.ask(key, address);
            }
            fetches.keep(self.world.contents());
        }
        self.metrics.deaf(self.deaf().is_some());
    }

    /// Waits until something is desired that `is_newer` accepts.
    pub(crate) async fn newer(&mut self, is_newer: impl Fn(&DesiredRevision) -> bool) {
        loop {
            self.next().await;
            if let Desired::Revision(desired) = self.world.desired()
                && is_newer(&desired)
            {
                return;
            }
        }
    }

    /// What the directory shall hold, if that is known; if not, it says why.
    pub(crate) fn desired(&mut self) -> Option<DesiredRevision> {
        let desired = self.world.desired();
        let impossible = match &desired {
            Desired::Impossible(why) => Some(why.clone()),
            _ => None,
        };
        if let Some(why) = &impossible
            && self.said.impossible != impossible
        {
            warn!(error = %why, "the objects make no set of files, the last content stays");
        }
        self.said.impossible = impossible;
        self.metrics.impossible(self.said.impossible.is_some());
        match desired {
            Desired::Waiting(waiting) => {
                self.say_missing(waiting);
                None
            }
            Desired::Impossible(_) => None,
            Desired::Revision(revision) => {
                self.say_missing(Waiting::default());
                self.say_left_out(&revision);
                Some(revision)
            }
        }
    }

    /// Why changes may be missed, if they may.
    pub(crate) fn deaf(&self) -> Option<String> {
        self.interrupted
            .values()
            .next()
            .or(self.unreadable.as_ref())
            .cloned()
    }

    /// For whoever waited in vain: why nothing is desired yet. Empty if something is.
    pub(crate) fn why_not(&self) -> Vec<String> {
        let mut reasons: Vec<String> = self
            .interrupted
            .values()
            .chain(&self.unreadable)
            .cloned()
            .collect();
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
            Desired::Revision(_) => {}
        }
        reasons
    }

    fn take(&mut self, heard: Heard) {
        match heard {
            Heard::Followed { selection, event } => self.take_event(selection, event),
            Heard::Manifests(found) => {
                if self.unreadable.take().is_some() {
                    info!("the manifests can be read again");
                }
                for (number, documents) in found.into_iter().enumerate() {
                    self.world.replace(number, documents);
                }
            }
            Heard::Unreadable(why) => {
                if self.unreadable.as_ref() != Some(&why) {
                    warn!(error = %why, "the manifests cannot be read, the last content stays");
                }
                self.unreadable = Some(why);
            }
        }
    }

    fn take_fetched(&mut self, fetched: Fetched) {
        let key = fetched.key.clone();
        let error = fetched.answer.as_ref().err().cloned();
        if !self.world.contents_mut().answered(fetched) {
            return;
        }
        match error {
            None => debug!(%key, "content fetched"),
            Some(error) => warn!(%key, %error, "content cannot be fetched, the last one stays"),
        }
    }

    fn take_event(&mut self, selection: usize, event: FollowEvent) {
        let kind = self.world.selection(selection).kind;
        let parse = |json: &[u8]| Document::parse(kind, json);
        match event {
            FollowEvent::Initial(objects) => {
                let mut documents = Vec::new();
                for object in &objects {
                    let (namespace, name) = (object.namespace(), object.name());
                    match parse(object.json()) {
                        Ok(document) => documents.push(document),
                        Err(error) => {
                            warn!(%kind, namespace, name, %error, "object cannot be read, it is left out")
                        }
                    }
                }
                self.world.replace(selection, documents);
                self.heard_again(selection);
            }
            FollowEvent::Applied(object) => {
                let (namespace, name) = (object.namespace(), object.name());
                match parse(object.json()) {
                    Ok(document) => {
                        let resource_version = object.resource_version();
                        debug!(%kind, namespace, name, resource_version, "object changed");
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
                    Removal::Kept => {
                        self.metrics.gone();
                        warn!(%kind, namespace, name, "object is gone, its last content stays");
                    }
                    Removal::Removed => {
                        info!(%kind, namespace, name, "object is gone, and its files with it")
                    }
                }
            }
            FollowEvent::Interrupted(error) => {
                let why = interruption(self.world.selection(selection), &error);
                self.metrics.interrupted();
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

    fn say_missing(&mut self, waiting: Waiting) {
        if waiting.missing != self.said.missing {
            for whom in &waiting.missing {
                warn!(object = %whom, "waiting for an object that does not exist");
            }
            self.metrics.missing(waiting.missing.len());
            self.said.missing = waiting.missing;
        }
    }

    fn say_left_out(&mut self, desired: &DesiredRevision) {
        if desired.overridden != self.said.overridden {
            for over in &desired.overridden {
                let (path, loser, winner) = (&over.path, &over.loser, &over.winner);
                debug!(
                    path,
                    loser, winner, "two objects have one key, the later one wins"
                );
            }
            self.metrics.overridden(desired.overridden.len());
            self.said.overridden.clone_from(&desired.overridden);
        }
        if desired.refused != self.said.refused {
            for why in &desired.refused {
                warn!(error = %why, "left out");
            }
            self.metrics.left_out(desired.refused.len());
            self.said.refused.clone_from(&desired.refused);
        }
    }
}

async fn fetched(fetches: &mut Option<Fetches>) -> Fetched {
    match fetches {
        Some(fetches) => fetches.next().await,
        None => std::future::pending().await,
    }
}
