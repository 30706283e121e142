//! The Lease of a node: says that the node is there, and keeps a second agent from taking its name.
//!
//! ```text
//!   free · ours · run out ──▶ we hold it ──renew, every 10 s──▶ we hold it
//!   held by another agent ──▶ we do not start                └─▶ another holds it: we are fenced, and end
//! ```
//!
//! A renewal names the version it replaces, so of two agents that renew at once one finds out. Upstream's controllers
//! read `renewTime` alone (`pkg/controller/nodelifecycle`, Kubernetes 1.36), so the holder may be more than the node's name.

use std::time::Duration;

use hotmap_client::{Client, ClientError, PatchType, RawObject, ResourcePath, WriteParams};
use hotmap_object::timestamp;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;

/// Namespace of node leases (`pkg/apis/core/v1`, `NamespaceNodeLease`).
const LEASE_NAMESPACE: &str = "kube-node-lease";
/// How long a lease holds after its last renewal: upstream's default.
const LEASE_SECONDS: u64 = 40;
/// A race for the lease is decided in so many tries: whoever loses one sees the winner in the next.
const TRIES: usize = 3;

/// The node's Lease, as this agent holds it or wants to.
#[derive(Debug)]
pub(crate) struct NodeLease {
    node: String,
    /// Who we are: the node's name, and what tells this agent from any other of that name.
    holder: String,
    /// The version that our last renewal made.
    version: Option<String>,
}

/// Why the lease is not ours.
#[derive(Debug, thiserror::Error)]
pub(crate) enum LeaseError {
    #[error(transparent)]
    Held(#[from] HeldByAnother),
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// Another agent acts for the node of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("node name {node:?} is held by another agent ({holder}) for {} s more; stop that one or take another name", .remaining.as_secs())]
pub struct HeldByAnother {
    /// The node.
    pub node: String,
    /// What the other agent calls itself in the Lease.
    pub holder: String,
    /// Until its lease runs out, unless it renews it.
    pub remaining: Duration,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Document {
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Spec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<u64>,
    renew_time: Option<String>,
}

impl Spec {
    /// How long another holder than `us` still has it.
    fn held_against(&self, us: &str, now: Timestamp) -> Option<(String, Duration)> {
        let holder = self
            .holder_identity
            .as_deref()
            .filter(|holder| !holder.is_empty() && *holder != us)?;
        let renewed: Timestamp = self.renew_time.as_deref()?.parse().ok()?;
        let lasts = Duration::from_secs(self.lease_duration_seconds.unwrap_or(LEASE_SECONDS));
        let ends = renewed.checked_add(lasts).ok()?;
        let remaining = Duration::try_from(ends.duration_since(now)).ok()?;
        // A holder whose clock runs ahead must not keep the name for ever.
        (!remaining.is_zero()).then(|| (holder.to_owned(), remaining.min(lasts)))
    }
}

impl NodeLease {
    pub(crate) fn new(node: &str, instance_id: &str) -> Self {
        Self {
            node: node.to_owned(),
            holder: format!("{node}_{instance_id}"),
            version: None,
        }
    }

    /// Takes the lease, or renews it.
    ///
    /// # Errors
    /// [`LeaseError::Held`] if another agent holds it now.
    pub(crate) async fn renew(&mut self, client: &Client) -> Result<(), LeaseError> {
        let mut lost = None;
        for _ in 0..TRIES {
            let version = match self.version.take() {
                Some(version) => Some(version),
                None => self.look(client).await?,
            };
            match self.write(client, version).await {
                Ok(written) => {
                    self.version = Some(written.resource_version().to_owned());
                    return Ok(());
                }
                // Somebody was faster: who it was decides.
                Err(error) if error.is_conflict() || error.is_already_exists() || error.is_not_found() => {
                    lost = Some(error);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(lost.expect("there is a first try").into())
    }

    /// The version to replace; `None` if there is no lease.
    async fn look(&self, client: &Client) -> Result<Option<String>, LeaseError> {
        let held = match client.get(&leases().name(self.node.as_str())).await {
            Ok(held) => held,
            Err(error) if error.is_not_found() => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let spec = held.parse::<Document>()?.spec;
        match spec.held_against(&self.holder, Timestamp::now()) {
            Some((holder, remaining)) => Err(HeldByAnother {
                node: self.node.clone(),
                holder,
                remaining,
            }
            .into()),
            None => Ok(Some(held.resource_version().to_owned())),
        }
    }

    async fn write(&self, client: &Client, version: Option<String>) -> Result<RawObject, ClientError> {
        let spec = json!({"holderIdentity": self.holder, "leaseDurationSeconds": LEASE_SECONDS,
            "renewTime": timestamp::micros(Timestamp::now())});
        let write = WriteParams::default();
        match version {
            Some(version) => {
                let patch = json!({"metadata": {"resourceVersion": version}, "spec": spec});
                let path = leases().name(self.node.as_str());
                client.patch(&path, PatchType::Merge, &patch, &write).await
            }
            None => {
                let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                    "metadata": {"name": self.node, "namespace": LEASE_NAMESPACE}, "spec": spec});
                client.create(&leases(), &lease, &write).await
            }
        }
    }
}

fn leases() -> ResourcePath {
    ResourcePath::new("coordination.k8s.io", "v1", "leases").in_namespace(LEASE_NAMESPACE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_held_by_another_agent_as_long_as_its_lease_runs() {
        let spec = |holder: &str, renew_time: &str| Spec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(40),
            renew_time: Some(renew_time.to_owned()),
        };
        let now = "2026-11-21T10:00:30Z".parse().expect("a time");
        for (spec, remaining) in [
            (spec("a_1", "2026-11-21T10:00:25.000000Z"), Some(35)),
            // A kubelet calls itself by the node's name.
            (spec("a", "2026-11-21T10:00:00.000000Z"), Some(10)),
            (spec("a_1", "2026-11-21T09:59:50.000000Z"), None),
            (spec("a_1", "2026-11-21T12:00:00.000000Z"), Some(40)),
            (spec("a_2", "2026-11-21T10:00:25.000000Z"), None),
            (spec("", "2026-11-21T10:00:25.000000Z"), None),
            (spec("a_1", "yesterday"), None),
            (Spec::default(), None),
        ] {
            let held = spec
                .held_against("a_2", now)
                .map(|(_, remaining)| remaining.as_secs());
            assert_eq!(held, remaining, "{spec:?}");
        }
    }
}
