//! Nodes are written `<name>:<pods>`, with `!` before a name for one that keeps its pods but gets none, `x` for one that
//! shall have none and `?` for one that is gone. Pods are `o`ld or `n`ew, then `F`ailed, `S`ucceeded, `W`aiting, `R`eady or
//! `A`vailable; `-` after it: terminating; `~`: not bound. A pod is named by its node and place, oldest first: `b1` is the
//! second of node `b`.
//!
//! Decisions are written `+a` (a pod for node `a`) and `-b1`.

use serde_json::{Value, json};

use super::*;

struct Named {
    node: String,
    fit: Fit,
    pods: Vec<(String, String)>,
}

fn named(nodes: &str) -> Vec<Named> {
    let node = |text: &str| {
        let (name, pods) = text.split_once(':').expect("name:pods");
        let (fit, name) = match name.split_at(1) {
            ("!", name) => (Fit::Stays, name),
            ("x", name) if !name.is_empty() => (Fit::Leaves, name),
            ("?", name) => (Fit::Gone, name),
            _ => (Fit::Runs, name),
        };
        let pods = pods.split(',').filter(|pod| !pod.is_empty()).enumerate();
        Named {
            node: name.to_owned(),
            fit,
            pods: pods
                .map(|(at, pod)| (format!("{name}{at}"), pod.to_owned()))
                .collect(),
        }
    };
    nodes.split_whitespace().map(node).collect()
}

fn pod<'a>(place: usize, name: &'a str, text: &str) -> DaemonPod<'a> {
    let created = 1_000_000 + i64::try_from(place).expect("few pods");
    DaemonPod {
        name,
        created: Some(Timestamp::from_second(created).expect("in range")),
        is_bound: !text.contains('~'),
        progress: match &text[1..2] {
            "F" => Progress::Failed,
            "S" => Progress::Succeeded,
            "W" => Progress::Waiting,
            "R" => Progress::Ready,
            _ => Progress::Available,
        },
        is_terminating: text.contains('-'),
        is_updated: text.starts_with('n'),
    }
}

fn share(value: Value) -> IntOrPercent {
    serde_json::from_value(value).expect("a share")
}

fn in_place(max_unavailable: Value) -> Update {
    Update::Rolling {
        max_unavailable: share(max_unavailable),
        max_surge: share(json!(0)),
    }
}

fn surge(max_surge: Value) -> Update {
    Update::Rolling {
        max_unavailable: share(json!(0)),
        max_surge: share(max_surge),
    }
}

fn decided(update: Update, nodes: &str, held: &str) -> (String, Counts, Option<Duration>) {
    let named = named(nodes);
    let states: Vec<_> = named
        .iter()
        .map(|node| NodeState {
            name: &node.node,
            fit: node.fit,
            pods: node
                .pods
                .iter()
                .enumerate()
                .map(|(at, (name, text))| pod(at, name, text))
                .collect(),
        })
        .collect();
    let delay = |node: &str| held.contains(node).then_some(Duration::from_secs(8));
    let decision = decide(update, &states, delay);
    let create = decision.create.iter().map(|node| format!("+{node}"));
    let delete = decision.delete.iter().map(|pod| format!("-{pod}"));
    (
        create.chain(delete).collect::<Vec<_>>().join(" "),
        decision.counts,
        decision.again,
    )
}

fn check(update: Update, nodes: &str, expected: &str) {
    assert_eq!(decided(update, nodes, "").0, expected, "{nodes:?}, {update:?}");
}

#[test]
fn every_eligible_node_gets_one_pod_and_no_other_keeps_one() {
    for update in [Update::OnDelete, in_place(json!(1)), surge(json!(1))] {
        check(update, "a: b:nA c:", "+a +c");
        check(update, "!a: xb: ?c:", "");
        check(update, "!a:nA xb:nA,nW ?c:nA", "-b0 -b1");
        check(update, "xa:nA- xb:nF", "-b0");
        check(update, "?a:nW~,nA,nW~-", "-a0");
        check(update, "", "");
    }
    check(Update::OnDelete, "a:oA b:oA-", "");
    check(in_place(json!(1)), "a:nA-", "");
    check(surge(json!(1)), "a:nA-", "+a");
    check(surge(json!(1)), "!a:nA-", "");
}

#[test]
fn excess_pods_go_and_the_bound_and_oldest_stays() {
    check(in_place(json!(1)), "a:nW,nA", "-a1");
    check(in_place(json!(1)), "a:nW~,nA,oA", "-a2 -a0");
    check(in_place(json!(1)), "!a:nA,nA", "-a1");
    check(surge(json!(1)), "a:nA,nA", "-a1");
    check(surge(json!(1)), "a:oA,nW,oA,nW", "-a2 -a3");
}

#[test]
fn pods_that_ended_are_replaced_and_failed_ones_not_too_often() {
    for update in [Update::OnDelete, in_place(json!(1))] {
        check(update, "a:nF b:nS c:nA", "-a0 -b0");
        check(update, "a:nF,nA", "-a0");
        check(update, "!a:nF", "-a0");
    }
    check(surge(json!(1)), "a:nF", "+a -a0");
    let (decision, _, again) = decided(in_place(json!(1)), "a:nF b:nS", "a");
    assert_eq!((decision.as_str(), again), ("-b0", Some(Duration::from_secs(8))));
    // A failed pod that is left alone still takes its node's place.
    assert_eq!(decided(in_place(json!(1)), "a:oF b:oA", "a").0, "-a0");
    let named = named("a:nF b:nS");
    let states = [0, 1].map(|at| NodeState {
        name: &named[at].node,
        fit: Fit::Runs,
        pods: vec![pod(0, &named[at].pods[0].0, &named[at].pods[0].1)],
    });
    let decision = decide(Update::OnDelete, &states, |_| None);
    assert_eq!(decision.failed, [("a", "a0")]);
    assert_eq!(decision.succeeded, [("b", "b0")]);
}

#[test]
fn on_delete_replaces_nothing_by_itself() {
    check(Update::OnDelete, "a:oA b:oW c:nA", "");
}

#[test]
fn an_update_in_place_leaves_enough_nodes_available() {
    check(in_place(json!(1)), "a:oA b:oA c:oA", "-a0");
    check(in_place(json!(2)), "a:oA b:oA c:oA", "-a0 -b0");
    check(in_place(json!("50%")), "a:oA b:oA c:oA", "-a0 -b0");
    check(in_place(json!("10%")), "a:oA b:oA c:oA", "-a0");
    check(in_place(json!("100%")), "a:oA b:oA", "-a0 -b0");
    check(in_place(json!(0)), "a:oA b:oA", "-a0");
    check(in_place(json!(1)), "a:nW b:oA c:oA", "");
    check(in_place(json!(1)), "a:nR b:oA", "");
    check(in_place(json!(1)), "a:oA- b:oA", "");
    check(in_place(json!(1)), "a:nA b:oA c:oA", "-b0");
    check(in_place(json!(2)), "a:nW b:oA c:oA", "-b0");
    check(in_place(json!(1)), "a:nA b:nA", "");
    // What is not available anyway does not count: it goes at once.
    check(in_place(json!(1)), "a:oW b:oA c:oR", "-a0 -c0");
    check(in_place(json!(3)), "a:oW b:oA c:oA", "-a0 -b0 -c0");
    // A node without its pod counts, and gets it first.
    check(in_place(json!(1)), "a: b:oA", "+a");
    // A node that only keeps its pod takes part.
    check(in_place(json!(1)), "!a:oA", "-a0");
    check(in_place(json!("50%")), "!a:oA", "");
    check(in_place(json!(1)), "!a:oA b:nA", "-a0");
}

#[test]
fn an_update_with_a_surge_starts_the_new_pod_first() {
    check(surge(json!(1)), "a:oA b:oA", "+a");
    check(surge(json!(2)), "a:oA b:oA c:oA", "+a +b");
    check(surge(json!("34%")), "a:oA b:oA c:oA", "+a +b");
    check(surge(json!(1)), "a:oA,nW b:oA", "");
    check(surge(json!(1)), "a:oA,nR b:oA", "");
    check(surge(json!(1)), "a:oA,nA b:oA", "-a0");
    check(surge(json!(1)), "a:nA b:oA", "+b");
    check(surge(json!(1)), "a:nA b:nA", "");
    // An old pod that is not ready is nothing to keep.
    check(surge(json!(1)), "a:oW b:oW c:oA", "+a +b +c");
    check(surge(json!(1)), "a:oW,nW", "-a0");
    check(surge(json!(1)), "a:oR,nW", "");
    check(surge(json!(1)), "a:oR b:oA,nW", "+a");
}

#[test]
fn a_surging_set_leaves_a_node_only_when_others_do_its_work() {
    check(surge(json!(1)), "!a:oA b:nW", "");
    check(surge(json!(1)), "!a:oA b:nA", "-a0");
    check(surge(json!(1)), "!a:oW b:nW", "-a0");
}

#[test]
fn the_status_counts_nodes() {
    for (nodes, counts) in [
        ("", [0, 0, 0, 0, 0, 0]),
        ("a: b:nA c:oR d:nW", [4, 3, 0, 2, 1, 2]),
        ("!a:nA xb:oA xc: ?d:nA", [0, 0, 2, 0, 0, 0]),
        // The first pod of a node speaks for it.
        ("a:oA,nW b:nW~,oA", [2, 2, 0, 2, 2, 0]),
        ("a:nA-", [1, 1, 0, 1, 1, 1]),
    ] {
        let found = decided(Update::OnDelete, nodes, "").1;
        assert_eq!(
            [
                found.desired,
                found.current,
                found.misscheduled,
                found.ready,
                found.available,
                found.updated
            ],
            counts,
            "{nodes:?}"
        );
    }
}

#[test]
fn thousands_of_nodes_get_their_pods_in_portions() {
    let names: Vec<_> = (0..1000).map(|at| format!("node-{at}")).collect();
    let states: Vec<_> = names
        .iter()
        .map(|name| NodeState {
            name,
            fit: Fit::Runs,
            pods: Vec::new(),
        })
        .collect();
    assert_eq!(
        decide(Update::OnDelete, &states, |_| None).create.len(),
        BURST_MAX
    );
}
