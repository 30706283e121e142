//! `hotmap-reload reload`, driven from outside.

#[path = "reload/haproxy.rs"]
mod haproxy;
#[path = "reload/nginx.rs"]
mod nginx;
#[path = "reload/postgresql.rs"]
mod postgresql;
#[path = "support/program.rs"]
mod program;
#[path = "reload/prometheus.rs"]
mod prometheus;

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use program::{Program, Volume, hotmap_reload, wait_until};

/// A shell command for `--exec` that appends what it was told to a file.
fn record(file: &Path) -> String {
    let file = file.display();
    format!("sh -c 'echo $HOTMAP_CHANGED_KEYS in $HOTMAP_VOLUME_DIR at $HOTMAP_REVISION >> {file}'")
}

#[test]
fn a_command_is_told_what_has_changed_and_nothing_at_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(directory.path().join("v"), &[("a", "1"), ("b", "1")]);
    let out = directory.path().join("out");
    let exec = record(&out);
    let mut reload = Program::hotmap_reload(&["reload", "--volume-dir", volume.name(), "--exec", &exec]);
    reload.says(&["content found"]);
    volume.swap(&[("a", "2"), ("c", "1")]);
    reload.says(&["change loaded"]);
    // The same content in a new directory is no change.
    volume.swap(&[("a", "2"), ("c", "1")]);
    volume.swap(&[("a", "3"), ("c", "1")]);
    reload.says(&["change loaded"]);
    let told = fs::read_to_string(out).unwrap();
    let lines: Vec<&str> = told.lines().collect();
    let name = volume.name();
    assert_eq!(lines.len(), 2, "{told}");
    assert_eq!(
        lines[0],
        format!("a b c in {name} at ..2026_01_02_03_04_05.0000000002")
    );
    assert_eq!(
        lines[1],
        format!("a in {name} at ..2026_01_02_03_04_05.0000000004")
    );
    reload.signal("TERM");
    assert!(reload.ends().0.success());
}

#[test]
fn what_commands_say_when_all_is_well_is_in_the_log() {
    let directory = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(directory.path().join("v"), &[("a", "1")]);
    let flags = [
        "reload",
        "--volume-dir",
        volume.name(),
        "--check",
        "sh -c 'echo syntax is ok'",
        "--exec",
        "sh -c 'echo reloaded with $TOKEN >&2'",
    ];
    let mut reload = Program::start(hotmap_reload(&flags).env("TOKEN", "correct horse"));
    reload.says(&["content found"]);
    volume.swap(&[("a", "2")]);
    reload.says(&["the command says", "syntax is ok", "command=sh"]);
    reload.says(&["the command says", "reloaded with $TOKEN"]);
    reload.says(&["change loaded"]);
}

#[test]
fn a_change_that_the_check_refuses_is_held_back_and_told_with_the_next_one() {
    let directory = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(directory.path().join("v"), &[("a", "good"), ("b", "1")]);
    let out = directory.path().join("out");
    let check = format!(
        "sh -c 'grep -q good {}/a || {{ echo a is not good; exit 4; }}'",
        volume.name()
    );
    let exec = record(&out);
    let flags = [
        "reload",
        "--volume-dir",
        volume.name(),
        "--check",
        &check,
        "--exec",
        &exec,
    ];
    let mut reload = Program::hotmap_reload(&flags);
    reload.says(&["content found"]);
    volume.swap(&[("a", "bad"), ("b", "2")]);
    reload.says(&["held back", "check sh: it ended with exit code 4: a is not good"]);
    assert!(!out.exists(), "nobody is told");
    volume.swap(&[("a", "good again"), ("b", "2")]);
    reload.says(&["change loaded"]);
    assert!(fs::read_to_string(out).unwrap().starts_with("a b in "));
}

#[test]
fn a_check_that_hangs_and_a_command_that_hangs_are_killed() {
    let directory = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(directory.path().join("v"), &[("a", "1")]);
    let hang = [
        "--check",
        "sleep 1000",
        "--check-timeout",
        "50ms",
        "--exec",
        "true",
    ];
    let mut reload =
        Program::hotmap_reload(&[&["reload", "--volume-dir", volume.name()], &hang[..]].concat());
    reload.says(&["content found"]);
    volume.swap(&[("a", "2")]);
    reload.says(&["held back", "it did not end within 50ms and was killed"]);
    drop(reload);
    let hang = ["--exec", "sleep 1000", "--timeout", "50ms", "--retries", "0"];
    let mut reload =
        Program::hotmap_reload(&[&["reload", "--volume-dir", volume.name()], &hang[..]].concat());
    reload.says(&["content found"]);
    volume.swap(&[("a", "3")]);
    reload.says(&[
        "not loaded",
        "exec sleep: it did not end within 50ms and was killed",
    ]);
}

#[test]
fn a_command_that_fails_is_repeated_until_it_succeeds() {
    let directory = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(directory.path().join("v"), &[("a", "1")]);
    let ready = directory.path().join("ready");
    let exec = format!("test -e {}", ready.display());
    let flags = [
        "reload",
        "--volume-dir",
        volume.name(),
        "--exec",
        &exec,
        "--retry-delay",
        "1ms",
        "--retry-delay-max",
        "10ms",
    ];
    let mut reload = Program::hotmap_reload(&flags);
    reload.says(&["content found"]);
    volume.swap(&[("a", "2")]);
    reload.says(&["told again", "exit code 1"]);
    reload.says(&["told again"]);
    fs::write(ready, "").unwrap();
    reload.says(&["change loaded"]);
}

#[test]
fn a_process_is_signalled_by_its_name_before_and_after_a_restart() {
    let directory = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(directory.path().join("v"), &[("a", "1")]);
    let script = directory.path().join("hm-test-daemon");
    fs::write(
        &script,
        "#!/bin/sh\ntrap 'echo heard' HUP\necho ready\nwhile :; do sleep 1000 & wait $!; kill $!; done\n",
    )
    .unwrap();
    Command::new("chmod").arg("+x").arg(&script).status().unwrap();
    let flags = [
        "reload",
        "--volume-dir",
        volume.name(),
        "--signal",
        "HUP",
        "--process",
        "hm-test-daemon",
    ];
    let mut reload = Program::hotmap_reload(
        &[
            &flags[..],
            &["--retry-delay", "20ms", "--retry-delay-max", "50ms"],
        ]
        .concat(),
    );
    reload.says(&["content found"]);
    volume.swap(&[("a", "2")]);
    reload.says(&[
        "told again",
        "no process named hm-test-daemon among",
        "shareProcessNamespace: true",
    ]);
    for content in ["3", "4"] {
        let mut daemon = Program::start(&mut Command::new(&script));
        daemon.says(&["ready"]);
        volume.swap(&[("a", content)]);
        daemon.says(&["heard"]);
        reload.says(&["change loaded"]);
    }
}

#[test]
fn a_process_of_another_user_is_not_signalled_and_it_is_said_why() {
    if !rustix_is_root() {
        eprintln!("skipped: only root can be two users");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    Command::new("chmod")
        .arg("755")
        .arg(directory.path())
        .status()
        .unwrap();
    let mut volume = Volume::new(directory.path().join("v"), &[("a", "1")]);
    // WINCH does nothing to it, and CONT may be sent to everybody in a session.
    let target = Program::start(Command::new("sleep").arg("1000"));
    let pid = target.pid().to_string();
    let mut command = hotmap_reload(&[
        "reload",
        "--volume-dir",
        volume.name(),
        "--signal",
        "WINCH",
        "--pid",
        &pid,
    ]);
    // Elsewhere than in a home that only root may enter.
    let binary = directory.path().join("hotmap-reload");
    fs::copy(env!("CARGO_BIN_EXE_hotmap-reload"), &binary).unwrap();
    let mut stranger = Command::new(&binary);
    stranger
        .args(command.get_args())
        .env("NO_COLOR", "1")
        .uid(65_534)
        .gid(65_534);
    let mut reload = Program::start(&mut stranger);
    reload.says(&["content found"]);
    volume.swap(&[("a", "2")]);
    reload.says(&[
        "not loaded",
        "not permitted to send WINCH",
        "runs as uid 0",
        "runs as uid 65534 without CAP_KILL",
    ]);
    drop(reload);
    // And root may.
    let mut reload = Program::start(&mut command);
    reload.says(&["content found"]);
    volume.swap(&[("a", "3")]);
    reload.says(&["change loaded"]);
}

fn rustix_is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

#[test]
fn once_waits_for_the_content_brings_it_and_says_by_its_exit_code_how_it_went() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("v");
    let out = directory.path().join("out");
    let flags = ["reload", "--once", "--volume-dir", path.to_str().unwrap()];
    let render = format!("{}/app.yaml:{}", path.display(), out.display());
    let mut command = hotmap_reload(&[&flags[..], &["--render", &render]].concat());
    let mut once = Program::start(command.env("NAME", "web-0"));
    once.says(&["changes may be missed", "waiting for it to appear"]);
    Volume::new(path.clone(), &[("app.yaml", "name: $(NAME)\n")]);
    let (status, said) = once.ends();
    assert!(status.success(), "{said}");
    assert_eq!(fs::read_to_string(&out).unwrap(), "name: web-0\n");

    for (more, message) in [
        (
            &["--exec", "sh -c 'echo no >&2; exit 7'", "--retries", "0"][..],
            "exec sh: it ended with exit code 7: no",
        ),
        (
            &["--exec", "true", "--check", "false"],
            "check false: it ended with exit code 1",
        ),
        (
            &["--render", &render],
            "refers to NAME in line 1, which is not set in the environment",
        ),
        (
            &["--exec", "/nowhere/x"],
            "cannot start /nowhere/x: no such program here",
        ),
        (
            &["--signal", "HUP", "--pid-file", "/nowhere/pid", "--retries", "0"],
            "cannot read /nowhere/pid",
        ),
    ] {
        let mut command = hotmap_reload(&[&flags[..], more].concat());
        let (status, said) = Program::start(command.env_remove("NAME")).ends();
        assert_eq!(status.code(), Some(1), "{more:?}: {said}");
        assert!(
            said.contains(&format!("hotmap: {message}")) || said.contains(message),
            "{message}\nnot in\n{said}"
        );
    }
}

#[test]
fn a_template_is_rendered_at_the_start_and_before_each_call() {
    let directory = tempfile::tempdir().unwrap();
    let mut volume = Volume::new(directory.path().join("v"), &[("app.yaml", "1 ${NAME}")]);
    let out = directory.path().join("out");
    let seen = directory.path().join("seen");
    let render = format!("{}/app.yaml:{}", volume.name(), out.display());
    let exec = format!("cp {} {}", out.display(), seen.display());
    let flags = [
        "reload",
        "--volume-dir",
        volume.name(),
        "--render",
        &render,
        "--exec",
        &exec,
    ];
    let mut reload = Program::start(hotmap_reload(&flags).env("NAME", "x"));
    reload.says(&["content found"]);
    assert_eq!(fs::read_to_string(&out).unwrap(), "1 x");
    assert!(!seen.exists());
    volume.swap(&[("app.yaml", "2 ${NAME}")]);
    reload.says(&["change loaded"]);
    assert_eq!(fs::read_to_string(&seen).unwrap(), "2 x");
    volume.swap(&[("app.yaml", "3 ${NOT_SET}")]);
    reload.says(&["held back", "refers to NOT_SET in line 1"]);
    assert_eq!(fs::read_to_string(&out).unwrap(), "2 x");
}

#[test]
fn a_full_disk_leaves_the_file_that_is_there_and_is_named() {
    if !rustix_is_root() {
        eprintln!("skipped: only root can mount a small disk");
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let template = directory.path().join("template");
    fs::write(&template, "x".repeat(1 << 20)).unwrap();
    let disk = directory.path().join("disk");
    fs::create_dir(&disk).unwrap();
    // In a mount namespace of its own, which ends with it.
    let script = r#"mount -t tmpfs -o size=64k none "$1" && echo old > "$1/out" &&
        "$3" reload --once --retries 1 --retry-delay 1ms --render "$2:$1/out"; echo "ended with $?"; ls -A "$1"; cat "$1/out""#;
    let mut command = Command::new("unshare");
    command
        .args(["-m", "sh", "-c", script, "sh"])
        .arg(&disk)
        .arg(&template);
    let (_, said) = Program::start(command.arg(env!("CARGO_BIN_EXE_hotmap-reload"))).ends();
    for words in [
        "it is told again",
        "disk/out: No space left on device",
        "ended with 1",
    ] {
        assert!(said.contains(words), "{words:?} is not in {said}");
    }
    assert!(said.lines().any(|line| line == "old"), "{said}");
    assert!(!said.contains(".out.hotmap"), "half a file is left: {said}");
}

#[test]
fn several_directories_and_a_delay_make_one_call_of_many_changes() {
    let directory = tempfile::tempdir().unwrap();
    let mut volumes = ["a", "b"].map(|name| Volume::new(directory.path().join(name), &[("k", "0")]));
    let out = directory.path().join("out");
    let exec = record(&out);
    let names = volumes.each_ref().map(|volume| volume.name().to_owned());
    let flags = [
        "reload",
        "--volume-dir",
        &names[0],
        "--volume-dir",
        &names[1],
        "--exec",
        &exec,
        "--delay",
        "2s",
    ];
    let mut reload = Program::hotmap_reload(&flags);
    reload.says(&["content found"]);
    for volume in &mut volumes {
        for content in 1..=20 {
            volume.swap(&[("k", &content.to_string())]);
        }
    }
    reload.says(&["change loaded"]);
    let told = fs::read_to_string(&out).unwrap();
    // A machine that stands still for seconds may make two of it, never forty.
    assert!(told.lines().count() <= 3, "{told}");
    wait_until("the last content of both", || {
        let told = fs::read_to_string(&out).unwrap();
        names.iter().all(|name| told.contains(name.as_str())) && told.contains(".0000000021")
    });
}

#[test]
fn a_wrong_call_says_what_is_missing_and_ends_with_2() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().to_str().unwrap();
    let inside = format!("/etc/hostname:{name}/out");
    for (flags, message) in [
        (&[][..], "--volume-dir <DIR>"),
        (
            &["--volume-dir", name],
            "nobody is told of changes: give --signal, --webhook-url, --exec",
        ),
        (&["--volume-dir", name, "--signal", "HUP"], "--process"),
        (
            &["--volume-dir", name, "--signal", "STOP", "--pid", "1"],
            "the signals are HUP, USR1",
        ),
        (&["--volume-dir", name, "--process", "nginx"], "--signal"),
        (
            &["--volume-dir", name, "--exec", "a 'b"],
            "the quote ' does not end",
        ),
        (
            &["--volume-dir", name, "--render", &inside],
            "every change would be followed by another",
        ),
        (
            &["--volume-dir", name, "--exec", "true", "--timeout", "0"],
            "it has to be more than 0",
        ),
        (
            &["--volume-dir", name, "--exec", "true", "--delay", "soon"],
            "not a duration such as 500ms",
        ),
    ] {
        let (status, said) = Program::hotmap_reload(&[&["reload"], flags].concat()).ends();
        assert_eq!(status.code(), Some(2), "{flags:?}: {said}");
        assert!(said.contains(message), "{message:?} is not in {said:?}");
    }
}
