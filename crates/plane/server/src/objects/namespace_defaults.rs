//! What every namespace has: the account `default`, and the authority of this API for its pods.
//!
//! Upstream leaves both to controllers, and pods that come right after their namespace wait for them
//! (`pkg/controller/serviceaccount/serviceaccounts_controller.go`, `pkg/controller/certificates/rootcacertpublisher`,
//! Kubernetes 1.36). Here they are made before the creation of the namespace is answered; controllers restore them when
//! somebody changes or deletes them.

use hotmap_kinds::{Resource, find};
use hotmap_object::Status;
use serde_json::{Value, json};

use super::{Objects, create::named, metadata, metadata::Object};

/// The account of pods that name none.
pub(super) const DEFAULT_ACCOUNT: &str = "default";
/// The ConfigMap with the authority's certificate.
pub(super) const ROOT_CA: &str = "kube-root-ca.crt";
const DESCRIPTION: (&str, &str) = (
    "kubernetes.io/description",
    "The certificate authority of this cluster's API server, for clients inside of it.",
);

impl Objects {
    /// Creates what is missing of it.
    ///
    /// # Errors
    ///
    /// What a create answers: the namespace is gone or on its way out, or the store takes no writes.
    pub(super) async fn ensure_namespace_defaults(&self, namespace: &str) -> Result<(), Status> {
        let account = core("serviceaccounts");
        let config_map = core("configmaps");
        let authority = self.root_ca.as_deref().map(|pem| root_ca(config_map, pem));
        let account = self.ensure(account, namespace, named(account, DEFAULT_ACCOUNT));
        let authority = async {
            match authority {
                Some(object) => self.ensure(config_map, namespace, object).await,
                None => Ok(()),
            }
        };
        // Side by side, so that one write to the disk carries both.
        let (account, authority) = tokio::join!(account, authority);
        account.and(authority)
    }

    async fn ensure(
        &self,
        resource: &'static Resource,
        namespace: &str,
        object: Object,
    ) -> Result<(), Status> {
        let name = metadata::text(metadata::of(&object), "name").to_owned();
        if self
            .cache_of(resource)?
            .get(&format!("{namespace}/{name}"))
            .is_some()
        {
            return Ok(());
        }
        let mut warnings = Vec::new();
        // Boxed: the creation of a namespace comes by here.
        let created = Box::pin(self.create_object(resource, namespace, object, false, &mut warnings)).await;
        match created {
            Err(taken) if taken.reason == "AlreadyExists" => Ok(()),
            created => created.map(drop),
        }
    }
}

fn core(plural: &str) -> &'static Resource {
    find("", "v1", plural).expect("kinds of the core group are served")
}

fn root_ca(resource: &Resource, pem: &str) -> Object {
    let mut object = named(resource, ROOT_CA);
    let (key, text) = DESCRIPTION;
    metadata::of_mut(&mut object).insert("annotations".to_owned(), json!({ key: text }));
    object.insert("data".to_owned(), json!({"ca.crt": Value::from(pem)}));
    object
}
