//! What is mounted into a container: volumes, whole or by subPath.

use std::{
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
    sync::Arc,
};

use hotmap_runtime::MountConfig;
use hotmap_volume::{Directory, Ownership, PayloadPath};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, mkdirat, openat2};
use tokio::task::spawn_blocking;

use super::Shared;
use crate::{
    events::Subject,
    pod::{Container, Pod, Volume, VolumeMount},
    pod_socket, storage, termination_message,
    volumes::PlacementError,
};

/// Descriptors that must stay open until the container has its mounts.
pub(crate) type Held = Vec<OwnedFd>;

/// Why a mount cannot be made, in the kubelet's words where it has some.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MountError {
    #[error("cannot find volume {volume:?} to mount into container {container:?}")]
    NoVolume { volume: String, container: String },
    #[error(
        "failed to prepare subPath {sub_path:?} for volumeMount {volume:?} of container {container:?}: {source}"
    )]
    SubPath {
        volume: String,
        container: String,
        sub_path: String,
        source: io::Error,
    },
    #[error("failed to make the mount point of volumeMount {volume:?} of container {container:?}: {source}")]
    Point {
        volume: String,
        container: String,
        source: io::Error,
    },
    #[error("MountVolume.SetUp failed for volume {volume:?} : {source}")]
    Placement { volume: String, source: PlacementError },
    #[error("cannot make the file for the termination message of container {container:?}: {source}")]
    TerminationMessage { container: String, source: io::Error },
    #[error("cannot give volumes to a pod without host ids: {0}")]
    Ids(String),
}

/// Prepares every mount of a container; file system work happens on a blocking thread.
pub(super) async fn prepare(
    shared: Arc<Shared>,
    pod: Arc<Pod>,
    container: Container,
    attempt: u32,
) -> Result<(Vec<MountConfig>, Held), MountError> {
    let ids = shared
        .runtime
        .reserve_ids(&pod.metadata.uid)
        .await
        .map_err(|error| MountError::Ids(super::printed(&error)))?;
    let owner = Ownership {
        uid: ids.base,
        gid: ids.base,
    };
    let fs_group = pod
        .spec
        .security_context
        .fs_group
        .and_then(|group| ids.host_id(group));
    let work = move || {
        let mut held = Held::new();
        let mut mounts = Vec::new();
        for mount in &container.volume_mounts {
            let place = Place {
                shared: &shared,
                pod: &pod,
                container: &container,
                owner,
                fs_group,
            };
            mounts.push(place.mount(mount, &mut held)?);
        }
        mounts.extend(agent_socket(&shared, &pod, &container));
        mounts.extend(message_file(&shared, &pod, &container, attempt, owner)?);
        // The outer mount has to stand before what is mounted below it.
        mounts.sort_by(|one, two| one.target.cmp(&two.target));
        Ok((mounts, held))
    };
    spawn_blocking(work)
        .await
        .expect("preparing mounts does not panic")
}

/// The directory of the agent's socket, unless the container has something of its own there or around it.
fn agent_socket(shared: &Shared, pod: &Pod, container: &Container) -> Option<MountConfig> {
    let target = Path::new(pod_socket::DIRECTORY_IN_PODS);
    let own = container
        .volume_mounts
        .iter()
        .map(|mount| Path::new(&mount.mount_path));
    // `/var/run` is `/run` on most hosts.
    let own = own.map(|path| {
        path.strip_prefix("/var/run")
            .map_or(path.to_owned(), |below| Path::new("/run").join(below))
    });
    if own
        .into_iter()
        .any(|path| target.starts_with(&path) || path.starts_with(target))
    {
        return None;
    }
    Some(MountConfig {
        source: shared.sockets.mounted(&pod.metadata.uid)?,
        target: target.to_owned(),
        read_only: true,
        id_mapped: false,
    })
}

/// The file for the termination message, unless the container wants none or has something of its own there.
fn message_file(
    shared: &Shared,
    pod: &Pod,
    container: &Container,
    attempt: u32,
    owner: Ownership,
) -> Result<Option<MountConfig>, MountError> {
    let target = Path::new("/").join(&container.termination_message_path);
    let mut own = container.volume_mounts.iter();
    if target == Path::new("/") || own.any(|mount| Path::new(&mount.mount_path) == target) {
        return Ok(None);
    }
    let directory = shared.placement.messages(&pod.metadata.uid);
    let made = termination_message::make(&directory, &container.name, attempt, owner);
    let source = made.map_err(|source| MountError::TerminationMessage {
        container: container.name.clone(),
        source,
    })?;
    Ok(Some(MountConfig {
        source,
        target,
        read_only: false,
        id_mapped: false,
    }))
}

struct Place<'a> {
    shared: &'a Shared,
    pod: &'a Pod,
    container: &'a Container,
    owner: Ownership,
    fs_group: Option<u32>,
}

impl Place<'_> {
    fn mount(&self, mount: &VolumeMount, held: &mut Held) -> Result<MountConfig, MountError> {
        let volume = self
            .pod
            .spec
            .volumes
            .iter()
            .find(|volume| volume.name == mount.name);
        let volume = volume.ok_or_else(|| MountError::NoVolume {
            volume: mount.name.clone(),
            container: self.container.name.clone(),
        })?;
        let path = self.host_path(volume, held)?;
        self.make_inner_points(volume, &path, mount)?;
        let source = if mount.sub_path.is_empty() {
            path
        } else {
            self.sub_path(&path, mount, held)?
        };
        Ok(MountConfig {
            source,
            target: PathBuf::from(&mount.mount_path),
            read_only: mount.read_only || volume.is_projected(),
            id_mapped: false,
        })
    }

    fn host_path(&self, volume: &Volume, held: &mut Held) -> Result<PathBuf, MountError> {
        let uid = &self.pod.metadata.uid;
        let not_placed = |source| MountError::Placement {
            volume: volume.name.clone(),
            source,
        };
        if let Some(source) = &volume.empty_dir {
            let made = self.shared.placement.empty_dir(
                uid,
                &volume.name,
                source,
                storage::memory_volume_bytes(self.pod, source),
                self.owner,
                self.fs_group,
            );
            return made.map_err(not_placed);
        }
        if let Some(source) = &volume.host_path {
            let found = self.shared.placement.host_path(source).map_err(not_placed)?;
            if let Some(closed) = &found.closed_above {
                let message = format!(
                    "volume {:?}: the pod is shown {}, although {} is closed to other users of this host",
                    volume.name,
                    source.path,
                    closed.display()
                );
                let subject = Subject::pod(self.pod);
                self.shared.recorder.warning(subject, "HostPathExposed", message);
            }
            let path = pinned(&found.pinned);
            held.push(found.pinned);
            return Ok(path);
        }
        Ok(self.shared.volumes.path(uid, &volume.name))
    }

    /// A mount below a read-only volume needs its mount point inside that volume.
    fn make_inner_points(&self, volume: &Volume, path: &Path, mount: &VolumeMount) -> Result<(), MountError> {
        if !volume.is_projected() || !mount.sub_path.is_empty() {
            return Ok(());
        }
        for inner in &self.container.volume_mounts {
            let Ok(below) = Path::new(&inner.mount_path).strip_prefix(&mount.mount_path) else {
                continue;
            };
            if below.as_os_str().is_empty() {
                continue;
            }
            let failed = |source| MountError::Point {
                volume: inner.name.clone(),
                container: self.container.name.clone(),
                source,
            };
            let point: PayloadPath = below
                .to_string_lossy()
                .parse()
                .map_err(|error| failed(io::Error::other(error)))?;
            Directory::open(path)
                .and_then(|directory| directory.create_directories(&point))
                .map_err(failed)?;
        }
        Ok(())
    }

    /// Pins what the sub-path shows now, links inside the volume followed and none out of it; a missing one becomes a
    /// directory, as upstream.
    fn sub_path(&self, volume: &Path, mount: &VolumeMount, held: &mut Held) -> Result<PathBuf, MountError> {
        let failed = |source: io::Error| MountError::SubPath {
            volume: mount.name.clone(),
            container: self.container.name.clone(),
            sub_path: mount.sub_path.clone(),
            source,
        };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let directory = openat2(
            CWD,
            volume,
            OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
            ResolveFlags::empty(),
        )
        .map_err(|error| failed(error.into()))?;
        let open = |directory: &OwnedFd| {
            openat2(
                directory,
                &mount.sub_path,
                OFlags::PATH | OFlags::CLOEXEC,
                Mode::empty(),
                resolve,
            )
        };
        let found = match open(&directory) {
            Err(rustix::io::Errno::NOENT) => {
                self.make_sub_path(&directory, &mount.sub_path).map_err(failed)?;
                open(&directory)
            }
            other => other,
        };
        let found = found.map_err(|error| failed(error.into()))?;
        let path = pinned(&found);
        held.push(found);
        Ok(path)
    }

    fn make_sub_path(&self, volume: &OwnedFd, sub_path: &str) -> io::Result<()> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let mut at = volume.try_clone()?;
        for element in Path::new(sub_path).components() {
            match mkdirat(&at, element.as_os_str(), Mode::from_raw_mode(0o755)) {
                Ok(()) => {
                    let (uid, gid) = (self.owner.uid, self.fs_group.unwrap_or(self.owner.gid));
                    let owner = (rustix::fs::Uid::from_raw(uid), rustix::fs::Gid::from_raw(gid));
                    rustix::fs::chownat(
                        &at,
                        element.as_os_str(),
                        Some(owner.0),
                        Some(owner.1),
                        rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
                    )?;
                }
                Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            at = openat2(
                &at,
                element.as_os_str(),
                OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
                resolve,
            )?;
        }
        Ok(())
    }
}

/// A path for the shim that leads to exactly this.
fn pinned(what: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/{}/fd/{}", std::process::id(), what.as_raw_fd()))
}
