//! Runs somebody's command beside a temporary server and returns its exit code as a shell would.

use std::{io, os::unix::process::ExitStatusExt, path::Path, process::ExitStatus};

use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::Command,
    signal::unix::{SignalKind, signal},
};

/// A shell's codes for a command that is not there, and for one that may not be run.
const EXIT_NOT_FOUND: u8 = 127;
const EXIT_NOT_EXECUTABLE: u8 = 126;
/// A shell adds the signal's number to this.
const EXIT_SIGNAL_BASE: i32 = 128;

/// Runs `command` with `KUBECONFIG` set. Signals meant for us go to it; we stay until it has ended.
pub(crate) async fn run(command: &[String], kubeconfig: &Path) -> io::Result<u8> {
    let (program, arguments) = command
        .split_first()
        .expect("clap requires a command with --temp");
    // Before the child starts: a signal between the two must not end us with files left behind.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = signal(SignalKind::hangup())?;
    let mut child = match Command::new(program)
        .args(arguments)
        .env("KUBECONFIG", kubeconfig)
        // Without the server it has nothing to run beside.
        .kill_on_drop(true)
        .spawn()
    {
        Ok(child) => child,
        Err(error) => {
            eprintln!("hotmap: cannot run {program:?}: {error}");
            let is_missing = error.kind() == io::ErrorKind::NotFound;
            return Ok(if is_missing {
                EXIT_NOT_FOUND
            } else {
                EXIT_NOT_EXECUTABLE
            });
        }
    };
    let pid = child.id().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
    let pass_on = |passed| {
        if let Some(pid) = pid {
            // The child may have ended a moment ago; its exit is read below either way.
            let _ = kill_process(pid, passed);
        }
    };
    loop {
        tokio::select! {
            ended = child.wait() => return ended.map(exit_code),
            // A terminal sends its interrupt to the whole foreground group: the child has it already.
            _ = interrupt.recv() => {}
            _ = terminate.recv() => pass_on(Signal::TERM),
            _ = hang_up.recv() => pass_on(Signal::HUP),
        }
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| EXIT_SIGNAL_BASE + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn exit_codes_are_a_shells() {
        for (script, code) in [
            ("exit 0", 0),
            ("exit 7", 7),
            ("kill -9 $$", 137),
            (r#"test "$KUBECONFIG" = /k"#, 0),
        ] {
            let command = ["sh", "-c", script].map(str::to_owned);
            assert_eq!(
                run(&command, Path::new("/k")).await.expect("runs"),
                code,
                "{script}"
            );
        }
        let missing = ["/nonexistent/program".to_owned()];
        assert_eq!(
            run(&missing, Path::new("/k")).await.expect("answers"),
            EXIT_NOT_FOUND
        );
        let directory = ["/".to_owned()];
        assert_eq!(
            run(&directory, Path::new("/k")).await.expect("answers"),
            EXIT_NOT_EXECUTABLE
        );
    }
}
