//! Many tasks at once.

use std::{collections::HashMap, sync::Arc};

use hotmap_store::{Revision, Store, StoreError, Write};
use tokio::task::JoinSet;

use crate::{clock, disk::Disk, open};

const WRITERS: usize = 16;
const ROUNDS: usize = 20;

/// Adds one to the number under `key`, as often as it takes.
async fn increment(store: &dyn Store, key: &str) {
    loop {
        let written = match store.get(key).await.unwrap() {
            None => store.commit(Write::create(key, "1")).await,
            Some(entry) => {
                let number: u64 = std::str::from_utf8(&entry.value).unwrap().parse().unwrap();
                store
                    .commit(Write::update(key, entry.revision, (number + 1).to_string()))
                    .await
            }
        };
        match written {
            Ok(_) => return,
            Err(StoreError::Conflict { .. } | StoreError::Exists) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn watchers_see_every_revision_once_and_no_increment_is_lost() {
    let store: Arc<dyn Store> = Arc::new(open(&Disk::new(), &clock()));
    let writes = WRITERS * ROUNDS * 2;
    let mut watchers = JoinSet::new();
    for n in 0..8 {
        let mut watch = store.watch("/", Revision(1)).unwrap();
        watchers.spawn(async move {
            let mut last: HashMap<String, Revision> = HashMap::new();
            for revision in 0..writes as u64 {
                let event = watch.next().await.unwrap().unwrap();
                assert_eq!(event.revision.0, revision + 2, "watcher {n}");
                let previous = event.previous.map(|(revision, _)| revision);
                assert_eq!(
                    previous,
                    last.insert(event.key.to_string(), event.revision),
                    "watcher {n}"
                );
                if n % 2 == 0 {
                    tokio::task::yield_now().await;
                }
            }
        });
    }
    let mut writers = JoinSet::new();
    for n in 0..WRITERS {
        let store = Arc::clone(&store);
        writers.spawn(async move {
            for _ in 0..ROUNDS {
                increment(&*store, "/shared").await;
                increment(&*store, &format!("/own/{n}")).await;
            }
        });
    }
    while let Some(ended) = writers.join_next().await {
        ended.unwrap();
    }
    while let Some(ended) = watchers.join_next().await {
        ended.unwrap();
    }
    assert_eq!(store.revision().0, writes as u64 + 1);
    let shared = store.get("/shared").await.unwrap().unwrap();
    assert_eq!(shared.value, (WRITERS * ROUNDS).to_string());
}
