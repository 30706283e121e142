//! Requests of clients that take part in what a pod does: in a container's streams, and in its network.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use super::Pod;
use crate::protocol::{AttachCall, AttachEnd, Refusal, Reply};
use crate::shim::attached::{ATTACHED_MAX, Attached};
use crate::shim::client::Mode;
use crate::shim::container::{Input, Running};

/// What goes to a client with the answer.
#[derive(Default)]
struct Given {
    fd: Option<OwnedFd>,
    is_input: bool,
    is_terminal: bool,
}

impl Pod {
    pub(super) fn attach(&mut self, id: u64, call: AttachCall, fds: Vec<OwnedFd>) -> io::Result<()> {
        match self.take_part(id, &call, fds) {
            Ok(given) => {
                let reply = Reply::Attached {
                    has_input: given.is_input,
                    is_terminal: given.is_terminal,
                };
                self.reply(id, &reply, given.fd.into_iter().collect())
            }
            Err(refusal) => self.reply(id, &Reply::Refused { refusal }, Vec::new()),
        }
    }

    fn take_part(&mut self, id: u64, call: &AttachCall, fds: Vec<OwnedFd>) -> Result<Given, Refusal> {
        let (attempt, running) = self.running(&call.container).ok_or(Refusal::NotRunning)?;
        if running.attached.len() >= ATTACHED_MAX {
            return Err(Refusal::TooMany);
        }
        let setup = |error: io::Error| Refusal::Setup {
            message: format!("cannot attach: {error}"),
        };
        for pipe in &fds {
            rustix::io::ioctl_fionbio(pipe, true).map_err(|error| setup(error.into()))?;
        }
        let mut fds = fds.into_iter();
        let mut take = |wanted: bool| wanted.then(|| fds.next()).flatten();
        let attached = Attached {
            client: id,
            stdout: take(call.stdout),
            stderr: take(call.stderr),
        };
        let given = running.give_input(call.stdin).map_err(setup)?;
        running.attached.push(attached);
        let name = call.container.clone();
        self.set_mode(id, Mode::Attached { name, attempt });
        Ok(given)
    }

    /// These have not read what there was to read. They keep what is in their pipes.
    pub(super) fn cut_off(&mut self, clients: Vec<u64>) {
        for id in clients {
            self.set_mode(id, Mode::Idle);
            let end = AttachEnd::TooSlow;
            if self.reply(id, &Reply::AttachEnded { end }, Vec::new()).is_err() {
                self.close(id);
            }
        }
    }

    pub(super) fn detach(&mut self, id: u64) {
        let running = self.containers.iter_mut().filter_map(|one| one.running.as_mut());
        for running in running {
            running.attached.retain(|one| one.client != id);
        }
    }

    pub(super) fn open_socket(&mut self, id: u64, ipv6: bool) -> io::Result<()> {
        if self.stopped {
            let refusal = Refusal::Stopped;
            return self.reply(id, &Reply::Refused { refusal }, Vec::new());
        }
        match self.namespaces.open_socket(ipv6) {
            Ok(socket) => self.reply(id, &Reply::SocketOpened, vec![socket]),
            Err(message) => {
                let refusal = Refusal::Setup { message };
                self.reply(id, &Reply::Refused { refusal }, Vec::new())
            }
        }
    }
}

impl Running {
    /// What a client writes to, or sets the terminal's size with, and whether it may write. An input for one client is given
    /// away: the process reads its end when that client has closed it.
    fn give_input(&mut self, wants_input: bool) -> io::Result<Given> {
        let pipe = |writer| Given {
            fd: Some(writer),
            is_input: true,
            is_terminal: false,
        };
        match std::mem::replace(&mut self.input, Input::None) {
            Input::Terminal { accepts } => {
                self.input = Input::Terminal { accepts };
                let master = self.outputs.first().map(|output| output.fd.as_fd());
                Ok(Given {
                    fd: master.map(|master| master.try_clone_to_owned()).transpose()?,
                    is_input: wants_input && accepts,
                    is_terminal: true,
                })
            }
            Input::Pipe {
                writer,
                is_once: true,
            } if wants_input => Ok(pipe(writer)),
            Input::Pipe { writer, is_once } => {
                let copy = wants_input.then(|| writer.try_clone()).transpose();
                self.input = Input::Pipe { writer, is_once };
                Ok(copy?.map_or(Given::default(), pipe))
            }
            Input::None => Ok(Given::default()),
        }
    }
}
