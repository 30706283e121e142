//! JSON and protobuf say the same, and no bytes are too strange to be refused.

use hotmap_schema::{
    Cardinality, Field, Kind, Message, Type, WireError, conform, decode_object, decode_protobuf,
    encode_object, encode_protobuf, kind, kinds,
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn known(group: &str, name: &str) -> &'static Kind {
    kind(group, "v1", name).expect(name)
}

#[test]
fn special_types_have_upstream_bytes() {
    let config_map = known("", "ConfigMap").message;
    for (message, value, bytes) in [
        // Go writes every field that is no pointer, zero or not: eight of them in ObjectMeta.
        (
            config_map,
            json!({"binaryData": {"b": "/w=="}, "data": {"b": "2", "a": "1"}, "immutable": true}),
            &b"\n\x10\n\x00\x12\x00\x1a\x00\"\x00*\x002\x008\x00B\x00\
               \x12\x06\n\x01a\x12\x011\x12\x06\n\x01b\x12\x012\x1a\x06\n\x01b\x12\x01\xff\x20\x01"[..],
        ),
        // IntOrString always has its three fields.
        (
            nested("TCPSocketAction"),
            json!({"port": "http"}),
            b"\n\n\x08\x01\x10\x00\x1a\x04http\x12\x00",
        ),
        (
            nested("TCPSocketAction"),
            json!({"port": 80}),
            b"\n\x06\x08\x00\x10\x50\x1a\x00\x12\x00",
        ),
        // Time before 1970 and MicroTime: negative numbers take ten bytes, nanoseconds are always there.
        (
            nested("ContainerStateRunning"),
            json!({"startedAt": "1969-12-31T23:59:59Z"}),
            b"\n\x0d\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x10\x00",
        ),
        (
            nested("ContainerStateRunning"),
            json!({"startedAt": null}),
            b"\n\x00",
        ),
        (
            nested("EventSeries"),
            json!({"count": 1, "lastObservedTime": "1970-01-01T00:00:01.000002Z"}),
            b"\x08\x01\x12\x05\x08\x01\x10\xd0\x0f",
        ),
        // A quantity is its text; a map of them, and an embedded message whose fields JSON shows inline.
        (
            nested("EmptyDirVolumeSource"),
            json!({"sizeLimit": "0.5Gi"}),
            b"\n\x00\x12\x07\n\x05512Mi",
        ),
        (
            nested("VolumeResourceRequirements"),
            json!({"limits": {"a": "1"}}),
            b"\n\x08\n\x01a\x12\x03\n\x011",
        ),
        (
            nested("ConfigMapEnvSource"),
            json!({"name": "m", "optional": false}),
            b"\n\x03\n\x01m\x10\x00",
        ),
        // JSON text on the wire.
        (
            nested("ManagedFieldsEntry"),
            json!({"fieldsV1": {"f:a": {}}}),
            b"\n\x00\x12\x00\x1a\x002\x00:\x0c\n\n{\"f:a\":{}}B\x00",
        ),
        // Lists of texts in a message of their own.
        (
            nested("UserInfo"),
            json!({"extra": {"k": ["a"]}}),
            b"\n\x00\x12\x00\x22\x08\n\x01k\x12\x03\n\x01a",
        ),
    ] {
        let canonical = conform(value, message).expect("of the right types").value;
        let encoded = encode_protobuf(message, &canonical).expect("canonical");
        assert_eq!(
            encoded.escape_ascii().to_string(),
            bytes.escape_ascii().to_string(),
            "{message:?}"
        );
        assert_eq!(decode_protobuf(message, &encoded), Ok(canonical));
    }
}

/// A message somewhere below a kind, by its short name.
fn nested(name: &str) -> &'static Message {
    let mut seen = Vec::<&'static Message>::new();
    let mut open: Vec<&'static Message> = kinds().map(|kind| kind.message).collect();
    while let Some(message) = open.pop() {
        if message.short_name() == name {
            return message;
        }
        if seen.iter().any(|known| std::ptr::eq(*known, message)) {
            continue;
        }
        seen.push(message);
        open.extend(message.fields.iter().filter_map(|field| match field.kind {
            Type::Message(nested) => Some(nested),
            _ => None,
        }));
    }
    panic!("no message {name}");
}

#[test]
fn an_object_inside_an_object_is_decoded_too() {
    let config_map = known("", "ConfigMap");
    let inner =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v"}});
    let encoded = encode_object(config_map, &inner).expect("canonical");
    assert_eq!(decode_object(&encoded).map(|(_, value)| value), Ok(inner.clone()));

    // WatchEvent { type = 1, object = 2 { raw = 1 } }
    let mut frame = vec![0x0a, 5];
    frame.extend_from_slice(b"ADDED");
    frame.extend([0x12, encoded.len() as u8 + 2, 0x0a, encoded.len() as u8]);
    frame.extend_from_slice(&encoded);
    assert_eq!(
        decode_protobuf(known("", "WatchEvent").message, &frame),
        Ok(json!({"type": "ADDED", "object": inner}))
    );
}

#[test]
fn unknown_numbers_are_skipped_and_wrong_wire_types_refused() {
    let message = known("", "ConfigMap").message;
    assert_eq!(
        decode_protobuf(message, b"\xf8\x06\x01"),
        Ok(json!({"metadata": {}}))
    );
    assert!(matches!(
        decode_protobuf(message, b"\x10\x01"),
        Err(WireError::WireType { field: "data", .. })
    ));
    assert_eq!(decode_protobuf(message, b"\x12\x05"), Err(WireError::Truncated));
    assert_eq!(decode_protobuf(message, b"\x07"), Err(WireError::IllegalTag));
    assert!(matches!(
        decode_protobuf(message, b"\x12\x03\x0a\x01\xff"),
        Err(WireError::NotUtf8 { .. })
    ));
    assert!(matches!(
        decode_object(b"k8s\0\x0a\x05\x12\x03Foo"),
        Err(WireError::UnknownKind { .. })
    ));
}

#[test]
fn objects_nested_without_end_are_refused() {
    let list = known("", "List");
    let mut bytes = encode_object(list, &json!({"metadata": {}, "items": []})).expect("canonical");
    for _ in 0..200 {
        let mut raw = hotmap_schema::envelope::MAGIC.to_vec();
        raw.clear();
        push_field(&mut raw, 1, &bytes);
        let mut message = Vec::new();
        push_field(&mut message, 2, &raw);
        bytes = hotmap_schema::envelope::wrap("v1", "List", &message);
    }
    assert_eq!(decode_object(&bytes).map(|_| ()), Err(WireError::TooDeep));
}

fn push_field(buffer: &mut Vec<u8>, number: u8, content: &[u8]) {
    buffer.push(number << 3 | 2);
    let mut length = content.len();
    while length >= 0x80 {
        buffer.push(length as u8 | 0x80);
        length >>= 7;
    }
    buffer.push(length as u8);
    buffer.extend_from_slice(content);
}

/// Any value of a message, some fields left out, driven by a stream of numbers.
fn arbitrary(message: &'static Message, dice: &mut impl FnMut(u64) -> u64, depth: usize) -> Value {
    let mut map = Map::new();
    for field in message.json_fields() {
        if depth > 6 || dice(3) == 0 {
            continue;
        }
        let value = match field.cardinality {
            Cardinality::Single => scalar(field, dice, depth),
            Cardinality::List => (0..dice(3)).map(|_| scalar(field, dice, depth)).collect(),
            Cardinality::Map => Value::Object(
                (0..dice(3))
                    .map(|key| (format!("k{key}"), scalar(field, dice, depth)))
                    .collect(),
            ),
        };
        map.insert(field.json.to_owned(), value);
    }
    Value::Object(map)
}

fn scalar(field: &Field, dice: &mut impl FnMut(u64) -> u64, depth: usize) -> Value {
    match field.kind {
        Type::Bool => json!(dice(2) == 1),
        Type::Int32 => json!(dice(u64::MAX) as i32),
        Type::Int64 => json!(dice(u64::MAX) as i64),
        Type::String => json!(["", "x", "ä\u{0}\u{10ffff}", "long ".repeat(40).as_str()][dice(4) as usize]),
        Type::Bytes => json!(["", "AA==", "/+8="][dice(3) as usize]),
        Type::Message(nested) => arbitrary(nested, dice, depth + 1),
        Type::Time => json!(["1969-12-31T23:59:59Z", "9999-12-31T23:59:59Z"][dice(2) as usize]),
        Type::MicroTime => {
            json!(["2024-02-29T00:00:00.000001Z", "0001-01-01T00:00:00.999999Z"][dice(2) as usize])
        }
        Type::Quantity => json!(["0", "1500m", "1Gi", "-2k"][dice(4) as usize]),
        Type::IntOrString => [json!(-1), json!("80%"), json!(""), json!(0)][dice(4) as usize].clone(),
        Type::FieldsV1 => json!({"f:data": {".": {}, "f:k": {}}}),
        Type::RawExtension => json!({"apiVersion": "v1", "items": [1, "x", null]}),
        Type::Strings => json!(["a", ""]),
    }
}

proptest! {
    #[test]
    fn json_to_wire_to_json_is_the_same(which in 0..1_000_usize, seeds in proptest::collection::vec(any::<u64>(), 1..200)) {
        let kind = kinds().cycle().nth(which).expect("endless");
        let mut at = 0;
        let mut dice = |sides: u64| {
            at += 1;
            seeds[at % seeds.len()].rotate_left((at / seeds.len()) as u32).wrapping_mul(0x9e37_79b9_7f4a_7c15) % sides
        };
        let value = arbitrary(kind.message, &mut dice, 0);
        let conformed = conform(value, kind.message).expect("of the right types");
        prop_assert!(conformed.unknown.is_empty());
        let encoded = encode_protobuf(kind.message, &conformed.value).expect("canonical");
        let decoded = decode_protobuf(kind.message, &encoded).expect("our own bytes");
        // An empty list and no list are the same on the wire.
        prop_assert_eq!(without_empty_lists(decoded), without_empty_lists(conformed.value));
    }

    #[test]
    fn no_bytes_panic(which in 0..1_000_usize, bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let kind = kinds().cycle().nth(which).expect("endless");
        let _ = decode_protobuf(kind.message, &bytes);
    }

    #[test]
    fn damaged_bytes_do_not_panic(at in any::<prop::sample::Index>(), bit in 0..8_u8, cut in any::<prop::sample::Index>()) {
        let pod = known("", "Pod");
        let value = json!({
            "metadata": {"name": "p", "labels": {"a": "b"}, "creationTimestamp": "2024-01-01T00:00:00Z"},
            "spec": {
                "containers": [{"name": "c", "resources": {"limits": {"cpu": "1"}},
                    "livenessProbe": {"httpGet": {"port": "http"}}}],
                "volumes": [{"name": "v", "configMap": {"name": "m", "defaultMode": 420}}],
            },
        });
        let canonical = conform(value, pod.message).expect("a pod").value;
        let mut bytes = encode_object(pod, &canonical).expect("canonical");
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        bytes.truncate(cut.index(bytes.len()) + 1);
        let _ = decode_object(&bytes);
    }
}

fn without_empty_lists(value: Value) -> Value {
    match value {
        Value::Array(list) if list.is_empty() => Value::Null,
        Value::Array(list) => list.into_iter().map(without_empty_lists).collect(),
        Value::Object(map) if map.is_empty() => Value::Null,
        Value::Object(map) => Value::Object(
            map.into_iter()
                .map(|(key, value)| (key, without_empty_lists(value)))
                .collect(),
        ),
        other => other,
    }
}
