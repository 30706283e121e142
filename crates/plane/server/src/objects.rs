//! The objects behind the front: what every verb does to them.
//!
//! ```text
//!   get, list, watch ◀──────────────── Cache ◀── feed ──┐
//!                                        │              │
//!   create, update, patch, delete ──▶ decide on the   Store
//!                                     current state ──▶ commit; a lost race decides again
//! ```

mod access_policy;
mod binding;
mod body;
mod bootstrap;
mod certificate_requests;
mod continue_token;
mod create;
mod delete;
mod eviction;
mod metadata;
mod namespace_defaults;
mod node_selection;
mod options;
mod patch;
mod pod_admission;
mod pod_references;
mod read;
mod rendering;
mod scale;
mod selector;
mod token_request;
mod transaction;
mod update;
mod watch;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use hotmap_kinds::Resource;
use hotmap_object::{Revision, Status};
use hotmap_store::{Store, StoreError};
use jiff::Timestamp;
use tokio_util::task::AbortOnDropHandle;
use tracing::error;

use crate::{
    answer::Answer,
    authorization::rbac::RoleIndex,
    cache::{Cache, HistoryLimits, ResourceCache},
    local_objects::LocalObjects,
    request::{ApiRequest, Verb},
};
pub(crate) use node_selection::NODE_FIELD;
use pod_references::PodReferenceIndex;

/// Where the time comes from.
pub(crate) type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// Everything that is stored, cached, and how it is read and written.
pub(crate) struct Objects {
    store: Arc<dyn Store>,
    cache: Arc<Cache>,
    clock: Clock,
    pod_references: Arc<PodReferenceIndex>,
    roles: Arc<RoleIndex>,
    aggregation: access_policy::Aggregation,
    /// PEM; without it namespaces get no ConfigMap about it.
    root_ca: Option<Arc<str>>,
    feed: AbortOnDropHandle<()>,
}

impl Objects {
    /// Reads everything that is stored; comes back with warm caches, which follow the store until this is dropped.
    /// `root_ca` is what clients inside the cluster shall trust, PEM.
    ///
    /// # Errors
    ///
    /// What the store answers when it cannot be read.
    pub(crate) async fn start(store: Arc<dyn Store>, root_ca: &str) -> Result<Arc<Self>, StoreError> {
        let clock = Arc::new(Timestamp::now);
        Self::start_with(store, clock, HistoryLimits::default(), Some(root_ca)).await
    }

    /// The cached objects, for this process.
    pub(crate) fn local(&self) -> LocalObjects {
        LocalObjects::new(self.cache.clone())
    }

    /// The same with another clock and other limits.
    ///
    /// # Errors
    ///
    /// As [`Objects::start`].
    pub(crate) async fn start_with(
        store: Arc<dyn Store>,
        clock: Clock,
        limits: HistoryLimits,
        root_ca: Option<&str>,
    ) -> Result<Arc<Self>, StoreError> {
        let roles = Arc::new(RoleIndex::default());
        let (cache, feed) = Cache::load(store.clone(), limits, roles.clone()).await?;
        let feed = tokio::spawn(async move {
            let error = feed.run().await;
            error!(%error, "the cache no longer follows the store");
        });
        Ok(Arc::new(Self {
            store,
            cache,
            clock,
            pod_references: Arc::default(),
            roles,
            aggregation: access_policy::Aggregation::default(),
            root_ca: root_ca.map(Arc::from),
            feed: AbortOnDropHandle::new(feed),
        }))
    }

    /// Whether the caches follow the store.
    pub(crate) fn is_synced(&self) -> bool {
        !self.feed.is_finished()
    }

    /// Every change up to this revision is shown.
    pub(crate) fn revision(&self) -> Revision {
        self.cache.revision()
    }

    /// Roles and bindings, as fresh as every read.
    pub(crate) fn roles(&self) -> &Arc<RoleIndex> {
        &self.roles
    }

    /// Does what the request asks. The front bounds its time; a dropped future stops waiting, a write that the store
    /// has been handed may still happen.
    ///
    /// # Errors
    ///
    /// Every failure is a `Status` for the client; causes inside the store go to the log.
    pub(crate) async fn handle(&self, request: ApiRequest) -> Result<Answer, Status> {
        if access_policy::may_change_aggregation(&request) {
            return self.handle_then_aggregate(request).await;
        }
        self.dispatch(request).await
    }

    async fn dispatch(&self, request: ApiRequest) -> Result<Answer, Status> {
        match (request.verb, request.subresource_name()) {
            (Verb::Get, "scale") => self.get_scale(&request).await,
            (Verb::Update, "scale") => self.update_scale(&request).await,
            (Verb::Patch, "scale") => self.patch_scale(&request).await,
            (Verb::Get, _) => self.get(&request).await,
            (Verb::List, _) => self.list(&request).await,
            (Verb::Watch, _) => self.watch(&request).await,
            (Verb::Create, "") => self.create(&request).await,
            (Verb::Create, "binding") => self.bind(&request).await,
            (Verb::Create, "eviction") => self.evict(&request).await,
            (Verb::Update, _) => self.update(&request).await,
            (Verb::Patch, _) => self.patch(&request).await,
            (Verb::Delete, "") => self.delete(&request).await,
            (Verb::DeleteCollection, "") => self.delete_collection(&request).await,
            (verb, _) => Err(Status::method_not_supported(
                &request.resource.group_resource(),
                verb.as_str(),
            )),
        }
    }

    fn now(&self) -> Timestamp {
        (self.clock)()
    }

    fn cache_of(&self, resource: &Resource) -> Result<&Arc<ResourceCache>, Status> {
        self.cache
            .of(resource)
            .ok_or_else(|| Status::internal(format!("{} are not stored", resource.group_resource())))
    }
}

/// The one object a request is about.
#[derive(Clone)]
struct Target {
    resource: &'static Resource,
    subresource: &'static str,
    /// Empty for cluster-scoped kinds.
    namespace: String,
    /// Empty while a name is yet to be generated.
    name: String,
    /// Key without the resource's prefix.
    key: String,
}

impl Target {
    /// # Errors
    ///
    /// 400 for a request that names no object.
    fn of(request: &ApiRequest) -> Result<Self, Status> {
        let name = request
            .name
            .clone()
            .ok_or_else(|| Status::bad_request("name must be provided"))?;
        let namespace = request.namespace.clone().unwrap_or_default();
        Ok(Self::new(
            request.resource,
            request.subresource_name(),
            namespace,
            name,
        ))
    }

    fn new(resource: &'static Resource, subresource: &'static str, namespace: String, name: String) -> Self {
        let namespace = if resource.namespaced {
            namespace
        } else {
            String::new()
        };
        let key = match namespace.as_str() {
            "" => name.clone(),
            namespace => format!("{namespace}/{name}"),
        };
        Self {
            resource,
            subresource,
            namespace,
            name,
            key,
        }
    }

    fn store_key(&self) -> String {
        format!("{}{}", self.resource.prefix, self.key)
    }

    fn not_found(&self) -> Status {
        Status::not_found(&self.resource.group_resource(), &self.name)
    }
}
