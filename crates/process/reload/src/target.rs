//! Who is told of a change, and what can go wrong.

pub(crate) mod container;
pub(crate) mod exec;
pub(crate) mod signal;
pub(crate) mod unit;
pub(crate) mod webhook;

use std::fmt;

use futures_util::future::BoxFuture;
use hotmap_projection::Change;

/// Somebody who loads configuration when told to.
pub trait Target: Send + Sync {
    /// What it is, for metrics.
    fn kind(&self) -> TargetKind;

    /// How a person recognises it: `signal HUP to nginx`, `POST http://127.0.0.1:9090/-/reload`. Without credentials.
    fn name(&self) -> &str;

    /// Tells it, once, and waits until it has taken the change. Whoever calls holds the time limit and repeats; a
    /// dropped future ends what it has begun (a command is killed, a request is given up).
    ///
    /// # Errors
    /// [`TargetError`]: it has not taken the change.
    fn fire<'a>(&'a self, changes: &'a [Change]) -> BoxFuture<'a, Result<Fired, TargetError>>;

    /// Whether [`Target::fire`] ends in time by itself, and says more of what was not done than a caller could.
    fn limits_itself(&self) -> bool {
        false
    }

    /// The status of the last HTTP answer, if there was one. For metrics.
    fn last_status(&self) -> Option<u16> {
        None
    }
}

/// A target has taken a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fired {
    /// It says so: a webhook's status, a job's result, an exit code of 0.
    Confirmed,
    /// It was told; whether it has loaded is not known: a signal.
    Told,
}

/// What a target is. The label `target` of metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TargetKind {
    /// A signal to a process.
    Signal,
    /// An HTTP request.
    Webhook,
    /// A command.
    Exec,
    /// A systemd unit.
    Unit,
    /// A container of Docker or Podman.
    Container,
    /// A file made from a template.
    Render,
    /// The child of `hotmap run`.
    Child,
}

impl TargetKind {
    /// The word in metrics and messages.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Signal => "signal",
            Self::Webhook => "webhook",
            Self::Exec => "exec",
            Self::Unit => "unit",
            Self::Container => "container",
            Self::Render => "render",
            Self::Child => "child",
        }
    }
}

impl fmt::Display for TargetKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A target has not taken a change. The message says what failed and what to do about it; it holds no value of the
/// configuration and no credentials.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct TargetError {
    /// For a person.
    pub message: String,
    /// The label `reason` of metrics: a word of a short, fixed list, such as `no_process`, `permission`, `status`.
    pub reason: &'static str,
    /// Whether the same call may succeed later without anybody changing flags or files.
    pub is_temporary: bool,
}
