//! Deletes finished Jobs when their time is over: one timer each, at `spec.ttlSecondsAfterFinished` after the end.
//!
//! Source: `pkg/controller/ttlafterfinished`, Kubernetes 1.36.

use hotmap_client::{DeleteParams, Propagation};
use jiff::{SignedDuration, Timestamp};
use tokio::task::JoinSet;
use tracing::info;

use crate::{
    context::Context,
    controller::{Controller, ReconcileError, Requeue},
    informer::Change,
    queue::Queue,
    view::{Job, Key, View},
};

struct FinishedTtl {
    context: Context,
}

/// Deletes Jobs for as long as the tasks live.
pub(crate) fn start(context: &Context, tasks: &mut JoinSet<()>) {
    let queue = Queue::default();
    let jobs = queue.clone();
    context.informers.jobs.on_change(move |change| {
        if let Change::Applied { new, .. } = change
            && over_at(new).is_some()
        {
            jobs.add(new.metadata.key());
        }
    });
    let controller = FinishedTtl {
        context: context.clone(),
    };
    context.start(controller, queue, tasks);
}

impl Controller for FinishedTtl {
    const NAME: &'static str = "ttl-after-finished";

    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        let known = self.context.informers.jobs.get(key);
        let Some((job, over_at)) = known.and_then(|job| Some((job.clone(), over_at(&job)?))) else {
            return Ok(Requeue::Done);
        };
        let left = self.context.until(over_at);
        if !left.is_zero() {
            return Ok(Requeue::After(left));
        }
        // What is known may be a moment old, and somebody may just have prolonged the time.
        let fresh = match self.context.client.get(&job.path()).await {
            Ok(fresh) => fresh,
            Err(error) if error.is_not_found() => return Ok(Requeue::Done),
            Err(error) => return Err(error.into()),
        };
        let params = DeleteParams {
            propagation: Some(Propagation::Foreground),
            resource_version: fresh.resource_version().to_owned(),
            ..DeleteParams::default()
        };
        let fresh = fresh.parse::<Job>()?;
        match self::over_at(&fresh) {
            Some(over_at) if over_at <= self.context.now() => {
                self.context.delete(&fresh, params).await?;
                info!(namespace = key.namespace, name = key.name, "finished job deleted");
                Ok(Requeue::Done)
            }
            Some(over_at) => Ok(Requeue::After(self.context.until(over_at))),
            None => Ok(Requeue::Done),
        }
    }
}

/// When a Job is to be deleted; nothing for one that has no such time, runs, or is being deleted.
fn over_at(job: &Job) -> Option<Timestamp> {
    let ttl = job.spec.ttl_seconds_after_finished?;
    let (_, finished_at) = job.ending()?;
    let over_at = finished_at?
        .checked_add(SignedDuration::from_secs(ttl.into()))
        .ok()?;
    (!job.metadata.is_deleting()).then_some(over_at)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn only_finished_jobs_with_a_time_to_live_go() {
        let ended = |kind: &str| json!([{"type": kind, "status": "True", "lastTransitionTime": "2026-01-02T15:04:05Z"}]);
        for (what, job, expected) in [
            (
                "complete",
                json!({"spec": {"ttlSecondsAfterFinished": 60}, "status": {"conditions": ended("Complete")}}),
                Some("2026-01-02T15:05:05Z"),
            ),
            (
                "failed, at once",
                json!({"spec": {"ttlSecondsAfterFinished": 0}, "status": {"conditions": ended("Failed")}}),
                Some("2026-01-02T15:04:05Z"),
            ),
            (
                "running",
                json!({"spec": {"ttlSecondsAfterFinished": 60}, "status": {"conditions": ended("FailureTarget")}}),
                None,
            ),
            (
                "without",
                json!({"spec": {}, "status": {"conditions": ended("Complete")}}),
                None,
            ),
            (
                "on its way",
                json!({"metadata": {"deletionTimestamp": "2026-01-02T15:04:06Z"}, "spec": {"ttlSecondsAfterFinished": 0},
                "status": {"conditions": ended("Complete")}}),
                None,
            ),
        ] {
            let job: Job = serde_json::from_value::<Job>(Value::clone(&job)).expect("a job");
            assert_eq!(
                over_at(&job),
                expected.map(|at| at.parse().expect("a time")),
                "{what}"
            );
        }
    }
}
