//! Decides when to look and what to tell. Pure: signs and looks with their times go in.
//!
//! ```text
//!             sign                    due                 another content, and it is quiet
//!   calm ───────────────▶ unrest ───────────▶ look ─────────────────────────────────────────▶ tell ─▶ calm
//!    │                      ▲                 ▲  │ the same content: calm
//!    └── safety look ───────┼─────────────────┘  │
//!                           └────────────────────┘ another content, but somebody may still be writing
//! ```

use std::time::{Duration, Instant};

use crate::content::Content;

/// What an event means, in order of urgency.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Sign {
    /// A file is written: the look waits until it is quiet.
    Write,
    /// A place went away or appeared: look at once, so that what is there now is watched, and wait before telling.
    Lost,
    /// Events were lost: the same, and it is counted.
    Overflow,
    /// A link was replaced by a rename: what it names now is complete. Look and tell at once.
    Swap,
}

/// The times of a watcher.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Times {
    /// No sign for so long means that a writer of plain files is done.
    pub(crate) settle: Duration,
    /// A directory that never gets quiet is told about after this time all the same.
    pub(crate) settle_max: Duration,
    /// Time between two looks without a sign.
    pub(crate) safety_look: Duration,
    /// The same where not everything is heard.
    pub(crate) poll: Duration,
}

/// What to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Look,
    WaitUntil(Instant),
}

/// A look that has to be told.
#[derive(Debug)]
pub(crate) struct Told {
    pub(crate) before: Option<Content>,
    pub(crate) is_initial: bool,
    pub(crate) seen: Instant,
    /// Whether a sign has led to it, and not just a look.
    pub(crate) is_announced: bool,
}

/// What a look found.
#[derive(Debug)]
pub(crate) struct Found {
    /// `None`: there is nothing to tell of, the path leads nowhere or cannot be read.
    pub(crate) content: Option<Content>,
    /// Whether content was there that was not watched before, so that nobody knows whether it is still being written.
    pub(crate) has_grown: bool,
    /// Whether changes may happen without a sign.
    pub(crate) is_deaf: bool,
}

#[derive(Debug)]
pub(crate) struct Machine {
    times: Times,
    /// What was told last.
    told: Option<Content>,
    /// What the last look found, if that is not told yet.
    candidate: Option<Content>,
    unrest: Option<Unrest>,
    /// What the look that is on its way answers to.
    answering: Option<Unrest>,
    has_looked: bool,
    next_look: Option<Instant>,
}

#[derive(Debug, Clone, Copy)]
struct Unrest {
    first: Instant,
    last: Instant,
    /// The most urgent sign of all.
    sign: Sign,
    /// The least urgent one.
    least: Sign,
    /// Whether it began with a sign.
    is_announced: bool,
}

impl Machine {
    pub(crate) fn new(times: Times) -> Self {
        Self {
            times,
            told: None,
            candidate: None,
            unrest: None,
            answering: None,
            has_looked: false,
            next_look: None,
        }
    }

    /// What was told last.
    pub(crate) fn told(&self) -> Option<&Content> {
        self.told.as_ref()
    }

    /// What the next look may compare with: what the last one found.
    pub(crate) fn known(&self) -> Option<&Content> {
        self.candidate.as_ref().or(self.told.as_ref())
    }

    pub(crate) fn sign(&mut self, sign: Sign, now: Instant) {
        match &mut self.unrest {
            Some(unrest) => {
                unrest.last = now;
                unrest.sign = unrest.sign.max(sign);
                unrest.least = unrest.least.min(sign);
            }
            None => {
                self.unrest = Some(Unrest {
                    first: now,
                    last: now,
                    sign,
                    least: sign,
                    is_announced: true,
                });
            }
        }
    }

    pub(crate) fn step(&self, now: Instant) -> Step {
        let Some(next_look) = self.next_look else {
            return Step::Look;
        };
        let due = match self.unrest {
            Some(unrest) if unrest.sign > Sign::Write => now,
            Some(unrest) => {
                let quiet = unrest.last + self.times.settle;
                quiet.min(unrest.first + self.times.settle_max)
            }
            None => next_look,
        };
        if due <= now {
            Step::Look
        } else {
            Step::WaitUntil(due)
        }
    }

    /// Whether nothing has happened since the last look but swaps of links.
    pub(crate) fn has_only_swapped(&self) -> bool {
        self.unrest.is_some_and(|unrest| unrest.least == Sign::Swap)
    }

    /// A look begins; signs from now on are later than it.
    pub(crate) fn begin_look(&mut self) {
        self.answering = self.unrest.take();
    }

    /// A look has ended, and all signs that came during it were handed over.
    pub(crate) fn looked(&mut self, found: Found, began: Instant, now: Instant) -> Option<Told> {
        let period = if found.is_deaf {
            self.times.poll
        } else {
            self.times.safety_look
        };
        self.next_look = Some(now + period);
        let answering = self.answering.take();
        let is_first = !std::mem::replace(&mut self.has_looked, true);
        let Some(content) = found.content else {
            self.candidate = None;
            return None;
        };
        if let Some(told) = &mut self.told
            && told.is_same(&content)
        {
            // Only names and times may be new: those of a revision with the same content.
            *told = content;
            self.candidate = None;
            return None;
        }
        let first = answering.map_or(began, |unrest| unrest.first);
        let is_announced = answering.is_some_and(|unrest| unrest.is_announced);
        let is_overdue = now.duration_since(first) >= self.times.settle_max;
        if is_first || is_overdue || self.is_quiet(&content, answering, found.has_grown) {
            self.candidate = None;
            let before = self.told.replace(content);
            return Some(Told {
                before,
                is_initial: is_first,
                seen: first,
                is_announced,
            });
        }
        self.candidate = Some(content);
        let unrest = self.unrest.get_or_insert(Unrest {
            first,
            last: now,
            sign: Sign::Write,
            least: Sign::Write,
            is_announced,
        });
        unrest.first = first;
        None
    }

    /// Whether nobody is still writing what was found.
    fn is_quiet(&self, content: &Content, answering: Option<Unrest>, has_grown: bool) -> bool {
        if content.is_projected || self.times.settle.is_zero() {
            return true;
        }
        match answering.map(|unrest| unrest.sign) {
            Some(Sign::Swap) => true,
            Some(Sign::Write) => {
                let has_moved = self
                    .candidate
                    .as_ref()
                    .is_some_and(|candidate| !candidate.is_same(content));
                self.unrest.is_none() && !has_grown && !has_moved
            }
            Some(Sign::Lost | Sign::Overflow) | None => false,
        }
    }
}

#[cfg(test)]
mod tests;
