//! What people have in their repositories: large Deployments, every kind of workload, many objects in one file.

use serde_json::{Value, json};

use crate::host::{Node, config_map, idle, shell};

fn labelled(kind: &str, api_version: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": api_version, "kind": kind,
        "metadata": {"name": name, "labels": {"app.kubernetes.io/part-of": "shop"}}, "spec": spec})
}

fn workload(kind: &str, name: &str, pod: Value, more: Value) -> Value {
    let labels = json!({"app.kubernetes.io/name": name});
    let mut spec = json!({"selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels}, "spec": pod}});
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    labelled(kind, "apps/v1", name, spec)
}

/// Six containers; the first has thirty variables out of ConfigMaps, Secrets and the pod itself.
fn storefront() -> Value {
    let from = |number: usize| match number % 3 {
        0 => json!({"configMapKeyRef": {"name": format!("settings-{}", number % 10), "key": "value"}}),
        1 => json!({"secretKeyRef": {"name": format!("credentials-{}", number % 10), "key": "value"}}),
        _ => json!({"fieldRef": {"fieldPath": "metadata.name"}}),
    };
    let variables =
        (0..30).map(|number| json!({"name": format!("VARIABLE_{number}"), "valueFrom": from(number)}));
    let mut containers = vec![idle(json!({
        "name": "storefront",
        "env": Vec::from_iter(variables),
        "envFrom": [{"configMapRef": {"name": "settings-0"}, "prefix": "ALL_"}],
        "ports": [{"name": "http", "containerPort": 8080}],
        "readinessProbe": {"exec": {"command": ["true"]}, "periodSeconds": 1},
        "livenessProbe": {"exec": {"command": ["true"]}, "initialDelaySeconds": 5},
        "volumeMounts": [{"name": "settings", "mountPath": "/etc/shop", "readOnly": true}],
        "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
    }))];
    containers.extend((1..6).map(|number| idle(json!({"name": format!("helper-{number}")}))));
    let pod = json!({
        "initContainers": [shell("test -s /etc/shop/value", json!({"name": "wait",
            "volumeMounts": [{"name": "settings", "mountPath": "/etc/shop"}]}))],
        "containers": containers,
        "volumes": [{"name": "settings", "projected": {"sources": [
            {"configMap": {"name": "settings-0"}}, {"secret": {"name": "credentials-0", "items": [{"key": "value", "path": "secret"}]}}]}}],
        "terminationGracePeriodSeconds": 5,
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "storefront"}}}],
    });
    workload("Deployment", "storefront", pod, json!({"replicas": 2}))
}

/// Forty objects, in the order in which people write them: users before what they use.
fn shop() -> Vec<Value> {
    let quick =
        |name: &str| json!({"containers": [idle(json!({"name": name}))], "terminationGracePeriodSeconds": 1});
    let port = json!([{"name": "http", "port": 80, "targetPort": 8080}]);
    let mut objects = vec![
        storefront(),
        workload(
            "StatefulSet",
            "ledger",
            quick("ledger"),
            json!({"replicas": 3, "serviceName": "ledger"}),
        ),
        workload("DaemonSet", "collector", quick("collector"), json!({})),
        labelled(
            "Job",
            "batch/v1",
            "migrate",
            json!({"template": {"spec":
            {"restartPolicy": "Never", "containers": [shell("exit 0", json!({}))]}}}),
        ),
        labelled(
            "CronJob",
            "batch/v1",
            "report",
            json!({"schedule": "0 4 * * *", "jobTemplate": {"spec": {"template": {"spec":
            {"restartPolicy": "OnFailure", "containers": [shell("exit 0", json!({}))]}}}}}),
        ),
        labelled(
            "Service",
            "v1",
            "storefront",
            json!({"selector": {"app.kubernetes.io/name": "storefront"}, "ports": port}),
        ),
        labelled(
            "Service",
            "v1",
            "ledger",
            json!({"clusterIP": "None", "selector": {"app.kubernetes.io/name": "ledger"}, "ports": port}),
        ),
        labelled(
            "PodDisruptionBudget",
            "policy/v1",
            "storefront",
            json!({"minAvailable": 1, "selector": {"matchLabels": {"app.kubernetes.io/name": "storefront"}}}),
        ),
        json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "shop"}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "shop"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "watch"]}]}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "shop"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "shop"},
            "subjects": [{"kind": "ServiceAccount", "name": "shop"}]}),
    ];
    for number in 0..10 {
        objects.push(config_map(
            &format!("settings-{number}"),
            json!({"value": "plain"}),
        ));
        // "hidden" in base64: with stringData kubectl would send a patch each time.
        let name = format!("credentials-{number}");
        objects.push(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
            "data": {"value": "aGlkZGVu"}}),
        );
    }
    let more = 40 - objects.len();
    objects
        .extend((0..more).map(|number| config_map(&format!("page-{number}"), json!({"index.html": "<p>"}))));
    objects
}

/// What an apply would change: the generation where controllers write a status too, else the revision.
fn states(node: &Node) -> String {
    let of = |kinds: &str, field: &str| {
        let shape = format!(
            r#"jsonpath={{range .items[*]}}{{.kind}}/{{.metadata.name}} {{.metadata.{field}}}{{"\n"}}{{end}}"#
        );
        node.call(&["get", kinds, "-o", &shape]).ok()
    };
    let with_status = "deployments,statefulsets,daemonsets,jobs,cronjobs,poddisruptionbudgets";
    let without = "services,configmaps,secrets,serviceaccounts,roles,rolebindings";
    of(with_status, "generation") + &of(without, "resourceVersion")
}

#[test]
fn forty_objects_in_one_file_settle_and_a_second_apply_changes_nothing() {
    let Some(node) = Node::start() else { return };
    let manifest = json!({"apiVersion": "v1", "kind": "List", "items": shop()}).to_string();
    node.apply(&manifest);
    for settled in [
        "rollout status deployment/storefront --timeout=120s",
        "rollout status statefulset/ledger --timeout=120s",
        "rollout status daemonset/collector --timeout=120s",
        "wait --for=condition=Complete job/migrate --timeout=120s",
    ] {
        node.ok(settled);
    }
    let pod = node.ok("get pods -l app.kubernetes.io/name=storefront -o jsonpath={.items[0].metadata.name}");
    assert_eq!(
        node.ok(&format!(
            "get pod {pod} -o jsonpath={{.status.containerStatuses[*].ready}}"
        )),
        "true true true true true true"
    );
    let variables = node.ok(&format!("exec {pod} -c storefront -- env"));
    for (name, value) in [
        ("VARIABLE_0", "plain"),
        ("VARIABLE_1", "hidden"),
        ("VARIABLE_29", pod.as_str()),
        ("ALL_value", "plain"),
    ] {
        crate::has(&variables, &[&format!("{name}={value}\n")]);
    }
    assert_eq!(
        node.ok("get pods -l app.kubernetes.io/name=ledger -o jsonpath={.items[*].metadata.name}"),
        "ledger-0 ledger-1 ledger-2"
    );

    let before = states(&node);
    assert!(before.lines().count() >= 40, "{before}");
    let again = node.apply(&manifest);
    let changed: Vec<_> = again
        .lines()
        .filter(|line| !line.ends_with(" unchanged"))
        .collect();
    // The selector of a budget is replaced as a whole: kubectl sends it each time, and nothing changes by it.
    assert_eq!(changed, ["poddisruptionbudget.policy/storefront configured"]);
    assert_eq!(states(&node), before);
}
