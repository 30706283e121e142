//! Takes the power away from a writer before each of its operations, with every choice of what the disk kept.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};

use proptest::prelude::*;

use super::model_disk::{Fate, ModelDisk};
use super::tests::{names, payload, visible};
use super::*;

/// A place in memory: what a sync means is the model's to say.
fn scratch() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let parent = if memory.is_dir() {
        memory.to_owned()
    } else {
        std::env::temp_dir()
    };
    tempfile::tempdir_in(parent).unwrap()
}

fn writer(volume: &Path, durability: Durability, disk: Option<&Arc<ModelDisk>>) -> AtomicWriter {
    writer_that_removes(Removal::AtOnce, volume, durability, disk)
}

fn writer_that_removes(
    removal: Removal,
    volume: &Path,
    durability: Durability,
    disk: Option<&Arc<ModelDisk>>,
) -> AtomicWriter {
    let options = Options {
        durability,
        removal,
        ..Options::default()
    };
    let writer = AtomicWriter::new(Directory::open(volume).unwrap(), options);
    match disk {
        Some(disk) => writer.with_disk(Disk::with_faults(Arc::clone(disk) as Arc<_>)),
        None => writer,
    }
}

/// How far a writer came.
struct Run {
    /// The write returned, and with it its promise.
    returned: bool,
    /// The process died, in the write or in the sweep behind it.
    died: bool,
}

/// A write and its sweep by a process that dies before its `die_at`th operation, if that is not 0.
fn run(
    volume: &Path,
    (durability, removal): (Durability, Removal),
    disk: &Arc<ModelDisk>,
    text: &str,
    die_at: usize,
) -> Run {
    disk.die_at(die_at);
    let writer = writer_that_removes(removal, volume, durability, Some(disk));
    let mut returned = false;
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let written = writer.write(&payload(text)).unwrap();
        returned = true;
        assert!(
            written.leftovers.is_empty() && written.shadowed.is_empty(),
            "{written:?}"
        );
        assert!(writer.sweep().is_empty());
    }));
    disk.die_at(0);
    let died = match ended {
        Ok(()) => false,
        Err(panic) if panic.downcast_ref::<&str>() == Some(&"died") => true,
        Err(panic) => resume_unwind(panic),
    };
    Run { returned, died }
}

fn check_whole(volume: &Path, text: &str) {
    assert_eq!(visible(volume).as_deref(), Some(text));
    let payload = payload(text);
    let mut expected: Vec<&str> = ["..data", "..revision"]
        .into_iter()
        .chain(payload.top_level_names())
        .collect();
    expected.sort_unstable();
    assert_eq!(names(volume), expected, "leftovers after {text:?}");
    let steps = writer(volume, Durability::Process, None).plan(&payload).unwrap();
    assert_eq!(steps, [], "{text:?} is there");
}

/// Calls `check` with the directory after every power loss during (and after) a write of `new` over `old`, and
/// whether the write had returned; up to the end of the sweep behind it. Returns how many there were.
fn for_each_power_loss(
    (durability, removal): (Durability, Removal),
    (old, new): (Option<&str>, &str),
    fates: impl Fn(&ModelDisk) -> Vec<Vec<Fate>>,
    mut check: impl FnMut(&Path, bool, &str),
) -> usize {
    let mut losses = 0;
    for operation in 1.. {
        let scratch = scratch();
        let volume = scratch.path().join("volume");
        fs::create_dir(&volume).unwrap();
        let disk = Arc::new(ModelDisk::of(&volume));
        if let Some(old) = old {
            assert!(run(&volume, (durability, removal), &disk, old, 0).returned);
        }
        let Run { returned, died } = run(&volume, (durability, removal), &disk, new, operation);
        for (number, fate) in fates(&disk).into_iter().enumerate() {
            let rebooted = scratch.path().join(number.to_string());
            fs::create_dir(&rebooted).unwrap();
            disk.after_power_loss(&fate, &rebooted);
            check(&rebooted, returned, &format!("operation {operation}, {fate:?}"));
            losses += 1;
        }
        if !died {
            break;
        }
    }
    losses
}

const REMOVALS: [Removal; 2] = [Removal::AtOnce, Removal::Deferred];

const UPDATES: [(Option<&str>, &str); 4] = [
    (None, "a=new d/e=new"),
    (Some("a=old b=old d/e=old"), "a=new c=new d=new f/g/h=new"),
    (Some("a=old"), "a=old@600"),
    (Some("a=old b=old"), ""),
];

#[test]
fn a_power_loss_anywhere_leaves_the_old_or_the_new_payload_and_the_next_write_heals() {
    for (removal, (old, new)) in REMOVALS
        .into_iter()
        .flat_map(|removal| UPDATES.map(|update| (removal, update)))
    {
        let losses = for_each_power_loss(
            (Durability::PowerLoss, removal),
            (old, new),
            ModelDisk::fates,
            |volume, returned, when| {
                let seen = visible(volume);
                assert!(
                    seen.as_deref() == Some(new) || (!returned && seen.as_deref() == old),
                    "{seen:?} after {when}"
                );
                let durability = Durability::PowerLoss;
                writer(volume, durability, None).write(&payload(new)).unwrap();
                check_whole(volume, new);
            },
        );
        assert!(losses > 50, "only {losses} for {new:?}");
    }
}

#[test]
fn a_process_that_dies_anywhere_leaves_the_old_or_the_new_payload_with_either_durability() {
    let all_kept = |disk: &ModelDisk| {
        disk.fates()
            .into_iter()
            .filter(|fates| fates.iter().all(|fate| *fate == Fate::Kept))
            .collect()
    };
    for durability in [Durability::Process, Durability::PowerLoss] {
        for (removal, (old, new)) in REMOVALS
            .into_iter()
            .flat_map(|removal| UPDATES.map(|update| (removal, update)))
        {
            for_each_power_loss(
                (durability, removal),
                (old, new),
                all_kept,
                |volume, returned, when| {
                    let seen = visible(volume);
                    assert!(
                        seen.as_deref() == Some(new) || (!returned && seen.as_deref() == old),
                        "{seen:?} after {when}"
                    );
                    writer(volume, durability, None).write(&payload(new)).unwrap();
                    check_whole(volume, new);
                },
            );
        }
    }
}

/// Otherwise the tests above prove nothing.
#[test]
fn the_model_tears_what_was_not_synced_and_the_next_write_heals_that_too() {
    let mut torn = 0;
    let (old, new) = UPDATES[1];
    for_each_power_loss(
        (Durability::Process, Removal::AtOnce),
        (old, new),
        ModelDisk::fates,
        |volume, _, _| {
            let seen = visible(volume);
            torn += usize::from(seen.as_deref() != Some(new) && seen.as_deref() != old);
            writer(volume, Durability::PowerLoss, None)
                .write(&payload(new))
                .unwrap();
            check_whole(volume, new);
        },
    );
    assert!(torn > 0);
}

/// What happens to one write of a sequence.
#[derive(Debug, Clone)]
enum End {
    Returns,
    /// The process dies before this operation; the machine runs on.
    Dies(usize),
    /// The power goes before this operation, or after the write; the number draws what is lost.
    LosesPower(usize, u64),
}

fn ends() -> impl Strategy<Value = End> {
    prop_oneof![
        3 => Just(End::Returns),
        2 => (1_usize..50).prop_map(End::Dies),
        2 => (1_usize..70, any::<u64>()).prop_map(|(operation, draw)| End::LosesPower(operation, draw)),
    ]
}

const CONTENTS: [&str; 6] = [
    "",
    "a=1 b=1",
    "a=2 b/c=2",
    "b=3@600",
    "a=1 b=1@640 d/e/f=4",
    "d=5 e=5",
];

proptest! {
    // Each case is a dozen writes and reboots.
    #![proptest_config(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(ProptestConfig::default().cases / 4)
    })]


    /// Writers of both durabilities come and go over one directory.
    #[test]
    fn sequences_of_writes_crashes_and_power_losses_stay_whole(
        sequence in prop::collection::vec((0..CONTENTS.len(), any::<bool>(), any::<bool>(), ends()), 1..12)
    ) {
        let scratch = scratch();
        let new_directory = |number: usize| -> PathBuf {
            let path = scratch.path().join(number.to_string());
            fs::create_dir(&path).unwrap();
            path
        };
        let mut volume = new_directory(0);
        let mut disk = Arc::new(ModelDisk::of(&volume));
        // What readers may see now, and after a power loss; `None` there: anything, for nobody synced.
        let mut seen: Option<&str> = None;
        let mut durable: Option<Vec<Option<&str>>> = Some(vec![None]);
        let last = sequence.len() + 1;
        for (number, (content, is_power_proof, is_deferred, end)) in sequence.into_iter().enumerate() {
            let text = CONTENTS[content];
            let durability = if is_power_proof { Durability::PowerLoss } else { Durability::Process };
            let die_at = match end {
                End::Returns => 0,
                End::Dies(operation) | End::LosesPower(operation, _) => operation,
            };
            let removal = REMOVALS[usize::from(is_deferred)];
            let Run { returned, died } = run(&volume, (durability, removal), &disk, text, die_at);
            let shown = visible(&volume);
            prop_assert!(shown.as_deref() == Some(text) || (!returned && shown.as_deref() == seen), "{shown:?}");
            if shown.as_deref() == Some(text) {
                seen = Some(text);
            }
            if !died {
                check_whole(&volume, text);
            }
            durable = match durable {
                _ if returned && is_power_proof => Some(vec![Some(text)]),
                Some(possible) if is_power_proof => Some(possible.into_iter().chain([Some(text)]).collect()),
                // Nobody synced, unless it was there already and nothing had to be done.
                _ => None,
            };
            if let End::LosesPower(_, seed) = end {
                let rebooted = new_directory(number + 1);
                disk.after_power_loss(&disk.drawn_fates(seed), &rebooted);
                let shown = visible(&rebooted);
                if let Some(possible) = &durable {
                    prop_assert!(possible.contains(&shown.as_deref()), "{shown:?}, not of {possible:?}");
                }
                volume = rebooted;
                disk = Arc::new(ModelDisk::of(&volume));
                seen = CONTENTS.into_iter().find(|text| shown.as_deref() == Some(*text));
                if shown.is_some() && seen.is_none() {
                    // Torn by a writer that does not sync: the next one mends it.
                    prop_assert!(durable.is_none());
                    let mended = run(&volume, (Durability::PowerLoss, Removal::AtOnce), &disk, text, 0);
                    prop_assert!(mended.returned);
                    seen = Some(text);
                }
                durable = Some(vec![seen]);
            }
        }
        run(&volume, (Durability::PowerLoss, Removal::AtOnce), &disk, "a=last", 0);
        check_whole(&volume, "a=last");
        let rebooted = new_directory(last);
        disk.after_power_loss(&disk.drawn_fates(0), &rebooted);
        prop_assert_eq!(visible(&rebooted), Some("a=last".to_owned()));
    }
}
