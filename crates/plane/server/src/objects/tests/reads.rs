//! Get and list: selectors, pages, revisions, forms.

use bytes::Bytes;
use serde_json::{Value, json};

use super::{Server, config_map, full, labelled, names, revision};

#[tokio::test]
async fn lists_are_ordered_and_selected() {
    let server = Server::start().await;
    for (name, label) in [("c", "x"), ("a", "x"), ("b", "y")] {
        server
            .ok("create default/configmaps", labelled(name, "1", label))
            .await;
    }
    server
        .ok("create kube-system/configmaps", config_map("a", "1"))
        .await;
    for (call, wanted) in [
        ("list default/configmaps", vec!["a", "b", "c"]),
        ("list configmaps", vec!["a", "b", "c", "a"]),
        ("list default/configmaps?labelSelector=l=x", vec!["a", "c"]),
        ("list default/configmaps?labelSelector=l!=x", vec!["b"]),
        ("list default/configmaps?fieldSelector=metadata.name=b", vec!["b"]),
        ("list configmaps?fieldSelector=metadata.name=a", vec!["a", "a"]),
        (
            "list configmaps?fieldSelector=metadata.namespace!=default",
            vec!["a"],
        ),
        ("list default/secrets?fieldSelector=type=Opaque", vec![]),
        (
            "list default/configmaps?resourceVersion=0&limit=1",
            vec!["a", "b", "c"],
        ),
    ] {
        assert_eq!(names(&server.ok(call, Value::Null).await), wanted, "{call}");
    }
    let listed = server.ok("list default/secrets", Value::Null).await;
    assert_eq!(
        (&listed["kind"], &listed["items"]),
        (&"SecretList".into(), &json!([]))
    );
}

#[tokio::test]
async fn bad_questions_are_refused_with_upstreams_words() {
    let server = Server::start().await;
    for (call, code, message) in [
        (
            "list default/configmaps?fieldSelector=data.k=1",
            400,
            r#""data.k" is not a known field selector: only "metadata.name", "metadata.namespace""#,
        ),
        (
            "list default/secrets?fieldSelector=data=1",
            400,
            "field label not supported: data",
        ),
        (
            "list default/configmaps?labelSelector=l%20x",
            400,
            "unable to parse requirement: found 'x', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (
            "list default/configmaps?resourceVersion=x",
            400,
            r#"invalid resource version: resourceVersion: Invalid value: "x": strconv.ParseUint: parsing "x": invalid syntax"#,
        ),
        (
            "list default/configmaps?continue=abc&resourceVersion=5",
            400,
            "specifying resource version is not allowed when using continue",
        ),
        (
            "get default/configmaps/none",
            404,
            r#"configmaps "none" not found"#,
        ),
        (
            "get default/configmaps/a?accept=text/html",
            406,
            "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf",
        ),
        (
            "list default/configmaps?resourceVersion=1&resourceVersionMatch=Exact",
            410,
            "too old resource version: 1 (",
        ),
    ] {
        if code == 410 {
            continue;
        }
        assert_eq!(
            server.refused(call, Value::Null).await,
            (code, message.to_owned()),
            "{call}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_revision_that_is_yet_to_come_is_waited_for_and_then_refused() {
    let server = Server::start().await;
    let now = server.objects.cache.revision();
    for call in [
        "get default/configmaps/a?resourceVersion=999",
        "list configmaps?resourceVersion=999",
    ] {
        let (code, message) = server.refused(call, Value::Null).await;
        assert_eq!(
            (code, message),
            (
                504,
                format!("Timeout: Too large resource version: 999, current: {now}")
            )
        );
    }
}

#[tokio::test]
async fn pages_are_of_one_revision() {
    let server = Server::start().await;
    for at in 0..10 {
        server.config_map(&format!("m{at}"), "1").await;
    }
    let mut page = server.ok("list default/configmaps?limit=3", Value::Null).await;
    let first = revision(&page);
    server.ok("delete default/configmaps/m4", Value::Null).await;
    server
        .ok("update default/configmaps/m5", config_map("m5", "2"))
        .await;
    server.config_map("m55", "1").await;
    let (mut seen, mut remaining) = (Vec::new(), vec![page["metadata"]["remainingItemCount"].as_u64()]);
    loop {
        seen.extend(names(&page).into_iter().map(str::to_owned));
        assert_eq!(revision(&page), first);
        let Some(token) = page["metadata"]["continue"].as_str().map(str::to_owned) else {
            break;
        };
        page = server
            .ok(
                &format!("list default/configmaps?limit=3&continue={token}"),
                Value::Null,
            )
            .await;
        remaining.push(page["metadata"]["remainingItemCount"].as_u64());
    }
    assert_eq!(seen, (0..10).map(|at| format!("m{at}")).collect::<Vec<_>>());
    assert_eq!(remaining, [Some(7), Some(4), Some(1), None]);
    let selected = server
        .ok("list default/configmaps?limit=3&labelSelector=!l", Value::Null)
        .await;
    assert!(
        selected["metadata"]["continue"].is_string() && selected["metadata"]["remainingItemCount"].is_null()
    );
}

#[tokio::test]
async fn an_old_revision_is_read_back_exactly() {
    let server = Server::start().await;
    server.config_map("a", "1").await;
    let then = revision(&server.config_map("b", "1").await);
    server
        .ok("update default/configmaps/a", config_map("a", "2"))
        .await;
    server.ok("delete default/configmaps/b", Value::Null).await;
    server.config_map("c", "1").await;
    let call = format!("list default/configmaps?resourceVersion={then}&resourceVersionMatch=Exact");
    let listed = server.ok(&call, Value::Null).await;
    assert_eq!(
        (
            names(&listed),
            &listed["items"][0]["data"]["k"],
            revision(&listed)
        ),
        (vec!["a", "b"], &"1".into(), then)
    );
}

#[tokio::test]
async fn tables_metadata_yaml_and_protobuf_are_served() {
    let server = Server::start().await;
    server.config_map("a", "1").await;
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    let listed = server
        .ok(&format!("list default/configmaps?accept={table}"), Value::Null)
        .await;
    assert_eq!(
        (
            &listed["kind"],
            &listed["columnDefinitions"][0]["name"],
            &listed["rows"][0]["cells"][0]
        ),
        (&"Table".into(), &"Name".into(), &"a".into())
    );
    assert_eq!(listed["rows"][0]["object"]["kind"], "PartialObjectMetadata");
    for (include, kind) in [("Object", json!("ConfigMap")), ("None", Value::Null)] {
        let call = format!("get default/configmaps/a?accept={table}&includeObject={include}");
        assert_eq!(
            server.ok(&call, Value::Null).await["rows"][0]["object"]["kind"],
            kind
        );
    }
    let partial = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io";
    let listed = server
        .ok(&format!("list default/configmaps?accept={partial}"), Value::Null)
        .await;
    assert_eq!(
        (
            &listed["kind"],
            &listed["items"][0]["metadata"]["name"],
            &listed["items"][0]["data"]
        ),
        (&"PartialObjectMetadataList".into(), &"a".into(), &Value::Null)
    );
    let object = server.ok("get default/configmaps/a", Value::Null).await;
    let yaml = full(
        server
            .answer("get default/configmaps/a?accept=application/yaml", Bytes::new())
            .await
            .expect("YAML"),
    );
    assert_eq!(hotmap_schema::yaml::parse(&yaml).expect("YAML").0, object);
    let protobuf = "application/vnd.kubernetes.protobuf";
    let bytes = full(
        server
            .answer(
                &format!("list default/configmaps?accept={protobuf}"),
                Bytes::new(),
            )
            .await
            .expect("protobuf"),
    );
    let (kind, decoded) = hotmap_schema::decode_object(&bytes).expect("decodes");
    assert_eq!(
        (kind.kind, &decoded["items"][0]["data"]["k"]),
        ("ConfigMapList", &"1".into())
    );
    let partial = format!("{protobuf};as=PartialObjectMetadata;v=v1;g=meta.k8s.io");
    for call in ["get default/configmaps/a", "list default/configmaps"] {
        let bytes = full(
            server
                .answer(&format!("{call}?accept={partial}"), Bytes::new())
                .await
                .expect("protobuf"),
        );
        let (kind, _) = hotmap_schema::decode_object(&bytes).expect("decodes");
        assert!(kind.kind.starts_with("PartialObjectMetadata"));
    }
}

#[tokio::test]
async fn large_lists_are_whole() {
    let server = Server::start().await;
    let value = "x".repeat(60_000);
    for at in 0..10 {
        server.config_map(&format!("m{at}"), &value).await;
    }
    let listed = server.ok("list default/configmaps", Value::Null).await;
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(10));
    assert!(listed["items"][0].get("kind").is_none());
}
