//! A kernel that loses events and runs out of watches.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::fs::inotify::{ReadFlags, WatchFlags};
use rustix::io::Errno;

use crate::notifier::{Inotify, Notifier, RawEvent};
use crate::watcher::Watcher;

/// How often something goes wrong: one time of so many, never when 0.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// Reading events gives `IN_Q_OVERFLOW` in place of them.
    pub(super) overflow: AtomicU32,
    /// Adding a watch gives `ENOSPC`.
    pub(super) watch: AtomicU32,
    /// Making an instance gives `EMFILE`.
    pub(super) instance: AtomicU32,
    /// Reading events fails.
    pub(super) read: AtomicU32,
    count: AtomicU32,
}

impl Faults {
    /// Puts a kernel with these faults under a watcher that has not looked yet.
    pub(super) fn beneath(self: &Arc<Self>, watcher: &mut Watcher) {
        let faults = self.clone();
        watcher.make_notifier = Box::new(move || {
            if faults.strikes(&faults.instance) {
                return Err(Errno::MFILE.into());
            }
            Ok(Box::new(Faulty {
                kernel: Inotify::new()?,
                faults: faults.clone(),
            }))
        });
    }

    fn strikes(&self, one_of: &AtomicU32) -> bool {
        let one_of = one_of.load(Ordering::Relaxed);
        // A step that has no factor in common with small periods, so that all places are struck in turn.
        let count = self.count.fetch_add(7_919, Ordering::Relaxed);
        one_of != 0 && count.is_multiple_of(one_of)
    }
}

struct Faulty {
    kernel: Inotify,
    faults: Arc<Faults>,
}

impl Notifier for Faulty {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.kernel.as_fd()
    }

    fn watch(&mut self, path: &Path, mask: WatchFlags) -> io::Result<i32> {
        if self.faults.strikes(&self.faults.watch) {
            return Err(Errno::NOSPC.into());
        }
        self.kernel.watch(path, mask)
    }

    fn unwatch(&mut self, watch: i32) {
        self.kernel.unwatch(watch);
    }

    fn drain(&mut self, each: &mut dyn FnMut(RawEvent<'_>)) -> io::Result<()> {
        if self.faults.strikes(&self.faults.read) {
            return Err(Errno::IO.into());
        }
        let is_overflow = self.faults.strikes(&self.faults.overflow);
        let mut lost = 0;
        self.kernel.drain(&mut |event| {
            if is_overflow {
                lost += 1;
            } else {
                each(event);
            }
        })?;
        if lost > 0 {
            each(RawEvent {
                watch: -1,
                mask: ReadFlags::QUEUE_OVERFLOW,
                name: None,
            });
        }
        Ok(())
    }
}
