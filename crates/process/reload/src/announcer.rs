//! Tells others how far changes have come: whoever asks the local endpoint, and whoever gets reports.

use std::path::PathBuf;
use std::sync::Arc;

use crate::endpoint::{
    Endpoint, EndpointConfig, EndpointError, EndpointMetrics, HealthRule, Secrecy, Sources, Standing,
};
use crate::reloader::Reloader;
use crate::report::{ReportConfig, ReportError, Reporter};

/// Who is told, and how.
#[derive(Debug, Default)]
pub(crate) struct AnnouncerConfig {
    pub(crate) endpoint: EndpointConfig,
    pub(crate) health: HealthRule,
    /// What flags say of watched paths; a command that knows what it has fetched adds to it.
    pub(crate) secrecy: Secrecy,
    pub(crate) reports: ReportConfig,
}

/// Nobody can be told.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnnouncerError {
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error("{flag} {}: that path is not watched; there is {watched}", .path.display())]
    NotWatched {
        flag: &'static str,
        path: PathBuf,
        watched: String,
    },
}

/// Listens already, and tells nothing yet.
#[derive(Debug)]
pub(crate) struct Announcer {
    endpoint: Endpoint,
    health: HealthRule,
    secrecy: Secrecy,
    reporter: Reporter,
}

impl Announcer {
    /// Binds all addresses. `watched` are the paths that progress will be told of. Needs a runtime around it.
    pub(crate) fn open(config: AnnouncerConfig, watched: &[PathBuf]) -> Result<Self, AnnouncerError> {
        let AnnouncerConfig {
            endpoint,
            health,
            secrecy,
            reports,
        } = config;
        refuse_what_is_not_watched("--serve-secret", &secrecy.secret, watched)?;
        refuse_what_is_not_watched("--serve-public", &secrecy.public, watched)?;
        Ok(Self {
            endpoint: Endpoint::bind(&endpoint)?,
            health,
            secrecy,
            reporter: Reporter::new(reports)?,
        })
    }

    /// Tells what this reloader does, until it is dropped; that removes sockets and ends connections.
    pub(crate) fn run(self, reloader: &Reloader) -> impl Future<Output = ()> + use<> {
        let secrecy = Arc::new(self.secrecy);
        let metrics = EndpointMetrics::new(reloader.metrics().clone());
        let standing = Standing::new(reloader.progress(), reloader.has_targets());
        let reports = self
            .reporter
            .run(standing.watch(), secrecy.clone(), metrics.clone());
        let changes = reloader.changes();
        let sources = Sources {
            standing,
            changes,
            secrecy,
            health: self.health,
            metrics,
        };
        let endpoint = self.endpoint;
        async move {
            tokio::join!(endpoint.serve(sources), reports);
        }
    }
}

/// A slip in a path would leave a volume what it is taken for otherwise, and nobody would hear of it.
fn refuse_what_is_not_watched(
    flag: &'static str,
    marked: &[PathBuf],
    watched: &[PathBuf],
) -> Result<(), AnnouncerError> {
    let Some(path) = marked.iter().find(|path| !watched.contains(path)) else {
        return Ok(());
    };
    let watched: Vec<String> = watched.iter().map(|path| path.display().to_string()).collect();
    Err(AnnouncerError::NotWatched {
        flag,
        path: path.clone(),
        watched: watched.join(", "),
    })
}
