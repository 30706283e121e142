//! Who asked for what, and what came of it: one line of JSON per request, in the shape of audit.k8s.io/v1.
//!
//! ```text
//!   request ─▶ Record (user, object, decision, answer) ─▶ queue, bounded ─▶ one thread ─▶ file, rotated
//! ```
//!
//! A record is written when its answer is known, for watches and streams also when it begins. It is dropped only when
//! the disk cannot follow, and then it is counted. Bodies are recorded at [`AuditLevel::Request`], those of Secrets and
//! of token requests never; answers are not. Without audit log nothing of this costs anything.

mod log;
mod record;

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use hyper::{Request, body::Incoming};
use jiff::Timestamp;

use crate::metrics::Metrics;
use log::AuditLog;
pub(crate) use record::{AUDIT_ID, Record};

/// How much is recorded of each request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditLevel {
    /// Who, what, when, from where, and the code of the answer.
    Metadata,
    /// The body of the request as well.
    Request,
}

impl AuditLevel {
    fn as_str(self) -> &'static str {
        match self {
            Self::Metadata => "Metadata",
            Self::Request => "Request",
        }
    }
}

/// Where records go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditTarget {
    /// Standard output.
    StandardOutput,
    /// A file, appended to and readable by its owner alone. Full, it becomes `FILE.1`, and so on.
    File {
        /// Where it is.
        path: PathBuf,
        /// Bytes at which it is full.
        bytes_max: u64,
        /// How many full ones are kept.
        old_max: usize,
    },
}

/// What is recorded, and where to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditConfig {
    /// How much.
    pub level: AuditLevel,
    /// Where to.
    pub target: AuditTarget,
}

/// The audit log of a server.
pub(crate) struct Audit {
    level: AuditLevel,
    log: Arc<AuditLog>,
}

impl Audit {
    /// Opens the log; the thread that writes it ends with the last handle.
    pub(crate) fn start(config: &AuditConfig, metrics: &Metrics) -> io::Result<Self> {
        Ok(Self {
            level: config.level,
            log: Arc::new(AuditLog::open(&config.target, metrics.audit())?),
        })
    }

    /// Begins the record of a request.
    pub(crate) fn begin(&self, source: Option<SocketAddr>, request: &Request<Incoming>) -> Record {
        Record::new(self.level, self.log.clone(), source, request, Timestamp::now())
    }

    /// Waits until what was recorded so far is written; blocks.
    pub(crate) fn flush(&self, patience: Duration) {
        self.log.flush(patience);
    }
}
