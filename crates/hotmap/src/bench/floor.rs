//! What the bare system calls cost on this machine: no server can be faster.

use std::{
    fs::{self, File},
    io::{self, Write},
    mem::MaybeUninit,
    os::unix::fs::{FileExt, symlink},
    path::{Path, PathBuf},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::Context;
use rustix::fs::inotify;
use serde::Serialize;

use super::statistics::Summary;

const SYNC_ROUNDS: usize = 200;
const SYNC_BYTES: usize = 4096;
/// The file is written in full first, so that no round pays for its growth; the store does not either.
const SYNC_FILE_BYTES: u64 = 1 << 20;
const PUBLISH_ROUNDS: usize = 1_000;
const PUBLISH_BYTES: usize = 1024;
const TMPFS: &str = "/dev/shm";
const TMPFS_MAGIC: i64 = 0x0102_1994;

/// The floors.
#[derive(Debug, Serialize)]
pub(super) struct Floors {
    /// Write 4 KiB and `fdatasync`, in the file system of the store.
    pub(super) fdatasync: Summary,
    /// The store's directory is a tmpfs, where `fdatasync` costs nothing: writes look faster than they are.
    pub(super) fdatasync_on_tmpfs: bool,
    /// Directory, file of 1 KiB, link, rename, on tmpfs; until a thread woken by inotify has read the file.
    pub(super) publish: Summary,
    /// Clone, restrict, mount beneath, unmount the top: what a live subPath mount costs at least. Root only, Linux 6.5.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mount_swap: Option<Summary>,
}

/// Measures them. Blocking: takes a few seconds on a slow disk.
pub(super) fn measure(data_dir: &Path) -> anyhow::Result<Floors> {
    let fdatasync =
        fdatasync(data_dir).with_context(|| format!("cannot measure fdatasync in {}", data_dir.display()))?;
    let publish = publish().context("cannot measure rename and inotify")?;
    let summary = |samples| Summary::of(samples).context("no samples");
    Ok(Floors {
        fdatasync: summary(fdatasync)?,
        fdatasync_on_tmpfs: is_tmpfs(data_dir)?,
        publish: summary(publish)?,
        // A machine where that cannot be done has no such mounts either.
        mount_swap: hotmap_runtime::bare_mount_swaps(PUBLISH_ROUNDS)
            .ok()
            .and_then(Summary::of),
    })
}

fn is_tmpfs(directory: &Path) -> io::Result<bool> {
    // The type's width differs between architectures; the value does not.
    #[allow(clippy::unnecessary_cast)]
    Ok(rustix::fs::statfs(directory)?.f_type as i64 == TMPFS_MAGIC)
}

fn fdatasync(data_dir: &Path) -> io::Result<Vec<Duration>> {
    let file = tempfile::tempfile_in(data_dir)?;
    file.write_all_at(&vec![1; SYNC_FILE_BYTES as usize], 0)?;
    file.sync_all()?;
    let mut samples = Vec::with_capacity(SYNC_ROUNDS);
    for round in 0..SYNC_ROUNDS {
        let page = [round as u8; SYNC_BYTES];
        let start = Instant::now();
        file.write_all_at(&page, (round * SYNC_BYTES) as u64 % SYNC_FILE_BYTES)?;
        file.sync_data()?;
        samples.push(start.elapsed());
    }
    Ok(samples)
}

fn publish() -> io::Result<Vec<Duration>> {
    let parent = if Path::new(TMPFS).is_dir() {
        PathBuf::from(TMPFS)
    } else {
        std::env::temp_dir()
    };
    let volume = tempfile::Builder::new()
        .prefix("hotmap-bench-")
        .tempdir_in(parent)?;
    let inotify = inotify::init(inotify::CreateFlags::CLOEXEC)?;
    inotify::add_watch(&inotify, volume.path(), inotify::WatchFlags::MOVED_TO)?;
    let content = volume.path().join("..data/content");
    let (seen, arrivals) = mpsc::channel();
    let reader = thread::spawn(move || -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(inotify, &mut buffer);
        for _ in 0..PUBLISH_ROUNDS {
            events.next()?;
            let bytes = fs::read(&content)?;
            let now = Instant::now();
            if seen.send((now, bytes.first().copied())).is_err() {
                break;
            }
        }
        Ok(())
    });
    let mut samples = Vec::with_capacity(PUBLISH_ROUNDS);
    for round in 0..PUBLISH_ROUNDS {
        let start = Instant::now();
        swap_in(volume.path(), round)?;
        // A closed channel means that the reader failed: its error is told below.
        let Ok((arrival, first)) = arrivals.recv() else {
            break;
        };
        if first != Some(round as u8) {
            return Err(io::Error::other(
                "the reader saw another payload than the one just published",
            ));
        }
        samples.push(arrival - start);
        fs::remove_dir_all(volume.path().join(directory_name(round)))?;
    }
    reader
        .join()
        .map_err(|_| io::Error::other("the reader panicked"))??;
    Ok(samples)
}

fn swap_in(volume: &Path, round: usize) -> io::Result<()> {
    let name = directory_name(round);
    let directory = volume.join(&name);
    fs::create_dir(&directory)?;
    File::create(directory.join("content"))?.write_all(&[round as u8; PUBLISH_BYTES])?;
    let staged = volume.join("..data_tmp");
    symlink(&name, &staged)?;
    fs::rename(&staged, volume.join("..data"))
}

fn directory_name(round: usize) -> String {
    format!("..{round}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_floors_can_be_measured_anywhere() {
        let directory = tempfile::tempdir().expect("a directory");
        let floors = measure(directory.path()).expect("measured");
        assert_eq!(
            (floors.fdatasync.count, floors.publish.count),
            (SYNC_ROUNDS, PUBLISH_ROUNDS)
        );
        assert_eq!(fs::read_dir(directory.path()).expect("readable").count(), 0);
    }
}
