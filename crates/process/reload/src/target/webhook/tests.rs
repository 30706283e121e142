//! Webhooks from their flags to the answer.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use clap::Parser;
use hotmap_projection::{KeyChange, Revision};

use super::*;
use crate::http::scripted::{self, answer};

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    webhook: WebhookArgs,
}

fn targets(flags: &[&str]) -> Result<Vec<Webhook>, String> {
    let flags = Flags::try_parse_from([&["test"], flags].concat()).map_err(|error| error.to_string())?;
    flags.webhook.targets().map_err(|error| error.to_string())
}

fn changes() -> Vec<Change> {
    vec![Change {
        path: Arc::new(PathBuf::from("/etc/app")),
        revision: Revision::new("..7"),
        keys: [KeyChange::Modified("app.yaml".into())].into(),
        is_initial: false,
        seen: Instant::now(),
    }]
}

#[test]
fn without_flags_nobody_is_called() {
    assert!(targets(&[]).unwrap().is_empty());
    assert!(WebhookArgs::default().targets().unwrap().is_empty());
}

#[test]
fn flags_that_cannot_work_are_refused_at_the_start() {
    for (flags, why) in [
        (&["--webhook-url", "localhost:8080"][..], "--webhook-url"),
        (&["--webhook-url", "http://u:hunter2@app/"], "belong into a file"),
        (
            &["--webhook-url", "https://app/", "--webhook-ca", "/missing/ca"],
            "/missing/ca",
        ),
        (&["--webhook-basic-auth-file", "/missing/auth"], "/missing/auth"),
        (&["--webhook-status", "fine"], "no status"),
        (&["--webhook-body", "$(x)"], "no placeholder"),
        (&["--webhook-header", "hunter2"], "NAME: VALUE"),
        (&["--webhook-timeout", "10"], "not a duration"),
        (&["--webhook-client-cert", "/a"], "--webhook-client-key"),
        (
            &["--webhook-insecure", "--webhook-ca", "/a"],
            "cannot be used with",
        ),
        (&["--webhook-method", "A B"], "--webhook-method"),
    ] {
        let error = targets(flags).unwrap_err();
        assert!(error.contains(why), "{flags:?}: {error}");
    }
}

#[tokio::test]
async fn what_the_flags_say_is_sent() {
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    fs::write(&token, "hunter2\n").unwrap();
    let (address, asked) = scripted::tcp(vec![answer("204 No Content", ""), answer("200 OK", "")]).await;
    let url = format!("http://{address}/-/reload?x=1");
    let flags = [
        &[
            "--webhook-url",
            &url,
            "--webhook-method",
            "PUT",
            "--webhook-header",
            "X-Scope: a, b",
        ][..],
        &["--webhook-body", r#"{"revision":"$(revision)","keys":$(keys)}"#],
        &["--webhook-bearer-token-file", token.to_str().unwrap()],
    ]
    .concat();
    let target = targets(&flags).unwrap().remove(0);
    assert_eq!(target.name(), format!("PUT http://{address}/-/reload?…"));
    assert_eq!(target.kind(), TargetKind::Webhook);
    assert_eq!(target.fire(&changes()).await.unwrap(), Fired::Confirmed);
    // A token that was renewed meanwhile is the one that is sent.
    fs::write(&token, "hunter3").unwrap();
    assert_eq!(target.fire(&changes()).await.unwrap(), Fired::Confirmed);

    let asked = asked.await.unwrap();
    for (request, token) in asked.iter().zip(["hunter2", "hunter3"]) {
        assert!(request.starts_with("PUT /-/reload?x=1 HTTP/1.1\r\n"), "{request}");
        for line in [
            "x-scope: a, b\r\n",
            "content-type: application/json\r\n",
            &format!("authorization: Bearer {token}\r\n"),
        ] {
            assert!(request.contains(line), "{line} in {request}");
        }
        assert!(
            request.ends_with(r#"{"revision":"..7","keys":["app.yaml"]}"#),
            "{request}"
        );
    }
}

#[tokio::test]
async fn a_header_by_name_wins_and_may_be_there_twice() {
    let (address, asked) = scripted::tcp(vec![answer("200 OK", "")]).await;
    let url = format!("http://{address}/");
    let flags = [
        &[
            "--webhook-url",
            &url,
            "--webhook-body",
            "{}",
            "--webhook-header",
            "Content-Type: text/x",
        ][..],
        &[
            "--webhook-header",
            "X-A: 1",
            "--webhook-header",
            "X-A: 2",
            "--webhook-header",
            "Host: app",
        ],
    ]
    .concat();
    targets(&flags).unwrap()[0].fire(&changes()).await.unwrap();
    let asked = asked.await.unwrap().remove(0);
    for (line, times) in [
        ("content-type: ", 1),
        ("content-type: text/x\r\n", 1),
        ("x-a: ", 2),
        ("host: ", 1),
        ("host: app\r\n", 1),
    ] {
        assert_eq!(asked.matches(line).count(), times, "{line} in {asked}");
    }
}

#[tokio::test]
async fn several_urls_are_several_targets() {
    let urls = "http://a:1/x unix:/run/b.sock:/y";
    let names: Vec<String> = targets(&["--webhook-url", urls, "--webhook-url", "http://c/"])
        .unwrap()
        .iter()
        .map(|target| target.name().to_owned())
        .collect();
    assert_eq!(
        names,
        ["POST http://a:1/x", "POST unix:/run/b.sock:/y", "POST http://c/"]
    );
}

#[tokio::test]
async fn an_answer_of_another_status_is_quoted_and_says_whether_to_try_again() {
    let moved = "HTTP/1.1 301 Moved Permanently\r\nlocation: /new\r\ncontent-length: 0\r\n\r\n";
    let long = "y".repeat(3 * QUOTED_CHARS_MAX);
    for (said, flags, why, is_temporary) in [
        (
            answer("500 Internal Server Error", "\n bad rules\nmore"),
            &[][..],
            "bad rules (2xx is expected)",
            true,
        ),
        (
            answer("503 Service Unavailable", ""),
            &[],
            "503 Service Unavailable (2xx",
            true,
        ),
        (
            answer("403 Forbidden", "Lifecycle API is not enabled."),
            &[],
            "Lifecycle API",
            false,
        ),
        (
            answer("401 Unauthorized", ""),
            &[],
            "--webhook-basic-auth-file",
            false,
        ),
        (answer("404 Not Found", ""), &[], "404", true),
        (
            answer("405 Method Not Allowed", ""),
            &[],
            "--webhook-method",
            false,
        ),
        (answer("429 Too Many Requests", ""), &[], "429", true),
        (
            answer("200 OK", "\x1b[31mred"),
            &["--webhook-status", "204"],
            ": [31mred (204 is expected)",
            false,
        ),
        (answer("400 Bad Request", &long), &[], "y… (2xx", false),
        (moved.to_owned(), &[], "redirects are not followed", false),
    ] {
        let (address, _asked) = scripted::tcp(vec![said]).await;
        let url = format!("http://{address}/");
        let target = targets(&[&["--webhook-url", &url], flags].concat())
            .unwrap()
            .remove(0);
        let error = target.fire(&changes()).await.unwrap_err();
        assert!(error.message.contains(why), "{error}");
        assert_eq!(
            (error.reason, error.is_temporary),
            ("status", is_temporary),
            "{error}"
        );
    }
}

#[tokio::test]
async fn credentials_that_are_away_for_a_moment_are_told_and_tried_again() {
    let directory = tempfile::tempdir().unwrap();
    let auth = directory.path().join("auth");
    fs::write(&auth, "user:hunter2").unwrap();
    let flags = [
        "--webhook-url",
        "http://127.0.0.1:1/",
        "--webhook-basic-auth-file",
        auth.to_str().unwrap(),
    ];
    let target = targets(&flags).unwrap().remove(0);
    fs::remove_file(&auth).unwrap();
    let error = target.fire(&changes()).await.unwrap_err();
    assert!(error.message.contains("cannot read the credentials"), "{error}");
    assert_eq!((error.reason, error.is_temporary), ("file", true));
    assert!(!format!("{target:?}").contains("hunter2"));
}
