//! Delete and deletecollection, finalizers, namespaces.

use serde_json::{Value, json};

use super::{NOW, Server, config_map, labelled, names, revision};

#[tokio::test]
async fn a_delete_answers_with_a_status_that_carries_the_uid() {
    let server = Server::start().await;
    let stored = server.config_map("a", "1").await;
    let answer = server.ok("delete default/configmaps/a", Value::Null).await;
    let wanted = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
        "details": {"name": "a", "kind": "configmaps", "uid": stored["metadata"]["uid"]},
    });
    assert_eq!(answer, wanted);
    let gone = (404, r#"configmaps "a" not found"#.to_owned());
    assert_eq!(
        server.refused("get default/configmaps/a", Value::Null).await,
        gone
    );
    assert_eq!(
        server.refused("delete default/configmaps/a", Value::Null).await,
        gone
    );
}

#[tokio::test]
async fn deletes_obey_preconditions_and_options_are_checked() {
    let server = Server::start().await;
    let stored = server.config_map("a", "1").await;
    let (uid, held) = (
        stored["metadata"]["uid"].as_str().expect("a uid"),
        revision(&stored),
    );
    let table = [
        (
            json!({"preconditions": {"uid": "x"}}),
            409,
            format!(
                r#"Operation cannot be fulfilled on ConfigMap "a": the UID in the precondition (x) does not match the UID in record ({uid}). The object might have been deleted and then recreated"#
            ),
        ),
        (
            json!({"preconditions": {"resourceVersion": "1"}}),
            409,
            format!(
                r#"Operation cannot be fulfilled on ConfigMap "a": the ResourceVersion in the precondition (1) does not match the ResourceVersion in record ({held}). The object might have been modified"#
            ),
        ),
        (
            json!({"propagationPolicy": "X"}),
            422,
            r#"DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "X": supported values: "Foreground", "Background", "Orphan", "nil""#.to_owned(),
        ),
        (
            json!({"propagationPolicy": "Orphan", "orphanDependents": true}),
            422,
            r#"DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set"#.to_owned(),
        ),
        (json!({"kind": "Pod"}), 400, "decoded object cannot be converted to DeleteOptions".to_owned()),
    ];
    for (options, code, message) in table {
        assert_eq!(
            server
                .refused("delete default/configmaps/a", options.clone())
                .await,
            (code, message),
            "{options}"
        );
    }
    let fitting = json!({"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": {"uid": uid}, "propagationPolicy": "Background"});
    server.ok("delete default/configmaps/a", fitting).await;
}

#[tokio::test]
async fn finalizers_hold_an_object_until_the_last_one_goes() {
    let server = Server::start().await;
    let mut object = config_map("a", "1");
    object["metadata"]["finalizers"] = json!(["x.io/hold"]);
    server.ok("create default/configmaps", object).await;
    let held = server
        .ok(
            "delete default/configmaps/a",
            json!({"propagationPolicy": "Background"}),
        )
        .await;
    assert_eq!(
        (
            &held["metadata"]["deletionTimestamp"],
            &held["metadata"]["deletionGracePeriodSeconds"]
        ),
        (&NOW.into(), &0.into())
    );
    assert_eq!(
        server.ok("delete default/configmaps/a", Value::Null).await,
        held,
        "a second delete changes nothing"
    );
    assert_eq!(
        server
            .refused("create default/configmaps", config_map("a", "2"))
            .await,
        (
            409,
            r#"object is being deleted: configmaps "a" already exists"#.to_owned()
        )
    );
    let (code, message) = server
        .refused(
            "merge default/configmaps/a",
            json!({"metadata": {"finalizers": ["x.io/hold", "x.io/more"]}}),
        )
        .await;
    assert!(
        code == 422 && message.contains("no new finalizers can be added if the object is being deleted"),
        "{message}"
    );
    let last = server
        .ok(
            "merge default/configmaps/a",
            json!({"metadata": {"finalizers": null}}),
        )
        .await;
    assert_eq!(last["metadata"]["name"], "a");
    assert_eq!(
        server.refused("get default/configmaps/a", Value::Null).await.0,
        404
    );
}

#[tokio::test]
async fn the_options_decide_what_the_garbage_collector_does_first() {
    let server = Server::start().await;
    let table = [
        (
            json!([]),
            json!({"propagationPolicy": "Foreground"}),
            Some(json!(["foregroundDeletion"])),
        ),
        (
            json!([]),
            json!({"propagationPolicy": "Orphan"}),
            Some(json!(["orphan"])),
        ),
        (
            json!([]),
            json!({"orphanDependents": true}),
            Some(json!(["orphan"])),
        ),
        (json!([]), json!({"orphanDependents": false}), None),
        (json!([]), json!({"propagationPolicy": "Background"}), None),
        (json!([]), json!({}), None),
        // What the object says counts where the options say nothing.
        (json!(["orphan"]), json!({}), Some(json!(["orphan"]))),
        (
            json!(["foregroundDeletion"]),
            json!({}),
            Some(json!(["foregroundDeletion"])),
        ),
        (
            json!(["orphan"]),
            json!({"propagationPolicy": "Background"}),
            None,
        ),
        (
            json!(["orphan", "x.io/hold"]),
            json!({"propagationPolicy": "Foreground"}),
            Some(json!(["x.io/hold", "foregroundDeletion"])),
        ),
    ];
    for (number, (finalizers, options, left)) in table.into_iter().enumerate() {
        let name = format!("c{number}");
        let mut object = config_map(&name, "1");
        object["metadata"]["finalizers"] = finalizers.clone();
        server.ok("create default/configmaps", object).await;
        let deleted = server
            .ok(&format!("delete default/configmaps/{name}"), options.clone())
            .await;
        let get = format!("get default/configmaps/{name}");
        match left {
            None => {
                assert_eq!(
                    server.refused(&get, Value::Null).await.0,
                    404,
                    "{finalizers} {options}"
                );
                assert_eq!(deleted["kind"], "Status");
            }
            Some(left) => {
                assert_eq!(deleted["metadata"]["finalizers"], left, "{finalizers} {options}");
                assert_eq!(deleted["metadata"]["deletionGracePeriodSeconds"], 0);
                assert_eq!(server.ok(&get, Value::Null).await, deleted);
            }
        }
    }
}

#[tokio::test]
async fn a_later_delete_may_change_its_mind_about_dependents() {
    let server = Server::start().await;
    server.config_map("a", "1").await;
    for (options, left) in [
        (json!({"propagationPolicy": "Orphan"}), json!(["orphan"])),
        (
            json!({"propagationPolicy": "Foreground"}),
            json!(["foregroundDeletion"]),
        ),
        (json!({}), json!(["foregroundDeletion"])),
    ] {
        let deleted = server.ok("delete default/configmaps/a", options).await;
        assert_eq!(deleted["metadata"]["finalizers"], left);
    }
    server
        .ok(
            "delete default/configmaps/a",
            json!({"propagationPolicy": "Background"}),
        )
        .await;
    assert_eq!(
        server.refused("get default/configmaps/a", Value::Null).await.0,
        404
    );
}

#[tokio::test]
async fn events_wait_for_nobody() {
    let server = Server::start().await;
    let event = json!({
        "metadata": {"name": "e"}, "involvedObject": {"namespace": "default"}, "reason": "r", "message": "m", "type": "Normal",
    });
    server.ok("create default/events", event).await;
    server
        .ok(
            "delete default/events/e",
            json!({"propagationPolicy": "Foreground"}),
        )
        .await;
    assert_eq!(server.refused("get default/events/e", Value::Null).await.0, 404);
}

#[tokio::test]
async fn a_namespace_waits_for_the_collector_and_for_its_content() {
    let server = Server::start().await;
    for (name, options, left) in [
        (
            "n1",
            json!({"propagationPolicy": "Foreground"}),
            json!(["foregroundDeletion"]),
        ),
        ("n2", json!({"propagationPolicy": "Orphan"}), json!(["orphan"])),
        (
            "n3",
            json!({"orphanDependents": false}),
            json!(["foregroundDeletion"]),
        ),
        ("n4", json!({"propagationPolicy": "Background"}), Value::Null),
    ] {
        server
            .ok("create namespaces", json!({"metadata": {"name": name}}))
            .await;
        let ending = server.ok(&format!("delete namespaces/{name}"), options).await;
        assert_eq!(ending["metadata"]["finalizers"], left, "{name}");
        assert_eq!(ending["spec"]["finalizers"], json!(["kubernetes"]), "{name}");
    }
}

#[tokio::test]
async fn a_selection_is_deleted_and_answered_with() {
    let server = Server::start().await;
    for (name, label) in [("a", "x"), ("b", "x"), ("c", "y")] {
        server
            .ok("create default/configmaps", labelled(name, "1", label))
            .await;
    }
    let deleted = server
        .ok(
            "deletecollection default/configmaps?labelSelector=l=x",
            Value::Null,
        )
        .await;
    assert_eq!(
        (&deleted["kind"], names(&deleted)),
        (&"ConfigMapList".into(), vec!["a", "b"])
    );
    let left = server.ok("list default/configmaps", Value::Null).await;
    assert_eq!(names(&left), ["c"]);
}

#[tokio::test]
async fn a_namespace_ends_in_two_steps() {
    let server = Server::start().await;
    let created = server
        .ok("create namespaces", json!({"metadata": {"name": "work"}}))
        .await;
    assert_eq!(
        (&created["spec"]["finalizers"], &created["status"]["phase"]),
        (&json!(["kubernetes"]), &"Active".into())
    );
    let ending = server.ok("delete namespaces/work", Value::Null).await;
    assert_eq!(
        (
            &ending["status"]["phase"],
            &ending["metadata"]["deletionTimestamp"]
        ),
        (&"Terminating".into(), &NOW.into())
    );
    let (code, refused) = server.send("create work/configmaps", config_map("a", "1")).await;
    assert_eq!(
        (code, refused["message"].as_str()),
        (
            403,
            Some(
                r#"configmaps "a" is forbidden: unable to create new content in namespace work because it is being terminated"#
            )
        )
    );
    assert_eq!(
        (
            &refused["details"]["causes"][0]["reason"],
            &refused["details"]["causes"][0]["field"]
        ),
        (&"NamespaceTerminating".into(), &"metadata.namespace".into())
    );
    assert_eq!(server.ok("delete namespaces/work", Value::Null).await, ending);
    let mut finalized = ending.clone();
    finalized["spec"]["finalizers"] = json!([]);
    server.ok("update namespaces/work/finalize", finalized).await;
    assert_eq!(
        server.refused("get namespaces/work", Value::Null).await,
        (404, r#"namespaces "work" not found"#.to_owned())
    );
}

#[tokio::test]
async fn some_namespaces_stay() {
    let server = Server::start().await;
    let listed = server.ok("list namespaces", Value::Null).await;
    assert_eq!(
        names(&listed),
        ["default", "kube-node-lease", "kube-public", "kube-system"]
    );
    for name in ["default", "kube-system", "kube-public"] {
        assert_eq!(
            server
                .refused(&format!("delete namespaces/{name}"), Value::Null)
                .await,
            (
                403,
                format!("namespaces {name:?} is forbidden: this namespace may not be deleted")
            )
        );
    }
}

fn pod(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"containers": [{"name": "c", "image": "nginx"}]}})
}

fn binding(pod: &str, node: &str) -> Value {
    json!({"kind": "Binding", "apiVersion": "v1", "metadata": {"name": pod}, "target": {"kind": "Node", "name": node}})
}

#[tokio::test]
async fn a_pod_is_bound_once() {
    let server = Server::start().await;
    server.ok("create default/pods", pod("p")).await;
    let (code, bound) = server
        .send("create default/pods/p/binding", binding("p", "n1"))
        .await;
    assert_eq!((code, &bound["status"]), (201, &"Success".into()));
    let stored = server.ok("get default/pods/p", Value::Null).await;
    assert_eq!(stored["spec"]["nodeName"], "n1");
    let scheduled = stored["status"]["conditions"]
        .as_array()
        .and_then(|all| all.iter().find(|one| one["type"] == "PodScheduled"));
    assert_eq!(scheduled.map(|one| &one["status"]), Some(&"True".into()));
    assert_eq!(
        server
            .refused("create default/pods/p/binding", binding("p", "n2"))
            .await,
        (
            409,
            r#"Operation cannot be fulfilled on pods/binding "p": pod p is already assigned to node "n1""#
                .to_owned()
        )
    );
    assert_eq!(
        server
            .refused("create default/pods/q/binding", binding("q", "n1"))
            .await
            .0,
        404
    );
}

#[tokio::test]
async fn a_bound_pod_ends_gracefully_and_an_unbound_one_at_once() {
    let server = Server::start().await;
    server.ok("create default/pods", pod("free")).await;
    assert_eq!(
        server.ok("delete default/pods/free", Value::Null).await["kind"],
        "Pod"
    );
    assert_eq!(server.refused("get default/pods/free", Value::Null).await.0, 404);

    let created = server.ok("create default/pods", pod("p")).await;
    server
        .ok("create default/pods/p/binding", binding("p", "n1"))
        .await;
    let ending = server
        .ok("delete default/pods/p", json!({"gracePeriodSeconds": 20}))
        .await;
    let metadata = &ending["metadata"];
    assert_eq!(
        (
            &metadata["deletionTimestamp"],
            &metadata["deletionGracePeriodSeconds"]
        ),
        (&"2026-01-02T03:04:25Z".into(), &20.into())
    );
    assert_eq!(
        metadata["generation"].as_i64(),
        created["metadata"]["generation"]
            .as_i64()
            .map(|generation| generation + 1)
    );
    let longer = server
        .ok("delete default/pods/p", json!({"gracePeriodSeconds": 60}))
        .await;
    assert_eq!(longer, ending, "a pending end is not put off");
    let sooner = server
        .ok("delete default/pods/p", json!({"gracePeriodSeconds": 5}))
        .await;
    assert_eq!(sooner["metadata"]["deletionTimestamp"], "2026-01-02T03:04:10Z");
    server
        .ok("delete default/pods/p", json!({"gracePeriodSeconds": 0}))
        .await;
    assert_eq!(server.refused("get default/pods/p", Value::Null).await.0, 404);
}

#[tokio::test]
async fn a_delete_in_protobuf_is_understood() {
    let server = Server::start().await;
    server.config_map("a", "1").await;
    let kind = hotmap_schema::kind("", "v1", "DeleteOptions").expect("a table");
    let options =
        hotmap_schema::encode_object(kind, &json!({"propagationPolicy": "Orphan"})).expect("encodes");
    let call = "delete default/configmaps/a?contentType=application/vnd.kubernetes.protobuf";
    server.answer(call, options).await.expect("is deleted");
    let stored = server.ok("get default/configmaps/a", Value::Null).await;
    assert_eq!(stored["metadata"]["finalizers"], json!(["orphan"]));
}
