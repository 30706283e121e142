//! One decision on the current state of one object, committed; a lost race decides again.

use std::sync::Arc;

use bytes::Bytes;
use hotmap_object::{Draft, Object as Shared, Status};
use hotmap_schema::encode_object;
use hotmap_store::{Expect, Op, StoreError, Write};
use serde_json::Value;
use tracing::{Instrument, debug_span, error, field, warn};

use super::{Objects, Target, metadata, metadata::Object, rendering::Rendering};
use crate::{
    answer::{Answer, Body},
    cache::Prepared,
    http::negotiation::Negotiated,
};

/// The state a decision is about.
pub(super) struct Current {
    pub(super) shared: Arc<Shared>,
    /// In the shape of the request's group, `metadata.resourceVersion` included.
    pub(super) value: Object,
}

/// What is to happen.
pub(super) enum Decision {
    /// This becomes the object's state.
    Put(Encoded),
    /// The object goes; those who asked are shown this state of it, or the last one.
    Delete(Option<Encoded>),
    /// It stays as it is.
    Keep,
}

/// What has happened.
pub(super) struct Written {
    pub(super) how: How,
    pub(super) document: Document,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Created,
    /// Or left as it was, since nothing was to change.
    Updated,
    Deleted,
}

/// What the client is shown.
pub(super) enum Document {
    Shared(Arc<Shared>),
    /// Of a dry run: JSON in the shape of the request's group, without a revision.
    Draft(Bytes),
}

/// An object ready for the store.
#[derive(Clone)]
pub(super) struct Encoded {
    prepared: Arc<Prepared>,
    value: Bytes,
    /// JSON in the shape of the request's group, where that is not the stored one.
    shown: Option<Bytes>,
}

impl Objects {
    /// Encodes an object in the shape of the target's group.
    ///
    /// # Errors
    ///
    /// 500 if it is not in canonical form, which decoding rules out.
    pub(super) fn encode(&self, target: &Target, mut object: Object) -> Result<Encoded, Status> {
        let stored = self.cache_of(target.resource)?.resource();
        // Neither is stored: the one is the store's to say, the other is not maintained yet.
        let metadata = metadata::of_mut(&mut object);
        for field in ["resourceVersion", "selfLink", "managedFields"] {
            metadata.remove(field);
        }
        let mut shown = None;
        if !std::ptr::eq(stored, target.resource) {
            shown = Some(Draft::new(&object, Vec::new()).into_json());
            object = target.resource.strategy.to_stored(object);
        }
        let draft = Draft::new(&object, stored.strategy.field_values(&object));
        let value = encode_object(stored.schema, &Value::Object(object)).map_err(Status::internal)?;
        Ok(Encoded {
            prepared: Prepared::new(draft),
            value: value.into(),
            shown,
        })
    }

    /// Decides on the current state and commits. The first decision may be about a state that is a moment old: it is
    /// taken again on the newest one before it is answered with a refusal.
    ///
    /// # Errors
    ///
    /// What `decide` refuses with, and what the store answers.
    pub(super) async fn transact(
        &self,
        target: &Target,
        dry_run: bool,
        mut decide: impl FnMut(Option<&Current>) -> Result<Decision, Status>,
    ) -> Result<Written, Status> {
        let cache = self.cache_of(target.resource)?;
        let mut is_newest = dry_run;
        loop {
            let applied = if is_newest {
                self.cache.fresh().await?
            } else {
                self.cache.revision()
            };
            let current = cache.get(&target.key).map(|shared| Current {
                value: target.resource.strategy.from_stored(shared.value()),
                shared,
            });
            let decision = match decide(current.as_ref()) {
                Ok(Decision::Put(encoded))
                    if current
                        .as_ref()
                        .is_none_or(|current| !encoded.is(&current.shared)) =>
                {
                    Ok(Decision::Put(encoded))
                }
                Ok(Decision::Put(_) | Decision::Keep) => Ok(Decision::Keep),
                other => other,
            };
            let is_final = matches!(decision, Ok(Decision::Put(_) | Decision::Delete(_)));
            if !is_final && !is_newest && applied < self.store.revision() {
                is_newest = true;
                continue;
            }
            let decision = decision?;
            if dry_run || !is_final {
                return Ok(tried(current.map(|current| current.shared), decision));
            }
            match self.commit(target, current.as_ref(), decision).await? {
                Some(written) => return Ok(written),
                None => is_newest = true,
            }
        }
    }

    /// `None`: somebody else was faster.
    async fn commit(
        &self,
        target: &Target,
        current: Option<&Current>,
        decision: Decision,
    ) -> Result<Option<Written>, Status> {
        let expect = current.map_or(Expect::Absent, |current| Expect::At(current.shared.revision()));
        let (op, encoded, how) = match decision {
            Decision::Put(encoded) => {
                let op = Op::Put {
                    value: encoded.value.clone(),
                    ttl: target.resource.ttl,
                };
                let how = if current.is_some() {
                    How::Updated
                } else {
                    How::Created
                };
                (op, Some(encoded), how)
            }
            Decision::Delete(encoded) => (Op::Delete, encoded, How::Deleted),
            Decision::Keep => unreachable!("nothing to commit"),
        };
        let memo = encoded.as_ref().filter(|_| how != How::Deleted);
        let write = Write {
            key: target.store_key().into(),
            expect,
            op,
            memo: memo.map(|encoded| encoded.prepared.clone() as hotmap_store::Memo),
        };
        let span = hotmap_trace::step(
            || debug_span!(target: hotmap_trace::TARGET, "commit", key = %target.key, revision = field::Empty),
        );
        let committed = match self.store.commit(write).instrument(span.clone()).await {
            Ok(committed) => committed,
            Err(StoreError::Conflict { .. } | StoreError::Exists | StoreError::NotFound) => return Ok(None),
            Err(error) => return Err(store_failure(target, &error)),
        };
        span.record("revision", committed.revision.0);
        drop(span);
        // A client that reads next shall see what it wrote, whatever state it asks for. The write is durable: a cache
        // that does not get there in time is no reason to call it failed.
        let _ = self.cache.wait_for(committed.revision).await;
        let shared = match (&encoded, current) {
            (Some(encoded), _) => encoded.prepared.at(committed.revision),
            (None, Some(current)) => Arc::new(current.shared.at_deletion(committed.revision)),
            (None, None) => unreachable!("only what exists is deleted"),
        };
        Ok(Some(Written {
            how,
            document: Document::Shared(shared),
        }))
    }

    /// The answer to a write.
    ///
    /// # Errors
    ///
    /// 500 if the object cannot be encoded in the form asked for, which its schema rules out.
    pub(super) fn answer(
        &self,
        target: &Target,
        negotiated: Negotiated,
        include: crate::cache::IncludeObject,
        code: u16,
        document: &Document,
    ) -> Result<Answer, Status> {
        let rendering = Rendering {
            resource: target.resource,
            stored: self.cache_of(target.resource)?.resource(),
            negotiated,
            include,
            now: self.now(),
        };
        let body = match document {
            Document::Shared(shared) => rendering.document(&rendering.json(shared))?,
            Document::Draft(json) => rendering.document(json)?,
        };
        Ok(Answer::new(
            code,
            negotiated.media.content_type(),
            Body::Full(body),
        ))
    }
}

/// What a dry run, or a write that changes nothing, shows.
fn tried(current: Option<Arc<Shared>>, decision: Decision) -> Written {
    let (how, document) = match (decision, current) {
        (Decision::Put(encoded), None) => (How::Created, Document::Draft(encoded.into_shown())),
        (Decision::Put(encoded), Some(current)) => {
            let shared = encoded.prepared.draft().clone().at(current.revision());
            (How::Updated, Document::Shared(Arc::new(shared)))
        }
        (Decision::Delete(_), Some(current)) => (How::Deleted, Document::Shared(current)),
        (_, Some(current)) => (How::Updated, Document::Shared(current)),
        (_, None) => unreachable!("only what exists is kept or deleted"),
    };
    Written { how, document }
}

impl Encoded {
    /// Whether the object is the same, byte for byte.
    fn is(&self, current: &Shared) -> bool {
        self.prepared.draft().is(current)
    }

    fn into_shown(self) -> Bytes {
        self.shown
            .unwrap_or_else(|| self.prepared.draft().clone().into_json())
    }
}

/// The client gets what it can act on, the log gets the cause.
fn store_failure(target: &Target, error: &StoreError) -> Status {
    const UNAVAILABLE: &str = "ServiceUnavailable";
    match error {
        StoreError::TooLarge { limit, .. } => Status::too_large(*limit),
        StoreError::NoSpace => {
            warn!(key = %target.key, %error, "a write was refused");
            let message = "the store's disk is full: nothing was written; reads go on, and writes succeed again once there \
                           is space";
            Status::new(503, UNAVAILABLE, message).retry_after(1)
        }
        StoreError::Unavailable { .. } => {
            error!(key = %target.key, %error, "a write was refused");
            let message = "the store does not take writes: nothing was written, and reads go on";
            Status::new(503, UNAVAILABLE, message).retry_after(1)
        }
        StoreError::UnknownOutcome { .. } => {
            error!(key = %target.key, %error, "the outcome of a write is unknown");
            Status::timeout("the outcome of the write is unknown: read the object before trying again")
        }
        error => {
            error!(key = %target.key, %error, "the store has failed");
            Status::internal("the store has failed")
        }
    }
}
