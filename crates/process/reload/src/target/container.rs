//! A container of Docker or Podman that is told over the engine's socket: `--container`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use clap::{Args, ValueEnum};
use futures_util::future::BoxFuture;
use hotmap_projection::Change;
use hyper::{Method, Request, StatusCode, Uri};
use serde::Deserialize;

use super::{Fired, Target, TargetError, TargetKind};
use crate::cli::duration::positive;
use crate::http::{Answer, HttpClient, Place, TlsFiles};

/// Where engines listen: Docker, Podman of root. After them Podman of this user.
const SYSTEM_SOCKETS: [&str; 2] = ["/var/run/docker.sock", "/run/podman/podman.sock"];
/// A signal is one system call of the engine.
const SIGNAL_PATIENCE: Duration = Duration::from_secs(10);
/// A restart waits until the container has stopped: 10 s by Docker's default, longer where it was created so.
const RESTART_PATIENCE: &str = "3m";

/// Flags of containers.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Units and containers")]
pub(crate) struct ContainerArgs {
    /// Tell this container of Docker or Podman. Repeatable. Whoever may use the engine's socket is root there.
    #[arg(long, env = "HOTMAP_CONTAINER", value_name = "NAME", value_delimiter = ' ', value_parser = container_name)]
    pub(crate) container: Vec<String>,
    /// What is asked of the engine.
    #[arg(
        long,
        env = "HOTMAP_CONTAINER_ACTION",
        value_name = "ACTION",
        value_enum,
        default_value_t
    )]
    pub(crate) container_action: ContainerAction,
    /// The signal for the container's first process.
    #[arg(
        long,
        env = "HOTMAP_CONTAINER_SIGNAL",
        value_name = "SIGNAL",
        default_value = "HUP",
        value_parser = signal_name
    )]
    pub(crate) container_signal: String,
    /// The engine's socket. By default Docker's, then Podman's, then Podman's of this user, whichever is there.
    #[arg(long, env = "HOTMAP_CONTAINER_SOCKET", value_name = "PATH")]
    pub(crate) container_socket: Option<PathBuf>,
    /// How long the engine may take for a restart: it waits until the container has stopped.
    #[arg(
        long,
        env = "HOTMAP_CONTAINER_TIMEOUT",
        value_name = "DURATION",
        default_value = RESTART_PATIENCE,
        value_parser = positive
    )]
    pub(crate) container_timeout: Duration,
}

/// What is asked of the engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ContainerAction {
    /// Send the signal to the container's first process.
    #[default]
    Signal,
    /// Restart the container.
    Restart,
}

impl Default for ContainerArgs {
    /// As without any flag.
    fn default() -> Self {
        Self {
            container: Vec::new(),
            container_action: ContainerAction::default(),
            container_signal: "HUP".to_owned(),
            container_socket: None,
            container_timeout: positive(RESTART_PATIENCE).expect("it is a duration"),
        }
    }
}

impl ContainerArgs {
    /// The targets, in the order of their names.
    pub(crate) fn targets(&self) -> Vec<Container> {
        self.container.iter().map(|name| self.target(name)).collect()
    }

    fn target(&self, container: &str) -> Container {
        let (name, path, patience) = match self.container_action {
            ContainerAction::Signal => {
                let signal = &self.container_signal;
                // A plus in a query is a space.
                let escaped = signal.replace('+', "%2B");
                let path = format!("/containers/{container}/kill?signal=SIG{escaped}");
                (
                    format!("signal {signal} to container {container}"),
                    path,
                    SIGNAL_PATIENCE,
                )
            }
            ContainerAction::Restart => {
                let path = format!("/containers/{container}/restart");
                (
                    format!("restart of container {container}"),
                    path,
                    self.container_timeout,
                )
            }
        };
        Container {
            name,
            container: container.to_owned(),
            action: self.container_action,
            path: path
                .parse()
                .expect("a checked name and a checked signal make a path"),
            patience,
            socket: self.container_socket.clone(),
        }
    }
}

/// The characters of names and ids are Docker's (`RestrictedNameChars`), so that a name is one segment of a path.
fn container_name(text: &str) -> Result<String, String> {
    let is_first_valid = text.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
    if is_first_valid
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c))
    {
        return Ok(text.to_owned());
    }
    Err("not the name or id of a container".to_owned())
}

/// `HUP`, `SIGHUP` or `hup`; engines know more names than we, real-time signals and numbers included.
fn signal_name(text: &str) -> Result<String, String> {
    let upper = text.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let is_valid = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "+-".contains(c));
    if is_valid {
        Ok(name.to_owned())
    } else {
        Err("not the name of a signal such as HUP".to_owned())
    }
}

/// One container.
#[derive(Debug)]
pub(crate) struct Container {
    name: String,
    container: String,
    action: ContainerAction,
    path: Uri,
    patience: Duration,
    /// The first of the known ones that is there, if none is named.
    socket: Option<PathBuf>,
}

impl Target for Container {
    fn kind(&self) -> TargetKind {
        TargetKind::Container
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn limits_itself(&self) -> bool {
        true
    }

    fn fire<'a>(&'a self, _changes: &'a [Change]) -> BoxFuture<'a, Result<Fired, TargetError>> {
        Box::pin(async move {
            let socket = self.socket.clone().unwrap_or_else(find_socket);
            let engine = HttpClient::new(Place::Unix(socket), TlsFiles::system("container"), self.patience);
            let mut request = Request::new(Bytes::new());
            *request.method_mut() = Method::POST;
            *request.uri_mut() = self.path.clone();
            let answer = engine.send(request).await.map_err(|error| TargetError {
                message: format!("{} failed: {error}", self.name),
                reason: error.reason(),
                is_temporary: error.is_temporary(),
            })?;
            if answer.status.is_success() {
                return Ok(self.fired());
            }
            Err(self.refused(&answer))
        })
    }
}

impl Container {
    fn fired(&self) -> Fired {
        match self.action {
            ContainerAction::Signal => Fired::Told,
            ContainerAction::Restart => Fired::Confirmed,
        }
    }

    fn refused(&self, answer: &Answer) -> TargetError {
        let container = &self.container;
        let (why, reason, is_temporary) = match answer.status {
            StatusCode::NOT_FOUND => (
                format!(
                    "there is no container {container} (`docker ps -a` or `podman ps -a` lists those there are)"
                ),
                "not_found",
                true,
            ),
            // A container that starts later reads its files then; until then it has not loaded them.
            StatusCode::CONFLICT => (format!("container {container} does not run"), "not_running", true),
            status => (said(answer), "status", status.is_server_error()),
        };
        TargetError {
            message: format!("{} failed: {why}", self.name),
            reason,
            is_temporary,
        }
    }
}

/// What the engine writes for people, in the form of both engines: `{"message": "…"}`.
fn said(answer: &Answer) -> String {
    #[derive(Deserialize)]
    struct Refusal {
        message: String,
    }
    let status = answer.status;
    match serde_json::from_slice::<Refusal>(&answer.body) {
        Ok(Refusal { message }) => format!("the engine answers {status}: {}", message.trim()),
        Err(_) => format!("the engine answers {status}"),
    }
}

/// It is looked for at each change: an engine may be installed or started later. If there is none, Docker's place is the one
/// that the error names.
fn find_socket() -> PathBuf {
    let uid = rustix::process::geteuid().as_raw();
    let of_user = PathBuf::from(format!("/run/user/{uid}/podman/podman.sock"));
    let known = SYSTEM_SOCKETS.map(PathBuf::from).into_iter().chain([of_user]);
    let found = known.into_iter().find(|path| path.exists());
    found.unwrap_or_else(|| Path::new(SYSTEM_SOCKETS[0]).to_owned())
}

#[cfg(test)]
mod tests;
