//! PATCH: a change described by what differs.
//!
//! Rules follow `apiserver/pkg/endpoints/handlers/patch.go`, Kubernetes 1.36.

use hotmap_object::{FieldError, GroupVersionKind, Status};
use hotmap_patch::{PatchError, json_patch, json_patch_unknown_fields, merge_patch, strategic_merge_patch};
use hotmap_schema::{Kind, json};
use serde_json::Value;

use super::{
    Objects, Target, body, metadata,
    metadata::Object,
    options::{FieldValidation, WriteOptions, include_object},
    update::check_name,
};
use crate::{answer::Answer, http::negotiation::Offer, request::ApiRequest};

/// As error texts list them.
const MEDIA_TYPES: &str =
    "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Merge,
    Strategic,
}

/// A patch that has been read but not yet applied.
pub(super) struct Patch {
    form: Form,
    value: Value,
    /// What strict decoding has against the patch itself.
    problems: Vec<String>,
}

impl Objects {
    pub(super) async fn patch(&self, request: &ApiRequest) -> Result<Answer, Status> {
        let patch = Patch::of(request)?;
        let negotiated = request.accept.negotiate(Offer::Objects)?;
        let include = include_object(&request.query)?;
        let options = WriteOptions::of(&request.query, "PatchOptions")?;
        let target = Target::of(request)?;
        let mut warnings = Vec::new();
        let written = self
            .transact(&target, options.dry_run, |current| {
                let current = current.ok_or_else(|| target.not_found())?;
                warnings.clear();
                let mut new = patch.apply(
                    &target,
                    target.resource.schema,
                    &current.value,
                    options.field_validation,
                    &mut warnings,
                )?;
                check_name(&target, &new)?;
                warnings.extend(hotmap_kinds::drop_duplicate_owners(&mut new));
                target.resource.strategy.default(&mut new);
                self.check_grant(request, &new, Some(&current.value))?;
                self.check_signer(request, &mut new, &current.value)?;
                self.change(&target, new, current, &mut warnings)
            })
            .await?;
        let answer = self.answer(&target, negotiated, include, 200, &written.document)?;
        Ok(answer.with_warnings(warnings))
    }
}

impl Patch {
    /// # Errors
    ///
    /// 415 for an unknown form, 400 for what is no JSON.
    pub(super) fn of(request: &ApiRequest) -> Result<Self, Status> {
        Self::read(form(request.content_type.as_deref())?, &request.body)
    }

    fn read(form: Form, bytes: &[u8]) -> Result<Self, Status> {
        let (value, duplicates) = json::parse(bytes)
            .map_err(|error| Status::bad_request(format!("error decoding patch: {error}")))?;
        let mut problems: Vec<String> = duplicates.iter().map(|duplicate| duplicate.to_string()).collect();
        if form == Form::Json {
            problems = problems
                .into_iter()
                .map(|problem| format!("json patch {problem}"))
                .collect();
            problems.extend(json_patch_unknown_fields(&value));
        }
        Ok(Self {
            form,
            value,
            problems,
        })
    }

    /// The object of this schema as the patch makes it, in canonical form. The state it was read at is no longer part of it, unless
    /// the patch itself names one.
    pub(super) fn apply(
        &self,
        target: &Target,
        schema: &'static Kind,
        current: &Object,
        validation: FieldValidation,
        warnings: &mut Vec<String>,
    ) -> Result<Object, Status> {
        let original = Value::Object(current.clone());
        let patched = match self.form {
            Form::Json => json_patch(original, &self.value),
            Form::Merge => merge_patch(original, &self.value),
            Form::Strategic => strategic_merge_patch(original, self.value.clone(), schema.message),
        };
        let patched = patched.map_err(refused)?;
        let shown = || match target.resource.kind {
            // An answer may end in a log; a Secret's values may not.
            "Secret" => Value::from("(not shown)"),
            _ => Value::from(patched.to_string()),
        };
        let checked = body::canonical(patched.clone(), schema, &[]);
        let checked = checked.map_err(|error| unprocessable(shown(), &body::type_error(&error)))?;
        if ["kind", "apiVersion"]
            .iter()
            .any(|key| patched.get(key) != current.get(*key))
        {
            let text = "the patch may not change the kind and apiVersion of the object";
            return Err(unprocessable(shown(), text));
        }
        let problems: Vec<String> = self.problems.iter().cloned().chain(checked.problems).collect();
        match validation {
            FieldValidation::Strict if !problems.is_empty() => {
                let why = format!("strict decoding error: {}", problems.join(", "));
                return Err(unprocessable(shown(), &why));
            }
            FieldValidation::Warn => warnings.extend(problems),
            FieldValidation::Strict | FieldValidation::Ignore => {}
        }
        let mut object = checked.object;
        metadata::ensure_namespace(&mut object, target.resource, &target.namespace)?;
        Ok(object)
    }
}

fn form(content_type: Option<&str>) -> Result<Form, Status> {
    match content_type {
        Some("application/json-patch+json") => Ok(Form::Json),
        Some("application/merge-patch+json") => Ok(Form::Merge),
        Some("application/strategic-merge-patch+json") => Ok(Form::Strategic),
        Some("application/apply-patch+yaml") => {
            let mut status = Status::unsupported_media_type(MEDIA_TYPES);
            status
                .message
                .insert_str(0, "server-side apply is not supported by this server yet: ");
            Err(status)
        }
        _ => Err(Status::unsupported_media_type(MEDIA_TYPES)),
    }
}

fn refused(error: PatchError) -> Status {
    let message = error.to_string();
    match (error.http_code(), &error) {
        (413, _) => Status::new(413, "RequestEntityTooLarge", message),
        // Upstream's generic sentence of this code; beside it what failed, in a form that kubectl prints.
        (422, PatchError::OperationFailed { .. }) => {
            let text = "the server rejected our request due to an error in our request";
            let mut status = Status::new(422, "Invalid", text);
            let cause = hotmap_object::StatusCause {
                reason: "FieldValueInvalid".to_owned(),
                message,
                field: "patch".to_owned(),
            };
            status.details.get_or_insert_default().causes.push(cause);
            status
        }
        (422, _) => Status::new(422, "Invalid", message),
        _ => Status::bad_request(message),
    }
}

fn unprocessable(shown: Value, why: &str) -> Status {
    let error = FieldError::invalid("patch", shown, why);
    Status::invalid(&GroupVersionKind::fixed("", "", ""), "", &[error])
}
