//! Random edits, pods that break, controllers that die between two writes: what upstream promises holds after every look (the
//! simulator asserts it), and in the end everything is as the deployment says.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;

use super::simulator::{BAD, Cluster};
use crate::view::Pod;

/// What a user writes.
#[derive(Debug, Clone)]
enum Edit {
    Scale(i32),
    Image(&'static str),
    Pause(bool),
    Bounds(&'static str, &'static str),
    Recreate,
    HistoryLimit(i32),
}

#[derive(Debug, Clone)]
enum Happening {
    Edit(Edit),
    /// The deployment controller looks, and dies after so many writes.
    Deployment(usize),
    /// The deployment controller looks, and after so many of its writes a user writes too.
    Meanwhile(usize, Edit),
    /// The ReplicaSet controller looks at one of the sets, and dies after so many writes.
    Set(usize, usize),
    /// A pod moves on: becomes ready, or goes.
    Pod(usize),
    /// A pod fails its probe.
    Break(usize),
    /// A pod is evicted.
    Fail(usize),
    /// Somebody deletes a pod.
    Delete(usize),
    /// Somebody takes a pod's label off, or puts it back.
    Relabel(usize),
    /// Somebody takes a ReplicaSet away from its deployment.
    Orphan(usize),
    Time(i64),
}

fn edit() -> impl Strategy<Value = Edit> {
    let surge = prop::sample::select(vec!["0%", "25%", "50%", "100%"]);
    let unavailable = prop::sample::select(vec!["1%", "25%", "60%"]);
    prop_oneof![
        1 => (0..8).prop_map(Edit::Scale),
        2 => prop::sample::select(vec!["v1", "v2", "v3", "v4", "v5", BAD]).prop_map(Edit::Image),
        1 => any::<bool>().prop_map(Edit::Pause),
        1 => (surge, unavailable).prop_map(|(surge, unavailable)| Edit::Bounds(surge, unavailable)),
        1 => Just(Edit::Recreate),
        1 => (0..3).prop_map(Edit::HistoryLimit),
    ]
}

fn happening() -> impl Strategy<Value = Happening> {
    let writes = prop_oneof![4 => Just(usize::MAX), 1 => 0..6_usize];
    prop_oneof![
        7 => edit().prop_map(Happening::Edit),
        12 => writes.clone().prop_map(Happening::Deployment),
        2 => (0..4_usize, edit()).prop_map(|(writes, edit)| Happening::Meanwhile(writes, edit)),
        12 => (0..8_usize, writes).prop_map(|(set, writes)| Happening::Set(set, writes)),
        20 => (0..32_usize).prop_map(Happening::Pod),
        2 => (0..32_usize).prop_map(Happening::Break),
        1 => (0..32_usize).prop_map(Happening::Fail),
        2 => (0..32_usize).prop_map(Happening::Delete),
        2 => (0..32_usize).prop_map(Happening::Relabel),
        1 => (0..8_usize).prop_map(Happening::Orphan),
        1 => (1..400_i64).prop_map(Happening::Time),
    ]
}

fn write(cluster: &mut Cluster, edit: &Edit) {
    match *edit {
        Edit::Scale(replicas) => cluster.edit_spec(&json!({"replicas": replicas})),
        Edit::Image(image) => cluster.set_image(image),
        Edit::Pause(paused) => cluster.edit_spec(&json!({"paused": paused})),
        Edit::Bounds(surge, unavailable) => cluster.edit_spec(&json!({"strategy": {
            "type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}})),
        Edit::Recreate => {
            cluster.edit_spec(&json!({"strategy": {"type": "Recreate", "rollingUpdate": null}}));
        }
        Edit::HistoryLimit(limit) => cluster.edit_spec(&json!({"revisionHistoryLimit": limit})),
    }
}

fn play(cluster: &mut Cluster, happening: &Happening) {
    let pod = |cluster: &Cluster, at: usize| {
        let pods = cluster.pods();
        (!pods.is_empty()).then(|| pods[at % pods.len()].metadata.name.clone())
    };
    let set = |cluster: &Cluster, at: usize| {
        let sets = cluster.sets();
        let set = sets.get(at % sets.len().max(1))?;
        Some(set.metadata.name.clone())
    };
    match happening {
        Happening::Edit(edit) => write(cluster, edit),
        Happening::Deployment(writes_max) => drop(cluster.look_at_deployment(*writes_max)),
        Happening::Meanwhile(writes, edit) => {
            cluster.look_at_deployment_during(*writes, |cluster| write(cluster, edit));
        }
        Happening::Set(at, writes_max) => {
            if let Some(name) = set(cluster, *at) {
                cluster.look_at_set(&name, *writes_max);
            }
        }
        Happening::Pod(at) => drop(pod(cluster, *at).map(|name| cluster.run_pod(&name))),
        Happening::Break(at) => drop(pod(cluster, *at).map(|name| cluster.break_pod(&name))),
        Happening::Fail(at) => drop(pod(cluster, *at).map(|name| cluster.fail_pod(&name))),
        Happening::Delete(at) => drop(pod(cluster, *at).map(|name| cluster.delete_pod(&name))),
        Happening::Relabel(at) => drop(pod(cluster, *at).map(|name| cluster.relabel_pod(&name))),
        Happening::Orphan(at) => drop(set(cluster, *at).map(|name| cluster.orphan_set(&name))),
        Happening::Time(seconds) => cluster.pass(*seconds),
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
        let (owned, strays): (Vec<_>, Vec<_>) = cluster
            .pods()
            .into_iter()
            .filter(|pod| pod.is_active())
            .partition(|pod| pod.metadata.controller().is_some());
        prop_assert_eq!(owned.len(), usize::try_from(replicas).expect("a size"));
        prop_assert_eq!(cluster.condition("Progressing"), "True/NewReplicaSetAvailable");
        let (sets, limit) = (cluster.sets(), deployment.spec.revision_history_limit.expect("given"));
        prop_assert!(sets.len() <= usize::try_from(limit).expect("a limit") + 1, "{} of {limit} + 1", sets.len());
        prop_assert!(sets.iter().all(|set| set.metadata.controller().is_some()), "an orphan");
        let has_owner = |pod: &Arc<Pod>| {
            let uid = &pod.metadata.controller().expect("owned").uid;
            sets.iter().any(|set| set.metadata.uid == *uid && set.spec.selector.matches(&pod.metadata.labels))
        };
        prop_assert!(owned.iter().all(has_owner), "a pod of nobody's");
        let is_wanted = |pod: &Arc<Pod>| sets.iter().any(|set| set.spec.selector.matches(&pod.metadata.labels));
        prop_assert!(!strays.iter().any(is_wanted), "an orphan");
        prop_assert!(cluster.plan().steps.is_empty() && cluster.look_again_at.is_none());
    }
}
