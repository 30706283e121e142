//! Changing what a mount of a running container shows.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use super::{Connection, REPLY_PATIENCE, Runtime};
use crate::error::SwapError;
use crate::protocol::{Call, Refusal, Reply, SwapCall, SwapOutcome};

/// What a mount of a container shall show from now on.
#[derive(Debug, Clone, Copy)]
pub struct MountSwap<'a> {
    /// The container.
    pub container: &'a str,
    /// The attempt that has the mount; a later one is left alone.
    pub attempt: u32,
    /// The path inside, as [`ContainerConfig::mounts`](crate::ContainerConfig::mounts) named it.
    pub target: &'a Path,
    /// What it shows, opened with `O_PATH`: a file where there was a file, a directory where there was a directory.
    pub source: &'a OwnedFd,
    /// Whether it is read-only inside.
    pub read_only: bool,
}

/// What came of a [`MountSwap`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swapped {
    /// It showed that already.
    Unchanged,
    /// It shows that since a moment ago.
    Changed {
        /// Whether who watches its directory with inotify was told: `MODIFY` and `CLOSE_WRITE` with the name of a file, `ATTRIB`
        /// with that of a directory. Nobody can be where the mount lies inside another volume.
        watchers_told: bool,
    },
}

/// Swaps mounts in the containers of one pod, one after the other, over a connection of its own.
///
/// Inside there is no moment without the file: the new one is mounted beneath the old one, which then goes. Descriptors that
/// are open keep what they were opened on. Wants Linux 6.5. The number of mounts stays the same, whatever came between.
#[derive(Debug)]
pub struct MountSwaps {
    connection: Connection,
    /// What this connection has swapped. Who was here before may have died midway.
    verified: BTreeSet<(String, u32, PathBuf)>,
}

impl Runtime {
    /// Connects to the pod's shim for swaps of mounts.
    ///
    /// # Errors
    /// [`SwapError::NotRunning`] and [`SwapError::Shim`].
    pub async fn mount_swaps(&self, pod_uid: &str) -> Result<MountSwaps, SwapError> {
        if !self.is_attached(pod_uid) {
            return Err(SwapError::NotRunning);
        }
        let connection = Connection::open(&self.pod_dir(pod_uid)).await;
        Ok(MountSwaps {
            connection: connection.map_err(SwapError::Shim)?,
            verified: BTreeSet::new(),
        })
    }
}

impl MountSwaps {
    /// Makes a mount show something else. Showing the same again is fine.
    ///
    /// # Errors
    /// [`SwapError`]; what the container sees is then what it saw before. After [`SwapError::Shim`] the connection is of no use
    /// any more. A call that is dropped halfway breaks it, too.
    pub async fn swap(&mut self, swap: MountSwap<'_>) -> Result<Swapped, SwapError> {
        let place = (swap.container.to_owned(), swap.attempt, swap.target.to_owned());
        let call = Call::SwapMount(SwapCall {
            name: swap.container.to_owned(),
            attempt: swap.attempt,
            target: swap.target.to_owned(),
            read_only: swap.read_only,
            verify: !self.verified.contains(&place),
        });
        let reply = self.connection.call(call, std::slice::from_ref(swap.source));
        let reply = tokio::time::timeout(REPLY_PATIENCE, reply).await;
        match reply
            .map_err(io::Error::from)
            .flatten()
            .map_err(SwapError::Shim)?
        {
            Reply::Swapped(outcome) => {
                self.verified.insert(place);
                Ok(match outcome {
                    SwapOutcome::Unchanged => Swapped::Unchanged,
                    SwapOutcome::Swapped { is_told } => Swapped::Changed {
                        watchers_told: is_told,
                    },
                })
            }
            Reply::Refused { refusal } => Err(match refusal {
                Refusal::NotRunning | Refusal::Stopped => SwapError::NotRunning,
                Refusal::Unsupported => SwapError::OldShim,
                Refusal::Unavailable { message } => SwapError::Unavailable(message),
                Refusal::Setup { message } | Refusal::Invalid { message } => SwapError::Failed(message),
                refusal => SwapError::Failed(format!("refused: {refusal:?}")),
            }),
            _ => Err(SwapError::Shim(io::ErrorKind::InvalidData.into())),
        }
    }
}
