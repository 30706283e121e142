use proptest::prelude::*;

use super::*;
use crate::content::content;

const TIMES: Times = Times {
    settle: Duration::from_millis(100),
    settle_max: Duration::from_millis(1_000),
    safety_look: Duration::from_secs(60),
    poll: Duration::from_secs(10),
};

/// A machine, a clock, and a path whose content is one number.
struct World {
    machine: Machine,
    now: Instant,
    content: Option<u8>,
    is_projected: bool,
    is_deaf: bool,
    told: Vec<u8>,
}

impl World {
    fn new(content: Option<u8>, is_projected: bool) -> Self {
        let mut world = Self {
            machine: Machine::new(TIMES),
            now: Instant::now(),
            content,
            is_projected,
            is_deaf: false,
            told: Vec::new(),
        };
        world.run(Duration::ZERO);
        world
    }

    fn write(&mut self, content: u8, sign: Option<Sign>) {
        self.content = Some(content);
        if let Some(sign) = sign {
            self.machine.sign(sign, self.now);
        }
    }

    /// Lets so much time pass, and does what the machine wants.
    fn run(&mut self, time: Duration) -> u32 {
        let end = self.now + time;
        let mut looks = 0;
        loop {
            match self.machine.step(self.now) {
                Step::Look => {
                    looks += 1;
                    assert!(looks < 1_000, "it looks for ever");
                    self.look();
                }
                Step::WaitUntil(until) if until <= end => self.now = until,
                Step::WaitUntil(_) => break,
            }
        }
        self.now = end;
        looks
    }

    fn look(&mut self) {
        self.machine.begin_look();
        let content = self.content.map(|number| {
            let mut content = content(&[("a", &number.to_string())]);
            content.is_projected = self.is_projected;
            content
        });
        let found = Found {
            content,
            has_grown: false,
            is_deaf: self.is_deaf,
        };
        if self.machine.looked(found, self.now, self.now).is_some() {
            self.told.extend(self.content);
        }
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn a_swap_is_told_without_any_time_passing() {
    let mut world = World::new(Some(1), true);
    world.write(2, Some(Sign::Swap));
    assert_eq!(world.run(Duration::ZERO), 1);
    world.write(2, Some(Sign::Swap));
    assert_eq!(world.run(millis(59_999)), 1);
    assert_eq!(world.told, [1, 2]);
}

#[test]
fn writes_are_told_once_after_they_ended() {
    let mut world = World::new(Some(1), false);
    for number in 2..7 {
        world.write(number, Some(Sign::Write));
        assert_eq!(world.run(millis(99)), 0);
    }
    world.run(millis(1));
    assert_eq!(world.told, [1, 6]);
}

#[test]
fn who_never_stops_writing_is_told_about_all_the_same() {
    let mut world = World::new(Some(1), false);
    for number in 2..32 {
        world.write(number, Some(Sign::Write));
        world.run(millis(50));
    }
    assert_eq!(world.told, [1, 21]);
}

#[test]
fn without_a_sign_the_safety_look_finds_it_and_looks_twice() {
    for (is_deaf, period) in [(false, TIMES.safety_look), (true, TIMES.poll)] {
        let mut world = World::new(Some(1), false);
        world.is_deaf = is_deaf;
        world.run(TIMES.safety_look);
        world.write(2, None);
        assert_eq!(world.run(period - millis(1)), 0);
        world.run(millis(1));
        // Half of it was there at the first look.
        world.write(3, None);
        world.run(millis(100));
        assert_eq!(world.told, [1]);
        world.run(millis(100));
        assert_eq!(world.told, [1, 3]);
    }
}

#[test]
fn what_goes_away_and_comes_back_the_same_is_no_change() {
    let mut world = World::new(Some(1), false);
    world.content = None;
    world.machine.sign(Sign::Lost, world.now);
    assert_eq!(world.run(millis(500)), 1);
    world.write(1, Some(Sign::Lost));
    world.run(millis(500));
    assert_eq!(world.told, [1]);
    world.write(2, Some(Sign::Lost));
    world.run(millis(500));
    assert_eq!(world.told, [1, 2]);
}

#[test]
fn content_that_nobody_saw_being_written_is_looked_at_again() {
    let mut world = World::new(None, false);
    world.write(1, Some(Sign::Write));
    world.run(TIMES.settle - millis(1));
    world.now += millis(1);
    world.machine.begin_look();
    let found = Found {
        content: Some(content(&[("a", "1")])),
        has_grown: true,
        is_deaf: false,
    };
    assert!(world.machine.looked(found, world.now, world.now).is_none());
    world.run(TIMES.settle);
    assert_eq!(world.told, [1]);
}

proptest! {
    #[test]
    fn the_last_content_is_told_and_nothing_twice(
        is_projected in any::<bool>(),
        is_deaf in any::<bool>(),
        writes in prop::collection::vec((0_u8..4, 0_u64..300, 0_usize..5), 0..40),
    ) {
        let mut world = World::new(Some(0), is_projected);
        world.is_deaf = is_deaf;
        world.run(TIMES.safety_look);
        for (content, pause, sign) in writes {
            let sign = [Sign::Write, Sign::Lost, Sign::Overflow, Sign::Swap].get(sign).copied();
            world.write(content, if is_deaf { sign } else { sign.or(Some(Sign::Write)) });
            world.run(millis(pause));
        }
        world.run(TIMES.poll + TIMES.settle_max + TIMES.settle);
        prop_assert_eq!(world.told.last().copied(), world.content);
        prop_assert!(world.told.windows(2).all(|pair| pair[0] != pair[1]), "{:?}", world.told);
        // And then there is nothing to do but the safety look.
        prop_assert!(world.run(TIMES.poll * 10) <= 10);
    }
}
