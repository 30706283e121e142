//! Empties a deleted namespace and lets it go.
//!
//! ```text
//!   namespaces with a deletionTimestamp ─▶ one task each:
//!       delete every collection ─▶ follow each until it is empty ─▶ PUT finalize without our finalizer
//! ```
//!
//! Source: `pkg/controller/namespace/deletion/namespaced_resources_deleter.go`, Kubernetes 1.36. Nothing is polled: what
//! takes its time (a pod's grace, somebody's finalizer) is awaited by watching.

mod content;

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use hotmap_client::{
    Client, ClientError, ClientListWatch, FollowEvent, Follower, FollowerConfig, RawObject, ResourcePath,
    WriteParams,
};
use serde_json::Value;
use tokio::{
    sync::Semaphore,
    task::{Id, JoinSet},
    time::sleep,
};
use tracing::{error, info, warn};

use crate::controllers::{panic_text, retries};

/// Namespaces that are emptied at the same time; each holds one watch while it waits.
const CONCURRENT_NAMESPACES: usize = 64;
/// The finalizer in a namespace's spec that stands for its content.
const FINALIZER: &str = "kubernetes";
/// After a panic: a bug should not become a busy loop.
const PANIC_PAUSE: Duration = Duration::from_secs(10);

/// Empties deleted namespaces for ever.
pub(crate) async fn run(client: Client) {
    let namespaces = ClientListWatch::new(client.clone(), namespaces());
    let mut namespaces = Follower::new(namespaces, FollowerConfig::STOCK);
    let mut deletions = Deletions::new(client);
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

/// The namespaces that are being emptied, by uid: one that is re-created under its name is another one.
struct Deletions {
    client: Client,
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
    fn new(client: Client) -> Self {
        let permits = Arc::new(Semaphore::new(CONCURRENT_NAMESPACES));
        Self {
            client,
            permits,
            tasks: JoinSet::new(),
            running: HashMap::new(),
            uids: HashSet::new(),
        }
    }

    fn hear(&mut self, namespace: &RawObject) {
        if content::is_deleting(namespace) && self.uids.insert(namespace.uid().to_owned()) {
            let deleted = Deleted {
                name: namespace.name().to_owned(),
                uid: namespace.uid().to_owned(),
            };
            self.start(deleted, Duration::ZERO);
        }
    }

    fn start(&mut self, deleted: Deleted, pause: Duration) {
        let (client, permits, task) = (self.client.clone(), self.permits.clone(), deleted.clone());
        let handle = self.tasks.spawn(async move {
            sleep(pause).await;
            let _permit = permits
                .acquire_owned()
                .await
                .expect("the semaphore is never closed");
            empty_until_gone(&client, &task).await;
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

async fn empty_until_gone(client: &Client, deleted: &Deleted) {
    let mut backoff = retries();
    while let Err(error) = empty_and_finalize(client, deleted).await {
        warn!(namespace = deleted.name, %error, "cannot empty a namespace, retrying");
        sleep(backoff.next_delay()).await;
    }
}

async fn empty_and_finalize(client: &Client, deleted: &Deleted) -> Result<(), ClientError> {
    for collection in content::collections(&deleted.name) {
        content::delete(client, &collection).await?;
    }
    for collection in content::collections(&deleted.name) {
        content::wait_until_empty(client, &collection).await?;
    }
    finalize(client, deleted).await
}

/// Takes our finalizer out of the namespace; with the last one the server removes the namespace itself.
async fn finalize(client: &Client, deleted: &Deleted) -> Result<(), ClientError> {
    let path = namespaces().name(&deleted.name);
    let namespace = match client.get(&path).await {
        Ok(namespace) if namespace.uid() == deleted.uid => namespace,
        Ok(_) => return Ok(()),
        Err(error) if error.is_not_found() => return Ok(()),
        Err(error) => return Err(error),
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
    use serde_json::json;

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
