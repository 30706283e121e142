//! Containers against an engine's socket of our own.

use clap::Parser;

use super::*;
use crate::http::scripted::{self, answer};

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    container: ContainerArgs,
}

fn targets(flags: &[&str]) -> Result<Vec<Container>, String> {
    let flags = Flags::try_parse_from([&["test"], flags].concat()).map_err(|error| error.to_string())?;
    Ok(flags.container.targets())
}

#[test]
fn names_and_signals_are_checked() {
    for (flags, name) in [
        (&["--container", "web"][..], "signal HUP to container web"),
        (
            &["--container", "web", "--container-signal", "sigusr1"],
            "signal USR1 to container web",
        ),
        (
            &["--container", "web", "--container-signal", "RTMIN+3"],
            "signal RTMIN+3 to container web",
        ),
        (
            &["--container", "a_b.c-1", "--container-action", "restart"],
            "restart of container a_b.c-1",
        ),
    ] {
        assert_eq!(targets(flags).unwrap()[0].name(), name);
    }
    assert_eq!(targets(&["--container", "a b"]).unwrap().len(), 2);
    assert!(targets(&[]).unwrap().is_empty());
    assert!(ContainerArgs::default().targets().is_empty());
    let restart = ["--container", "a", "--container-action", "restart"];
    for (flags, patience_s) in [
        (&["--container", "a", "--container-timeout", "9m"][..], 10),
        (&restart, 180),
        (&[&restart[..], &["--container-timeout", "9m"]].concat(), 540),
    ] {
        let target = targets(flags).unwrap().remove(0);
        assert!(target.limits_itself());
        assert_eq!(target.patience, Duration::from_secs(patience_s), "{flags:?}");
    }
    for bad in [
        &["--container", "a/b"][..],
        &["--container", "../a"],
        &["--container", "a?x"],
        &["--container", "a", "--container-signal", "1&x"],
        &["--container", "a", "--container-action", "stop"],
    ] {
        assert!(targets(bad).is_err(), "{bad:?}");
    }
}

#[tokio::test]
async fn the_engine_is_asked_in_its_words() {
    let directory = tempfile::tempdir().unwrap();
    for (at, (flags, asked_for, fired)) in [
        (
            &["--container", "web"][..],
            "POST /containers/web/kill?signal=SIGHUP ",
            Fired::Told,
        ),
        (
            &["--container", "web", "--container-signal", "rtmin+3"],
            "POST /containers/web/kill?signal=SIGRTMIN%2B3 ",
            Fired::Told,
        ),
        (
            &["--container", "web", "--container-action", "restart"],
            "POST /containers/web/restart ",
            Fired::Confirmed,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let socket = directory.path().join(at.to_string());
        let asked = scripted::unix(&socket, vec![answer("204 No Content", "")]);
        let socket = ["--container-socket", socket.to_str().unwrap()];
        let target = targets(&[flags, &socket].concat()).unwrap().remove(0);
        assert_eq!(target.kind(), TargetKind::Container);
        assert_eq!(target.fire(&[]).await.unwrap(), fired);
        let asked = asked.await.unwrap().remove(0);
        assert!(asked.starts_with(asked_for), "{asked}");
    }
}

#[tokio::test]
async fn refusals_of_both_engines_are_sentences() {
    let directory = tempfile::tempdir().unwrap();
    let docker_missing = r#"{"message":"No such container: web"}"#;
    let podman_stopped =
        r#"{"cause":"container state improper","message":"can only kill running containers","response":409}"#;
    let bad_signal = r#"{"message":"invalid signal: SIGX\n"}"#;
    for (at, (said, why, reason, is_temporary)) in [
        (
            answer("404 Not Found", docker_missing),
            "there is no container web",
            "not_found",
            true,
        ),
        (
            answer("409 Conflict", podman_stopped),
            "container web does not run",
            "not_running",
            true,
        ),
        (
            answer("400 Bad Request", bad_signal),
            "400 Bad Request: invalid signal: SIGX",
            "status",
            false,
        ),
        (
            answer("500 Internal Server Error", "oops"),
            "answers 500 Internal Server Error",
            "status",
            true,
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let socket = directory.path().join(at.to_string());
        let _asked = scripted::unix(&socket, vec![said]);
        let target = targets(&[
            "--container",
            "web",
            "--container-socket",
            socket.to_str().unwrap(),
        ])
        .unwrap()
        .remove(0);
        let error = target.fire(&[]).await.unwrap_err();
        assert!(
            error.message.starts_with("signal HUP to container web failed: "),
            "{error}"
        );
        assert!(error.message.contains(why), "{error}");
        assert_eq!(
            (error.reason, error.is_temporary),
            (reason, is_temporary),
            "{error}"
        );
    }
    let missing = directory.path().join("missing");
    let target = targets(&[
        "--container",
        "web",
        "--container-socket",
        missing.to_str().unwrap(),
    ])
    .unwrap()
    .remove(0);
    let error = target.fire(&[]).await.unwrap_err();
    assert!(error.message.contains("missing: it is not there"), "{error}");
    assert_eq!((error.reason, error.is_temporary), ("connect", true));
}
