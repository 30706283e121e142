//! Fetches what is at the URLs that keys hold, as k8s-sidecar does for keys that end in `.url`.
//!
//! Whoever may write such an object says where is asked, and is sent the credentials that were given for it: they are meant
//! for one place that all these objects name. Only `http` and `https` are asked, never a socket of this machine.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::Args;
use hyper::header::{AUTHORIZATION, HeaderValue, LOCATION};
use hyper::{Request, StatusCode};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::{AbortHandle, JoinSet};

use crate::cli::duration::duration;
use crate::http::{HttpClient, HttpError, Place, TlsFiles, Url};
use crate::pace::{Draw, Pace};
use crate::sync::config::ConfigError;
use crate::sync::contents::{Address, UrlContents, UrlKey};

/// One answer: as much as a whole object may have.
const CONTENT_BYTES_MAX: usize = 1024 * 1024;
/// How often an answer may lead elsewhere; more is a circle.
const REDIRECTS_MAX: usize = 5;
/// How many URLs are asked at the same time: a server that hangs holds up so many.
const AT_ONCE_MAX: usize = 16;
/// Answers that nobody has taken yet; whoever fetches waits.
const ANSWERS_MAX: usize = 16;

/// How URLs are asked, as typed: what the environment of k8s-sidecar says.
#[derive(Debug, Args)]
pub(crate) struct FetchArgs {
    /// How long one answer may take.
    #[arg(long, default_value = "10s", value_parser = duration, hide = true)]
    fetch_timeout: Duration,
    /// What is sent as `Authorization`.
    #[arg(long, value_parser = sensitive, hide = true)]
    fetch_authorization: Option<HeaderValue>,
    /// Authorities that sign certificates, instead of the system's.
    #[arg(long, env = "HOTMAP_FETCH_CA", hide = true)]
    fetch_ca: Option<PathBuf>,
    /// Every certificate is believed.
    #[arg(long, hide = true)]
    fetch_insecure: bool,
    /// The body of an answer with a status of 500 and above is content, too.
    #[arg(long, hide = true)]
    fetch_5xx: bool,
}

/// A header's value that is never shown.
fn sensitive(text: &str) -> Result<HeaderValue, String> {
    let mut value = HeaderValue::from_str(text).map_err(|_| "not the value of a header".to_owned())?;
    value.set_sensitive(true);
    Ok(value)
}

impl FetchArgs {
    pub(crate) fn into_config(self) -> Result<FetchConfig, ConfigError> {
        let tls = TlsFiles {
            ca: self.fetch_ca,
            is_insecure: self.fetch_insecure,
            ..TlsFiles::system("fetch")
        };
        // A system without a bundle is one that may never ask over TLS.
        if tls.ca.is_some() {
            tls.connector()
                .map_err(|error| ConfigError(format!("--fetch-ca: {error}")))?;
        }
        Ok(FetchConfig {
            tls,
            timeout: self.fetch_timeout,
            authorization: self.fetch_authorization,
            takes_5xx: self.fetch_5xx,
        })
    }
}

/// How URLs are asked.
#[derive(Debug)]
pub(crate) struct FetchConfig {
    tls: TlsFiles,
    timeout: Duration,
    authorization: Option<HeaderValue>,
    takes_5xx: bool,
}

/// An answer, or why there is none.
#[derive(Debug)]
pub(crate) struct Fetched {
    pub(crate) key: UrlKey,
    pub(crate) address: Address,
    pub(crate) answer: Result<Bytes, String>,
}

/// Asks for URLs, each in a task of its own, again and again until there is an answer. Dropping it ends that.
pub(crate) struct Fetches {
    how: Arc<How>,
    draw: Draw,
    running: BTreeMap<UrlKey, AbortHandle>,
    tasks: JoinSet<()>,
    answers: mpsc::Receiver<Fetched>,
    answer: mpsc::Sender<Fetched>,
}

struct How {
    config: FetchConfig,
    pace: Pace,
    /// Whether a failure is told only when nothing is tried any more.
    is_patient: bool,
    at_once: Semaphore,
}

/// Why there is no content.
#[derive(Debug, PartialEq, Eq)]
struct FetchError {
    why: String,
    is_temporary: bool,
}

impl FetchConfig {
    /// Repeats at this pace; `is_once`: there is no later in which what has failed could be mended.
    pub(crate) fn start(self, pace: Pace, seed: u64, is_once: bool) -> Fetches {
        let (answer, answers) = mpsc::channel(ANSWERS_MAX);
        Fetches {
            how: Arc::new(How {
                config: self,
                pace,
                is_patient: is_once,
                at_once: Semaphore::new(AT_ONCE_MAX),
            }),
            draw: Draw::new(seed),
            running: BTreeMap::new(),
            tasks: JoinSet::new(),
            answers,
            answer,
        }
    }
}

impl Fetches {
    /// Asks for this address, and no more for the one that the key had before.
    pub(crate) fn ask(&mut self, key: UrlKey, address: Address) {
        // Those that have ended leave nothing but their place in the set.
        while self.tasks.try_join_next().is_some() {}
        let (how, draw, answer) = (Arc::clone(&self.how), self.draw.split(), self.answer.clone());
        let asking = how.ask_until_answered(draw, key.clone(), address, answer);
        let task = self.tasks.spawn(asking);
        if let Some(former) = self.running.insert(key, task) {
            former.abort();
        }
    }

    /// Asks no more for what is not wanted any more.
    pub(crate) fn keep(&mut self, wanted: &UrlContents) {
        self.running.retain(|key, task| {
            let is_wanted = wanted.is_wanted(key);
            if !is_wanted {
                task.abort();
            }
            is_wanted
        });
    }

    /// The next answer. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Fetched {
        let next = self.answers.recv().await;
        next.expect("a sender is kept beside the receiver")
    }
}

impl How {
    async fn ask_until_answered(
        self: Arc<Self>,
        mut draw: Draw,
        key: UrlKey,
        address: Address,
        answer: mpsc::Sender<Fetched>,
    ) {
        let mut failures = 0;
        loop {
            let fetched = {
                let _one_of_few = self.at_once.acquire().await;
                self.fetch(&address.url).await
            };
            let pause = match &fetched {
                Err(error) if error.is_temporary => {
                    failures += 1;
                    self.pace.pause(failures, draw.next())
                }
                _ => None,
            };
            if pause.is_none() || !self.is_patient {
                let fetched = Fetched {
                    key: key.clone(),
                    address: address.clone(),
                    answer: fetched.map_err(|error| error.why),
                };
                if answer.send(fetched).await.is_err() {
                    return;
                }
            }
            match pause {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return,
            }
        }
    }

    async fn fetch(&self, url: &[u8]) -> Result<Bytes, FetchError> {
        let mut url = parse(url)?;
        let named = url.place.clone();
        for _ in 0..=REDIRECTS_MAX {
            let mut request = Request::new(Bytes::new());
            *request.uri_mut() = url.path.clone().into();
            // Who was not named by the object does not get them.
            if let Some(authorization) = &self.config.authorization
                && url.place == named
            {
                request.headers_mut().insert(AUTHORIZATION, authorization.clone());
            }
            let client = HttpClient::new(url.place.clone(), self.config.tls.clone(), self.config.timeout);
            let answer = client.send_for_all(request, CONTENT_BYTES_MAX).await?;
            let status = answer.status;
            match answer.headers.get(LOCATION) {
                Some(location) if status.is_redirection() => url = lead(&url, location)?,
                _ if status.is_success() || (self.config.takes_5xx && status.is_server_error()) => {
                    return Ok(answer.body);
                }
                _ => {
                    return Err(FetchError {
                        why: format!("{} answers {status}", url.shown()),
                        is_temporary: status.is_server_error()
                            || [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status),
                    });
                }
            }
        }
        Err(for_good(format!("{} leads on and on", url.shown())))
    }
}

/// The value of a key as a URL. What is none is not repeated: it may be content.
fn parse(value: &[u8]) -> Result<Url, FetchError> {
    let text = str::from_utf8(value).map(str::trim).unwrap_or_default();
    if !["http://", "https://"]
        .iter()
        .any(|scheme| text.starts_with(scheme))
    {
        return Err(for_good("its value is no http:// or https:// URL".to_owned()));
    }
    text.parse()
        .map_err(|_| for_good("its value is no URL that can be asked, or one with a password".to_owned()))
}

/// Where an answer leads.
fn lead(from: &Url, location: &HeaderValue) -> Result<Url, FetchError> {
    let nowhere = || for_good(format!("{} leads to no URL that can be asked", from.shown()));
    let location = location.to_str().map_err(|_| nowhere())?;
    if location.starts_with('/') && !location.starts_with("//") {
        let path = location.parse().map_err(|_| nowhere())?;
        return Ok(Url {
            place: from.place.clone(),
            path,
        });
    }
    let to = parse(location.as_bytes()).map_err(|_| nowhere())?;
    if from.place.is_tls() && !to.place.is_tls() {
        return Err(for_good(format!("{} leads from https to http", from.shown())));
    }
    debug_assert!(
        matches!(to.place, Place::Tcp { .. }),
        "only http and https are parsed"
    );
    Ok(to)
}

fn for_good(why: String) -> FetchError {
    FetchError {
        why,
        is_temporary: false,
    }
}

impl From<HttpError> for FetchError {
    fn from(error: HttpError) -> Self {
        Self {
            why: error.to_string(),
            is_temporary: error.is_temporary(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::scripted::{self, answer};

    fn how(takes_5xx: bool) -> How {
        How {
            config: FetchConfig {
                tls: TlsFiles::system("fetch"),
                // No test waits for it.
                timeout: Duration::from_secs(60),
                authorization: Some(HeaderValue::from_static("Basic dTpw")),
                takes_5xx,
            },
            pace: Pace::default(),
            is_patient: false,
            at_once: Semaphore::new(1),
        }
    }

    fn redirect(to: &str) -> String {
        format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
    }

    /// What is fetched from a server with these answers, `{}` being its address; or why nothing is, with `temporary` behind it
    /// if that may change.
    async fn check(answers: &[String], takes_5xx: bool, expected: &str) {
        let (address, _asked) = scripted::tcp(answers.to_vec()).await;
        let fetched = how(takes_5xx)
            .fetch(format!(" http://{address}/a?b=c\n").as_bytes())
            .await;
        let shown = match fetched {
            Ok(content) => String::from_utf8_lossy(&content).into_owned(),
            Err(error) if error.is_temporary => format!("{}, temporary", error.why),
            Err(error) => error.why,
        };
        assert_eq!(shown, expected.replace("{}", &address.to_string()), "{answers:?}");
    }

    #[tokio::test]
    async fn content_is_what_a_good_answer_holds() {
        check(&[answer("200 OK", "hello")], false, "hello").await;
        let most = "x".repeat(CONTENT_BYTES_MAX);
        check(&[answer("200 OK", &most)], false, &most).await;
        let why = "the answer of http://{} has more than 1048576 bytes";
        check(&[answer("200 OK", &format!("{most}y"))], false, why).await;
        let why = "http://{}/a?… answers 404 Not Found";
        check(&[answer("404 Not Found", "no")], true, why).await;
        let why = "http://{}/a?… answers 503 Service Unavailable, temporary";
        check(&[answer("503 Service Unavailable", "no")], false, why).await;
        check(&[answer("503 Service Unavailable", "no")], true, "no").await;
        let cut = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhel".to_owned();
        let why = "http://{} has closed the connection before it answered, temporary";
        check(&[cut], false, why).await;
    }

    #[tokio::test]
    async fn an_answer_may_lead_elsewhere_but_not_without_end() {
        check(&[redirect("/b"), answer("200 OK", "there")], false, "there").await;
        let circle = vec![redirect("/a"); REDIRECTS_MAX + 1];
        check(&circle, false, "http://{}/a leads on and on").await;
        for nowhere in ["ftp://a/", "unix:/run/docker.sock", "//a/", "b"] {
            let why = "http://{}/a?… leads to no URL that can be asked";
            check(&[redirect(nowhere)], false, why).await;
        }
    }

    #[tokio::test]
    async fn credentials_are_for_the_place_that_was_named() {
        let (other, asked_other) = scripted::tcp(vec![answer("200 OK", "there")]).await;
        let (named, asked) = scripted::tcp(vec![redirect(&format!("http://{other}/"))]).await;
        let content = how(false).fetch(format!("http://{named}/").as_bytes()).await;
        assert_eq!(content.as_deref(), Ok(&b"there"[..]));
        let has_them = |asked: Vec<String>| {
            asked
                .join("")
                .to_lowercase()
                .contains("authorization: basic dtpw")
        };
        assert!(has_them(asked.await.unwrap()));
        assert!(!has_them(asked_other.await.unwrap()));
    }

    #[tokio::test]
    async fn what_is_no_url_of_a_server_is_not_asked_and_not_repeated() {
        for value in [
            "",
            "hunter2",
            "unix:/run/docker.sock:/info",
            "file:///etc/shadow",
            "http://u:hunter2@a/",
        ] {
            let error = how(false).fetch(value.as_bytes()).await.unwrap_err();
            assert!(
                error.why.starts_with("its value is no") && !error.why.contains("hunter2"),
                "{error:?}"
            );
            assert!(!error.is_temporary, "{value}");
        }
    }

    #[tokio::test]
    async fn what_fails_is_asked_again_until_it_is_there() {
        let answers = vec![
            answer("500 Oops", ""),
            answer("500 Oops", ""),
            answer("200 OK", "hello"),
        ];
        let (address, _asked) = scripted::tcp(answers).await;
        let soon = Pace {
            backoff: Duration::from_millis(1),
            backoff_max: Duration::from_millis(1),
            ..Pace::default()
        };
        let mut fetches = how(false).config.start(soon, 1, false);
        let version = crate::sync::object::ObjectVersion {
            kind: crate::sync::object::ObjectKind::ConfigMap,
            namespace: "shop".to_owned(),
            name: "app".to_owned(),
            uid: String::new(),
            resource_version: "1".to_owned(),
        };
        let asked = Address {
            url: format!("http://{address}/").into(),
            resource_version: "1".to_owned(),
        };
        fetches.ask(UrlKey::of(&version, "a.url"), asked);
        let why = format!("http://{address}/ answers 500 Internal Server Error");
        assert_eq!(fetches.next().await.answer, Err(why.clone()));
        assert_eq!(fetches.next().await.answer, Err(why));
        assert_eq!(fetches.next().await.answer, Ok(Bytes::from_static(b"hello")));
    }
}
