//! Telling targets, again and again.

use futures_util::future::join_all;
use hotmap_projection::Change;
use tokio::sync::watch;
use tokio::time::Instant;
use tracing::warn;

use super::{Order, ReloaderConfig};
use crate::metrics::Call;
use crate::pace::Draw;
use crate::target::{Target, TargetError};

/// How it went with some targets.
pub(super) enum Told {
    /// All have taken it.
    All,
    /// At least one has not, and is not asked again.
    Failed { reason: String, is_temporary: bool },
    /// It was given up for a newer change.
    Superseded,
}

pub(super) async fn tell(
    config: &ReloaderConfig,
    targets: &[Box<dyn Target>],
    order: Order,
    changes: &[Change],
    draw: &mut Draw,
    newer: watch::Receiver<bool>,
) -> Told {
    match order {
        Order::Sequence => {
            for target in targets {
                let told = tell_one(config, target.as_ref(), changes, draw, newer.clone()).await;
                if !matches!(told, Told::All) {
                    return told;
                }
            }
            Told::All
        }
        Order::Parallel => {
            let mut draws: Vec<Draw> = targets.iter().map(|_| draw.split()).collect();
            let calls = targets
                .iter()
                .zip(&mut draws)
                .map(|(target, draw)| tell_one(config, target.as_ref(), changes, draw, newer.clone()));
            join_all(calls).await.into_iter().fold(Told::All, worse)
        }
    }
}

/// One target, until it has taken the changes, will never, or a newer one is there.
async fn tell_one(
    config: &ReloaderConfig,
    target: &dyn Target,
    changes: &[Change],
    draw: &mut Draw,
    mut newer: watch::Receiver<bool>,
) -> Told {
    let mut failures = 0;
    loop {
        let Err(error) = call(config, target, changes).await else {
            return Told::All;
        };
        failures += 1;
        let pause = if error.is_temporary {
            config.pace.pause(failures, draw.next())
        } else {
            None
        };
        let Some(pause) = pause else {
            let reason = named(target, &error);
            return Told::Failed {
                reason,
                is_temporary: error.is_temporary,
            };
        };
        warn!(target = target.name(), error = %error, failures, ?pause, "target has not taken the change, it is told again");
        tokio::select! {
            biased;
            _ = newer.wait_for(|is_newer| *is_newer) => return Told::Superseded,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn call(config: &ReloaderConfig, target: &dyn Target, changes: &[Change]) -> Result<(), TargetError> {
    let begun = Instant::now();
    let limit = config.pace.timeout;
    let result = if target.limits_itself() {
        target.fire(changes).await
    } else {
        tokio::time::timeout(limit, target.fire(changes))
            .await
            .unwrap_or_else(|_| {
                let message = format!("no answer within {limit:?} (--timeout)");
                Err(TargetError {
                    message,
                    reason: "timeout",
                    is_temporary: true,
                })
            })
    };
    config.metrics.called(Call {
        target: target.kind(),
        name: target.name(),
        status: target.last_status(),
        error: result.as_ref().err(),
        elapsed: begun.elapsed(),
    });
    result.map(|_| ())
}

/// The reason with the name of the target, which some messages begin with.
fn named(target: &dyn Target, error: &TargetError) -> String {
    if error.message.starts_with(target.name()) {
        error.message.clone()
    } else {
        format!("{}: {error}", target.name())
    }
}

/// What is said of two targets that were told at once.
fn worse(one: Told, other: Told) -> Told {
    match (one, other) {
        (Told::Superseded, _) | (_, Told::Superseded) => Told::Superseded,
        (
            Told::Failed {
                reason: a,
                is_temporary: x,
            },
            Told::Failed {
                reason: b,
                is_temporary: y,
            },
        ) => Told::Failed {
            reason: format!("{a}; {b}"),
            is_temporary: x || y,
        },
        (failed @ Told::Failed { .. }, Told::All) | (Told::All, failed @ Told::Failed { .. }) => failed,
        (Told::All, Told::All) => Told::All,
    }
}
