//! Watchers over real directories. Each test waits for what must come; the times are far apart or irrelevant.

use std::fs;

use super::*;
use crate::change::KeyChange;

mod writers;

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
    let (done, is_done) = std::sync::mpsc::channel::<()>();
    let guard = std::thread::spawn(move || {
        if is_done.recv_timeout(PATIENCE).is_err() {
            stopper.stop();
        }
    });
    let change = watcher.next();
    let _ = done.send(());
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
}

#[test]
fn plain_files_are_told_about_when_it_is_quiet() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path();
    fs::write(path.join("a"), "1").unwrap();
    let mut watcher = Watcher::new(path, config(Duration::from_millis(20))).unwrap();
    assert_eq!(next(&mut watcher), "initial +a");
    fs::write(path.join("a"), "2").unwrap();
    assert_eq!(next(&mut watcher), "~a");
    fs::write(path.join("new"), "3").unwrap();
    fs::rename(path.join("new"), path.join("a")).unwrap();
    assert_eq!(next(&mut watcher), "~a");
    fs::remove_file(path.join("a")).unwrap();
    assert_eq!(next(&mut watcher), "-a");
    fs::create_dir(path.join("deep")).unwrap();
    fs::write(path.join("deep/b"), "1").unwrap();
    assert_eq!(next(&mut watcher), "+deep/b");
    fs::write(path.join("deep/b"), "2").unwrap();
    assert_eq!(next(&mut watcher), "~deep/b");
}
