use std::fs;
use std::os::unix::fs::symlink;

use super::*;

fn read(snapshot: &Snapshot, key: &str) -> String {
    match snapshot.read(key) {
        Ok(bytes) => String::from_utf8(bytes).unwrap(),
        Err(error) => error.to_string(),
    }
}

fn keys(snapshot: &Snapshot) -> Vec<&str> {
    snapshot.keys().collect()
}

/// Makes `revision` the visible one, with these files, and leaves the one before alone.
fn publish(volume: &Path, revision: &str, content: &str) {
    for key in ["a", "b/c"] {
        let path = volume.join(revision).join(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    symlink(revision, volume.join("..data_tmp")).unwrap();
    fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
}

#[test]
fn a_snapshot_shows_one_revision_until_that_is_removed() {
    let temporary = tempfile::tempdir().unwrap();
    let volume = temporary.path();
    publish(volume, "..2026_01_31_09_05_07.1", "1");
    let old = Snapshot::open(volume).unwrap();
    assert_eq!(old.revision().as_str(), "..2026_01_31_09_05_07.1");
    assert_eq!(keys(&old), ["a", "b/c"]);
    assert_eq!((read(&old, "a"), read(&old, "b/c")), ("1".into(), "1".into()));
    assert_eq!(
        read(&old, "b"),
        "no file \"b\" in revision ..2026_01_31_09_05_07.1"
    );
    publish(volume, "..2026_01_31_09_05_07.2", "2");
    assert_eq!(read(&old, "b/c"), "1");
    let new = Snapshot::open(volume).unwrap();
    let all = new.read_all().unwrap();
    assert_eq!(
        all.into_iter().collect::<Vec<_>>(),
        [("a".into(), b"2".into()), ("b/c".into(), b"2".into())]
    );
    fs::remove_dir_all(volume.join("..2026_01_31_09_05_07.1")).unwrap();
    assert_eq!(read(&old, "b/c"), "the revision was replaced");
}

#[test]
fn nothing_outside_a_revision_is_read() {
    let temporary = tempfile::tempdir().unwrap();
    let volume = temporary.path();
    publish(volume, "..2026_01_31_09_05_07.1", "1");
    fs::write(volume.join("outside"), "x").unwrap();
    symlink("../outside", volume.join("..2026_01_31_09_05_07.1/link")).unwrap();
    let snapshot = Snapshot::open(volume).unwrap();
    assert_eq!(keys(&snapshot), ["a", "b/c"]);
    for key in ["link", "../outside", "/etc/hostname", "b/../../outside"] {
        assert!(snapshot.read(key).is_err(), "{key}");
    }
}

#[test]
fn of_plain_files_a_snapshot_gives_what_was_there_when_it_was_opened() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path();
    fs::create_dir(path.join("deep")).unwrap();
    fs::write(path.join("deep/b"), "1").unwrap();
    fs::write(path.join("a"), "1").unwrap();
    let old = Snapshot::open(path).unwrap();
    assert_eq!(keys(&old), ["a", "deep/b"]);
    fs::write(path.join("a"), "2").unwrap();
    assert_eq!(
        (read(&old, "a"), read(&old, "deep/b")),
        ("the revision was replaced".into(), "1".into())
    );
    let new = Snapshot::open(path).unwrap();
    assert_ne!(new.revision(), old.revision());
    assert_eq!(read(&new, "a"), "2");
    fs::write(path.join("a"), "1").unwrap();
    assert_eq!(Snapshot::open(path).unwrap().revision(), old.revision());
}

#[test]
fn a_file_is_a_directory_of_one() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path();
    publish(path, "..2026_01_31_09_05_07.1", "1");
    symlink("..data/a", path.join("a")).unwrap();
    let snapshot = Snapshot::open(path.join("a")).unwrap();
    assert_eq!(keys(&snapshot), ["a"]);
    assert_eq!(snapshot.revision().as_str(), "..2026_01_31_09_05_07.1");
    assert_eq!(read(&snapshot, "a"), "1");
    publish(path, "..2026_01_31_09_05_07.2", "2");
    assert_eq!(read(&snapshot, "a"), "the revision was replaced");
}

#[test]
fn limits_and_missing_paths_are_said() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path();
    fs::write(path.join("a"), "12345").unwrap();
    fs::write(path.join("b"), "12345").unwrap();
    let within = |limits: Limits| match Snapshot::open_within(path, limits) {
        Err(SnapshotError::TooMuch { limit, .. }) => limit,
        other => panic!("{other:?}"),
    };
    let bytes = Limits {
        bytes: 9,
        ..Limits::default()
    };
    assert_eq!(within(bytes), "there are more than 9 bytes");
    let files = Limits {
        files: 1,
        ..Limits::default()
    };
    assert_eq!(within(files), "there are more than 1 files");
    let missing = path.join("none/at/all");
    assert!(matches!(
        Snapshot::open(missing),
        Err(SnapshotError::Missing { path: of }) if of == path.canonicalize().unwrap().join("none")
    ));
}
