//! Create, update and patch.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::{NOW, Server, config_map, full, revision};

#[tokio::test]
async fn a_created_object_gets_what_the_server_decides() {
    let server = Server::start().await;
    let mut sent = config_map("a", "1");
    sent["metadata"]["uid"] = "mine".into();
    sent["metadata"]["generation"] = 7.into();
    sent["metadata"]["creationTimestamp"] = Value::Null;
    sent["metadata"]["managedFields"] = json!([{"manager": "m", "operation": "Update"}]);
    let (code, created) = server.send("create default/configmaps", sent).await;
    let metadata = created["metadata"].as_object().expect("metadata");
    assert_eq!(code, 201);
    assert_eq!(
        metadata.keys().collect::<Vec<_>>(),
        ["creationTimestamp", "name", "namespace", "resourceVersion", "uid"]
    );
    assert_eq!(
        (
            metadata["creationTimestamp"].as_str(),
            metadata["namespace"].as_str()
        ),
        (Some(NOW), Some("default"))
    );
    assert_ne!(metadata["uid"], "mine");
    assert_eq!(server.ok("get default/configmaps/a", Value::Null).await, created);
}

#[tokio::test]
async fn what_cannot_be_created_is_refused_with_upstreams_words() {
    let server = Server::start().await;
    server.config_map("taken", "1").await;
    let with = |path: &str, value: Value| {
        let mut object = config_map("n", "1");
        *object.pointer_mut(path).expect("a path") = value;
        object
    };
    let versioned = json!({"metadata": {"name": "n", "resourceVersion": "3"}});
    let table = [
        (
            "create default/configmaps",
            config_map("taken", "2"),
            409,
            r#"configmaps "taken" already exists"#,
        ),
        (
            "create nowhere/configmaps",
            config_map("n", "1"),
            404,
            r#"namespaces "nowhere" not found"#,
        ),
        (
            "create default/configmaps",
            versioned,
            500,
            "resourceVersion should not be set on objects to be created",
        ),
        (
            "create default/configmaps",
            json!({"metadata": {"name": "n", "namespace": "kube-system"}}),
            400,
            "the namespace of the provided object does not match the namespace sent on the request",
        ),
        (
            "create default/configmaps",
            json!({"data": {}}),
            422,
            r#"ConfigMap "" is invalid: metadata.name: Required value: name or generateName is required"#,
        ),
        (
            "create default/configmaps",
            with("/data", json!({"..x": "1"})),
            422,
            r#"ConfigMap "n" is invalid: data[..x]: Invalid value: "..x": must not start with '..'"#,
        ),
        (
            "create default/configmaps",
            with("/data", json!({"bootstrap.yml": {"a": 1}})),
            400,
            r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal object into Go struct field ConfigMap.data of type string: data[bootstrap.yml]"#,
        ),
        (
            "create default/configmaps",
            with("/kind", "Pod".into()),
            400,
            r#"Pod in version "v1" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown conversion"#,
        ),
        (
            "create default/configmaps",
            with("/apiVersion", "v2".into()),
            400,
            r#"ConfigMap in version "v2" cannot be handled as a ConfigMap: no kind "ConfigMap" is registered for version "v2" in scheme "pkg/api/legacyscheme/scheme.go:30""#,
        ),
        (
            "create default/events",
            json!({"kind": "Event", "apiVersion": "events.k8s.io/v1", "metadata": {"name": "n"}}),
            400,
            "the API version in the data (events.k8s.io/v1) does not match the expected API version (v1)",
        ),
        (
            "create default/configmaps?contentType=text/plain",
            config_map("n", "1"),
            415,
            "the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        ),
        (
            "create default/configmaps?dryRun=Some",
            config_map("n", "1"),
            422,
            r#"CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All""#,
        ),
    ];
    for (call, body, code, message) in table {
        assert_eq!(
            server.refused(call, body.clone()).await,
            (code, message.to_owned()),
            "{call} {body}"
        );
    }
    let (code, broken) = server.send_text("create default/configmaps", "{\"kind\"").await;
    assert_eq!(code, 400);
    let message = broken["message"].as_str().expect("a message");
    let start = "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse error: ";
    assert!(
        message.starts_with(start) && message.ends_with(r#"({"kind")"#),
        "{message}"
    );
}

#[tokio::test]
async fn unknown_and_duplicate_fields_are_refused_warned_of_or_dropped() {
    let server = Server::start().await;
    let body = r#"{"metadata":{"name":"NAME"},"foo":1,"data":{"k":"1","k":"2"}}"#;
    let strict = server
        .send_text(
            "create default/configmaps?fieldValidation=Strict",
            &body.replace("NAME", "s"),
        )
        .await;
    assert_eq!(
        (strict.0, strict.1["message"].as_str()),
        (
            400,
            Some(
                r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "foo", duplicate field "data.k""#
            )
        )
    );
    for (mode, warnings) in [
        (
            "Warn",
            vec![r#"unknown field "foo""#, r#"duplicate field "data.k""#],
        ),
        ("", vec![r#"unknown field "foo""#, r#"duplicate field "data.k""#]),
        ("Ignore", vec![]),
    ] {
        let call = format!("create default/configmaps?fieldValidation={mode}");
        let name = format!("n{}", mode.to_lowercase());
        let answer = server
            .answer(&call, body.replace("NAME", &name))
            .await
            .expect("is stored");
        assert_eq!(answer.warnings, warnings, "{mode}");
        let stored: Value = serde_json::from_slice(&full(answer)).expect("JSON");
        assert_eq!(
            (&stored["data"]["k"], &stored["foo"]),
            (&"2".into(), &Value::Null)
        );
    }
}

#[tokio::test]
async fn bodies_come_as_yaml_and_protobuf_too() {
    let server = Server::start().await;
    let yaml = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: y}\ndata: {k: v}\n";
    let (code, created) = server
        .send_text("create default/configmaps?contentType=application/yaml", yaml)
        .await;
    assert_eq!((code, &created["data"]["k"]), (201, &"v".into()));
    let kind = hotmap_schema::kind("", "v1", "ConfigMap").expect("a table");
    let bytes = hotmap_schema::encode_object(kind, &config_map("p", "v")).expect("encodes");
    let call = "create default/configmaps?contentType=application/vnd.kubernetes.protobuf&accept=application/vnd.kubernetes.protobuf";
    let answer = server.answer(call, bytes).await.expect("is stored");
    assert_eq!(answer.content_type, "application/vnd.kubernetes.protobuf");
    let (_, decoded) = hotmap_schema::decode_object(&full(answer)).expect("decodes");
    assert_eq!(decoded, server.ok("get default/configmaps/p", Value::Null).await);
}

#[tokio::test]
async fn names_are_generated() {
    let server = Server::start().await;
    let created = server
        .ok(
            "create default/configmaps",
            json!({"metadata": {"generateName": "web-"}}),
        )
        .await;
    let name = created["metadata"]["name"].as_str().expect("a name");
    assert!(name.len() == 9 && name.starts_with("web-"), "{name}");
}

#[tokio::test]
async fn a_dry_run_answers_but_stores_nothing() {
    let server = Server::start().await;
    let before = server.objects.cache.revision();
    let (code, tried) = server
        .send("create default/configmaps?dryRun=All", config_map("a", "1"))
        .await;
    assert_eq!((code, &tried["metadata"]["resourceVersion"]), (201, &Value::Null));
    assert!(tried["metadata"]["uid"].is_string());
    assert_eq!(
        server.refused("get default/configmaps/a", Value::Null).await.0,
        404
    );
    assert_eq!(server.objects.cache.revision(), before);
    let stored = server.config_map("a", "1").await;
    assert_eq!(
        server
            .refused("create default/configmaps?dryRun=All", config_map("a", "1"))
            .await
            .0,
        409
    );
    let tried = server
        .ok(
            "merge default/configmaps/a?dryRun=All",
            json!({"data": {"k": "2"}}),
        )
        .await;
    assert_eq!(
        (&tried["data"]["k"], revision(&tried)),
        (&"2".into(), revision(&stored))
    );
    assert_eq!(
        server
            .ok("delete default/configmaps/a?dryRun=All", Value::Null)
            .await["status"],
        "Success"
    );
    assert_eq!(server.ok("get default/configmaps/a", Value::Null).await, stored);
}

#[tokio::test]
async fn updates_obey_preconditions() {
    let server = Server::start().await;
    let stored = server.config_map("a", "1").await;
    let updated = server
        .ok("update default/configmaps/a", config_map("a", "2"))
        .await;
    assert!(revision(&updated) > revision(&stored));
    assert_eq!(updated["metadata"]["uid"], stored["metadata"]["uid"]);
    let mut stale = stored.clone();
    stale["data"]["k"] = "3".into();
    let modified = r#"Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again"#;
    assert_eq!(
        server.refused("update default/configmaps/a", stale).await,
        (409, modified.to_owned())
    );
    let (code, message) = server
        .refused(
            "update default/configmaps/a",
            json!({"metadata": {"name": "a", "uid": "x"}}),
        )
        .await;
    let uid = stored["metadata"]["uid"].as_str().expect("a uid");
    let wanted = format!(
        r#"Operation cannot be fulfilled on configmaps "a": StorageError: invalid object, Code: 4, Key: /registry/configmaps/default/a, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: x, UID in object meta: {uid}"#
    );
    assert_eq!((code, message), (409, wanted));
    let table = [
        (
            "update default/configmaps/b",
            config_map("b", "1"),
            404,
            r#"configmaps "b" not found"#,
        ),
        (
            "update default/configmaps/a",
            config_map("b", "1"),
            400,
            "the name of the object (b) does not match the name on the URL (a)",
        ),
    ];
    for (call, body, code, message) in table {
        assert_eq!(
            server.refused(call, body).await,
            (code, message.to_owned()),
            "{call}"
        );
    }
}

#[tokio::test]
async fn a_write_that_changes_nothing_keeps_its_revision() {
    let server = Server::start().await;
    let stored = server.config_map("a", "1").await;
    for (call, body) in [
        ("update default/configmaps/a", config_map("a", "1")),
        ("merge default/configmaps/a", json!({"data": {"k": "1"}})),
    ] {
        assert_eq!(server.ok(call, body).await, stored, "{call}");
    }
}

#[tokio::test]
async fn leases_begin_by_update_and_need_a_revision_afterwards() {
    let server = Server::start().await;
    let lease = json!({"metadata": {"name": "l"}, "spec": {"holderIdentity": "a"}});
    let (code, _) = server.send("update default/leases/l", lease.clone()).await;
    assert_eq!(code, 201);
    assert_eq!(
        server.refused("update default/leases/l", lease).await,
        (
            422,
            r#"leases.coordination.k8s.io "l" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update"#.to_owned()
        )
    );
}

#[tokio::test]
async fn patches_of_each_kind_apply_to_the_current_state() {
    let server = Server::start().await;
    server.config_map("a", "1").await;
    for (call, patch, wanted) in [
        (
            "merge default/configmaps/a",
            json!({"data": {"x": "1", "k": null}}),
            json!({"x": "1"}),
        ),
        (
            "strategic-merge default/configmaps/a",
            json!({"data": {"y": "2"}}),
            json!({"x": "1", "y": "2"}),
        ),
        (
            "json default/configmaps/a",
            json!([{"op": "remove", "path": "/data/x"}]),
            json!({"y": "2"}),
        ),
    ] {
        assert_eq!(server.ok(call, patch).await["data"], wanted, "{call}");
    }
}

#[tokio::test]
async fn bad_patches_are_refused() {
    let server = Server::start().await;
    let stored = server.config_map("a", "1").await;
    let table = [
        (
            "merge default/configmaps/b",
            json!({}),
            404,
            r#"configmaps "b" not found"#,
        ),
        (
            "json default/configmaps/a",
            json!([{"op": "remove", "path": "/data/none"}]),
            422,
            "the server rejected our request due to an error in our request",
        ),
        (
            "merge default/configmaps/a",
            json!({"metadata": {"resourceVersion": "1"}}),
            409,
            r#"Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your changes to the latest version and try again"#,
        ),
        (
            "merge default/configmaps/a",
            json!({"metadata": {"name": "b"}}),
            400,
            "the name of the object (b) does not match the name on the URL (a)",
        ),
        (
            "merge default/configmaps/a?force=true",
            json!({}),
            422,
            r#"PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch"#,
        ),
    ];
    for (call, patch, code, message) in table {
        assert_eq!(
            server.refused(call, patch.clone()).await,
            (code, message.to_owned()),
            "{call} {patch}"
        );
    }
    let (code, message) = server
        .refused("merge default/configmaps/a", json!({"data": {"k": 1}}))
        .await;
    assert!(
        code == 422
            && message.contains("patch: Invalid value")
            && message.contains("json: cannot unmarshal number"),
        "{message}"
    );
    let strict = server
        .refused(
            "merge default/configmaps/a?fieldValidation=Strict",
            json!({"foo": 1}),
        )
        .await;
    assert!(
        strict.0 == 422
            && strict
                .1
                .ends_with(r#"strict decoding error: unknown field "foo""#),
        "{}",
        strict.1
    );
    assert_eq!(
        server.refused("apply default/configmaps/a", json!({})).await.0,
        415
    );
    assert_eq!(server.ok("get default/configmaps/a", Value::Null).await, stored);
}

#[tokio::test]
async fn concurrent_patches_all_land() {
    let server = Server::start().await;
    server.config_map("a", "1").await;
    let patches = (0..50).map(|at| {
        let server = &server;
        async move {
            server
                .ok(
                    "merge default/configmaps/a",
                    json!({"data": {format!("p{at}"): "x"}}),
                )
                .await
        }
    });
    join_all(patches).await;
    let stored = server.ok("get default/configmaps/a", Value::Null).await;
    assert_eq!(stored["data"].as_object().expect("data").len(), 51);
}

#[tokio::test]
async fn an_object_beyond_the_stores_limit_is_refused() {
    let server = Server::start().await;
    let annotated = json!({"metadata": {"name": "n"}, "spec": {"holderIdentity": "x".repeat(1_600_000)}});
    let (code, message) = server.refused("create default/leases", annotated).await;
    assert_eq!(
        (code, message.as_str()),
        (413, "Request entity too large: limit is 1572864")
    );
}

#[tokio::test]
async fn both_groups_show_one_event() {
    let server = Server::start().await;
    let event = json!({
        "metadata": {"name": "e"}, "reason": "Tested", "message": "it ran", "type": "Normal",
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"},
    });
    server.ok("create default/events", event).await;
    let seen = server.ok("get default/events.k8s.io:events/e", Value::Null).await;
    assert_eq!(
        (&seen["apiVersion"], &seen["note"], &seen["regarding"]["name"]),
        (&"events.k8s.io/v1".into(), &"it ran".into(), &"p".into())
    );
    let listed = server
        .ok(
            "list default/events.k8s.io:events?fieldSelector=regarding.name=p",
            Value::Null,
        )
        .await;
    assert_eq!(listed["items"][0]["note"], "it ran");
}

#[tokio::test]
async fn each_path_writes_its_own_part_of_a_pod() {
    let server = Server::start().await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "a"}]}});
    let created = server.ok("create default/pods", pod).await;
    assert_eq!(
        (&created["metadata"]["generation"], &created["status"]["phase"]),
        (&1.into(), &"Pending".into())
    );
    let change =
        json!({"spec": {"containers": [{"name": "c", "image": "b"}]}, "status": {"phase": "Running"}});
    let ran = server
        .ok("strategic-merge default/pods/p/status", change.clone())
        .await;
    assert_eq!(
        (
            &ran["status"]["phase"],
            &ran["spec"]["containers"][0]["image"],
            &ran["metadata"]["generation"]
        ),
        (&"Running".into(), &"a".into(), &1.into())
    );
    let changed = server.ok("strategic-merge default/pods/p", change).await;
    assert_eq!(
        (
            &changed["spec"]["containers"][0]["image"],
            &changed["metadata"]["generation"]
        ),
        (&"b".into(), &2.into())
    );
    assert_eq!(server.ok("get default/pods/p/status", Value::Null).await, changed);
}

#[tokio::test]
async fn a_node_may_ask_for_what_its_pods_refer_to() {
    use crate::authorization::references::{PodReferences, Referenced::*};
    let server = Server::start().await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {
        "nodeName": "n1", "serviceAccountName": "robot", "imagePullSecrets": [{"name": "pull"}],
        "volumes": [
            {"name": "a", "configMap": {"name": "volume"}},
            {"name": "b", "projected": {"sources": [{"secret": {"name": "projected"}}]}},
        ],
        "containers": [{"name": "c", "image": "i", "envFrom": [{"configMapRef": {"name": "env"}}],
            "env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}}]}],
    }});
    let account = json!({"metadata": {"name": "robot"}});
    server.ok("create default/serviceaccounts", account).await;
    server.ok("create default/pods", pod).await;
    for (kind, name, refers) in [
        (ConfigMap, "volume", true),
        (ConfigMap, "kube-root-ca.crt", true),
        (ConfigMap, "env", true),
        (ConfigMap, "key", false),
        (Secret, "projected", true),
        (Secret, "key", true),
        (Secret, "pull", true),
        (ServiceAccount, "robot", true),
        (ServiceAccount, "default", false),
    ] {
        assert_eq!(
            server.objects.node_refers_to("n1", kind, "default", name),
            refers,
            "{kind:?} {name}"
        );
        assert!(
            !server.objects.node_refers_to("n2", kind, "default", name)
                && !server.objects.node_refers_to("n1", kind, "work", name)
        );
    }
    assert_eq!(server.objects.node_of("default", "p").as_deref(), Some("n1"));
}

#[tokio::test]
async fn what_is_read_from_disk_is_what_was_written() {
    let server = Server::start().await;
    let pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{
        "name": "c", "image": "a", "resources": {"limits": {"cpu": "0.5", "memory": "1Gi"}},
        "livenessProbe": {"httpGet": {"port": "web", "path": "/"}}, "ports": [{"name": "web", "containerPort": 80}],
    }], "tolerations": [{"operator": "Exists"}]}});
    let secret = json!({"metadata": {"name": "s"}, "stringData": {"k": "v"}, "data": {"b": "AAEC/w=="}});
    let lease = json!({"metadata": {"name": "l"}, "spec": {"renewTime": "2026-01-01T00:00:00.123456Z"}});
    let node = json!({"metadata": {"name": "n", "labels": {"a": "b"}}, "spec": {"unschedulable": true}});
    let event = json!({"metadata": {"name": "e"}, "reason": "R", "involvedObject": {"namespace": "default"}});
    let mut written = Vec::new();
    for (path, body) in [
        ("default/pods/p", pod),
        ("default/secrets/s", secret),
        ("default/leases/l", lease),
        ("nodes/n", node),
        ("default/events/e", event),
        ("default/configmaps/c", config_map("c", "é\n\"")),
    ] {
        let (collection, _) = path.rsplit_once('/').expect("a name");
        written.push((path, server.ok(&format!("create {collection}"), body).await));
    }
    let server = server.restart().await;
    for (path, written) in written {
        assert_eq!(
            server.ok(&format!("get {path}"), Value::Null).await,
            written,
            "{path}"
        );
        assert_eq!(
            server.ok(&format!("merge {path}"), json!({})).await,
            written,
            "{path} unchanged"
        );
    }
}
