//! Where a path can lead, how it comes and goes, and what is said meanwhile.

use super::*;

/// Runs until the watcher has said something of its health that contains `text`, and gives it back. The tests that use it
/// know that no change comes before.
fn until_it_says(mut watcher: Watcher, text: &'static str) -> Watcher {
    let stopper = watcher.stopper();
    let (said, hears) = mpsc::channel();
    watcher.on_health(move |health| drop(said.send(health.to_string())));
    let waiting = std::thread::spawn(move || {
        let stopped = watcher.next();
        (stopped, watcher)
    });
    let deadline = Instant::now() + PATIENCE;
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        match hears.recv_timeout(left) {
            Ok(health) if health.contains(text) => break,
            Ok(_) => {}
            Err(error) => panic!("never said {text:?}: {error}"),
        }
    }
    stopper.stop();
    let (stopped, watcher) = waiting.join().unwrap();
    stopped.expect_err("there was a change");
    // The stopper has done its work.
    let mut count = [0; 8];
    rustix::io::read(&*watcher.stopper.0, &mut count).unwrap();
    watcher
}

/// Puts a directory with one file into its place by one rename.
fn put_directory(path: &Path, name: &str, content: &str) {
    let new = path.with_file_name("..new");
    fs::create_dir(&new).unwrap();
    fs::write(new.join(name), content).unwrap();
    fs::rename(new, path).unwrap();
}

#[test]
fn a_path_that_is_not_there_is_waited_for_from_its_nearest_parent() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().canonicalize().unwrap();
    let path = root.join("some/where/config");
    let watcher = quick(&path);
    let mut watcher = until_it_says(watcher, "some is not there; waiting for it to appear in");
    let missing = Deafness::Missing {
        missing: root.join("some"),
        watched: root.clone(),
    };
    assert_eq!(watcher.health().deafness, [missing]);
    fs::create_dir_all(root.join("some/where")).unwrap();
    put_directory(&path, "a", "1");
    assert_eq!(next(&mut watcher), "+a");
    assert!(!watcher.health().is_deaf(), "{}", watcher.health());
}

#[test]
fn what_is_removed_holds_until_it_comes_back_different() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("config");
    put_directory(&path, "a", "1");
    let mut watcher = quick(&path);
    assert_eq!(next(&mut watcher), "initial +a");
    fs::rename(&path, temporary.path().join("removed")).unwrap();
    fs::remove_dir_all(temporary.path().join("removed")).unwrap();
    let mut watcher = until_it_says(watcher, "config is not there");
    put_directory(&path, "a", "1");
    watcher = until_it_says(watcher, "every change is heard");
    fs::rename(&path, temporary.path().join("elsewhere")).unwrap();
    put_directory(&path, "a", "2");
    assert_eq!(next(&mut watcher), "~a");
    // Another directory is put in its place by one rename.
    fs::create_dir(temporary.path().join("other")).unwrap();
    fs::write(temporary.path().join("other/b"), "1").unwrap();
    let (old, new) = (&path, temporary.path().join("other"));
    rustix::fs::renameat_with(
        rustix::fs::CWD,
        new,
        rustix::fs::CWD,
        old,
        rustix::fs::RenameFlags::EXCHANGE,
    )
    .unwrap();
    assert_eq!(next(&mut watcher), "-a +b");
}

#[test]
fn a_removed_directory_that_somebody_is_in_is_noticed() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("config");
    fs::create_dir(&path).unwrap();
    let held = fs::File::open(&path).unwrap();
    let mut watcher = quick(&path);
    assert_eq!(next(&mut watcher), "initial ");
    fs::remove_dir(&path).unwrap();
    let mut watcher = until_it_says(watcher, "config is not there");
    put_directory(&path, "a", "1");
    assert_eq!(next(&mut watcher), "+a");
    drop(held);
}

#[test]
fn a_projected_volume_appears_goes_and_comes_back() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("config");
    let mut watcher = Watcher::new(&path, config(NEVER)).unwrap();
    watcher = until_it_says(watcher, "config is not there");
    fs::create_dir(&path).unwrap();
    // The quiet time is an hour: what appears in a projected volume does not wait for it.
    let mut kubelet = Kubelet::new(&path);
    kubelet.write(&[("a", "1")]);
    assert_eq!(next(&mut watcher), "+a");
    fs::remove_file(path.join("..data")).unwrap();
    watcher = until_it_says(watcher, "has lost its link ..data");
    kubelet.write(&[("a", "1"), ("b", "1")]);
    assert_eq!(next(&mut watcher), "+b");
}

#[test]
fn a_file_is_followed_through_links_of_every_kind() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let mut kubelet = Kubelet::new(&root.join("volume"));
    kubelet.write(&[("a", "1"), ("b", "1")]);
    symlink("volume/a", root.join("link")).unwrap();
    fs::create_dir(root.join("real")).unwrap();
    symlink("real", root.join("alias")).unwrap();
    symlink("../link", root.join("real/config")).unwrap();
    let mut watcher = Watcher::new(root.join("alias/config"), config(Duration::from_millis(20))).unwrap();
    assert_eq!(next(&mut watcher), "initial +config");
    let revision = kubelet.write(&[("a", "1"), ("b", "2")]);
    let revision_of_a = kubelet.write(&[("a", "2"), ("b", "2")]);
    let change = next_change(&mut watcher);
    assert_eq!(change.revision.as_str(), revision_of_a, "and not {revision}");
    // The directory that the alias names is another.
    fs::create_dir(root.join("other")).unwrap();
    put(&root.join("other/config"), "3");
    symlink("other", root.join("new-alias")).unwrap();
    fs::rename(root.join("new-alias"), root.join("alias")).unwrap();
    assert_eq!(next(&mut watcher), "~config");
    // A plain file now: truncated and written, replaced, removed and made again, while somebody has it open.
    fs::write(root.join("other/config"), "4").unwrap();
    catch_up(&mut watcher, &root.join("alias/config"));
    let held = fs::File::open(root.join("other/config")).unwrap();
    fs::write(root.join("other/new"), "5").unwrap();
    fs::rename(root.join("other/new"), root.join("other/config")).unwrap();
    assert_eq!(next(&mut watcher), "~config");
    fs::remove_file(root.join("other/config")).unwrap();
    watcher = until_it_says(watcher, "config is not there");
    put(&root.join("other/config"), "6");
    assert_eq!(next(&mut watcher), "~config");
    drop(held);
}

#[test]
fn a_directory_that_a_link_names_is_swapped_whole() {
    // As git-sync does it.
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let publish = |revision: &str, content: &str| {
        fs::create_dir_all(root.join(revision).join("deep")).unwrap();
        fs::write(root.join(revision).join("deep/a"), content).unwrap();
        symlink(revision, root.join("current.tmp")).unwrap();
        fs::rename(root.join("current.tmp"), root.join("current")).unwrap();
    };
    publish("1", "1");
    let mut watcher = Watcher::new(root.join("current"), config(NEVER)).unwrap();
    assert_eq!(next(&mut watcher), "initial +deep/a");
    publish("2", "1");
    publish("3", "2");
    assert_eq!(next(&mut watcher), "~deep/a");
}

#[test]
fn volumes_and_links_within_a_directory_are_followed() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path();
    let mut kubelet = Kubelet::new(&root.join("rules/one"));
    kubelet.write(&[("a", "1")]);
    fs::write(root.join("outside"), "1").unwrap();
    symlink("../outside", root.join("rules/link")).unwrap();
    symlink("../nowhere", root.join("rules/broken")).unwrap();
    symlink(".", root.join("rules/round")).unwrap();
    symlink("/dev/null", root.join("rules/device")).unwrap();
    let mut watcher = quick(root.join("rules"));
    assert_eq!(next(&mut watcher), "initial +link +one/a");
    kubelet.write(&[("a", "2")]);
    assert_eq!(next(&mut watcher), "~one/a");
    put(&root.join("outside"), "2");
    assert_eq!(next(&mut watcher), "~link");
    put(&root.join("nowhere"), "1");
    assert_eq!(next(&mut watcher), "+broken");
    assert!(!watcher.health().is_deaf(), "{}", watcher.health());
}

#[test]
fn limits_are_said_and_kept_to() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path();
    for name in ["a", "b", "c"] {
        fs::write(path.join(name), "1").unwrap();
    }
    let limits = Limits {
        files: 2,
        ..Limits::default()
    };
    let config = WatchConfig {
        limits,
        ..config(Duration::from_millis(20))
    };
    let watcher = Watcher::new(path, config).unwrap();
    let mut watcher = until_it_says(watcher, "there are more than 2 files; watch a smaller directory");
    fs::remove_file(path.join("c")).unwrap();
    assert_eq!(next(&mut watcher), "+a +b");
}

#[test]
fn what_is_neither_file_nor_directory_is_said() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR,
        0,
    )
    .unwrap();
    let mut watcher = until_it_says(quick(&path), "it is neither a file nor a directory");
    fs::remove_file(&path).unwrap();
    put(&path, "1");
    assert_eq!(next(&mut watcher), "+fifo");
}

#[test]
fn proc_is_looked_at_now_and_then() {
    let watcher = quick("/proc/sys/kernel/random/boot_id");
    let mut watcher = watcher;
    assert_eq!(next(&mut watcher), "initial +boot_id");
    let health = watcher.health().to_string();
    assert!(health.contains("is on proc, which does not tell"), "{health}");
}

#[test]
fn without_instances_or_watches_it_looks_and_says_what_to_raise() {
    type Which = fn(&Faults) -> &std::sync::atomic::AtomicU32;
    let cases: [(Which, &str); 2] = [
        (|faults| &faults.instance, "raise fs.inotify.max_user_instances"),
        (|faults| &faults.watch, "raise fs.inotify.max_user_watches"),
    ];
    for (which, said) in cases {
        let temporary = tempfile::tempdir().unwrap();
        let mut kubelet = Kubelet::new(temporary.path());
        kubelet.write(&[("a", "1")]);
        let config = WatchConfig {
            poll: Duration::from_millis(5),
            ..config(NEVER)
        };
        let mut watcher = Watcher::new(temporary.path(), config).unwrap();
        let faults = Arc::new(Faults::default());
        faults.beneath(&mut watcher);
        which(&faults).store(1, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(next(&mut watcher), "initial +a");
        assert!(
            watcher.health().to_string().contains(said),
            "{}",
            watcher.health()
        );
        kubelet.write(&[("a", "2")]);
        assert_eq!(next(&mut watcher), "~a");
        // There are some again: found by the next look, without anybody's help.
        which(&faults).store(0, std::sync::atomic::Ordering::Relaxed);
        let mut watcher = until_it_says(watcher, "every change is heard");
        kubelet.write(&[("a", "3")]);
        assert_eq!(next(&mut watcher), "~a");
        assert_eq!(watcher.handle().counts().found_by_looking, 0);
    }
}
