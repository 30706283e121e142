use std::{
    collections::BTreeSet,
    path::Path,
    sync::{Arc, Mutex as StdMutex},
};

use hotmap_client::ClientError;
use tokio::sync::mpsc;

use super::*;
use crate::{
    references::{ObjectKind, ObjectRef},
    report::{Revision, Wants},
};

/// Time goes on only by waiting.
#[derive(Clone)]
struct Hands(Arc<StdMutex<(Timestamp, Vec<Duration>)>>);

impl Hands {
    fn new() -> Self {
        Self(Arc::new(StdMutex::new((Timestamp::UNIX_EPOCH, Vec::new()))))
    }

    fn waits(&self) -> Vec<u128> {
        let held = self.0.lock().expect("not poisoned");
        held.1.iter().map(Duration::as_millis).collect()
    }
}

impl Clock for Hands {
    fn now(&self) -> Timestamp {
        self.0.lock().expect("not poisoned").0
    }

    async fn sleep(&self, pause: Duration) {
        let mut held = self.0.lock().expect("not poisoned");
        held.0 += pause;
        held.1.push(pause);
    }
}

/// Answers as it is told to, and passes on what it was told.
struct Api {
    answers: Vec<Result<(), ClientError>>,
    told: mpsc::UnboundedSender<Map<String, Value>>,
}

impl Target for Api {
    async fn tell(&mut self, document: &Map<String, Value>) -> Result<(), ClientError> {
        let answer = if self.answers.is_empty() {
            Ok(())
        } else {
            self.answers.remove(0)
        };
        self.told.send(document.clone()).expect("somebody listens");
        answer
    }
}

fn heard(reports: &Reports, resource_version: &str) {
    let reference = ObjectRef {
        kind: ObjectKind::ConfigMap,
        namespace: "n".to_owned(),
        name: "app".to_owned(),
    };
    let revision = Arc::new(Revision {
        uid: "u".to_owned(),
        resource_version: resource_version.to_owned(),
        fingerprint: [0; 32],
        digest: String::new(),
    });
    let wants = Wants::from([("cfg".to_owned(), BTreeSet::from([reference.clone()]))]);
    reports.note(|ledger, now| {
        ledger.pod("p", "web", wants, now);
        ledger.heard(&reference, Some(revision), None, now);
    });
}

#[tokio::test]
async fn transitions_are_told_once_and_at_most_once_a_second() {
    let reports = Reports::open(Path::new("/nonexistent")).expect("no key is no error");
    let (told, mut tellings) = mpsc::unbounded_channel();
    let refused = ClientError::Timeout {
        after: Duration::ZERO,
    };
    let api = Api {
        answers: vec![Ok(()), Err(refused), Ok(())],
        told,
    };
    let (hands, pace) = (
        Hands::new(),
        Pace {
            retries: Backoff::new(RETRY_MIN, RETRY_MAX, 7),
            random: || 0,
        },
    );
    let writing = tokio::spawn({
        let (reports, hands) = (reports.clone(), hands.clone());
        async move { write_for_ever(&reports, api, pace, hands).await }
    });
    heard(&reports, "1");
    let first = tellings.recv().await.expect("told");
    assert_eq!(first["objects"][0]["current"]["resourceVersion"], "1");

    heard(&reports, "2");
    let refused = tellings.recv().await.expect("told");
    let again = tellings.recv().await.expect("told again without anything new");
    assert_eq!(refused, again);
    assert_eq!(again["objects"][0]["current"]["resourceVersion"], "2");

    // Nothing new: looked at, not told.
    heard(&reports, "2");
    heard(&reports, "3");
    let last = tellings.recv().await.expect("told");
    assert_eq!(last["objects"][0]["current"]["resourceVersion"], "3");
    let waits = hands.waits();
    assert_eq!(waits[0], 1_000, "what ran before is found first: {waits:?}");
    assert_eq!(waits[1], 1_000, "a second between two: {waits:?}");
    assert!((500..=1_000).contains(&waits[2]), "the back-off: {waits:?}");
    writing.abort();
}
