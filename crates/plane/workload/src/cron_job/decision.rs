//! What to do next about a CronJob: a pure function of it, its Jobs and the time.
//!
//! ```text
//!   status follows the Jobs ─▶ old ones beyond the limits go ─▶ a start is due? replace · start · wait for the next
//! ```
//!
//! A start is a Job whose name holds its minute: it is created once, also by a controller that died before it wrote the
//! status, for the status is read off the Jobs.
//!
//! Source: `pkg/controller/cronjob/cronjob_controllerv2.go`, Kubernetes 1.36.

use std::sync::Arc;

use hotmap_object::{CronSchedule, time_zone};
use jiff::{SignedDuration, Timestamp, tz::TimeZone};

use super::timetable::Timetable;
use crate::{
    events::EventType,
    view::{
        CronJob, Job,
        cron_job::{CronJobStatus, JobReference},
        job::Ending,
    },
};

/// On Jobs: the start they stand for.
pub(super) const SCHEDULED_TIMESTAMP: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";

pub(super) struct World<'a> {
    pub(super) cron_job: &'a CronJob,
    /// The Jobs that it controls.
    pub(super) jobs: &'a [Arc<Job>],
    pub(super) now: Timestamp,
    /// The zone of schedules that name none.
    pub(super) local: &'a TimeZone,
    /// A start that was tried: where there is still nothing of it, its name belongs to somebody else's Job.
    pub(super) tried: Option<Timestamp>,
    /// Uids of Jobs deleted just now: that they are gone is no news.
    pub(super) deleted: &'a [String],
}

/// One thing to do.
#[derive(Debug)]
pub(super) enum Step {
    /// Delete a Job that is not worth keeping, or must make place.
    Delete(Arc<Job>),
    /// Write the status.
    Write(Box<CronJobStatus>),
    /// Create the Job of this start.
    Start(Timestamp),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct News {
    pub(super) kind: EventType,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// The next step, or when to look again without one.
#[derive(Debug, Default)]
pub(super) struct Decision {
    pub(super) step: Option<Step>,
    /// To be said once the step is done.
    pub(super) news: Vec<News>,
    pub(super) again_at: Option<Timestamp>,
}

/// The same world always leads to the same step.
pub(super) fn decide(world: &World<'_>) -> Decision {
    let mut decision = Decision::default();
    let status = follow_jobs(world, &mut decision.news);
    if *status != world.cron_job.status {
        decision.step = Some(Step::Write(status));
        return decision;
    }
    // A Job goes only after the status knows of its start.
    if let Some(old) = beyond_history(world) {
        decision.step = Some(Step::Delete(old));
        // It is said when all is in order.
        decision.news.clear();
        return decision;
    }
    if !world.cron_job.metadata.is_deleting() {
        schedule(world, &mut decision);
    }
    decision
}

/// The oldest finished Job of which there are too many.
fn beyond_history(world: &World<'_>) -> Option<Arc<Job>> {
    let spec = &world.cron_job.spec;
    let limits = [
        (Ending::Complete, spec.successful_jobs_history_limit),
        (Ending::Failed, spec.failed_jobs_history_limit),
    ];
    limits.into_iter().find_map(|(ending, limit)| {
        let limit = usize::try_from(limit?).unwrap_or(0);
        let ended = world.jobs.iter().filter(|job| {
            !job.metadata.is_deleting() && job.ending().is_some_and(|(ended, _)| ended == ending)
        });
        let ended: Vec<&Arc<Job>> = ended.collect();
        // Those that never started are the youngest.
        let age = |job: &&Arc<Job>| {
            let started = job.status.start_time;
            (started.is_none(), started, job.metadata.name.clone())
        };
        let oldest = ended.iter().copied().min_by_key(age)?;
        (ended.len() > limit).then(|| oldest.clone())
    })
}

/// The status as the Jobs have it.
fn follow_jobs(world: &World<'_>, news: &mut Vec<News>) -> Box<CronJobStatus> {
    let before = &world.cron_job.status;
    let mut status = Box::new(before.clone());
    let mut say = |kind, reason, message| {
        news.push(News {
            kind,
            reason,
            message,
        })
    };
    status.active.retain(|reference| {
        let job = world.jobs.iter().find(|job| job.metadata.uid == reference.uid);
        let Some(job) = job else {
            if world.deleted.contains(&reference.uid) {
                return false;
            }
            let message = format!("Active job went missing: {}", reference.name);
            say(EventType::Normal, "MissingJob", message);
            return false;
        };
        if let Some((ending, _)) = job.ending() {
            let message = format!(
                "Saw completed job: {}, condition: {}",
                reference.name,
                ending.as_str()
            );
            say(EventType::Normal, "SawCompletedJob", message);
        }
        !job.is_finished()
    });
    for job in world.jobs {
        match job.ending() {
            Some((Ending::Complete, _)) => {
                status.last_successful_time = status.last_successful_time.max(job.status.completion_time);
            }
            Some((Ending::Failed, _)) => {}
            None if status.active.iter().any(|active| active.uid == job.metadata.uid) => {}
            None if start_of(world.cron_job, job).is_some() => status.active.push(reference(job)),
            None => {
                let name = &job.metadata.name;
                let message = format!("Saw a job that the controller did not create or forgot: {name}");
                say(EventType::Warning, "UnexpectedJob", message);
            }
        }
    }
    let started = world.jobs.iter().filter_map(|job| start_of(world.cron_job, job));
    status.last_schedule_time = status.last_schedule_time.max(started.max());
    status
}

/// The start that a Job stands for; nothing for one that somebody made by hand.
fn start_of(cron_job: &CronJob, job: &Job) -> Option<Timestamp> {
    let at: Timestamp = job.metadata.annotation(SCHEDULED_TIMESTAMP)?.parse().ok()?;
    (job.metadata.name == job_name(cron_job, at)).then_some(at)
}

/// The name of the Job of a start.
pub(super) fn job_name(cron_job: &CronJob, start: Timestamp) -> String {
    format!("{}-{}", cron_job.metadata.name, start.as_second().div_euclid(60))
}

fn reference(job: &Job) -> JobReference {
    JobReference {
        api_version: "batch/v1".to_owned(),
        kind: "Job".to_owned(),
        namespace: job.metadata.namespace.clone(),
        name: job.metadata.name.clone(),
        uid: job.metadata.uid.clone(),
        resource_version: job.metadata.resource_version.clone(),
    }
}

fn schedule(world: &World<'_>, decision: &mut Decision) {
    let (cron_job, now) = (world.cron_job, world.now);
    let spec = &cron_job.spec;
    let mut warn = |reason, message| {
        let kind = EventType::Warning;
        decision.news.push(News {
            kind,
            reason,
            message,
        });
    };
    let zone = match spec.time_zone.as_deref().map(time_zone) {
        None => world.local.clone(),
        Some(Ok(zone)) => zone,
        Some(Err(unknown)) => {
            let name = spec.time_zone.as_deref().unwrap_or_default();
            return warn(
                "UnknownTimeZone",
                format!("invalid timeZone: {name:?}: {unknown}"),
            );
        }
    };
    if spec.suspend {
        return;
    }
    let text = &spec.schedule;
    if text.contains("TZ") {
        warn(
            "UnsupportedSchedule",
            format!(
                "CRON_TZ or TZ used in schedule {text:?} is not officially supported, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            ),
        );
    }
    let schedule = match CronSchedule::parse(text) {
        Ok(schedule) => schedule,
        Err(error) => {
            return warn(
                "UnparseableSchedule",
                format!("unparseable schedule: {text:?} : {error}"),
            );
        }
    };
    let timetable = Timetable {
        schedule: &schedule,
        zone: &zone,
    };
    let missed = match timetable.due(cron_job, now) {
        Ok(missed) => missed,
        Err(error) => return warn("InvalidSchedule", format!("invalid schedule: {text} : {error}")),
    };
    decision.again_at = timetable.next_start(cron_job, now);
    let Some(start) = missed.latest else { return };
    if missed.is_too_many() {
        warn(
            "TooManyMissedTimes",
            "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
                .to_owned(),
        );
    }
    let deadline = spec.starting_deadline_seconds.map(SignedDuration::from_secs);
    let latest = deadline.and_then(|limit| start.checked_add(limit).ok());
    if latest.is_some_and(|latest| latest < now) {
        let at = start.strftime("%a, %d %b %Y %H:%M:%S +0000");
        return warn(
            "MissSchedule",
            format!("Missed scheduled time to start a job: {at}"),
        );
    }
    let status = &cron_job.status;
    let name = job_name(cron_job, start);
    let is_started =
        status.last_schedule_time == Some(start) || status.active.iter().any(|active| active.name == name);
    if is_started || world.tried == Some(start) {
        return;
    }
    if spec.concurrency_policy == "Forbid" && !status.active.is_empty() {
        decision.news.push(News {
            kind: EventType::Normal,
            reason: "JobAlreadyActive",
            message: "Not starting job because prior execution is running and concurrency policy is Forbid"
                .to_owned(),
        });
        return;
    }
    let running = world.jobs.iter().find(|job| {
        !job.metadata.is_deleting() && status.active.iter().any(|active| active.uid == job.metadata.uid)
    });
    decision.step = Some(match running {
        Some(running) if spec.concurrency_policy == "Replace" => Step::Delete(running.clone()),
        _ => Step::Start(start),
    });
}
