//! POST: an object begins.

use hotmap_kinds::{Resource, drop_duplicate_owners, find, validate_create};
use hotmap_object::{Status, StatusCause};
use serde_json::Value;

use super::{
    Objects, Target, body, metadata,
    metadata::Object,
    options::{WriteOptions, include_object},
    transaction::{Current, Decision, Encoded, Written},
};
use crate::{answer::Answer, http::negotiation::Offer, request::ApiRequest};

/// Generated names that are tried before the client is told to try again.
const NAME_TRIES_MAX: usize = 8;

impl Objects {
    pub(super) async fn create(&self, request: &ApiRequest) -> Result<Answer, Status> {
        let negotiated = request.accept.negotiate(Offer::Objects)?;
        let include = include_object(&request.query)?;
        let options = WriteOptions::of(&request.query, "CreateOptions")?;
        let mut warnings = Vec::new();
        let mut object = body::decode(
            request,
            request.resource.schema,
            options.field_validation,
            &mut warnings,
        )?;
        let namespace = request.namespace.as_deref().unwrap_or_default();
        self.check_grant(request, &object, None)?;
        self.note_requester(request, &mut object)?;
        let created = self
            .create_object(
                request.resource,
                namespace,
                object,
                options.dry_run,
                &mut warnings,
            )
            .await;
        let (target, written) = created?;
        let answer = self.answer(&target, negotiated, include, 201, &written.document)?;
        Ok(answer.with_warnings(warnings))
    }

    /// Creates a canonical object. `namespace` is empty for cluster-scoped kinds.
    pub(super) async fn create_object(
        &self,
        resource: &'static Resource,
        namespace: &str,
        mut object: Object,
        dry_run: bool,
        warnings: &mut Vec<String>,
    ) -> Result<(Target, Written), Status> {
        if !matches!(metadata::text(metadata::of(&object), "resourceVersion"), "" | "0") {
            return Err(Status::new(
                500,
                "",
                "resourceVersion should not be set on objects to be created",
            ));
        }
        metadata::wipe_system_fields(&mut object);
        metadata::ensure_namespace(&mut object, resource, namespace)?;
        warnings.extend(drop_duplicate_owners(&mut object));
        resource.strategy.default(&mut object);
        let given = metadata::of(&object);
        let name = metadata::text(given, "name").to_owned();
        let prefix = metadata::text(given, "generateName").to_owned();
        self.check_namespace(resource, namespace, &name).await?;
        self.admit(resource, namespace, &mut object, dry_run).await?;
        metadata::fill_system_fields(&mut object, resource, self.now())?;
        let is_generated = name.is_empty() && !prefix.is_empty();
        for attempt in 1.. {
            let name = if is_generated {
                metadata::generate_name(&prefix)?
            } else {
                name.clone()
            };
            let target = Target::new(resource, "", namespace.to_owned(), name);
            let encoded = self.begin(
                &target,
                if is_generated {
                    object.clone()
                } else {
                    std::mem::take(&mut object)
                },
                warnings,
            )?;
            let created = self
                .transact(&target, dry_run, |current| decide(&target, current, &encoded))
                .await;
            match created {
                Err(taken) if is_generated && taken.reason == "AlreadyExists" => {
                    if attempt == NAME_TRIES_MAX {
                        let message = format!(
                            "{}, the server was not able to generate a unique name for the object",
                            taken.message
                        );
                        return Err(Status { message, ..taken }.retry_after(1));
                    }
                }
                created => {
                    let written = created?;
                    if resource.kind == "Namespace" && !dry_run {
                        self.begin_namespace(&target.name).await;
                    }
                    return Ok((target, written));
                }
            }
        }
        unreachable!("the last try returns")
    }

    /// The namespace stands whatever becomes of this: the account is made up for with the first pod, and controllers see
    /// to both.
    async fn begin_namespace(&self, name: &str) {
        if let Err(error) = self.ensure_namespace_defaults(name).await {
            tracing::warn!(namespace = name, %error, "a new namespace lacks what every namespace has");
        }
    }

    /// The rules of a new object; `object` has everything but its name.
    pub(super) fn begin(
        &self,
        target: &Target,
        mut object: Object,
        warnings: &mut Vec<String>,
    ) -> Result<Encoded, Status> {
        let resource = target.resource;
        if !target.name.is_empty() {
            metadata::of_mut(&mut object).insert("name".to_owned(), target.name.clone().into());
        }
        resource.strategy.prepare_for_create(&mut object);
        let errors = validate_create(&object, resource);
        if !errors.is_empty() {
            return Err(Status::invalid(&resource.gvk(), &target.name, &errors));
        }
        for warning in resource.strategy.warnings(&object, None) {
            if !warnings.contains(&warning) {
                warnings.push(warning);
            }
        }
        self.encode(target, object)
    }

    /// The namespace must exist and must not be on its way out. Follows
    /// `apiserver/pkg/admission/plugin/namespace/lifecycle/admission.go`, Kubernetes 1.36.
    pub(super) async fn check_namespace(
        &self,
        resource: &Resource,
        namespace: &str,
        name: &str,
    ) -> Result<(), Status> {
        if !resource.namespaced || namespace.is_empty() {
            return Ok(());
        }
        let namespaces = find("", "v1", "namespaces").expect("namespaces are served");
        let cache = self.cache_of(namespaces)?;
        // What the cache shows may be a moment old: only a refusal needs the newest state.
        if cache.get(namespace).is_some_and(|held| !held.index().is_deleting) {
            return Ok(());
        }
        self.cache.fresh().await?;
        match cache.get(namespace) {
            None => Err(Status::not_found(&namespaces.group_resource(), namespace)),
            Some(held) if held.index().is_deleting => Err(terminating(resource, namespace, name)),
            Some(_) => Ok(()),
        }
    }
}

fn decide(target: &Target, current: Option<&Current>, encoded: &Encoded) -> Result<Decision, Status> {
    let Some(current) = current else {
        return Ok(Decision::Put(encoded.clone()));
    };
    let mut taken = Status::already_exists(&target.resource.group_resource(), &target.name);
    if current.shared.index().is_deleting {
        taken.message.insert_str(0, "object is being deleted: ");
    }
    Err(taken)
}

fn terminating(resource: &Resource, namespace: &str, name: &str) -> Status {
    let message =
        format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut status = Status::forbidden(&resource.group_resource(), name, message);
    let cause = StatusCause {
        reason: "NamespaceTerminating".to_owned(),
        message: format!("namespace {namespace} is being terminated"),
        field: "metadata.namespace".to_owned(),
    };
    status.details.get_or_insert_default().causes.push(cause);
    status
}

/// A minimal object.
pub(super) fn named(resource: &Resource, name: &str) -> Object {
    let gvk = resource.gvk();
    let mut object = Object::new();
    object.insert("kind".to_owned(), Value::from(gvk.kind.as_ref()));
    object.insert("apiVersion".to_owned(), gvk.api_version().into());
    metadata::of_mut(&mut object).insert("name".to_owned(), name.into());
    object
}
