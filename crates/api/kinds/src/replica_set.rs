//! ReplicaSet: so many pods of one template.
//!
//! Rules follow `pkg/apis/apps/v1/defaults.go`, `pkg/apis/apps/validation/validation.go` (`ValidateReplicaSet`) and
//! `pkg/registry/apps/replicaset/strategy.go`, Kubernetes 1.36.

use hotmap_object::FieldError;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    Column, Strategy,
    fields::{Fields, keep, map_mut},
    pod::template,
    rules::Errors,
    table, workload,
};

/// The rules of ReplicaSets.
pub(crate) struct ReplicaSet;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::column("Desired", "integer", "Pods wanted."),
    table::column("Current", "integer", "Pods that are there."),
    table::column("Ready", "integer", "Pods that are ready."),
    table::AGE,
    workload::CONTAINERS,
    workload::IMAGES,
    workload::SELECTOR_COLUMN,
];

impl Strategy for ReplicaSet {
    fn default(&self, object: &mut Map<String, Value>) {
        if let Some(spec) = map_mut(object, "spec") {
            workload::default_replicas(spec);
            template::fill_in(spec);
        }
    }

    fn prepare_for_create(&self, object: &mut Map<String, Value>) {
        object.insert("status".to_owned(), json!({"replicas": 0}));
    }

    fn prepare_for_update(&self, new: &mut Map<String, Value>, old: &Map<String, Value>, subresource: &str) {
        keep(new, old, if subresource == "status" { "spec" } else { "status" });
    }

    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = object.map("spec");
        workload::counts(&mut errors, "spec", spec, &["replicas", "minReadySeconds"]);
        // Upstream says deployment here as well.
        workload::selector(&mut errors, spec, "deployment");
        workload::template_of_replicas(&mut errors, spec);
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
        } else {
            errors = self.validate(new);
            workload::selector_stays(&mut errors, new, old);
        }
        errors
    }

    fn warnings(&self, object: &Map<String, Value>, old: Option<&Map<String, Value>>) -> Vec<String> {
        if workload::is_controlled(object) {
            return Vec::new();
        }
        workload::warnings(object, old)
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        let (spec, status) = (object.map("spec"), object.map("status"));
        let [containers, images] = workload::container_cells(spec);
        vec![
            table::name(object),
            workload::count(spec, "replicas"),
            workload::count(status, "replicas"),
            workload::count(status, "readyReplicas"),
            table::age(object, now),
            containers,
            images,
            workload::selector_cell(spec),
        ]
    }
}

fn status(errors: &mut Errors, status: &Map<String, Value>) {
    const COUNTS: &[&str] = &[
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ];
    workload::counts(errors, "status", status, COUNTS);
    workload::at_most(
        errors,
        status,
        &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
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
