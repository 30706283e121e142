//! Faults of a real file system: it is full, read-only, or no descriptor is left.

use std::fs;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::mount::{MountFlags, mount, mount_remount};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::hostile_tests::in_mount_namespace;
use super::tests::{names, payload, visible};
use super::*;

const OLD: &str = "a=old b/c=old";
const OLD_NAMES: [&str; 4] = ["..data", "..revision", "a", "b"];

/// Two files of 40 KiB.
fn new() -> String {
    let long = "n".repeat(40 << 10);
    format!("a={long} c={long}")
}

fn writer(volume: &Path) -> AtomicWriter {
    let options = Options {
        durability: Durability::Process,
        ..Options::default()
    };
    AtomicWriter::new(Directory::open(volume).unwrap(), options)
}

fn text(error: &WriteError) -> String {
    format!("{error}: {}", std::error::Error::source(error).unwrap())
}

/// A write of [`new`] over [`OLD`] on a small tmpfs of its own, while `fault` lasts.
fn check(fault: fn(&Path), expected: &str, mend: fn(&Path)) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    in_mount_namespace(|| {
        let temporary = tempfile::tempdir().unwrap();
        let volume = temporary.path();
        let limits = c"size=256k,nr_inodes=32";
        mount("test", volume, "tmpfs", MountFlags::empty(), limits).unwrap();
        let writer = writer(volume);
        writer.write(&payload(OLD)).unwrap();
        fault(volume);
        for _ in 0..3 {
            let error = writer.write(&payload(&new())).expect_err("the fault lasts");
            assert_eq!(text(&error), expected);
            assert!(!error.is_published());
            assert_eq!(visible(volume).as_deref(), Some(OLD));
            let foreign = |name: &String| !name.starts_with("filler");
            assert_eq!(
                names(volume).into_iter().filter(foreign).collect::<Vec<_>>(),
                OLD_NAMES
            );
        }
        // What is there already needs nothing.
        assert_eq!(writer.write(&payload(OLD)).unwrap().outcome, Outcome::Unchanged);
        mend(volume);
        let healed = writer.write(&payload(&new())).unwrap();
        assert!(healed.leftovers.is_empty());
        assert_eq!(visible(volume), Some(new()));
        let foreign = |name: &String| !name.starts_with("filler");
        let found: Vec<String> = names(volume).into_iter().filter(foreign).collect();
        assert_eq!(found, ["..data", "..revision", "a", "c"]);
    });
}

#[test]
fn no_space_keeps_the_last_good_content_and_heals_with_space() {
    check(
        |volume| fs::write(volume.join("filler"), vec![0; 180 << 10]).unwrap(),
        "cannot stage \"c\": No space left on device (os error 28)",
        |volume| fs::remove_file(volume.join("filler")).unwrap(),
    );
}

#[test]
fn no_inodes_keep_the_last_good_content_and_heal_with_inodes() {
    let fill = |volume: &Path| {
        let made = (0..).take_while(|number| fs::write(volume.join(format!("filler{number}")), "").is_ok());
        assert!(made.count() < 32);
    };
    check(
        fill,
        "cannot stage \".\": No space left on device (os error 28)",
        |volume| (0..8).for_each(|number| fs::remove_file(volume.join(format!("filler{number}"))).unwrap()),
    );
}

#[test]
fn a_read_only_file_system_keeps_the_last_good_content_and_heals_with_it() {
    check(
        |volume| mount_remount(volume, MountFlags::RDONLY, "").unwrap(),
        "cannot stage \".\": Read-only file system (os error 30)",
        |volume| mount_remount(volume, MountFlags::empty(), "").unwrap(),
    );
}

/// Limits are the process's: the test runs itself again, alone.
#[test]
fn no_descriptors_keep_the_last_good_content_and_heal_with_them() {
    const CHILD: &str = "HOTMAP_TEST_WITHOUT_DESCRIPTORS";
    if std::env::var_os(CHILD).is_none() {
        let name = "atomic_writer::fault_tests::no_descriptors_keep_the_last_good_content_and_heal_with_them";
        let child = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture", "--test-threads=1"])
            .env(CHILD, "1")
            .output()
            .unwrap();
        assert!(
            child.status.success(),
            "{}",
            String::from_utf8_lossy(&child.stderr)
        );
        return;
    }
    let temporary = tempfile::tempdir().unwrap();
    let volume = temporary.path();
    let limits = getrlimit(Resource::Nofile);
    let mut failed = 0;
    for left in 0.. {
        writer(volume).write(&payload(OLD)).unwrap();
        let writer = writer(volume);
        // The next descriptor has the lowest free number.
        let next = fs::File::open(volume).unwrap().as_raw_fd().unsigned_abs();
        let current = Some(u64::from(next) + left);
        setrlimit(Resource::Nofile, Rlimit { current, ..limits }).unwrap();
        let result = writer.write(&payload(&new()));
        setrlimit(Resource::Nofile, limits).unwrap();
        match result {
            Ok(_) => break,
            Err(error) => {
                assert!(
                    text(&error).ends_with(": Too many open files (os error 24)"),
                    "{}",
                    text(&error)
                );
                assert!(!error.is_published());
                assert_eq!(visible(volume).as_deref(), Some(OLD));
                assert_eq!(writer.write(&payload(&new())).unwrap().outcome, Outcome::Swapped);
                assert_eq!(visible(volume), Some(new()));
                assert_eq!(names(volume), ["..data", "..revision", "a", "c"]);
                failed += 1;
            }
        }
    }
    assert!(failed >= 2, "only {failed}");
}
