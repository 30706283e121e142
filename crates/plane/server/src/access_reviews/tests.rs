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

fn authorizer() -> Authorizer {
    Authorizer::new(Arc::new(NoPods), Arc::new(RoleIndex::with_defaults()))
}

/// The answer's status, or the code and message of the refusal.
fn ask(kind: &str, namespace: Option<&str>, user: &User, body: &Value) -> Result<Value, (u16, String)> {
    let group = if kind == "SelfSubjectReview" {
        "authentication.k8s.io"
    } else {
        "authorization.k8s.io"
    };
    let body = body.to_string();
    let review = Review {
        resource: hotmap_kinds::find_kind(group, "v1", kind).expect("served"),
        namespace,
        user,
        accept: &Accept::parse(""),
        content_type: None,
        body: body.as_bytes(),
    };
    match review.answer(&authorizer()) {
        Ok(Answer {
            body: Body::Full(body),
            code: 201,
            ..
        }) => Ok(serde_json::from_slice::<Value>(&body).expect("JSON")["status"].clone()),
        Ok(other) => panic!("{other:?}"),
        Err(status) => Err((status.code, status.message)),
    }
}

fn user(name: &str, groups: &[&str]) -> User {
    User {
        name: name.into(),
        groups: groups.iter().map(|&group| group.into()).collect(),
        ..User::default()
    }
}

fn controllers() -> User {
    user("system:hotmap-controllers", &["system:authenticated"])
}

#[test]
fn everybody_learns_who_they_are() {
    let status = ask("SelfSubjectReview", None, &user("u", &["g"]), &json!({})).expect("a review");
    assert_eq!(status["userInfo"], json!({"username": "u", "groups": ["g"]}));
    let review = Review {
        resource: hotmap_kinds::find_kind("authentication.k8s.io", "v1", "SelfSubjectReview")
            .expect("served"),
        namespace: None,
        user: &user("u", &[]),
        accept: &Accept::parse("application/json;as=Table;g=meta.k8s.io;v=v1"),
        content_type: None,
        body: b"{}",
    };
    assert_eq!(review.answer(&authorizer()).expect_err("no table").code, 406);
}

#[test]
fn reviews_of_oneself_ask_the_authorizer() {
    let resource = |attributes: Value| json!({"spec": {"resourceAttributes": attributes}});
    for (body, allowed) in [
        (
            resource(json!({"verb": "create", "resource": "pods", "subresource": "binding"})),
            true,
        ),
        (resource(json!({"verb": "update", "resource": "secrets"})), false),
        (
            json!({"spec": {"nonResourceAttributes": {"verb": "get", "path": "/version"}}}),
            true,
        ),
    ] {
        let status = ask("SelfSubjectAccessReview", None, &controllers(), &body).expect("a review");
        assert_eq!(status["allowed"], allowed, "{body}");
    }
}

#[test]
fn reviews_of_others_say_which_binding_allows() {
    let ask = |spec: Value| {
        ask(
            "SubjectAccessReview",
            None,
            &controllers(),
            &json!({"spec": spec}),
        )
    };
    let selfs =
        json!({"verb": "create", "group": "authorization.k8s.io", "resource": "selfsubjectrulesreviews"});
    assert_eq!(
        ask(json!({"user": "u", "groups": ["a", "system:authenticated"], "resourceAttributes": selfs})),
        Ok(json!({"allowed": true, "reason":
            "RBAC: allowed by ClusterRoleBinding \"system:basic-user\" of ClusterRole \"system:basic-user\" to Group \"system:authenticated\""}))
    );
    assert_eq!(
        ask(json!({"user": "u", "resourceAttributes": selfs})),
        Ok(json!({"allowed": false}))
    );
    // A field selector that cannot be read asks for more than one that can.
    let pods = |selector: Value| {
        json!({"user": "system:node:n", "groups": ["system:nodes"],
        "resourceAttributes": {"verb": "list", "resource": "pods", "fieldSelector": selector}})
    };
    let refused = "can only list/watch pods with spec.nodeName field selector";
    for (selector, wanted) in [
        (
            json!({"rawSelector": "spec.nodeName=n"}),
            json!({"allowed": true}),
        ),
        (
            json!({"requirements": [{"key": "spec.nodeName", "operator": "In", "values": ["n"]}]}),
            json!({"allowed": true}),
        ),
        (
            json!({"requirements": [{"key": "spec.nodeName", "operator": "Exists"}]}),
            json!({"allowed": false, "reason": refused,
                "evaluationError": "spec.resourceAttributes.fieldSelector ignored due to parse error"}),
        ),
    ] {
        assert_eq!(ask(pods(selector.clone())), Ok(wanted), "{selector}");
    }
}

#[test]
fn questions_that_ask_nothing_or_too_much_are_refused() {
    let one = json!({"resource": "pods", "verb": "get", "namespace": "ns"});
    for (kind, body, code, text) in [
        (
            "SelfSubjectAccessReview",
            json!({"spec": {}}),
            422,
            "spec.resourceAttributes: Invalid value: null: exactly one of nonResourceAttributes or resourceAttributes must be specified",
        ),
        (
            "SubjectAccessReview",
            json!({"spec": {"user": "u", "resourceAttributes": one, "nonResourceAttributes": {"path": "/"}}}),
            422,
            "cannot be specified in combination with resourceAttributes",
        ),
        (
            "SubjectAccessReview",
            json!({"spec": {"resourceAttributes": one}}),
            422,
            "spec.user: Invalid value: \"\": at least one of user or group must be specified",
        ),
        (
            "SubjectAccessReview",
            json!({"metadata": {"name": "x"}, "spec": {"user": "u", "resourceAttributes": one}}),
            422,
            "must be empty",
        ),
        (
            "SubjectAccessReview",
            json!({"spec": {"user": "u", "groups": "g", "resourceAttributes": one}}),
            400,
            "cannot unmarshal string",
        ),
        (
            "SubjectAccessReview",
            json!({"spec": {"user": "u", "resourceAttributes": {"fieldSelector": {}}}}),
            422,
            "when spec.resourceAttributes.fieldSelector is specified, requirements or rawSelector is required",
        ),
        (
            "SubjectAccessReview",
            json!({"kind": "Pod"}),
            400,
            "cannot be handled as a SubjectAccessReview",
        ),
        (
            "LocalSubjectAccessReview",
            json!({"spec": {"user": "u", "resourceAttributes": {"resource": "pods", "namespace": "other"}}}),
            422,
            "spec.resourceAttributes.namespace: Invalid value: \"other\": must match metadata.namespace",
        ),
        (
            "LocalSubjectAccessReview",
            json!({"spec": {"user": "u", "nonResourceAttributes": {"path": "/"}}}),
            422,
            "disallowed on this kind of request",
        ),
        (
            "LocalSubjectAccessReview",
            json!({"metadata": {"namespace": "other"}, "spec": {"user": "u", "resourceAttributes": one}}),
            400,
            "does not match the namespace sent on the request",
        ),
        (
            "SelfSubjectRulesReview",
            json!({"spec": {}}),
            400,
            "no namespace on request",
        ),
    ] {
        let namespace = (kind == "LocalSubjectAccessReview").then_some("ns");
        let (found, message) = ask(kind, namespace, &controllers(), &body).expect_err(text);
        assert!(
            found == code && message.contains(text),
            "{body}: {found} {message}"
        );
    }
    let local = json!({"metadata": {"namespace": "ns"}, "spec": {"user": "u", "resourceAttributes": one}});
    let status = ask("LocalSubjectAccessReview", Some("ns"), &controllers(), &local);
    assert_eq!(status, Ok(json!({"allowed": false})));
}

#[test]
fn rules_are_listed_and_say_whether_they_are_all() {
    let ask = |user: &User| {
        let body = json!({"spec": {"namespace": "ns"}});
        ask("SelfSubjectRulesReview", None, user, &body).expect("a review")
    };
    let admin = ask(&user("a", &["system:masters"]));
    assert_eq!(
        admin["resourceRules"],
        json!([{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}])
    );
    assert_eq!(
        admin["nonResourceRules"],
        json!([{"verbs": ["*"], "nonResourceURLs": ["*"]}])
    );
    assert_eq!(admin["incomplete"], false);
    let node = ask(&user("system:node:n", &["system:nodes", "system:authenticated"]));
    assert_eq!(node["incomplete"], true);
    assert_eq!(
        node["evaluationError"],
        "node authorizer does not support user rule resolution"
    );
    assert_eq!(ask(&user("u", &[]))["resourceRules"], json!([]));
}
