//! What a container says about its end: a file that it finds at `terminationMessagePath`, or the last lines of its log.
//!
//! Limits and rules follow `pkg/kubelet/kuberuntime/kuberuntime_container.go` and `pkg/kubelet/container/runtime.go`,
//! Kubernetes 1.36. Each attempt has a file of its own, in a directory that no container sees: what is mounted is the file,
//! which can be written and neither be moved nor replaced by anything else.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown},
    path::{Path, PathBuf},
};

use futures_util::TryStreamExt;
use hotmap_volume::Ownership;
use rustix::fs::OFlags;
use tokio::sync::watch;

use crate::logs::{self, LogOptions};

/// Bytes of the file that count: its last ones.
const FILE_BYTES_MAX: u64 = 4096;
/// The unit of `st_blocks`, whatever the file system's own is.
const BLOCK_BYTES: u64 = 512;
/// Lines and bytes of a log that stand for a message.
const LOG_LINES_MAX: u64 = 80;
const LOG_BYTES_MAX: usize = 2048;
/// Bytes that the messages of all containers of a pod have in its status.
const POD_BYTES_MAX: usize = 12 * 1024;
/// Anybody in the container may write it, whoever its process is.
const FILE_MODE: u32 = 0o666;

/// Where the message of an attempt is, below the directory of the pod's messages.
fn file(directory: &Path, container: &str, attempt: u32) -> PathBuf {
    directory.join(format!("{container}.{attempt}"))
}

/// Makes the empty file of an attempt and removes those of earlier ones, which have been read.
pub(crate) fn make(directory: &Path, container: &str, attempt: u32, owner: Ownership) -> io::Result<PathBuf> {
    DirBuilder::new().recursive(true).mode(0o711).create(directory)?;
    let path = file(directory, container, attempt);
    for earlier in files_of(directory, container)? {
        fs::remove_file(earlier)?;
    }
    OpenOptions::new().write(true).create_new(true).open(&path)?;
    fs::set_permissions(&path, Permissions::from_mode(FILE_MODE))?;
    chown(&path, Some(owner.uid), Some(owner.gid))?;
    Ok(path)
}

/// The files of all attempts that are there.
fn files_of(directory: &Path, container: &str) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // Names of containers have no dot in them.
        let name = entry.file_name();
        let of = name.to_str().and_then(|name| name.split_once('.'));
        if of.is_some_and(|(name, _)| name == container) {
            files.push(entry.path());
        }
    }
    Ok(files)
}

/// Bytes of the disk that a container takes with what it has written there, read or not. Blocks.
pub(crate) fn disk_usage(directory: &Path, container: &str) -> io::Result<u64> {
    let files = match files_of(directory, container) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        files => files?,
    };
    let mut bytes = 0;
    for file in files {
        match fs::symlink_metadata(file) {
            Ok(metadata) => bytes += metadata.blocks() * BLOCK_BYTES,
            // The next attempt begins.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes)
}

/// What an attempt has left in its file; nothing if there is none. Blocks.
pub(crate) fn read(directory: &Path, container: &str, attempt: u32) -> String {
    let path = file(directory, container, attempt);
    match tail(&path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => format!("Error on reading termination log {}: {error}", path.display()),
    }
}

fn tail(path: &Path) -> io::Result<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).expect("flags of open are an int"))
        .open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    read_last(&file, metadata.len())
}

/// Its processes may still write: what is read is what is there while it is read.
fn read_last(file: &File, length: u64) -> io::Result<Vec<u8>> {
    let limit = length.min(FILE_BYTES_MAX);
    let mut bytes = vec![0; usize::try_from(limit).expect("at most 4096")];
    let mut held = 0;
    while held < bytes.len() {
        match file.read_at(&mut bytes[held..], length - limit + held as u64) {
            Ok(0) => break,
            Ok(read) => held += read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    bytes.truncate(held);
    Ok(bytes)
}

/// The end of a log that is not written any more.
pub(crate) async fn from_log(log: PathBuf) -> String {
    let (_, ended) = watch::channel(true);
    let options = LogOptions {
        tail_lines: Some(LOG_LINES_MAX),
        ..LogOptions::default()
    };
    let last = logs::read(log, options, ended).try_fold(Vec::new(), |mut last, piece| async move {
        last.extend_from_slice(&piece);
        let spare = last.len().saturating_sub(LOG_BYTES_MAX);
        last.drain(..spare);
        Ok(last)
    });
    match last.await {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => format!("Error on reading termination message from logs: {error}"),
    }
}

/// As much of a message as one of so many containers has in the status of its pod.
pub(crate) fn share(message: &str, containers: usize) -> &str {
    &message[..message.floor_char_boundary(POD_BYTES_MAX / containers.max(1))]
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn ours() -> Ownership {
        Ownership {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }

    #[test]
    fn each_attempt_has_an_empty_file_that_anybody_inside_may_write() {
        let home = tempfile::tempdir().expect("a directory");
        let pod = home.path().join("uid");
        assert_eq!(read(&pod, "a", 0), "");
        let first = make(&pod, "a", 0, ours()).expect("made");
        make(&pod, "ab", 0, ours()).expect("made");
        assert_eq!(first.metadata().expect("there").mode() & 0o7777, 0o666);
        fs::write(&first, "bye").expect("written");
        assert_eq!(read(&pod, "a", 0), "bye");
        // Tried again, and then the next one.
        make(&pod, "a", 0, ours()).expect("made");
        assert_eq!(read(&pod, "a", 0), "");
        make(&pod, "a", 1, ours()).expect("made");
        let mut left: Vec<_> = fs::read_dir(&pod)
            .expect("there")
            .map(|entry| entry.expect("read").file_name())
            .collect();
        left.sort_unstable();
        assert_eq!(left, ["a.1", "ab.0"]);
    }

    #[test]
    fn the_last_bytes_count_and_nothing_else_is_read() {
        let home = tempfile::tempdir().expect("a directory");
        let path = make(home.path(), "a", 0, ours()).expect("made");
        let long = format!("{}{}", "x".repeat(10_000), "y".repeat(4000));
        fs::write(&path, &long).expect("written");
        assert_eq!(read(home.path(), "a", 0), long[long.len() - 4096..]);
        fs::write(&path, b"\xff!").expect("written");
        assert_eq!(read(home.path(), "a", 0), "\u{fffd}!");
        fs::write(home.path().join("secret"), "s3cr3t").expect("written");
        fs::remove_file(&path).expect("removed");
        symlink("secret", &path).expect("linked");
        let refused = read(home.path(), "a", 0);
        assert!(
            refused.starts_with("Error on reading termination log ") && !refused.contains("s3cr3t"),
            "{refused}"
        );
    }

    #[test]
    fn a_file_counts_for_its_container_as_far_as_it_is_on_the_disk() {
        let home = tempfile::tempdir().expect("a directory");
        let pod = home.path().join("uid");
        let used = |container: &str| disk_usage(&pod, container).expect("counted");
        assert_eq!(used("a"), 0, "no container has begun");
        let file = make(&pod, "a", 0, ours()).expect("made");
        make(&pod, "ab", 0, ours()).expect("made");
        assert_eq!((used("a"), used("ab")), (0, 0));
        let written = File::options().write(true).open(&file).expect("ours");
        // A hole takes nothing; what is written takes as much wherever it is.
        written.set_len(1 << 30).expect("made longer");
        written.write_all_at(&[1; 1 << 20], 1 << 29).expect("written");
        written.sync_all().expect("on the disk");
        let bytes = used("a");
        assert!((1 << 20..2 << 20).contains(&bytes), "{bytes}");
        assert_eq!(used("ab"), 0, "it is another container's");
        make(&pod, "a", 1, ours()).expect("made");
        assert_eq!(used("a"), 0, "the next attempt begins with nothing");
    }

    #[tokio::test]
    async fn a_log_gives_its_last_lines_within_their_limits() {
        let home = tempfile::tempdir().expect("a directory");
        let log = home.path().join("0.log");
        assert_eq!(from_log(log.clone()).await, "");
        let line = |number: usize, text: &str| format!("2026-01-02T15:04:05.{number:09}Z stderr F {text}\n");
        let short: String = (0..100)
            .map(|number| line(number, &format!("line {number}")))
            .collect();
        fs::write(&log, short).expect("written");
        let said = from_log(log.clone()).await;
        assert_eq!((said.lines().count(), said.lines().next()), (80, Some("line 20")));
        let long: String = (0..100).map(|number| line(number, &"z".repeat(99))).collect();
        fs::write(&log, long).expect("written");
        let said = from_log(log).await;
        assert_eq!(said.len(), 2048);
        assert!(said.ends_with("zz\n"));
    }

    #[test]
    fn containers_share_the_room_in_the_status() {
        let long = "é".repeat(10_000);
        for (containers, bytes) in [(0, 12_288), (1, 12_288), (5, 2456), (7, 1754)] {
            assert_eq!(share(&long, containers).len(), bytes, "{containers}");
        }
        assert_eq!(share("short", 100), "short");
    }
}
