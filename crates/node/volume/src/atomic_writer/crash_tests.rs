//! Stops and fails the writer before each of its disk operations.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::tests::{names, payload, visible};
use super::*;
use crate::disk::{Faults, Operation};

const OLD: &str = "a=old b=old d/e=old";
/// Changes, drops and adds names, one of them from directory to file.
const NEW: &str = "a=new c=new d=new f/g/h=new";

#[derive(Clone, Copy)]
enum Fault {
    /// The process dies: nothing after this operation happens, no clean-up either.
    Die,
    /// One operation fails, those after it work.
    FailOnce,
    /// Nothing that needs space works from this operation on.
    DiskFull,
}

struct FaultAt {
    countdown: AtomicUsize,
    fault: Fault,
}

impl Faults for FaultAt {
    fn before(&self, operation: Operation) -> io::Result<()> {
        let left = self.countdown.load(Ordering::Relaxed);
        self.countdown.store(left.saturating_sub(1), Ordering::Relaxed);
        let frees = matches!(operation, Operation::Unlink | Operation::RemoveDirectory);
        match self.fault {
            // Past the panic hook: a crash on purpose is no news.
            Fault::Die if left == 1 => resume_unwind(Box::new("died")),
            Fault::FailOnce if left == 1 => Err(io::ErrorKind::Other.into()),
            Fault::DiskFull if left <= 1 && !frees => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }
}

fn writer(volume: &Path, durability: Durability) -> AtomicWriter {
    let options = Options {
        durability,
        ..Options::default()
    };
    AtomicWriter::new(Directory::open(volume).unwrap(), options)
}

/// Calls `check` for a fault at every operation of a write of [`NEW`] over [`OLD`], with the volume, the faulty
/// writer and its result (`None`: it died), until the fault comes too late to matter.
fn for_each_operation(
    fault: Fault,
    check: impl Fn(&Path, &AtomicWriter, Option<Result<Written, WriteError>>),
) {
    for durability in [Durability::Process, Durability::PowerLoss] {
        let mut operation = 0;
        loop {
            operation += 1;
            let temporary = tempfile::tempdir().unwrap();
            let volume = temporary.path();
            writer(volume, durability).write(&payload(OLD)).unwrap();
            let faults = Arc::new(FaultAt {
                countdown: AtomicUsize::new(operation),
                fault,
            });
            let faulty = writer(volume, durability).with_disk(Disk::with_faults(faults.clone()));
            let result = catch_unwind(AssertUnwindSafe(|| faulty.write(&payload(NEW)))).ok();
            if faults.countdown.load(Ordering::Relaxed) > 0 {
                assert!(operation > 20, "the write is shorter than it can be");
                break;
            }
            check(volume, &faulty, result);
        }
    }
}

fn check_healed(volume: &Path) {
    assert_eq!(visible(volume).as_deref(), Some(NEW));
    assert_eq!(names(volume), ["..data", "..revision", "a", "c", "d", "f"]);
    assert_eq!(fs::read_to_string(volume.join("f/g/h")).unwrap(), "new");
}

#[test]
fn a_writer_that_dies_anywhere_leaves_the_old_or_the_new_payload_and_the_next_one_heals() {
    for_each_operation(Fault::Die, |volume, _, result| {
        assert!(result.is_none());
        let seen = visible(volume).expect("`..data` is never missing");
        assert!([OLD, NEW].contains(&&*seen), "torn: {seen}");
        writer(volume, Durability::Process).write(&payload(NEW)).unwrap();
        check_healed(volume);
    });
}

#[test]
fn a_dead_writers_leftovers_go_also_when_the_content_goes_back() {
    for_each_operation(Fault::Die, |volume, _, _| {
        writer(volume, Durability::Process).write(&payload(OLD)).unwrap();
        assert_eq!(visible(volume).as_deref(), Some(OLD));
        assert_eq!(names(volume), ["..data", "..revision", "a", "b", "d"]);
    });
}

#[test]
fn a_failed_operation_keeps_the_last_good_content_and_a_retry_heals() {
    for_each_operation(Fault::FailOnce, |volume, faulty, result| {
        let result = result.expect("an error is no crash");
        let seen = visible(volume).expect("`..data` is never missing");
        match &result {
            Err(error) if !error.is_published() => {
                assert_eq!(seen, OLD);
                assert_eq!(
                    names(volume),
                    ["..data", "..revision", "a", "b", "d"],
                    "staging is left: {error}"
                );
            }
            Err(_) => assert_eq!(seen, NEW),
            Ok(_) => assert_eq!(seen, NEW),
        }
        let retried = faulty.write(&payload(NEW)).unwrap();
        assert!(retried.leftovers.is_empty());
        check_healed(volume);
        assert_eq!(faulty.write(&payload(NEW)).unwrap().outcome, Outcome::Unchanged);
    });
}

#[test]
fn a_full_disk_keeps_the_last_good_content_and_no_staging() {
    for_each_operation(Fault::DiskFull, |volume, faulty, result| {
        let mut published = false;
        for result in [result.expect("an error is no crash"), faulty.write(&payload(NEW))] {
            published |= result.as_ref().map_or_else(WriteError::is_published, |_| true);
            assert_eq!(
                visible(volume).as_deref(),
                Some(if published { NEW } else { OLD })
            );
            if !published {
                assert_eq!(names(volume), ["..data", "..revision", "a", "b", "d"]);
            }
        }
        writer(volume, Durability::Process).write(&payload(NEW)).unwrap();
        check_healed(volume);
    });
}

#[test]
fn after_a_failed_sync_of_the_swap_the_next_write_is_a_new_revision() {
    for_each_operation(Fault::FailOnce, |_, faulty, result| {
        if let Some(Err(WriteError::Sync { .. })) = result {
            assert_eq!(faulty.write(&payload(NEW)).unwrap().outcome, Outcome::Swapped);
        }
    });
}
