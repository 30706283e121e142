//! What the bare calls of a mount swap cost on this machine: no shim can be faster.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::CWD;
use rustix::mount::{MountPropagationFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags};

use crate::mount_beneath::can_mount_beneath;
use crate::shim::{attach, filesystem};
use crate::sys::{self, MountChange};

const FILE_BYTES: usize = 1_024;

/// Times `rounds` swaps of a file that is mounted on another: clone, restrict, mount beneath, unmount the top. On a thread of
/// its own, in a mount namespace that goes with it. For benchmarks; needs root and Linux 6.5.
///
/// # Errors
/// The system's, and that the kernel is too old.
pub fn bare_mount_swaps(rounds: usize) -> io::Result<Vec<Duration>> {
    can_mount_beneath().map_err(io::Error::other)?;
    let measured = thread::spawn(move || measure(rounds)).join();
    measured.map_err(|_| io::Error::other("the thread that swaps mounts panicked"))?
}

fn measure(rounds: usize) -> io::Result<Vec<Duration>> {
    sys::unshare_mounts_of_thread()?;
    let propagation = MountPropagationFlags::REC | MountPropagationFlags::PRIVATE;
    rustix::mount::mount_change("/", propagation)?;
    let memory = filesystem("tmpfs", &[("mode", "0700")], 0).map_err(io::Error::other)?;
    attach(&memory, CWD, "/tmp").map_err(io::Error::other)?;
    for name in ["/tmp/even", "/tmp/odd", "/tmp/stub"] {
        fs::write(name, [0; FILE_BYTES])?;
    }
    let moved = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH;
    rustix::mount::move_mount(&clone(Path::new("/tmp/even"))?, "", CWD, "/tmp/stub", moved)?;
    let mut samples = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let source = if round % 2 == 0 { "/tmp/odd" } else { "/tmp/even" };
        let start = Instant::now();
        let tree = clone(Path::new(source))?;
        rustix::mount::move_mount(
            &tree,
            "",
            CWD,
            "/tmp/stub",
            moved | MoveMountFlags::MOVE_MOUNT_BENEATH,
        )?;
        rustix::mount::unmount("/tmp/stub", UnmountFlags::DETACH | UnmountFlags::NOFOLLOW)?;
        samples.push(start.elapsed());
    }
    Ok(samples)
}

fn clone(path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    let tree = rustix::mount::open_tree(CWD, path, flags)?;
    let change = MountChange {
        set: libc::MOUNT_ATTR_RDONLY | libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV,
        private: true,
        ..MountChange::default()
    };
    sys::mount_setattr(&tree, &change)?;
    Ok(tree)
}
