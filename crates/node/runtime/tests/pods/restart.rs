//! Agents and shims that die, machines that restart, instances side by side.

use std::time::Duration;

use hotmap_runtime::{BootId, ContainerState, Event, Runtime, SandboxError, SandboxState};

use crate::fixture::{Fixture, POD, address, exit_of, host_pid, sandbox, stdout_of};

#[tokio::test]
async fn a_new_agent_finds_the_same_processes_and_every_exit() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    let pod = fixture.pod(&runtime).await;
    let long = runtime.start_container(
        POD,
        fixture.script("long", "i=0; while :; do echo $i; i=$((i+1)); sleep 0.01; done"),
    );
    let long = long.await.expect("started");
    let mut short = fixture.script(
        "short",
        "until [ -e /data/go ]; do sleep 0.01; done; echo late; exit 9",
    );
    short
        .mounts
        .push(crate::fixture::mount(fixture.dir.path(), "/data", true));
    runtime.start_container(POD, short).await.expect("started");
    drop(runtime);
    // Nobody is there while it ends.
    std::fs::write(fixture.dir.path().join("go"), "").expect("written");
    while fixture.log("short").is_empty() {
        std::thread::yield_now();
    }
    let runtime = fixture.open().await;
    let exit = exit_of(&mut runtime.events(), "short", 0).await;
    assert_eq!((exit.exit_code, exit.lost), (9, false));
    let again = runtime.sandbox(POD).expect("found");
    assert_eq!(
        (again.ip, again.ids, again.state, again.created_at),
        (pod.ip, pod.ids, SandboxState::Ready, pod.created_at)
    );
    assert_eq!(
        host_pid(again.container("long").expect("found")),
        host_pid(&long),
        "the same process"
    );
    assert!(matches!(
        runtime.run_sandbox(sandbox(POD)).await,
        Err(SandboxError::Exists(_))
    ));
    assert_eq!(stdout_of(&runtime, "long", "echo still here").await, "still here");
    runtime
        .stop_container(POD, "long", None, None, Duration::ZERO)
        .await
        .expect("stopped");
    let lines = fixture.log("long");
    assert!(
        lines
            .iter()
            .enumerate()
            .all(|(number, line)| *line == number.to_string()),
        "no gap: {lines:?}"
    );
}

#[tokio::test]
async fn a_dead_shim_takes_its_pod_along_and_the_pod_can_be_made_anew() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let status = runtime
        .start_container(POD, fixture.script("web", "sleep 1000"))
        .await
        .expect("started");
    let pid = host_pid(&status);
    let mut events = runtime.events();
    let state =
        std::fs::read_to_string(fixture.config.state_dir.join(POD).join("state.json")).expect("a state");
    let shim: i32 = state
        .split("\"shim_pid\":")
        .nth(1)
        .and_then(|rest| rest.split(',').next()?.parse().ok())
        .expect("a pid");
    rustix::process::kill_process(
        rustix::process::Pid::from_raw(shim).expect("a pid"),
        rustix::process::Signal::KILL,
    )
    .expect("killed");
    let exit = exit_of(&mut events, "web", 0).await;
    assert_eq!((exit.exit_code, exit.lost), (137, true));
    assert_eq!(
        events.next().await,
        Some(Event::SandboxLost {
            pod_uid: POD.to_owned()
        })
    );
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    assert!(
        stat.is_empty() || stat.contains(") Z "),
        "its process is gone: {stat}"
    );
    assert_eq!(
        runtime.sandbox(POD).expect("on record").state,
        SandboxState::NotReady
    );
    drop(runtime);
    let runtime = fixture.open().await;
    let found = runtime.sandbox(POD).expect("still on record");
    assert_eq!(found.state, SandboxState::NotReady);
    assert_eq!(
        found.container("web").expect("on record").state,
        ContainerState::Exited(exit),
        "and ended once"
    );
    runtime.remove_sandbox(POD).await.expect("removed");
    // Somebody who comes in between gets other ids, whatever happens to this process.
    drop(runtime);
    let runtime = fixture.open().await;
    assert!(runtime.sandbox(POD).is_none());
    let other = runtime.reserve_ids("another-pod").await.expect("reserved");
    assert_ne!(other, found.ids);
    fixture.pod(&runtime).await;
    assert_eq!(runtime.sandbox(POD).expect("made anew").ids, found.ids);
    runtime.remove_pod("another-pod").await.expect("removed");
    let (exit_code, _) = fixture.run(&runtime, fixture.script("web", "true")).await;
    assert_eq!(exit_code, 0);
}

#[tokio::test]
async fn after_a_reboot_nothing_is_left_of_the_pods() {
    let Some(mut fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let status = runtime
        .start_container(POD, fixture.script("web", "sleep 1000"))
        .await
        .expect("started");
    drop(runtime);
    fixture.config.boot_id = BootId::injected("another boot");
    let runtime = fixture.open().await;
    assert!(runtime.sandboxes().is_empty());
    assert!(
        !std::path::Path::new(&format!("/proc/{}/cwd", host_pid(&status))).exists(),
        "never doubled"
    );
    fixture.pod(&runtime).await;
    let (exit_code, _) = fixture.run(&runtime, fixture.script("web", "true")).await;
    assert_eq!(exit_code, 0);
}

#[tokio::test]
async fn a_stopped_sandbox_keeps_exit_codes_and_starts_nothing() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    let pod = fixture.pod(&runtime).await;
    runtime
        .start_container(POD, fixture.script("web", "sleep 1000"))
        .await
        .expect("started");
    let mut events = runtime.events();
    runtime.stop_sandbox(POD).await.expect("stopped");
    runtime.stop_sandbox(POD).await.expect("stopped again");
    assert_eq!(exit_of(&mut events, "web", 0).await.exit_code, 137);
    assert_eq!(
        runtime.sandbox(POD).expect("on record").state,
        SandboxState::NotReady
    );
    assert!(
        runtime
            .start_container(POD, fixture.script("next", "true"))
            .await
            .is_err()
    );
    let links = std::process::Command::new("ip")
        .args(["-o", "link"])
        .output()
        .expect("ip");
    let name = format!(
        "hv{}{:04x}",
        fixture.config.instance_id,
        address(&pod).to_bits() & 0xffff
    );
    assert!(!String::from_utf8_lossy(&links.stdout).contains(&name));
}

#[tokio::test]
async fn two_instances_never_meet_and_a_purge_leaves_nothing() {
    let (Some(left), Some(right)) = (Fixture::new(), Fixture::new()) else {
        return;
    };
    let (one, two) = (left.open().await, right.open().await);
    let (first, second) = (left.pod(&one).await, right.pod(&two).await);
    assert_ne!(
        address(&first).octets()[1],
        address(&second).octets()[1],
        "networks of their own"
    );
    assert_ne!(first.ids, second.ids);
    let status = one
        .start_container(POD, left.script("web", "sleep 1000"))
        .await
        .expect("started");
    two.start_container(POD, right.script("web", "sleep 1000"))
        .await
        .expect("started");
    drop(one);
    Runtime::purge(left.config.clone()).await.expect("purged");
    Runtime::purge(left.config.clone()).await.expect("purged again");
    let id = left.config.instance_id.to_string();
    let links = std::process::Command::new("ip")
        .args(["-o", "link"])
        .output()
        .expect("ip");
    assert!(!String::from_utf8_lossy(&links.stdout).contains(&id), "no link");
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").expect("mounts");
    assert!(
        !mounts.contains(&left.dir.path().display().to_string()),
        "no mount"
    );
    assert!(!left.config.state_dir.exists(), "no file");
    for claim in std::fs::read_dir("/run/hotmap/ids").expect("the other instance has a claim") {
        let owner = std::fs::read_link(claim.expect("an entry").path()).expect("a link");
        assert!(!owner.starts_with(left.dir.path()), "no claim");
    }
    assert!(
        !std::path::Path::new(&format!("/proc/{}/cwd", host_pid(&status))).exists(),
        "no process"
    );
    for root in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
        assert!(
            !std::path::Path::new(root).join(format!("hotmap-{id}")).exists(),
            "no cgroup"
        );
    }
    assert_eq!(stdout_of(&two, "web", "echo untouched").await, "untouched");
}

/// Not a test: the agent that the next one kills. It runs one container and says so by a file.
#[tokio::test]
async fn agent_to_be_killed() {
    let Some(dir) = std::env::var_os("HOTMAP_TEST_AGENT") else {
        return;
    };
    let mut fixture = Fixture::new().expect("the parent checked");
    let own = fixture.config.clone();
    fixture.config.state_dir = std::path::Path::new(&dir).join("data/pods");
    fixture.config.instance_id = std::env::var("HOTMAP_TEST_INSTANCE")
        .expect("set")
        .parse()
        .expect("valid");
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let mut config = fixture.script(
        "web",
        "i=0; while [ $i -lt 300 ]; do echo $i; i=$((i+1)); sleep 0.005; done; exit 4",
    );
    config.log_path = std::path::Path::new(&dir).join("logs/web/0.log");
    runtime.start_container(POD, config).await.expect("started");
    fixture.config = own; // what is dropped here, if ever, is not the parent's
    std::fs::write(std::path::Path::new(&dir).join("ready"), "").expect("written");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn kill_9_of_the_agents_whole_process_group_touches_no_pod() {
    use std::os::unix::process::CommandExt;
    let Some(fixture) = Fixture::new() else { return };
    let agent = std::process::Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "restart::agent_to_be_killed", "--nocapture"])
        .env("HOTMAP_TEST_AGENT", fixture.dir.path())
        .env("HOTMAP_TEST_INSTANCE", fixture.config.instance_id.as_str())
        .process_group(0)
        .spawn();
    let mut agent = agent.expect("spawned");
    while !fixture.dir.path().join("ready").exists() {
        assert!(
            agent.try_wait().expect("a child").is_none(),
            "the agent ended by itself"
        );
        std::thread::yield_now();
    }
    let group = rustix::process::Pid::from_child(&agent);
    rustix::process::kill_process_group(group, rustix::process::Signal::KILL).expect("killed");
    agent.wait().expect("a child");
    // In a session of its own, and gone all the same.
    while !fixture.zygotes().is_empty() {
        std::thread::yield_now();
    }
    let runtime = fixture.open().await;
    let exit = exit_of(&mut runtime.events(), "web", 0).await;
    assert_eq!((exit.exit_code, exit.lost), (4, false));
    assert_eq!(
        fixture.log("web"),
        (0..300).map(|number| number.to_string()).collect::<Vec<_>>(),
        "no gap"
    );
}
