//! `hotmap-reload probe`: is what is on the disk what the process has loaded?

#[path = "run/supervised.rs"]
#[expect(dead_code, reason = "the tests of `run` use the rest of it")]
mod supervised;
#[path = "run/volume.rs"]
mod volume;

use std::path::Path;
use std::process::Command;

use supervised::{Place, Supervised};
use volume::Volume;

/// Prints its environment, and says what it hears.
const PROGRAM: &str =
    "trap 'echo heard' HUP; trap 'exit 0' TERM; sleep 1000 & echo up; while :; do wait; done";

/// The exit code and what is said, one line.
fn probe(flags: &[&str]) -> (i32, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotmap-reload"));
    let output = command
        .arg("probe")
        .args(flags)
        .output()
        .expect("the binary runs");
    let said = String::from_utf8(output.stdout).expect("text");
    assert!(said.lines().count() <= 1, "{said}");
    (output.status.code().expect("it ends by itself"), said)
}

/// Asks until the answer is this one; a write is noticed a moment later.
#[track_caller]
fn until(flags: &[&str], code: i32, says: &str) {
    loop {
        let (is, said) = probe(flags);
        if is == code && said.contains(says) {
            return;
        }
    }
}

#[test]
fn a_state_file_and_the_endpoint_tell_what_is_loaded() {
    let (volume, elsewhere) = (
        Volume::new(&[("app.yaml", "good")]),
        tempfile::tempdir().expect("a directory"),
    );
    let text = |path: &Path| path.to_str().expect("plain letters").to_owned();
    let (state, socket) = (
        text(&elsewhere.path().join("state")),
        text(&elsewhere.path().join("hotmap.sock")),
    );
    let check = format!("grep -q good {}/app.yaml", volume.as_str());
    let serve = format!("unix:{socket}");
    let flags = [
        "--watch",
        volume.as_str(),
        "--check",
        &check,
        "--state-file",
        &state,
        "--serve",
        &serve,
    ];
    let run = Supervised::sh(Place::Here, &flags, PROGRAM);
    run.until("up");
    let sources = [["--state-file", &state], ["--endpoint", &serve]];
    let ask = |source: [&str; 2], more: &[&str], code: i32, says: &str| {
        until(
            &[&["--volume-dir", volume.as_str()], &source[..], more].concat(),
            code,
            says,
        );
    };
    for source in sources {
        ask(source, &[], 0, "is loaded");
    }
    volume.write(&[("app.yaml", "bad")]);
    for source in sources {
        ask(source, &[], 1, "held-back");
        ask(source, &["--allow-held-back"], 0, "held-back");
        ask(source, &["--for", "1h"], 0, "of 3600s");
    }
    volume.write(&[("app.yaml", "good once more")]);
    run.until("heard");
    for source in sources {
        ask(source, &[], 0, "is loaded");
    }
    ask(sources[0], &["--max-age", "1h"], 0, "is loaded");
    ask(sources[0], &["--max-age", "1ms"], 1, "more than 1ms");
}

#[test]
fn a_process_has_loaded_what_was_there_when_it_started() {
    let volume = Volume::new(&[("app.yaml", "one")]);
    let mut program = Command::new("sleep").arg("1000").spawn().expect("it is there");
    let pid = program.id().to_string();
    let flags = ["--volume-dir", volume.as_str(), "--pid", &pid];
    until(&flags, 0, "is loaded");
    // Starts are counted in ticks of 10 ms: a swap right after one is not told from one right before it.
    loop {
        volume.write(&[("app.yaml", "two")]);
        if probe(&flags).0 == 1 {
            break;
        }
    }
    until(&flags, 1, "has read what was there before");
    until(&[&flags[..], &["--for", "1h"]].concat(), 0, "of 3600s");
    program.kill().expect("it runs");
    program.wait().expect("it is our child");
    let (code, said) = probe(&flags);
    assert_eq!(code, 1, "{said}");
}

#[test]
fn what_cannot_be_known_is_a_failure_with_a_sentence_and_a_wrong_call_is_another() {
    let volume = Volume::new(&[("app.yaml", "one")]);
    let directory = volume.as_str();
    for (flags, code, says) in [
        (
            &["--volume-dir", directory, "--state-file", "/no/such"][..],
            1,
            "cannot read --state-file /no/such",
        ),
        (
            &["--volume-dir", directory, "--endpoint", "unix:/no/such"],
            1,
            "--endpoint unix:/no/such",
        ),
        (
            &["--volume-dir", "/no/such", "--pid", "1"],
            1,
            "--volume-dir /no/such",
        ),
        (
            &["--volume-dir", directory, "--process", "no-such-program"],
            1,
            "no-such-program",
        ),
        (&["--volume-dir", directory], 2, ""),
        (&["--pid", "1"], 2, ""),
        (&["--volume-dir", directory, "--endpoint", "nonsense"], 2, ""),
    ] {
        let (is, said) = probe(flags);
        assert!(is == code && said.contains(says), "{flags:?}: {is} {said}");
    }
}
