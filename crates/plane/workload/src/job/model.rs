//! Random lives of Jobs: whatever pods, users and the controller's own deaths do, nothing is lost or counted twice, and
//! every Job comes to its end. The invariants are in the simulation.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    own_pod::TRACKING_FINALIZER,
    simulation::{Reconciled, Simulation},
};

#[derive(Debug, Clone)]
enum Event {
    /// The controller looks, and dies after so many writes.
    Look(usize),
    LookToTheEnd,
    Run(usize),
    End(usize, i32),
    Delete(usize),
    Pass(i64),
    Parallelism(i32),
    Suspend(bool),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        3 => (0_usize..6).prop_map(Event::Look),
        3 => Just(Event::LookToTheEnd),
        2 => (0_usize..8).prop_map(Event::Run),
        3 => (0_usize..8, prop_oneof![Just(0), Just(1), Just(42)]).prop_map(|(pod, code)| Event::End(pod, code)),
        1 => (0_usize..8).prop_map(Event::Delete),
        2 => (1_i64..400).prop_map(Event::Pass),
        1 => (0_i32..4).prop_map(Event::Parallelism),
        1 => any::<bool>().prop_map(Event::Suspend),
    ]
}

fn spec() -> impl Strategy<Value = Value> {
    let policy = prop_oneof![
        3 => Just(json!({})),
        1 => Just(json!({"podFailurePolicy": {"rules": [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [42]}}]},
            "podReplacementPolicy": "Failed"})),
        1 => Just(json!({"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]},
            "podReplacementPolicy": "Failed"})),
        1 => Just(json!({"podReplacementPolicy": "Failed"})),
        1 => Just(json!({"activeDeadlineSeconds": 900})),
    ];
    let mode = prop_oneof![
        2 => (1_i32..5).prop_map(|completions| json!({"completions": completions})),
        1 => Just(json!({})),
        1 => (1_i32..5).prop_map(|completions| json!({"completions": completions, "completionMode": "Indexed"})),
        2 => (1_i32..5, 0_i32..3).prop_map(|(completions, limit)| json!({"completions": completions, "completionMode": "Indexed",
            "backoffLimitPerIndex": limit, "backoffLimit": i32::MAX})),
        1 => (2_i32..5).prop_map(|completions| json!({"completions": completions, "completionMode": "Indexed",
            "successPolicy": {"rules": [{"succeededIndexes": "0"}]}})),
    ];
    (policy, mode, 1_i32..4, 0_i32..5).prop_map(|(policy, mode, parallelism, limit)| {
        let mut spec = json!({"parallelism": parallelism, "backoffLimit": limit});
        for part in [policy, mode] {
            let fields = part.as_object().expect("an object").clone();
            spec.as_object_mut().expect("an object").extend(fields);
        }
        spec
    })
}

fn happen(simulation: &mut Simulation, event: Event) {
    let pods = simulation.pods.len();
    let some = |pod: usize| (pods > 0).then(|| pod % pods.max(1));
    match event {
        Event::Look(writes) => drop(simulation.reconcile(writes)),
        Event::LookToTheEnd => drop(simulation.reconcile(usize::MAX)),
        Event::Run(pod) => some(pod).into_iter().for_each(|pod| simulation.run(pod)),
        Event::End(pod, code) => some(pod).into_iter().for_each(|pod| simulation.end(pod, code)),
        Event::Delete(pod) => some(pod).into_iter().for_each(|pod| simulation.delete(pod)),
        Event::Pass(seconds) => simulation.pass(seconds),
        Event::Parallelism(parallelism) => simulation.edit(json!({"parallelism": parallelism})),
        Event::Suspend(suspend) => simulation.edit(json!({"suspend": suspend})),
    }
}

/// From now on everything goes well.
fn bring_to_its_end(simulation: &mut Simulation) {
    simulation.edit(json!({"suspend": false, "parallelism": 2}));
    for _ in 0..60 {
        assert_eq!(simulation.reconcile(usize::MAX), Reconciled::Settled);
        if simulation.view().is_finished() {
            return;
        }
        for pod in (0..simulation.pods.len()).rev() {
            simulation.end(pod, 0);
        }
        // Waiting is allowed only when something wakes the controller.
        if simulation.reconcile(0) == Reconciled::Settled && !simulation.view().is_finished() {
            let at = simulation
                .again_at
                .expect("a Job that is not finished waits for something");
            simulation.now = simulation.now.max(at);
        }
    }
    panic!("the Job never ends: {:#}", simulation.job);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn nothing_is_lost_or_counted_twice_and_every_job_ends(
        spec in spec(),
        events in proptest::collection::vec(event(), 0..60),
    ) {
        let mut simulation = Simulation::new(spec);
        for event in events {
            happen(&mut simulation, event);
        }
        bring_to_its_end(&mut simulation);
        let ended = simulation.view();
        let held = simulation.pods.iter().filter(|pod| pod["metadata"]["finalizers"].to_string().contains(TRACKING_FINALIZER));
        prop_assert_eq!(held.count(), 0, "no pod is held any more");
        prop_assert!(ended.status.uncounted_terminated_pods.is_empty());
        prop_assert_eq!((ended.status.active, ended.status.terminating), (0, Some(0)));
        let is_complete = ended.status.true_condition("Complete").is_some();
        prop_assert_eq!(is_complete, ended.status.completion_time.is_some());
        if is_complete && ended.spec.success_policy.is_none() {
            prop_assert!(ended.status.succeeded >= ended.spec.completions.unwrap_or(1));
        }
        // The end is final: a user who raises limits does not wake it.
        simulation.edit(json!({"parallelism": 9, "backoffLimit": 99}));
        simulation.pass(100_000);
        simulation.settle();
        prop_assert_eq!(simulation.view().status, ended.status);
        prop_assert_eq!(simulation.active(), 0);
    }
}
