//! Signals as people write them.

/// The signals that have the same name everywhere. Real-time signals are written `RTMIN+N` or as numbers.
const NAMES: [(&str, i32); 30] = [
    ("HUP", libc::SIGHUP),
    ("INT", libc::SIGINT),
    ("QUIT", libc::SIGQUIT),
    ("ILL", libc::SIGILL),
    ("TRAP", libc::SIGTRAP),
    ("ABRT", libc::SIGABRT),
    ("BUS", libc::SIGBUS),
    ("FPE", libc::SIGFPE),
    ("KILL", libc::SIGKILL),
    ("USR1", libc::SIGUSR1),
    ("SEGV", libc::SIGSEGV),
    ("USR2", libc::SIGUSR2),
    ("PIPE", libc::SIGPIPE),
    ("ALRM", libc::SIGALRM),
    ("TERM", libc::SIGTERM),
    ("CHLD", libc::SIGCHLD),
    ("CONT", libc::SIGCONT),
    ("STOP", libc::SIGSTOP),
    ("TSTP", libc::SIGTSTP),
    ("TTIN", libc::SIGTTIN),
    ("TTOU", libc::SIGTTOU),
    ("URG", libc::SIGURG),
    ("XCPU", libc::SIGXCPU),
    ("XFSZ", libc::SIGXFSZ),
    ("VTALRM", libc::SIGVTALRM),
    ("PROF", libc::SIGPROF),
    ("WINCH", libc::SIGWINCH),
    ("IO", libc::SIGIO),
    ("PWR", libc::SIGPWR),
    ("SYS", libc::SIGSYS),
];

/// The number of `HUP`, `SIGHUP`, `hup`, `1`, `RTMIN+3`.
///
/// # Errors
/// A sentence for a person.
pub(crate) fn parse(raw: &str) -> Result<i32, String> {
    let upper = raw.to_ascii_uppercase();
    let name = upper.strip_prefix("SIG").unwrap_or(&upper);
    let named = NAMES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, number)| *number);
    let realtime = || {
        let offset = name.strip_prefix("RTMIN")?;
        let offset = if offset.is_empty() {
            0
        } else {
            offset.strip_prefix('+')?.parse().ok()?
        };
        libc::SIGRTMIN().checked_add(offset)
    };
    let number = named.or_else(realtime).or_else(|| name.parse().ok());
    number
        .filter(|number| (1..=libc::SIGRTMAX()).contains(number))
        .ok_or_else(|| format!("{raw:?} is no signal; write a name such as HUP or a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_with_and_without_sig() {
        for raw in ["HUP", "SIGHUP", "hup", "sighup", "1"] {
            assert_eq!(parse(raw), Ok(libc::SIGHUP), "{raw}");
        }
        assert_eq!(parse("RTMIN+3"), Ok(libc::SIGRTMIN() + 3));
        for raw in ["", "SIG", "0", "65", "-1", "HANGUP", "RTMIN+99", "RTMIN-1"] {
            assert!(parse(raw).is_err(), "{raw}");
        }
    }
}
