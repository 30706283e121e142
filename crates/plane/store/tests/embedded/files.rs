//! The file itself: who may read it, who holds it, and what is wrong with it.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, sync::Arc};

use hotmap_store::{Embedded, OpenError, Store, SystemClock, Write};
use redb::{Database, TableDefinition};

fn open(dir: &Path) -> Result<Embedded, OpenError> {
    Embedded::open(dir, Arc::new(SystemClock))
}

#[tokio::test]
async fn the_file_is_private_and_keeps_its_content() {
    let dir = tempfile::tempdir().unwrap();
    let data = dir.path().join("a/b");
    let store = open(&data).unwrap();
    let committed = store.commit(Write::create("/a", "1")).await.unwrap();
    drop(store);
    let file = data.join("store.redb");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let store = open(&data).unwrap();
    assert_eq!(
        fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600,
        "closed to others again"
    );
    assert_eq!(store.revision(), committed.revision);
    assert_eq!(store.get("/a").await.unwrap().unwrap().value, "1");
}

#[test]
fn a_second_opening_of_the_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let first = open(dir.path()).unwrap();
    assert!(matches!(open(dir.path()), Err(OpenError::Locked { path }) if path.ends_with("store.redb")));
    drop(first);
    open(dir.path()).unwrap();
}

#[test]
fn a_file_of_a_newer_release_is_refused_with_both_versions() {
    let dir = tempfile::tempdir().unwrap();
    drop(open(dir.path()).unwrap());
    let database = Database::open(dir.path().join("store.redb")).unwrap();
    let write = database.begin_write().unwrap();
    let meta: TableDefinition<'_, &str, u64> = TableDefinition::new("hotmap.meta");
    write.open_table(meta).unwrap().insert("format", 7).unwrap();
    write.commit().unwrap();
    drop(database);
    let error = open(dir.path()).unwrap_err();
    assert!(
        matches!(
            error,
            OpenError::Newer {
                found: 7,
                supported: 1,
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn what_is_no_store_is_refused_and_left_as_it_is() {
    let foreign = |path: &Path| {
        let write = Database::create(path).unwrap().begin_write().unwrap();
        write
            .open_table(TableDefinition::<u64, u64>::new("other"))
            .unwrap()
            .insert(1, 1)
            .unwrap();
        write.commit().unwrap();
    };
    let half = |path: &Path| {
        drop(open(path.parent().unwrap()).unwrap());
        let content = fs::read(path).unwrap();
        fs::write(path, &content[..content.len() / 2]).unwrap();
    };
    let scratched = |path: &Path| {
        drop(open(path.parent().unwrap()).unwrap());
        let mut content = fs::read(path).unwrap();
        content[4096..].fill(0xa5);
        fs::write(path, content).unwrap();
    };
    let beheaded = |path: &Path| {
        drop(open(path.parent().unwrap()).unwrap());
        let mut content = fs::read(path).unwrap();
        content[..4096].fill(0);
        fs::write(path, content).unwrap();
    };
    let garbage = |path: &Path| fs::write(path, "not a database").unwrap();
    type Make<'m> = &'m dyn Fn(&Path);
    let cases: [(&str, Make<'_>); 5] = [
        ("garbage", &garbage),
        ("another program's database", &foreign),
        ("half a file", &half),
        ("scratched pages", &scratched),
        ("a header of zeros before data", &beheaded),
    ];
    for (name, make) in cases {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("store.redb");
        make(&path);
        let length = fs::metadata(&path).unwrap().len();
        let error = open(dir.path()).expect_err(name);
        assert!(matches!(error, OpenError::Damaged { .. }), "{name}: {error:?}");
        assert!(
            error.to_string().contains(&path.display().to_string()),
            "{name}: {error}"
        );
        assert_eq!(fs::metadata(&path).unwrap().len(), length, "{name}");
    }
}

#[test]
fn a_file_whose_creation_was_cut_short_is_created_anew() {
    for content in [vec![], vec![0; 1 << 20]] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("store.redb"), content).unwrap();
        open(dir.path()).unwrap();
    }
}

#[test]
fn a_path_that_cannot_be_written_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let error = open(&file).unwrap_err();
    assert!(matches!(error, OpenError::Unwritable { .. }), "{error}");
    assert!(error.to_string().contains("file/store.redb"), "{error}");
}
