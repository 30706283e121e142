//! The Kubernetes Python client, unmodified.

use std::{path::PathBuf, process::Command};

use super::{Finished, Server, finish, tools};

/// A Python with the `kubernetes` package.
pub(crate) struct Python {
    program: PathBuf,
}

impl Python {
    /// `None`: it is not here, which was said.
    #[track_caller]
    pub(crate) fn find() -> Option<Self> {
        let program = tools::find("python")?;
        let has_client = Command::new(&program).args(["-c", "import kubernetes"]).output();
        if has_client.is_ok_and(|output| output.status.success()) {
            return Some(Self { program });
        }
        tools::skipped("python has no package kubernetes; scripts/tools installs it");
        None
    }

    /// Its program, and the directories that it and its packages are in: a pod that mounts them there has all of it.
    #[track_caller]
    pub(crate) fn installed(&self) -> (String, Vec<String>) {
        let script = "import sys; print(sys.executable, sys.base_prefix, sys.prefix, sep='\\n')";
        let said = finish(Command::new(&self.program).args(["-c", script]), None).ok();
        let mut lines = said.lines().map(str::to_owned);
        let program = lines.next().expect("a line of its own");
        let mut directories = Vec::from_iter(lines);
        directories.dedup();
        (program, directories)
    }

    /// Runs a script against a server.
    #[track_caller]
    pub(crate) fn run(&self, script: &str, server: &Server) -> Finished {
        // From a file: its lines have numbers in a traceback.
        let file = server.home().join("script.py");
        std::fs::write(&file, script).expect("a directory of ours");
        let mut command = Command::new(&self.program);
        command
            .arg(file)
            .env("KUBECONFIG", server.kubeconfig())
            .env("HOME", server.home());
        command
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .current_dir(server.home());
        finish(&mut command, None)
    }
}
