//! Starts Jobs by the clock.
//!
//! One timer per CronJob stands for its next start, and none where nothing is due. Starts are reckoned with the wall
//! clock, the timer runs with the monotonic one: a clock that is set back starts nothing twice, one that is set forward
//! starts the latest of what was missed when the timer, or any change of the CronJob or its Jobs, next wakes it.

mod decision;
#[cfg(test)]
mod scenarios;
mod timetable;

use std::{sync::Arc, time::Duration};

use hotmap_client::{DeleteParams, PatchType, Propagation};
use hotmap_object::{time_zone, timestamp};
use jiff::{Timestamp, tz::TimeZone};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;

use self::decision::{News, SCHEDULED_TIMESTAMP, Step, World, decide, job_name};
use crate::{
    claims::controller_reference,
    context::{Context, unless_gone},
    controller::{Controller, ReconcileError, Requeue},
    events::EventType,
    informer::Change,
    queue::Queue,
    view::{CronJob, Job, Key, View, cron_job::CronJobStatus},
};

/// Who says what events say.
const COMPONENT: &str = "cronjob-controller";
/// Steps of one reconcile before others have their turn.
const STEPS_MAX: usize = 32;

struct CronJobs {
    context: Context,
    local: TimeZone,
}

/// Starts Jobs for as long as the tasks live. Schedules without a time zone are read in the one of this machine.
pub(crate) fn start(context: &Context, tasks: &mut JoinSet<()>) {
    let queue = Queue::default();
    let cron_jobs = queue.clone();
    context.informers.cron_jobs.on_change(move |change| {
        if let Change::Applied { new, .. } = change {
            cron_jobs.add(new.metadata.key());
        }
    });
    let jobs = queue.clone();
    context.informers.jobs.on_change(move |change| {
        let job = change.object();
        if let Some(owner) = job
            .metadata
            .controller()
            .filter(|owner| owner.kind == CronJob::KIND)
        {
            jobs.add(Key::new(&job.metadata.namespace, &owner.name));
        }
    });
    let controller = CronJobs {
        context: context.clone(),
        local: TimeZone::system(),
    };
    context.start(controller, queue, tasks);
}

impl Controller for CronJobs {
    const NAME: &'static str = "cronjob";
    const WAITS_FOR_TIMES_OF_DAY: bool = true;

    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        let (mut tried, mut deleted) = (None, Vec::new());
        for _ in 0..STEPS_MAX {
            let informers = &self.context.informers;
            let Some(cron_job) = informers.cron_jobs.get(key) else {
                return Ok(Requeue::Done);
            };
            let world = World {
                cron_job: &cron_job,
                jobs: &informers.jobs.owned_by(&cron_job.metadata.uid),
                now: self.context.now(),
                local: &self.local,
                tried,
                deleted: &deleted,
            };
            let decision = decide(&world);
            match decision.step {
                Some(Step::Delete(job)) => {
                    self.delete(&cron_job, &job).await?;
                    deleted.push(job.metadata.uid.clone());
                }
                Some(Step::Write(status)) => self.write(&cron_job, &status).await?,
                Some(Step::Start(at)) => {
                    self.start(&cron_job, at).await?;
                    tried = Some(at);
                }
                None => {
                    self.tell_all(&cron_job, decision.news);
                    return Ok(decision
                        .again_at
                        .map_or(Requeue::Done, |at| Requeue::After(self.context.until(at))));
                }
            }
            self.tell_all(&cron_job, decision.news);
        }
        Ok(Requeue::After(Duration::ZERO))
    }
}

impl CronJobs {
    async fn delete(&self, cron_job: &CronJob, job: &Arc<Job>) -> Result<(), ReconcileError> {
        let params = DeleteParams {
            propagation: Some(Propagation::Background),
            ..DeleteParams::default()
        };
        let deleted = self.context.delete(&**job, params).await;
        let (kind, reason, message) = match &deleted {
            Ok(()) => (
                EventType::Normal,
                "SuccessfulDelete",
                format!("Deleted job {}", job.metadata.name),
            ),
            Err(error) => (
                EventType::Warning,
                "FailedDelete",
                format!("Deleted job: {error}"),
            ),
        };
        self.tell(cron_job, kind, reason, message);
        deleted
    }

    async fn write(&self, cron_job: &Arc<CronJob>, status: &CronJobStatus) -> Result<(), ReconcileError> {
        let patch = status_patch(cron_job, status);
        let written = self
            .context
            .patch(&**cron_job, "status", PatchType::Merge, &patch)
            .await;
        unless_gone(written).map(drop)
    }

    /// Creates the Job of a start. That there is one of its name is no failure.
    async fn start(&self, cron_job: &CronJob, at: Timestamp) -> Result<(), ReconcileError> {
        let path = Job::collection().in_namespace(&cron_job.metadata.namespace);
        match self.context.create::<Job>(&path, &job(cron_job, at)).await {
            Ok(job) => {
                let message = format!("Created job {}", job.metadata.name);
                self.tell(cron_job, EventType::Normal, "SuccessfulCreate", message);
                Ok(())
            }
            Err(ReconcileError::Client(error)) if error.is_already_exists() => Ok(()),
            Err(error) => {
                let message = format!("Error creating job: {error}");
                self.tell(cron_job, EventType::Warning, "FailedCreate", message);
                Err(error)
            }
        }
    }

    fn tell_all(&self, cron_job: &CronJob, news: Vec<News>) {
        for News {
            kind,
            reason,
            message,
        } in news
        {
            self.tell(cron_job, kind, reason, message);
        }
    }

    fn tell(&self, cron_job: &CronJob, kind: EventType, reason: &'static str, message: String) {
        let now = self.context.now();
        self.context
            .events
            .publish(cron_job, COMPONENT, kind, reason, message, now);
    }
}

/// The Job of a start.
fn job(cron_job: &CronJob, at: Timestamp) -> Value {
    let template = &cron_job.spec.job_template;
    let zone = cron_job
        .spec
        .time_zone
        .as_deref()
        .and_then(|name| time_zone(name).ok());
    let mut annotations = template
        .metadata
        .annotations
        .as_object()
        .cloned()
        .unwrap_or_default();
    annotations.insert(
        SCHEDULED_TIMESTAMP.to_owned(),
        rfc3339(at, &zone.unwrap_or(TimeZone::UTC)).into(),
    );
    json!({
        "apiVersion": Job::API_VERSION,
        "kind": Job::KIND,
        "metadata": {
            "namespace": cron_job.metadata.namespace,
            "name": job_name(cron_job, at),
            "labels": template.metadata.labels,
            "annotations": annotations,
            "ownerReferences": [controller_reference(cron_job)],
        },
        "spec": template.spec,
    })
}

/// With the zone's offset, `Z` for none.
fn rfc3339(at: Timestamp, zone: &TimeZone) -> String {
    let zoned = at.to_zoned(zone.clone());
    match zoned.offset().seconds() {
        0 => timestamp::seconds(at),
        _ => zoned.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
    }
}

/// The merge patch that makes the status what it should be, of this very version of the CronJob.
fn status_patch(cron_job: &CronJob, status: &CronJobStatus) -> Value {
    let before = &cron_job.status;
    let mut changed = Map::new();
    if status.active != before.active {
        let active = if status.active.is_empty() {
            Value::Null
        } else {
            json!(status.active)
        };
        changed.insert("active".to_owned(), active);
    }
    for (field, before, after) in [
        (
            "lastScheduleTime",
            before.last_schedule_time,
            status.last_schedule_time,
        ),
        (
            "lastSuccessfulTime",
            before.last_successful_time,
            status.last_successful_time,
        ),
    ] {
        if before != after {
            changed.insert(field.to_owned(), after.map(timestamp::seconds).into());
        }
    }
    let metadata = &cron_job.metadata;
    json!({"metadata": {"uid": metadata.uid, "resourceVersion": metadata.resource_version}, "status": changed})
}
