//! Deployment: replicas of a pod template, rolled from one revision to the next.
//!
//! Rules follow `pkg/apis/apps/v1/defaults.go`, `pkg/apis/apps/validation/validation.go` (`ValidateDeployment`) and
//! `pkg/registry/apps/deployment/strategy.go`, Kubernetes 1.36.

use hotmap_object::FieldError;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    Column, Strategy,
    fields::{Fields, keep, map_mut, set_absent, set_default},
    int_or_percent, label_selector,
    pod::template,
    rules::Errors,
    table, workload,
};

/// Share of the replicas that may be missing, and that may be there in addition, while a rollout is under way.
const ROLLING_SHARE: &str = "25%";
const PROGRESS_DEADLINE_SECONDS: i64 = 600;
const STRATEGIES: &[&str] = &["Recreate", "RollingUpdate"];

/// The rules of Deployments.
pub(crate) struct Deployment;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::column("Ready", "string", "Pods that are ready, of those wanted."),
    table::column("Up-to-date", "string", "Pods of the present template."),
    table::column(
        "Available",
        "string",
        "Pods that have been ready for long enough.",
    ),
    table::AGE,
    workload::CONTAINERS,
    workload::IMAGES,
    workload::SELECTOR_COLUMN,
];

impl Strategy for Deployment {
    fn default(&self, object: &mut Map<String, Value>) {
        let Some(spec) = map_mut(object, "spec") else {
            return;
        };
        workload::default_replicas(spec);
        if let Some(strategy) = map_mut(spec, "strategy") {
            default_strategy(strategy);
        }
        set_absent(
            spec,
            "revisionHistoryLimit",
            workload::REVISION_HISTORY_LIMIT.into(),
        );
        set_absent(spec, "progressDeadlineSeconds", PROGRESS_DEADLINE_SECONDS.into());
        template::fill_in(spec);
    }

    fn prepare_for_create(&self, object: &mut Map<String, Value>) {
        object.insert("status".to_owned(), json!({}));
    }

    fn prepare_for_update(&self, new: &mut Map<String, Value>, old: &Map<String, Value>, subresource: &str) {
        if subresource != "status" {
            keep(new, old, "status");
            return;
        }
        keep(new, old, "spec");
        if let Some(metadata) = map_mut(new, "metadata") {
            keep(metadata, old.map("metadata"), "labels");
        }
    }

    // Annotations are copied to the replica sets, so their change is one that the controller shall notice.
    fn bumps_generation(&self, new: &Map<String, Value>, old: &Map<String, Value>) -> bool {
        let annotations = |object: &Map<String, Value>| object.map("metadata").map("annotations").clone();
        new.get("spec") != old.get("spec") || annotations(new) != annotations(old)
    }

    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = object.map("spec");
        workload::replicas(&mut errors, spec);
        workload::selector(&mut errors, spec, "deployment");
        workload::template_of_replicas(&mut errors, spec);
        strategy(&mut errors, spec);
        workload::counts(
            &mut errors,
            "spec",
            spec,
            &[
                "minReadySeconds",
                "revisionHistoryLimit",
                "progressDeadlineSeconds",
            ],
        );
        let ready = spec.int("minReadySeconds").unwrap_or_default();
        if let Some(deadline) = spec
            .int("progressDeadlineSeconds")
            .filter(|deadline| *deadline <= ready)
        {
            errors.push(FieldError::invalid(
                "spec.progressDeadlineSeconds",
                deadline,
                "must be greater than minReadySeconds",
            ));
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
        if subresource == "status" {
            status(&mut errors, new.map("status"));
            workload::collisions_grow(&mut errors, new, old);
        } else {
            errors = self.validate(new);
            workload::selector_stays(&mut errors, new, old);
        }
        errors
    }

    fn warnings(&self, object: &Map<String, Value>, old: Option<&Map<String, Value>>) -> Vec<String> {
        workload::warnings(object, old)
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        let (spec, status) = (object.map("spec"), object.map("status"));
        let [containers, images] = workload::container_cells(spec);
        let selector = label_selector::text(spec.map("selector"));
        vec![
            table::name(object),
            workload::share(status.int("readyReplicas"), spec.int("replicas")),
            workload::count(status, "updatedReplicas"),
            workload::count(status, "availableReplicas"),
            table::age(object, now),
            containers,
            images,
            selector.map_or_else(|| "<invalid>".into(), Value::from),
        ]
    }
}

fn default_strategy(strategy: &mut Map<String, Value>) {
    set_default(strategy, "type", "RollingUpdate");
    if strategy.text("type") == "RollingUpdate"
        && let Some(rolling) = map_mut(strategy, "rollingUpdate")
    {
        set_absent(rolling, "maxUnavailable", ROLLING_SHARE.into());
        set_absent(rolling, "maxSurge", ROLLING_SHARE.into());
    }
}

fn strategy(errors: &mut Errors, spec: &Map<String, Value>) {
    const ROLLING: &str = "spec.strategy.rollingUpdate";
    const UNAVAILABLE: &str = "spec.strategy.rollingUpdate.maxUnavailable";
    const SURGE: &str = "spec.strategy.rollingUpdate.maxSurge";
    let strategy = spec.map("strategy");
    match strategy.text("type") {
        "Recreate" => {
            if strategy.member("rollingUpdate").is_some() {
                errors.push(FieldError::forbidden(
                    ROLLING,
                    "may not be specified when strategy `type` is 'Recreate'",
                ));
            }
        }
        "RollingUpdate" => {
            let rolling = strategy.map("rollingUpdate");
            let (unavailable, surge) = (rolling.member("maxUnavailable"), rolling.member("maxSurge"));
            int_or_percent::validate(errors, UNAVAILABLE, unavailable);
            int_or_percent::validate(errors, SURGE, surge);
            if int_or_percent::is_zero(unavailable) && int_or_percent::is_zero(surge) {
                errors.push(FieldError::invalid(
                    UNAVAILABLE,
                    unavailable.cloned().unwrap_or_default(),
                    "may not be 0 when `maxSurge` is 0",
                ));
            }
            int_or_percent::at_most_all(errors, UNAVAILABLE, unavailable);
        }
        _ => errors.push(FieldError::not_supported(
            "spec.strategy",
            Value::Object(strategy.clone()),
            STRATEGIES,
        )),
    }
}

fn status(errors: &mut Errors, status: &Map<String, Value>) {
    const COUNTS: &[&str] = &[
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ];
    workload::counts(errors, "status", status, COUNTS);
    workload::at_most(
        errors,
        status,
        &["updatedReplicas", "readyReplicas", "availableReplicas"],
        "replicas",
        "cannot be greater than status.replicas",
    );
    workload::at_most(
        errors,
        status,
        &["availableReplicas"],
        "readyReplicas",
        "cannot be greater than readyReplicas",
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{created, map, updated, with};

    fn web() -> Value {
        json!({"metadata": {"name": "web", "namespace": "n"}, "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}})
    }

    #[test]
    fn a_bare_deployment_gets_its_defaults() {
        let (object, errors) = created("apps", "deployments", web());
        assert_eq!(errors, [""; 0]);
        assert_eq!(
            object["spec"],
            json!({"replicas": 1, "selector": {"matchLabels": {"app": "web"}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "25%", "maxSurge": "25%"}},
                "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {
                    "containers": [{"name": "c", "image": "i:1", "imagePullPolicy": "IfNotPresent", "resources": {},
                        "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}],
                    "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "securityContext": {},
                    "schedulerName": "default-scheduler", "terminationGracePeriodSeconds": 30}}})
        );
        assert_eq!(object["status"], json!({}));
    }

    #[test]
    fn templates_leave_to_pods_what_only_pods_get() {
        let spec = json!({"hostNetwork": true, "containers": [{"name": "c", "image": "i", "ports": [{"containerPort": 80}],
            "resources": {"limits": {"cpu": "1"}}}]});
        let (object, errors) = created(
            "apps",
            "deployments",
            with(web(), json!({"spec": {"template": {"spec": spec}}})),
        );
        assert_eq!(errors, [""; 0]);
        let container = &object["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["resources"], json!({"limits": {"cpu": "1"}}));
        assert_eq!(
            container["ports"],
            json!([{"containerPort": 80, "protocol": "TCP"}])
        );
    }

    #[test]
    fn rules_of_deployments_answer_with_the_known_sentences() {
        let table = [
            (json!({}), vec![]),
            (json!({"spec": {"replicas": 0}}), vec![]),
            (
                json!({"spec": {"replicas": -1, "minReadySeconds": -1, "revisionHistoryLimit": -1}}),
                vec![
                    "spec.replicas: Invalid value: -1: must be greater than or equal to 0",
                    "spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0",
                    "spec.revisionHistoryLimit: Invalid value: -1: must be greater than or equal to 0",
                ],
            ),
            (
                json!({"spec": {"selector": {"matchLabels": {"app": "api"}}}}),
                vec![
                    "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`",
                ],
            ),
            (
                json!({"spec": {"template": {"metadata": null}}}),
                vec![
                    "spec.template.metadata.labels: Invalid value: null: `selector` does not match template `labels`",
                ],
            ),
            (
                json!({"spec": {"selector": null}}),
                vec![
                    "spec.selector: Required value",
                    "spec.template.metadata.labels: Invalid value: {\"app\":\"web\"}: `selector` does not match template `labels`",
                ],
            ),
            (
                json!({"spec": {"selector": {"matchLabels": null}}}),
                vec!["spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
            ),
            (
                json!({"spec": {"selector": {"matchExpressions": [{"key": "app", "operator": "Is"}]}}}),
                vec![
                    "spec.selector.matchExpressions[0].operator: Invalid value: \"Is\": not a valid selector operator",
                    "spec.selector: Invalid value: {\"matchExpressions\":[{\"key\":\"app\",\"operator\":\"Is\"}],\"matchLabels\":{\"app\":\"web\"}}: invalid label selector",
                ],
            ),
            (
                json!({"spec": {"template": {"spec": {"containers": [{"name": "c"}]}}}}),
                vec!["spec.template.spec.containers[0].image: Required value"],
            ),
            (
                json!({"spec": {"template": {"metadata": {"labels": {"x": "a b"}, "annotations": {"a b": "c"}}}}}),
                vec![
                    "spec.template.labels: Invalid value: \"a b\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
                    "spec.template.annotations: Invalid value: \"a b\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')",
                ],
            ),
            (
                json!({"spec": {"template": {"spec": {"restartPolicy": "Never", "activeDeadlineSeconds": 5}}}}),
                vec![
                    "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
                    "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported",
                ],
            ),
            (
                json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}}}),
                vec![
                    "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"0%\": may not be 0 when `maxSurge` is 0",
                ],
            ),
            (
                json!({"spec": {"strategy": {"rollingUpdate": {"maxSurge": "200%", "maxUnavailable": "200%"}}}}),
                vec![
                    "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: \"200%\": must not be greater than 100%",
                ],
            ),
            (json!({"spec": {"strategy": {"type": "Recreate"}}}), vec![]),
            (
                json!({"spec": {"strategy": {"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}}}),
                vec![
                    "spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'",
                ],
            ),
            (
                json!({"spec": {"strategy": {"type": "Blue"}}}),
                vec![
                    "spec.strategy: Unsupported value: {\"type\":\"Blue\"}: supported values: \"Recreate\", \"RollingUpdate\"",
                ],
            ),
            (
                json!({"spec": {"minReadySeconds": 600}}),
                vec![
                    "spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds",
                ],
            ),
        ];
        for (changes, wanted) in table {
            let (_, errors) = created("apps", "deployments", with(web(), changes.clone()));
            assert_eq!(errors, wanted, "{changes}");
        }
    }

    #[test]
    fn the_selector_stays_and_status_has_its_own_path() {
        let other = json!({"spec": {"selector": {"matchLabels": {"app": "api"}},
            "template": {"metadata": {"labels": {"app": "api"}}}}});
        assert_eq!(
            updated("apps", "deployments", web(), with(web(), other), ""),
            ["spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"api\"}}: field is immutable"]
        );
        let status = |status: Value| {
            updated(
                "apps",
                "deployments",
                web(),
                with(web(), json!({ "status": status })),
                "status",
            )
        };
        assert_eq!(status(json!({"replicas": 2, "readyReplicas": 2})), [""; 0]);
        assert_eq!(
            status(json!({"replicas": 1, "readyReplicas": 2, "availableReplicas": 3, "updatedReplicas": -1})),
            [
                "status.updatedReplicas: Invalid value: -1: must be greater than or equal to 0",
                "status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
                "status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
                "status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas",
            ]
        );
    }

    #[test]
    fn status_writers_keep_spec_and_labels() {
        let old = map(json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 2}}));
        let mut new =
            map(json!({"metadata": {"annotations": {"c": "d"}}, "spec": {}, "status": {"replicas": 2}}));
        Deployment.prepare_for_update(&mut new, &old, "status");
        assert_eq!(
            Value::Object(new),
            json!({"metadata": {"annotations": {"c": "d"}, "labels": {"a": "b"}}, "spec": {"replicas": 2},
                   "status": {"replicas": 2}})
        );
    }

    #[test]
    fn spec_and_annotations_are_what_the_controller_shall_notice() {
        let old = map(json!({"metadata": {"labels": {"a": "b"}}, "spec": {"replicas": 2}}));
        for (new, bumps) in [
            (json!({"metadata": {}, "spec": {"replicas": 2}}), false),
            (
                json!({"metadata": {"annotations": {"c": "d"}}, "spec": {"replicas": 2}}),
                true,
            ),
            (json!({"metadata": {}, "spec": {"replicas": 3}}), true),
        ] {
            assert_eq!(
                Deployment.bumps_generation(&map(new.clone()), &old),
                bumps,
                "{new}"
            );
        }
    }

    #[test]
    fn a_row_shows_what_upstream_shows() {
        let now = "2026-01-01T00:01:30Z".parse().expect("a time");
        let object = with(
            web(),
            json!({"metadata": {"creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": {"replicas": 3},
                   "status": {"readyReplicas": 1, "updatedReplicas": 2, "availableReplicas": 1}}),
        );
        assert_eq!(
            Deployment.cells(&map(object), now),
            [
                json!("web"),
                json!("1/3"),
                json!(2),
                json!(1),
                json!("90s"),
                json!("c"),
                json!("i:1"),
                json!("app=web")
            ]
        );
    }

    #[test]
    fn names_and_templates_are_warned_about() {
        let surprising = json!({"metadata": {"name": "a.b"}, "spec": {"template": {"spec": {"containers": [
            {"name": "c", "image": "i", "env": [{"name": "A"}, {"name": "A"}]}]}}}});
        let object = map(with(web(), surprising));
        let hidden = "spec.template.spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply";
        assert_eq!(
            Deployment.warnings(&object, None),
            [
                "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is recommended: [must not contain dots]",
                hidden
            ]
        );
        let newer = map(with(
            Value::Object(object.clone()),
            json!({"metadata": {"generation": 2}}),
        ));
        assert_eq!(Deployment.warnings(&newer, Some(&object)), [hidden]);
        assert_eq!(Deployment.warnings(&object, Some(&object)), [""; 0]);
    }
}
