//! The shim: one small, single-threaded process per pod.
//!
//! The agent re-executes its own program once, as the [`zygote`], and has each shim forked from that, in the pod's directory, where
//! `sandbox.json` says what to make. A shim belongs to nobody; it takes a session and a cgroup of its own, makes the namespaces,
//! writes `state.json`, listens on `shim.sock` and says so in one line on its stdout. From then on it ends only by the agent's
//! `shutdown` or by SIGKILL, and with it end all processes of the pod.

mod accounts;
mod attached;
mod client;
mod complaint;
mod container;
mod cri_log;
mod identity;
mod launch;
mod mount_swap;
mod namespaces;
mod pod;
mod rootfs;
mod seccomp;
mod shared_pids;
mod zygote;

use std::env;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::net::UnixListener;
use std::process::ExitCode;

use rustix::fs::Mode;

use crate::cgroup;
use crate::netlink::Netlink;
use crate::protocol::{Greeting, RECORD_FILE, SOCKET_FILE, ZYGOTE_ARGUMENT};
use crate::status::SandboxRecord;
use crate::sys;

use namespaces::Namespaces;
use pod::Pod;
use rootfs::{Setup, what};
pub(crate) use rootfs::{attach, filesystem};

/// What upstream gives a pod's infrastructure (`PodInfraOOMAdj`).
const SHIM_OOM_SCORE_ADJ: &str = "-998";

/// What a terminal or a service manager stops processes with. Whoever stops a service stops all its processes; pods outlive it.
const IGNORED: [i32; 5] = [
    libc::SIGHUP,
    libc::SIGINT,
    libc::SIGQUIT,
    libc::SIGTERM,
    libc::SIGPIPE,
];

/// Becomes the process that the shims of pods are forked from, or in the end such a shim, if this process was started for it; `None`
/// otherwise.
///
/// The first thing `main` calls: no other thread may exist yet, and arguments are not parsed. `give_back_memory` makes the program's
/// allocator give freed memory back to the system: a shim idles for most of its life, and there is one for each pod.
pub fn shim_main_if_asked(give_back_memory: fn()) -> Option<ExitCode> {
    let asked = env::args_os()
        .nth(1)
        .is_some_and(|argument| argument == ZYGOTE_ARGUMENT);
    asked.then(|| zygote::detach(give_back_memory))
}

fn run(cgroups: &cgroup::Instance, give_back_memory: fn()) -> ExitCode {
    let pod = match prepare(cgroups, give_back_memory) {
        Ok(pod) => pod,
        Err(message) => {
            greet(&Greeting::Failed(message));
            return ExitCode::FAILURE;
        }
    };
    greet(&Greeting::Ready);
    // The agent reads no more; a later write must not fail on its closed pipe.
    if let Ok(null) = File::options().write(true).open("/dev/null") {
        let _ = sys::duplicate_onto(null, 1);
    }
    give_back_memory();
    match pod.serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complaint::complain(format_args!("the shim ends: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn greet(greeting: &Greeting) {
    let line = serde_json::to_string(greeting).unwrap_or_default();
    let mut stdout = io::stdout().lock();
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

fn prepare(cgroups: &cgroup::Instance, give_back_memory: fn()) -> Setup<Pod> {
    what(rustix::process::setsid(), || "cannot begin a session".to_owned())?;
    let this = Some(rustix::process::getpid());
    what(rustix::process::set_child_subreaper(this), || {
        "cannot become a subreaper".to_owned()
    })?;
    let _ = rustix::thread::set_name(c"hotmap-shim");
    rustix::process::umask(Mode::from(0o077));
    sys::ignore_signals(&IGNORED);
    let record = read_record()?;
    let group = cgroups.pod(&record.config.pod_uid);
    group.make_pod(&record.config.resources)?;
    // Whoever else is killed for memory: with the shim goes the whole pod. Nothing of the pod keeps this.
    let _ = fs::write("/proc/self/oom_score_adj", SHIM_OOM_SCORE_ADJ);
    let signals = what(sys::child_signals(), || "cannot receive signals".to_owned())?;
    let namespaces = Namespaces::create(&record)?;
    let finish = || {
        let _ = fs::remove_file(SOCKET_FILE);
        let listener = what(UnixListener::bind(SOCKET_FILE), || {
            format!("cannot listen on {SOCKET_FILE}")
        })?;
        what(listener.set_nonblocking(true), || {
            format!("cannot listen on {SOCKET_FILE}")
        })?;
        let pod_dir = what(env::current_dir(), || {
            "cannot name the pod's directory".to_owned()
        })?;
        let doors = (listener, signals);
        Pod::new(
            record.clone(),
            pod_dir,
            namespaces,
            group,
            doors,
            give_back_memory,
        )
    };
    finish().inspect_err(|_| disconnect(&record))
}

fn read_record() -> Setup<SandboxRecord> {
    let text = what(fs::read(RECORD_FILE), || format!("cannot read {RECORD_FILE}"))?;
    serde_json::from_slice(&text).map_err(|error| format!("cannot read {RECORD_FILE}: {error}"))
}

/// Removes the pod's links, if it has some; both ends go at once.
fn disconnect(record: &SandboxRecord) {
    let Some(network) = &record.network else { return };
    let host_link = &network.host_link;
    let removed = Netlink::open().and_then(|mut netlink| netlink.remove_link(host_link));
    if let Err(error) = removed {
        complaint::complain(format_args!("cannot remove the link {host_link}: {error}"));
    }
}
