//! Follows each selection with a watch of its own, over one connection.

use hotmap_client::{
    Client, ClientError, ClientListWatch, FollowEvent, Follower, FollowerConfig, ResourcePath,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::sync::merge::{Selection, Who};

/// Events on their way; whoever is slower than the API lets the watch wait.
const EVENTS_MAX: usize = 16;

/// One selection has something to tell.
#[derive(Debug)]
pub(crate) struct Heard {
    /// Which one, by its number.
    pub(crate) selection: usize,
    pub(crate) event: FollowEvent,
}

/// The followers. Dropping it ends them.
pub(crate) struct Following {
    events: mpsc::Receiver<Heard>,
    _tasks: JoinSet<()>,
}

impl Following {
    pub(crate) fn start(client: &Client, selections: &[Selection]) -> Self {
        let (sender, events) = mpsc::channel(EVENTS_MAX);
        let mut tasks = JoinSet::new();
        for (number, selection) in selections.iter().enumerate() {
            let mut follower = Follower::new(collection(client, selection), FollowerConfig::STOCK);
            let sender = sender.clone();
            tasks.spawn(async move {
                loop {
                    let event = follower.next().await;
                    let heard = Heard {
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
            events,
            _tasks: tasks,
        }
    }

    /// The next event. Dropping the future loses nothing.
    pub(crate) async fn next(&mut self) -> Heard {
        match self.events.recv().await {
            Some(heard) => heard,
            // Without selections nothing can change.
            None => std::future::pending().await,
        }
    }

    /// What is there already.
    pub(crate) fn try_next(&mut self) -> Option<Heard> {
        self.events.try_recv().ok()
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
            format!("the API does not know who we are ({what}): look at the kubeconfig or the token")
        }
        _ => format!("the API cannot be heard about {selection}: {what}"),
    }
}
