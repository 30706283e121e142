//! Random edits, pods that break, controllers that die between two writes: what upstream promises holds after every look (the
//! simulator asserts it), and in the end everything is as the deployment says.

use proptest::prelude::*;
use serde_json::json;

use super::simulator::{BAD, Cluster};

#[derive(Debug, Clone)]
enum Happening {
    Scale(i32),
    Image(&'static str),
    Pause(bool),
    Bounds(&'static str, &'static str),
    Recreate,
    HistoryLimit(i32),
    /// The deployment controller looks, and dies after so many writes.
    Deployment(usize),
    /// The ReplicaSet controller looks at one of the sets, and dies after so many pods.
    Set(usize, usize),
    /// A pod moves on: becomes ready, or goes.
    Pod(usize),
    /// A pod fails its probe.
    Break(usize),
    /// Somebody deletes a pod.
    Delete(usize),
    Time(i64),
}

fn happening() -> impl Strategy<Value = Happening> {
    let writes = prop_oneof![4 => Just(usize::MAX), 1 => 0..3_usize];
    prop_oneof![
        1 => (0..8).prop_map(Happening::Scale),
        2 => prop::sample::select(vec!["v1", "v2", "v3", "v4", "v5", BAD]).prop_map(Happening::Image),
        1 => any::<bool>().prop_map(Happening::Pause),
        1 => (prop::sample::select(vec!["0%", "25%", "50%", "100%"]), prop::sample::select(vec!["1%", "25%", "60%"]))
            .prop_map(|(surge, unavailable)| Happening::Bounds(surge, unavailable)),
        1 => Just(Happening::Recreate),
        1 => (0..3).prop_map(Happening::HistoryLimit),
        12 => writes.clone().prop_map(Happening::Deployment),
        12 => (0..8_usize, writes).prop_map(|(set, pods)| Happening::Set(set, pods)),
        20 => (0..32_usize).prop_map(Happening::Pod),
        2 => (0..32_usize).prop_map(Happening::Break),
        2 => (0..32_usize).prop_map(Happening::Delete),
        1 => (1..400_i64).prop_map(Happening::Time),
    ]
}

fn play(cluster: &mut Cluster, happening: &Happening) {
    let pod = |cluster: &Cluster, at: usize| {
        let pods = cluster.pods();
        (!pods.is_empty()).then(|| pods[at % pods.len()].metadata.name.clone())
    };
    match *happening {
        Happening::Scale(replicas) => cluster.edit_spec(&json!({"replicas": replicas})),
        Happening::Image(image) => cluster.set_image(image),
        Happening::Pause(paused) => cluster.edit_spec(&json!({"paused": paused})),
        Happening::Bounds(surge, unavailable) => cluster.edit_spec(&json!({"strategy": {
            "type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}})),
        Happening::Recreate => {
            cluster.edit_spec(&json!({"strategy": {"type": "Recreate", "rollingUpdate": null}}));
        }
        Happening::HistoryLimit(limit) => cluster.edit_spec(&json!({"revisionHistoryLimit": limit})),
        Happening::Deployment(writes_max) => drop(cluster.look_at_deployment(writes_max)),
        Happening::Set(at, pods_max) => {
            let sets = cluster.sets();
            if let Some(set) = sets.get(at % sets.len().max(1)) {
                cluster.look_at_set(&set.metadata.name, pods_max);
            }
        }
        Happening::Pod(at) => drop(pod(cluster, at).map(|name| cluster.run_pod(&name))),
        Happening::Break(at) => drop(pod(cluster, at).map(|name| cluster.break_pod(&name))),
        Happening::Delete(at) => drop(pod(cluster, at).map(|name| cluster.delete_pod(&name))),
        Happening::Time(seconds) => cluster.pass(seconds),
    }
}

/// Fewer than others by default: one is a long story.
fn cases() -> ProptestConfig {
    let asked_for = std::env::var_os("PROPTEST_CASES").is_some();
    if asked_for {
        ProptestConfig::default()
    } else {
        ProptestConfig::with_cases(64)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..cases() })]

    #[test]
    fn whatever_happens_every_look_keeps_the_bounds_and_all_comes_to_an_end(
        happenings in prop::collection::vec(happening(), 1..120),
    ) {
        let mut cluster = Cluster::new(&json!({}));
        for happening in &happenings {
            play(&mut cluster, happening);
        }
        cluster.edit_spec(&json!({"paused": false}));
        if cluster.image() == BAD {
            cluster.set_image("v9");
        }
        cluster.settle();
        let deployment = cluster.deployment();
        let (replicas, status) = (deployment.spec.replicas, &deployment.status);
        prop_assert_eq!(
            (status.replicas, status.updated_replicas, status.available_replicas, status.terminating_replicas),
            (replicas, replicas, replicas, Some(0))
        );
        prop_assert_eq!(cluster.available_pods(), i64::from(replicas));
        prop_assert_eq!(cluster.pods().len(), usize::try_from(replicas).expect("a size"));
        prop_assert_eq!(cluster.condition("Progressing"), "True/NewReplicaSetAvailable");
        let limit = usize::try_from(deployment.spec.revision_history_limit.expect("given")).expect("a limit");
        prop_assert!(cluster.sets().len() <= limit + 1, "{} of {limit} + 1", cluster.sets().len());
        let uids: Vec<String> = cluster.sets().iter().map(|set| set.metadata.uid.clone()).collect();
        let is_owned = |pod: &std::sync::Arc<crate::view::Pod>| {
            pod.metadata.controller().is_some_and(|owner| uids.contains(&owner.uid))
        };
        prop_assert!(cluster.pods().iter().all(is_owned), "an orphan");
        prop_assert!(cluster.plan().steps.is_empty() && cluster.look_again_at.is_none());
    }
}
