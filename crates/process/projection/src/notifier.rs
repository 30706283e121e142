//! inotify, and what is needed of it.

use std::ffi::OsStr;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// Room for some dozen events per system call; an event with the longest name has 272 bytes.
const BUFFER_BYTES: usize = 4096;

/// Who tells of events. There are two: the kernel, and the one of the tests that loses events and runs out of watches.
pub(crate) trait Notifier: Send {
    /// Readable while there are events.
    fn as_fd(&self) -> BorrowedFd<'_>;

    /// Watches what `path` names, a link itself included; the watch of the same inode is replaced and keeps its number.
    fn watch(&mut self, path: &Path, mask: WatchFlags) -> io::Result<i32>;

    /// Ends a watch, which may have ended by itself.
    fn unwatch(&mut self, watch: i32);

    /// Hands over all events that have happened.
    fn drain(&mut self, each: &mut dyn FnMut(RawEvent<'_>)) -> io::Result<()>;
}

/// An event as the kernel tells it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawEvent<'a> {
    pub(crate) watch: i32,
    pub(crate) mask: ReadFlags,
    pub(crate) name: Option<&'a OsStr>,
}

/// An inotify instance.
#[derive(Debug)]
pub(crate) struct Inotify(OwnedFd);

impl Inotify {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?))
    }
}

impl Notifier for Inotify {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn watch(&mut self, path: &Path, mask: WatchFlags) -> io::Result<i32> {
        Ok(inotify::add_watch(&self.0, path, mask | WatchFlags::DONT_FOLLOW)?)
    }

    fn unwatch(&mut self, watch: i32) {
        // EINVAL: its inode is gone, and the watch with it.
        let _ = inotify::remove_watch(&self.0, watch);
    }

    fn drain(&mut self, each: &mut dyn FnMut(RawEvent<'_>)) -> io::Result<()> {
        let mut buffer = [MaybeUninit::uninit(); BUFFER_BYTES];
        let mut reader = inotify::Reader::new(&self.0, &mut buffer);
        loop {
            match reader.next() {
                Ok(event) => each(RawEvent {
                    watch: event.wd(),
                    mask: event.events(),
                    name: event.file_name().map(|name| OsStr::from_bytes(name.to_bytes())),
                }),
                Err(Errno::AGAIN) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}
