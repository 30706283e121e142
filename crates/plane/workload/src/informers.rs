//! One informer per kind, shared by all controllers.

use hotmap_client::{Client, ClientListWatch, ListWatch, ResourcePath};
use tokio::task::JoinSet;

use crate::{
    informer::Informer,
    view::{Deployment, Node, Pod, ReplicaSet, View},
};

/// Where the objects of a kind are followed: an API server, or the server in this very process.
pub trait Collections: Clone + Send + Sync + 'static {
    /// How one collection is followed.
    type ListWatch: ListWatch + 'static;

    /// The collection at `path`, over all namespaces.
    fn collection(&self, path: ResourcePath) -> Self::ListWatch;
}

impl Collections for Client {
    type ListWatch = ClientListWatch;

    fn collection(&self, path: ResourcePath) -> ClientListWatch {
        ClientListWatch::new(self.clone(), path)
    }
}

/// All informers. What no controller wants is not followed.
#[derive(Default)]
pub(crate) struct Informers {
    pub(crate) deployments: Informer<Deployment>,
    pub(crate) nodes: Informer<Node>,
    pub(crate) pods: Informer<Pod>,
    pub(crate) replica_sets: Informer<ReplicaSet>,
}

impl Informers {
    /// Follows every kind that is wanted, for as long as the tasks live.
    pub(crate) fn start(
        self: &std::sync::Arc<Self>,
        collections: &impl Collections,
        tasks: &mut JoinSet<()>,
    ) {
        self.follow::<Deployment>(collections, tasks);
        self.follow::<Node>(collections, tasks);
        self.follow::<Pod>(collections, tasks);
        self.follow::<ReplicaSet>(collections, tasks);
    }

    fn follow<V: View>(self: &std::sync::Arc<Self>, collections: &impl Collections, tasks: &mut JoinSet<()>) {
        if V::informer(self).is_wanted() {
            let (informers, source) = (self.clone(), collections.collection(V::collection()));
            tasks.spawn(async move { V::informer(&informers).run(source).await });
        }
    }

    /// Waits until everything that is wanted is known: before that a controller would mistake the unknown for the
    /// absent.
    pub(crate) async fn synced(&self) {
        self.wait::<Deployment>().await;
        self.wait::<Node>().await;
        self.wait::<Pod>().await;
        self.wait::<ReplicaSet>().await;
    }

    async fn wait<V: View>(&self) {
        if V::informer(self).is_wanted() {
            V::informer(self).synced().await;
        }
    }
}
