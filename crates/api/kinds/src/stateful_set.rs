//! StatefulSet: pods with names that stay.
//!
//! Rules follow `pkg/apis/apps/v1/defaults.go`, `pkg/apis/apps/validation/validation.go` (`ValidateStatefulSet`) and
//! `pkg/registry/apps/statefulset/strategy.go`, Kubernetes 1.36. Claims of volumes are refused: nothing here makes
//! volumes for them, and pods would wait for ever.

use hotmap_object::FieldError;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    Column, Strategy,
    fields::{Fields, keep, map_mut, set_absent, set_default},
    int_or_percent, label_selector,
    pod::template,
    rules::{self, Errors, broken, child},
    table, workload,
};

const SELECTOR: &str = "spec.selector";
const MANAGEMENT: &str = "spec.podManagementPolicy";
const STRATEGY: &str = "spec.updateStrategy";
const RETENTION: &str = "spec.persistentVolumeClaimRetentionPolicy";
const RETENTIONS: &[&str] = &["Retain", "Delete"];
const NO_CLAIMS: &str = "volumes are not claimed here: mount an emptyDir, which lives as long as its pod, or a hostPath, which stays on the node, from spec.template.spec.volumes";
const MAY_CHANGE: &str = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
/// Fields of the spec that may change.
const MUTABLE: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

/// The rules of StatefulSets.
pub(crate) struct StatefulSet;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::column("Ready", "string", "Pods that are ready, of those wanted."),
    table::AGE,
    workload::CONTAINERS,
    workload::IMAGES,
];

impl Strategy for StatefulSet {
    fn default(&self, object: &mut Map<String, Value>) {
        let Some(spec) = map_mut(object, "spec") else {
            return;
        };
        set_default(spec, "podManagementPolicy", "OrderedReady");
        if let Some(strategy) = map_mut(spec, "updateStrategy") {
            default_strategy(strategy);
        }
        if let Some(retention) = map_mut(spec, "persistentVolumeClaimRetentionPolicy") {
            set_default(retention, "whenDeleted", "Retain");
            set_default(retention, "whenScaled", "Retain");
        }
        workload::default_replicas(spec);
        set_absent(
            spec,
            "revisionHistoryLimit",
            workload::REVISION_HISTORY_LIMIT.into(),
        );
        template::fill_in(spec);
    }

    fn prepare_for_create(&self, object: &mut Map<String, Value>) {
        object.insert(
            "status".to_owned(),
            json!({"replicas": 0, "availableReplicas": 0}),
        );
    }

    fn prepare_for_update(&self, new: &mut Map<String, Value>, old: &Map<String, Value>, subresource: &str) {
        keep(new, old, if subresource == "status" { "spec" } else { "status" });
    }

    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = object.map("spec");
        whole(&mut errors, spec);
        let service = spec.text("serviceName");
        if !service.is_empty() {
            broken(&mut errors, "spec.serviceName", service, rules::label(service));
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
            return errors;
        }
        whole(&mut errors, new.map("spec"));
        let mut rest = new.map("spec").clone();
        for field in MUTABLE {
            keep(&mut rest, old.map("spec"), field);
        }
        if rest != *old.map("spec") {
            errors.push(FieldError::forbidden("spec", MAY_CHANGE));
        }
        errors
    }

    fn warnings(&self, object: &Map<String, Value>, old: Option<&Map<String, Value>>) -> Vec<String> {
        let spec = object.map("spec");
        let mut warnings = Vec::new();
        if workload::is_news(object, old) {
            warnings.extend(template::warnings(workload::TEMPLATE, spec.map("template")));
        }
        if spec.int("revisionHistoryLimit").is_some_and(|limit| limit < 0) {
            warnings.push(
                "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended"
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
        let [containers, images] = workload::container_cells(spec);
        vec![
            table::name(object),
            workload::share(status.int("readyReplicas"), spec.int("replicas")),
            table::age(object, now),
            containers,
            images,
        ]
    }
}

/// A strategy without a type is a rolling one with its defaults; one that only names its type stays without.
fn default_strategy(strategy: &mut Map<String, Value>) {
    if strategy.text("type").is_empty() {
        strategy.insert("type".to_owned(), "RollingUpdate".into());
        map_mut(strategy, "rollingUpdate");
    }
    if strategy.text("type") == "RollingUpdate"
        && let Some(rolling) = strategy.get_mut("rollingUpdate").and_then(Value::as_object_mut)
    {
        set_absent(rolling, "partition", 0.into());
        set_absent(rolling, "maxUnavailable", 1.into());
    }
}

fn whole(errors: &mut Errors, spec: &Map<String, Value>) {
    match spec.text("podManagementPolicy") {
        "" => errors.push(FieldError::required(MANAGEMENT, "")),
        "OrderedReady" | "Parallel" => {}
        other => errors.push(FieldError::invalid(
            MANAGEMENT,
            other,
            "must be 'OrderedReady' or 'Parallel'",
        )),
    }
    update_strategy(errors, spec.map("updateStrategy"));
    let retention = spec.map("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        let policy = retention.text(field);
        if !RETENTIONS.contains(&policy) {
            errors.push(FieldError::not_supported(
                child(RETENTION, field),
                policy,
                RETENTIONS,
            ));
        }
    }
    if spec.has("volumeClaimTemplates") {
        errors.push(FieldError::forbidden("spec.volumeClaimTemplates", NO_CLAIMS));
    }
    workload::counts(errors, "spec", spec, &["replicas", "minReadySeconds"]);
    rules::not_negative(
        errors,
        "spec.ordinals.start".to_owned(),
        spec.map("ordinals").int("start"),
    );
    workload::selector(errors, spec, "statefulset");
    if label_selector::is_valid(spec.map("selector")) {
        workload::selector_matches_template(errors, spec);
        template_of_pods(errors, spec);
    } else {
        let value = Value::Object(spec.map("selector").clone());
        errors.push(FieldError::invalid(SELECTOR, value, ""));
    }
    workload::runs_for_ever(errors, spec, "StatefulSet");
}

fn template_of_pods(errors: &mut Errors, spec: &Map<String, Value>) {
    let mut template = spec.map("template").clone();
    // The controller writes both over with the identity of each pod.
    if let Some(spec) = map_mut(&mut template, "spec") {
        spec.remove("subdomain");
        spec.remove("hostname");
    }
    template::validate(errors, workload::TEMPLATE, &template);
}

fn update_strategy(errors: &mut Errors, strategy: &Map<String, Value>) {
    const ROLLING: &str = "spec.updateStrategy.rollingUpdate";
    const UNAVAILABLE: &str = "spec.updateStrategy.rollingUpdate.maxUnavailable";
    let rolling = strategy.member("rollingUpdate");
    match (strategy.text("type"), rolling) {
        ("", _) => errors.push(FieldError::required(STRATEGY, "")),
        ("OnDelete", Some(rolling)) => errors.push(FieldError::invalid(
            ROLLING,
            rolling.clone(),
            "only allowed for updateStrategy 'RollingUpdate'",
        )),
        ("RollingUpdate", Some(rolling)) => {
            rules::not_negative(errors, child(ROLLING, "partition"), rolling.int("partition"));
            let unavailable = rolling.member("maxUnavailable");
            int_or_percent::validate(errors, UNAVAILABLE, unavailable);
            if let Some(held) = unavailable.filter(|held| int_or_percent::is_zero(Some(held))) {
                errors.push(FieldError::invalid(UNAVAILABLE, held.clone(), "cannot be 0"));
            }
            int_or_percent::at_most_all(errors, UNAVAILABLE, unavailable);
        }
        ("OnDelete" | "RollingUpdate", None) => {}
        _ => errors.push(FieldError::invalid(
            STRATEGY,
            Value::Object(strategy.clone()),
            "must be 'RollingUpdate' or 'OnDelete'",
        )),
    }
}

fn status(errors: &mut Errors, status: &Map<String, Value>) {
    const COUNTS: &[&str] = &[
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    workload::counts(errors, "status", status, COUNTS);
    workload::at_most(
        errors,
        status,
        &[
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
        ],
        "replicas",
        "cannot be greater than status.replicas",
    );
    workload::at_most(
        errors,
        status,
        &["availableReplicas"],
        "readyReplicas",
        "cannot be greater than status.readyReplicas",
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{created, map, updated, with};

    fn db() -> Value {
        json!({"metadata": {"name": "db", "namespace": "n"}, "spec": {
            "serviceName": "db", "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}})
    }

    #[test]
    fn a_bare_stateful_set_gets_its_defaults() {
        let (mut object, errors) = created("apps", "statefulsets", db());
        assert_eq!(errors, [""; 0]);
        object["spec"]["template"].take();
        assert_eq!(
            object["spec"],
            json!({"serviceName": "db", "selector": {"matchLabels": {"app": "db"}}, "template": null, "replicas": 1,
                "podManagementPolicy": "OrderedReady", "revisionHistoryLimit": 10,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0, "maxUnavailable": 1}},
                "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"}})
        );
        for (strategy, wanted) in [
            (json!({"type": "OnDelete"}), json!({"type": "OnDelete"})),
            (json!({"type": "RollingUpdate"}), json!({"type": "RollingUpdate"})),
            (
                json!({"rollingUpdate": {"partition": 2}}),
                json!({"type": "RollingUpdate", "rollingUpdate": {"partition": 2, "maxUnavailable": 1}}),
            ),
        ] {
            let changes = json!({"spec": {"updateStrategy": strategy}});
            let (object, errors) = created("apps", "statefulsets", with(db(), changes));
            assert_eq!((&object["spec"]["updateStrategy"], errors), (&wanted, vec![]));
        }
    }

    #[test]
    fn rules_of_stateful_sets_answer_with_the_known_sentences() {
        for (changes, wanted) in [
            (json!({"serviceName": null}), vec![]),
            (
                json!({"template": {"spec": {"hostname": "A.B", "subdomain": "_"}}}),
                vec![],
            ),
            (
                json!({"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {}}]}),
                vec![
                    "spec.volumeClaimTemplates: Forbidden: volumes are not claimed here: mount an emptyDir, which lives as long as its pod, or a hostPath, which stays on the node, from spec.template.spec.volumes",
                ],
            ),
            (
                json!({"podManagementPolicy": "Chaos", "updateStrategy": {"type": "Blue"}}),
                vec![
                    "spec.podManagementPolicy: Invalid value: \"Chaos\": must be 'OrderedReady' or 'Parallel'",
                    "spec.updateStrategy: Invalid value: {\"type\":\"Blue\"}: must be 'RollingUpdate' or 'OnDelete'",
                ],
            ),
            (
                json!({"updateStrategy": {"type": "OnDelete", "rollingUpdate": {"partition": 1}}}),
                vec![
                    "spec.updateStrategy.rollingUpdate: Invalid value: {\"partition\":1}: only allowed for updateStrategy 'RollingUpdate'",
                ],
            ),
            (
                json!({"updateStrategy": {"rollingUpdate": {"partition": -1, "maxUnavailable": 0}}}),
                vec![
                    "spec.updateStrategy.rollingUpdate.partition: Invalid value: -1: must be greater than or equal to 0",
                    "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: cannot be 0",
                ],
            ),
            (
                json!({"ordinals": {"start": -1}, "persistentVolumeClaimRetentionPolicy": {"whenScaled": "Keep"}}),
                vec![
                    "spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: \"Keep\": supported values: \"Retain\", \"Delete\"",
                    "spec.ordinals.start: Invalid value: -1: must be greater than or equal to 0",
                ],
            ),
            (
                json!({"serviceName": "a.b"}),
                vec!["spec.serviceName: Invalid value: \"a.b\": must not contain dots"],
            ),
            (
                json!({"template": {"spec": {"restartPolicy": "Never", "activeDeadlineSeconds": 1}}}),
                vec![
                    "spec.template.spec.restartPolicy: Unsupported value: \"Never\": supported values: \"Always\"",
                    "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in StatefulSet is not Supported",
                ],
            ),
        ] {
            let (_, errors) = created("apps", "statefulsets", with(db(), json!({ "spec": changes })));
            assert_eq!(errors, wanted, "{changes}");
        }
    }

    #[test]
    fn seven_fields_may_change() {
        let forbidden = format!("spec: Forbidden: {MAY_CHANGE}");
        for (changes, allowed) in [
            (
                json!({"replicas": 3, "minReadySeconds": 5, "revisionHistoryLimit": 2, "ordinals": {"start": 1}}),
                true,
            ),
            (json!({"updateStrategy": {"type": "OnDelete"}}), true),
            (
                json!({"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}),
                true,
            ),
            (json!({"serviceName": "other"}), false),
            (json!({"podManagementPolicy": "Parallel"}), false),
        ] {
            let found = updated(
                "apps",
                "statefulsets",
                db(),
                with(db(), json!({ "spec": changes })),
                "",
            );
            let wanted: &[&str] = if allowed { &[] } else { &[&forbidden] };
            assert_eq!(found, wanted, "{changes}");
        }
        let status = json!({"status": {"replicas": 1, "readyReplicas": 1, "availableReplicas": 2}});
        assert_eq!(
            updated("apps", "statefulsets", db(), with(db(), status), "status"),
            [
                "status.availableReplicas: Invalid value: 2: cannot be greater than status.replicas",
                "status.availableReplicas: Invalid value: 2: cannot be greater than status.readyReplicas",
            ]
        );
    }

    #[test]
    fn a_row_shows_ready_pods() {
        let now = "2026-01-01T00:00:00Z".parse().expect("a time");
        let object = with(
            db(),
            json!({"spec": {"replicas": 3}, "status": {"readyReplicas": 2}}),
        );
        assert_eq!(
            StatefulSet.cells(&map(object), now),
            ["db", "2/3", "<unknown>", "c", "i:1"].map(Value::from)
        );
    }
}
