//! What a pod may use, in force on this machine: read back from the kernel before anything is done that would need it.

use std::fs;
use std::path::{Path, PathBuf};

use hotmap_runtime::{Exit, Resources, Runtime, SandboxConfig};

use crate::fixture::{Fixture, POD, exec, exit_of, sandbox, stdout_of};

/// A container's cgroup, in the cgroup v2 or in the v1 hierarchy of a controller; `None`, with a word, where there is none.
pub(crate) fn cgroup(fixture: &Fixture, controller: &str, below: &str) -> Option<PathBuf> {
    let name = format!("hotmap-{}", fixture.config.instance_id);
    let root = Path::new("/sys/fs/cgroup");
    let unified = fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    let mount = if unified.split_whitespace().any(|one| one == controller) {
        root.to_owned()
    } else {
        root.join(controller)
    };
    let found = mount.join(name).join(POD).join(below);
    if !found.is_dir() {
        eprintln!("skipped: this machine has no cgroup controller {controller}");
        return None;
    }
    Some(found)
}

fn first_of(dir: &Path, files: &[&str]) -> String {
    let text = files
        .iter()
        .find_map(|file| fs::read_to_string(dir.join(file)).ok());
    text.expect("one of the files is there").trim().to_owned()
}

/// A pod whose containers may use this, opened.
pub(crate) async fn limited(fixture: &Fixture, resources: Resources) -> Runtime {
    let runtime = fixture.open().await;
    let config = SandboxConfig {
        resources,
        ..sandbox(POD)
    };
    runtime.run_sandbox(config).await.expect("a sandbox");
    runtime
}

#[tokio::test]
async fn limits_hold_before_the_first_instruction_and_go_with_the_pod() {
    let Some(fixture) = Fixture::new() else { return };
    let pod = Resources {
        cpu_shares: Some(512),
        cpu_quota_micros: Some(50_000),
        memory_bytes: Some(64 << 20),
        pids: Some(64),
    };
    let runtime = limited(&fixture, pod).await;
    let mut config = fixture.script(
        "web",
        "cat /proc/self/cgroup /proc/self/oom_score_adj; sleep 1000",
    );
    config.resources = Resources {
        cpu_shares: Some(256),
        cpu_quota_micros: Some(25_000),
        memory_bytes: Some(32 << 20),
        pids: None,
    };
    config.oom_score_adj = Some(500);
    runtime.start_container(POD, config).await.expect("started");
    let dirs = ["cpu", "memory", "pids"].map(|controller| cgroup(&fixture, controller, "_pod/web"));
    let [Some(cpu), Some(memory), Some(pids)] = dirs else {
        return;
    };
    let memory_files = ["memory.limit_in_bytes", "memory.max"];
    assert_eq!(first_of(&memory, &memory_files), (32 << 20).to_string());
    assert_eq!(
        first_of(memory.parent().expect("the pod's"), &memory_files),
        (64 << 20).to_string()
    );
    let quota = first_of(&cpu, &["cpu.cfs_quota_us", "cpu.max"]);
    assert!(quota.starts_with("25000"), "{quota}");
    let quota = first_of(cpu.parent().expect("the pod's"), &["cpu.cfs_quota_us", "cpu.max"]);
    assert!(quota.starts_with("50000"), "{quota}");
    assert_eq!(first_of(pids.parent().expect("the pod's"), &["pids.max"]), "64");
    assert!(["256", "10"].contains(&first_of(&cpu, &["cpu.shares", "cpu.weight"]).as_str()));

    // The first process, one of its own, and one that was executed beside it: all are within, and none can be spared by itself.
    let own = "cut -d : -f 3 /proc/self/cgroup | sort -u | tr '\\n' ' '; cat /proc/self/oom_score_adj";
    let within = stdout_of(&runtime, "web", own).await;
    assert!(
        within.contains(&format!("{POD}/_pod/web")) && within.ends_with("500"),
        "{within}"
    );
    let lowered = exec(&runtime, "web", "echo -900 > /proc/self/oom_score_adj").await;
    assert_ne!(lowered.exit_code, 0, "{lowered:?}");
    assert!(fixture.log("web").iter().any(|line| line == "500"));
    for dir in [&cpu, &memory, &pids] {
        let inside = fs::read_to_string(dir.join("cgroup.procs")).expect("listed");
        assert!(!inside.trim().is_empty(), "{}", dir.display());
    }
    // The shim is beside them, under nothing but the pod's share, and the last to go.
    let shim = fs::read_to_string(
        cgroup(&fixture, "cpu", "_shim")
            .expect("there")
            .join("cgroup.procs"),
    )
    .expect("listed");
    let shim: i32 = shim.trim().parse().expect("one process");
    let adjusted = fs::read_to_string(format!("/proc/{shim}/oom_score_adj")).expect("it runs");
    let may_lower = !runtime
        .unenforced()
        .iter()
        .any(|one| one.controller == "oom_score_adj");
    assert_eq!(adjusted.trim(), if may_lower { "-998" } else { "0" });

    runtime.remove_sandbox(POD).await.expect("removed");
    for dir in [&cpu, &memory, &pids] {
        assert!(!dir.exists() && !dir.ancestors().nth(2).expect("the pod's").exists());
    }
    drop(runtime);
    Runtime::purge(fixture.config.clone()).await.expect("purged");
    for dir in [&cpu, &memory, &pids] {
        assert!(
            !dir.ancestors().nth(3).expect("the instance's").exists(),
            "{}",
            dir.display()
        );
    }
}

/// Runs a container that takes more memory than it may have; how it ended.
async fn exceed(fixture: &Fixture, runtime: &Runtime, name: &str, script: &str) -> Option<Exit> {
    let mut config = fixture.script(name, script);
    config.resources.memory_bytes = Some(32 << 20);
    config.env.push(("GO".to_owned(), name.to_owned()));
    let mut events = runtime.events();
    // It waits for a file, so that the limit can be read back before it begins.
    runtime.start_container(POD, config).await.expect("started");
    let memory = cgroup(fixture, "memory", &format!("_pod/{name}"))?;
    assert_eq!(
        first_of(&memory, &["memory.limit_in_bytes", "memory.max"]),
        (32 << 20).to_string()
    );
    exec(runtime, name, "echo go > /run/go").await;
    Some(exit_of(&mut events, name, 0).await)
}

const WAIT: &str = "while ! [ -s /run/go ]; do busybox usleep 1000; done;";

#[tokio::test]
async fn who_takes_too_much_memory_is_killed_and_its_neighbours_are_not() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = limited(&fixture, Resources::default()).await;
    runtime
        .start_container(POD, fixture.script("calm", "sleep 1000"))
        .await
        .expect("started");
    // Memory of its own; a tmpfs; the same by a child, whose end the first process survives to tell of.
    let own = format!("{WAIT} exec busybox tail -c 100m /dev/zero");
    let written = format!("{WAIT} exec busybox dd if=/dev/zero of=/tmp/big bs=1M count=100");
    let child = format!("{WAIT} busybox tail -c 100m /dev/zero; exit 7");
    let fine = format!("{WAIT} busybox tail -c 100m /dev/zero; exit 0");
    for (name, script, code, killed) in [
        ("own", own, 137, true),
        ("written", written, 137, true),
        ("child", child, 7, true),
        ("fine", fine, 0, false),
    ] {
        let Some(exit) = exceed(&fixture, &runtime, name, &script).await else {
            return;
        };
        // On cgroup v2 all of a container goes at once.
        let whole = exit.signal == Some(KILL) && exit.exit_code == 137;
        assert!(exit.exit_code == code || whole, "{name}: {exit:?}");
        assert_eq!(exit.oom_killed, killed || whole, "{name}: {exit:?}");
        assert_eq!(stdout_of(&runtime, "calm", "echo here").await, "here", "{name}");
    }
}

const KILL: i32 = 9;
