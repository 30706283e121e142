//! What every controller works with.

use std::{sync::Arc, time::Duration};

use hotmap_client::{Client, ClientError, DeleteParams, PatchType, RawObject, ResourcePath, WriteParams};
use hotmap_clock::ClockJumps;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use tokio::task::JoinSet;

use crate::{
    controller::{self, Controller, ReconcileError},
    events::Events,
    informers::Informers,
    queue::Queue,
    view::{Key, View},
};

/// What lies further ahead than this, and was written when it happened, was written before the clock was set back: the
/// clocks of nodes may be so far apart (the leeway of tokens in `pkg/serviceaccount/claims.go`, Kubernetes 1.36).
pub(crate) const CLOCKS_APART_MAX: SignedDuration = SignedDuration::from_secs(60);

/// The time of day. Handed in, so that tests decide what time it is.
pub(crate) trait Clock: Send + Sync + 'static {
    fn now(&self) -> Timestamp;
}

/// The clock of this machine.
pub(crate) struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp::now()
    }
}

/// Client, informers, events and clock, which tells of its jumps; cloning is cheap.
#[derive(Clone)]
pub(crate) struct Context {
    pub(crate) client: Client,
    pub(crate) informers: Arc<Informers>,
    pub(crate) events: Events,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) clock_jumps: ClockJumps,
}

impl Context {
    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// How long it is until `at`; zero if it is over.
    pub(crate) fn until(&self, at: Timestamp) -> Duration {
        Duration::try_from(at.duration_since(self.now())).unwrap_or_default()
    }

    /// Runs a controller once everything it looks at is known.
    pub(crate) fn start<C: Controller>(&self, controller: C, queue: Queue<Key>, tasks: &mut JoinSet<()>) {
        let informers = self.informers.clone();
        let clock_jumps = match C::WAITS_FOR_TIMES_OF_DAY {
            true => self.clock_jumps.clone(),
            false => ClockJumps::never(),
        };
        tasks.spawn(async move {
            informers.synced().await;
            controller::run(Arc::new(controller), queue, clock_jumps).await;
        });
    }

    /// Creates an object in the collection at `path`. Like all writes here it returns once the informer of the kind shows
    /// it: the next reconcile sees what this one did.
    pub(crate) async fn create<V: View>(
        &self,
        path: &ResourcePath,
        body: &Value,
    ) -> Result<Arc<V>, ReconcileError> {
        let written = self.client.create(path, body, &WriteParams::default()).await?;
        self.shown(&written).await
    }

    /// Changes an object, or with a subresource (`status`) a part of it; an empty one is the object itself.
    pub(crate) async fn patch<V: View>(
        &self,
        object: &V,
        subresource: &str,
        kind: PatchType,
        patch: &Value,
    ) -> Result<Arc<V>, ReconcileError> {
        let path = match subresource {
            "" => object.path(),
            subresource => object.path().subresource(subresource),
        };
        let written = self
            .client
            .patch(&path, kind, patch, &WriteParams::default())
            .await?;
        self.shown(&written).await
    }

    /// Deletes the very object, not one that was created under its name meanwhile. That it is gone already is success.
    pub(crate) async fn delete<V: View>(
        &self,
        object: &V,
        params: DeleteParams,
    ) -> Result<(), ReconcileError> {
        let metadata = object.metadata();
        let params = DeleteParams {
            uid: metadata.uid.clone(),
            ..params
        };
        match self.client.delete(&object.path(), &params).await {
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            // The name belongs to another object now: this one is gone.
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(error.into()),
        }
        let informer = V::informer(&self.informers);
        Ok(informer.shows_deletion(&metadata.key(), &metadata.uid).await?)
    }

    /// Asks the server itself whether an object that is about to adopt others is there, and is to stay. Between its orphaning
    /// deletion and the news of that, it would take back what was just set free.
    pub(crate) async fn is_still_there<V: View>(&self, object: &V) -> Result<bool, ReconcileError> {
        match self.client.get(&object.path()).await {
            Ok(found) => {
                let found = found.parse::<V>()?;
                let (found, held) = (found.metadata(), object.metadata());
                Ok(found.uid == held.uid && !found.is_deleting())
            }
            Err(error) if error.is_not_found() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    async fn shown<V: View>(&self, written: &RawObject) -> Result<Arc<V>, ReconcileError> {
        let object = written.parse::<V>().map_err(ReconcileError::from)?;
        let informer = V::informer(&self.informers);
        if informer.is_wanted() {
            informer.shows(written).await?;
        }
        Ok(Arc::new(object))
    }
}

/// 404 is an answer too.
pub(crate) fn unless_gone<T>(result: Result<T, ReconcileError>) -> Result<Option<T>, ReconcileError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(ReconcileError::Client(error)) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

/// The error of a request, if it is one of the server's.
pub(crate) fn client_error(error: &ReconcileError) -> Option<&ClientError> {
    match error {
        ReconcileError::Client(error) => Some(error),
        ReconcileError::NotShown(_) => None,
    }
}
