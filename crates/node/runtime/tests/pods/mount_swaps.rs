//! What a mount of a running container shows is changed, and nobody inside sees how.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hotmap_runtime::{ContainerConfig, MountSwap, MountSwaps, Runtime, SwapError, Swapped};
use rustix::fs::{CWD, Mode, OFlags, inotify};
use rustix::mount::{MoveMountFlags, OpenTreeFlags};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use crate::fixture::{Fixture, POD, host_pid, mount, stdout_of};

/// Swaps under readers at full speed: 1,000 in a test run, `HOTMAP_TEST_MOUNT_SWAPS` in a soak.
fn swaps() -> usize {
    let asked = std::env::var("HOTMAP_TEST_MOUNT_SWAPS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(1_000)
}

const FILE: &str = "/etc/app/app.conf";
const SLEEP: &str = "trap 'exit 0' TERM; while :; do sleep 1000 & wait; done";

/// A running container named `web` with one mount that changes.
struct Web {
    runtime: Runtime,
    swaps: MountSwaps,
    /// Its first process on the host.
    pid: i32,
    target: PathBuf,
    versions: PathBuf,
}

impl Web {
    /// The mount at `target` shows the file `name` of version 0.
    async fn start(
        fixture: &Fixture,
        target: &str,
        name: &str,
        change: impl FnOnce(&mut ContainerConfig),
    ) -> Self {
        let runtime = fixture.open().await;
        fixture.pod(&runtime).await;
        let versions = fixture.dir.path().join("versions");
        let mut config = fixture.script("web", SLEEP);
        config
            .mounts
            .push(mount(&version(&versions, 0).join(name), target, true));
        change(&mut config);
        let status = runtime.start_container(POD, config).await.expect("started");
        let swaps = runtime.mount_swaps(POD).await.expect("connected");
        Self {
            runtime,
            swaps,
            pid: host_pid(&status),
            target: target.into(),
            versions,
        }
    }

    async fn show(&mut self, source: &Path) -> Result<Swapped, SwapError> {
        let source = opened(source);
        let swap = MountSwap {
            container: "web",
            attempt: 0,
            target: &self.target,
            source: &source,
            read_only: true,
        };
        self.swaps.swap(swap).await
    }

    /// Shows the file of a version, and takes the one before away as a writer of volumes does.
    async fn show_version(&mut self, number: usize) -> Swapped {
        let shown = version(&self.versions, number).join("app.conf");
        let swapped = self.show(&shown).await.expect("swapped");
        if let Some(before) = number.checked_sub(1)
            && swapped != Swapped::Unchanged
        {
            fs::remove_dir_all(self.versions.join(before.to_string())).expect("removed");
        }
        swapped
    }

    /// A path of the container, from the host.
    fn inside(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        let relative = path.strip_prefix("/").unwrap_or(path);
        Path::new(&format!("/proc/{}/root", self.pid)).join(relative)
    }

    fn read(&self) -> String {
        fs::read_to_string(self.inside(&self.target)).expect("readable")
    }

    /// How many mounts the container has, and how many of them at the target.
    fn mounts(&self) -> (usize, usize) {
        let table = fs::read_to_string(format!("/proc/{}/mountinfo", self.pid)).expect("readable");
        let at_target = |line: &&str| line.split(' ').nth(4).map(Path::new) == Some(self.target.as_path());
        (table.lines().count(), table.lines().filter(at_target).count())
    }
}

/// A file and a directory whose every line says which version it is.
fn version(versions: &Path, number: usize) -> PathBuf {
    let directory = versions.join(number.to_string());
    fs::create_dir_all(directory.join("sub")).expect("made");
    fs::write(directory.join("app.conf"), content(number)).expect("written");
    fs::write(directory.join("sub/key"), content(number)).expect("written");
    directory
}

fn content(number: usize) -> String {
    format!("{number:07}\n").repeat(512)
}

fn opened(path: &Path) -> OwnedFd {
    rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).expect("opened")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_changes_a_thousand_times_and_no_reader_misses_it() {
    let Some(fixture) = Fixture::that_swaps_mounts() else {
        return;
    };
    let swaps = swaps();
    let mut web = Web::start(&fixture, FILE, "app.conf", |config| {
        // A reader inside, as slow as a shell is.
        config.argv[3] = format!("while :; do cat {FILE} >/dev/null || echo missed; done");
        config.user = hotmap_runtime::ProcessUser {
            uid: 1_000,
            gid: 1_000,
            supplementary_groups: Vec::new(),
            merge_groups: false,
        };
    })
    .await;
    let mut held = File::open(web.inside(FILE)).expect("opened");
    let before = web.mounts();
    let stop = Arc::new(AtomicBool::new(false));
    let reader = thread::spawn({
        let (stop, path) = (Arc::clone(&stop), web.inside(FILE));
        move || {
            let (mut reads, mut newest) = (0usize, 0);
            while !stop.load(Ordering::Relaxed) {
                let text = fs::read_to_string(&path).expect("never a moment without the file");
                let number: usize = text[..7].parse().expect("a version");
                assert_eq!(text, content(number), "one version, whole");
                assert!(number >= newest, "{number} after {newest}");
                newest = number;
                reads += 1;
            }
            reads
        }
    });
    for number in 1..=swaps {
        assert!(matches!(web.show_version(number).await, Swapped::Changed { .. }));
    }
    stop.store(true, Ordering::Relaxed);
    assert!(reader.join().expect("nothing was missed") > 0);
    assert_eq!(web.read(), content(swaps));
    assert_eq!(web.mounts(), before, "as many mounts as at the start");
    let mut text = String::new();
    held.seek(SeekFrom::Start(0)).expect("sought");
    held.read_to_string(&mut text).expect("still readable");
    assert_eq!(text, content(0), "what is open stays what it was");
    assert_eq!(web.show_version(swaps).await, Swapped::Unchanged);
    assert!(!fixture.log("web").contains(&"missed".to_owned()));
    let seen = stdout_of(&web.runtime, "web", &format!("head -n1 {FILE}")).await;
    assert_eq!(seen, format!("{swaps:07}"));
    let script = format!("echo x >{FILE} || echo no; umount {FILE} || echo no");
    let denied = stdout_of(&web.runtime, "web", &script).await;
    assert_eq!(denied, "no\nno", "what is new is as closed as the old");
}

#[tokio::test]
async fn watchers_of_the_directory_are_told_without_a_write_to_any_volume() {
    let Some(fixture) = Fixture::that_swaps_mounts() else {
        return;
    };
    for (target, directory, read_only_root, is_told) in [
        (FILE, "/etc/app", false, true),
        (FILE, "/etc/app", true, true),
        // Through a link that leads elsewhere.
        ("/alias/app.conf", "/etc/default", false, true),
        ("/run/app/app.conf", "/run/app", false, true),
        // The file that is covered lies in a volume, and volumes are not ours to write to.
        ("/data/app.conf", "/data", false, false),
    ] {
        let volume = fixture.dir.path().join("volume");
        fs::create_dir_all(&volume).expect("made");
        let mut web = Web::start(&fixture, target, "app.conf", |config| {
            config.read_only_root = read_only_root;
            config.links.push(("/alias".into(), "/etc/default".into()));
            config.mounts.insert(0, mount(&volume, "/data", false));
        })
        .await;
        let watch =
            inotify::init(inotify::CreateFlags::CLOEXEC | inotify::CreateFlags::NONBLOCK).expect("made");
        let flags = inotify::WatchFlags::MODIFY | inotify::WatchFlags::CLOSE_WRITE;
        inotify::add_watch(&watch, web.inside(directory), flags).expect("watched");
        for number in 1..=3 {
            let swapped = web.show_version(number).await;
            assert_eq!(
                swapped,
                Swapped::Changed {
                    watchers_told: is_told
                },
                "{target}"
            );
            let told = if is_told {
                "app.conf MODIFY, app.conf CLOSE_WRITE"
            } else {
                ""
            };
            assert_eq!(events(&watch), told, "{target} {read_only_root}");
        }
        for stub in fs::read_dir(&volume).expect("readable") {
            let stub = fs::metadata(stub.expect("an entry").path()).expect("there");
            assert_eq!(stub.len(), 0, "the volume is as it was");
        }
        web.runtime.remove_pod(POD).await.expect("removed");
        fs::remove_dir_all(&web.versions).expect("removed");
    }
}

fn events(watch: &OwnedFd) -> String {
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(watch, &mut buffer);
    let mut told = Vec::new();
    while let Ok(event) = reader.next() {
        let name = event
            .file_name()
            .and_then(|name| name.to_str().ok())
            .unwrap_or_default();
        let kind = if event.events().contains(inotify::ReadFlags::MODIFY) {
            "MODIFY"
        } else {
            "CLOSE_WRITE"
        };
        told.push(format!("{name} {kind}"));
    }
    told.join(", ")
}

#[test]
fn the_bare_calls_can_be_measured_and_leave_nothing() {
    let Some(_fixture) = Fixture::that_swaps_mounts() else {
        return;
    };
    let mounts = || fs::read_to_string("/proc/self/mountinfo").expect("readable");
    let before = mounts();
    let samples = hotmap_runtime::bare_mount_swaps(10).expect("measured");
    assert_eq!((samples.len(), mounts()), (10, before));
}

#[tokio::test]
async fn a_directory_changes_as_a_whole_and_only_into_a_directory() {
    let Some(fixture) = Fixture::that_swaps_mounts() else {
        return;
    };
    let mut web = Web::start(&fixture, "/etc/app", "sub", |_| {}).await;
    let key = web.inside("/etc/app/key");
    let held = opened(&web.inside("/etc/app"));
    let before = web.mounts();
    for number in 1..=3 {
        let directory = version(&web.versions, number);
        let swapped = web.show(&directory.join("sub")).await.expect("swapped");
        assert_eq!(swapped, Swapped::Changed { watchers_told: true });
        assert_eq!(fs::read_to_string(&key).expect("readable"), content(number));
    }
    assert_eq!(web.mounts(), before);
    let held = rustix::fs::openat(held.as_fd(), "key", OFlags::RDONLY, Mode::empty()).expect("opened");
    let mut text = String::new();
    File::from(held).read_to_string(&mut text).expect("readable");
    assert_eq!(text, content(0), "who is in the directory stays in it");
    let file = web.versions.join("3/app.conf");
    let refused = web.show(&file).await.expect_err("a file");
    assert!(
        matches!(&refused, SwapError::Unavailable(text) if text.contains("was a directory")),
        "{refused}"
    );
    assert_eq!(
        fs::read_to_string(&key).expect("readable"),
        content(3),
        "what was shown still is"
    );
    web.target = "/etc/other".into();
    let refused = web.show(&file).await.expect_err("no mount");
    assert!(matches!(refused, SwapError::Failed(_)), "{refused}");
    web.runtime
        .stop_container(POD, "web", None, None, std::time::Duration::from_secs(5))
        .await
        .expect("stopped");
    let refused = web.show(&file).await.expect_err("it has ended");
    assert!(matches!(refused, SwapError::NotRunning), "{refused}");
    assert!(matches!(
        web.runtime.mount_swaps("other").await,
        Err(SwapError::NotRunning)
    ));
}

#[tokio::test]
async fn a_swap_that_stopped_midway_is_put_right_by_who_comes_next() {
    let Some(fixture) = Fixture::that_swaps_mounts() else {
        return;
    };
    let mut web = Web::start(&fixture, FILE, "app.conf", |_| {}).await;
    let before = web.mounts();
    // Beneath: as a shim leaves it that is stopped between its two steps. Above: as an agent of old might.
    for (number, flags) in [
        (1, MoveMountFlags::MOVE_MOUNT_BENEATH),
        (3, MoveMountFlags::empty()),
    ] {
        let left = version(&web.versions, number).join("app.conf");
        stack(web.pid, &left, flags);
        assert_eq!(web.mounts(), (before.0 + 1, before.1 + 1));
        web.swaps = web.runtime.mount_swaps(POD).await.expect("connected");
        let shown = version(&web.versions, number + 1).join("app.conf");
        assert!(matches!(web.show(&shown).await, Ok(Swapped::Changed { .. })));
        assert_eq!(web.mounts(), before);
        for old in [number - 1, number] {
            fs::remove_dir_all(web.versions.join(old.to_string())).expect("removed");
        }
        assert_eq!(
            web.read(),
            content(number + 1),
            "old versions go and take nothing along"
        );
    }
}

/// Attaches one more mount of a file at the target, on a thread of its own in the container's mount namespace.
fn stack(pid: i32, file: &Path, flags: MoveMountFlags) {
    let flags = flags | MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    let clone = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = rustix::mount::open_tree(CWD, file, clone).expect("cloned");
    let space = File::open(format!("/proc/{pid}/ns/mnt")).expect("opened");
    let entered = thread::spawn(move || {
        // SAFETY: only the root and the working directory of this thread, which ends here, are no longer shared.
        unsafe { rustix::thread::unshare_unsafe(UnshareFlags::FS) }.expect("unshared");
        let kind = Some(LinkNameSpaceType::Mount);
        rustix::thread::move_into_link_name_space(space.as_fd(), kind).expect("entered");
        rustix::mount::move_mount(&tree, "", CWD, FILE, flags).expect("attached");
    });
    entered.join().expect("no panic");
}

#[tokio::test]
async fn who_leaves_the_mounts_it_was_started_with_is_told_so() {
    let Some(fixture) = Fixture::that_swaps_mounts() else {
        return;
    };
    let mut web = Web::start(&fixture, FILE, "app.conf", |config| {
        config.argv[3] = "exec unshare -U -m /bin/busybox sh -c 'echo away; sleep 1000'".to_owned();
        config.user.uid = 1_000;
    })
    .await;
    while !fixture.log_path("web").exists() || fixture.log("web").is_empty() {
        tokio::task::yield_now().await;
    }
    let shown = version(&web.versions, 1).join("app.conf");
    let refused = web.show(&shown).await.expect_err("nobody is there");
    assert!(
        matches!(&refused, SwapError::Unavailable(text) if text.contains("has left the mounts")),
        "{refused}"
    );
    assert_eq!(web.read(), content(0));
}
