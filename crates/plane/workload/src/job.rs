//! Runs pods until enough of them have succeeded.
//!
//! ```text
//!   Jobs, pods ──▶ claim ─▶ decide ─▶ create · stop · write status · release ─▶ decide …
//! ```
//!
//! Source: `pkg/controller/job`, Kubernetes 1.36. Where upstream batches changes for a second, there is no need to: a
//! reconcile sees its own writes.

mod backoff;
mod decision;
mod indexes;
#[cfg(test)]
mod model;
mod own_pod;
mod policies;
mod request;
#[cfg(test)]
mod scenarios;
#[cfg(test)]
mod simulation;
mod tally;

use std::{collections::HashMap, sync::Arc};

use futures_util::{StreamExt as _, stream};
use hotmap_client::{DeleteParams, PatchType};
use hotmap_clock::ActiveTime;
use jiff::{SignedDuration, Timestamp};
use parking_lot::Mutex;
use tokio::{task::JoinSet, time::Instant};

use self::{
    backoff::BackoffRecord,
    decision::{NewPod, News, Step, World, decide, is_left_over},
};
use crate::{
    batches::in_batches,
    claims::{Claims, claim},
    context::{Context, unless_gone},
    controller::{Controller, ReconcileError, Requeue},
    events::EventType,
    informer::Change,
    queue::Queue,
    view::{Job, Key, Pod, View, job::JobStatus},
};

/// Who says what events say.
const COMPONENT: &str = "job-controller";
/// Requests for one Job at the same time.
const CONCURRENT_REQUESTS: usize = 16;
/// Steps of one reconcile before others have their turn.
const STEPS_MAX: usize = 16;

struct Jobs {
    context: Context,
    /// By uid of the Job.
    records: Arc<Mutex<HashMap<String, Record>>>,
}

/// What is known of a Job that runs and its object does not say.
#[derive(Default)]
struct Record {
    backoff: BackoffRecord,
    active: Option<ActiveTime>,
}

/// Frees pods whose Job is gone or finished.
struct LeftOvers {
    context: Context,
}

/// Runs Jobs for as long as the tasks live.
pub(crate) fn start(context: &Context, tasks: &mut JoinSet<()>) {
    let (jobs, left_overs) = (Queue::default(), Queue::default());
    let records = Arc::new(Mutex::new(HashMap::new()));
    hear_jobs(context, &jobs, &left_overs, &records);
    hear_pods(context, &jobs, &left_overs);
    let controller = Jobs {
        context: context.clone(),
        records,
    };
    context.start(controller, jobs, tasks);
    let controller = LeftOvers {
        context: context.clone(),
    };
    context.start(controller, left_overs, tasks);
}

fn hear_jobs(
    context: &Context,
    jobs: &Queue<Key>,
    left_overs: &Queue<Key>,
    records: &Arc<Mutex<HashMap<String, Record>>>,
) {
    let (informers, jobs, left_overs, records) = (
        context.informers.clone(),
        jobs.clone(),
        left_overs.clone(),
        records.clone(),
    );
    context.informers.jobs.on_change(move |change| match change {
        Change::Applied { new, .. } => jobs.add(new.metadata.key()),
        Change::Deleted { last } => {
            records.lock().remove(&last.metadata.uid);
            let pods = informers.pods.owned_by(&last.metadata.uid);
            pods.iter().for_each(|pod| left_overs.add(pod.metadata.key()));
        }
    });
}

fn hear_pods(context: &Context, jobs: &Queue<Key>, left_overs: &Queue<Key>) {
    let (informers, jobs, left_overs) = (context.informers.clone(), jobs.clone(), left_overs.clone());
    context.informers.pods.on_change(move |change| {
        let pod = change.object();
        let owner_key = |pod: &Pod| {
            let owner = pod
                .metadata
                .controller()
                .filter(|owner| owner.kind == Job::KIND)?;
            Some(Key::new(&pod.metadata.namespace, &owner.name))
        };
        if let Change::Applied { old: Some(old), .. } = &change
            && old.metadata.controller() != pod.metadata.controller()
        {
            owner_key(old).into_iter().for_each(|key| jobs.add(key));
        }
        if is_left_over(pod, owner_of(&informers.jobs, pod).as_deref()) {
            left_overs.add(pod.metadata.key());
        }
        match owner_key(pod) {
            Some(key) => jobs.add(key),
            None if pod.metadata.controller().is_none() && matches!(change, Change::Applied { .. }) => {
                let all = informers.jobs.in_namespace(&pod.metadata.namespace);
                let matching = all.iter().filter(|job| selects(job, pod));
                matching.for_each(|job| jobs.add(job.metadata.key()));
            }
            None => {}
        }
    });
}

fn selects(job: &Job, pod: &Pod) -> bool {
    let selector = job.spec.selector.as_ref();
    selector.is_some_and(|selector| selector.matches(&pod.metadata.labels))
}

fn owner_of(jobs: &crate::informer::Informer<Job>, pod: &Pod) -> Option<Arc<Job>> {
    let owner = pod
        .metadata
        .controller()
        .filter(|owner| owner.kind == Job::KIND)?;
    let job = jobs.get(&Key::new(&pod.metadata.namespace, &owner.name))?;
    (job.metadata.uid == owner.uid).then_some(job)
}

impl Controller for Jobs {
    const NAME: &'static str = "job";

    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        let mut creation_failure = None;
        for _ in 0..STEPS_MAX {
            let Some(job) = self.context.informers.jobs.get(key) else {
                return Ok(Requeue::Done);
            };
            let Some(pods) = self.claim(&job).await? else {
                continue;
            };
            let now = self.context.now();
            let (backoff, active) = self.record(&job, &pods, now);
            let world = World {
                job: &job,
                pods: &pods,
                backoff: &backoff,
                now,
                active,
                creation_failed: creation_failure.is_some(),
            };
            let decision = decide(&world);
            match decision.step {
                Some(Step::Create(new)) => creation_failure = self.create(&job, new).await,
                Some(Step::Stop { pods, counted }) => self.stop(&job, &pods, counted).await?,
                Some(Step::Write { status, news }) => self.write(&job, &status, news).await?,
                Some(Step::Release(pods)) => self.release(&pods).await?,
                None => {
                    return match (creation_failure, decision.again_at) {
                        (Some(failure), _) => Err(failure),
                        (None, Some(at)) => Ok(Requeue::After(self.context.until(at))),
                        (None, None) => Ok(Requeue::Done),
                    };
                }
            }
        }
        Ok(Requeue::After(std::time::Duration::ZERO))
    }
}

impl Jobs {
    /// The pods of the Job; nothing if some were taken or given back, and it is worth another look.
    async fn claim(&self, job: &Arc<Job>) -> Result<Option<Vec<Arc<Pod>>>, ReconcileError> {
        let informers = &self.context.informers;
        let Some(selector) = &job.spec.selector else {
            return Ok(Some(informers.pods.owned_by(&job.metadata.uid)));
        };
        let candidates = informers.pods.in_namespace(&job.metadata.namespace);
        let Claims {
            owned,
            adopt,
            release,
        } = claim(&job.metadata, selector, candidates);
        if adopt.is_empty() && release.is_empty() {
            return Ok(Some(owned));
        }
        let patches = adopt.iter().map(|pod| (pod, request::adoption(job, pod)));
        let patches: Vec<_> = patches
            .chain(release.iter().map(|pod| (pod, request::disowning(job, pod))))
            .collect();
        for (pod, patch) in patches {
            let patched = self.context.patch(&**pod, "", PatchType::StrategicMerge, &patch);
            unless_gone(patched.await)?;
        }
        Ok(None)
    }

    fn record(&self, job: &Job, pods: &[Arc<Pod>], now: Timestamp) -> (BackoffRecord, SignedDuration) {
        let mut records = self.records.lock();
        if job.is_finished() {
            let record = records.remove(&job.metadata.uid).unwrap_or_default();
            return (record.backoff, SignedDuration::ZERO);
        }
        let record = records.entry(job.metadata.uid.clone()).or_default();
        record.backoff.observe(job, pods);
        let known = record.active.take();
        record.active = job.status.start_time.map(|start| {
            let same = known.filter(|active| active.is_from(start));
            same.unwrap_or_else(|| ActiveTime::new(start, now, Instant::now()))
        });
        let active = record
            .active
            .map(|active| active.until(Instant::now()))
            .unwrap_or_default();
        let active = SignedDuration::try_from(active).unwrap_or(SignedDuration::MAX);
        (record.backoff.clone(), active)
    }

    /// Creates pods; a failure ends it, and is answered.
    async fn create(&self, job: &Arc<Job>, new: Vec<NewPod>) -> Option<ReconcileError> {
        let path = Pod::collection().in_namespace(&job.metadata.namespace);
        let (_, failure) = in_batches(new, |new| {
            let body = request::pod(job, &new);
            let path = &path;
            async move {
                let created = self.context.create::<Pod>(path, &body).await?;
                let message = format!("Created pod: {}", created.metadata.name);
                self.tell(job, EventType::Normal, "SuccessfulCreate", message);
                Ok::<_, ReconcileError>(())
            }
        })
        .await;
        let failure = failure?;
        self.tell(
            job,
            EventType::Warning,
            "FailedCreate",
            format!("Error creating: {failure}"),
        );
        Some(failure)
    }

    async fn stop(&self, job: &Arc<Job>, pods: &[Arc<Pod>], counted: bool) -> Result<(), ReconcileError> {
        all(pods.iter().map(|pod| self.stop_one(job, pod, counted))).await
    }

    async fn stop_one(&self, job: &Job, pod: &Arc<Pod>, counted: bool) -> Result<(), ReconcileError> {
        if !counted && pod.is_tracked() {
            free(&self.context, pod).await?;
        }
        let deleted = self.context.delete(&**pod, DeleteParams::default()).await;
        let (kind, reason, message) = match &deleted {
            Ok(()) => {
                let message = format!("Deleted pod: {}", pod.metadata.name);
                (EventType::Normal, "SuccessfulDelete", message)
            }
            Err(error) => (
                EventType::Warning,
                "FailedDelete",
                format!("Error deleting: {error}"),
            ),
        };
        self.tell(job, kind, reason, message);
        deleted
    }

    async fn write(&self, job: &Arc<Job>, status: &JobStatus, news: Vec<News>) -> Result<(), ReconcileError> {
        let patch = request::status_patch(job, status);
        let written = self
            .context
            .patch(&**job, "status", PatchType::Merge, &patch)
            .await;
        if unless_gone(written)?.is_some() {
            for News {
                kind,
                reason,
                message,
            } in news
            {
                self.tell(job, kind, reason, message);
            }
        }
        Ok(())
    }

    async fn release(&self, pods: &[Arc<Pod>]) -> Result<(), ReconcileError> {
        all(pods.iter().map(|pod| free(&self.context, pod))).await
    }

    fn tell(&self, job: &Job, kind: EventType, reason: &'static str, message: String) {
        let now = self.context.now();
        self.context
            .events
            .publish(job, COMPONENT, kind, reason, message, now);
    }
}

impl Controller for LeftOvers {
    const NAME: &'static str = "job-left-overs";

    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        let informers = &self.context.informers;
        if let Some(pod) = informers.pods.get(key)
            && is_left_over(&pod, owner_of(&informers.jobs, &pod).as_deref())
        {
            free(&self.context, &pod).await?;
        }
        Ok(Requeue::Done)
    }
}

async fn free(context: &Context, pod: &Arc<Pod>) -> Result<(), ReconcileError> {
    let patched = context
        .patch(&**pod, "", PatchType::StrategicMerge, &request::release(pod))
        .await;
    unless_gone(patched).map(drop)
}

/// Makes all requests, some at a time, and answers with the first failure.
async fn all(
    requests: impl Iterator<Item = impl Future<Output = Result<(), ReconcileError>>>,
) -> Result<(), ReconcileError> {
    // Collected first: a lazy iterator over borrowed pods is more than the compiler can follow across an await.
    let requests: Vec<_> = requests.collect();
    let mut results = stream::iter(requests).buffer_unordered(CONCURRENT_REQUESTS);
    let mut outcome = Ok(());
    while let Some(result) = results.next().await {
        outcome = outcome.and(result);
    }
    outcome
}
