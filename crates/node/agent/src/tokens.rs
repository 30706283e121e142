//! Tokens of service accounts that pods project: asked of the API, kept in memory, renewed in time.
//!
//! ```text
//!   a pod's volume names a token ─▶ one task per token: ask ─▶ hold, wake the volume ─▶ sleep until it is due ─┐
//!                                                       ▲───────────────────────────────────────────────────────┘
//! ```
//!
//! A token lives by the wall clock of the API server, a timer does not: when that jumps, a token whose time is over, or has not
//! come, is replaced at once.
//!
//! When a token is due, and what is said while there is none, follow `pkg/kubelet/token/token_manager.go`, Kubernetes 1.36.
//! One timer per token and no other; nothing is kept on disk, so that a node that starts anew asks anew.

mod request;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use hotmap_client::{Backoff, Client};
use hotmap_clock::ClockJumps;
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tracing::{info, warn};

use crate::{
    api_clock::ApiClock,
    clock::Clock,
    pod::{Pod, TokenSource, Volume},
};
pub(crate) use request::{Ask, Issued};

/// No token is held for longer than this, however long it lives.
const HELD_MAX: Duration = Duration::from_secs(24 * 60 * 60);
/// A token is renewed up to this much earlier, so that those of many pods do not come due together.
const JITTER_MAX: Duration = Duration::from_secs(10);
/// First and longest pause between two tries.
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(60);
/// How the kubelet says that an answer has not come.
const NO_ANSWER: &str = "timed out waiting for the condition";

/// One token of one pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TokenRef {
    pub(crate) pod_uid: String,
    pub(crate) namespace: String,
    pub(crate) pod: String,
    pub(crate) service_account: String,
    /// For whom it is; empty for the API itself.
    pub(crate) audience: String,
    pub(crate) expiration_seconds: u64,
}

impl TokenRef {
    /// The token that a source of a volume of this pod asks for.
    pub(crate) fn new(pod: &Pod, source: &TokenSource) -> Self {
        Self {
            pod_uid: pod.metadata.uid.clone(),
            namespace: pod.metadata.namespace.clone(),
            pod: pod.metadata.name.clone(),
            service_account: pod.spec.service_account_name.clone(),
            audience: source.audience.clone(),
            expiration_seconds: source.expiration_seconds,
        }
    }
}

/// The tokens that a volume projects.
pub(crate) fn of_volume(pod: &Pod, volume: &Volume) -> BTreeSet<TokenRef> {
    let sources = volume.projected.iter().flat_map(|projected| &projected.sources);
    let tokens = sources.filter_map(|source| source.service_account_token.as_ref());
    tokens.map(|source| TokenRef::new(pod, source)).collect()
}

/// Told of the uid of a pod whose token was issued, or cannot be; runs on the token's task, so it only queues.
pub(crate) type OnToken = Arc<dyn Fn(&str) + Send + Sync>;

/// The tokens of this node's pods.
pub(crate) struct TokenCache<A = Client, C = ApiClock> {
    api: A,
    clock: C,
    clock_jumps: ClockJumps,
    on_token: OnToken,
    held: Mutex<BTreeMap<TokenRef, Held>>,
}

struct Held {
    /// The last one that was issued.
    issued: Option<Issued>,
    /// Why there is none, or no newer one.
    failure: Option<String>,
    task: AbortHandle,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl<A: Ask, C: Clock> TokenCache<A, C> {
    /// `clock_jumps` are those of `clock`.
    pub(crate) fn new(api: A, clock: C, clock_jumps: ClockJumps, on_token: OnToken) -> Arc<Self> {
        Arc::new(Self {
            api,
            clock,
            clock_jumps,
            on_token,
            held: Mutex::default(),
        })
    }

    /// Keeps these tokens of a pod from now on, and no others of it; an empty set forgets the pod.
    pub(crate) fn set_wanted(self: &Arc<Self>, pod_uid: &str, wanted: BTreeSet<TokenRef>) {
        let mut held = self.held.lock();
        held.retain(|token, _| token.pod_uid != pod_uid || wanted.contains(token));
        for token in wanted {
            let ask_for_ever = Arc::clone(self).keep(token.clone());
            held.entry(token).or_insert_with(|| Held {
                issued: None,
                failure: None,
                task: tokio::spawn(ask_for_ever).abort_handle(),
            });
        }
    }

    /// Lets go of everything: the node ends.
    pub(crate) fn end(&self) {
        let held = std::mem::take(&mut *self.held.lock());
        drop(held);
    }

    /// The token, as long as it is valid; otherwise why there is none, in the kubelet's words.
    pub(crate) fn get(&self, token: &TokenRef) -> Result<Bytes, String> {
        let held = self.held.lock();
        let held = held.get(token);
        let failure = held.and_then(|held| held.failure.as_deref()).unwrap_or(NO_ANSWER);
        match held.and_then(|held| held.issued.as_ref()) {
            None => Err(format!("failed to fetch token: {failure}")),
            Some(issued) if issued.expires_at < self.clock.now() => Err(format!(
                "token {} expired and refresh failed: {failure}",
                shown(token)
            )),
            Some(issued) => Ok(issued.token.clone()),
        }
    }

    async fn keep(self: Arc<Self>, token: TokenRef) {
        let mut retries = Backoff::seeded(RETRY_MIN, RETRY_MAX);
        let mut clock_jumps = self.clock_jumps.clone();
        let (namespace, pod) = (&token.namespace, &token.pod);
        loop {
            // Before it is asked for: a jump between the server's signature and now must count.
            let begins = self.clock.now();
            match self.api.ask(&token).await {
                Ok(issued) => {
                    retries.reset();
                    let lasts = renewed_after(issued.lifetime, jitter());
                    info!(%namespace, %pod, service_account = %token.service_account, expires_at = %issued.expires_at,
                        "service account token issued");
                    self.learn(&token, Ok(issued));
                    self.sleep_for(Term { begins, lasts }, &mut clock_jumps).await;
                }
                Err(failure) => {
                    warn!(%namespace, %pod, service_account = %token.service_account, error = %failure,
                        "service account token not issued");
                    self.learn(&token, Err(failure));
                    self.clock.sleep(retries.next_delay()).await;
                }
            }
        }
    }

    /// Returns when a token is due: in time, or because the clock says so after a jump.
    async fn sleep_for(&self, term: Term, clock_jumps: &mut ClockJumps) {
        let mut left = Some(term.lasts);
        while let Some(pause) = left {
            tokio::select! {
                () = self.clock.sleep(pause) => return,
                () = clock_jumps.next() => left = term.left(self.clock.now()),
            }
        }
    }

    fn learn(&self, token: &TokenRef, answer: Result<Issued, String>) {
        let now = self.clock.now();
        let is_news = {
            let mut held = self.held.lock();
            let Some(held) = held.get_mut(token) else {
                return;
            };
            match answer {
                Ok(issued) => {
                    held.issued = Some(issued);
                    held.failure = None;
                    true
                }
                Err(failure) => {
                    held.failure = Some(failure);
                    // While the one before is valid nobody misses anything.
                    held.issued.as_ref().is_none_or(|issued| issued.expires_at < now)
                }
            }
        };
        if is_news {
            (self.on_token)(&token.pod_uid);
        }
    }
}

/// The time for which a token is used, from the moment that it was asked for.
#[derive(Debug, Clone, Copy)]
struct Term {
    begins: Timestamp,
    lasts: Duration,
}

impl Term {
    /// What is left of it; `None` if it is over, or if it has not begun: the clock was set back, and nobody takes a token
    /// from the future (`pkg/serviceaccount/claims.go`, a minute aside).
    fn left(&self, now: Timestamp) -> Option<Duration> {
        let used = Duration::try_from(now.duration_since(self.begins)).ok()?;
        self.lasts.checked_sub(used).filter(|left| !left.is_zero())
    }
}

/// How long after it was issued a token is due: at four fifths of its life, or after a day.
fn renewed_after(lifetime: Duration, jitter: Duration) -> Duration {
    // Never at once again: a server that hands out tokens of no life must not be asked without a pause.
    (lifetime * 4 / 5)
        .min(HELD_MAX)
        .saturating_sub(jitter)
        .max(Duration::from_secs(1))
}

/// Something between nothing and [`JITTER_MAX`].
fn jitter() -> Duration {
    // The first delay of a back-off lies in the upper half of its first step.
    let mut upper_half = Backoff::seeded(2 * JITTER_MAX, 2 * JITTER_MAX);
    upper_half.next_delay().saturating_sub(JITTER_MAX)
}

/// A token by what it is for, as the kubelet names it in this message. Nothing of it is secret.
fn shown(token: &TokenRef) -> String {
    let TokenRef {
        service_account,
        namespace,
        audience,
        expiration_seconds,
        pod,
        pod_uid,
    } = token;
    let audiences: &[&str] = if audience.is_empty() { &[] } else { &[audience] };
    format!("{service_account:?}/{namespace:?}/{audiences:?}/{expiration_seconds}/Pod/{pod:?}/{pod_uid:?}")
}

#[cfg(test)]
mod tests;
