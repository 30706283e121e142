//! Which server the node talks to: ours has a watch made for nodes, and says every 5 s where it stands.

use std::{sync::Arc, time::Duration};

use hotmap_client::{
    Backoff, Client, ClientError, ClientListWatch, Follower, FollowerConfig, ListParams, ResourcePath,
};
use tracing::{info, warn};

use crate::metrics::Metrics;

/// The field by which our server selects what the pods of a node refer to.
pub(super) const NODE_FIELD: &str = "hotmap.dev/node";

const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(5);

/// What the server can do for nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ServerKind {
    /// It selects by node, and sends bookmarks to nodes every 5 s.
    Own,
    /// It is any Kubernetes API server.
    Stock,
}

impl ServerKind {
    /// Follows something there, with patience to match. Who asks our server for the times of commits, which no other knows, is
    /// told every 5 s where the watch stands, whatever identity asks.
    pub(crate) fn follow(self, source: ClientListWatch, metrics: &Metrics) -> Follower<ClientListWatch> {
        let (source, config) = match self {
            Self::Own => (source.with_commit_time(), FollowerConfig::NODE),
            Self::Stock => (source, FollowerConfig::STOCK),
        };
        Follower::new(source, config).observed_by(Arc::new(metrics.clone()))
    }
}

/// Asks for what the node's pods refer to, as only our server can answer it; tries until there is an answer.
pub(crate) async fn probe(client: &Client, node_name: &str) -> ServerKind {
    let path = ResourcePath::new("", "v1", "configmaps");
    let params = ListParams {
        field_selector: format!("{NODE_FIELD}={node_name}"),
        limit: 1,
        ..ListParams::default()
    };
    let mut retries = Backoff::seeded(RETRY_MIN, RETRY_MAX);
    loop {
        match judge(client.list(&path, &params).await.map(drop)) {
            Ok(ServerKind::Own) => return ServerKind::Own,
            Ok(ServerKind::Stock) => {
                info!(
                    node = node_name,
                    "the API does not select by node: each object has a watch of its own"
                );
                return ServerKind::Stock;
            }
            Err(error) => {
                warn!(node = node_name, %error, "the API does not answer yet");
                tokio::time::sleep(retries.next_delay()).await;
            }
        }
    }
}

/// A stock server does not know the field (400), or its node authorizer is asked first and wants a name (403).
fn judge(answer: Result<(), ClientError>) -> Result<ServerKind, ClientError> {
    match answer {
        Ok(()) => Ok(ServerKind::Own),
        Err(error) => match error.status().map(|status| status.code) {
            Some(400 | 403) => Ok(ServerKind::Stock),
            _ => Err(error),
        },
    }
}

#[cfg(test)]
mod tests {
    use hotmap_object::Status;

    use super::*;

    #[test]
    fn who_refuses_the_selector_is_a_stock_server_and_who_is_silent_is_asked_again() {
        let refused = |code| Err(ClientError::from(Status::new(code, "", "no")));
        for (answer, kind) in [
            (Ok(()), Some(ServerKind::Own)),
            (refused(400), Some(ServerKind::Stock)),
            (refused(403), Some(ServerKind::Stock)),
            (refused(401), None),
            (refused(429), None),
            (refused(503), None),
            (
                Err(ClientError::Timeout {
                    after: Duration::ZERO,
                }),
                None,
            ),
        ] {
            let shown = format!("{answer:?}");
            assert_eq!(judge(answer).ok(), kind, "{shown}");
        }
    }
}
