//! Reads a log step by step on a thread that may block.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use tracing::debug;

use super::LogOptions;
use super::decoder::Decoder;
use super::files::{Growth, LogFiles, Part};
use super::tail::TailSearch;
use super::watch::Watch;

/// How much of a file is read at once; what a client is handed at once is about as much.
const BLOCK_BYTES: usize = 64 << 10;

/// Where a log is read, and what is still to come.
pub(crate) struct Reader {
    files: LogFiles,
    options: LogOptions,
    decoder: Decoder,
    is_open: bool,
    part: Option<Part>,
    /// What follows `part`, as it was found at the start: open, so that it stays readable when it is removed.
    queue: VecDeque<Part>,
    /// Only of a follower.
    watch: Option<Watch>,
}

/// What one step brought.
#[derive(Debug)]
pub(crate) enum Step {
    /// It went on; these bytes, maybe none, are for the client.
    Bytes(Vec<u8>),
    /// All that is written by now is read; the watch hears of more.
    Idle,
    /// Nothing more will come.
    Finished,
}

impl Reader {
    pub(crate) fn new(file: PathBuf, options: LogOptions) -> Self {
        Self {
            files: LogFiles::new(file),
            decoder: Decoder::new(&options),
            options,
            is_open: false,
            part: None,
            queue: VecDeque::new(),
            watch: None,
        }
    }

    /// From now on the end of the newest file is not the end.
    pub(crate) fn follow(&mut self, watch: Watch) {
        self.watch = Some(watch);
    }

    /// Reads at most one block. The first step also finds where the wanted lines begin.
    pub(crate) fn step(&mut self) -> io::Result<Step> {
        if self.decoder.is_full() {
            return Ok(Step::Finished);
        }
        if !self.is_open {
            self.open()?;
            self.is_open = true;
        }
        let mut block = vec![0; BLOCK_BYTES];
        loop {
            let read = self.part.as_mut().map_or(Ok(0), |part| part.read(&mut block))?;
            if read > 0 {
                return Ok(Step::Bytes(self.decode(&block[..read])));
            }
            if !self.advance()? {
                return Ok(if self.watch.is_some() {
                    Step::Idle
                } else {
                    Step::Finished
                });
            }
        }
    }

    fn open(&mut self) -> io::Result<()> {
        let Some((newest, mut older)) = self.files.newest()? else {
            return Ok(());
        };
        let Some(lines) = self.options.tail_lines else {
            return self.open_whole(newest, older);
        };
        let mut search = TailSearch::new(lines, self.options.stream);
        let mut candidate = Some(newest);
        while let Some(mut part) = candidate {
            let begin = search.begin_in(part.file())?;
            part.offset = begin.unwrap_or(0);
            self.queue.push_front(part);
            candidate = match older.pop() {
                // It may just have been removed as the oldest one; then nothing older is left either.
                Some(name) if begin.is_none() => self.files.open_rotated(name)?,
                _ => None,
            };
        }
        Ok(())
    }

    /// Everything that is kept; without what was over before the wanted time.
    fn open_whole(&mut self, mut newest: Part, older: Vec<OsString>) -> io::Result<()> {
        for name in older {
            // It may just have been removed as the oldest one.
            let Some(part) = self.files.open_rotated(name)? else {
                continue;
            };
            if !self.options.since.is_some_and(|since| part.is_over_before(since)) {
                self.queue.push_back(part);
            }
        }
        newest.offset = 0;
        self.queue.push_back(newest);
        Ok(())
    }

    fn decode(&mut self, block: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(block.len());
        self.decoder.push(block, &mut out);
        let damaged = self.decoder.take_damaged();
        if damaged > 0 {
            debug!(file = %self.files.path().display(), records = damaged, "damaged log records left out");
        }
        out
    }

    /// The part is read to its end: is there more by now, in it or behind it?
    fn advance(&mut self) -> io::Result<bool> {
        if let Some(next) = self.queue.pop_front() {
            self.begin(next);
            return Ok(true);
        }
        let Some(watch) = &mut self.watch else {
            return Ok(false);
        };
        // The order makes it exact. Watched before it is looked at: what is overlooked here is heard. The next file looked
        // for before the length of this one: when there is a next file, this one has its last length.
        watch.place(self.files.directory())?;
        let next = self.files.after(self.part.as_ref())?;
        if let Some(part) = &mut self.part {
            match part.growth()? {
                Growth::Appended => return Ok(true),
                Growth::Truncated => {
                    part.offset = 0;
                    self.decoder.restart();
                    return Ok(true);
                }
                Growth::Nothing => {}
            }
        }
        let Some(next) = next else { return Ok(false) };
        self.begin(next);
        Ok(true)
    }

    fn begin(&mut self, part: Part) {
        self.part = Some(part);
        self.decoder.restart();
    }
}
