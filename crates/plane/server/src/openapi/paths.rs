//! The operations of one resource, as OpenAPI path items.

use hotmap_kinds::{Resource, Subresource};
use hotmap_object::GroupVersionKind;
use hotmap_schema::openapi::reference;
use serde_json::{Map, Value, json};

const OBJECT_TYPES: [&str; 3] = [
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
];
/// The patch types that are served; apply is not yet.
const PATCH_TYPES: [&str; 3] = [
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
];

const WRITE_PARAMETERS: [(&str, &str, &str); 3] = [
    ("dryRun", "string", "All: check everything, store nothing."),
    ("fieldManager", "string", "Who makes the change."),
    (
        "fieldValidation",
        "string",
        "What unknown and duplicate fields are: Ignore, Warn or Strict.",
    ),
];
const LIST_PARAMETERS: [(&str, &str, &str); 9] = [
    ("allowWatchBookmarks", "boolean", "Send bookmarks on a watch."),
    ("continue", "string", "The token of the page before."),
    ("fieldSelector", "string", "Which fields select objects."),
    ("labelSelector", "string", "Which labels select objects."),
    ("limit", "integer", "Objects on a page."),
    (
        "resourceVersion",
        "string",
        "The revision to read at or to watch from.",
    ),
    (
        "resourceVersionMatch",
        "string",
        "How the revision is meant: Exact or NotOlderThan.",
    ),
    ("timeoutSeconds", "integer", "How long a watch lasts."),
    ("watch", "boolean", "Send changes instead of a list."),
];
const DELETE_PARAMETERS: [(&str, &str, &str); 3] = [
    ("dryRun", "string", "All: check everything, store nothing."),
    ("gracePeriodSeconds", "integer", "Time until the object is gone."),
    (
        "propagationPolicy",
        "string",
        "What happens to dependents: Orphan, Background or Foreground.",
    ),
];

/// `api/v1` or `apis/apps/v1`.
pub(super) fn group_version(resource: &Resource) -> String {
    match resource.group {
        "" => format!("api/{}", resource.version),
        group => format!("apis/{group}/{}", resource.version),
    }
}

/// Path and item for the collection, across namespaces too, for one object, and for each sub-resource.
pub(super) fn items(resource: &'static Resource) -> Vec<(String, Value)> {
    let root = format!("/{}", group_version(resource));
    let collection = match resource.namespaced {
        true => format!("{root}/namespaces/{{namespace}}/{}", resource.plural),
        false => format!("{root}/{}", resource.plural),
    };
    let one = format!("{collection}/{{name}}");
    let mut items = vec![(
        collection,
        item(resource, None, &["list", "create", "deletecollection"]),
    )];
    if resource.namespaced {
        items.push((
            format!("{root}/{}", resource.plural),
            item(resource, None, &["list"]),
        ));
    }
    if resource.verbs.contains(&"get") {
        items.push((
            one.clone(),
            item(resource, None, &["get", "update", "patch", "delete"]),
        ));
    }
    for subresource in resource.subresources {
        let verbs = &["get", "create", "update", "patch"];
        items.push((
            format!("{one}/{}", subresource.name),
            item(resource, Some(subresource), verbs),
        ));
    }
    items
}

fn item(resource: &Resource, subresource: Option<&Subresource>, verbs: &[&str]) -> Value {
    let served = subresource.map_or(resource.verbs, |one| one.verbs);
    let gvk = subresource.map_or_else(|| resource.gvk(), |one| one.kind.clone());
    let operations = verbs.iter().filter(|verb| served.contains(verb));
    let operations: Map<String, Value> = operations
        .map(|verb| (method(verb).to_owned(), operation(verb, resource, &gvk)))
        .collect();
    operations.into()
}

fn method(verb: &str) -> &'static str {
    match verb {
        "create" => "post",
        "update" => "put",
        "patch" => "patch",
        "delete" | "deletecollection" => "delete",
        _ => "get",
    }
}

fn operation(verb: &str, resource: &Resource, gvk: &GroupVersionKind) -> Value {
    let schema = object_schema(gvk);
    let (parameters, body): (&[_], Option<Value>) = match verb {
        "create" | "update" => (&WRITE_PARAMETERS, Some(content(&OBJECT_TYPES, &schema))),
        "patch" => (
            &WRITE_PARAMETERS,
            Some(content(&PATCH_TYPES, &json!({"type": "object"}))),
        ),
        "list" => (&LIST_PARAMETERS, None),
        "delete" | "deletecollection" => (&DELETE_PARAMETERS, None),
        _ => (&[], None),
    };
    let answer = match verb {
        "list" => object_schema(&GroupVersionKind {
            kind: format!("{}List", gvk.kind).into(),
            ..gvk.clone()
        }),
        _ => schema,
    };
    let parameters = parameters.iter().map(|(name, kind, description)| {
        json!({"name": name, "in": "query", "description": description, "schema": {"type": kind, "uniqueItems": true}})
    });
    let mut operation = json!({
        "operationId": format!("{verb}{}{}", resource.kind, if gvk.kind == resource.kind { "" } else { &gvk.kind }),
        "parameters": parameters.collect::<Vec<_>>(),
        "responses": {"200": {"description": "OK", "content": content(&OBJECT_TYPES, &answer)}},
        "x-kubernetes-action": action(verb),
        "x-kubernetes-group-version-kind": {"group": gvk.group, "version": gvk.version, "kind": gvk.kind},
    });
    if let Some(content) = body {
        operation["requestBody"] = json!({"required": true, "content": content});
    }
    operation
}

/// Upstream's word for a verb in `x-kubernetes-action`.
fn action(verb: &str) -> &str {
    match verb {
        "create" => "post",
        "update" => "put",
        verb => verb,
    }
}

fn content(types: &[&str], schema: &Value) -> Value {
    let types = types
        .iter()
        .map(|media_type| ((*media_type).to_owned(), json!({"schema": schema})));
    types.collect::<Map<_, _>>().into()
}

fn object_schema(gvk: &GroupVersionKind) -> Value {
    match hotmap_schema::kind(&gvk.group, &gvk.version, &gvk.kind) {
        Some(kind) => reference(kind.message.name),
        None => json!({"type": "object"}),
    }
}
