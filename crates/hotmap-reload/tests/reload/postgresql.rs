//! PostgreSQL, as examples/reload-postgresql says.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{Program, Volume, example, tool, wait_until};

/// A user that is there on every Debian; PostgreSQL refuses to be root.
const NOBODY: u32 = 65_534;

struct Postgresql {
    directory: tempfile::TempDir,
    volume: Volume,
    psql: PathBuf,
    _running: Program,
}

impl Postgresql {
    fn start() -> Option<Self> {
        let psql = tool("psql")?;
        // The server's programs are not on the PATH.
        let (initdb, postgres) = (server_program("initdb")?, server_program("postgres")?);
        let directory = tempfile::tempdir().expect("a temporary directory");
        let volume = Volume::new(directory.path().join("v"), &[("app.conf", &configuration("4MB"))]);
        let data = directory.path().join("data");
        fs::create_dir(&data).expect("it is new");
        if is_root() {
            run(Command::new("chmod").arg("755").arg(directory.path()));
            run(Command::new("chown").arg(NOBODY.to_string()).arg(&data));
        }
        run(as_nobody(&mut Command::new(initdb)).arg("-D").arg(&data).args([
            "-U",
            "postgres",
            "-A",
            "trust",
            "--no-sync",
        ]));
        let mut settings = fs::read_to_string(data.join("postgresql.conf")).expect("initdb wrote it");
        settings += &format!("\ninclude_dir = '{}'\n", volume.name());
        fs::write(data.join("postgresql.conf"), settings).expect("it works here");
        let mut command = Command::new(postgres);
        let sockets = format!("unix_socket_directories={}", data.display());
        as_nobody(&mut command).arg("-D").arg(&data).args([
            "-c",
            "listen_addresses=",
            "-c",
            "fsync=off",
            "-c",
            &sockets,
        ]);
        let postgresql = Self {
            directory,
            volume,
            psql,
            _running: Program::start(&mut command),
        };
        postgresql.shows("4MB");
        Some(postgresql)
    }

    fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// A command line that asks the server.
    fn query(&self, query: &str) -> String {
        format!(
            "{} -XAt -v ON_ERROR_STOP=1 -U postgres -h {} -c \"{query}\"",
            self.psql.display(),
            self.data().display()
        )
    }

    fn reload(&self, more: &[&str]) -> Program {
        let mut reload =
            Program::hotmap_reload(&[&["reload", "--volume-dir", self.volume.name()], more].concat());
        reload.says(&["content found"]);
        reload
    }

    #[track_caller]
    fn shows(&self, memory: &str) {
        let query = self.query("show work_mem");
        wait_until(memory, || {
            let output = Command::new("sh")
                .args(["-c", &query])
                .output()
                .expect("it works here");
            String::from_utf8_lossy(&output.stdout).trim() == memory
        });
    }
}

fn configuration(memory: &str) -> String {
    example("reload-postgresql/app.conf", &[("4MB", memory)])
}

fn server_program(name: &str) -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten();
    let mut found = versions
        .map(|version| version.path().join("bin").join(name))
        .filter(|file| file.is_file());
    found.next().or_else(|| tool(name))
}

fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

fn as_nobody(command: &mut Command) -> &mut Command {
    command.current_dir(Path::new("/"));
    if is_root() {
        command.uid(NOBODY).gid(NOBODY)
    } else {
        command
    }
}

fn run(command: &mut Command) {
    let output = command.output().expect("it works here");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn postgresql_is_asked_what_it_thinks_of_its_files_and_told_to_read_them() {
    let Some(mut postgresql) = Postgresql::start() else {
        return;
    };
    let question =
        "select count(*) from pg_file_settings where error is not null and sourcefile like '%app.conf'";
    let asked = postgresql.query(question).replace('"', "\\\"");
    let check = format!("sh -c \"faults=$({asked}) && test $faults -eq 0\"");
    let exec = postgresql.query("select pg_reload_conf()");
    let mut reload = postgresql.reload(&["--check", &check, "--exec", &exec]);
    postgresql.volume.swap(&[("app.conf", &configuration("8MB"))]);
    reload.says(&["change loaded"]);
    postgresql.shows("8MB");
    postgresql.volume.swap(&[("app.conf", &configuration("much"))]);
    reload.says(&["held back", "check sh: it ended with exit code 1"]);
    postgresql.volume.swap(&[("app.conf", &configuration("16MB"))]);
    reload.says(&["change loaded"]);
    postgresql.shows("16MB");
    // The same by a signal to the postmaster, whose id stands in the first line of its pid file.
    let pid_file = postgresql.data().join("postmaster.pid");
    drop(reload);
    let mut reload = postgresql.reload(&["--signal", "HUP", "--pid-file", pid_file.to_str().unwrap()]);
    postgresql.volume.swap(&[("app.conf", &configuration("32MB"))]);
    reload.says(&["change loaded"]);
    postgresql.shows("32MB");
}
