//! A live configuration over real files: what wins, what stays, who is told.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Mutex, mpsc};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use hotmap_live::{Closed, Live, LoadError, Missing, Reload, StartError};

const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct Config {
    log_level: String,
    server: Server,
}

#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
struct Server {
    host: String,
    port: u16,
}

fn defaults() -> Config {
    Config {
        log_level: "info".into(),
        server: Server {
            host: "localhost".into(),
            port: 80,
        },
    }
}

/// An executor of one future, to show that none of those that are known is needed.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        assert!(!left.is_zero(), "nothing came");
        std::thread::park_timeout(left);
    }
}

/// Puts a file into its place by one rename: nothing half written is ever there.
fn put(path: &Path, text: &str) {
    let new = path.with_file_name("..new");
    fs::write(&new, text).unwrap();
    fs::rename(new, path).unwrap();
}

/// Makes `revision` the visible one of a projected volume, as a kubelet does.
fn publish(volume: &Path, revision: &str, files: &[(&str, &str)]) {
    fs::create_dir_all(volume.join(revision)).unwrap();
    for (key, content) in files {
        fs::write(volume.join(revision).join(key), content).unwrap();
    }
    symlink(revision, volume.join("..data_tmp")).unwrap();
    fs::rename(volume.join("..data_tmp"), volume.join("..data")).unwrap();
}

#[test]
fn later_layers_win_field_by_field() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path();
    fs::write(path.join("base.json"), r#"{"server": {"host": "a", "port": 1}}"#).unwrap();
    publish(
        &path.join("volume"),
        "..2026_01_31_09_05_07.1",
        &[("app.properties", "server.port=2\n"), ("logLevel", "debug\n")],
    );
    let variables = [
        ("APP_SERVER__HOST", "b"),
        ("OTHER_SERVER__HOST", "c"),
        ("APP_", "d"),
    ];
    let live: Live<Config> = Live::builder()
        .defaults(&defaults())
        .file(path.join("base.json"))
        .directory(path.join("volume"))
        .environment_from("APP", variables.map(|(name, value)| (name.into(), value.into())))
        .agent_socket(None)
        .start()
        .unwrap();
    let config = live.load();
    assert_eq!(
        (
            config.log_level.as_str(),
            config.server.host.as_str(),
            config.server.port
        ),
        ("debug", "b", 2)
    );
    drop(config);
    let mut changes = live.changes();
    publish(
        &path.join("volume"),
        "..2026_01_31_09_05_07.2",
        &[("app.properties", "server.port=3\n")],
    );
    let config = block_on(changes.changed()).unwrap();
    assert_eq!((config.log_level.as_str(), config.server.port), ("info", 3));
    assert_eq!(live.version(), 1);
}

#[test]
fn the_last_good_configuration_stays() {
    let temporary = tempfile::tempdir().unwrap();
    let file = temporary.path().join("app.json");
    let write = |text: &str| put(&file, text);
    write(r#"{"logLevel": "info", "server": {"host": "a", "port": 1}}"#);
    let (told, hears) = mpsc::channel();
    let live: Live<Config> = Live::builder()
        .file(&file)
        .validate(|config: &Config| match config.server.port {
            0 => Err("server.port is 0"),
            13 => panic!("the test's own"),
            _ => Ok(()),
        })
        .on_reload(move |reload: Reload<'_, Config>| {
            let words = match reload {
                Reload::Loaded(config) => format!("loaded {}", config.server.port),
                Reload::Refused(error) => error.to_string(),
            };
            told.send(words).unwrap();
        })
        .agent_socket(None)
        .start()
        .unwrap();
    let name = file.display();
    for (text, words) in [
        (
            "{\"logLevel\": \"info\",\n \"server\": {\"host\": \"a\", \"port\": \"hunter2\"}}",
            format!("{name}:2: server.port: expected u16, found a string"),
        ),
        ("{\n", format!("{name}:2: EOF while parsing an object")),
        (
            r#"{"logLevel": "info", "server": {"host": "a", "port": 0}}"#,
            "refused: server.port is 0".to_owned(),
        ),
        (
            r#"{"logLevel": "info", "server": {"host": "a", "port": 13}}"#,
            LoadError::Panicked.to_string(),
        ),
    ] {
        write(text);
        assert_eq!(hears.recv_timeout(PATIENCE).unwrap(), words);
        assert_eq!(live.load().server.port, 1);
        assert_eq!(live.error().unwrap().to_string(), words);
        assert_eq!(live.version(), 0);
    }
    write(r#"{"logLevel": "info", "server": {"host": "a", "port": 2}}"#);
    assert_eq!(hears.recv_timeout(PATIENCE).unwrap(), "loaded 2");
    assert!(live.error().is_none());
    assert_eq!(live.load().server.port, 2);
}

#[test]
fn who_waits_for_a_field_hears_of_that_field() {
    let temporary = tempfile::tempdir().unwrap();
    let volume = temporary.path();
    let mut revision = 0;
    let mut publish_port = |level: &str, port: u16| {
        revision += 1;
        let text = format!(r#"{{"logLevel": "{level}", "server": {{"host": "a", "port": {port}}}}}"#);
        publish(
            volume,
            &format!("..2026_01_31_09_05_07.{revision}"),
            &[("app.json", &text)],
        );
    };
    publish_port("info", 1);
    let live: Live<Config> = Live::builder()
        .directory(volume)
        .agent_socket(None)
        .start()
        .unwrap();
    let mut level = live.subscribe(|config| config.log_level.as_str());
    let mut changes = live.changes();
    for port in 2..5 {
        publish_port("info", port);
        assert_eq!(changes.wait().unwrap().server.port, port);
    }
    publish_port("debug", 5);
    assert_eq!(block_on(level.changed()).unwrap(), "debug");
    assert_eq!(level.get(), "debug");
    assert_eq!(level.wait_until(Instant::now()).unwrap(), None);
    publish_port("info", 5);
    assert_eq!(level.wait().unwrap(), "info");
    drop(live);
    assert_eq!(level.wait(), Err(Closed));
    assert_eq!(block_on(level.changed()), Err(Closed));
}

/// While the second one is made, its maker waits for a word of the test.
static GATE: Mutex<Option<(mpsc::Sender<()>, mpsc::Receiver<()>)>> = Mutex::new(None);

#[derive(Debug)]
struct Slow;

impl<'de> Deserialize<'de> for Slow {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer)?;
        if let Some((begins, goes_on)) = GATE.lock().unwrap().take() {
            begins.send(()).unwrap();
            goes_on.recv().unwrap();
        }
        Ok(Self)
    }
}

#[test]
fn a_reader_never_waits_for_who_loads() {
    let temporary = tempfile::tempdir().unwrap();
    publish(temporary.path(), "..2026_01_31_09_05_07.1", &[("a", "1")]);
    let live: Live<Slow> = Live::builder()
        .directory(temporary.path())
        .agent_socket(None)
        .start()
        .unwrap();
    let (begins, began) = mpsc::channel();
    let (go_on, goes_on) = mpsc::channel();
    *GATE.lock().unwrap() = Some((begins, goes_on));
    publish(temporary.path(), "..2026_01_31_09_05_07.2", &[("a", "2")]);
    began.recv_timeout(PATIENCE).unwrap();
    for _ in 0..10_000 {
        let _: &Slow = &live.load();
    }
    assert_eq!((live.version(), live.error().is_none()), (0, true));
    let mut changes = live.changes();
    go_on.send(()).unwrap();
    changes.wait().unwrap();
    assert_eq!(live.version(), 1);
}

#[test]
fn what_is_missing_is_refused_ignored_or_waited_for() {
    let temporary = tempfile::tempdir().unwrap();
    let path = temporary.path().canonicalize().unwrap();
    let file = path.join("app.json");
    let text = r#"{"logLevel": "debug", "server": {"host": "a", "port": 1}}"#;
    let builder = |missing: Missing| {
        Live::<Config>::builder()
            .defaults(&defaults())
            .missing(missing)
            .file(&file)
            .agent_socket(None)
    };
    for missing in [Missing::Refuse, Missing::Wait(Duration::ZERO)] {
        let error = builder(missing).start().unwrap_err();
        assert_eq!(error.to_string(), format!("{} is not there", file.display()));
    }
    let live = builder(Missing::Ignore).start().unwrap();
    assert_eq!(live.load().log_level, "info");
    let mut changes = live.changes();
    put(&file, text);
    assert_eq!(changes.wait().unwrap().log_level, "debug");
    fs::remove_file(&file).unwrap();
    assert_eq!(changes.wait().unwrap().log_level, "info");
    // It comes back as it was.
    put(&file, text);
    assert_eq!(changes.wait().unwrap().log_level, "debug");
    fs::remove_file(&file).unwrap();
    assert_eq!(changes.wait().unwrap().log_level, "info");
    let waiting = {
        let builder = builder(Missing::Wait(PATIENCE));
        std::thread::spawn(move || builder.start().map(|live| live.load().log_level.clone()))
    };
    put(&file, text);
    assert_eq!(waiting.join().unwrap().unwrap(), "debug");
}

#[test]
fn a_change_that_met_a_missing_file_is_loaded_when_that_is_back() {
    let temporary = tempfile::tempdir().unwrap();
    let (one, other) = (
        temporary.path().join("one.json"),
        temporary.path().join("other.json"),
    );
    put(&one, r#"{"logLevel": "info"}"#);
    put(&other, r#"{"server": {"host": "a", "port": 1}}"#);
    let (told, hears) = mpsc::channel();
    let live: Live<Config> = Live::builder()
        .file(&one)
        .file(&other)
        .on_reload(move |reload: Reload<'_, Config>| {
            let is_loaded = matches!(reload, Reload::Loaded(_));
            told.send(is_loaded).unwrap();
        })
        .agent_socket(None)
        .start()
        .unwrap();
    // That both are followed shows in what is heard of each.
    put(&one, r#"{"logLevel": "debug"}"#);
    assert!(hears.recv_timeout(PATIENCE).unwrap());
    fs::remove_file(&one).unwrap();
    put(&other, r#"{"server": {"host": "a", "port": 2}}"#);
    assert!(!hears.recv_timeout(PATIENCE).unwrap());
    assert!(matches!(live.error().as_deref(), Some(LoadError::Missing { .. })));
    assert_eq!(live.load().server.port, 1);
    put(&one, r#"{"logLevel": "debug"}"#);
    assert!(hears.recv_timeout(PATIENCE).unwrap());
    assert_eq!((live.load().server.port, live.error().is_none()), (2, true));
}

#[test]
fn what_cannot_be_built_is_said() {
    let error = |builder: hotmap_live::Builder<Config>| builder.start().unwrap_err().to_string();
    assert!(
        error(Live::builder().file("/etc/app.conf")).starts_with("the name of /etc/app.conf does not say")
    );
    assert_eq!(
        error(Live::builder().defaults(&1)),
        "the defaults are no mapping: another kind of value"
    );
    assert!(matches!(
        Live::<Config>::builder().start(),
        Err(StartError::Load(LoadError::Type { field, .. })) if field == "the whole"
    ));
}

#[test]
fn the_agent_hears_what_is_loaded_and_a_new_agent_hears_it_again() {
    let temporary = tempfile::tempdir().unwrap();
    let volume = temporary.path().join("volume");
    let text = |port: &str| format!(r#"{{"logLevel": "info", "server": {{"host": "a", "port": {port}}}}}"#);
    publish(&volume, "..2026_01_31_09_05_07.1", &[("app.json", &text("1"))]);
    let socket = temporary.path().join("agent.sock");
    let agent = UnixListener::bind(&socket).unwrap();
    let _live: Live<Config> = Live::builder()
        .directory(&volume)
        .agent_socket(Some(socket))
        .start()
        .unwrap();
    let mut connection = BufReader::new(agent.accept().unwrap().0);
    let hear = |connection: &mut BufReader<std::os::unix::net::UnixStream>| {
        let mut line = String::new();
        connection.get_ref().set_read_timeout(Some(PATIENCE)).unwrap();
        connection.read_line(&mut line).unwrap();
        connection.get_mut().write_all(b"{\"ok\":true}\n").unwrap();
        line.trim_end().to_owned()
    };
    assert_eq!(
        hear(&mut connection),
        r#"{"loaded":{"revision":"..2026_01_31_09_05_07.1"},"ok":true}"#
    );
    publish(
        &volume,
        "..2026_01_31_09_05_07.2",
        &[("app.json", &text("\"hunter2\""))],
    );
    let name = volume.join("app.json");
    let refused = format!(
        r#"{{"loaded":{{"revision":"..2026_01_31_09_05_07.2"}},"message":"{}:1: server.port: wrong value","ok":false}}"#,
        name.display()
    );
    assert_eq!(hear(&mut connection), refused);
    publish(&volume, "..2026_01_31_09_05_07.3", &[("app.json", "{hunter2")]);
    let refused = format!(
        r#"{{"loaded":{{"revision":"..2026_01_31_09_05_07.3"}},"message":"{}:1: syntax error","ok":false}}"#,
        name.display()
    );
    assert_eq!(hear(&mut connection), refused);
    drop(connection);
    let mut connection = BufReader::new(agent.accept().unwrap().0);
    assert_eq!(hear(&mut connection), refused);
}
