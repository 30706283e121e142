//! What is watched at the moment, and what an event on it means.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::inotify::{ReadFlags, WatchFlags};
use rustix::io::Errno;

use crate::layout::{DATA_LINK, is_content_name};
use crate::machine::Sign;
use crate::notifier::{Notifier, RawEvent};

/// Why a place is watched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Role {
    /// A directory on the way: only that it is moved or removed itself matters, so that its other entries wake nobody.
    Ancestor,
    /// A directory that holds a link on the way, by this name.
    HoldsLink(OsString),
    /// A directory in which the next part of the path, or a watched file, is or will be.
    Holds(OsString),
    /// A directory whose entries are content.
    Directory,
    /// A directory whose content lies behind its `..data`.
    Projected,
    /// What `..data` names. Nobody changes it but by removing it, which tells nothing new.
    Revision,
    /// A file outside the directories above.
    File,
}

/// The system does not watch a place.
pub(crate) type Refusal = io::Error;

/// The watches of one watcher. A look renews them one by one, in order of its way; what it did not renew ends with it.
#[derive(Debug)]
pub(crate) struct Ground {
    watched: HashMap<i32, Watched>,
    look: u32,
    /// Whether this look has come upon content that was not watched before.
    has_grown: bool,
}

#[derive(Debug)]
struct Watched {
    roles: Vec<Role>,
    look: u32,
}

impl Ground {
    pub(crate) fn new() -> Self {
        Self {
            watched: HashMap::new(),
            look: 0,
            has_grown: false,
        }
    }

    /// The notifier is another: none of the watches is left.
    pub(crate) fn clear(&mut self) {
        self.watched.clear();
    }

    pub(crate) fn begin_look(&mut self) {
        self.look = self.look.wrapping_add(1);
        self.has_grown = false;
    }

    /// Watches `path` before it is looked at, so that no change falls between the two.
    pub(crate) fn watch(
        &mut self,
        notifier: &mut dyn Notifier,
        path: &Path,
        role: Role,
    ) -> Result<(), Refusal> {
        let mask = role.mask();
        let watch = notifier.watch(path, mask)?;
        let look = self.look;
        let holds_content = matches!(role, Role::Directory | Role::File);
        let watched = self.watched.entry(watch).or_insert_with(|| {
            self.has_grown |= holds_content;
            Watched {
                roles: Vec::new(),
                look: look.wrapping_sub(1),
            }
        });
        if watched.look != look {
            watched.look = look;
            watched.roles.clear();
        }
        if !watched.roles.contains(&role) {
            watched.roles.push(role);
        }
        // The same inode in another role: what was asked for before has just been replaced.
        let all = watched
            .roles
            .iter()
            .fold(WatchFlags::empty(), |all, role| all | role.mask());
        if all != mask {
            notifier.watch(path, all)?;
        }
        Ok(())
    }

    /// Ends what the look did not come by. True if it came upon content that nobody had watched while it was written.
    pub(crate) fn end_look(&mut self, notifier: &mut dyn Notifier) -> bool {
        let look = self.look;
        self.watched.retain(|watch, watched| {
            let is_current = watched.look == look;
            if !is_current {
                notifier.unwatch(*watch);
            }
            is_current
        });
        self.has_grown
    }

    /// What an event says; `None`: nothing of interest.
    pub(crate) fn sign(&mut self, event: RawEvent<'_>) -> Option<Sign> {
        if event.mask.contains(ReadFlags::QUEUE_OVERFLOW) {
            return Some(Sign::Overflow);
        }
        let watched = self.watched.get(&event.watch)?;
        if event.mask.contains(ReadFlags::IGNORED) {
            self.watched.remove(&event.watch);
            return Some(Sign::Lost);
        }
        let of_itself = ReadFlags::UNMOUNT | ReadFlags::DELETE_SELF | ReadFlags::MOVE_SELF;
        if event.mask.intersects(of_itself) {
            return Some(Sign::Lost);
        }
        let signs = watched.roles.iter().filter_map(|role| role.sign(event));
        signs.max()
    }
}

impl Role {
    fn mask(&self) -> WatchFlags {
        let itself = WatchFlags::DELETE_SELF | WatchFlags::MOVE_SELF;
        let appear = WatchFlags::CREATE | WatchFlags::MOVED_TO;
        let vanish = WatchFlags::DELETE | WatchFlags::MOVED_FROM;
        let written = WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE | WatchFlags::ATTRIB;
        match self {
            Self::Ancestor => itself,
            Self::HoldsLink(_) | Self::Holds(_) | Self::Projected => itself | appear | vanish,
            Self::Directory => itself | appear | vanish | written,
            Self::Revision => itself | appear | WatchFlags::MODIFY | WatchFlags::CLOSE_WRITE,
            Self::File => itself | written,
        }
    }

    fn sign(&self, event: RawEvent<'_>) -> Option<Sign> {
        let is_named = |name: &OsStr| event.name == Some(name);
        let is_moved_in = event.mask.contains(ReadFlags::MOVED_TO);
        match self {
            Self::Ancestor => None,
            Self::Projected => {
                is_named(OsStr::new(DATA_LINK)).then_some(if is_moved_in { Sign::Swap } else { Sign::Lost })
            }
            Self::HoldsLink(name) => {
                is_named(name).then_some(if is_moved_in { Sign::Swap } else { Sign::Lost })
            }
            Self::Holds(name) => is_named(name).then_some(Sign::Lost),
            Self::Directory => match event.name {
                // The first `..data` makes a projected volume of a directory.
                Some(name) if name == DATA_LINK => Some(if is_moved_in { Sign::Swap } else { Sign::Lost }),
                Some(name) if !is_content_name(name.as_bytes()) => None,
                _ => Some(Sign::Write),
            },
            Self::Revision | Self::File => Some(Sign::Write),
        }
    }
}

/// Whether there are no watches left for this user.
pub(crate) fn is_limit(refusal: &Refusal) -> bool {
    refusal.raw_os_error() == Some(Errno::NOSPC.raw_os_error())
}
