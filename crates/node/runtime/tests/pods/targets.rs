//! Containers in the pid namespace of another one: they see and signal its processes, and end with it.

use hotmap_runtime::{ContainerConfig, Runtime, StartError, Stdin};

use crate::fixture::{Fixture, POD, exec, exit_of, stdout_of};

fn beside(fixture: &Fixture, name: &str, target: &str, script: &str) -> ContainerConfig {
    let mut config = fixture.script(name, script);
    config.target = Some(target.to_owned());
    config
}

/// Starts what a container looks at and another that is none of its business.
async fn app(fixture: &Fixture) -> Runtime {
    let runtime = fixture.open().await;
    fixture.pod(&runtime).await;
    let script = "trap 'echo reloaded' HUP; echo up > /tmp/mine; while :; do sleep 1000 & wait $!; done";
    for name in ["app", "other"] {
        let config = fixture.script(name, script);
        runtime.start_container(POD, config).await.expect("started");
        exec(&runtime, name, "until [ -e /tmp/mine ]; do :; done").await;
    }
    runtime
}

#[tokio::test]
async fn a_container_shares_the_processes_of_its_target_and_ends_with_it() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = app(&fixture).await;
    let mut events = runtime.events();
    let looks = beside(&fixture, "looks", "app", "sleep 2000 & exec sleep 2001");
    runtime.start_container(POD, looks).await.expect("started");
    let look = async |script: &str| stdout_of(&runtime, "looks", script).await;
    // The first process it sees is the target's, by whose root it sees the target's files.
    assert_eq!(
        look("cat /proc/1/root/tmp/mine; ls /tmp/mine 2>&1 | wc -l").await,
        "up\n1"
    );
    assert_eq!(
        look("[ -e /tmp/mine ]; echo $?").await,
        "1",
        "its own files are its own"
    );
    assert_eq!(
        look("cat /proc/[0-9]*/comm | sort | uniq -c | grep -c sleep").await,
        "1"
    );
    let signalled = exec(&runtime, "looks", "kill -HUP 1").await;
    assert_eq!(signalled.exit_code, 0);
    let reloaded = async {
        while fixture.log("app").is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), reloaded)
        .await
        .expect("the target heard it");
    assert!(fixture.log("other").is_empty());

    // It ends without its target, with all it has started.
    let count = "cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' | grep -c '^200[01]$'";
    let mut second = beside(&fixture, "second", "app", "sleep 2000 & sleep 2001");
    second.stdin = Stdin::Open;
    runtime.start_container(POD, second).await.expect("started");
    exec(
        &runtime,
        "looks",
        &format!("until [ $({count}) = 4 ]; do :; done"),
    )
    .await;
    let zero = std::time::Duration::ZERO;
    let stopped = runtime.stop_container(POD, "second", None, None, zero).await;
    stopped.expect("stopped");
    assert_eq!(exit_of(&mut events, "second", 0).await.exit_code, 137);
    assert_eq!(look(count).await, "2");

    // The end of the target is that of everybody in its namespace.
    let stopped = runtime.stop_container(POD, "app", None, None, zero).await;
    stopped.expect("stopped");
    let exit = exit_of(&mut events, "looks", 0).await;
    assert_eq!((exit.exit_code, exit.signal), (137, Some(9)));
    assert_eq!(stdout_of(&runtime, "other", "cat /tmp/mine").await, "up");
}

#[tokio::test]
async fn a_target_that_does_not_run_is_named() {
    let Some(fixture) = Fixture::new() else { return };
    let runtime = app(&fixture).await;
    for target in ["nobody", "ended"] {
        if target == "ended" {
            fixture.run(&runtime, fixture.script("ended", "exit 0")).await;
        }
        let config = beside(&fixture, "looks", target, "true");
        let error = runtime.start_container(POD, config).await.expect_err("no target");
        assert!(matches!(error, StartError::NoTarget(_)), "{error:?}");
        assert_eq!(
            error.to_string(),
            format!("target container {target} does not run: there are no processes to share")
        );
    }
    let config = beside(&fixture, "looks", "app", "echo $(cat /proc/1/root/tmp/mine)");
    let (exit_code, log) = fixture.run(&runtime, config).await;
    assert_eq!((exit_code, log), (0, vec!["up".to_owned()]));
}
