//! `hotmap up` as a child process.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use super::Running;

/// The binary under test, with nothing of the caller's environment that it would read.
pub(crate) fn hotmap() -> Command {
    hotmap_at(Path::new(env!("CARGO_BIN_EXE_hotmap")))
}

fn hotmap_at(program: &Path) -> Command {
    let mut command = Command::new(program);
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("HOTMAP_")) {
            command.env_remove(name);
        }
    }
    command.env_remove("KUBECONFIG");
    command
}

/// A running server, without a node unless asked for; killed and removed when dropped.
pub(crate) struct Server {
    running: Option<Running>,
    url: String,
    home: tempfile::TempDir,
    // Goes after what is on it.
    _disk: Option<Disk>,
    options: ServerOptions,
}

/// How a server is started.
#[derive(Clone, Default)]
pub(crate) struct ServerOptions {
    /// More flags of `up`. With `--node-name` it runs pods too, and who asks for that ends them.
    pub(crate) flags: Vec<String>,
    /// Where it listens; loopback and a free port unless said.
    pub(crate) listen: Option<String>,
    /// Another file than the one that was built.
    pub(crate) program: Option<PathBuf>,
    /// Its home is a file system of its own with so many MiB; needs root.
    pub(crate) disk_mib: Option<u32>,
}

/// A small file system, unmounted and removed when dropped.
struct Disk(PathBuf);

impl Disk {
    fn mount(path: &Path, mib: u32) -> Self {
        use rustix::mount::{MountFlags, mount};
        let size = std::ffi::CString::new(format!("size={mib}m")).expect("no zero byte");
        mount("tmpfs", path, "tmpfs", MountFlags::empty(), Some(size.as_c_str())).expect("root may mount");
        Self(path.to_owned())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, rustix::mount::UnmountFlags::DETACH);
        drop(fs::remove_dir(&self.0));
    }
}

impl Server {
    /// Starts one on a free port; returns when it is ready.
    #[track_caller]
    pub(crate) fn start() -> Self {
        Self::start_with(ServerOptions::default())
    }

    /// As [`Server::start`], with flags.
    #[track_caller]
    pub(crate) fn start_with(options: ServerOptions) -> Self {
        let home = tempfile::Builder::new()
            .prefix("hotmap-e2e-")
            .tempdir()
            .expect("a temporary directory");
        let disk = options.disk_mib.map(|mib| Disk::mount(home.path(), mib));
        let mut server = Self {
            running: None,
            url: String::new(),
            home,
            _disk: disk,
            options,
        };
        let listen = server.options.listen.clone();
        server.launch(listen.as_deref().unwrap_or("127.0.0.1:0"));
        server
    }

    /// Flags for the next start.
    pub(crate) fn set_flags(&mut self, flags: &[&str]) {
        self.options.flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
    }

    /// The file that the next start executes; `None` for the one that was built.
    pub(crate) fn set_program(&mut self, program: Option<&Path>) {
        self.options.program = program.map(Path::to_owned);
    }

    /// Ends the process as a crash would and starts another on the same directory and port.
    #[track_caller]
    pub(crate) fn crash_and_restart(&mut self) {
        self.crash();
        self.restart();
    }

    /// Ends the process as a crash would.
    pub(crate) fn crash(&mut self) {
        drop(self.running.take());
    }

    /// Starts again on the same directory and port, after [`Server::crash`] or [`Server::stop`].
    #[track_caller]
    pub(crate) fn restart(&mut self) {
        let address = self.address().to_owned();
        self.launch(&address);
    }

    /// Asks it to stop; returns what it printed at its end.
    #[track_caller]
    pub(crate) fn stop(&mut self) -> Vec<String> {
        let running = self.running.take().expect("it runs");
        running.terminate();
        let (lines, code) = running.rest();
        assert_eq!(code, 0, "{lines:#?}\n{}", self.log());
        lines
    }

    /// The next line of its standard output that contains `text`.
    #[track_caller]
    pub(crate) fn line_with(&mut self, text: &str) -> String {
        self.running.as_mut().expect("it runs").line_with(text)
    }

    /// `https://host:port`.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// `host:port`.
    pub(crate) fn address(&self) -> &str {
        self.url.strip_prefix("https://").expect("TLS always")
    }

    /// A directory of this server's test, gone with it.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// Where the store is.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.home().join("data")
    }

    /// The administrator's kubeconfig.
    pub(crate) fn kubeconfig(&self) -> PathBuf {
        self.home().join("kubeconfig")
    }

    /// What it wrote to standard error.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.home().join("log")).unwrap_or_default()
    }

    /// The process id.
    pub(crate) fn pid(&self) -> u32 {
        self.running.as_ref().expect("it runs").pid()
    }

    #[track_caller]
    fn launch(&mut self, listen: &str) {
        let mut log = fs::OpenOptions::new();
        let log = log
            .create(true)
            .append(true)
            .open(self.home().join("log"))
            .expect("a file of ours");
        let mut command = match &self.options.program {
            Some(program) => hotmap_at(program),
            None => hotmap(),
        };
        command.args(["up", "--listen", listen]);
        if !self.options.flags.iter().any(|flag| flag == "--node-name") {
            command.arg("--no-node");
        }
        command
            .arg("--data-dir")
            .arg(self.data_dir())
            .arg("--kubeconfig")
            .arg(self.kubeconfig());
        command.args(&self.options.flags).stderr(log);
        let mut running = Running::start(&mut command);
        if running.try_line_with("is ready").is_none() {
            panic!("it did not get ready, code {}: {}", running.wait(), self.log());
        }
        let line = running.line_with("https://");
        self.url = line
            .split_whitespace()
            .last()
            .expect("the line names the URL")
            .to_owned();
        self.running = Some(running);
    }
}
