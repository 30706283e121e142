//! `Status`: the only error a client of the API sees.
//!
//! Codes, reasons and texts follow `apimachinery/pkg/api/errors/errors.go`, Kubernetes 1.36.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{FieldError, GroupResource, GroupVersionKind};

/// A failure with its HTTP code, a machine-readable reason and a sentence for people.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Status {
    /// HTTP status code.
    pub code: u16,
    /// CamelCase word such as `NotFound`; empty where upstream has none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// One sentence for people.
    pub message: String,
    /// What the failure is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<StatusDetails>>,
    /// Where an expired list may go on, see [`Status::expired_continue`].
    #[serde(skip)]
    pub continue_token: Option<String>,
}

/// What a [`Status`] is about.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StatusDetails {
    /// Name of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// API group.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The plural resource name; for `Invalid` the kind.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kind: String,
    /// Unique id of the object.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// One entry per problem.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<StatusCause>,
    /// Seconds to wait before another try; 0 says nothing. Sent as `Retry-After` too.
    #[serde(skip_serializing_if = "is_zero")]
    pub retry_after_seconds: u32,
}

/// One problem inside a [`Status`].
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StatusCause {
    /// CamelCase word such as `FieldValueInvalid`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// A sentence for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// Path of the field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub field: String,
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

impl Default for Status {
    fn default() -> Self {
        Self::new(500, "", "")
    }
}

impl Status {
    /// A failure without details.
    pub fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.to_owned(),
            message: message.into(),
            details: None,
            continue_token: None,
        }
    }

    fn about(code: u16, reason: &str, resource: &GroupResource, name: &str, message: String) -> Self {
        let details = StatusDetails {
            name: name.to_owned(),
            group: resource.group.clone().into_owned(),
            kind: resource.resource.clone().into_owned(),
            ..StatusDetails::default()
        };
        Self {
            details: Some(Box::new(details)),
            ..Self::new(code, reason, message)
        }
    }

    /// 404: no object of that name.
    pub fn not_found(resource: &GroupResource, name: &str) -> Self {
        Self::about(
            404,
            "NotFound",
            resource,
            name,
            format!("{resource} {name:?} not found"),
        )
    }

    /// 404: nothing is served at that path. client-go turns it into its own sentence.
    pub fn page_not_found() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
    }

    /// 409: the name is taken.
    pub fn already_exists(resource: &GroupResource, name: &str) -> Self {
        Self::about(
            409,
            "AlreadyExists",
            resource,
            name,
            format!("{resource} {name:?} already exists"),
        )
    }

    /// 409: the object does not stand as the caller believes; `why` says how.
    pub fn conflict(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Self::about(409, "Conflict", resource, name, message)
    }

    /// 409: the resourceVersion sent is not the stored one.
    pub fn modified(resource: &GroupResource, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// 422: the object breaks rules; one cause each.
    pub fn invalid(kind: &GroupVersionKind, name: &str, errors: &[FieldError]) -> Self {
        let qualified = if kind.group.is_empty() {
            kind.kind.clone().into_owned()
        } else {
            format!("{}.{}", kind.kind, kind.group)
        };
        let mut texts: Vec<String> = Vec::new();
        for error in errors {
            let text = error.to_string();
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let problems = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let causes = errors.iter().map(|error| StatusCause {
            reason: error.kind.reason().to_owned(),
            message: error.body(),
            field: error.field.clone(),
        });
        let details = StatusDetails {
            name: name.to_owned(),
            group: kind.group.clone().into_owned(),
            kind: kind.kind.clone().into_owned(),
            causes: causes.collect(),
            ..StatusDetails::default()
        };
        let message = format!("{qualified} {name:?} is invalid: {problems}");
        Self {
            details: Some(Box::new(details)),
            ..Self::new(422, "Invalid", message)
        }
    }

    /// 400: the request cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401: the credentials are wrong or missing where they are needed.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403: known, but not allowed; `why` follows the colon.
    pub fn forbidden(resource: &GroupResource, name: &str, why: impl fmt::Display) -> Self {
        let subject = if name.is_empty() {
            resource.to_string()
        } else {
            format!("{resource} {name:?}")
        };
        Self::about(
            403,
            "Forbidden",
            resource,
            name,
            format!("{subject} is forbidden: {why}"),
        )
    }

    /// 405: the resource does not know this verb.
    pub fn method_not_supported(resource: &GroupResource, verb: &str) -> Self {
        let message = format!(
            "{verb} is not supported on resources of kind {:?}",
            resource.to_string()
        );
        Self::about(405, "MethodNotAllowed", resource, "", message)
    }

    /// 406: no media type of the `Accept` header is served here.
    pub fn not_acceptable(served: &str) -> Self {
        let message = format!("only the following media types are accepted: {served}");
        Self::new(406, "NotAcceptable", message)
    }

    /// 410: that revision is no longer held.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 410 for a list in pages, with the token that goes on at the newest revision.
    pub fn expired_continue(message: impl Into<String>, token: String) -> Self {
        Self {
            continue_token: Some(token),
            ..Self::expired(message)
        }
    }

    /// 413: the body is over the limit.
    pub fn too_large(limit_bytes: usize) -> Self {
        let message = format!("Request entity too large: limit is {limit_bytes}");
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 415: the body's media type is not one of `accepted`.
    pub fn unsupported_media_type(accepted: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {accepted}"
        );
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 429: too much at once; try again after `seconds`.
    pub fn too_many_requests(message: impl Into<String>, seconds: u32) -> Self {
        Self::new(429, "TooManyRequests", message).retry_after(seconds)
    }

    /// 500: our fault.
    pub fn internal(cause: impl fmt::Display) -> Self {
        let text = cause.to_string();
        let causes = vec![StatusCause {
            message: text.clone(),
            ..StatusCause::default()
        }];
        let details = StatusDetails {
            causes,
            ..StatusDetails::default()
        };
        Self {
            details: Some(Box::new(details)),
            ..Self::new(500, "InternalError", format!("Internal error occurred: {text}"))
        }
    }

    /// 500: storage does not answer now; a later try may do.
    pub fn server_timeout(resource: &GroupResource, verb: &str) -> Self {
        let message = format!(
            "The {verb} operation against {resource} could not be completed at this time, please try again."
        );
        Self::about(500, "ServerTimeout", resource, "", message).retry_after(2)
    }

    /// 504: the deadline passed.
    pub fn timeout(why: impl fmt::Display) -> Self {
        Self::new(504, "Timeout", format!("Timeout: {why}"))
    }

    /// 504: the revision asked for is yet to come.
    pub fn future_revision(wanted: crate::Revision, current: crate::Revision) -> Self {
        let message = format!("Too large resource version: {wanted}, current: {current}");
        let cause = StatusCause {
            reason: "ResourceVersionTooLarge".to_owned(),
            message: "Too large resource version".to_owned(),
            field: String::new(),
        };
        let mut status = Self::timeout(message).retry_after(1);
        status.details.get_or_insert_default().causes.push(cause);
        status
    }

    /// The same failure with a `Retry-After`.
    pub fn retry_after(mut self, seconds: u32) -> Self {
        self.details.get_or_insert_default().retry_after_seconds = seconds;
        self
    }

    /// The JSON document that goes over the wire.
    pub fn to_value(&self) -> serde_json::Value {
        let mut body = serde_json::json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "code": self.code,
        });
        if !self.reason.is_empty() {
            body["reason"] = self.reason.clone().into();
        }
        if let Some(details) = &self.details {
            body["details"] = serde_json::to_value(details).expect("details are plain strings and numbers");
        }
        if let Some(token) = &self.continue_token {
            body["metadata"]["continue"] = token.clone().into();
        }
        body
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG_MAPS: GroupResource = GroupResource::fixed("", "configmaps");

    #[test]
    fn sentences_are_upstreams() {
        let table = [
            (
                Status::not_found(&CONFIG_MAPS, "a"),
                404,
                r#"configmaps "a" not found"#,
            ),
            (
                Status::already_exists(&GroupResource::fixed("apps", "deployments"), "a"),
                409,
                r#"deployments.apps "a" already exists"#,
            ),
            (
                Status::too_large(3_145_728),
                413,
                "Request entity too large: limit is 3145728",
            ),
            (Status::internal("boom"), 500, "Internal error occurred: boom"),
        ];
        for (status, code, message) in table {
            assert_eq!((status.code, status.message.as_str()), (code, message));
        }
    }

    #[test]
    fn equal_problems_are_said_once_and_kept_as_causes() {
        let kind = GroupVersionKind::fixed("apps", "v1", "Deployment");
        let error = FieldError::forbidden("spec.selector", "field is immutable");
        let status = Status::invalid(&kind, "web", &[error.clone(), error]);
        assert_eq!(
            status.message,
            r#"Deployment.apps "web" is invalid: spec.selector: Forbidden: field is immutable"#
        );
        assert_eq!(status.details.expect("has details").causes.len(), 2);
    }

    #[test]
    fn the_document_reads_back() {
        let status = Status::modified(&CONFIG_MAPS, "a").retry_after(3);
        let read: Status = serde_json::from_value(status.to_value()).expect("own document");
        assert_eq!(read, status);
    }
}
