use bytes::Bytes;

use super::*;

const MODES: Modes = Modes {
    config_map: FileMode::DEFAULT,
    secret: match FileMode::new(0o600) {
        Ok(mode) => mode,
        Err(_) => FileMode::DEFAULT,
    },
};

fn named(kind: ObjectKind, name: &str) -> Selection {
    Selection {
        kind,
        namespace: Some("shop".to_owned()),
        who: Who::Named(name.to_owned()),
        subdirectory: None,
    }
}

fn labelled() -> Selection {
    Selection {
        kind: ObjectKind::ConfigMap,
        namespace: None,
        who: Who::Labelled("app=x".to_owned()),
        subdirectory: None,
    }
}

fn document(kind: ObjectKind, name: &str, keys: &[(&str, &str)]) -> Document {
    Document {
        version: ObjectVersion {
            kind,
            namespace: "shop".to_owned(),
            name: name.to_owned(),
            uid: format!("uid-{name}"),
            resource_version: "7".to_owned(),
        },
        annotations: BTreeMap::new(),
        labels: BTreeMap::new(),
        keys: keys
            .iter()
            .map(|(key, value)| ((*key).to_owned(), Bytes::copy_from_slice(value.as_bytes())))
            .collect(),
    }
}

fn config_map(name: &str, keys: &[(&str, &str)]) -> Document {
    document(ObjectKind::ConfigMap, name, keys)
}

fn world(selections: Vec<Selection>) -> World {
    World::new(selections, MODES, false, None)
}

/// `path=content@mode`, space separated; what is waited for; why not.
fn shown_desired(world: &World) -> String {
    match world.desired() {
        Desired::Waiting(waiting) => format!(
            "unheard: {}; missing: {}",
            waiting.unheard.join(", "),
            waiting.missing.join(", ")
        ),
        Desired::Impossible(why) => why,
        Desired::Revision(revision) => revision
            .payload
            .iter()
            .map(|(path, file)| {
                let content = String::from_utf8_lossy(&file.bytes);
                format!("{path}={content}@{:o}", file.mode.bits())
            })
            .collect::<Vec<_>>()
            .join(" "),
    }
}

#[test]
fn nothing_is_written_before_everything_named_is_there() {
    let mut world = world(vec![
        labelled(),
        named(ObjectKind::ConfigMap, "app"),
        named(ObjectKind::Secret, "tls"),
    ]);
    assert_eq!(
        shown_desired(&world),
        "unheard: configmaps with labels \"app=x\" in all namespaces, configmap/app in namespace \"shop\", \
         secret/tls in namespace \"shop\"; missing: "
    );
    world.replace(0, vec![]);
    world.replace(1, vec![]);
    world.replace(2, vec![document(ObjectKind::Secret, "tls", &[("key", "k")])]);
    assert_eq!(
        shown_desired(&world),
        "unheard: ; missing: configmap/app in namespace \"shop\""
    );
    world.apply(1, config_map("app", &[("a", "1")]));
    assert_eq!(shown_desired(&world), "a=1@644 key=k@600");
}

#[test]
fn the_later_object_wins_and_the_other_is_told() {
    let mut world = world(vec![
        labelled(),
        named(ObjectKind::ConfigMap, "app"),
        named(ObjectKind::Secret, "site"),
    ]);
    world.replace(
        0,
        vec![
            config_map("z", &[("a", "z")]),
            config_map("b", &[("a", "b"), ("x", "b")]),
        ],
    );
    world.replace(1, vec![config_map("app", &[("a", "app")])]);
    world.replace(2, vec![document(ObjectKind::Secret, "site", &[("a", "site")])]);
    assert_eq!(shown_desired(&world), "a=site@600 x=b@644");
    let Desired::Revision(revision) = world.desired() else {
        panic!("there is one")
    };
    let told: Vec<String> = revision
        .overridden
        .iter()
        .map(|over| format!("{}: {} over {}", over.path, over.winner, over.loser))
        .collect();
    assert_eq!(
        told,
        [
            "a: shop/configmap/z over shop/configmap/b",
            "a: shop/configmap/app over shop/configmap/z",
            "a: shop/secret/site over shop/configmap/app"
        ]
    );
}

#[test]
fn what_was_named_stays_when_it_is_gone_and_what_matched_goes() {
    let mut world = world(vec![labelled(), named(ObjectKind::ConfigMap, "app")]);
    world.replace(0, vec![config_map("one", &[("o", "1")])]);
    world.replace(1, vec![config_map("app", &[("a", "1")])]);
    assert_eq!(world.delete(1, "shop", "app"), Removal::Kept);
    assert_eq!(world.delete(0, "shop", "one"), Removal::Removed);
    assert_eq!(shown_desired(&world), "a=1@644");
    world.replace(1, vec![]);
    assert_eq!(shown_desired(&world), "a=1@644");
    world.apply(1, config_map("app", &[("b", "2")]));
    assert_eq!(shown_desired(&world), "b=2@644");
}

#[test]
fn optional_objects_may_be_absent_and_take_their_files_along() {
    let selections = vec![
        named(ObjectKind::ConfigMap, "app"),
        named(ObjectKind::ConfigMap, "site"),
    ];
    let mut world = World::new(selections, MODES, true, None);
    world.replace(0, vec![config_map("app", &[("a", "1")])]);
    world.replace(1, vec![]);
    assert_eq!(shown_desired(&world), "a=1@644");
    assert_eq!(world.delete(0, "shop", "app"), Removal::Removed);
    assert_eq!(shown_desired(&world), "");
}

#[test]
fn objects_in_subdirectories_do_not_meet_unless_they_exclude_each_other() {
    let mut site = named(ObjectKind::ConfigMap, "site");
    site.subdirectory = Some("conf.d".to_owned());
    let mut world = world(vec![named(ObjectKind::ConfigMap, "app"), site]);
    world.replace(0, vec![config_map("app", &[("a", "1")])]);
    world.replace(1, vec![config_map("site", &[("a", "2")])]);
    assert_eq!(shown_desired(&world), "a=1@644 conf.d/a=2@644");
    world.apply(0, config_map("app", &[("conf.d", "1")]));
    assert_eq!(
        shown_desired(&world),
        r#"shop/configmap/site: "conf.d" cannot be a file and the directory of "conf.d/a""#
    );
}

#[test]
fn more_than_the_limit_is_refused() {
    let mut world = world(vec![labelled()]);
    let value = "x".repeat(PAYLOAD_BYTES_MAX / 2 + 1);
    world.replace(0, vec![config_map("a", &[("a", &value)])]);
    assert!(matches!(world.desired(), Desired::Revision(_)));
    world.apply(0, config_map("b", &[("a", &value)]));
    assert!(
        matches!(world.desired(), Desired::Revision(_)),
        "what is overridden does not count"
    );
    world.apply(0, config_map("c", &[("c", &value)]));
    assert!(matches!(world.desired(), Desired::Impossible(_)));
}
