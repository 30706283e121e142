//! What users and others do to deployments.

use serde_json::{Value, json};

use super::simulator::{BAD, Cluster};
use crate::{deployment::plan::Step, view::ReplicaSet};

const REVISION: &str = "deployment.kubernetes.io/revision";

fn revision(cluster: &Cluster, image: &str) -> String {
    let set = cluster.set_of(image).expect("there");
    set.metadata.annotation(REVISION).unwrap_or_default().to_owned()
}

#[test]
fn a_new_deployment_gets_its_pods() {
    let mut cluster = Cluster::new(&json!({}));
    cluster.control();
    let set = cluster.set_of("v1").expect("created");
    let hash = set
        .metadata
        .label("pod-template-hash")
        .expect("labelled")
        .to_owned();
    assert_eq!(set.metadata.name, format!("web-{hash}"));
    assert_eq!(set.spec.selector.match_labels["pod-template-hash"], hash);
    assert_eq!(cluster.events, [format!("web-{hash} 0→3")]);
    assert_eq!(cluster.condition("Progressing"), "True/ReplicaSetUpdated");
    assert_eq!(cluster.condition("Available"), "False/MinimumReplicasUnavailable");
    cluster.settle();
    let status = cluster.status();
    let counts = (
        status.replicas,
        status.updated_replicas,
        status.ready_replicas,
        status.available_replicas,
    );
    assert_eq!((counts, status.unavailable_replicas), ((3, 3, 3, 3), 0));
    assert_eq!(status.observed_generation, 1);
    assert_eq!(cluster.deployment().metadata.annotation(REVISION), Some("1"));
    assert!(cluster.plan().steps.is_empty());
}

#[test]
fn rollbacks_get_new_revisions_and_remember_the_old_ones() {
    let mut cluster = Cluster::rolled_out(&json!({}));
    for (image, expected) in [("v2", "2"), ("v1", "3"), ("v2", "4"), ("v1", "5")] {
        cluster.set_image(image);
        cluster.settle();
        assert_eq!(revision(&cluster, image), expected);
        assert_eq!(cluster.deployment().metadata.annotation(REVISION), Some(expected));
    }
    let set = cluster.set_of("v1").expect("there");
    assert_eq!(
        set.metadata
            .annotation("deployment.kubernetes.io/revision-history"),
        Some("1,3")
    );
    assert_eq!(cluster.sets().len(), 2);
}

#[test]
fn as_many_old_replica_sets_are_kept_as_asked_for() {
    for limit in [0, 1, 3] {
        let mut cluster = Cluster::rolled_out(&json!({"revisionHistoryLimit": limit}));
        for version in 2..8 {
            cluster.set_image(&format!("v{version}"));
            cluster.settle();
        }
        assert_eq!(cluster.sets().len(), limit + 1);
        assert_eq!(revision(&cluster, "v7"), "7");
        assert!(
            limit == 0 || cluster.set_of("v6").is_some(),
            "the newest are kept"
        );
    }
}

#[test]
fn annotations_of_the_deployment_are_the_new_replica_sets() {
    let mut cluster = Cluster::rolled_out(&json!({}));
    cluster.edit(&json!({"metadata": {"annotations": {
        "kubernetes.io/change-cause": "first", "kubectl.kubernetes.io/last-applied-configuration": "{}"}}}));
    cluster.settle();
    let annotations = cluster.set_of("v1").expect("there").metadata.annotations.clone();
    assert_eq!(annotations["kubernetes.io/change-cause"], "first");
    assert!(!annotations.contains_key("kubectl.kubernetes.io/last-applied-configuration"));
    cluster.edit_spec(&json!({"minReadySeconds": 5}));
    cluster.settle();
    assert_eq!(cluster.set_of("v1").expect("there").spec.min_ready_seconds, 5);
    assert_eq!(cluster.sets().len(), 1, "neither is a new template");
}

#[test]
fn a_pause_holds_the_rollout_and_the_clock() {
    let mut cluster = Cluster::rolled_out(&json!({"replicas": 4}));
    cluster.edit_spec(&json!({"paused": true}));
    cluster.set_image("v2");
    cluster.settle();
    assert_eq!((cluster.size_of("v1"), cluster.size_of("v2")), (4, -1));
    assert_eq!(cluster.condition("Progressing"), "Unknown/DeploymentPaused");
    assert_eq!(
        (cluster.look_again_at, cluster.status().updated_replicas),
        (None, 0)
    );
    cluster.edit_spec(&json!({"replicas": 6}));
    cluster.settle();
    assert_eq!(cluster.size_of("v1"), 6, "size is no part of a rollout");
    cluster.pass(10_000);
    cluster.edit_spec(&json!({"paused": false, "replicas": 4}));
    cluster.look_at_deployment(usize::MAX);
    assert_eq!(cluster.condition("Progressing"), "Unknown/DeploymentResumed");
    cluster.settle();
    assert_eq!((cluster.size_of("v1"), cluster.size_of("v2")), (0, 4));
}

#[test]
fn sizes_change_in_proportion_while_a_rollout_is_held_up() {
    // The first is the example of the documentation of Deployments.
    for (size, scaled, expected) in [
        (10, 15, (11, 7)),
        (10, 5, (5, 3)),
        (10, 0, (0, 0)),
        (10, 11, (9, 5)),
        (10, 100, (63, 40)),
    ] {
        let bounds = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}});
        for paused in [false, true] {
            let mut cluster = Cluster::rolled_out(&json!({"replicas": size, "strategy": bounds}));
            cluster.set_image(BAD);
            cluster.settle();
            assert_eq!((cluster.size_of("v1"), cluster.size_of(BAD)), (8, 5));
            cluster.edit_spec(&json!({"replicas": scaled, "paused": paused}));
            cluster.look_at_deployment(usize::MAX);
            assert_eq!(
                (cluster.size_of("v1"), cluster.size_of(BAD)),
                expected,
                "to {scaled}, paused: {paused}"
            );
        }
    }
}

#[test]
fn a_saturated_rollout_lets_adopted_replica_sets_go_when_it_is_scaled() {
    let mut cluster = Cluster::rolled_out(&json!({}));
    let mut body = json!({
        "metadata": {"labels": {"app": "web"}, "ownerReferences": [{"uid": "d", "controller": true}],
            "annotations": {"deployment.kubernetes.io/desired-replicas": "7"}},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web", "x": "y"}},
            "template": {"metadata": {"labels": {"app": "web", "x": "y"}}, "spec": {"image": "v0"}}},
    });
    body["status"] = json!({"replicas": 2, "availableReplicas": 2, "observedGeneration": 1});
    cluster.add_set("adopted", &body);
    cluster.settle();
    assert_eq!((cluster.size_of("v0"), cluster.size_of("v1")), (0, 3));
}

#[test]
fn who_resizes_a_replica_set_is_corrected() {
    let mut cluster = Cluster::rolled_out(&json!({}));
    let name = cluster.set_of("v1").expect("there").metadata.name.clone();
    for replicas in [0, 1, 9] {
        cluster.edit_set(&name, &json!({"spec": {"replicas": replicas}}));
        cluster.settle();
        assert_eq!(cluster.size_of("v1"), 3);
    }
    // Both at once: the sizes agree, and only the annotation tells that there was an edit.
    cluster.edit_set(&name, &json!({"spec": {"replicas": 5}}));
    cluster.edit_spec(&json!({"replicas": 5}));
    cluster.settle();
    cluster.set_image("v2");
    cluster.settle();
    assert_eq!((cluster.size_of("v1"), cluster.size_of("v2")), (0, 5));
}

#[test]
fn taken_names_get_another_hash() {
    let mut cluster = Cluster::new(&json!({}));
    let Some(Step::CreateReplicaSet { name, .. }) = cluster.plan().steps.into_iter().next() else {
        panic!("a new deployment creates first");
    };
    let foreign = json!({"metadata": {"labels": {}}, "spec": {"replicas": 0, "template": {"spec": {"image": "other"}}}});
    cluster.add_set(&name, &foreign);
    cluster.settle();
    let status = cluster.status();
    assert_eq!((status.collision_count, status.available_replicas), (Some(1), 3));
    let owned: Vec<_> = cluster
        .sets()
        .into_iter()
        .filter(|set| set.metadata.controller().is_some())
        .collect();
    assert!(owned.len() == 1 && owned[0].metadata.name != name);
}

#[test]
fn the_pods_and_replica_sets_of_others_do_not_count() {
    let mut cluster = Cluster::rolled_out(&json!({}));
    let others = json!({
        "metadata": {"labels": {"app": "web"}, "ownerReferences": [{"uid": "another", "controller": true}]},
        "spec": {"replicas": 4, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"image": "v1"}}},
    });
    cluster.add_set("another-1", &others);
    cluster.settle();
    assert_eq!((cluster.status().replicas, cluster.pods().len()), (3, 3 + 4));
    assert_eq!(
        cluster
            .sets()
            .iter()
            .find(|set| set.metadata.name == "another-1")
            .expect("there")
            .spec
            .replicas,
        4
    );
}

#[test]
fn failures_to_create_pods_are_the_deployments_too() {
    let mut cluster = Cluster::rolled_out(&json!({}));
    cluster.quota = Some("pods \"web\" is forbidden".to_owned());
    cluster.set_image("v2");
    cluster.settle();
    assert_eq!(cluster.condition("ReplicaFailure"), "True/FailedCreate");
    assert_eq!(cluster.condition("Available"), "True/MinimumReplicasAvailable");
    cluster.quota = None;
    cluster.settle();
    assert_eq!(
        (cluster.condition("ReplicaFailure"), cluster.size_of("v2")),
        (String::new(), 3)
    );
}

#[test]
fn pods_that_fail_after_a_rollout_are_no_rollout() {
    let mut cluster = Cluster::rolled_out(&json!({}));
    let pods = cluster.pods();
    pods.iter().for_each(|pod| cluster.break_pod(&pod.metadata.name));
    cluster.control();
    assert_eq!(cluster.condition("Available"), "False/MinimumReplicasUnavailable");
    assert_eq!(cluster.condition("Progressing"), "True/NewReplicaSetAvailable");
    assert_eq!(cluster.look_again_at, None, "nothing is in progress");
}

#[test]
fn without_a_deadline_nobody_speaks_of_progress() {
    for deadline in [Value::Null, json!(i32::MAX)] {
        let mut cluster = Cluster::new(&json!({"progressDeadlineSeconds": deadline}));
        cluster.settle();
        cluster.set_image(BAD);
        cluster.settle();
        assert_eq!(
            (cluster.condition("Progressing"), cluster.look_again_at),
            (String::new(), None)
        );
    }
}

#[test]
fn a_deployment_that_is_being_deleted_only_counts() {
    let mut cluster = Cluster::rolled_out(&json!({}));
    cluster.edit(&json!({"metadata": {"deletionTimestamp": cluster.now}}));
    cluster.set_image("v2");
    let steps = cluster.plan().steps;
    assert!(matches!(steps.as_slice(), [Step::WriteStatus(_)]), "{steps:?}");
}

#[test]
fn a_switch_of_strategy_in_the_middle_comes_to_an_end() {
    let mut cluster = Cluster::rolled_out(&json!({"replicas": 6}));
    cluster.set_image("v2");
    cluster.control();
    cluster.edit_spec(&json!({"replicas": 4, "strategy": {"type": "Recreate", "rollingUpdate": null}}));
    cluster.settle();
    assert_eq!((cluster.size_of("v1"), cluster.size_of("v2")), (0, 4));
}

#[test]
fn the_oldest_of_two_replica_sets_of_one_template_is_the_new_one() {
    let mut cluster = Cluster::rolled_out(&json!({}));
    let first = cluster.set_of("v1").expect("there");
    let twin = json!({
        "metadata": {"labels": {"app": "web"}, "ownerReferences": [{"uid": "d", "controller": true}]},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"image": "v1"}}},
    });
    cluster.add_set("a-twin", &twin);
    cluster.settle();
    let size = |name: &str| {
        let is_it = |set: &&std::sync::Arc<ReplicaSet>| set.metadata.name == name;
        cluster.sets().iter().find(is_it).map(|set| set.spec.replicas)
    };
    assert_eq!((size(&first.metadata.name), size("a-twin")), (Some(3), Some(0)));
}
