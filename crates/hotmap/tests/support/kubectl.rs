//! kubectl, unmodified, in the releases that people have.

use std::{fs, path::PathBuf, process::Command};

use super::{Finished, Running, Server, ServerOptions, finish, tools};

/// A release of kubectl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Release {
    /// The newest there is.
    Newest,
    /// The oldest whose typed commands send protobuf.
    V1_32,
}

impl Release {
    fn program(self) -> &'static str {
        match self {
            Self::Newest => "kubectl",
            Self::V1_32 => "kubectl-1.32",
        }
    }
}

/// One release of kubectl beside a server of its own.
pub(crate) struct Kubectl {
    /// The server it talks to.
    pub(crate) server: Server,
    program: PathBuf,
}

impl Kubectl {
    /// Starts a server for it. `None`: this release is not here, which was said.
    #[track_caller]
    pub(crate) fn with_server(release: Release) -> Option<Self> {
        let program = tools::find(release.program())?;
        Some(Self {
            server: Server::start(),
            program,
        })
    }

    /// As [`Kubectl::with_server`], with a server started like this.
    #[track_caller]
    pub(crate) fn with_options(release: Release, options: ServerOptions) -> Option<Self> {
        let program = tools::find(release.program())?;
        Some(Self {
            server: Server::start_with(options),
            program,
        })
    }

    /// A call with everything it needs in its environment; no cache is shared with other tests.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        let home = self.server.home();
        command
            .args(arguments)
            .current_dir(home)
            .env("HOME", home)
            .env("KUBECONFIG", self.server.kubeconfig());
        command
    }

    /// Runs a call whose arguments have no spaces in them.
    #[track_caller]
    pub(crate) fn run(&self, arguments: &str) -> Finished {
        self.call(&arguments.split_whitespace().collect::<Vec<_>>())
    }

    /// Runs a call.
    #[track_caller]
    pub(crate) fn call(&self, arguments: &[&str]) -> Finished {
        finish(&mut self.command(arguments), None)
    }

    /// Runs a call that reads `stdin`; give it `-f -`.
    #[track_caller]
    pub(crate) fn feed(&self, arguments: &str, stdin: impl AsRef<[u8]>) -> Finished {
        let arguments: Vec<_> = arguments.split_whitespace().collect();
        let stdin = stdin.as_ref();
        // Older releases take everything that starts with a brace for JSON; a YAML map in one line is none.
        let is_flow = stdin.starts_with(b"{") && !stdin.starts_with(b"{\"");
        let stdin = if is_flow {
            [b"---\n", stdin].concat()
        } else {
            stdin.to_vec()
        };
        finish(&mut self.command(&arguments), Some(&stdin))
    }

    /// Standard output of a call that succeeds.
    #[track_caller]
    pub(crate) fn ok(&self, arguments: &str) -> String {
        self.run(arguments).ok()
    }

    /// Applies a manifest.
    #[track_caller]
    pub(crate) fn apply(&self, manifest: &str) -> String {
        self.feed("apply -f -", manifest).ok()
    }

    /// Starts a call that goes on.
    #[track_caller]
    pub(crate) fn start(&self, arguments: &str) -> Running {
        Running::start(&mut self.command(&arguments.split_whitespace().collect::<Vec<_>>()))
    }

    /// Edits with a shell script for an editor: `$1` is the file.
    #[track_caller]
    pub(crate) fn edit(&self, arguments: &str, script: &str) -> Finished {
        let editor = self.file("editor.sh", script);
        let mut arguments: Vec<_> = arguments.split_whitespace().collect();
        arguments.insert(0, "edit");
        let mut command = self.command(&arguments);
        finish(
            command.env("KUBE_EDITOR", format!("sh {}", editor.display())),
            None,
        )
    }

    /// Writes a file into the server's home, where calls run.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.server.home().join(name);
        fs::write(&path, content).expect("a directory of ours");
        path
    }

    /// One field of an object, by JSONPath without braces.
    #[track_caller]
    pub(crate) fn field(&self, object: &str, path: &str) -> String {
        self.ok(&format!("get {object} -o jsonpath={{{path}}}"))
    }
}
