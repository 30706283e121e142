//! Pods that do their worst: the node goes on, and so does the pod beside it.

use std::fs;
use std::time::Duration;

use hotmap_runtime::{LogLimits, Resources, Runtime, SandboxConfig};

use crate::fixture::{Fixture, POD, exec, exit_of, host_pid, sandbox, stdout_of};
use crate::limits::{cgroup, limited};

const OTHER: &str = "99999999-0000-0000-0000-000000000000";

/// A second pod, which must not notice anything.
async fn with_neighbour(fixture: &Fixture, runtime: &Runtime) {
    runtime.run_sandbox(sandbox(OTHER)).await.expect("a sandbox");
    let mut config = fixture.script("calm", "sleep 1000");
    config.log_path = fixture.log_path("calm");
    runtime.start_container(OTHER, config).await.expect("started");
}

/// What a script prints in the second pod.
async fn neighbour(runtime: &Runtime, script: &str) -> String {
    let argv = ["/bin/busybox", "sh", "-c", script].map(str::to_owned).to_vec();
    let output = runtime
        .exec_sync(OTHER, "calm", argv, Duration::from_secs(30), 1 << 20)
        .await
        .expect("executed");
    String::from_utf8(output.stdout).expect("utf-8").trim().to_owned()
}

#[tokio::test]
async fn a_fork_bomb_ends_at_the_pods_limit_and_leaves_with_the_pod() {
    let Some(fixture) = Fixture::new() else { return };
    let resources = Resources {
        pids: Some(64),
        ..Resources::default()
    };
    let runtime = limited(&fixture, resources).await;
    with_neighbour(&fixture, &runtime).await;
    let script =
        "while ! [ -s /run/go ]; do busybox usleep 1000; done; bomb() { bomb | bomb & }; bomb; sleep 1000";
    let status = runtime
        .start_container(POD, fixture.script("bomb", script))
        .await
        .expect("started");
    let Some(pids) = cgroup(&fixture, "pids", "_pod") else {
        return;
    };
    let inside = fs::read_to_string(pids.join("bomb/cgroup.procs")).expect("listed");
    assert_eq!(
        fs::read_to_string(pids.join("pids.max")).expect("there").trim(),
        "64"
    );
    assert!(
        inside.lines().any(|pid| pid == host_pid(&status).to_string()),
        "{inside}"
    );
    exec(&runtime, "bomb", "echo go > /run/go").await;

    // The kernel counts refused forks; there is nothing to poll in a hierarchy of v1.
    let refused = || -> u64 {
        let text = fs::read_to_string(pids.join("pids.events")).unwrap_or_default()
            + &fs::read_to_string(pids.join("bomb/pids.events")).unwrap_or_default();
        let counts = text
            .lines()
            .filter_map(|line| line.strip_prefix("max ")?.parse::<u64>().ok());
        counts.sum()
    };
    while refused() == 0 {
        assert_eq!(neighbour(&runtime, "echo $((6 * 7))").await, "42");
    }
    let peak = fs::read_to_string(pids.join("pids.peak")).unwrap_or_else(|_| "64".to_owned());
    // Who is moved in is counted and not refused; only what is forked inside is.
    assert!(peak.trim().parse::<u64>().expect("a number") <= 66, "{peak}");
    assert_eq!(neighbour(&runtime, "echo $((6 * 7))").await, "42");
    // It cannot be asked to go, but it goes.
    runtime
        .stop_container(POD, "bomb", None, None, Duration::ZERO)
        .await
        .expect("stopped");
    runtime.remove_pod(POD).await.expect("removed");
    assert!(!pids.exists());
    assert_eq!(neighbour(&runtime, "echo still").await, "still");
}

#[tokio::test]
async fn a_flood_of_output_fills_no_more_than_its_files() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let mut config = fixture.script("flood", "exec busybox yes 'all work and no play'");
    config.log_limits = LogLimits {
        max_bytes: 1 << 20,
        max_files: 2,
    };
    runtime.start_container(POD, config).await.expect("started");
    runtime
        .start_container(POD, fixture.script("calm", "sleep 1000"))
        .await
        .expect("started");
    let logs = fixture
        .log_path("flood")
        .parent()
        .expect("a directory")
        .to_owned();
    let files = || -> Vec<u64> {
        let entries = fs::read_dir(&logs).expect("listed").flatten();
        entries
            .filter_map(|entry| Some(entry.metadata().ok()?.len()))
            .collect()
    };
    let cpu_time = || -> u64 {
        let state =
            fs::read_to_string(fixture.config.state_dir.join(POD).join("state.json")).expect("a state");
        let pid = state
            .split("\"shim_pid\":")
            .nth(1)
            .and_then(|rest| rest.split(',').next())
            .expect("a pid");
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("it runs");
        let fields = stat
            .rsplit_once(") ")
            .expect("a name")
            .1
            .split(' ')
            .skip(11)
            .take(2);
        fields.map(|ticks| ticks.parse::<u64>().expect("a number")).sum()
    };
    // Until files were rotated away; each look finds what the limits allow, and its neighbour in the same shim answers.
    let mut oldest = Vec::new();
    while oldest.len() < 4 {
        let mut names: Vec<_> = fs::read_dir(&logs)
            .expect("listed")
            .flatten()
            .map(|entry| entry.file_name())
            .collect();
        names.sort();
        for name in names.into_iter().filter(|name| name.len() > "0.log".len()) {
            if !oldest.contains(&name) {
                oldest.push(name);
            }
        }
        // The newest may take what one read makes more than its limit, and one file goes only when the next is there.
        let sizes = files();
        assert!(
            sizes.len() <= 3 && sizes.iter().all(|size| *size < (1 << 20) + (512 << 10)),
            "{sizes:?}"
        );
        assert_eq!(stdout_of(&runtime, "calm", "echo here").await, "here");
    }
    // A MiB each second is no work: the shim has had little of the seconds that this took.
    assert!(cpu_time() < 200, "{} ticks", cpu_time());
    let newest = fs::read_to_string(fixture.log_path("flood")).expect("readable");
    assert!(
        newest.is_empty() || newest.contains(" stdout F all work and no play"),
        "whole lines"
    );
    runtime
        .stop_container(POD, "flood", None, None, Duration::ZERO)
        .await
        .expect("stopped");
}

#[tokio::test]
async fn a_pod_exhausts_its_own_inotify_instances_and_nobody_elses() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    with_neighbour(&fixture, &runtime).await;
    let max: usize = fs::read_to_string("/proc/sys/fs/inotify/max_user_instances")
        .expect("there")
        .trim()
        .parse()
        .expect("a number");
    if max > 1_024 {
        return eprintln!("skipped: this machine lets each user have {max} inotify instances");
    }
    // Each program has one instance and stays; what it says when it gets none ends the wait.
    let script = format!(
        "i=0; while [ $i -le {max} ]; do inotifywait -qq -e create /run & i=$((i+1)); done; sleep 1000"
    );
    runtime
        .start_container(POD, fixture.script("greedy", &script))
        .await
        .expect("started");
    let told = || fixture.log("greedy").iter().any(|line| line.contains("inotify"));
    while !told() {
        tokio::task::yield_now().await;
    }
    // The limit is the pod's: root of the host, and the pod beside, have all of theirs.
    let ours: Vec<_> = (0..16)
        .map(|_| rustix::fs::inotify::init(rustix::fs::inotify::CreateFlags::CLOEXEC))
        .collect();
    assert!(ours.iter().all(Result::is_ok), "{ours:?}");
    let watched = neighbour(&runtime, "inotifywait -qq -t 1 -e create /run; echo $?").await;
    assert_eq!(watched, "2", "it watched until its time was over");
}

#[tokio::test]
async fn nothing_that_a_pod_leaves_behind_is_too_deep_to_be_removed() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    // In its writable layer; far deeper than a path may be long.
    let script = r#"chdir "/var"; for (1..2000) { mkdir("d") && chdir("d") or die $!; } symlink "/", "link"; print "deep\n""#;
    let deep = fixture.container("deep", &["/usr/bin/perl", "-e", script]);
    let (code, log) = fixture.run(&runtime, deep).await;
    assert_eq!((code, log), (0, vec!["deep".to_owned()]));
    runtime.remove_container(POD, "deep", 0).await.expect("removed");
    runtime.remove_pod(POD).await.expect("removed");
    assert!(!fixture.config.state_dir.join(POD).exists());
}

#[tokio::test]
async fn pipes_in_the_place_of_files_hold_nobody_up() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let script = "rm /etc/passwd && mkfifo /etc/passwd && echo ready; sleep 1000";
    runtime
        .start_container(POD, fixture.script("web", script))
        .await
        .expect("started");
    while fixture.log("web") != ["ready"] {
        tokio::task::yield_now().await;
    }
    // Nobody ever writes into it: who read it would wait for half a minute, and the whole shim with it.
    let begun = std::time::Instant::now();
    assert_eq!(stdout_of(&runtime, "web", "echo $HOME").await, "/");
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[tokio::test]
async fn output_in_other_hands_does_not_hold_up_the_end() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    let config = SandboxConfig {
        share_process_namespace: true,
        ..sandbox(POD)
    };
    runtime.run_sandbox(config).await.expect("a sandbox");
    let mut events = runtime.events();
    let status = runtime
        .start_container(POD, fixture.script("short", "sleep 1000"))
        .await
        .expect("started");
    // The same user's, so its descriptors are open to it: whatever the other prints comes out of the first one's pipe.
    let printer = "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline | grep -q '^sleep 1000' && exec yes > $p/fd/1; done";
    runtime
        .start_container(POD, fixture.script("printer", printer))
        .await
        .expect("started");
    while !fixture.log("short").iter().any(|line| line == "y") {
        tokio::task::yield_now().await;
    }
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(host_pid(&status)).expect("a pid"),
        rustix::process::Signal::TERM,
    )
    .expect("sent");
    assert_eq!(exit_of(&mut events, "short", 0).await.exit_code, 143);
    // Nobody reads that any more.
    exit_of(&mut events, "printer", 0).await;
}

#[tokio::test]
async fn a_pod_finds_no_way_to_its_shim() {
    let Some(fixture) = Fixture::new() else { return };
    for shared in [false, true] {
        let runtime = fixture.open().await;
        let config = SandboxConfig {
            share_process_namespace: shared,
            ..sandbox(POD)
        };
        runtime.run_sandbox(config).await.expect("a sandbox");
        let mut config = fixture.script("web", "sleep 1000");
        config.capabilities = hotmap_runtime::Capabilities::ALL;
        runtime.start_container(POD, config).await.expect("started");
        let state =
            fs::read_to_string(fixture.config.state_dir.join(POD).join("state.json")).expect("a state");
        let shim = state
            .split("\"shim_pid\":")
            .nth(1)
            .and_then(|rest| rest.split(',').next())
            .expect("a pid");
        // By its number it is somebody else or nobody; every number that is there is one of the pod's.
        let look = "for p in /proc/[0-9]*; do cat $p/comm; done | sort -u | grep -v -e sh -e sleep -e busybox -e cat -e sort -e grep; true";
        let found = stdout_of(&runtime, "web", look).await;
        assert_eq!(found, if shared { "pause" } else { "" });
        for script in [
            format!("kill -9 {shim}"),
            format!("kill -STOP {shim}"),
            format!("cat /proc/{shim}/environ"),
            format!("ls /proc/{shim}/fd"),
            format!("ls /proc/{shim}/root/etc"),
            format!("readlink /proc/{shim}/exe"),
            "cat /proc/1/mem".to_owned(),
        ] {
            let tried = exec(&runtime, "web", &script).await;
            assert_ne!(tried.exit_code, 0, "{script}: {tried:?}");
        }
        // To everybody it may signal, with every capability of the pod.
        if shared {
            drop(exec(&runtime, "web", "kill -9 -1; kill -9 1").await);
        }
        let pid: i32 = shim.parse().expect("a number");
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).expect("the shim runs");
        assert!(stat.contains("(hotmap-shim)"), "{stat}");
        runtime.remove_pod(POD).await.expect("removed");
    }
}
