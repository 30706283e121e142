use super::*;

const TERM: i32 = libc::SIGTERM;
const FAILED: Ended = Ended::Exited(1);

fn child(id: u64) -> ChildId {
    ChildId(id)
}

fn policy(restart: RestartPolicy, overlap: bool) -> Policy {
    let seconds = Duration::from_secs;
    Policy {
        restart,
        backoff: Backoff::default(),
        grace: seconds(30),
        stop_signal: TERM,
        overlap: overlap.then_some(Overlap {
            ready_within: seconds(20),
        }),
    }
}

/// A machine, and a clock that the test sets.
struct Told {
    machine: Machine,
    begun: Instant,
}

impl Told {
    fn new(policy: Policy) -> Self {
        let (machine, begun) = (Machine::new(policy), Instant::now());
        let mut told = Self { machine, begun };
        told.at(0, Happened::Begun, &[Act::Start(child(0))]);
        told
    }

    /// What happens this many seconds after the start is answered by these acts.
    #[track_caller]
    fn at(&mut self, second: u64, happened: Happened, acts: &[Act]) {
        let now = self.begun + Duration::from_secs(second);
        assert_eq!(self.machine.on(happened, now), acts, "{happened:?} at {second} s");
    }

    /// The next time that it wants to be woken, in seconds after the start.
    #[track_caller]
    fn wakes(&self, second: Option<u64>) {
        let wakes = self.machine.wakes().map(|at| (at - self.begun).as_secs());
        assert_eq!(wakes, second);
    }
}

#[test]
fn the_end_of_the_program_is_the_end_of_run() {
    let mut told = Told::new(policy(RestartPolicy::Never, false));
    told.at(
        5,
        Happened::Ended(child(0), Ended::Exited(7)),
        &[Act::SignalGroup(child(0), TERM)],
    );
    told.wakes(Some(10));
    told.at(5, Happened::Gone(child(0)), &[Act::Exit(7)]);
}

#[test]
fn what_a_program_leaves_behind_is_killed_and_given_up_in_the_end() {
    let mut told = Told::new(policy(RestartPolicy::Never, false));
    told.at(
        0,
        Happened::Ended(child(0), Ended::Exited(7)),
        &[Act::SignalGroup(child(0), TERM)],
    );
    told.at(5, Happened::Time, &[Act::Kill(child(0))]);
    told.at(9, Happened::Time, &[]);
    told.at(10, Happened::Time, &[Act::Exit(7)]);
}

#[test]
fn sigterm_ends_the_program_or_kills_it_after_the_grace() {
    let mut told = Told::new(policy(RestartPolicy::Always, false));
    told.at(1, Happened::Signal(TERM), &[Act::Signal(child(0), TERM)]);
    told.at(2, Happened::Signal(TERM), &[Act::Signal(child(0), TERM)]);
    told.wakes(Some(31));
    told.at(31, Happened::Time, &[Act::Kill(child(0))]);
    let killed = Ended::Signaled(libc::SIGKILL);
    told.at(
        31,
        Happened::Ended(child(0), killed),
        &[Act::SignalGroup(child(0), libc::SIGKILL)],
    );
    told.at(31, Happened::Gone(child(0)), &[Act::Exit(137)]);
}

#[test]
fn an_end_that_was_asked_for_is_no_crash() {
    for (after, again) in [(10, false), (31, true)] {
        let mut told = Told::new(policy(RestartPolicy::Always, false));
        told.at(
            0,
            Happened::Signal(libc::SIGINT),
            &[Act::Signal(child(0), libc::SIGINT)],
        );
        let mut acts = vec![Act::SignalGroup(child(0), TERM)];
        if again {
            acts.push(Act::Pause(Duration::ZERO));
        }
        told.at(
            after,
            Happened::Ended(child(0), Ended::Signaled(libc::SIGINT)),
            &acts,
        );
        let ends: &[Act] = if again { &[] } else { &[Act::Exit(130)] };
        told.at(after, Happened::Gone(child(0)), ends);
    }
}

#[test]
fn a_program_that_crashes_waits_longer_each_time() {
    let mut told = Told::new(policy(RestartPolicy::OnFailure, false));
    let mut now = 0;
    for (id, pause) in [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8)] {
        let pause_acts = [
            Act::SignalGroup(child(id), TERM),
            Act::Pause(Duration::from_secs(pause)),
        ];
        told.at(now, Happened::Ended(child(id), FAILED), &pause_acts);
        told.at(now, Happened::Gone(child(id)), &[]);
        now += pause;
        told.wakes(Some(now));
        told.at(
            now,
            Happened::Time,
            &[Act::Start(child(id + 1)), Act::Restarted(Ok(child(id + 1)))],
        );
    }
    told.at(
        now,
        Happened::Ended(child(5), Ended::Exited(0)),
        &[Act::SignalGroup(child(5), TERM)],
    );
    told.at(now, Happened::Gone(child(5)), &[Act::Exit(0)]);
}

#[test]
fn a_change_ends_the_wait_for_a_restart() {
    let mut told = Told::new(policy(RestartPolicy::Always, false));
    let crash = |id, pause| {
        [
            Act::SignalGroup(child(id), TERM),
            Act::Pause(Duration::from_secs(pause)),
        ]
    };
    let starts = |id| [Act::Start(child(id)), Act::Restarted(Ok(child(id)))];
    told.at(0, Happened::Ended(child(0), FAILED), &crash(0, 0));
    told.at(0, Happened::Gone(child(0)), &[]);
    told.at(0, Happened::Time, &starts(1));
    told.at(0, Happened::Ended(child(1), FAILED), &crash(1, 1));
    told.at(0, Happened::Gone(child(1)), &[]);
    told.at(0, Happened::Restart, &starts(2));
    told.wakes(None);
}

#[test]
fn a_restart_starts_the_new_one_when_the_old_one_and_its_group_are_gone() {
    let mut told = Told::new(policy(RestartPolicy::Never, false));
    told.at(1, Happened::Restart, &[Act::Signal(child(0), TERM)]);
    told.at(2, Happened::Restart, &[]);
    told.at(
        3,
        Happened::Ended(child(0), Ended::Exited(0)),
        &[Act::SignalGroup(child(0), TERM)],
    );
    told.at(
        4,
        Happened::Gone(child(0)),
        &[Act::Start(child(1)), Act::Restarted(Ok(child(1)))],
    );
    told.wakes(None);
    // Nobody asked for its end now.
    told.at(
        5,
        Happened::Ended(child(1), FAILED),
        &[Act::SignalGroup(child(1), TERM)],
    );
    told.at(5, Happened::Gone(child(1)), &[Act::Exit(1)]);
}

#[test]
fn a_sigterm_or_sigint_in_the_midst_of_a_restart_is_the_end() {
    for signal in [TERM, libc::SIGINT] {
        let mut told = Told::new(policy(RestartPolicy::Always, false));
        told.at(1, Happened::Restart, &[Act::Signal(child(0), TERM)]);
        told.at(2, Happened::Signal(signal), &[Act::Signal(child(0), signal)]);
        told.at(
            3,
            Happened::Ended(child(0), Ended::Exited(0)),
            &[Act::SignalGroup(child(0), TERM)],
        );
        told.at(3, Happened::Gone(child(0)), &[Act::Exit(0)]);
    }
}

#[test]
fn with_overlap_the_old_one_goes_when_the_new_one_is_ready() {
    let mut told = Told::new(policy(RestartPolicy::Never, true));
    told.at(1, Happened::Restart, &[Act::Start(child(1))]);
    told.wakes(Some(21));
    told.at(
        2,
        Happened::Signal(libc::SIGHUP),
        &[Act::Signal(child(0), libc::SIGHUP)],
    );
    told.at(
        3,
        Happened::Ready(child(1)),
        &[Act::Signal(child(0), TERM), Act::Restarted(Ok(child(1)))],
    );
    told.at(
        4,
        Happened::Ended(child(0), Ended::Exited(0)),
        &[Act::SignalGroup(child(0), TERM)],
    );
    told.at(4, Happened::Gone(child(0)), &[]);
    told.at(
        5,
        Happened::Signal(libc::SIGHUP),
        &[Act::Signal(child(1), libc::SIGHUP)],
    );
}

#[test]
fn with_overlap_a_new_one_that_fails_leaves_the_old_one() {
    let mut told = Told::new(policy(RestartPolicy::Never, true));
    told.at(1, Happened::Restart, &[Act::Start(child(1))]);
    let early = Act::Restarted(Err(NotRestarted::EndedEarly(FAILED)));
    told.at(
        2,
        Happened::Ended(child(1), FAILED),
        &[Act::SignalGroup(child(1), TERM), early],
    );
    told.at(2, Happened::Gone(child(1)), &[]);
    told.at(3, Happened::Restart, &[Act::Start(child(2))]);
    let late = Act::Restarted(Err(NotRestarted::NotReady {
        within: Duration::from_secs(20),
    }));
    told.at(23, Happened::Time, &[Act::Signal(child(2), TERM), late]);
    told.at(
        24,
        Happened::Ended(child(2), Ended::Exited(0)),
        &[Act::SignalGroup(child(2), TERM)],
    );
    told.at(24, Happened::Gone(child(2)), &[]);
    assert_eq!(told.machine.current(), Some(child(0)));
}

#[test]
fn with_overlap_the_new_one_takes_over_when_the_old_one_ends_by_itself() {
    let mut told = Told::new(policy(RestartPolicy::Never, true));
    told.at(1, Happened::Restart, &[Act::Start(child(1))]);
    let overtaken = Act::Restarted(Err(NotRestarted::Overtaken));
    told.at(
        2,
        Happened::Ended(child(0), FAILED),
        &[Act::SignalGroup(child(0), TERM), overtaken],
    );
    told.at(2, Happened::Gone(child(0)), &[]);
    assert_eq!(told.machine.current(), Some(child(1)));
}

#[test]
fn with_overlap_a_newer_change_replaces_the_one_that_is_not_ready_yet() {
    let mut told = Told::new(policy(RestartPolicy::Never, true));
    told.at(1, Happened::Restart, &[Act::Start(child(1))]);
    told.at(
        2,
        Happened::Restart,
        &[Act::Signal(child(1), TERM), Act::Start(child(2))],
    );
    told.at(3, Happened::Ready(child(1)), &[]);
    told.at(
        3,
        Happened::Ready(child(2)),
        &[Act::Signal(child(0), TERM), Act::Restarted(Ok(child(2)))],
    );
}

#[test]
fn a_sigterm_ends_both_of_an_overlap() {
    let mut told = Told::new(policy(RestartPolicy::Never, true));
    told.at(1, Happened::Restart, &[Act::Start(child(1))]);
    let ending = Act::Restarted(Err(NotRestarted::Ending));
    let acts = [Act::Signal(child(1), TERM), ending, Act::Signal(child(0), TERM)];
    told.at(2, Happened::Signal(TERM), &acts);
    told.at(
        3,
        Happened::Ended(child(0), Ended::Exited(4)),
        &[Act::SignalGroup(child(0), TERM)],
    );
    told.at(
        3,
        Happened::Ended(child(1), Ended::Exited(0)),
        &[Act::SignalGroup(child(1), TERM)],
    );
    told.at(3, Happened::Gone(child(0)), &[]);
    told.at(3, Happened::Gone(child(1)), &[Act::Exit(4)]);
}
