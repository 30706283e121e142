//! The watcher: the shell around [`machine`](crate::machine), and the only code here that waits.

mod handle;

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;

use crate::change::Change;
use crate::digest::Digester;
use crate::file_system;
use crate::ground::{self, Ground, Role};
use crate::health::{Deafness, Health};
use crate::limits::Limits;
use crate::look::{self, LookError, Surroundings};
use crate::machine::{Found, Machine, Sign, Step, Times, Told};
use crate::notifier::{Inotify, Notifier};
use crate::revision::Revision;

pub use handle::{Counts, Handle};

/// How a path is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WatchConfig {
    /// Plain files are told about when nobody has written for so long; default 100 ms, 0 allowed. What is swapped by one
    /// rename of a link (`..data`) is told about at once, whatever this says.
    pub settle: Duration,
    /// A directory of plain files that never gets quiet is told about after this time all the same; default 5 s.
    pub settle_max: Duration,
    /// Time between two looks that no event asks for; default 60 s. Events find every change that a process makes on a
    /// local file system; this finds what raises none: a mount put over the path, a directory far above it renamed, a
    /// write through a memory mapping. [`Counts::found_by_looking`] says how often that was.
    pub safety_look: Duration,
    /// The same where the system does not tell of all changes (network file systems, FUSE, overlay, no watches left);
    /// default 10 s. [`Watcher::health`] says why it is used.
    pub poll: Duration,
    /// How much is taken on.
    pub limits: Limits,
}

impl Default for WatchConfig {
    fn default() -> Self {
        Self {
            settle: Duration::from_millis(100),
            settle_max: Duration::from_secs(5),
            safety_look: Duration::from_secs(60),
            poll: Duration::from_secs(10),
            limits: Limits::default(),
        }
    }
}

/// A watcher cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum WatchError {
    /// The path is empty.
    #[error("the path to watch is empty")]
    NoPath,
    /// A relative path, and no current directory.
    #[error("cannot make an absolute path of {}", .path.display())]
    Relative {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The system gives no random key for digests.
    #[error("cannot draw a key for digests")]
    Key(#[source] io::Error),
    /// There is no file descriptor left.
    #[error("cannot make the descriptors that a watcher waits on; raise the limit of open files")]
    Descriptor(#[source] io::Error),
}

/// [`Stopper::stop`] was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the watcher was stopped")]
pub struct Stopped;

/// When a [`Watcher`] wants to look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// At once: [`Watcher::look`].
    Now,
    /// Then, or when its descriptor is readable.
    At(Instant),
}

/// Watches one path, a directory or a file, without a thread or a runtime of its own.
///
/// [`next`](Self::next) blocks until there is a change. Who waits for other things as well waits until the watcher's
/// descriptor is readable or the time of [`due`](Self::due) has come, and calls [`look`](Self::look) when it is due.
pub struct Watcher {
    path: Arc<PathBuf>,
    absolute: PathBuf,
    config: WatchConfig,
    digester: Digester,
    machine: Machine,
    ground: Ground,
    notifier: Option<Box<dyn Notifier>>,
    make_notifier: MakeNotifier,
    /// Where all content of the last look is, if it was [flat](look::Seen::flat) and everything is heard.
    flat: Option<PathBuf>,
    /// An epoll instance that holds the notifier and the stopper.
    readiness: OwnedFd,
    stopper: Stopper,
    handle: Handle,
    on_health: Option<OnHealth>,
    on_renamed: Option<OnRenamed>,
    /// Whether the look before knew that changes may happen without a sign.
    was_deaf: bool,
}

type MakeNotifier = Box<dyn FnMut() -> io::Result<Box<dyn Notifier>> + Send>;
type OnHealth = Box<dyn FnMut(&Health) + Send>;
type OnRenamed = Box<dyn FnMut(&Revision) + Send>;

/// Ends the wait of a [`Watcher`], from any thread. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Stopper(Arc<OwnedFd>);

impl Stopper {
    /// Makes the present or the next call of [`Watcher::next`] return [`Stopped`], and all that follow.
    pub fn stop(&self) {
        // It cannot fail but by overflow, and then it has been called.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

impl Watcher {
    /// A watcher of `path`, which need not exist. It looks at nothing before the first [`next`](Self::next).
    ///
    /// # Errors
    /// [`WatchError`]. Whatever is wrong with the path itself may change, and is in [`health`](Self::health).
    pub fn new(path: impl Into<PathBuf>, config: WatchConfig) -> Result<Self, WatchError> {
        let path = path.into();
        if path.as_os_str().is_empty() {
            return Err(WatchError::NoPath);
        }
        let absolute = match std::path::absolute(&path) {
            Ok(absolute) => absolute,
            Err(source) => return Err(WatchError::Relative { path, source }),
        };
        let digester = Digester::of_this_process().map_err(WatchError::Key)?;
        let (readiness, stop) = descriptors().map_err(|errno| WatchError::Descriptor(errno.into()))?;
        let times = Times {
            settle: config.settle,
            settle_max: config.settle_max.max(config.settle),
            safety_look: config.safety_look,
            poll: config.poll.min(config.safety_look),
        };
        Ok(Self {
            path: Arc::new(path),
            absolute,
            config,
            digester,
            machine: Machine::new(times),
            ground: Ground::new(),
            notifier: None,
            make_notifier: Box::new(|| Ok(Box::new(Inotify::new()?))),
            flat: None,
            readiness,
            stopper: Stopper(Arc::new(stop)),
            handle: Handle::default(),
            on_health: None,
            on_renamed: None,
            was_deaf: false,
        })
    }

    /// The watched path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the content is another than was told last, and tells what it is.
    ///
    /// The first call tells the content that is there, at once ([`Change::is_initial`]); an existing empty directory is
    /// content too. If the path leads nowhere the call waits, and the content that appears is the first change. A path
    /// that goes away is no change: what was told last holds until other content appears, and [`health`](Self::health)
    /// says what is missing.
    ///
    /// # Errors
    /// [`Stopped`], and nothing else: everything that may get better is waited for.
    #[expect(
        clippy::should_implement_trait,
        reason = "what it gives has no end, and an iterator's `None` would hide why"
    )]
    pub fn next(&mut self) -> Result<Change, Stopped> {
        loop {
            match self.due() {
                Due::Now => {
                    self.wait(Duration::ZERO)?;
                    if let Some(change) = self.look() {
                        return Ok(change);
                    }
                }
                Due::At(time) => {
                    self.wait(time.saturating_duration_since(Instant::now()))?;
                    self.handle.count(|counts| counts.wake_ups += 1);
                }
            }
        }
    }

    /// Takes in the events that have happened, without waiting, and says when to look.
    pub fn due(&mut self) -> Due {
        self.hear();
        match self.machine.step(Instant::now()) {
            Step::Look => Due::Now,
            Step::WaitUntil(time) => Due::At(time),
        }
    }

    /// What ends the wait from another thread.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// What other threads may ask of this watcher.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// How well the path is heard.
    pub fn health(&self) -> Health {
        self.handle.health()
    }

    /// `tell` is called, on the thread that is in [`next`](Self::next), whenever the health is another than before.
    pub fn on_health(&mut self, tell: impl FnMut(&Health) + Send + 'static) {
        self.on_health = Some(Box::new(tell));
    }

    /// Has it said, on the thread that calls [`next`](Self::next), when a revision was replaced by another with the same
    /// content: that is no change, and what is there has another name by which others know it.
    pub fn on_renamed(&mut self, tell: impl FnMut(&Revision) + Send + 'static) {
        self.on_renamed = Some(Box::new(tell));
    }

    /// Takes in all events that have happened.
    fn hear(&mut self) {
        let Some(notifier) = &mut self.notifier else {
            return;
        };
        let now = Instant::now();
        let (machine, ground) = (&mut self.machine, &mut self.ground);
        let mut overflows = 0;
        let drained = notifier.drain(&mut |event| {
            if let Some(sign) = ground.sign(event) {
                overflows += u64::from(sign == Sign::Overflow);
                machine.sign(sign, now);
            }
        });
        self.handle.count(|counts| counts.overflows += overflows);
        if drained.is_err() {
            self.notifier = None;
            self.ground.clear();
            self.machine.sign(Sign::Lost, now);
        }
    }

    /// Waits until there is something to hear, for so long at most.
    fn wait(&self, time: Duration) -> Result<(), Stopped> {
        let timeout = Timespec::try_from(time).ok();
        let mut events = [MaybeUninit::uninit(); 2];
        match epoll::wait(&self.readiness, &mut events, timeout.as_ref()) {
            Ok((ready, _)) if ready.iter().any(|event| event.data.u64() == STOP) => Err(Stopped),
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => unreachable!("epoll_wait of an epoll instance: {errno}"),
        }
    }

    /// Makes a notifier that the descriptor of this watcher waits for as well.
    fn renew_notifier(&mut self) -> io::Result<()> {
        let notifier = (self.make_notifier)()?;
        epoll::add(
            &self.readiness,
            notifier.as_fd(),
            epoll::EventData::new_u64(NOTIFIER),
            epoll::EventFlags::IN,
        )?;
        self.notifier = Some(notifier);
        Ok(())
    }

    /// Looks at the path once, without waiting for anything but the file system, and tells if its content is another.
    /// To call it when nothing is [`due`](Self::due) is allowed and useless.
    pub fn look(&mut self) -> Option<Change> {
        let began = Instant::now();
        let behind_swap = self.flat.take().filter(|_| self.machine.has_only_swapped());
        let mut deafness = Vec::new();
        if self.notifier.is_none()
            && let Err(error) = self.renew_notifier()
        {
            deafness.push(Deafness::NoInstance {
                message: error.to_string(),
                period: self.config.poll,
            });
        }
        self.machine.begin_look();
        let unheard = deafness.clone();
        let mut surroundings = Watched {
            ground: &mut self.ground,
            notifier: self.notifier.as_mut(),
            period: self.config.poll,
            deafness,
        };
        let (limits, known, digester) = (&self.config.limits, self.machine.known(), &self.digester);
        let seen = behind_swap.and_then(|directory| {
            surroundings.ground.begin_look_behind_swap();
            look::look_behind_swap(&directory, limits, known, digester, &mut surroundings)
        });
        let looked = match seen {
            Some(seen) if surroundings.deafness.is_empty() => Ok(seen),
            _ => {
                surroundings.ground.begin_look();
                surroundings.deafness = unheard;
                look::look(&self.absolute, limits, known, digester, &mut surroundings)
            }
        };
        let mut deafness = surroundings.deafness;
        let content = match looked {
            Ok(seen) => {
                self.flat = seen.flat.filter(|_| deafness.is_empty());
                Some(seen.content)
            }
            Err(error) => {
                deafness.push(self.deafness_of(error));
                None
            }
        };
        let has_grown = match &mut self.notifier {
            Some(notifier) => self.ground.end_look(&mut **notifier),
            None => false,
        };
        let is_deaf = deafness.iter().any(Deafness::is_polled);
        let was_deaf = std::mem::replace(&mut self.was_deaf, is_deaf);
        self.hear();
        let found = Found {
            content,
            has_grown,
            is_deaf,
        };
        let name = |machine: &Machine| machine.told().map(|content| content.revision.clone());
        let name_before = name(&self.machine);
        let told = self.machine.looked(found, began, Instant::now());
        self.handle.count(|counts| {
            counts.looks += 1;
            counts.changes += u64::from(told.is_some());
            let is_missed = |told: &Told| !told.is_initial && !told.is_announced && !was_deaf;
            counts.found_by_looking += u64::from(told.as_ref().is_some_and(is_missed));
        });
        let current = self.machine.known().map(|content| content.revision.clone());
        if self.handle.set(current, Health { deafness })
            && let Some(on_health) = &mut self.on_health
        {
            on_health(&self.handle.health());
        }
        if told.is_none()
            && let Some(renamed) = name(&self.machine).filter(|now| Some(now) != name_before.as_ref())
            && let Some(on_renamed) = &mut self.on_renamed
        {
            on_renamed(&renamed);
        }
        let told = told?;
        let content = self.machine.told().expect("it was just told");
        Some(Change {
            path: self.path.clone(),
            revision: content.revision.clone(),
            keys: content.changes_since(told.before.as_ref()),
            is_initial: told.is_initial,
            seen: told.seen,
        })
    }

    fn deafness_of(&self, error: LookError) -> Deafness {
        match error {
            LookError::Missing { missing, watched } => Deafness::Missing { missing, watched },
            LookError::Unprojected { directory } => Deafness::Unprojected { directory },
            LookError::TooMuch(limit) => Deafness::TooMuch {
                path: self.absolute.clone(),
                limit,
            },
            LookError::Unseen { path, source } => Deafness::Unseen {
                path,
                message: source.to_string(),
                period: self.config.poll,
            },
            LookError::Restless => Deafness::Unseen {
                path: self.absolute.clone(),
                message: "it is replaced faster than it can be read".to_owned(),
                period: self.config.poll,
            },
        }
    }
}

/// Readable when there is something to hear, or the watcher was stopped.
impl AsFd for Watcher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readiness.as_fd()
    }
}

/// What an epoll instance says of who is ready.
const STOP: u64 = 0;
const NOTIFIER: u64 = 1;

/// An epoll instance, and what a watcher is stopped by in it.
fn descriptors() -> rustix::io::Result<(OwnedFd, OwnedFd)> {
    let readiness = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
    epoll::add(
        &readiness,
        &stop,
        epoll::EventData::new_u64(STOP),
        epoll::EventFlags::IN,
    )?;
    Ok((readiness, stop))
}

/// What goes along with a look: watches, and a list of what is not heard.
struct Watched<'a> {
    ground: &'a mut Ground,
    notifier: Option<&'a mut Box<dyn Notifier>>,
    period: Duration,
    deafness: Vec<Deafness>,
}

/// So many reasons are told apart; more of them would say the same of other files.
const REASONS_MAX: usize = 8;

impl Watched<'_> {
    fn note(&mut self, deafness: Deafness) {
        if self.deafness.len() < REASONS_MAX && !self.deafness.contains(&deafness) {
            self.deafness.push(deafness);
        }
    }
}

impl Surroundings for Watched<'_> {
    fn watch(&mut self, path: &Path, role: Role) {
        let Some(notifier) = &mut self.notifier else {
            return;
        };
        let is_ancestor = role == Role::Ancestor;
        let Err(refusal) = self.ground.watch(&mut ***notifier, path, role) else {
            return;
        };
        let period = self.period;
        match refusal.kind() {
            _ if ground::is_limit(&refusal) => {
                if !self
                    .deafness
                    .iter()
                    .any(|deafness| matches!(deafness, Deafness::NoWatch { .. }))
                {
                    self.note(Deafness::NoWatch {
                        directory: path.to_owned(),
                        period,
                    });
                }
            }
            // It went away before it was watched, and the look that follows will see that it did.
            io::ErrorKind::NotFound => {}
            // Directories that one may pass and not list are seldom moved; the safety look is for them.
            _ if is_ancestor => {}
            _ => self.note(Deafness::Refused {
                path: path.to_owned(),
                message: refusal.to_string(),
                period,
            }),
        }
    }

    fn trusts(&mut self, directory: &Path) -> bool {
        let Some(file_system) = file_system::without_events(directory) else {
            return true;
        };
        let is_said = |deafness: &Deafness| matches!(deafness, Deafness::NoEvents { file_system: of, .. } if *of == file_system);
        if !self.deafness.iter().any(is_said) {
            self.note(Deafness::NoEvents {
                directory: directory.to_owned(),
                file_system,
                period: self.period,
            });
        }
        false
    }

    fn cannot_read(&mut self, path: &Path, error: &io::Error) {
        self.note(Deafness::Unreadable {
            path: path.to_owned(),
            message: error.to_string(),
        });
    }
}

#[cfg(test)]
mod tests;
