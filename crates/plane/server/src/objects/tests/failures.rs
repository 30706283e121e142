//! What clients are told when the store cannot do its part.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hotmap_store::{
    Committed, Embedded, Health, Listed, Range, Revision, Store, StoreError, SystemClock, Watch, Write,
};
use parking_lot::Mutex;

use super::{config_map, full, request};
use crate::{cache::HistoryLimits, objects::Objects};

/// A store whose next commits, or next watch, fail as told.
struct Faulty {
    inner: Embedded,
    commits: Mutex<Vec<StoreError>>,
    watches: Mutex<Vec<StoreError>>,
}

impl Store for Faulty {
    fn commit(&self, write: Write) -> BoxFuture<'_, Result<Committed, StoreError>> {
        match self.commits.lock().pop() {
            Some(error) => Box::pin(async { Err(error) }),
            None => self.inner.commit(write),
        }
    }

    fn range(&self, range: Range) -> BoxFuture<'_, Result<Listed, StoreError>> {
        self.inner.range(range)
    }

    fn watch(&self, prefix: &str, after: Revision) -> Result<Watch, StoreError> {
        match self.watches.lock().pop() {
            Some(error) => Err(error),
            None => self.inner.watch(prefix, after),
        }
    }

    fn revision(&self) -> Revision {
        self.inner.revision()
    }

    fn health(&self) -> Health {
        self.inner.health()
    }
}

async fn start(watches: Vec<StoreError>) -> (Arc<Faulty>, Arc<Objects>, tempfile::TempDir) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let inner = Embedded::open(dir.path(), Arc::new(SystemClock)).expect("a store");
    let store = Arc::new(Faulty {
        inner,
        commits: Mutex::default(),
        watches: Mutex::new(watches),
    });
    let clock = Arc::new(jiff::Timestamp::now);
    let objects = Objects::start_with(store.clone(), clock, HistoryLimits::default(), None);
    let objects = objects.await.expect("starts");
    objects.bootstrap(None).await.expect("bootstraps");
    (store, objects, dir)
}

fn unavailable() -> StoreError {
    StoreError::Unavailable {
        reason: "/secret/path is gone".to_owned(),
    }
}

#[tokio::test]
async fn failures_say_what_is_true_now_and_nothing_of_the_inside() {
    let (store, objects, _dir) = start(vec![]).await;
    let outcome = StoreError::UnknownOutcome {
        reason: "/secret/path is gone".to_owned(),
    };
    for (error, code, message) in [
        (
            StoreError::NoSpace,
            503,
            "the store's disk is full: nothing was written; reads go on, and writes succeed again once there is space",
        ),
        (
            unavailable(),
            503,
            "the store does not take writes: nothing was written, and reads go on",
        ),
        (
            outcome,
            504,
            "Timeout: the outcome of the write is unknown: read the object before trying again",
        ),
    ] {
        store.commits.lock().push(error);
        let body = config_map("a", "1").to_string();
        let refused = objects.handle(request("create default/configmaps", body)).await;
        let refused = refused.expect_err("the store fails");
        assert_eq!((refused.code, refused.message.as_str()), (code, message));
    }
}

#[tokio::test]
async fn a_lost_race_is_run_again() {
    let (store, objects, _dir) = start(vec![]).await;
    for (call, value) in [
        ("create default/configmaps", "1"),
        ("update default/configmaps/a", "2"),
    ] {
        store.commits.lock().push(StoreError::Conflict { current: None });
        let body = config_map("a", value).to_string();
        let answer = objects.handle(request(call, body)).await.expect(call);
        let stored: serde_json::Value = serde_json::from_slice(&full(answer)).expect("JSON");
        assert_eq!(stored["data"]["k"], value, "{call}");
    }
}

#[tokio::test]
async fn a_history_that_moves_on_while_loading_is_asked_for_again() {
    let oldest = |revision| StoreError::Compacted {
        oldest: Revision(revision),
    };
    // Taken from the end: the history begins ever later.
    let (_store, objects, _dir) = start(vec![oldest(3), oldest(2)]).await;
    assert!(objects.is_synced());
}
