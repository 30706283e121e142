//! `hotmap sync` beside a real API server, edited with kubectl.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    harness::{Finished, Kubectl, Release, Running, finish, hotmap},
    has,
};

/// A call of `hotmap sync` with the server's own kubeconfig.
fn sync(kubectl: &Kubectl, arguments: &[&str]) -> Command {
    let mut command = hotmap();
    command
        .args(["--log", "info,hotmap_reload=debug", "sync", "--kubeconfig"])
        .arg(kubectl.server.kubeconfig())
        .args(arguments)
        .env("NO_COLOR", "1")
        .current_dir(kubectl.server.home());
    command
}

/// A sync that goes on, with what it logs as its lines.
#[track_caller]
fn start(kubectl: &Kubectl, arguments: &[&str]) -> Running {
    let call = sync(kubectl, arguments);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", r#"exec "$0" "$@" 2>&1"#])
        .arg(call.get_program())
        .args(call.get_args())
        .current_dir(kubectl.server.home())
        .env("NO_COLOR", "1");
    Running::start(&mut shell)
}

#[track_caller]
fn once(kubectl: &Kubectl, arguments: &[&str]) -> Finished {
    finish(&mut sync(kubectl, &[arguments, &["--once"]].concat()), None)
}

fn kubectl() -> Option<Kubectl> {
    Kubectl::with_server(Release::Newest)
}

/// `name=content`, by name, of all files that show in the directory.
fn shown(directory: &Path) -> String {
    let Ok(entries) = fs::read_dir(directory) else {
        return "no directory".to_owned();
    };
    let mut files: Vec<String> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| !name(path).starts_with("..") && path.is_file())
        .map(|path| {
            let content = fs::read_to_string(&path).expect("a file that shows can be read");
            format!("{}={content}", name(&path))
        })
        .collect();
    files.sort();
    files.join(" ")
}

fn name(path: &Path) -> String {
    path.file_name()
        .expect("an entry has a name")
        .to_string_lossy()
        .into_owned()
}

/// A directory in memory, gone with the test.
fn in_memory() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("hotmap-e2e-")
        .tempdir_in("/dev/shm")
        .expect("/dev/shm is there and everybody's")
}

#[test]
fn named_objects_become_files_and_follow_every_edit() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("create configmap app --from-literal=level=info --from-literal=both=app");
    kubectl.ok("create configmap site --from-literal=both=site");
    let directory = kubectl.server.home().join("etc/app");
    let mut running = start(&kubectl, &["configmap/app", "cm/site", "etc/app"]);
    has(
        &running.line_with("two objects have one key"),
        &["default/configmap/app", "default/configmap/site"],
    );
    running.line_with("revision written");
    assert_eq!(shown(&directory), "both=site level=info");
    assert!(directory.join("..data").is_symlink());
    kubectl.ok("patch configmap app -p {\"data\":{\"level\":\"debug\",\"new\":\"1\"}}");
    running.line_with("revision written");
    assert_eq!(shown(&directory), "both=site level=debug new=1");

    // What was named and is deleted keeps its last content, and says so.
    kubectl.ok("delete configmap site");
    running.line_with("object is gone, its last content stays");
    assert_eq!(shown(&directory), "both=site level=debug new=1");
    kubectl.ok("create configmap site --from-literal=both=again");
    running.line_with("revision written");
    assert_eq!(shown(&directory), "both=again level=debug new=1");
    running.terminate();
    assert_eq!(running.wait(), 0);
}

#[test]
fn a_missing_object_is_waited_for_by_name() {
    let Some(kubectl) = kubectl() else { return };
    let directory = kubectl.server.home().join("d");
    let mut running = start(&kubectl, &["configmap/late", "d"]);
    has(
        &running.line_with("waiting for an object that does not exist"),
        &["configmap/late in namespace \"default\""],
    );
    kubectl.ok("create configmap late --from-literal=a=1");
    running.line_with("revision written");
    assert_eq!(shown(&directory), "a=1");

    let error = once(&kubectl, &["configmap/never", "e", "--once-timeout", "1s"]).refused();
    has(
        &error,
        &["nothing was written within 1 s: configmap/never in namespace \"default\" does not exist"],
    );
    assert_eq!(shown(&kubectl.server.home().join("e")), "");
    once(
        &kubectl,
        &["configmap/late", "configmap/never", "f", "--optional"],
    )
    .ok();
    assert_eq!(shown(&kubectl.server.home().join("f")), "a=1");
}

#[test]
fn other_namespaces_subdirectories_and_modes_are_as_asked() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("create namespace shop");
    kubectl.ok("create configmap app --from-literal=a=here");
    kubectl.ok("create configmap app -n shop --from-literal=a=there");
    let home = kubectl.server.home();
    once(&kubectl, &["cm/app", "shop/cm/app=conf.d", "d", "--mode", "0640"]).ok();
    assert_eq!(shown(&home.join("d")), "a=here");
    assert_eq!(shown(&home.join("d/conf.d")), "a=there");
    let mode = fs::metadata(home.join("d/a"))
        .expect("a file")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o640);
    once(&kubectl, &["cm/app", "e", "-n", "shop"]).ok();
    assert_eq!(shown(&home.join("e")), "a=there");
}

#[test]
fn secrets_go_into_memory_unless_a_disk_is_asked_for() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("create secret generic tls --from-literal=key=hunter2");
    let disk = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("sync-{}", std::process::id()));
    let disk = disk.display().to_string();
    let error = once(&kubectl, &["secret/tls", &disk]).ended(2);
    has(&error, &["is not on tmpfs", "--secrets-on-disk"]);
    assert_eq!(shown(Path::new(&disk)), "");
    let finished = once(&kubectl, &["secret/tls", &disk, "--secrets-on-disk"]);
    assert!(!finished.stderr.contains("hunter2"), "{}", finished.stderr);
    finished.ok();
    assert_eq!(shown(Path::new(&disk)), "key=hunter2");
    fs::remove_dir_all(&disk).expect("ours");

    let memory = in_memory();
    let directory = memory.path().join("tls");
    once(&kubectl, &["secret/tls", &directory.display().to_string()]).ok();
    assert_eq!(shown(&directory), "key=hunter2");
    for (path, expected) in [("", 0o700), ("key", 0o600)] {
        let mode = fs::metadata(directory.join(path))
            .expect("ours")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, expected, "{path:?}");
    }
}

#[test]
fn labels_bring_objects_in_and_take_them_out() {
    let Some(kubectl) = kubectl() else { return };
    for (name, label) in [("one", "app=x"), ("two", "app=x"), ("three", "app=y")] {
        kubectl.ok(&format!("create configmap {name} --from-literal={name}=1"));
        kubectl.ok(&format!("label configmap {name} {label}"));
    }
    let directory = kubectl.server.home().join("d");
    let mut running = start(&kubectl, &["-l", "app=x", "d"]);
    running.line_with("revision written");
    assert_eq!(shown(&directory), "one=1 two=1");
    kubectl.ok("label configmap three app=x --overwrite");
    running.line_with("revision written");
    assert_eq!(shown(&directory), "one=1 three=1 two=1");
    kubectl.ok("label configmap one app-");
    running.line_with("revision written");
    assert_eq!(shown(&directory), "three=1 two=1");
    kubectl.ok("delete configmap two three");
    running.line_with("revision written");
    while !shown(&directory).is_empty() {
        running.line_with("revision written");
    }
}

#[test]
fn the_last_content_stays_while_the_api_is_away() {
    let Some(mut kubectl) = kubectl() else { return };
    kubectl.ok("create configmap app --from-literal=a=1");
    let directory = kubectl.server.home().join("d");
    let mut running = start(&kubectl, &["configmap/app", "d"]);
    running.line_with("revision written");
    kubectl.server.crash();
    running.line_with("the API cannot be heard, the last content stays");
    assert_eq!(shown(&directory), "a=1");
    // What was there is served on, by a sync that starts without the API, too.
    let error = once(&kubectl, &["configmap/app", "e", "--once-timeout", "1s"]).refused();
    has(&error, &["nothing was written within 1 s", "cannot connect to"]);
    let error = once(&kubectl, &["configmap/app", "d", "--once-timeout", "1s"]).refused();
    has(
        &error,
        &["another hotmap writes to d: one directory has one writer"],
    );
    kubectl.server.restart();
    kubectl.ok("patch configmap app -p {\"data\":{\"a\":\"2\"}}");
    running.line_with("revision written");
    assert_eq!(shown(&directory), "a=2");
}

#[test]
fn a_server_that_answers_no_more_is_noticed_and_heard_again() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("create configmap app --from-literal=a=1");
    let mut running = start(&kubectl, &["configmap/app", "d"]);
    running.line_with("revision written");
    let signal = |signal| {
        let pid = rustix::process::Pid::from_raw(kubectl.server.pid().cast_signed()).expect("it runs");
        rustix::process::kill_process(pid, signal).expect("a child of ours");
    };
    // Its connections stay open, and nothing comes over them: only a question finds that.
    signal(rustix::process::Signal::STOP);
    running.line_with("the API cannot be heard, the last content stays");
    assert_eq!(shown(&kubectl.server.home().join("d")), "a=1");
    signal(rustix::process::Signal::CONT);
    kubectl.ok("patch configmap app -p {\"data\":{\"a\":\"2\"}}");
    running.line_with("revision written");
    assert_eq!(shown(&kubectl.server.home().join("d")), "a=2");
}

#[test]
fn calls_that_cannot_be_meant_are_refused_with_what_to_do() {
    for (arguments, expected) in [
        (
            &["d"][..],
            "which objects? give configmap/NAME or secret/NAME before DIR",
        ),
        (
            &["pod/app", "d"],
            "\"pod/app\": \"pod\" is neither configmap nor secret",
        ),
        (&["configmap/app", "d", "-n", "a,b"], "NAMESPACE/configmap/NAME"),
        (&["configmap/app", "d", "--once-timeout", "1s"], "--once"),
        (&["-l", "a in b", "d"], "-l \"a in b\""),
        (&["cm/app=../x", "d"], "must not contain '..'"),
        (&["cm/app", "d", "--mode", "0888"], "not an octal mode"),
        (
            &["cm/app", "d", "--owner", "www-data"],
            "not two numbers such as 33:33",
        ),
        (&["cm/app", "d", "-A"], "--selector"),
    ] {
        let error = finish(hotmap().arg("sync").args(arguments), None).ended(2);
        has(&error, &[expected]);
    }
}

/// Makes the account `hotmap-sync` if it is not there; returns a kubeconfig that is known by its token alone.
fn of_account(kubectl: &Kubectl) -> String {
    let token = kubectl.ok("create token hotmap-sync");
    let kubeconfig = kubectl.file("account.kubeconfig", kubectl.ok("config view --raw --flatten"));
    let kubeconfig = kubeconfig.display().to_string();
    kubectl.ok(&format!(
        "config set-credentials account --kubeconfig={kubeconfig} --token={}",
        token.trim()
    ));
    kubectl.ok(&format!(
        "config set-context --current --user=account --kubeconfig={kubeconfig}"
    ));
    kubeconfig
}

#[test]
fn the_printed_role_is_enough_and_no_more() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("create configmap app --from-literal=a=1");
    kubectl.ok("create configmap other --from-literal=o=1");
    kubectl.ok("create secret generic tls --from-literal=key=k");
    kubectl.ok("create serviceaccount hotmap-sync");
    let kubeconfig = of_account(&kubectl);
    let memory = in_memory();
    let directory = memory.path().join("d");
    let directory = directory.display().to_string();
    let arguments = [
        "configmap/app",
        "secret/tls",
        &directory,
        "--kubeconfig",
        &kubeconfig,
    ];
    let account = |arguments: &[&str]| {
        let mut command = hotmap();
        command.arg("sync").args(arguments);
        finish(&mut command, None)
    };
    // Without the role it is said what to do, and it is in force as soon as it is there.
    let mut call = Command::new("sh");
    call.args(["-c", r#"exec "$0" sync "$@" 2>&1"#])
        .arg(hotmap().get_program())
        .args(arguments)
        .env("NO_COLOR", "1")
        .env("HOTMAP_LOG", "info");
    let mut running = Running::start(&mut call);
    has(
        &running.line_with("no right to list and watch"),
        &["cannot list resource", "hotmap sync --print-rbac"],
    );
    let role = account(&[
        "configmap/app",
        "secret/tls",
        "--print-rbac",
        "--kubeconfig",
        &kubeconfig,
    ])
    .ok();
    has(
        &role,
        &[
            "resourceNames: [app]",
            "resourceNames: [tls]",
            "kind: RoleBinding",
        ],
    );
    kubectl.apply(&role);
    running.line_with("revision written");
    assert_eq!(shown(Path::new(&directory)), "a=1 key=k");
    kubectl.ok("patch configmap app -p {\"data\":{\"a\":\"2\"}}");
    running.line_with("revision written");
    drop(running);
    let other = kubectl.server.home().join("other").display().to_string();
    let error = account(&[
        "configmap/other",
        &other,
        "--kubeconfig",
        &kubeconfig,
        "--once",
        "--once-timeout",
        "1s",
    ])
    .refused();
    has(&error, &["no right to list and watch configmap/other"]);
    assert_eq!(
        kubectl
            .run("auth can-i list configmaps --as=system:serviceaccount:default:hotmap-sync")
            .code,
        1
    );
}

#[test]
fn a_bad_revision_is_not_tried_again_after_a_restart_until_it_changes() {
    let Some(kubectl) = kubectl() else { return };
    kubectl.ok("create configmap app --from-literal=level=good");
    let directory = kubectl.server.home().join("d");
    let arguments = [
        "configmap/app",
        "d",
        "--verify",
        "grep -q good d/level",
        "--verify-for",
        "0",
    ];
    let mut running = start(&kubectl, &arguments);
    running.line_with("revision verified");
    kubectl.ok("patch configmap app -p {\"data\":{\"level\":\"bad\"}}");
    running.line_with("the revision has not passed");
    running.line_with("former revision put back");
    running.line_with("change loaded");
    drop(running);
    let mut running = start(&kubectl, &arguments);
    running.line_with("not tried again until an object changes");
    assert_eq!(shown(&directory), "level=good");
    kubectl.ok("patch configmap app -p {\"data\":{\"level\":\"good-again\"}}");
    running.line_with("revision verified");
    assert_eq!(shown(&directory), "level=good-again");
}

#[test]
fn the_annotation_of_k8s_sidecar_leads_nowhere_outside() {
    let Some(kubectl) = kubectl() else { return };
    let home = kubectl.server.home();
    let outside = home.join("outside").display().to_string();
    for (name, folder) in [("one", "team"), ("two", "../outside"), ("three", &outside)] {
        kubectl.ok(&format!("create configmap {name} --from-literal={name}=1"));
        kubectl.ok(&format!("label configmap {name} dashboard=1"));
        kubectl.ok(&format!("annotate configmap {name} folder={folder}"));
    }
    let mut running = start(
        &kubectl,
        &[
            "-l",
            "dashboard",
            "d",
            "--folder-annotation",
            "folder",
            "--layout",
            "plain",
        ],
    );
    running.line_with("is left out: its annotation folder leads to");
    running.line_with("revision written");
    assert_eq!(shown(&home.join("d/team")), "one=1");
    assert!(!home.join("outside").exists());
}
