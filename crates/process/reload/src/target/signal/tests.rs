use std::fs;
use std::os::unix::fs::symlink;
use std::process::{Child, Command, Stdio};

use super::*;

/// A directory that looks like /proc.
struct FakeProc(tempfile::TempDir);

impl FakeProc {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn process(&self, pid: i32, parent: i32, comm: &str, program: &str, state: char, start_time: u64) {
        let directory = self.0.path().join(pid.to_string());
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir(&directory).unwrap();
        fs::write(directory.join("comm"), format!("{comm}\n")).unwrap();
        let zeros = "0 ".repeat(START_FIELDS);
        fs::write(
            directory.join("stat"),
            format!("{pid} ({comm}) {state} {parent} {zeros}{start_time} 0\n"),
        )
        .unwrap();
        if !program.is_empty() {
            symlink(program, directory.join("exe")).unwrap();
        }
    }

    fn resolve(&self, address: &Address, last: Option<&Found>) -> Result<i32, (&'static str, String)> {
        resolve::resolve(&ProcFs::at(self.0.path()), address, last)
            .map(|found| found.pid.as_raw_nonzero().get())
            .map_err(|error| (error.reason(), error.to_string()))
    }
}

/// The fields of a stat line between the parent and the start time.
const START_FIELDS: usize = 17;

fn named(name: &str) -> Address {
    Address::Process(name.to_owned())
}

#[test]
fn the_master_is_meant_and_not_its_workers() {
    let proc = FakeProc::new();
    proc.process(900_001, 0, "systemd", "/sbin/init", 'S', 1);
    proc.process(900_010, 900_001, "nginx", "/usr/sbin/nginx", 'S', 5);
    proc.process(900_011, 900_010, "nginx", "/usr/sbin/nginx", 'S', 6);
    proc.process(900_012, 900_010, "nginx", "/usr/sbin/nginx", 'S', 6);
    proc.process(900_020, 900_001, "gunicorn", "/usr/bin/python3.11", 'S', 7);
    proc.process(900_030, 900_001, "main", "/usr/bin/prometheus (deleted)", 'S', 8);
    proc.process(
        900_040,
        900_001,
        "a-very-long-dae",
        "/opt/a-very-long-daemon",
        'S',
        9,
    );
    proc.process(900_050, 900_001, "another-long-na", "", 'S', 9);
    proc.process(900_060, 900_001, "done", "/bin/done", 'Z', 9);
    proc.process(900_070, 900_001, "pair", "/bin/pair", 'S', 9);
    proc.process(900_071, 900_001, "pair", "/bin/pair", 'S', 9);
    proc.process(900_072, 900_071, "pair", "/bin/pair", 'S', 9);
    for (name, found) in [
        ("nginx", Ok(900_010)),
        ("gunicorn", Ok(900_020)),
        ("prometheus", Ok(900_030)),
        ("a-very-long-daemon", Ok(900_040)),
        // The program of another user's process cannot be seen.
        ("another-long-name", Ok(900_050)),
        ("nginx-debug", Err("no_process")),
        ("a-very-long-dae-mon", Err("no_process")),
        ("done", Err("zombie")),
        ("pair", Err("several_processes")),
    ] {
        assert_eq!(
            proc.resolve(&named(name), None).map_err(|(reason, _)| reason),
            found,
            "{name}"
        );
    }
}

#[test]
fn each_refusal_says_what_is_wrong_and_what_to_do() {
    let proc = FakeProc::new();
    proc.process(900_001, 0, "pause", "/pause", 'S', 1);
    proc.process(900_002, 900_001, "gone", "/bin/gone", 'Z', 1);
    proc.process(900_003, 900_001, "pair", "/bin/pair", 'S', 1);
    proc.process(900_004, 900_001, "pair", "/bin/pair", 'S', 1);
    let in_file = |text: &str| {
        let file = proc.0.path().join(format!("{}-app.pid", text.len()));
        fs::write(&file, text).unwrap();
        Address::PidFile(file)
    };
    let pid = |raw| Address::Pid(Pid::from_raw(raw).unwrap());
    for (address, words) in [
        (
            named("nginx"),
            &[
                "no process named nginx among 4 visible",
                "shareProcessNamespace",
                "hotmap run",
            ][..],
        ),
        (
            named("gone"),
            &["process 900002 named gone has ended", "parent 900001"],
        ),
        (
            named("pair"),
            &["2 processes named pair", "900003, 900004", "--pid-file"],
        ),
        (
            in_file("x\n"),
            &["app.pid does not begin with the id of a process"],
        ),
        (in_file(""), &["app.pid does not begin with"]),
        (in_file("-1\n"), &["app.pid does not begin with"]),
        (
            in_file("900009\n/var/lib/x\n"),
            &["names process 900009, which does not exist", "namespace"],
        ),
        (
            Address::PidFile("/nowhere/pid".into()),
            &["cannot read /nowhere/pid", "is the process running"],
        ),
        (pid(900_009), &["process 900009 does not exist"]),
        (pid(900_002), &["process 900002 does not exist or has ended"]),
    ] {
        let (_, message) = proc.resolve(&address, None).unwrap_err();
        for word in words {
            assert!(message.contains(word), "{word:?} is not in {message:?}");
        }
    }
    assert_eq!(proc.resolve(&in_file(" 900001 \nmore\n"), None), Ok(900_001));
}

#[test]
fn an_id_that_another_process_has_got_is_not_signalled() {
    let proc = FakeProc::new();
    let pid = Pid::from_raw(900_005).unwrap();
    proc.process(900_005, 1, "app", "/app", 'S', 10);
    let last = Found {
        pid,
        comm: "app".to_owned(),
        start_time: 10,
    };
    assert_eq!(proc.resolve(&Address::Pid(pid), Some(&last)), Ok(900_005));
    proc.process(900_005, 1, "other", "/other", 'S', 11);
    let (reason, message) = proc.resolve(&Address::Pid(pid), Some(&last)).unwrap_err();
    assert_eq!(reason, "no_process");
    assert!(message.contains("another one has its id"), "{message}");
}

#[test]
fn a_process_that_was_restarted_is_found_under_its_name() {
    let proc = FakeProc::new();
    proc.process(900_006, 1, "app", "/app", 'S', 20);
    let pid = Pid::from_raw(900_005).unwrap();
    // The one of last time is gone; or has become a worker; or its id is somebody else's.
    let last = Found {
        pid,
        comm: "app".to_owned(),
        start_time: 10,
    };
    assert_eq!(proc.resolve(&named("app"), Some(&last)), Ok(900_006));
    proc.process(900_005, 900_006, "app", "/app", 'S', 10);
    assert_eq!(proc.resolve(&named("app"), Some(&last)), Ok(900_006));
    proc.process(900_005, 1, "other", "/other", 'S', 30);
    assert_eq!(proc.resolve(&named("app"), Some(&last)), Ok(900_006));
}

/// A process that is killed at the end of a test.
struct Running(Child);

impl Running {
    fn start(line: &str) -> Self {
        let child = Command::new("sh")
            .args(["-c", line])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_real_process_gets_the_signal() {
    use std::io::{BufRead, BufReader};
    let mut running = Running::start("trap 'echo heard' USR1; echo ready; while :; do read -r line; done");
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let pid = Pid::from_child(&running.0);
    let target = Signaller::new(signal("sigusr1").unwrap(), Address::Pid(pid));
    assert_eq!(target.name(), format!("signal USR1 to process {pid}"));
    assert_eq!(target.fire(&[]).await.unwrap(), Fired::Told);
    assert_eq!(lines.next().unwrap().unwrap(), "heard");
    drop(running);
    let error = target.fire(&[]).await.unwrap_err();
    assert_eq!(
        (error.reason, error.is_temporary),
        ("no_process", true),
        "{error}"
    );
}

#[tokio::test]
async fn a_process_is_not_ended_by_a_signal_that_it_has_no_handler_for_yet() {
    use std::io::{BufRead, BufReader, Write};
    let mut running = Running::start(
        "echo starting; read -r line; trap 'echo heard' HUP; echo ready; while :; do read -r line; done",
    );
    let mut lines = BufReader::new(running.0.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "starting");
    let pid = Pid::from_child(&running.0);
    let target = Signaller::new(SignalName::HUP, Address::Pid(pid));
    let error = target.fire(&[]).await.unwrap_err();
    assert_eq!(
        (error.reason, error.is_temporary),
        ("no_handler", true),
        "{error}"
    );
    let said = format!("process {pid} (sh) has no handler for HUP, which would end it");
    assert!(error.message.starts_with(&said), "{error}");
    running.0.stdin.as_mut().unwrap().write_all(b"go on\n").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    assert_eq!(target.fire(&[]).await.unwrap(), Fired::Told);
    assert_eq!(lines.next().unwrap().unwrap(), "heard");
}

#[test]
fn signals_are_named_in_each_way_people_do() {
    for (raw, name) in [
        ("HUP", "HUP"),
        ("SIGHUP", "HUP"),
        ("hup", "HUP"),
        ("1", "HUP"),
        ("SIGUSR2", "USR2"),
        ("12", "USR2"),
    ] {
        assert_eq!(signal(raw).unwrap().name, name, "{raw}");
    }
    for raw in ["", "0", "STOP", "99", "HUPP"] {
        assert!(signal(raw).unwrap_err().contains("HUP, USR1"), "{raw}");
    }
}
