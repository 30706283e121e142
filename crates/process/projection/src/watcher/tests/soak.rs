//! Many swaps at random speed, swaps that change nothing in between, and a kernel with faults.

use std::sync::atomic::Ordering;

use super::*;

/// `HOTMAP_TEST_SWAPS` swaps, 200 if that is not set.
fn swaps() -> u32 {
    std::env::var("HOTMAP_TEST_SWAPS")
        .ok()
        .and_then(|swaps| swaps.parse().ok())
        .unwrap_or(200)
}

/// Numbers that look random (splitmix64), the same in each run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, below: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % below
    }

    /// Nothing, a few turns of the scheduler, or busy for up to 200 µs: no two swaps are equally far apart.
    fn pause(&mut self) {
        match self.roll(3) {
            0 => {}
            1 => (0..self.roll(20)).for_each(|_| std::thread::yield_now()),
            _ => {
                let end = Instant::now() + Duration::from_micros(self.roll(200));
                while Instant::now() < end {
                    std::hint::spin_loop();
                }
            }
        }
    }
}

/// Writes, and after each change waits until the watcher has told it: so each must be told exactly once.
fn one_by_one(with_faults: bool) -> Counts {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().to_owned();
    let mut kubelet = Kubelet::new(&path);
    kubelet.write(&[("number", "0"), ("other", "same")]);
    let poll = if with_faults {
        Duration::from_millis(2)
    } else {
        NEVER
    };
    let config = WatchConfig {
        poll,
        ..config(NEVER)
    };
    let mut watcher = Watcher::new(&path, config).unwrap();
    let faults = Arc::new(Faults::default());
    faults.beneath(&mut watcher);
    if with_faults {
        faults.overflow.store(5, Ordering::Relaxed);
        faults.watch.store(31, Ordering::Relaxed);
        faults.instance.store(3, Ordering::Relaxed);
        faults.read.store(53, Ordering::Relaxed);
    }
    let handle = watcher.handle();
    let (told, hears) = mpsc::channel();
    let stopper = watcher.stopper();
    let watching = std::thread::spawn(move || {
        while let Ok(change) = watcher.next() {
            if told.send(change).is_err() {
                break;
            }
        }
    });
    let mut dice = Dice(1);
    assert!(hears.recv_timeout(PATIENCE).unwrap().is_initial);
    for number in 1..=swaps() {
        for _ in 0..dice.roll(3) {
            kubelet.write(&[("number", &(number - 1).to_string()), ("other", "same")]);
            dice.pause();
        }
        kubelet.write(&[("number", &number.to_string()), ("other", "same")]);
        let change = hears
            .recv_timeout(PATIENCE)
            .unwrap_or_else(|_| panic!("swap {number} was not told; {}", handle.health()));
        assert_eq!(*change.keys, [KeyChange::Modified("number".into())], "{number}");
        dice.pause();
    }
    stopper.stop();
    watching.join().unwrap();
    let more: Vec<Change> = hears.try_iter().collect();
    assert!(more.is_empty(), "told without a change: {more:?}");
    let counts = handle.counts();
    assert_eq!(counts.changes, u64::from(swaps()) + 1);
    counts
}

#[test]
fn each_of_many_swaps_is_told_exactly_once() {
    let counts = one_by_one(false);
    println!("{} swaps, one by one: {counts:?}", swaps());
    assert_eq!((counts.found_by_looking, counts.overflows), (0, 0));
}

#[test]
fn each_of_many_swaps_is_told_exactly_once_by_a_kernel_with_faults() {
    let counts = one_by_one(true);
    println!("{} swaps, one by one, with faults: {counts:?}", swaps());
    assert!(counts.overflows > 0);
    assert_eq!(counts.found_by_looking, 0);
}

#[test]
fn of_swaps_that_overtake_the_watcher_the_last_is_told() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().to_owned();
    let mut kubelet = Kubelet::new(&path);
    kubelet.write(&[("number", "0")]);
    let mut watcher = Watcher::new(&path, config(NEVER)).unwrap();
    assert!(next_change(&mut watcher).is_initial);
    let last = swaps();
    let writing = std::thread::spawn(move || {
        let mut dice = Dice(2);
        let mut revision = String::new();
        for number in 1..=last {
            revision = kubelet.write(&[("number", &number.to_string())]);
            dice.pause();
        }
        revision
    });
    let mut told = 0;
    loop {
        let change = next_change(&mut watcher);
        assert_eq!(*change.keys, [KeyChange::Modified("number".into())]);
        told += 1;
        let now = watcher.machine.told().unwrap();
        let is_at_end = now.revision.as_str().ends_with(&format!(".{}", last + 1));
        if is_at_end {
            assert_eq!(change.revision.as_str(), writing.join().unwrap());
            break;
        }
        assert!(told <= last, "told more often than there were changes");
    }
    println!(
        "{last} swaps at once: {told} told, {:?}",
        watcher.handle().counts()
    );
}
