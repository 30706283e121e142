//! Disks that are full, and disks that fail.

use std::{sync::Arc, time::Duration};

use hotmap_store::{Embedded, Health, ManualClock, Range, Revision, Store, StoreError, Write};

use crate::{
    clock,
    disk::{Disk, Fault, Keep},
    history, open,
};

/// Longer than the store waits before it tries a full disk again.
const PAUSE: Duration = Duration::from_secs(2);

async fn create(store: &Embedded, name: &str, bytes: usize) -> Result<Revision, StoreError> {
    store
        .commit(Write::create(name, vec![7; bytes]))
        .await
        .map(|committed| committed.revision)
}

#[tokio::test]
async fn a_full_disk_makes_the_store_read_only_until_there_is_space() {
    let (disk, clock) = (Disk::new(), clock());
    let store = open(&disk, &clock);
    create(&store, "/first", 100).await.unwrap();
    disk.limit(disk.size());
    let mut written = 1;
    let refused = loop {
        match create(&store, &format!("/{written}"), 200_000).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(refused, StoreError::NoSpace);
    assert!(matches!(store.health(), Health::ReadOnly { .. }));
    assert_eq!(store.range(Range::prefix("")).await.unwrap().items.len(), written);

    let touched = disk.operations();
    assert_eq!(create(&store, "/again", 1).await, Err(StoreError::NoSpace));
    assert_eq!(
        disk.operations(),
        touched,
        "within the pause the disk is left alone"
    );

    clock.advance(PAUSE);
    assert_eq!(
        create(&store, "/large", 200_000).await,
        Err(StoreError::NoSpace),
        "tried again, still full"
    );

    disk.limit(usize::MAX);
    clock.advance(PAUSE);
    let revision = create(&store, "/large", 200_000).await.unwrap();
    assert_eq!(
        revision,
        Revision(written as u64 + 2),
        "refused writes took no revision"
    );
    assert_eq!(store.health(), Health::Ok);
    drop(store);
    let store = open(&disk, &clock);
    assert_eq!(
        (store.revision(), history(&store, "", Revision(1)).await.len()),
        (revision, written + 1)
    );
}

/// Every operation of a commit meets a full disk once: alone, with the ones after it, or until the disk is emptied.
#[tokio::test]
async fn answers_tell_the_truth_whichever_operation_finds_the_disk_full() {
    let commit_operations = operations_of_a_commit().await;
    assert!(
        commit_operations > 3,
        "a commit writes pages and a header, and syncs"
    );
    for first in 0..commit_operations {
        for count in [1, 3, 8, 20, usize::MAX / 2] {
            check_full(first, count).await;
        }
    }
}

async fn operations_of_a_commit() -> usize {
    let disk = Disk::new();
    let store = open(&disk, &clock());
    create(&store, "/first", 100).await.unwrap();
    let before = disk.operations();
    create(&store, "/second", 100).await.unwrap();
    disk.operations() - before
}

async fn check_full(first: usize, count: usize) {
    let context = format!("full from operation {first} for {count}");
    let (disk, clock): (Disk, Arc<ManualClock>) = (Disk::new(), clock());
    let store = open(&disk, &clock);
    create(&store, "/first", 100).await.unwrap();
    disk.fail(Fault::FullFor(disk.operations() + first, count));
    let answer = create(&store, "/second", 100).await;
    clock.advance(PAUSE);
    let while_full = create(&store, "/third", 100).await;
    disk.fail(Fault::None);
    clock.advance(PAUSE);
    create(&store, "/fourth", 100)
        .await
        .unwrap_or_else(|error| panic!("{context}: {error}"));
    assert_eq!(store.health(), Health::Ok, "{context}");
    check_answers(&store, &answer, &while_full, &context).await;
    let image = open(&disk.after_power_cut(Keep::Nothing), &clock);
    assert_eq!(
        image.revision(),
        store.revision(),
        "{context}: all that is visible is durable"
    );
    assert_eq!(
        history(&image, "", Revision(1)).await.len() as u64 + 1,
        store.revision().0,
        "{context}"
    );
    check_answers(&image, &answer, &while_full, &context).await;
}

async fn check_answers(
    store: &Embedded,
    second: &Result<Revision, StoreError>,
    third: &Result<Revision, StoreError>,
    context: &str,
) {
    for (name, answer) in [("/second", second), ("/third", third)] {
        let found = store.get(name).await.unwrap().map(|entry| entry.revision);
        match answer {
            Ok(revision) => assert_eq!(found, Some(*revision), "{context}, {name}"),
            Err(StoreError::NoSpace) => assert_eq!(found, None, "{context}, {name}"),
            Err(StoreError::UnknownOutcome { .. }) => {}
            Err(other) => panic!("{context}, {name}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn a_failed_sync_makes_the_store_read_only_until_restart() {
    let (disk, clock) = (Disk::new(), clock());
    let store = open(&disk, &clock);
    let revision = create(&store, "/first", 100).await.unwrap();
    disk.fail(Fault::SyncFails);
    assert!(matches!(
        create(&store, "/second", 1).await,
        Err(StoreError::UnknownOutcome { .. })
    ));
    disk.fail(Fault::None);
    clock.advance(PAUSE);
    let touched = disk.operations();
    assert!(matches!(
        create(&store, "/third", 1).await,
        Err(StoreError::Unavailable { .. })
    ));
    assert_eq!(disk.operations(), touched, "never tried again");
    assert!(matches!(store.health(), Health::ReadOnly { .. }));
    assert_eq!(store.revision(), revision);
    assert_eq!(
        store.get("/first").await.unwrap().unwrap().revision,
        revision,
        "reads go on"
    );
    drop(store);
    let store = open(&disk, &clock);
    assert!(store.revision() >= revision);
    create(&store, "/third", 1).await.unwrap();
}

#[tokio::test]
async fn a_full_disk_at_the_first_start_is_an_error_that_says_so() {
    let disk = Disk::new();
    disk.fail(Fault::FullFrom(0));
    let error = Embedded::open_with(disk, clock()).unwrap_err().to_string();
    assert!(error.contains("cannot use the store file"), "{error}");
}
