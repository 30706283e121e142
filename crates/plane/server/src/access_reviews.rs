//! Who am I, and who may do what? Answered by the authorizer itself and never stored.
//!
//! Follows `pkg/registry/{authentication,authorization}` and `pkg/apis/authorization/validation/validation.go`,
//! Kubernetes 1.36.

mod question;
#[cfg(test)]
mod tests;

use hotmap_kinds::Resource;
use hotmap_object::{GroupVersionKind, Status};
use hotmap_schema::conform;
use serde_json::{Map, Value, json};

use crate::{
    answer::{Answer, Body},
    authorization::{Authorizer, HeldRules},
    http::{
        encoding,
        negotiation::{Accept, Offer},
    },
    request::User,
};
use question::{Asked, Question};

/// One review, asked for by POST.
pub(crate) struct Review<'a> {
    pub(crate) resource: &'static Resource,
    /// From the path; only local reviews have one.
    pub(crate) namespace: Option<&'a str>,
    pub(crate) user: &'a User,
    pub(crate) accept: &'a Accept,
    pub(crate) content_type: Option<&'a str>,
    pub(crate) body: &'a [u8],
}

/// Whether a resource is answered here.
pub(crate) fn serves(resource: &Resource) -> bool {
    matches!(
        resource.kind,
        "SelfSubjectReview"
            | "SelfSubjectAccessReview"
            | "SelfSubjectRulesReview"
            | "SubjectAccessReview"
            | "LocalSubjectAccessReview"
    )
}

impl Review<'_> {
    /// 201 with the question and its answer.
    ///
    /// # Errors
    ///
    /// 400 for a body that is no such review, 406 for forms a review does not have, 415, 422 for a question that is not
    /// one.
    pub(crate) fn answer(&self, authorizer: &Authorizer) -> Result<Answer, Status> {
        let chosen = self.accept.negotiate(Offer::Plain)?;
        let gvk = self.resource.gvk();
        let asked = self.read(&gvk)?;
        let mut review = json!({
            "kind": gvk.kind, "apiVersion": gvk.api_version(),
            "metadata": {"creationTimestamp": null},
        });
        review["status"] = match self.resource.kind {
            "SelfSubjectReview" => json!({"userInfo": user_info(self.user)}),
            "SelfSubjectRulesReview" => {
                review["spec"] = json!({});
                let namespace = asked["spec"]["namespace"].as_str().unwrap_or_default();
                if namespace.is_empty() {
                    return Err(Status::bad_request("no namespace on request"));
                }
                rules(authorizer.rules_of(self.user, namespace))
            }
            kind => {
                let of = match kind {
                    "SelfSubjectAccessReview" => Asked::OfOneself(self.user),
                    "LocalSubjectAccessReview" => {
                        let namespace = self.namespace.unwrap_or_default();
                        review["metadata"]["namespace"] = namespace.into();
                        Asked::InNamespace(namespace)
                    }
                    _ => Asked::OfAnybody,
                };
                review["spec"] = asked["spec"].clone();
                access(authorizer, &Question::read(of, &asked, &gvk)?)
            }
        };
        let body = encoding::encode(&review, &gvk, chosen.media)?;
        Ok(Answer::new(201, chosen.media.content_type(), Body::Full(body)))
    }

    fn read(&self, gvk: &GroupVersionKind) -> Result<Value, Status> {
        let asked = encoding::decode(self.body, self.content_type)?;
        check_type(&asked, gvk)?;
        let conformed = conform(asked, self.resource.schema.message).map_err(|error| {
            let place = match error.path.as_str() {
                "" => String::new(),
                path => format!(": {path}"),
            };
            Status::bad_request(format!(
                "{} in version {:?} cannot be handled as a {}: {}{place}",
                gvk.kind, gvk.version, gvk.kind, error.message
            ))
        })?;
        Ok(conformed.value)
    }
}

pub(crate) fn check_type(asked: &Value, gvk: &GroupVersionKind) -> Result<(), Status> {
    let text = |key: &str| asked[key].as_str().unwrap_or_default();
    if !text("kind").is_empty() && text("kind") != gvk.kind {
        return Err(Status::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}",
            text("kind"),
            gvk.version,
            gvk.kind
        )));
    }
    let api_version = text("apiVersion");
    if !api_version.is_empty() && api_version != gvk.api_version() {
        return Err(Status::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            gvk.api_version()
        )));
    }
    Ok(())
}

pub(crate) fn user_info(user: &User) -> Value {
    let mut info = json!({"username": user.name, "groups": user.groups});
    if !user.uid.is_empty() {
        info["uid"] = user.uid.clone().into();
    }
    if !user.extra.is_empty() {
        let extra: Map<String, Value> = user
            .extra
            .iter()
            .map(|(key, values)| (key.clone(), json!(values)))
            .collect();
        info["extra"] = extra.into();
    }
    info
}

fn access(authorizer: &Authorizer, question: &Question<'_>) -> Value {
    let (is_allowed, reason) = authorizer.explain(&question.user, &question.wanted);
    let mut status = json!({"allowed": is_allowed});
    if !reason.is_empty() {
        status["reason"] = reason.into();
    }
    if !question.ignored.is_empty() {
        status["evaluationError"] = question.ignored.join("; ").into();
    }
    status
}

fn rules(held: HeldRules) -> Value {
    let on_resources = held.rules.iter().filter(|rule| !rule.resources.is_empty());
    let on_paths = held
        .rules
        .iter()
        .filter(|rule| !rule.non_resource_urls.is_empty());
    let mut status = json!({
        "resourceRules": on_resources.collect::<Vec<_>>(),
        "nonResourceRules": on_paths.collect::<Vec<_>>(),
        "incomplete": held.is_incomplete,
    });
    if !held.error.is_empty() {
        status["evaluationError"] = held.error.into();
    }
    status
}
