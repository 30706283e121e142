use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::*;
use crate::command::CommandLine;
use crate::metric_names::MetricNames;
use crate::target::{Fired, TargetError, TargetKind};

/// What one call of a target does.
#[derive(Debug, Clone, Copy)]
enum Call {
    Take,
    Fail,
    FailForGood,
    Hang,
}

type Log = Arc<Mutex<Vec<(&'static str, Duration)>>>;

/// A target that does as it is told and remembers when.
struct Scripted {
    name: &'static str,
    script: Mutex<VecDeque<Call>>,
    log: Log,
    start: Instant,
}

impl Target for Scripted {
    fn kind(&self) -> TargetKind {
        TargetKind::Webhook
    }

    fn name(&self) -> &str {
        self.name
    }

    fn fire<'a>(&'a self, _: &'a [Change]) -> BoxFuture<'a, Result<Fired, TargetError>> {
        self.log.lock().push((self.name, self.start.elapsed()));
        let call = self.script.lock().pop_front().unwrap_or(Call::Take);
        Box::pin(async move {
            let error = |is_temporary| TargetError {
                message: "no".into(),
                reason: "status",
                is_temporary,
            };
            match call {
                Call::Take => Ok(Fired::Confirmed),
                Call::Fail => Err(error(true)),
                Call::FailForGood => Err(error(false)),
                Call::Hang => pending().await,
            }
        })
    }
}

/// A reloader over scripted targets, and what they remember.
struct Bench {
    reloader: Reloader,
    log: Log,
}

const PACE: Pace = Pace {
    delay: Duration::ZERO,
    jitter: Duration::ZERO,
    min_interval: Duration::ZERO,
    timeout: Duration::from_secs(2),
    backoff: Duration::from_secs(1),
    backoff_max: Duration::from_secs(4),
    retries: None,
};

fn bench(pace: Pace, order: Order, check: Option<&str>, scripts: &[(&'static str, &[Call])]) -> Bench {
    let log = Log::default();
    let targets = scripts.iter().map(|(name, script)| {
        let script = Mutex::new(script.iter().copied().collect());
        Box::new(Scripted {
            name,
            script,
            log: Arc::clone(&log),
            start: Instant::now(),
        }) as Box<dyn Target>
    });
    let check = check.map(|line| Check::new(CommandLine::parse(line).unwrap(), Duration::from_secs(60)));
    let reloader = Reloader::new(ReloaderConfig {
        paths: vec!["/etc/app".into()],
        renders: Vec::new(),
        check,
        targets: targets.collect(),
        order,
        pace,
        metrics: Metrics::new(MetricNames::Hotmap),
        seed: 1,
    });
    Bench { reloader, log }
}

fn change(revision: &str) -> Change {
    Change {
        path: Arc::new("/etc/app".into()),
        revision: Revision::new(revision),
        keys: Arc::new([]),
        is_initial: false,
        seen: Instant::now().into_std(),
    }
}

impl Bench {
    async fn apply(&mut self, revision: &str) -> Outcome {
        self.reloader.apply(&[change(revision)], pending()).await
    }

    fn calls(&self) -> Vec<&'static str> {
        self.log.lock().iter().map(|(name, _)| *name).collect()
    }

    fn loaded(&self) -> Option<String> {
        self.reloader.progress().borrow().volumes[0]
            .loaded
            .as_ref()
            .map(Revision::to_string)
    }

    fn counts(&self, line: &str) -> bool {
        self.reloader
            .metrics()
            .encode()
            .lines()
            .any(|shown| shown == line)
    }
}

#[tokio::test(start_paused = true)]
async fn targets_are_told_in_order_and_each_waits_for_the_one_before_it() {
    use Call::{Fail, Take};
    let mut bench = bench(
        PACE,
        Order::Sequence,
        None,
        &[("a", &[Fail, Take]), ("b", &[Take])],
    );
    assert_eq!(bench.apply("1").await, Outcome::Loaded);
    assert_eq!(bench.calls(), ["a", "a", "b"]);
    assert_eq!(bench.loaded().as_deref(), Some("1"));
    assert!(bench.counts("hotmap_loaded_info{volume=\"/etc/app\",revision=\"1\"} 1"));
}

#[tokio::test(start_paused = true)]
async fn in_parallel_none_waits_and_one_failure_is_told() {
    use Call::{Fail, FailForGood, Take};
    let script: [(&str, &[Call]); 3] = [("a", &[Fail, Take]), ("b", &[FailForGood]), ("c", &[Take])];
    let mut bench = bench(PACE, Order::Parallel, None, &script);
    assert_eq!(bench.apply("1").await, Outcome::Failed("b: no".to_owned()));
    assert_eq!(bench.calls(), ["a", "b", "c", "a"]);
    assert_eq!(bench.loaded(), None);
    assert!(bench.counts("hotmap_reload_changes_total{outcome=\"failed\"} 1"));
    assert_eq!(bench.apply("2").await, Outcome::Loaded);
}

#[tokio::test(start_paused = true)]
async fn a_call_is_repeated_with_growing_pauses_as_often_as_it_may() {
    let pace = Pace {
        retries: Some(4),
        ..PACE
    };
    let mut bench = bench(pace, Order::Sequence, None, &[("a", &[Call::Fail; 9])]);
    assert_eq!(bench.apply("1").await, Outcome::Failed("a: no".to_owned()));
    let times: Vec<Duration> = bench.log.lock().iter().map(|(_, at)| *at).collect();
    let pauses: Vec<f64> = times
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_secs_f64())
        .collect();
    assert_eq!(pauses.len(), 4);
    for (pause, longest) in pauses.iter().zip([1.0, 2.0, 4.0, 4.0]) {
        assert!(
            (longest / 2.0 - 0.01..=longest + 0.01).contains(pause),
            "{pauses:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_target_that_does_not_answer_is_told_again_after_its_time() {
    let mut bench = bench(PACE, Order::Sequence, None, &[("a", &[Call::Hang, Call::Take])]);
    assert_eq!(bench.apply("1").await, Outcome::Loaded);
    assert!(
        bench.counts("hotmap_reload_calls_total{target=\"webhook\",outcome=\"error\",reason=\"timeout\"} 1")
    );
}

#[tokio::test(start_paused = true)]
async fn a_newer_change_ends_the_pauses_and_not_a_call() {
    let mut bench = bench(
        PACE,
        Order::Sequence,
        None,
        &[("a", &[Call::Fail; 3]), ("b", &[])],
    );
    let newer = tokio::time::sleep(Duration::from_millis(10));
    assert_eq!(
        bench.reloader.apply(&[change("1")], newer).await,
        Outcome::Superseded
    );
    assert_eq!(bench.calls(), ["a"]);
    // What is already under way when the newer change comes is brought to its end.
    let mut hanging = self::bench(PACE, Order::Sequence, None, &[("a", &[Call::Hang])]);
    let start = Instant::now();
    let newer = tokio::time::sleep(Duration::from_millis(10));
    assert_eq!(
        hanging.reloader.apply(&[change("1")], newer).await,
        Outcome::Superseded
    );
    assert_eq!(start.elapsed(), PACE.timeout);
    assert!(hanging.counts("hotmap_reload_changes_total{outcome=\"superseded\"} 1"));
}

#[tokio::test(start_paused = true)]
async fn a_change_waits_for_its_delay_and_for_the_interval_since_the_last_one() {
    let second = Duration::from_secs(1);
    let pace = Pace {
        delay: second,
        min_interval: 10 * second,
        ..PACE
    };
    let mut bench = bench(pace, Order::Sequence, None, &[("a", &[])]);
    bench.apply("1").await;
    bench.apply("2").await;
    let times: Vec<u64> = bench.log.lock().iter().map(|(_, at)| at.as_secs()).collect();
    assert_eq!(times, [1, 11]);
    // A change that comes while one waits ends the wait, and nobody has been told.
    let newer = tokio::time::sleep(second);
    assert_eq!(
        bench.reloader.apply(&[change("3")], newer).await,
        Outcome::Superseded
    );
    assert_eq!(bench.calls().len(), 2);
}

#[tokio::test]
async fn what_the_check_refuses_is_told_to_nobody_and_the_next_change_is_tried() {
    let directory = tempfile::tempdir().unwrap();
    let good = directory.path().join("good");
    let line = format!(
        "sh -c 'test -e {} || {{ echo line 3 is wrong >&2; exit 1; }}'",
        good.display()
    );
    let mut bench = bench(PACE, Order::Sequence, Some(&line), &[("a", &[])]);
    let reason = "check sh: it ended with exit code 1: line 3 is wrong".to_owned();
    assert_eq!(bench.apply("1").await, Outcome::HeldBack(reason.clone()));
    assert_eq!(bench.reloader.progress().borrow().phase, Phase::HeldBack(reason));
    assert!(bench.calls().is_empty() && bench.loaded().is_none());
    assert!(bench.counts("hotmap_reload_checks_total{outcome=\"failed\",reason=\"exit\"} 1"));
    assert!(bench.counts("hotmap_reload_last_successful 0"));
    std::fs::write(good, "").unwrap();
    assert_eq!(bench.apply("2").await, Outcome::Loaded);
    assert_eq!(bench.reloader.progress().borrow().phase, Phase::Loaded);
}

#[tokio::test(start_paused = true)]
async fn what_is_found_at_the_start_is_taken_as_loaded_and_nobody_is_told() {
    let mut bench = bench(PACE, Order::Sequence, Some("false"), &[("a", &[])]);
    assert_eq!(bench.reloader.progress().borrow().phase, Phase::Starting);
    assert_eq!(
        bench.reloader.adopt(&[change("1")], pending()).await,
        Outcome::Loaded
    );
    assert!(bench.calls().is_empty());
    assert_eq!(bench.loaded().as_deref(), Some("1"));
}
