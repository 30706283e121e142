use std::path::PathBuf;

use hotmap_projection::Revision;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::*;
use crate::endpoint::{Secrecy, Standing};
use crate::http::{TlsFiles, Url};
use crate::metric_names::MetricNames;
use crate::metrics::Metrics;
use crate::progress::{Phase, Progress, VolumeProgress};

fn progress(revision: &str) -> Progress {
    let revision = Some(Revision::new(revision));
    let volume = VolumeProgress {
        path: PathBuf::from("/etc/app"),
        seen: revision.clone(),
        told: None,
        loaded: revision,
    };
    Progress {
        volumes: vec![volume],
        phase: Phase::Loaded,
        deaf: None,
    }
}

/// Takes one request, answers it with this status, and returns its head and body.
async fn take(listener: &TcpListener, status: &str) -> (String, Value) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let (head, body) = request(&mut stream).await;
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(answer.as_bytes()).await.unwrap();
    (head, body)
}

async fn request(stream: &mut TcpStream) -> (String, Value) {
    let mut text = String::new();
    loop {
        let mut part = [0; 1_024];
        let read = stream.read(&mut part).await.unwrap();
        assert!(read > 0, "the request broke off: {text}");
        text.push_str(std::str::from_utf8(&part[..read]).unwrap());
        if let Some((head, body)) = text.split_once("\r\n\r\n")
            && let Ok(body) = serde_json::from_str(body)
        {
            return (head.to_lowercase(), body);
        }
    }
}

// On the real clock: a paused one runs ahead of the loopback interface.
#[tokio::test]
async fn reports_carry_a_fresh_token_and_are_sent_until_they_are_taken() {
    let directory = tempfile::tempdir().unwrap();
    let token = directory.path().join("token");
    std::fs::write(&token, "one\n").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url: Url = format!("http://{}/v1/reports", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let name = |name: &str| Some(name.to_owned());
    let post = Post {
        client: HttpClient::new(url.place, TlsFiles::system("report"), REQUEST_TIME_MAX),
        path: url.path,
        token: Some(Credentials::Bearer(token.clone())),
        who: Who {
            node: name("worker-1"),
            namespace: name("shop"),
            name: name("web-0"),
            uid: None,
        },
    };
    let (sender, receiver) = watch::channel(progress("..1"));
    let secrecy = Secrecy {
        public: vec![PathBuf::from("/etc/app")],
        ..Secrecy::default()
    };
    let statements = Statements::new(Standing::new(receiver, true), secrecy.into());
    let metrics = EndpointMetrics::new(Metrics::new(MetricNames::Hotmap));
    let counted = metrics.clone();
    let reporting = tokio::spawn(async move { post.report(statements, &metrics).await });

    let (head, body) = take(&listener, "503 Service Unavailable").await;
    assert!(
        head.starts_with("post /v1/reports http/1.1") && head.contains("authorization: bearer one"),
        "{head}"
    );
    assert!(head.contains("content-type: application/json"), "{head}");
    assert_eq!(body["node"], json!("worker-1"));
    assert_eq!(body["pod"], json!({"namespace": "shop", "name": "web-0"}));
    let [volume] = body["volumes"].as_array().unwrap().as_slice() else {
        panic!("one volume: {body}")
    };
    assert_eq!(
        (&volume["path"], &volume["revision"], &volume["ok"]),
        (&json!("/etc/app"), &json!("..1"), &json!(true))
    );
    let since: Timestamp = volume["since"].as_str().unwrap().parse().expect("RFC 3339");
    assert!(since > Timestamp::UNIX_EPOCH);

    // What is true by then is sent, with the token of then.
    std::fs::write(&token, "two\n").unwrap();
    sender.send_replace(progress("..2"));
    let (head, body) = take(&listener, "202 Accepted").await;
    assert!(head.contains("authorization: bearer two"), "{head}");
    assert_eq!(body["volumes"][0]["revision"], json!("..2"));

    sender.send_replace(progress("..3"));
    let (_, body) = take(&listener, "200 OK").await;
    assert_eq!(body["volumes"][0]["revision"], json!("..3"));
    reporting.abort();
    let metrics = counted.text(&progress("..3"));
    for line in [
        "{to=\"url\",outcome=\"refused\"} 1",
        "{to=\"url\",outcome=\"ok\"} ",
    ] {
        assert!(
            metrics.contains(&format!("hotmap_reports_total{line}")),
            "{metrics}"
        );
    }
}

#[tokio::test]
async fn what_cannot_be_sent_is_a_sentence_without_the_token() {
    let directory = tempfile::tempdir().unwrap();
    let empty = directory.path().join("empty");
    std::fs::write(&empty, "\n").unwrap();
    for (token, error) in [
        (
            directory.path().join("absent"),
            "--report-token-file: cannot read",
        ),
        (empty, "holds no token"),
    ] {
        let url: Url = "http://127.0.0.1:1/".parse().unwrap();
        let post = Post {
            client: HttpClient::new(url.place, TlsFiles::system("report"), REQUEST_TIME_MAX),
            path: url.path,
            token: Some(Credentials::Bearer(token)),
            who: Who::default(),
        };
        let told = post.send(&[]).await.unwrap_err().to_string();
        assert!(told.contains(error), "{told}");
    }
    assert_eq!(hint(401, false), "; --report-token-file names a token for it");
    assert_eq!(document(&Who::default(), &[]), json!({"volumes": []}));
}
