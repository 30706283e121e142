//! Deletes tokens to join with when they end: one timer each.
//!
//! Source: `pkg/controller/bootstrap/tokencleaner.go`, Kubernetes 1.36.

use hotmap_client::DeleteParams;
use tokio::task::JoinSet;
use tracing::info;

use crate::{
    context::Context,
    controller::{Controller, ReconcileError, Requeue},
    informer::Change,
    queue::Queue,
    view::{Key, Secret, View},
};

struct BootstrapTokens {
    context: Context,
}

/// Deletes tokens for as long as the tasks live.
pub(crate) fn start(context: &Context, tasks: &mut JoinSet<()>) {
    let queue = Queue::default();
    let tokens = queue.clone();
    context.informers.secrets.on_change(move |change| {
        if let Change::Applied { new, .. } = change
            && new.token_expires().is_some()
        {
            tokens.add(new.metadata.key());
        }
    });
    let controller = BootstrapTokens {
        context: context.clone(),
    };
    context.start(controller, queue, tasks);
}

impl Controller for BootstrapTokens {
    const NAME: &'static str = "bootstrap-token-cleaner";

    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        let Some(known) = self.context.informers.secrets.get(key) else {
            return Ok(Requeue::Done);
        };
        let Some(over_at) = known.token_expires() else {
            return Ok(Requeue::Done);
        };
        let left = self.context.until(over_at);
        if !left.is_zero() {
            return Ok(Requeue::After(left));
        }
        // What is known may be a moment old, and somebody may just have prolonged it.
        let fresh = match self.context.client.get(&known.path()).await {
            Ok(fresh) => fresh,
            Err(error) if error.is_not_found() => return Ok(Requeue::Done),
            Err(error) => return Err(error.into()),
        };
        let params = DeleteParams {
            resource_version: fresh.resource_version().to_owned(),
            ..DeleteParams::default()
        };
        let fresh = fresh.parse::<Secret>()?;
        if fresh
            .token_expires()
            .is_some_and(|over_at| over_at <= self.context.now())
        {
            self.context.delete(&fresh, params).await?;
            info!(
                namespace = key.namespace,
                name = key.name,
                "expired bootstrap token deleted"
            );
        }
        Ok(Requeue::Done)
    }
}
