//! What an access review asks, checked.

use std::borrow::Cow;

use hotmap_object::{FieldError, FieldSelector, GroupVersionKind, LabelSelector, Status};
use serde_json::Value;

use crate::{authorization::Attributes, request::User};

/// Whom a review is about, by its kind.
pub(super) enum Asked<'a> {
    OfOneself(&'a User),
    OfAnybody,
    /// Of anybody, in this namespace.
    InNamespace(&'a str),
}

/// May this user do that?
pub(super) struct Question<'a> {
    pub(super) user: Cow<'a, User>,
    pub(super) wanted: Attributes,
    /// What could not be read and makes the question a wider one.
    pub(super) ignored: Vec<String>,
}

impl<'a> Question<'a> {
    /// # Errors
    ///
    /// 400 for a local review of another namespace, 422 for a question that asks nothing, two things, or about nobody.
    pub(super) fn read(asked: Asked<'a>, review: &Value, gvk: &GroupVersionKind) -> Result<Self, Status> {
        let spec = &review["spec"];
        let mut errors = Vec::new();
        check_what(&mut errors, spec);
        if !matches!(asked, Asked::OfOneself(_)) && is_empty(&spec["user"]) && is_empty(&spec["groups"]) {
            let why = "at least one of user or group must be specified";
            errors.push(FieldError::invalid("spec.user", "", why));
        }
        check_selectors(&mut errors, &spec["resourceAttributes"]);
        check_metadata(&mut errors, &asked, &review["metadata"])?;
        if let Asked::InNamespace(namespace) = asked {
            check_namespace(&mut errors, namespace, spec);
        }
        if !errors.is_empty() {
            return Err(Status::invalid(gvk, "", &errors));
        }
        let (wanted, ignored) = wanted(spec);
        let user = match asked {
            Asked::OfOneself(user) => Cow::Borrowed(user),
            Asked::OfAnybody | Asked::InNamespace(_) => Cow::Owned(user(spec)),
        };
        Ok(Self {
            user,
            wanted,
            ignored,
        })
    }
}

fn check_what(errors: &mut Vec<FieldError>, spec: &Value) {
    let (resource, path) = (&spec["resourceAttributes"], &spec["nonResourceAttributes"]);
    match (resource.is_object(), path.is_object()) {
        (true, true) => errors.push(FieldError::invalid(
            "spec.nonResourceAttributes",
            path.clone(),
            "cannot be specified in combination with resourceAttributes",
        )),
        (false, false) => errors.push(FieldError::invalid(
            "spec.resourceAttributes",
            Value::Null,
            "exactly one of nonResourceAttributes or resourceAttributes must be specified",
        )),
        _ => {}
    }
}

fn check_selectors(errors: &mut Vec<FieldError>, attributes: &Value) {
    for name in ["fieldSelector", "labelSelector"] {
        let selector = &attributes[name];
        if !selector.is_object() {
            continue;
        }
        let path = format!("spec.resourceAttributes.{name}");
        match (
            is_empty(&selector["rawSelector"]),
            is_empty(&selector["requirements"]),
        ) {
            (false, false) => errors.push(FieldError::invalid(
                format!("{path}.rawSelector"),
                selector["rawSelector"].clone(),
                "may not specified at the same time as requirements",
            )),
            (true, true) => errors.push(FieldError::required(
                format!("{path}.requirements"),
                format!("when {path} is specified, requirements or rawSelector is required"),
            )),
            _ => {}
        }
    }
}

fn check_metadata(errors: &mut Vec<FieldError>, asked: &Asked<'_>, metadata: &Value) -> Result<(), Status> {
    let is_local = matches!(asked, Asked::InNamespace(_));
    let members = metadata.as_object().into_iter().flatten();
    let mut rest = members.filter(|(key, value)| {
        let may_be_there = key.as_str() == "managedFields" || is_local && key.as_str() == "namespace";
        !may_be_there && !is_empty(value)
    });
    if rest.next().is_some() {
        let why = if is_local {
            "must be empty except for namespace"
        } else {
            "must be empty"
        };
        errors.push(FieldError::invalid("metadata", metadata.clone(), why));
    }
    match asked {
        Asked::InNamespace(namespace)
            if !is_empty(&metadata["namespace"]) && metadata["namespace"] != *namespace =>
        {
            let text =
                "the namespace of the provided object does not match the namespace sent on the request";
            Err(Status::bad_request(text))
        }
        _ => Ok(()),
    }
}

fn check_namespace(errors: &mut Vec<FieldError>, namespace: &str, spec: &Value) {
    let attributes = &spec["resourceAttributes"];
    let sent = attributes["namespace"].as_str().unwrap_or_default();
    if attributes.is_object() && sent != namespace {
        let path = "spec.resourceAttributes.namespace";
        errors.push(FieldError::invalid(path, sent, "must match metadata.namespace"));
    }
    let path = &spec["nonResourceAttributes"];
    if path.is_object() {
        let why = "disallowed on this kind of request";
        errors.push(FieldError::invalid(
            "spec.nonResourceAttributes",
            path.clone(),
            why,
        ));
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn user(spec: &Value) -> User {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let texts = |value: &Value| value.as_array().into_iter().flatten().map(text).collect();
    let extra = spec["extra"].as_object().into_iter().flatten();
    User {
        name: text(&spec["user"]),
        groups: texts(&spec["groups"]),
        uid: text(&spec["uid"]),
        extra: extra.map(|(key, values)| (key.clone(), texts(values))).collect(),
    }
}

fn wanted(spec: &Value) -> (Attributes, Vec<String>) {
    let text = |attributes: &Value, key: &str| attributes[key].as_str().unwrap_or_default().to_owned();
    let path = &spec["nonResourceAttributes"];
    if path.is_object() {
        let wanted = Attributes {
            verb: text(path, "verb"),
            path: Some(text(path, "path")),
            ..Attributes::default()
        };
        return (wanted, Vec::new());
    }
    let asked = &spec["resourceAttributes"];
    let mut ignored = Vec::new();
    let fields = fields(&asked["fieldSelector"], &mut ignored);
    let labels = text(&asked["labelSelector"], "rawSelector");
    if labels.parse::<LabelSelector>().is_err() {
        ignored.push("spec.resourceAttributes.labelSelector ignored due to parse error".to_owned());
    }
    let wanted = Attributes {
        verb: text(asked, "verb"),
        group: text(asked, "group"),
        version: text(asked, "version"),
        resource: text(asked, "resource"),
        subresource: text(asked, "subresource"),
        namespace: text(asked, "namespace"),
        name: text(asked, "name"),
        path: None,
        fields,
    };
    (wanted, ignored)
}

/// The field selector, as far as it can be read: requirements only narrow, so that without one more is asked for.
fn fields(selector: &Value, ignored: &mut Vec<String>) -> FieldSelector {
    let terms: Vec<Option<String>> = match selector["rawSelector"].as_str() {
        Some(raw) if !raw.is_empty() => vec![Some(raw.to_owned())],
        _ => selector["requirements"]
            .as_array()
            .into_iter()
            .flatten()
            .map(term)
            .collect(),
    };
    let asked = terms.len();
    let readable: Vec<String> = terms
        .into_iter()
        .flatten()
        .filter(|term| term.parse::<FieldSelector>().is_ok())
        .collect();
    if readable.len() < asked {
        let partially = if readable.is_empty() { "" } else { "partially " };
        ignored.push(format!(
            "spec.resourceAttributes.fieldSelector {partially}ignored due to parse error"
        ));
    }
    readable.join(",").parse().unwrap_or_default()
}

/// One requirement as text; `None` for those that field selectors cannot say.
fn term(requirement: &Value) -> Option<String> {
    let operator = match requirement["operator"].as_str()? {
        "In" => "=",
        "NotIn" => "!=",
        _ => return None,
    };
    let [value] = requirement["values"].as_array()?.as_slice() else {
        return None;
    };
    let value = value
        .as_str()?
        .replace('\\', "\\\\")
        .replace(',', "\\,")
        .replace('=', "\\=");
    Some(format!("{}{operator}{value}", requirement["key"].as_str()?))
}
