//! What a container may ask of the kernel, what it may write to, and to which groups it belongs.

use hotmap_runtime::{Capabilities, ContainerConfig, ProcessUser, SeccompProfile};

use crate::fixture::{Fixture, POD, exec, mount, stdout_of};

/// Makes system calls in a container and returns what the kernel said to each: 0, or the number of the error.
async fn errors(runtime: &hotmap_runtime::Runtime, container: &str, calls: &[(i64, &[i64])]) -> Vec<i32> {
    let call = |(number, arguments): &(i64, &[i64])| {
        let words: Vec<String> = [number]
            .into_iter()
            .chain(*arguments)
            .map(i64::to_string)
            .collect();
        format!(r#"print(syscall({}) < 0 ? $!+0 : 0, "\n");"#, words.join(", "))
    };
    let script: Vec<String> = calls.iter().map(call).collect();
    let argv = ["/usr/bin/perl", "-e", &script.concat()].map(str::to_owned);
    let output = runtime
        .exec_sync(
            POD,
            container,
            argv.to_vec(),
            std::time::Duration::from_secs(30),
            1 << 20,
        )
        .await
        .expect("executed");
    let text = String::from_utf8(output.stdout).expect("utf-8");
    text.lines().map(|line| line.parse().expect("a number")).collect()
}

#[tokio::test]
async fn a_confined_container_makes_the_usual_calls_and_no_others() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let confined = |name: &str| ContainerConfig {
        seccomp: SeccompProfile::RuntimeDefault,
        ..fixture.script(name, "sleep 1000")
    };
    let nobody = ProcessUser {
        uid: 1000,
        gid: 1000,
        ..ProcessUser::default()
    };
    let own_way = |name: &str| ContainerConfig {
        no_new_privileges: false,
        user: nobody.clone(),
        ..confined(name)
    };
    let admin = |name: &str| ContainerConfig {
        no_new_privileges: false,
        capabilities: Capabilities::from_default(["SYS_ADMIN"], []).expect("a capability"),
        ..confined(name)
    };
    let new_user_namespace = i64::from(libc::CLONE_NEWUSER);
    let (af_unix, af_alg) = (i64::from(libc::AF_UNIX), i64::from(libc::AF_ALG));
    let calls: &[(i64, &[i64])] = &[
        (libc::SYS_getpid, &[]),
        (libc::SYS_socket, &[af_unix, 1, 0]),
        (libc::SYS_personality, &[0xffff_ffff]),
        (libc::SYS_unshare, &[new_user_namespace]),
        (libc::SYS_mount, &[0, 0, 0, 0, 0]),
        (libc::SYS_bpf, &[0, 0, 0]),
        (libc::SYS_keyctl, &[0, 0, 0]),
        (libc::SYS_socket, &[af_alg, 5, 0]),
        (libc::SYS_clone, &[new_user_namespace, 0, 0, 0, 0]),
        (libc::SYS_personality, &[0x40000]),
        (libc::SYS_clone3, &[0, 0]),
        (600, &[]),
    ];
    let (eperm, enosys) = (libc::EPERM, libc::ENOSYS);
    let usual = [
        0, 0, 0, eperm, eperm, eperm, eperm, eperm, eperm, eperm, enosys, enosys,
    ];
    for (config, filters) in [(confined("no-more"), 2), (own_way("own-way"), 2)] {
        let name = config.name.clone();
        runtime.start_container(POD, config).await.expect("started");
        assert_eq!(errors(&runtime, &name, calls).await, usual, "{name}");
        let of_first = stdout_of(&runtime, &name, "grep Seccomp_filters /proc/1/status | cut -f 2").await;
        assert_eq!(of_first, filters.to_string(), "{name}");
    }
    // With the capability go its calls; those that go with none stay away.
    runtime
        .start_container(POD, admin("admin"))
        .await
        .expect("started");
    assert_eq!(
        errors(
            &runtime,
            "admin",
            &[calls[3], calls[4], calls[6], calls[10], calls[11]]
        )
        .await,
        [0, libc::EFAULT, eperm, libc::EINVAL, enosys]
    );
    // Without a profile there are no filters, and a privileged container would have none either.
    let free = fixture.script("free", "sleep 1000");
    runtime.start_container(POD, free).await.expect("started");
    assert_eq!(errors(&runtime, "free", &[calls[3]]).await, [0]);
}

#[tokio::test]
async fn a_read_only_root_is_so_everywhere_but_in_volumes() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    let ids = fixture.pod(&runtime).await.ids;
    let volume = fixture.dir.path().join("volume");
    std::fs::create_dir(&volume).expect("made");
    std::os::unix::fs::chown(&volume, Some(ids.base), Some(ids.base)).expect("owned");
    let config = ContainerConfig {
        read_only_root: true,
        cwd: "/made/dir".into(),
        writable: vec!["/var/cache/app".into()],
        links: vec![("/var/cache/app/log".into(), "/dev/stdout".into())],
        mounts: vec![
            mount(&volume, "/tmp/volume", false),
            mount(&volume, "/run/locked", true),
        ],
        ..fixture.script("web", "sleep 1000")
    };
    runtime.start_container(POD, config).await.expect("started");
    for (place, writable) in [
        ("/", false),
        ("/etc", false),
        ("/var/log", false),
        ("/root", false),
        ("/made/dir", false),
        ("/tmp", false),
        ("/run", false),
        ("/run/lock", false),
        ("/var/cache/app", false),
        ("/run/locked", false),
        ("/tmp/volume", true),
        ("/dev/shm", true),
    ] {
        let tried = exec(&runtime, "web", &format!("echo x > {place}/file")).await;
        assert_eq!(tried.exit_code == 0, writable, "{place}: {tried:?}");
    }
    assert_eq!(
        stdout_of(
            &runtime,
            "web",
            "echo null > /dev/null && readlink /var/cache/app/log"
        )
        .await,
        "/dev/stdout"
    );
}

#[tokio::test]
async fn groups_are_those_given_and_with_merge_those_of_the_user_too() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let passwd = fixture.dir.path().join("passwd");
    std::fs::write(
        &passwd,
        "root:x:0:0::/root:/bin/sh\napp:x:1000:1000::/home/app:/bin/sh\n",
    )
    .expect("written");
    let group = fixture.dir.path().join("group");
    std::fs::write(
        &group,
        "mail:x:8:app\napp:x:1000:\nlogs:x:50000:root,app\nother:x:9:root\n",
    )
    .expect("written");
    for (name, merge_groups, groups) in [
        ("strict", false, "2000 3000 4000"),
        ("merge", true, "8 2000 3000 4000 50000"),
    ] {
        let config = ContainerConfig {
            user: ProcessUser {
                uid: 1000,
                gid: 3000,
                supplementary_groups: vec![4000, 2000],
                merge_groups,
            },
            mounts: vec![
                mount(&passwd, "/etc/passwd", true),
                mount(&group, "/etc/group", true),
            ],
            ..fixture.script(name, "sleep 1000")
        };
        let started = runtime.start_container(POD, config).await.expect("started");
        let seen = "grep Groups /proc/1/status | tr -s '\\t ' ' '";
        assert_eq!(
            stdout_of(&runtime, name, seen).await,
            format!("Groups: {groups}"),
            "{name}"
        );
        let user = started.user.expect("this shim says who a process is");
        let told: Vec<String> = user.groups.iter().map(u32::to_string).collect();
        assert_eq!(
            (user.uid, user.gid, told.join(" ").as_str()),
            (1000, 3000, groups),
            "{name}"
        );
    }
}
