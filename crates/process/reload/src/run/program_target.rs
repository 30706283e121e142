//! The program of `run` as a target: what a change means for it.

use std::path::PathBuf;
use std::sync::Arc;

use clap::ValueEnum;
use futures_util::future::BoxFuture;
use hotmap_projection::Change;
use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tracing::{info, warn};

use super::environment::{Environment, EnvironmentSources};
use super::supervisor::{Order, RestartError, SignalError};
use crate::disposition::NoHandler;
use crate::target::signal::SignalName;
use crate::target::{Fired, Target, TargetError, TargetKind};

/// What the program is told of a change of the watched files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnChange {
    /// A signal: SIGHUP, or that of --signal.
    Signal,
    /// It is ended, and started anew.
    Restart,
}

/// See the module.
pub(crate) struct ProgramTarget {
    orders: mpsc::Sender<Order>,
    /// What it does for the watched paths; nothing if other targets are told instead.
    on_change: Option<OnChange>,
    signal: SignalName,
    watched: Vec<PathBuf>,
    sources: EnvironmentSources,
    /// What the program was started with last.
    environment: Mutex<Environment>,
    name: String,
}

impl ProgramTarget {
    pub(crate) fn new(
        orders: mpsc::Sender<Order>,
        on_change: Option<OnChange>,
        signal: SignalName,
        watched: Vec<PathBuf>,
        sources: EnvironmentSources,
    ) -> Self {
        let name = match on_change {
            Some(OnChange::Signal) => "signal to the program",
            Some(OnChange::Restart) | None => "restart of the program",
        };
        let environment = Mutex::new(sources.inherited.clone());
        Self {
            orders,
            on_change,
            signal,
            watched,
            sources,
            environment,
            name: name.to_owned(),
        }
    }

    /// The environment of the first start.
    ///
    /// # Errors
    /// A sentence: a source cannot be used.
    pub(crate) fn first_environment(&self) -> Result<Environment, String> {
        let environment = self.read()?;
        self.environment.lock().clone_from(&environment);
        Ok(environment)
    }

    fn read(&self) -> Result<Environment, String> {
        let read = self.sources.read().map_err(|error| error.to_string())?;
        for skipped in &read.skipped {
            warn!(%skipped, "not a variable");
        }
        Ok(read.environment)
    }

    async fn tell(&self, changes: &[Change]) -> Result<Fired, TargetError> {
        let is_of = |paths: &mut dyn Iterator<Item = &PathBuf>| {
            let paths: Vec<_> = paths.collect();
            changes.iter().any(|change| paths.contains(&&*change.path))
        };
        let mut restarts = None;
        if is_of(&mut self.sources.paths()) {
            let environment = self.read().map_err(|message| TargetError {
                message: format!("{message}; the program keeps the environment that it has"),
                reason: "environment",
                is_temporary: true,
            })?;
            if environment == *self.environment.lock() {
                info!("the environment is the same as before");
            } else {
                restarts = Some(environment);
            }
        }
        let on_change = self.on_change.filter(|_| is_of(&mut self.watched.iter()));
        match (restarts, on_change) {
            (Some(environment), _) => self.restart(Some(environment)).await,
            (None, Some(OnChange::Restart)) => self.restart(None).await,
            (None, Some(OnChange::Signal)) => self.signal().await,
            (None, None) => Ok(Fired::Confirmed),
        }
    }

    async fn restart(&self, environment: Option<Environment>) -> Result<Fired, TargetError> {
        let (done, answer) = oneshot::channel();
        let variables = environment
            .clone()
            .map(|environment| environment.into_iter().collect());
        self.order(Order::Restart {
            environment: variables,
            done,
        })
        .await?;
        let result = answer.await.map_err(|_| ending())?;
        match result {
            Ok(()) => {
                if let Some(environment) = environment {
                    *self.environment.lock() = environment;
                }
                Ok(Fired::Told)
            }
            Err(error) => Err(TargetError {
                message: error.to_string(),
                reason: match error {
                    RestartError::Not(_) => "not_restarted",
                    RestartError::NotStarted => "not_started",
                },
                // The same files would end the same way; the next change is tried.
                is_temporary: false,
            }),
        }
    }

    async fn signal(&self) -> Result<Fired, TargetError> {
        let (done, answer) = oneshot::channel();
        self.order(Order::Signal {
            signal: self.signal,
            done,
        })
        .await?;
        match answer.await.map_err(|_| ending())? {
            // What does not run reads its files when it starts.
            Ok(()) | Err(SignalError::NotRunning) => Ok(Fired::Told),
            Err(error) => {
                let (reason, is_temporary) = match &error {
                    SignalError::NoHandler(_) => (NoHandler::REASON, true),
                    SignalError::NotRunning | SignalError::Refused(_) => ("permission", false),
                };
                Err(TargetError {
                    message: error.to_string(),
                    reason,
                    is_temporary,
                })
            }
        }
    }

    async fn order(&self, order: Order) -> Result<(), TargetError> {
        self.orders.send(order).await.map_err(|_| ending())
    }
}

fn ending() -> TargetError {
    TargetError {
        message: "`run` is ending".to_owned(),
        reason: "ending",
        is_temporary: false,
    }
}

impl Target for Arc<ProgramTarget> {
    fn kind(&self) -> TargetKind {
        TargetKind::Child
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn fire<'a>(&'a self, changes: &'a [Change]) -> BoxFuture<'a, Result<Fired, TargetError>> {
        Box::pin(self.tell(changes))
    }
}
