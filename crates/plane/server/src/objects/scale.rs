//! `scale` of workloads: one shape to read and set the number of replicas of every kind that has them.
//!
//! Rules follow `ScaleREST` in `pkg/registry/apps/deployment/storage/storage.go`, Kubernetes 1.36.

use hotmap_kinds::{scale_of, set_scale, validate_scale};
use hotmap_object::{GroupResource, GroupVersionKind, Status};
use hotmap_schema::Kind;
use serde_json::Value;

use super::{
    Objects, Target, body, metadata,
    metadata::Object,
    options::WriteOptions,
    patch::Patch,
    rendering::plain,
    transaction::{Current, Document},
    update::check_name,
};
use crate::{
    answer::{Answer, Body},
    http::negotiation::{Media, Offer},
    request::ApiRequest,
};

const SCALE: GroupVersionKind = GroupVersionKind::fixed("autoscaling", "v1", "Scale");

impl Objects {
    pub(super) async fn get_scale(&self, request: &ApiRequest) -> Result<Answer, Status> {
        let negotiated = request.accept.negotiate(Offer::Plain)?;
        let object = self.read_one(request).await?;
        answer(&scale_of(&object.value()), negotiated.media)
    }

    pub(super) async fn update_scale(&self, request: &ApiRequest) -> Result<Answer, Status> {
        let negotiated = request.accept.negotiate(Offer::Plain)?;
        let options = WriteOptions::of(&request.query, "UpdateOptions")?;
        let target = Target::of(request)?;
        let mut warnings = Vec::new();
        let sent = body::decode(request, table()?, options.field_validation, &mut warnings)?;
        let wanted = |_: &Object, _: &mut Vec<String>| Ok(sent.clone());
        let scale = self
            .scale(&target, options.dry_run, &mut warnings, wanted)
            .await?;
        answer(&scale, negotiated.media).map(|answer| answer.with_warnings(warnings))
    }

    pub(super) async fn patch_scale(&self, request: &ApiRequest) -> Result<Answer, Status> {
        let negotiated = request.accept.negotiate(Offer::Plain)?;
        let options = WriteOptions::of(&request.query, "PatchOptions")?;
        let target = Target::of(request)?;
        let patch = Patch::of(request)?;
        let schema = table()?;
        let mut warnings = Vec::new();
        let wanted = |current: &Object, warnings: &mut Vec<String>| {
            patch.apply(&target, schema, current, options.field_validation, warnings)
        };
        let scale = self
            .scale(&target, options.dry_run, &mut warnings, wanted)
            .await?;
        answer(&scale, negotiated.media).map(|answer| answer.with_warnings(warnings))
    }

    /// Changes the workload so that it has the scale that `wanted` makes of the present one.
    async fn scale(
        &self,
        target: &Target,
        dry_run: bool,
        warnings: &mut Vec<String>,
        wanted: impl Fn(&Object, &mut Vec<String>) -> Result<Object, Status>,
    ) -> Result<Object, Status> {
        // The workload itself is what changes, by the rules of its own path.
        let workload = Target {
            subresource: "",
            ..target.clone()
        };
        let before = warnings.clone();
        let written = self
            .transact(&workload, dry_run, |current| {
                let current = current.ok_or_else(|| target.not_found())?;
                warnings.clone_from(&before);
                let mut scale = wanted(&scale_of(&current.value), warnings)?;
                check_name(target, &scale)?;
                metadata::ensure_namespace(&mut scale, target.resource, &target.namespace)?;
                check_scale(target, &scale, current)?;
                let mut new = current.value.clone();
                set_scale(&mut new, &scale);
                // Whoever scales has not written the template, and is not told about it.
                self.change(&workload, new, current, &mut Vec::new())
            })
            .await?;
        match written.document {
            Document::Shared(object) => Ok(scale_of(&object.value())),
            Document::Draft(_) => Err(Status::internal("only what exists is scaled")),
        }
    }
}

fn check_scale(target: &Target, scale: &Object, current: &Current) -> Result<(), Status> {
    let errors = validate_scale(scale);
    if !errors.is_empty() {
        return Err(Status::invalid(&SCALE, &target.name, &errors));
    }
    let (sent, held) = (
        metadata::text(metadata::of(scale), "uid"),
        &current.shared.index().uid,
    );
    if sent.is_empty() || *sent == **held {
        return Ok(());
    }
    let resource = GroupResource {
        resource: format!("{}/scale", target.resource.plural).into(),
        ..target.resource.group_resource()
    };
    Err(Status::conflict(
        &resource,
        &target.name,
        format!("Precondition failed: UID in precondition: {sent}, UID in object meta: {held}"),
    ))
}

fn table() -> Result<&'static Kind, Status> {
    hotmap_schema::kind(&SCALE.group, &SCALE.version, &SCALE.kind)
        .ok_or_else(|| Status::internal("there is no table for Scale"))
}

fn answer(scale: &Object, media: Media) -> Result<Answer, Status> {
    let body = plain(&Value::Object(scale.clone()), &SCALE, media)?;
    Ok(Answer::new(200, media.content_type(), Body::Full(body)))
}
