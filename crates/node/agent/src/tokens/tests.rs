use std::collections::VecDeque;

use hotmap_clock::Jumper;
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::sync::{Notify, mpsc};

use super::*;

/// An API that answers what the test says, when it says it.
struct Script {
    answers: tokio::sync::Mutex<mpsc::Receiver<Result<&'static str, &'static str>>>,
    asked: Arc<Notify>,
    clock: Watch,
    lifetime: Duration,
}

impl Ask for Script {
    async fn ask(&self, _: &TokenRef) -> Result<Issued, String> {
        self.asked.notify_one();
        let answer = self.answers.lock().await.recv().await;
        let Some(answer) = answer else {
            return std::future::pending().await;
        };
        let lifetime = self.lifetime;
        answer.map_err(str::to_owned).map(|token| Issued {
            token: token.into(),
            lifetime,
            expires_at: self.clock.now() + lifetime,
        })
    }
}

/// A clock that stands still until the test lets the sleeper sleep.
#[derive(Clone, Default)]
struct Watch(Arc<WatchState>);

#[derive(Default)]
struct WatchState {
    now: Mutex<Duration>,
    sleeps: Mutex<VecDeque<Duration>>,
    begun: Notify,
    over: Notify,
}

impl Clock for Watch {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::try_from(*self.0.now.lock()).expect("in range")
    }

    async fn sleep(&self, pause: Duration) {
        self.0.sleeps.lock().push_back(pause);
        self.0.begun.notify_one();
        self.0.over.notified().await;
    }
}

impl Watch {
    /// Waits until somebody sleeps, and says for how long.
    async fn sleeping(&self) -> Duration {
        loop {
            if let Some(pause) = self.0.sleeps.lock().pop_front() {
                return pause;
            }
            self.0.begun.notified().await;
        }
    }

    /// It is another time all at once, and nobody wakes.
    fn set(&self, now: Duration) {
        *self.0.now.lock() = now;
    }

    /// Time goes by, and who sleeps wakes.
    fn pass(&self, pause: Duration) {
        *self.0.now.lock() += pause;
        self.0.over.notify_one();
    }
}

struct World {
    cache: Arc<TokenCache<Script, Watch>>,
    asked: Arc<Notify>,
    clock: Watch,
    jumper: Jumper,
    answers: mpsc::Sender<Result<&'static str, &'static str>>,
    told: mpsc::UnboundedReceiver<String>,
}

fn world(lifetime_seconds: u64) -> World {
    let clock = Watch::default();
    let (answers, receiver) = mpsc::channel(8);
    let asked = Arc::new(Notify::new());
    let (sender, told) = mpsc::unbounded_channel();
    let script = Script {
        answers: receiver.into(),
        asked: Arc::clone(&asked),
        clock: clock.clone(),
        lifetime: Duration::from_secs(lifetime_seconds),
    };
    let on_token: OnToken = Arc::new(move |pod_uid: &str| {
        sender.send(pod_uid.to_owned()).expect("the test listens");
    });
    let (jumper, clock_jumps) = ClockJumps::by_hand();
    World {
        cache: TokenCache::new(script, clock.clone(), clock_jumps, on_token),
        asked,
        clock,
        jumper,
        answers,
        told,
    }
}

fn token() -> TokenRef {
    TokenRef {
        pod_uid: "u".into(),
        namespace: "n".into(),
        pod: "p".into(),
        service_account: "default".into(),
        audience: String::new(),
        expiration_seconds: 3600,
    }
}

#[test]
fn tokens_are_due_at_four_fifths_of_their_life_or_after_a_day() {
    for (lifetime, jitter, after) in [
        (3600, 0, 2880),
        (3600, 10, 2870),
        (600, 3, 477),
        (86_400, 0, 69_120),
        (31_536_000, 0, 86_400),
        (31_536_000, 10, 86_390),
        (0, 10, 1),
    ] {
        let seconds = Duration::from_secs;
        assert_eq!(
            renewed_after(seconds(lifetime), seconds(jitter)),
            seconds(after),
            "{lifetime} {jitter}"
        );
    }
    assert!((0..100).all(|_| jitter() <= JITTER_MAX));
}

#[test]
fn a_volume_names_its_tokens() {
    let pod = Pod::from_document(
        &json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {
            "serviceAccountName": "robot", "containers": [], "volumes": [{"name": "v", "projected": {"sources": [
                {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
                {"serviceAccountToken": {"path": "vault", "audience": "vault", "expirationSeconds": 600}},
                {"configMap": {"name": "kube-root-ca.crt"}}]}}]}}),
    )
    .expect("a pod");
    let tokens = of_volume(&pod, &pod.spec.volumes[0]);
    let shown: Vec<String> = tokens.iter().map(shown).collect();
    let expected = [
        r#""robot"/"n"/[]/3607/Pod/"p"/"u""#,
        r#""robot"/"n"/["vault"]/600/Pod/"p"/"u""#,
    ];
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn a_token_is_renewed_by_one_exact_timer() {
    let mut world = world(3600);
    world.cache.set_wanted("u", [token()].into());
    let nothing_yet = world.cache.get(&token());
    assert_eq!(
        nothing_yet,
        Err("failed to fetch token: timed out waiting for the condition".to_owned())
    );
    for issued in ["first", "second", "third"] {
        world.answers.send(Ok(issued)).await.expect("somebody asks");
        assert_eq!(world.told.recv().await.as_deref(), Some("u"));
        assert_eq!(world.cache.get(&token()), Ok(Bytes::from(issued)));
        let pause = world.clock.sleeping().await;
        assert!(
            (2870..=2880).contains(&pause.as_secs()),
            "the only timer is due at {pause:?}"
        );
        // The same wish again changes nothing.
        world.cache.set_wanted("u", [token()].into());
        world.clock.pass(pause);
    }
}

#[tokio::test]
async fn the_last_token_stands_until_it_expires() {
    let mut world = world(600);
    world.cache.set_wanted("u", [token()].into());
    world.answers.send(Ok("first")).await.expect("somebody asks");
    world.told.recv().await.expect("told");
    let pause = world.clock.sleeping().await;
    world.clock.pass(pause);
    world.answers.send(Err("no route")).await.expect("somebody asks");
    let retry = world.clock.sleeping().await;
    assert!(
        retry <= RETRY_MIN && world.told.try_recv().is_err(),
        "nobody misses anything yet"
    );
    assert_eq!(world.cache.get(&token()), Ok(Bytes::from("first")));

    world.clock.pass(Duration::from_secs(600));
    world.answers.send(Err("no route")).await.expect("somebody asks");
    assert_eq!(world.told.recv().await.as_deref(), Some("u"));
    let expired = r#"token "default"/"n"/[]/3600/Pod/"p"/"u" expired and refresh failed: no route"#;
    assert_eq!(world.cache.get(&token()), Err(expired.to_owned()));

    world.clock.sleeping().await;
    world.clock.pass(Duration::ZERO);
    world.answers.send(Ok("second")).await.expect("somebody asks");
    world.told.recv().await.expect("told");
    assert_eq!(world.cache.get(&token()), Ok(Bytes::from("second")));
}

#[tokio::test]
async fn a_jump_of_the_clock_renews_what_it_has_ended_or_put_into_the_future() {
    // Due after 48 min. What the clock says after the jump, in seconds since the issue; how long the token is still used.
    for (what, then, left) in [
        ("a day forward", 86_400, None),
        ("a day back", -86_400, None),
        ("a little back, before it was issued", -1, None),
        ("a little forward", 660, Some(2220)),
        ("past the time to renew it", 2880, None),
        ("no further than it was", 0, Some(2880)),
    ] {
        let begun = 10 * 86_400_u64;
        let mut world = world(3600);
        world.clock.set(Duration::from_secs(begun));
        world.cache.set_wanted("u", [token()].into());
        world.answers.send(Ok("first")).await.expect("somebody asks");
        world.told.recv().await.expect("told");
        let pause = world.clock.sleeping().await;
        assert!((2870..=2880).contains(&pause.as_secs()), "{what}: {pause:?}");

        world
            .clock
            .set(Duration::from_secs(begun.strict_add_signed(then)));
        world.jumper.jump();
        if let Some(seconds) = left {
            let pause = world.clock.sleeping().await;
            assert!(
                (seconds - 10..=seconds).contains(&pause.as_secs()),
                "{what}: {pause:?}"
            );
            continue;
        }
        // Nobody has slept to the end.
        world.answers.send(Ok("second")).await.expect("somebody asks");
        world.told.recv().await.expect("told");
        assert_eq!(world.cache.get(&token()), Ok(Bytes::from("second")), "{what}");
        let pause = world.clock.sleeping().await;
        assert!((2870..=2880).contains(&pause.as_secs()), "{what}: {pause:?}");
    }
}

#[tokio::test]
async fn a_jump_while_the_answer_is_under_way_renews_it_too() {
    let mut world = world(3600);
    world.cache.set_wanted("u", [token()].into());
    // It is asked for now, before the day; the answer comes after it.
    world.asked.notified().await;
    world.clock.set(Duration::from_secs(24 * 3600));
    world.jumper.jump();
    for issued in ["before the jump", "after it"] {
        world.answers.send(Ok(issued)).await.expect("somebody asks");
        world.told.recv().await.expect("told");
    }
    assert_eq!(world.cache.get(&token()), Ok(Bytes::from("after it")));
    let pause = world.clock.sleeping().await;
    assert!((2870..=2880).contains(&pause.as_secs()), "{pause:?}");
}

#[tokio::test]
async fn a_refused_token_says_why_and_a_pod_that_goes_is_forgotten() {
    let mut world = world(600);
    let other = TokenRef {
        pod_uid: "other".into(),
        ..token()
    };
    world.cache.set_wanted("u", [token()].into());
    world
        .answers
        .send(Err("serviceaccounts \"default\" not found"))
        .await
        .expect("somebody asks");
    world.told.recv().await.expect("told");
    assert_eq!(
        world.cache.get(&token()),
        Err("failed to fetch token: serviceaccounts \"default\" not found".to_owned())
    );
    world.cache.set_wanted("other", [other.clone()].into());
    world.cache.set_wanted("u", BTreeSet::new());
    let held: Vec<TokenRef> = world.cache.held.lock().keys().cloned().collect();
    assert_eq!(held, [other]);
    world.cache.end();
    assert!(world.cache.held.lock().is_empty());
}
