//! Where shims come from, and what they must not have from there.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use rustix::process::{Pid, Signal};

use crate::fixture::{Fixture, POD, sandbox};

#[tokio::test]
async fn a_pod_starts_after_its_zygote_was_killed_and_nobody_is_left_to_reap() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    assert!(
        fixture.zygotes().is_empty(),
        "there is none before there is a pod"
    );
    fixture.pod(&runtime).await;
    let first = fixture.zygotes();
    let others = ["a", "b", "c"].map(|uid| {
        let runtime = runtime.clone();
        tokio::spawn(async move { runtime.run_sandbox(sandbox(uid)).await })
    });
    for other in others {
        other.await.expect("no panic").expect("a sandbox beside others");
    }
    assert_eq!(
        (fixture.zygotes(), first.len()),
        (first.clone(), 1),
        "one for all"
    );

    let pid = Pid::from_raw(first[0]).expect("a pid");
    rustix::process::kill_process(pid, Signal::KILL).expect("killed");
    runtime.run_sandbox(sandbox("after")).await.expect("a sandbox");
    let second = fixture.zygotes();
    assert!(second.len() == 1 && second != first, "{first:?} {second:?}");
    // Those of before have not noticed.
    let status = runtime
        .start_container(POD, fixture.script("web", "sleep 1000"))
        .await;
    status.expect("started");

    let own = std::process::id().to_string();
    for (pid, stat) in processes("stat") {
        let fields = stat.rsplit_once(") ").map_or("", |(_, fields)| fields);
        let mut fields = fields.split(' ');
        let (state, parent) = (fields.next(), fields.next());
        assert!(
            state != Some("Z") || parent != Some(&own),
            "{pid} waits to be reaped: {stat}"
        );
    }
    drop(runtime);
    while !fixture.zygotes().is_empty() {
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn a_shim_has_what_it_shall_have_and_nothing_of_who_came_before() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    // The zygote has had to do with another one already.
    runtime.run_sandbox(sandbox("short")).await.expect("a sandbox");
    fixture.pod(&runtime).await;
    let id = fixture.config.instance_id.as_str();
    let called = |uid: &str, rest: &str| {
        let program = env!("CARGO_BIN_EXE_hotmap-shim");
        let text = format!("{program}\0__hotmap-shim\0{id}\0{uid}\0{rest}");
        let found = processes("cmdline").into_iter().find(|(_, shown)| *shown == text);
        found.map(|(pid, _)| pid)
    };
    assert!(called("short", &"\0".repeat(POD.len() - "short".len())).is_some());
    let shim = called(POD, "").expect("named as a program of its own is");
    let of = |pid: &str, file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).expect(file);
    let link = |pid: &str, file: &str| fs::read_link(format!("/proc/{pid}/{file}")).expect(file);
    let pid = shim.to_string();
    assert_eq!(of(&pid, "environ"), "");
    assert_eq!(of(&pid, "comm"), "hotmap-shim\n");
    assert_eq!(of(&pid, "limits"), of("self", "limits"));
    let pod_dir = fs::canonicalize(fixture.config.state_dir.join(POD)).expect("there");
    assert_eq!(link(&pid, "cwd"), pod_dir);
    for namespace in ["ns/mnt", "ns/pid", "ns/net", "ns/user"] {
        assert_eq!(link(&pid, namespace), link("self", namespace), "{namespace}");
    }
    let status = of(&pid, "status");
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.expect(name).trim().to_owned()
    };
    // Of those that have names: the C library's posix_spawn leaves its own two ignored.
    let signals = |name: &str| {
        let mask = u64::from_str_radix(&field(name), 16).expect("a mask");
        Vec::from_iter((1..32).filter(|signal| mask >> (signal - 1) & 1 == 1))
    };
    let [hup, int, quit, pipe, term, chld] = [1, 2, 3, 13, 15, 17];
    assert_eq!(signals("SigBlk:"), [chld]);
    assert_eq!(signals("SigIgn:"), [hup, int, quit, pipe, term]);
    assert_eq!(field("Umask:"), "0077");
    assert_eq!(field("Threads:"), "1");
    assert_ne!(field("PPid:"), fixture.zygotes()[0].to_string());
    assert_ne!(field("PPid:"), std::process::id().to_string());

    // Namespaces, signals, its door, and whoever watches; no directory and no pipe.
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("it lives")
        .flatten();
    let targets: Vec<(String, PathBuf)> = descriptors
        .map(|fd| {
            let target = fs::read_link(fd.path()).expect("open");
            (fd.file_name().to_string_lossy().into_owned(), target)
        })
        .collect();
    let standard = |number: &str| {
        targets
            .iter()
            .find(|(fd, _)| fd == number)
            .map(|(_, target)| target)
    };
    assert_eq!(standard("0"), Some(&PathBuf::from("/dev/null")));
    assert_eq!(standard("1"), Some(&PathBuf::from("/dev/null")));
    assert_eq!(standard("2"), Some(&pod_dir.join("shim.log")));
    let kinds: BTreeSet<String> = targets
        .iter()
        .filter(|(fd, _)| !["0", "1", "2"].contains(&fd.as_str()))
        .map(|(_, target)| {
            let target = target.to_string_lossy();
            target.split(":[").next().unwrap_or_default().to_owned()
        })
        .collect();
    let expected = ["anon_inode", "ipc", "mnt", "net", "pid", "socket", "user", "uts"];
    let expected: BTreeSet<String> = expected.map(str::to_owned).into();
    assert_eq!(kinds, expected, "{targets:?}");
    assert!(targets.len() <= 3 + 7 + 1 + 2, "{targets:?}");
}

/// A file of every process.
fn processes(file: &str) -> Vec<(i32, String)> {
    let entries = fs::read_dir("/proc").expect("procfs").flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            Some((pid, fs::read_to_string(entry.path().join(file)).ok()?))
        })
        .collect()
}

impl Fixture {
    /// The processes that shims of this instance are forked from.
    pub(crate) fn zygotes(&self) -> Vec<i32> {
        let named = format!("\0__hotmap-zygote\0{}\0", self.config.instance_id);
        let all = processes("cmdline").into_iter();
        all.filter(|(_, shown)| shown.contains(&named))
            .map(|(pid, _)| pid)
            .collect()
    }
}
