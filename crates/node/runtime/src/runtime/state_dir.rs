//! The state directory as a whole: made, read, and taken away with everything that it stands for.

use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::addresses::Addresses;
use super::cleanup;
use super::instance::{self, Instance};
use super::pod_network;
use super::pods::Pod;
use super::removal::remove_tree;
use super::validate;
use crate::config::RuntimeConfig;
use crate::error::{OpenError, PurgeError};
use crate::status::PodState;
use crate::sys;

pub(crate) fn require_root_and_kernel() -> Result<(), OpenError> {
    let uid = rustix::process::geteuid().as_raw();
    if uid != 0 {
        return Err(OpenError::NotRoot { uid });
    }
    // Every kernel that has cgroup.kill (5.14) has the other calls that are used; mount_setattr is the youngest to probe for.
    let probe = fs::File::open("/proc/self").map_err(|_| OpenError::Unsupported {
        what: "no /proc".to_owned(),
    })?;
    match sys::mount_setattr(&probe, &sys::MountChange::default()) {
        Err(error) if error.raw_os_error() == Some(Errno::NOSYS.raw_os_error()) => {
            Err(OpenError::Unsupported {
                what: "no mount_setattr, which Linux has since 5.12".to_owned(),
            })
        }
        _ => Ok(()),
    }
}

/// Makes the directory, and its path one that a shim can compare.
pub(crate) fn prepare(config: &mut RuntimeConfig) -> Result<(), OpenError> {
    let dir = config.state_dir.clone();
    let prepare = || -> io::Result<PathBuf> {
        fs::DirBuilder::new().mode(0o700).recursive(true).create(&dir)?;
        rustix::fs::chmod(&dir, rustix::fs::Mode::from(0o700))?;
        fs::canonicalize(&dir)
    };
    config.state_dir = prepare().map_err(|source| OpenError::State {
        path: dir.clone(),
        source,
    })?;
    Ok(())
}

pub(crate) fn read_pods(state_dir: &Path) -> Result<Vec<(String, Pod)>, OpenError> {
    let failed = |source| OpenError::State {
        path: state_dir.to_owned(),
        source,
    };
    let mut pods = Vec::new();
    for entry in fs::read_dir(state_dir).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let Ok(pod_uid) = entry.file_name().into_string() else {
            continue;
        };
        if !entry.path().is_dir() || validate::pod_uid(&pod_uid).is_err() {
            continue;
        }
        match Pod::read(&entry.path()) {
            Some(pod) => pods.push((pod_uid, pod)),
            // The agent died between making the directory and writing into it.
            None => remove_tree(&entry.path()).map_err(failed)?,
        }
    }
    pods.sort_by(|(left, _), (right, _)| left.cmp(right));
    Ok(pods)
}

/// Where the turn of addresses is kept.
pub(crate) fn addresses_path(state_dir: &Path) -> PathBuf {
    state_dir.join("addresses.json")
}

/// What was kept of it; one that cannot be read is as good as none, for it decides nothing but the order.
pub(crate) fn read_addresses(state_dir: &Path) -> Option<Addresses> {
    serde_json::from_slice(&fs::read(addresses_path(state_dir)).ok()?).ok()
}

/// Pods of an earlier boot have no process any more; but a boot id may be injected, and then theirs must end.
pub(crate) fn remove_stale(config: &RuntimeConfig, instance: Option<&Instance>) -> Result<(), OpenError> {
    let stale = || -> io::Result<()> {
        kill_all(config, &config.state_dir, instance)?;
        cleanup::remove_cgroups(&config.instance_id, None)?;
        pod_network::remove(&config.instance_id)?;
        for entry in fs::read_dir(&config.state_dir)? {
            let path = entry?.path();
            if path.is_dir() {
                remove_tree(&path)?;
            }
        }
        Ok(())
    };
    stale().map_err(|source| OpenError::State {
        path: config.state_dir.clone(),
        source,
    })
}

fn kill_all(config: &RuntimeConfig, state_dir: &Path, instance: Option<&Instance>) -> io::Result<()> {
    let pods = read_pods(state_dir).unwrap_or_default();
    let states: Vec<PodState> = pods.into_iter().filter_map(|(_, pod)| pod.state).collect();
    cleanup::kill_instance(&config.instance_id, &states, |id| {
        instance.is_some_and(|instance| instance.owns_id(id))
    })
}

/// Ends and removes everything of an instance, in the order in which one holds the other.
pub(crate) fn purge(config: &RuntimeConfig) -> Result<(), PurgeError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| PurgeError::Files { path, source }
    };
    let state_dir = match fs::canonicalize(&config.state_dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => config.state_dir.clone(),
        result => result.map_err(failed(&config.state_dir))?,
    };
    // A record that cannot be read stops nobody from purging: processes are found by their cgroup and shims by their states.
    let instance = Instance::read(&state_dir).unwrap_or_default();
    kill_all(config, &state_dir, instance.as_ref()).map_err(|source| match source.kind() {
        io::ErrorKind::TimedOut => PurgeError::Processes,
        _ => failed(&state_dir)(source),
    })?;
    cleanup::remove_cgroups(&config.instance_id, None).map_err(failed(Path::new("cgroup")))?;
    pod_network::remove(&config.instance_id).map_err(PurgeError::Links)?;
    instance::release(&state_dir).map_err(failed(Path::new("/run/hotmap")))?;
    remove_tree(&state_dir).map_err(failed(&state_dir))
}
