//! Watchers over real directories. A test waits for what must come, and shows that nothing else came by bringing about one
//! more change: times are an hour or irrelevant.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::mpsc;

use super::*;
use crate::change::KeyChange;
use crate::snapshot::Snapshot;

mod faults;
mod places;
mod properties;
mod soak;
mod writers;

use faults::Faults;
use writers::Kubelet;

/// What tests wait for at most before they say what is missing.
const PATIENCE: Duration = Duration::from_secs(60);

/// Long enough that it is no accident when nothing has waited for it.
const NEVER: Duration = Duration::from_secs(3_600);

fn config(settle: Duration) -> WatchConfig {
    WatchConfig {
        settle,
        settle_max: NEVER,
        safety_look: NEVER,
        poll: NEVER,
        ..WatchConfig::default()
    }
}

/// With a quiet time that is over soon.
fn quick(path: impl Into<PathBuf>) -> Watcher {
    Watcher::new(path, config(Duration::from_millis(20))).unwrap()
}

/// Puts a file into its place by one rename: a test that sleeps in the middle of a write is none for a quiet time.
fn put(path: &Path, content: &str) {
    let new = path.with_file_name("..new");
    fs::write(&new, content).unwrap();
    fs::rename(new, path).unwrap();
}

/// Waits until the watcher has told what a reader sees now.
fn catch_up(watcher: &mut Watcher, path: &Path) {
    let now = Snapshot::open(path).unwrap();
    let keys: Vec<&str> = now.keys().collect();
    loop {
        let change = next_change(watcher);
        assert!(!change.keys.is_empty(), "told that nothing is different");
        let told = watcher.machine.told().unwrap();
        if told.keys().map(AsRef::as_ref).eq(keys.iter().copied()) && change.revision == *now.revision() {
            return;
        }
    }
}

/// The next change, in a line; a test that gets none in [`PATIENCE`] ends.
fn next(watcher: &mut Watcher) -> String {
    let change = next_change(watcher);
    let keys: Vec<String> = change
        .keys
        .iter()
        .map(|key| match key {
            KeyChange::Added(key) => format!("+{key}"),
            KeyChange::Modified(key) => format!("~{key}"),
            KeyChange::Removed(key) => format!("-{key}"),
        })
        .collect();
    let initial = if change.is_initial { "initial " } else { "" };
    format!("{initial}{}", keys.join(" "))
}

fn next_change(watcher: &mut Watcher) -> Change {
    let stopper = watcher.stopper();
    let (done, is_done) = mpsc::channel::<()>();
    let guard = std::thread::spawn(move || {
        if is_done.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
            stopper.stop();
        }
    });
    let change = watcher.next();
    drop(done);
    guard.join().unwrap();
    change.unwrap_or_else(|Stopped| panic!("nothing was told; {}", watcher.health()))
}

#[test]
fn a_swap_is_told_at_once_and_once() {
    let temporary = tempfile::tempdir().unwrap();
    let mut kubelet = Kubelet::new(temporary.path());
    kubelet.write(&[("a", "1"), ("deep/b", "1")]);
    let mut watcher = Watcher::new(temporary.path(), config(NEVER)).unwrap();
    assert_eq!(next(&mut watcher), "initial +a +deep/b");
    for (files, told) in [
        (&[("a", "2"), ("deep/b", "1")][..], "~a"),
        (&[("a", "2"), ("c", "1")], "+c -deep/b"),
        (&[], "-a -c"),
        (&[("a", "2")], "+a"),
    ] {
        let revision = kubelet.write(files);
        assert_eq!(next(&mut watcher), told);
        assert_eq!(watcher.handle().current().unwrap().as_str(), revision);
    }
    assert!(!watcher.health().is_deaf(), "{}", watcher.health());
}

#[test]
fn a_swap_that_changes_nothing_is_not_told_and_its_name_is_known() {
    let temporary = tempfile::tempdir().unwrap();
    let mut kubelet = Kubelet::new(temporary.path());
    kubelet.write(&[("a", "1")]);
    let mut watcher = Watcher::new(temporary.path(), config(NEVER)).unwrap();
    next(&mut watcher);
    let handle = watcher.handle();
    let (said, renamed) = mpsc::channel();
    watcher.on_renamed(move |revision| said.send(revision.to_string()).unwrap());
    for round in 2..=20 {
        kubelet.write(&[("a", &format!("{}", round - 1))]);
        kubelet.write(&[("a", &format!("{round}"))]);
        assert_eq!(next(&mut watcher), "~a", "{round}");
    }
    // Of a swap between two looks it hears the later one only.
    renamed.try_iter().for_each(drop);
    let revision = kubelet.write(&[("a", "20")]);
    let stopper = watcher.stopper();
    let waiting = std::thread::spawn(move || (watcher.next().is_err(), watcher));
    let deadline = Instant::now() + PATIENCE;
    while handle.current().unwrap().as_str() != revision && Instant::now() < deadline {
        std::thread::yield_now();
    }
    assert_eq!(renamed.recv_timeout(PATIENCE).as_deref(), Ok(&*revision));
    assert_eq!(handle.current().unwrap().as_str(), revision);
    stopper.stop();
    let (is_stopped, _) = waiting.join().unwrap();
    assert!(is_stopped);
    assert_eq!(handle.counts().changes, 20);
}

#[test]
fn what_hotmap_annotates_is_no_change() {
    let temporary = tempfile::tempdir().unwrap();
    let mut kubelet = Kubelet::new(temporary.path());
    kubelet.write(&[("annotations", "team=\"a\"")]);
    let mut watcher = Watcher::new(temporary.path(), config(NEVER)).unwrap();
    next(&mut watcher);
    kubelet.write(&[("annotations", "hotmap.dev/refresh=\"1\"\nteam=\"a\"")]);
    kubelet.write(&[("annotations", "hotmap.dev/refresh=\"2\"\nteam=\"a\"")]);
    kubelet.write(&[
        ("annotations", "hotmap.dev/refresh=\"3\"\nteam=\"a\""),
        ("b", "1"),
    ]);
    assert_eq!(next(&mut watcher), "+b");
    kubelet.write(&[
        ("annotations", "hotmap.dev/refresh=\"3\"\nteam=\"b\""),
        ("b", "1"),
    ]);
    assert_eq!(next(&mut watcher), "~annotations");
}

#[test]
fn plain_files_are_told_about_when_it_is_quiet() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path();
    put(&path.join("a"), "1");
    let mut watcher = quick(path);
    assert_eq!(next(&mut watcher), "initial +a");
    put(&path.join("a"), "2");
    assert_eq!(next(&mut watcher), "~a");
    fs::remove_file(path.join("a")).unwrap();
    assert_eq!(next(&mut watcher), "-a");
    fs::create_dir(path.join("deep")).unwrap();
    put(&path.join("deep/b"), "1");
    assert_eq!(next(&mut watcher), "+deep/b");
    put(&path.join("deep/b"), "2");
    assert_eq!(next(&mut watcher), "~deep/b");
    fs::rename(path.join("deep"), path.join("moved")).unwrap();
    assert_eq!(next(&mut watcher), "-deep/b +moved/b");
    put(&path.join("moved/b"), "3");
    assert_eq!(next(&mut watcher), "~moved/b");
    // Truncated, then written: what is between the two is told if the writer sleeps there.
    fs::write(path.join("moved/b"), "4").unwrap();
    catch_up(&mut watcher, path);
    put(&path.join("c"), "1");
    assert_eq!(next(&mut watcher), "+c");
}

#[test]
fn what_editors_leave_is_no_change() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path();
    put(&path.join("a"), "1");
    let mut watcher = quick(path);
    next(&mut watcher);
    // As vim: a swap file while it is open, a backup.
    fs::write(path.join(".a.swp"), "x").unwrap();
    fs::write(path.join("a~"), "1").unwrap();
    put(&path.join("a"), "2");
    assert_eq!(next(&mut watcher), "~a");
    fs::remove_file(path.join("a~")).unwrap();
    fs::remove_file(path.join(".a.swp")).unwrap();
    // As Emacs: a lock that is a link to nowhere, an autosave.
    symlink("me@here.1:2", path.join(".#a")).unwrap();
    fs::write(path.join("#a#"), "3").unwrap();
    put(&path.join("a"), "3");
    assert_eq!(next(&mut watcher), "~a");
    fs::remove_file(path.join("#a#")).unwrap();
    fs::remove_file(path.join(".#a")).unwrap();
    // Saved without an edit, and touched.
    put(&path.join("a"), "3");
    fs::File::open(path.join("a"))
        .unwrap()
        .set_modified(std::time::SystemTime::UNIX_EPOCH)
        .unwrap();
    put(&path.join("b"), "1");
    assert_eq!(next(&mut watcher), "+b");
}

#[test]
fn a_stopped_watcher_stays_stopped() {
    let temporary = tempfile::tempdir().unwrap();
    let mut watcher = quick(temporary.path());
    assert_eq!(next(&mut watcher), "initial ");
    watcher.stopper().stop();
    put(&temporary.path().join("a"), "1");
    assert_eq!(watcher.next().unwrap_err(), Stopped);
    assert_eq!(watcher.next().unwrap_err(), Stopped);
    assert!(matches!(Watcher::new("", config(NEVER)), Err(WatchError::NoPath)));
}

#[test]
fn who_waits_for_other_things_as_well_hears_the_same() {
    let temporary = tempfile::tempdir().unwrap();
    let mut kubelet = Kubelet::new(temporary.path());
    kubelet.write(&[("a", "0")]);
    let mut watcher = Watcher::new(temporary.path(), config(NEVER)).unwrap();
    assert_eq!(watcher.due(), Due::Now);
    assert!(watcher.look().unwrap().is_initial);
    for round in 1..=20 {
        assert!(matches!(watcher.due(), Due::At(_)), "{round}");
        kubelet.write(&[("a", &round.to_string())]);
        let patience = Timespec::try_from(PATIENCE).unwrap();
        let change = loop {
            let mut ready = [rustix::event::PollFd::new(&watcher, rustix::event::PollFlags::IN)];
            assert_eq!(rustix::event::poll(&mut ready, Some(&patience)), Ok(1), "{round}");
            if watcher.due() == Due::Now
                && let Some(change) = watcher.look()
            {
                break change;
            }
        };
        assert_eq!(&*change.keys, [KeyChange::Modified("a".into())], "{round}");
    }
    watcher.stopper().stop();
    let mut ready = [rustix::event::PollFd::new(&watcher, rustix::event::PollFlags::IN)];
    assert_eq!(rustix::event::poll(&mut ready, Some(&Timespec::default())), Ok(1));
    assert_eq!(watcher.next().unwrap_err(), Stopped);
}
