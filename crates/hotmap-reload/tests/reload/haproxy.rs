//! HAProxy, as examples/reload-haproxy says.

use std::process::Command;

use crate::program::{Program, Volume, example, free_port, get, hotmap_reload, tool, wait_until};

fn configuration(port: u16, revision: u32) -> String {
    let revision = format!("revision {revision}");
    example(
        "reload-haproxy/haproxy.cfg",
        &[("8080", &port.to_string()), ("revision 1", &revision)],
    )
}

#[test]
fn haproxy_follows_its_directory_and_a_file_that_it_cannot_read_is_held_back() {
    let Some(haproxy) = tool("haproxy") else { return };
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    let mut volume = Volume::new(
        directory.path().join("v"),
        &[("haproxy.cfg", &configuration(port, 1))],
    );
    let file = format!("{}/haproxy.cfg", volume.name());
    let pid_file = directory.path().join("haproxy.pid");
    let mut command = Command::new(&haproxy);
    let _running = Program::start(command.args(["-W", "-db", "-f", &file, "-p"]).arg(&pid_file));
    let shows = |revision: u32| {
        wait_until("the revision", || {
            get(port, "/").contains(&format!("Hello from revision {revision}"))
        });
    };
    shows(1);
    let check = format!("{} -c -f {file}", haproxy.display());
    let flags = [
        "reload",
        "--volume-dir",
        volume.name(),
        "--check",
        &check,
        "--signal",
        "USR2",
        "--pid-file",
    ];
    let mut reload = Program::start(hotmap_reload(&flags).arg(&pid_file));
    reload.says(&["content found"]);
    volume.swap(&[("haproxy.cfg", &configuration(port, 2))]);
    reload.says(&["change loaded"]);
    shows(2);
    volume.swap(&[("haproxy.cfg", "frontend web\n  nonsense\n")]);
    reload.says(&["held back", "exit code 1", "nonsense"]);
    shows(2);
    volume.swap(&[("haproxy.cfg", &configuration(port, 3))]);
    reload.says(&["change loaded"]);
    shows(3);
}
