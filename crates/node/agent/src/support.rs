//! Which fields of a pod this node honours, which it notes and leaves aside, and which it refuses.
//!
//! A field that is in no list here is refused by its name: nothing a manifest says is passed over in silence.

use serde_json::{Map, Value};

/// What the node says about a pod before it runs it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Fields that make the pod impossible here, each with a reason. Not empty: the pod fails.
    pub(crate) refused: Vec<String>,
    /// Fields that are set and have no effect here, each a sentence for an event.
    pub(crate) noted: Vec<String>,
}

/// How one field is treated. `Default(value)`: that value means nothing is asked for.
enum Treatment {
    Works,
    /// Kept in the API and without effect on this node.
    Noted(&'static str),
    Refused(&'static str),
    /// Fine while it has this value (`false`, an upstream default); otherwise as stated.
    RefusedUnless(&'static [&'static str], &'static str),
    NotedUnless(&'static [&'static str], &'static str),
}

use Treatment::{Noted, NotedUnless, Refused, RefusedUnless, Works};

const POD: &[(&str, Treatment)] = &[
    (
        "activeDeadlineSeconds",
        Refused("a deadline for the whole pod is not enforced yet"),
    ),
    (
        "affinity",
        Noted("is not evaluated: the pod is on this node already"),
    ),
    ("automountServiceAccountToken", Works),
    ("containers", Works),
    ("dnsConfig", Noted("the host's /etc/resolv.conf is used")),
    (
        "dnsPolicy",
        NotedUnless(
            &["ClusterFirst", "Default"],
            "the host's /etc/resolv.conf is used",
        ),
    ),
    ("enableServiceLinks", Works),
    (
        "ephemeralContainers",
        Refused("ephemeral containers are not supported yet"),
    ),
    ("hostAliases", Refused("host aliases are not supported yet")),
    (
        "hostIPC",
        RefusedUnless(&["false"], "pods do not share the host's namespaces"),
    ),
    (
        "hostNetwork",
        RefusedUnless(&["false"], "the host's network is not given to pods yet"),
    ),
    (
        "hostPID",
        RefusedUnless(&["false"], "pods do not share the host's namespaces"),
    ),
    (
        "hostUsers",
        NotedUnless(&["false"], "every pod has a user namespace of its own"),
    ),
    ("hostname", Works),
    (
        "imagePullSecrets",
        Noted("no image is pulled: an image names a program of the host"),
    ),
    ("initContainers", Works),
    ("nodeName", Works),
    ("nodeSelector", Works),
    ("os", Works),
    ("preemptionPolicy", Works),
    ("priority", Works),
    ("priorityClassName", Noted("pods are not ordered by priority")),
    ("readinessGates", Works),
    ("restartPolicy", Works),
    ("runtimeClassName", Refused("there is one way to run pods here")),
    ("schedulerName", Works),
    ("securityContext", Works),
    ("serviceAccount", Works),
    ("serviceAccountName", Works),
    (
        "setHostnameAsFQDN",
        RefusedUnless(&["false"], "there is no cluster domain"),
    ),
    ("shareProcessNamespace", Works),
    ("subdomain", Noted("there is no cluster domain")),
    ("terminationGracePeriodSeconds", Works),
    ("tolerations", Works),
    (
        "topologySpreadConstraints",
        Noted("is not evaluated: the pod is on this node already"),
    ),
    ("volumes", Works),
];

const POD_SECURITY: &[(&str, Treatment)] = &[
    ("appArmorProfile", Refused("profiles are not applied yet")),
    ("fsGroup", Works),
    ("fsGroupChangePolicy", Works),
    ("runAsGroup", Works),
    ("runAsNonRoot", Works),
    ("runAsUser", Works),
    ("seLinuxOptions", Refused("labels are not applied")),
    ("seccompProfile", Noted("seccomp profiles are not applied yet")),
    (
        "supplementalGroups",
        Refused("supplemental groups are not set yet"),
    ),
    (
        "supplementalGroupsPolicy",
        Noted("supplemental groups are not set yet"),
    ),
    ("sysctls", Refused("kernel parameters are not set")),
];

const CONTAINER: &[(&str, Treatment)] = &[
    ("args", Works),
    ("command", Works),
    ("env", Works),
    ("envFrom", Works),
    ("image", Works),
    ("imagePullPolicy", Works),
    ("lifecycle", Works),
    ("livenessProbe", Works),
    ("name", Works),
    ("ports", Works),
    ("readinessProbe", Works),
    ("resources", Noted("requests and limits are not enforced yet")),
    // Judged by itself: it depends on whose it is.
    ("restartPolicy", Works),
    ("securityContext", Works),
    ("startupProbe", Works),
    (
        "stdin",
        RefusedUnless(&["false"], "a container's stdin is not kept open yet"),
    ),
    (
        "stdinOnce",
        RefusedUnless(&["false"], "a container's stdin is not kept open yet"),
    ),
    (
        "terminationMessagePath",
        NotedUnless(&["/dev/termination-log"], "termination messages are not read yet"),
    ),
    (
        "terminationMessagePolicy",
        NotedUnless(&["File"], "termination messages are not read yet"),
    ),
    ("tty", Works),
    ("volumeDevices", Refused("block devices are not given to pods")),
    ("volumeMounts", Works),
    ("workingDir", Works),
];

const CONTAINER_SECURITY: &[(&str, Treatment)] = &[
    ("allowPrivilegeEscalation", Works),
    ("appArmorProfile", Refused("profiles are not applied yet")),
    ("capabilities", Works),
    ("privileged", Works),
    ("procMount", NotedUnless(&["Default"], "/proc is always masked")),
    (
        "readOnlyRootFilesystem",
        RefusedUnless(&["false"], "the root file system is always writable yet"),
    ),
    ("runAsGroup", Works),
    ("runAsNonRoot", Works),
    ("runAsUser", Works),
    ("seLinuxOptions", Refused("labels are not applied")),
    ("seccompProfile", Noted("seccomp profiles are not applied yet")),
];

const OWN_RESTART_POLICY: &str = "only Always is supported, which makes a sidecar of an init container";

const PROBE: &[(&str, Treatment)] = &[
    ("exec", Works),
    ("failureThreshold", Works),
    ("grpc", Refused("gRPC probes are not run yet")),
    ("httpGet", Works),
    ("initialDelaySeconds", Works),
    ("periodSeconds", Works),
    ("successThreshold", Works),
    ("tcpSocket", Works),
    ("terminationGracePeriodSeconds", Works),
    ("timeoutSeconds", Works),
];

const LIFECYCLE: &[(&str, Treatment)] = &[("postStart", Works), ("preStop", Works), ("stopSignal", Works)];

const HOOK: &[(&str, Treatment)] = &[
    ("exec", Works),
    ("httpGet", Works),
    ("sleep", Works),
    (
        "tcpSocket",
        Refused("it never did anything, and upstream's hook fails too"),
    ),
];

const VOLUME: &[(&str, Treatment)] = &[
    ("configMap", Works),
    ("downwardAPI", Works),
    ("emptyDir", Works),
    ("hostPath", Works),
    ("name", Works),
    ("projected", Works),
    ("secret", Works),
];

const EMPTY_DIR: &[(&str, Treatment)] = &[
    ("medium", Works),
    ("sizeLimit", Refused("the size of an emptyDir is not limited yet")),
];

const HOST_PATH: &[(&str, Treatment)] = &[
    ("path", Works),
    (
        "type",
        RefusedUnless(
            &["", "Directory", "DirectoryOrCreate"],
            "only directories are mounted yet",
        ),
    ),
];

const PROJECTED_SOURCE: &[(&str, Treatment)] = &[
    ("configMap", Works),
    ("downwardAPI", Works),
    ("secret", Works),
    ("serviceAccountToken", Works),
];

const VOLUME_MOUNT: &[(&str, Treatment)] = &[
    ("mountPath", Works),
    (
        "mountPropagation",
        NotedUnless(&["None"], "mounts do not propagate"),
    ),
    ("name", Works),
    ("readOnly", Works),
    (
        "recursiveReadOnly",
        Noted("a read-only mount covers its submounts always"),
    ),
    ("subPath", Works),
    ("subPathExpr", Refused("subPathExpr is not supported yet")),
];

const HTTP_GET: &[(&str, Treatment)] = &[
    ("host", Works),
    ("httpHeaders", Works),
    ("path", Works),
    ("port", Works),
    ("scheme", RefusedUnless(&["HTTP"], "HTTPS is not asked yet")),
];

/// Judges a pod's spec as the API holds it.
pub(crate) fn judge(spec: &Value) -> Verdict {
    let mut verdict = Verdict::default();
    verdict.object("spec", spec, POD, "this kind of pod is not supported");
    verdict.object(
        "spec.securityContext",
        &spec["securityContext"],
        POD_SECURITY,
        "it is not supported",
    );
    for (list, served) in [("initContainers", Some("Always")), ("containers", None)] {
        for (path, container) in items("spec", spec, list) {
            verdict.container(&path, container);
            verdict.own_restart_policy(&path, container, served);
        }
    }
    for (path, volume) in items("spec", spec, "volumes") {
        verdict.object(&path, volume, VOLUME, "this kind of volume is not supported");
        verdict.object(
            &format!("{path}.emptyDir"),
            &volume["emptyDir"],
            EMPTY_DIR,
            "it is not supported",
        );
        verdict.object(
            &format!("{path}.hostPath"),
            &volume["hostPath"],
            HOST_PATH,
            "it is not supported",
        );
        for (path, source) in items(&format!("{path}.projected"), &volume["projected"], "sources") {
            verdict.object(
                &path,
                source,
                PROJECTED_SOURCE,
                "this kind of source is not supported",
            );
        }
    }
    verdict
}

fn items<'a>(path: &str, owner: &'a Value, list: &str) -> Vec<(String, &'a Value)> {
    let held = owner[list].as_array().into_iter().flatten().enumerate();
    held.map(|(index, item)| (format!("{path}.{list}[{index}]"), item))
        .collect()
}

impl Verdict {
    fn container(&mut self, path: &str, container: &Value) {
        self.object(path, container, CONTAINER, "it is not supported");
        self.object(
            &format!("{path}.securityContext"),
            &container["securityContext"],
            CONTAINER_SECURITY,
            "it is not supported",
        );
        for probe in ["livenessProbe", "readinessProbe", "startupProbe"] {
            self.object(
                &format!("{path}.{probe}"),
                &container[probe],
                PROBE,
                "it is not supported",
            );
            let http_get = &container[probe]["httpGet"];
            self.object(
                &format!("{path}.{probe}.httpGet"),
                http_get,
                HTTP_GET,
                "it is not supported",
            );
        }
        let (lifecycle, path_of_hooks) = (&container["lifecycle"], format!("{path}.lifecycle"));
        self.object(&path_of_hooks, lifecycle, LIFECYCLE, "it is not supported");
        for hook in ["postStart", "preStop"] {
            let (path, hook) = (format!("{path_of_hooks}.{hook}"), &lifecycle[hook]);
            self.object(&path, hook, HOOK, "it is not supported");
            let path = format!("{path}.httpGet");
            self.object(&path, &hook["httpGet"], HTTP_GET, "it is not supported");
        }
        for (path, mount) in items(path, container, "volumeMounts") {
            self.object(&path, mount, VOLUME_MOUNT, "it is not supported");
        }
    }

    /// `served`: the policy that is understood here, which is that of a sidecar.
    fn own_restart_policy(&mut self, path: &str, container: &Value, served: Option<&str>) {
        let policy = container["restartPolicy"].as_str();
        if policy.is_some() && policy != served {
            self.refused
                .push(format!("{path}.restartPolicy: {OWN_RESTART_POLICY}"));
        }
    }

    fn object(&mut self, path: &str, object: &Value, table: &[(&str, Treatment)], unknown: &str) {
        let empty = Map::new();
        for (field, value) in object.as_object().unwrap_or(&empty) {
            if is_nothing(value) {
                continue;
            }
            let entry = table.iter().find(|(name, _)| name == field);
            match entry.map(|(_, treatment)| treatment) {
                None => self.refused.push(format!("{path}.{field}: {unknown}")),
                Some(Works) => {}
                Some(Noted(why)) => self.noted.push(format!("{path}.{field}: {why}")),
                Some(Refused(why)) => self.refused.push(format!("{path}.{field}: {why}")),
                Some(RefusedUnless(fine, _) | NotedUnless(fine, _))
                    if fine.contains(&shown(value).as_str()) => {}
                Some(RefusedUnless(_, why)) => self.refused.push(format!("{path}.{field}: {why}")),
                Some(NotedUnless(_, why)) => self.noted.push(format!("{path}.{field}: {why}")),
            }
        }
    }
}

/// `{}`, `[]` and `null` ask for nothing.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(map) => map.is_empty(),
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_field_has_an_answer() {
        let fine = json!({"containers": [{"name": "a", "image": "nginx", "stdin": false, "resources": {}, "volumeMounts":
            [{"name": "v", "mountPath": "/x", "subPath": "y"}]}], "volumes": [{"name": "v", "configMap": {"name": "c"}}],
            "initContainers": [{"name": "s", "image": "nginx", "restartPolicy": "Always"}],
            "hostNetwork": false, "dnsPolicy": "ClusterFirst", "securityContext": {}, "hostUsers": false});
        assert_eq!(judge(&fine), Verdict::default());
        for (spec, refused) in [
            (
                json!({"hostNetwork": true}),
                "spec.hostNetwork: the host's network is not given to pods yet",
            ),
            (
                json!({"brandNew": 1}),
                "spec.brandNew: this kind of pod is not supported",
            ),
            (
                json!({"containers": [{"lifecycle": {"preStop": {"httpGet": {"port": 1, "scheme": "HTTPS"}}}}]}),
                "spec.containers[0].lifecycle.preStop.httpGet.scheme: HTTPS is not asked yet",
            ),
            (
                json!({"initContainers": [{"restartPolicy": "Never"}]}),
                "spec.initContainers[0].restartPolicy: only Always is supported, which makes a sidecar of an init container",
            ),
            (
                json!({"containers": [{"restartPolicy": "Always"}]}),
                "spec.containers[0].restartPolicy: only Always is supported, which makes a sidecar of an init container",
            ),
            (
                json!({"initContainers": [{"restartPolicy": "Always", "restartPolicyRules": [{"action": "Restart"}]}]}),
                "spec.initContainers[0].restartPolicyRules: it is not supported",
            ),
            (
                json!({"volumes": [{"name": "v", "nfs": {"server": "x"}}]}),
                "spec.volumes[0].nfs: this kind of volume is not supported",
            ),
            (
                json!({"volumes": [{"projected": {"sources": [{"podCertificate": {"signerName": "x/y"}}]}}]}),
                "spec.volumes[0].projected.sources[0].podCertificate: this kind of source is not supported",
            ),
            (
                json!({"containers": [{"readinessProbe": {"grpc": {"port": 1}}}]}),
                "spec.containers[0].readinessProbe.grpc: gRPC probes are not run yet",
            ),
        ] {
            assert_eq!(judge(&spec).refused, [refused]);
        }
        let noted = judge(&json!({"containers": [{"resources": {"limits": {"cpu": "1"}}}]})).noted;
        assert_eq!(
            noted,
            ["spec.containers[0].resources: requests and limits are not enforced yet"]
        );
    }
}
