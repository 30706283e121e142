use serde_json::{Value, json};

use super::*;
use crate::references::ObjectKind;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).expect("in range")
}

fn reference(name: &str) -> ObjectRef {
    ObjectRef {
        kind: ObjectKind::ConfigMap,
        namespace: "n".to_owned(),
        name: name.to_owned(),
    }
}

/// Version `resource_version` with the content `content`.
fn revision(resource_version: u64, content: u8) -> Option<Arc<Revision>> {
    Some(Arc::new(Revision {
        uid: "u".to_owned(),
        resource_version: resource_version.to_string(),
        fingerprint: [content; 32],
        digest: format!("sha256:{content}"),
    }))
}

fn built(name: &str, revision: Option<Arc<Revision>>) -> Built {
    Built::from([(reference(name), revision)])
}

fn environment(built: Built) -> BTreeMap<Way, Built> {
    let container = "c".to_owned();
    BTreeMap::from([(Way::Environment { container }, built)])
}

/// Pods `a` and `b` with the volume `cfg` of `app`.
fn two_pods() -> Ledger {
    let mut ledger = Ledger::default();
    for pod in ["a", "b"] {
        let wants = Wants::from([("cfg".to_owned(), BTreeSet::from([reference("app")]))]);
        ledger.pod(pod, &format!("web-{pod}"), wants, at(0));
    }
    ledger
}

impl Ledger {
    fn project(&mut self, pod: &str, (resource_version, content): (u64, u8), name: &str, second: i64) {
        let built = built("app", revision(resource_version, content));
        self.projected(pod, "cfg", built, (name, Vec::new()), at(second));
    }

    fn hear(&mut self, resource_version: u64, content: u8, second: i64) {
        let revision = revision(resource_version, content);
        self.heard(&reference("app"), revision, None, at(second));
    }

    fn app(&self) -> Value {
        self.document()["objects"][0].clone()
    }

    /// `POD VOLUME/CONTAINER STAGE VERSION SINCE: REASON` of each row.
    fn rows(&self) -> Vec<String> {
        let rows = self.app()["behind"].as_array().cloned().unwrap_or_default();
        let text = |row: &Value, field: &str| row[field].as_str().unwrap_or("-").to_owned();
        let since = |row: &Value| text(row, "since").chars().skip(17).take(2).collect::<String>();
        rows.iter()
            .map(|row| {
                let words =
                    ["pod", "volume", "container", "stage", "resourceVersion"].map(|field| text(row, field));
                format!("{} {}: {}", words.join(" "), since(row), text(row, "reason"))
            })
            .collect()
    }
}

#[test]
fn who_has_the_current_content_is_not_in_a_row() {
    let mut ledger = two_pods();
    assert_eq!(
        ledger.app(),
        json!({"ref": {"kind": "ConfigMap", "namespace": "n", "name": "app"}, "consumers": 2})
    );
    ledger.hear(1, 1, 1);
    ledger.project("a", (1, 1), "..1", 2);
    assert_eq!(ledger.rows(), ["web-b cfg - projected - 01: it is on its way"]);
    ledger.project("b", (1, 1), "..2", 3);
    let app = ledger.app();
    assert_eq!(
        app["current"],
        json!({"resourceVersion": "1", "digest": "sha256:1", "heardAt": "1970-01-01T00:00:01.000000Z"})
    );
    assert_eq!(
        app["visibleAt"],
        json!({"first": "1970-01-01T00:00:02.000000Z", "last": "1970-01-01T00:00:03.000000Z"})
    );
    assert!(
        app.get("behind").is_none() && app.get("behindCount").is_none(),
        "{app}"
    );

    ledger.hear(2, 2, 10);
    ledger.failed("b", "cfg", "references non-existent config key: k");
    ledger.project("a", (2, 2), "..3", 11);
    assert_eq!(
        ledger.rows(),
        ["web-b cfg - projected 1 10: references non-existent config key: k"]
    );
    ledger.hear(3, 3, 12);
    assert_eq!(
        ledger.rows()[1],
        "web-b cfg - projected 1 10: references non-existent config key: k",
        "behind since the first it lacks"
    );
}

#[test]
fn a_new_version_with_the_same_content_is_not_news() {
    let mut ledger = two_pods();
    ledger.hear(1, 1, 1);
    ledger.project("a", (1, 1), "..1", 2);
    ledger.project("b", (1, 1), "..2", 2);
    let container = environment(built("app", revision(1, 1)));
    ledger.started("a", "c", container, at(3));
    ledger.hear(2, 1, 9);
    ledger.project("a", (2, 1), "..1", 9);
    let app = ledger.app();
    assert_eq!(ledger.rows(), [""; 0]);
    assert_eq!(app["current"]["resourceVersion"], "2");
    assert_eq!(app["current"]["heardAt"], "1970-01-01T00:00:01.000000Z");
    assert_eq!(app["visibleAt"]["last"], "1970-01-01T00:00:03.000000Z");
}

#[test]
fn variables_are_behind_until_their_container_starts_again() {
    let mut ledger = two_pods();
    ledger.hear(1, 1, 1);
    ledger.gone("b");
    ledger.project("a", (1, 1), "..1", 1);
    let sub_path = Way::SubPath {
        container: "c".to_owned(),
        volume: "cfg".to_owned(),
    };
    let mut with_sub_path = environment(built("app", revision(1, 1)));
    with_sub_path.insert(sub_path, ledger.held_by("a", "cfg"));
    ledger.started("a", "c", with_sub_path, at(1));
    assert_eq!(ledger.app()["consumers"], 3);
    ledger.hear(2, 2, 5);
    ledger.project("a", (2, 2), "..2", 5);
    assert_eq!(
        ledger.rows(),
        [
            "web-a - c projected 1 05: variables are read when the container starts: restart it to have the change",
            "web-a cfg c projected 1 05: a subPath shows what was there when the container started: restart it to have the change",
        ]
    );
    ledger.stopped("a", "c");
    assert_eq!(ledger.rows(), [""; 0], "what does not run uses nothing");
    let refs = BTreeSet::from([reference("app")]);
    ledger.not_started("a", "c", refs.clone(), "configmap \"app\" not found", at(6));
    assert_eq!(
        ledger.rows(),
        ["web-a - c projected - 06: configmap \"app\" not found"]
    );
    ledger.started("a", "c", environment(built("app", revision(2, 2))), at(7));
    assert_eq!(ledger.rows(), [""; 0]);
    ledger.found("a", "c", refs, at(8));
    assert_eq!(ledger.app()["consumers"], 2);
}

#[test]
fn a_live_sub_path_is_behind_only_while_something_stands_in_its_way() {
    let mut ledger = two_pods();
    ledger.gone("b");
    ledger.hear(1, 1, 1);
    ledger.project("a", (1, 1), "..1", 1);
    ledger.sub_path_behind("a", "c", "cfg", "it needs Linux 6.5", at(2));
    assert_eq!(ledger.rows(), ["web-a cfg c projected - 02: it needs Linux 6.5"]);
    ledger.sub_path_follows("a", "c", "cfg");
    assert_eq!(ledger.rows(), [""; 0]);
    ledger.sub_path_behind("none", "c", "cfg", "", at(3));
}

#[test]
fn a_change_is_timed_by_its_commit_and_by_the_pods_that_were_there() {
    let mut ledger = two_pods();
    let commit = |ledger: &mut Ledger, version: u64, committed: i64, heard: i64| {
        let revision = revision(version, u8::try_from(version).expect("small"));
        ledger.heard(&reference("app"), revision, Some(at(committed)), at(heard));
    };
    let committed = |ledger: &Ledger| ledger.app()["current"]["committedAt"].clone();
    commit(&mut ledger, 1, 1, 5);
    assert_eq!(committed(&ledger), Value::Null, "the first word is no change");
    commit(&mut ledger, 2, 7, 8);
    assert_eq!(committed(&ledger), json!("1970-01-01T00:00:07.000000Z"));
    ledger.project("a", (2, 2), "..2", 9);
    ledger.project("b", (2, 2), "..2", 10);
    let wants = Wants::from([("cfg".to_owned(), BTreeSet::from([reference("app")]))]);
    ledger.pod("late", "web-late", wants, at(20));
    ledger.project("late", (2, 2), "..2", 21);
    let app = ledger.app();
    assert_eq!((&app["consumers"], app.get("behind")), (&json!(3), None));
    assert_eq!(
        app["visibleAt"],
        json!({"first": "1970-01-01T00:00:09.000000Z", "last": "1970-01-01T00:00:10.000000Z"})
    );
    commit(&mut ledger, 3, 40, 30);
    assert_eq!(
        committed(&ledger),
        json!("1970-01-01T00:00:30.000000Z"),
        "no commit is later than word of it"
    );
    ledger.hear(4, 4, 31);
    assert_eq!(committed(&ledger), Value::Null, "nobody told");
}

#[test]
fn an_object_that_is_gone_leaves_its_users_behind() {
    let mut ledger = two_pods();
    ledger.hear(1, 1, 1);
    ledger.project("a", (1, 1), "..1", 1);
    ledger.heard(&reference("app"), None, None, at(4));
    ledger.failed("a", "cfg", "configmap \"app\" not found");
    let app = ledger.app();
    assert!(app.get("current").is_none() && app.get("uid").is_none(), "{app}");
    assert_eq!(
        ledger.rows()[0],
        "web-a cfg - projected 1 04: configmap \"app\" not found"
    );
    // An optional one was left out: that is what is current.
    ledger.projected("a", "cfg", built("app", None), ("..2", Vec::new()), at(5));
    assert_eq!(ledger.app()["behindCount"], 1);
    assert!(ledger.app().get("visibleAt").is_none());
}

#[test]
fn what_programs_say_is_mapped_from_the_projection_to_the_revision() {
    let mut ledger = two_pods();
    ledger.hear(1, 1, 1);
    ledger.project("a", (1, 1), "..1", 1);
    ledger.project("b", (1, 1), "..1", 1);
    assert_eq!(
        ledger.loaded("a", Some("nope"), "..1", Load::Done, at(2)),
        Err(LoadError::NoVolume)
    );
    ledger
        .loaded("a", Some("cfg"), "..1", Load::Done, at(2))
        .expect("its volume");
    assert_eq!(ledger.app()["loaded"], json!({"reporting": 1, "current": 1}));
    ledger.hear(2, 2, 5);
    ledger.project("a", (2, 2), "..2", 6);
    ledger.project("b", (2, 2), "..2", 6);
    assert_eq!(
        ledger.rows(),
        ["web-a cfg - loaded 1 06: the program has not said that it loaded it"]
    );
    ledger
        .loaded("a", Some("cfg"), "..2", Load::Failed("line 3".to_owned()), at(7))
        .expect("its volume");
    assert_eq!(
        ledger.rows(),
        ["web-a cfg - loaded 1 07: the program refused it: line 3"]
    );
    ledger
        .loaded("a", Some("cfg"), "..2", Load::Done, at(8))
        .expect("its volume");
    assert_eq!(ledger.rows(), [""; 0]);
    ledger
        .loaded("a", Some("cfg"), "..unknown", Load::Done, at(9))
        .expect("its volume");
    assert_eq!(
        ledger.rows(),
        ["web-a cfg - loaded - 06: the program has loaded a projection that the agent does not know"]
    );
    assert_eq!(
        ledger.loaded("a", None, "..unknown", Load::Done, at(9)),
        Err(LoadError::NeverShown)
    );
    ledger
        .loaded("a", None, "..2", Load::Done, at(9))
        .expect("it has shown it");
    assert_eq!(ledger.rows(), [""; 0]);
    // A program may be told of a projection before the agent has noted it.
    ledger
        .loaded("a", Some("cfg"), "..3", Load::Done, at(9))
        .expect("its volume");
    ledger.hear(3, 3, 10);
    ledger.project("a", (3, 3), "..3", 10);
    assert_eq!(ledger.app()["loaded"], json!({"reporting": 1, "current": 1}));
}

#[test]
fn a_file_in_the_way_is_told_although_the_content_is_there() {
    let mut ledger = two_pods();
    ledger.gone("b");
    ledger.hear(1, 1, 1);
    let shadowed = vec!["app.yaml".to_owned()];
    ledger.projected("a", "cfg", built("app", revision(1, 1)), ("..1", shadowed), at(2));
    assert_eq!(
        ledger.rows(),
        ["web-a cfg - projected 1 02: a file that somebody else put there hides app.yaml"]
    );
}

#[test]
fn rows_are_bounded_and_counted() {
    let mut ledger = Ledger::default();
    for pod in 0..300 {
        let wants = Wants::from([("cfg".to_owned(), BTreeSet::from([reference("app")]))]);
        ledger.pod(&format!("{pod:03}"), "web", wants, at(0));
    }
    ledger.hear(1, 1, 1);
    ledger.failed("000", "cfg", &"é".repeat(400));
    let app = ledger.app();
    assert_eq!(
        (&app["consumers"], &app["behindCount"]),
        (&json!(300), &json!(300))
    );
    assert_eq!(app["behind"].as_array().map(Vec::len), Some(200));
    assert!(
        app["behind"][0]["reason"]
            .as_str()
            .is_some_and(|reason| reason.len() <= 256)
    );
}

#[test]
fn objects_nobody_uses_are_forgotten() {
    let mut ledger = two_pods();
    ledger.hear(1, 1, 1);
    ledger.gone("a");
    ledger.gone("b");
    assert_eq!(ledger.document()["objects"], json!([]));
    assert!(ledger.objects.is_empty());
}
