//! DaemonSet: one pod on each node that fits.
//!
//! Rules follow `pkg/apis/apps/v1/defaults.go`, `pkg/apis/apps/validation/validation.go` (`ValidateDaemonSet`) and
//! `pkg/registry/apps/daemonset/strategy.go`, Kubernetes 1.36.

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

/// Counts the changes of the template, for clients of releases before `apps/v1`.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";
const SELECTOR: &str = "spec.selector";
const STRATEGIES: &[&str] = &["RollingUpdate", "OnDelete"];

/// The rules of DaemonSets.
pub(crate) struct DaemonSet;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::column("Desired", "integer", "Nodes that shall run a pod."),
    table::column("Current", "integer", "Nodes that have one."),
    table::column("Ready", "integer", "Nodes whose pod is ready."),
    table::column(
        "Up-to-date",
        "integer",
        "Nodes whose pod is of the present template.",
    ),
    table::column(
        "Available",
        "integer",
        "Nodes whose pod has been ready for long enough.",
    ),
    table::column("Node Selector", "string", "Labels of the nodes that fit."),
    table::AGE,
    workload::CONTAINERS,
    workload::IMAGES,
    workload::SELECTOR_COLUMN,
];

impl Strategy for DaemonSet {
    fn default(&self, object: &mut Map<String, Value>) {
        let Some(spec) = map_mut(object, "spec") else {
            return;
        };
        if let Some(strategy) = map_mut(spec, "updateStrategy") {
            set_default(strategy, "type", "RollingUpdate");
            if strategy.text("type") == "RollingUpdate"
                && let Some(rolling) = map_mut(strategy, "rollingUpdate")
            {
                set_absent(rolling, "maxUnavailable", 1.into());
                set_absent(rolling, "maxSurge", 0.into());
            }
        }
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
            json!({"currentNumberScheduled": 0, "numberMisscheduled": 0, "desiredNumberScheduled": 0, "numberReady": 0}),
        );
        let generation = template_generation(object).max(1);
        set_template_generation(object, generation);
    }

    fn prepare_for_update(&self, new: &mut Map<String, Value>, old: &Map<String, Value>, subresource: &str) {
        keep(new, old, if subresource == "status" { "spec" } else { "status" });
        let template = |object: &Map<String, Value>| object.map("spec").map("template").clone();
        let is_changed = template(new) != template(old);
        let generation = template_generation(old).saturating_add(i64::from(is_changed));
        set_template_generation(new, generation);
    }

    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = object.map("spec");
        selector(&mut errors, spec);
        template::validate(&mut errors, workload::TEMPLATE, spec.map("template"));
        workload::runs_for_ever(&mut errors, spec, "DaemonSet");
        workload::counts(&mut errors, "spec", spec, &["minReadySeconds"]);
        update_strategy(&mut errors, spec.map("updateStrategy"));
        workload::counts(&mut errors, "spec", spec, &["revisionHistoryLimit"]);
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
            const COUNTS: &[&str] = &[
                "currentNumberScheduled",
                "numberMisscheduled",
                "desiredNumberScheduled",
                "numberReady",
                "observedGeneration",
                "updatedNumberScheduled",
                "numberAvailable",
                "numberUnavailable",
                "collisionCount",
            ];
            workload::counts(&mut errors, "status", new.map("status"), COUNTS);
            workload::collisions_grow(&mut errors, new, old);
        } else {
            workload::selector_stays(&mut errors, new, old);
            errors.extend(self.validate(new));
        }
        errors
    }

    fn warnings(&self, object: &Map<String, Value>, old: Option<&Map<String, Value>>) -> Vec<String> {
        match old {
            Some(old) if template_generation(old) == template_generation(object) => Vec::new(),
            _ => template::warnings(workload::TEMPLATE, object.map("spec").map("template")),
        }
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        let (spec, status) = (object.map("spec"), object.map("status"));
        let [containers, images] = workload::container_cells(spec);
        let nodes = spec.map("template").map("spec").map("nodeSelector");
        let nodes: Vec<String> = nodes
            .iter()
            .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()))
            .collect();
        vec![
            table::name(object),
            workload::count(status, "desiredNumberScheduled"),
            workload::count(status, "currentNumberScheduled"),
            workload::count(status, "numberReady"),
            workload::count(status, "updatedNumberScheduled"),
            workload::count(status, "numberAvailable"),
            table::or_none(&nodes.join(",")),
            table::age(object, now),
            containers,
            images,
            workload::selector_cell(spec),
        ]
    }
}

fn template_generation(object: &Map<String, Value>) -> i64 {
    let annotations = object.map("metadata").map("annotations");
    annotations.text(TEMPLATE_GENERATION).parse().unwrap_or_default()
}

fn set_template_generation(object: &mut Map<String, Value>, generation: i64) {
    let metadata = map_mut(object, "metadata");
    if let Some(annotations) = metadata.and_then(|metadata| map_mut(metadata, "annotations")) {
        annotations.insert(TEMPLATE_GENERATION.to_owned(), generation.to_string().into());
    }
}

fn selector(errors: &mut Errors, spec: &Map<String, Value>) {
    let selector = spec.map("selector");
    label_selector::validate(errors, SELECTOR, selector);
    if label_selector::is_valid(selector) {
        workload::selector_matches_template(errors, spec);
    }
    if let Some(held) = spec.member("selector")
        && label_selector::is_empty(selector)
    {
        let rule = "empty selector is invalid for daemonset";
        errors.push(FieldError::invalid(SELECTOR, held.clone(), rule));
    }
}

fn update_strategy(errors: &mut Errors, strategy: &Map<String, Value>) {
    const UNAVAILABLE: &str = "spec.updateStrategy.rollingUpdate.maxUnavailable";
    const SURGE: &str = "spec.updateStrategy.rollingUpdate.maxSurge";
    match strategy.text("type") {
        "OnDelete" => {}
        "RollingUpdate" => {
            let rolling = strategy.map("rollingUpdate");
            let (unavailable, surge) = (rolling.member("maxUnavailable"), rolling.member("maxSurge"));
            int_or_percent::validate(errors, UNAVAILABLE, unavailable);
            int_or_percent::validate(errors, SURGE, surge);
            int_or_percent::at_most_all(errors, UNAVAILABLE, unavailable);
            int_or_percent::at_most_all(errors, SURGE, surge);
            match (
                int_or_percent::is_zero(unavailable),
                int_or_percent::is_zero(surge),
            ) {
                (false, false) => errors.push(FieldError::invalid(
                    SURGE,
                    surge.cloned().unwrap_or_default(),
                    "may not be set when maxUnavailable is non-zero",
                )),
                (true, true) => errors.push(FieldError::required(
                    UNAVAILABLE,
                    "cannot be 0 when maxSurge is 0",
                )),
                _ => {}
            }
        }
        _ => errors.push(FieldError::not_supported(
            "spec.updateStrategy",
            Value::Object(strategy.clone()),
            STRATEGIES,
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{created, map, updated, with};

    fn agent() -> Value {
        json!({"metadata": {"name": "agent", "namespace": "n"}, "spec": {
            "selector": {"matchLabels": {"app": "agent"}},
            "template": {"metadata": {"labels": {"app": "agent"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}]}}}})
    }

    #[test]
    fn a_bare_daemon_set_gets_its_defaults() {
        let (mut object, errors) = created("apps", "daemonsets", agent());
        assert_eq!(errors, [""; 0]);
        object["spec"]["template"].take();
        assert_eq!(
            object["spec"],
            json!({"selector": {"matchLabels": {"app": "agent"}}, "template": null, "revisionHistoryLimit": 10,
                "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1, "maxSurge": 0}}})
        );
        assert_eq!(object["metadata"]["annotations"][TEMPLATE_GENERATION], "1");
    }

    #[test]
    fn rules_of_daemon_sets_answer_with_the_known_sentences() {
        for (changes, wanted) in [
            (json!({"updateStrategy": {"type": "OnDelete"}}), vec![]),
            (
                json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": "10%"}}}),
                vec![],
            ),
            (
                json!({"updateStrategy": {"rollingUpdate": {"maxSurge": 1}}}),
                vec![
                    "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero",
                ],
            ),
            (
                json!({"updateStrategy": {"rollingUpdate": {"maxUnavailable": "0%"}}}),
                vec![
                    "spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0",
                ],
            ),
            (
                json!({"updateStrategy": {"type": "Blue"}}),
                vec![
                    "spec.updateStrategy: Unsupported value: {\"type\":\"Blue\"}: supported values: \"RollingUpdate\", \"OnDelete\"",
                ],
            ),
            (
                json!({"selector": null}),
                vec![
                    "spec.template.metadata.labels: Invalid value: {\"app\":\"agent\"}: `selector` does not match template `labels`",
                ],
            ),
            (
                json!({"selector": {"matchLabels": null}}),
                vec!["spec.selector: Invalid value: {}: empty selector is invalid for daemonset"],
            ),
            (
                json!({"template": {"spec": {"restartPolicy": "OnFailure"}}}),
                vec![
                    "spec.template.spec.restartPolicy: Unsupported value: \"OnFailure\": supported values: \"Always\"",
                ],
            ),
        ] {
            let (_, errors) = created("apps", "daemonsets", with(agent(), json!({ "spec": changes })));
            assert_eq!(errors, wanted, "{changes}");
        }
        let other = json!({"spec": {"selector": {"matchLabels": {"app": "x"}}, "template": {"metadata": {"labels": {"app": "x"}}}}});
        assert_eq!(
            updated("apps", "daemonsets", agent(), with(agent(), other), ""),
            ["spec.selector: Invalid value: {\"matchLabels\":{\"app\":\"x\"}}: field is immutable"]
        );
    }

    #[test]
    fn changes_of_the_template_are_counted_by_the_server() {
        let (old, _) = created("apps", "daemonsets", agent());
        let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "i:2"}]}}}});
        let forged = json!({"metadata": {"annotations": {TEMPLATE_GENERATION: "7"}}});
        let unlabelled = json!({"metadata": {"annotations": null}});
        for (change, subresource, wanted) in [
            (image.clone(), "", "2"),
            (forged, "", "1"),
            (unlabelled.clone(), "", "1"),
            (unlabelled, "status", "1"),
            (image, "status", "1"),
        ] {
            let mut new = map(with(Value::Object(old.clone()), change.clone()));
            DaemonSet.prepare_for_update(&mut new, &old, subresource);
            assert_eq!(
                new["metadata"]["annotations"][TEMPLATE_GENERATION], wanted,
                "{change} {subresource}"
            );
        }
    }

    #[test]
    fn a_row_counts_nodes() {
        let now = "2026-01-01T00:00:00Z".parse().expect("a time");
        let object = with(
            agent(),
            json!({"spec": {"template": {"spec": {"nodeSelector": {"b": "2", "a": "1"}}}},
                   "status": {"desiredNumberScheduled": 5, "currentNumberScheduled": 4, "numberReady": 3,
                              "updatedNumberScheduled": 2, "numberAvailable": 1}}),
        );
        assert_eq!(
            DaemonSet.cells(&map(object), now)[1..7],
            [json!(5), json!(4), json!(3), json!(2), json!(1), json!("a=1,b=2")]
        );
    }
}
