//! What a writer does to a directory, and what a reader of it sees.

use std::collections::BTreeMap;
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::inotify;

use super::*;
use crate::payload::{FileMode, PayloadFile};

/// A payload from `path=content` or `path=content@mode`, space separated.
pub(super) fn payload(text: &str) -> Payload {
    let mut payload = Payload::new();
    for file in text.split_whitespace() {
        let (path, content) = file.split_once('=').expect("path=content");
        let (content, mode) = content.split_once('@').unwrap_or((content, "644"));
        let mode = FileMode::new(u32::from_str_radix(mode, 8).unwrap()).unwrap();
        payload
            .insert(path.parse().unwrap(), PayloadFile::new(content.to_owned(), mode))
            .unwrap();
    }
    payload
}

/// What a reader sees through one handle on `..data`, as [`payload`] writes it; `None` without `..data`.
pub(super) fn visible(volume: &Path) -> Option<String> {
    let data = fs::canonicalize(volume.join("..data")).ok()?;
    let mut files = BTreeMap::new();
    let mut directories = vec![data.clone()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                directories.push(entry.path());
            } else {
                let mode = entry.metadata().unwrap().mode() & 0o7777;
                let mode = if mode == 0o644 {
                    String::new()
                } else {
                    format!("@{mode:o}")
                };
                let path = entry.path().strip_prefix(&data).unwrap().display().to_string();
                let content = fs::read_to_string(entry.path()).unwrap();
                files.insert(path.clone(), format!("{path}={content}{mode}"));
            }
        }
    }
    Some(files.into_values().collect::<Vec<_>>().join(" "))
}

/// The names in the volume, sorted; revisions as `..revision`.
pub(super) fn names(volume: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(volume)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| {
            if RevisionName::parse(&name).is_some() {
                "..revision".to_owned()
            } else {
                name
            }
        })
        .collect();
    names.sort();
    names
}

/// One second and one number per revision, so names are predictable.
#[derive(Default)]
struct CountingNames(AtomicU32);

impl RevisionNames for CountingNames {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_769_850_307)
    }

    fn random(&self) -> u32 {
        // Every number twice: the second one is taken.
        self.0.fetch_add(1, Ordering::Relaxed) / 2
    }
}

struct Volume {
    temporary: tempfile::TempDir,
    writer: AtomicWriter,
}

impl Volume {
    fn new(options: Options) -> Self {
        Self::beneath(&std::env::temp_dir(), options)
    }

    fn beneath(parent: &Path, options: Options) -> Self {
        let temporary = tempfile::tempdir_in(parent).unwrap();
        fs::set_permissions(temporary.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let writer = AtomicWriter::new(Directory::open(temporary.path()).unwrap(), options);
        Self { temporary, writer }
    }

    fn path(&self) -> &Path {
        self.temporary.path()
    }

    fn write(&self, text: &str) -> Written {
        let written = self.writer.write(&payload(text)).unwrap();
        assert!(written.leftovers.is_empty(), "{:?}", written.leftovers);
        written
    }

    fn verify(&self, text: &str) -> Outcome {
        self.writer.verify_and_write(&payload(text)).unwrap().outcome
    }

    /// Writes and checks everything a reader can see.
    fn check(&self, text: &str, outcome: Outcome, expected_names: &[&str]) {
        assert_eq!(self.write(text).outcome, outcome, "{text}");
        assert_eq!(visible(self.path()).as_deref(), Some(text));
        assert_eq!(names(self.path()), expected_names);
        for name in expected_names.iter().filter(|name| !name.starts_with("..")) {
            let target = fs::read_link(self.path().join(name)).unwrap();
            assert_eq!(target, PathBuf::from("..data").join(name));
        }
    }
}

fn inode(path: PathBuf) -> u64 {
    fs::symlink_metadata(path).unwrap().ino()
}

/// Ids that the tests may give away: any for root, else the process's own.
fn some_ids() -> Options {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    let (uid, gid) = if uid.is_root() {
        (100_000, 100_000)
    } else {
        (uid.as_raw(), gid.as_raw())
    };
    Options {
        owner: Some(Ownership { uid, gid }),
        ..Options::default()
    }
}

#[test]
fn a_write_shows_exactly_the_payload() {
    use Outcome::{Swapped, Unchanged};
    for durability in [Durability::Process, Durability::PowerLoss] {
        let volume = Volume::new(Options {
            durability,
            ..Options::default()
        });
        volume.check("", Swapped, &["..data", "..revision"]);
        volume.check("a=1 b=2", Swapped, &["..data", "..revision", "a", "b"]);
        volume.check("a=1 b=2", Unchanged, &["..data", "..revision", "a", "b"]);
        volume.check("a=2 c/d/e=3 c/f=4", Swapped, &["..data", "..revision", "a", "c"]);
        volume.check("c=file", Swapped, &["..data", "..revision", "c"]);
        volume.check("c/x=1@400 c/y=2@777", Swapped, &["..data", "..revision", "c"]);
        volume.check("", Swapped, &["..data", "..revision"]);
        volume.check("", Unchanged, &["..data", "..revision"]);
    }
}

#[test]
fn directories_of_a_revision_are_open_to_readers() {
    let volume = Volume::new(Options::default());
    volume.write("a/b/c=1@400");
    for path in ["..data", "..data/a", "..data/a/b"] {
        let mode = fs::metadata(volume.path().join(path)).unwrap().mode();
        assert_eq!(mode & 0o7777, 0o755, "{path}");
    }
}

#[test]
fn a_link_keeps_its_inode_across_updates() {
    let volume = Volume::new(Options::default());
    volume.write("a=1 b=2");
    let before = inode(volume.path().join("a"));
    volume.write("a=2 c=3");
    assert_eq!(inode(volume.path().join("a")), before);
}

#[test]
fn a_change_of_mode_alone_is_a_new_revision() {
    let volume = Volume::new(Options::default());
    let first = volume.write("a=1").revision;
    let second = volume.write("a=1@600");
    assert_eq!(second.outcome, Outcome::Swapped);
    assert_ne!(second.revision, first);
    assert_eq!(visible(volume.path()).unwrap(), "a=1@600");
}

#[test]
fn revision_names_come_from_the_source_of_names_and_are_never_reused() {
    let temporary = tempfile::tempdir().unwrap();
    let root = Directory::open(temporary.path()).unwrap();
    let writer = AtomicWriter::with_names(root, Options::default(), Arc::new(CountingNames::default()));
    for (content, name) in [("a=1", "0"), ("a=2", "1"), ("a=3", "2")] {
        // The number of the visible revision comes once more and is passed over.
        let written = writer.write(&payload(content)).unwrap();
        assert_eq!(written.revision.as_str(), format!("..2026_01_31_09_05_07.{name}"));
    }
}

#[test]
fn a_new_writer_finds_what_an_earlier_one_wrote() {
    let volume = Volume::new(Options::default());
    let first = volume.write("a=1 b/c=2").revision;
    let again = AtomicWriter::new(Directory::open(volume.path()).unwrap(), Options::default());
    let written = again.write(&payload("a=1 b/c=2")).unwrap();
    assert_eq!((written.outcome, written.revision), (Outcome::Unchanged, first));
    assert_eq!(
        again.write(&payload("a=1 b/c=3")).unwrap().outcome,
        Outcome::Swapped
    );
}

#[test]
fn a_verifying_write_mends_what_somebody_changed() {
    type Tamper = fn(&Path);
    let tampered: [(&str, Tamper); 7] = [
        ("bytes of the same length", |data| {
            fs::write(data.join("a"), "X").unwrap()
        }),
        ("longer bytes", |data| fs::write(data.join("a"), "1more").unwrap()),
        ("a mode", |data| {
            fs::set_permissions(data.join("a"), fs::Permissions::from_mode(0o666)).unwrap()
        }),
        ("a file removed", |data| {
            fs::remove_file(data.join("b/c")).unwrap()
        }),
        ("a file added", |data| fs::write(data.join("b/new"), "x").unwrap()),
        ("a file that became a link", |data| {
            fs::remove_file(data.join("a")).unwrap();
            symlink("b/c", data.join("a")).unwrap();
        }),
        ("the revision removed", |data| fs::remove_dir_all(data).unwrap()),
    ];
    for (what, tamper) in tampered {
        let volume = Volume::new(Options::default());
        let revision = volume.write("a=1 b/c=2").revision;
        assert_eq!(volume.verify("a=1 b/c=2"), Outcome::Unchanged);
        tamper(&volume.path().join(revision.as_str()));
        assert_eq!(volume.verify("a=1 b/c=2"), Outcome::Swapped, "{what}");
        assert_eq!(visible(volume.path()).as_deref(), Some("a=1 b/c=2"), "{what}");
    }
}

#[test]
fn an_unchanged_write_restores_missing_links_and_a_moved_data_link() {
    let volume = Volume::new(Options::default());
    volume.write("a=1");
    fs::remove_file(volume.path().join("a")).unwrap();
    volume.check("a=1", Outcome::Unchanged, &["..data", "..revision", "a"]);
    fs::remove_file(volume.path().join("..data")).unwrap();
    volume.check("a=1", Outcome::Swapped, &["..data", "..revision", "a"]);
}

#[test]
fn foreign_files_stay_and_shadowed_keys_are_reported() {
    let volume = Volume::new(Options::default());
    fs::write(volume.path().join("file"), "foreign").unwrap();
    fs::create_dir(volume.path().join("directory")).unwrap();
    symlink("/etc/hostname", volume.path().join("link")).unwrap();
    symlink("..data/other", volume.path().join("not-ours")).unwrap();
    fs::create_dir(volume.path().join("..unknown")).unwrap();
    let written = volume.write("file=1 directory/x=2 link=3 own=4");
    assert_eq!(written.shadowed, ["directory", "file", "link"]);
    volume.write("own=5");
    assert_eq!(
        names(volume.path()),
        [
            "..data",
            "..revision",
            "..unknown",
            "directory",
            "file",
            "link",
            "not-ours",
            "own"
        ]
    );
    assert_eq!(fs::read_to_string(volume.path().join("file")).unwrap(), "foreign");
}

#[test]
fn leftovers_of_a_crash_are_swept() {
    let volume = Volume::new(Options::default());
    volume.write("a=1");
    let orphan = volume.path().join("..2020_01_01_00_00_00.1");
    fs::create_dir_all(orphan.join("deep/er")).unwrap();
    fs::write(orphan.join("deep/er/file"), "x").unwrap();
    symlink("..2020_01_01_00_00_00.1", volume.path().join("..data_tmp")).unwrap();
    symlink("..data/dropped", volume.path().join("dropped")).unwrap();
    let restarted = AtomicWriter::new(Directory::open(volume.path()).unwrap(), Options::default());
    assert_eq!(
        restarted.write(&payload("a=1")).unwrap().outcome,
        Outcome::Unchanged
    );
    assert_eq!(names(volume.path()), ["..data", "..revision", "a"]);
}

#[test]
fn a_planted_data_link_is_replaced_and_what_it_names_is_untouched() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("a"), "1").unwrap();
    for target in [
        outside.path().to_str().unwrap(),
        "..",
        ".",
        "..2026_01_31_09_05_07.1/../..",
    ] {
        let volume = Volume::new(Options::default());
        symlink(target, volume.path().join("..data")).unwrap();
        volume.check("a=1", Outcome::Swapped, &["..data", "..revision", "a"]);
        assert!(outside.path().join("a").exists());
    }
}

#[test]
fn planted_links_never_lead_a_write_outside() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("kept"), "x").unwrap();
    let volume = Volume::new(Options::default());
    // A revision that is a link, and a link in place of the staged link.
    symlink(outside.path(), volume.path().join("..2020_01_01_00_00_00.1")).unwrap();
    symlink("..2020_01_01_00_00_00.1", volume.path().join("..data")).unwrap();
    symlink(outside.path().join("kept"), volume.path().join("..data_tmp")).unwrap();
    volume.check("kept=y", Outcome::Swapped, &["..data", "..revision", "kept"]);
    assert_eq!(fs::read_to_string(outside.path().join("kept")).unwrap(), "x");
}

#[test]
fn a_data_directory_in_place_of_the_link_is_an_error_and_stays() {
    let volume = Volume::new(Options::default());
    fs::create_dir(volume.path().join("..data")).unwrap();
    let error = volume.writer.write(&payload("a=1")).expect_err("no link");
    assert!(
        matches!(error, WriteError::Observe { .. }) && !error.is_published(),
        "{error}"
    );
    assert_eq!(names(volume.path()), ["..data"]);
}

#[test]
fn everything_belongs_to_the_owner_that_is_asked_for() {
    let options = some_ids();
    let owner = options.owner.unwrap();
    let volume = Volume::new(options);
    for text in ["a=1 b/c=2@400", "a=2 b/c=2@400 d=3"] {
        let revision = volume.write(text).revision;
        for path in [
            "..data",
            revision.as_str(),
            "a",
            "b",
            "..data/a",
            "..data/b",
            "..data/b/c",
        ] {
            let is = fs::symlink_metadata(volume.path().join(path)).unwrap();
            assert_eq!((is.uid(), is.gid()), (owner.uid, owner.gid), "{path}");
        }
        assert_eq!(volume.verify(text), Outcome::Unchanged);
    }
}

#[test]
fn a_file_may_have_an_owner_of_its_own() {
    let options = some_ids();
    let owner = options.owner.unwrap();
    // Only root gives files away; others can say what is so anyway.
    let own = if rustix::process::geteuid().is_root() {
        owner.uid + 1
    } else {
        owner.uid
    };
    let with_owner = |own: u32| {
        let mut payload = payload("a=1");
        let token = PayloadFile {
            owner: Some(own),
            ..PayloadFile::new("x", FileMode::new(0o600).unwrap())
        };
        payload.insert("token".parse().unwrap(), token).unwrap();
        payload
    };
    let volume = Volume::new(options);
    volume.writer.write(&with_owner(own)).unwrap();
    for (path, uid) in [
        ("..data/a", owner.uid),
        ("..data/token", own),
        ("token", owner.uid),
    ] {
        let is = fs::symlink_metadata(volume.path().join(path)).unwrap();
        assert_eq!((is.uid(), is.gid()), (uid, owner.gid), "{path}");
    }
    for (uid, outcome) in [
        (own, Outcome::Unchanged),
        (
            owner.uid,
            if own == owner.uid {
                Outcome::Unchanged
            } else {
                Outcome::Swapped
            },
        ),
    ] {
        let written = volume.writer.verify_and_write(&with_owner(uid)).unwrap();
        assert_eq!(written.outcome, outcome, "{uid}");
    }
}

#[test]
fn an_fs_group_widens_modes_and_owns_everything_links_included() {
    let group = some_ids().owner.unwrap().gid;
    let volume = Volume::new(Options {
        fs_group: Some(group),
        ..Options::default()
    });
    let revision = volume.write("a=1@400 b/c=2 d=3@600").revision;
    assert_eq!(visible(volume.path()).unwrap(), "a=1@440 b/c=2 d=3@640");
    for (path, mode) in [(".", 0o2777), (revision.as_str(), 0o2755), ("..data/b", 0o2755)] {
        assert_eq!(
            fs::metadata(volume.path().join(path)).unwrap().mode() & 0o7777,
            mode,
            "{path}"
        );
    }
    for path in [
        ".",
        "..data",
        revision.as_str(),
        "a",
        "b",
        "..data/b",
        "..data/b/c",
    ] {
        assert_eq!(
            fs::symlink_metadata(volume.path().join(path)).unwrap().gid(),
            group,
            "{path}"
        );
    }
    assert_eq!(volume.verify("a=1@400 b/c=2 d=3@600"), Outcome::Unchanged);
}

/// The events of a directory as `EVENT name`, revisions as `..old` and `..new`.
fn events_of_an_update(parent: &Path, options: Options, before: &str, after: &str) -> Vec<String> {
    let volume = Volume::beneath(parent, options);
    let old = volume.write(before).revision;
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).unwrap();
    let flags = inotify::WatchFlags::CREATE
        | inotify::WatchFlags::ATTRIB
        | inotify::WatchFlags::MOVE
        | inotify::WatchFlags::DELETE;
    inotify::add_watch(&watch, volume.path(), flags).unwrap();
    let new = volume.write(after).revision;

    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(&watch, &mut buffer);
    let mut events = Vec::new();
    while let Ok(event) = reader.next() {
        let kind = [
            (inotify::ReadFlags::CREATE, "CREATE"),
            (inotify::ReadFlags::ATTRIB, "ATTRIB"),
            (inotify::ReadFlags::MOVED_FROM, "MOVED_FROM"),
            (inotify::ReadFlags::MOVED_TO, "MOVED_TO"),
            (inotify::ReadFlags::DELETE, "DELETE"),
        ];
        let kind = kind
            .iter()
            .find(|(flag, _)| event.events().contains(*flag))
            .unwrap()
            .1;
        let name = event.file_name().map_or("", |name| name.to_str().unwrap());
        let name = if name == old.as_str() { "..old" } else { name };
        let name = if name == new.as_str() { "..new" } else { name };
        events.push(format!("{kind} {name}"));
    }
    events
}

#[test]
fn a_watcher_sees_the_sequence_of_a_kubelet() {
    let same_keys = [
        "CREATE ..new",
        "ATTRIB ..new",
        "CREATE ..data_tmp",
        "MOVED_FROM ..data_tmp",
        "MOVED_TO ..data",
        "DELETE ..old",
    ];
    let mut other_keys = same_keys.to_vec();
    other_keys.splice(5..5, ["CREATE c", "DELETE b"]);
    let directories = [std::env::temp_dir(), PathBuf::from("/dev/shm")];
    for directory in directories.iter().filter(|directory| directory.is_dir()) {
        for options in [Options::default(), some_ids()] {
            assert_eq!(
                events_of_an_update(directory, options, "a=1 d/e=1", "a=2 d/e=2"),
                same_keys
            );
            assert_eq!(
                events_of_an_update(directory, options, "a=1 b=1", "a=2 c=1"),
                other_keys
            );
            assert_eq!(
                events_of_an_update(directory, options, "a=1", "a=1"),
                Vec::<String>::new()
            );
        }
    }
}

/// Reads at full speed while the writer swaps. A reader that was overtaken, which means that `..data` moved on
/// while it walked, may find its revision gone; it must never find a mix, and never a missing `..data`.
#[test]
fn a_reader_at_full_speed_never_sees_a_torn_or_missing_revision() {
    const SWAPS: u32 = 2_000;
    let volume = Volume::new(Options {
        durability: Durability::Process,
        ..Options::default()
    });
    let content = |revision: u32| format!("{revision:08}").repeat(64);
    let both = |revision| payload(&format!("a={0} b={0}", content(revision)));
    volume.writer.write(&both(0)).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut reads = 0_u32;
            while !done.load(Ordering::Relaxed) {
                let before = fs::read_link(volume.path().join("..data")).expect("`..data` is never missing");
                match read_pair(volume.path()) {
                    Ok((a, b)) => {
                        assert_eq!(a, b, "a mix of two revisions");
                        assert_eq!(a.len(), 512, "a torn file");
                        reads += 1;
                    }
                    Err(_) => assert_ne!(
                        fs::read_link(volume.path().join("..data")).expect("`..data` is never missing"),
                        before,
                        "the visible revision was incomplete"
                    ),
                }
            }
            reads
        });
        for revision in 1..=SWAPS {
            volume.writer.write(&both(revision)).unwrap();
        }
        done.store(true, Ordering::Relaxed);
        assert!(reader.join().unwrap() > 0);
    });
    assert_eq!(
        fs::read_to_string(volume.path().join("a")).unwrap(),
        content(SWAPS)
    );
}

#[test]
fn a_replaced_revision_serves_its_readers_until_the_sweep_or_the_next_swap_but_one() {
    let volume = Volume::new(Options {
        removal: Removal::Deferred,
        ..Options::default()
    });
    let held = |revision: &RevisionName| volume.path().join(revision.as_str()).join("a");
    let first = volume.write("a=1 b=1").revision;
    let second = volume.write("a=2").revision;
    assert_eq!(volume.write("a=2").outcome, Outcome::Unchanged);
    assert_eq!(fs::read_to_string(held(&first)).unwrap(), "1");
    assert_eq!(names(volume.path()), ["..data", "..revision", "..revision", "a"]);
    let third = volume.write("a=3").revision;
    assert!(!held(&first).exists() && held(&second).exists());
    assert!(volume.writer.sweep().is_empty());
    assert!(!held(&second).exists() && held(&third).exists());
    volume.check("a=3", Outcome::Unchanged, &["..data", "..revision", "a"]);
}

/// Both files through one handle on the directory, as a careful program reads them.
fn read_pair(volume: &Path) -> io::Result<(String, String)> {
    use rustix::fs::{Mode, OFlags, openat};
    let data = fs::File::open(volume.join("..data"))?;
    let read = |name: &str| {
        let file = openat(&data, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        io::read_to_string(fs::File::from(file))
    };
    Ok((read("a")?, read("b")?))
}
