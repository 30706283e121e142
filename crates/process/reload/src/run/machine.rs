//! Decides which child runs and which one leaves. No clock, no process, no `await`.
//!
//! ```text
//!             start                    end by itself, --restart
//!   nothing ─────────▶ current ─────────────────────────────────▶ nothing (waits for the back-off)
//!                       │   ▲
//!        restart,       │   │ ready                 ┌─▶ leaving: told to end ─▶ its group killed after --grace
//!        --overlap      ▼   │                       │
//!                     candidate ── not in time ─────┤
//!                                                   │
//!   current ── restart, or the end of `run` ────────┘   (without --overlap the next starts when all have left)
//! ```

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::backoff::{Backoff, Crashes};
use super::spawn::Ended;

/// How long killed processes may take to be gone before nobody waits for them any more (a disk that hangs).
const GONE_WITHIN: Duration = Duration::from_secs(5);

/// How long what a program has left behind may take to end, at most; `--grace` if that is less.
const LEFT_BEHIND_GRACE: Duration = Duration::from_secs(5);

/// One start of the program, counted from zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ChildId(pub(crate) u64);

/// Whether a program that ends by itself is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub(crate) enum RestartPolicy {
    /// `run` ends with its exit code, so that whoever runs the container sees it.
    #[default]
    Never,
    /// Only if its exit code is not 0.
    OnFailure,
    /// Whatever its exit code.
    Always,
}

/// What does not change while it runs.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    pub(crate) restart: RestartPolicy,
    pub(crate) backoff: Backoff,
    /// From the signal that ends a child until its group is killed.
    pub(crate) grace: Duration,
    /// What a child is told when it shall end.
    pub(crate) stop_signal: i32,
    /// Whether, and how, the new child of a restart starts before the old one is told to end.
    pub(crate) overlap: Option<Overlap>,
}

/// The new child starts before the old one is told to end.
#[derive(Debug, Clone)]
pub(crate) struct Overlap {
    /// How long it may take to say that it is ready.
    pub(crate) ready_within: Duration,
}

/// What has happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Happened {
    /// The first thing.
    Begun,
    /// A child has ended, or could not be started.
    Ended(ChildId, Ended),
    /// Nothing is left of the group of a child that has ended.
    Gone(ChildId),
    /// A child has said `READY=1`.
    Ready(ChildId),
    /// `run` itself was sent a signal.
    Signal(i32),
    /// A change wants a new child.
    Restart,
    /// A time has come that [`Machine::wakes`] named.
    Time,
}

/// What is to be done about it, in this order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Act {
    /// Start the program as this child.
    Start(ChildId),
    /// Send the child a signal.
    Signal(ChildId, i32),
    /// Send the child's group a signal.
    SignalGroup(ChildId, i32),
    /// The time to end is over: kill what is left of the child's group.
    Kill(ChildId),
    /// Tell whoever waits for the restart how it went.
    Restarted(Result<ChildId, NotRestarted>),
    /// The next start waits this long.
    Pause(Duration),
    /// End with this exit code.
    Exit(u8),
}

/// Why a restart has not come about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotRestarted {
    #[error("the new process ended with exit code {} before it was ready; the old one goes on", .0.exit_code())]
    EndedEarly(Ended),
    #[error(
        "the new process did not say READY=1 to NOTIFY_SOCKET within {within:?}; it is stopped, the old one goes on"
    )]
    NotReady { within: Duration },
    #[error("the process that was to be replaced has ended meanwhile")]
    Overtaken,
    #[error("the supervisor is ending")]
    Ending,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Machine {
    policy: Policy,
    next: u64,
    current: Option<Running>,
    candidate: Option<Candidate>,
    leaving: BTreeMap<ChildId, Leaving>,
    start: Start,
    crashes: Crashes,
    goal: Goal,
    /// Until when an end of the child counts as asked for: it was sent SIGINT or SIGQUIT.
    asked_until: Option<Instant>,
}

#[derive(Debug)]
struct Running {
    child: ChildId,
    since: Instant,
}

#[derive(Debug)]
struct Candidate {
    child: ChildId,
    since: Instant,
    ready_until: Instant,
}

#[derive(Debug)]
struct Leaving {
    has_ended: bool,
    kill_at: Instant,
    is_killed: bool,
}

/// When the next child starts, if there is none.
#[derive(Debug, PartialEq, Eq)]
enum Start {
    Not,
    WhenAllHaveLeft,
    At(Instant),
}

#[derive(Debug, PartialEq, Eq)]
enum Goal {
    Run,
    /// End when nothing is left; with the exit code of the child, once it is known.
    End(Option<u8>),
}

impl Machine {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            policy,
            next: 0,
            current: None,
            candidate: None,
            leaving: BTreeMap::new(),
            start: Start::Not,
            crashes: Crashes::default(),
            goal: Goal::Run,
            asked_until: None,
        }
    }

    /// The child that signals and changes are told to.
    pub(crate) fn current(&self) -> Option<ChildId> {
        self.current.as_ref().map(|running| running.child)
    }

    /// Whether this child has been told to end, or is about to be: if it ends, it is not by itself.
    pub(crate) fn was_asked(&self, child: ChildId, now: Instant) -> bool {
        self.leaving.contains_key(&child) || self.asked_until.is_some_and(|until| now <= until)
    }

    /// Whether nothing is started any more.
    pub(crate) fn is_ending(&self) -> bool {
        self.goal != Goal::Run
    }

    /// When [`Happened::Time`] is due.
    pub(crate) fn wakes(&self) -> Option<Instant> {
        let leaving = self.leaving.values().map(|leaving| leaving.kill_at);
        let start = match self.start {
            Start::At(at) => Some(at),
            Start::Not | Start::WhenAllHaveLeft => None,
        };
        leaving
            .chain(start)
            .chain(self.candidate.as_ref().map(|candidate| candidate.ready_until))
            .min()
    }

    /// What is to be done about what has happened.
    pub(crate) fn on(&mut self, happened: Happened, now: Instant) -> Vec<Act> {
        let mut acts = Vec::new();
        match happened {
            Happened::Begun => self.start_current(now, &mut acts),
            Happened::Ended(child, ended) => self.ended(child, ended, now, &mut acts),
            Happened::Gone(child) => {
                self.leaving.remove(&child);
            }
            Happened::Ready(child) => self.ready(child, now, &mut acts),
            Happened::Signal(signal) => self.signal(signal, now, &mut acts),
            Happened::Restart => self.restart(now, &mut acts),
            Happened::Time => self.time(now, &mut acts),
        }
        self.settle(now, &mut acts);
        acts
    }

    fn restart(&mut self, now: Instant, acts: &mut Vec<Act>) {
        if self.goal != Goal::Run {
            acts.push(Act::Restarted(Err(NotRestarted::Ending)));
            return;
        }
        if let Some(outdated) = self.candidate.take() {
            self.leave(outdated.child, self.policy.stop_signal, now, acts);
        }
        match (&self.current, &self.policy.overlap) {
            (Some(_), Some(overlap)) => {
                let ready_until = now + overlap.ready_within;
                let child = self.begin(acts);
                self.candidate = Some(Candidate {
                    child,
                    since: now,
                    ready_until,
                });
            }
            (Some(_), None) => {
                let old = self.current.take().expect("it was just seen").child;
                self.leave(old, self.policy.stop_signal, now, acts);
                self.start = Start::WhenAllHaveLeft;
            }
            // It waits for its back-off: a change is a reason to try at once.
            (None, _) => self.start = Start::WhenAllHaveLeft,
        }
    }

    fn ended(&mut self, child: ChildId, ended: Ended, now: Instant, acts: &mut Vec<Act>) {
        if let Some(leaving) = self.leaving.get_mut(&child) {
            leaving.has_ended = true;
            leaving.kill_at = leaving.kill_at.min(now + LEFT_BEHIND_GRACE);
            // What it has left behind is told as well, once it cannot tell it itself any more.
            let signal = if leaving.is_killed {
                libc::SIGKILL
            } else {
                libc::SIGTERM
            };
            acts.push(Act::SignalGroup(child, signal));
            if let Goal::End(code @ None) = &mut self.goal {
                *code = Some(ended.exit_code());
            }
            return;
        }
        self.sweep(child, now, acts);
        if self
            .candidate
            .take_if(|candidate| candidate.child == child)
            .is_some()
        {
            acts.push(Act::Restarted(Err(NotRestarted::EndedEarly(ended))));
        } else if let Some(old) = self.current.take_if(|running| running.child == child) {
            match self.candidate.take() {
                // The service goes on with the one that is there, ready or not.
                Some(candidate) => {
                    self.current = Some(Running {
                        child: candidate.child,
                        since: candidate.since,
                    });
                    acts.push(Act::Restarted(Err(NotRestarted::Overtaken)));
                }
                None => self.crashed(ended, now - old.since, now, acts),
            }
        }
    }

    /// The current child has ended by itself, and there is no other.
    fn crashed(&mut self, ended: Ended, ran: Duration, now: Instant, acts: &mut Vec<Act>) {
        let was_asked = self.asked_until.is_some_and(|until| now <= until);
        let again = match self.policy.restart {
            _ if was_asked => false,
            RestartPolicy::Never => false,
            RestartPolicy::OnFailure => ended != Ended::Exited(0),
            RestartPolicy::Always => true,
        };
        if again {
            let pause = self.crashes.pause(&self.policy.backoff, ran);
            self.start = Start::At(now + pause);
            acts.push(Act::Pause(pause));
        } else {
            self.goal = Goal::End(Some(ended.exit_code()));
        }
    }

    fn ready(&mut self, child: ChildId, now: Instant, acts: &mut Vec<Act>) {
        let Some(new) = self.candidate.take_if(|candidate| candidate.child == child) else {
            return;
        };
        if let Some(old) = self.current.replace(Running {
            child,
            since: new.since,
        }) {
            self.leave(old.child, self.policy.stop_signal, now, acts);
        }
        acts.push(Act::Restarted(Ok(child)));
    }

    fn signal(&mut self, signal: i32, now: Instant, acts: &mut Vec<Act>) {
        match signal {
            libc::SIGTERM => self.end(self.policy.stop_signal, now, acts),
            // Between two children: there shall be no other.
            libc::SIGINT | libc::SIGQUIT if self.current.is_none() => self.end(signal, now, acts),
            signal => {
                if matches!(signal, libc::SIGINT | libc::SIGQUIT) {
                    self.asked_until = Some(now + self.policy.grace);
                }
                acts.extend(self.current().map(|child| Act::Signal(child, signal)));
            }
        }
    }

    /// Everything that runs is told to end, and nothing is started any more.
    fn end(&mut self, signal: i32, now: Instant, acts: &mut Vec<Act>) {
        // Those that are leaving hear it once more, such as a second SIGINT.
        let still = self.leaving.iter().filter(|(_, leaving)| !leaving.has_ended);
        acts.extend(still.map(|(child, _)| Act::Signal(*child, signal)));
        if self.goal != Goal::Run {
            return;
        }
        let nothing_runs = self.current.is_none() && self.leaving.is_empty();
        self.goal = Goal::End(nothing_runs.then_some(Ended::Signaled(signal).exit_code()));
        self.start = Start::Not;
        if let Some(candidate) = self.candidate.take() {
            self.leave(candidate.child, signal, now, acts);
            acts.push(Act::Restarted(Err(NotRestarted::Ending)));
        }
        if let Some(current) = self.current.take() {
            self.leave(current.child, signal, now, acts);
        }
    }

    fn time(&mut self, now: Instant, acts: &mut Vec<Act>) {
        for (child, leaving) in &mut self.leaving {
            if leaving.kill_at <= now && !leaving.is_killed {
                leaving.is_killed = true;
                leaving.kill_at = now + GONE_WITHIN;
                acts.push(Act::Kill(*child));
            }
        }
        self.leaving.retain(|_, leaving| leaving.kill_at > now);
        if let Some(late) = self.candidate.take_if(|candidate| candidate.ready_until <= now) {
            self.leave(late.child, self.policy.stop_signal, now, acts);
            let within = self
                .policy
                .overlap
                .as_ref()
                .map_or(Duration::ZERO, |overlap| overlap.ready_within);
            acts.push(Act::Restarted(Err(NotRestarted::NotReady { within })));
        }
        if matches!(self.start, Start::At(at) if at <= now) {
            self.start = Start::WhenAllHaveLeft;
        }
    }

    /// What follows once everybody who had to leave has left.
    fn settle(&mut self, now: Instant, acts: &mut Vec<Act>) {
        if self.current.is_some() || !self.leaving.is_empty() {
            return;
        }
        match (&self.goal, &self.start) {
            // Without a code it was killed, and is not gone even so.
            (Goal::End(code), _) => {
                acts.push(Act::Exit(
                    code.unwrap_or(Ended::Signaled(libc::SIGKILL).exit_code()),
                ));
            }
            (Goal::Run, Start::WhenAllHaveLeft) => {
                self.start = Start::Not;
                self.start_current(now, acts);
                acts.extend(self.current().map(|child| Act::Restarted(Ok(child))));
            }
            (Goal::Run, Start::Not | Start::At(_)) => {}
        }
    }

    fn start_current(&mut self, now: Instant, acts: &mut Vec<Act>) {
        let child = self.begin(acts);
        self.current = Some(Running { child, since: now });
    }

    fn begin(&mut self, acts: &mut Vec<Act>) -> ChildId {
        let child = ChildId(self.next);
        self.next += 1;
        acts.push(Act::Start(child));
        child
    }

    /// Tells a child to end.
    fn leave(&mut self, child: ChildId, signal: i32, now: Instant, acts: &mut Vec<Act>) {
        acts.push(Act::Signal(child, signal));
        let kill_at = now + self.policy.grace;
        self.leaving.insert(
            child,
            Leaving {
                has_ended: false,
                kill_at,
                is_killed: false,
            },
        );
    }

    /// Tells what a child that ended by itself has left in its group.
    fn sweep(&mut self, child: ChildId, now: Instant, acts: &mut Vec<Act>) {
        acts.push(Act::SignalGroup(child, libc::SIGTERM));
        let kill_at = now + self.policy.grace.min(LEFT_BEHIND_GRACE);
        self.leaving.insert(
            child,
            Leaving {
                has_ended: true,
                kill_at,
                is_killed: false,
            },
        );
    }
}

#[cfg(test)]
mod tests;
