//! What /proc says of processes.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::process::{Pid, Signal};

use crate::disposition;

/// The kernel keeps this much of a process's name.
const COMM_BYTES_MAX: usize = 15;

/// What a stat line is shorter than, but for odd names: 52 numbers.
const STAT_BYTES: usize = 1_024;
const STAT_BYTES_MAX: u64 = 16 * 1_024;

/// A directory like /proc.
#[derive(Debug, Clone)]
pub(super) struct ProcFs(PathBuf);

/// One process, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) parent: i32,
    /// Up to 15 bytes.
    pub(super) comm: String,
    /// It has ended, and nobody has taken note.
    pub(super) is_zombie: bool,
    /// In clock ticks since boot: with the id, it names a process for good.
    pub(super) start_time: u64,
}

impl ProcFs {
    pub(super) fn at(path: &Path) -> Self {
        Self(path.to_owned())
    }

    /// The ids of all processes that can be seen from here.
    pub(super) fn pids(&self) -> io::Result<Vec<Pid>> {
        let mut pids = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let name = entry?.file_name();
            pids.extend(
                name.to_str()
                    .and_then(|name| name.parse().ok())
                    .and_then(Pid::from_raw),
            );
        }
        Ok(pids)
    }

    /// Whether a process is called so: by the name the kernel keeps, or by the file it runs.
    pub(super) fn is_named(&self, pid: Pid, name: &str) -> bool {
        let Ok(comm) = fs::read(self.file(pid, "comm")) else {
            return false;
        };
        let comm = comm.strip_suffix(b"\n").unwrap_or(&comm);
        if name.len() <= COMM_BYTES_MAX && comm == name.as_bytes() {
            return true;
        }
        // A script has its own name as comm and its interpreter as the file; a program that renames itself (or a
        // thread of it) has it the other way round. Names beyond 15 bytes are cut off in comm.
        let program = fs::read_link(self.file(pid, "exe")).ok();
        let is_program = program
            .as_deref()
            .and_then(Path::file_name)
            .is_some_and(|program| {
                // Replaced by an upgrade while it runs.
                program == name || program == OsStr::new(&format!("{name} (deleted)"))
            });
        // The file of another user's process cannot be seen; then the cut name has to do.
        let is_cut = || name.len() > COMM_BYTES_MAX && comm == &name.as_bytes()[..COMM_BYTES_MAX];
        is_program || (program.is_none() && is_cut())
    }

    pub(super) fn process(&self, pid: Pid) -> Option<Process> {
        // Read at once: each read makes the kernel write the whole line anew.
        let mut stat = Vec::with_capacity(STAT_BYTES);
        let file = fs::File::open(self.file(pid, "stat")).ok()?;
        file.take(STAT_BYTES_MAX).read_to_end(&mut stat).ok()?;
        parse_stat(pid, &stat)
    }

    /// The start time of a process that is alive.
    pub(super) fn start_time(&self, pid: Pid) -> Option<u64> {
        self.process(pid)
            .filter(|process| !process.is_zombie)
            .map(|process| process.start_time)
    }

    /// The effective uid of a process.
    pub(super) fn owner(&self, pid: Pid) -> Option<u32> {
        fs::metadata(self.file(pid, ""))
            .ok()
            .map(|metadata| metadata.uid())
    }

    /// Whether a signal would only end this process.
    pub(super) fn would_only_end(&self, pid: Pid, signal: Signal) -> bool {
        disposition::would_only_end(&self.file(pid, ""), signal)
    }

    fn file(&self, pid: Pid, name: &str) -> PathBuf {
        self.0.join(pid.as_raw_nonzero().to_string()).join(name)
    }
}

/// Field numbers of proc_pid_stat(5), counted from the state, which follows the name in parentheses.
const PARENT: usize = 1;
const START_TIME: usize = 19;

fn parse_stat(pid: Pid, stat: &[u8]) -> Option<Process> {
    // The name may hold anything, parentheses and newlines included; nothing after it does.
    let open = stat.iter().position(|byte| *byte == b'(')?;
    let close = stat.iter().rposition(|byte| *byte == b')')?;
    let comm = String::from_utf8_lossy(stat.get(open + 1..close)?).into_owned();
    let rest = std::str::from_utf8(&stat[close + 1..]).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Process {
        pid,
        parent: fields.get(PARENT)?.parse().ok()?,
        comm,
        is_zombie: matches!(*fields.first()?, "Z" | "X" | "x"),
        start_time: fields.get(START_TIME)?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_whatever_the_name_holds() {
        let pid = Pid::from_raw(7).unwrap();
        let rest = "5 7 7 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 100 1";
        for (name, state, is_zombie) in [("nginx", 'S', false), ("a) R 1 (", 'Z', true), ("", 'R', false)] {
            let line = format!("7 ({name}) {state} {rest}");
            let process = Process {
                pid,
                parent: 5,
                comm: name.to_owned(),
                is_zombie,
                start_time: 4_242,
            };
            assert_eq!(parse_stat(pid, line.as_bytes()), Some(process), "{line}");
        }
        for line in ["", "7 (a", "7 (a) S", "7 (a) S x 7"] {
            assert_eq!(parse_stat(pid, line.as_bytes()), None, "{line}");
        }
    }
}
