//! What a signal would do to a process before it is sent.
//!
//! Who loads files at a signal is ended by it for as long as it has no handler: between its start (or the exec of a
//! wrapper script) and the line of its code that sets one. A change that comes in that moment must not cost the process.

use std::fs;
use std::path::Path;

use rustix::process::Signal;

/// The signals that programs load files at, and that end those without a handler (signal(7)). Others are meant to end
/// the program, or do nothing to one that does not know them.
const TAKEN_BY_HANDLERS: [Signal; 5] = [Signal::HUP, Signal::USR1, Signal::USR2, Signal::ALARM, Signal::IO];

/// A signal was not sent.
#[derive(Debug, thiserror::Error)]
#[error(
    "{process} has no handler for {signal}, which would end it: it is still starting, or loads its files in another way \
     (TERM ends it on purpose)"
)]
pub(crate) struct NoHandler {
    /// Whom it was for, as the subject of a sentence.
    pub(crate) process: String,
    /// Its name.
    pub(crate) signal: &'static str,
}

impl NoHandler {
    /// The `reason` of metrics.
    pub(crate) const REASON: &str = "no_handler";
}

/// Whether `signal` would only end the process whose directory in /proc this is: it neither handles nor ignores nor
/// blocks it, nor waits for it. `false` where the kernel does not tell (gVisor has no such lines), and for signals
/// that are sent to end a program.
pub(crate) fn would_only_end(process: &Path, signal: Signal) -> bool {
    TAKEN_BY_HANDLERS.contains(&signal)
        && fs::read_to_string(process.join("status")).is_ok_and(|status| has_no_place(&status, signal))
        && !waits_for_signals(process)
}

/// The same of a child of this process. `false` also where /proc is that of another pid namespace, whose ids are others.
pub(crate) fn child_would_only_end(pid: i32, signal: Signal) -> bool {
    let proc = Path::new("/proc");
    let is_ours =
        fs::read_link(proc.join("self")).is_ok_and(|own| own == Path::new(&std::process::id().to_string()));
    is_ours && would_only_end(&proc.join(pid.to_string()), signal)
}

/// proc_pid_status(5): masks of 64 bits, the lowest for signal 1. Handlers and what is ignored are the process's, what
/// is blocked is its main thread's: who reads signals from a descriptor blocks them there.
fn has_no_place(status: &str, signal: Signal) -> bool {
    let bit = 1u64 << (signal.as_raw() - 1);
    let mask = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name))?;
        u64::from_str_radix(value.trim(), 16).ok()
    };
    let masks = [mask("SigCgt:"), mask("SigIgn:"), mask("SigBlk:")];
    masks.iter().all(|mask| mask.is_some_and(|mask| mask & bit == 0))
}

/// What a thread waits for in sigwait(3) counts as blocked and is not shown so (`do_sigtimedwait` in kernel/signal.c).
fn waits_for_signals(process: &Path) -> bool {
    fs::read_to_string(process.join("wchan")).is_ok_and(|place| place.contains("sigtimedwait"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_only_ends_who_has_no_place_for_it() {
        let masks = |caught: &str, ignored: &str, blocked: &str| {
            format!("Name:\tapp\nSigQ:\t0/9\nSigBlk:\t{blocked}\nSigIgn:\t{ignored}\nSigCgt:\t{caught}\n")
        };
        let none = "0000000000000000";
        let hup = "0000000000000001";
        let others = "fffffffffffffffe";
        for (status, wchan, ends) in [
            (masks(none, none, none), "do_epoll_wait", true),
            (masks(others, others, others), "0", true),
            (masks(none, none, none), "", true),
            (masks(hup, none, none), "0", false),
            (masks(none, hup, none), "0", false),
            (masks(none, none, hup), "0", false),
            (masks(none, none, none), "do_sigtimedwait.isra.0", false),
            ("Name:\tapp\nThreads:\t1\n".to_owned(), "0", false),
            (String::new(), "0", false),
        ] {
            let directory = tempfile::tempdir().unwrap();
            fs::write(directory.path().join("status"), &status).unwrap();
            fs::write(directory.path().join("wchan"), wchan).unwrap();
            let found = would_only_end(directory.path(), Signal::HUP);
            assert_eq!(found, ends, "{status} {wchan}");
        }
        assert!(!would_only_end(Path::new("/nowhere"), Signal::HUP));
    }

    #[test]
    fn signals_that_end_programs_or_nobody_are_sent_to_everybody() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        for (signal, ends) in [
            (Signal::HUP, true),
            (Signal::USR2, true),
            (Signal::TERM, false),
            (Signal::QUIT, false),
            (Signal::KILL, false),
            (Signal::WINCH, false),
            (Signal::CONT, false),
        ] {
            assert_eq!(child_would_only_end(pid, signal), ends, "{signal:?}");
        }
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
