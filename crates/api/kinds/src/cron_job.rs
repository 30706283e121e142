//! CronJob: a Job at each time of a schedule.
//!
//! Rules follow `pkg/apis/batch/v1/defaults.go`, `pkg/apis/batch/validation/validation.go` (`validateCronJobSpec`) and
//! `pkg/registry/batch/cronjob/strategy.go`, Kubernetes 1.36.

use hotmap_object::{CronSchedule, FieldError, time_zone};
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    Column, Strategy,
    fields::{Fields, keep, map_mut, set_absent, set_default},
    job,
    pod::template,
    rules::Errors,
    table, workload,
};

const SCHEDULE: &str = "spec.schedule";
const JOB: &str = "spec.jobTemplate.spec";
const TIME_ZONE: &str = "spec.timeZone";
const CONCURRENCY_POLICIES: &[&str] = &["Allow", "Forbid", "Replace"];
/// A Job's name is the CronJob's with eleven bytes behind it, and must fit a label.
const NAME_MAX: usize = 63 - 11;
const ZONE_PART_MAX: usize = 14;

/// The rules of CronJobs.
pub(crate) struct CronJob;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::column("Schedule", "string", "When a job is due."),
    table::column("Timezone", "string", "Time zone of the schedule."),
    table::column("Suspend", "boolean", "Whether no further job is started."),
    table::column("Active", "integer", "Jobs that are running."),
    table::column("Last Schedule", "string", "Time since a job was last started."),
    table::AGE,
    workload::CONTAINERS,
    workload::IMAGES,
    workload::SELECTOR_COLUMN,
];

impl Strategy for CronJob {
    fn default(&self, object: &mut Map<String, Value>) {
        let Some(spec) = map_mut(object, "spec") else {
            return;
        };
        set_default(spec, "concurrencyPolicy", "Allow");
        set_absent(spec, "suspend", false.into());
        set_absent(spec, "successfulJobsHistoryLimit", 3.into());
        set_absent(spec, "failedJobsHistoryLimit", 1.into());
        if let Some(spec) = map_mut(spec, "jobTemplate").and_then(|template| map_mut(template, "spec")) {
            job::fill_in_template(spec);
        }
    }

    fn prepare_for_create(&self, object: &mut Map<String, Value>) {
        object.insert("status".to_owned(), json!({}));
    }

    fn prepare_for_update(&self, new: &mut Map<String, Value>, old: &Map<String, Value>, subresource: &str) {
        keep(new, old, if subresource == "status" { "spec" } else { "status" });
    }

    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        spec(&mut errors, object.map("spec"), None);
        let name = object.map("metadata").text("name");
        if name.len() > NAME_MAX {
            let rule = format!("must be no more than {NAME_MAX} characters");
            errors.push(FieldError::invalid("metadata.name", name, rule));
        }
        errors
    }

    fn validate_update(
        &self,
        new: &Map<String, Value>,
        old: &Map<String, Value>,
        subresource: &str,
    ) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if subresource != "status" {
            spec(&mut errors, new.map("spec"), Some(old.map("spec")));
        }
        errors
    }

    fn warnings(&self, object: &Map<String, Value>, old: Option<&Map<String, Value>>) -> Vec<String> {
        let mut warnings = workload::about_name(object, old);
        if workload::is_news(object, old) {
            let job = object.map("spec").map("jobTemplate").map("spec");
            warnings.extend(job::spec_warnings(JOB, job));
            warnings.extend(template::warnings(
                "spec.jobTemplate.spec.template",
                job.map("template"),
            ));
        }
        if old.is_some() && object.map("spec").text("schedule").contains("TZ") {
            warnings.push(
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
                    .to_owned(),
            );
        }
        warnings
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        let (spec, status) = (object.map("spec"), object.map("status"));
        let job = spec.map("jobTemplate").map("spec");
        let [containers, images] = workload::container_cells(job);
        let suspended = match spec.member("suspend").and_then(Value::as_bool) {
            None => "<unset>",
            Some(true) => "True",
            Some(false) => "False",
        };
        let last = status.time("lastScheduleTime");
        vec![
            table::name(object),
            spec.text("schedule").into(),
            table::or_none(spec.text("timeZone")),
            suspended.into(),
            status.list("active").len().into(),
            last.map_or_else(|| table::NONE.into(), |last| table::ago(Some(last), now).into()),
            table::age(object, now),
            containers,
            images,
            workload::selector_cell(job),
        ]
    }
}

fn spec(errors: &mut Errors, spec: &Map<String, Value>, old: Option<&Map<String, Value>>) {
    schedule(errors, spec, old);
    workload::counts(errors, "spec", spec, &["startingDeadlineSeconds"]);
    let zone = spec.member("timeZone");
    if old.is_none_or(|old| old.member("timeZone") != zone)
        && let Some(zone) = zone.and_then(Value::as_str)
    {
        check_zone(errors, zone);
    }
    match spec.text("concurrencyPolicy") {
        "" => errors.push(FieldError::required("spec.concurrencyPolicy", "")),
        policy if !CONCURRENCY_POLICIES.contains(&policy) => {
            errors.push(FieldError::not_supported(
                "spec.concurrencyPolicy",
                policy,
                CONCURRENCY_POLICIES,
            ));
        }
        _ => {}
    }
    job_template(errors, spec.map("jobTemplate").map("spec"));
    workload::counts(
        errors,
        "spec",
        spec,
        &["successfulJobsHistoryLimit", "failedJobsHistoryLimit"],
    );
}

fn schedule(errors: &mut Errors, spec: &Map<String, Value>, old: Option<&Map<String, Value>>) {
    let schedule = spec.text("schedule");
    if schedule.is_empty() {
        errors.push(FieldError::required(SCHEDULE, ""));
        return;
    }
    if let Err(error) = CronSchedule::parse(schedule) {
        errors.push(FieldError::invalid(SCHEDULE, schedule, error.to_string()));
    }
    if !schedule.contains("TZ") {
        return;
    }
    // A zone in the schedule is a mistake of old releases; who made it may keep it.
    let had_one = old.is_some_and(|old| old.text("schedule").contains("TZ"));
    let rule = match had_one {
        false => "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        true if spec.member("timeZone").is_some() => {
            "cannot use both timeZone field and TZ or CRON_TZ in schedule"
        }
        true => return,
    };
    errors.push(FieldError::invalid(SCHEDULE, schedule, rule));
}

fn check_zone(errors: &mut Errors, zone: &str) {
    if zone.is_empty() {
        let rule = "timeZone must be nil or non-empty string";
        errors.push(FieldError::invalid(TIME_ZONE, zone, rule));
        return;
    }
    let is_part = |part: &str| {
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b".-_+".contains(&b);
        !matches!(part, "" | "." | "..")
            && !part.starts_with('-')
            && part.len() <= ZONE_PART_MAX
            && part.bytes().all(is_allowed)
    };
    if !zone.split('/').all(is_part) {
        errors.push(FieldError::invalid(
            TIME_ZONE,
            zone,
            format!("unknown time zone {zone}"),
        ));
        return;
    }
    if zone.eq_ignore_ascii_case("Local") {
        let rule = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.push(FieldError::invalid(TIME_ZONE, zone, rule));
        // Go knows this one name, in this spelling.
        if zone == "Local" {
            return;
        }
    }
    if let Err(error) = time_zone(zone) {
        errors.push(FieldError::invalid(TIME_ZONE, zone, error.to_string()));
    }
}

fn job_template(errors: &mut Errors, spec: &Map<String, Value>) {
    job::validate_spec(errors, JOB, spec);
    if let Some(selector) = spec.member("selector") {
        let rule = "`selector` will be auto-generated";
        errors.push(FieldError::invalid(
            "spec.jobTemplate.spec.selector",
            selector.clone(),
            rule,
        ));
    }
    if spec.is_set("manualSelector") {
        let path = "spec.jobTemplate.spec.manualSelector";
        errors.push(FieldError::not_supported(path, true, &["nil", "false"]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{created, map, updated, with};

    fn hello() -> Value {
        json!({"metadata": {"name": "hello", "namespace": "n"}, "spec": {"schedule": "*/5 * * * *",
            "jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "OnFailure",
                "containers": [{"name": "c", "image": "i:1"}]}}}}}})
    }

    #[test]
    fn a_bare_cron_job_gets_its_defaults_and_its_job_few() {
        let (object, errors) = created("batch", "cronjobs", hello());
        assert_eq!(errors, [""; 0]);
        let mut spec = object["spec"].clone();
        let job = spec["jobTemplate"]["spec"].take();
        let names: Vec<&String> = job.as_object().expect("an object").keys().collect();
        assert_eq!(names, ["template"]);
        assert_eq!(job["template"]["spec"]["dnsPolicy"], "ClusterFirst");
        assert_eq!(
            spec,
            json!({"schedule": "*/5 * * * *", "concurrencyPolicy": "Allow", "suspend": false,
                "successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1,
                "jobTemplate": {"metadata": {}, "spec": null}})
        );
    }

    #[test]
    fn rules_of_cron_jobs_answer_with_the_known_sentences() {
        for (changes, wanted) in [
            (json!({"timeZone": "Europe/Berlin", "schedule": "@daily"}), vec![]),
            (json!({"schedule": ""}), vec!["spec.schedule: Required value"]),
            (
                json!({"schedule": "61 * * * *"}),
                vec![
                    "spec.schedule: Invalid value: \"61 * * * *\": end of range (61) above maximum (59): 61",
                ],
            ),
            (
                json!({"schedule": "TZ=UTC 0 3 * * *"}),
                vec![
                    "spec.schedule: Invalid value: \"TZ=UTC 0 3 * * *\": cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
                ],
            ),
            (
                json!({"timeZone": "Moon/Base"}),
                vec!["spec.timeZone: Invalid value: \"Moon/Base\": unknown time zone Moon/Base"],
            ),
            (
                json!({"timeZone": "../etc"}),
                vec!["spec.timeZone: Invalid value: \"../etc\": unknown time zone ../etc"],
            ),
            (
                json!({"timeZone": "Local"}),
                vec![
                    "spec.timeZone: Invalid value: \"Local\": timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones",
                ],
            ),
            (
                json!({"concurrencyPolicy": "Sometimes", "failedJobsHistoryLimit": -1}),
                vec![
                    "spec.concurrencyPolicy: Unsupported value: \"Sometimes\": supported values: \"Allow\", \"Forbid\", \"Replace\"",
                    "spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
                ],
            ),
            (
                json!({"jobTemplate": {"spec": {"selector": {"matchLabels": {"a": "b"}}, "manualSelector": true}}}),
                vec![
                    "spec.jobTemplate.spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\"}}: `selector` will be auto-generated",
                    "spec.jobTemplate.spec.manualSelector: Unsupported value: true: supported values: \"nil\", \"false\"",
                ],
            ),
            (
                json!({"jobTemplate": {"spec": {"template": {"spec": {"restartPolicy": "Always", "containers": []}}}}}),
                vec![
                    "spec.jobTemplate.spec.template.spec.containers: Required value",
                    "spec.jobTemplate.spec.template.spec.restartPolicy: Required value: valid values: \"OnFailure\", \"Never\"",
                ],
            ),
        ] {
            let (_, errors) = created("batch", "cronjobs", with(hello(), json!({ "spec": changes })));
            assert_eq!(errors, wanted, "{changes}");
        }
        let long = with(hello(), json!({"metadata": {"name": "a".repeat(53)}}));
        let (_, errors) = created("batch", "cronjobs", long.clone());
        assert_eq!(errors.len(), 1, "{errors:?}");
        assert_eq!(updated("batch", "cronjobs", long.clone(), long, ""), [""; 0]);
    }

    #[test]
    fn a_zone_in_an_old_schedule_stays_until_the_field_is_used() {
        let old = with(hello(), json!({"spec": {"schedule": "TZ=UTC 0 3 * * *"}}));
        assert_eq!(
            updated("batch", "cronjobs", old.clone(), old.clone(), ""),
            [""; 0]
        );
        assert_eq!(
            updated(
                "batch",
                "cronjobs",
                old.clone(),
                with(old, json!({"spec": {"timeZone": "UTC"}})),
                ""
            ),
            [
                "spec.schedule: Invalid value: \"TZ=UTC 0 3 * * *\": cannot use both timeZone field and TZ or CRON_TZ in schedule"
            ]
        );
    }

    #[test]
    fn a_row_shows_when_a_job_is_due() {
        let now = "2026-01-01T00:02:00Z".parse().expect("a time");
        let object = with(
            hello(),
            json!({"spec": {"suspend": true, "timeZone": "Etc/UTC"},
                   "status": {"active": [{}], "lastScheduleTime": "2026-01-01T00:01:00Z"}}),
        );
        assert_eq!(
            CronJob.cells(&map(object), now)[1..6],
            [
                json!("*/5 * * * *"),
                json!("Etc/UTC"),
                json!("True"),
                json!(1),
                json!("60s")
            ]
        );
        let cells = CronJob.cells(&map(hello()), now);
        assert_eq!(
            cells[2..],
            ["<none>", "<unset>"]
                .map(Value::from)
                .into_iter()
                .chain([json!(0)])
                .chain(["<none>", "<unknown>", "c", "i:1", "<none>"].map(Value::from))
                .collect::<Vec<_>>()
        );
    }
}
