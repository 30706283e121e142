//! A signal to Prometheus that is followed by a question: has it loaded its files? `--runtimeinfo-url`.
//!
//! A signal has no answer. What has come of the last reload Prometheus says in `/api/v1/status/runtimeinfo`
//! (`reloadConfigSuccess`, `lastConfigTime`: web/api/v1/api.go, Prometheus 3).

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use hotmap_projection::Change;
use hyper::Request;
use hyper::http::uri::PathAndQuery;
use jiff::Timestamp;
use serde::Deserialize;
use tokio::time::{Instant, sleep};

use super::Signaller;
use crate::http::{HttpClient, TlsFiles, Url};
use crate::target::{Fired, Target, TargetError, TargetKind};

/// Between two questions: a reload of a small configuration takes some milliseconds, one of many rules seconds.
const LOOK: Duration = Duration::from_millis(250);
/// `lastConfigTime` has whole seconds: two reloads within one cannot be told apart.
const CONFIG_TIME_STEP: Duration = Duration::from_secs(1);

/// See the module.
#[derive(Debug)]
pub(crate) struct ConfirmedSignal {
    signaller: Signaller,
    client: HttpClient,
    path: PathAndQuery,
    url: String,
    /// From the signal until it has loaded.
    patience: Duration,
    look: Duration,
}

/// What Prometheus says of its last reload.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RuntimeInfo {
    reload_config_success: bool,
    last_config_time: String,
}

impl ConfirmedSignal {
    /// A target that signals, and has fired once the runtime information at `url` says that the reload has succeeded. The
    /// certificate of an `https` URL is not looked at: it is for others than its neighbours.
    pub(crate) fn new(signaller: Signaller, url: Url, patience: Duration) -> Self {
        let shown = url.shown();
        let tls = TlsFiles {
            is_insecure: true,
            ..TlsFiles::system("runtimeinfo")
        };
        Self {
            signaller,
            client: HttpClient::new(url.place, tls, patience),
            path: url.path,
            url: shown,
            patience,
            look: LOOK,
        }
    }

    async fn tell(&self, changes: &[Change]) -> Result<Fired, TargetError> {
        let before = self.ask().await?;
        sleep(until_it_would_differ(&before, Timestamp::now())).await;
        self.signaller.fire(changes).await?;
        let end = Instant::now() + self.patience;
        loop {
            sleep(self.look).await;
            let now = self.ask().await;
            match &now {
                Ok(now) if now.reload_config_success && now.last_config_time != before.last_config_time => {
                    return Ok(Fired::Confirmed);
                }
                Ok(now) if before.reload_config_success && !now.reload_config_success => {
                    return Err(self.refused());
                }
                _ => {}
            }
            if Instant::now() >= end {
                return Err(now.err().unwrap_or_else(|| self.timed_out()));
            }
        }
    }

    async fn ask(&self) -> Result<RuntimeInfo, TargetError> {
        #[derive(Deserialize)]
        struct Answer {
            data: RuntimeInfo,
        }
        let mut request = Request::new(Bytes::new());
        *request.uri_mut() = self.path.clone().into();
        let answer = self.client.send(request).await?;
        let unusable = |why: String| TargetError {
            message: format!("{} {why}; is it the runtime information of Prometheus?", self.url),
            reason: "runtimeinfo",
            is_temporary: true,
        };
        if !answer.status.is_success() {
            return Err(unusable(format!("answers {}", answer.status)));
        }
        let answer: Result<Answer, _> = serde_json::from_slice(&answer.body);
        let answer = answer.map_err(|_| unusable("does not say what came of the last reload".to_owned()))?;
        Ok(answer.data)
    }

    fn refused(&self) -> TargetError {
        TargetError {
            message: format!(
                "it was signalled, and says in {} that it could not load its files; its own log says why",
                self.url
            ),
            reason: "refused",
            // The same files would be refused again.
            is_temporary: false,
        }
    }

    fn timed_out(&self) -> TargetError {
        TargetError {
            message: format!(
                "it was signalled, and has not said in {} within {:?} (--timeout) that it has loaded its files",
                self.url, self.patience
            ),
            reason: "timeout",
            is_temporary: true,
        }
    }
}

/// How long a signal has to wait so that the time of the next reload is another one.
fn until_it_would_differ(info: &RuntimeInfo, now: Timestamp) -> Duration {
    let Ok(last) = info.last_config_time.parse::<Timestamp>() else {
        return Duration::ZERO;
    };
    let since = now.duration_since(last);
    match Duration::try_from(since) {
        Ok(since) => CONFIG_TIME_STEP.saturating_sub(since),
        // A clock that is behind; it is not waited for.
        Err(_) => Duration::ZERO,
    }
}

impl Target for ConfirmedSignal {
    fn kind(&self) -> TargetKind {
        TargetKind::Signal
    }

    fn name(&self) -> &str {
        self.signaller.name()
    }

    fn limits_itself(&self) -> bool {
        true
    }

    fn fire<'a>(&'a self, changes: &'a [Change]) -> BoxFuture<'a, Result<Fired, TargetError>> {
        Box::pin(self.tell(changes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Address, signal};
    use super::*;
    use crate::http::scripted::{self, answer};

    fn info(is_loaded: bool, time: &str) -> String {
        let data = format!(
            r#"{{"status":"success","data":{{"CWD":"/","reloadConfigSuccess":{is_loaded},"lastConfigTime":"{time}"}}}}"#
        );
        answer("200 OK", &data)
    }

    /// What comes of a signal if these are the answers before it and after it; or the reason, and whether it may change.
    async fn check(answers: &[String], expected: Result<Fired, (&'static str, bool)>) {
        let (address, _asked) = scripted::tcp(answers.to_vec()).await;
        // A process that runs may always be told to go on.
        let own = Address::Pid(rustix::process::getpid());
        let signaller = Signaller::new(signal("CONT").expect("a signal"), own);
        let url = format!("http://{address}/api/v1/status/runtimeinfo").parse();
        let mut target = ConfirmedSignal::new(signaller, url.expect("a URL"), Duration::from_secs(60));
        target.look = Duration::from_millis(1);
        let fired = target.fire(&[]).await;
        let shown = fired.map_err(|error| (error.reason, error.is_temporary));
        assert_eq!(shown, expected, "{answers:?}");
    }

    #[tokio::test]
    async fn a_signal_is_confirmed_when_the_time_of_the_configuration_is_another() {
        let (old, new) = ("2026-01-02T03:04:05Z", "2026-01-02T03:05:00Z");
        check(
            &[info(true, old), info(true, old), info(true, new)],
            Ok(Fired::Confirmed),
        )
        .await;
        check(
            &[info(false, old), info(false, old), info(true, new)],
            Ok(Fired::Confirmed),
        )
        .await;
        let away = answer("503 Service Unavailable", "");
        check(
            &[info(true, old), away.clone(), info(true, new)],
            Ok(Fired::Confirmed),
        )
        .await;
        check(&[info(true, old), info(false, old)], Err(("refused", false))).await;
        check(&[away], Err(("runtimeinfo", true))).await;
        check(&[answer("200 OK", "hello")], Err(("runtimeinfo", true))).await;
    }

    #[test]
    fn a_signal_waits_until_its_reload_would_have_another_time() {
        let now: Timestamp = "2026-01-02T03:04:05.25Z".parse().expect("a time");
        for (last, wait_ms) in [
            ("2026-01-02T03:04:05Z", 750),
            ("2026-01-02T03:04:04Z", 0),
            ("2026-01-02T04:04:05Z", 0),
            ("never", 0),
        ] {
            let info = RuntimeInfo {
                reload_config_success: true,
                last_config_time: last.to_owned(),
            };
            assert_eq!(until_it_would_differ(&info, now).as_millis(), wait_ms, "{last}");
        }
    }
}
