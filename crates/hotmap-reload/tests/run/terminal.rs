//! `run` on a terminal: `script` makes one.

use std::process::Command;

use crate::supervised::{Place, Supervised, places, words};

/// Runs a shell command on a terminal of its own.
fn on_terminal(place: Place, command: &str) -> Supervised {
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--command", command, "/dev/null"]);
    Supervised::call(place, script)
}

#[test]
fn the_program_is_in_the_foreground_of_the_terminal() {
    for place in places() {
        let run = words(place).join(" ");
        let command = format!(
            r#"{run} -- sh -c 'test -t 0 && echo on $(ps -o stat= -p $$); read -r line; echo read $line; exit 4'"#
        );
        let mut run = on_terminal(Place::Here, &command);
        // `+` is the foreground.
        assert!(run.until("on ").contains('+'), "{place:?}");
        run.write("typed\n");
        run.until("read typed");
        assert_eq!(run.code(), 4, "{place:?}");
    }
}

#[test]
fn an_interrupt_that_is_typed_is_heard_once() {
    for place in places() {
        let run = words(place).join(" ");
        // An interrupt may throw away what is on its way to the terminal, so it is told later.
        let program = "trap \"heard=\\$heard+\" INT; echo up; until read -r line; do :; done; echo heard\\$heard; exit 6";
        let command = format!("{run} -- sh -c '{}'", program.replace('\\', ""));
        let mut run = on_terminal(Place::Here, &command);
        run.until("up");
        run.write("\u{3}");
        run.write("go\n");
        assert!(run.until("heard").contains("heard+"), "{place:?}");
        assert_eq!(run.code(), 6, "{place:?}");
    }
}

#[test]
fn a_stop_that_is_typed_stops_the_job_of_the_shell_and_fg_goes_on() {
    let run = words(Place::Here).join(" ");
    let mut shell = on_terminal(Place::Here, "bash --norc --noprofile -i");
    shell.write(&format!(
        "{run} -- sh -c 'echo u''p; read -r line; echo read $line; exit 8'\n"
    ));
    shell.until("up");
    shell.write("\u{1a}");
    shell.until("Stopped");
    shell.write("fg\n");
    // The shell repeats the command line of the job.
    shell.until("sh -c");
    shell.write("typed\n");
    shell.until("read typed");
    shell.write("echo code=$?\nexit\n");
    shell.until("code=8");
    shell.end();
}
