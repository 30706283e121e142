//! The client against scripted servers.

use std::fs;
use std::path::PathBuf;

use hyper::Method;
use rcgen::ExtendedKeyUsagePurpose;
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::scripted::{Pki, answer};
use super::*;

/// Generous: no test waits for it but the one about it, whose clock is not the wall's.
const PATIENCE: Duration = Duration::from_secs(60);

async fn post(url: &str, tls: TlsFiles) -> Result<Answer, HttpError> {
    let url: Url = url.parse().unwrap();
    let mut request = Request::new(Bytes::from_static(b"hello"));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = url.path.clone().into();
    HttpClient::new(url.place, tls, PATIENCE).send(request).await
}

async fn fails(url: &str, tls: TlsFiles) -> (String, &'static str) {
    let error = post(url, tls).await.unwrap_err();
    (error.to_string(), error.reason())
}

fn plain() -> TlsFiles {
    TlsFiles::system("webhook")
}

#[tokio::test]
async fn a_request_goes_out_whole_and_the_answer_comes_back() {
    let (address, asked) = scripted::tcp(vec![answer("202 Accepted", "thank you")]).await;
    let answer = post(&format!("http://{address}/a?b=c"), plain()).await.unwrap();
    assert_eq!(
        (answer.status.as_u16(), &answer.body[..]),
        (202, &b"thank you"[..])
    );
    let asked = asked.await.unwrap().remove(0).to_lowercase();
    assert!(asked.starts_with("post /a?b=c http/1.1\r\n"), "{asked}");
    for line in [
        &format!("host: {address}")[..],
        "connection: close",
        "content-length: 5",
        "user-agent: hotmap/",
    ] {
        assert!(asked.contains(line), "{line} in {asked}");
    }
    assert!(asked.ends_with("\r\n\r\nhello"), "{asked}");
}

#[tokio::test]
async fn a_unix_socket_is_a_place_like_others() {
    let directory = TempDir::new().unwrap();
    let socket = directory.path().join("app.sock");
    let asked = scripted::unix(&socket, vec![answer("200 OK", "")]);
    let url = format!("unix:{}:/reload", socket.display());
    assert_eq!(post(&url, plain()).await.unwrap().status.as_u16(), 200);
    let asked = asked.await.unwrap().remove(0).to_lowercase();
    assert!(asked.starts_with("post /reload http/1.1\r\n"), "{asked}");
    assert!(asked.contains("host: localhost"), "{asked}");

    // Nobody listens on it any more; then it is gone.
    let (message, reason) = fails(&url, plain()).await;
    assert!(
        message.contains("nobody listens") && reason == "connect",
        "{message}"
    );
    fs::remove_file(&socket).unwrap();
    let (message, reason) = fails(&url, plain()).await;
    assert!(
        message.contains("it is not there") && reason == "connect",
        "{message}"
    );
}

#[tokio::test]
async fn what_is_no_answer_has_its_sentence() {
    let free = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    let (message, reason) = fails(&format!("http://{free}/"), plain()).await;
    assert!(
        message.contains("connection refused") && reason == "connect",
        "{message}"
    );

    let long = format!(
        "HTTP/1.1 200 OK\r\nx: {}\r\n\r\n",
        "y".repeat(2 * ANSWER_HEAD_BYTES_MAX)
    );
    for (said, why, expected) in [
        ("", "closed the connection", "broken"),
        ("HTTP/1.1 200 OK\r\n", "closed the connection", "broken"),
        (
            "\x15\x03\x01\x00\x02\x02\x16",
            "does not answer in HTTP/1.1",
            "protocol",
        ),
        (long.as_str(), "does not answer in HTTP/1.1", "protocol"),
    ] {
        let (address, _asked) = scripted::tcp(vec![said.to_owned()]).await;
        let (message, reason) = fails(&format!("http://{address}/"), plain()).await;
        assert!(message.contains(why), "{said:?}: {message}");
        assert_eq!(reason, expected, "{said:?}");
    }
}

#[tokio::test]
async fn a_body_that_breaks_off_or_is_long_does_not_hide_the_status() {
    let long = "x".repeat(2 * ANSWER_BYTES_MAX);
    for (said, length) in [
        ("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nabc".to_owned(), 3),
        (answer("200 OK", &long), ANSWER_BYTES_MAX),
        ("HTTP/1.1 200 OK\r\n\r\nuntil the end".to_owned(), 13),
    ] {
        let (address, _asked) = scripted::tcp(vec![said]).await;
        let answer = post(&format!("http://{address}/"), plain()).await.unwrap();
        assert_eq!((answer.status.as_u16(), answer.body.len()), (200, length));
    }
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_up_in_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url: Url = format!("http://{}/", listener.local_addr().unwrap())
        .parse()
        .unwrap();
    let client = HttpClient::new(url.place, plain(), Duration::from_millis(50));
    let error = client.send(Request::new(Bytes::new())).await.unwrap_err();
    assert!(
        error.to_string().ends_with("has not answered within 0.05 s"),
        "{error}"
    );
    assert!(error.reason() == "timeout" && error.is_temporary());
}

/// Files for TLS in a directory of their own.
struct Files(TempDir);

impl Files {
    fn put(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, content).unwrap();
        path
    }
}

#[tokio::test]
async fn tls_believes_the_named_authority_and_shows_a_certificate() {
    let (files, servers, clients) = (Files(TempDir::new().unwrap()), Pki::new(), Pki::new());
    let (certificate, key) = clients.issue("client", ExtendedKeyUsagePurpose::ClientAuth);
    let tls = TlsFiles {
        ca: Some(files.put("ca.crt", &servers.authority())),
        identity: Some((files.put("tls.crt", &certificate), files.put("tls.key", &key))),
        ..plain()
    };
    let acceptor = servers.acceptor("127.0.0.1", Some(&clients));
    let answers = vec![answer("200 OK", "hello"), answer("200 OK", "")];
    let (address, asked) = scripted::tls(acceptor, answers).await;
    let url = format!("https://{address}/x");
    let answer = post(&url, tls.clone()).await.unwrap();
    assert_eq!((answer.status.as_u16(), &answer.body[..]), (200, &b"hello"[..]));

    let nobody = TlsFiles {
        identity: None,
        ..tls
    };
    let (message, reason) = fails(&url, nobody).await;
    assert!(
        message.contains("--webhook-client-cert") && reason == "tls",
        "{message}"
    );
    assert!(asked.await.unwrap()[0].ends_with("hello"));
}

#[tokio::test]
async fn a_certificate_that_is_not_believed_has_its_reason() {
    let (files, ours, other) = (Files(TempDir::new().unwrap()), Pki::new(), Pki::new());
    let ca = files.put("ca.crt", &ours.authority());
    for (signer, name, why) in [
        (&other, "127.0.0.1", "not signed by an authority of"),
        (&ours, "app.example", "app.example"),
    ] {
        let answers = vec![answer("200 OK", ""), answer("200 OK", "")];
        let (address, _asked) = scripted::tls(signer.acceptor(name, None), answers).await;
        let url = format!("https://{address}/");
        let tls = TlsFiles {
            ca: Some(ca.clone()),
            ..plain()
        };
        let (message, reason) = fails(&url, tls).await;
        assert!(message.contains(why) && reason == "tls", "{message}");

        let insecure = TlsFiles {
            is_insecure: true,
            ..plain()
        };
        assert_eq!(post(&url, insecure).await.unwrap().status.as_u16(), 200);
    }

    let (address, _asked) = scripted::tcp(vec![answer("400 Bad Request", "")]).await;
    let tls = TlsFiles {
        ca: Some(ca),
        ..plain()
    };
    let (message, reason) = fails(&format!("https://{address}/"), tls).await;
    assert!(message.contains("is no TLS") && reason == "tls", "{message}");
}

#[test]
fn files_that_cannot_be_used_are_named_with_their_reason() {
    let (files, pki) = (Files(TempDir::new().unwrap()), Pki::new());
    let (certificate, key) = pki.issue("a", ExtendedKeyUsagePurpose::ClientAuth);
    let (_, other_key) = pki.issue("b", ExtendedKeyUsagePurpose::ClientAuth);
    let ca = files.put("ca.crt", &pki.authority());
    let empty = files.put("empty", "");
    let missing = files.0.path().join("missing");
    let cert = files.put("tls.crt", &certificate);
    let other = files.put("other.key", &other_key);
    for (ca, identity, why) in [
        (&missing, None, "cannot read"),
        (&empty, None, "no certificate"),
        (&ca, Some((&cert, &empty)), "no private key"),
        (&ca, Some((&missing, &other)), "missing"),
        (&ca, Some((&cert, &other)), "not the key of"),
    ] {
        let tls = TlsFiles {
            ca: Some(ca.clone()),
            identity: identity.map(|(certificate, key)| (certificate.clone(), key.clone())),
            ..plain()
        };
        let Err(error) = tls.connector() else {
            panic!("{why}: accepted");
        };
        assert!(error.to_string().contains(why), "{why}: {error}");
    }
    let key = files.put("tls.key", &key);
    let tls = TlsFiles {
        ca: Some(ca),
        identity: Some((cert, key)),
        ..plain()
    };
    assert!(tls.connector().is_ok());
}
