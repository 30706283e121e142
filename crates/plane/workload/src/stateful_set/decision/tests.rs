//! Pods are written `<ordinal><revision><progress>`: `2bW` is ordinal 2 of revision `b`, waiting. Progress is `F`inished,
//! `W`aiting, `R`eady or `A`vailable; `-` after it: terminating; `?`: without its labels.
//!
//! Actions are written `+2a` (create from the current revision), `+2b` (from the update revision), `-2` and `~2` (label).

use super::*;

fn members(pods: &str) -> Vec<Member<'_>> {
    pods.split_whitespace().map(member).collect()
}

fn member(text: &str) -> Member<'_> {
    let at = text
        .find(|char: char| char.is_ascii_lowercase())
        .expect("a revision");
    let state = &text[at + 1..];
    Member {
        ordinal: text[..at].parse().expect("an ordinal"),
        revision: &text[at..=at],
        progress: match &state[..1] {
            "F" => Progress::Finished,
            "W" => Progress::Waiting,
            "R" => Progress::Ready,
            _ => Progress::Available,
        },
        is_terminating: state.contains('-'),
        is_labelled: !state.contains('?'),
    }
}

/// `3 ordered p0` with words left out being `start 0`, `ordered` and `p0`.
fn desired(spec: &str) -> Desired<'static> {
    let mut desired = Desired {
        replicas: 0,
        start: 0,
        order: Order::OrderedReady,
        update: Update::Rolling { partition: 0 },
        is_deleting: false,
        current_revision: "a",
        update_revision: "a",
    };
    for word in spec.split_whitespace() {
        let number = |text: &str| text.parse::<i64>().expect("a number");
        match word {
            "parallel" => desired.order = Order::Parallel,
            "ondelete" => desired.update = Update::OnDelete,
            "deleting" => desired.is_deleting = true,
            "updating" => desired.update_revision = "b",
            _ => match word.split_at(1) {
                ("p", partition) => {
                    desired.update = Update::Rolling {
                        partition: number(partition),
                    }
                }
                ("s", start) => desired.start = number(start),
                _ => desired.replicas = number(word),
            },
        }
    }
    desired
}

fn check(spec: &str, pods: &str, expected: &str) {
    let shown: Vec<_> = decide(&desired(spec), &members(pods))
        .actions
        .into_iter()
        .map(|action| match action {
            Action::Create {
                ordinal,
                revision: Revision::Current,
            } => format!("+{ordinal}a"),
            Action::Create {
                ordinal,
                revision: Revision::Update,
            } => format!("+{ordinal}b"),
            Action::Delete { ordinal } => format!("-{ordinal}"),
            Action::Label { ordinal } => format!("~{ordinal}"),
        })
        .collect();
    assert_eq!(shown.join(" "), expected, "{spec} with {pods:?}");
}

#[test]
fn an_ordered_set_starts_pods_one_by_one() {
    check("3", "", "+0b");
    check("3", "0aW", "");
    check("3", "0aR", "");
    check("3", "0aA", "+1b");
    check("3", "0aA 1aA", "+2b");
    check("3", "0aA 1aA 2aA", "");
    check("0", "", "");
    check("3", "0aA 2aA", "+1b");
    check("3", "1aA 2aA", "+0b");
    check("3", "0aA- 1aA", "");
    check("3", "0aA 1aA-", "");
    check("2 s5", "", "+5b");
    check("2 s5", "5aA", "+6b");
}

#[test]
fn a_parallel_set_starts_all_at_once() {
    check("3 parallel", "", "+0b +1b +2b");
    check("3 parallel", "1aW", "+0b +2b");
    check("3 parallel", "0aA- 1aW 2aR", "");
    check("2 s7 parallel", "", "+7b +8b");
}

#[test]
fn finished_pods_are_replaced_however_they_ended() {
    check("3", "0aA 1aF 2aA", "-1");
    check("3", "0aA 1aF- 2aA", "");
    check("3", "0aF 1aF", "-0");
    check("3 parallel", "0aF 1aF", "-0 -1 +2b");
    check("3 parallel updating", "0aA 1aA 2aF", "-2");
    check("3 ondelete updating", "0aA 1aF 2aA", "-1");
}

#[test]
fn an_ordered_set_shrinks_from_the_top_one_by_one() {
    check("1", "0aA 1aA 2aA", "-2");
    check("1", "0aA 1aA 2aA-", "");
    check("1", "0aA 1aA", "-1");
    check("0", "0aA", "-0");
    check("1", "0aW 1aA 2aA", "");
    check("1", "0aA 1aA 2aW", "-2");
    check("1", "0aA 1aA 2aR", "-2");
    check("1", "0aA 1aW 2aA", "-2");
    check("1", "0aA 1aW 2aW", "");
    check("1", "0aA 1aF 2aA", "-2");
    check("1", "0aA 1aF 2aF", "-2");
    check("1", "0aA 1aF 2aW", "-2");
    check("1", "0aA 1aW 2aF", "-2");
    check("2 s2", "0aA 1aA 2aA 3aA", "-1");
    check("2 s2", "0aA 1aA 2aA", "+3b");
}

#[test]
fn a_parallel_set_shrinks_at_once() {
    check("1 parallel", "0aA 1aA 2aW 3aA-", "-2 -1");
    check("1 parallel", "0aW 1aA", "-1");
    check("0 parallel", "0aA 1aA", "-1 -0");
    check("2 s1 parallel", "0aA 1aA", "+2b -0");
}

#[test]
fn a_rolling_update_goes_from_the_top_and_waits_for_each() {
    for order in ["", " parallel"] {
        let spec = format!("3 updating{order}");
        check(&spec, "0aA 1aA 2aA", "-2");
        check(&spec, "0aA 1aA 2aA-", "");
        check(&spec, "0aA 1aA", "+2b");
        check(&spec, "0aA 1aA 2bW", "");
        check(&spec, "0aA 1aA 2bR", "");
        check(&spec, "0aA 1aA 2bA", "-1");
        check(&spec, "0aA 1bA 2bA", "-0");
        check(&spec, "0bA 1bA 2bA", "");
        check(&spec, "0cA 1bA 2bA", "-0");
    }
}

#[test]
fn only_an_ordered_update_waits_for_pods_that_are_not_its_next_one() {
    check("3 updating", "0aW 1aA 2aA", "");
    check("3 parallel updating", "0aW 1aA 2aA", "-2");
    check("3 parallel updating", "0aA 1aA- 2bA", "");
    check("3 parallel updating", "0aA 1aF 2bA", "-1");
}

#[test]
fn a_partition_keeps_what_is_below_it() {
    check("3 p1 updating", "0aA 1aA 2aA", "-2");
    check("3 p1 updating", "0aA 1aA 2bA", "-1");
    check("3 p1 updating", "0aA 1bA 2bA", "");
    check("3 p3 updating", "0aA 1aA 2aA", "");
    check("3 p9 updating", "0aA 1aA 2aA", "");
    check("3 p2 updating", "0aA", "+1a");
    check("3 p2 updating", "0aA 1aA", "+2b");
    check("3 p2 parallel updating", "", "+0a +1a +2b");
    check("2 s3 p1 updating", "3aA 4aA", "-4");
    check("2 s3 p1 updating", "", "+3a");
    check("2 s3 p1 updating", "3aA", "+4b");
    check("3 p1 updating", "0bA 1bA 2bA", "");
}

#[test]
fn on_delete_waits_for_somebody_to_delete() {
    check("3 ondelete updating", "0aA 1aA 2aA", "");
    check("3 ondelete updating", "0aA 2aA", "+1b");
    check("1 ondelete updating", "0aA 1aA", "-1");
}

#[test]
fn scaling_goes_before_updating() {
    check("3 updating", "0aA 1aA", "+2b");
    check("2 updating", "0aA 1aA 2aA", "-2");
    check("2 updating", "0aA 1aA 2aA-", "");
    check("2 parallel updating", "0aA 1aA 2aA", "-2 -1");
}

#[test]
fn a_broken_ordered_rollout_stays_broken_until_the_pod_is_deleted() {
    // Revision b is bad, and the template has been put back to a.
    check("3", "0aA 1aA 2bW", "");
    check("3", "0aA 1aA 2bW-", "");
    check("3", "0aA 1aA", "+2b");
    // A parallel set recovers by itself.
    check("3 parallel", "0aA 1aA 2bW", "-2");
}

#[test]
fn lost_labels_come_back() {
    check("2", "0aA? 1aA", "~0");
    check("2", "0aA?", "~0 +1b");
    check("2", "0aW? 1aA", "");
    check("2 parallel", "0aW? 1aA?-", "~0");
}

#[test]
fn a_set_that_is_deleted_only_counts() {
    check("3 deleting", "", "");
    check("3 deleting updating", "0aF 1aA 4aA", "");
}

#[test]
fn a_huge_wish_is_fulfilled_in_portions() {
    let decision = decide(&desired("2147483647 parallel updating"), &[]);
    assert_eq!(decision.actions.len(), ACTIONS_MAX);
    let pods: Vec<_> = (0..2 * i64::try_from(ACTIONS_MAX).expect("small"))
        .map(|ordinal| Member {
            ordinal,
            ..member("0aA")
        })
        .collect();
    assert_eq!(decide(&desired("0 parallel"), &pods).actions.len(), ACTIONS_MAX);
    assert_eq!(decide(&desired("2147483647"), &[]).actions.len(), 1);
}

#[test]
fn the_status_counts_what_is() {
    for (spec, pods, counts, is_complete) in [
        ("3", "", [0, 0, 0, 0, 0], false),
        ("0", "", [0, 0, 0, 0, 0], true),
        ("3 updating", "0aA 1aR 2aW", [3, 2, 1, 3, 0], false),
        ("3 updating", "0aA 1bA- 2bW", [3, 2, 2, 1, 1], false),
        ("3 updating", "0aF 1cA 4bA", [3, 2, 2, 1, 1], false),
        ("3 updating", "0bA 1bA 2bR", [3, 3, 2, 3, 3], true),
        ("3 ondelete updating", "0bA 1bA 2bA", [3, 3, 3, 0, 3], false),
        ("2 updating", "0bA 1bA 2bA", [3, 3, 3, 0, 3], false),
        ("3 p1 updating", "0aA 1bA 2bA", [3, 3, 3, 1, 2], false),
        ("2 deleting", "0aA 1aA", [2, 2, 2, 2, 2], true),
    ] {
        let decision = decide(&desired(spec), &members(pods));
        let found = decision.counts;
        assert_eq!(
            (
                [
                    found.replicas,
                    found.ready,
                    found.available,
                    found.current,
                    found.updated
                ],
                decision.is_complete
            ),
            (counts, is_complete),
            "{spec} with {pods:?}"
        );
    }
}
