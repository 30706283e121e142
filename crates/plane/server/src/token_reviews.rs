//! TokenReview: whether a token is good, for somebody else who was shown it.
//!
//! Follows `pkg/registry/authentication/tokenreview/storage.go`, Kubernetes 1.36.

use hotmap_object::{GroupVersionKind, Status};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    access_reviews::{Review, check_type, user_info},
    answer::{Answer, Body},
    http::{encoding, negotiation::Offer},
    tokens::{Tokens, api_audiences},
};

/// 201 with the question and its answer.
///
/// # Errors
///
/// 400 for a body that is no such review or names no token, 406 for forms a review does not have, 415.
pub(crate) fn answer(review: &Review<'_>, tokens: &Tokens, now: Timestamp) -> Result<Answer, Status> {
    let chosen = review.accept.negotiate(Offer::Plain)?;
    let gvk = review.resource.gvk();
    let asked = encoding::decode(review.body, review.content_type)?;
    check_type(&asked, &gvk)?;
    let document = reviewed(&asked, &gvk, tokens, now)?;
    let body = encoding::encode(&document, &gvk, chosen.media)?;
    Ok(Answer::new(201, chosen.media.content_type(), Body::Full(body)))
}

fn reviewed(asked: &Value, gvk: &GroupVersionKind, tokens: &Tokens, now: Timestamp) -> Result<Value, Status> {
    let spec = &asked["spec"];
    let token = spec["token"].as_str().unwrap_or_default();
    if token.is_empty() {
        return Err(Status::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    let named = spec["audiences"].as_array().into_iter().flatten();
    let mut audiences: Vec<String> = named.filter_map(Value::as_str).map(str::to_owned).collect();
    if audiences.is_empty() {
        audiences = api_audiences();
    }
    let status = match tokens.authenticate(token, &audiences, now) {
        Ok((user, shared)) => {
            json!({"authenticated": true, "user": user_info(&user), "audiences": shared})
        }
        Err(refused) => json!({"user": {}, "error": refused.to_string()}),
    };
    Ok(json!({
        "kind": gvk.kind, "apiVersion": gvk.api_version(),
        "metadata": {"creationTimestamp": null},
        "spec": spec,
        "status": status,
    }))
}
