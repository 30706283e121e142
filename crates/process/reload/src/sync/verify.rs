//! Whether a revision is good, asked of the program that has loaded it.

use std::time::Duration;

use bytes::Bytes;
use hotmap_projection::Change;
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

use crate::check::Check;
use crate::command::Words;
use crate::http::{HttpClient, TlsFiles};
use crate::sync::config::{VerifyConfig, VerifyWho};

/// Between two questions.
const PERIOD: Duration = Duration::from_secs(1);
/// How long one question may take.
const QUESTION_TIMEOUT: Duration = Duration::from_secs(10);

/// Asks for some time whether all is well.
pub(crate) struct Verify {
    probe: Probe,
    /// How long.
    window: Duration,
}

/// Who is asked.
enum Probe {
    /// A command, by its exit code. It may say the same each second: that is shown once.
    Command { check: Check, shown: Mutex<Words> },
    /// A URL, by its status: 200 to 399 is well, as a probe of Kubernetes has it.
    Url {
        client: HttpClient,
        path: PathAndQuery,
        /// As it was given.
        url: String,
    },
}

impl Verify {
    pub(crate) fn new(config: &VerifyConfig) -> Self {
        let tls = TlsFiles {
            ca: config.ca.clone(),
            ..TlsFiles::system("verify")
        };
        let probe = match &config.who {
            VerifyWho::Command(command) => Probe::Command {
                check: Check::new(command.clone(), QUESTION_TIMEOUT),
                shown: Mutex::default(),
            },
            VerifyWho::Url(url) => Probe::Url {
                client: HttpClient::new(url.place.clone(), tls, QUESTION_TIMEOUT),
                path: url.path.clone(),
                url: url.shown(),
            },
        };
        Self {
            probe,
            window: config.window,
        }
    }

    /// Asks once a second until the window is over. Before the first good answer a bad one may be a program that is still
    /// at it; after that it is a failure. The last answer has to be good.
    pub(crate) async fn run(&self, changes: &[Change]) -> Result<(), String> {
        if let Probe::Command { shown, .. } = &self.probe {
            *shown.lock() = Words::default();
        }
        ask_for(self.window, async || self.probe.ask(changes).await).await
    }
}

async fn ask_for(window: Duration, ask: impl AsyncFn() -> Result<(), String>) -> Result<(), String> {
    let end = Instant::now() + window;
    let mut was_good = false;
    loop {
        let asked = Instant::now();
        let answer = ask().await;
        let is_over = Instant::now() >= end;
        match answer {
            Ok(()) if is_over => return Ok(()),
            Ok(()) => was_good = true,
            Err(why) if was_good => return Err(format!("it was well, and then: {why}")),
            Err(why) if is_over => return Err(why),
            Err(_) => {}
        }
        sleep_until((asked + PERIOD).min(end)).await;
    }
}

impl Probe {
    async fn ask(&self, changes: &[Change]) -> Result<(), String> {
        match self {
            Self::Command { check, shown } => {
                let words = check.words(changes).await.map_err(|error| error.to_string())?;
                let mut shown = shown.lock();
                if *shown != words {
                    words.log(check.command());
                    *shown = words;
                }
                Ok(())
            }
            Self::Url { client, path, url } => {
                let mut request = Request::new(Bytes::new());
                *request.method_mut() = Method::GET;
                *request.uri_mut() = path.clone().into();
                let answer = client.send(request).await.map_err(|error| error.to_string())?;
                let status = answer.status;
                if status.is_success() || status.is_redirection() {
                    Ok(())
                } else {
                    Err(format!("{url} answers {status}"))
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::http::scripted::{self, Pki, answer};

    /// `answers` is what is said each second (`+` well, `-` not); the last one is repeated. With how many questions it ended.
    async fn check(window_s: u64, answers: &str, expected: Result<(), &str>, questions: usize) {
        let asked = Cell::new(0);
        let ask = async || {
            let number = asked.replace(asked.get() + 1);
            let answer = answers.chars().nth(number).or(answers.chars().last());
            if answer == Some('+') {
                Ok(())
            } else {
                Err(format!("answer {number}"))
            }
        };
        let ended = ask_for(Duration::from_secs(window_s), ask).await;
        assert_eq!(
            ended,
            expected.map_err(str::to_owned),
            "{answers} for {window_s} s"
        );
        assert_eq!(asked.get(), questions, "{answers} for {window_s} s");
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_answer_has_to_be_good_and_none_after_the_first_good_one_bad() {
        check(0, "+", Ok(()), 1).await;
        check(0, "-", Err("answer 0"), 1).await;
        check(3, "+", Ok(()), 4).await;
        check(3, "--+", Ok(()), 4).await;
        check(3, "---+", Ok(()), 4).await;
        check(3, "-", Err("answer 3"), 4).await;
        check(3, "-+-", Err("it was well, and then: answer 2"), 3).await;
        check(30, "+++-", Err("it was well, and then: answer 3"), 4).await;
    }

    #[tokio::test]
    async fn a_url_is_asked_over_tls_and_its_certificate_is_looked_at() {
        let directory = tempfile::tempdir().expect("a directory");
        let (ours, others) = (Pki::new(), Pki::new());
        let ca = directory.path().join("ca.crt");
        std::fs::write(&ca, ours.authority()).expect("ours");
        for (pki, status, expected) in [
            (&ours, "204 No Content", Ok(())),
            (&ours, "500 Oops", Err("answers 500 Internal Server Error")),
            (
                &others,
                "204 No Content",
                Err("its certificate is not signed by an authority of"),
            ),
        ] {
            let acceptor = pki.acceptor("127.0.0.1", None);
            let (address, asked) = scripted::tls(acceptor, vec![answer(status, "")]).await;
            let url = format!("https://{address}/healthz?a");
            let verify = Verify::new(&VerifyConfig {
                who: VerifyWho::Url(url.parse().expect("a URL")),
                window: Duration::ZERO,
                ca: Some(ca.clone()),
            });
            let verified = verify.run(&[]).await;
            match (&verified, expected) {
                (Ok(()), Ok(())) => {
                    let asked = asked.await.expect("it was asked");
                    assert!(asked[0].starts_with("GET /healthz?a HTTP/1.1\r\n"), "{asked:?}");
                }
                (Err(why), Err(part)) => assert!(why.contains(part), "{why}"),
                _ => panic!("{status}: {verified:?}"),
            }
        }
    }
}
