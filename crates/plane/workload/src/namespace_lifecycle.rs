//! Empties a deleted namespace and lets it go.
//!
//! ```text
//!   namespaces with a deletionTimestamp ─▶ one task each:
//!       delete pods, say what is left, await it ─▶ the same with all other kinds ─▶ PUT finalize without our finalizer
//! ```
//!
//! Source: `pkg/controller/namespace/deletion/namespaced_resources_deleter.go`, Kubernetes 1.36. Nothing is polled: what
//! takes its time (a pod's grace, somebody's finalizer) is awaited by watching. Kinds come from the registry.

mod conditions;
mod content;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use hotmap_client::{
    Client, ClientError, FollowEvent, Follower, PatchType, RawObject, ResourcePath, WriteParams,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::Semaphore,
    task::{Id, JoinSet},
    time::sleep,
};
use tracing::{error, info, warn};

use self::conditions::Totals;
use crate::{
    context::Context,
    controllers::{panic_text, retries},
    informers::Collections,
    view::{Condition, Metadata, or_default},
};

/// Namespaces that are emptied at the same time; each holds one watch while it waits.
const CONCURRENT_NAMESPACES: usize = 64;
/// The finalizer in a namespace's spec that stands for its content.
const FINALIZER: &str = "kubernetes";
/// First and longest pause between two looks at a namespace in which something happens.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// After a panic: a bug should not become a busy loop.
const PANIC_PAUSE: Duration = Duration::from_secs(10);

/// Empties deleted namespaces for ever.
pub(crate) async fn run<C: Collections>(context: Context, collections: C) {
    let mut namespaces = Follower::new(collections.collection(namespaces()), C::PATIENCE);
    let mut deletions = Deletions::new(context);
    loop {
        tokio::select! {
            event = namespaces.next() => match event {
                FollowEvent::Initial(all) => all.iter().for_each(|namespace| deletions.hear(namespace)),
                FollowEvent::Applied(namespace) => deletions.hear(&namespace),
                // The task finds out by itself: its next request is answered with 404.
                FollowEvent::Deleted(_) => {}
                FollowEvent::Interrupted(error) => warn!(%error, "cannot follow namespaces"),
                FollowEvent::Resumed => info!("following namespaces again"),
            },
            () = deletions.reap() => {}
        }
    }
}

fn namespaces() -> ResourcePath {
    ResourcePath::new("", "v1", "namespaces")
}

fn is_deleting(namespace: &RawObject) -> bool {
    #[derive(Deserialize)]
    struct View {
        #[serde(deserialize_with = "or_default", default)]
        metadata: Metadata,
    }
    namespace
        .parse::<View>()
        .is_ok_and(|view| view.metadata.is_deleting())
}

/// The namespaces that are being emptied, by uid: one that is re-created under its name is another one.
struct Deletions {
    context: Context,
    permits: Arc<Semaphore>,
    tasks: JoinSet<()>,
    running: HashMap<Id, Deleted>,
    uids: HashSet<String>,
}

#[derive(Clone)]
struct Deleted {
    name: String,
    uid: String,
}

impl Deletions {
    fn new(context: Context) -> Self {
        let permits = Arc::new(Semaphore::new(CONCURRENT_NAMESPACES));
        Self {
            context,
            permits,
            tasks: JoinSet::new(),
            running: HashMap::new(),
            uids: HashSet::new(),
        }
    }

    fn hear(&mut self, namespace: &RawObject) {
        if is_deleting(namespace) && self.uids.insert(namespace.uid().to_owned()) {
            let deleted = Deleted {
                name: namespace.name().to_owned(),
                uid: namespace.uid().to_owned(),
            };
            self.start(deleted, Duration::ZERO);
        }
    }

    fn start(&mut self, deleted: Deleted, pause: Duration) {
        let (context, permits, task) = (self.context.clone(), self.permits.clone(), deleted.clone());
        let handle = self.tasks.spawn(async move {
            sleep(pause).await;
            let _permit = permits
                .acquire_owned()
                .await
                .expect("the semaphore is never closed");
            empty_until_gone(&context, &task).await;
        });
        self.running.insert(handle.id(), deleted);
    }

    /// Waits for a task that ended and takes note. Pending while there are none.
    async fn reap(&mut self) {
        let Some(ended) = self.tasks.join_next_with_id().await else {
            return std::future::pending().await;
        };
        match ended {
            Ok((id, ())) => {
                if let Some(deleted) = self.running.remove(&id) {
                    self.uids.remove(&deleted.uid);
                }
            }
            Err(failure) => {
                let deleted = self.running.remove(&failure.id());
                let error = panic_text(failure);
                if let Some(deleted) = deleted {
                    error!(
                        namespace = deleted.name,
                        error, "emptying a namespace panicked, trying again"
                    );
                    self.start(deleted, PANIC_PAUSE);
                }
            }
        }
    }
}

async fn empty_until_gone(context: &Context, deleted: &Deleted) {
    let mut backoff = retries();
    while let Err(error) = empty_and_finalize(context, deleted).await {
        warn!(namespace = deleted.name, %error, "cannot empty a namespace, retrying");
        sleep(backoff.next_delay()).await;
    }
}

/// Pods go first, and everything else after the last of them: what they use stays for as long as they run.
async fn empty_and_finalize(context: &Context, deleted: &Deleted) -> Result<(), EmptyError> {
    let kinds = content::kinds();
    let (pods, others): (Vec<_>, Vec<_>) = kinds.into_iter().partition(|kind| content::is_pods(kind));
    for kinds in [pods, others] {
        let mut pause = PAUSE_MIN;
        loop {
            let left = content::delete_all(&context.client, &deleted.name, &kinds).await;
            if left.is_empty() {
                break;
            }
            if !report(context, deleted, &left.totals).await? {
                return Ok(());
            }
            if !left.totals.errors.is_empty() {
                return Err(EmptyError::Content(left.totals.errors.join(", ")));
            }
            left.changes(&context.client).await?;
            // What comes in a burst is looked at once.
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
    if report(context, deleted, &Totals::default()).await? {
        finalize(&context.client, deleted).await?;
    }
    Ok(())
}

/// Has the status say what is left. False: the namespace is gone.
async fn report(context: &Context, deleted: &Deleted, totals: &Totals) -> Result<bool, ClientError> {
    let path = namespaces().name(&deleted.name);
    let Some(namespace) = current(&context.client, deleted).await? else {
        return Ok(false);
    };
    let held: NamespaceView = namespace.parse()?;
    let changes = totals.changes(&held.status.conditions, context.now());
    if changes.is_empty() {
        return Ok(true);
    }
    let patch = json!({"metadata": {"uid": deleted.uid}, "status": {"conditions": changes}});
    let (status, params) = (path.subresource("status"), WriteParams::default());
    let patched = context
        .client
        .patch(&status, PatchType::StrategicMerge, &patch, &params)
        .await;
    match patched {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

/// The namespace, unless it is gone and the name perhaps another one's.
async fn current(client: &Client, deleted: &Deleted) -> Result<Option<RawObject>, ClientError> {
    match client.get(&namespaces().name(&deleted.name)).await {
        Ok(namespace) if namespace.uid() == deleted.uid => Ok(Some(namespace)),
        Ok(_) => Ok(None),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

#[derive(Deserialize)]
struct NamespaceView {
    #[serde(deserialize_with = "or_default", default)]
    status: NamespaceStatus,
}

#[derive(Default, Deserialize)]
struct NamespaceStatus {
    #[serde(deserialize_with = "or_default", default)]
    conditions: Vec<Condition>,
}

/// Why a namespace is not empty yet; it is tried again.
#[derive(Debug, thiserror::Error)]
enum EmptyError {
    #[error("{0}")]
    Content(String),
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Takes our finalizer out of the namespace; with the last one the server removes the namespace itself.
async fn finalize(client: &Client, deleted: &Deleted) -> Result<(), ClientError> {
    let path = namespaces().name(&deleted.name);
    let Some(namespace) = current(client, deleted).await? else {
        return Ok(());
    };
    let Some(finalized) = without_finalizer(namespace.parse()?) else {
        return Ok(());
    };
    match client
        .update(&path.subresource("finalize"), &finalized, &WriteParams::default())
        .await
    {
        Ok(_) => info!(namespace = deleted.name, "namespace emptied"),
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(error),
    }
    Ok(())
}

/// The namespace without our finalizer; nothing if it is not being deleted or has lost it already.
fn without_finalizer(mut namespace: Value) -> Option<Value> {
    namespace.pointer("/metadata/deletionTimestamp")?.as_str()?;
    let finalizers = namespace.pointer_mut("/spec/finalizers")?.as_array_mut()?;
    let before = finalizers.len();
    finalizers.retain(|finalizer| finalizer != FINALIZER);
    (finalizers.len() < before).then_some(namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_finalizer_goes_and_only_from_a_deleted_namespace() {
        let namespace = |deletion: Value, finalizers: Value| json!({"metadata": {"name": "a", "deletionTimestamp": deletion}, "spec": {"finalizers": finalizers}});
        let at = json!("2026-01-02T15:04:05Z");
        for (deletion, finalizers, left) in [
            (at.clone(), json!(["kubernetes"]), Some(json!([]))),
            (at.clone(), json!(["x/y", "kubernetes"]), Some(json!(["x/y"]))),
            (at.clone(), json!(["x/y"]), None),
            (at, json!(null), None),
            (json!(null), json!(["kubernetes"]), None),
        ] {
            let found = without_finalizer(namespace(deletion, finalizers.clone()));
            assert_eq!(
                found.map(|found| found["spec"]["finalizers"].clone()),
                left,
                "{finalizers}"
            );
        }
    }
}
