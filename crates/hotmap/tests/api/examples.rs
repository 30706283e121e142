//! Manifests under `examples/` ask for no more than the restricted profile of the Pod Security Standards lets a pod have.
//!
//! The rules follow `staging/src/k8s.io/pod-security-admission/policy`, Kubernetes 1.36, read for Linux pods.

use std::{fs, path::Path};

use serde_json::{Value, json};

/// Kinds of volumes that the profile knows; a hostPath is none.
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
const PROFILES: [&str; 2] = ["RuntimeDefault", "Localhost"];
const SELINUX_TYPES: [&str; 5] = [
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
];
const SYSCTLS: [&str; 10] = [
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_syncookies",
];

/// Every way in which a pod's spec is outside the profile.
fn violations(spec: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut say = |place: &str, wrong: bool| {
        if wrong {
            found.push(place.to_owned());
        }
    };
    let pod = &spec["securityContext"];
    for field in ["hostNetwork", "hostPID", "hostIPC"] {
        say(field, spec[field] == true);
    }
    for volume in items(spec, "volumes") {
        let kinds = volume.as_object().into_iter().flat_map(serde_json::Map::keys);
        let kinds = kinds.filter(|kind| *kind != "name");
        say(
            "volumes",
            kinds.clone().any(|kind| !VOLUMES.contains(&kind.as_str())),
        );
    }
    for sysctl in items(pod, "sysctls") {
        say("sysctls", !SYSCTLS.contains(&text(&sysctl["name"])));
    }
    say("runAsUser", pod["runAsUser"] == 0);
    say(
        "appArmorProfile",
        text(&pod["appArmorProfile"]["type"]) == "Unconfined",
    );
    say("seLinuxOptions", is_foreign_label(&pod["seLinuxOptions"]));
    let of_pod = text(&pod["seccompProfile"]["type"]);
    say(
        "seccompProfile",
        !of_pod.is_empty() && !PROFILES.contains(&of_pod),
    );
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in items(spec, list) {
            let context = &container["securityContext"];
            let capabilities = &context["capabilities"];
            let words = |of: &str| -> Vec<String> {
                let list = items(capabilities, of);
                list.iter().map(|word| text(word).to_owned()).collect()
            };
            let mut wrong = |field: &str, is_wrong: bool| {
                say(&format!("{list} {}: {field}", text(&container["name"])), is_wrong);
            };
            wrong("privileged", context["privileged"] == true);
            wrong(
                "allowPrivilegeEscalation",
                context["allowPrivilegeEscalation"] != false,
            );
            wrong("capabilities.drop", !words("drop").contains(&"ALL".to_owned()));
            wrong(
                "capabilities.add",
                words("add").iter().any(|one| one != "NET_BIND_SERVICE"),
            );
            let non_root = context.get("runAsNonRoot").unwrap_or(&pod["runAsNonRoot"]);
            wrong("runAsNonRoot", *non_root != true);
            wrong("runAsUser", context["runAsUser"] == 0);
            let seccomp = text(&context["seccompProfile"]["type"]);
            let seccomp = if seccomp.is_empty() { of_pod } else { seccomp };
            wrong("seccompProfile", !PROFILES.contains(&seccomp));
            wrong(
                "appArmorProfile",
                text(&context["appArmorProfile"]["type"]) == "Unconfined",
            );
            wrong("seLinuxOptions", is_foreign_label(&context["seLinuxOptions"]));
            wrong(
                "procMount",
                !["", "Default"].contains(&text(&context["procMount"])),
            );
            let has_host_port = |port: &Value| port["hostPort"].as_u64().is_some_and(|port| port != 0);
            wrong("hostPort", items(container, "ports").iter().any(has_host_port));
            let probes = ["livenessProbe", "readinessProbe", "startupProbe"].map(|probe| &container[probe]);
            let hooks = ["postStart", "preStop"].map(|hook| &container["lifecycle"][hook]);
            let names_host = |handler: &&Value| {
                let hosts = ["httpGet", "tcpSocket"].map(|kind| text(&handler[kind]["host"]));
                hosts.iter().any(|host| !host.is_empty())
            };
            wrong("host", probes.iter().chain(&hooks).any(names_host));
        }
    }
    found
}

fn is_foreign_label(options: &Value) -> bool {
    let is_set = |field: &str| !text(&options[field]).is_empty();
    is_set("user") || is_set("role") || !SELINUX_TYPES.contains(&text(&options["type"]))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn items<'a>(owner: &'a Value, list: &str) -> &'a [Value] {
    owner[list].as_array().map_or(&[], Vec::as_slice)
}

/// The specs of pods in an object: its own, its template's, or those of a list.
fn specs(object: &Value) -> Vec<&Value> {
    match text(&object["kind"]) {
        "Pod" => vec![&object["spec"]],
        "CronJob" => vec![&object["spec"]["jobTemplate"]["spec"]["template"]["spec"]],
        "List" => items(object, "items").iter().flat_map(specs).collect(),
        _ => object["spec"]["template"].get("spec").into_iter().collect(),
    }
}

fn manifests(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).expect("readable") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(manifests(&path));
        } else if path.extension().is_some_and(|end| end == "yaml" || end == "yml") {
            found.push(path);
        }
    }
    found.sort();
    found
}

#[test]
fn every_pod_of_an_example_is_within_the_restricted_profile() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let (mut wrong, mut pods) = (Vec::new(), 0);
    for path in manifests(&examples) {
        let manifest = fs::read_to_string(&path).expect("readable");
        let objects: Vec<Value> = serde_saphyr::from_multiple(&manifest).unwrap_or_else(|error| {
            panic!("{}: {error}", path.display());
        });
        for spec in objects.iter().flat_map(specs) {
            pods += 1;
            let found = violations(spec);
            wrong.extend(found.iter().map(|one| format!("{}: {one}", path.display())));
        }
    }
    assert!(pods >= 6, "{pods} pods found");
    assert_eq!(wrong, [""; 0]);
}

#[test]
fn what_is_outside_the_profile_is_found() {
    let within = || {
        json!({"securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [{"name": "v", "configMap": {"name": "c"}}],
            "containers": [{"name": "c", "securityContext": {"allowPrivilegeEscalation": false,
                "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}}]})
    };
    assert_eq!(violations(&within()), [""; 0]);
    for (pointer, value, expected) in [
        ("/hostNetwork", json!(true), "hostNetwork"),
        ("/hostPID", json!(true), "hostPID"),
        ("/volumes/0/hostPath", json!({"path": "/"}), "volumes"),
        ("/securityContext/runAsUser", json!(0), "runAsUser"),
        (
            "/securityContext/runAsNonRoot",
            json!(false),
            "containers c: runAsNonRoot",
        ),
        (
            "/securityContext/seccompProfile",
            json!({}),
            "containers c: seccompProfile",
        ),
        (
            "/securityContext/sysctls",
            json!([{"name": "kernel.msgmax"}]),
            "sysctls",
        ),
        (
            "/securityContext/seLinuxOptions",
            json!({"type": "spc_t"}),
            "seLinuxOptions",
        ),
        (
            "/containers/0/securityContext/allowPrivilegeEscalation",
            json!(true),
            "containers c: allowPrivilegeEscalation",
        ),
        (
            "/containers/0/securityContext/capabilities/drop",
            json!(["NET_RAW"]),
            "containers c: capabilities.drop",
        ),
        (
            "/containers/0/securityContext/capabilities/add",
            json!(["CHOWN"]),
            "containers c: capabilities.add",
        ),
        (
            "/containers/0/securityContext/runAsUser",
            json!(0),
            "containers c: runAsUser",
        ),
        (
            "/containers/0/securityContext/privileged",
            json!(true),
            "containers c: privileged",
        ),
        (
            "/containers/0/securityContext/seccompProfile",
            json!({"type": "Unconfined"}),
            "containers c: seccompProfile",
        ),
        (
            "/containers/0/securityContext/procMount",
            json!("Unmasked"),
            "containers c: procMount",
        ),
        (
            "/containers/0/ports",
            json!([{"hostPort": 80}]),
            "containers c: hostPort",
        ),
        (
            "/containers/0/readinessProbe",
            json!({"tcpSocket": {"host": "a", "port": 1}}),
            "containers c: host",
        ),
    ] {
        let mut spec = within();
        let (parent, field) = pointer.rsplit_once('/').expect("a path");
        let owner = spec.pointer_mut(parent).expect("an object");
        owner[field] = value;
        assert_eq!(violations(&spec), [expected], "{pointer}");
    }
}
