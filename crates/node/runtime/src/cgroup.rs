//! One cgroup v2 directory per container and shim: `<mount>/hotmap-<instance>/<pod uid>/<name>`.
//!
//! They carry no controller. They are there to name processes, to kill them as one (`cgroup.kill`, Linux 5.14) and to say
//! when none is left. Where cgroup v2 is not mounted or not writable there are none, and a container ends by the
//! death of its pid namespace's first process alone.

use std::fs;
use std::io::{self, Read, Seek};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use crate::mountinfo;

/// The cgroup of the shim itself, beside its containers'. No container name has an underscore.
pub(crate) const SHIM_GROUP: &str = "_shim";

/// The directory of an instance, whether or not it exists; `None` without cgroup v2.
pub(crate) fn instance_dir(instance_id: &str) -> Option<PathBuf> {
    let mounts = mountinfo::current().ok()?;
    let mount = mounts.into_iter().rfind(|mount| mount.fs_type == "cgroup2")?;
    Some(mount.target.join(format!("hotmap-{instance_id}")))
}

/// The directory of a pod, created; `None` where that cannot be.
pub(crate) fn create_pod_dir(instance_id: &str, pod_uid: &str) -> Option<PathBuf> {
    let dir = instance_dir(instance_id)?.join(pod_uid);
    fs::create_dir_all(&dir).ok().map(|()| dir)
}

/// Kills every process in a cgroup and below, and waits until the kernel says that none is left.
pub(crate) fn kill_all(dir: &Path, patience: Duration) -> io::Result<()> {
    match fs::write(dir.join("cgroup.kill"), "1") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        result => result?,
    }
    wait_empty(dir, patience)
}

/// Waits until `cgroup.events` says that no process is left; `TimedOut` otherwise.
fn wait_empty(dir: &Path, patience: Duration) -> io::Result<()> {
    let deadline = Instant::now() + patience;
    let mut events = match fs::File::open(dir.join("cgroup.events")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        result => result?,
    };
    loop {
        let mut text = String::new();
        events.rewind()?;
        events.read_to_string(&mut text)?;
        if !text.lines().any(|line| line == "populated 1") {
            return Ok(());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // The kernel marks the file as changed with POLLPRI.
        let mut poll = [PollFd::from_borrowed_fd(events.as_fd(), PollFlags::PRI)];
        let left = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        rustix::event::poll(&mut poll, Some(&left))?;
    }
}

/// Removes a cgroup and those below it. Processes must be gone; one that is not there is fine.
pub(crate) fn remove(dir: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        result => result?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path())?;
        }
    }
    match fs::remove_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// How many times the kernel's out-of-memory killer ended a process here; 0 without the memory controller.
pub(crate) fn oom_kills(dir: &Path) -> u64 {
    let text = fs::read_to_string(dir.join("memory.events")).unwrap_or_default();
    let count = text
        .lines()
        .find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok());
    count.unwrap_or(0)
}
