//! `/openapi/v3`: an index, and one document per group and version, made when first asked for. `/openapi/v2`: see `v2`.
//!
//! Enough for kubectl's validation, explain and apply: schemas from the tables, and per kind the operations with their
//! parameters and body types. JSON only. Answers follow `kube-openapi/pkg/handler3`, Kubernetes 1.36.

mod paths;
mod v2;

use std::{collections::BTreeMap, fmt::Write};

use bytes::Bytes;
use hotmap_kinds::Resource;
use hotmap_object::Status;
use hotmap_schema::{Kind, openapi::schemas};
use hyper::header::{CACHE_CONTROL, ETAG, EXPIRES, HeaderMap, HeaderValue, IF_NONE_MATCH, LOCATION, VARY};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use sha2::{Digest, Sha512};
use tokio::sync::OnceCell;

use crate::{
    answer::{Answer, Body},
    http::negotiation::Accept,
    request::Query,
};

const ROOT: &str = "/openapi/v3";
const YEAR: SignedDuration = SignedDuration::from_hours(365 * 24);

/// The documents of all served resources.
pub(crate) struct OpenApi {
    resources: &'static [Resource],
    documents: OnceCell<Documents>,
}

#[derive(Debug)]
struct Documents {
    index: Document,
    /// By group and version as paths have them: `api/v1`, `apis/apps/v1`.
    by_group_version: BTreeMap<String, Document>,
}

#[derive(Debug)]
struct Document {
    json: Bytes,
    /// Upper-case hexadecimal.
    hash: String,
}

impl OpenApi {
    pub(crate) fn new(resources: &'static [Resource]) -> Self {
        Self {
            resources,
            documents: OnceCell::new(),
        }
    }

    /// The answer to `/openapi/v2` and to paths below `/openapi/v3`; `None` where there is no document.
    ///
    /// # Errors
    ///
    /// 406 if the client takes no JSON.
    pub(crate) async fn answer(
        &self,
        path: &str,
        query: &Query,
        headers: &HeaderMap,
        accept: &Accept,
    ) -> Result<Option<Answer>, Status> {
        if path == v2::PATH {
            return v2::answer(accept).map(Some);
        }
        let takes_json = |accept: &Accept| {
            accept
                .clauses()
                .iter()
                .any(|clause| clause.covers("application/json"))
        };
        let Some(name) = path.strip_prefix(ROOT) else {
            return Ok(None);
        };
        let documents = self.documents().await;
        let name = name.trim_matches('/');
        let document = match name {
            "" => Some(&documents.index),
            name => documents.by_group_version.get(name),
        };
        let Some(document) = document else { return Ok(None) };
        if !accept.clauses().is_empty() && !takes_json(accept) {
            // Upstream's body is empty here, but a client can do more with a sentence.
            return Err(Status::not_acceptable("application/json"));
        }
        let asked = query.text("hash");
        if let Some(asked) = asked.filter(|asked| *asked != document.hash && !name.is_empty()) {
            tracing::debug!(asked, "openapi document asked for by an old hash");
            let location = HeaderValue::try_from(document.url(name)).expect("a path is plain text");
            return Ok(Some(
                Answer::ok("text/plain", Bytes::new())
                    .with_code(301)
                    .with_header(LOCATION, location),
            ));
        }
        let etag = format!("\"{}\"", document.hash);
        let is_held = headers
            .get(IF_NONE_MATCH)
            .is_some_and(|held| held.as_bytes() == etag.as_bytes());
        let body = if is_held {
            Bytes::new()
        } else {
            document.json.clone()
        };
        let mut answer = Answer::new(
            if is_held { 304 } else { 200 },
            "application/json",
            Body::Full(body),
        )
        .with_header(ETAG, HeaderValue::try_from(etag).expect("a hash is plain text"))
        .with_header(VARY, HeaderValue::from_static("Accept"));
        if asked.is_some() {
            let expires = (Timestamp::now() + YEAR)
                .strftime("%a, %d %b %Y %H:%M:%S GMT")
                .to_string();
            answer = answer
                .with_header(CACHE_CONTROL, HeaderValue::from_static("public, immutable"))
                .with_header(
                    EXPIRES,
                    HeaderValue::try_from(expires).expect("a date is plain text"),
                );
        }
        Ok(Some(answer))
    }

    /// Making them takes tens of milliseconds: once, and not on a thread that serves.
    async fn documents(&self) -> &Documents {
        let resources = self.resources;
        let make = || async move {
            let made = tokio::task::spawn_blocking(move || Documents::new(resources)).await;
            made.expect("the tables are complete")
        };
        self.documents.get_or_init(make).await
    }
}

impl Documents {
    fn new(resources: &'static [Resource]) -> Self {
        let mut grouped: BTreeMap<String, Vec<&Resource>> = BTreeMap::new();
        for resource in resources {
            grouped
                .entry(paths::group_version(resource))
                .or_default()
                .push(resource);
        }
        let made = grouped
            .into_iter()
            .map(|(name, resources)| (name, Document::new(&group_document(&resources))));
        let by_group_version: BTreeMap<String, Document> = made.collect();
        let entries = by_group_version
            .iter()
            .map(|(name, document)| (name.clone(), json!({"serverRelativeURL": document.url(name)})));
        let index = Document::new(&json!({"paths": entries.collect::<serde_json::Map<_, _>>()}));
        Self {
            index,
            by_group_version,
        }
    }
}

impl Document {
    fn new(value: &Value) -> Self {
        let json: Bytes = value.to_string().into();
        let mut hash = String::new();
        for byte in Sha512::digest(&json) {
            write!(hash, "{byte:02X}").expect("writing to a string does not fail");
        }
        Self { json, hash }
    }

    fn url(&self, name: &str) -> String {
        format!("{ROOT}/{name}?hash={}", self.hash)
    }
}

fn group_document(resources: &[&'static Resource]) -> Value {
    let mut kinds: Vec<&'static Kind> = resources.iter().map(|resource| resource.schema).collect();
    for resource in resources {
        kinds.extend(hotmap_schema::kind(
            resource.group,
            resource.version,
            &format!("{}List", resource.kind),
        ));
        let others = resource.subresources.iter().map(|one| &one.kind);
        kinds.extend(others.filter_map(|kind| hotmap_schema::kind(&kind.group, &kind.version, &kind.kind)));
    }
    for name in ["Status", "DeleteOptions"] {
        kinds.extend(hotmap_schema::kind("", "v1", name));
    }
    let paths: serde_json::Map<String, Value> = resources
        .iter()
        .flat_map(|resource| paths::items(resource))
        .collect();
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.0"},
        "paths": paths,
        "components": {"schemas": schemas(kinds)},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(path: &str, query: &str, accept: &str) -> Result<Option<Answer>, u16> {
        let openapi = OpenApi::new(hotmap_kinds::resources());
        let answer = openapi
            .answer(
                path,
                &Query::parse(query),
                &HeaderMap::new(),
                &Accept::parse(accept),
            )
            .await;
        answer.map_err(|status| status.code)
    }

    fn value(answer: &Answer) -> Value {
        let Body::Full(json) = &answer.body else {
            panic!("{answer:?}")
        };
        serde_json::from_slice(json).expect("JSON")
    }

    #[tokio::test]
    async fn the_documents_prove_what_kubectl_asks_for() {
        let index = get("/openapi/v3", "", "application/json, */*")
            .await
            .expect("served")
            .expect("an index");
        let url = value(&index)["paths"]["api/v1"]["serverRelativeURL"]
            .as_str()
            .expect("a URL")
            .to_owned();
        let (path, query) = url.split_once('?').expect("a hash");
        let core = get(path, query, "application/json")
            .await
            .expect("served")
            .expect("a document");
        assert!(
            core.headers
                .iter()
                .any(|(name, value)| name == CACHE_CONTROL && value == "public, immutable")
        );
        let core = value(&core);
        let patch = &core["paths"]["/api/v1/namespaces/{namespace}/configmaps/{name}"]["patch"];
        assert_eq!(
            patch["x-kubernetes-group-version-kind"],
            json!({"group": "", "version": "v1", "kind": "ConfigMap"})
        );
        assert!(
            patch["parameters"]
                .as_array()
                .expect("parameters")
                .iter()
                .any(|one| one["name"] == "fieldValidation")
        );
        assert!(patch["requestBody"]["content"]["application/strategic-merge-patch+json"].is_object());
        let schema = &core["components"]["schemas"]["io.k8s.api.core.v1.ConfigMap"];
        assert_eq!(schema["x-kubernetes-group-version-kind"][0]["kind"], "ConfigMap");
        assert!(schema["properties"]["data"].is_object());
    }

    #[tokio::test]
    async fn other_hashes_are_sent_on_and_other_types_refused() {
        let moved = get("/openapi/v3/api/v1", "hash=OLD", "")
            .await
            .expect("served")
            .expect("an answer");
        assert_eq!(moved.code, 301);
        assert_eq!(
            get(
                "/openapi/v3/api/v1",
                "",
                "application/com.github.proto-openapi.spec.v3@v1.0+protobuf"
            )
            .await
            .map(|_| ()),
            Err(406)
        );
        assert!(
            get("/openapi/v3/apis/nothing/v1", "", "")
                .await
                .expect("served")
                .is_none()
        );
    }
}
