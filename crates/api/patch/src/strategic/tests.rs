//! Cases in our own small words; what happens in each was read off upstream's tests.

use hotmap_schema::{Cardinality, Field, ListType, Message, Omit, PatchStrategy, Type};
use serde_json::{Value, json};

mod properties;

use super::strategic_merge_patch;
use crate::PatchError;

/// A structure with one field of every way to merge; it holds itself.
static ITEM: Message = Message {
    name: "dev.hotmap.test.v1.Item",
    fields: &[
        field(
            "name",
            Type::String,
            Cardinality::Single,
            PatchStrategy::Unset,
            None,
        ),
        field(
            "value",
            Type::String,
            Cardinality::Single,
            PatchStrategy::Unset,
            None,
        ),
        field(
            "other",
            Type::String,
            Cardinality::Single,
            PatchStrategy::Unset,
            None,
        ),
        field(
            "items",
            Type::Message(&ITEM),
            Cardinality::List,
            PatchStrategy::Merge,
            Some("name"),
        ),
        field(
            "retained",
            Type::Message(&ITEM),
            Cardinality::List,
            PatchStrategy::MergeRetainKeys,
            Some("name"),
        ),
        field(
            "replaced",
            Type::Message(&ITEM),
            Cardinality::List,
            PatchStrategy::Unset,
            None,
        ),
        field(
            "keyless",
            Type::Message(&ITEM),
            Cardinality::List,
            PatchStrategy::Merge,
            None,
        ),
        field("set", Type::Int32, Cardinality::List, PatchStrategy::Merge, None),
        field(
            "numbers",
            Type::Int32,
            Cardinality::List,
            PatchStrategy::Unset,
            None,
        ),
        field(
            "labels",
            Type::String,
            Cardinality::Map,
            PatchStrategy::Unset,
            None,
        ),
        field(
            "item",
            Type::Message(&ITEM),
            Cardinality::Single,
            PatchStrategy::RetainKeys,
            None,
        ),
        field(
            "raw",
            Type::RawExtension,
            Cardinality::Single,
            PatchStrategy::Replace,
            None,
        ),
        field(
            "blob",
            Type::RawExtension,
            Cardinality::Single,
            PatchStrategy::Unset,
            None,
        ),
    ],
    type_meta: false,
    atomic: false,
};

const fn field(
    json: &'static str,
    kind: Type,
    cardinality: Cardinality,
    patch_strategy: PatchStrategy,
    merge_key: Option<&'static str>,
) -> Field {
    Field {
        json,
        number: 1,
        kind,
        cardinality,
        pointer: false,
        omit: Omit::Empty,
        inline: false,
        required: false,
        go_type: "",
        list_type: ListType::Unset,
        atomic: false,
        merge_key,
        patch_strategy,
        enum_values: &[],
    }
}

fn patched(original: &Value, patch: &Value) -> Result<Value, PatchError> {
    strategic_merge_patch(original.clone(), patch.clone(), &ITEM)
}

fn check(table: impl IntoIterator<Item = (Value, Value, Value)>) {
    for (original, patch, expected) in table {
        assert_eq!(patched(&original, &patch), Ok(expected), "{original} + {patch}");
    }
}

#[test]
fn objects_merge_and_null_deletes() {
    check([
        (json!({"name": "a"}), json!({}), json!({"name": "a"})),
        (
            json!({"name": "a"}),
            json!({"value": "b"}),
            json!({"name": "a", "value": "b"}),
        ),
        (
            json!({"name": "a", "value": "b"}),
            json!({"value": null}),
            json!({"name": "a"}),
        ),
        (
            json!({"labels": {"a": "1"}}),
            json!({"labels": {"b": "2", "c": null}}),
            json!({"labels": {"a": "1", "b": "2"}}),
        ),
        (
            json!({}),
            json!({"labels": {"a": "1", "b": null}}),
            json!({"labels": {"a": "1"}}),
        ),
        (
            json!({"item": {"name": "a"}}),
            json!({"item": {"value": "b"}}),
            json!({"item": {"name": "a", "value": "b"}}),
        ),
        (
            json!({"item": {"name": "a"}}),
            json!({"item": {}}),
            json!({"item": {"name": "a"}}),
        ),
        (
            json!({"value": "a"}),
            json!({"value": {"b": null}}),
            json!({"value": {}}),
        ),
        (
            json!({"raw": {"a": 1}}),
            json!({"raw": {"b": null}}),
            json!({"raw": {"b": null}}),
        ),
        (
            json!({"other": null}),
            json!({"other": "x"}),
            json!({"other": "x"}),
        ),
    ]);
}

#[test]
fn the_patch_directive_deletes_or_replaces_an_object() {
    check([
        (json!({"name": "a"}), json!({"$patch": "replace"}), json!({})),
        (
            json!({"name": "a", "value": "b"}),
            json!({"$patch": "replace", "other": "c"}),
            json!({"other": "c"}),
        ),
        (
            json!({"labels": {"a": "1"}}),
            json!({"labels": {"$patch": "delete"}}),
            json!({"labels": {}}),
        ),
        (
            json!({"labels": {"a": "1"}}),
            json!({"labels": {"$patch": "replace", "b": "2"}}),
            json!({"labels": {"b": "2"}}),
        ),
        (
            json!({"name": "a"}),
            json!({"labels": {"$patch": "delete"}}),
            json!({"name": "a"}),
        ),
    ]);
}

#[test]
fn lists_replace_unless_they_merge() {
    check([
        (
            json!({"numbers": [1, 2]}),
            json!({"numbers": [3]}),
            json!({"numbers": [3]}),
        ),
        (
            json!({"replaced": [{"name": "a"}]}),
            json!({"replaced": [{"value": "b"}]}),
            json!({"replaced": [{"value": "b"}]}),
        ),
        (
            json!({"set": [1, 2]}),
            json!({"set": [2, 3]}),
            json!({"set": [1, 2, 3]}),
        ),
        (
            json!({"set": [1, 2, 3]}),
            json!({"set": [3, 1]}),
            json!({"set": [2, 3, 1]}),
        ),
        (
            json!({"items": [{"name": "a", "value": "1"}]}),
            json!({"items": [{"name": "b"}, {"name": "a", "other": "2"}]}),
            json!({"items": [{"name": "b"}, {"name": "a", "value": "1", "other": "2"}]}),
        ),
        (
            json!({"items": [{"name": "a", "value": "1"}]}),
            json!({"items": [{"name": "a", "value": null}]}),
            json!({"items": [{"name": "a"}]}),
        ),
        (
            json!({"items": [{"name": "a", "items": [{"name": "x"}]}]}),
            json!({"items": [{"name": "a", "items": [{"name": "y"}]}]}),
            json!({"items": [{"name": "a", "items": [{"name": "y"}, {"name": "x"}]}]}),
        ),
        (json!({"items": []}), json!({"items": []}), json!({"items": []})),
        (
            json!({"items": null}),
            json!({"items": [{"name": "a"}]}),
            json!({"items": [{"name": "a"}]}),
        ),
    ]);
}

#[test]
fn directives_in_a_list_delete_elements_or_replace_the_list() {
    check([
        (
            json!({"items": [{"name": "a"}, {"name": "a"}, {"name": "b"}]}),
            json!({"items": [{"name": "a", "$patch": "delete"}]}),
            json!({"items": [{"name": "b"}]}),
        ),
        (
            json!({"items": [{"name": "a"}]}),
            json!({"items": [{"name": "x", "$patch": "delete"}]}),
            json!({"items": [{"name": "a"}]}),
        ),
        (
            json!({"items": [{"name": "a"}]}),
            json!({"items": [{"$patch": "replace"}]}),
            json!({"items": []}),
        ),
        (
            json!({"items": [{"name": "a"}]}),
            json!({"items": [{"name": "b"}, {"$patch": "replace"}]}),
            json!({"items": [{"name": "b"}]}),
        ),
        (
            json!({}),
            json!({"items": [{"name": "a"}, {"name": "b", "$patch": "delete"}]}),
            json!({"items": [{"name": "a"}]}),
        ),
    ]);
}

#[test]
fn scalars_are_deleted_from_a_list_by_name() {
    check([
        (
            json!({"set": [1, 2, 3]}),
            json!({"$deleteFromPrimitiveList/set": [2]}),
            json!({"set": [1, 3]}),
        ),
        (
            json!({"set": [1, 2, 2]}),
            json!({"$deleteFromPrimitiveList/set": [2, 9], "set": [4]}),
            json!({"set": [4, 1]}),
        ),
        (
            json!({"numbers": [1, 2]}),
            json!({"$deleteFromPrimitiveList/numbers": [2]}),
            json!({"numbers": [1]}),
        ),
        (
            json!({"set": null}),
            json!({"$deleteFromPrimitiveList/set": [2]}),
            json!({"set": null}),
        ),
        (
            json!({"name": "a"}),
            json!({"$deleteFromPrimitiveList/set": [2]}),
            json!({"name": "a"}),
        ),
    ]);
}

#[test]
fn elements_take_the_order_asked_for_and_server_only_ones_keep_their_place() {
    let names = |names: &str| -> Value {
        names
            .chars()
            .map(|name| json!({"name": name.to_string()}))
            .collect()
    };
    for (live, order, patch, expected) in [
        ("abc", "cab", "", "cab"),
        ("abc", "cb", "", "acb"),
        ("ab", "bca", "", "ba"),
        ("abc", "adc", "d", "adbc"),
        ("xab", "ba", "", "xba"),
        ("axb", "ba", "", "xba"),
        ("abxcd", "badc", "", "baxdc"),
        ("ab", "cd", "cd", "cdab"),
        ("", "ab", "ab", "ab"),
    ] {
        let mut change = json!({"$setElementOrder/items": names(order)});
        if !patch.is_empty() {
            change["items"] = names(patch);
        }
        let original = if live.is_empty() {
            json!({})
        } else {
            json!({"items": names(live)})
        };
        assert_eq!(
            patched(&original, &change),
            Ok(json!({"items": names(expected)})),
            "{live} {order} {patch}"
        );
    }
    check([
        (
            json!({"set": [1, 3]}),
            json!({"$setElementOrder/set": [3, 2, 1]}),
            json!({"set": [3, 1]}),
        ),
        (
            json!({"set": [1, 2, 9, 3]}),
            json!({"$setElementOrder/set": [2, 1, 4, 3], "set": [4]}),
            json!({"set": [2, 1, 4, 9, 3]}),
        ),
        (
            json!({"set": [1, 2, 3]}),
            json!({"$setElementOrder/set": [3, 1], "$deleteFromPrimitiveList/set": [2]}),
            json!({"set": [3, 1]}),
        ),
        (
            json!({"name": "a"}),
            json!({"$setElementOrder/items": [{"name": "a"}]}),
            json!({"name": "a"}),
        ),
        (
            json!({"items": [{"name": "a"}, {"name": "x"}]}),
            json!({
                "$setElementOrder/items": [{"name": "b"}, {"name": "c"}],
                "items": [{"name": "b"}, {"name": "c"}, {"name": "a", "$patch": "delete"}],
            }),
            json!({"items": [{"name": "x"}, {"name": "b"}, {"name": "c"}]}),
        ),
        (
            json!({"items": [{"name": "a"}, {"name": "b"}]}),
            json!({"$setElementOrder/items": [{"name": "b"}], "items": [{"name": "a", "$patch": "delete"}]}),
            json!({"items": [{"name": "b"}]}),
        ),
    ]);
}

#[test]
fn retain_keys_clears_what_it_does_not_name() {
    check([
        (
            json!({"item": {"name": "a", "value": "b"}}),
            json!({"item": {"$retainKeys": ["name", "other"], "other": "c"}}),
            json!({"item": {"name": "a", "other": "c"}}),
        ),
        (
            json!({"retained": [{"name": "a", "value": "b"}, {"name": "z"}]}),
            json!({"retained": [{"$retainKeys": ["name"], "name": "a"}]}),
            json!({"retained": [{"name": "a"}, {"name": "z"}]}),
        ),
        (
            json!({"item": {"set": [1, 2], "value": "b"}}),
            json!({"item": {"$retainKeys": ["set"], "value": null, "$setElementOrder/set": [1], "$deleteFromPrimitiveList/set": [2]}}),
            json!({"item": {"set": [1]}}),
        ),
    ]);
}

#[test]
fn faulty_patches_are_refused_with_their_sentence() {
    let original = json!({
        "name": "x", "items": [{"name": "a", "value": "1"}], "set": [1], "numbers": [1], "keyless": [{"name": "a"}],
        "labels": {"a": "1"}, "item": {"name": "a"}, "blob": {"a": {"b": 1}}, "unknown": {"a": 1},
    });
    for (patch, code, text) in [
        (
            json!([]),
            400,
            "error decoding patch: a strategic merge patch is a JSON object",
        ),
        (
            json!({"items": [{"value": "b"}]}),
            422,
            "map: map[value:b] does not contain declared merge key: name",
        ),
        (
            json!({"items": [{"value": "b", "$patch": "delete"}]}),
            422,
            "map: map[$patch:delete value:b] does not contain declared merge key: name",
        ),
        (
            json!({"item": {"$patch": "drop", "a": 1}}),
            422,
            "unknown patch type: drop in map: map[$patch:drop a:1]",
        ),
        (
            json!({"item": {"$patch": "merge"}}),
            422,
            "unknown patch type: merge in map: map[$patch:merge]",
        ),
        (
            json!({"items": [{"name": "a", "$patch": "merge"}]}),
            422,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            json!({"items": [{"name": "a", "$patch": 1}]}),
            422,
            "unknown patch type: 1 in map: map[$patch:1 name:a]",
        ),
        (
            json!({"items": ["a"]}),
            422,
            "list element types are not identical: [[map[name:a value:1]] [a]]",
        ),
        (
            json!({"set": [[1]], "$patch": null}),
            422,
            "unknown patch type: <nil> in map: map[$patch:<nil> set:[[1]]]",
        ),
        (
            json!({"set": [1, null]}),
            422,
            "list element types are not identical: [[1] [1 <nil>]]",
        ),
        (
            json!({"keyless": [{"name": "b"}]}),
            422,
            "cannot merge lists without merge key for struct",
        ),
        (
            json!({"$deleteFromPrimitiveList": [1]}),
            400,
            "invalid patch format of primitive list",
        ),
        (
            json!({"$setElementOrder": [1]}),
            400,
            "invalid patch format of setElementOrder list",
        ),
        (
            json!({"$setElementOrder/set": 1}),
            422,
            "expected a []interface {}, but received a int64",
        ),
        (
            json!({"$setElementOrder/name": ["a"]}),
            422,
            "expected a []interface {}, but received a string",
        ),
        (
            json!({"$setElementOrder/nope": ["a"]}),
            422,
            "unable to find api field in struct Item for the json field \"nope\"",
        ),
        (
            json!({"item": {"$retainKeys": "name"}}),
            400,
            "invalid patch format of retainKeys",
        ),
        (
            json!({"item": {"$retainKeys": ["name"], "value": "b"}}),
            400,
            "invalid patch format of retainKeys",
        ),
        (
            json!({"$setElementOrder/set": [1, 2], "set": [2, 1]}),
            422,
            "The order in patch list:\n[2 1]\n doesn't match $setElementOrder list:\n[1 2]\n",
        ),
        (
            json!({"$setElementOrder/items": [{"name": "b"}], "items": [{"name": "a"}]}),
            422,
            "The order in patch list:\n[map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n",
        ),
        (
            json!({"unknown": {"a": 2}}),
            422,
            "unable to find api field in struct Item for the json field \"unknown\"",
        ),
        (
            json!({"blob": {"a": {"b": 2}}}),
            422,
            "merging an object in json but data type is not struct, instead is: struct",
        ),
    ] {
        let error = patched(&original, &patch).expect_err("refused");
        assert_eq!(
            (error.http_code(), error.to_string().as_str()),
            (code, text),
            "{patch}"
        );
    }
    let lists = patched(&json!({"set": [[1]]}), &json!({"set": [[2]]})).expect_err("refused");
    assert_eq!(lists, PatchError::ListOfLists);
    let deep = json!({"blob": (0..200).fold(json!(1), |inner, _| json!({"a": inner}))});
    assert_eq!(patched(&json!({}), &deep), Err(PatchError::TooDeep));
}

#[test]
fn pods_merge_by_the_keys_of_their_table() {
    let pod = hotmap_schema::kind("", "v1", "Pod")
        .expect("the table holds pods")
        .message;
    let live = json!({
        "metadata": {"name": "web", "finalizers": ["a/b", "c/d"]},
        "spec": {
            "containers": [{
                "name": "nginx", "image": "nginx:1",
                "env": [{"name": "LOG", "value": "INFO"}],
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "volumeMounts": [{"mountPath": "/etc/config", "name": "config"}],
            }],
            "tolerations": [{"key": "a"}],
            "volumes": [{"name": "config", "configMap": {"name": "old", "defaultMode": 420}}],
        },
    });
    let patch = json!({
        "metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"]},
        "spec": {
            "$setElementOrder/containers": [{"name": "sidecar"}, {"name": "nginx"}],
            "containers": [
                {"name": "sidecar", "image": "busybox"},
                {"name": "nginx", "image": "nginx:2", "env": [{"name": "LOG", "value": "DEBUG"}], "ports": [{"containerPort": 443}]},
            ],
            "tolerations": [{"key": "b"}],
            "volumes": [{"$retainKeys": ["name", "secret"], "name": "config", "secret": {"secretName": "new"}}],
        },
    });
    let expected = json!({
        "metadata": {"name": "web", "finalizers": ["c/d"]},
        "spec": {
            "containers": [
                {"name": "sidecar", "image": "busybox"},
                {
                    "name": "nginx", "image": "nginx:2",
                    "env": [{"name": "LOG", "value": "DEBUG"}],
                    "ports": [{"containerPort": 443}, {"containerPort": 80, "protocol": "TCP"}],
                    "volumeMounts": [{"mountPath": "/etc/config", "name": "config"}],
                },
            ],
            "tolerations": [{"key": "b"}],
            "volumes": [{"name": "config", "secret": {"secretName": "new"}}],
        },
    });
    assert_eq!(strategic_merge_patch(live, patch, pod), Ok(expected));
}
