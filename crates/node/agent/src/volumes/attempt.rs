//! One look at a volume: what it shall hold now, written if that is not there.

use std::{cell::RefCell, io, sync::Arc, time::Instant};

use hotmap_volume::{AtomicWriter, Durability, Options, Outcome, Removal};
use tracing::{Span, debug_span, field, warn};

use super::{DesiredVolume, Lookups, Shared, VolumeKey, placement, sources};
use crate::{
    configuration_events::Shown,
    environment::Known,
    metrics::FailureReason,
    objects::{Heard, Held},
    references::{self, ObjectRef},
    tokens,
    worker::printed,
};

/// An attempt that succeeded.
pub(super) struct Projected {
    pub(super) writer: Arc<AtomicWriter>,
    pub(super) outcome: Outcome,
    /// Keys that something foreign hides.
    pub(super) shadowed: Vec<String>,
    /// The revisions of objects that the content was made of.
    pub(super) used: Vec<Arc<Held>>,
    /// The same by name, with what was not there.
    pub(super) shown: Shown,
}

/// One that did not: the last content stands.
pub(super) struct Failure {
    pub(super) text: String,
    pub(super) reason: FailureReason,
    pub(super) is_retried: bool,
    /// The API has not said yet what is there.
    pub(super) is_unheard: bool,
    /// Readers see the new content all the same.
    pub(super) is_published: bool,
}

impl Shared {
    /// The span of a write, in the trace of the newest revision that the volume does not show yet. Who looks for other
    /// reasons leaves no trace.
    pub(super) fn span(&self, key: &VolumeKey, desired: &DesiredVolume, shown: Option<Instant>) -> Span {
        if !hotmap_trace::is_on() {
            return Span::none();
        }
        let newest = self.sources.get().and_then(|Lookups { objects, .. }| {
            let references = references::of_volume(&desired.pod.metadata.namespace, &desired.volume);
            let held = references
                .iter()
                .filter_map(|reference| match objects.get(reference) {
                    Known::Present(held) => Some(held.heard()),
                    Known::Missing(_) | Known::Unknown => None,
                });
            held.max_by_key(Heard::at)
        });
        let trace = newest
            .filter(|newest| shown.is_none_or(|shown| newest.at() > shown))
            .and_then(|newest| newest.trace());
        if trace.is_none() {
            return Span::none();
        }
        let span = debug_span!(
            target: hotmap_trace::TARGET, parent: None, "volume", pod_uid = %key.pod_uid, volume = %key.volume,
            has_changed = field::Empty,
        );
        hotmap_trace::continue_from(&span, trace);
        span
    }

    pub(super) fn attempt(
        &self,
        key: &VolumeKey,
        desired: &DesiredVolume,
        writer: Option<Arc<AtomicWriter>>,
        verifies: bool,
    ) -> Result<Projected, Failure> {
        let Lookups {
            objects,
            tokens,
            reports,
            events: _,
        } = self
            .sources
            .get()
            .expect("the agent gives the sources before the first volume");
        let looked_up = RefCell::new(Vec::new());
        let look_up = |reference: &ObjectRef| {
            let known = objects.get(reference);
            looked_up.borrow_mut().push((reference.clone(), known.clone()));
            known
        };
        let making = hotmap_trace::step(|| debug_span!(target: hotmap_trace::TARGET, "payload")).entered();
        let payload = sources::payload(desired, look_up, |token| tokens.get(token)).map_err(|error| {
            let references = references::of_volume(&desired.pod.metadata.namespace, &desired.volume);
            if objects.has_to_ask() {
                // What comes of it is looked at when it is there. The first answers are on their way already.
                let is_heard = |one: &&ObjectRef| !matches!(objects.get(one), Known::Unknown);
                objects.look_soon(references.iter().filter(is_heard).cloned().collect());
            }
            let mut named = references.into_iter();
            let mut tokens_named = tokens::of_volume(&desired.pod, &desired.volume).into_iter();
            let is_unheard = named.any(|reference| matches!(objects.get(&reference), Known::Unknown))
                || tokens_named.any(|token| tokens.get(&token).is_err());
            Failure {
                // A missing object, key or token comes as a change: nothing to try before that, unless one has to ask.
                is_retried: !error.waits_for_object() || objects.has_to_ask(),
                is_unheard,
                is_published: false,
                reason: match is_unheard {
                    true => FailureReason::Unheard,
                    false if error.waits_for_object() => FailureReason::Missing,
                    false => FailureReason::Payload,
                },
                text: error.to_string(),
            }
        })?;
        drop(making);
        let failed = |error: &dyn std::error::Error| Failure {
            is_retried: true,
            is_unheard: false,
            is_published: false,
            reason: FailureReason::Write,
            text: printed(error),
        };
        let writer = match writer {
            Some(writer) => writer,
            None => Arc::new(self.writer(key, desired).map_err(|error| {
                // Among the reasons: somebody put a link where the directory was.
                let failure = failed(&error);
                let text = format!("cannot open the directory of the volume: {}", failure.text);
                Failure { text, ..failure }
            })?),
        };
        let failed_write = |error: hotmap_volume::WriteError| Failure {
            is_published: error.is_published(),
            ..failed(&error)
        };
        let writing = hotmap_trace::step(|| debug_span!(target: hotmap_trace::TARGET, "write")).entered();
        let mut written = writer.write(&payload).map_err(failed_write)?;
        drop(writing);
        if verifies && written.outcome == Outcome::Unchanged {
            written = writer.verify_and_write(&payload).map_err(failed_write)?;
            if written.outcome == Outcome::Swapped {
                self.metrics.mended();
                warn!(pod_uid = %key.pod_uid, volume = %key.volume, "somebody changed files of this volume, they are mended");
            }
        }
        if written.outcome == Outcome::Unchanged {
            for leftover in writer.sweep() {
                warn!(pod_uid = %key.pod_uid, volume = %key.volume, name = %leftover.name, error = %leftover.error,
                    "a replaced revision cannot be removed yet");
            }
        }
        let looked_up: Vec<(ObjectRef, Known)> = looked_up.into_inner();
        let used = looked_up.iter().filter_map(|(_, known)| match known {
            Known::Present(held) => Some(Arc::clone(held)),
            Known::Missing(_) | Known::Unknown => None,
        });
        let used = used.collect();
        let shown = looked_up.iter().filter_map(|(reference, known)| {
            let version = match known {
                Known::Present(held) => Some(held.resource_version().to_owned()),
                Known::Missing(_) => None,
                Known::Unknown => return None,
            };
            Some((reference.clone(), version))
        });
        let shown = shown.collect();
        // Readers have it by now: what is computed for the report holds nobody up.
        let built = reports.built(looked_up);
        let projection = (written.revision.as_str(), written.shadowed.clone());
        reports.note(|ledger, now| ledger.projected(&key.pod_uid, &key.volume, built, projection, now));
        Ok(Projected {
            writer,
            outcome: written.outcome,
            shadowed: written.shadowed,
            used,
            shown,
        })
    }

    fn writer(&self, key: &VolumeKey, desired: &DesiredVolume) -> io::Result<AtomicWriter> {
        let options = Options {
            durability: Durability::Process,
            owner: Some(desired.owner),
            fs_group: desired.fs_group,
            removal: Removal::Deferred,
        };
        let pod = placement::pod_directory(&self.root, &key.pod_uid)?;
        Ok(AtomicWriter::new(
            pod.create_volume(&key.volume, &options)?,
            options,
        ))
    }
}
