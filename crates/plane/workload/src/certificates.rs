//! Certificate requests from their creation to their end: nodes' own are approved, approved ones are signed, old ones go.
//!
//! ```text
//!   pending ──judge──▶ approved ──Signer──▶ issued ──1 h──▶ gone
//!      │                   └──▶ failed: the signer does not sign such ──1 h──▶ gone
//!      ├──▶ denied: the name belongs to a node that lives ──1 h──▶ gone
//!      └──▶ pending: for somebody with the right to approve ──24 h──▶ gone
//! ```
//!
//! Sources: `pkg/controller/certificates/{approver,signer,cleaner}`, Kubernetes 1.36. Upstream lets people approve what
//! nodes serve with; here that happens where every name is known to be the node's ([`judgement`]).

mod judgement;

use std::sync::Arc;

use base64::{Engine, prelude::BASE64_STANDARD};
use hotmap_client::{DeleteParams, PatchType};
use hotmap_kinds::CertificateRequest;
use hotmap_object::timestamp;
use hyper::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tracing::{info, warn};

use self::judgement::{Judgement, World, judge};
use crate::{
    context::{Context, unless_gone},
    controller::{Controller, ReconcileError, Requeue},
    queue::Queue,
    view::{CertificateSigningRequest, Key},
};

pub(crate) const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
pub(crate) const NODE_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
pub(crate) const NODE_SERVING: &str = "kubernetes.io/kubelet-serving";

/// How long finished requests stay, and those that nobody decides about or signs.
const FINISHED: SignedDuration = SignedDuration::from_hours(1);
const PENDING: SignedDuration = SignedDuration::from_hours(24);

/// Signs certificates: all that controllers get of the authority. Its key stays with the server.
pub trait Signer: Send + Sync + 'static {
    /// A certificate for what is asked for, PEM, which is good for `seconds`, or for as long as the signer gives.
    ///
    /// # Errors
    ///
    /// Why such a certificate cannot be had from this signer, in words for who asked.
    fn sign(
        &self,
        request: &CertificateRequest,
        usages: &[String],
        seconds: Option<i64>,
        now: Timestamp,
    ) -> Result<String, String>;

    /// Whether the API itself is reached by this DNS name or address.
    fn is_name_of_api(&self, name: &str) -> bool;
}

struct Certificates {
    context: Context,
    signer: Arc<dyn Signer>,
}

/// Approves, signs and removes requests for as long as the tasks live.
pub(crate) fn start(context: &Context, signer: Arc<dyn Signer>, tasks: &mut JoinSet<()>) {
    let queue = Queue::default();
    let changed = queue.clone();
    let informers = &context.informers;
    informers.certificate_signing_requests.on_change(move |change| {
        changed.add(change.object().metadata.key());
    });
    // A node that tells its addresses may have asked before it did.
    let (waiting, of_nodes) = (queue.clone(), informers.clone());
    informers.nodes.on_change(move |change| {
        let user = format!("system:node:{}", change.object().metadata.name);
        for request in of_nodes.certificate_signing_requests.all() {
            if request.spec.username == user && request.status.conditions.is_empty() {
                waiting.add(request.metadata.key());
            }
        }
    });
    let controller = Certificates {
        context: context.clone(),
        signer,
    };
    context.start(controller, queue, tasks);
}

impl Controller for Certificates {
    const NAME: &'static str = "certificates";

    async fn reconcile(&self, key: &Key) -> Result<Requeue, ReconcileError> {
        let Some(request) = self.context.informers.certificate_signing_requests.get(key) else {
            return Ok(Requeue::Done);
        };
        if request.metadata.is_deleting() {
            return Ok(Requeue::Done);
        }
        let Some(over_at) = over_at(&request) else {
            return Ok(Requeue::Done);
        };
        let left = self.context.until(over_at);
        if left.is_zero() {
            self.context.delete(&*request, DeleteParams::default()).await?;
            info!(name = key.name, "old certificate request deleted");
            return Ok(Requeue::Done);
        }
        let request = self.decide(request).await?;
        self.sign(&request).await?;
        // What was written is an event, which sets the next timer.
        Ok(Requeue::After(left))
    }
}

impl Certificates {
    /// Approves or denies a pending request, if that is for us to do. Returns it as it is then.
    async fn decide(
        &self,
        request: Arc<CertificateSigningRequest>,
    ) -> Result<Arc<CertificateSigningRequest>, ReconcileError> {
        if !request.status.conditions.is_empty() || request.is_issued() {
            return Ok(request);
        }
        let Some(wanted) = wanted(&request) else {
            return Ok(request);
        };
        let node = wanted
            .node()
            .and_then(|name| self.context.informers.nodes.get(&Key::new("", name)));
        let world = World {
            node: node.as_deref(),
            signer: &*self.signer,
        };
        let (kind, reason, message) = match judge(&request.spec, &wanted, &world) {
            Judgement::Leave => return Ok(request),
            Judgement::Deny(message) => ("Denied", "NodeIsAlive", message),
            Judgement::Approve { permission, message } => {
                if !self.may(&request, permission).await? {
                    return Ok(request);
                }
                ("Approved", "AutoApproved", message.to_owned())
            }
        };
        info!(
            name = request.metadata.name,
            user = request.spec.username,
            kind,
            "certificate request decided"
        );
        let decided = self
            .add_condition(&request, "approval", kind, reason, &message)
            .await?;
        Ok(decided.unwrap_or(request))
    }

    async fn sign(&self, request: &CertificateSigningRequest) -> Result<(), ReconcileError> {
        let is_open = request.has("Approved") && !request.has("Denied") && !request.has("Failed");
        if !is_open || request.is_issued() {
            return Ok(());
        }
        let Some(wanted) = wanted(request) else {
            return Ok(());
        };
        let spec = &request.spec;
        let checked = match spec.signer_name.as_str() {
            NODE_CLIENT => wanted
                .check_node_client(&spec.usages)
                .map_err(|error| error.to_string()),
            NODE_SERVING => wanted
                .check_node_serving(&spec.usages)
                .map_err(|error| error.to_string()),
            CLIENT => client_usages(&spec.usages),
            // Others have signers of their own.
            _ => return Ok(()),
        };
        let now = self.context.now();
        let signed = checked.and_then(|()| {
            self.signer
                .sign(&wanted, &spec.usages, spec.expiration_seconds, now)
        });
        match signed {
            Ok(certificate) => {
                info!(
                    name = request.metadata.name,
                    user = spec.username,
                    "certificate issued"
                );
                let patch = json!({
                    "metadata": preconditions(request),
                    "status": {"certificate": BASE64_STANDARD.encode(certificate)},
                });
                let patched = self
                    .context
                    .patch(request, "status", PatchType::Merge, &patch)
                    .await;
                unless_gone(patched)?;
            }
            Err(why) => {
                warn!(
                    name = request.metadata.name,
                    error = why,
                    "certificate request cannot be signed"
                );
                self.add_condition(request, "status", "Failed", "SignerValidationFailure", &why)
                    .await?;
            }
        }
        Ok(())
    }

    /// Whether who asks has the right to be approved without anybody looking at it.
    async fn may(
        &self,
        request: &CertificateSigningRequest,
        permission: &str,
    ) -> Result<bool, ReconcileError> {
        let spec = &request.spec;
        let review = json!({
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
            "spec": {
                "user": spec.username, "uid": spec.uid, "groups": spec.groups, "extra": spec.extra,
                "resourceAttributes": {
                    "group": "certificates.k8s.io", "resource": "certificatesigningrequests", "version": "*",
                    "verb": "create", "subresource": permission,
                },
            },
        });
        let path = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
        let body = Some(("application/json", review.to_string().into()));
        let answer = self.context.client.raw(Method::POST, path, body).await?;
        let answer: Value = serde_json::from_slice(&answer).unwrap_or_default();
        Ok(answer["status"]["allowed"] == true)
    }

    async fn add_condition(
        &self,
        request: &CertificateSigningRequest,
        subresource: &str,
        kind: &str,
        reason: &str,
        message: &str,
    ) -> Result<Option<Arc<CertificateSigningRequest>>, ReconcileError> {
        let now = timestamp::seconds(self.context.now());
        let mut conditions = request.status.conditions.clone();
        conditions.push(json!({
            "type": kind, "status": "True", "reason": reason, "message": message, "lastUpdateTime": now,
        }));
        let patch = json!({"metadata": preconditions(request), "status": {"conditions": conditions}});
        unless_gone(
            self.context
                .patch(request, subresource, PatchType::Merge, &patch)
                .await,
        )
    }
}

fn preconditions(request: &CertificateSigningRequest) -> Value {
    json!({"uid": request.metadata.uid, "resourceVersion": request.metadata.resource_version})
}

/// What is asked for; nothing for what cannot be read, which the server refuses at creation.
fn wanted(request: &CertificateSigningRequest) -> Option<CertificateRequest> {
    let pem = BASE64_STANDARD.decode(&request.spec.request).ok()?;
    CertificateRequest::parse(&pem).ok()
}

fn client_usages(usages: &[String]) -> Result<(), String> {
    let known = ["client auth", "digital signature", "key encipherment"];
    if let Some(other) = usages.iter().find(|usage| !known.contains(&usage.as_str())) {
        return Err(format!("invalid usage for client certificate: {other}"));
    }
    match usages.iter().any(|usage| usage == "client auth") {
        true => Ok(()),
        false => Err("missing required usage for client certificate: client auth".to_owned()),
    }
}

/// When a request is to be deleted. An issued one goes an hour after its approval, whether its certificate ends before
/// that or not.
fn over_at(request: &CertificateSigningRequest) -> Option<Timestamp> {
    let decided = [
        ("Denied", FINISHED),
        ("Failed", FINISHED),
        ("Approved", if request.is_issued() { FINISHED } else { PENDING }),
    ];
    let decided = decided
        .into_iter()
        .filter_map(|(kind, stay)| request.updated(kind)?.checked_add(stay).ok());
    match request.status.conditions.is_empty() {
        true => request.metadata.creation_timestamp?.checked_add(PENDING).ok(),
        false => decided.min(),
    }
}

#[cfg(test)]
mod tests;
