//! What this node tells of its deliveries: which revision of each ConfigMap and Secret its pods have, and who is behind.
//!
//! ```text
//!   objects ──heard──┐
//!   volumes ──projected, failed──┤
//!   workers ──started, stopped───┼──▶ Ledger ──document──▶ writer ──▶ DeliveryReport NODE
//!   sockets ──loaded─┘           (no I/O, no clock)      (on transition, at most once a second)
//! ```
//!
//! Facts are noted where they happen and cost a lock; nobody waits for the report.

mod digest;
mod document;
mod ledger;
mod snapshot;
mod writer;

use std::{path::Path, sync::Arc};

use hotmap_client::Client;
use jiff::Timestamp;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::Notify;

pub use digest::{DigestKey, DigestKeyError};
pub(crate) use digest::{Fingerprints, Revision};
pub(crate) use ledger::{Built, Ledger, Load, LoadError, Wants, Way};
pub(crate) use snapshot::{Snapshot, Snapshots};

use crate::{
    clock::{Clock, SystemClock},
    environment::Known,
    metrics::Metrics,
    objects::Held,
    references::ObjectRef,
};

/// Where deliveries are noted. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Reports {
    inner: Arc<Inner>,
}

struct Inner {
    ledger: Mutex<Ledger>,
    /// Something was noted since the report was made.
    changed: Notify,
    fingerprints: Fingerprints,
}

impl Reports {
    /// `key_file` holds the key of Secrets' digests, if there is one.
    pub(crate) fn open(key_file: &Path) -> Result<Self, DigestKeyError> {
        let inner = Inner {
            ledger: Mutex::default(),
            changed: Notify::new(),
            fingerprints: Fingerprints::new(DigestKey::read(key_file)?),
        };
        Ok(Self {
            inner: Arc::new(inner),
        })
    }

    /// Notes a fact with the time it happened at.
    pub(crate) fn note(&self, fact: impl FnOnce(&mut Ledger, Timestamp)) {
        fact(&mut self.inner.ledger.lock(), SystemClock.now());
        self.inner.changed.notify_one();
    }

    /// What the API has said of an object.
    pub(crate) fn heard(&self, reference: &ObjectRef, known: &Known) {
        let (current, committed) = match known {
            Known::Present(held) => {
                let committed = held.heard().committed();
                let committed = committed.and_then(|at| Timestamp::try_from(at).ok());
                (Some(self.revision(reference, held)), committed)
            }
            Known::Missing(_) => (None, None),
            Known::Unknown => return,
        };
        self.note(|ledger, now| ledger.heard(reference, current, committed, now));
    }

    /// The revision of an object's content; takes a millisecond for the largest one, the first time.
    pub(crate) fn revision(&self, reference: &ObjectRef, held: &Held) -> Arc<Revision> {
        held.revision(|| self.inner.fingerprints.of(reference, held))
    }

    /// What something was built from, out of what was looked up for it. Nothing of what nobody has said anything about.
    pub(crate) fn built(&self, looked_up: Vec<(ObjectRef, Known)>) -> Built {
        let revisions = looked_up.into_iter().filter_map(|(reference, known)| {
            let revision = match known {
                Known::Present(held) => Some(self.revision(&reference, &held)),
                Known::Missing(_) => None,
                Known::Unknown => return None,
            };
            Some((reference, revision))
        });
        revisions.collect()
    }

    /// What a program of the pod says it did with a projection.
    pub(crate) fn loaded(
        &self,
        pod_uid: &str,
        volume: Option<&str>,
        projection: &str,
        load: Load,
    ) -> Result<(), LoadError> {
        let noted = self
            .inner
            .ledger
            .lock()
            .loaded(pod_uid, volume, projection, load, SystemClock.now());
        self.inner.changed.notify_one();
        noted
    }

    /// The report as it would be now.
    pub(crate) fn document(&self) -> Map<String, Value> {
        self.inner.ledger.lock().document()
    }

    /// What a volume holds; nothing if it was never projected.
    pub(crate) fn held_by(&self, pod_uid: &str, volume: &str) -> Built {
        self.inner.ledger.lock().held_by(pod_uid, volume)
    }

    /// Tells the API for ever.
    pub(crate) async fn tell_for_ever(self, client: Client, node_name: String, metrics: Metrics) {
        let target = writer::ApiReport::new(client, node_name, metrics);
        let pace = writer::Pace::seeded();
        writer::write_for_ever(&self, target, pace, SystemClock).await;
    }
}
