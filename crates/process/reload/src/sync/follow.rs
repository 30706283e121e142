//! Where news of objects comes from: a watch for each selection, or manifests.

use std::path::PathBuf;

use hotmap_client::{
    Client, ClientError, ClientListWatch, FollowEvent, Follower, FollowerConfig, ResourcePath,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::sync::manifests::{self, ManifestsError, Watching};
use crate::sync::merge::{Selection, Who};
use crate::sync::object::Document;

/// News on its way; whoever is slower than the API lets the watch wait.
const HEARD_MAX: usize = 16;

/// Something is to be told.
#[derive(Debug)]
pub(crate) enum Heard {
    /// The API has told about a selection, by its number.
    Followed { selection: usize, event: FollowEvent },
    /// What the selections find in the manifests now, by their numbers.
    Manifests(Vec<Vec<Document>>),
    /// The manifests cannot be read; why.
    Unreadable(String),
}

/// Follows objects. Dropping it ends that.
pub(crate) struct Following {
    heard: mpsc::Receiver<Heard>,
    _tasks: JoinSet<()>,
    _watching: Option<Watching>,
}

impl Following {
    /// Objects of an API, all over one connection.
    pub(crate) fn of_api(client: &Client, selections: &[Selection]) -> Self {
        let (sender, heard) = mpsc::channel(HEARD_MAX);
        let mut tasks = JoinSet::new();
        for (number, selection) in selections.iter().enumerate() {
            let mut follower = Follower::new(collection(client, selection), FollowerConfig::STOCK);
            let sender = sender.clone();
            tasks.spawn(async move {
                loop {
                    let event = follower.next().await;
                    let heard = Heard::Followed {
                        selection: number,
                        event,
                    };
                    if sender.send(heard).await.is_err() {
                        return;
                    }
                }
            });
        }
        Self {
            heard,
            _tasks: tasks,
            _watching: None,
        }
    }

    /// Objects of manifests.
    pub(crate) fn of_manifests(
        path: PathBuf,
        default_namespace: String,
        selections: Vec<Selection>,
    ) -> Result<Self, ManifestsError> {
        let (sender, heard) = mpsc::channel(HEARD_MAX);
        let watching = manifests::watch(path, default_namespace, selections, sender)?;
        Ok(Self {
            heard,
            _tasks: JoinSet::new(),
            _watching: Some(watching),
        })
    }

    /// The next news. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Heard {
        match self.heard.recv().await {
            Some(heard) => heard,
            // Without anything to follow nothing can change.
            None => std::future::pending().await,
        }
    }

    /// What is there already.
    pub(crate) fn try_next(&mut self) -> Option<Heard> {
        self.heard.try_recv().ok()
    }
}

fn collection(client: &Client, selection: &Selection) -> ClientListWatch {
    let path = ResourcePath::new("", "v1", selection.kind.resource());
    let path = match &selection.namespace {
        Some(namespace) => path.in_namespace(namespace.as_str()),
        None => path,
    };
    let collection = ClientListWatch::new(client.clone(), path);
    match &selection.who {
        // The API decides rights on such a list and watch as on the one object: a role may name it.
        Who::Named(name) => collection.with_field_selector(format!("metadata.name={name}")),
        Who::Labelled(selector) => collection.with_label_selector(selector.as_str()),
    }
}

/// Why the API cannot be heard, and what to do about it.
pub(crate) fn interruption(selection: &Selection, error: &ClientError) -> String {
    let what = crate::sync::with_causes(error);
    match error.status().map(|status| status.code) {
        Some(403) => format!(
            "no right to list and watch {selection} ({what}); `hotmap sync --print-rbac` with the same objects prints \
             the role that is missing"
        ),
        Some(401) => {
            format!("the API does not know who we are ({what}): look at the kubeconfig or at the token")
        }
        _ => format!("the API cannot be heard about {selection}: {what}"),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hotmap_client::Timeouts;

    use super::*;

    #[test]
    fn silence_is_found_within_two_bookmark_periods_and_a_dead_connection_within_10_s() {
        // A stock API server sends a bookmark about once a minute (apiserver, storage/cacher, bookmarkFrequency).
        assert!(FollowerConfig::STOCK.silence_max <= Duration::from_secs(2 * 60 + 10));
        let timeouts = Timeouts::default();
        assert!(timeouts.ping_interval + timeouts.ping_timeout <= Duration::from_secs(10));
    }
}
