//! `hotmap up --temp -- CMD`: a server for one command.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

use crate::harness::{Finished, Running, finish, hotmap, skipped};

fn in_directory(directory: &Path, script: &str) -> Command {
    let mut command = hotmap();
    command
        .args(["up", "--temp", "--", "sh", "-c", script])
        .env("TMPDIR", directory);
    command
}

fn temporary() -> tempfile::TempDir {
    let directory = tempfile::Builder::new()
        .prefix("hotmap-e2e-")
        .tempdir()
        .expect("a temporary directory");
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).expect("ours");
    directory
}

fn assert_empty(directory: &Path) {
    let left: Vec<_> = fs::read_dir(directory)
        .expect("readable")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    assert!(left.is_empty(), "left behind: {left:?}");
}

#[test]
fn the_command_gets_a_kubeconfig_and_its_exit_code_is_ours() {
    let directory = temporary();
    for (script, code) in [
        ("true", 0),
        ("exit 7", 7),
        ("kill -9 $$", 137),
        (
            r#"test -r "$KUBECONFIG" && grep -q 'server: https://127.0.0.1:' "$KUBECONFIG""#,
            0,
        ),
        (r#"test "$(stat -c %a "$KUBECONFIG")" = 600"#, 0),
    ] {
        let done = finish(&mut in_directory(directory.path(), script), None);
        assert_eq!(done.code, code, "{script}: {done:?}");
        assert_eq!(
            done.stdout, "",
            "{script}: standard output belongs to the command"
        );
        assert_empty(directory.path());
    }
    let mut missing = hotmap();
    missing
        .args(["up", "--temp", "--", "/no/such/program"])
        .env("TMPDIR", directory.path());
    let refused = finish(&mut missing, None).ended(127);
    assert!(refused.contains("cannot run \"/no/such/program\""), "{refused}");
    assert_empty(directory.path());
}

#[test]
fn manifests_are_there_before_the_command() {
    let directory = temporary();
    let manifest = directory.path().join("one.yaml");
    fs::write(
        &manifest,
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {a: '1'}}\n",
    )
    .expect("ours");
    let mut command = hotmap();
    command.args(["up", "--temp", "-f"]).arg(&manifest);
    command
        .args(["--", "sh", "-c", "true"])
        .env("TMPDIR", directory.path());
    finish(&mut command, None).ok();
    fs::write(
        &manifest,
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: one}, dta: {a: '1'}}\n",
    )
    .expect("ours");
    let refused = finish(&mut command, None).refused();
    assert!(
        refused.contains("one.yaml") && refused.contains(r#"unknown field "dta""#),
        "{refused}"
    );
    fs::remove_file(manifest).expect("ours");
    assert_empty(directory.path());
}

#[test]
fn a_signal_goes_to_the_command_and_nothing_stays() {
    let directory = temporary();
    let script =
        r#"trap 'echo asked; exit 5' TERM; echo started; while :; do read -r line < "$FIFO" || :; done"#;
    let fifo = directory.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().expect("mkfifo");
    assert!(made.success());
    let mut running = Running::start(in_directory(directory.path(), script).env("FIFO", &fifo));
    running.line_with("started");
    running.terminate();
    running.line_with("asked");
    assert_eq!(running.wait(), 5);
    fs::remove_file(fifo).expect("ours");
    assert_empty(directory.path());
}

#[test]
fn an_unprivileged_user_can_do_it() {
    let directory = temporary();
    let Some(mut command) = unprivileged() else { return };
    command.args(["up", "--temp", "--", "sh", "-c", "id -u; test -r \"$KUBECONFIG\""]);
    command
        .env("TMPDIR", directory.path())
        .env("HOME", "/nonexistent");
    assert_eq!(finish(&mut command, None).ok(), "65534\n");
    assert_empty(directory.path());
}

#[test]
fn many_at_once_never_meet() {
    let directory = temporary();
    let started: Vec<_> = (0..4)
        .map(|_| {
            Running::start(&mut in_directory(
                directory.path(),
                r#"grep server: "$KUBECONFIG""#,
            ))
        })
        .collect();
    let mut servers: Vec<_> = started.into_iter().map(|running| running.rest()).collect();
    servers.sort();
    servers.dedup();
    assert_eq!(servers.len(), 4, "{servers:?}");
    assert!(
        servers.iter().all(|(lines, code)| lines.len() == 1 && *code == 0),
        "{servers:?}"
    );
    assert_empty(directory.path());
}

/// The binary as uid 65534, if we may become that and it may read the binary.
pub(crate) fn unprivileged() -> Option<Command> {
    if !rustix::process::geteuid().is_root() {
        // Whoever runs the tests is unprivileged already.
        skipped("not root: cannot become another unprivileged user");
        return None;
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
    let (program, environment) = {
        let plain = hotmap();
        let environment: Vec<_> = plain
            .get_envs()
            .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
            .collect();
        (plain.get_program().to_owned(), environment)
    };
    let probe: Finished = finish(
        Command::new("setpriv")
            .args([
                "--reuid=65534",
                "--regid=65534",
                "--clear-groups",
                "--",
                "test",
                "-x",
            ])
            .arg(&program),
        None,
    );
    if probe.code != 0 {
        skipped("uid 65534 cannot execute the binary where it was built");
        return None;
    }
    command.arg(program);
    for (name, value) in environment {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    Some(command)
}
