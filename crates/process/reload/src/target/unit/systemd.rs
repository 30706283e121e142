//! What is said to systemd, and what it answers.

use futures_util::StreamExt;
use zbus::message::{Message, Type};
use zbus::wire::OwnedObjectPath;
use zbus::{Connection, DBusError, MatchRule, MessageStream};

const SYSTEMD: &str = "org.freedesktop.systemd1";
const MANAGER: &str = "org.freedesktop.systemd1.Manager";
const MANAGER_PATH: &str = "/org/freedesktop/systemd1";
/// A job takes the place of one that waits for the same unit and contradicts it: systemctl's default.
const MODE: &str = "replace";

/// Which bus systemd is on.
#[derive(Debug, Clone)]
pub(super) enum Bus {
    /// `DBUS_SYSTEM_BUS_ADDRESS`, else the system's.
    System,
    /// `DBUS_SESSION_BUS_ADDRESS`, else the user's.
    User,
    /// That of a test.
    #[cfg(test)]
    At(String),
}

/// How a job of systemd has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JobResult(String);

/// There was no job, or it is not known how it ended.
#[derive(Debug, thiserror::Error)]
pub(super) enum SystemdError {
    #[error("there is no way to the {bus} bus: {why} (is its socket mounted here, and does the bus run?)")]
    NoBus { bus: &'static str, why: String },
    #[error("there is no systemd on the {bus} bus")]
    NoSystemd { bus: &'static str },
    #[error("systemd knows no unit of this name")]
    NoUnit,
    #[error(
        "systemd refuses it: {said} (root may do it; others need a polkit rule for \
         org.freedesktop.systemd1.manage-units)"
    )]
    Denied { said: String },
    #[error("systemd refuses it: {said}")]
    Refused { name: String, said: String },
    #[error("systemd or the bus went away before the job had ended")]
    Gone,
    #[error("the bus cannot be used: {0}")]
    Bus(zbus::Error),
}

impl SystemdError {
    /// The word for metrics.
    pub(super) fn reason(&self) -> &'static str {
        match self {
            Self::NoBus { .. } | Self::NoSystemd { .. } => "connect",
            Self::NoUnit => "not_found",
            Self::Denied { .. } => "permission",
            Self::Refused { .. } => "refused",
            Self::Gone | Self::Bus(_) => "broken",
        }
    }

    /// What systemd refuses by name (a masked unit, one that cannot be reloaded) it refuses until its files change.
    pub(super) fn is_temporary(&self) -> bool {
        match self {
            Self::NoBus { .. } | Self::NoSystemd { .. } | Self::Gone | Self::Bus(_) => true,
            Self::NoUnit | Self::Denied { .. } => false,
            Self::Refused { name, .. } => !name.starts_with("org.freedesktop.systemd1."),
        }
    }
}

impl JobResult {
    /// Why the unit has not loaded its configuration, and whether the same job may succeed later; none if it has.
    pub(super) fn failure(&self) -> Option<(String, bool)> {
        let (why, is_temporary) = match self.0.as_str() {
            // Skipped: there was nothing to do, as for a stopped unit under `try-`.
            "done" | "skipped" => return None,
            "canceled" => ("another job took its place", true),
            "timeout" => ("it did not end in the time that the unit allows", true),
            "failed" => ("the unit's reload or start failed", true),
            "dependency" => ("a unit that it needs failed", true),
            "collected" => ("the unit was unloaded meanwhile", true),
            "once" => ("the unit runs once only and has run", false),
            "invalid" => ("the unit is stopped or cannot be reloaded", false),
            "unsupported" => ("this system does not support units of this type", false),
            "assert" => ("an assertion of the unit does not hold", true),
            other => return Some((format!("its job ended with {other:?}"), true)),
        };
        Some((why.to_owned(), is_temporary))
    }
}

/// Queues a job for a unit and waits until it has ended.
pub(super) async fn run_job(bus: &Bus, method: &str, unit: &str) -> Result<JobResult, SystemdError> {
    let connection = bus.connect().await?;
    // Before the job is queued: it may end before the answer is here.
    let mut removed = MessageStream::for_match_rule(job_removed()?, &connection, None).await?;
    let systemd = Manager {
        connection: &connection,
        bus,
    };
    systemd.call("Subscribe", &()).await?;
    let job: OwnedObjectPath = systemd.call(method, &(unit, MODE)).await?.body().deserialize()?;
    while let Some(message) = removed.next().await {
        let message = message?;
        let body = message.body();
        let (_id, path, _unit, result): (u32, OwnedObjectPath, &str, &str) = body.deserialize()?;
        if path == job {
            return Ok(JobResult(result.to_owned()));
        }
    }
    Err(SystemdError::Gone)
}

impl Bus {
    async fn connect(&self) -> Result<Connection, SystemdError> {
        use zbus::connection::Builder;
        let builder = match self {
            Self::System => Builder::system(),
            Self::User => Builder::session(),
            #[cfg(test)]
            Self::At(address) => Builder::address(address.as_str()),
        };
        builder.build().await.map_err(|error| SystemdError::NoBus {
            bus: self.name(),
            why: error.to_string(),
        })
    }

    fn name(&self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            #[cfg(test)]
            Self::At(_) => "test",
        }
    }
}

fn job_removed() -> Result<MatchRule<'static>, zbus::Error> {
    MatchRule::builder()
        .msg_type(Type::Signal)
        .sender(SYSTEMD)
        .interface(MANAGER)
        .member("JobRemoved")
        .path(MANAGER_PATH)
        .build()
}

struct Manager<'a> {
    connection: &'a Connection,
    bus: &'a Bus,
}

impl Manager<'_> {
    async fn call<B>(&self, method: &str, body: &B) -> Result<Message, SystemdError>
    where
        B: serde::Serialize + zbus::DynamicType,
    {
        let answer = self
            .connection
            .call_method(Some(SYSTEMD), MANAGER_PATH, Some(MANAGER), method, body);
        answer.await.map_err(|error| self.refused(error))
    }

    fn refused(&self, error: zbus::Error) -> SystemdError {
        let (name, said) = match &error {
            zbus::Error::MethodError(name, said, _) => (name.to_string(), said.clone().unwrap_or_default()),
            zbus::Error::FDO(error) => (
                error.name().to_string(),
                error.description().unwrap_or_default().to_owned(),
            ),
            _ => return SystemdError::Bus(error),
        };
        match name.as_str() {
            "org.freedesktop.DBus.Error.ServiceUnknown"
            | "org.freedesktop.DBus.Error.NameHasNoOwner"
            | "org.freedesktop.DBus.Error.Spawn.ServiceNotFound" => {
                SystemdError::NoSystemd { bus: self.bus.name() }
            }
            "org.freedesktop.DBus.Error.NoReply" => SystemdError::Gone,
            "org.freedesktop.systemd1.NoSuchUnit" => SystemdError::NoUnit,
            "org.freedesktop.DBus.Error.AccessDenied"
            | "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired" => SystemdError::Denied { said },
            _ => SystemdError::Refused { name, said },
        }
    }
}

impl From<zbus::Error> for SystemdError {
    fn from(error: zbus::Error) -> Self {
        Self::Bus(error)
    }
}
