//! The agent's end of the zygote: it is started with the first pod, and again whenever it is gone.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::pipe::PipeFlags;
use tracing::warn;

use crate::config::RuntimeConfig;
use crate::protocol::{self, SHIM_ARGUMENT, ZYGOTE_ARGUMENT, ZYGOTE_READY};

/// A greeting is one line of JSON, never longer.
const GREETING_BYTES_MAX: usize = 16 << 10;

/// A shim bounds each of its own steps. Whoever says nothing for this long is stopped, or the machine is.
const PATIENCE: Duration = Duration::from_secs(60);

/// The uid of a pod as the API gives it: a zygote's arguments have room for those of a shim with such a uid.
const POD_UID_BYTES: usize = 36;

/// Where shims come from.
#[derive(Debug)]
pub(crate) struct Zygote {
    program: PathBuf,
    instance_id: String,
    /// Closed when nobody holds it any more, and then the zygote ends.
    socket: Mutex<Option<Arc<OwnedFd>>>,
}

impl Zygote {
    /// One that is not started yet.
    pub(crate) fn of(config: &RuntimeConfig) -> Self {
        Self {
            program: config.self_exe.clone(),
            instance_id: config.instance_id.to_string(),
            socket: Mutex::new(None),
        }
    }

    /// Has a shim forked in the pod's directory, and returns the line that it greets with. Several do so at the same time.
    pub(crate) fn bear(&self, pod_uid: &str, pod_dir: &OwnedFd, log: &File) -> io::Result<String> {
        let fds = [pod_dir.as_fd(), log.as_fd()];
        let mut is_first = true;
        loop {
            let socket = self.socket()?;
            let asked = ask(&socket, pod_uid, fds);
            match asked {
                Err(error) if is_gone(&error) && is_first => {
                    warn!(
                        pod = %pod_uid,
                        "the zygote, the process that pods' shims are forked from, is gone: another one is started"
                    );
                    is_first = false;
                    self.forget(&socket);
                }
                Err(error) => {
                    self.forget(&socket);
                    return Err(error);
                }
                greeting => return greeting,
            }
        }
    }

    fn socket(&self) -> io::Result<Arc<OwnedFd>> {
        // Held while one is started: whoever else has a pod to start waits for the same.
        let mut socket = self.socket.lock();
        if let Some(socket) = &*socket {
            return Ok(Arc::clone(socket));
        }
        let started = Arc::new(self.start()?);
        *socket = Some(Arc::clone(&started));
        Ok(started)
    }

    /// Unless somebody else has started another one since.
    fn forget(&self, gone: &Arc<OwnedFd>) {
        let mut socket = self.socket.lock();
        if socket.as_ref().is_some_and(|now| Arc::ptr_eq(now, gone)) {
            *socket = None;
        }
    }

    /// Without forking this threaded process: the standard library spawns with shared memory and an immediate exec as long as nothing is
    /// asked to run in between.
    fn start(&self) -> io::Result<OwnedFd> {
        let (ours, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let status = Command::new(&self.program)
            .args([ZYGOTE_ARGUMENT, &self.instance_id, &room_for_arguments()])
            .env_clear()
            .current_dir("/")
            .stdin(theirs)
            .stdout(Stdio::null())
            .status()?;
        // What that process forked is the zygote.
        let mut word = [0; ZYGOTE_READY.len()];
        let heard = within(&ours, Instant::now() + PATIENCE)
            .and_then(|()| protocol::receive_with_fds(&ours, &mut word, &mut Vec::new()));
        match heard {
            Ok(_) if status.success() && word == *ZYGOTE_READY => Ok(ours),
            Err(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(error),
            _ => Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the program did not become a zygote: its main must call shim_main_if_asked first",
            )),
        }
    }
}

/// What fills the arguments up to the length of a shim's.
fn room_for_arguments() -> String {
    "-".repeat(SHIM_ARGUMENT.len() + POD_UID_BYTES - ZYGOTE_ARGUMENT.len())
}

fn ask(socket: &OwnedFd, pod_uid: &str, [pod_dir, log]: [BorrowedFd<'_>; 2]) -> io::Result<String> {
    let (greeting, theirs) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    protocol::send_with_fds(socket, pod_uid.as_bytes(), &[pod_dir, log, theirs.as_fd()])?;
    drop(theirs);
    line_of(File::from(greeting), Instant::now() + PATIENCE)
}

/// The first line. The other end is with the zygote and then with the shim: a pipe that closes first tells of their end.
fn line_of(mut pipe: File, deadline: Instant) -> io::Result<String> {
    let mut line = Vec::new();
    let mut bytes = [0; 1 << 10];
    while line.last() != Some(&b'\n') && line.len() < GREETING_BYTES_MAX {
        within(&pipe, deadline)?;
        match pipe.read(&mut bytes)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            length => line.extend(&bytes[..length]),
        }
    }
    String::from_utf8(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Waits until there is something to read.
fn within(fd: impl AsFd, deadline: Instant) -> io::Result<()> {
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        match rustix::event::poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&timeout)) {
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
            Ok(0) => {
                let text = format!("nothing was heard of it for {} s", PATIENCE.as_secs());
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            Ok(_) => return Ok(()),
        }
    }
}

/// The zygote has ended, or the shim before it said a word, which can be the end of both.
fn is_gone(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zygote_has_room_for_the_arguments_of_a_shim_and_is_not_taken_for_one() {
        let uid = "11111111-2222-3333-4444-555555555555";
        let of_zygote = [ZYGOTE_ARGUMENT, "a1b2c3d4", &room_for_arguments()].join("\0");
        let of_shim = [SHIM_ARGUMENT, "a1b2c3d4", uid].join("\0");
        assert_eq!(of_zygote.len(), of_shim.len());
        assert!(!of_zygote.contains(SHIM_ARGUMENT));
    }

    #[test]
    fn a_greeting_is_a_whole_line_or_the_end_of_who_greets() {
        let soon = || Instant::now() + PATIENCE;
        let heard = |text: &str| {
            let (read, mut write) = io::pipe().expect("a pipe");
            io::Write::write_all(&mut write, text.as_bytes()).expect("written");
            drop(write);
            line_of(File::from(OwnedFd::from(read)), soon()).map_err(|error| error.kind())
        };
        assert_eq!(heard("\"ready\"\n").as_deref(), Ok("\"ready\"\n"));
        for text in ["", "\"rea"] {
            assert_eq!(heard(text), Err(io::ErrorKind::UnexpectedEof), "{text:?}");
        }
        // Nobody speaks: the wait has an end.
        let (read, _write) = io::pipe().expect("a pipe");
        let silent = line_of(File::from(OwnedFd::from(read)), Instant::now());
        assert_eq!(silent.map_err(|error| error.kind()), Err(io::ErrorKind::TimedOut));
    }
}
