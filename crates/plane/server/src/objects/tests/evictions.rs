//! Evictions, with budgets and without.

use serde_json::{Value, json};

use super::{NOW, Server};

const EVICT: &str = "create default/pods/web/eviction";

fn eviction() -> Value {
    json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web", "namespace": "default"}})
}

/// A pod on a node, with this phase and readiness.
async fn pod(server: &Server, phase: &str, ready: &str) {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "labels": {"app": "web"}},
        "spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}});
    let mut pod = server.ok("create default/pods", pod).await;
    pod["status"] = json!({"phase": phase, "conditions": [{"type": "Ready", "status": ready}]});
    server.ok("update default/pods/web/status", pod).await;
}

async fn budget(server: &Server, name: &str, status: Value) {
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": name},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    let mut budget = server
        .ok("create default/policy:poddisruptionbudgets", budget)
        .await;
    budget["status"] = status;
    let path = format!("update default/policy:poddisruptionbudgets/{name}/status");
    server.ok(&path, budget).await;
}

fn healthy(current: i64, desired: i64, allowed: i64) -> Value {
    json!({"observedGeneration": 1, "currentHealthy": current, "desiredHealthy": desired,
           "disruptionsAllowed": allowed, "expectedPods": 3})
}

#[tokio::test]
async fn a_pod_without_a_budget_goes_with_a_reason_and_its_grace() {
    let server = Server::start().await;
    pod(&server, "Running", "True").await;
    let (code, answer) = server.send(EVICT, eviction()).await;
    assert_eq!((code, &answer["status"]), (201, &json!("Success")));
    let pod = server.ok("get default/pods/web", Value::Null).await;
    assert_eq!(pod["metadata"]["deletionGracePeriodSeconds"], 30);
    assert_eq!(
        pod["status"]["conditions"][1],
        json!({"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
               "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": NOW})
    );
}

#[tokio::test]
async fn a_budget_gives_what_it_has_and_then_refuses() {
    let server = Server::start().await;
    pod(&server, "Running", "True").await;
    budget(&server, "web", healthy(3, 1, 1)).await;
    let budget_path = "get default/policy:poddisruptionbudgets/web";
    server.ok(&format!("{EVICT}?dryRun=All"), eviction()).await;
    let held = server.ok(budget_path, Value::Null).await;
    assert_eq!(held["status"]["disruptionsAllowed"], 1);
    let pod = server.ok("get default/pods/web", Value::Null).await;
    assert_eq!(pod["metadata"]["deletionTimestamp"], Value::Null);
    server.ok(EVICT, eviction()).await;
    let held = server.ok(budget_path, Value::Null).await;
    assert_eq!(held["status"]["disruptionsAllowed"], 0);
    assert_eq!(held["status"]["disruptedPods"], json!({ "web": NOW }));
    assert_eq!(held["status"]["conditions"][0]["reason"], "InsufficientPods");
    // On its way out already: no budget is asked.
    server.ok(EVICT, eviction()).await;
}

#[tokio::test]
async fn refusals_have_upstreams_words_and_cause() {
    let changed = json!({"observedGeneration": 0, "currentHealthy": 3, "desiredHealthy": 1, "disruptionsAllowed": 1,
                         "expectedPods": 3});
    for (status, ready, why, seconds) in [
        (
            healthy(1, 1, 0),
            "True",
            "The disruption budget web needs 1 healthy pods and has 1 currently",
            Value::Null,
        ),
        (
            healthy(0, 1, 0),
            "False",
            "The disruption budget web needs 1 healthy pods and has 0 currently",
            Value::Null,
        ),
        (
            changed,
            "True",
            "The disruption budget web is still being processed by the server.",
            json!(10),
        ),
    ] {
        let server = Server::start().await;
        pod(&server, "Running", ready).await;
        budget(&server, "web", status).await;
        let (code, answer) = server.send(EVICT, eviction()).await;
        assert_eq!(
            (code, &answer["reason"]),
            (429, &json!("TooManyRequests")),
            "{answer}"
        );
        assert_eq!(
            answer["message"],
            "Cannot evict pod as it would violate the pod's disruption budget."
        );
        assert_eq!(
            answer["details"]["causes"],
            json!([{"reason": "DisruptionBudget", "message": why}])
        );
        assert_eq!(answer["details"]["retryAfterSeconds"], seconds);
        let pod = server.ok("get default/pods/web", Value::Null).await;
        assert_eq!(pod["metadata"]["deletionTimestamp"], Value::Null);
    }
}

#[tokio::test]
async fn pods_that_do_not_serve_or_have_not_begun_cost_nothing() {
    for (phase, ready) in [("Running", "False"), ("Pending", "False"), ("Failed", "False")] {
        let server = Server::start().await;
        pod(&server, phase, ready).await;
        budget(&server, "web", healthy(2, 2, 0)).await;
        server.ok(EVICT, eviction()).await;
        let budget = "get default/policy:poddisruptionbudgets/web";
        let held = server.ok(budget, Value::Null).await;
        assert_eq!(held["status"]["disruptedPods"], Value::Null, "{phase}");
    }
}

#[tokio::test]
async fn what_cannot_be_evicted_is_refused() {
    let server = Server::start().await;
    assert_eq!(
        server.refused(EVICT, eviction()).await,
        (404, r#"pods "web" not found"#.to_owned())
    );
    pod(&server, "Running", "True").await;
    let mut other = eviction();
    other["metadata"]["name"] = "api".into();
    assert_eq!(
        server.refused(EVICT, other).await,
        (
            400,
            "name in URL does not match name in Eviction object".to_owned()
        )
    );
    let mut stale = eviction();
    stale["deleteOptions"] = json!({"preconditions": {"resourceVersion": "1"}});
    assert_eq!(server.refused(EVICT, stale).await.0, 409);
    budget(&server, "one", healthy(3, 1, 1)).await;
    budget(&server, "two", healthy(3, 1, 1)).await;
    assert_eq!(
        server.refused(EVICT, eviction()).await,
        (500, "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.".to_owned())
    );
}
