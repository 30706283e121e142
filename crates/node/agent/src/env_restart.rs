//! Which container is restarted because its environment is not what it was started with:
//! `hotmap.dev/restart-containers: env`.
//!
//! Kubernetes reads an environment once, at the start of a container. Here a container whose variables come from a ConfigMap or
//! Secret that has changed is stopped as for any other reason, and its restart policy starts it with the new ones. What is
//! decided here is decided from what is; that an object changed only makes somebody look.

use std::{collections::BTreeSet, time::Duration};

use jiff::Timestamp;

use crate::{
    pod::{Container, EnvVarSource, Pod, RestartPolicy},
    references::{self, ObjectRef},
};

/// The annotation on a pod.
pub(crate) const ANNOTATION: &str = "hotmap.dev/restart-containers";

/// Restarts of one pod's containers for their environment begin at least this far apart: many edits in a row are two restarts,
/// one for the first and one for the last.
pub(crate) const PAUSE: Duration = Duration::from_secs(10);

/// What the annotation says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Kubernetes' semantics.
    Never,
    Env,
    /// Something else, taken for the former, with a reason why.
    Unclear(String),
}

impl Wish {
    pub(crate) fn of(pod: &Pod) -> Self {
        match pod.metadata.annotations.get(ANNOTATION).map(String::as_str) {
            None => Self::Never,
            // Whoever says that a container runs once, or until it succeeds, has a reason, and a signal from us would be its end.
            Some("env") if pod.spec.restart_policy != RestartPolicy::Always => Self::Unclear(format!(
                "annotation {ANNOTATION} has no effect with restartPolicy {:?}: only Always starts a container again whatever its end",
                pod.spec.restart_policy
            )),
            Some("env") => Self::Env,
            Some(other) => Self::Unclear(format!(
                "annotation {ANNOTATION} is not \"env\" but {other:?}: it is off"
            )),
        }
    }
}

/// The objects that a container's environment reads.
pub(crate) fn objects(pod: &Pod, container: &Container) -> BTreeSet<ObjectRef> {
    references::of_environment(&pod.metadata.namespace, container)
}

/// Whether a variable that differs is the objects' doing, and not that of a label, of the API's address or of the image.
/// `services`: the names of variables that the node sets.
pub(crate) fn is_of_objects(container: &Container, name: &str, services: impl Fn(&str) -> bool) -> bool {
    let last = container.env.iter().rev().find(|variable| variable.name == name);
    match last.map(|variable| (&variable.value_from, &variable.value)) {
        Some((
            Some(EnvVarSource {
                field_ref,
                resource_field_ref,
                ..
            }),
            _,
        )) => field_ref.is_none() && resource_field_ref.is_none(),
        // A text of its own differs only by the variables in it.
        Some((None, text)) => text.contains("$("),
        None => !container.env_from.is_empty() && !services(name),
    }
}

/// A running container as far as its environment goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate<'a> {
    pub(crate) container: &'a str,
    /// It would start with other values now.
    pub(crate) differs: bool,
    /// It is being stopped, or its postStart hook has not ended.
    pub(crate) is_moving: bool,
}

/// What follows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<'a> {
    Nothing,
    Restart(&'a str),
    /// Nothing before then.
    At(Timestamp),
}

/// One container of a pod at a time. `is_under_way`: one that was stopped for this does not run again yet; `last`: when that
/// began for the newest.
pub(crate) fn next<'a>(
    candidates: &[Candidate<'a>],
    is_under_way: bool,
    last: Option<Timestamp>,
    now: Timestamp,
) -> Next<'a> {
    let due = candidates.iter().find(|one| one.differs && !one.is_moving);
    let Some(due) = due.filter(|_| !is_under_way) else {
        return Next::Nothing;
    };
    match last.map(|last| last + PAUSE) {
        // No wait is longer: the clock was set back.
        Some(at) if at > now && at <= now + PAUSE => Next::At(at),
        _ => Next::Restart(due.container),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_env_and_a_container_that_always_runs_are_restarted() {
        for (annotations, policy, wish) in [
            (json!({}), "Always", "never"),
            (json!({"hotmap.dev/restart-containers": "env"}), "Always", "env"),
            (
                json!({"hotmap.dev/restart-containers": "env"}),
                "OnFailure",
                "unclear",
            ),
            (
                json!({"hotmap.dev/restart-containers": "env"}),
                "Never",
                "unclear",
            ),
            (
                json!({"hotmap.dev/restart-containers": "true"}),
                "Always",
                "unclear",
            ),
            (
                json!({"hotmap.dev/restart-containers": "yes"}),
                "Never",
                "unclear",
            ),
        ] {
            let document = json!({"metadata": {"name": "p", "annotations": annotations}, "spec": {"restartPolicy": policy}});
            let found = match Wish::of(&Pod::from_document(&document).expect("a pod")) {
                Wish::Never => "never",
                Wish::Env => "env",
                Wish::Unclear(_) => "unclear",
            };
            assert_eq!(found, wish, "{document}");
        }
    }

    #[test]
    fn a_variable_is_told_from_those_that_no_object_gives() {
        let document = json!({"metadata": {"name": "p"}, "spec": {"containers": [
            {"name": "from", "envFrom": [{"configMapRef": {"name": "c"}}], "env": [
                {"name": "LITERAL", "value": "x"}, {"name": "DERIVED", "value": "x$(KEY)"},
                {"name": "LABEL", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['a']"}}},
                {"name": "TWICE", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}, {"name": "TWICE", "value": "x"}]},
            {"name": "key", "env": [{"name": "KEY", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}}]}]}});
        let pod = Pod::from_document(&document).expect("a pod");
        for (container, name, expected) in [
            (0, "KEY", true),
            (0, "LITERAL", false),
            (0, "DERIVED", true),
            (0, "LABEL", false),
            (0, "TWICE", false),
            (0, "KUBERNETES_PORT", false),
            (1, "KEY", true),
            (1, "PATH", false),
        ] {
            let container = &pod.spec.containers[container];
            let found = is_of_objects(container, name, |name| name.starts_with("KUBERNETES_"));
            assert_eq!(found, expected, "{} {name}", container.name);
        }
    }

    #[test]
    fn one_container_at_a_time_and_not_in_a_storm() {
        let at = |second| Timestamp::from_second(second).expect("in range");
        let one = |container, differs, is_moving| Candidate {
            container,
            differs,
            is_moving,
        };
        let (same, differs, moving) = (
            one("a", false, false),
            one("b", true, false),
            one("c", true, true),
        );
        for (candidates, is_under_way, last, next_is) in [
            (&[][..], false, None, Next::Nothing),
            (&[same], false, None, Next::Nothing),
            (&[same, differs], false, None, Next::Restart("b")),
            (&[moving, differs], false, None, Next::Restart("b")),
            (&[moving], false, None, Next::Nothing),
            (&[differs], true, None, Next::Nothing),
            (&[differs], false, Some(at(95)), Next::At(at(105))),
            (&[differs], false, Some(at(90)), Next::Restart("b")),
            (&[differs], false, Some(at(1_000)), Next::Restart("b")),
        ] {
            assert_eq!(
                next(candidates, is_under_way, last, at(100)),
                next_is,
                "{candidates:?} {last:?}"
            );
        }
    }
}
