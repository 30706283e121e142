//! Event: something worth telling happened to an object. One stored shape, core `v1`; `events.k8s.io` is a second view.
//!
//! ```text
//!     events.k8s.io                    v1, as stored
//!     regarding, note                  involvedObject, message
//!     reportingController              reportingComponent
//!     deprecatedSource, deprecated…    source, firstTimestamp, lastTimestamp, count
//! ```
//!
//! Rules follow `pkg/apis/core/validation/events.go`, Kubernetes 1.36.

use std::{borrow::Cow, sync::LazyLock};

use hotmap_object::{FieldError, names};
use hotmap_schema::{Kind, conform};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::{
    Column, Strategy,
    fields::Fields,
    rules::{self, Errors, IMMUTABLE, broken},
    table,
};

const EVENTS_API: &str = "events.k8s.io/v1";
const SHORT_TEXT_MAX: usize = 128;
const MESSAGE_MAX: usize = 1024;

static CORE_KIND: LazyLock<&Kind> = LazyLock::new(|| event_kind(""));
static EVENTS_KIND: LazyLock<&Kind> = LazyLock::new(|| event_kind("events.k8s.io"));

/// Members that the two shapes call differently: core `v1`, then `events.k8s.io`.
const RENAMED: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// Selectable fields: core `v1`, then `events.k8s.io` where it has the field too.
const SELECTABLE: [(&str, Option<&str>); 11] = [
    ("involvedObject.kind", Some("regarding.kind")),
    ("involvedObject.namespace", Some("regarding.namespace")),
    ("involvedObject.name", Some("regarding.name")),
    ("involvedObject.uid", Some("regarding.uid")),
    ("involvedObject.apiVersion", Some("regarding.apiVersion")),
    (
        "involvedObject.resourceVersion",
        Some("regarding.resourceVersion"),
    ),
    ("involvedObject.fieldPath", Some("regarding.fieldPath")),
    ("reason", None),
    ("reportingComponent", Some("reportingController")),
    ("source", None),
    ("type", None),
];

/// The rules of core events.
pub(crate) struct CoreEvent;

/// The rules of events through `events.k8s.io`: stricter, since nobody has to be compatible with the past there.
pub(crate) struct EventsEvent;

const COLUMNS: &[Column] = &[
    table::column("Last Seen", "string", "Time since it last happened."),
    table::column(
        "Type",
        "string",
        "`Normal`, or `Warning` if somebody should look.",
    ),
    table::column("Reason", "string", "What happened, in one word."),
    table::column("Object", "string", "Kind and name of the object it happened to."),
    table::wide(
        "Subobject",
        "string",
        "Which part of the object, such as one container.",
    ),
    table::wide("Source", "string", "Who reported it, and from where."),
    table::column("Message", "string", "What happened, in a sentence."),
    table::wide("First Seen", "string", "Time since it first happened."),
    table::wide("Count", "string", "How often it happened."),
    Column {
        priority: 1,
        ..table::NAME
    },
];

impl Strategy for CoreEvent {
    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        common(&mut errors, object, "reportingComponent");
        errors
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        const FIELDS: [&str; 11] = {
            let mut fields = [""; 11];
            let mut at = 0;
            while at < SELECTABLE.len() {
                fields[at] = SELECTABLE[at].0;
                at += 1;
            }
            fields
        };
        &FIELDS
    }

    fn field_values(&self, object: &Map<String, Value>) -> Vec<(&'static str, String)> {
        field_values(&stored(object))
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        cells(&stored(object), now)
    }
}

impl Strategy for EventsEvent {
    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let event = stored(object);
        let mut errors = Vec::new();
        common(&mut errors, &event, "reportingController");
        series(&mut errors, &event);
        if !event.has("eventTime") {
            errors.push(FieldError::required("eventTime", ""));
        }
        let of = event.text("type");
        if !matches!(of, "Normal" | "Warning") {
            errors.push(FieldError::invalid(
                "type",
                "",
                format!("has invalid value: {of}"),
            ));
        }
        let source = event.map("source");
        let unset = [
            ("firstTimestamp", event.has("firstTimestamp")),
            ("lastTimestamp", event.has("lastTimestamp")),
            ("count", event.int("count").unwrap_or_default() != 0),
            ("source", source.has("component") || source.has("host")),
        ];
        let set = unset.into_iter().filter(|(_, is_set)| *is_set);
        errors.extend(set.map(|(field, _)| FieldError::invalid(field, "", "needs to be unset")));
        errors
    }

    fn validate_update(
        &self,
        new: &Map<String, Value>,
        old: &Map<String, Value>,
        _subresource: &str,
    ) -> Vec<FieldError> {
        let (new, old) = (stored(new), stored(old));
        let mut errors = Vec::new();
        common(&mut errors, &new, "reportingController");
        if new.map("series") != old.map("series") {
            series(&mut errors, &new);
        }
        for field in [
            "involvedObject",
            "reason",
            "message",
            "source",
            "firstTimestamp",
            "lastTimestamp",
            "count",
            "type",
            "eventTime",
            "action",
            "related",
            "reportingComponent",
            "reportingInstance",
        ] {
            if differs(&new, &old, field) {
                // Upstream names the field as its internal type does, which is this version's word for it.
                let path = if field == "reportingComponent" {
                    "reportingController"
                } else {
                    field
                };
                let value = new.member(field).cloned().unwrap_or_default();
                errors.push(FieldError::invalid(path, value, IMMUTABLE));
            }
        }
        errors
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &[
            "reason",
            "regarding.kind",
            "regarding.namespace",
            "regarding.name",
            "regarding.uid",
            "regarding.apiVersion",
            "regarding.resourceVersion",
            "regarding.fieldPath",
            "reportingController",
            "type",
        ]
    }

    fn field_values(&self, object: &Map<String, Value>) -> Vec<(&'static str, String)> {
        field_values(&stored(object))
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        cells(&stored(object), now)
    }

    fn from_stored(&self, mut object: Map<String, Value>) -> Map<String, Value> {
        for (core, events) in RENAMED {
            if let Some(held) = object.remove(core) {
                object.insert(events.to_owned(), held);
            }
        }
        object.insert("apiVersion".to_owned(), EVENTS_API.into());
        canonical(object, &EVENTS_KIND)
    }

    fn to_stored(&self, mut object: Map<String, Value>) -> Map<String, Value> {
        for (core, events) in RENAMED {
            if let Some(held) = object.remove(events) {
                object.insert(core.to_owned(), held);
            }
        }
        object.insert("apiVersion".to_owned(), "v1".into());
        canonical(object, &CORE_KIND)
    }
}

/// The two versions differ in which empty members they write; the schema knows.
fn canonical(object: Map<String, Value>, kind: &Kind) -> Map<String, Value> {
    match conform(Value::Object(object.clone()), kind.message).map(|conformed| conformed.value) {
        Ok(Value::Object(held)) => held,
        // Only what no schema has seen comes here, and stays as it is.
        _ => object,
    }
}

/// The stored shape, whichever shape the caller holds.
fn stored(object: &Map<String, Value>) -> Cow<'_, Map<String, Value>> {
    if object.text("apiVersion") == EVENTS_API {
        Cow::Owned(EventsEvent.to_stored(object.clone()))
    } else {
        Cow::Borrowed(object)
    }
}

fn event_kind(group: &str) -> &'static Kind {
    hotmap_schema::kind(group, "v1", "Event").expect("the schema tables hold both kinds of events")
}

fn differs(new: &Map<String, Value>, old: &Map<String, Value>, field: &str) -> bool {
    let empty = |value: Option<&Value>| {
        value.is_none_or(|value| matches!(value, Value::Object(held) if held.is_empty()))
    };
    let (new, old) = (new.member(field), old.member(field));
    new != old && !(empty(new) && empty(old))
}

fn common(errors: &mut Errors, event: &Map<String, Value>, controller_field: &str) {
    let namespace = event.map("metadata").text("namespace");
    let involved = event.map("involvedObject").text("namespace");
    let has_event_time = event.has("eventTime");
    let agrees = match (has_event_time, involved) {
        (false, "") => matches!(namespace, "" | "default"),
        (false, involved) => involved == namespace,
        (true, "") => matches!(namespace, "default" | "kube-system"),
        (true, _) => true,
    };
    if !agrees {
        errors.push(FieldError::invalid(
            "involvedObject.namespace",
            involved,
            "does not match event.namespace",
        ));
    }
    if has_event_time {
        reported(errors, event, controller_field);
    }
    broken(errors, "namespace", namespace, rules::subdomain(namespace));
}

fn reported(errors: &mut Errors, event: &Map<String, Value>, controller_field: &str) {
    let controller = event.text("reportingComponent");
    if controller.is_empty() {
        errors.push(FieldError::required(controller_field, ""));
    }
    broken(
        errors,
        controller_field,
        controller,
        names::qualified_name(controller),
    );
    for field in ["reportingInstance", "action", "reason"] {
        if event.text(field).is_empty() {
            errors.push(FieldError::required(field, ""));
        }
        no_longer_than(errors, event, field, SHORT_TEXT_MAX);
    }
    no_longer_than(errors, event, "message", MESSAGE_MAX);
}

fn no_longer_than(errors: &mut Errors, event: &Map<String, Value>, field: &str, max: usize) {
    if event.text(field).len() > max {
        errors.push(FieldError::invalid(
            field,
            "",
            format!("can have at most {max} characters"),
        ));
    }
}

fn series(errors: &mut Errors, event: &Map<String, Value>) {
    let Some(series) = event.member("series") else {
        return;
    };
    if series.int("count").unwrap_or_default() < 2 {
        errors.push(FieldError::invalid("series.count", "", "should be at least 2"));
    }
    if !series.has("lastObservedTime") {
        errors.push(FieldError::required("series.lastObservedTime", ""));
    }
}

/// Values under the names of both versions: they select among the same stored objects.
fn field_values(event: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let mut values = Vec::with_capacity(SELECTABLE.len() + 8);
    for (core, events) in SELECTABLE {
        let value = match core.split_once('.') {
            Some((object, field)) => event.map(object).text(field),
            None if core == "source" => first_of(
                event.map("source").text("component"),
                event.text("reportingComponent"),
            ),
            None => event.text(core),
        };
        values.push((core, value.to_owned()));
        values.extend(events.map(|name| (name, value.to_owned())));
    }
    values
}

fn cells(event: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
    let first = event.time("firstTimestamp").or_else(|| event.time("eventTime"));
    let (last, count) = match event.member("series") {
        Some(series) => (
            series.time("lastObservedTime"),
            series.int("count").unwrap_or_default(),
        ),
        None => (
            event.time("lastTimestamp").or(first),
            event.int("count").filter(|count| *count != 0).unwrap_or(1),
        ),
    };
    let involved = event.map("involvedObject");
    vec![
        table::ago(last, now).into(),
        event.text("type").into(),
        event.text("reason").into(),
        object_name(involved).into(),
        involved.text("fieldPath").into(),
        source(event).into(),
        event.text("message").trim().into(),
        table::ago(first, now).into(),
        count.into(),
        table::name(event),
    ]
}

fn object_name(involved: &Map<String, Value>) -> String {
    let kind = involved.text("kind").to_lowercase();
    match involved.text("name") {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn source(event: &Map<String, Value>) -> String {
    let source = event.map("source");
    let component = first_of(source.text("component"), event.text("reportingComponent"));
    match first_of(source.text("host"), event.text("reportingInstance")) {
        "" => component.to_owned(),
        instance => format!("{component}, {instance}"),
    }
}

fn first_of<'a>(one: &'a str, other: &'a str) -> &'a str {
    if one.is_empty() { other } else { one }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{map, texts};

    fn core_event() -> Value {
        json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "n"},
               "involvedObject": {"kind": "Pod", "namespace": "n", "name": "p", "fieldPath": "spec.containers{c}"},
               "reason": "Pulled", "message": " done \n", "source": {"component": "kubelet", "host": "h"},
               "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:01:00Z", "count": 3,
               "type": "Normal", "eventTime": null, "reportingComponent": "", "reportingInstance": ""})
    }

    #[test]
    fn both_views_show_one_event() {
        let core = map(core_event());
        let view = EventsEvent.from_stored(core.clone());
        assert_eq!(
            Value::Object(view.clone()),
            json!({"apiVersion": "events.k8s.io/v1", "kind": "Event", "metadata": {"name": "e", "namespace": "n"},
                   "regarding": {"kind": "Pod", "namespace": "n", "name": "p", "fieldPath": "spec.containers{c}"},
                   "reason": "Pulled", "note": " done \n", "deprecatedSource": {"component": "kubelet", "host": "h"},
                   "deprecatedFirstTimestamp": "2026-01-01T00:00:00Z",
                   "deprecatedLastTimestamp": "2026-01-01T00:01:00Z", "deprecatedCount": 3,
                   "type": "Normal", "eventTime": null})
        );
        assert_eq!(EventsEvent.field_values(&view), CoreEvent.field_values(&core));
        let now = "2026-01-01T00:02:00Z".parse().expect("a time");
        assert_eq!(EventsEvent.cells(&view, now), CoreEvent.cells(&core, now));
        assert_eq!(EventsEvent.to_stored(view), core);
    }

    #[test]
    fn the_row_tells_when_who_and_what() {
        let now = "2026-01-01T00:02:00Z".parse().expect("a time");
        assert_eq!(
            Value::Array(CoreEvent.cells(&map(core_event()), now)),
            json!([
                "60s",
                "Normal",
                "Pulled",
                "pod/p",
                "spec.containers{c}",
                "kubelet, h",
                "done",
                "2m",
                3,
                "e"
            ])
        );
        let series = map(
            json!({"metadata": {"name": "e"}, "eventTime": "2026-01-01T00:00:00.000000Z",
            "series": {"count": 7, "lastObservedTime": "2026-01-01T00:01:55.000000Z"}, "involvedObject": {"kind": "Node"}}),
        );
        assert_eq!(
            Value::Array(CoreEvent.cells(&series, now)),
            json!(["5s", "", "", "node", "", "", "", "2m", 7, "e"])
        );
    }

    #[test]
    fn every_selectable_field_has_a_value() {
        let event = map(core_event());
        let values = CoreEvent.field_values(&event);
        for field in CoreEvent
            .selectable_fields()
            .iter()
            .chain(EventsEvent.selectable_fields())
        {
            assert!(values.iter().any(|(name, _)| name == field), "{field}");
        }
        assert!(values.contains(&("source", "kubelet".to_owned())));
        assert!(values.contains(&("regarding.name", "p".to_owned())));
    }

    #[test]
    fn old_events_agree_about_the_namespace_and_new_ones_say_who_reports() {
        let table = [
            (core_event(), vec![]),
            (
                json!({"metadata": {"namespace": "n"}, "involvedObject": {"namespace": "m"}}),
                vec!["involvedObject.namespace: Invalid value: \"m\": does not match event.namespace"],
            ),
            (
                json!({"metadata": {"namespace": "default"}, "involvedObject": {}}),
                vec![],
            ),
            (
                json!({"metadata": {"namespace": "n"}, "involvedObject": {"namespace": "m"}, "action": "a",
                       "eventTime": "2026-01-01T00:00:00.000000Z", "reportingComponent": "x.y/z", "reason": "r"}),
                vec!["reportingInstance: Required value"],
            ),
        ];
        for (event, wanted) in table {
            assert_eq!(texts(&CoreEvent.validate(&map(event.clone()))), wanted, "{event}");
        }
    }

    #[test]
    fn the_new_version_is_strict() {
        let good = json!({"apiVersion": "events.k8s.io/v1", "metadata": {"namespace": "n", "name": "e"},
            "regarding": {"namespace": "n", "name": "p"}, "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingController": "x.y/z", "reportingInstance": "i", "action": "a", "reason": "r", "type": "Normal",
            "note": "n"});
        assert_eq!(texts(&EventsEvent.validate(&map(good.clone()))), [""; 0]);
        let mut bad = map(good.clone());
        bad.insert("deprecatedCount".into(), 1.into());
        bad.insert("type".into(), "X".into());
        bad.insert("series".into(), json!({"count": 1}));
        assert_eq!(
            texts(&EventsEvent.validate(&bad)),
            [
                "series.count: Invalid value: \"\": should be at least 2",
                "series.lastObservedTime: Required value",
                "type: Invalid value: \"\": has invalid value: X",
                "count: Invalid value: \"\": needs to be unset",
            ]
        );
        let mut changed = map(good.clone());
        changed.insert("note".into(), "other".into());
        assert_eq!(
            texts(&EventsEvent.validate_update(&changed, &map(good), "")),
            ["message: Invalid value: \"other\": field is immutable"]
        );
    }
}
