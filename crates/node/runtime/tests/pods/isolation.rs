//! What uid 0 of a pod must not reach.

use std::os::unix::fs::PermissionsExt;

use crate::fixture::{Fixture, POD, exec, stdout_of};

#[tokio::test]
async fn root_of_a_pod_reads_nothing_that_nobody_could_not() {
    let Some(fixture) = Fixture::new() else { return };
    let data = fixture.dir.path().join("data");
    std::fs::create_dir_all(&data).expect("made");
    std::fs::write(data.join("ca.key"), "the CA key").expect("written");
    std::fs::set_permissions(data.join("ca.key"), std::fs::Permissions::from_mode(0o644)).expect("set");
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    runtime
        .start_container(POD, fixture.script("web", "sleep 1000"))
        .await
        .expect("started");
    // After the start: the lower layer is live.
    let late = tempfile::Builder::new()
        .prefix("hotmap-late-")
        .tempfile_in("/opt")
        .expect("a file with mode 0600");
    std::fs::write(late.path(), "late secret").expect("written");
    let listener_dir = tempfile::tempdir_in("/srv").expect("made");
    std::fs::set_permissions(listener_dir.path(), std::fs::Permissions::from_mode(0o755)).expect("set");
    let socket = listener_dir.path().join("socket");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).expect("bound");
    std::fs::set_permissions(&socket, std::fs::Permissions::from_mode(0o777)).expect("set");

    let key = data.join("ca.key").display().to_string();
    let late = late.path().display().to_string();
    for path in [
        key.as_str(),
        late.as_str(),
        "/etc/shadow",
        "/proc/kcore",
        "/proc/1/mem",
    ] {
        for prefix in ["", "/proc/1/root", "/proc/self/root", "/proc/self/cwd/."] {
            let script = format!("head -c 64 {prefix}{path}");
            let output = exec(&runtime, "web", &script).await;
            // A kernel that has this one shows an empty device in its place.
            let may_be_empty = path == "/proc/kcore";
            assert!(
                output.stdout.is_empty() && (may_be_empty || output.exit_code != 0),
                "{script}: {output:?}"
            );
        }
    }
    assert_eq!(
        stdout_of(&runtime, "web", "ls -A /root /tmp | grep -v :").await,
        ""
    );
    assert_eq!(
        stdout_of(&runtime, "web", &format!("ls -A {}", data.display())).await,
        ""
    );
    assert_eq!(
        stdout_of(
            &runtime,
            "web",
            "cat /proc/sys/vm/swappiness > /dev/null; echo 1 > /proc/sys/vm/swappiness; echo $?"
        )
        .await,
        "1"
    );
    let connect = format!("busybox nc -w 1 local:{0} < /dev/null; echo $?", socket.display());
    assert_ne!(
        stdout_of(&runtime, "web", &connect).await,
        "0",
        "the host's sockets do not answer"
    );
    for script in [
        "mount -t tmpfs none /mnt",
        "umount /proc/sys",
        "umount /tmp",
        "mknod /tmp/disk b 254 0",
        "chmod 777 /etc/passwd",
        "chown 0 /etc/shadow",
        "echo c > /proc/sysrq-trigger",
        "hostname other",
        "chroot /proc/1/root /bin/busybox head -c 1 /etc/shadow",
        "ln /etc/shadow /etc/shadow2 && head -c 1 /etc/shadow2",
        "mv /etc/shadow /etc/shadow3 && head -c 1 /etc/shadow3",
        "echo x > /sys/kernel/uevent_helper",
    ] {
        assert_ne!(exec(&runtime, "web", script).await.exit_code, 0, "{script}");
    }
    assert!(std::path::Path::new("/etc/shadow").exists());
    let processes = stdout_of(&runtime, "web", "ls -d /proc/[0-9]* | wc -l").await;
    assert!(
        processes.parse::<u32>().expect("a number") < 10,
        "only its own processes: {processes}"
    );
    let uid_map = stdout_of(&runtime, "web", "cat /proc/self/uid_map").await;
    assert!(
        uid_map.ends_with("65536") && !uid_map.contains(" 0 0 "),
        "{uid_map}"
    );
}

#[tokio::test]
async fn a_pods_files_are_closed_to_another_pod_and_to_users_of_the_host() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    let pod = fixture.pod(&runtime).await;
    let status = runtime
        .start_container(POD, fixture.script("web", "sleep 1000"))
        .await
        .expect("started");
    let other = "99999999-0000-0000-0000-000000000000";
    let other = runtime
        .run_sandbox(crate::fixture::sandbox(other))
        .await
        .expect("a second pod");
    assert!(pod.ids.base.abs_diff(other.ids.base) >= 65_536);
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!(mode(&fixture.config.state_dir), 0o700);
    assert_eq!(
        mode(&fixture.config.state_dir.join(POD).join("shim.sock")) & 0o077,
        0
    );
    assert_eq!(
        mode(&fixture.config.state_dir.join(POD).join("state.json")),
        0o600
    );
    let environ =
        std::fs::read(format!("/proc/{}/environ", crate::fixture::host_pid(&status))).expect("root may");
    assert!(!environ.is_empty());
    let state = std::fs::read_to_string(fixture.config.state_dir.join(POD).join("state.json")).expect("text");
    assert!(!state.contains("PATH"), "no environment in the state: {state}");
}

#[tokio::test]
async fn the_shim_and_its_descriptors_are_out_of_reach() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    runtime
        .start_container(POD, fixture.script("web", "sleep 1000"))
        .await
        .expect("started");
    assert_eq!(
        stdout_of(&runtime, "web", "ls /proc/self/fd | wc -l").await,
        "4",
        "three streams and ls's own"
    );
    assert_eq!(
        stdout_of(&runtime, "web", "grep PPid /proc/$$/status; cat /proc/1/comm").await,
        "PPid:\t0\nsleep"
    );
    let mut config = fixture.script("cwd", "true");
    config.cwd = "/proc/self/fd/4".into();
    assert!(
        runtime.start_container(POD, config).await.is_err(),
        "a working directory leads through no descriptor"
    );
}
