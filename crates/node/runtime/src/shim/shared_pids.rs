//! One pid namespace for all containers of a pod (`shareProcessNamespace`): its first process, and the end of one container in it.
//!
//! ```text
//!   shim (host) ─┬─ pause        pid 1 inside: reaps orphans, sees nothing, can do nothing
//!                ├─ container a  its own mounts and cgroup; when this process ends,
//!                │    └─ …       the rest of its cgroup is killed
//!                └─ container b
//! ```
//!
//! The pause process is a copy of the shim from before the first container, so it knows no secret. It belongs to a user of the
//! pod, has no capability, sees the empty file system behind `/dev/shm`, and is closed to whoever looks at it through `/proc`.
//! It dies with the shim, and the namespace with it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::process::{DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions};
use rustix::thread::{CapabilitySet, CapabilitySets, Gid, LinkNameSpaceType, Uid};

use super::namespaces::{PATIENCE, hear, tell};
use super::rootfs::{Setup, what};
use crate::cgroup::Group;
use crate::config::IdRange;
use crate::sys::{self, Cloned};

/// Its name, as upstream's is known.
const NAME: &std::ffi::CStr = c"pause";

const NO_CAPABILITIES: CapabilitySets = CapabilitySets {
    effective: CapabilitySet::empty(),
    permitted: CapabilitySet::empty(),
    inheritable: CapabilitySet::empty(),
};

/// How long the shim waits for what a container leaves behind to die of SIGKILL. Whoever hangs in the kernel longer dies later.
const TREE_PATIENCE: Duration = Duration::from_secs(2);

/// The first process of a pod's shared pid namespace.
#[derive(Debug)]
pub(crate) struct Pause {
    pub(crate) pid: i32,
    pub(crate) pidfd: OwnedFd,
}

/// What the pause process joins, apart from its pid namespace.
pub(super) struct Home<'a> {
    pub(super) users: &'a OwnedFd,
    pub(super) network: Option<&'a OwnedFd>,
    pub(super) ipc: &'a OwnedFd,
    pub(super) uts: &'a OwnedFd,
    pub(super) mounts: &'a OwnedFd,
}

impl Pause {
    /// Makes the namespace and its first process, in the shim's cgroup.
    pub(super) fn start(home: &Home<'_>) -> Setup<Self> {
        let (mut ours, theirs) = what(UnixStream::pair(), || "cannot make a socket pair".to_owned())?;
        what(ours.set_read_timeout(Some(PATIENCE)), || {
            "cannot limit a wait".to_owned()
        })?;
        let cloned = sys::clone_process(libc::CLONE_NEWPID as u64, None);
        let cloned = what(cloned, || "cannot make a pid namespace".to_owned())?;
        let Cloned::Parent { pid, pidfd } = cloned else {
            drop(ours);
            sys::exit_now(pause(home, theirs));
        };
        drop(theirs);
        let pause = Self { pid, pidfd };
        hear(&mut ours).inspect_err(|_| pause.end())?;
        Ok(pause)
    }

    /// Kills it, and with it every process of the namespace.
    pub(crate) fn kill(&self) {
        let _ = sys::signal_process(&self.pidfd, libc::SIGKILL);
    }

    fn end(&self) {
        self.kill();
        let _ = rustix::process::waitpid(Pid::from_raw(self.pid), WaitOptions::empty());
    }
}

/// The whole life of the pause process; comes back only if it cannot begin.
fn pause(home: &Home<'_>, mut channel: UnixStream) -> i32 {
    let begun = settle(home, &channel).and_then(|()| tell(&mut channel));
    if let Err(message) = begun {
        let _ = channel.write_all(message.as_bytes());
        return 1;
    }
    // SAFETY: nothing but the loop follows, and no owner of a descriptor is dropped.
    if unsafe { sys::close_all_but(&[]) }.is_err() {
        return 1;
    }
    loop {
        sys::wait_for_signals();
    }
}

fn settle(home: &Home<'_>, channel: &UnixStream) -> Setup<()> {
    let failed = |step: &str| format!("the pod's first process cannot {step}");
    what(
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable),
        || failed("become undumpable"),
    )?;
    // Nobody inside can send it a signal that it has no handler for, and who ends without a parent is reaped by the kernel.
    sys::ignore_signals(&[libc::SIGCHLD]);
    sys::hide_arguments();
    what(rustix::thread::set_name(NAME), || failed("take its name"))?;
    let network = home.network.map(|network| (network, LinkNameSpaceType::Network));
    for (namespace, kind) in network.into_iter().chain([
        (home.ipc, LinkNameSpaceType::InterProcessCommunication),
        (home.uts, LinkNameSpaceType::HostNameAndNISDomainName),
        (home.mounts, LinkNameSpaceType::Mount),
        (home.users, LinkNameSpaceType::User),
    ]) {
        what(
            rustix::thread::move_into_link_name_space(namespace.as_fd(), Some(kind)),
            || failed(&format!("join the pod's {kind:?} namespace")),
        )?;
    }
    let nobody = IdRange::LEN - 1;
    let (user, group) = (Uid::from_raw(nobody), Gid::from_raw(nobody));
    what(rustix::thread::set_thread_groups(&[]), || {
        failed("leave its groups")
    })?;
    what(rustix::thread::set_thread_res_gid(group, group, group), || {
        failed("change its group")
    })?;
    what(rustix::thread::set_thread_res_uid(user, user, user), || {
        failed("change its user")
    })?;
    // Root of the host is no user that the kernel would take them from on its way out.
    what(rustix::thread::set_capabilities(None, NO_CAPABILITIES), || {
        failed("give up its capabilities")
    })?;
    what(rustix::thread::set_no_new_privs(true), || {
        failed("set no_new_privs")
    })?;
    what(
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)),
        || failed("be tied to its shim"),
    )?;
    // SAFETY: the standard streams and the channel are all that is used from here on, and this process ends by _exit or a
    // signal, so no owner drops a descriptor.
    what(unsafe { sys::close_all_but(&[channel.as_raw_fd()]) }, || {
        failed("close descriptors")
    })
}

/// What tells the processes of one container from the others in a shared pid namespace, once its first process is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MountNamespace(u64);

impl MountNamespace {
    pub(crate) fn of(pid: i32) -> io::Result<Self> {
        fs::metadata(format!("/proc/{pid}/ns/mnt")).map(|file| Self(file.ino()))
    }
}

/// Kills what the first process of a container has left behind and waits a moment for its end: by cgroup, and where there is
/// none by the mount namespace. A process that has made itself another mount namespace escapes the latter until the pod ends.
pub(crate) fn kill_rest(group: &Group, mounts: Option<MountNamespace>) -> io::Result<()> {
    match mounts {
        _ if group.can_kill() => group.kill_all(TREE_PATIENCE),
        Some(mounts) => kill_all_in(mounts),
        None => Ok(()),
    }
}

/// Looks again until nobody is left: whoever was forked during one look is there at the next.
fn kill_all_in(mounts: MountNamespace) -> io::Result<()> {
    let deadline = Instant::now() + TREE_PATIENCE;
    loop {
        let mut dying = Vec::new();
        for pid in processes_in(mounts)? {
            let Some(pid) = Pid::from_raw(pid) else { continue };
            let Ok(pidfd) = rustix::process::pidfd_open(pid, PidfdFlags::empty()) else {
                continue;
            };
            // The number may be somebody else's by now.
            if MountNamespace::of(pid.as_raw_nonzero().get()).is_ok_and(|found| found == mounts) {
                let _ = sys::signal_process(&pidfd, libc::SIGKILL);
                dying.push(pidfd);
            }
        }
        if dying.is_empty() {
            return Ok(());
        }
        for pidfd in dying {
            sys::wait_end(&pidfd, deadline)?;
        }
    }
}

fn processes_in(mounts: MountNamespace) -> io::Result<BTreeSet<i32>> {
    let pids = fs::read_dir("/proc")?
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    // A zombie has no namespaces any more.
    Ok(pids
        .filter(|pid| MountNamespace::of(*pid).is_ok_and(|found| found == mounts))
        .collect())
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_tree_is_found_by_its_mount_namespace_however_it_was_left() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        // The child that says its number has no parent any more and a session of its own.
        let script = "(setsid sh -c 'echo $$; exec sleep 1000' &); exec sleep 1000";
        let mut command = Command::new("unshare");
        let mut first = command
            .args(["-m", "sh", "-c", script])
            .stdout(Stdio::piped())
            .spawn()
            .expect("unshare");
        let mut line = String::new();
        let output = first.stdout.take().expect("piped");
        BufReader::new(output).read_line(&mut line).expect("a line");
        let orphan: i32 = line.trim().parse().expect("a pid");
        let mounts = MountNamespace::of(orphan).expect("it runs");
        assert_ne!(
            mounts,
            MountNamespace::of(std::process::id() as i32).expect("we run")
        );
        kill_rest(&Group::default(), Some(mounts)).expect("killed");
        assert!(processes_in(mounts).expect("readable").is_empty());
        assert!(!first.wait().expect("ended").success());
    }
}
