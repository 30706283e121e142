//! Starting processes: containers, and commands in them.
//!
//! The child reports over a sequenced socket: its terminal if it has one, its groups, then a refusal, or nothing: the socket
//! closes with the exec, which is how the shim knows that the program runs.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::pipe::PipeFlags;
use rustix::pty::OpenptFlags;
use rustix::thread::ThreadNameSpaceType;

use super::identity::{self, Identity};
use super::mount_swap::BoundMount;
use super::namespaces::Namespaces;
use super::rootfs::{self, Setup, Sources, what};
use crate::cgroup::{Entrance, Group};
use crate::config::IdRange;
use crate::exec::TerminalSize;
use crate::protocol::{self, Refusal};
use crate::spec::{ContainerConfig, MountConfig, Stdin};
use crate::status::SandboxRecord;
use crate::sys::{self, Cloned};

/// A start that takes longer hangs on a dead disk or server, and is given up.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// A refusal's JSON is never longer.
const REPORT_BYTES_MAX: usize = 16 << 10;

/// The report that carries a terminal.
const TERMINAL_REPORT: &[u8] = b"t";

/// The first byte of a report that carries groups, four bytes each. A refusal begins with a brace.
const GROUPS_REPORT: u8 = b'g';

/// Groups in one report; whoever has more sends more of them.
const GROUPS_PER_REPORT: usize = 2_000;

/// In the words of whoever looks for the reason.
const NO_PROCESS: &str =
    "cannot start a process: the pod has as many as it may have (--pod-max-pids), or the machine has";

/// A process that runs its program.
pub(crate) struct Launched {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
    /// What the shim reads: stdout and stderr, or a terminal's master alone.
    pub(crate) outputs: Outputs,
    /// What a container was given to see.
    pub(crate) mounts: Vec<BoundMount>,
    /// The groups that it began with.
    pub(crate) groups: Vec<u32>,
}

/// The readable ends of a process's output.
pub(crate) enum Outputs {
    Pipes {
        /// The writable end, unless the process reads nothing.
        stdin: Option<OwnedFd>,
        stdout: OwnedFd,
        stderr: OwnedFd,
    },
    Terminal(OwnedFd),
    /// A command's streams belong to whoever asked for it.
    Elsewhere,
}

/// Where a pod keeps what a start needs.
pub(crate) struct Place<'a> {
    pub(crate) record: &'a SandboxRecord,
    pub(crate) namespaces: &'a Namespaces,
    /// The pod's directory on the host, which is the shim's working directory.
    pub(crate) pod_dir: &'a Path,
    pub(crate) group: &'a Group,
}

/// Starts a container in a new mount namespace: pid 1 of a new pid namespace, or one among others of the pod's or of the `target`
/// process.
pub(crate) fn container(
    place: &Place<'_>,
    config: &ContainerConfig,
    who: &Identity,
    target: Option<&OwnedFd>,
) -> Result<Launched, Refusal> {
    let setup = |message| Refusal::Setup { message };
    let layer = protocol::layer_dir(&config.name, config.attempt);
    let builder = || {
        std::fs::DirBuilder::new()
            .mode(0o700)
            .recursive(true)
            .create(&layer)
    };
    what(builder(), || {
        format!("cannot make the layer directory {}", layer.display())
    })
    .map_err(setup)?;
    let sources = Sources {
        mounts: rootfs::open_mounts(config, &place.namespaces.users).map_err(setup)?,
        shared_memory: place.namespaces.open_shared_memory().map_err(setup)?,
    };
    let bound = |(mount, (tree, _)): (&MountConfig, &(OwnedFd, bool))| BoundMount::of(&mount.target, tree);
    let mounts: Setup<Vec<_>> = config.mounts.iter().zip(&sources.mounts).map(bound).collect();
    let mounts = mounts.map_err(setup)?;
    let entrance = place.group.entrance().map_err(setup)?;
    let mut hidden = place.record.mask.clone();
    hidden.extend(place.pod_dir.parent().map(Path::to_owned));
    let owner = place.record.ids.base + config.user.uid;
    let (ours, theirs) = pipes(config, owner).map_err(setup)?;
    let (report, child_report) = report_pair().map_err(setup)?;
    let cloned = place.namespaces.clone_container(target, entrance.unified());
    let cloned = cloned.map_err(|error| match error.raw_os_error() {
        // The target dies, and takes its pid namespace along.
        Some(libc::ENOMEM | libc::ESRCH) if target.is_some() => Refusal::NotRunning,
        // The pod's first process dies, and its pid namespace takes no one any more.
        Some(libc::ENOMEM | libc::ESRCH) if place.namespaces.pause.is_some() => Refusal::Stopped,
        Some(libc::EAGAIN) => setup(NO_PROCESS.to_owned()),
        _ => setup(format!("cannot start a process: {error}")),
    })?;
    let Cloned::Parent { pid, pidfd } = cloned else {
        run_child(&child_report, || {
            let prepare = || -> Setup<()> {
                begin_limited(&entrance, who)?;
                // The modes of what is made for the container are meant as they are written.
                rustix::process::umask(Mode::empty());
                place.namespaces.join()?;
                what(rustix::process::chdir(&layer), || {
                    "cannot enter the layer directory".to_owned()
                })?;
                rootfs::enter(place.record, config, &sources, &hidden)?;
                connect_streams(theirs, place.record.ids, who, None, &child_report)
            };
            match prepare() {
                Ok(()) => who.run(&config.argv, place.namespaces.users.as_fd(), child_report.as_fd()),
                Err(message) => setup(message),
            }
        });
    };
    drop((child_report, theirs));
    let Reported { terminal, groups } = await_exec(&report, &pidfd)?;
    let outputs = match (ours, terminal) {
        (Some(pipes), _) => pipes,
        (None, Some(master)) => Outputs::Terminal(master),
        (None, None) => {
            return Err(Refusal::Setup {
                message: "the container sent no terminal".to_owned(),
            });
        }
    };
    Ok(Launched {
        pid,
        pidfd,
        outputs,
        mounts,
        groups,
    })
}

/// What a command is started with.
pub(crate) struct Command<'a> {
    pub(crate) argv: &'a [String],
    pub(crate) streams: [Option<OwnedFd>; 3],
    pub(crate) tty: bool,
    pub(crate) size: Option<TerminalSize>,
}

/// Starts a command in the namespaces of a container's first process.
pub(crate) fn command(
    place: &Place<'_>,
    container: &OwnedFd,
    who: &Identity,
    command: Command<'_>,
) -> Result<Launched, Refusal> {
    let setup = |message| Refusal::Setup { message };
    let entrance = place.group.entrance().map_err(setup)?;
    let streams = if command.tty {
        ChildStreams::Terminal
    } else {
        for stream in command.streams.iter().flatten() {
            // So that the command may open /dev/stdout. Sockets and files of a test refuse, which is fine.
            let _ = rustix::fs::fchown(
                stream,
                Some(rustix::fs::Uid::from_raw(place.record.ids.base + who.user.uid)),
                None,
            );
        }
        let null = || open_null().map_err(setup);
        let [stdin, stdout, stderr] = command.streams;
        ChildStreams::Given([
            stdin.map_or_else(null, Ok)?,
            stdout.map_or_else(null, Ok)?,
            stderr.map_or_else(null, Ok)?,
        ])
    };
    let (report, child_report) = report_pair().map_err(setup)?;
    let cloned = place.namespaces.clone_beside(container, entrance.unified());
    let cloned = cloned.map_err(|error| match error.raw_os_error() {
        // Its pid namespace takes no one any more.
        Some(libc::ENOMEM | libc::ESRCH) => Refusal::NotRunning,
        Some(libc::EAGAIN) => setup(NO_PROCESS.to_owned()),
        _ => setup(format!("cannot start a process: {error}")),
    })?;
    let Cloned::Parent { pid, pidfd } = cloned else {
        run_child(&child_report, || {
            let prepare = || -> Setup<()> {
                begin_limited(&entrance, who)?;
                let spaces = ThreadNameSpaceType::MOUNT
                    | ThreadNameSpaceType::NETWORK
                    | ThreadNameSpaceType::INTER_PROCESS_COMMUNICATION
                    | ThreadNameSpaceType::HOST_NAME_AND_NIS_DOMAIN_NAME;
                what(
                    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable),
                    || "cannot become undumpable".to_owned(),
                )?;
                what(
                    rustix::thread::move_into_thread_name_spaces(container.as_fd(), spaces),
                    || "cannot join the container".to_owned(),
                )?;
                connect_streams(streams, place.record.ids, who, command.size, &child_report)
            };
            match prepare() {
                Ok(()) => who.run(command.argv, place.namespaces.users.as_fd(), child_report.as_fd()),
                Err(message) => setup(message),
            }
        });
    };
    drop((child_report, streams));
    let Reported { terminal, groups } = await_exec(&report, &pidfd)?;
    let outputs = terminal.map_or(Outputs::Elsewhere, Outputs::Terminal);
    Ok(Launched {
        pid,
        pidfd,
        outputs,
        mounts: Vec::new(),
        groups,
    })
}

/// The first thing that a new process does, while it still is root of the host and sees the host's `/proc`.
fn begin_limited(entrance: &Entrance, who: &Identity) -> Setup<()> {
    what(entrance.enter_others(), || {
        "cannot put the process under its limits".to_owned()
    })?;
    match std::fs::write("/proc/self/oom_score_adj", who.oom_score_adj.to_string()) {
        // Whoever may not lower it runs with what it has: it is killed earlier than it should be, if ever.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        result => what(result, || "cannot set oom_score_adj".to_owned()),
    }
}

/// The child's whole life. A panic must not unwind into the shim's loop, of which this process is a copy.
fn run_child(report: &OwnedFd, child: impl FnOnce() -> Refusal) -> ! {
    let refusal = catch_unwind(AssertUnwindSafe(child)).unwrap_or_else(|_| Refusal::Setup {
        message: "the start of the process panicked".to_owned(),
    });
    let mut bytes = serde_json::to_vec(&refusal).unwrap_or_default();
    if bytes.len() > REPORT_BYTES_MAX {
        let message = "the reason is too long to tell".to_owned();
        bytes = serde_json::to_vec(&Refusal::Setup { message }).unwrap_or_default();
    }
    let _ = protocol::send_with_fds(report, &bytes, &[]);
    sys::exit_now(1)
}

enum ChildStreams {
    Given([OwnedFd; 3]),
    Terminal,
}

fn connect_streams(
    streams: ChildStreams,
    ids: IdRange,
    who: &Identity,
    size: Option<TerminalSize>,
    report: &OwnedFd,
) -> Setup<()> {
    match streams {
        ChildStreams::Given([stdin, stdout, stderr]) => {
            identity::take_streams([stdin.as_fd(), stdout.as_fd(), stderr.as_fd()], false)
        }
        ChildStreams::Terminal => {
            let slave = open_terminal(ids, who, size, report)?;
            identity::take_streams([slave.as_fd(); 3], true)
        }
    }
}

/// Opens a terminal of the container's own devpts, sends its master to the shim, and returns its other end.
fn open_terminal(
    ids: IdRange,
    who: &Identity,
    size: Option<TerminalSize>,
    report: &OwnedFd,
) -> Setup<OwnedFd> {
    let failed = || "cannot open a terminal".to_owned();
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let master = what(rustix::fs::open("/dev/pts/ptmx", flags, Mode::empty()), failed)?;
    what(rustix::pty::unlockpt(&master), failed)?;
    let slave = rustix::pty::ioctl_tiocgptpeer(
        &master,
        OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC,
    );
    let slave = what(slave, failed)?;
    let owner = rustix::fs::Uid::from_raw(ids.base + who.user.uid);
    what(rustix::fs::fchown(&slave, Some(owner), None), failed)?;
    if let Some(size) = size {
        let size = rustix::termios::Winsize {
            ws_row: size.rows,
            ws_col: size.columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        what(rustix::termios::tcsetwinsize(&master, size), failed)?;
    }
    what(
        protocol::send_with_fds(report, TERMINAL_REPORT, &[master.as_fd()]),
        failed,
    )?;
    Ok(slave)
}

/// The shim's ends and the child's streams.
fn pipes(config: &ContainerConfig, owner: u32) -> Setup<(Option<Outputs>, ChildStreams)> {
    if config.tty {
        return Ok((None, ChildStreams::Terminal));
    }
    let failed = || "cannot make a pipe".to_owned();
    let pipe = || what(rustix::pipe::pipe_with(PipeFlags::CLOEXEC), failed);
    let theirs = |end: &OwnedFd| {
        // So that the process may open /dev/stdout.
        what(
            rustix::fs::fchown(end, Some(rustix::fs::Uid::from_raw(owner)), None),
            failed,
        )
    };
    // Only our end: the process gets the blocking pipe it expects.
    let ours = |end: &OwnedFd| what(rustix::io::ioctl_fionbio(end, true), failed);
    let output = || -> Setup<(OwnedFd, OwnedFd)> {
        let (read, write) = pipe()?;
        ours(&read)?;
        theirs(&write)?;
        Ok((read, write))
    };
    let (stdin, child_stdin) = match config.stdin {
        Stdin::Empty => (None, open_null()?),
        Stdin::Open | Stdin::Once => {
            let (read, write) = pipe()?;
            ours(&write)?;
            theirs(&read)?;
            (Some(write), read)
        }
    };
    let (stdout, child_stdout) = output()?;
    let (stderr, child_stderr) = output()?;
    let ours = Outputs::Pipes {
        stdin,
        stdout,
        stderr,
    };
    Ok((
        Some(ours),
        ChildStreams::Given([child_stdin, child_stdout, child_stderr]),
    ))
}

fn open_null() -> Setup<OwnedFd> {
    let file = File::options().read(true).write(true).open("/dev/null");
    what(file, || "cannot open /dev/null".to_owned()).map(OwnedFd::from)
}

fn report_pair() -> Setup<(OwnedFd, OwnedFd)> {
    let pair = rustix::net::socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    );
    what(pair, || "cannot make a socket pair".to_owned())
}

/// The child's groups, in as many reports as they need. The shim reads while this writes.
pub(crate) fn tell_groups(report: BorrowedFd<'_>, groups: &[u32]) -> Setup<()> {
    for some in groups.chunks(GROUPS_PER_REPORT) {
        let numbers = some.iter().flat_map(|group| group.to_le_bytes());
        let bytes: Vec<u8> = std::iter::once(GROUPS_REPORT).chain(numbers).collect();
        what(protocol::send_with_fds(report, &bytes, &[]), || {
            "cannot tell the groups of the process".to_owned()
        })?;
    }
    Ok(())
}

/// What came before the exec.
struct Reported {
    terminal: Option<OwnedFd>,
    groups: Vec<u32>,
}

/// Waits for the exec.
fn await_exec(report: &OwnedFd, process: &OwnedFd) -> Result<Reported, Refusal> {
    let deadline = Instant::now() + START_PATIENCE;
    let (mut fds, mut groups) = (Vec::new(), Vec::new());
    let mut bytes = vec![0; REPORT_BYTES_MAX];
    let outcome = loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        match rustix::event::poll(&mut [PollFd::new(report, PollFlags::IN)], Some(&timeout)) {
            Ok(0) => {
                break Err(format!(
                    "the start took longer than {} s",
                    START_PATIENCE.as_secs()
                ));
            }
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => break Err(format!("cannot wait for the process: {error}")),
            Ok(_) => {}
        }
        match protocol::receive_with_fds(report, &mut bytes, &mut fds) {
            Ok(0) => {
                let terminal = fds.pop();
                return Ok(Reported { terminal, groups });
            }
            Ok(length) if &bytes[..length] == TERMINAL_REPORT => {}
            Ok(length) if bytes[0] == GROUPS_REPORT => {
                let (numbers, _) = bytes[1..length].as_chunks();
                groups.extend(numbers.iter().copied().map(u32::from_le_bytes));
            }
            Ok(length) => {
                let told = serde_json::from_slice(&bytes[..length]);
                return Err(told.unwrap_or(Refusal::Setup {
                    message: "the process sent nonsense".to_owned(),
                }));
            }
            Err(error) => break Err(format!("cannot hear from the process: {error}")),
        }
    };
    let _ = sys::signal_process(process, libc::SIGKILL);
    outcome.map_err(|message| Refusal::Setup { message })
}
