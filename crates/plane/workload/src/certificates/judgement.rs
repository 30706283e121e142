//! Whether a request of a node is approved without anybody looking at it. Pure: the same request and world give the same
//! answer.

use hotmap_kinds::CertificateRequest;

use super::{NODE_CLIENT, NODE_SERVING, Signer};
use crate::view::{CertificateSigningRequestSpec, Node};

/// What is known of the node whose certificate is asked for.
pub(super) struct World<'a> {
    pub(super) node: Option<&'a Node>,
    pub(super) signer: &'a dyn Signer,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judgement {
    /// If who asks may `create` this sub-resource of certificate requests.
    Approve {
        permission: &'static str,
        message: &'static str,
    },
    /// Nobody shall have it, for this reason.
    Deny(String),
    /// It waits for somebody with the right to approve.
    Leave,
}

pub(super) fn judge(
    spec: &CertificateSigningRequestSpec,
    wanted: &CertificateRequest,
    world: &World<'_>,
) -> Judgement {
    let is_self = spec.username == wanted.common_name;
    match spec.signer_name.as_str() {
        NODE_CLIENT if wanted.check_node_client(&spec.usages).is_ok() => match (is_self, world.node) {
            (true, _) => Judgement::Approve {
                permission: "selfnodeclient",
                message: "Auto approving self kubelet client certificate after SubjectAccessReview.",
            },
            (false, Some(node)) if lives(node) => Judgement::Deny(format!(
                "node {0:?} is there and alive: stop its agent and wait until it is no longer Ready, delete it with \
                 `kubectl delete node {0}`, or join under another name",
                node.metadata.name
            )),
            (false, _) => Judgement::Approve {
                permission: "nodeclient",
                message: "Auto approving kubelet client certificate after SubjectAccessReview.",
            },
        },
        NODE_SERVING if is_self && wanted.check_node_serving(&spec.usages).is_ok() => {
            match world
                .node
                .is_some_and(|node| serves_only_itself(wanted, node, world.signer))
            {
                true => Judgement::Approve {
                    permission: "selfnodeclient",
                    message: "Auto approving kubelet serving certificate: every name in it is the node's own.",
                },
                false => Judgement::Leave,
            }
        }
        _ => Judgement::Leave,
    }
}

/// A node that is not silent: who is renews its lease, and who is not is told `Unknown` by the node lifecycle.
fn lives(node: &Node) -> bool {
    node.ready().is_some_and(|status| status != "Unknown")
}

/// Whether all names are the node's, and none of them leads to the API: clients would take the node for it. Loopback
/// addresses mean whoever listens on the client's own machine, also where they stand in the API's certificate.
fn serves_only_itself(wanted: &CertificateRequest, node: &Node, signer: &dyn Signer) -> bool {
    let is_own = |name: &str| {
        name == node.metadata.name || node.status.addresses.iter().any(|held| held.address == name)
    };
    let names = wanted.dns_names.iter().map(String::as_str);
    let addresses = wanted.ip_addresses.iter();
    names
        .clone()
        .all(|name| is_own(name) && !signer.is_name_of_api(name))
        && addresses.clone().all(|address| {
            is_own(&address.to_string())
                && (address.is_loopback() || !signer.is_name_of_api(&address.to_string()))
        })
}
