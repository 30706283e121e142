//! From a stored value to an object, and the shortcut for values this process has just encoded.

use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use hotmap_kinds::Resource;
use hotmap_object::{Draft, GroupVersionKind, Object, Revision};
use hotmap_schema::{WireError, decode_protobuf, envelope};
use hotmap_store::Memo;
use hotmap_trace::TraceContext;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use serde_json::{Map, Value};
use tracing::error;

/// Why a stored value is no object. Values are never part of the text: they may be secret.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DecodeError {
    /// Neither envelope nor message can be read.
    #[error("not a protobuf object: {0}")]
    Wire(#[from] WireError),
    /// The envelope names a type that does not belong under this key.
    #[error("a {found} is stored where a {expected} belongs")]
    Kind {
        /// What the envelope says.
        found: String,
        /// What the key prefix says.
        expected: &'static str,
    },
}

/// An encoded object on its way into the store. It gets its revision once, from whoever asks first: the writer that
/// answers its client or the feed that caches it.
pub(crate) struct Prepared {
    /// `None` once it is an object.
    draft: Mutex<Option<Draft>>,
    object: OnceLock<Arc<Object>>,
    /// The request that writes it.
    trace: Option<TraceContext>,
}

impl Prepared {
    /// In the trace of whoever asks.
    pub(crate) fn new(draft: Draft) -> Arc<Self> {
        Arc::new(Self {
            draft: Mutex::new(Some(draft)),
            object: OnceLock::new(),
            trace: hotmap_trace::current(),
        })
    }

    /// The object as of the one revision it was committed at.
    pub(crate) fn at(&self, revision: Revision) -> Arc<Object> {
        let object = self.object.get_or_init(|| {
            let draft = self.draft.lock().take();
            Arc::new(draft.expect("it becomes an object once").at(revision))
        });
        debug_assert_eq!(object.revision(), revision, "a write commits once");
        object.clone()
    }

    /// The object without a revision, which it has until it is committed.
    pub(crate) fn draft(&self) -> MappedMutexGuard<'_, Draft> {
        MutexGuard::map(self.draft.lock(), |draft| {
            draft.as_mut().expect("nobody asks for a draft that is committed")
        })
    }
}

/// The trace of the request that made a change, where one of this process did, and somebody keeps it.
pub(super) fn trace(memo: Option<&Memo>) -> Option<TraceContext> {
    memo?.downcast_ref::<Prepared>()?.trace
}

/// The draft of an object in its stored shape.
pub(crate) fn draft(resource: &Resource, object: &Map<String, Value>) -> Draft {
    Draft::new(object, resource.strategy.field_values(object))
}

/// An object as of `revision`: from the writer's own encoding where it was handed along, else from the stored bytes.
pub(super) fn object(
    resource: &Resource,
    value: &Bytes,
    memo: Option<Memo>,
    revision: Revision,
) -> Result<Arc<Object>, DecodeError> {
    if let Some(prepared) = memo.and_then(|memo| memo.downcast::<Prepared>().ok()) {
        return Ok(prepared.at(revision));
    }
    let object = decode(resource, value)?;
    Ok(Arc::new(draft(resource, &object).at(revision)))
}

/// An object as it was, from the stored bytes. `None`, and a line in the log, if they are none.
pub(super) fn past(resource: &Resource, key: &str, value: &Bytes, revision: Revision) -> Option<Arc<Object>> {
    match object(resource, value, None, revision) {
        Ok(object) => Some(object),
        Err(error) => {
            error!(resource = resource.plural, key, %error, "a past value is no object and is not shown");
            None
        }
    }
}

fn decode(resource: &Resource, value: &[u8]) -> Result<Map<String, Value>, DecodeError> {
    let unknown = envelope::unwrap(value)?;
    let found = GroupVersionKind::parse(unknown.api_version, unknown.kind);
    if found.kind != resource.kind {
        return Err(DecodeError::Kind {
            found: unknown.kind.to_owned(),
            expected: resource.kind,
        });
    }
    let Value::Object(mut object) = decode_protobuf(resource.schema.message, unknown.raw)? else {
        unreachable!("a message decodes to an object");
    };
    object.insert("kind".to_owned(), resource.kind.into());
    object.insert("apiVersion".to_owned(), resource.gvk().api_version().into());
    Ok(object)
}
