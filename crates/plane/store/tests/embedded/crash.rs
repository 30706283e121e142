//! The power goes at every single operation on the disk.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::future::join_all;
use hotmap_store::{Committed, Embedded, Expect, Op, Range, Revision, Store, StoreError, Write};

use crate::{
    clock,
    disk::{Disk, Fault, Keep, Random},
    history, open,
};

const STEPS: usize = 12;
const KEYS: usize = 7;
const WRITES_PER_STEP: usize = 3;

/// A key and what it holds after the write.
type Outcome = (String, Option<Bytes>);

/// What the callers of a store know when the power goes.
#[derive(Default)]
struct Known {
    answered: BTreeMap<Revision, Outcome>,
    unanswered: Vec<Outcome>,
}

#[tokio::test]
async fn all_answered_writes_survive_a_power_cut_at_every_operation() {
    let mut cut = 0;
    loop {
        let disk = Disk::new();
        disk.fail(Fault::PowerCutAt(cut));
        let known = match Embedded::open_with(disk.clone(), clock()) {
            Ok(store) => work(&store).await,
            Err(_) => Known::default(),
        };
        let survived = disk.operations() <= cut;
        let seed = cut as u64 * 7919 + 1;
        for keep in [
            Keep::Nothing,
            Keep::Everything,
            Keep::Prefix(seed),
            Keep::Subset(seed),
            Keep::Sectors(seed),
        ] {
            check(disk.after_power_cut(keep), &known, cut, keep).await;
        }
        if survived {
            assert_eq!(
                known.answered.len(),
                STEPS * WRITES_PER_STEP,
                "the last run met no cut"
            );
            return;
        }
        cut += 1;
    }
}

/// Writes until something fails. The same every time.
async fn work(store: &Embedded) -> Known {
    let mut known = Known::default();
    let mut random = Random(99);
    let mut current: BTreeMap<String, Revision> = BTreeMap::new();
    for _ in 0..STEPS {
        let first = random.below(KEYS);
        let (mut outcomes, mut writes) = (Vec::new(), Vec::new());
        for n in 0..WRITES_PER_STEP {
            let key = format!("/k/{}", (first + n) % KEYS);
            let value = Bytes::from(vec![random.below(256) as u8; random.below(6_000)]);
            let seen = current.get(&key).copied().unwrap_or_default();
            let delete = !seen.is_zero() && random.below(3) == 0;
            let op = if delete {
                Op::Delete
            } else {
                Op::Put {
                    value: value.clone(),
                    ttl: None,
                }
            };
            writes.push(Write {
                key: key.as_str().into(),
                expect: Expect::At(seen),
                op,
                memo: None,
            });
            outcomes.push((key, (!delete).then_some(value)));
        }
        let answers: Vec<Result<Committed, StoreError>> =
            join_all(writes.into_iter().map(|write| store.commit(write))).await;
        let mut failed = false;
        for (outcome, answer) in outcomes.into_iter().zip(answers) {
            match answer {
                Ok(committed) => {
                    match outcome.1 {
                        Some(_) => current.insert(outcome.0.clone(), committed.revision),
                        None => current.remove(&outcome.0),
                    };
                    known.answered.insert(committed.revision, outcome);
                }
                Err(StoreError::UnknownOutcome { .. }) => {
                    failed = true;
                    known.unanswered.push(outcome);
                }
                Err(StoreError::Unavailable { .. }) => failed = true,
                Err(other) => panic!("a power cut is no {other:?}"),
            }
        }
        if failed {
            break;
        }
    }
    known
}

async fn check(disk: Disk, known: &Known, cut: usize, keep: Keep) {
    // The machine may also fail again while it recovers.
    let again = disk.clone();
    again.fail(Fault::PowerCutAt(cut % 5));
    drop(Embedded::open_with(again.clone(), clock()));
    let disk = again.after_power_cut(keep);

    let store = Embedded::open_with(disk.clone(), clock())
        .unwrap_or_else(|error| panic!("cut at {cut}, {keep:?}: {error}"));
    let newest = store.revision();
    let context = format!("cut at {cut}, {keep:?}, at revision {newest}");
    let answered = known
        .answered
        .last_key_value()
        .map_or(Revision(1), |(revision, _)| *revision);
    assert!(newest >= answered, "{context}: {answered} was answered");

    let mut unanswered = known.unanswered.clone();
    let mut state = BTreeMap::new();
    let mut expected = Revision(1);
    for event in history(&store, "", Revision(1)).await {
        expected = expected.next();
        assert_eq!(event.revision, expected, "{context}: revisions are consecutive");
        let outcome = (event.key.to_string(), event.value.clone());
        match known.answered.get(&event.revision) {
            Some(answer) => assert_eq!(&outcome, answer, "{context}: as answered"),
            None => {
                let known = unanswered.iter().position(|other| *other == outcome);
                unanswered.remove(known.unwrap_or_else(|| panic!("{context}: nobody wrote {event:?}")));
            }
        }
        match outcome.1 {
            Some(value) => state.insert(outcome.0, value),
            None => state.remove(&outcome.0),
        };
    }
    assert_eq!(expected, newest, "{context}: the history is complete");
    let listed = store.range(Range::prefix("")).await.unwrap();
    let objects: BTreeMap<_, _> = listed
        .items
        .into_iter()
        .map(|e| (e.key.to_string(), e.value))
        .collect();
    assert_eq!(objects, state, "{context}: objects and history agree");

    let next = store.commit(Write::create("/new", "x")).await.unwrap();
    assert_eq!(next.revision, newest.next(), "{context}: revisions go on");
    drop(store);
    assert_eq!(
        open(&disk, &clock()).revision(),
        next.revision,
        "{context}: also after a restart"
    );
}
