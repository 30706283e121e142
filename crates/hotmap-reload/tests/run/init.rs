//! The table of what process 1 does: exit codes, orphans, signals, groups.

use std::fs;
use std::process::Command;

use tempfile::tempdir;

use crate::supervised::{Place, Supervised, places, words};

const SIGTERM: i32 = 15;

#[test]
fn the_exit_code_is_the_programs() {
    let table: [(&[&str], i32); 6] = [
        (&["true"], 0),
        (&["sh", "-c", "exit 7"], 7),
        (&["sh", "-c", "kill -TERM $$"], 143),
        (&["sh", "-c", "kill -KILL $$"], 137),
        (&["no-such-program"], 127),
        (&["/etc/passwd"], 126),
    ];
    for place in places() {
        for (command, code) in table {
            assert_eq!(
                Supervised::start(place, &[], command).code(),
                code,
                "{command:?} {place:?}"
            );
        }
    }
}

#[test]
fn every_signal_that_can_be_forwarded_is() {
    // The numbers are those of x86 and ARM. TERM is last: it ends the program.
    let signals = [
        1, 2, 3, 10, 12, 14, 16, 18, 20, 23, 24, 25, 26, 27, 28, 29, 30, 34, 40, 64, SIGTERM,
    ];
    let traps: String = signals
        .iter()
        .map(|signal| format!("trap 'echo got {signal}' {signal};"))
        .collect();
    for place in places() {
        // A shell runs a trap when `wait` is interrupted by it.
        let script =
            format!("{traps} trap 'echo got 15; exit 3' 15; sleep 1000 & echo up; while :; do wait; done");
        let run = Supervised::sh(place, &[], &script);
        run.until("up");
        for signal in signals {
            run.signal(signal);
            assert_eq!(run.line(), format!("got {signal}"), "{place:?}");
        }
        assert_eq!(run.code(), 3, "{place:?}");
    }
}

#[test]
fn fifty_orphans_are_reaped() {
    // A zombie is listed as well; when only the program is left, all were reaped.
    let script = r#"
        for orphan in $(seq 50); do (sh -c ": > $1/$orphan" &); done
        until [ "$(ls $1 | wc -l)" = 50 ] && [ "$(ps -o pid= --ppid $PPID | tr -d ' ')" = $$ ]; do :; done
        echo reaped"#;
    for place in places() {
        let directory = tempdir().expect("a directory");
        let path = directory.path().to_str().expect("plain letters");
        let run = Supervised::start(place, &[], &["sh", "-c", script, "sh", path]);
        let (lines, status) = run.end();
        assert_eq!(lines, ["reaped"], "{place:?}");
        assert!(status.success(), "{place:?}");
    }
}

#[test]
fn a_double_fork_is_adopted_and_outlives_its_parents() {
    // The orphan has a session of its own, as a daemon has, and waits until its parents are gone.
    let script = "
        mkfifo $0/go
        (setsid sh -c 'read go < $0/go; echo parent $(ps -o ppid= -p $$)' $0 &)
        echo $PPID; echo go > $0/go; read line";
    for place in places() {
        let directory = tempdir().expect("a directory");
        let path = directory.path().to_str().expect("plain letters");
        let mut run = Supervised::start(place, &[], &["sh", "-c", script, path]);
        let init = run.line();
        let adopted: Vec<String> = run.line().split_whitespace().map(str::to_owned).collect();
        assert_eq!(adopted, ["parent", &init], "{place:?}");
        if place == Place::Init {
            assert_eq!(init, "1");
        }
        run.close();
        run.end();
    }
}

#[test]
fn a_program_that_ignores_sigterm_is_killed_with_its_group_after_the_grace() {
    for place in places() {
        let script = "trap '' TERM; sleep 1000 & echo $(readlink /proc/self/ns/pid) $!; wait; wait";
        let run = Supervised::sh(place, &["--grace", "100ms"], script);
        run.line();
        run.signal(SIGTERM);
        // Standard output ends when the last one that holds it is gone: the group as a whole.
        assert_eq!(run.code(), 137, "{place:?}");
    }
}

#[test]
fn what_a_program_leaves_behind_in_its_group_ends_with_it() {
    for place in places() {
        let (_, status) = Supervised::sh(place, &[], "sleep 1000 & sleep 1000 & exit 3").end();
        assert_eq!(status.code(), Some(3), "{place:?}");
    }
}

#[test]
fn the_stop_signal_takes_the_place_of_sigterm() {
    for place in places() {
        let script = "trap 'exit 5' QUIT; sleep 1000 & echo up; wait";
        let run = Supervised::sh(place, &["--stop-signal", "QUIT"], script);
        run.until("up");
        run.signal(SIGTERM);
        assert_eq!(run.code(), 5, "{place:?}");
    }
}

#[test]
fn the_whole_group_hears_a_signal_if_asked() {
    // The member tells it, and the program waits for the member.
    let member = "sh -c \"trap 'echo member heard; exit' USR1; echo up; sleep 1000 & wait\"";
    let script =
        format!("trap 'echo program heard' USR1; {member} & member=$!; while kill -0 $member; do wait; done");
    let run = Supervised::sh(Place::Here, &["--signal-group"], &script);
    run.until("up");
    run.signal(10);
    let mut heard = [run.line(), run.line()];
    heard.sort();
    assert_eq!(heard, ["member heard", "program heard"]);
    run.end();
}

#[test]
fn the_program_starts_with_no_signal_blocked_and_what_it_inherits_ignored() {
    let masks = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"];
    let shown = |ignored: u64| {
        [
            "SigBlk:\t0000000000000000".to_owned(),
            format!("SigIgn:\t{ignored:016x}"),
        ]
    };
    // The runtime of Rust ignores SIGPIPE in this process, and in `run`; no program of theirs does.
    let inherited = ignored_here() & !(1 << (13 - 1));
    for place in places() {
        let (lines, _) = Supervised::start(place, &[], &masks).end();
        assert_eq!(lines, shown(inherited), "{place:?}");
    }
    let mut nohup = Command::new("sh");
    nohup
        .args(["-c", r#"trap "" HUP; exec "$@""#, "sh"])
        .args(words(Place::Here))
        .arg("--")
        .args(masks);
    let (lines, _) = Supervised::call(Place::Here, nohup).end();
    assert_eq!(lines, shown(inherited | 1));
}

/// The signals that this process ignores, a bit each.
fn ignored_here() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("this process is there");
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:\t"))
        .expect("it is shown");
    u64::from_str_radix(mask, 16).expect("hexadecimal digits")
}

#[test]
fn standard_input_reaches_the_program() {
    let mut run = Supervised::start(Place::Here, &[], &["cat"]);
    run.write("one\n");
    assert_eq!(run.line(), "one");
    run.close();
    assert_eq!(run.code(), 0, "cat ends with its input");
}

#[test]
fn a_program_that_fails_is_started_again_if_asked() {
    let directory = tempdir().expect("a directory");
    let log = directory.path().join("starts");
    let path = log.to_str().expect("plain letters");
    let script = r#"echo start >> "$0"; [ "$(wc -l < "$0")" -ge 5 ]"#;
    let flags = [
        "--restart",
        "on-failure",
        "--restart-backoff",
        "1ms",
        "--restart-backoff-max",
        "2ms",
    ];
    let run = Supervised::start(Place::Here, &flags, &["sh", "-c", script, path]);
    assert_eq!(run.code(), 0);
    assert_eq!(
        fs::read_to_string(&log).expect("it was written").lines().count(),
        5
    );
    let once = Supervised::start(Place::Here, &[], &["sh", "-c", "exit 9"]);
    assert_eq!(once.code(), 9, "never is the default");
}

#[test]
fn a_sigterm_ends_the_wait_for_a_restart() {
    let flags = [
        "--restart",
        "always",
        "--restart-backoff",
        "1h",
        "--restart-backoff-max",
        "1h",
    ];
    let run = Supervised::sh(Place::Here, &flags, "echo up");
    run.line();
    run.line();
    run.signal(SIGTERM);
    // The second one may still have been there to hear it, or have ended by itself.
    assert!([0, 143].contains(&run.code()));
}
