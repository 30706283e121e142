//! PUT, and the rules that every change of an object obeys.
//!
//! Rules follow `apiserver/pkg/registry/rest/update.go` and `apiserver/pkg/registry/generic/registry/store.go`,
//! Kubernetes 1.36.

use hotmap_kinds::{drop_duplicate_owners, validate_update};
use hotmap_object::{FieldError, GroupVersionKind, Status};
use serde_json::Value;

use super::{
    Objects, Target, body, metadata,
    metadata::Object,
    options::{WriteOptions, include_object},
    transaction::{Current, Decision, How},
};
use crate::{answer::Answer, http::negotiation::Offer, request::ApiRequest};

/// The sub-resource of pods that writes a part of their spec.
pub(super) const EPHEMERAL_CONTAINERS: &str = "ephemeralcontainers";

impl Objects {
    pub(super) async fn update(&self, request: &ApiRequest) -> Result<Answer, Status> {
        let negotiated = request.accept.negotiate(Offer::Objects)?;
        let include = include_object(&request.query)?;
        let options = WriteOptions::of(&request.query, "UpdateOptions")?;
        let target = Target::of(request)?;
        let mut warnings = Vec::new();
        let mut sent = body::decode(
            request,
            target.resource.schema,
            options.field_validation,
            &mut warnings,
        )?;
        check_name(&target, &sent)?;
        metadata::ensure_namespace(&mut sent, target.resource, &target.namespace)?;
        warnings.extend(drop_duplicate_owners(&mut sent));
        target.resource.strategy.default(&mut sent);
        let may_create = target.resource.create_on_update && target.subresource.is_empty();
        if may_create && self.cache_of(target.resource)?.get(&target.key).is_none() {
            self.check_namespace(target.resource, &target.namespace, &target.name)
                .await?;
        }
        let written = self
            .transact(&target, options.dry_run, |current| match current {
                Some(current) => {
                    self.check_grant(request, &sent, Some(&current.value))?;
                    let mut new = sent.clone();
                    self.check_signer(request, &mut new, &current.value)?;
                    self.change(&target, new, current, &mut warnings)
                }
                None if may_create && request.may_create => {
                    self.check_grant(request, &sent, None)?;
                    self.begin_by_update(&target, sent.clone(), &mut warnings)
                }
                None if may_create => {
                    let why = format!(
                        "User {:?} cannot create resource {:?} in API group {:?} in the namespace {:?}",
                        request.user.name, target.resource.plural, target.resource.group, target.namespace
                    );
                    Err(Status::forbidden(
                        &target.resource.group_resource(),
                        &target.name,
                        why,
                    ))
                }
                None => Err(target.not_found()),
            })
            .await?;
        let code = if written.how == How::Created { 201 } else { 200 };
        let answer = self.answer(&target, negotiated, include, code, &written.document)?;
        Ok(answer.with_warnings(warnings))
    }

    fn begin_by_update(
        &self,
        target: &Target,
        mut object: Object,
        warnings: &mut Vec<String>,
    ) -> Result<Decision, Status> {
        if !metadata::text(metadata::of(&object), "uid").is_empty() {
            let uid = metadata::text(metadata::of(&object), "uid");
            return Err(uid_mismatch(target, uid, ""));
        }
        metadata::wipe_system_fields(&mut object);
        metadata::fill_system_fields(&mut object, target.resource, self.now())?;
        self.begin(target, object, warnings).map(Decision::Put)
    }

    /// Decides what becomes of an object that is to look like `new`.
    ///
    /// # Errors
    ///
    /// 409 if `new` is about another state or another object, 422 if it breaks rules.
    pub(super) fn change(
        &self,
        target: &Target,
        new: Object,
        current: &Current,
        warnings: &mut Vec<String>,
    ) -> Result<Decision, Status> {
        let old = &current.value;
        check_preconditions(target, &new, current)?;
        let mut new = changed(target, new, old, warnings)?;
        if target.subresource == EPHEMERAL_CONTAINERS {
            self.admit_ephemeral(target.resource, &target.namespace, &mut new)?;
        }
        let is_finished = is_finished(target, &new, old);
        let encoded = self.encode(target, new)?;
        Ok(if is_finished {
            Decision::Delete(Some(encoded))
        } else {
            Decision::Put(encoded)
        })
    }
}

/// The new state as the rules of an update leave it.
fn changed(
    target: &Target,
    mut new: Object,
    old: &Object,
    warnings: &mut Vec<String>,
) -> Result<Object, Status> {
    let strategy = target.resource.strategy;
    let old_metadata = metadata::of(old);
    // A client does not decide the generation.
    metadata::keep(metadata::of_mut(&mut new), old_metadata, "generation");
    strategy.prepare_for_update(&mut new, old, target.subresource);
    let fields = metadata::of_mut(&mut new);
    for field in ["uid", "resourceVersion"] {
        if metadata::text(fields, field).is_empty() {
            metadata::keep(fields, old_metadata, field);
        }
    }
    metadata::keep(fields, old_metadata, "creationTimestamp");
    for field in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        if metadata::has(old_metadata, field) {
            metadata::keep(fields, old_metadata, field);
        }
    }
    for field in ["managedFields", "selfLink"] {
        fields.remove(field);
    }
    let is_whole = target.subresource.is_empty();
    let writes_spec = is_whole || target.subresource == EPHEMERAL_CONTAINERS;
    if target.resource.has_generation && writes_spec && strategy.bumps_generation(&new, old) {
        bump_generation(&mut new);
    }
    let errors = validate_update(&new, old, target.resource, target.subresource);
    if !errors.is_empty() {
        return Err(Status::invalid(&target.resource.gvk(), &target.name, &errors));
    }
    let said = if writes_spec {
        strategy.warnings(&new, Some(old))
    } else {
        Vec::new()
    };
    for warning in said {
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }
    Ok(new)
}

pub(super) fn bump_generation(object: &mut Object) {
    let metadata = metadata::of_mut(object);
    let generation = metadata
        .get("generation")
        .and_then(Value::as_i64)
        .unwrap_or_default();
    metadata.insert("generation".to_owned(), (generation + 1).into());
}

/// The object in the body must be the one in the URL.
pub(super) fn check_name(target: &Target, object: &Object) -> Result<(), Status> {
    let metadata = metadata::of(object);
    let name = metadata::text(metadata, "name");
    if name != target.name {
        return Err(Status::bad_request(format!(
            "the name of the object ({name}) does not match the name on the URL ({})",
            target.name
        )));
    }
    let namespace = metadata::text(metadata, "namespace");
    if !target.namespace.is_empty() && !namespace.is_empty() && namespace != target.namespace {
        return Err(Status::bad_request(format!(
            "the namespace of the object ({namespace}) does not match the namespace on the request ({})",
            target.namespace
        )));
    }
    Ok(())
}

fn check_preconditions(target: &Target, new: &Object, current: &Current) -> Result<(), Status> {
    let fields = metadata::of(new);
    let uid = metadata::text(fields, "uid");
    if !uid.is_empty() && *uid != *current.shared.index().uid {
        return Err(uid_mismatch(target, uid, &current.shared.index().uid));
    }
    let resource = target.resource.group_resource();
    match metadata::text(fields, "resourceVersion") {
        "" | "0" if target.resource.update_needs_revision => {
            let error = FieldError::invalid("metadata.resourceVersion", 0, "must be specified for an update");
            // Upstream names the resource here where a kind belongs.
            let kind = GroupVersionKind {
                kind: resource.resource,
                ..target.resource.gvk()
            };
            Err(Status::invalid(&kind, &target.name, &[error]))
        }
        "" | "0" => Ok(()),
        sent if sent == current.shared.revision().to_string() => Ok(()),
        sent if sent.parse::<u64>().is_err() => Err(Status::bad_request(format!(
            "invalid resource version: {}",
            super::read::unreadable(sent)
        ))),
        _ => Err(Status::modified(&resource, &target.name)),
    }
}

fn uid_mismatch(target: &Target, sent: &str, held: &str) -> Status {
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {sent}, UID in object meta: {held}",
        target.store_key()
    );
    Status::conflict(&target.resource.group_resource(), &target.name, why)
}

/// The change takes the last reason away that kept a deleted object.
fn is_finished(target: &Target, new: &Object, old: &Object) -> bool {
    let before = metadata::of(old);
    let grace = before
        .get("deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or_default();
    metadata::finalizers(metadata::of(new)).is_empty()
        && metadata::has(before, "deletionTimestamp")
        && grace == 0
        && (target.resource.kind != "Namespace" || namespace_finalizers(new).is_empty())
}

/// `spec.finalizers`, which only namespaces have.
pub(super) fn namespace_finalizers(object: &Object) -> &[Value] {
    let spec = object.get("spec").and_then(Value::as_object);
    let held = spec
        .and_then(|spec| spec.get("finalizers"))
        .and_then(Value::as_array);
    held.map_or(&[], Vec::as_slice)
}
