//! nginx, as examples/reload-nginx says.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::program::{Program, Volume, example, free_port, get, hotmap_reload, tool, wait_until};

/// nginx over a volume with its configuration.
struct Nginx {
    directory: tempfile::TempDir,
    volume: Volume,
    port: u16,
    program: String,
    _running: Program,
}

impl Nginx {
    fn start() -> Option<Self> {
        let program = tool("nginx")?.to_str()?.to_owned();
        let directory = tempfile::tempdir().expect("a temporary directory");
        let port = free_port();
        let volume = Volume::new(
            directory.path().join("v"),
            &[("nginx.conf", &configuration(port, 1))],
        );
        let mut command = Command::new(&program);
        command
            .args(arguments(directory.path()))
            .args(["-g", "daemon off;"]);
        let nginx = Self {
            _running: Program::start(&mut command),
            directory,
            volume,
            port,
            program,
        };
        nginx.shows(1);
        Some(nginx)
    }

    fn reload(&self) -> Program {
        let check = format!(
            "{} -t {}",
            self.program,
            arguments(self.directory.path()).join(" ")
        );
        let pid_file = self.directory.path().join("nginx.pid");
        let flags = [
            "reload",
            "--volume-dir",
            self.volume.name(),
            "--check",
            &check,
            "--signal",
            "HUP",
            "--pid-file",
        ];
        let mut reload = Program::start(hotmap_reload(&flags).arg(pid_file));
        reload.says(&["content found"]);
        reload
    }

    fn swap(&mut self, revision: u32) {
        self.volume
            .swap(&[("nginx.conf", &configuration(self.port, revision))]);
    }

    #[track_caller]
    fn shows(&self, revision: u32) {
        let text = format!("Hello from revision {revision}\n");
        wait_until(&text, || get(self.port, "/").ends_with(&text));
    }
}

fn arguments(directory: &Path) -> Vec<String> {
    let directory = directory.display();
    [
        "-p".to_owned(),
        format!("{directory}/"),
        "-c".to_owned(),
        format!("{directory}/v/nginx.conf"),
    ]
    .to_vec()
}

fn configuration(port: u16, revision: u32) -> String {
    example(
        "reload-nginx/nginx.conf",
        &[
            ("8080", &port.to_string()),
            ("revision 1", &format!("revision {revision}")),
        ],
    )
}

#[test]
fn nginx_follows_its_directory_and_a_file_that_it_cannot_read_is_held_back() {
    let Some(mut nginx) = Nginx::start() else { return };
    let mut reload = nginx.reload();
    nginx.swap(2);
    reload.says(&["change loaded"]);
    nginx.shows(2);
    nginx
        .volume
        .swap(&[("nginx.conf", "events {}\nhttp { nonsense; }\n")]);
    reload.says(&["held back", "unknown directive \"nonsense\"", "nginx.conf:2"]);
    // A worker of before may still answer for a moment, so it is waited for.
    nginx.shows(2);
    nginx.swap(3);
    reload.says(&["change loaded"]);
    nginx.shows(3);
}

#[test]
fn nginx_fails_no_request_while_it_is_reloaded() {
    let Some(wrk) = tool("wrk") else { return };
    let Some(mut nginx) = Nginx::start() else { return };
    let reloads: u32 = std::env::var("HOTMAP_TEST_RELOADS").map_or(10, |number| number.parse().unwrap());
    let mut reload = nginx.reload();
    let url = format!("http://127.0.0.1:{}/", nginx.port);
    // A connection for each request: one that is kept open may be closed by a worker that ends in the moment in which
    // the next request is sent on it, with or without hotmap.
    let load = ["-t", "1", "-c", "8", "-d", "600s", "-H", "Connection: close"];
    let load = Program::start(Command::new(wrk).args(load).arg(url));
    for revision in 2..2 + reloads {
        nginx.swap(revision);
        reload.says(&["change loaded"]);
        nginx.shows(revision);
    }
    load.signal("INT");
    let (_, said) = load.ends();
    assert!(said.contains("requests in"), "{said}");
    assert!(
        !said.contains("Socket errors") && !said.contains("Non-2xx"),
        "{said}"
    );
    println!("{reloads} reloads: {said}");
}

#[test]
fn the_master_of_nginx_is_found_among_its_workers() {
    let Some(nginx) = tool("nginx") else { return };
    let directory = tempfile::tempdir().unwrap();
    let port = free_port();
    // A name that no other nginx of this machine has.
    let name = format!("hm-nginx-{port}");
    let copy = directory.path().join(&name);
    fs::copy(nginx, &copy).unwrap();
    let mut volume = Volume::new(
        directory.path().join("v"),
        &[("nginx.conf", &configuration(port, 1))],
    );
    let mut command = Command::new(copy);
    let _running = Program::start(
        command
            .args(arguments(directory.path()))
            .args(["-g", "daemon off;"]),
    );
    wait_until("nginx", || get(port, "/").ends_with("revision 1\n"));
    let flags = [
        "reload",
        "--volume-dir",
        volume.name(),
        "--signal",
        "HUP",
        "--process",
        &name,
    ];
    let mut reload = Program::hotmap_reload(&flags);
    reload.says(&["content found"]);
    volume.swap(&[("nginx.conf", &configuration(port, 2))]);
    reload.says(&["change loaded"]);
    wait_until("the new revision", || get(port, "/").ends_with("revision 2\n"));
}
