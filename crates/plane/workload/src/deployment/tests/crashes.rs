//! The controllers die between any two of their writes: those that come after them arrive where they would have arrived.

use serde_json::{Value, json};

use super::simulator::{BAD, Cluster};

/// Rollouts, a stuck one and its rollback, sizes, both strategies, less history.
fn story() -> Vec<Value> {
    let image = |image: &str| json!({"template": {"spec": {"image": image}}});
    let one_by_one = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    let mut recreate = image("v3");
    recreate["strategy"] = json!({"type": "Recreate", "rollingUpdate": null});
    let mut rollback = image("v1");
    rollback["strategy"] = one_by_one;
    vec![
        image("v2"),
        json!({"replicas": 5}),
        image(BAD),
        json!({"replicas": 4}),
        image("v2"),
        recreate,
        json!({"replicas": 2, "revisionHistoryLimit": 1}),
        rollback,
    ]
}

/// What can be seen of a deployment at rest, but for names and times.
fn shape(cluster: &Cluster) -> Value {
    let revision = "deployment.kubernetes.io/revision";
    let sets = cluster.sets();
    let set = |image| {
        let set = cluster.set_of(image)?;
        let revision = set.metadata.annotation(revision);
        Some(json!([
            set.spec.replicas,
            set.status.available_replicas,
            revision
        ]))
    };
    let by_image = ["v1", "v2", "v3", BAD].map(set);
    let status = cluster.status();
    json!({
        "sets": by_image,
        "number of sets": sets.len(),
        "pods": cluster.pods().len(),
        "revision": cluster.deployment().metadata.annotation(revision),
        "status": [status.replicas, status.updated_replicas, status.available_replicas, status.unavailable_replicas],
        "progress": cluster.condition("Progressing"),
        "available": cluster.condition("Available"),
    })
}

/// Plays the story as it is, and each of its writes once more with a death before it. Then `check` sees the dying cluster,
/// the edit that comes next, and how the cluster settled undisturbed.
fn die_everywhere(check: impl Fn(Cluster, Option<&Value>, &Cluster)) {
    let mut cluster = Cluster::rolled_out(&json!({}));
    let story = story();
    for (at, edit) in story.iter().enumerate() {
        cluster.edit_spec(edit);
        let mut undisturbed = cluster.clone();
        undisturbed.settle();
        assert!(
            undisturbed.writes > cluster.writes + 3,
            "{edit} is hardly worth dying for"
        );
        for writes in cluster.writes..undisturbed.writes {
            let mut dying = cluster.clone();
            dying.die_after = Some(writes);
            check(dying, story.get(at + 1), &undisturbed);
        }
        cluster = undisturbed;
    }
}

#[test]
fn whoever_dies_between_two_writes_is_replaced_without_a_trace() {
    die_everywhere(|mut dying, _, undisturbed| {
        let died_after = dying.die_after.expect("it is to die");
        dying.settle();
        assert_eq!(dying.die_after, None, "it dies");
        assert_eq!(
            shape(&dying),
            shape(undisturbed),
            "died after {died_after} writes"
        );
    });
}

#[test]
fn an_edit_right_after_a_death_is_what_comes_true() {
    die_everywhere(|mut dying, next, _| {
        let died_after = dying.die_after.expect("it is to die");
        let Some(next) = next else { return };
        dying.live_until_death();
        dying.edit_spec(next);
        if dying.image() == BAD {
            dying.set_image("v4");
        }
        dying.settle();
        let (replicas, status) = (dying.deployment().spec.replicas, dying.status());
        let counts = [
            status.replicas,
            status.updated_replicas,
            status.available_replicas,
        ];
        assert_eq!(counts, [replicas; 3], "died after {died_after} writes");
        assert_eq!(dying.condition("Progressing"), "True/NewReplicaSetAvailable");
        assert_eq!(dying.size_of(dying.image()), replicas);
        assert_eq!(dying.pods().len(), usize::try_from(replicas).expect("a size"));
    });
}
