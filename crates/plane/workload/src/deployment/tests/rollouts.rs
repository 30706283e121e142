//! Rollouts from one template to the next, in every rounding.

use serde_json::{Value, json};

use super::simulator::{BAD, Cluster};
use crate::deployment::bounds::Bounds;

fn rolling(replicas: i32, surge: &Value, unavailable: &Value) -> Value {
    let bounds = json!({"maxSurge": surge, "maxUnavailable": unavailable});
    json!({"replicas": replicas, "strategy": {"type": "RollingUpdate", "rollingUpdate": bounds}})
}

/// `(old, new)` at every rest of the controllers.
fn sizes(spec: &Value) -> Vec<(i32, i32)> {
    let mut cluster = Cluster::rolled_out(spec);
    cluster.set_image("v2");
    let mut sizes = Vec::new();
    loop {
        cluster.control();
        sizes.push((cluster.size_of("v1"), cluster.size_of("v2")));
        cluster.pass(1);
        if !cluster.run_pods() {
            return sizes;
        }
    }
}

#[test]
fn pods_are_replaced_in_upstreams_steps() {
    let (zero, one) = (json!(0), json!(1));
    for (spec, expected) in [
        (rolling(10, &json!(3), &json!(2)), vec![(8, 5), (3, 10), (0, 10)]),
        (rolling(3, &one, &zero), vec![(3, 1), (2, 2), (1, 3), (0, 3)]),
        (rolling(3, &zero, &one), vec![(2, 1), (1, 2), (0, 3)]),
        (rolling(1, &json!("25%"), &json!("25%")), vec![(1, 1), (0, 1)]),
        (rolling(2, &zero, &json!("1%")), vec![(1, 1), (0, 2)]),
        (rolling(4, &json!("100%"), &zero), vec![(4, 4), (0, 4)]),
        (rolling(4, &zero, &json!("100%")), vec![(0, 4)]),
        (rolling(0, &one, &zero), vec![(0, 0)]),
        (
            json!({"replicas": 3, "strategy": {"type": "Recreate", "rollingUpdate": null}}),
            vec![(0, -1), (0, 3), (0, 3)],
        ),
    ] {
        let mut found = sizes(&spec);
        found.dedup();
        let mut expected = expected;
        expected.dedup();
        assert_eq!(found, expected, "{spec}");
    }
}

#[test]
fn every_rounding_rolls_within_its_bounds() {
    let shares = [json!(0), json!(1), json!("1%"), json!("33%"), json!("100%")];
    for replicas in [0, 1, 3, 7] {
        for surge in &shares {
            for unavailable in &shares {
                if *surge == json!(0) && *unavailable == json!(0) {
                    continue;
                }
                let spec = rolling(replicas, surge, unavailable);
                let mut cluster = Cluster::rolled_out(&spec);
                let bounds = Bounds::of(&cluster.deployment());
                cluster.set_image("v2");
                loop {
                    cluster.control();
                    let pods = cluster.pods().iter().filter(|pod| pod.is_active()).count();
                    let most = i64::from(replicas) + bounds.max_surge;
                    assert!(i64::try_from(pods).expect("few") <= most, "{pods} pods: {spec}");
                    let least = i64::from(replicas) - bounds.max_unavailable;
                    assert!(
                        cluster.available_pods() >= least,
                        "{}: {spec}",
                        cluster.available_pods()
                    );
                    cluster.pass(1);
                    if !cluster.run_pods() {
                        break;
                    }
                }
                assert_eq!(
                    (cluster.size_of("v1"), cluster.size_of("v2")),
                    (0, replicas),
                    "{spec}"
                );
                assert_eq!(
                    cluster.condition("Progressing"),
                    "True/NewReplicaSetAvailable",
                    "{spec}"
                );
                assert_eq!(
                    cluster.condition("Available"),
                    "True/MinimumReplicasAvailable",
                    "{spec}"
                );
                assert_eq!(cluster.look_again_at, None, "{spec}");
            }
        }
    }
}

#[test]
fn a_bad_template_stops_with_the_old_pods_serving_and_is_told_on_time() {
    for (surge, unavailable, served) in [(1, 0, 4), (1, 1, 3), (0, 2, 2), (4, 3, 1)] {
        let mut cluster = Cluster::rolled_out(&rolling(4, &json!(surge), &json!(unavailable)));
        cluster.set_image(BAD);
        cluster.settle();
        assert_eq!(cluster.available_pods(), served);
        assert_eq!(cluster.condition("Available"), "True/MinimumReplicasAvailable");
        let wait = cluster
            .seconds_to_the_next_look()
            .expect("a rollout is in progress");
        cluster.pass(i64::try_from(wait.as_secs()).expect("short") - 1);
        cluster.control();
        assert!(
            cluster.condition("Progressing").starts_with("True/"),
            "{}",
            cluster.condition("Progressing")
        );
        cluster.pass(1);
        cluster.control();
        assert_eq!(cluster.condition("Progressing"), "False/ProgressDeadlineExceeded");
        assert_eq!(cluster.look_again_at, None, "what is given up needs no timer");
        let told = cluster
            .status()
            .condition("Progressing")
            .expect("told")
            .message
            .clone();
        assert!(
            told.starts_with("ReplicaSet \"web-") && told.ends_with("\" has timed out progressing."),
            "{told}"
        );
        cluster.set_image("v1");
        cluster.settle();
        assert_eq!((cluster.size_of("v1"), cluster.size_of(BAD)), (4, 0));
        assert_eq!(cluster.condition("Progressing"), "True/NewReplicaSetAvailable");
    }
}

#[test]
fn a_rollout_that_is_overtaken_by_the_next_ends_with_the_last() {
    let mut cluster = Cluster::rolled_out(&rolling(5, &json!(2), &json!(1)));
    for image in ["v2", "v3", BAD, "v4"] {
        cluster.set_image(image);
        cluster.control();
        cluster.run_pods();
    }
    cluster.settle();
    for (image, size) in [("v1", 0), ("v2", 0), ("v3", 0), (BAD, 0), ("v4", 5)] {
        assert_eq!(cluster.size_of(image).max(0), size, "{image}");
    }
}

#[test]
fn unhealthy_old_pods_go_first() {
    let mut cluster = Cluster::rolled_out(&rolling(4, &json!(0), &json!(1)));
    cluster.set_image("v2");
    let broken = cluster.pods()[0].metadata.name.clone();
    cluster.break_pod(&broken);
    cluster.control();
    assert!(
        cluster
            .pods()
            .iter()
            .any(|pod| pod.metadata.name == broken && pod.metadata.is_deleting())
    );
    assert_eq!(cluster.available_pods(), 3, "no healthy one went");
}

#[test]
fn unhealthy_old_pods_stay_while_new_ones_are_no_better() {
    let mut cluster = Cluster::rolled_out(&rolling(10, &json!(3), &json!(2)));
    cluster.set_image(BAD);
    cluster.settle();
    assert_eq!((cluster.size_of("v1"), cluster.size_of(BAD)), (8, 5));
    let names: Vec<String> = cluster
        .pods()
        .iter()
        .map(|pod| pod.metadata.name.clone())
        .collect();
    names[..4].iter().for_each(|name| cluster.break_pod(name));
    cluster.control();
    assert_eq!((cluster.size_of("v1"), cluster.size_of(BAD)), (8, 5));
}

#[test]
fn recreate_waits_for_the_last_old_process() {
    let mut cluster = Cluster::rolled_out(&json!({"strategy": {"type": "Recreate", "rollingUpdate": null}}));
    cluster.set_image("v2");
    cluster.control();
    let names: Vec<String> = cluster
        .pods()
        .iter()
        .map(|pod| pod.metadata.name.clone())
        .collect();
    for name in &names {
        assert_eq!(cluster.size_of("v2"), -1, "an old pod still runs");
        cluster.run_pod(name);
        cluster.control();
    }
    assert_eq!(cluster.size_of("v2"), 3);
    cluster.settle();
    assert_eq!(cluster.condition("Progressing"), "True/NewReplicaSetAvailable");
}

#[test]
fn pods_count_as_available_after_min_ready_seconds() {
    let mut spec = rolling(2, &json!(1), &json!(0));
    spec["minReadySeconds"] = json!(30);
    let mut cluster = Cluster::new(&spec);
    cluster.settle();
    assert_eq!(cluster.condition("Available"), "False/MinimumReplicasUnavailable");
    cluster.pass(30);
    cluster.settle();
    assert_eq!(cluster.condition("Available"), "True/MinimumReplicasAvailable");
    cluster.set_image("v2");
    cluster.settle();
    assert_eq!(
        (cluster.size_of("v1"), cluster.size_of("v2")),
        (2, 1),
        "the new pod is ready, and not available"
    );
    cluster.pass(28);
    cluster.settle();
    assert_eq!((cluster.size_of("v1"), cluster.size_of("v2")), (2, 1));
    cluster.pass(1);
    cluster.settle();
    assert_eq!((cluster.size_of("v1"), cluster.size_of("v2")), (1, 2));
}
