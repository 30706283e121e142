//! Containers that share a pid namespace: they see and signal each other, and end by themselves.

use hotmap_runtime::{Capabilities, ContainerState, ProcessUser, Runtime, SandboxConfig, SandboxState};

use crate::fixture::{Fixture, POD, exec, exit_of, host_pid, sandbox, stdout_of};

async fn shared(fixture: &Fixture) -> Runtime {
    let runtime = fixture.open().await;
    let config = SandboxConfig {
        share_process_namespace: true,
        ..sandbox(POD)
    };
    runtime.run_sandbox(config).await.expect("a sandbox");
    runtime
}

/// The pids of processes whose command line holds this, the looking shell's apart.
fn found(what: &str) -> String {
    format!(
        "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null | grep -q '^{what}' && echo ${{p#/proc/}}; done"
    )
}

#[tokio::test]
async fn containers_see_and_signal_each_other_and_not_the_first_process() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = shared(&fixture).await;
    let app = "trap 'echo reloaded' HUP; trap 'exit 7' TERM; echo $$; while :; do sleep 1000 & wait $!; done";
    let mut events = runtime.events();
    let mut web = fixture.script("web", app);
    web.argv[0] = "/usr/bin/env".into();
    web.argv.insert(1, "-i".into());
    web.argv.insert(2, "/bin/busybox".into());
    runtime.start_container(POD, web).await.expect("started");
    let mut side = fixture.script("side", "sleep 2000");
    side.capabilities = Capabilities::NONE;
    runtime.start_container(POD, side).await.expect("started");
    let mut other = fixture.script("other", "sleep 3000");
    other.user = ProcessUser {
        uid: 1000,
        gid: 1000,
        supplementary_groups: Vec::new(),
        merge_groups: false,
    };
    runtime.start_container(POD, other).await.expect("started");

    let main = stdout_of(&runtime, "side", "cat /proc/[0-9]*/cmdline >/dev/null; echo ok").await;
    assert_eq!(main, "ok");
    let main = stdout_of(&runtime, "side", &found("/bin/busybox sh -c trap")).await;
    assert!(main.parse::<u32>().is_ok_and(|pid| pid > 1), "{main:?}");
    // What it printed is its own number: the namespace is one.
    let first_line = async {
        loop {
            if let Some(line) = fixture.log("web").first() {
                return line.clone();
            }
            tokio::task::yield_now().await;
        }
    };
    assert_eq!(first_line.await, main);
    assert_eq!(
        exec(&runtime, "other", &format!("kill -HUP {main}"))
            .await
            .exit_code,
        1,
        "another user"
    );
    assert_eq!(
        exec(&runtime, "side", &format!("kill -HUP {main}"))
            .await
            .exit_code,
        0
    );

    // The first process is nobody's to read or end.
    let pause = |script: &str| {
        let script = script.to_owned();
        let runtime = &runtime;
        async move { stdout_of(runtime, "web", &script).await }
    };
    assert_eq!(pause("cat /proc/1/comm").await, "pause");
    assert_eq!(pause("tr -d '\\0' < /proc/1/cmdline").await, "");
    assert_eq!(
        pause("grep -E '^(Uid|CapEff|CapPrm|NoNewPrivs)' /proc/1/status | tr '\\t\\n' '  '").await,
        "Uid: 65535 65535 65535 65535 CapPrm: 0000000000000000 CapEff: 0000000000000000 NoNewPrivs: 1"
    );
    for script in [
        "cat /proc/1/environ",
        "cat /proc/1/mem",
        "ls /proc/1/fd/",
        "ls /proc/1/root/",
        "readlink /proc/1/exe",
    ] {
        let output = exec(&runtime, "web", script).await;
        assert!(
            output.exit_code != 0 && output.stdout.is_empty(),
            "{script}: {output:?}"
        );
    }
    exec(&runtime, "web", "kill -KILL 1; kill -TERM 1").await;
    assert_eq!(pause("cat /proc/1/comm").await, "pause");
    // Neither is the one who starts a container: its own files are closed, whoever it runs as.
    assert_eq!(
        exec(&runtime, "side", &format!("kill -TERM {main}"))
            .await
            .exit_code,
        0
    );
    assert_eq!(exit_of(&mut events, "web", 0).await.exit_code, 7);
    assert_eq!(fixture.log("web"), [main, "reloaded".to_owned()]);
}

#[tokio::test]
async fn the_end_of_a_container_is_the_end_of_its_processes_and_of_no_others() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = shared(&fixture).await;
    let mut events = runtime.events();
    let side = fixture.script("side", "sleep 2000 & sleep 2001");
    runtime.start_container(POD, side).await.expect("started");
    // Its children have left the session, and one has lost its parent.
    let script =
        "setsid sleep 1001 & (setsid sleep 1002 &) ; echo up; read line < /dev/null; exec sleep 1003";
    let mut web = fixture.script("web", script);
    for attempt in 0..2 {
        web.attempt = attempt;
        runtime.start_container(POD, web.clone()).await.expect("started");
        for sleeper in ["1001", "1002", "1003"] {
            let look = found(&format!("sleep {sleeper}"));
            let script = format!("until [ -n \"$({look})\" ]; do :; done");
            assert_eq!(exec(&runtime, "side", &script).await.exit_code, 0, "{sleeper}");
        }
        let kill = format!("kill -KILL $({})", found("sleep 1003"));
        assert_eq!(exec(&runtime, "side", &kill).await.exit_code, 0);
        let exit = exit_of(&mut events, "web", attempt).await;
        assert_eq!((exit.exit_code, exit.signal), (137, Some(9)));
        assert_eq!(stdout_of(&runtime, "side", &found("sleep 100")).await, "");
    }
    let others = stdout_of(&runtime, "side", &found("sleep 200")).await;
    assert_eq!(others.lines().count(), 2, "{others}");
    // Whoever has lost its parent is reaped by the first process.
    let script = "for i in 1 2 3 4 5 6 7 8; do (true &); done; while grep -l '^State:.Z' /proc/[0-9]*/status; do :; done";
    exec(&runtime, "side", script).await;

    // A stop waits for the process and takes its tree along.
    web.attempt = 2;
    runtime.start_container(POD, web).await.expect("started");
    runtime
        .stop_container(POD, "web", None, None, std::time::Duration::ZERO)
        .await
        .expect("stopped");
    assert_eq!(stdout_of(&runtime, "side", &found("sleep 100")).await, "");
}

#[tokio::test]
async fn the_end_of_the_first_process_is_the_end_of_the_sandbox() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = shared(&fixture).await;
    let mut events = runtime.events();
    let status = runtime
        .start_container(POD, fixture.script("web", "sleep 1000"))
        .await;
    let pid = host_pid(&status.expect("started"));
    let namespace = |pid: &str| std::fs::read_link(format!("/proc/{pid}/ns/pid")).ok();
    let ours = namespace(&pid.to_string());
    let is_first = |pid: &String| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        namespace(pid) == ours
            && status
                .lines()
                .any(|line| line.starts_with("NSpid:") && line.ends_with("\t1"))
    };
    let pids = std::fs::read_dir("/proc").expect("/proc").flatten();
    let first = pids
        .filter_map(|entry| entry.file_name().into_string().ok())
        .find(is_first)
        .expect("the first process");
    let killed = std::process::Command::new("kill")
        .args(["-KILL", &first])
        .status();
    assert!(killed.expect("kill").success());
    assert_eq!(exit_of(&mut events, "web", 0).await.exit_code, 137);
    let stopped = async {
        while runtime
            .sandbox(POD)
            .is_some_and(|sandbox| sandbox.state == SandboxState::Ready)
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), stopped)
        .await
        .expect("the sandbox is not ready");
    let sandbox = runtime.sandbox(POD).expect("still on record");
    assert!(matches!(&sandbox.containers[..], [web] if matches!(web.state, ContainerState::Exited(_))));
    assert!(
        runtime
            .start_container(POD, fixture.script("late", "true"))
            .await
            .is_err()
    );
    runtime.remove_sandbox(POD).await.expect("removed");
    // The next one is as good as the first.
    let config = SandboxConfig {
        share_process_namespace: true,
        ..crate::fixture::sandbox(POD)
    };
    runtime.run_sandbox(config).await.expect("a sandbox");
    runtime
        .start_container(POD, fixture.script("web", "sleep 1000"))
        .await
        .expect("started");
    runtime.stop_sandbox(POD).await.expect("stopped");
}
