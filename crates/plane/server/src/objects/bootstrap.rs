//! What every cluster begins with.

use std::net::SocketAddr;

use futures_util::future::try_join_all;
use hotmap_kinds::find;
use hotmap_object::Status;
use serde_json::{Value, json};

use super::{Objects, Target, create::named, metadata, transaction::Decision};

/// Namespaces that exist from the start.
const SYSTEM_NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

impl Objects {
    /// Creates the system namespaces that are missing, and what every namespace has. `for_pods` is where pods reach this
    /// server: Service and Endpoints `kubernetes` say so.
    ///
    /// # Errors
    ///
    /// What a create answers when the store takes no writes.
    pub(crate) async fn bootstrap(&self, for_pods: Option<SocketAddr>) -> Result<(), Status> {
        // Side by side, so that few writes to the disk carry all of it.
        let namespaces = SYSTEM_NAMESPACES.map(|name| self.begin_system_namespace(name));
        try_join_all(namespaces).await?;
        match for_pods {
            Some(address) => self.begin_service(address).await,
            None => Ok(()),
        }
    }

    async fn begin_system_namespace(&self, name: &str) -> Result<(), Status> {
        let namespaces = find("", "v1", "namespaces").expect("namespaces are served");
        if self.cache_of(namespaces)?.get(name).is_some() {
            // One from before namespaces had anything is brought up to date.
            return match self.ensure_namespace_defaults(name).await {
                // It is being deleted.
                Err(refused) if refused.code == 403 => Ok(()),
                ensured => ensured,
            };
        }
        let created = self
            .create_object(namespaces, "", named(namespaces, name), false, &mut Vec::new())
            .await;
        match created {
            // Another server on the same store was faster.
            Err(taken) if taken.reason == "AlreadyExists" => Ok(()),
            created => created.map(drop),
        }
    }

    /// Fields follow `pkg/controlplane/controller/kubernetesservice/controller.go`, Kubernetes 1.36. The cluster IP is the
    /// address itself: nobody has to proxy it.
    async fn begin_service(&self, address: SocketAddr) -> Result<(), Status> {
        let (ip, port) = (address.ip().to_string(), address.port());
        let family = if address.is_ipv4() { "IPv4" } else { "IPv6" };
        let service = json!({
            "type": "ClusterIP", "clusterIP": ip, "clusterIPs": [ip], "sessionAffinity": "None",
            "ipFamilies": [family], "ipFamilyPolicy": "SingleStack", "internalTrafficPolicy": "Cluster",
            "ports": [{"name": "https", "protocol": "TCP", "port": port, "targetPort": port}],
        });
        let endpoints = json!([{
            "addresses": [{"ip": ip}],
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        }]);
        self.begin_object("services", "spec", service).await?;
        self.begin_object("endpoints", "subsets", endpoints).await
    }

    /// Creates `kubernetes`, or sets the one field that says where it is: the address may be another one this time.
    async fn begin_object(&self, plural: &str, field: &str, value: Value) -> Result<(), Status> {
        let resource = find("", "v1", plural).expect("kinds of the core group are served");
        let mut object = named(resource, "kubernetes");
        metadata::of_mut(&mut object).insert(
            "labels".to_owned(),
            match plural {
                "services" => json!({"component": "apiserver", "provider": "kubernetes"}),
                _ => json!({"endpointslice.kubernetes.io/skip-mirror": "true"}),
            },
        );
        object.insert(field.to_owned(), value.clone());
        let created = self
            .create_object(resource, "default", object, false, &mut Vec::new())
            .await;
        match created {
            Err(taken) if taken.reason == "AlreadyExists" => {}
            created => return created.map(drop),
        }
        let target = Target::new(resource, "", "default".to_owned(), "kubernetes".to_owned());
        let set = self.transact(&target, false, |current| {
            // Somebody has deleted it just now: so be it, until the next start.
            let Some(current) = current else {
                return Err(target.not_found());
            };
            let mut object = current.value.clone();
            object.insert(field.to_owned(), value.clone());
            self.encode(&target, object).map(Decision::Put)
        });
        match set.await {
            Err(gone) if gone.code == 404 => Ok(()),
            set => set.map(drop),
        }
    }
}
