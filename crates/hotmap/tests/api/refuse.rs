//! Manifests that are wrong, and the words kubectl users know.

use crate::has;

fn config_map(rest: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n{rest}\n")
}

each_kubectl! {
    fn unknown_and_duplicate_fields_follow_validate(kubectl) {
        let unknown = config_map("dta: {a: b}\nmore: 1");
        for call in ["create", "apply", "create --validate=true"] {
            let refused = kubectl.feed(&format!("{call} -f -"), &unknown).refused();
            has(&refused, &[r#"ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "dta", unknown field "more""#]);
        }
        let warned = kubectl.feed("create --validate=warn -f -", &unknown).ended(0);
        has(&warned, &[r#"Warning: unknown field "dta""#, r#"Warning: unknown field "more""#]);
        assert_eq!(kubectl.field("cm/one", ".dta"), "");
        kubectl.ok("delete cm one");
        let ignored = kubectl.feed("create --validate=ignore -f -", &unknown).ended(0);
        assert_eq!(ignored, "");
        has(&kubectl.feed("replace -f -", &unknown).refused(), &[r#"unknown field "dta""#]);
        kubectl.ok("delete cm one");
        // kubectl itself drops one of two equal keys from YAML; in the order of a raw body the server sees both.
        let twice = kubectl.file("twice.json", r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"two"},"data":{"k":"1","k":"2"}}"#);
        let path = "/api/v1/namespaces/default/configmaps?fieldValidation=Strict";
        let refused = kubectl.call(&["create", "--raw", path, "-f", &twice.display().to_string()]).refused();
        has(&refused, &[r#"strict decoding error: duplicate field "data.k""#]);
    }

    fn kinds_that_are_not_served_are_named(kubectl) {
        let ingress = "{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: web}}";
        for call in ["create", "apply"] {
            has(&kubectl.feed(&format!("{call} -f -"), ingress).refused(), &[
                r#"resource mapping not found for name: "web" namespace: "" from "STDIN": no matches for kind "Ingress" in version "networking.k8s.io/v1""#,
                "ensure CRDs are installed first"]);
        }
        has(&kubectl.feed("apply -f -", "{apiVersion: v2, kind: ConfigMap, metadata: {name: x}}").refused(),
            &[r#"no matches for kind "ConfigMap" in version "v2""#]);
        has(&kubectl.run("create ingress web --rule=a.example/=web:80").refused(), &["the server could not find the requested resource"]);
        has(&kubectl.feed("apply -f -", "{kind: ConfigMap, metadata: {name: x}}").refused(), &["apiVersion not set"]);
    }

    fn broken_objects_get_the_field_and_the_reason(kubectl) {
        let long = "k".repeat(254);
        for (manifest, error) in [
            (config_map("data: {a/b: x}"), r#"The ConfigMap "one" is invalid: data[a/b]: Invalid value: "a/b": a valid config key must consist of alphanumeric characters, '-', '_' or '.'"#),
            (config_map("data: {..x: x}"), r#"data[..x]: Invalid value: "..x": must not start with '..'"#),
            (config_map("data: {..: x}"), r#"data[..]: Invalid value: "..": must not be '..'"#),
            (config_map("data: {'': x}"), r#"data[]: Invalid value: "": a valid config key must consist of"#),
            (config_map(&format!("data: {{{long}: x}}")), "must be no more than 253 characters"),
            (config_map("data: {a: x}\nbinaryData: {a: eA==}"), r#"data[a]: Invalid value: "a": duplicate of key present in binaryData"#),
            (config_map("binaryData: {a: '%%'}"), "illegal base64 data at input byte 0"),
            (config_map("data: {a: 1}"), "cannot unmarshal number into Go struct field ConfigMap.data of type string"),
            (config_map("data: [a]"), "cannot unmarshal array into Go struct field ConfigMap.data of type map[string]string"),
            (config_map("").replace("name: one", "name: One_"), r#"The ConfigMap "One_" is invalid: metadata.name: Invalid value: "One_": a lowercase RFC 1123 subdomain must consist of"#),
            (config_map("").replace("name: one", "name: one\n  labels: {a b: c}"), r#"metadata.labels: Invalid value: "a b": name part must consist of"#),
            (config_map("").replace("  name: one", "  labels: {}"), "resource name may not be empty"),
            ("{apiVersion: v1, kind: Secret, metadata: {name: s}, type: kubernetes.io/tls}".into(), r#"data[tls.crt]: Required value"#),
            ("{apiVersion: v1, kind: Namespace, metadata: {name: a.b}}".into(), r#"The Namespace "a.b" is invalid: metadata.name: Invalid value: "a.b""#),
            ("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: []}}".into(), "spec.containers: Required value"),
            ("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, image: b, volumeMounts: [{name: v, mountPath: /x}]}]}}".into(),
             r#"spec.containers[0].volumeMounts[0].name: Not found: "v""#),
        ] {
            let refused = kubectl.feed("apply -f -", &manifest);
            assert_eq!(refused.code, 1, "{manifest}: {refused:?}");
            has(&refused.stderr, &[error]);
        }
        assert_eq!(kubectl.ok("get cm,secret,pod -o name --field-selector=metadata.name!=kube-root-ca.crt"), "");
    }
}
