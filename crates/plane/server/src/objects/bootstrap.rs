//! What every cluster begins with.

use futures_util::future::try_join_all;
use hotmap_kinds::find;
use hotmap_object::Status;

use super::{Objects, create::named};

/// Namespaces that exist from the start.
const SYSTEM_NAMESPACES: [&str; 4] = ["default", "kube-system", "kube-public", "kube-node-lease"];

impl Objects {
    /// Creates the system namespaces that are missing.
    ///
    /// # Errors
    ///
    /// What a create answers when the store takes no writes.
    pub(crate) async fn bootstrap(&self) -> Result<(), Status> {
        let namespaces = find("", "v1", "namespaces").expect("namespaces are served");
        let cache = self.cache_of(namespaces)?;
        let missing = SYSTEM_NAMESPACES.iter().filter(|name| cache.get(name).is_none());
        // Together, so that they share a commit.
        let creates = missing.map(async |name| {
            let created = self
                .create_object(namespaces, "", named(namespaces, name), false, &mut Vec::new())
                .await;
            match created {
                // Another server on the same store was faster.
                Err(taken) if taken.reason == "AlreadyExists" => Ok(()),
                created => created.map(drop),
            }
        });
        try_join_all(creates).await.map(drop)
    }
}
