//! POST pods/NAME/binding: a pod gets its node, once.
//!
//! Rules follow `pkg/registry/core/pod/storage/storage.go`, Kubernetes 1.36.

use hotmap_object::{GroupResource, GroupVersionKind, Status, timestamp};
use serde_json::{Value, json};

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
        let table = hotmap_schema::kind("", "v1", "Binding").ok_or_else(|| Status::internal("there is no table for Binding"))?;
        let binding = body::decode(request, table, options.field_validation, &mut warnings)?;
        let fields = metadata::of(&binding);
        if metadata::text(fields, "name") != target.name {
            return Err(Status::bad_request("name in URL does not match name in Binding object"));
        }
        if !["", target.namespace.as_str()].contains(&metadata::text(fields, "namespace")) {
            let text = "the namespace of the provided object does not match the namespace sent on the request";
            return Err(Status::bad_request(text));
        }
        let node = node(&binding)?;
        let bound = self.transact(&target, options.dry_run, |current| {
            let current = current.ok_or_else(|| target.not_found())?;
            let pod = self.bound(&target, &binding, current, &node)?;
            self.encode(&target, pod).map(Decision::Put)
        });
        bound.await?;
        let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
        let body = plain(&status, &STATUS, negotiated.media)?;
        let answer = Answer::new(201, negotiated.media.content_type(), Body::Full(body));
        Ok(answer.with_warnings(warnings))
    }

    fn bound(&self, target: &Target, binding: &Object, current: &Current, node: &str) -> Result<Object, Status> {
        let refuse = |why: String| Err(Status::conflict(&PODS_BINDING, &target.name, why));
        let fields = metadata::of(binding);
        let (uid, revision) = (metadata::text(fields, "uid"), metadata::text(fields, "resourceVersion"));
        if !uid.is_empty() && *uid != *current.shared.index().uid {
            let held = &current.shared.index().uid;
            return refuse(format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {held}"));
        }
        let held = current.shared.revision().to_string();
        if !revision.is_empty() && revision != held {
            return refuse(format!(
                "Precondition failed: ResourceVersion in precondition: {revision}, ResourceVersion in object meta: {held}"
            ));
        }
        let mut pod = current.value.clone();
        let name = &target.name;
        if current.shared.index().is_deleting {
            return refuse(format!("pod {name} is being deleted, cannot be assigned to a host"));
        }
        let spec = pod.get("spec").and_then(Value::as_object).ok_or_else(|| Status::internal("a pod has no spec"))?;
        let held = metadata::text(spec, "nodeName");
        if !held.is_empty() {
            return refuse(format!("pod {name} is already assigned to node {held:?}"));
        }
        if spec.get("schedulingGates").and_then(Value::as_array).is_some_and(|gates| !gates.is_empty()) {
            return refuse(format!("pod {name} has non-empty .spec.schedulingGates"));
        }
        pod["spec"]["nodeName"] = node.into();
        for map in ["annotations", "labels"] {
            merge(&mut pod, fields, map);
        }
        self.set_scheduled(&mut pod);
        Ok(pod)
    }

    /// The condition that tells everybody, with the time of its last change.
    fn set_scheduled(&self, pod: &mut Object) {
        let status = pod.entry("status").or_insert_with(|| json!({}));
        let Some(status) = status.as_object_mut() else { return };
        status.remove("nominatedNodeName");
        let conditions = status.entry("conditions").or_insert_with(|| json!([]));
        let Some(conditions) = conditions.as_array_mut() else { return };
        let now = timestamp::seconds(self.now());
        let mut scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now});
        match conditions.iter_mut().find(|one| one["type"] == "PodScheduled") {
            Some(held) => {
                if held["status"] == "True" {
                    scheduled["lastTransitionTime"] = held["lastTransitionTime"].clone();
                }
                *held = scheduled;
            }
            None => conditions.push(scheduled),
        }
    }
}

fn merge(pod: &mut Object, from: &Object, field: &str) {
    let Some(more) = from.get(field).and_then(Value::as_object).filter(|more| !more.is_empty()) else { return };
    let held = metadata::of_mut(pod).entry(field).or_insert_with(|| json!({}));
    if let Some(held) = held.as_object_mut() {
        held.extend(more.iter().map(|(key, value)| (key.clone(), value.clone())));
    }
}

fn node(binding: &Object) -> Result<String, Status> {
    let target = binding.get("target").and_then(Value::as_object);
    let kind = target.map_or("", |target| metadata::text(target, "kind"));
    if !matches!(kind, "" | "Node") {
        let text = format!("target.kind: Unsupported value: {kind:?}: supported values: \"Node\", \"<empty>\"");
        return Err(Status::new(500, "", text));
    }
    match target.map_or("", |target| metadata::text(target, "name")) {
        "" => Err(Status::new(500, "", "target.name: Required value")),
        name => Ok(name.to_owned()),
    }
}
