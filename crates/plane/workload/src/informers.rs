//! One informer per kind, shared by all controllers.

use std::sync::Arc;

use hotmap_client::{Client, ClientListWatch, FollowerConfig, ListWatch, ResourcePath};
use tokio::task::JoinSet;

use crate::{
    informer::Informer,
    view::{
        CertificateSigningRequest, ControllerRevision, CronJob, DaemonSet, Deployment, Job, Lease, Node, Pod,
        PodDisruptionBudget, ReplicaSet, Secret, StatefulSet, View,
    },
};

/// Where the objects of a kind are followed: an API server, or the server in this very process.
pub trait Collections: Clone + Send + Sync + 'static {
    /// How one collection is followed.
    type ListWatch: ListWatch + 'static;

    /// How patient followers are.
    const PATIENCE: FollowerConfig;

    /// The collection at `path`, over all namespaces.
    fn collection(&self, path: ResourcePath) -> Self::ListWatch;
}

impl Collections for Client {
    type ListWatch = ClientListWatch;

    const PATIENCE: FollowerConfig = FollowerConfig::STOCK;

    fn collection(&self, path: ResourcePath) -> ClientListWatch {
        ClientListWatch::new(self.clone(), path)
    }
}

macro_rules! informers {
    ($($field:ident: $view:ty,)*) => {
        /// All informers. What no controller wants is not followed.
        #[derive(Default)]
        pub(crate) struct Informers {
            $(pub(crate) $field: Informer<$view>,)*
        }

        impl Informers {
            /// Follows every kind that is wanted, for as long as the tasks live.
            pub(crate) fn start(self: &Arc<Self>, collections: &impl Collections, tasks: &mut JoinSet<()>) {
                $(self.follow::<$view, _>(collections, tasks);)*
            }

            /// Waits until everything that is wanted is known: before that a controller would mistake the unknown for
            /// the absent.
            pub(crate) async fn synced(&self) {
                $(self.wait::<$view>().await;)*
            }
        }
    };
}

informers! {
    certificate_signing_requests: CertificateSigningRequest,
    controller_revisions: ControllerRevision,
    daemon_sets: DaemonSet,
    cron_jobs: CronJob,
    deployments: Deployment,
    jobs: Job,
    leases: Lease,
    nodes: Node,
    pod_disruption_budgets: PodDisruptionBudget,
    pods: Pod,
    replica_sets: ReplicaSet,
    secrets: Secret,
    stateful_sets: StatefulSet,
}

impl Informers {
    fn follow<V: View, C: Collections>(self: &Arc<Self>, collections: &C, tasks: &mut JoinSet<()>) {
        if V::informer(self).is_wanted() {
            let (informers, source) = (self.clone(), collections.collection(V::collection()));
            tasks.spawn(async move { V::informer(&informers).run(source, C::PATIENCE).await });
        }
    }

    async fn wait<V: View>(&self) {
        if V::informer(self).is_wanted() {
            V::informer(self).synced().await;
        }
    }
}
