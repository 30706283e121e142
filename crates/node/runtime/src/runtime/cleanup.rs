//! Taking away what a shim can no longer take away itself.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags};

use super::removal::remove_tree;
use crate::cgroup;
use crate::config::InstanceId;
use crate::status::PodState;
use crate::sys;

/// How long a process may take to die of SIGKILL.
pub(crate) const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// Whether the shim of this state still runs: a reused pid has another start time.
pub(crate) fn shim_runs(state: &PodState) -> bool {
    let alive = sys::start_ticks(state.shim_pid).is_ok_and(|ticks| ticks == state.shim_start_ticks);
    alive && !is_zombie(state.shim_pid)
}

fn is_zombie(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ")
        .is_some_and(|(_, rest)| rest.starts_with('Z'))
}

/// Kills a pod's shim and every process of its user namespace, by cgroup where there is one and by their id maps in any
/// case, and waits for their end.
pub(crate) fn kill_pod(
    instance_id: &InstanceId,
    pod_uid: &str,
    state: Option<&PodState>,
    owns_id: impl Fn(u32) -> bool,
) -> io::Result<()> {
    cgroup::Instance::find(instance_id.as_str())
        .pod(pod_uid)
        .kill_all(KILL_PATIENCE)?;
    let mut dying = Vec::new();
    if let Some(state) = state.filter(|state| shim_runs(state)) {
        dying.extend(kill(state.shim_pid));
    }
    dying.extend(kill_by_id_map(owns_id)?);
    wait_all(dying)
}

/// Kills every process of an instance.
pub(crate) fn kill_instance(
    instance_id: &InstanceId,
    states: &[PodState],
    owns_id: impl Fn(u32) -> bool,
) -> io::Result<()> {
    cgroup::Instance::find(instance_id.as_str())
        .whole()
        .kill_all(KILL_PATIENCE)?;
    let mut dying: Vec<OwnedFd> = states
        .iter()
        .filter(|state| shim_runs(state))
        .filter_map(|state| kill(state.shim_pid))
        .collect();
    dying.extend(kill_by_id_map(owns_id)?);
    wait_all(dying)
}

/// A process in a user namespace of ours has a map that begins with one of our ids, however it changed since.
fn kill_by_id_map(owns_id: impl Fn(u32) -> bool) -> io::Result<Vec<OwnedFd>> {
    let mut dying = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let Ok(entry) = entry else { continue };
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
            continue;
        };
        let map = fs::read_to_string(entry.path().join("uid_map")).unwrap_or_default();
        let base = map
            .split_ascii_whitespace()
            .nth(1)
            .and_then(|base| base.parse().ok());
        if base.is_some_and(&owns_id) {
            dying.extend(kill(pid));
        }
    }
    Ok(dying)
}

fn kill(pid: i32) -> Option<OwnedFd> {
    let pidfd = rustix::process::pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
    sys::signal_process(&pidfd, libc::SIGKILL).ok()?;
    Some(pidfd)
}

fn wait_all(dying: Vec<OwnedFd>) -> io::Result<()> {
    let deadline = Instant::now() + KILL_PATIENCE;
    for pidfd in dying {
        sys::wait_end(&pidfd, deadline)?;
    }
    Ok(())
}

/// Removes a pod's cgroups; its processes must be gone.
pub(crate) fn remove_cgroups(instance_id: &InstanceId, pod_uid: Option<&str>) -> io::Result<()> {
    let instance = cgroup::Instance::find(instance_id.as_str());
    pod_uid
        .map_or_else(|| instance.whole(), |pod_uid| instance.pod(pod_uid))
        .remove()
}

/// Removes what is in a directory but one file; fine if there is no directory.
pub(crate) fn remove_all_but(dir: &Path, kept: &str) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name() == kept {
            continue;
        }
        if entry.file_type()?.is_dir() {
            remove_tree(&entry.path())?;
        } else {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}
