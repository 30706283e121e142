//! A disk that forgets: follows a writer over a real directory and says what a power loss at any moment leaves.
//!
//! ```text
//!   writer ──▶ real directory (what readers see)         sync of a file:      its bytes and its mode
//!      └────▶ model: durable │ pending effects           sync of a directory: the names in it, and its mode
//!                              └─ each lost, torn or kept ──▶ a directory as it is after the reboot
//! ```
//!
//! Weaker than any Linux file system in one point (nothing but sync orders anything: a rename may survive while
//! the file it shows does not) and as strong in one: a symlink is never there without its target, which lives
//! in its inode.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, fstat, statat};

use super::*;
use crate::disk::{Change, Faults, Operation};

/// Up to so many pending effects every subset is tried.
const PENDING_ALL_SUBSETS: usize = 4;
/// Of more, beside the telling ones, so many drawn ones.
const SUBSETS_DRAWN: u64 = 6;

type Id = usize;

#[derive(Clone)]
enum Node {
    Directory { mode: u32, names: BTreeMap<String, Id> },
    File { mode: u32, bytes: Vec<u8> },
    Link { target: String },
}

/// One change that a sync makes durable.
#[derive(Clone)]
enum Effect {
    Bind {
        directory: Id,
        name: String,
        node: Id,
    },
    Unbind {
        directory: Id,
        name: String,
    },
    Rename {
        directory: Id,
        from: String,
        to: String,
        node: Id,
    },
    Write {
        file: Id,
        bytes: Vec<u8>,
    },
    Mode {
        node: Id,
        bits: u32,
    },
}

/// What becomes of a pending effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Lost,
    /// Half of the bytes; other effects are kept.
    Torn,
    Kept,
}

/// The model, told of every operation; dies before the operation it is told to die at.
pub(super) struct ModelDisk {
    inner: Mutex<Inner>,
}

struct Inner {
    /// What a power loss leaves for sure; the volume itself is the first.
    durable: Vec<Node>,
    pending: Vec<Effect>,
    /// By inode number, as long as the inode lives.
    ids: HashMap<u64, Id>,
    /// Operations until the process dies; 0: it lives.
    countdown: usize,
}

impl ModelDisk {
    /// A model of a directory as it is, all of it durable.
    pub(super) fn of(volume: &Path) -> Self {
        let mut inner = Inner {
            durable: Vec::new(),
            pending: Vec::new(),
            ids: HashMap::new(),
            countdown: 0,
        };
        inner.load(volume);
        Self {
            inner: Mutex::new(inner),
        }
    }

    /// Lets the process die before its `operation`th operation from now, counted from 1; 0: never.
    pub(super) fn die_at(&self, operation: usize) {
        self.lock().countdown = operation;
    }

    /// What may become of the effects that are pending now.
    pub(super) fn fates(&self) -> Vec<Vec<Fate>> {
        let inner = self.lock();
        let count = inner.pending.len();
        let kept_if = |keep: &dyn Fn(usize) -> bool| -> Vec<Fate> {
            let fate = |index| if keep(index) { Fate::Kept } else { Fate::Lost };
            (0..count).map(fate).collect()
        };
        let mut fates = Vec::new();
        if count <= PENDING_ALL_SUBSETS {
            fates.extend((0..1_usize << count).map(|set| kept_if(&|index| set & (1 << index) != 0)));
        } else {
            for at in 0..count {
                fates.push(kept_if(&|index| index < at));
                fates.push(kept_if(&|index| index == at));
                fates.push(kept_if(&|index| index != at));
            }
            fates.push(kept_if(&|_| true));
            fates.extend((0..SUBSETS_DRAWN).map(|seed| kept_if(&|index| draw(seed, index))));
        }
        for (at, effect) in inner.pending.iter().enumerate() {
            if matches!(effect, Effect::Write { .. }) {
                let mut torn = kept_if(&|_| true);
                torn[at] = Fate::Torn;
                fates.push(torn);
            }
        }
        fates
    }

    /// Fates drawn by a number.
    pub(super) fn drawn_fates(&self, seed: u64) -> Vec<Fate> {
        let fates = self.fates();
        let at = usize::try_from(seed).unwrap_or(0) % fates.len();
        fates[at].clone()
    }

    /// Makes `directory`, which is empty, what the disk holds after a power loss.
    pub(super) fn after_power_loss(&self, fates: &[Fate], directory: &Path) {
        let inner = self.lock();
        let mut nodes = inner.durable.clone();
        for (effect, fate) in inner.pending.iter().zip(fates) {
            match (effect, fate) {
                (_, Fate::Lost) => {}
                (Effect::Write { file, bytes }, Fate::Torn) => {
                    let half = bytes[..bytes.len() / 2].to_vec();
                    apply(
                        &mut nodes,
                        Effect::Write {
                            file: *file,
                            bytes: half,
                        },
                    );
                }
                (effect, _) => apply(&mut nodes, effect.clone()),
            }
        }
        materialise(&nodes, 0, directory);
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A coin that lands the same way each time.
fn draw(seed: u64, index: usize) -> bool {
    let mixed = (seed * 64 + index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed ^ (mixed >> 29)).count_ones().is_multiple_of(2)
}

impl Faults for ModelDisk {
    fn before(&self, _: Operation) -> io::Result<()> {
        let mut inner = self.lock();
        let left = inner.countdown;
        inner.countdown = left.saturating_sub(1);
        drop(inner);
        if left == 1 {
            // Past the panic hook: a crash on purpose is no news.
            resume_unwind(Box::new("died"));
        }
        Ok(())
    }

    fn after(&self, change: Change<'_>) {
        self.lock().record(change);
    }
}

impl Inner {
    fn record(&mut self, change: Change<'_>) {
        match change {
            Change::MakeDirectory { parent, name } => {
                let names = BTreeMap::new();
                self.bind(parent, &name, Node::Directory { mode: 0o700, names });
            }
            Change::CreateFile { parent, path, file } => {
                let node = self.add(
                    inode(file),
                    Node::File {
                        mode: 0o600,
                        bytes: Vec::new(),
                    },
                );
                let (directory, name) = match path.rsplit_once('/') {
                    Some((above, name)) => (self.ids[&inode_of(parent, above)], name),
                    None => (self.ids[&inode(parent)], path),
                };
                let name = name.to_owned();
                self.pending.push(Effect::Bind {
                    directory,
                    name,
                    node,
                });
            }
            Change::WriteFile { file, bytes } => {
                let (file, bytes) = (self.ids[&inode(file)], bytes.to_vec());
                self.pending.push(Effect::Write { file, bytes });
            }
            Change::SetMode { of, bits } => {
                let node = self.ids[&inode(of)];
                self.pending.push(Effect::Mode { node, bits });
            }
            Change::Symlink { parent, name, target } => {
                let target = target.to_owned();
                self.bind(parent, name, Node::Link { target });
            }
            Change::Rename { parent, from, to } => {
                let node = self.ids[&inode_of(parent, to)];
                let (directory, from, to) = (self.ids[&inode(parent)], from.to_owned(), to.to_owned());
                self.pending.push(Effect::Rename {
                    directory,
                    from,
                    to,
                    node,
                });
            }
            Change::Remove { parent, name } => {
                let (directory, name) = (self.ids[&inode(parent)], name.into_owned());
                self.pending.push(Effect::Unbind { directory, name });
            }
            Change::Sync { of } => self.sync(self.ids[&inode(of)]),
        }
    }

    fn bind(&mut self, parent: BorrowedFd<'_>, name: &str, node: Node) {
        let node = self.add(inode_of(parent, name), node);
        let (directory, name) = (self.ids[&inode(parent)], name.to_owned());
        self.pending.push(Effect::Bind {
            directory,
            name,
            node,
        });
    }

    fn add(&mut self, inode: u64, node: Node) -> Id {
        self.durable.push(node);
        let id = self.durable.len() - 1;
        self.ids.insert(inode, id);
        id
    }

    fn sync(&mut self, synced: Id) {
        let (now, later): (Vec<_>, Vec<_>) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|effect| effect.belongs_to() == synced);
        self.pending = later;
        now.into_iter()
            .for_each(|effect| apply(&mut self.durable, effect));
    }

    fn load(&mut self, path: &Path) -> Id {
        let is = fs::symlink_metadata(path).unwrap();
        let mode = is.permissions().mode() & 0o7777;
        let inode = std::os::unix::fs::MetadataExt::ino(&is);
        if is.is_symlink() {
            let target = fs::read_link(path)
                .unwrap()
                .into_os_string()
                .into_string()
                .unwrap();
            return self.add(inode, Node::Link { target });
        }
        if is.is_file() {
            let bytes = fs::read(path).unwrap();
            return self.add(inode, Node::File { mode, bytes });
        }
        let names = BTreeMap::new();
        let directory = self.add(inode, Node::Directory { mode, names });
        for entry in fs::read_dir(path).unwrap().map(Result::unwrap) {
            let node = self.load(&entry.path());
            let name = entry.file_name().into_string().unwrap();
            apply(
                &mut self.durable,
                Effect::Bind {
                    directory,
                    name,
                    node,
                },
            );
        }
        directory
    }
}

impl Effect {
    /// What has to be synced to make it durable.
    fn belongs_to(&self) -> Id {
        match self {
            Self::Bind { directory, .. }
            | Self::Unbind { directory, .. }
            | Self::Rename { directory, .. } => *directory,
            Self::Write { file, .. } => *file,
            Self::Mode { node, .. } => *node,
        }
    }
}

fn apply(nodes: &mut [Node], effect: Effect) {
    let at = effect.belongs_to();
    match (&mut nodes[at], effect) {
        (Node::Directory { names, .. }, Effect::Bind { name, node, .. }) => {
            names.insert(name, node);
        }
        (Node::Directory { names, .. }, Effect::Unbind { name, .. }) => {
            names.remove(&name);
        }
        (Node::Directory { names, .. }, Effect::Rename { from, to, node, .. }) => {
            names.remove(&from);
            names.insert(to, node);
        }
        (Node::File { bytes, .. }, Effect::Write { bytes: written, .. }) => *bytes = written,
        (Node::File { mode, .. } | Node::Directory { mode, .. }, Effect::Mode { bits, .. }) => *mode = bits,
        _ => unreachable!("an effect is made for the kind of its node"),
    }
}

fn materialise(nodes: &[Node], id: Id, path: &Path) {
    match &nodes[id] {
        Node::Link { target } => symlink(target, path).unwrap(),
        Node::File { mode, bytes } => {
            fs::write(path, bytes).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(*mode)).unwrap();
        }
        Node::Directory { mode, names } => {
            if id != 0 {
                fs::create_dir(path).unwrap();
            }
            for (name, node) in names {
                materialise(nodes, *node, &path.join(name));
            }
            fs::set_permissions(path, fs::Permissions::from_mode(*mode)).unwrap();
        }
    }
}

fn inode(fd: BorrowedFd<'_>) -> u64 {
    fstat(fd).unwrap().st_ino
}

fn inode_of(parent: BorrowedFd<'_>, name: &str) -> u64 {
    statat(parent, name, AtFlags::SYMLINK_NOFOLLOW).unwrap().st_ino
}
