//! From a request to its answer.

use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Body;
use hyper::{Request, StatusCode};

use super::answer::{Answer, Refusal, method_not_allowed};
use super::changes::Changes;
use super::door::Door;
use super::health::HealthRule;
use super::metrics::EndpointMetrics;
use super::query::decode;
use super::secrecy::{Secrecy, redacted};
use super::standing::Standing;
use super::{ack, config, events, health};
use crate::progress::Progress;

/// What requests are answered from. Clones are one.
#[derive(Clone)]
pub(crate) struct Sources {
    pub(crate) standing: Standing,
    pub(crate) changes: Changes,
    pub(crate) secrecy: Arc<Secrecy>,
    pub(crate) health: HealthRule,
    pub(crate) metrics: EndpointMetrics,
}

/// What can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Route {
    Config,
    Key,
    Events,
    Ack,
    Metrics,
    Healthz,
}

impl Route {
    pub(crate) const ALL: [Self; 6] = [
        Self::Config,
        Self::Key,
        Self::Events,
        Self::Ack,
        Self::Metrics,
        Self::Healthz,
    ];

    /// The path, as the OpenAPI document has it.
    pub(crate) const fn template(self) -> &'static str {
        match self {
            Self::Config => "/v1/config",
            Self::Key => "/v1/config/{key}",
            Self::Events => "/v1/events",
            Self::Ack => "/v1/ack",
            Self::Metrics => "/metrics",
            Self::Healthz => "/healthz",
        }
    }

    pub(crate) const fn method(self) -> &'static str {
        match self {
            Self::Ack => "POST",
            _ => "GET",
        }
    }

    /// The route of a path, and the key that it names.
    fn find(path: &str) -> Option<(Self, &str)> {
        if let Some(key) = path.strip_prefix("/v1/config/") {
            return Some((Self::Key, key));
        }
        let mut others = Self::ALL.into_iter();
        others
            .find(|route| route.template() == path)
            .map(|route| (route, ""))
    }

    fn is_open_to(self, door: Door) -> bool {
        matches!(self, Self::Metrics | Self::Healthz) || door.has_config()
    }
}

impl Sources {
    /// Answers one request that came through `door`.
    pub(crate) async fn answer<B>(&self, door: Door, request: Request<B>) -> Answer
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let found = Route::find(request.uri().path()).filter(|(route, _)| route.is_open_to(door));
        let Some((route, key)) = found else {
            self.metrics.answered("other", StatusCode::NOT_FOUND);
            return Refusal::new(404, not_found(door)).into();
        };
        let key = decode(key);
        let answer = match door.admit(request.headers()) {
            Err(refusal) => Err(Refusal::new(403, refusal)),
            Ok(()) if request.method().as_str() != route.method() => Ok(method_not_allowed(route.method())),
            Ok(()) => self.found(door, route, key, request).await,
        };
        let answer = answer.unwrap_or_else(Answer::from);
        self.metrics.answered(route.template(), answer.status());
        answer
    }

    async fn found<B>(
        &self,
        door: Door,
        route: Route,
        key: Option<String>,
        request: Request<B>,
    ) -> Result<Answer, Refusal>
    where
        B: Body<Data = Bytes> + Send,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let query = request.uri().query().unwrap_or_default().to_owned();
        match route {
            Route::Config => config::all(self, door, &query).await,
            Route::Key => {
                let key = key.ok_or_else(|| Refusal::new(400, "the key is not percent-encoded UTF-8"))?;
                config::key(self, door, &key, &query, request.headers()).await
            }
            Route::Events => events::stream(self, &query, request.headers()),
            Route::Ack => ack::take(self, &query, request.into_body()).await,
            Route::Metrics => Ok(self.metrics.answer(&self.standing.now())),
            Route::Healthz => Ok(health::answer(self.health, &self.shown_to(door).await)),
        }
    }

    /// How far changes have come, as far as this door may know.
    pub(crate) async fn shown_to(&self, door: Door) -> Progress {
        let progress = self.standing.now();
        match door.has_secrets() {
            true => progress,
            false => redacted(&self.secrecy, progress).await,
        }
    }
}

fn not_found(door: Door) -> &'static str {
    match door {
        Door::Metrics => "only /metrics and /healthz are served at this address",
        _ => {
            "nothing is served here: there is /v1/config, /v1/config/KEY, /v1/events, /v1/ack, /metrics and /healthz"
        }
    }
}
