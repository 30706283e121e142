//! The shim's loop: requests, output, ends and deadlines of one pod.

mod attach;
mod changes;
mod ends;
mod start;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::attached;
use super::client::{Client, Mode};
use super::complaint::complain;
use super::container::{Container, Running};
use super::cri_log::timestamp;
use super::disconnect;
use super::launch::{self, Command, Outputs, Place};
use super::namespaces::Namespaces;
use super::rootfs::{Setup, what};
use crate::cgroup::Group;
use crate::protocol::{self, Call, ExecCall, Refusal, Reply, Request, STATE_FILE, VERSION};
use crate::status::{PodState, SandboxRecord};
use crate::sys;

/// Connections at once; a further one is closed. The agent needs one to watch, and one per command or stop under way.
const CLIENTS_MAX: usize = 128;

/// Commands at once.
const COMMANDS_MAX: usize = 64;

/// Attempts on record at once; the agent removes old ones.
const CONTAINERS_MAX: usize = 1_024;

/// Bytes of output, or of requests, taken at once: what a pipe holds.
const BUFFER_BYTES: usize = 64 << 10;

/// Bytes of output that are made log lines of at once: forty times as many, should each be a line feed.
const PIECE_BYTES: usize = 4 << 10;

/// A grace period is cut here (one year), so that adding it to the clock cannot overflow.
const GRACE_MAX: Duration = Duration::from_secs(366 * 86_400);

pub(crate) struct Pod {
    record: SandboxRecord,
    pod_dir: PathBuf,
    namespaces: Namespaces,
    group: Group,
    listener: UnixListener,
    signals: OwnedFd,
    start_ticks: u64,
    created_at: SystemTime,
    stopped: bool,
    /// The end was asked for: nothing is left to do once every process and every reply is out.
    ending: bool,
    containers: Vec<Container>,
    commands: Vec<RunningCommand>,
    clients: BTreeMap<u64, Client>,
    next_client: u64,
    buffer: Vec<u8>,
    give_back_memory: fn(),
}

struct RunningCommand {
    pid: i32,
    pidfd: OwnedFd,
    client: u64,
}

/// Whom an answer of poll is for.
#[derive(Clone, Copy)]
enum Token {
    Listener,
    Signals,
    Client(u64),
    Output(usize, usize),
}

impl Pod {
    pub(crate) fn new(
        record: SandboxRecord,
        pod_dir: PathBuf,
        namespaces: Namespaces,
        group: Group,
        (listener, signals): (UnixListener, OwnedFd),
        give_back_memory: fn(),
    ) -> Setup<Self> {
        let pid = std::process::id() as i32;
        let start_ticks = what(sys::start_ticks(pid), || {
            "cannot read the shim's start time".to_owned()
        })?;
        let pod = Self {
            record,
            pod_dir,
            namespaces,
            group,
            listener,
            signals,
            start_ticks,
            created_at: SystemTime::now(),
            stopped: false,
            ending: false,
            containers: Vec::new(),
            commands: Vec::new(),
            clients: BTreeMap::new(),
            next_client: 0,
            buffer: vec![0; BUFFER_BYTES],
            give_back_memory,
        };
        what(pod.save(), || format!("cannot write {STATE_FILE}"))?;
        Ok(pod)
    }

    /// Serves until the end is asked for and reached.
    pub(crate) fn serve(mut self) -> io::Result<()> {
        loop {
            for token in self.wait()? {
                match token {
                    Token::Listener => self.accept(),
                    Token::Signals => self.reap()?,
                    Token::Client(id) => self.serve_client(id),
                    Token::Output(container, output) => {
                        self.read_some(container, output);
                    }
                }
            }
            self.kill_overdue();
            if self.ending && self.is_quiet() {
                self.answer_stopped_sandbox();
                self.clients.values_mut().for_each(Client::flush_blocking);
                return Ok(());
            }
        }
    }

    fn wait(&self) -> io::Result<Vec<Token>> {
        let mut tokens = vec![Token::Listener, Token::Signals];
        let mut polls = vec![
            PollFd::new(&self.listener, PollFlags::IN),
            PollFd::new(&self.signals, PollFlags::IN),
        ];
        for (id, client) in &self.clients {
            let flags = if client.has_output() {
                PollFlags::IN | PollFlags::OUT
            } else {
                PollFlags::IN
            };
            tokens.push(Token::Client(*id));
            polls.push(PollFd::new(client, flags));
        }
        let now = Instant::now();
        for (index, container) in self.containers.iter().enumerate() {
            for (number, output) in container
                .running
                .iter()
                .filter(|running| !running.is_flooding(now))
                .flat_map(|running| running.outputs.iter().enumerate())
            {
                if !output.ended {
                    tokens.push(Token::Output(index, number));
                    polls.push(PollFd::new(&output.fd, PollFlags::IN));
                }
            }
        }
        let running = self
            .containers
            .iter()
            .filter_map(|container| container.running.as_ref());
        let deadlines = running.flat_map(|running| {
            let resumes_at = running.log.resumes_at().filter(|at| *at > now);
            [running.kill_at, resumes_at]
        });
        let deadline = deadlines.flatten().min();
        let timeout = deadline.map(|deadline| {
            let left = deadline.saturating_duration_since(Instant::now());
            Timespec {
                tv_sec: left.as_secs() as i64,
                tv_nsec: left.subsec_nanos().into(),
            }
        });
        match rustix::event::poll(&mut polls, timeout.as_ref()) {
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        }
        let answered = polls
            .iter()
            .zip(tokens)
            .filter(|(poll, _)| !poll.revents().is_empty());
        Ok(answered.map(|(_, token)| token).collect())
    }

    fn accept(&mut self) {
        while let Ok((stream, _)) = self.listener.accept() {
            if self.clients.len() < CLIENTS_MAX
                && let Ok(client) = Client::accept(stream)
            {
                self.clients.insert(self.next_client, client);
                self.next_client += 1;
            }
        }
    }

    fn serve_client(&mut self, id: u64) {
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        let mut open = client
            .flush()
            .and_then(|()| client.read(&mut self.buffer))
            .is_ok();
        while open {
            let Some(client) = self.clients.get_mut(&id) else {
                return;
            };
            let frame = match client.next_request() {
                Ok(Some(frame)) => frame,
                Ok(None) => break,
                Err(_) => {
                    open = false;
                    break;
                }
            };
            let fds = std::mem::take(&mut client.fds);
            open = self.carry_out(id, &frame, fds).is_ok();
        }
        if open {
            self.catch_up(id);
        } else {
            self.close(id);
        }
    }

    /// A closed connection ends the command that it carried, and detaches.
    fn close(&mut self, id: u64) {
        self.clients.remove(&id);
        self.detach(id);
        for command in self.commands.iter().filter(|command| command.client == id) {
            let _ = sys::signal_process(&command.pidfd, libc::SIGKILL);
        }
    }

    fn carry_out(&mut self, id: u64, frame: &[u8], fds: Vec<OwnedFd>) -> io::Result<()> {
        let Ok(request) = protocol::decode::<Request>(frame) else {
            return self.reply(
                id,
                &Reply::Refused {
                    refusal: Refusal::Unsupported,
                },
                Vec::new(),
            );
        };
        let outcome = match request.call {
            Call::Start { container } | Call::StartBeside { container } => {
                let outcome = self
                    .start(*container)
                    .map(|container| Some(Reply::Started { container }));
                (self.give_back_memory)();
                outcome
            }
            Call::Stop {
                name,
                attempt,
                signal,
                grace_ms,
            } => self.stop(id, (&name, attempt), signal, Duration::from_millis(grace_ms)),
            Call::Remove { name, attempt } => self.remove(&name, attempt).map(|()| Some(Reply::Done)),
            Call::Exec(call) => return self.exec(id, call, fds),
            Call::Attach(call) => return self.attach(id, call, fds),
            Call::OpenSocket { ipv6 } => return self.open_socket(id, ipv6),
            Call::SwapMount(call) => self
                .swap_mount(&call, fds)
                .map(|outcome| Some(Reply::Swapped(outcome))),
            Call::CompareEnv { name, attempt, env } => self
                .compare_env(&name, attempt, env)
                .map(|names| Some(Reply::EnvDiffers { names })),
            Call::Watch => {
                self.set_mode(id, Mode::Watching { behind: true });
                Ok(None)
            }
            Call::StopSandbox => {
                self.stop_sandbox(id);
                Ok(None)
            }
            Call::Shutdown => {
                self.ending = true;
                self.stop_sandbox(id);
                Ok(None)
            }
        };
        match outcome {
            Ok(Some(reply)) => self.reply(id, &reply, Vec::new()),
            Ok(None) => Ok(()),
            Err(refusal) => self.reply(id, &Reply::Refused { refusal }, Vec::new()),
        }
    }

    fn reply(&mut self, id: u64, reply: &Reply, fds: Vec<OwnedFd>) -> io::Result<()> {
        self.clients
            .get_mut(&id)
            .map_or(Ok(()), |client| client.send(reply, fds))
    }

    fn set_mode(&mut self, id: u64, mode: Mode) {
        if let Some(client) = self.clients.get_mut(&id) {
            client.mode = mode;
        }
    }

    fn place<'a>(&'a self, group: &'a Group) -> Place<'a> {
        Place {
            record: &self.record,
            namespaces: &self.namespaces,
            pod_dir: &self.pod_dir,
            group,
        }
    }

    fn running(&mut self, name: &str) -> Option<(u32, &mut Running)> {
        self.containers
            .iter_mut()
            .filter(|container| container.status.name == name)
            .find_map(|container| Some((container.status.attempt, container.running.as_mut()?)))
    }

    fn stop(
        &mut self,
        id: u64,
        (name, wanted): (&str, Option<u32>),
        signal: i32,
        grace: Duration,
    ) -> Result<Option<Reply>, Refusal> {
        let found = self.running(name);
        let Some((attempt, running)) =
            found.filter(|(found, _)| wanted.is_none_or(|wanted| wanted == *found))
        else {
            return Ok(Some(Reply::Done));
        };
        if !(1..=64).contains(&signal) {
            return Err(Refusal::Invalid {
                message: format!("{signal} is no signal"),
            });
        }
        let grace = grace.min(GRACE_MAX);
        let signal = if grace.is_zero() { libc::SIGKILL } else { signal };
        let _ = sys::signal_process(&running.pidfd, signal);
        let deadline = Instant::now() + grace;
        running.kill_at = Some(running.kill_at.map_or(deadline, |earlier| earlier.min(deadline)));
        self.set_mode(
            id,
            Mode::Stopping {
                name: name.to_owned(),
                attempt,
            },
        );
        Ok(None)
    }

    fn kill_overdue(&mut self) {
        let now = Instant::now();
        for running in self
            .containers
            .iter_mut()
            .filter_map(|container| container.running.as_mut())
        {
            if running.kill_at.is_some_and(|deadline| deadline <= now) {
                running.kill_at = None;
                let _ = sys::signal_process(&running.pidfd, libc::SIGKILL);
            }
        }
    }

    fn exec(&mut self, id: u64, call: ExecCall, fds: Vec<OwnedFd>) -> io::Result<()> {
        match self.start_command(id, call, fds) {
            Ok(terminal) => self.reply(id, &Reply::ExecStarted, terminal.into_iter().collect()),
            Err(refusal) => self.reply(id, &Reply::Refused { refusal }, Vec::new()),
        }
    }

    fn start_command(
        &mut self,
        id: u64,
        call: ExecCall,
        fds: Vec<OwnedFd>,
    ) -> Result<Option<OwnedFd>, Refusal> {
        if self.commands.len() >= COMMANDS_MAX {
            return Err(Refusal::TooMany);
        }
        let mut fds = fds.into_iter();
        let mut take = |wanted: bool| wanted.then(|| fds.next()).flatten();
        let streams = [take(call.stdin), take(call.stdout), take(call.stderr)];
        let group = self.group.container(&call.container);
        let place = self.place(&group);
        let running = self
            .containers
            .iter()
            .filter(|container| container.status.name == call.container)
            .find_map(|container| container.running.as_ref())
            .ok_or(Refusal::NotRunning)?;
        let mut identity = running.identity.clone();
        if call.tty && !identity.env.iter().any(|(name, _)| name == "TERM") {
            identity.env.push(("TERM".to_owned(), "xterm".to_owned()));
        }
        let command = Command {
            argv: &call.argv,
            streams,
            tty: call.tty,
            size: call.size,
        };
        let launched = launch::command(&place, &running.pidfd, &identity, command)?;
        self.commands.push(RunningCommand {
            pid: launched.pid,
            pidfd: launched.pidfd,
            client: id,
        });
        self.set_mode(id, Mode::Commanding { pid: launched.pid });
        match launched.outputs {
            Outputs::Terminal(master) => Ok(Some(master)),
            Outputs::Pipes { .. } | Outputs::Elsewhere => Ok(None),
        }
    }

    fn stop_sandbox(&mut self, id: u64) {
        self.mark_stopped();
        for running in self
            .containers
            .iter()
            .filter_map(|container| container.running.as_ref())
        {
            let _ = sys::signal_process(&running.pidfd, libc::SIGKILL);
        }
        if let Some(pause) = &self.namespaces.pause {
            pause.kill();
        }
        self.set_mode(id, Mode::StoppingSandbox);
        if !self.ending {
            self.answer_stopped_sandbox();
        }
    }

    /// Nothing starts here any more, and nobody outside is heard.
    fn mark_stopped(&mut self) {
        if !self.stopped {
            self.stopped = true;
            disconnect(&self.record);
            self.changed();
        }
    }

    fn is_quiet(&self) -> bool {
        self.commands.is_empty()
            && self.namespaces.pause.is_none()
            && self
                .containers
                .iter()
                .all(|container| container.running.is_none())
    }

    fn answer_stopped_sandbox(&mut self) {
        if self.is_quiet() {
            self.answer(|mode| *mode == Mode::StoppingSandbox, &Reply::Done);
        }
    }

    /// Replies to everyone who waits for this, and makes them idle again.
    fn answer(&mut self, waits: impl Fn(&Mode) -> bool, reply: &Reply) {
        let ids: Vec<u64> = self
            .clients
            .iter()
            .filter(|(_, client)| waits(&client.mode))
            .map(|(id, _)| *id)
            .collect();
        for id in ids {
            self.set_mode(id, Mode::Idle);
            if self.reply(id, reply, Vec::new()).is_err() {
                self.close(id);
            }
        }
    }

    /// Moves what a process printed into its log; false when nothing is left for now.
    fn read_some(&mut self, container: usize, output: usize) -> bool {
        let Some(running) = self
            .containers
            .get_mut(container)
            .and_then(|container| container.running.as_mut())
        else {
            return false;
        };
        let Some(source) = running.outputs.get_mut(output).filter(|output| !output.ended) else {
            return false;
        };
        match rustix::io::read(&source.fd, self.buffer.as_mut_slice()) {
            Ok(length) if length > 0 => {
                let stream = source.cutter.stream();
                let time = timestamp(SystemTime::now());
                let mut lines = Vec::new();
                // In pieces: each line gets a head, and a line may be as short as nothing.
                for piece in self.buffer[..length].chunks(PIECE_BYTES) {
                    let Some(source) = running.outputs.get_mut(output) else {
                        break;
                    };
                    lines.clear();
                    source.cutter.push(piece, &time, &mut lines);
                    running.append(&lines);
                }
                let lost = attached::tell(&mut running.attached, stream, &self.buffer[..length]);
                self.cut_off(lost);
                true
            }
            Err(rustix::io::Errno::AGAIN) => false,
            Err(rustix::io::Errno::INTR) => true,
            // End of file, or EIO from a terminal that nobody holds any more.
            _ => {
                source.ended = true;
                false
            }
        }
    }

    /// Something that watchers see: on disk first, then told.
    fn changed(&mut self) {
        if let Err(error) = self.save() {
            complain(format_args!("cannot write {STATE_FILE}: {error}"));
        }
        for client in self.clients.values_mut() {
            if let Mode::Watching { behind } = &mut client.mode {
                *behind = true;
            }
        }
        let ids: Vec<u64> = self.clients.keys().copied().collect();
        ids.into_iter().for_each(|id| self.catch_up(id));
    }

    /// Tells a watcher the newest state once it has taken the one before: a slow one skips, it never queues.
    fn catch_up(&mut self, id: u64) {
        let state = self.state();
        let Some(client) = self.clients.get_mut(&id) else {
            return;
        };
        if client.mode == (Mode::Watching { behind: true }) && !client.has_output() {
            client.mode = Mode::Watching { behind: false };
            if client.send(&Reply::State { state }, Vec::new()).is_err() {
                self.close(id);
            }
        }
    }

    fn state(&self) -> PodState {
        PodState {
            version: VERSION,
            shim_pid: std::process::id() as i32,
            shim_start_ticks: self.start_ticks,
            created_at: self.created_at,
            stopped: self.stopped,
            has_limits: true,
            containers: self
                .containers
                .iter()
                .map(|container| container.status.clone())
                .collect(),
        }
    }

    /// Not synced to the disk: it is of no use after the machine went down.
    fn save(&self) -> io::Result<()> {
        let staged = format!("{STATE_FILE}.new");
        fs::write(&staged, serde_json::to_vec(&self.state())?)?;
        fs::rename(staged, STATE_FILE)
    }
}
