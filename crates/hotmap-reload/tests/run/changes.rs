//! What a change does to the program: a signal, a restart, another environment.

use std::process::Command;

use crate::supervised::{Place, Supervised, places, words};
use crate::volume::Volume;

/// Tells signals and ends with them; says its environment first.
const PROGRAM: &str = r#"trap 'echo heard HUP' HUP; trap 'echo heard USR1' USR1; trap 'echo ended; exit 0' TERM
    sleep 1000 & echo "up GREETING=$GREETING DB_HOST=$DB_HOST"; while :; do wait; done"#;

#[test]
fn a_change_is_told_by_a_signal() {
    for place in places() {
        for (flags, heard) in [(&[][..], "heard HUP"), (&["--signal", "USR1"][..], "heard USR1")] {
            let volume = Volume::new(&[("app.yaml", "one")]);
            let flags = [&["--watch", volume.as_str()], flags].concat();
            let run = Supervised::sh(place, &flags, PROGRAM);
            run.until("up");
            for content in ["two", "three"] {
                volume.write(&[("app.yaml", content)]);
                assert_eq!(run.line(), heard, "{place:?}");
            }
            run.signal(15);
            assert_eq!(run.line(), "ended");
            assert_eq!(run.code(), 0);
        }
    }
}

#[test]
fn a_program_that_is_still_starting_is_told_once_it_listens() {
    for place in places() {
        let volume = Volume::new(&[("app.yaml", "one")]);
        let mut call = Command::new("sh");
        call.args(["-c", r#"exec "$@" 2>&1"#, "sh"])
            .args(words(place))
            .args(["--watch", volume.as_str(), "--retry-delay", "5ms", "--"])
            .args(["sh", "-c", &format!("echo starting; read -r line; {PROGRAM}")]);
        let mut run = Supervised::call(place, call);
        assert_eq!(run.line(), "starting");
        volume.write(&[("app.yaml", "two")]);
        run.until("has no handler for HUP");
        run.write("go on\n");
        run.until("heard HUP");
        run.signal(15);
        run.until("ended");
        assert_eq!(run.code(), 0, "{place:?}");
    }
}

#[test]
fn a_change_restarts_the_program_if_asked() {
    for place in places() {
        let volume = Volume::new(&[("app.yaml", "one")]);
        let run = Supervised::sh(
            place,
            &["--watch", volume.as_str(), "--on-change", "restart"],
            PROGRAM,
        );
        run.until("up");
        for content in ["two", "three"] {
            volume.write(&[("app.yaml", content)]);
            assert_eq!(run.line(), "ended", "{place:?}");
            run.until("up");
        }
        run.signal(15);
        assert_eq!(run.code(), 0, "{place:?}");
    }
}

#[test]
fn what_the_check_refuses_is_held_back() {
    let volume = Volume::new(&[("app.yaml", "good 1")]);
    let check = format!("grep -q good {}/app.yaml", volume.as_str());
    let flags = [
        "--watch",
        volume.as_str(),
        "--on-change",
        "restart",
        "--check",
        &check,
    ];
    let program = format!(
        "trap 'exit 0' TERM; sleep 1000 & echo content $(cat {}/app.yaml); wait",
        volume.as_str()
    );
    let run = Supervised::sh(Place::Here, &flags, &program);
    assert_eq!(run.line(), "content good 1");
    volume.write(&[("app.yaml", "bad 2")]);
    volume.write(&[("app.yaml", "good 3")]);
    assert_eq!(
        run.line(),
        "content good 3",
        "nothing was started with what the check refuses"
    );
}

#[test]
fn the_environment_follows_its_directory() {
    for place in places() {
        let volume = Volume::new(&[("GREETING", "hello"), ("not=a-name", "x")]);
        let run = Supervised::sh(place, &["--env-from", volume.as_str()], PROGRAM);
        assert_eq!(run.line(), "up GREETING=hello DB_HOST=");
        volume.write(&[("GREETING", "good morning"), ("DB_HOST", "db")]);
        assert_eq!(run.line(), "ended", "{place:?}");
        assert_eq!(run.line(), "up GREETING=good morning DB_HOST=db");
        // The same content once more, and another without effect: nothing happens until there is one.
        volume.write(&[("GREETING", "good morning"), ("DB_HOST", "db")]);
        volume.write(&[("GREETING", "good morning"), ("DB_HOST", "db"), ("zero", "\0")]);
        volume.write(&[("DB_HOST", "db2")]);
        assert_eq!(run.line(), "ended");
        assert_eq!(run.line(), "up GREETING= DB_HOST=db2", "{place:?}");
    }
}

#[test]
fn variables_are_filtered_and_prefixed_and_the_later_source_wins() {
    let base = Volume::new(&[("HOST", "a"), ("GREETING", "base"), ("SECRET", "not taken")]);
    let over = Volume::new(&[("over.env", "# comment\nexport GREETING=\"over $\"\n")]);
    let over_file = over.path().join("over.env");
    let flags = [
        "--env-from",
        base.as_str(),
        "--env-from",
        over_file.to_str().expect("plain letters"),
        "--env-from",
        "/no/such/file?",
        "--env-prefix",
        "DB_,,",
        "--env-name",
        "HOST,GREET*",
    ];
    let script = "env | grep -E '^(DB_|GREETING|SECRET)' | sort; echo end";
    let (lines, _) = Supervised::sh(Place::Here, &flags, script).end();
    assert_eq!(lines, ["DB_GREETING=base", "DB_HOST=a", "GREETING=over $", "end"]);
}

#[test]
fn a_source_that_is_missing_or_wrong_is_named_and_nothing_is_started() {
    let wrong = Volume::new(&[("wrong.env", "correct horse")]);
    let wrong = wrong.path().join("wrong.env");
    for (source, code) in [
        ("/no/such/directory", 125),
        (wrong.to_str().expect("plain letters"), 125),
    ] {
        let run = Supervised::sh(Place::Here, &["--env-from", source], "echo started");
        let (lines, status) = run.end();
        assert_eq!((lines, status.code()), (vec![], Some(code)), "{source}");
    }
}

#[test]
fn an_environment_that_cannot_be_used_leaves_the_program_as_it_is() {
    let volume = Volume::new(&[("app.env", "GREETING=one\n")]);
    let file = volume.path().join("app.env");
    let flags = ["--env-from", file.to_str().expect("plain letters")];
    let run = Supervised::sh(Place::Here, &flags, PROGRAM);
    assert_eq!(run.line(), "up GREETING=one DB_HOST=");
    volume.write(&[("app.env", "GREETING")]);
    volume.write(&[("app.env", "GREETING=two\n")]);
    assert_eq!(run.line(), "ended");
    assert_eq!(run.line(), "up GREETING=two DB_HOST=");
}

#[test]
fn a_new_program_that_fails_at_once_ends_run_with_its_code() {
    let volume = Volume::new(&[("CODE", "0")]);
    let script = r#"[ "$CODE" = 0 ] || exit "$CODE"; trap 'exit 0' TERM; echo up; sleep 1000 & wait"#;
    let run = Supervised::sh(Place::Here, &["--env-from", volume.as_str()], script);
    run.until("up");
    volume.write(&[("CODE", "9")]);
    assert_eq!(run.code(), 9);
}
