//! Strict decoding: what is dropped, what is refused and in which words, what the canonical form looks like.

use hotmap_schema::{Conformed, TypeError, conform, kind};
use serde_json::{Value, json};

fn check(kind_name: &str, value: Value) -> Result<Conformed, TypeError> {
    let (group, version, name) = match kind_name.rsplit_once('/') {
        Some((group, name)) => (group, "v1", name),
        None => ("", "v1", kind_name),
    };
    conform(value, kind(group, version, name).expect(kind_name).message)
}

#[test]
fn type_errors_are_upstream_sentences_with_a_path() {
    let container = |field: &str, value: Value| {
        let mut container = json!({"name": "c"});
        container[field] = value;
        json!({"spec": {"containers": [{"name": "a"}, container]}})
    };
    for (kind, value, message, path) in [
        (
            "ConfigMap",
            json!({"data": {"bootstrap.yml": {"a": 1}}}),
            "json: cannot unmarshal object into Go struct field ConfigMap.data of type string",
            "data[bootstrap.yml]",
        ),
        (
            "ConfigMap",
            json!({"data": {"n": 1}}),
            "json: cannot unmarshal number into Go struct field ConfigMap.data of type string",
            "data[n]",
        ),
        (
            "ConfigMap",
            json!({"data": []}),
            "json: cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string",
            "data",
        ),
        (
            "ConfigMap",
            json!({"binaryData": {"k": "not base64"}}),
            "illegal base64 data at input byte 3",
            "binaryData[k]",
        ),
        (
            "ConfigMap",
            json!({"kind": 1}),
            "json: cannot unmarshal number into Go struct field ConfigMap.kind of type string",
            "kind",
        ),
        (
            "ConfigMap",
            json!([]),
            "json: cannot unmarshal array into Go value of type v1.ConfigMap",
            "",
        ),
        (
            "ConfigMap",
            json!({"metadata": {"labels": {"a": true}}}),
            "json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels of type string",
            "metadata.labels[a]",
        ),
        (
            "Pod",
            container("ports", json!("80")),
            "json: cannot unmarshal string into Go struct field Container.spec.containers.ports of type []v1.ContainerPort",
            "spec.containers[1].ports",
        ),
        (
            "Pod",
            container("ports", json!([{"containerPort": "80"}])),
            "json: cannot unmarshal string into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
            "spec.containers[1].ports[0].containerPort",
        ),
        (
            "Pod",
            container("ports", json!([{"containerPort": 1.5}])),
            "json: cannot unmarshal number 1.5 into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
            "spec.containers[1].ports[0].containerPort",
        ),
        (
            "Pod",
            container("ports", json!([{"containerPort": 2_147_483_648_u64}])),
            "json: cannot unmarshal number 2147483648 into Go struct field ContainerPort.spec.containers.ports.containerPort of type int32",
            "spec.containers[1].ports[0].containerPort",
        ),
        (
            "Pod",
            container("imagePullPolicy", json!(true)),
            "json: cannot unmarshal bool into Go struct field Container.spec.containers.imagePullPolicy of type v1.PullPolicy",
            "spec.containers[1].imagePullPolicy",
        ),
        (
            "Pod",
            json!({"spec": {"volumes": [{"name": "v", "configMap": "x"}]}}),
            "json: cannot unmarshal string into Go struct field Volume.spec.volumes.configMap of type v1.ConfigMapVolumeSource",
            "spec.volumes[0].configMap",
        ),
        (
            "Pod",
            container("resources", json!({"limits": {"cpu": "lots"}})),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            "spec.containers[1].resources.limits[cpu]",
        ),
        (
            "Pod",
            json!({"metadata": {"creationTimestamp": 1}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.creationTimestamp of type string",
            "metadata.creationTimestamp",
        ),
        (
            "Service",
            json!({"spec": {"ports": [{"port": 80, "targetPort": true}]}}),
            "json: cannot unmarshal bool into Go struct field ServicePort.spec.ports.targetPort of type int32",
            "spec.ports[0].targetPort",
        ),
    ] {
        let error = check(kind, value).expect_err(message);
        assert_eq!((error.message.as_str(), error.path.as_str()), (message, path));
    }
}

#[test]
fn unknown_fields_are_dropped_and_told() {
    let pod = json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "foo": 1,
        "metadata": {"name": "p", "Labels": {}},
        "spec": {"containers": [{"name": "c", "imagee": "x"}], "volumes": [{"name": "v", "configmap": {}}]},
    });
    let conformed = check("Pod", pod).expect("types are right");
    assert_eq!(
        conformed.unknown,
        [
            "metadata.Labels",
            "spec.volumes[0].configmap",
            "spec.containers[0].imagee",
            "foo"
        ]
    );
    assert_eq!(
        conformed.value["spec"]["containers"][0],
        json!({"name": "c", "resources": {}})
    );
}

#[test]
fn the_canonical_form_is_what_go_prints() {
    for (kind, given, expected) in [
        ("ConfigMap", json!({}), json!({"metadata": {}})),
        (
            "ConfigMap",
            json!({"apiVersion": "v1", "kind": "", "data": {}, "binaryData": null, "metadata": {"creationTimestamp": null, "name": "", "labels": {}}}),
            json!({"apiVersion": "v1", "metadata": {}}),
        ),
        (
            "ConfigMap",
            json!({"data": {"a": null}}),
            json!({"data": {"a": ""}, "metadata": {}}),
        ),
        (
            "ConfigMap",
            json!({"immutable": false, "binaryData": {"k": "aG\nk="}}),
            json!({"immutable": false, "binaryData": {"k": "aGk="}, "metadata": {}}),
        ),
        (
            "Pod",
            json!({}),
            json!({"metadata": {}, "spec": {"containers": null}, "status": {}}),
        ),
        (
            "PodList",
            json!({"items": []}),
            json!({"metadata": {}, "items": []}),
        ),
        (
            "Pod",
            json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}),
            json!({
                "metadata": {},
                "spec": {"containers": null},
                "status": {"conditions": [
                    {"type": "Ready", "status": "True", "lastProbeTime": null, "lastTransitionTime": null}
                ]},
            }),
        ),
        (
            "Service",
            json!({"spec": {"ports": [{"port": 80}, {"port": 81, "targetPort": "http"}]}}),
            json!({
                "metadata": {},
                "spec": {"ports": [{"port": 80, "targetPort": 0}, {"port": 81, "targetPort": "http"}]},
                "status": {"loadBalancer": {}},
            }),
        ),
        (
            "coordination.k8s.io/Lease",
            json!({"spec": {"renewTime": "2024-01-01T01:00:00.000001+01:00"}}),
            json!({"metadata": {}, "spec": {"renewTime": "2024-01-01T00:00:00.000001Z"}}),
        ),
        (
            "ResourceQuota",
            json!({"spec": {"hard": {"cpu": 0.5, "memory": "1024Mi"}}}),
            json!({"metadata": {}, "spec": {"hard": {"cpu": "500m", "memory": "1Gi"}}, "status": {}}),
        ),
        (
            "apps/ControllerRevision",
            json!({}),
            json!({"metadata": {}, "data": null, "revision": 0}),
        ),
        (
            "apps/ControllerRevision",
            json!({"data": [1, "x"]}),
            json!({"metadata": {}, "data": [1, "x"], "revision": 0}),
        ),
        (
            "authorization.k8s.io/SubjectAccessReview",
            json!({"spec": {"extra": {"k": ["a", null]}}}),
            json!({"metadata": {}, "spec": {"extra": {"k": ["a", ""]}}, "status": {"allowed": false}}),
        ),
    ] {
        let conformed = check(kind, given).expect(kind);
        assert_eq!(conformed.value, expected);
        let again = check(kind, conformed.value.clone()).expect(kind);
        assert_eq!(again.value, conformed.value, "a canonical value stays");
    }
}
