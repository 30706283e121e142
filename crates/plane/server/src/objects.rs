//! The objects behind the front: what every verb does to them.

use std::sync::Arc;

use hotmap_object::Status;
use hotmap_store::{Store, StoreError};

use crate::{
    answer::Answer,
    authorization::references::{PodReferences, Referenced},
    request::ApiRequest,
};

/// Everything that is stored, cached, and how it is read and written.
pub(crate) struct Objects {}

impl Objects {
    /// Starts the caches. Comes back before they are warm; `is_synced` tells.
    pub(crate) async fn start(_store: Arc<dyn Store>) -> Result<Arc<Self>, StoreError> {
        Ok(Arc::new(Self {}))
    }

    /// Whether every cache has seen the state of the store at start.
    pub(crate) fn is_synced(&self) -> bool {
        false
    }

    /// Does what the request asks. The front bounds its time; a dropped future stops waiting.
    pub(crate) async fn handle(&self, _request: ApiRequest) -> Result<Answer, Status> {
        Err(Status::internal("no objects are served"))
    }
}

impl PodReferences for Objects {
    fn node_refers_to(&self, _node: &str, _kind: Referenced, _namespace: &str, _name: &str) -> bool {
        false
    }

    fn node_of(&self, _namespace: &str, _pod: &str) -> Option<String> {
        None
    }
}
