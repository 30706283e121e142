//! Containers from start to end.

use std::time::{Duration, Instant};

use hotmap_runtime::{ContainerError, ContainerState, ProcessUser, SandboxState, StartError};

use crate::fixture::{Fixture, POD, address, exit_of, http_get, mount, sandbox, stdout_of};

#[tokio::test]
async fn a_container_runs_to_its_end_and_its_output_is_logged() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    let pod = fixture.pod(&runtime).await;
    assert_eq!(pod.state, SandboxState::Ready);
    let script = "echo out; echo err >&2; hostname; echo $$ $HOME $HOSTNAME; printf tail; exit 7";
    let (exit_code, log) = fixture.run(&runtime, fixture.script("web", script)).await;
    assert_eq!(exit_code, 7);
    let mut sorted = log;
    sorted.sort();
    assert_eq!(sorted, ["1 /root web", "err", "out", "tail", "web"]);
    let raw = std::fs::read_to_string(fixture.log_path("web")).expect("a log");
    assert!(raw.lines().any(|line| line.ends_with(" stderr F err")), "{raw}");
    assert!(raw.lines().any(|line| line.ends_with(" stdout P tail")), "{raw}");
    let status = runtime
        .sandbox(POD)
        .expect("there")
        .container("web")
        .expect("on record")
        .clone();
    assert!(
        matches!(status.state, ContainerState::Exited(exit) if exit.exit_code == 7 && exit.signal.is_none())
    );
    runtime.remove_container(POD, "web", 0).await.expect("removed");
    runtime
        .remove_container(POD, "web", 0)
        .await
        .expect("removed again");
    assert!(runtime.sandbox(POD).expect("there").containers.is_empty());
    runtime.remove_sandbox(POD).await.expect("removed");
    runtime.remove_sandbox(POD).await.expect("removed again");
    assert!(runtime.sandboxes().is_empty());
    assert_eq!(runtime.pods(), [POD], "its ids stay its own");
    runtime.remove_pod(POD).await.expect("removed");
    runtime.remove_pod(POD).await.expect("removed again");
    assert!(runtime.pods().is_empty());
    assert!(!fixture.config.state_dir.join(POD).exists());
}

#[tokio::test]
async fn a_line_of_10_mib_and_binary_output_reach_the_log() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let mut config = fixture.script(
        "web",
        "head -c 10485760 /dev/zero | tr '\\0' x; echo; head -c 3 /dev/zero; echo",
    );
    config.log_limits.max_bytes = 64 << 20;
    let (exit_code, log) = fixture.run(&runtime, config).await;
    assert_eq!(exit_code, 0);
    assert_eq!(log.iter().map(String::len).sum::<usize>(), 10_485_760 + 3);
    assert_eq!(
        log.len(),
        640 + 1,
        "640 pieces of 16 KiB, the last of them whole, and one more line"
    );
    assert_eq!(log.last().map(String::as_str), Some("\0\0\0"));
}

#[tokio::test]
async fn what_cannot_start_says_why_in_runcs_words() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    for (argv, text) in [
        ("foo", r#"exec: "foo": executable file not found in $PATH"#),
        (
            "/no/such",
            r#"exec: "/no/such": stat /no/such: no such file or directory"#,
        ),
        ("/etc/passwd", r#"exec: "/etc/passwd": permission denied"#),
    ] {
        let error = runtime
            .start_container(POD, fixture.container("web", &[argv]))
            .await
            .expect_err(argv);
        assert!(matches!(error, StartError::Exec(_)), "{error:?}");
        assert_eq!(error.to_string(), text);
    }
    let mut config = fixture.script("web", "true");
    config
        .mounts
        .push(mount(std::path::Path::new("/no/such"), "/data", true));
    let error = runtime.start_container(POD, config).await.expect_err("no source");
    assert!(
        matches!(&error, StartError::Setup(text) if text.contains("/no/such")),
        "{error:?}"
    );
    let mut config = fixture.script("web", "true");
    config.privileged = true;
    assert!(matches!(
        runtime.start_container(POD, config).await,
        Err(StartError::Privileged)
    ));
    assert!(
        runtime.sandbox(POD).expect("there").containers.is_empty(),
        "nothing is left of them"
    );
    let (exit_code, _) = fixture.run(&runtime, fixture.script("web", "true")).await;
    assert_eq!(exit_code, 0, "and the name is free");
}

#[tokio::test]
async fn a_stop_is_a_signal_then_a_kill() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let polite = fixture.script(
        "polite",
        "trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.05; done",
    );
    let mut events = runtime.events();
    runtime.start_container(POD, polite).await.expect("started");
    runtime
        .start_container(POD, fixture.script("deaf", "trap '' TERM; sleep 1000"))
        .await
        .expect("started");
    let again = runtime.start_container(POD, fixture.script("deaf", "true")).await;
    assert!(matches!(again, Err(StartError::Exists { .. })));
    assert!(matches!(
        runtime.remove_container(POD, "deaf", 0).await,
        Err(ContainerError::Running(_))
    ));
    // The trap is there once the script has said so.
    while !fixture.log_path("polite").exists() || fixture.log("polite").is_empty() {
        tokio::task::yield_now().await;
    }
    runtime
        .stop_container(POD, "polite", None, None, Duration::from_secs(30))
        .await
        .expect("stopped");
    assert_eq!(exit_of(&mut events, "polite", 0).await.exit_code, 3);
    assert_eq!(fixture.log("polite"), ["up", "bye"]);
    let begin = Instant::now();
    runtime
        .stop_container(POD, "deaf", None, None, Duration::from_millis(300))
        .await
        .expect("stopped");
    assert!(begin.elapsed() >= Duration::from_millis(300));
    let exit = exit_of(&mut events, "deaf", 0).await;
    assert_eq!((exit.exit_code, exit.signal), (137, Some(9)));
    runtime
        .stop_container(POD, "deaf", None, None, Duration::ZERO)
        .await
        .expect("stopped again");
}

#[tokio::test]
async fn nginx_serves_port_80_on_the_pods_address_with_workers_of_its_user() {
    let Some(fixture) = Fixture::new() else { return };
    let images = hotmap_runtime::HostImages::built_in();
    let image = images.resolve("docker.io/library/nginx:1.29").expect("built in");
    if !image.path.exists() {
        eprintln!("skipped: nginx is not installed");
        return;
    }
    let runtime = fixture.open().await;
    let pod = fixture.pod(&runtime).await;
    let volume = fixture.dir.path().join("site");
    std::fs::create_dir(&volume).expect("made");
    std::fs::write(volume.join("index.html"), "hello from the volume\n").expect("written");
    let mut config = fixture.container("web", &[]);
    config.argv = image.argv(&[], &[]);
    config.writable = image.writable.clone();
    config.links = image.links.clone().into_iter().collect();
    config.mounts.push(mount(&volume, "/var/www/html", true));
    runtime.start_container(POD, config).await.expect("started");
    let answer = http_get(address(&pod), "/").await;
    assert!(
        answer.contains("hello from the volume"),
        "{answer}\n{:?}",
        fixture.log("web")
    );
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let workers = stdout_of(
        &runtime,
        "web",
        "for p in /proc/[0-9]*; do grep -q nginx $p/comm && grep Uid $p/status; done",
    )
    .await;
    assert!(
        workers.contains("\t0\t0\t0\t0") && workers.contains("\t33\t33\t33\t33"),
        "{workers}"
    );
    runtime
        .stop_container(POD, "web", None, Some(libc::SIGQUIT), Duration::from_secs(10))
        .await
        .expect("stopped");
    let log = fixture.log("web");
    assert!(
        log.iter().any(|line| line.contains("GET / HTTP/1.0")),
        "the access log is the container's: {log:?}"
    );
}

#[tokio::test]
async fn mounts_users_and_writable_directories_are_as_asked_for() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    let ids = runtime.reserve_ids(POD).await.expect("reserved");
    let pod = fixture.pod(&runtime).await;
    assert_eq!(pod.ids, ids);
    let volume = fixture.dir.path().join("volume");
    std::fs::create_dir_all(volume.join("sub")).expect("made");
    std::fs::write(volume.join("key"), "value").expect("written");
    std::fs::write(volume.join("secret"), "s3cret").expect("written");
    for (file, mode, gid) in [
        ("secret", 0o440, ids.host_id(2000)),
        ("sub", 0o2770, ids.host_id(2000)),
    ] {
        std::os::unix::fs::chown(volume.join(file), Some(ids.base), gid).expect("owned");
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(volume.join(file), std::fs::Permissions::from_mode(mode)).expect("set");
    }
    let mut config = fixture.script(
        "web",
        "id; pwd; cat /data/key /etc/app/key; echo; cat /data/secret; echo; \
         echo x > /data/new || echo read-only; echo y > /rw/sub/new && ls -n /rw/sub | tail -1; \
         echo z > /var/cache/app/file && stat -c %u:%g /var/cache/app; readlink /var/cache/app/log; \
         echo 1 > /etc/mine || echo not mine; grep -E 'CapEff|CapBnd|NoNewPrivs|Groups' /proc/self/status; umask; \
         echo via-dev > /dev/stdout; echo null > /dev/null && echo ok",
    );
    config.user = ProcessUser {
        uid: 1000,
        gid: 3000,
        supplementary_groups: vec![2000],
        merge_groups: false,
    };
    config.cwd = "/made/dir".into();
    config.writable = vec!["/var/cache/app".into()];
    config.links = vec![("/var/cache/app/log".into(), "/dev/stdout".into())];
    config.mounts = vec![
        mount(&volume, "/data", true),
        mount(&volume, "/rw", false),
        mount(&volume.join("key"), "/etc/app/key", true),
    ];
    let (exit_code, log) = fixture.run(&runtime, config).await;
    let text = log.join("\n");
    assert_eq!(exit_code, 0, "{text}");
    for part in [
        "Groups:\t2000 3000",
        "/made/dir",
        "valuevalue",
        "s3cret",
        "read-only",
        "1000     2000",
        "1000:3000",
        "/dev/stdout",
        "not mine",
        "CapEff:\t0000000000000000",
        "CapBnd:\t00000000a80425fb",
        "NoNewPrivs:\t1",
        "0022",
        "via-dev",
        "ok",
    ] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    assert_eq!(
        std::fs::read_to_string(volume.join("sub/new")).expect("written through"),
        "y\n"
    );
}

#[tokio::test]
async fn root_of_the_pod_owns_its_own_directories_and_nothing_else() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let script = "id -u; for d in / /etc /var /var/log /var/cache /var/lib /root /tmp /run /dev/shm; do \
                  echo x > $d/hotmap-test-file && cat $d/hotmap-test-file > /dev/null || echo cannot write $d; done; \
                  ls -A /root; chown 33:33 /var/log && echo chowned; grep CapEff /proc/self/status; \
                  for d in /usr /bin/; do touch $d/hotmap-test-file 2>/dev/null && echo wrote $d; done; true";
    let (exit_code, log) = fixture.run(&runtime, fixture.script("web", script)).await;
    assert_eq!(
        (exit_code, log),
        (
            0,
            ["0", "hotmap-test-file", "chowned", "CapEff:\t00000000a80425fb"]
                .map(str::to_owned)
                .to_vec()
        )
    );
    for dir in ["/", "/etc", "/var", "/root", "/tmp"] {
        assert!(
            !std::path::Path::new(dir).join("hotmap-test-file").exists(),
            "the host has nothing in {dir}"
        );
    }
    let mut config = fixture.script(
        "fixed",
        "echo x > /etc/file || echo read-only; echo y > /tmp/file || echo the same; echo z > /dev/shm/file && echo wrote",
    );
    config.read_only_root = true;
    let (_, log) = fixture.run(&runtime, config).await;
    assert!(
        ["read-only", "the same", "wrote"]
            .iter()
            .all(|word| log.contains(&(*word).to_owned())),
        "{log:?}"
    );
}

#[tokio::test]
async fn containers_of_a_pod_share_network_and_memory_but_no_files_and_processes() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    let pod = fixture.pod(&runtime).await;
    let other_uid = "99999999-0000-0000-0000-000000000000";
    let other = runtime
        .run_sandbox(sandbox(other_uid))
        .await
        .expect("a second pod");
    assert_ne!((pod.ip, pod.ids), (other.ip, other.ids));
    let server = "echo one > /dev/shm/file; echo one > /tmp/file; echo hi | busybox nc -l -p 8080";
    runtime
        .start_container(POD, fixture.script("one", server))
        .await
        .expect("started");
    let client = "until [ -s /dev/shm/file ]; do sleep 0.02; done; cat /dev/shm/file; ls -A /tmp; \
                  until busybox nc 127.0.0.1 8080; do sleep 0.02; done; ls -d /proc/[0-9]*; ip -o -4 addr; ip route";
    let (exit_code, log) = fixture.run(&runtime, fixture.script("two", client)).await;
    let text = log.join("\n");
    assert_eq!(exit_code, 0, "{text}");
    assert!(text.starts_with("one\nhi\n/proc/1\n"), "{text}");
    assert!(
        text.contains(&format!("inet {}/16", address(&pod))) && text.contains("default via"),
        "{text}"
    );
    let mut config = fixture.script(
        "ping",
        &format!(
            "busybox ping -c 1 -W 2 {} > /dev/null && echo reached",
            address(&pod)
        ),
    );
    config.log_path = fixture.log_path("ping");
    let mut events = runtime.events();
    runtime.start_container(other_uid, config).await.expect("started");
    exit_of(&mut events, "ping", 0).await;
    assert_eq!(fixture.log("ping"), ["reached"]);
}

#[tokio::test]
async fn an_id_mapped_mount_shows_the_hosts_owners_as_the_pods() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    let pod = fixture.pod(&runtime).await;
    let volume = fixture.dir.path().join("volume");
    std::fs::create_dir(&volume).expect("made");
    std::fs::write(volume.join("file"), "root's\n").expect("written");
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    std::fs::set_permissions(volume.join("file"), std::fs::Permissions::from_mode(0o600)).expect("set");
    let mut config = fixture.script(
        "web",
        "cat /mapped/file; stat -c %u /mapped/file; touch /mapped/new; cat /plain/file || echo closed",
    );
    config.mounts = vec![mount(&volume, "/mapped", false), mount(&volume, "/plain", true)];
    config.mounts[0].id_mapped = true;
    match runtime.start_container(POD, config.clone()).await {
        Err(StartError::Setup(reason)) if reason.contains("Invalid argument") => {
            eprintln!("skipped: this file system does not support id-mapped mounts");
            return;
        }
        started => started.expect("started"),
    };
    exit_of(&mut runtime.events(), "web", 0).await;
    let log = fixture.log("web");
    assert!(
        log[..2] == ["root's", "0"] && log.contains(&"closed".to_owned()),
        "{log:?}"
    );
    assert_eq!(std::fs::metadata(volume.join("new")).expect("made").uid(), 0);
    assert!(pod.ids.base > 0);
}

#[tokio::test]
async fn a_privileged_container_has_every_capability_of_its_pod_and_is_still_not_the_hosts_root() {
    let Some(mut fixture) = Fixture::new() else { return };
    fixture.config.allow_privileged = true;
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let mut config = fixture.script("web", "grep CapEff /proc/self/status; ip addr add 192.0.2.77/32 dev lo && echo linked; cat /etc/shadow || echo closed");
    config.privileged = true;
    let (_, log) = fixture.run(&runtime, config).await;
    assert!(
        log[0].starts_with("CapEff:\t000001ff") && log.contains(&"closed".to_owned()),
        "{log:?}"
    );
    assert!(
        log.contains(&"linked".to_owned()),
        "it rules its own network: {log:?}"
    );
}

#[tokio::test]
async fn an_open_without_root_says_so() {
    if rustix::process::geteuid().is_root() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let config = hotmap_runtime::RuntimeConfig {
        state_dir: dir.path().join("pods"),
        instance_id: "a".parse().expect("valid"),
        allow_privileged: false,
        mask: vec![],
        self_exe: env!("CARGO_BIN_EXE_hotmap-shim").into(),
        boot_id: hotmap_runtime::BootId::current().expect("a boot id"),
        pod_network: hotmap_runtime::PodNetworkConfig::default(),
    };
    let error = hotmap_runtime::Runtime::open(config)
        .await
        .expect_err("it needs root");
    assert!(error.to_string().contains("need root"), "{error}");
}
