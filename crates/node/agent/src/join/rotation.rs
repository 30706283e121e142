//! A node's certificates are replaced long before they end, without a restart: client and port go on under the new ones.

use std::{convert::Infallible, path::PathBuf, time::Duration};

use hotmap_client::{Backoff, Client, ClientConfig, Identity};
use hotmap_clock::ClockJumps;
use jiff::{SignedDuration, Timestamp};
use tracing::{info, warn};

use super::{
    JoinError, certificate,
    certificate::{Purpose, Validity},
    kubeconfig,
};
use crate::{api_clock::ApiClock, clock::Clock};

/// The part of its life after which a certificate is replaced, in percent: drawn between both for each certificate, so
/// that nodes which joined together do not ask together. Upstream's numbers (`client-go/util/certificate`, 1.36).
const DUE_PERCENT: (u64, u64) = (70, 90);
/// A jump of the clock is told; where the kernel does not tell, the clock is looked at so often.
const LOOK_INTERVAL: Duration = Duration::from_secs(60 * 60);
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(5 * 60);

/// Keeps the certificate in a node's kubeconfig fresh.
pub struct Rotation {
    /// The kubeconfig, which is replaced with each certificate.
    pub kubeconfig: PathBuf,
    /// Name of the node.
    pub node_name: String,
    /// Replace the first certificate at once; for tests.
    pub at_start: bool,
    /// By which certificates are judged.
    pub api_clock: ApiClock,
}

impl Rotation {
    /// Replaces certificates for ever; `client` is known by each new one, whose end `renewed` is told. What fails is tried
    /// again.
    pub async fn run(self, client: Client, renewed: impl Fn(Timestamp) + Send + Sync) -> Infallible {
        let life = match self.at_start {
            true => None,
            false => self.life().await,
        };
        let api_clock = self.api_clock.clone();
        let of_client = OfClient {
            rotation: self,
            client,
            renewed,
        };
        let clock_jumps = api_clock.jumps();
        keep_fresh(life, of_client, api_clock, clock_jumps).await
    }

    async fn life(&self) -> Option<Validity> {
        let config = self.read().await.ok()?;
        certificate::validity(&config.identity?.certificate_pem)
    }

    async fn read(&self) -> Result<ClientConfig, JoinError> {
        let path = self.kubeconfig.clone();
        let read = tokio::task::spawn_blocking(move || ClientConfig::from_kubeconfig(&path, None)).await;
        match read {
            Ok(config) => Ok(config?),
            Err(error) => Err(JoinError::File {
                path: self.kubeconfig.clone(),
                source: std::io::Error::other(error),
            }),
        }
    }
}

/// Has the node a certificate for its own port, at once and again before it ends.
pub struct ServingRotation {
    /// Name of the node.
    pub node_name: String,
    /// Under which names and addresses it is reached; those of its Node, or somebody has to approve the request.
    pub names: Vec<String>,
    /// By which certificates are judged.
    pub api_clock: ApiClock,
}

impl ServingRotation {
    /// Asks for ever, as the node that `client` is known as; each certificate is handed to `install`.
    pub async fn run(self, client: Client, install: impl Fn(Identity) + Send + Sync) -> Infallible {
        let api_clock = self.api_clock.clone();
        let of_server = OfServer {
            rotation: self,
            client,
            install,
        };
        let clock_jumps = api_clock.jumps();
        keep_fresh(None, of_server, api_clock, clock_jumps).await
    }
}

/// One way to replace a certificate.
trait Renew {
    /// What is replaced, for the log.
    const WHAT: &'static str;

    /// Replaces it, and tells how long the new one lives.
    fn renew(&self) -> impl Future<Output = Result<Validity, JoinError>> + Send;
}

struct OfClient<F> {
    rotation: Rotation,
    client: Client,
    renewed: F,
}

impl<F: Fn(Timestamp) + Send + Sync> Renew for OfClient<F> {
    const WHAT: &'static str = "client";

    async fn renew(&self) -> Result<Validity, JoinError> {
        let Rotation {
            kubeconfig: path,
            node_name,
            ..
        } = &self.rotation;
        let identity = certificate::obtain(&self.client, node_name, Purpose::Client, Timestamp::now).await?;
        let config = self.rotation.read().await?;
        let text = kubeconfig::render(&config.server, &config.ca_pem, node_name, &identity);
        // The file first: a restart must not come back with a certificate that nobody renews any more.
        kubeconfig::write(path.clone(), text).await?;
        self.client.exchange_identity(&identity)?;
        let life = certificate::validity(&identity.certificate_pem).ok_or(JoinError::Foreign)?;
        (self.renewed)(life.until);
        Ok(life)
    }
}

struct OfServer<F> {
    rotation: ServingRotation,
    client: Client,
    install: F,
}

impl<F: Fn(Identity) + Send + Sync> Renew for OfServer<F> {
    const WHAT: &'static str = "serving";

    async fn renew(&self) -> Result<Validity, JoinError> {
        let ServingRotation { node_name, names, .. } = &self.rotation;
        let identity =
            certificate::obtain(&self.client, node_name, Purpose::Serving(names), Timestamp::now).await?;
        let life = certificate::validity(&identity.certificate_pem).ok_or(JoinError::Foreign)?;
        (self.install)(identity);
        Ok(life)
    }
}

/// Renews when a life is nearly over, at once where there is none, and again after a pause where that fails.
async fn keep_fresh<R: Renew, C: Clock>(
    mut life: Option<Validity>,
    certificate: R,
    clock: C,
    mut clock_jumps: ClockJumps,
) -> Infallible {
    let mut retries = Backoff::seeded(RETRY_MIN, RETRY_MAX);
    loop {
        if let Some(life) = life.take() {
            wait_for_end(life, draw(), &clock, &mut clock_jumps).await;
        }
        match certificate.renew().await {
            Ok(new) => {
                info!(what = R::WHAT, until = %new.until, "the node has a new certificate");
                retries.reset();
                life = Some(new);
            }
            Err(error) => {
                tell(R::WHAT, &error);
                clock.sleep(retries.next_delay()).await;
            }
        }
    }
}

/// Apart, since what is written here cannot be held while somebody waits.
fn tell(what: &str, error: &JoinError) {
    let error = error as &dyn std::error::Error;
    warn!(
        what,
        error, "the node's certificate cannot be replaced, trying again"
    );
}

fn draw() -> u64 {
    let (first, last) = DUE_PERCENT;
    let random = u64::from(getrandom::u32().unwrap_or_default());
    first + random % (last - first + 1)
}

/// When so much of a certificate's life is over.
fn due(life: Validity, percent: u64) -> Timestamp {
    let whole = life.until.duration_since(life.from).as_secs();
    let part = whole / 100 * i64::try_from(percent).unwrap_or(100);
    life.from
        .checked_add(SignedDuration::from_secs(part))
        .unwrap_or(life.until)
}

/// Returns when a certificate is due; or when the clock was set back to before it begins: then the connections that stand,
/// on which we are known already, are the last way to another one.
async fn wait_for_end<C: Clock>(life: Validity, percent: u64, clock: &C, clock_jumps: &mut ClockJumps) {
    let due = due(life, percent);
    loop {
        let left = Duration::try_from(due.duration_since(clock.now())).unwrap_or_default();
        if left.is_zero() {
            return;
        }
        tokio::select! {
            () = clock.sleep(left.min(LOOK_INTERVAL)) => {}
            () = clock_jumps.next() => if clock.now() < life.from { return },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use futures_util::FutureExt;
    use parking_lot::Mutex;

    use super::*;

    /// A clock that a test sets, and on which nobody's sleep ends.
    #[derive(Clone)]
    struct Set(Arc<Mutex<Timestamp>>);

    impl Clock for Set {
        fn now(&self) -> Timestamp {
            *self.0.lock()
        }

        async fn sleep(&self, _: Duration) {
            std::future::pending().await
        }
    }

    #[test]
    fn a_jump_of_the_clock_ends_the_wait_if_the_certificate_is_due_or_of_the_future() {
        let at = |seconds: i64| Timestamp::from_second(seconds).expect("a time");
        let life = Validity {
            from: at(1_000),
            until: at(11_000),
        };
        for (now, is_over) in [
            (999, true),
            (1_000, false),
            (7_999, false),
            (8_000, true),
            (100_000, true),
        ] {
            let clock = Set(Arc::new(Mutex::new(at(2_000))));
            let (jumper, mut jumps) = ClockJumps::by_hand();
            let mut waiting = Box::pin(wait_for_end(life, 70, &clock, &mut jumps));
            assert!(waiting.as_mut().now_or_never().is_none());
            *clock.0.lock() = at(now);
            assert!(waiting.as_mut().now_or_never().is_none(), "nobody has told");
            jumper.jump();
            assert_eq!(waiting.as_mut().now_or_never().is_some(), is_over, "{now}");
        }
        // Who gets another one of the future, from an API whose clock is right, does not ask without end.
        let clock = Set(Arc::new(Mutex::new(at(0))));
        let (_jumper, mut jumps) = ClockJumps::by_hand();
        assert!(
            wait_for_end(life, 70, &clock, &mut jumps)
                .now_or_never()
                .is_none()
        );
    }

    #[test]
    fn a_certificate_is_replaced_in_the_last_third_of_its_life() {
        let at = |seconds: i64| Timestamp::from_second(seconds).expect("a time");
        let life = Validity {
            from: at(1_000),
            until: at(11_000),
        };
        for (percent, seconds) in [(70, 8_000), (90, 10_000)] {
            assert_eq!(due(life, percent), at(seconds));
        }
        for _ in 0..1_000 {
            assert!((at(8_000)..=at(10_000)).contains(&due(life, draw())));
        }
        let backwards = Validity {
            from: at(11_000),
            until: at(1_000),
        };
        assert!(due(backwards, 70) <= at(11_000));
    }
}
