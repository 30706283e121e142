//! DELETE: of one object, or of a selection of them.
//!
//! Rules follow `apiserver/pkg/registry/rest/delete.go`, `apiserver/pkg/registry/generic/registry/store.go`,
//! `pkg/registry/core/{pod/strategy,namespace/storage/storage}.go`, Kubernetes 1.36.

use futures_util::{StreamExt, TryStreamExt, stream};
use hotmap_object::{FieldError, GroupResource, GroupVersionKind, Status, timestamp};
use hotmap_schema::{conform, decode_protobuf, envelope, json, kind, yaml};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::{
    Objects, Target, metadata,
    metadata::Object,
    options::{self, ListOptions, check_dry_run, include_object},
    read::render_list,
    rendering::{Rendering, plain},
    selector::Selector,
    transaction::{Current, Decision, Document, How, Written},
    update::{bump_generation, namespace_finalizers},
};
use crate::{
    answer::{Answer, Body},
    http::negotiation::{Media, Offer},
    request::{ApiRequest, Query},
};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// Namespaces that stay.
const IMMORTAL_NAMESPACES: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Deletes of one request that are under way at once: enough to share disk commits, few enough to leave room for others.
const CONCURRENT_DELETES: usize = 64;

/// `DeleteOptions`.
#[derive(Debug, Clone, Default)]
pub(super) struct DeleteOptions {
    grace_period_seconds: Option<i64>,
    propagation_policy: Option<String>,
    orphan_dependents: Option<bool>,
    uid: Option<String>,
    resource_version: Option<String>,
    pub(super) dry_run: bool,
}

impl Objects {
    pub(super) async fn delete(&self, request: &ApiRequest) -> Result<Answer, Status> {
        let negotiated = request.accept.negotiate(Offer::Objects)?;
        let include = include_object(&request.query)?;
        let options = DeleteOptions::of(request)?;
        let target = Target::of(request)?;
        let written = self.delete_object(&target, &options).await?;
        let code = if written.how != How::Deleted && options.orphan_dependents == Some(false) {
            202
        } else {
            200
        };
        if written.how == How::Deleted && !target.resource.delete_returns_object {
            let Document::Shared(shared) = &written.document else {
                return Err(Status::internal("only what exists is deleted"));
            };
            let body = plain(
                &success(target.resource, &shared.index().name, &shared.index().uid),
                &STATUS,
                negotiated.media,
            )?;
            let answer = Answer::new(code, negotiated.media.content_type(), Body::Full(body));
            return Ok(answer.with_warnings(orphan_warnings(target.resource, &options)));
        }
        let answer = self.answer(&target, negotiated, include, code, &written.document)?;
        Ok(answer.with_warnings(orphan_warnings(target.resource, &options)))
    }

    /// Deletes what the list options select, one after the other, and answers with what was selected.
    pub(super) async fn delete_collection(&self, request: &ApiRequest) -> Result<Answer, Status> {
        let negotiated = request.accept.negotiate(Offer::Objects)?;
        let include = include_object(&request.query)?;
        let list_options = ListOptions::of(&request.query, false)?;
        let options = DeleteOptions::of(request)?;
        let cache = self.cache_of(request.resource)?;
        let selector = Selector::new(request.resource, request.namespace.as_deref(), &list_options)?;
        let (page, meta) = self.page(cache, &selector, &list_options).await?;
        let targets = page.items.iter().map(|item| {
            let index = item.index();
            Target::new(
                request.resource,
                "",
                index.namespace.to_string(),
                index.name.to_string(),
            )
        });
        // Owned, so that the stream borrows nothing but `self` and the options.
        let targets: Vec<Target> = targets.collect();
        stream::iter(targets)
            .map(|target| {
                let options = &options;
                async move {
                    match self.delete_object(&target, options).await {
                        Err(gone) if gone.code == 404 => Ok(()),
                        deleted => deleted.map(drop),
                    }
                }
            })
            .buffer_unordered(CONCURRENT_DELETES)
            .try_collect::<()>()
            .await?;
        let rendering = Rendering {
            resource: request.resource,
            stored: cache.resource(),
            negotiated,
            include,
            now: self.now(),
        };
        let body = render_list(rendering, page.items, meta).await?;
        let answer = Answer::ok(negotiated.media.content_type(), body);
        Ok(answer.with_warnings(orphan_warnings(request.resource, &options)))
    }

    async fn delete_object(&self, target: &Target, options: &DeleteOptions) -> Result<Written, Status> {
        let is_namespace = target.resource.kind == "Namespace";
        if is_namespace && IMMORTAL_NAMESPACES.contains(&&*target.name) {
            let why = "this namespace may not be deleted";
            return Err(Status::forbidden(
                &target.resource.group_resource(),
                &target.name,
                why,
            ));
        }
        let decided = self.transact(target, options.dry_run, |current| {
            let current = current.ok_or_else(|| target.not_found())?;
            check_preconditions(target, options, current)?;
            let next = if is_namespace {
                next_of_namespace(&current.value, options, self.now())
            } else {
                next(target, &current.value, options, self.now())
            };
            Ok(match next {
                Next::Keep => Decision::Keep,
                Next::Delete => Decision::Delete(None),
                Next::Put(object) => Decision::Put(self.encode(target, object)?),
            })
        });
        decided.await
    }
}

const STATUS: GroupVersionKind = GroupVersionKind::fixed("", "v1", "Status");

fn success(resource: &hotmap_kinds::Resource, name: &str, uid: &str) -> Value {
    let mut details = Map::new();
    details.insert("name".to_owned(), name.into());
    if !resource.group.is_empty() {
        details.insert("group".to_owned(), resource.group.into());
    }
    details.insert("kind".to_owned(), resource.plural.into());
    details.insert("uid".to_owned(), uid.into());
    json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
}

/// What a delete makes of an object.
pub(super) enum Next {
    Keep,
    Put(Object),
    Delete,
}

pub(super) fn next(target: &Target, current: &Object, options: &DeleteOptions, now: Timestamp) -> Next {
    let mut object = current.clone();
    let grace = match target.resource.kind {
        "Pod" => grace(&mut object, options, now),
        _ => Grace::None,
    };
    if matches!(grace, Grace::Pending) {
        return Next::Keep;
    }
    let finalizer = wanted_finalizer(target.resource, &object, options);
    set_collector_finalizers(&mut object, finalizer);
    let is_held = !metadata::finalizers(metadata::of(&object)).is_empty();
    match grace {
        Grace::Seconds(seconds) if seconds > 0 || is_held => Next::Put(object),
        Grace::None if is_held => {
            mark_as_deleting(&mut object, now);
            Next::Put(object)
        }
        _ => Next::Delete,
    }
}

/// The first delete starts the end of a namespace; whoever empties it takes the last finalizer away.
fn next_of_namespace(current: &Object, options: &DeleteOptions, now: Timestamp) -> Next {
    let mut object = current.clone();
    if metadata::has(metadata::of(&object), "deletionTimestamp") {
        let is_held = !namespace_finalizers(&object).is_empty()
            || !metadata::finalizers(metadata::of(&object)).is_empty();
        return if is_held { Next::Keep } else { Next::Delete };
    }
    metadata::of_mut(&mut object).insert("deletionTimestamp".to_owned(), timestamp::seconds(now).into());
    let status = object.entry("status").or_insert_with(|| json!({}));
    status["phase"] = "Terminating".into();
    let finalizer = match options.orphan_dependents {
        // Upstream's namespaces take the old option at its word, unlike all other kinds.
        Some(false) => Some(FOREGROUND),
        _ => finalizer_by_options(&object, options).unwrap_or_default(),
    };
    set_collector_finalizers(&mut object, finalizer);
    Next::Put(object)
}

enum Grace {
    /// The kind or the object's state leaves none.
    None,
    /// A deletion is under way and this one does not hasten it.
    Pending,
    /// Metadata says so now.
    Seconds(i64),
}

fn grace(object: &mut Object, options: &DeleteOptions, now: Timestamp) -> Grace {
    let wanted = options
        .grace_period_seconds
        .map(|seconds| if seconds < 0 { 1 } else { seconds });
    if metadata::has(metadata::of(object), "deletionTimestamp") {
        return shortened(object, wanted, now);
    }
    let spec = object.get("spec").and_then(Value::as_object);
    let own = spec
        .and_then(|spec| spec.get("terminationGracePeriodSeconds"))
        .and_then(Value::as_i64);
    let is_bound = spec.is_some_and(|spec| !metadata::text(spec, "nodeName").is_empty());
    let phase = object
        .get("status")
        .and_then(Value::as_object)
        .map_or("", |status| metadata::text(status, "phase"));
    let seconds = match wanted.or(own).unwrap_or_default() {
        _ if !is_bound || matches!(phase, "Failed" | "Succeeded") => 0,
        seconds if seconds < 0 => 1,
        seconds => seconds,
    };
    let ends = now
        .saturating_add(SignedDuration::from_secs(seconds))
        .unwrap_or(Timestamp::MAX);
    set_deletion(object, ends, seconds);
    bump_generation_if_counted(object);
    Grace::Seconds(seconds)
}

/// A pending deletion can only be hastened.
fn shortened(object: &mut Object, wanted: Option<i64>, now: Timestamp) -> Grace {
    let held = metadata::of(object);
    let pending = held
        .get("deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or_default();
    let ends: Option<Timestamp> = metadata::text(held, "deletionTimestamp").parse().ok();
    if pending == 0 {
        return Grace::None;
    }
    let Some(wanted) = wanted.filter(|wanted| *wanted < pending) else {
        return Grace::Pending;
    };
    let sooner = ends.and_then(|ends| ends.checked_sub(SignedDuration::from_secs(pending - wanted)).ok());
    match sooner.filter(|sooner| *sooner >= now) {
        Some(sooner) => {
            set_deletion(object, sooner, wanted);
            Grace::Seconds(wanted)
        }
        None => {
            // The period is over already: the least that still lets the node end the pod itself.
            let least = if wanted == 0 { 0 } else { 1 };
            set_deletion(object, now, least);
            Grace::Seconds(least)
        }
    }
}

fn set_deletion(object: &mut Object, at: Timestamp, grace_seconds: i64) {
    let metadata = metadata::of_mut(object);
    metadata.insert("deletionTimestamp".to_owned(), timestamp::seconds(at).into());
    metadata.insert("deletionGracePeriodSeconds".to_owned(), grace_seconds.into());
}

fn mark_as_deleting(object: &mut Object, now: Timestamp) {
    let since: Option<Timestamp> = metadata::text(metadata::of(object), "deletionTimestamp")
        .parse()
        .ok();
    if since.is_none() {
        bump_generation_if_counted(object);
    }
    let at = since.filter(|since| *since <= now).unwrap_or(now);
    set_deletion(object, at, 0);
}

fn bump_generation_if_counted(object: &mut Object) {
    if metadata::of(object)
        .get("generation")
        .and_then(Value::as_i64)
        .is_some_and(|generation| generation > 0)
    {
        bump_generation(object);
    }
}

/// What is said to who deletes Jobs and does not say what becomes of their pods; upstream's sentence.
fn orphan_warnings(resource: &hotmap_kinds::Resource, options: &DeleteOptions) -> Vec<String> {
    let is_said = options.orphan_dependents.is_some() || options.propagation_policy.is_some();
    match (resource.group, resource.kind) {
        ("batch", "Job") if !is_said => vec![
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set propagationPolicy=Orphan to suppress this warning"
                .to_owned(),
        ],
        _ => Vec::new(),
    }
}

/// Whether dependents stay if nobody says what becomes of them: so it was when these kinds were new.
fn orphans_by_default(resource: &hotmap_kinds::Resource) -> bool {
    matches!(
        (resource.group, resource.kind),
        ("batch", "Job") | ("", "ReplicationController")
    )
}

/// The finalizer that makes the garbage collector act before the object goes.
fn wanted_finalizer(
    resource: &hotmap_kinds::Resource,
    object: &Object,
    options: &DeleteOptions,
) -> Option<&'static str> {
    // Events own nothing, and nothing that holds them would ever be taken off.
    if resource.kind == "Event" {
        return None;
    }
    finalizer_by_options(object, options).unwrap_or_else(|| orphans_by_default(resource).then_some(ORPHAN))
}

/// As the options say; without any as the object says, and nothing if that says nothing either.
fn finalizer_by_options(object: &Object, options: &DeleteOptions) -> Option<Option<&'static str>> {
    match (options.orphan_dependents, options.propagation_policy.as_deref()) {
        (Some(true), _) | (None, Some("Orphan")) => Some(Some(ORPHAN)),
        (None, Some("Foreground")) => Some(Some(FOREGROUND)),
        (Some(false), _) | (None, Some(_)) => Some(None),
        (None, None) => {
            let held = metadata::finalizers(metadata::of(object));
            let ours = [ORPHAN, FOREGROUND].into_iter().find(|one| held.contains(one));
            ours.map(Some)
        }
    }
}

/// Leaves the object this one of the collector's finalizers, and those of others.
fn set_collector_finalizers(object: &mut Object, wanted: Option<&'static str>) {
    let held: Vec<String> = metadata::finalizers(metadata::of(object))
        .into_iter()
        .map(str::to_owned)
        .collect();
    let others = held
        .iter()
        .filter(|one| !matches!(one.as_str(), ORPHAN | FOREGROUND));
    let mut now: Vec<Value> = others.map(|one| one.as_str().into()).collect();
    now.extend(wanted.map(Value::from));
    if now.len() == held.len() && held.iter().all(|one| now.iter().any(|new| new == one)) {
        return;
    }
    let metadata = metadata::of_mut(object);
    if now.is_empty() {
        metadata.remove("finalizers");
    } else {
        metadata.insert("finalizers".to_owned(), now.into());
    }
}

pub(super) fn check_preconditions(
    target: &Target,
    options: &DeleteOptions,
    current: &Current,
) -> Result<(), Status> {
    let is_namespace = target.resource.kind == "Namespace";
    // Upstream names the kind here where the resource belongs.
    let resource = match is_namespace {
        true => target.resource.group_resource(),
        false => GroupResource::fixed(target.resource.group, target.resource.kind),
    };
    let conflict = |why: String| Err(Status::conflict(&resource, &target.name, why));
    let held = &*current.shared.index().uid;
    if let Some(uid) = options.uid.as_deref().filter(|uid| *uid != held) {
        return conflict(match is_namespace {
            true => format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {held}"),
            false => format!(
                "the UID in the precondition ({uid}) does not match the UID in record ({held}). The object might have been deleted and then recreated"
            ),
        });
    }
    let held = current.shared.revision().to_string();
    if let Some(sent) = options.resource_version.as_deref().filter(|sent| *sent != held) {
        return conflict(match is_namespace {
            true => format!(
                "Precondition failed: ResourceVersion in precondition: {sent}, ResourceVersion in object meta: {held}"
            ),
            false => format!(
                "the ResourceVersion in the precondition ({sent}) does not match the ResourceVersion in record ({held}). The object might have been modified"
            ),
        });
    }
    Ok(())
}

impl DeleteOptions {
    /// From the body, or from the query where there is none.
    ///
    /// # Errors
    ///
    /// 400 for what cannot be read, 415 for an unknown media type, 422 for options that make no sense.
    fn of(request: &ApiRequest) -> Result<Self, Status> {
        let sent = match request.body.is_empty() {
            true => from_query(&request.query)?,
            false => from_body(request)?,
        };
        let mut errors = Vec::new();
        let options = Self::read(&sent, &mut errors);
        options::invalid("DeleteOptions", errors)?;
        Ok(options)
    }

    /// From options that have the shape of their schema.
    pub(super) fn read(sent: &Object, errors: &mut Vec<FieldError>) -> Self {
        let text = |object: &Object, key: &str| {
            Some(metadata::text(object, key).to_owned()).filter(|text| !text.is_empty())
        };
        let preconditions = sent.get("preconditions").and_then(Value::as_object);
        let dry_run: Vec<&str> = sent
            .get("dryRun")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let options = Self {
            grace_period_seconds: sent.get("gracePeriodSeconds").and_then(Value::as_i64),
            propagation_policy: text(sent, "propagationPolicy"),
            orphan_dependents: sent.get("orphanDependents").and_then(Value::as_bool),
            uid: preconditions.and_then(|held| text(held, "uid")),
            resource_version: preconditions.and_then(|held| text(held, "resourceVersion")),
            dry_run: !dry_run.is_empty(),
        };
        if let Some(policy) = &options.propagation_policy {
            if options.orphan_dependents.is_some() {
                let detail = "orphanDependents and deletionPropagation cannot be both set";
                errors.push(FieldError::invalid("propagationPolicy", policy.as_str(), detail));
            }
            if !matches!(policy.as_str(), "Foreground" | "Background" | "Orphan") {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                errors.push(FieldError::not_supported(
                    "propagationPolicy",
                    policy.as_str(),
                    &supported,
                ));
            }
        }
        check_dry_run(&dry_run, errors);
        options
    }
}

fn from_query(query: &Query) -> Result<Object, Status> {
    let mut sent = Object::new();
    if let Some(raw) = query.text("gracePeriodSeconds") {
        let seconds: i64 = raw
            .parse()
            .map_err(|_| Status::bad_request(format!("strconv.ParseInt: parsing {raw:?}: invalid syntax")))?;
        sent.insert("gracePeriodSeconds".to_owned(), seconds.into());
    }
    if let Some(policy) = query.text("propagationPolicy") {
        sent.insert("propagationPolicy".to_owned(), policy.into());
    }
    if query.get("orphanDependents").is_some() {
        sent.insert(
            "orphanDependents".to_owned(),
            query.flag("orphanDependents").into(),
        );
    }
    let dry_run: Vec<&str> = query.all("dryRun").collect();
    if !dry_run.is_empty() {
        sent.insert("dryRun".to_owned(), dry_run.into());
    }
    Ok(sent)
}

fn from_body(request: &ApiRequest) -> Result<Object, Status> {
    let table = kind("meta.k8s.io", "v1", "DeleteOptions")
        .ok_or_else(|| Status::internal("there is no table for DeleteOptions"))?;
    let bad = |error: &dyn std::fmt::Display| Status::bad_request(error.to_string());
    let value = match Media::of_body(request.content_type.as_deref())? {
        Media::Json => json::parse(&request.body).map_err(|error| bad(&error))?.0,
        Media::Yaml => yaml::parse(&request.body).map_err(|error| bad(&error))?.0,
        Media::Protobuf => {
            let unknown = envelope::unwrap(&request.body).map_err(|error| bad(&error))?;
            check_kind(unknown.kind)?;
            decode_protobuf(table.message, unknown.raw).map_err(|error| bad(&error))?
        }
    };
    check_kind(value.get("kind").and_then(Value::as_str).unwrap_or_default())?;
    let conformed = conform(value, table.message).map_err(|error| bad(&super::body::type_error(&error)))?;
    match conformed.value {
        Value::Object(sent) => Ok(sent),
        _ => Ok(Object::new()),
    }
}

fn check_kind(kind: &str) -> Result<(), Status> {
    match kind {
        "" | "DeleteOptions" => Ok(()),
        _ => Err(Status::bad_request(
            "decoded object cannot be converted to DeleteOptions",
        )),
    }
}
