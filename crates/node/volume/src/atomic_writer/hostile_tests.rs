//! Somebody who may write into the volume plants what he likes, under every name the writer uses.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
use rustix::mount::{MountPropagationFlags, UnmountFlags, mount_bind, mount_change, unmount};

use super::tests::{names, payload, visible};
use super::*;

const OLD: &str = "a=old d/e=old";
const NEW: &str = "a=new d/e=new";

/// What is planted in place of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Plant {
    LinkToDirectory,
    LinkToFile,
    LinkToItself,
    Directory,
    File,
    Fifo,
    Socket,
    /// For root only.
    Device,
    /// A directory with the one outside mounted on it; for root only.
    Mount,
}

const PLANTS: [Plant; 9] = [
    Plant::LinkToDirectory,
    Plant::LinkToFile,
    Plant::LinkToItself,
    Plant::Directory,
    Plant::File,
    Plant::Fifo,
    Plant::Socket,
    Plant::Device,
    Plant::Mount,
];

impl Plant {
    /// False: not allowed to.
    fn plant(self, at: &Path, outside: &Path) -> bool {
        match self {
            Self::LinkToDirectory => symlink(outside, at).unwrap(),
            Self::LinkToFile => symlink(outside.join("a"), at).unwrap(),
            Self::LinkToItself => symlink(at.file_name().unwrap(), at).unwrap(),
            Self::Directory => {
                fs::create_dir(at).unwrap();
                fs::write(at.join("a"), "planted").unwrap();
            }
            Self::File => fs::write(at, "planted").unwrap(),
            Self::Fifo => mknodat(CWD, at, FileType::Fifo, Mode::from_raw_mode(0o666), 0).unwrap(),
            Self::Socket => drop(UnixListener::bind(at).unwrap()),
            Self::Device | Self::Mount if !rustix::process::geteuid().is_root() => return false,
            Self::Device => {
                let null = makedev(1, 3);
                mknodat(
                    CWD,
                    at,
                    FileType::CharacterDevice,
                    Mode::from_raw_mode(0o666),
                    null,
                )
                .unwrap();
            }
            Self::Mount => {
                fs::create_dir(at).unwrap();
                mount_bind(outside, at).unwrap();
            }
        }
        true
    }

    fn weed(self, at: &Path) {
        if self == Self::Mount {
            unmount(at, UnmountFlags::DETACH).unwrap();
        }
        remove(at);
    }
}

fn remove(at: &Path) {
    match fs::symlink_metadata(at) {
        Ok(is) if is.is_dir() => fs::remove_dir_all(at).unwrap(),
        Ok(_) => fs::remove_file(at).unwrap(),
        Err(_) => {}
    }
}

/// Runs where mounts are nobody else's; they end with it.
pub(super) fn in_mount_namespace(run: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                // SAFETY: the thread was just made, and nobody else shares its file system attributes after.
                unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }.unwrap();
                mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).unwrap();
            }
            run();
        });
        thread.join().unwrap();
    });
}

/// Names that can be foretold, so that they can be taken.
#[derive(Default)]
struct Foretold(AtomicU32);

impl RevisionNames for Foretold {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1_769_850_307)
    }

    fn random(&self) -> u32 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

struct Scene {
    temporary: tempfile::TempDir,
    writer: AtomicWriter,
}

impl Scene {
    fn new(removal: Removal) -> Self {
        let temporary = tempfile::tempdir().unwrap();
        for directory in ["volume", "outside/e"] {
            fs::create_dir_all(temporary.path().join(directory)).unwrap();
        }
        for file in ["a", "e/e"] {
            fs::write(temporary.path().join("outside").join(file), "kept").unwrap();
        }
        let root = Directory::open(temporary.path().join("volume")).unwrap();
        let options = Options {
            durability: Durability::Process,
            removal,
            ..Options::default()
        };
        let writer = AtomicWriter::with_names(root, options, Arc::new(Foretold::default()));
        writer.write(&payload(OLD)).unwrap();
        Self { temporary, writer }
    }

    fn volume(&self) -> PathBuf {
        self.temporary.path().join("volume")
    }

    fn outside(&self) -> PathBuf {
        self.temporary.path().join("outside")
    }

    fn check_outside(&self, when: &str) {
        let mut found = BTreeMap::new();
        for path in ["a", "e/e"] {
            found.insert(path, fs::read_to_string(self.outside().join(path)).ok());
        }
        let count = fs::read_dir(self.outside()).unwrap().count();
        assert!(
            found.values().all(|content| content.as_deref() == Some("kept")) && count == 2,
            "outside was touched: {found:?}, {when}"
        );
    }
}

const REVISION: &str = "..2026_01_31_09_05_07";

#[test]
fn whatever_is_planted_under_a_name_of_the_writers_nothing_outside_is_touched_and_it_heals() {
    in_mount_namespace(|| {
        for name in [
            "..data",
            "..data_tmp",
            ".0",
            ".1",
            "..unknown",
            "a",
            "d",
            "foreign",
        ] {
            // The revision that is visible, and the next one to be made.
            let name = if name.starts_with("..") || !name.starts_with('.') {
                name.to_owned()
            } else {
                format!("{REVISION}{name}")
            };
            for plant in PLANTS {
                check_plant(&name, plant);
            }
        }
    });
}

fn check_plant(name: &str, plant: Plant) {
    let when = format!("{plant:?} at {name}");
    let scene = Scene::new(Removal::AtOnce);
    let at = scene.volume().join(name);
    remove(&at);
    if !plant.plant(&at, &scene.outside()) {
        return;
    }
    let result = scene.writer.write(&payload(NEW));
    scene.check_outside(&when);
    let is_foreign = |name: &str| ["..unknown", "a", "d", "foreign"].contains(&name);
    let is_link = matches!(
        plant,
        Plant::LinkToDirectory | Plant::LinkToFile | Plant::LinkToItself
    );
    match &result {
        Ok(written) => {
            assert_eq!(visible(&scene.volume()).as_deref(), Some(NEW), "{when}");
            let shadowed: &[&str] = if ["a", "d"].contains(&name) { &[name] } else { &[] };
            assert_eq!(written.shadowed, shadowed, "{when}");
            let left: Vec<&str> = written.leftovers.iter().map(|left| &*left.name).collect();
            let may_stay = plant == Plant::Mount && name.starts_with(REVISION);
            assert!(left.is_empty() || (may_stay && left == [name]), "{left:?} {when}");
        }
        // Nothing is guessed about a `..data` that is no link, and a mount is not the writer's to remove.
        Err(error) => {
            assert!(!error.is_published(), "{error} {when}");
            let text = format!("{error}: {}", std::error::Error::source(error).unwrap());
            match name {
                "..data" => assert!(
                    !is_link && text.starts_with("cannot read ..data: "),
                    "{text} {when}"
                ),
                "..data_tmp" => assert!(
                    plant == Plant::Mount && text.starts_with("cannot swap ..data: "),
                    "{text} {when}"
                ),
                _ => panic!("{text} {when}"),
            }
        }
    }
    if is_foreign(name) {
        let found = fs::symlink_metadata(&at).unwrap().file_type();
        let kept = match plant {
            Plant::Fifo => found.is_fifo(),
            Plant::Socket => found.is_socket(),
            Plant::Device => found.is_char_device(),
            Plant::File => fs::read_to_string(&at).unwrap() == "planted",
            Plant::Directory => fs::read_to_string(at.join("a")).unwrap() == "planted",
            Plant::Mount => found.is_dir(),
            _ => found.is_symlink(),
        };
        assert!(kept, "{when}");
    }
    if result.is_err() || plant == Plant::Mount || is_foreign(name) {
        plant.weed(&at);
    }
    let healed = scene.writer.write(&payload(NEW)).unwrap();
    assert!(
        healed.leftovers.is_empty() && healed.shadowed.is_empty(),
        "{healed:?} {when}"
    );
    assert_eq!(visible(&scene.volume()).as_deref(), Some(NEW), "{when}");
    assert_eq!(
        names(&scene.volume()),
        ["..data", "..revision", "a", "d"],
        "{when}"
    );
    scene.check_outside(&when);
}

#[test]
fn whatever_replaces_a_file_of_the_visible_revision_is_noticed_and_neither_read_nor_followed() {
    in_mount_namespace(|| {
        for path in ["a", "d", "d/e"] {
            for plant in PLANTS {
                let when = format!("{plant:?} at {path}");
                let scene = Scene::new(Removal::AtOnce);
                let at = scene
                    .volume()
                    .join(fs::read_link(scene.volume().join("..data")).unwrap())
                    .join(path);
                remove(&at);
                if !plant.plant(&at, &scene.outside()) {
                    continue;
                }
                let written = scene.writer.verify_and_write(&payload(OLD)).unwrap();
                assert_eq!(written.outcome, Outcome::Swapped, "{when}");
                assert_eq!(visible(&scene.volume()).as_deref(), Some(OLD), "{when}");
                // A mount cannot be removed with the revision it is in: it is told, and goes once it can.
                assert_eq!(
                    written.leftovers.is_empty(),
                    plant != Plant::Mount,
                    "{written:?} {when}"
                );
                scene.check_outside(&when);
                if plant == Plant::Mount {
                    plant.weed(&at);
                }
                assert!(
                    scene.writer.write(&payload(OLD)).unwrap().leftovers.is_empty(),
                    "{when}"
                );
                assert_eq!(
                    names(&scene.volume()),
                    ["..data", "..revision", "a", "d"],
                    "{when}"
                );
            }
        }
    });
}

#[test]
fn a_volume_directory_that_became_a_link_is_refused_until_it_is_a_directory_again() {
    let temporary = tempfile::tempdir().unwrap();
    let (pod, outside) = (temporary.path().join("pod"), temporary.path().join("outside"));
    fs::create_dir_all(&pod).unwrap();
    fs::create_dir(&outside).unwrap();
    let parent = Directory::open(&pod).unwrap();
    let options = Options::default();
    let opened = parent.create_volume("v", &options).unwrap();
    let before = AtomicWriter::new(opened, options);
    before.write(&payload(OLD)).unwrap();
    fs::rename(pod.join("v"), pod.join("moved")).unwrap();
    symlink(&outside, pod.join("v")).unwrap();

    let error = parent.create_volume("v", &options).expect_err("a link");
    assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::LOOP.raw_os_error()));
    // A writer from before writes where it always did: what readers have mounted.
    before.write(&payload(NEW)).unwrap();
    assert_eq!(visible(&pod.join("moved")).as_deref(), Some(NEW));
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);

    fs::remove_file(pod.join("v")).unwrap();
    let after = AtomicWriter::new(parent.create_volume("v", &options).unwrap(), options);
    after.write(&payload(NEW)).unwrap();
    assert_eq!(visible(&pod.join("v")).as_deref(), Some(NEW));
}
