//! Service accounts of namespaces and of pods.

use super::*;

fn pod(spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    for (key, value) in spec.as_object().expect("an object") {
        pod["spec"][key] = value.clone();
    }
    pod
}

#[tokio::test]
async fn a_namespace_has_its_account_when_its_creation_is_answered() {
    let server = Server::start().await;
    for namespace in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        server
            .ok(&format!("get {namespace}/serviceaccounts/default"), Value::Null)
            .await;
    }
    server
        .ok(
            "create namespaces?dryRun=All",
            json!({"metadata": {"name": "dry"}}),
        )
        .await;
    let (code, _) = server
        .refused("get dry/serviceaccounts/default", Value::Null)
        .await;
    assert_eq!(code, 404);
    for round in 0..20 {
        let namespace = format!("ns-{round}");
        server
            .ok("create namespaces", json!({"metadata": {"name": namespace}}))
            .await;
        server
            .ok(&format!("get {namespace}/serviceaccounts/default"), Value::Null)
            .await;
        server
            .ok(&format!("create {namespace}/pods"), pod(json!({})))
            .await;
    }
}

#[tokio::test]
async fn a_namespace_tells_its_pods_whom_to_trust() {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let store = Arc::new(Embedded::open(dir.path(), Arc::new(SystemClock)).expect("a store"));
    let objects = Objects::start(store.clone(), "PEM").await.expect("starts");
    objects.bootstrap(None).await.expect("bootstraps");
    let server = Server { objects, store, dir };
    server
        .ok("create namespaces", json!({"metadata": {"name": "ns"}}))
        .await;
    for namespace in ["default", "ns"] {
        let call = format!("get {namespace}/configmaps/kube-root-ca.crt");
        let held = server.ok(&call, Value::Null).await;
        assert_eq!(held["data"], json!({"ca.crt": "PEM"}), "{namespace}");
        assert!(held["metadata"]["annotations"]["kubernetes.io/description"].is_string());
    }
}

#[tokio::test]
async fn a_pod_is_completed_by_its_account() {
    let server = Server::start().await;
    let made = server.ok("create default/pods", pod(json!({}))).await;
    let spec = &made["spec"];
    assert_eq!(
        (&spec["serviceAccountName"], &spec["serviceAccount"]),
        (&json!("default"), &json!("default"))
    );
    let volume = spec["volumes"][0].clone();
    let name = volume["name"].as_str().expect("a name");
    assert!(
        name.starts_with("kube-api-access-") && name.len() == "kube-api-access-".len() + 5,
        "{name}"
    );
    assert_eq!(
        volume["projected"],
        json!({"defaultMode": 420, "sources": [
            {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
        ]})
    );
    assert_eq!(
        spec["containers"][0]["volumeMounts"],
        json!([{"name": name, "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"}])
    );

    let account = json!({"metadata": {"name": "robot"}, "automountServiceAccountToken": false,
        "imagePullSecrets": [{"name": "registry"}]});
    server.ok("create default/serviceaccounts", account).await;
    let mut other = pod(json!({"serviceAccount": "robot"}));
    other["metadata"]["name"] = "other".into();
    let made = server.ok("create default/pods", other).await;
    assert_eq!(made["spec"]["serviceAccountName"], "robot");
    assert_eq!(made["spec"]["imagePullSecrets"], json!([{"name": "registry"}]));
    assert!(made["spec"]["volumes"].is_null());
}

#[tokio::test]
async fn a_pod_needs_its_account_and_gets_the_default_one_again() {
    let server = Server::start().await;
    let refused = server
        .refused("create default/pods", pod(json!({"serviceAccountName": "gone"})))
        .await;
    let message = r#"pods "p" is forbidden: error looking up service account default/gone: serviceaccount "gone" not found"#;
    assert_eq!(refused, (403, message.to_owned()));
    let mut generated = pod(json!({"serviceAccountName": "gone"}));
    generated["metadata"] = json!({"generateName": "web-"});
    let (_, message) = server.refused("create default/pods", generated).await;
    assert!(message.starts_with(r#"pods "web-" is forbidden"#), "{message}");

    server
        .ok("delete default/serviceaccounts/default", Value::Null)
        .await;
    server.ok("create default/pods?dryRun=All", pod(json!({}))).await;
    let (code, _) = server
        .refused("get default/serviceaccounts/default", Value::Null)
        .await;
    assert_eq!(code, 404);
    server.ok("create default/pods", pod(json!({}))).await;
    server
        .ok("get default/serviceaccounts/default", Value::Null)
        .await;
}
