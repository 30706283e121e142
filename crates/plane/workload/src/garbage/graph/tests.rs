//! The rules one by one.

use super::*;
use crate::garbage::object::Kind;

fn place(kind: &str, namespace: &str, name: &str) -> Place {
    let resource = hotmap_kinds::find_kind("", "v1", kind).expect("a core kind");
    let (namespace, name) = (namespace.into(), name.into());
    Place {
        kind: Kind(resource),
        namespace,
        name,
    }
}

/// A ConfigMap `n/<uid>`, owned by ConfigMaps of the same namespace; `!` before an owner's name: it blocks.
fn object(uid: &str, owners: &[&str]) -> Object {
    let owners = owners.iter().map(|owner| {
        let name = owner.trim_start_matches('!');
        Owner {
            uid: name.into(),
            at: Whereabouts::At(place("ConfigMap", "n", name)),
            blocks: owner.starts_with('!'),
        }
    });
    Object {
        uid: uid.into(),
        place: place("ConfigMap", "n", uid),
        resource_version: "1".into(),
        owners: owners.collect(),
        finalizers: Box::default(),
        is_deleting: false,
    }
}

fn deleting(mut object: Object, finalizers: &[&str]) -> Object {
    object.is_deleting = true;
    object.finalizers = finalizers.iter().map(|one| (*one).into()).collect();
    object
}

fn graph(objects: Vec<Object>) -> Graph {
    let mut graph = Graph::default();
    for object in objects {
        graph.applied(object);
    }
    graph
}

/// A step in a word or two.
fn step(graph: &Graph, uid: &str) -> String {
    match graph.step(uid) {
        Step::Rest => "rest".to_owned(),
        Step::Verify(owners) => {
            let owners: Vec<_> = owners.iter().map(|(uid, _)| &**uid).collect();
            format!("verify {}", owners.join(" "))
        }
        Step::Delete(_, policy) => format!("delete {policy:?}"),
        Step::Disown(_, owners) => format!("disown {}", owners.join(" ")),
        Step::Orphan { dependents, .. } => {
            let dependents: Vec<_> = dependents.iter().map(|one| &*one.uid).collect();
            format!("orphan {}", dependents.join(" "))
        }
        Step::Release(_, left) => format!("release {left:?}"),
    }
}

fn checks(changes: &Changes) -> Vec<&str> {
    changes.check.iter().map(|uid| &**uid).collect()
}

#[test]
fn an_object_goes_when_its_last_owner_is_gone_and_the_server_says_so() {
    let mut graph = graph(vec![object("a", &[]), object("b", &[]), object("c", &["a", "b"])]);
    assert_eq!(step(&graph, "c"), "rest");
    assert_eq!(checks(&graph.deleted("a")), ["c"]);
    assert_eq!(step(&graph, "c"), "verify a");
    assert_eq!(checks(&graph.absent("a", place("ConfigMap", "n", "a"))), ["c"]);
    assert_eq!(step(&graph, "c"), "disown a", "b is still there");
    graph.deleted("b");
    graph.absent("b", place("ConfigMap", "n", "b"));
    assert_eq!(step(&graph, "c"), "delete Background");
    assert!(graph.deleted("c").check.is_empty());
    assert_eq!(graph.len(), 0, "nobody is remembered for nothing");
}

#[test]
fn an_owner_that_was_never_seen_is_asked_for() {
    let mut graph = graph(vec![object("c", &["x"])]);
    assert_eq!(step(&graph, "c"), "verify x");
    assert_eq!(checks(&graph.applied(object("x", &[]))), ["c"]);
    assert_eq!(step(&graph, "c"), "rest");
}

#[test]
fn finalizers_of_a_collected_object_say_how_its_own_dependents_fare() {
    for (finalizers, wanted) in [
        (vec!["x"], "delete Background"),
        (vec!["orphan"], "delete Orphan"),
        (vec!["foregroundDeletion"], "delete Foreground"),
    ] {
        let mut child = object("c", &["x"]);
        child.finalizers = finalizers.iter().map(|one| (*one).into()).collect();
        let mut graph = graph(vec![child]);
        graph.absent("x", place("ConfigMap", "n", "x"));
        assert_eq!(step(&graph, "c"), wanted, "{finalizers:?}");
    }
}

#[test]
fn in_the_foreground_blocking_dependents_are_awaited_and_others_are_not() {
    let mut graph = graph(vec![object("a", &[]), object("b", &["!a"]), object("c", &["a"])]);
    let changes = graph.applied(deleting(object("a", &[]), &["foregroundDeletion", "x"]));
    assert_eq!(checks(&changes), ["a", "b", "c"]);
    assert_eq!(step(&graph, "a"), "rest");
    assert_eq!(
        (&*step(&graph, "b"), &*step(&graph, "c")),
        ("delete Background", "delete Background")
    );
    assert_eq!(checks(&graph.deleted("b")), ["a"]);
    assert_eq!(step(&graph, "a"), "rest", "c is yet to see that a waits");
    assert_eq!(
        checks(&graph.applied(deleting(object("c", &["a"]), &["y"]))),
        ["a"]
    );
    assert_eq!(step(&graph, "a"), r#"release ["x"]"#, "c is not awaited");
}

#[test]
fn a_dependent_that_stops_blocking_lets_its_owner_go() {
    let mut graph = graph(vec![
        deleting(object("a", &[]), &["foregroundDeletion"]),
        deleting(object("b", &["!a"]), &["x"]),
    ]);
    assert_eq!(step(&graph, "a"), "rest");
    assert_eq!(
        checks(&graph.applied(deleting(object("b", &["a"]), &["x"]))),
        ["a", "b"]
    );
    assert_eq!(step(&graph, "a"), "release []");
}

#[test]
fn in_the_foreground_a_dependent_with_another_owner_stays() {
    let graph = graph(vec![
        deleting(object("a", &[]), &["foregroundDeletion"]),
        object("b", &[]),
        object("c", &["!a", "b"]),
    ]);
    assert_eq!(step(&graph, "c"), "disown a");
}

#[test]
fn the_foreground_reaches_down_a_chain() {
    let graph = graph(vec![
        deleting(object("a", &[]), &["foregroundDeletion"]),
        object("b", &["!a"]),
        object("c", &["!b"]),
    ]);
    assert_eq!(step(&graph, "b"), "delete Foreground", "c goes before b");
    assert_eq!(step(&graph, "c"), "rest", "not before b is deleted");
}

#[test]
fn those_who_wait_for_each_other_in_a_circle_go() {
    let mut graph = graph(vec![
        deleting(object("a", &["!c"]), &["foregroundDeletion"]),
        object("b", &["!a"]),
        deleting(object("c", &["!b"]), &["foregroundDeletion"]),
        deleting(object("d", &[]), &["foregroundDeletion"]),
        deleting(object("e", &["!d", "!a"]), &["x"]),
    ]);
    assert_eq!(step(&graph, "a"), "rest", "b is not even deleted");
    graph.applied(deleting(object("b", &["!a"]), &["foregroundDeletion"]));
    assert_eq!(step(&graph, "a"), "rest", "e holds the circle up");
    assert_eq!(checks(&graph.deleted("e")), ["a", "d"]);
    assert_eq!(step(&graph, "a"), "release []");
    assert_eq!(step(&graph, "d"), "release []");
}

#[test]
fn orphans_lose_their_reference_before_the_owner_goes() {
    let mut graph = graph(vec![
        object("b", &["a"]),
        object("c", &["!a", "b"]),
        deleting(object("a", &[]), &["x", "orphan"]),
    ]);
    assert_eq!(step(&graph, "a"), "orphan b c");
    assert_eq!(step(&graph, "b"), "rest");
    assert_eq!(checks(&graph.applied(object("b", &[]))), ["a"]);
    graph.applied(object("c", &["b"]));
    assert_eq!(step(&graph, "a"), r#"release ["x"]"#);
}

#[test]
fn who_names_an_owner_wrongly_has_none() {
    let mut elsewhere = object("a", &[]);
    elsewhere.place.namespace = "other".into();
    let mut graph = graph(vec![elsewhere]);
    let changes = graph.applied(object("c", &["!a"]));
    assert_eq!(changes.invalid, [("c".into(), "a".into())]);
    assert_eq!(step(&graph, "c"), "verify a");
    graph.absent("a", place("ConfigMap", "n", "a"));
    assert_eq!(step(&graph, "c"), "delete Background");
    let changes = graph.applied({
        let mut elsewhere = deleting(object("a", &[]), &["foregroundDeletion"]);
        elsewhere.place.namespace = "other".into();
        elsewhere
    });
    assert!(changes.invalid.is_empty(), "that was said before");
    assert_eq!(
        step(&graph, "a"),
        "release []",
        "who is no dependent blocks nobody"
    );
}

#[test]
fn a_wrong_reference_is_noticed_when_the_owner_comes_later() {
    let mut graph = graph(vec![object("c", &["a"])]);
    let mut elsewhere = object("a", &[]);
    elsewhere.place.namespace = "other".into();
    let changes = graph.applied(elsewhere);
    assert_eq!((checks(&changes), changes.invalid.len()), (vec!["c"], 1));
}

#[test]
fn who_has_an_owner_that_cannot_be_judged_stays() {
    for at in [
        Whereabouts::UnknownKind,
        Whereabouts::OutOfReach(place("ConfigMap", "n", "x")),
    ] {
        let mut child = object("c", &["x", "y"]);
        child.owners[1].at = at.clone();
        let mut graph = graph(vec![child]);
        graph.absent("x", place("ConfigMap", "n", "x"));
        assert_eq!(step(&graph, "c"), "rest", "{at:?}");
    }
}

#[test]
fn what_changes_nothing_wakes_nobody() {
    let mut graph = graph(vec![object("a", &[]), object("b", &["a"])]);
    let mut later = object("b", &["a"]);
    later.resource_version = "2".into();
    assert_eq!(graph.applied(later), Changes::default());
    assert_eq!(graph.applied(object("a", &[])), Changes::default());
    assert_eq!(graph.deleted("never seen"), Changes::default());
}
