//! The ways of pods, as tables.

use serde_json::json;

use super::*;
use crate::records::{Ended, RunState};

const READY: Ground = Ground {
    has_sandbox: true,
    has_volumes: true,
    is_orphan: false,
    has_remains: true,
    is_told: false,
    has_failed: false,
    failure_grace: None,
    sandbox_not_before: None,
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("in range")
}

fn pod(policy: &str) -> Pod {
    Pod::from_document(
        &json!({"metadata": {"name": "p"}, "spec": {"restartPolicy": policy,
        "initContainers": [{"name": "i1"}, {"name": "i2"}], "containers": [{"name": "a"}, {"name": "b"}]}}),
    )
    .expect("a pod")
}

fn running() -> ContainerRecord {
    ContainerRecord {
        attempt: Some(0),
        state: RunState::Running { started_at: at(0) },
        in_sandbox: true,
        ..Default::default()
    }
}

fn exited(exit_code: i32) -> ContainerRecord {
    let mut record = running();
    record.exited(Ended {
        attempt: 0,
        exit_code,
        signal: None,
        reason: "",
        message: String::new(),
        started_at: at(0),
        finished_at: at(1),
    });
    record
}

fn records(entries: &[(&str, ContainerRecord)]) -> Records {
    entries
        .iter()
        .map(|(name, record)| ((*name).to_owned(), record.clone()))
        .collect()
}

fn shown(decision: &Decision) -> Vec<String> {
    let step = |step: &Step| match step {
        Step::Start { container, attempt } => format!("start {container} {attempt}"),
        Step::BackOff { container, wait, .. } => format!("wait {container} {}", wait.as_secs()),
        Step::Stop {
            container,
            grace,
            is_due: true,
        } => format!("stop {container} {}", grace.as_secs()),
        Step::Stop { container, grace, .. } => format!("stop {container} {} later", grace.as_secs()),
        Step::MakeSandbox => "sandbox".to_owned(),
        Step::StopSandbox => "stop sandbox".to_owned(),
        Step::Retire => "retire".to_owned(),
        Step::TakeDown => "take down".to_owned(),
    };
    decision.steps.iter().map(step).collect()
}

#[test]
fn a_pod_goes_from_sandbox_to_containers_in_order() {
    let none = Ground {
        has_sandbox: false,
        has_volumes: false,
        has_remains: false,
        ..READY
    };
    let dry = Ground {
        has_volumes: false,
        ..READY
    };
    let both = [("i1", exited(0)), ("i2", exited(0))];
    for (ground, entries, steps) in [
        (none, &[][..], &["sandbox"][..]),
        (dry, &[], &[]),
        (READY, &[], &["start i1 0"]),
        (READY, &[("i1", running())], &[]),
        (READY, &[("i1", exited(0))], &["start i2 0"]),
        (READY, &[("i1", exited(1))], &["start i1 1"]),
        (READY, &both, &["start a 0", "start b 0"]),
        (
            READY,
            &[("i1", exited(0)), ("i2", exited(0)), ("a", running())],
            &["start b 0"],
        ),
        // What an init container was is of no interest once a main container has started.
        (READY, &[("a", running()), ("b", running())], &[]),
    ] {
        let decision = decide(&pod("Always"), &records(entries), ground, at(1));
        assert_eq!(shown(&decision), steps, "{entries:?}");
    }
}

#[test]
fn a_container_waits_for_the_hook_of_the_one_before() {
    let pod = Pod::from_document(&json!({"metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "a"}, {"name": "b", "lifecycle": {"postStart": {"sleep": {"seconds": 1}}}}, {"name": "c"}]}}))
    .expect("a pod");
    let starting = || ContainerRecord {
        is_starting: true,
        ..running()
    };
    for (entries, steps) in [
        (&[][..], &["start a 0", "start b 0"][..]),
        (&[("a", running()), ("b", starting())], &[]),
        (&[("a", exited(1)), ("b", starting())], &["start a 1"]),
        (&[("a", running()), ("b", running())], &["start c 0"]),
        (
            &[("a", running()), ("b", exited(1)), ("c", running())],
            &["start b 1"],
        ),
    ] {
        let decision = decide(&pod, &records(entries), READY, at(1));
        assert_eq!(shown(&decision), steps, "{entries:?}");
    }
}

#[test]
fn restarts_follow_the_policy() {
    for (policy, code, steps) in [
        ("Always", 0, &["start a 1"][..]),
        ("Always", 1, &["start a 1"]),
        ("OnFailure", 0, &[]),
        ("OnFailure", 1, &["start a 1"]),
        ("Never", 1, &[]),
    ] {
        let world = records(&[("a", exited(code)), ("b", running())]);
        assert_eq!(
            shown(&decide(&pod(policy), &world, READY, at(1))),
            steps,
            "{policy} {code}"
        );
    }
    for (policy, codes, finished) in [
        ("Never", [0, 0], Some(true)),
        ("Never", [0, 1], Some(false)),
        ("OnFailure", [0, 0], Some(true)),
        ("OnFailure", [0, 1], None),
        ("Always", [0, 0], None),
    ] {
        let world = records(&[("a", exited(codes[0])), ("b", exited(codes[1]))]);
        let found = match phase_of_containers(&pod(policy), &world) {
            Progress::Finished { succeeded } => Some(succeeded),
            _ => None,
        };
        assert_eq!(found, finished, "{policy} {codes:?}");
    }
    let failed_init = records(&[("i1", exited(2))]);
    assert_eq!(
        phase_of_containers(&pod("Never"), &failed_init),
        Progress::Finished { succeeded: false }
    );
    assert_eq!(
        shown(&decide(&pod("Never"), &failed_init, READY, at(1))),
        ["stop sandbox"]
    );
}

#[test]
fn the_second_restart_waits_and_says_until_when() {
    let mut record = exited(1);
    record.started(1, at(2));
    record.exited(Ended {
        attempt: 0,
        exit_code: 1,
        signal: None,
        reason: "",
        message: String::new(),
        started_at: at(2),
        finished_at: at(3),
    });
    let decision = decide(
        &pod("Always"),
        &records(&[("a", record.clone()), ("b", running())]),
        READY,
        at(4),
    );
    assert_eq!(
        (shown(&decision), decision.look_again),
        (vec!["wait a 10".to_owned()], Some(at(13)))
    );
    let decision = decide(
        &pod("Always"),
        &records(&[("a", record), ("b", running())]),
        READY,
        at(13),
    );
    assert_eq!(shown(&decision), ["start a 2"]);
}

#[test]
fn a_deleted_pod_stops_within_what_is_left_of_its_grace() {
    let mut doomed = pod("Always");
    doomed.metadata.deletion_timestamp = Some("1970-01-01T00:00:40Z".into());
    doomed.metadata.deletion_grace_period_seconds = Some(30);
    let world = records(&[("a", running()), ("b", exited(0))]);
    assert_eq!(shown(&decide(&doomed, &world, READY, at(10))), ["stop a 30"]);
    assert_eq!(shown(&decide(&doomed, &world, READY, at(35))), ["stop a 6"]);
    assert_eq!(shown(&decide(&doomed, &world, READY, at(99))), ["stop a 0"]);
    assert_eq!(
        shown(&decide(&doomed, &records(&[("b", exited(0))]), READY, at(10))),
        ["take down"]
    );
    let orphan = Ground {
        is_orphan: true,
        ..READY
    };
    assert_eq!(
        shown(&decide(&pod("Always"), &world, orphan, at(10))),
        ["stop a 30"]
    );
}

#[test]
fn a_new_sandbox_begins_with_the_init_containers_again() {
    let elsewhere = |mut record: ContainerRecord| {
        record.in_sandbox = false;
        record
    };
    for (policy, entries, steps) in [
        (
            "Always",
            &[
                ("i1", elsewhere(exited(0))),
                ("i2", elsewhere(exited(0))),
                ("a", elsewhere(exited(137))),
            ][..],
            &["start i1 1"][..],
        ),
        (
            "OnFailure",
            &[
                ("i1", exited(0)),
                ("i2", elsewhere(exited(0))),
                ("a", elsewhere(exited(0))),
            ],
            &["start i2 1"],
        ),
        (
            "OnFailure",
            &[("i1", exited(0)), ("i2", exited(0)), ("a", elsewhere(exited(0)))],
            &["start b 0"],
        ),
        // What is over stays over.
        (
            "Never",
            &[
                ("i1", elsewhere(exited(0))),
                ("a", elsewhere(exited(137))),
                ("b", elsewhere(exited(0))),
            ],
            &["stop sandbox"],
        ),
        ("Never", &[("i1", elsewhere(exited(1)))], &["stop sandbox"]),
    ] {
        let decision = decide(&pod(policy), &records(entries), READY, at(5));
        assert_eq!(shown(&decision), steps, "{policy} {entries:?}");
    }
}

#[test]
fn a_finished_pod_goes_once_the_api_knows_its_end() {
    let world = records(&[("a", exited(0)), ("b", exited(1))]);
    for (has_sandbox, has_remains, is_told, steps) in [
        (true, true, true, &["stop sandbox"][..]),
        (false, true, false, &[]),
        (false, true, true, &["retire"]),
        (false, false, true, &[]),
    ] {
        let ground = Ground {
            has_sandbox,
            has_remains,
            is_told,
            ..READY
        };
        let decision = decide(&pod("Never"), &world, ground, at(5));
        assert_eq!(shown(&decision), steps, "{ground:?}");
    }
}

#[test]
fn a_pod_that_the_node_has_ended_stops_and_starts_nothing() {
    let failed = Ground {
        has_failed: true,
        ..READY
    };
    let down = Ground {
        has_sandbox: false,
        is_told: true,
        ..failed
    };
    let crashed = [
        ("i1", exited(0)),
        ("i2", exited(0)),
        ("a", exited(1)),
        ("b", running()),
    ];
    for (ground, entries, steps) in [
        (failed, &[("i1", running())][..], &["stop i1 30"][..]),
        (failed, &crashed, &["stop b 30"]),
        (failed, &crashed[..3], &["stop sandbox"]),
        (down, &crashed[..3], &["retire"]),
        (
            Ground {
                is_told: false,
                ..down
            },
            &[],
            &[],
        ),
        (
            Ground {
                has_remains: false,
                ..down
            },
            &[],
            &[],
        ),
    ] {
        let decision = decide(&pod("Always"), &records(entries), ground, at(5));
        assert_eq!(shown(&decision), steps, "{ground:?} {entries:?}");
    }
}

#[test]
fn what_keeps_failing_is_tried_at_its_time_only() {
    let ground = Ground {
        has_sandbox: false,
        sandbox_not_before: Some(at(10)),
        ..READY
    };
    let early = decide(&pod("Always"), &Records::new(), ground, at(9));
    assert_eq!((shown(&early), early.look_again), (vec![], Some(at(10))));
    assert_eq!(
        shown(&decide(&pod("Always"), &Records::new(), ground, at(10))),
        ["sandbox"]
    );

    let held = ContainerRecord {
        held_until: Some(at(10)),
        ..ContainerRecord::default()
    };
    let world = records(&[
        ("i1", exited(0)),
        ("i2", exited(0)),
        ("a", held),
        ("b", running()),
    ]);
    let early = decide(&pod("Always"), &world, READY, at(9));
    assert_eq!((shown(&early), early.look_again), (vec![], Some(at(10))));
    assert_eq!(
        shown(&decide(&pod("Always"), &world, READY, at(10))),
        ["start a 0"]
    );
}

#[test]
fn a_clock_that_was_set_back_holds_nobody_up() {
    let mut ended = exited(1);
    ended.not_before = Some(at(100_000));
    let world = records(&[("a", ended), ("b", running())]);
    assert_eq!(
        shown(&decide(&pod("Always"), &world, READY, at(50))),
        ["start a 1"]
    );
    let held = ContainerRecord {
        held_until: Some(at(100_000)),
        ..ContainerRecord::default()
    };
    let world = records(&[
        ("i1", exited(0)),
        ("i2", exited(0)),
        ("a", held),
        ("b", running()),
    ]);
    assert_eq!(
        shown(&decide(&pod("Always"), &world, READY, at(50))),
        ["start a 0"]
    );
    let ground = Ground {
        has_sandbox: false,
        sandbox_not_before: Some(at(100_000)),
        ..READY
    };
    assert_eq!(
        shown(&decide(&pod("Always"), &Records::new(), ground, at(50))),
        ["sandbox"]
    );
}

/// Sidecars around an init container.
fn pod_with_sidecars(policy: &str) -> Pod {
    Pod::from_document(&json!({"metadata": {"name": "p"}, "spec": {"restartPolicy": policy, "terminationGracePeriodSeconds": 20,
        "initContainers": [{"name": "s1", "restartPolicy": "Always"}, {"name": "i"}, {"name": "s2", "restartPolicy": "Always"}],
        "containers": [{"name": "a"}, {"name": "b"}]}}))
    .expect("a pod")
}

fn up() -> ContainerRecord {
    ContainerRecord {
        started_up: true,
        ..running()
    }
}

#[test]
fn sidecars_start_in_their_place_and_stay() {
    let starting = || ContainerRecord {
        is_starting: true,
        ..up()
    };
    for policy in ["Always", "OnFailure", "Never"] {
        for (entries, steps) in [
            (&[][..], &["start s1 0"][..]),
            // Neither its startup probe nor its hook is passed over.
            (&[("s1", running())], &[]),
            (&[("s1", starting())], &[]),
            (&[("s1", up())], &["start i 0"]),
            (&[("s1", up()), ("i", running())], &[]),
            // One that ends is started again, whatever the policy says and how it ended, and the others go on.
            (&[("s1", exited(0))], &["start s1 1"]),
            (&[("s1", exited(1)), ("i", running())], &["start s1 1"]),
            (
                &[("s1", exited(0)), ("i", exited(0))],
                &["start s1 1", "start s2 0"],
            ),
            (&[("s1", running()), ("i", exited(0)), ("s2", running())], &[]),
            (
                &[("s1", running()), ("i", exited(0)), ("s2", up())],
                &["start a 0", "start b 0"],
            ),
            (
                &[
                    ("s1", exited(1)),
                    ("i", exited(0)),
                    ("s2", exited(0)),
                    ("a", running()),
                    ("b", running()),
                ],
                &["start s1 1", "start s2 1"],
            ),
        ] {
            let decision = decide(&pod_with_sidecars(policy), &records(entries), READY, at(1));
            assert_eq!(shown(&decision), steps, "{policy} {entries:?}");
        }
    }
    // No main container runs: they wait for the last sidecar as at the beginning.
    let down = [
        ("s1", up()),
        ("i", exited(0)),
        ("s2", exited(1)),
        ("a", exited(1)),
        ("b", exited(1)),
    ];
    let decision = decide(&pod_with_sidecars("Always"), &records(&down), READY, at(1));
    assert_eq!(shown(&decision), ["start s2 1"]);
    // A new sandbox has nothing of them.
    let elsewhere = |record: ContainerRecord| ContainerRecord {
        in_sandbox: false,
        ..record
    };
    let anew = down.map(|(name, record)| (name, elsewhere(if name == "s1" { exited(137) } else { record })));
    let decision = decide(&pod_with_sidecars("Always"), &records(&anew), READY, at(1));
    assert_eq!(shown(&decision), ["start s1 1"]);
}

#[test]
fn sidecars_do_not_keep_a_pod_from_its_end() {
    let (up, done) = (up(), exited(0));
    for (policy, code, entries, steps) in [
        (
            "Never",
            0,
            [Some(&up), Some(&up)],
            &["stop s2 20", "stop s1 20 later"][..],
        ),
        ("Never", 1, [Some(&up), Some(&done)], &["stop s1 20"]),
        ("OnFailure", 0, [Some(&done), Some(&up)], &["stop s2 20"]),
        // Who ends by itself now is not started again.
        ("Never", 0, [Some(&done), Some(&done)], &["stop sandbox"]),
        ("OnFailure", 1, [Some(&up), Some(&up)], &["start a 1"]),
        ("Always", 0, [Some(&up), Some(&up)], &["start a 1"]),
    ] {
        let mut world = records(&[("i", exited(0)), ("a", exited(code)), ("b", exited(0))]);
        if policy == "Always" {
            world.insert("b".to_owned(), running());
        }
        for (name, record) in ["s1", "s2"].into_iter().zip(entries) {
            world.extend(record.map(|record| (name.to_owned(), record.clone())));
        }
        let decision = decide(&pod_with_sidecars(policy), &world, READY, at(1));
        assert_eq!(shown(&decision), steps, "{policy} {code}");
    }
    // A failed init container ends the pod, and the sidecar before it.
    let failed = records(&[("s1", up.clone()), ("i", exited(1))]);
    let decision = decide(&pod_with_sidecars("Never"), &failed, READY, at(1));
    assert_eq!(shown(&decision), ["stop s1 20"]);
}

#[test]
fn sidecars_go_last_and_in_reverse() {
    let mut doomed = pod_with_sidecars("Always");
    doomed.metadata.deletion_timestamp = Some("1970-01-01T00:00:40Z".into());
    doomed.metadata.deletion_grace_period_seconds = Some(30);
    for (names, steps) in [
        (
            &["s1", "s2", "a", "b"][..],
            &["stop a 30", "stop b 30", "stop s2 30 later", "stop s1 30 later"][..],
        ),
        (
            &["s1", "s2", "b"],
            &["stop b 30", "stop s2 30 later", "stop s1 30 later"],
        ),
        (&["s1", "s2"], &["stop s2 30", "stop s1 30 later"]),
        (&["s1"], &["stop s1 30"]),
        // Nobody waits for an init container.
        (&["s1", "i"], &["stop i 30", "stop s1 30"]),
        (&[], &["take down"]),
    ] {
        let world: Records = names.iter().map(|name| ((*name).to_owned(), up())).collect();
        assert_eq!(shown(&decide(&doomed, &world, READY, at(10))), steps, "{names:?}");
    }
}

fn pod_with_ephemeral(policy: &str) -> Pod {
    let mut pod = pod(policy);
    pod.spec.ephemeral_containers = ["e1", "e2"]
        .map(|name| Container {
            name: name.to_owned(),
            ..Container::default()
        })
        .into();
    pod
}

#[test]
fn ephemeral_containers_start_once_and_count_for_nothing() {
    let held = ContainerRecord {
        held_until: Some(at(5)),
        ..Default::default()
    };
    let elsewhere = ContainerRecord {
        in_sandbox: false,
        ..exited(137)
    };
    let up = [("a", running()), ("b", running())];
    for (entries, steps) in [
        // They do not wait for init containers, and nobody waits for them.
        (&[][..], &["start i1 0", "start e1 0", "start e2 0"][..]),
        (&[("i1", running()), ("e1", running())], &["start e2 0"]),
        (
            &[
                ("i1", exited(0)),
                ("i2", exited(0)),
                ("e1", exited(1)),
                ("e2", exited(0)),
            ],
            &["start a 0", "start b 0"],
        ),
        // Whatever it ended with and wherever, it is over.
        (
            &[
                ("a", running()),
                ("b", running()),
                ("e1", exited(1)),
                ("e2", elsewhere),
            ],
            &[],
        ),
        (
            &[("a", running()), ("b", running()), ("e1", held.clone())],
            &["start e2 0"],
        ),
    ] {
        for policy in ["Always", "Never"] {
            let decision = decide(&pod_with_ephemeral(policy), &records(entries), READY, at(2));
            assert_eq!(shown(&decision), steps, "{policy} {entries:?}");
        }
    }
    let waiting = [&up[..], &[("e1", held), ("e2", running())]].concat();
    let decision = decide(&pod_with_ephemeral("Always"), &records(&waiting), READY, at(2));
    assert_eq!(decision, Decision::look_again_at(at(5)));
}

#[test]
fn ephemeral_containers_end_with_their_pod() {
    // The end of the main containers is that of the pod, whoever still looks at it.
    let done = [("a", exited(0)), ("b", exited(0)), ("e1", running())];
    let decision = decide(&pod_with_ephemeral("Never"), &records(&done), READY, at(1));
    assert_eq!(shown(&decision), ["stop e1 30"]);
    let mut doomed = pod_with_ephemeral("Always");
    doomed.metadata.deletion_timestamp = Some("1970-01-01T00:00:40Z".into());
    doomed.metadata.deletion_grace_period_seconds = Some(30);
    let both = records(&[("a", running()), ("e2", running())]);
    assert_eq!(
        shown(&decide(&doomed, &both, READY, at(10))),
        ["stop a 30", "stop e2 30"]
    );
    // One that has not begun does not begin any more.
    assert_eq!(
        shown(&decide(&doomed, &records(&[]), READY, at(10))),
        ["take down"]
    );
}
