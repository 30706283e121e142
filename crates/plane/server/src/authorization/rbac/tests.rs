//! Roles and bindings are fed in as the cache feeds them: as stored objects, one change after the other.

mod decisions;
mod defaults;
mod escalation;
mod naive;

use hotmap_kinds::find;
use hotmap_object::{Draft, Revision};
use serde_json::{Map, Value, json};

use super::{GROUP, RoleIndex};
use crate::{authorization::Attributes, cache::Observer, request::User};

/// An index that has been told of these objects.
fn index(objects: &[Value]) -> RoleIndex {
    let index = RoleIndex::default();
    for object in objects {
        put(&index, object);
    }
    index
}

fn put(index: &RoleIndex, object: &Value) {
    let value = object.as_object().expect("an object");
    let stored = Draft::new(value, Vec::new()).at(Revision::ZERO.next());
    let (plural, key) = place(object);
    let resource = find(GROUP, "v1", plural).expect("served");
    index.changed(resource, &key, Some(&stored));
}

fn delete(index: &RoleIndex, object: &Value) {
    let (plural, key) = place(object);
    index.changed(find(GROUP, "v1", plural).expect("served"), &key, None);
}

fn place(object: &Value) -> (&'static str, String) {
    let plural = match object["kind"].as_str().expect("a kind") {
        "Role" => "roles",
        "ClusterRole" => "clusterroles",
        "RoleBinding" => "rolebindings",
        _ => "clusterrolebindings",
    };
    let metadata = &object["metadata"];
    let name = metadata["name"].as_str().expect("a name");
    let key = match metadata["namespace"].as_str() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.to_owned(),
    };
    (plural, key)
}

/// `place` is `NAME`, or `NAMESPACE/NAME` for what has a namespace.
fn metadata(place: &str) -> Value {
    match place.split_once('/') {
        Some((namespace, name)) => json!({"namespace": namespace, "name": name}),
        None => json!({"name": place}),
    }
}

fn role(place: &str, rules: Value) -> Value {
    let kind = if place.contains('/') {
        "Role"
    } else {
        "ClusterRole"
    };
    json!({"kind": kind, "metadata": metadata(place), "rules": rules})
}

/// `role` is `Role NAME` or `ClusterRole NAME`; a subject `User NAME`, `Group NAME` or `ServiceAccount [NAMESPACE/]NAME`.
fn binding(place: &str, role: &str, subjects: &[&str]) -> Value {
    let kind = if place.contains('/') {
        "RoleBinding"
    } else {
        "ClusterRoleBinding"
    };
    let (role_kind, role_name) = role.split_once(' ').expect("a kind and a name");
    let subjects = subjects.iter().map(|subject| {
        let (kind, name) = subject.split_once(' ').expect("a kind and a name");
        match name.split_once('/') {
            Some((namespace, name)) => json!({"kind": kind, "name": name, "namespace": namespace}),
            None => json!({"kind": kind, "name": name}),
        }
    });
    json!({
        "kind": kind, "metadata": metadata(place),
        "roleRef": {"apiGroup": GROUP, "kind": role_kind, "name": role_name},
        "subjects": subjects.collect::<Vec<_>>(),
    })
}

fn rule(verbs: &[&str], groups: &[&str], resources: &[&str], names: &[&str]) -> Value {
    json!({"verbs": verbs, "apiGroups": groups, "resources": resources, "resourceNames": names})
}

fn user(name: &str, groups: &[&str]) -> User {
    User {
        name: name.to_owned(),
        groups: groups.iter().map(|&group| group.to_owned()).collect(),
        ..User::default()
    }
}

/// `VERB GROUP RESOURCE[/SUBRESOURCE] NAMESPACE/NAME`, with `-` for the core group; or `VERB /PATH`.
fn wanted(text: &str) -> Attributes {
    let parts: Vec<&str> = text.split(' ').collect();
    if parts[1].starts_with('/') {
        return Attributes::of_path(parts[0], parts[1]);
    }
    let (resource, subresource) = parts[2].split_once('/').unwrap_or((parts[2], ""));
    let (namespace, name) = parts[3].split_once('/').expect("NAMESPACE/NAME");
    Attributes {
        verb: parts[0].to_owned(),
        group: parts[1].replace('-', ""),
        version: "v1".to_owned(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        ..Attributes::default()
    }
}

fn map(value: Value) -> Map<String, Value> {
    value.as_object().cloned().expect("an object")
}
