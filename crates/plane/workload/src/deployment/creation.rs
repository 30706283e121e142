//! The ReplicaSet of a new template: how it is made, and what follows if the server refuses it.

use serde_json::{Value, json};

use super::{
    conditions::{self, PROGRESSING},
    plan::{Plan, Step},
    revision, template,
};
use crate::{
    claims::controller_reference,
    view::{Deployment, PodTemplate, ReplicaSet, Selector},
};

/// The longest name of a ReplicaSet.
const NAME_CHARS_MAX: usize = 253;

impl Plan<'_> {
    /// Plans the ReplicaSet of the deployment's template, as large as there is room.
    pub(super) fn create_new(&mut self) {
        let deployment = self.deployment;
        let hash = template::hash(&deployment.spec.template, self.status.collision_count);
        let name = name(&deployment.metadata.name, &hash);
        let replicas = i32::try_from(self.room_for_new(0)).unwrap_or(i32::MAX);
        let template = with_hash(&deployment.spec.template, &hash);
        let revision = revision::next_revision(self).to_string();
        let annotations = revision::annotations_of_new(self);
        let mut selector = deployment.spec.selector.clone();
        selector
            .match_labels
            .insert(template::HASH_LABEL.to_owned(), hash);
        let body = json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": name,
                "namespace": deployment.metadata.namespace,
                "labels": template["metadata"]["labels"],
                "annotations": annotations,
                "ownerReferences": [controller_reference(deployment)],
            },
            "spec": {
                "replicas": replicas,
                "minReadySeconds": deployment.spec.min_ready_seconds,
                "selector": selector,
                "template": template,
            },
        });
        self.new = Some(planned(&body, replicas, &selector, template));
        self.steps.push(Step::CreateReplicaSet {
            name: name.clone(),
            body,
            replicas,
        });
        self.revision = Some(revision);
        self.note_progress(
            "True",
            "NewReplicaSetCreated",
            format!("Created new replica set {name:?}"),
        );
    }
}

/// The ReplicaSet as far as a plan looks at it.
fn planned(body: &Value, replicas: i32, selector: &Selector, template: Value) -> ReplicaSet {
    let mut set = ReplicaSet::default();
    body["metadata"]["name"]
        .as_str()
        .unwrap_or_default()
        .clone_into(&mut set.metadata.name);
    set.spec.replicas = replicas;
    set.spec.selector = selector.clone();
    set.spec.template = PodTemplate::from(template);
    set
}

fn with_hash(template: &PodTemplate, hash: &str) -> Value {
    let mut template = template.value().clone();
    if !template["metadata"]["labels"].is_object() {
        template["metadata"]["labels"] = json!({});
    }
    template["metadata"]["labels"][template::HASH_LABEL] = hash.into();
    template
}

/// The deployment's name and the hash; of a long name only its beginning.
fn name(deployment: &str, hash: &str) -> String {
    let mut name = deployment.to_owned();
    // Names are ASCII, the server has checked that.
    name.truncate((NAME_CHARS_MAX - 1 - hash.len()).min(name.len()));
    format!("{name}-{hash}")
}

/// What to do about a ReplicaSet that could not be created because its name is taken.
#[derive(Debug, PartialEq)]
pub(crate) enum NameTaken {
    /// It is ours, from a look that did not see its end.
    ByOurs,
    /// Another template has the same hash: with this in the status the next try has another one.
    ByAnother {
        /// A merge patch of the status.
        status: Value,
    },
}

/// Looks at who has the name of a deployment's new ReplicaSet.
pub(crate) fn name_taken(deployment: &Deployment, by: &ReplicaSet) -> NameTaken {
    let is_ours = by
        .metadata
        .controller()
        .is_some_and(|controller| controller.uid == deployment.metadata.uid);
    if is_ours && template::are_same(&deployment.spec.template, &by.spec.template) {
        return NameTaken::ByOurs;
    }
    let count = deployment.status.collision_count.unwrap_or(0).wrapping_add(1);
    NameTaken::ByAnother {
        status: json!({"status": {"collisionCount": count}}),
    }
}

/// What is said about a ReplicaSet that cannot be created.
pub(crate) fn failure_text(name: &str, error: &dyn std::fmt::Display) -> String {
    format!("Failed to create new replica set {name:?}: {error}")
}

/// The patch of the status that tells of it; nothing if the deployment has no progress to report.
pub(crate) fn failure(deployment: &Deployment, text: &str, now: jiff::Timestamp) -> Option<Value> {
    let mut status = deployment.status.clone();
    deployment.has_progress_deadline().then(|| {
        let condition = conditions::condition(PROGRESSING, "False", "ReplicaSetCreateError", text, now);
        conditions::set(&mut status.conditions, condition);
        json!({"status": {"conditions": conditions::to_json(&status.conditions)}})
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut() {
        assert_eq!(name("web", "abc"), "web-abc");
        let long = "w".repeat(253);
        let cut = name(&long, "5d5dd5b49");
        assert_eq!(cut.len(), 253);
        assert!(cut.ends_with("w-5d5dd5b49"));
    }
}
