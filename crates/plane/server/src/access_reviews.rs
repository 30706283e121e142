//! Who am I, and may I? Answered by the authorizer itself and never stored.

use hotmap_kinds::Resource;
use hotmap_object::{FieldSelector, GroupVersionKind, Status};
use serde_json::{Map, Value, json};

use crate::{
    answer::{Answer, Body},
    authorization::{Attributes, Authorizer, Decision},
    http::{
        encoding,
        negotiation::{Accept, Offer},
    },
    request::User,
};

/// One review, asked for by POST.
pub(crate) struct Review<'a> {
    pub(crate) resource: &'static Resource,
    pub(crate) user: &'a User,
    pub(crate) accept: &'a Accept,
    pub(crate) content_type: Option<&'a str>,
    pub(crate) body: &'a [u8],
}

/// Whether a resource is answered here.
pub(crate) fn serves(resource: &Resource) -> bool {
    matches!(resource.kind, "SelfSubjectReview" | "SelfSubjectAccessReview")
}

impl Review<'_> {
    /// 201 with the question and its answer.
    ///
    /// # Errors
    ///
    /// 400 for a body that is no such review, 406 for forms a review does not have, 415, 422 for a question without
    /// attributes.
    pub(crate) fn answer(&self, authorizer: &Authorizer) -> Result<Answer, Status> {
        let chosen = self.accept.negotiate(Offer::Plain)?;
        let gvk = self.resource.gvk();
        let asked = encoding::decode(self.body, self.content_type)?;
        check_type(&asked, &gvk)?;
        let status = match self.resource.kind {
            "SelfSubjectReview" => json!({"userInfo": user_info(self.user)}),
            _ => access(authorizer, self.user, &asked, &gvk)?,
        };
        let mut review = json!({
            "kind": gvk.kind, "apiVersion": gvk.api_version(),
            "metadata": {"creationTimestamp": null},
            "status": status,
        });
        if self.resource.kind == "SelfSubjectAccessReview" {
            review["spec"] = asked["spec"].clone();
        }
        let body = encoding::encode(&review, &gvk, chosen.media)?;
        Ok(Answer::new(201, chosen.media.content_type(), Body::Full(body)))
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

fn access(
    authorizer: &Authorizer,
    user: &User,
    asked: &Value,
    gvk: &GroupVersionKind,
) -> Result<Value, Status> {
    let spec = &asked["spec"];
    let wanted = match (&spec["resourceAttributes"], &spec["nonResourceAttributes"]) {
        (Value::Object(resource), Value::Null) => of_resource(resource)?,
        (Value::Null, Value::Object(path)) => {
            let text = |key: &str| path.get(key).and_then(Value::as_str).unwrap_or_default();
            Attributes::of_path(text("verb"), text("path"))
        }
        _ => {
            let error = hotmap_object::FieldError::invalid(
                "spec.resourceAttributes",
                "",
                "exactly one of nonResourceAttributes or resourceAttributes must be specified",
            );
            return Err(Status::invalid(gvk, "", &[error]));
        }
    };
    Ok(match authorizer.decide(user, &wanted) {
        Decision::Allowed => json!({"allowed": true}),
        Decision::Denied(reason) if reason.is_empty() => json!({"allowed": false}),
        Decision::Denied(reason) => json!({"allowed": false, "reason": reason}),
    })
}

fn of_resource(asked: &Map<String, Value>) -> Result<Attributes, Status> {
    let text = |key: &str| {
        asked
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    let selector = asked
        .get("fieldSelector")
        .and_then(|one| one["rawSelector"].as_str())
        .unwrap_or_default();
    let fields: FieldSelector = selector
        .parse()
        .map_err(|error| Status::bad_request(format!("{error}")))?;
    Ok(Attributes {
        verb: text("verb"),
        group: text("group"),
        version: text("version"),
        resource: text("resource"),
        subresource: text("subresource"),
        namespace: text("namespace"),
        name: text("name"),
        path: None,
        fields,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::authorization::{
        rbac::RoleIndex,
        references::{PodReferences, Referenced},
    };

    struct NoPods;

    impl PodReferences for NoPods {
        fn node_refers_to(&self, _: &str, _: Referenced, _: &str, _: &str) -> bool {
            false
        }

        fn node_of(&self, _: &str, _: &str) -> Option<String> {
            None
        }
    }

    fn ask(plural: &str, group: &str, user: &str, accept: &str, body: &Value) -> Result<Value, u16> {
        let user = User {
            name: user.into(),
            groups: vec!["system:authenticated".into()],
            ..User::default()
        };
        let body = body.to_string();
        let accept = Accept::parse(accept);
        let review = Review {
            resource: hotmap_kinds::find(group, "v1", plural).expect("served"),
            user: &user,
            accept: &accept,
            content_type: None,
            body: body.as_bytes(),
        };
        match review.answer(&Authorizer::new(
            Arc::new(NoPods),
            Arc::new(RoleIndex::with_defaults()),
        )) {
            Ok(Answer {
                body: Body::Full(body),
                code: 201,
                ..
            }) => Ok(serde_json::from_slice(&body).expect("JSON")),
            Ok(other) => panic!("{other:?}"),
            Err(status) => Err(status.code),
        }
    }

    #[test]
    fn everybody_learns_who_they_are() {
        let body = json!({"kind": "SelfSubjectReview", "apiVersion": "authentication.k8s.io/v1"});
        let ask = |accept| ask("selfsubjectreviews", "authentication.k8s.io", "u", accept, &body);
        assert_eq!(ask("").expect("a review")["status"]["userInfo"]["username"], "u");
        assert_eq!(ask("application/json;as=Table;g=meta.k8s.io;v=v1"), Err(406));
    }

    #[test]
    fn access_reviews_ask_the_authorizer() {
        let ask = |spec: Value| {
            let body = json!({"kind": "SelfSubjectAccessReview", "apiVersion": "authorization.k8s.io/v1", "spec": spec});
            let review = ask(
                "selfsubjectaccessreviews",
                "authorization.k8s.io",
                "system:hotmap-controllers",
                "",
                &body,
            )?;
            Ok(review["status"]["allowed"].as_bool().expect("a boolean"))
        };
        for (spec, allowed) in [
            (
                json!({"resourceAttributes": {"verb": "create", "resource": "pods", "subresource": "binding"}}),
                Ok(true),
            ),
            (
                json!({"resourceAttributes": {"verb": "get", "resource": "secrets"}}),
                Ok(false),
            ),
            (
                json!({"nonResourceAttributes": {"verb": "get", "path": "/version"}}),
                Ok(true),
            ),
            (json!({}), Err(422)),
        ] {
            assert_eq!(ask(spec.clone()), allowed, "{spec}");
        }
    }
}
