//! The clients in examples/endpoint-clients, run as their README says.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;

use super::served::{PATIENCE, Served, Volume};

/// How a client is started, with its own copy of what a toolchain writes.
struct Client {
    program: &'static str,
    arguments: &'static [&'static str],
    /// Whether it speaks over the Unix socket.
    is_local: bool,
}

const CLIENTS: [Client; 4] = [
    Client {
        program: "python3",
        arguments: &["python/client.py"],
        is_local: true,
    },
    Client {
        program: "node",
        arguments: &["node/client.js"],
        is_local: true,
    },
    Client {
        program: "java",
        arguments: &["java/Client.java"],
        is_local: false,
    },
    Client {
        program: "go",
        arguments: &["run", "go/client.go"],
        is_local: false,
    },
];

#[test]
fn clients_in_four_languages_follow_a_key_and_acknowledge_it() {
    let is_there = |client: &&Client| {
        let version = if client.program == "go" {
            "version"
        } else {
            "--version"
        };
        let found = Command::new(client.program)
            .arg(version)
            .output()
            .is_ok_and(|output| output.status.success());
        if !found {
            eprintln!(
                "not run: the client for {}, which is not installed",
                client.program
            );
            assert!(
                std::env::var_os("HOTMAP_REQUIRE_TOOLS").is_none(),
                "scripts/tools installs it"
            );
        }
        found
    };
    // All at once: most of their time is that of compilers.
    let found: Vec<&Client> = CLIENTS.iter().filter(is_there).collect();
    std::thread::scope(|scope| {
        for client in found {
            scope.spawn(|| follows(client));
        }
    });
}

fn follows(client: &Client) {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let mut volume = Volume::new(directory.path().join("app"), &[("app.yaml", "level: info\n")]);
    let socket = directory.path().join("hotmap.sock");
    let volume_dir = volume.path.to_str().expect("it is UTF-8").to_owned();
    let served = Served::start(
        &socket,
        &["--volume-dir", &volume_dir, "--serve-public", &volume_dir],
    );
    let address = match client.is_local {
        true => format!("unix:{}", socket.display()),
        false => format!("127.0.0.1:{}", served.port),
    };
    let mut running = Running::start(client, &address, directory.path());
    running.prints(&format!("{} level: info", volume.revision()));
    served.wait_for("/v1/config?values=false", &[&acknowledged(&volume)]);
    volume.swap(&[("app.yaml", "level: debug\n")]);
    running.prints(&format!("{} level: debug", volume.revision()));
    served.wait_for(
        "/v1/config?values=false",
        &[&acknowledged(&volume), "\"phase\":\"loaded\""],
    );
}

fn acknowledged(volume: &Volume) -> String {
    format!(
        "\"acknowledged\":{{\"ok\":true,\"revision\":\"{}\"}}",
        volume.revision()
    )
}

struct Running {
    child: Child,
    program: &'static str,
    lines: std::sync::mpsc::Receiver<String>,
}

impl Running {
    fn start(client: &Client, address: &str, home: &Path) -> Self {
        let examples = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../examples/endpoint-clients");
        let mut child = Command::new(client.program)
            .args(client.arguments)
            .args([address, "app.yaml"])
            .current_dir(examples)
            .env("GOCACHE", home.join("go"))
            .env("GO111MODULE", "off")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", client.program));
        let stdout = child.stdout.take().expect("it is piped");
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(stdout)
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| tell.send(line))
        });
        Self {
            child,
            program: client.program,
            lines,
        }
    }

    #[track_caller]
    fn prints(&mut self, expected: &str) {
        let line = self.lines.recv_timeout(PATIENCE);
        assert_eq!(line.as_deref(), Ok(expected), "of {}", self.program);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // `go run` has a child of its own.
        let group = format!("-{}", self.child.id());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        let _ = self.child.wait();
    }
}
