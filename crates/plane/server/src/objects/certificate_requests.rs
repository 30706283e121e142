//! Who asks for certificates, and who may approve and sign them.
//!
//! Follows `plugin/pkg/admission/certificates/*/admission.go` and
//! `pkg/registry/certificates/certificates/strategy.go`, Kubernetes 1.36.

use hotmap_kinds::{CertificateRequest, fill_condition_times};
use hotmap_object::Status;
use serde_json::{Map, Value, json};

use super::{Objects, metadata::Object};
use crate::{access_reviews::user_info, authorization::may_with_signer, request::ApiRequest};

const GROUP: &str = "certificates.k8s.io";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";
/// The group that asks nobody: no certificate may bring its holder into it.
const MASTERS: &str = "system:masters";

impl Objects {
    /// Writes into a new CertificateSigningRequest who asks; every other object passes.
    ///
    /// # Errors
    ///
    /// 403 for a request to be in `system:masters`.
    pub(super) fn note_requester(&self, request: &ApiRequest, object: &mut Object) -> Result<(), Status> {
        if !is_about(request) {
            return Ok(());
        }
        let Value::Object(spec) = object.entry("spec").or_insert_with(|| json!({})) else {
            return Ok(());
        };
        let user = user_info(&request.user);
        for field in ["username", "uid", "groups", "extra"] {
            match user.get(field) {
                Some(known) => spec.insert(field.to_owned(), known.clone()),
                None => spec.remove(field),
            };
        }
        // What cannot be read is refused by validation, with a better sentence.
        let wants_all = spec["signerName"] == CLIENT_SIGNER
            && CertificateRequest::of_spec(spec)
                .is_ok_and(|wanted| wanted.organizations.iter().any(|group| group == MASTERS));
        if wants_all {
            let why = format!("use of {CLIENT_SIGNER} signer with {MASTERS} group is not allowed");
            return Err(self.refused(request, object, why));
        }
        Ok(())
    }

    /// Lets a CertificateSigningRequest be approved and signed only by those who may do so for its signer, and gives
    /// new conditions their times; every other object passes.
    ///
    /// # Errors
    ///
    /// 403.
    pub(super) fn check_signer(
        &self,
        request: &ApiRequest,
        new: &mut Object,
        old: &Object,
    ) -> Result<(), Status> {
        if !is_about(request) {
            return Ok(());
        }
        let verb = match request.subresource_name() {
            "approval" => "approve",
            "status" => "sign",
            _ => return Ok(()),
        };
        fill_condition_times(new, old, self.now());
        if verb == "sign"
            && ["certificate", "conditions"]
                .iter()
                .all(|field| status(new, field) == status(old, field))
        {
            return Ok(());
        }
        // That of the stored object: the one that is sent may say anything.
        let signer = old["spec"]["signerName"].as_str().unwrap_or_default();
        if may_with_signer(&self.roles, &request.user, verb, signer) {
            return Ok(());
        }
        let why = format!("user not permitted to {verb} requests with signerName {signer:?}");
        Err(self.refused(request, old, why))
    }

    fn refused(&self, request: &ApiRequest, object: &Map<String, Value>, why: String) -> Status {
        let name = super::metadata::text(super::metadata::of(object), "name");
        Status::forbidden(&request.resource.group_resource(), name, why)
    }
}

fn is_about(request: &ApiRequest) -> bool {
    (request.resource.group, request.resource.plural) == (GROUP, "certificatesigningrequests")
}

fn status<'a>(object: &'a Object, field: &str) -> Option<&'a Value> {
    object
        .get("status")?
        .get(field)
        .filter(|value| **value != json!([]))
}
