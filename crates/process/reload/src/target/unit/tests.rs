//! Units against a bus of our own and somebody on it who answers as systemd does.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use clap::Parser;
use futures_util::StreamExt;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use zbus::message::Type;
use zbus::wire::ObjectPath;
use zbus::{Connection, MessageStream, connection};

use super::*;

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    unit: UnitArgs,
}

fn flags(flags: &[&str]) -> Result<Vec<Unit>, String> {
    let flags = Flags::try_parse_from([&["test"], flags].concat()).map_err(|error| error.to_string())?;
    Ok(flags.unit.targets())
}

#[test]
fn names_of_units_are_completed_and_actions_are_systemctls() {
    for (typed, name) in [
        (&["--unit", "nginx"][..], "reload-or-restart of nginx.service"),
        (
            &["--unit", "a@b.socket", "--unit-action", "restart"],
            "restart of a@b.socket",
        ),
        (
            &["--unit", "app.v2", "--unit-action", "try-reload-or-restart"],
            "try-reload-or-restart of app.v2.service",
        ),
        (
            &["--unit", "x.timer", "--unit-action", "reload", "--unit-user"],
            "reload of x.timer",
        ),
    ] {
        let targets = flags(typed).unwrap();
        assert_eq!(targets[0].name(), name);
        assert_eq!(targets[0].kind(), TargetKind::Unit);
    }
    assert_eq!(flags(&["--unit", "a b", "--unit", "c"]).unwrap().len(), 3);
    assert!(flags(&[]).unwrap().is_empty());
    for bad in [
        &["--unit", "a/b"][..],
        &["--unit", ""],
        &["--unit", "a", "--unit-action", "stop"],
    ] {
        assert!(flags(bad).is_err(), "{bad:?}");
    }
}

/// A bus of our own; it ends with the test.
struct PrivateBus {
    daemon: Child,
    address: String,
    _directory: TempDir,
}

impl PrivateBus {
    /// None where there is no dbus-daemon and nobody insists on it.
    fn start() -> Option<Self> {
        let directory = TempDir::new().unwrap();
        let config = directory.path().join("bus.conf");
        let socket = directory.path().join("bus");
        fs::write(
            &config,
            format!(
                "<busconfig><type>session</type><listen>unix:path={}</listen><auth>EXTERNAL</auth>\
                 <policy context='default'><allow send_destination='*' eavesdrop='true'/>\
                 <allow eavesdrop='true'/><allow own='*'/></policy></busconfig>",
                socket.display()
            ),
        )
        .unwrap();
        let daemon = Command::new("dbus-daemon")
            .arg(format!("--config-file={}", config.display()))
            .args(["--nofork", "--print-address=1"])
            .stdout(Stdio::piped())
            .spawn();
        let mut daemon = match daemon {
            Ok(daemon) => daemon,
            Err(error) => {
                assert!(
                    std::env::var_os("HOTMAP_REQUIRE_TOOLS").is_none(),
                    "dbus-daemon: {error}"
                );
                eprintln!("skipped: there is no dbus-daemon here ({error})");
                return None;
            }
        };
        let mut address = String::new();
        let stdout = daemon.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut address).unwrap();
        Some(Self {
            daemon,
            address: address.trim().to_owned(),
            _directory: directory,
        })
    }

    fn target(&self, action: UnitAction) -> Unit {
        // No test waits for it but the one about it.
        let patience = Duration::from_secs(600);
        Unit::new("app.service", action, Bus::At(self.address.clone()), patience)
    }

    async fn connect(&self) -> Connection {
        connection::Builder::address(self.address.as_str())
            .build()
            .await
            .unwrap()
    }
}

impl Drop for PrivateBus {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
    }
}

/// What somebody who answers as systemd does when a job is asked for.
#[derive(Clone, Copy)]
enum Act {
    /// A job of another unit ends, then this one with this result.
    End(&'static str),
    /// An error of this name and text.
    Refuse(&'static str, &'static str),
    /// It leaves the bus without an answer.
    Leave,
    /// The job is queued, and never ends.
    Hang,
}

/// Answers one job, and says what was asked.
async fn systemd(bus: &PrivateBus, act: Act) -> JoinHandle<String> {
    let connection = bus.connect().await;
    let mut calls = MessageStream::from(&connection);
    connection.request_name("org.freedesktop.systemd1").await.unwrap();
    tokio::spawn(async move {
        while let Some(Ok(call)) = calls.next().await {
            let header = call.header();
            if call.message_type() != Type::MethodCall {
                continue;
            }
            let method = header.member().unwrap().to_string();
            if method == "Subscribe" {
                connection.reply(&header, &()).await.unwrap();
                continue;
            }
            let (unit, mode): (String, String) = call.body().deserialize().unwrap();
            match act {
                Act::Refuse(name, text) => connection.reply_error(&header, name, &text).await.unwrap(),
                Act::Leave => return method,
                Act::Hang => {
                    let path = ObjectPath::try_from("/org/freedesktop/systemd1/job/7").unwrap();
                    connection.reply(&header, &path).await.unwrap();
                    std::future::pending().await
                }
                Act::End(result) => {
                    let path = |id: u32| {
                        ObjectPath::try_from(format!("/org/freedesktop/systemd1/job/{id}")).unwrap()
                    };
                    let job_removed = async |id: u32, unit: &str, result: &str| {
                        let body = (id, path(id), unit, result);
                        let manager = "org.freedesktop.systemd1.Manager";
                        let at = "/org/freedesktop/systemd1";
                        connection
                            .emit_signal(None::<&str>, at, manager, "JobRemoved", &body)
                            .await
                            .unwrap();
                    };
                    job_removed(6, "other.service", "failed").await;
                    connection.reply(&header, &path(7)).await.unwrap();
                    job_removed(7, &unit, result).await;
                }
            }
            return format!("{method} {unit} {mode}");
        }
        String::new()
    })
}

#[tokio::test]
async fn a_unit_has_taken_the_change_when_its_job_is_done() {
    let Some(bus) = PrivateBus::start() else { return };
    for (action, method) in [
        (UnitAction::ReloadOrRestart, "ReloadOrRestartUnit"),
        (UnitAction::TryReloadOrRestart, "ReloadOrTryRestartUnit"),
        (UnitAction::Reload, "ReloadUnit"),
        (UnitAction::Restart, "RestartUnit"),
    ] {
        let systemd = systemd(&bus, Act::End("done")).await;
        assert_eq!(bus.target(action).fire(&[]).await.unwrap(), Fired::Confirmed);
        assert_eq!(systemd.await.unwrap(), format!("{method} app.service replace"));
    }
}

#[tokio::test]
async fn a_job_that_fails_says_how_and_where_to_look() {
    let Some(bus) = PrivateBus::start() else { return };
    for (result, why, is_temporary) in [
        ("failed", "the unit's reload or start failed", true),
        ("timeout", "in the time that the unit allows", true),
        ("canceled", "another job took its place", true),
        ("invalid", "stopped or cannot be reloaded", false),
        ("news", "\"news\"", true),
    ] {
        let systemd = systemd(&bus, Act::End(result)).await;
        let error = bus.target(UnitAction::Reload).fire(&[]).await.unwrap_err();
        assert!(error.message.contains(why), "{error}");
        assert!(error.message.contains("journalctl -u app.service"), "{error}");
        assert_eq!(
            (error.reason, error.is_temporary),
            ("job", is_temporary),
            "{error}"
        );
        systemd.await.unwrap();
    }
    let skipped = systemd(&bus, Act::End("skipped")).await;
    assert_eq!(
        bus.target(UnitAction::Reload).fire(&[]).await.unwrap(),
        Fired::Confirmed
    );
    skipped.await.unwrap();
}

#[tokio::test]
async fn what_systemd_refuses_has_its_sentence() {
    let Some(bus) = PrivateBus::start() else { return };
    for (name, text, why, reason, is_temporary) in [
        (
            "org.freedesktop.systemd1.NoSuchUnit",
            "Unit app.service not found.",
            "no unit",
            "not_found",
            false,
        ),
        (
            "org.freedesktop.DBus.Error.AccessDenied",
            "Permission denied",
            "polkit",
            "permission",
            false,
        ),
        (
            "org.freedesktop.DBus.Error.InteractiveAuthorizationRequired",
            "Interactive authentication required.",
            "polkit",
            "permission",
            false,
        ),
        (
            "org.freedesktop.systemd1.UnitMasked",
            "Unit is masked.",
            "Unit is masked.",
            "refused",
            false,
        ),
        (
            "org.freedesktop.DBus.Error.LimitsExceeded",
            "Too many.",
            "Too many.",
            "refused",
            true,
        ),
    ] {
        let systemd = systemd(&bus, Act::Refuse(name, text)).await;
        let error = bus.target(UnitAction::Reload).fire(&[]).await.unwrap_err();
        assert!(error.message.contains(why), "{error}");
        assert_eq!(
            (error.reason, error.is_temporary),
            (reason, is_temporary),
            "{error}"
        );
        systemd.await.unwrap();
    }
}

#[tokio::test]
async fn a_job_that_does_not_end_is_waited_for_as_long_as_its_own_flag_says() {
    let Some(bus) = PrivateBus::start() else { return };
    let _systemd = systemd(&bus, Act::Hang).await;
    let mut target = bus.target(UnitAction::Restart);
    target.patience = Duration::from_millis(20);
    assert!(target.limits_itself());
    let error = target.fire(&[]).await.unwrap_err();
    assert!(error.message.contains("within 20ms (--unit-timeout)"), "{error}");
    assert_eq!((error.reason, error.is_temporary), ("timeout", true));
    assert_eq!(
        flags(&["--unit", "a"]).unwrap()[0].patience,
        Duration::from_secs(240)
    );
    let flags = flags(&["--unit", "a", "--unit-timeout", "10m"]).unwrap();
    assert_eq!(flags[0].patience, Duration::from_secs(600));
}

#[tokio::test]
async fn without_a_bus_or_systemd_the_error_says_so() {
    let Some(bus) = PrivateBus::start() else { return };
    let error = bus.target(UnitAction::Reload).fire(&[]).await.unwrap_err();
    assert!(error.message.contains("no systemd on the test bus"), "{error}");
    assert_eq!((error.reason, error.is_temporary), ("connect", true));

    let target = bus.target(UnitAction::Reload);
    let leaving = systemd(&bus, Act::Leave).await;
    let error = target.fire(&[]).await.unwrap_err();
    assert!(error.message.contains("went away"), "{error}");
    assert_eq!((error.reason, error.is_temporary), ("broken", true));
    leaving.await.unwrap();

    drop(bus);
    let error = target.fire(&[]).await.unwrap_err();
    assert!(error.message.contains("no way to the test bus"), "{error}");
    assert_eq!((error.reason, error.is_temporary), ("connect", true));
}
