//! The scale of workloads.

use serde_json::{Value, json};

use super::{Server, revision};

const SCALE: &str = "default/apps:deployments/web/scale";

async fn web(server: &Server) -> Value {
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
    server.ok("create default/apps:deployments", deployment).await
}

#[tokio::test]
async fn a_scale_is_read_and_written() {
    let server = Server::start().await;
    let stored = web(&server).await;
    let mut scale = server.ok(&format!("get {SCALE}"), Value::Null).await;
    assert_eq!(
        (&scale["kind"], &scale["apiVersion"], &scale["spec"]["replicas"]),
        (&json!("Scale"), &json!("autoscaling/v1"), &json!(2))
    );
    assert_eq!(scale["status"], json!({"replicas": 0, "selector": "app=web"}));
    assert_eq!(scale["metadata"]["uid"], stored["metadata"]["uid"]);
    scale["spec"]["replicas"] = 5.into();
    let answer = server.ok(&format!("update {SCALE}"), scale.clone()).await;
    assert_eq!(answer["spec"]["replicas"], 5);
    let now = server.ok("get default/apps:deployments/web", Value::Null).await;
    assert_eq!(
        (&now["spec"]["replicas"], &now["metadata"]["generation"]),
        (&json!(5), &json!(2))
    );
    assert_eq!(revision(&answer), revision(&now));
    // The same scale again is about a state that is gone; without a revision it is about any.
    let (code, message) = server.refused(&format!("update {SCALE}"), scale.clone()).await;
    assert_eq!(code, 409);
    assert!(message.contains("the object has been modified"), "{message}");
    scale["metadata"]["resourceVersion"].take();
    server.ok(&format!("update {SCALE}"), scale).await;
    let same = server.ok("get default/apps:deployments/web", Value::Null).await;
    assert_eq!(revision(&same), revision(&now));
}

#[tokio::test]
async fn scales_are_checked() {
    let server = Server::start().await;
    web(&server).await;
    let scale = |metadata: Value, replicas: i64| json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": metadata, "spec": {"replicas": replicas}});
    for (body, code, text) in [
        (
            scale(json!({"name": "web"}), -1),
            422,
            r#"Scale.autoscaling "web" is invalid: spec.replicas: Invalid value: -1: must be greater than or equal to 0"#,
        ),
        (
            scale(json!({"name": "api"}), 1),
            400,
            "the name of the object (api) does not match the name on the URL (web)",
        ),
        (
            scale(json!({"name": "web", "uid": "x"}), 1),
            409,
            r#"Operation cannot be fulfilled on deployments/scale.apps "web": Precondition failed: UID in precondition: x"#,
        ),
    ] {
        let (found, message) = server.refused(&format!("update {SCALE}"), body).await;
        assert_eq!(found, code, "{message}");
        assert!(message.starts_with(text), "{message}");
    }
    let (code, _) = server
        .refused("get default/apps:deployments/none/scale", Value::Null)
        .await;
    assert_eq!(code, 404);
}
