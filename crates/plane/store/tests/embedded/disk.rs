//! A disk in memory that forgets what was not synced, fills up, and fails.

use std::{io, sync::Arc};

use hotmap_store::StorageBackend;
use parking_lot::Mutex;

/// What a power cut leaves of the writes that were not synced. Units are sectors.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Keep {
    Nothing,
    Everything,
    /// The first ones, up to a point that the seed chooses.
    Prefix(u64),
    /// Any of them, as the seed chooses, whole.
    Subset(u64),
    /// Any sectors of any of them.
    Sectors(u64),
}

/// How operations that change the disk fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// From this operation on, everything fails: the power is gone.
    PowerCutAt(usize),
    /// Writes and growth find no space from this operation on.
    FullFrom(usize),
    /// As many operations from this one on find no space.
    FullFor(usize, usize),
    /// Syncs fail.
    SyncFails,
}

const SECTOR: usize = 512;

/// Clones share the disk.
#[derive(Debug, Clone)]
pub(crate) struct Disk(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    durable: Vec<u8>,
    seen: Vec<u8>,
    unsynced: Vec<Change>,
    operations: usize,
    fault: Fault,
    capacity: usize,
}

#[derive(Debug, Clone)]
enum Change {
    Write(usize, Vec<u8>),
    SetLen(usize),
}

impl Disk {
    pub(crate) fn new() -> Self {
        Self::holding(Vec::new())
    }

    pub(crate) fn holding(content: Vec<u8>) -> Self {
        Self(Arc::new(Mutex::new(State {
            durable: content.clone(),
            seen: content,
            unsynced: Vec::new(),
            operations: 0,
            fault: Fault::None,
            capacity: usize::MAX,
        })))
    }

    pub(crate) fn fail(&self, fault: Fault) {
        self.0.lock().fault = fault;
    }

    pub(crate) fn limit(&self, capacity: usize) {
        self.0.lock().capacity = capacity;
    }

    pub(crate) fn size(&self) -> usize {
        self.0.lock().seen.len()
    }

    /// Writes, changes of length and syncs so far.
    pub(crate) fn operations(&self) -> usize {
        self.0.lock().operations
    }

    /// The disk as the next boot finds it.
    pub(crate) fn after_power_cut(&self, keep: Keep) -> Disk {
        let state = self.0.lock();
        let mut content = state.durable.clone();
        let mut random = match keep {
            Keep::Nothing | Keep::Everything => Random(1),
            Keep::Prefix(seed) | Keep::Subset(seed) | Keep::Sectors(seed) => Random(seed | 1),
        };
        let prefix = random.below(state.unsynced.len() + 1);
        for (index, change) in state.unsynced.iter().enumerate() {
            match keep {
                Keep::Nothing => {}
                Keep::Everything => change.apply(&mut content),
                Keep::Prefix(_) if index < prefix => change.apply(&mut content),
                Keep::Prefix(_) => {}
                Keep::Subset(_) if random.below(2) == 0 => change.apply(&mut content),
                Keep::Subset(_) => {}
                Keep::Sectors(_) => change
                    .sectors(&mut random)
                    .for_each(|part| part.apply(&mut content)),
            }
        }
        Disk::holding(content)
    }
}

impl Change {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Change::Write(offset, data) => {
                let end = offset + data.len();
                if content.len() < end {
                    content.resize(end, 0);
                }
                content[*offset..end].copy_from_slice(data);
            }
            Change::SetLen(length) => content.resize(*length, 0),
        }
    }

    /// A random choice of the sectors it touches.
    fn sectors(&self, random: &mut Random) -> impl Iterator<Item = Change> {
        let mut parts = Vec::new();
        match self {
            Change::SetLen(_) if random.below(2) == 0 => parts.push(self.clone()),
            Change::SetLen(_) => {}
            Change::Write(offset, data) => {
                let mut from = 0;
                while from < data.len() {
                    let to = data.len().min(from + SECTOR - (offset + from) % SECTOR);
                    if random.below(2) == 0 {
                        parts.push(Change::Write(offset + from, data[from..to].to_vec()));
                    }
                    from = to;
                }
            }
        }
        parts.into_iter()
    }
}

impl State {
    /// Counts an operation and says whether it fails.
    fn operate(&mut self, is_sync: bool) -> io::Result<()> {
        let operation = self.operations;
        self.operations += 1;
        let full = || Err(io::ErrorKind::StorageFull.into());
        match self.fault {
            Fault::PowerCutAt(cut) if operation >= cut => Err(io::Error::other("the power is gone")),
            Fault::SyncFails if is_sync => Err(io::Error::other("the disk does not answer")),
            Fault::FullFrom(first) if !is_sync && operation >= first => full(),
            Fault::FullFor(first, count) if !is_sync && (first..first + count).contains(&operation) => full(),
            _ => Ok(()),
        }
    }

    fn change(&mut self, change: Change) -> io::Result<()> {
        self.operate(false)?;
        let end = match &change {
            Change::Write(offset, data) => offset + data.len(),
            Change::SetLen(length) => *length,
        };
        if end > self.capacity && end > self.seen.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        change.apply(&mut self.seen);
        self.unsynced.push(change);
        Ok(())
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        Ok(self.0.lock().seen.len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let state = self.0.lock();
        if let Fault::PowerCutAt(cut) = state.fault
            && state.operations > cut
        {
            return Err(io::Error::other("the power is gone"));
        }
        let offset = usize::try_from(offset).unwrap();
        let from = state
            .seen
            .get(offset..offset + out.len())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        out.copy_from_slice(from);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.0
            .lock()
            .change(Change::SetLen(usize::try_from(len).unwrap()))
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        state.operate(true)?;
        let State {
            durable, unsynced, ..
        } = &mut *state;
        unsynced.drain(..).for_each(|change| change.apply(durable));
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.0
            .lock()
            .change(Change::Write(usize::try_from(offset).unwrap(), data.to_vec()))
    }
}

/// xorshift64*: the same seed, the same test.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        usize::try_from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33).unwrap() % bound
    }
}
