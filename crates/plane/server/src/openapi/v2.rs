//! `/openapi/v2`: a document without definitions.
//!
//! kubectl reads schemas from `/openapi/v3`. It falls back to this document for what cannot be there, a `List` in a
//! manifest and kinds that nobody serves, and gives up if there is none. With nothing in it kubectl goes on: the items
//! of a `List` are validated by the server one by one, and an unknown kind gets kubectl's own sentence about it.

use bytes::Bytes;
use hotmap_object::Status;

use crate::{answer::Answer, http::negotiation::Accept};

pub(super) const PATH: &str = "/openapi/v2";

/// What clients ask for, and what they are answered with: the first is no valid media type, and clients that parse the
/// answer's would stumble over it. As `kube-openapi/pkg/handler`.
const PROTOBUF_ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
const PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
const JSON: &str = "application/json";
const DOCUMENT: &str =
    r#"{"swagger":"2.0","info":{"title":"Kubernetes","version":"v1.36.0"},"paths":{},"definitions":{}}"#;
/// The same as gnostic's `openapi.v2.Document`: `swagger` 1, `info` 2 (`title` 1, `version` 2), `paths` 8,
/// `definitions` 9.
const DOCUMENT_PROTOBUF: &[u8] = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.36.0\x42\x00\x4a\x00";

/// The document in the first form that the client takes; JSON if it does not say.
///
/// # Errors
///
/// 406 if it takes neither form.
pub(super) fn answer(accept: &Accept) -> Result<Answer, Status> {
    let takes = |media_type: &str| accept.clauses().iter().any(|clause| clause.covers(media_type));
    if accept.clauses().is_empty() || takes(JSON) {
        return Ok(Answer::ok(JSON, DOCUMENT));
    }
    if takes(PROTOBUF_ASKED) || takes(PROTOBUF) {
        return Ok(Answer::ok(PROTOBUF, Bytes::from_static(DOCUMENT_PROTOBUF)));
    }
    Err(Status::not_acceptable(
        "application/json, application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Body;

    #[test]
    fn both_forms_say_the_same() {
        for (accept, media_type, body) in [
            ("", JSON, DOCUMENT.as_bytes()),
            ("*/*", JSON, DOCUMENT.as_bytes()),
            (PROTOBUF_ASKED, PROTOBUF, DOCUMENT_PROTOBUF),
            (PROTOBUF, PROTOBUF, DOCUMENT_PROTOBUF),
        ] {
            let answer = answer(&Accept::parse(accept)).expect("taken");
            assert_eq!(answer.content_type, media_type);
            assert!(
                matches!(&answer.body, Body::Full(bytes) if bytes == body),
                "{accept}"
            );
        }
        assert_eq!(
            answer(&Accept::parse("text/html"))
                .map_err(|status| status.code)
                .err(),
            Some(406)
        );
        serde_json::from_str::<serde_json::Value>(DOCUMENT).expect("JSON");
        let info = &DOCUMENT_PROTOBUF[7..7 + usize::from(DOCUMENT_PROTOBUF[6])];
        assert_eq!(info, b"\x0a\x0aKubernetes\x12\x07v1.36.0");
    }
}
