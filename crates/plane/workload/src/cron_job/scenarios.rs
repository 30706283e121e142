//! What a CronJob does at a time, and a clock that runs through random days.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use proptest::prelude::*;
use serde_json::{Map, Value, from_value, json};

use super::{
    decision::{SCHEDULED_TIMESTAMP, Step, World, decide, job_name},
    job, rfc3339, status_patch,
};
use crate::view::{CronJob, Job};

fn at(text: &str) -> Timestamp {
    format!("2026-05-19T{text}Z").parse().expect("a time")
}

/// A CronJob that was created at nine; hourly unless the spec says otherwise.
fn cron_job(spec: &Value, status: Value) -> CronJob {
    let mut full = json!({"schedule": "0 * * * *", "concurrencyPolicy": "Allow", "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1});
    let fields = spec.as_object().expect("an object").clone();
    full.as_object_mut().expect("an object").extend(fields);
    let metadata = json!({"namespace": "a", "name": "tick", "uid": "u", "resourceVersion": "1", "creationTimestamp": at("09:00:00")});
    from_value(json!({"metadata": metadata, "spec": full, "status": status})).expect("a cron job")
}

fn child(name: &str, start: Option<&str>, ending: Option<&str>) -> Arc<Job> {
    let annotations = start.map(|start| json!({SCHEDULED_TIMESTAMP: at(start)}));
    let conditions =
        ending.map(|kind| json!([{"type": kind, "status": "True", "lastTransitionTime": at("10:01:00")}]));
    let job = json!({"metadata": {"namespace": "a", "name": name, "uid": name, "annotations": annotations},
        "status": {"conditions": conditions, "startTime": start.map(at), "completionTime": at("10:01:00")}});
    Arc::new(from_value(job).expect("a job"))
}

/// The step or the reasons of the news, and the time of the next look.
fn verdict(cron_job: &CronJob, jobs: &[Arc<Job>], now: Timestamp) -> String {
    let world = World {
        cron_job,
        jobs,
        now,
        local: &TimeZone::UTC,
        tried: None,
        deleted: &[],
    };
    let decision = decide(&world);
    let time = |at: Timestamp| at.strftime("%H:%M").to_string();
    let mut words: Vec<String> = decision.news.iter().map(|news| news.reason.to_owned()).collect();
    words.extend(decision.step.map(|step| match step {
        Step::Delete(job) => format!("delete {}", job.metadata.name),
        Step::Write(status) => format!(
            "{} active, last {}",
            status.active.len(),
            status.last_schedule_time.map_or("never".to_owned(), time)
        ),
        Step::Start(start) => format!("start {}", time(start)),
    }));
    words.extend(decision.again_at.map(|again| format!("again {}", time(again))));
    words.join(", ")
}

#[test]
fn starts_follow_the_clock_and_the_policies() {
    // 29653080 is the minute of 10:00.
    let running = || child("tick-29653080", Some("10:00:00"), None);
    let active = json!({"active": [{"name": "tick-29653080", "namespace": "a", "uid": "tick-29653080"}], "lastScheduleTime": at("10:00:00")});
    let idle = json!({"lastScheduleTime": at("10:00:00")});
    for (what, spec, status, jobs, now, expected) in [
        (
            "before the first start",
            json!({}),
            json!({}),
            vec![],
            "09:30:00",
            "again 10:00",
        ),
        (
            "the first start",
            json!({}),
            json!({}),
            vec![],
            "10:00:00",
            "start 10:00, again 11:00",
        ),
        (
            "a little late",
            json!({}),
            json!({}),
            vec![],
            "10:20:00",
            "start 10:00, again 11:00",
        ),
        (
            "the latest of several",
            json!({}),
            json!({}),
            vec![],
            "13:20:00",
            "start 13:00, again 14:00",
        ),
        (
            "made already",
            json!({}),
            idle.clone(),
            vec![],
            "10:20:00",
            "again 11:00",
        ),
        (
            "suspended",
            json!({"suspend": true}),
            json!({}),
            vec![],
            "10:20:00",
            "",
        ),
        (
            "too late",
            json!({"startingDeadlineSeconds": 60}),
            json!({}),
            vec![],
            "10:02:00",
            "again 11:00",
        ),
        (
            "within the deadline",
            json!({"startingDeadlineSeconds": 600}),
            json!({}),
            vec![],
            "10:02:00",
            "start 10:00, again 11:00",
        ),
        (
            "allowed beside another",
            json!({}),
            active.clone(),
            vec![running()],
            "11:00:00",
            "start 11:00, again 12:00",
        ),
        (
            "forbidden beside another",
            json!({"concurrencyPolicy": "Forbid"}),
            active.clone(),
            vec![running()],
            "11:00:00",
            "JobAlreadyActive, again 12:00",
        ),
        (
            "in place of another",
            json!({"concurrencyPolicy": "Replace"}),
            active.clone(),
            vec![running()],
            "11:00:00",
            "delete tick-29653080, again 12:00",
        ),
        (
            "an active one that ended",
            json!({}),
            active.clone(),
            vec![child("tick-29653080", Some("10:00:00"), Some("Complete"))],
            "10:02:00",
            "SawCompletedJob, 0 active, last 10:00",
        ),
        (
            "an active one that is gone",
            json!({}),
            active,
            vec![],
            "10:02:00",
            "MissingJob, 0 active, last 10:00",
        ),
        (
            "one that a dead controller made",
            json!({}),
            json!({}),
            vec![running()],
            "10:02:00",
            "1 active, last 10:00",
        ),
        (
            "one that somebody made",
            json!({}),
            idle.clone(),
            vec![child("by-hand", None, None)],
            "10:02:00",
            "UnexpectedJob, again 11:00",
        ),
        (
            "failed ones beyond the limit",
            json!({}),
            idle,
            vec![
                child("new", Some("09:30:00"), Some("Failed")),
                child("old", Some("09:00:00"), Some("Failed")),
                child("running", Some("09:00:00"), None),
            ],
            "10:02:00",
            "delete old",
        ),
        (
            "two hundred missed",
            json!({"schedule": "* * * * *"}),
            json!({}),
            vec![],
            "12:21:30",
            "TooManyMissedTimes, start 12:21, again 12:22",
        ),
        (
            "no such day",
            json!({"schedule": "0 0 31 2 *"}),
            json!({}),
            vec![],
            "10:00:00",
            "InvalidSchedule",
        ),
        (
            "no schedule",
            json!({"schedule": "often"}),
            json!({}),
            vec![],
            "10:00:00",
            "UnparseableSchedule",
        ),
        (
            "no such zone",
            json!({"timeZone": "Moon/Base"}),
            json!({}),
            vec![],
            "10:00:00",
            "UnknownTimeZone",
        ),
        (
            "a zone",
            json!({"schedule": "0 12 * * *", "timeZone": "Europe/Rome"}),
            json!({}),
            vec![],
            "10:00:00",
            "start 10:00, again 10:00",
        ),
        (
            "a zone in the schedule",
            json!({"schedule": "TZ=Europe/Rome 30 12 * * *"}),
            json!({}),
            vec![],
            "10:00:00",
            "UnsupportedSchedule, again 10:30",
        ),
        (
            "an interval",
            json!({"schedule": "@every 25m"}),
            json!({}),
            vec![],
            "09:30:00",
            "start 09:25, again 09:50",
        ),
        (
            "working hours",
            json!({"schedule": "30 6-16/4 * * 1-5"}),
            json!({}),
            vec![],
            "23:00:00",
            "start 14:30, again 06:30",
        ),
    ] {
        assert_eq!(
            verdict(&cron_job(&spec, status), &jobs, at(now)),
            expected,
            "{what}"
        );
    }
}

#[test]
fn a_start_tried_in_vain_waits_for_the_next() {
    let cron_job = cron_job(&json!({}), json!({}));
    let (now, zone) = (at("10:00:00"), TimeZone::UTC);
    let world = World {
        cron_job: &cron_job,
        jobs: &[],
        now,
        local: &zone,
        tried: Some(now),
        deleted: &[],
    };
    let decision = decide(&world);
    assert!(decision.step.is_none());
    assert_eq!(decision.again_at, Some(at("11:00:00")));
}

#[test]
fn a_job_is_the_template_under_the_name_of_its_minute() {
    let spec = json!({"timeZone": "Asia/Tokyo", "jobTemplate": {"metadata": {"labels": {"app": "x"}, "annotations": {"a": "b"}}, "spec": {"completions": 2}}});
    let cron_job = cron_job(&spec, json!({}));
    let job = job(&cron_job, at("10:00:00"));
    assert_eq!(job["metadata"]["name"], "tick-29653080");
    assert_eq!(job["metadata"]["labels"], json!({"app": "x"}));
    assert_eq!(
        job["metadata"]["annotations"],
        json!({"a": "b", SCHEDULED_TIMESTAMP: "2026-05-19T19:00:00+09:00"})
    );
    assert_eq!(job["metadata"]["ownerReferences"][0]["kind"], "CronJob");
    assert_eq!(job["spec"], json!({"completions": 2}));
    assert_eq!(rfc3339(at("10:00:00"), &TimeZone::UTC), "2026-05-19T10:00:00Z");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Looks come whenever they like, the clock jumps by up to a day either way, Jobs end, the controller dies before it
    /// writes the status.
    #[test]
    fn no_start_is_made_twice_and_no_clock_does_harm(
        policy in prop_oneof![Just("Allow"), Just("Forbid"), Just("Replace")],
        schedule in prop_oneof![Just("*/7 * * * *"), Just("0 * * * *"), Just("30 6-16/4 * * 1-5"), Just("@every 11m")],
        looks in proptest::collection::vec((-86_400_i64..86_400, 0_i64..7_200, any::<bool>(), any::<bool>(), 0_u8..10), 1..60),
    ) {
        let spec = json!({"schedule": schedule, "concurrencyPolicy": policy});
        let mut world_job = cron_job(&spec, json!({}));
        let (mut now, mut jobs, mut made) = (at("09:00:00"), Vec::<Arc<Job>>::new(), Vec::<String>::new());
        for (jump, pass, ends, dies, chance) in looks {
            let jump = if chance == 0 { jump } else { 0 };
            now += SignedDuration::from_secs(pass + jump);
            if ends && let Some(job) = jobs.iter_mut().find(|job| !job.is_finished()) {
                let mut ended = Job::clone(job);
                ended.status.conditions = child("", None, Some("Complete")).status.conditions.clone();
                *job = Arc::new(ended);
            }
            for step in 0_usize.. {
                prop_assert!(step < 50, "no rest");
                let world = World { cron_job: &world_job, jobs: &jobs, now, local: &TimeZone::UTC, tried: None, deleted: &[] };
                let decision = decide(&world);
                match decision.step {
                    Some(Step::Delete(job)) => jobs.retain(|one| one.metadata.uid != job.metadata.uid),
                    Some(Step::Write(_)) if dies => break,
                    Some(Step::Write(status)) => {
                        let patch = status_patch(&world_job, &status);
                        prop_assert!(patch["status"] != Value::Object(Map::new()), "an empty write");
                        world_job.status = *status;
                    }
                    Some(Step::Start(start)) => {
                        prop_assert!(start <= now, "ahead of time");
                        prop_assert!(policy == "Allow" || jobs.iter().all(|job| job.is_finished()), "beside another");
                        let name = job_name(&world_job, start);
                        prop_assert!(!made.contains(&name), "{name} is made twice");
                        let annotations = json!({SCHEDULED_TIMESTAMP: start});
                        let job = json!({"metadata": {"namespace": "a", "name": name, "uid": name, "annotations": annotations}});
                        jobs.push(Arc::new(from_value(job).expect("a job")));
                        made.push(name);
                    }
                    None => {
                        prop_assert!(decision.again_at.is_some_and(|again| again > now), "a timer for what is to come");
                        break;
                    }
                }
            }
        }
    }
}
