//! Starts the program: a process group of its own, no signal blocked, sockets from descriptor 3 on.
//!
//! The standard library's `Command` cannot do it: `LISTEN_PID` has to hold the pid of the child, and the terminal has
//! to be the child's before its first instruction.

use std::ffi::{CString, OsStr, OsString};
use std::io::{self, Read};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::ptr;

use rustix::process::{Pid, PidfdFlags, WaitId, WaitIdOptions};

use super::sys;

/// The descriptor of the first socket that is handed to a child (`sd_listen_fds(3)`).
pub(crate) const LISTEN_FDS_START: RawFd = 3;

/// Where programs are looked for without a `PATH`, as `execvp` of the C library does.
const DEFAULT_PATH: &str = "/bin:/usr/bin";

/// What a child is started with.
pub(crate) struct Program<'a> {
    /// The command and its arguments; not empty.
    pub(crate) command: &'a [OsString],
    /// All of its environment.
    pub(crate) environment: &'a [(OsString, OsString)],
    /// They become descriptors 3, 4, …; `LISTEN_PID` is added to the environment if there are any.
    pub(crate) sockets: &'a [BorrowedFd<'a>],
    /// Whether the child's group is put into the foreground of the terminal on standard input.
    pub(crate) is_foreground: bool,
}

/// The program could not be started.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    /// No process could be made: limits, memory.
    #[error("cannot start a process: {0}")]
    Fork(io::Error),
    /// The program is not there, or cannot be executed.
    #[error("cannot execute {program:?}: {source}")]
    Exec { program: OsString, source: io::Error },
    /// A word or variable cannot be given to a program.
    #[error("{0} holds a zero byte, which no program can be given")]
    ZeroByte(&'static str),
}

impl SpawnError {
    /// What a shell exits with: 127 for a program that is not there, 126 for one that cannot be executed.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Exec { source, .. } if source.kind() == io::ErrorKind::NotFound => 127,
            _ => 126,
        }
    }
}

/// A process that runs or has ended, and has not been reaped: nobody else can have its pid.
pub(crate) struct Child {
    pid: Pid,
    pidfd: OwnedFd,
}

/// How a child has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ended {
    /// By itself, with this code.
    Exited(u8),
    /// By this signal.
    Signaled(i32),
}

impl Ended {
    /// The exit code that tells it, as shells do: 128 and the signal's number.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Self::Exited(code) => code,
            // Signals end at 64.
            Self::Signaled(signal) => u8::try_from(128 + signal).unwrap_or(u8::MAX),
        }
    }
}

impl Child {
    /// Starts `program` and returns when it runs.
    ///
    /// # Errors
    /// [`SpawnError`]: nothing runs, nothing is left to be reaped.
    pub(crate) fn start(program: &Program<'_>) -> Result<Self, SpawnError> {
        let prepared = Prepared::new(program)?;
        let (pid, reports) = prepared.fork().map_err(SpawnError::Fork)?;
        let failure = read_report(reports);
        let pidfd = rustix::process::pidfd_open(pid, PidfdFlags::empty());
        match (failure, pidfd) {
            (None, Ok(pidfd)) => Ok(Self { pid, pidfd }),
            (failure, pidfd) => {
                // Without a descriptor (a kernel before 5.3, none left) it could not be supervised.
                let _ = sys::signal_group(pid.as_raw_nonzero().get(), libc::SIGKILL);
                let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
                Err(match (failure, pidfd) {
                    (Some(source), _) => SpawnError::Exec {
                        program: program.command[0].clone(),
                        source,
                    },
                    (None, error) => {
                        SpawnError::Fork(error.err().map_or(io::ErrorKind::Other.into(), io::Error::from))
                    }
                })
            }
        }
    }

    /// The process, and the group that it leads.
    pub(crate) fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Sends it a signal; that it has ended already is no error.
    pub(crate) fn signal(&self, signal: i32) -> io::Result<()> {
        match sys::signal_process(&self.pidfd, signal) {
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => Ok(()),
            result => result,
        }
    }

    /// How it has ended, if it has. It stays a zombie, so that its group can be signalled without a race.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.wait(WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
    }

    /// Reaps it if it has ended.
    pub(crate) fn reap(&self) {
        self.wait(WaitIdOptions::EXITED | WaitIdOptions::NOHANG);
    }

    /// Whether a signal has stopped it since this was asked last.
    pub(crate) fn has_stopped(&self) -> bool {
        let options = WaitIdOptions::STOPPED | WaitIdOptions::NOHANG;
        matches!(rustix::process::waitid(WaitId::Pid(self.pid), options), Ok(Some(status)) if status.stopped())
    }

    fn wait(&self, options: WaitIdOptions) -> Option<Ended> {
        let status = rustix::process::waitid(WaitId::Pid(self.pid), options).ok()??;
        if let Some(code) = status.exit_status() {
            // The kernel keeps the lowest eight bits.
            return Some(Ended::Exited((code & 0xff) as u8));
        }
        status.terminating_signal().map(Ended::Signaled)
    }
}

/// Everything that the child needs, allocated beforehand: between fork and exec nothing may be.
struct Prepared {
    /// The files that are tried in order, as `execvp` does.
    files: Vec<CString>,
    arguments: Vec<CString>,
    environment: Vec<CString>,
    /// Duplicates above the descriptors that they are moved to, so that no move covers the source of another.
    sockets: Vec<OwnedFd>,
    is_foreground: bool,
}

impl Prepared {
    fn new(program: &Program<'_>) -> Result<Self, SpawnError> {
        let variable = |(name, value): &(OsString, OsString)| {
            let mut entry = name.clone().into_vec();
            entry.push(b'=');
            entry.extend_from_slice(value.as_bytes());
            CString::new(entry).map_err(|_| SpawnError::ZeroByte("a variable of the environment"))
        };
        let word = |word: &OsString| {
            CString::new(word.as_bytes()).map_err(|_| SpawnError::ZeroByte("the command line"))
        };
        let path = program.environment.iter().find(|(name, _)| name == "PATH");
        let path = path.map_or(OsStr::new(DEFAULT_PATH), |(_, path)| path.as_os_str());
        let above = LISTEN_FDS_START + i32::try_from(program.sockets.len()).unwrap_or(i32::MAX / 2);
        Ok(Self {
            files: candidates(&program.command[0], path)
                .iter()
                .map(word)
                .collect::<Result<_, _>>()?,
            arguments: program.command.iter().map(word).collect::<Result<_, _>>()?,
            environment: program
                .environment
                .iter()
                .map(variable)
                .collect::<Result<_, _>>()?,
            sockets: program
                .sockets
                .iter()
                .map(|socket| rustix::io::fcntl_dupfd_cloexec(socket, above))
                .collect::<Result<_, _>>()
                .map_err(|error| SpawnError::Fork(error.into()))?,
            is_foreground: program.is_foreground,
        })
    }

    /// Forks. The read end tells `errno` if the program could not be executed, and ends without a word if it runs.
    fn fork(&self) -> io::Result<(Pid, OwnedFd)> {
        let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
            strings
                .iter()
                .map(|string| string.as_ptr())
                .chain([ptr::null()])
                .collect()
        };
        let arguments = pointers(&self.arguments);
        let mut environment = pointers(&self.environment);
        // The child writes its pid behind the sign; a pid has at most seven digits, the zero bytes end it.
        let mut listen_pid = *b"LISTEN_PID=\0\0\0\0\0\0\0\0\0\0\0\0";
        let listen_pid = listen_pid.as_mut_ptr();
        if !self.sockets.is_empty() {
            environment.insert(0, listen_pid.cast());
        }
        let sockets: Vec<RawFd> = self.sockets.iter().map(AsRawFd::as_raw_fd).collect();
        let (reports, report) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let above = LISTEN_FDS_START + sockets.len() as i32;
        let report = rustix::io::fcntl_dupfd_cloexec(&report, above)?;
        // SAFETY: the child makes nothing but calls that are safe after the fork of a threaded process
        // (signal-safety(7)) and never returns; what the pointers point to lives until this function is left.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => unsafe {
                libc::setpgid(0, 0);
                if self.is_foreground {
                    // SIGTTOU is still blocked, so a group in the background may do this.
                    libc::tcsetpgrp(libc::STDIN_FILENO, libc::getpid());
                }
                for (index, socket) in sockets.iter().enumerate() {
                    libc::dup2(*socket, LISTEN_FDS_START + index as RawFd);
                }
                write_digits(listen_pid.add(b"LISTEN_PID=".len()), libc::getpid());
                let errno = execute(&self.files, &arguments, &environment);
                libc::write(report.as_raw_fd(), ptr::from_ref(&errno).cast(), size_of::<i32>());
                libc::_exit(127)
            },
            pid => Ok((
                Pid::from_raw(pid).expect("fork returns a pid above zero"),
                reports,
            )),
        }
    }
}

/// Puts signals back as a program expects them and executes the first file that can be; returns `errno`.
///
/// # Safety
/// Only after fork; both arrays end in null.
unsafe fn execute(
    files: &[CString],
    arguments: &[*const libc::c_char],
    environment: &[*const libc::c_char],
) -> i32 {
    // SAFETY: the empty set is initialised before it is used; the arrays live in the parent's copy.
    unsafe {
        // The runtime of Rust ignores it; a program expects to end by it.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
        let mut errno = libc::ENOENT;
        for file in files {
            libc::execve(file.as_ptr(), arguments.as_ptr(), environment.as_ptr());
            match *libc::__errno_location() {
                libc::ENOENT | libc::ENOTDIR => {}
                // It is there; perhaps a later directory has one that may be executed.
                libc::EACCES => errno = libc::EACCES,
                other => return other,
            }
        }
        errno
    }
}

/// Writes a number without allocating.
///
/// # Safety
/// Ten bytes are writable at `to`.
unsafe fn write_digits(to: *mut u8, mut number: i32) {
    let mut digits = [0u8; 10];
    let mut count = 0;
    while number > 0 && count < digits.len() {
        digits[count] = b'0' + (number % 10) as u8;
        number /= 10;
        count += 1;
    }
    for index in 0..count {
        // SAFETY: index is below ten.
        unsafe { to.add(index).write(digits[count - 1 - index]) };
    }
}

/// What the child has said before it ended, or nothing if its program runs.
fn read_report(reports: OwnedFd) -> Option<io::Error> {
    let mut errno = [0; size_of::<i32>()];
    let mut reports = std::fs::File::from(reports);
    reports.read_exact(&mut errno).ok()?;
    Some(io::Error::from_raw_os_error(i32::from_ne_bytes(errno)))
}

/// Where `program` may be: itself if it has a slash, else in each directory of `path`.
fn candidates(program: &OsStr, path: &OsStr) -> Vec<OsString> {
    if program.as_bytes().contains(&b'/') {
        return vec![program.to_owned()];
    }
    if program.is_empty() {
        return Vec::new();
    }
    let directories = path.as_bytes().split(|byte| *byte == b':');
    directories
        .map(|directory| match directory {
            // An empty entry is the working directory (POSIX, environment variables).
            b"" => Path::new("./").join(program).into_os_string(),
            directory => Path::new(OsStr::from_bytes(directory))
                .join(program)
                .into_os_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_for_as_a_shell_does() {
        let table: [(&str, &str, &[&str]); 5] = [
            ("/bin/sh", "/usr/bin", &["/bin/sh"]),
            ("./sh", "/usr/bin", &["./sh"]),
            ("sh", "/usr/bin:/bin", &["/usr/bin/sh", "/bin/sh"]),
            ("sh", ":/bin", &["./sh", "/bin/sh"]),
            ("", "/bin", &[]),
        ];
        for (program, path, expected) in table {
            assert_eq!(
                candidates(OsStr::new(program), OsStr::new(path)),
                expected,
                "{program:?} in {path:?}"
            );
        }
    }

    #[test]
    fn numbers_are_written_without_allocating() {
        for number in [1, 10, 4_194_304, i32::MAX] {
            let mut digits = [0u8; 10];
            // SAFETY: ten bytes.
            unsafe { write_digits(digits.as_mut_ptr(), number) };
            let text: Vec<u8> = digits.into_iter().take_while(|byte| *byte != 0).collect();
            assert_eq!(text, number.to_string().as_bytes());
        }
    }

    #[test]
    fn exit_codes_are_those_of_shells() {
        assert_eq!(Ended::Exited(7).exit_code(), 7);
        assert_eq!(Ended::Signaled(15).exit_code(), 143);
        let not_there = |kind: i32| SpawnError::Exec {
            program: "x".into(),
            source: io::Error::from_raw_os_error(kind),
        };
        assert_eq!(not_there(libc::ENOENT).exit_code(), 127);
        assert_eq!(not_there(libc::EACCES).exit_code(), 126);
        assert_eq!(not_there(libc::ENOEXEC).exit_code(), 126);
    }
}
