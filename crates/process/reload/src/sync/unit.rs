//! `--print-unit`: a systemd service that runs this very call, with no more rights than it needs.

use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What the service is made from.
#[derive(Debug, Clone)]
pub(crate) struct UnitConfig {
    /// The program and its arguments, as they were given, without `--print-unit`.
    pub(crate) command: Vec<OsString>,
    /// Where relative paths among them start.
    pub(crate) working_directory: PathBuf,
    /// `KUBECONFIG` and flags of the environment that the call has now, as `NAME=VALUE`.
    pub(crate) environment: Vec<String>,
    /// Names of variables that are set, and may hold what should not stand in a unit.
    pub(crate) withheld: Vec<String>,
    /// DIR.
    pub(crate) directory: PathBuf,
    /// Whether Secrets are written.
    pub(crate) has_secrets: bool,
    /// What is written, for people: `configmap/app secret/tls`.
    pub(crate) what: String,
    /// Whether files get another owner than whoever runs it.
    pub(crate) changes_owner: bool,
    /// Whether it starts commands, which then have its limits.
    pub(crate) starts_commands: bool,
}

/// A call that cannot be written into a unit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnitError {
    #[error("{text:?} cannot be written into a unit: it is not UTF-8, or has a control character")]
    Text { text: OsString },
}

impl UnitConfig {
    /// The text of the unit.
    pub(crate) fn print(&self) -> Result<String, UnitError> {
        let words = self
            .command
            .iter()
            .map(|word| {
                word.to_str()
                    .and_then(command_word)
                    .ok_or_else(|| UnitError::Text { text: word.clone() })
            })
            .collect::<Result<Vec<_>, _>>()?;
        let directory = path(&self.directory)?;
        let mut unit = String::new();
        let mut line = |text: &str| writeln!(unit, "{text}").expect("a String takes all that is written");
        line("[Unit]");
        line(&format!(
            "Description=Keeps {} equal to {}",
            escaped(&directory),
            escaped(&self.what)
        ));
        line("Documentation=https://github.com/hotmap/hotmap/blob/main/docs/sync.md");
        line(
            "# Not network-online.target: without a network the last content is there, and it waits for the API itself.",
        );
        line("After=network.target");
        line("");
        line("[Service]");
        line("Type=exec");
        line(&format!(
            "WorkingDirectory={}",
            escaped(&path(&self.working_directory)?)
        ));
        for variable in &self.environment {
            let quoted = quoted(variable).ok_or_else(|| UnitError::Text {
                text: variable.into(),
            })?;
            line(&format!("Environment={quoted}"));
        }
        for name in &self.withheld {
            line(&format!(
                "# {name} is set here and left out: give it with LoadCredential= or EnvironmentFile=."
            ));
        }
        let mode = if self.has_secrets { "0700" } else { "0755" };
        let made = command_word(&directory).unwrap_or_default();
        line(&format!("ExecStartPre=+/usr/bin/mkdir -p -m {mode} {made}"));
        line(&format!("ExecStart={}", words.join(" ")));
        line("Restart=always");
        line("RestartSec=5");
        line("");
        line("# It reads its kubeconfig, talks to the API, and writes here:");
        line(&format!(
            "ReadWritePaths=-{}",
            quoted(&directory).unwrap_or_default()
        ));
        if self.starts_commands {
            line(
                "# Commands of --exec, --check and --verify have the same limits. What they write needs a line of its own:",
            );
            line("#ReadWritePaths=/run/program");
        }
        line("UMask=0077");
        if self.changes_owner {
            line("# For --owner.");
            line("CapabilityBoundingSet=CAP_CHOWN CAP_FOWNER CAP_DAC_OVERRIDE CAP_SETUID CAP_SETGID");
        } else {
            line("# Whoever is told by signal and runs as another user needs CAP_KILL.");
            line("CapabilityBoundingSet=");
        }
        for limit in LIMITS {
            line(limit);
        }
        let is_temporary = ["/tmp", "/var/tmp"]
            .iter()
            .any(|place| self.directory.starts_with(place));
        if !is_temporary {
            line("PrivateTmp=yes");
        }
        if self.changes_owner {
            line("SystemCallFilter=@system-service @setuid");
        } else {
            line("SystemCallFilter=@system-service");
            line("SystemCallFilter=~@privileged");
        }
        line("");
        line("[Install]");
        line("WantedBy=multi-user.target");
        Ok(unit)
    }
}

/// Everything that a program needs which opens connections, reads files and writes one directory. `RestrictSUIDSGID=` is left
/// out, and `DynamicUser=`, which implies it: systemd takes `openat2(2)` away with it, and directories are written through that call.
const LIMITS: [&str; 20] = [
    "AmbientCapabilities=",
    "NoNewPrivileges=yes",
    "ProtectSystem=strict",
    "ProtectHome=read-only",
    "PrivateDevices=yes",
    "DevicePolicy=closed",
    "ProtectClock=yes",
    "ProtectControlGroups=yes",
    "ProtectHostname=yes",
    "ProtectKernelLogs=yes",
    "ProtectKernelModules=yes",
    "ProtectKernelTunables=yes",
    "LockPersonality=yes",
    "MemoryDenyWriteExecute=yes",
    "RemoveIPC=yes",
    "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX",
    "RestrictNamespaces=yes",
    "RestrictRealtime=yes",
    "KeyringMode=private",
    "SystemCallArchitectures=native",
];

fn path(path: &Path) -> Result<String, UnitError> {
    let text = path.to_str().filter(|text| !text.contains(char::is_control));
    text.map(str::to_owned)
        .ok_or_else(|| UnitError::Text { text: path.into() })
}

/// A word of a command line: there variables are expanded as well.
fn command_word(word: &str) -> Option<String> {
    quoted(word).map(|word| word.replace('$', "$$"))
}

/// A value of a list, as systemd reads it back (systemd.syntax(7)): `%` would be expanded, blanks would end it.
fn quoted(word: &str) -> Option<String> {
    if word.contains(char::is_control) {
        return None;
    }
    let is_plain = !word.is_empty()
        && word
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "-_./:=,@+".contains(c));
    if is_plain {
        return Some(word.to_owned());
    }
    let word = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    Some(format!("\"{word}\""))
}

fn escaped(text: &str) -> String {
    text.replace('%', "%%")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(command: &[&str]) -> UnitConfig {
        UnitConfig {
            command: command.iter().map(OsString::from).collect(),
            working_directory: "/root".into(),
            environment: vec!["KUBECONFIG=/root/my config".to_owned()],
            withheld: vec!["HOTMAP_WEBHOOK_HEADER".to_owned()],
            directory: "/etc/nginx/conf.d".into(),
            has_secrets: false,
            what: "configmap/app".to_owned(),
            changes_owner: false,
            starts_commands: true,
        }
    }

    #[test]
    fn words_are_quoted_as_systemd_reads_them() {
        for (word, expected) in [
            ("configmap/app", Some("configmap/app")),
            ("", Some(r#""""#)),
            ("nginx -t", Some(r#""nginx -t""#)),
            (r#"a "b" \c"#, Some(r#""a \"b\" \\c""#)),
            ("$HOME 100%", Some(r#""$$HOME 100%%""#)),
            ("a\nb", None),
        ] {
            assert_eq!(command_word(word).as_deref(), expected, "{word:?}");
        }
    }

    #[test]
    fn a_unit_runs_this_call_and_may_write_its_directory_alone() {
        let text = unit(&[
            "/usr/bin/hotmap",
            "sync",
            "configmap/app",
            "conf.d",
            "--check",
            "nginx -t",
        ])
        .print()
        .expect("a unit");
        for line in [
            "ExecStart=/usr/bin/hotmap sync configmap/app conf.d --check \"nginx -t\"",
            "WorkingDirectory=/root",
            "Environment=\"KUBECONFIG=/root/my config\"",
            "ExecStartPre=+/usr/bin/mkdir -p -m 0755 /etc/nginx/conf.d",
            "ReadWritePaths=-/etc/nginx/conf.d",
            "PrivateTmp=yes",
            "CapabilityBoundingSet=",
            "ProtectSystem=strict",
        ] {
            assert!(
                text.lines().any(|shown| shown == line),
                "{line}\nis not in\n{text}"
            );
        }
        assert!(!text.contains("RestrictSUIDSGID"), "openat2 is needed:\n{text}");
        let error = unit(&["a\nb"]).print().expect_err("no line of its own");
        assert!(error.to_string().contains("control character"), "{error}");
    }
}
