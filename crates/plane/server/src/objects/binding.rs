//! POST pods/NAME/binding: a pod gets its node, once.
//!
//! Rules follow `pkg/registry/core/pod/storage/storage.go`, Kubernetes 1.36.

use hotmap_object::{GroupResource, GroupVersionKind, Status};
use serde_json::json;

use super::{
    Objects, Target, body, metadata,
    metadata::Object,
    options::WriteOptions,
    rendering::plain,
    transaction::{Current, Decision},
};
use crate::{
    answer::{Answer, Body},
    http::negotiation::Offer,
    request::ApiRequest,
};

const PODS_BINDING: GroupResource = GroupResource::fixed("", "pods/binding");
const STATUS: GroupVersionKind = GroupVersionKind::fixed("", "v1", "Status");

impl Objects {
    pub(super) async fn bind(&self, request: &ApiRequest) -> Result<Answer, Status> {
        let negotiated = request.accept.negotiate(Offer::Plain)?;
        let options = WriteOptions::of(&request.query, "CreateOptions")?;
        let target = Target::of(request)?;
        let mut warnings = Vec::new();
        let table = hotmap_schema::kind("", "v1", "Binding")
            .ok_or_else(|| Status::internal("there is no table for Binding"))?;
        let binding = body::decode(request, table, options.field_validation, &mut warnings)?;
        let fields = metadata::of(&binding);
        if metadata::text(fields, "name") != target.name {
            return Err(Status::bad_request(
                "name in URL does not match name in Binding object",
            ));
        }
        if !["", target.namespace.as_str()].contains(&metadata::text(fields, "namespace")) {
            let text =
                "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Status::bad_request(text));
        }
        let errors = hotmap_kinds::validate_binding(&binding);
        if !errors.is_empty() {
            // Upstream answers with the bare texts here.
            let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
            return Err(Status::new(500, "", texts.join(", ")));
        }
        let bound = self.transact(&target, options.dry_run, |current| {
            let current = current.ok_or_else(|| target.not_found())?;
            let pod = self.bound(&target, &binding, current)?;
            self.encode(&target, pod).map(Decision::Put)
        });
        bound.await?;
        let status =
            json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        let body = plain(&status, &STATUS, negotiated.media)?;
        let answer = Answer::new(201, negotiated.media.content_type(), Body::Full(body));
        Ok(answer.with_warnings(warnings))
    }

    fn bound(&self, target: &Target, binding: &Object, current: &Current) -> Result<Object, Status> {
        let refuse = |why: String| Err(Status::conflict(&PODS_BINDING, &target.name, why));
        let fields = metadata::of(binding);
        let (uid, revision) = (
            metadata::text(fields, "uid"),
            metadata::text(fields, "resourceVersion"),
        );
        if !uid.is_empty() && *uid != *current.shared.index().uid {
            let held = &current.shared.index().uid;
            return refuse(format!(
                "Precondition failed: UID in precondition: {uid}, UID in object meta: {held}"
            ));
        }
        let held = current.shared.revision().to_string();
        if !revision.is_empty() && revision != held {
            return refuse(format!(
                "Precondition failed: ResourceVersion in precondition: {revision}, ResourceVersion in object meta: {held}"
            ));
        }
        let mut pod = current.value.clone();
        match hotmap_kinds::bind(&mut pod, binding, self.now()) {
            Ok(()) => Ok(pod),
            Err(error) => refuse(error.to_string()),
        }
    }
}
