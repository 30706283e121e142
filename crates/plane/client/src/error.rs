//! Why a request brought nothing.

use std::sync::Arc;
use std::time::Duration;

use hotmap_object::Status;

/// A failed request. Cheap to clone: one failed connection is the answer to all who waited for it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ClientError {
    /// The server said no, and why.
    #[error("{0}")]
    Status(Box<Status>),
    /// There is no connection; the request was not sent.
    #[error("cannot connect to {server}")]
    Connect {
        /// Host and port.
        server: String,
        /// Why: name resolution, refused, TLS, credentials that cannot be read.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// The connection broke under the request. A write may or may not have happened.
    #[error("the connection broke")]
    Transport {
        /// Why.
        #[source]
        source: Arc<dyn std::error::Error + Send + Sync>,
    },
    /// No answer in time. A write may or may not have happened.
    #[error("no answer within {} ms", .after.as_millis())]
    Timeout {
        /// How long the client waited.
        after: Duration,
    },
    /// All connections carry as many requests as the server permits; the request was not sent.
    #[error("too many requests at once: {connections} connections are full")]
    Busy {
        /// How many connections there are.
        connections: usize,
    },
    /// The answer is larger than anything a server may send here.
    #[error("the answer is larger than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The answer is not what the protocol says.
    #[error("cannot understand the answer: {why}")]
    Decode {
        /// What is wrong. Never the content: it may be a Secret's.
        why: String,
    },
    /// The request cannot be put into HTTP.
    #[error("cannot make the request: {why}")]
    Request {
        /// What is wrong.
        why: String,
    },
}

impl ClientError {
    /// The server's status, if it is one.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Status(status) => Some(status),
            _ => None,
        }
    }

    /// True for 404: the object, or the path, does not exist.
    pub fn is_not_found(&self) -> bool {
        self.has_code(404)
    }

    /// True for 410: the revision or the continue token is no longer held.
    pub fn is_expired(&self) -> bool {
        self.has_code(410)
    }

    /// True for 409 with reason `Conflict`: the object changed meanwhile.
    pub fn is_conflict(&self) -> bool {
        self.status()
            .is_some_and(|status| status.code == 409 && status.reason == "Conflict")
    }

    /// True for 409 with reason `AlreadyExists`: the name is taken.
    pub fn is_already_exists(&self) -> bool {
        self.status()
            .is_some_and(|status| status.code == 409 && status.reason == "AlreadyExists")
    }

    /// True when the request may have taken effect although it failed: a write must look before it repeats.
    pub fn is_outcome_unknown(&self) -> bool {
        match self {
            Self::Transport { .. } | Self::Timeout { .. } | Self::TooLarge { .. } | Self::Decode { .. } => {
                true
            }
            Self::Status(status) => status.code == 504,
            Self::Connect { .. } | Self::Busy { .. } | Self::Request { .. } => false,
        }
    }

    /// How long the server asks to stay away.
    pub fn retry_after(&self) -> Option<Duration> {
        let seconds = self.status()?.details.as_ref()?.retry_after_seconds;
        (seconds > 0).then(|| Duration::from_secs(seconds.into()))
    }

    pub(crate) fn transport(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Transport {
            source: Arc::from(source.into()),
        }
    }

    /// A parse error by kind and place: serde's own text may quote content.
    pub(crate) fn decode(what: &str, error: &serde_json::Error) -> Self {
        let why = format!(
            "{what}: {:?} error at line {} column {}",
            error.classify(),
            error.line(),
            error.column()
        );
        Self::Decode { why }
    }

    fn has_code(&self, code: u16) -> bool {
        self.status().is_some_and(|status| status.code == code)
    }
}

impl From<Status> for ClientError {
    fn from(status: Status) -> Self {
        Self::Status(Box::new(status))
    }
}
