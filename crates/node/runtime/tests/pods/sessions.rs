//! Commands in running containers.

use std::time::Duration;

use hotmap_runtime::{ExecConfig, ExecError, TerminalSize};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fixture::{Fixture, POD, exec, exit_of, stdout_of};

fn shell(script: &str) -> ExecConfig {
    let argv = ["/bin/busybox", "sh", "-c", script].map(str::to_owned).to_vec();
    ExecConfig {
        argv,
        stdin: true,
        stdout: true,
        stderr: true,
        ..ExecConfig::default()
    }
}

#[tokio::test]
async fn streams_are_binary_safe_and_apart_and_the_exit_code_comes_back() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let mut config = fixture.script("web", "sleep 1000");
    config.env.push(("LEVEL".to_owned(), "INFO".to_owned()));
    runtime.start_container(POD, config).await.expect("started");
    let bytes: Vec<u8> = (0..1_000_000u32).flat_map(u32::to_le_bytes).collect();
    let mut session = runtime
        .exec(POD, "web", shell("cat; echo done >&2; exit 42"))
        .await
        .expect("executed");
    let (mut stdin, mut stdout, mut stderr) = (
        session.stdin.take().expect("asked for"),
        session.stdout.take().expect("asked for"),
        session.stderr.take().expect("asked for"),
    );
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let write = async {
        stdin.write_all(&bytes).await.expect("written");
        stdin.shutdown().await.expect("closed");
    };
    let (_, read, read_err, code) = tokio::join!(
        write,
        stdout.read_to_end(&mut out),
        stderr.read_to_end(&mut err),
        session.wait()
    );
    read.and(read_err).expect("read");
    assert!(out == bytes, "{} of {} bytes", out.len(), bytes.len());
    assert_eq!((err.as_slice(), code.expect("ended")), (b"done\n".as_slice(), 42));
    assert_eq!(
        stdout_of(&runtime, "web", "echo $LEVEL $HOSTNAME").await,
        "INFO web",
        "it has the container's environment"
    );
    assert_eq!(exec(&runtime, "web", "kill -9 $$").await.exit_code, 137);
}

#[tokio::test]
async fn a_slow_reader_holds_the_command_and_loses_nothing() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    runtime
        .start_container(POD, fixture.script("web", "sleep 1000"))
        .await
        .expect("started");
    let script = "head -c 300000 /dev/zero; echo finished > /tmp/finished";
    let mut session = runtime.exec(POD, "web", shell(script)).await.expect("executed");
    assert_eq!(
        exec(&runtime, "web", "test -e /tmp/finished").await.exit_code,
        1,
        "it waits for its reader"
    );
    let mut out = Vec::new();
    session
        .stdout
        .take()
        .expect("asked for")
        .read_to_end(&mut out)
        .await
        .expect("read");
    assert_eq!((out.len(), session.wait().await.expect("ended")), (300_000, 0));
}

#[tokio::test]
async fn a_command_that_leaves_a_process_behind_ends_all_the_same() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    runtime
        .start_container(POD, fixture.script("web", "sleep 1000"))
        .await
        .expect("started");
    assert_eq!(
        stdout_of(&runtime, "web", "sleep 500 & echo started").await,
        "started"
    );
}

#[tokio::test]
async fn what_cannot_be_executed_is_told_apart() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    runtime
        .start_container(POD, fixture.script("web", "sleep 1000"))
        .await
        .expect("started");
    let argv = |program: &str| ExecConfig {
        argv: vec![program.to_owned()],
        ..ExecConfig::default()
    };
    let missing = runtime.exec(POD, "web", argv("nope")).await.expect_err("missing");
    assert_eq!(
        missing.to_string(),
        r#"exec: "nope": executable file not found in $PATH"#
    );
    assert!(matches!(missing, ExecError::Exec { exit_code: 127, .. }));
    let denied = runtime
        .exec(POD, "web", argv("/etc/passwd"))
        .await
        .expect_err("no program");
    assert!(
        matches!(denied, ExecError::Exec { exit_code: 126, .. }),
        "{denied:?}"
    );
    assert!(matches!(
        runtime.exec(POD, "no-such", argv("true")).await,
        Err(ExecError::NotRunning(_))
    ));
    assert!(matches!(
        runtime.exec("no-pod", "web", argv("true")).await,
        Err(ExecError::NoSandbox(_))
    ));
    let mut events = runtime.events();
    runtime
        .stop_container(POD, "web", None, None, Duration::ZERO)
        .await
        .expect("stopped");
    exit_of(&mut events, "web", 0).await;
    assert!(matches!(
        runtime.exec(POD, "web", argv("true")).await,
        Err(ExecError::NotRunning(_))
    ));
}

#[tokio::test]
async fn a_probe_that_takes_too_long_is_killed() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    runtime
        .start_container(POD, fixture.script("web", "sleep 1000"))
        .await
        .expect("started");
    let argv = ["sleep", "77777"].map(str::to_owned).to_vec();
    let result = runtime
        .exec_sync(POD, "web", argv, Duration::from_millis(200), 1024)
        .await;
    assert!(matches!(result, Err(ExecError::Timeout(_))), "{result:?}");
    let gone = async { while exec(&runtime, "web", "pgrep -f 'sleep 7777[7]'").await.exit_code == 0 {} };
    tokio::time::timeout(Duration::from_secs(10), gone)
        .await
        .expect("it was killed");
    let output = runtime
        .exec_sync(
            POD,
            "web",
            vec!["cat".into(), "/usr/bin/env".into()],
            Duration::from_secs(10),
            10,
        )
        .await;
    assert_eq!(output.expect("executed").stdout.len(), 10, "output is bounded");
}

#[tokio::test]
async fn a_terminal_has_a_size_that_can_change() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    runtime
        .start_container(POD, fixture.script("web", "sleep 1000"))
        .await
        .expect("started");
    let config = ExecConfig {
        tty: true,
        size: Some(TerminalSize {
            columns: 101,
            rows: 31,
        }),
        ..shell("tty; stty size; read line; echo got $line; stty size; exit 5")
    };
    let mut session = runtime.exec(POD, "web", config).await.expect("executed");
    let (mut stdin, mut stdout) = (
        session.stdin.take().expect("a terminal"),
        session.stdout.take().expect("a terminal"),
    );
    assert!(session.stderr.is_none());
    let mut seen = String::new();
    let mut bytes = [0; 256];
    while !seen.contains("31 101") {
        let length = stdout.read(&mut bytes).await.expect("read");
        assert!(length > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&bytes[..length]));
    }
    assert!(seen.contains("/dev/pts/0"), "{seen}");
    session
        .resize(TerminalSize {
            columns: 44,
            rows: 22,
        })
        .expect("resized");
    stdin.write_all(b"hello\n").await.expect("written");
    stdout.read_to_string(&mut seen).await.expect("read to the end");
    assert!(seen.contains("got hello") && seen.contains("22 44"), "{seen}");
    assert_eq!(session.wait().await.expect("ended"), 5);

    let mut config = fixture.script("shell", "tty; echo to-err >&2");
    config.tty = true;
    let (exit_code, log) = fixture.run(&runtime, config).await;
    assert_eq!(
        (exit_code, log),
        (0, vec!["/dev/pts/0".to_owned(), "to-err".to_owned()])
    );
}

#[tokio::test]
async fn a_container_knows_what_it_was_started_with() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let env = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(owned).collect()
    };
    let mut config = fixture.script("web", "sleep 1000");
    config.env = env(&[("A", "1"), ("PASSWORD", "hunter2"), ("HOSTNAME", "mine")]);
    runtime
        .start_container(POD, config.clone())
        .await
        .expect("started");
    let again = fixture.open().await;
    for (env, differs) in [
        (config.env.clone(), &[][..]),
        (
            env(&[("HOSTNAME", "mine"), ("PASSWORD", "hunter2"), ("A", "1")]),
            &[],
        ),
        (
            env(&[("HOSTNAME", "mine"), ("PASSWORD", "hunter3"), ("B", "1")]),
            &["A", "B", "PASSWORD"],
        ),
        (env(&[("A", "1"), ("PASSWORD", "hunter2")]), &["HOSTNAME"]),
    ] {
        let found = again.environment_differs(POD, "web", 0, env).await.expect("told");
        assert_eq!(found, differs);
    }
    let other = again.environment_differs(POD, "web", 1, Vec::new()).await;
    assert!(matches!(other, Err(hotmap_runtime::CompareError::NotRunning)));
}
