//! A program in a pod that uses the API as its service account, with nothing but what every pod is given.

use serde_json::json;

use crate::{
    harness::Python,
    host::{Node, config_map, idle, pod},
};

/// Says who it is, and what each call was answered with.
const SCRIPT: &str = r#"
from kubernetes import client, config
config.load_incluster_config()
v1 = client.CoreV1Api()
with open("/var/run/secrets/kubernetes.io/serviceaccount/namespace") as file:
    namespace = file.read()

def code(call, *arguments):
    try:
        return call(*arguments, _request_timeout=60) and 200
    except client.ApiException as refused:
        return refused.status

review = client.AuthenticationV1Api().create_self_subject_review(client.V1SelfSubjectReview())
new = client.V1ConfigMap(metadata=client.V1ObjectMeta(name="new"))
print(review.status.user_info.username, "get", code(v1.read_namespaced_config_map, "settings", namespace),
      "list", code(v1.list_namespaced_config_map, namespace), "create", code(v1.create_namespaced_config_map, namespace, new),
      "secrets", code(v1.list_namespaced_secret, namespace), "elsewhere", code(v1.list_namespaced_config_map, "kube-system"),
      "nodes", code(v1.list_node))
"#;

#[test]
fn the_python_client_does_in_a_pod_what_its_account_may() {
    let Some(python) = Python::find() else { return };
    let Some(mut node) = Node::start() else { return };
    node.ok("create serviceaccount robot");
    node.ok("create role reader --verb=get,list --resource=configmaps");
    node.ok("create rolebinding robot --role=reader --serviceaccount=default:robot");
    let (program, directories) = python.installed();
    let names = Vec::from_iter((0..directories.len()).map(|at| format!("python-{at}")));
    let installed = || names.iter().zip(&directories);
    let mut mounts = Vec::from_iter(
        installed().map(|(name, path)| json!({"name": name, "mountPath": path, "readOnly": true})),
    );
    let mut volumes =
        Vec::from_iter(installed().map(|(name, path)| json!({"name": name, "hostPath": {"path": path}})));
    mounts.push(json!({"name": "script", "mountPath": "/script"}));
    volumes.push(json!({"name": "script", "configMap": {"name": "script"}}));
    node.create([
        config_map("script", json!({"client.py": SCRIPT})),
        config_map("settings", json!({"level": "INFO"})),
        pod(
            "client",
            json!({"serviceAccountName": "robot", "volumes": volumes, "containers": [idle(json!({"volumeMounts": mounts}))]}),
        ),
    ]);
    node.ready("client");
    let answers = |node: &Node| node.sh("client", &format!("{program} /script/client.py"));
    let user = "system:serviceaccount:default:robot";
    let granted = format!("{user} get 200 list 200 create 403 secrets 403 elsewhere 403 nodes 403");
    assert_eq!(answers(&node), granted);
    // The pod outlives the server, and finds the next one where the first one was.
    node.server.crash_and_restart();
    assert_eq!(answers(&node), granted);
    node.ok("delete rolebinding robot");
    assert_eq!(answers(&node), granted.replace("200", "403"));
    let host = node.sh("client", "echo $KUBERNETES_SERVICE_HOST");
    assert_eq!(node.field("service/kubernetes", ".spec.clusterIP"), host);
}
