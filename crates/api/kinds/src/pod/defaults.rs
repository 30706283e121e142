//! What a pod's author left out.
//!
//! Rules follow `pkg/apis/core/v1/defaults.go` and `zz_generated.defaults.go`, Kubernetes 1.36. The oddest one: a volume
//! without a source is an emptyDir.

use serde_json::{Map, Value, json};

use crate::fields::{Fields, list_mut, map_mut, set_absent, set_default};

/// 0644, in the decimal of JSON.
const FILE_MODE: i64 = 0o644;
const TOKEN_SECONDS: i64 = 60 * 60;
const GRACE_SECONDS: i64 = 30;
const SILENT_NODE_SECONDS: i64 = 300;

/// Members that a volume source fills in when they are absent or empty.
const SOURCE_DEFAULTS: [(&str, &str, Filler); 12] = [
    ("iscsi", "iscsiInterface", Filler::Text("default")),
    ("rbd", "pool", Filler::Text("rbd")),
    ("rbd", "user", Filler::Text("admin")),
    ("rbd", "keyring", Filler::Text("/etc/ceph/keyring")),
    ("azureDisk", "cachingMode", Filler::Text("ReadWrite")),
    ("azureDisk", "fsType", Filler::Text("ext4")),
    ("azureDisk", "kind", Filler::Text("Shared")),
    ("scaleIO", "storageMode", Filler::Text("ThinProvisioned")),
    ("scaleIO", "fsType", Filler::Text("xfs")),
    ("configMap", "defaultMode", Filler::Mode),
    ("secret", "defaultMode", Filler::Mode),
    ("downwardAPI", "defaultMode", Filler::Mode),
];

enum Filler {
    Text(&'static str),
    Mode,
}

/// Fills in the defaults of a pod; once done, doing it again changes nothing.
pub(super) fn fill_in(object: &mut Map<String, Value>) {
    let Some(spec) = map_mut(object, "spec") else {
        return;
    };
    fill_in_spec(spec);
    // What follows is a pod's alone: templates stay as they were written, so that a newer default changes no template.
    let host_network = spec.is_set("hostNetwork");
    for list in ["containers", "initContainers"] {
        for container in objects(spec, list) {
            requests_follow_limits(container);
            if host_network {
                host_ports_follow(container);
            }
        }
    }
    set_absent(spec, "enableServiceLinks", true.into());
    outlive_a_silent_node(spec);
}

/// A pod stays this long on a node that is not ready or cannot be reached, unless it says otherwise.
///
/// Source: `plugin/pkg/admission/defaulttolerationseconds`, Kubernetes 1.36.
fn outlive_a_silent_node(spec: &mut Map<String, Value>) {
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let says = |toleration: &Value| {
            let text = |field: &str| toleration.get(field).and_then(Value::as_str).unwrap_or_default();
            ["", key].contains(&text("key")) && ["", "NoExecute"].contains(&text("effect"))
        };
        if !spec.list("tolerations").iter().any(says) {
            let mut tolerations = spec.list("tolerations").to_vec();
            tolerations.push(json!({
                "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SILENT_NODE_SECONDS,
            }));
            spec.insert("tolerations".to_owned(), tolerations.into());
        }
    }
}

/// Fills in what pods and pod templates have in common.
pub(super) fn fill_in_spec(spec: &mut Map<String, Value>) {
    for volume in objects(spec, "volumes") {
        default_volume(volume);
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in objects(spec, list) {
            default_container(container);
        }
    }
    default_spec(spec);
}

fn default_spec(spec: &mut Map<String, Value>) {
    set_default(spec, "dnsPolicy", "ClusterFirst");
    set_default(spec, "restartPolicy", "Always");
    set_default(spec, "securityContext", json!({}));
    set_default(spec, "schedulerName", "default-scheduler");
    set_absent(spec, "terminationGracePeriodSeconds", GRACE_SECONDS.into());
    // The deprecated spelling of the account is kept in step with the present one.
    let account = match spec.text("serviceAccountName") {
        "" => spec.text("serviceAccount"),
        name => name,
    };
    if !account.is_empty() {
        let account = account.to_owned();
        for field in ["serviceAccountName", "serviceAccount"] {
            spec.insert(field.to_owned(), account.as_str().into());
        }
    }
}

fn default_volume(volume: &mut Map<String, Value>) {
    let has_source = volume
        .iter()
        .any(|(key, value)| key != "name" && !value.is_null());
    if !has_source {
        volume.insert("emptyDir".to_owned(), json!({}));
    }
    for (source, field, filler) in &SOURCE_DEFAULTS {
        let Some(source) = volume.get_mut(*source).and_then(Value::as_object_mut) else {
            continue;
        };
        match filler {
            Filler::Text(text) => set_default(source, field, *text),
            Filler::Mode => set_absent(source, field, FILE_MODE.into()),
        }
    }
    if let Some(source) = nested(volume, &["downwardAPI"]) {
        default_downward_items(source);
    }
    if let Some(host_path) = nested(volume, &["hostPath"]) {
        set_absent(host_path, "type", "".into());
    }
    if let Some(disk) = nested(volume, &["azureDisk"]) {
        set_absent(disk, "readOnly", false.into());
    }
    if let Some(claim) = nested(volume, &["ephemeral", "volumeClaimTemplate", "spec"]) {
        set_absent(claim, "volumeMode", "Filesystem".into());
    }
    if let Some(image) = nested(volume, &["image"]) {
        let policy = pull_policy(image.text("reference"));
        set_default(image, "pullPolicy", policy);
    }
    let Some(projected) = nested(volume, &["projected"]) else {
        return;
    };
    set_absent(projected, "defaultMode", FILE_MODE.into());
    for source in objects(projected, "sources") {
        if let Some(source) = nested(source, &["downwardAPI"]) {
            default_downward_items(source);
        }
        if let Some(token) = nested(source, &["serviceAccountToken"]) {
            set_absent(token, "expirationSeconds", TOKEN_SECONDS.into());
        }
    }
}

fn default_downward_items(source: &mut Map<String, Value>) {
    for item in objects(source, "items") {
        if let Some(field) = nested(item, &["fieldRef"]) {
            set_default(field, "apiVersion", "v1");
        }
    }
}

fn default_container(container: &mut Map<String, Value>) {
    let policy = pull_policy(container.text("image"));
    set_default(container, "imagePullPolicy", policy);
    set_default(container, "terminationMessagePath", "/dev/termination-log");
    set_default(container, "terminationMessagePolicy", "File");
    for port in objects(container, "ports") {
        set_default(port, "protocol", "TCP");
    }
    for variable in objects(container, "env") {
        if let Some(field) = nested(variable, &["valueFrom", "fieldRef"]) {
            set_default(field, "apiVersion", "v1");
        }
        if let Some(file) = nested(variable, &["valueFrom", "fileKeyRef"]) {
            set_absent(file, "optional", false.into());
        }
    }
    for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = nested(container, &[probe]) {
            default_probe(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        if let Some(http) = nested(container, &["lifecycle", hook, "httpGet"]) {
            default_http(http);
        }
    }
}

fn default_probe(probe: &mut Map<String, Value>) {
    for (field, value) in [
        ("timeoutSeconds", 1),
        ("periodSeconds", 10),
        ("successThreshold", 1),
        ("failureThreshold", 3),
    ] {
        if probe.int(field).unwrap_or_default() == 0 {
            probe.insert(field.to_owned(), value.into());
        }
    }
    if let Some(http) = nested(probe, &["httpGet"]) {
        default_http(http);
    }
    if let Some(grpc) = nested(probe, &["grpc"]) {
        set_absent(grpc, "service", "".into());
    }
}

fn default_http(http: &mut Map<String, Value>) {
    set_default(http, "path", "/");
    set_default(http, "scheme", "HTTP");
}

fn requests_follow_limits(container: &mut Map<String, Value>) {
    let Some(resources) = nested(container, &["resources"]) else {
        return;
    };
    let limits = resources.map("limits").clone();
    if limits.is_empty() {
        return;
    }
    if let Some(requests) = map_mut(resources, "requests") {
        for (name, amount) in limits {
            requests.entry(name).or_insert(amount);
        }
    }
}

/// On the host's network a port of the container is one of the host.
fn host_ports_follow(container: &mut Map<String, Value>) {
    for port in objects(container, "ports") {
        let number = port.int("containerPort").unwrap_or_default();
        if port.int("hostPort").unwrap_or_default() == 0 && number != 0 {
            port.insert("hostPort".to_owned(), number.into());
        }
    }
}

/// `Always` for `:latest` and for no tag at all, unless a digest says exactly which image.
fn pull_policy(image: &str) -> &'static str {
    let (name, digest) = image
        .split_once('@')
        .map_or((image, None), |(name, digest)| (name, Some(digest)));
    // A colon before the last slash belongs to the port of a registry.
    let last = name.rsplit('/').next().unwrap_or(name);
    match (last.split_once(':'), digest) {
        (Some((_, "latest")), _) | (None, None) => "Always",
        _ => "IfNotPresent",
    }
}

fn objects<'a>(
    object: &'a mut Map<String, Value>,
    key: &str,
) -> impl Iterator<Item = &'a mut Map<String, Value>> + use<'a> {
    list_mut(object, key).iter_mut().filter_map(Value::as_object_mut)
}

fn nested<'a>(object: &'a mut Map<String, Value>, path: &[&str]) -> Option<&'a mut Map<String, Value>> {
    path.iter()
        .try_fold(object, |at, key| at.get_mut(*key)?.as_object_mut())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::map;

    #[test]
    fn who_says_how_long_it_outlives_a_silent_node_is_believed() {
        for (said, added) in [
            (json!([]), 2),
            (json!([{"operator": "Exists"}]), 0),
            (json!([{"operator": "Exists", "effect": "NoSchedule"}]), 2),
            (
                json!([{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"}]),
                1,
            ),
            (
                json!([{"key": "node.kubernetes.io/unreachable", "operator": "Exists"}]),
                1,
            ),
            (json!([{"key": "x", "operator": "Exists"}]), 2),
        ] {
            let before = said.as_array().map_or(0, Vec::len);
            let mut spec = map(json!({"tolerations": said}));
            outlive_a_silent_node(&mut spec);
            outlive_a_silent_node(&mut spec);
            assert_eq!(spec.list("tolerations").len() - before, added, "{said}");
        }
    }

    #[test]
    fn a_bare_pod_gets_its_defaults() {
        let mut pod = map(json!({"spec": {
            "containers": [{"name": "c", "image": "nginx", "ports": [{"containerPort": 80}],
                "resources": {"limits": {"cpu": "1"}},
                "env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}],
                "livenessProbe": {"httpGet": {"port": 80}}}],
            "volumes": [{"name": "e"}, {"name": "c", "configMap": {"name": "x"}},
                {"name": "h", "hostPath": {"path": "/x"}},
                {"name": "p", "projected": {"sources": [{"downwardAPI": {"items": [{"path": "n", "fieldRef": {"fieldPath": "metadata.name"}}]}}]}}]}}));
        fill_in(&mut pod);
        assert_eq!(
            Value::Object(pod),
            json!({"spec": {
                "containers": [{"name": "c", "image": "nginx", "imagePullPolicy": "Always",
                    "terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File",
                    "ports": [{"containerPort": 80, "protocol": "TCP"}],
                    "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1"}},
                    "env": [{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}],
                    "livenessProbe": {"httpGet": {"port": 80, "path": "/", "scheme": "HTTP"}, "timeoutSeconds": 1,
                        "periodSeconds": 10, "successThreshold": 1, "failureThreshold": 3}}],
                "volumes": [{"name": "e", "emptyDir": {}}, {"name": "c", "configMap": {"name": "x", "defaultMode": 420}},
                    {"name": "h", "hostPath": {"path": "/x", "type": ""}},
                    {"name": "p", "projected": {"defaultMode": 420, "sources": [{"downwardAPI": {"items": [{"path": "n",
                        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}]}}]}}],
                "dnsPolicy": "ClusterFirst", "restartPolicy": "Always", "securityContext": {},
                "schedulerName": "default-scheduler", "tolerations": [
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
                {"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300},
            ], "terminationGracePeriodSeconds": 30, "enableServiceLinks": true}})
        );
    }

    #[test]
    fn latest_is_always_pulled() {
        for (image, policy) in [
            ("nginx", "Always"),
            ("nginx:latest", "Always"),
            ("nginx:1.27", "IfNotPresent"),
            ("registry:5000/nginx", "Always"),
            ("registry:5000/nginx:1", "IfNotPresent"),
            ("nginx@sha256:00", "IfNotPresent"),
            ("nginx:latest@sha256:00", "Always"),
        ] {
            assert_eq!(pull_policy(image), policy, "{image}");
        }
    }
}
