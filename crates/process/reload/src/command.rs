//! A command that is run for a change: within a time limit, in a process group of its own, its last words kept.

mod words;

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fmt;
use std::io;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use hotmap_projection::Change;
use parking_lot::Mutex;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tracing::info;

pub use words::WordsError;

/// How much of what a command says is kept, of its end: what a person reads of one run.
const SAID_BYTES_MAX: usize = 8_192;
/// How many lines of it go to the log when it has done well.
const SAID_LINES_MAX: usize = 20;
/// How much of it, and how many lines, are part of an error: enough for what `nginx -t` or `promtool` say of one fault.
const ERROR_BYTES_MAX: usize = 2_048;
const ERROR_LINES_MAX: usize = 5;
/// How much of the names of changed keys goes into the environment: the kernel takes 128 KiB in one variable.
const KEYS_BYTES_MAX: usize = 64 * 1_024;
/// A value of the environment that is at least this long is not shown when a command says it.
const HIDDEN_VALUE_BYTES_MIN: usize = 8;
/// How long a command that has ended may keep what it has said from being read, through a child that holds its pipe.
const DRAIN: Duration = Duration::from_millis(50);

/// A program and its arguments, started directly and not by a shell: `sh -c '…'` is there for who wants one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLine {
    words: Vec<String>,
}

impl CommandLine {
    /// Splits a line into words as a shell does: blanks separate; '…' keeps everything, "…" everything but `\"` and
    /// `\\`; `\` keeps the next character. Nothing is expanded: no variables, no globs, no pipes.
    ///
    /// # Errors
    /// [`WordsError`]: no word at all, or a quote that does not end.
    pub fn parse(line: &str) -> Result<Self, WordsError> {
        words::split(line).map(|words| Self { words })
    }

    /// The program, as it was named.
    pub(crate) fn program(&self) -> &str {
        &self.words[0]
    }

    /// Runs it for these changes until it ends or the time is over; then its process group is killed. A dropped future
    /// kills it as well.
    pub(crate) async fn run(&self, changes: &[Change], timeout: Duration) -> Result<Words, CommandError> {
        let mut command = Command::new(self.program());
        command
            .args(&self.words[1..])
            .envs(environment(changes))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        let mut child = command.spawn().map_err(|source| CommandError::Start {
            program: self.program().to_owned(),
            source,
        })?;
        let mut group = Group::of(&child);
        let said = Said::default();
        let ended = tokio::time::timeout(timeout, listen(&mut child, &said)).await;
        let values = hidden_values(std::env::vars_os());
        match ended {
            Ok(status) => {
                // What it has left running in the background is meant to go on.
                group.0 = None;
                match status {
                    Ok(status) if status.success() => Ok(said.words(&values)),
                    Ok(status) => Err(CommandError::Failed {
                        status,
                        said: said.for_an_error(&values),
                    }),
                    Err(source) => Err(CommandError::Wait { source }),
                }
            }
            Err(_) => {
                drop(group);
                // It is killed. Who does not wait for it leaves it to a SIGCHLD, which `run` keeps from tokio.
                let _ = child.wait().await;
                Err(CommandError::TimedOut {
                    timeout,
                    said: said.for_an_error(&values),
                })
            }
        }
    }
}

impl fmt::Display for CommandLine {
    /// The program alone: arguments may hold what nobody should read.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program())
    }
}

/// Why a command did not do what it should. What it said is part of the message.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CommandError {
    #[error("cannot start {program}: {}", start_hint(.source))]
    Start { program: String, source: io::Error },
    #[error("{}{said}", ended(*.status))]
    Failed { status: ExitStatus, said: String },
    #[error("it did not end within {timeout:?} and was killed with its process group{said}")]
    TimedOut { timeout: Duration, said: String },
    #[error("cannot wait for it: {source}")]
    Wait { source: io::Error },
}

impl CommandError {
    /// The label `reason` of metrics.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Start { .. } => "start",
            Self::Failed { status, .. } if status.code().is_none() => "killed",
            Self::Failed { .. } => "exit",
            Self::TimedOut { .. } => "timeout",
            Self::Wait { .. } => "wait",
        }
    }

    /// Whether the same call may succeed later with the same files and flags.
    pub(crate) fn is_temporary(&self) -> bool {
        match self {
            Self::Start { source, .. } => !matches!(
                source.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
            ),
            Self::Failed { .. } | Self::TimedOut { .. } | Self::Wait { .. } => true,
        }
    }
}

fn start_hint(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "no such program here; in a pod it has to be in the image of this container".to_owned()
        }
        io::ErrorKind::PermissionDenied => "it is not executable for this user".to_owned(),
        _ => error.to_string(),
    }
}

fn ended(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt;
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("it ended with exit code {code}"),
        (None, Some(signal)) => format!("it was killed by signal {signal}"),
        (None, None) => "it ended for an unknown reason".to_owned(),
    }
}

/// Waits for the end and keeps what is said meanwhile.
async fn listen(child: &mut Child, said: &Said) -> io::Result<ExitStatus> {
    let mut stdout = child.stdout.take();
    let mut stderr = child.stderr.take();
    let status = loop {
        tokio::select! {
            status = child.wait() => break status?,
            () = said.hear(&mut stdout), if stdout.is_some() => {}
            () = said.hear(&mut stderr), if stderr.is_some() => {}
        }
    };
    // What is still in the pipes. A process in the background may hold them open, so this has a short limit.
    let rest = async {
        while stdout.is_some() {
            said.hear(&mut stdout).await;
        }
        while stderr.is_some() {
            said.hear(&mut stderr).await;
        }
    };
    let _ = tokio::time::timeout(DRAIN, rest).await;
    Ok(status)
}

/// Kills what is left of a process group when dropped.
struct Group(Option<Pid>);

impl Group {
    fn of(child: &Child) -> Self {
        // Its leader is the child, which has not been waited for: the number is not anybody else's.
        Self(
            child
                .id()
                .and_then(|id| i32::try_from(id).ok())
                .and_then(Pid::from_raw),
        )
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// What a command that has done well has said, for the log: its last lines.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Words {
    lines: Vec<String>,
    /// Whether there was more before them.
    is_cut: bool,
}

impl Words {
    /// Puts them into the log, a line each.
    pub(crate) fn log(&self, command: &CommandLine) {
        if self.is_cut {
            let lines = self.lines.len();
            info!(%command, lines, "the command has said more than is shown, these are its last lines");
        }
        for line in &self.lines {
            info!(%command, line, "the command says");
        }
    }
}

/// The end of what a command says.
#[derive(Default)]
struct Said(Mutex<Heard>);

#[derive(Default)]
struct Heard {
    bytes: VecDeque<u8>,
    is_cut: bool,
}

impl Said {
    /// Reads once; the stream is gone when it has ended.
    async fn hear(&self, stream: &mut Option<impl AsyncRead + Unpin>) {
        let Some(open) = stream else { return };
        let mut chunk = [0; 1_024];
        match open.read(&mut chunk).await {
            Ok(0) | Err(_) => *stream = None,
            Ok(length) => {
                self.0.lock().add(&chunk[..length]);
            }
        }
    }

    /// The last lines of one that has done well.
    fn words(self, values: &[(String, String)]) -> Words {
        let heard = self.0.into_inner();
        let mut lines = lines(heard.bytes, SAID_BYTES_MAX, values);
        let over = lines.len().saturating_sub(SAID_LINES_MAX);
        lines.drain(..over);
        Words {
            lines,
            is_cut: heard.is_cut || over > 0,
        }
    }

    /// The last lines of one that has failed, ready to follow a sentence: `: line; line`.
    fn for_an_error(self, values: &[(String, String)]) -> String {
        let lines = lines(self.0.into_inner().bytes, ERROR_BYTES_MAX, values);
        if lines.is_empty() {
            return String::new();
        }
        format!(
            ": {}",
            lines[lines.len().saturating_sub(ERROR_LINES_MAX)..].join("; ")
        )
    }
}

impl Heard {
    fn add(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        let over = self.bytes.len().saturating_sub(SAID_BYTES_MAX);
        self.bytes.drain(..over);
        self.is_cut |= over > 0;
    }
}

/// The lines in the last bytes of a text, without empty ones, ready for a log.
fn lines(mut bytes: VecDeque<u8>, bytes_max: usize, values: &[(String, String)]) -> Vec<String> {
    bytes.drain(..bytes.len().saturating_sub(bytes_max));
    let bytes: Vec<u8> = bytes.into();
    let text = String::from_utf8_lossy(&bytes);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let mut line = line.to_owned();
            for (name, value) in values {
                if line.contains(value) {
                    line = line.replace(value, &format!("${name}"));
                }
            }
            line.replace(char::is_control, " ")
        })
        .collect()
}

/// The values of the environment that are replaced by their names in what a command says: who gives a command a password by
/// its environment does not want to find it in a log. Of a value of several lines each is one.
fn hidden_values(variables: impl Iterator<Item = (OsString, OsString)>) -> Vec<(String, String)> {
    let mut hidden = Vec::new();
    for (name, value) in variables {
        let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
        for line in value.lines().map(str::trim) {
            // A path is not a secret, and `nginx: configuration file $HOME/…` helps nobody.
            if line.len() >= HIDDEN_VALUE_BYTES_MIN && !line.starts_with('/') {
                hidden.push((name.clone().into_owned(), line.to_owned()));
            }
        }
    }
    hidden
}

/// What a command learns of the changes. Several paths or keys stand in lines of their own.
fn environment(changes: &[Change]) -> [(&'static str, String); 3] {
    let mut keys = String::new();
    for change in changes.iter().flat_map(|change| change.keys.iter()) {
        if keys.len() + change.key().len() > KEYS_BYTES_MAX {
            break;
        }
        if !keys.is_empty() {
            keys.push('\n');
        }
        keys.push_str(change.key());
    }
    let lines = |of: fn(&Change) -> String| changes.iter().map(of).collect::<Vec<_>>().join("\n");
    [
        ("HOTMAP_CHANGED_KEYS", keys),
        ("HOTMAP_REVISION", lines(|change| change.revision.to_string())),
        (
            "HOTMAP_VOLUME_DIR",
            lines(|change| change.path.display().to_string()),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    async fn run(line: &str, timeout: Duration) -> Result<Words, CommandError> {
        CommandLine::parse(line).unwrap().run(&[], timeout).await
    }

    #[tokio::test]
    async fn a_failure_says_how_it_ended_and_what_was_said_last() {
        for (line, reason, is_temporary, message) in [
            (
                "sh -c 'echo one; echo two >&2; exit 3'",
                "exit",
                true,
                "it ended with exit code 3: ",
            ),
            ("sh -c 'kill -9 $$'", "killed", true, "it was killed by signal 9"),
            ("false", "exit", true, "it ended with exit code 1"),
            (
                "/nowhere/program",
                "start",
                false,
                "cannot start /nowhere/program: no such program here",
            ),
            (
                "/etc/passwd",
                "start",
                false,
                "cannot start /etc/passwd: it is not executable for this user",
            ),
        ] {
            let error = run(line, LONG).await.unwrap_err();
            assert!(error.to_string().starts_with(message), "{error}");
            assert_eq!(
                (error.reason(), error.is_temporary()),
                (reason, is_temporary),
                "{line}"
            );
        }
        run("true", LONG).await.unwrap();
    }

    #[tokio::test]
    async fn what_hangs_is_killed_with_what_it_has_started() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pid");
        let line = format!(
            "sh -c 'sleep 3600 & echo $! > {0}.tmp; mv {0}.tmp {0}; wait'",
            file.display()
        );
        let command = CommandLine::parse(&line).unwrap();
        // The time is over only once the child of the child is there.
        let written = async {
            while !file.exists() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            ended = command.run(&[], LONG) => panic!("it ended by itself: {ended:?}"),
            () = written => {}
        }
        let pid = std::fs::read_to_string(&file).unwrap().trim().parse().unwrap();
        let pid = Pid::from_raw(pid).unwrap();
        while rustix::process::test_kill_process(pid).is_ok() && !is_zombie(pid) {
            tokio::task::yield_now().await;
        }
    }

    fn is_zombie(pid: Pid) -> bool {
        std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()))
            .map_or(true, |stat| stat.contains(") Z "))
    }

    #[tokio::test]
    async fn the_time_limit_is_named() {
        let error = run("sleep 3600", Duration::from_millis(20)).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "it did not end within 20ms and was killed with its process group"
        );
        assert_eq!(error.reason(), "timeout");
    }

    #[tokio::test]
    async fn a_process_in_the_background_is_not_waited_for() {
        run("sh -c 'sleep 30 & echo done'", LONG).await.unwrap();
    }

    #[test]
    fn values_of_the_environment_are_not_shown_and_neither_is_more_than_the_end() {
        let environment = [
            ("PASSWORD", "correct horse"),
            ("KEY", "-----BEGIN-----\nMIIEowIBAAKCAQEA\nAQ==\n"),
            ("SHORT", "abc"),
            ("DIR", "/etc/nginx/conf.d"),
        ]
        .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let values = hidden_values(environment.into_iter());
        let said = |text: &str| {
            let said = Said::default();
            said.0.lock().add(text.as_bytes());
            said
        };
        for (text, shown) in [
            ("", ""),
            ("\n \n", ""),
            ("a\nb\n", ": a; b"),
            ("1\n2\n3\n4\n5\n6\n7", ": 3; 4; 5; 6; 7"),
            (
                "login with correct horse failed, abc",
                ": login with $PASSWORD failed, abc",
            ),
            ("key is MIIEowIBAAKCAQEA!", ": key is $KEY!"),
            ("in /etc/nginx/conf.d/a.conf:1", ": in /etc/nginx/conf.d/a.conf:1"),
            ("red \u{1b}[31m", ": red  [31m"),
        ] {
            assert_eq!(said(text).for_an_error(&values), shown);
        }
        let words = said("up with correct horse\n\n done \n").words(&values);
        assert_eq!(words.lines, ["up with $PASSWORD", "done"]);
        assert!(!words.is_cut);
        let many: String = (1..=SAID_LINES_MAX + 1).map(|line| format!("{line}\n")).collect();
        let words = said(&many).words(&values);
        assert_eq!(
            (words.lines.len(), words.lines[0].as_str(), words.is_cut),
            (SAID_LINES_MAX, "2", true)
        );
        let words = said(&"x".repeat(SAID_BYTES_MAX + 1)).words(&values);
        assert_eq!((words.lines[0].len(), words.is_cut), (SAID_BYTES_MAX, true));
    }
}
