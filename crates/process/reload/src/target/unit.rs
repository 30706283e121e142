//! A systemd unit that is told to load its configuration again: `--unit`.
//!
//! ```text
//!   we                          org.freedesktop.systemd1
//!    │── Subscribe, AddMatch ──────▶│
//!    │── ReloadOrRestartUnit ──────▶│  queues a job
//!    │◀───────── its object path ───│
//!    │◀── JobRemoved(path, "done") ─│  the unit has reloaded, or says why it has not
//! ```
//!
//! What systemd says is in `org.freedesktop.systemd1(5)`. A connection to the bus lives as long as one call, like that of
//! a webhook.

mod systemd;

use std::time::Duration;

use clap::{Args, ValueEnum};
use futures_util::future::BoxFuture;
use hotmap_projection::Change;

use super::{Fired, Target, TargetError, TargetKind};
use crate::cli::duration::positive;
use systemd::{Bus, JobResult, SystemdError};

/// Endings of units' names. A name without one is that of a service, as for systemctl.
const UNIT_TYPES: [&str; 11] = [
    "service",
    "socket",
    "target",
    "device",
    "mount",
    "automount",
    "swap",
    "path",
    "timer",
    "slice",
    "scope",
];

/// A job that hangs is ended by systemd itself, by default after 90 s of stopping and 90 s of starting
/// (`DefaultTimeoutStopSec`, `DefaultTimeoutStartSec`), and then says what was wrong: that is waited for, and some time more.
const JOB_PATIENCE: &str = "4m";

/// Flags of units.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Units and containers")]
pub(crate) struct UnitArgs {
    /// Reload this systemd unit over D-Bus, and wait until it has. Repeatable.
    #[arg(long, env = "HOTMAP_UNIT", value_name = "NAME", value_delimiter = ' ', value_parser = unit_name)]
    pub(crate) unit: Vec<String>,
    /// What is asked of systemd.
    #[arg(
        long,
        env = "HOTMAP_UNIT_ACTION",
        value_name = "ACTION",
        value_enum,
        default_value_t
    )]
    pub(crate) unit_action: UnitAction,
    /// The units are those of the user's own systemd, not of the system's.
    #[arg(long, env = "HOTMAP_UNIT_USER")]
    pub(crate) unit_user: bool,
    /// How long systemd's job may take. A reload or start that hangs is ended by systemd itself before that, by default after
    /// 90 s of stopping and 90 s of starting.
    #[arg(
        long,
        env = "HOTMAP_UNIT_TIMEOUT",
        value_name = "DURATION",
        default_value = JOB_PATIENCE,
        value_parser = positive
    )]
    pub(crate) unit_timeout: Duration,
}

impl Default for UnitArgs {
    /// As without any flag.
    fn default() -> Self {
        Self {
            unit: Vec::new(),
            unit_action: UnitAction::default(),
            unit_user: false,
            unit_timeout: positive(JOB_PATIENCE).expect("it is a duration"),
        }
    }
}

/// What is asked of systemd: systemctl's words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum UnitAction {
    /// Reload it, or restart it if it cannot be reloaded; start it if it is stopped.
    #[default]
    ReloadOrRestart,
    /// The same, but what is stopped stays stopped.
    TryReloadOrRestart,
    /// Reload it; fails if it cannot be reloaded or is stopped.
    Reload,
    /// Restart it; start it if it is stopped.
    Restart,
}

impl UnitAction {
    fn method(self) -> &'static str {
        match self {
            Self::ReloadOrRestart => "ReloadOrRestartUnit",
            Self::TryReloadOrRestart => "ReloadOrTryRestartUnit",
            Self::Reload => "ReloadUnit",
            Self::Restart => "RestartUnit",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::ReloadOrRestart => "reload-or-restart",
            Self::TryReloadOrRestart => "try-reload-or-restart",
            Self::Reload => "reload",
            Self::Restart => "restart",
        }
    }
}

impl UnitArgs {
    /// The targets, in the order of their names.
    pub(crate) fn targets(&self) -> Vec<Unit> {
        let bus = if self.unit_user { Bus::User } else { Bus::System };
        let targets = self
            .unit
            .iter()
            .map(|unit| Unit::new(unit, self.unit_action, bus.clone(), self.unit_timeout));
        targets.collect()
    }
}

/// The full name of a unit. The characters are those of `unit_name_is_valid` in systemd 252.
fn unit_name(text: &str) -> Result<String, String> {
    let is_valid = !text.is_empty()
        && text.len() < 256
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c));
    if !is_valid {
        return Err("not the name of a unit, such as nginx or nginx.service".to_owned());
    }
    let has_type = text
        .rsplit_once('.')
        .is_some_and(|(_, kind)| UNIT_TYPES.contains(&kind));
    Ok(if has_type {
        text.to_owned()
    } else {
        format!("{text}.service")
    })
}

/// One unit.
#[derive(Debug)]
pub(crate) struct Unit {
    name: String,
    unit: String,
    action: UnitAction,
    bus: Bus,
    patience: Duration,
}

impl Unit {
    fn new(unit: &str, action: UnitAction, bus: Bus, patience: Duration) -> Self {
        Self {
            name: format!("{} of {unit}", action.word()),
            unit: unit.to_owned(),
            action,
            bus,
            patience,
        }
    }

    fn timed_out(&self) -> TargetError {
        let (unit, patience) = (&self.unit, self.patience);
        TargetError {
            message: format!(
                "{} failed: its job has not ended within {patience:?} (--unit-timeout) and still runs; \
                 `systemctl list-jobs` and `journalctl -u {unit}` say more",
                self.name
            ),
            reason: "timeout",
            is_temporary: true,
        }
    }

    fn failed(&self, error: &SystemdError) -> TargetError {
        TargetError {
            message: format!("{} failed: {error}", self.name),
            reason: error.reason(),
            is_temporary: error.is_temporary(),
        }
    }

    fn ended(&self, result: &JobResult) -> Result<Fired, TargetError> {
        let Some((why, is_temporary)) = result.failure() else {
            return Ok(Fired::Confirmed);
        };
        let unit = &self.unit;
        Err(TargetError {
            message: format!(
                "{} failed: {why}; `systemctl status {unit}` and `journalctl -u {unit}` say more",
                self.name
            ),
            reason: "job",
            is_temporary,
        })
    }
}

impl Target for Unit {
    fn kind(&self) -> TargetKind {
        TargetKind::Unit
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn limits_itself(&self) -> bool {
        true
    }

    fn fire<'a>(&'a self, _changes: &'a [Change]) -> BoxFuture<'a, Result<Fired, TargetError>> {
        Box::pin(async move {
            let job = systemd::run_job(&self.bus, self.action.method(), &self.unit);
            let Ok(job) = tokio::time::timeout(self.patience, job).await else {
                return Err(self.timed_out());
            };
            let result = job.map_err(|error| self.failed(&error))?;
            self.ended(&result)
        })
    }
}

#[cfg(test)]
mod tests;
