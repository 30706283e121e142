//! POST serviceaccounts/NAME/token: a token for an account, for a while, perhaps bound to something that ends it.
//!
//! Rules and texts follow `pkg/registry/core/serviceaccount/storage/token.go`,
//! `pkg/apis/authentication/validation/validation.go` and, for nodes, `plugin/pkg/admission/noderestriction/admission.go`,
//! Kubernetes 1.36.

use std::sync::Arc;

use hotmap_kinds::find;
use hotmap_object::{FieldError, GroupResource, GroupVersionKind, Object as Shared, Status, timestamp};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::{Objects, Target, body, metadata, options::WriteOptions};
use crate::{
    answer::{Answer, Body},
    authorization,
    http::{encoding, negotiation::Offer},
    request::ApiRequest,
    tokens::{Bound, Claims, Held, Reference, Tokens, api_audiences},
};

const TOKEN_REQUEST: GroupVersionKind =
    GroupVersionKind::fixed("authentication.k8s.io", "v1", "TokenRequest");
const SERVICE_ACCOUNTS: GroupResource = GroupResource::fixed("", "serviceaccounts");
const SECONDS_DEFAULT: i64 = 60 * 60;
const SECONDS_MIN: i64 = 10 * 60;
const SECONDS_MAX: i64 = 1 << 32;
/// What the admission of pods asks for: such a token lives on for a year, so that programs which read it only once go on
/// working, and says since when it should have been read again.
const SECONDS_OF_ADMISSION: i64 = 60 * 60 + 7;
const SECONDS_EXTENDED: i64 = 365 * 24 * 60 * 60;

impl Objects {
    /// 201 with the request, its defaults and the token.
    ///
    /// # Errors
    ///
    /// 404 for an account or bound object that is not there, 409 for one with another uid, 422 for a time out of bounds,
    /// 400 for a kind that binds nothing, 403 for a node that asks for what is not its pods'.
    pub(crate) async fn request_token(
        &self,
        request: &ApiRequest,
        tokens: &Tokens,
    ) -> Result<Answer, Status> {
        let negotiated = request.accept.negotiate(Offer::Plain)?;
        let options = WriteOptions::of(&request.query, "CreateOptions")?;
        let target = Target::of(request)?;
        let table = hotmap_schema::kind("authentication.k8s.io", "v1", "TokenRequest")
            .ok_or_else(|| Status::internal("there is no table for TokenRequest"))?;
        let mut warnings = Vec::new();
        let asked = body::decode(request, table, options.field_validation, &mut warnings)?;
        check_names(&target, metadata::of(&asked))?;
        // What was made a moment ago by another server on the same store counts.
        self.cache.fresh().await?;
        let account = self
            .held("serviceaccounts", &target.namespace, &target.name)
            .ok_or_else(|| Status::not_found(&SERVICE_ACCOUNTS, &target.name))?;
        check_uid(&target, metadata::of(&asked), &account)?;
        let spec = Spec::read(&asked)?;
        if let Some(node) = authorization::node_name(&request.user) {
            self.admit_node(node, &target, &spec)?;
        }
        let bound = self.bound_object(&target, &spec)?;
        let now = self.now();
        let (seconds, warn_after) = spec.life(&bound);
        let mut claims = Claims::new(
            &target.namespace,
            reference(&account),
            bound,
            spec.audiences.clone(),
            now,
            seconds,
        )?;
        claims.kubernetes.warnafter = warn_after.map(|after| now.as_second() + after);
        let token = tokens.issue(&claims)?;
        let document = document(&target, &account, &spec, &token, now);
        let body = encoding::encode(&document, &TOKEN_REQUEST, negotiated.media)?;
        let answer = Answer::new(201, negotiated.media.content_type(), Body::Full(body));
        Ok(answer.with_warnings(warnings))
    }

    fn bound_object(&self, target: &Target, spec: &Spec) -> Result<Bound, Status> {
        let Some(wanted) = &spec.bound else {
            return Ok(Bound::Nothing);
        };
        let (plural, namespace) = match (wanted.group.as_str(), wanted.kind.as_str()) {
            ("", "Pod") => ("pods", target.namespace.as_str()),
            ("", "Secret") => ("secrets", target.namespace.as_str()),
            ("", "Node") => ("nodes", ""),
            _ => {
                let Wanted {
                    group, version, kind, ..
                } = wanted;
                return Err(Status::bad_request(format!(
                    "cannot bind token to object of type {group}/{version}, Kind={kind}"
                )));
            }
        };
        let found = self
            .held(plural, namespace, &wanted.name)
            .ok_or_else(|| Status::not_found(&GroupResource::fixed("", plural), &wanted.name))?;
        let mut node = None;
        if plural == "pods" {
            let pod = found.value();
            if text(&pod["spec"], "serviceAccountName") != target.name {
                return Err(Status::bad_request(format!(
                    "cannot bind token for serviceaccount {:?} to pod running with different serviceaccount name.",
                    target.name
                )));
            }
            node = Some(text(&pod["spec"], "nodeName").to_owned()).filter(|name| !name.is_empty());
        }
        if !wanted.uid.is_empty() && *wanted.uid != *found.index().uid {
            let of = GroupResource {
                group: "".into(),
                resource: wanted.kind.clone().into(),
            };
            return Err(Status::conflict(&of, &wanted.name, recreated(&wanted.uid)));
        }
        let bound = reference(&found);
        Ok(match plural {
            "pods" => Bound::Pod {
                pod: bound,
                node: node.map(|name| match self.held("nodes", "", &name) {
                    Some(node) => reference(&node),
                    None => Reference {
                        name,
                        uid: String::new(),
                    },
                }),
            },
            "secrets" => Bound::Secret(bound),
            _ => Bound::Node(bound),
        })
    }

    /// A node gets tokens for the pods bound to it alone, and only for audiences that stand in them.
    fn admit_node(&self, node: &str, target: &Target, spec: &Spec) -> Result<(), Status> {
        let refuse = |why: String| Err(Status::forbidden(&SERVICE_ACCOUNTS, &target.name, why));
        let wanted = spec
            .bound
            .as_ref()
            .filter(|wanted| wanted.group.is_empty() && wanted.kind == "Pod" && !wanted.name.is_empty());
        let Some(wanted) = wanted else {
            return refuse("node requested token not bound to a pod".to_owned());
        };
        if wanted.uid.is_empty() {
            return refuse("node requested token with a pod binding without a uid".to_owned());
        }
        let pod = self
            .held("pods", &target.namespace, &wanted.name)
            .ok_or_else(|| Status::not_found(&GroupResource::fixed("", "pods"), &wanted.name))?;
        if *wanted.uid != *pod.index().uid {
            return refuse(recreated(&wanted.uid));
        }
        let pod = pod.value();
        if text(&pod["spec"], "nodeName") != node {
            return refuse("node requested token bound to a pod scheduled on a different node".to_owned());
        }
        let audience = match spec.asked_audiences.as_slice() {
            [] => "",
            [only] => only.as_str(),
            _ => return refuse("node may only request 0 or 1 audiences".to_owned()),
        };
        if projects_audience(&pod, audience) {
            return Ok(());
        }
        refuse(format!(
            "audience {audience:?} not found in pod spec volume, system:node:{node} is not authorized to request tokens for this audience"
        ))
    }
}

impl Held for Objects {
    fn held(&self, plural: &str, namespace: &str, name: &str) -> Option<Arc<Shared>> {
        let resource = find("", "v1", plural)?;
        let target = Target::new(resource, "", namespace.to_owned(), name.to_owned());
        self.cache.of(resource)?.get(&target.key)
    }
}

/// What is asked for, defaults filled in.
struct Spec {
    /// As they stand in the request.
    asked_audiences: Vec<String>,
    audiences: Vec<String>,
    seconds: i64,
    bound: Option<Wanted>,
}

/// The object that the token shall end with.
struct Wanted {
    group: String,
    version: String,
    kind: String,
    name: String,
    uid: String,
    /// As sent.
    document: Value,
}

impl Spec {
    fn read(asked: &Map<String, Value>) -> Result<Self, Status> {
        let spec = asked.get("spec").unwrap_or(&Value::Null);
        let audiences = spec["audiences"].as_array().into_iter().flatten();
        let asked_audiences: Vec<String> = audiences.filter_map(Value::as_str).map(str::to_owned).collect();
        let seconds = spec["expirationSeconds"].as_i64().unwrap_or(SECONDS_DEFAULT);
        let rule = match seconds {
            ..SECONDS_MIN => Some("may not specify a duration less than 10 minutes"),
            SECONDS_MIN..=SECONDS_MAX => None,
            _ => Some("may not specify a duration larger than 2^32 seconds"),
        };
        if let Some(rule) = rule {
            let error = FieldError::invalid("spec.expirationSeconds", seconds, rule);
            return Err(Status::invalid(&TOKEN_REQUEST, "", &[error]));
        }
        let bound = Some(&spec["boundObjectRef"]).filter(|bound| bound.is_object());
        Ok(Self {
            audiences: if asked_audiences.is_empty() {
                api_audiences()
            } else {
                asked_audiences.clone()
            },
            asked_audiences,
            seconds,
            bound: bound.map(|bound| {
                let gvk = GroupVersionKind::parse(text(bound, "apiVersion"), text(bound, "kind"));
                Wanted {
                    group: gvk.group.to_string(),
                    version: gvk.version.to_string(),
                    kind: gvk.kind.to_string(),
                    name: text(bound, "name").to_owned(),
                    uid: text(bound, "uid").to_owned(),
                    document: bound.clone(),
                }
            }),
        })
    }

    /// Seconds until the end, and until somebody should be warned.
    fn life(&self, bound: &Bound) -> (i64, Option<i64>) {
        let is_for_the_api = self.audiences.iter().all(|one| api_audiences().contains(one));
        if self.seconds == SECONDS_OF_ADMISSION && is_for_the_api && matches!(bound, Bound::Pod { .. }) {
            return (SECONDS_EXTENDED, Some(self.seconds));
        }
        (self.seconds, None)
    }
}

fn check_names(target: &Target, sent: &Map<String, Value>) -> Result<(), Status> {
    for (field, wanted, rule) in [
        (
            "name",
            &target.name,
            "must match the service account name if specified",
        ),
        (
            "namespace",
            &target.namespace,
            "must match the service account namespace if specified",
        ),
    ] {
        let held = metadata::text(sent, field);
        if !held.is_empty() && held != wanted {
            let error = FieldError::invalid(format!("metadata.{field}"), held, rule);
            return Err(Status::invalid(&TOKEN_REQUEST, &target.name, &[error]));
        }
    }
    Ok(())
}

fn check_uid(target: &Target, sent: &Map<String, Value>, account: &Shared) -> Result<(), Status> {
    let (sent, held) = (metadata::text(sent, "uid"), &account.index().uid);
    if sent.is_empty() || *sent == **held {
        return Ok(());
    }
    let of = GroupResource::fixed("authentication.k8s.io", "TokenRequest");
    let why = format!(
        "the UID in the token request ({sent}) does not match the UID of the service account ({held})"
    );
    Err(Status::conflict(&of, &target.name, why))
}

fn recreated(uid: &str) -> String {
    format!(
        "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then recreated"
    )
}

fn projects_audience(pod: &Map<String, Value>, audience: &str) -> bool {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let volumes = pod
        .get("spec")
        .map(|spec| list(&spec["volumes"]))
        .unwrap_or_default();
    let mut sources = volumes
        .iter()
        .flat_map(|volume| list(&volume["projected"]["sources"]));
    sources.any(|source| {
        let token = &source["serviceAccountToken"];
        token.is_object() && text(token, "audience") == audience
    })
}

fn document(target: &Target, account: &Shared, spec: &Spec, token: &str, now: Timestamp) -> Value {
    let until = now.saturating_add(SignedDuration::from_secs(spec.seconds));
    let until = until.expect("a span of seconds has no calendar units");
    let mut asked = json!({"audiences": spec.audiences, "expirationSeconds": spec.seconds});
    asked["boundObjectRef"] = spec
        .bound
        .as_ref()
        .map_or(Value::Null, |wanted| wanted.document.clone());
    json!({
        "kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1",
        "metadata": {
            "name": target.name, "namespace": target.namespace, "uid": account.index().uid,
            "creationTimestamp": timestamp::seconds(now),
        },
        "spec": asked,
        "status": {"token": token, "expirationTimestamp": timestamp::seconds(until)},
    })
}

fn reference(object: &Shared) -> Reference {
    Reference {
        name: object.index().name.to_string(),
        uid: object.index().uid.to_string(),
    }
}

fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}
