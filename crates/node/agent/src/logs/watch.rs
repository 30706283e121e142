//! Hears when something happens to the files of a log.

use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use rustix::io::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Waits for changes; the asynchronous end.
pub(crate) struct Changes(Arc<AsyncFd<OwnedFd>>);

/// Says which directory is watched; the end that touches the file system.
pub(crate) struct Watch {
    inotify: Arc<AsyncFd<OwnedFd>>,
    placed: Option<i32>,
}

/// Both ends of a watch that is nowhere yet. Wants a tokio runtime.
pub(crate) fn open() -> io::Result<(Changes, Watch)> {
    let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?;
    // SAFETY: an OwnedFd is the same open descriptor for as long as it lives, and AsyncFd lends it out only by reference.
    let registered = unsafe { AsyncFd::register_with_interest(inotify, Interest::READABLE) };
    let inotify = Arc::new(registered?);
    Ok((
        Changes(Arc::clone(&inotify)),
        Watch {
            inotify,
            placed: None,
        },
    ))
}

impl Changes {
    /// Comes back after a change that no earlier call reported. Which one is of no interest, a lost event included (an
    /// overflow is an event too): the reader looks at the files.
    pub(crate) async fn next(&self) -> io::Result<()> {
        let mut events = [0; 4096];
        self.0
            .async_io(Interest::READABLE, |inotify| {
                Ok(rustix::io::read(inotify, &mut events)?)
            })
            .await?;
        Ok(())
    }
}

impl Watch {
    /// Watches the directory, or while it is missing the nearest one above it; what happens from here on is heard.
    ///
    /// Cheap when nothing changed, so that it is simply called again before every look: a directory that was made, or
    /// removed and made again, is then the one that is watched.
    pub(crate) fn place(&mut self, directory: &Path) -> io::Result<()> {
        let mut nearest = None;
        loop {
            let (found, distance) = self.add_nearest(directory)?;
            // Without the directory itself a second look is due: the next one down may have been made before the watch
            // was there to hear of it.
            if distance == 0 || nearest == Some((found, distance)) {
                return Ok(());
            }
            nearest = Some((found, distance));
        }
    }

    /// The watch on the nearest directory that exists, and how far above the wanted one it is.
    fn add_nearest(&mut self, directory: &Path) -> io::Result<(i32, usize)> {
        for (distance, ancestor) in directory.ancestors().enumerate() {
            let made =
                WatchFlags::CREATE | WatchFlags::MOVED_TO | WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
            let flags = if distance == 0 {
                made | WatchFlags::MODIFY
            } else {
                made
            };
            let ancestor = if ancestor.as_os_str().is_empty() {
                Path::new(".")
            } else {
                ancestor
            };
            match inotify::add_watch(self.inotify.get_ref(), ancestor, flags | WatchFlags::ONLYDIR) {
                Ok(watch) => {
                    self.replace(watch);
                    return Ok((watch, distance));
                }
                Err(Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Errno::NOENT.into())
    }

    fn replace(&mut self, watch: i32) {
        if let Some(old) = self.placed.replace(watch)
            && old != watch
        {
            // It fails when the directory went away and took its watch along.
            let _ = inotify::remove_watch(self.inotify.get_ref(), old);
        }
    }
}
