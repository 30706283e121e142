//! The start of a container, from the request to its place on record.

use std::os::fd::OwnedFd;
use std::time::SystemTime;

use super::{CONTAINERS_MAX, Pod};
use crate::protocol::Refusal;
use crate::shim::container::{Container, Input, Output, Running};
use crate::shim::cri_log::{LogFile, Stream};
use crate::shim::identity::Identity;
use crate::shim::launch::{self, Outputs};
use crate::shim::rootfs::what;
use crate::shim::shared_pids::MountNamespace;
use crate::spec::{ContainerConfig, Stdin};
use crate::status::{ContainerState, ContainerStatus, ContainerUser};

impl Pod {
    pub(super) fn start(&mut self, config: ContainerConfig) -> Result<ContainerStatus, Refusal> {
        if self.stopped {
            return Err(Refusal::Stopped);
        }
        if config.privileged && !self.record.allow_privileged {
            return Err(Refusal::Privileged);
        }
        let taken = |container: &Container| {
            container.status.name == config.name
                && (container.running.is_some() || container.status.attempt == config.attempt)
        };
        if self.containers.iter().any(taken) {
            return Err(Refusal::Exists);
        }
        if self.containers.len() >= CONTAINERS_MAX {
            return Err(Refusal::TooMany);
        }
        let log = what(LogFile::open(&config.log_path, config.log_limits), || {
            format!("cannot open the log file {}", config.log_path.display())
        });
        let log = log.map_err(|message| Refusal::Setup { message })?;
        let identity = Identity::of(&config, &self.record.config.hostname);
        let group = self.group.container(&config.name);
        let setup = |message| Refusal::Setup { message };
        group.make_container(&config.resources).map_err(setup)?;
        // An earlier attempt may have left its cgroup, and with it its count.
        let oom_kills_before = group.oom_kills();
        let target = match &config.target {
            // All of the pod's containers share theirs already.
            Some(name) if self.namespaces.pause.is_none() => Some(self.process_of(name)?),
            _ => None,
        };
        let launched = launch::container(&self.place(&group), &config, &identity, target)?;
        let shares_pids = target.is_some() || self.namespaces.pause.is_some();
        let (input, outputs) = streams_of(launched.outputs, config.stdin);
        let started_at = SystemTime::now();
        let state = ContainerState::Running {
            pid: launched.pid,
            started_at,
        };
        let status = ContainerStatus {
            name: config.name,
            attempt: config.attempt,
            user: Some(ContainerUser {
                uid: identity.user.uid,
                gid: identity.user.gid,
                groups: launched.groups,
            }),
            state,
        };
        let running = Running {
            pid: launched.pid,
            pidfd: launched.pidfd,
            started_at,
            identity,
            outputs,
            input,
            attached: Vec::new(),
            log,
            log_broken: false,
            kill_at: None,
            group,
            oom_kills_before,
            mounts: launched.mounts,
            // Needed where the end of a container is not that of a pid namespace.
            mount_namespace: shares_pids
                .then(|| MountNamespace::of(launched.pid).ok())
                .flatten(),
        };
        self.containers.push(Container {
            status: status.clone(),
            running: Some(running),
        });
        self.changed();
        Ok(status)
    }

    /// The first process of a container that runs.
    fn process_of(&self, name: &str) -> Result<&OwnedFd, Refusal> {
        let mut named = self
            .containers
            .iter()
            .filter(|container| container.status.name == name);
        let running = named.find_map(|container| container.running.as_ref());
        running.map(|running| &running.pidfd).ok_or(Refusal::NotRunning)
    }
}

/// The ends of a process's streams that stay here.
fn streams_of(outputs: Outputs, stdin: Stdin) -> (Input, Vec<Output>) {
    match outputs {
        Outputs::Pipes {
            stdin: writer,
            stdout,
            stderr,
        } => {
            let is_once = stdin == Stdin::Once;
            let input = writer.map_or(Input::None, |writer| Input::Pipe { writer, is_once });
            let outputs = vec![
                Output::new(stdout, Stream::Stdout),
                Output::new(stderr, Stream::Stderr),
            ];
            (input, outputs)
        }
        Outputs::Terminal(master) => {
            let _ = rustix::io::ioctl_fionbio(&master, true);
            let accepts = stdin != Stdin::Empty;
            (
                Input::Terminal { accepts },
                vec![Output::new(master, Stream::Stdout)],
            )
        }
        Outputs::Elsewhere => (Input::None, Vec::new()),
    }
}
