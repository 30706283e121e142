//! The store against a naive model: a map, and a copy of it for every revision.

use std::collections::BTreeMap;

use bytes::Bytes;
use futures_util::future::join_all;
use hotmap_store::{EventKind, Expect, Op, Range, Revision, Store, StoreError, Write};
use proptest::prelude::*;

use crate::{clock, disk::Disk, history, open};

#[derive(Debug, Clone)]
enum Step {
    /// Writes that are sent together: key, whether to expect the truth, whether to delete, value.
    Writes(Vec<(u8, bool, bool, Vec<u8>)>),
    Restart,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let write = (
        0..5u8,
        proptest::bool::weighted(0.8),
        any::<bool>(),
        proptest::collection::vec(any::<u8>(), 0..20),
    );
    let step = prop_oneof![
        5 => proptest::collection::vec(write, 1..6).prop_map(Step::Writes),
        1 => Just(Step::Restart),
    ];
    proptest::collection::vec(step, 1..12)
}

/// What a key holds: modified at, created at, value.
type Held = (Revision, Revision, Bytes);

/// What one change did: key, new value, what was there before.
type Logged = (String, Option<Bytes>, Option<(Revision, Bytes)>);

struct Model {
    /// The state at each revision from 1 on.
    states: Vec<BTreeMap<String, Held>>,
    log: Vec<Logged>,
}

impl Model {
    fn now(&self) -> &BTreeMap<String, Held> {
        self.states.last().unwrap()
    }

    fn revision(&self) -> Revision {
        Revision(self.states.len() as u64)
    }

    fn commit(&mut self, write: &Write) -> Result<Revision, StoreError> {
        let held = self.now().get(&*write.key).cloned();
        match (write.expect, &held) {
            (Expect::Absent, Some(_)) => return Err(StoreError::Exists),
            (Expect::At(_), None) => return Err(StoreError::NotFound),
            (Expect::Absent, None) if write.op == Op::Delete => return Err(StoreError::NotFound),
            (Expect::At(seen), Some((at, _, value))) if seen != *at => {
                return Err(StoreError::Conflict {
                    current: Some((*at, value.clone())),
                });
            }
            _ => {}
        }
        let revision = self.revision().next();
        let mut next = self.now().clone();
        let value = match &write.op {
            Op::Put { value, .. } => {
                let created = held.as_ref().map_or(revision, |(_, created, _)| *created);
                next.insert(write.key.to_string(), (revision, created, value.clone()));
                Some(value.clone())
            }
            Op::Delete => {
                next.remove(&*write.key);
                None
            }
        };
        self.states.push(next);
        self.log.push((
            write.key.to_string(),
            value,
            held.map(|(at, _, value)| (at, value)),
        ));
        Ok(revision)
    }
}

async fn check(steps: Vec<Step>) {
    let (disk, clock) = (Disk::new(), clock());
    let mut store = open(&disk, &clock);
    let mut model = Model {
        states: vec![BTreeMap::new()],
        log: Vec::new(),
    };
    for step in steps {
        match step {
            Step::Restart => {
                drop(store);
                store = open(&disk, &clock);
            }
            Step::Writes(writes) => {
                let writes: Vec<Write> = writes
                    .into_iter()
                    .map(|(key, truth, delete, value)| {
                        let key = format!("/k{}/{key}", key % 2);
                        let expect = match model.now().get(&key) {
                            Some((at, ..)) if truth => Expect::At(*at),
                            None if !truth => Expect::At(Revision(3)),
                            _ => Expect::Absent,
                        };
                        let op = if delete {
                            Op::Delete
                        } else {
                            Op::Put {
                                value: value.into(),
                                ttl: None,
                            }
                        };
                        Write {
                            key: key.into(),
                            expect,
                            op,
                            memo: None,
                        }
                    })
                    .collect();
                // Sent in this order, on one thread, so they are also decided in it.
                let answers = join_all(writes.iter().map(|write| store.commit(write.clone()))).await;
                for (write, answer) in writes.iter().zip(answers) {
                    assert_eq!(
                        answer.map(|committed| committed.revision),
                        model.commit(write),
                        "{write:?}"
                    );
                }
            }
        }
        assert_eq!(store.revision(), model.revision());
    }
    for revision in 1..=model.revision().0 {
        check_from(&store, &model, Revision(revision)).await;
    }
}

async fn check_from(store: &hotmap_store::Embedded, model: &Model, revision: Revision) {
    let index = usize::try_from(revision.0).unwrap() - 1;
    for prefix in ["", "/k0/", "/k1/3"] {
        let listed = store.range(Range::prefix(prefix).at(revision)).await.unwrap();
        let items: Vec<_> = listed
            .items
            .into_iter()
            .map(|e| (e.key.to_string(), (e.revision, e.created, e.value)))
            .collect();
        let state = model.states[index]
            .clone()
            .into_iter()
            .filter(|(key, _)| key.starts_with(prefix));
        assert_eq!(items, state.collect::<Vec<_>>(), "{prefix:?} at {revision}");

        let events = history(store, prefix, revision).await;
        let told: Vec<(Revision, EventKind, Logged)> = events
            .into_iter()
            .map(|e| (e.revision, e.kind, (e.key.to_string(), e.value, e.previous)))
            .collect();
        let logged = model
            .log
            .iter()
            .enumerate()
            .skip(index)
            .filter(|(_, (key, ..))| key.starts_with(prefix));
        let expected: Vec<_> = logged
            .map(|(n, logged)| {
                let kind = if logged.1.is_some() {
                    EventKind::Put
                } else {
                    EventKind::Delete
                };
                (Revision(n as u64 + 2), kind, logged.clone())
            })
            .collect();
        assert_eq!(told, expected, "{prefix:?} after {revision}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn reads_and_watches_from_every_revision_agree_with_a_naive_model(steps in steps()) {
        tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(check(steps));
    }
}
