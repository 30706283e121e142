//! Says what is loaded: to the agent of this node where there is one, else to whom a flag names.
//!
//! ```text
//!   Standing ─▶ statements: which revision of each path is in use, or was refused, and since when
//!                   │
//!                   ├─▶ /run/hotmap/agent.sock, where there is one
//!                   └─▶ else POST to --report-to, where that is given
//! ```
//!
//! The latest wins: what was not said in time is never said. No right on the API is needed.

mod agent;
mod post;
mod statement;

use std::path::PathBuf;
use std::sync::Arc;

use tracing::info;

use crate::endpoint::{EndpointMetrics, Secrecy, Standing};
use crate::http::{HttpClient, TlsFileError, TlsFiles, Url};
use crate::target::webhook::Credentials;
use post::Post;
use statement::Statements;

pub(crate) use post::Who;

/// Who wants to know.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReportConfig {
    pub(crate) agent_socket: PathBuf,
    /// Who is told where there is no agent.
    pub(crate) url: Option<Url>,
    pub(crate) token_file: Option<PathBuf>,
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) who: Who,
}

/// Reports cannot be sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReportError {
    #[error("--report-ca: {0}")]
    Authorities(TlsFileError),
}

/// Reports to whoever wants to know.
#[derive(Debug)]
pub(crate) enum Reporter {
    /// Nobody does.
    Silent,
    /// The agent, at its socket.
    Agent(PathBuf),
    /// Whoever the flag names.
    Post(Box<Post>),
}

impl Reporter {
    /// Looks for the agent once: its socket is there before a container starts, or never.
    pub(crate) fn new(config: ReportConfig) -> Result<Self, ReportError> {
        if config.agent_socket.exists() {
            let socket = config.agent_socket.display();
            info!(%socket, "the agent of this node is told what is loaded");
            if config.url.is_some() {
                info!("--report-to is not used: the agent is told");
            }
            return Ok(Self::Agent(config.agent_socket));
        }
        let Some(url) = config.url else {
            return Ok(Self::Silent);
        };
        let tls = TlsFiles {
            ca: config.ca_file,
            ..TlsFiles::system("report")
        };
        if url.place.is_tls() {
            tls.connector().map_err(ReportError::Authorities)?;
        }
        let client = HttpClient::new(url.place, tls, post::REQUEST_TIME_MAX);
        Ok(Self::Post(Box::new(Post {
            client,
            path: url.path,
            token: config.token_file.map(Credentials::Bearer),
            who: config.who,
        })))
    }

    /// Reports until it is dropped.
    pub(crate) async fn run(self, standing: Standing, secrecy: Arc<Secrecy>, metrics: EndpointMetrics) {
        let statements = Statements::new(standing, secrecy);
        match self {
            Self::Silent => std::future::pending().await,
            Self::Agent(socket) => agent::report(&socket, statements, &metrics).await,
            Self::Post(post) => post.report(statements, &metrics).await,
        }
    }
}
