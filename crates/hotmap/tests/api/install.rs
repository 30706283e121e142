//! deploy/: the install script beneath a root of its own, the systemd units, and what a service manager is told.

use std::{
    fs,
    os::unix::{fs::PermissionsExt, net::UnixDatagram},
    path::{Path, PathBuf},
    process::Command,
};

use crate::{
    harness::{Finished, PATIENCE, Running, finish, hotmap, skipped},
    has,
};

fn temporary() -> tempfile::TempDir {
    tempfile::Builder::new()
        .prefix("hotmap-e2e-")
        .tempdir()
        .expect("a temporary directory")
}

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

#[track_caller]
fn install(root: &Path, arguments: &[&str]) -> Finished {
    let mut command = Command::new("sh");
    command.arg(deploy().join("install.sh")).args(arguments);
    finish(command.env("DESTDIR", root), None)
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        .permissions()
        .mode()
        & 0o7777
}

#[test]
fn it_installs_again_and_again_and_leaves_what_is_yours() {
    let root = temporary();
    let at = |path: &str| root.path().join(path);
    let binary = env!("CARGO_BIN_EXE_hotmap");
    has(&install(root.path(), &["--binary", binary]).ok(), &["is in"]);
    for (path, expected) in [
        ("usr/local/bin/hotmap", 0o755),
        ("etc/systemd/system/hotmap.service", 0o644),
        ("etc/default/hotmap", 0o600),
        ("etc/hotmap/manifests", 0o700),
        ("var/lib/hotmap", 0o700),
    ] {
        assert_eq!(mode(&at(path)), expected, "{path}");
    }

    // An upgrade keeps settings and data, and closes a directory that was open.
    fs::write(at("etc/default/hotmap"), "HOTMAP_LISTEN=:7000\n").expect("ours");
    fs::write(at("var/lib/hotmap/kept"), "").expect("ours");
    fs::set_permissions(at("var/lib/hotmap"), fs::Permissions::from_mode(0o755)).expect("ours");
    has(
        &install(root.path(), &["--binary", binary]).ok(),
        &["stays as it is"],
    );
    assert_eq!(
        fs::read_to_string(at("etc/default/hotmap")).expect("there"),
        "HOTMAP_LISTEN=:7000\n"
    );
    assert_eq!(mode(&at("var/lib/hotmap")), 0o700);

    // Beside it, and without it, the agent's service.
    install(root.path(), &["--binary", binary, "--agent"]).ok();
    has(
        &install(root.path(), &["--uninstall"]).ok(),
        &["hotmap-agent.service needs it"],
    );
    assert!(at("usr/local/bin/hotmap").exists() && !at("etc/systemd/system/hotmap.service").exists());
    install(root.path(), &["--uninstall", "--agent"]).ok();
    assert!(!at("usr/local/bin/hotmap").exists());
    assert!(at("var/lib/hotmap/kept").exists() && at("etc/default/hotmap").exists());
    install(root.path(), &["--uninstall", "--purge"]).ok();
    assert!(
        !at("var/lib/hotmap").exists() && !at("etc/hotmap").exists() && !at("etc/default/hotmap").exists()
    );
}

#[test]
fn a_wrong_call_changes_nothing() {
    let root = temporary();
    for (arguments, sentence) in [
        (&["--purge"][..], "goes with --uninstall only"),
        (&["--colour"], "unknown argument --colour"),
        (&["--binary"], "--binary needs a file"),
        (&["--binary", "/nonexistent"], "/nonexistent is no program"),
        (&["--binary", "/bin/false"], "does not run here"),
    ] {
        has(&install(root.path(), arguments).refused(), &[sentence]);
    }
    assert_eq!(fs::read_dir(root.path()).expect("readable").count(), 0);
    has(
        &install(root.path(), &["--help"]).ok(),
        &["--uninstall", "DESTDIR"],
    );
}

#[test]
fn systemd_understands_the_units() {
    if Command::new("systemd-analyze").arg("--version").output().is_err() {
        skipped("systemd-analyze is not here; scripts/tools installs it");
        return;
    }
    let directory = temporary();
    for unit in ["hotmap.service", "hotmap-agent.service"] {
        let text = fs::read_to_string(deploy().join("systemd").join(unit)).expect("a unit");
        // The program must be there for a unit to be right.
        let text = text.replace("/usr/local/bin/hotmap", env!("CARGO_BIN_EXE_hotmap"));
        fs::write(directory.path().join(unit), text).expect("ours");
    }
    for unit in ["hotmap.service", "hotmap-agent.service"] {
        let mut command = Command::new("systemd-analyze");
        command
            .args(["verify", "--man=no", unit])
            .current_dir(directory.path())
            .env("SYSTEMD_UNIT_PATH", format!("{}:", directory.path().display()));
        let verified = finish(&mut command, None);
        let ours = verified.stderr.lines().filter(|line| line.contains("hotmap"));
        assert_eq!(Vec::from_iter(ours), Vec::<&str>::new(), "{unit}");
        assert_eq!(verified.code, 0, "{unit}: {}", verified.stderr);
    }
}

#[test]
fn a_service_manager_hears_when_it_is_ready_and_when_it_stops() {
    let directory = temporary();
    let socket = directory.path().join("notify");
    let manager = UnixDatagram::bind(&socket).expect("a socket");
    manager.set_read_timeout(Some(PATIENCE)).expect("a time");
    let mut command = hotmap();
    command
        .args(["up", "--no-node", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(directory.path().join("data"))
        .env("NOTIFY_SOCKET", &socket);
    let running = Running::start(&mut command);
    let heard = || {
        let mut message = [0; 256];
        let length = manager.recv(&mut message).expect("a message");
        String::from_utf8_lossy(&message[..length]).into_owned()
    };
    has(&heard(), &["READY=1\n", "STATUS=serves https://127.0.0.1:"]);
    running.terminate();
    assert_eq!(heard(), "STOPPING=1");
    assert_eq!(running.rest().1, 0);
}
