//! What holds for every kind and every object that its schema lets through, tried on random ones.

use hotmap_schema::{Cardinality, Field, Kind, Message, Type, conform};
use proptest::{collection::vec, prelude::*};
use serde_json::{Map, Value, json};

use crate::{Strategy as _, pod::Pod, registry, validate_create, validate_update};

/// Objects are this many messages deep; deeper ones bring nothing new.
const DEPTH_MAX: usize = 9;
/// Texts that rules treat specially, right and wrong ones.
const TEXTS: [&str; 30] = [
    "",
    "a",
    "a.b",
    "A B",
    "..",
    "../x",
    "/x",
    "é",
    "None",
    "Always",
    "OnFailure",
    "ClientIP",
    "ExternalName",
    "LoadBalancer",
    "NodePort",
    "TCP",
    "10.0.0.1",
    "fe80::1",
    "kubernetes",
    "orphan",
    "v1",
    "metadata.labels['a']",
    "metadata.name",
    "kubernetes.io/tls",
    "kubernetes.io/dockercfg",
    "Localhost",
    "Completed",
    "nginx:latest",
    "limits.cpu",
    "-",
];
const NUMBERS: [i64; 9] = [0, 1, 2, -1, 80, 65_536, 0o777, i32::MAX as i64, i32::MIN as i64];
const QUANTITIES: [&str; 6] = ["0", "1", "-1", "100m", "64Mi", "1e3"];

/// Hands out the bytes of a random tape; zero when it is used up, so that objects end.
struct Tape<'a>(std::slice::Iter<'a, u8>);

impl Tape<'_> {
    fn next(&mut self) -> usize {
        self.0.next().copied().map_or(0, usize::from)
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.next() % from.len()]
    }

    fn object(&mut self, message: &'static Message, depth: usize) -> Map<String, Value> {
        let mut object = Map::new();
        for field in message.json_fields() {
            if !self.next().is_multiple_of(3) {
                object.insert(field.json.to_owned(), self.field(field, depth));
            }
        }
        object
    }

    fn field(&mut self, field: &'static Field, depth: usize) -> Value {
        let count = self.next() % 3;
        match field.cardinality {
            Cardinality::Single => self.value(field.kind, depth),
            Cardinality::List => (0..count).map(|_| self.value(field.kind, depth)).collect(),
            Cardinality::Map => {
                let pairs = (0..count).map(|_| (self.pick(&TEXTS).to_owned(), self.value(field.kind, depth)));
                Value::Object(pairs.collect())
            }
        }
    }

    fn value(&mut self, of: Type, depth: usize) -> Value {
        match of {
            Type::Bool => self.next().is_multiple_of(2).into(),
            Type::Int32 | Type::Int64 => self.pick(&NUMBERS).into(),
            Type::String => self.pick(&TEXTS).into(),
            Type::Bytes => self.pick(&["", "eA==", "e30="]).into(),
            Type::Message(message) if depth < DEPTH_MAX => self.object(message, depth + 1).into(),
            Type::Message(_) | Type::FieldsV1 | Type::RawExtension => json!({}),
            Type::Time => "2026-01-01T00:00:00Z".into(),
            Type::MicroTime => "2026-01-01T00:00:00.000000Z".into(),
            Type::Quantity => self.pick(&QUANTITIES).into(),
            Type::IntOrString => match self.next() % 2 {
                0 => self.pick(&NUMBERS).into(),
                _ => self.pick(&TEXTS).into(),
            },
            Type::Strings => json!([self.pick(&TEXTS)]),
        }
    }
}

fn object(kind: &'static Kind, tape: &[u8]) -> Map<String, Value> {
    let mut object = Tape(tape.iter()).object(kind.message, 0);
    object.insert("apiVersion".to_owned(), kind.api_version().into());
    object.insert("kind".to_owned(), kind.kind.into());
    canonical(kind, object)
}

fn canonical(kind: &'static Kind, object: Map<String, Value>) -> Map<String, Value> {
    let conformed = conform(Value::Object(object), kind.message).expect("made after the schema");
    conformed.value.as_object().cloned().expect("an object")
}

/// Fails with the members that differ, not with two whole objects.
fn same(wanted: &Map<String, Value>, found: &Map<String, Value>) -> Result<(), TestCaseError> {
    for key in wanted.keys().chain(found.keys()) {
        match (wanted.get(key), found.get(key)) {
            (Some(Value::Object(wanted)), Some(Value::Object(found))) => same(wanted, found)?,
            (wanted, found) => prop_assert_eq!(wanted, found, "{}", key),
        }
    }
    Ok(())
}

/// Any JSON at all, however wrong.
fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        proptest::sample::select(TEXTS.to_vec()).prop_map(Value::from),
    ];
    let names = [
        "metadata",
        "name",
        "spec",
        "status",
        "containers",
        "volumes",
        "env",
        "ports",
        "data",
        "state",
        "conditions",
        "containerStatuses",
        "resources",
        "limits",
        "subsets",
        "addresses",
        "labels",
        "taints",
    ];
    leaf.prop_recursive(6, 64, 4, move |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((proptest::sample::select(names.to_vec()), inner), 0..5).prop_map(|pairs| {
                Value::Object(
                    pairs
                        .into_iter()
                        .map(|(key, value)| (key.to_owned(), value))
                        .collect(),
                )
            }),
        ]
    })
}

/// Calls everything a server calls.
fn exercise(resource: &'static crate::Resource, object: &Map<String, Value>, old: &Map<String, Value>) {
    let strategy = resource.strategy;
    let now = "2026-01-01T00:00:00Z".parse().expect("a time");
    let mut new = object.clone();
    strategy.default(&mut new);
    let once = new.clone();
    strategy.default(&mut new);
    assert_eq!(new, once, "defaults are filled in once");
    strategy.prepare_for_create(&mut new);
    validate_create(&new, resource);
    strategy.warnings(&new, None);
    strategy.warnings(&new, Some(old));
    strategy.bumps_generation(&new, old);
    for subresource in ["", "status", "finalize", "scale"] {
        let mut changed = once.clone();
        strategy.prepare_for_update(&mut changed, old, subresource);
        validate_update(&changed, old, resource, subresource);
    }
    assert_eq!(strategy.cells(&new, now).len(), strategy.columns().len());
    strategy.row_conditions(&new);
    let values = strategy.field_values(&new);
    for field in strategy.selectable_fields() {
        assert!(values.iter().any(|(name, _)| name == field), "{field}");
    }
    strategy.from_stored(strategy.to_stored(new));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_object_of_any_kind_panics(new in vec(any::<u8>(), 0..2_000), old in vec(any::<u8>(), 0..2_000)) {
        for resource in registry::resources() {
            exercise(resource, &object(resource.schema, &new), &object(resource.schema, &old));
        }
    }

    #[test]
    fn no_json_panics(new in anything(), old in anything()) {
        let empty = Map::new();
        let (new, old) = (new.as_object().unwrap_or(&empty), old.as_object().unwrap_or(&empty));
        for resource in registry::resources() {
            exercise(resource, new, old);
        }
    }

    #[test]
    fn defaults_and_preparation_keep_objects_canonical(tape in vec(any::<u8>(), 0..2_000)) {
        for resource in registry::resources() {
            let mut new = object(resource.schema, &tape);
            resource.strategy.default(&mut new);
            resource.strategy.prepare_for_create(&mut new);
            same(&canonical(resource.schema, new.clone()), &new)?;
        }
    }

    #[test]
    fn events_survive_the_other_view(tape in vec(any::<u8>(), 0..500)) {
        let core = registry::find("", "v1", "events").expect("served");
        let view = registry::find("events.k8s.io", "v1", "events").expect("served");
        let stored = object(core.schema, &tape);
        let seen = view.strategy.from_stored(stored.clone());
        same(&canonical(view.schema, seen.clone()), &seen)?;
        same(&view.strategy.to_stored(seen), &stored)?;
    }

    #[test]
    fn a_valid_pod_stays_valid_and_may_be_written_back(
        grace in 0_i64..100,
        port in 1_i64..=65_535,
        policy in proptest::sample::select(vec!["Always", "OnFailure", "Never"]),
        cpu in 1_i64..8,
        names in proptest::collection::btree_set("[a-z]([-a-z0-9]{0,10}[a-z0-9])?", 1..4),
    ) {
        let containers: Vec<Value> = names.iter().map(|name| json!({
            "name": name, "image": "i", "ports": [{"containerPort": port}],
            "resources": {"limits": {"cpu": cpu.to_string()}},
            "volumeMounts": [{"name": "v", "mountPath": "/etc/config"}],
            "readinessProbe": {"httpGet": {"port": port}},
        })).collect();
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "n", "uid": "u"},
            "spec": {"containers": containers, "restartPolicy": policy, "terminationGracePeriodSeconds": grace,
                     "volumes": [{"name": "v", "configMap": {"name": "c"}}]}});
        let resource = registry::find("", "v1", "pods").expect("served");
        let mut pod = canonical(resource.schema, pod.as_object().cloned().expect("an object"));
        Pod.default(&mut pod);
        let once = pod.clone();
        Pod.default(&mut pod);
        prop_assert_eq!(&pod, &once);
        Pod.prepare_for_create(&mut pod);
        prop_assert_eq!(validate_create(&pod, resource), vec![]);
        let old = pod.clone();
        Pod.default(&mut pod);
        Pod.prepare_for_update(&mut pod, &old, "");
        prop_assert_eq!(&pod, &old);
        prop_assert_eq!(validate_update(&pod, &old, resource, ""), vec![]);
    }
}
