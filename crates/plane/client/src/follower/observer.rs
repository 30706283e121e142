//! Who wants to know how the watches of a follower fare, whatever its consumer is told.

use crate::error::ClientError;

/// Hears of each watch that opens and ends, at once, on the follower's task: it only counts.
pub trait FollowObserver: Send + Sync {
    /// A watch runs.
    fn opened(&self);

    /// It runs no longer. Unless the follower was dropped, another one is opened.
    fn ended(&self, end: WatchEnd);
}

/// Why a watch ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchEnd {
    /// The server ended it, as servers do after some minutes.
    Closed,
    /// Its connection broke, or was found dead.
    Broken,
    /// It said nothing for too long, not even where it stands.
    Silent,
    /// Its revision became too old.
    Expired,
    /// The server ended it with another error.
    Refused,
    /// The follower was dropped.
    LetGo,
}

impl WatchEnd {
    /// Every end after which a watch is opened again.
    pub const REOPENED: [Self; 5] = [
        Self::Closed,
        Self::Broken,
        Self::Silent,
        Self::Expired,
        Self::Refused,
    ];

    /// One word, for a metric.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Broken => "broken",
            Self::Silent => "silent",
            Self::Expired => "expired",
            Self::Refused => "refused",
            Self::LetGo => "let-go",
        }
    }

    pub(super) fn of(error: &ClientError) -> Self {
        match error {
            error if error.is_expired() => Self::Expired,
            ClientError::Status(_) => Self::Refused,
            ClientError::Timeout { .. } => Self::Silent,
            _ => Self::Broken,
        }
    }
}
