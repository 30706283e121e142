//! What is watched at the moment, and what an event on it means.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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
    /// The directory that the watched one is in, by this name. That it is removed is told to itself only when nobody is
    /// in it any more; that another is moved over it, likewise.
    Parent(OsString),
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
    /// The place that was watched last in this look: it comes in several roles one after the other.
    last: Option<(PathBuf, i32)>,
    /// Whether this look has come upon content that was not watched before.
    has_grown: bool,
}

#[derive(Debug)]
struct Watched {
    roles: Vec<Role>,
    mask: WatchFlags,
    look: u32,
}

impl Watched {
    fn new(look: u32) -> Self {
        Self {
            roles: Vec::new(),
            mask: WatchFlags::empty(),
            look,
        }
    }

    /// True if more must be heard than before.
    fn add(&mut self, role: Role) -> bool {
        if self.roles.contains(&role) {
            return false;
        }
        // What is a projected volume is no directory of plain files, though it began as one.
        if role == Role::Projected {
            self.roles.retain(|other| *other != Role::Directory);
        }
        let mask = self.mask | role.mask();
        let is_more = mask != self.mask;
        self.mask = mask;
        self.roles.push(role);
        is_more
    }
}

impl Ground {
    pub(crate) fn new() -> Self {
        Self {
            watched: HashMap::new(),
            look: 0,
            last: None,
            has_grown: false,
        }
    }

    /// The notifier is another: none of the watches is left.
    pub(crate) fn clear(&mut self) {
        self.watched.clear();
    }

    pub(crate) fn begin_look(&mut self) {
        self.look = self.look.wrapping_add(1);
        self.last = None;
        self.has_grown = false;
    }

    /// Begins a look at what is behind a swapped link only. No sign has come from any other place, so they are watched as
    /// before.
    pub(crate) fn begin_look_behind_swap(&mut self) {
        self.begin_look();
        for watched in self.watched.values_mut() {
            if watched.roles.iter().any(|role| *role != Role::Revision) {
                watched.look = self.look;
            }
        }
    }

    /// Watches `path` before it is looked at, so that no change falls between the two.
    pub(crate) fn watch(
        &mut self,
        notifier: &mut dyn Notifier,
        path: &Path,
        role: Role,
    ) -> Result<(), Refusal> {
        if let Some((last, watch)) = &self.last
            && last == path
            && let Some(watched) = self.watched.get_mut(watch)
        {
            if watched.add(role) {
                notifier.watch(path, watched.mask)?;
            }
            return Ok(());
        }
        let watch = notifier.watch(path, role.mask())?;
        self.last = Some((path.to_owned(), watch));
        let look = self.look;
        let watched = self.watched.entry(watch).or_insert_with(|| {
            self.has_grown |= matches!(role, Role::Directory | Role::File);
            Watched::new(look)
        });
        if watched.look != look {
            *watched = Watched::new(look);
        }
        let mask = role.mask();
        // The same inode by another way: what was asked for before has just been replaced.
        if watched.add(role) && watched.mask != mask {
            notifier.watch(path, watched.mask)?;
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
            Self::Parent(_) => itself | WatchFlags::DELETE | WatchFlags::MOVED_TO,
            Self::HoldsLink(_) | Self::Holds(_) | Self::Projected => itself | appear | vanish,
            // Nobody wants to hear of what is written into a file that has no name any more.
            Self::Directory => itself | appear | vanish | written | WatchFlags::EXCL_UNLINK,
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
            Self::Parent(name) | Self::Holds(name) => is_named(name).then_some(Sign::Lost),
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
