//! Whether a revision is good, asked of the program that has loaded it.

use std::time::Duration;

use bytes::Bytes;
use hotmap_projection::Change;
use hyper::http::uri::PathAndQuery;
use hyper::{Method, Request};
use tokio::time::{Instant, sleep_until};

use crate::check::Check;
use crate::http::HttpClient;

/// Between two questions.
const PERIOD: Duration = Duration::from_secs(1);

/// Asks for some time whether all is well.
pub(crate) struct Verify {
    probe: Probe,
    /// How long.
    window: Duration,
}

/// Who is asked.
pub(crate) enum Probe {
    /// A command, by its exit code.
    Command(Check),
    /// A URL, by its status: 200 to 399 is well, as a probe of Kubernetes has it.
    Url {
        client: HttpClient,
        path: PathAndQuery,
        /// As it was given.
        url: String,
    },
}

impl Verify {
    pub(crate) fn new(probe: Probe, window: Duration) -> Self {
        Self { probe, window }
    }

    /// Asks once a second until the window is over. Before the first good answer a bad one may be a program that is still
    /// at it; after that it is a failure. The last answer has to be good.
    pub(crate) async fn run(&self, changes: &[Change]) -> Result<(), String> {
        let end = Instant::now() + self.window;
        let mut was_good = false;
        loop {
            let asked = Instant::now();
            let answer = self.probe.ask(changes).await;
            match answer {
                Ok(()) => was_good = true,
                Err(why) if was_good => return Err(format!("it was well, and then: {why}")),
                Err(why) if Instant::now() >= end => return Err(why),
                Err(_) => {}
            }
            if was_good && Instant::now() >= end {
                return Ok(());
            }
            sleep_until((asked + PERIOD).min(end.max(asked))).await;
        }
    }
}

impl Probe {
    async fn ask(&self, changes: &[Change]) -> Result<(), String> {
        match self {
            Self::Command(check) => check.run(changes).await.map_err(|error| error.to_string()),
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
