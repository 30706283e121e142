//! Requests that no well-behaved client sends, and what every client relies on below the surface.

use crate::{
    harness::{Http, Server},
    has,
};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// Bytes of a request body.
const BODY_BYTES_MAX: usize = 3 * 1024 * 1024;

fn config_map(name: &str) -> String {
    format!(r#"{{"kind":"ConfigMap","apiVersion":"v1","metadata":{{"name":"{name}"}}}}"#)
}

#[test]
fn bodies_end_at_three_mebibytes() {
    let server = Server::start();
    let http = Http::admin(&server);
    let padded = |bytes: usize| {
        format!(
            "{}{}",
            config_map("padded"),
            " ".repeat(bytes - config_map("padded").len())
        )
    };
    assert_eq!(http.post(MAPS, padded(BODY_BYTES_MAX)).code, 201);
    let refused = http.post(MAPS, padded(BODY_BYTES_MAX + 1));
    assert_eq!(
        refused.status(),
        "413 RequestEntityTooLarge: Request entity too large: limit is 3145728"
    );
}

#[test]
fn deep_and_huge_documents_are_refused_quickly() {
    let server = Server::start();
    let http = Http::admin(&server);
    let deep = 200_000;
    let aliases: String = (1..30)
        .map(|n| format!("a{n}: &a{n} [*a{0}, *a{0}, *a{0}, *a{0}]\n", n - 1))
        .collect();
    for (what, media_type, body) in [
        (
            "JSON arrays",
            "application/json",
            format!("{}{}", "[".repeat(deep), "]".repeat(deep)),
        ),
        ("JSON objects", "application/json", r#"{"a":"#.repeat(deep)),
        ("YAML flow", "application/yaml", "[".repeat(deep)),
        ("YAML block", "application/yaml", "- ".repeat(deep)),
        (
            "YAML aliases",
            "application/yaml",
            format!("a0: &a0 [x]\n{aliases}"),
        ),
        ("not JSON", "application/json", "{".to_owned()),
        ("nothing", "application/json", String::new()),
        (
            "not protobuf",
            "application/vnd.kubernetes.protobuf",
            "k8s\0\u{1}\u{1}\u{1}".to_owned(),
        ),
        (
            "no envelope",
            "application/vnd.kubernetes.protobuf",
            "hello".to_owned(),
        ),
    ] {
        let refused = http.send("POST", MAPS, &[("content-type", media_type)], body);
        assert_eq!(
            (refused.code, refused.json()["reason"].as_str()),
            (400, Some("BadRequest")),
            "{what}: {}",
            refused.text()
        );
    }
    let patch = format!(r#"{{"data":{}1{}}}"#, r#"{"a":"#.repeat(deep), "}".repeat(deep));
    http.post(MAPS, config_map("one"));
    for media_type in ["merge-patch", "strategic-merge-patch", "json-patch"] {
        let media_type = format!("application/{media_type}+json");
        let refused = http.send(
            "PATCH",
            &format!("{MAPS}/one"),
            &[("content-type", &media_type)],
            patch.clone(),
        );
        assert!(
            [400, 422].contains(&refused.code),
            "{media_type}: {}",
            refused.text()
        );
    }
    assert_eq!(http.get("/readyz").text(), "ok");
}

#[test]
fn only_the_administrator_gets_in_and_anybody_sees_health() {
    let server = Server::start();
    let (admin, anonymous) = (Http::admin(&server), Http::anonymous(&server));
    for path in ["/healthz", "/livez", "/readyz", "/version"] {
        assert_eq!(anonymous.get(path).code, 200, "{path}");
    }
    for (path, message) in [
        (
            MAPS,
            r#"403 Forbidden: configmaps is forbidden: User "system:anonymous" cannot list resource "configmaps" in API group "" in the namespace "default""#,
        ),
        (
            "/api/v1/namespaces/default/secrets/s",
            r#"403 Forbidden: secrets "s" is forbidden: User "system:anonymous" cannot get resource "secrets" in API group "" in the namespace "default""#,
        ),
        (
            "/api/v1/nodes",
            r#"403 Forbidden: nodes is forbidden: User "system:anonymous" cannot list resource "nodes" in API group "" at the cluster scope"#,
        ),
        (
            "/metrics",
            r#"403 Forbidden: forbidden: User "system:anonymous" cannot get path "/metrics""#,
        ),
        (
            "/api",
            r#"403 Forbidden: forbidden: User "system:anonymous" cannot get path "/api""#,
        ),
        (
            "/nope",
            r#"403 Forbidden: forbidden: User "system:anonymous" cannot get path "/nope""#,
        ),
    ] {
        assert_eq!(anonymous.get(path).status(), message);
    }
    for client in [&admin, &anonymous] {
        let refused = client.send("GET", MAPS, &[("authorization", "Bearer nonsense")], "");
        // A certificate is looked at before a token, as upstream does.
        if std::ptr::eq(client, &anonymous) {
            assert_eq!(refused.status(), "401 Unauthorized: Unauthorized");
        } else {
            assert_eq!(refused.code, 200);
        }
    }
    let files = ["ca.key", "serving.key", "admin.key"].map(|name| server.data_dir().join("pki").join(name));
    for file in files
        .into_iter()
        .chain([server.kubeconfig(), server.data_dir().join("store.redb")])
    {
        assert!(crate::harness::is_private(&file), "{}", file.display());
    }
}

#[test]
fn answers_carry_what_clients_rely_on() {
    let server = Server::start();
    let http = Http::admin(&server);
    let created = http.post(MAPS, config_map("one"));
    assert_eq!(created.code, 201, "{}", created.text());
    assert_eq!(created.header("content-type"), "application/json");
    assert_eq!(created.header("cache-control"), "no-cache, private");
    assert!(!created.header("audit-id").is_empty());
    let deleted = http.send("DELETE", &format!("{MAPS}/one"), &[], "");
    assert_eq!(
        deleted.json()["details"]["uid"],
        created.json()["metadata"]["uid"]
    );
    assert_eq!(http.get("/nope").text(), "404 page not found\n");
    assert_eq!(http.get(&format!("{MAPS}?limit=x")).code, 400);
    assert_eq!(http.get(&format!("{MAPS}?continue=nonsense")).code, 400);
    assert_eq!(http.get(&format!("{MAPS}?resourceVersionMatch=Exact")).code, 422);
    assert_eq!(
        http.send(
            "PATCH",
            &format!("{MAPS}/x"),
            &[("content-type", "text/plain")],
            "{}"
        )
        .code,
        415
    );
    let refused = http.send("GET", MAPS, &[("accept", "text/html")], "");
    has(
        &refused.status(),
        &["406 NotAcceptable: only the following media types are accepted: application/json"],
    );
    let far = http.get(&format!("{MAPS}?resourceVersion=999999999"));
    has(
        &far.status(),
        &["504 Timeout: Timeout: Too large resource version: 999999999, current: "],
    );
    let yaml = http.send("GET", MAPS, &[("accept", "application/yaml")], "");
    has(&yaml.text(), &["kind: ConfigMapList", "name: kube-root-ca.crt"]);
    let binary = http.send(
        "GET",
        "/api/v1/namespaces/default",
        &[("accept", "application/vnd.kubernetes.protobuf")],
        "",
    );
    assert!(binary.body.starts_with(b"k8s\0"), "{}", binary.text());
    let aggregated = [(
        "accept",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
    )];
    let discovery = http.send("GET", "/apis", &aggregated, "");
    assert_eq!(
        discovery.header("content-type"),
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
    );
    let unchanged = [aggregated[0], ("if-none-match", discovery.header("etag"))];
    assert_eq!(http.send("GET", "/apis", &unchanged, "").code, 304);
}

#[test]
fn a_watch_list_ends_its_start_with_a_bookmark() {
    let server = Server::start();
    let http = Http::admin(&server);
    http.post(MAPS, config_map("one"));
    let query = "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=1&fieldSelector=metadata.name%21%3Dkube-root-ca.crt";
    let answer = http.get(&format!("{MAPS}?{query}")).text();
    let mut lines = answer.lines();
    has(
        lines.next().unwrap_or_default(),
        &[r#"{"type":"ADDED","object":{"kind":"ConfigMap""#],
    );
    has(
        lines.next().unwrap_or_default(),
        &[r#""type":"BOOKMARK""#, r#""k8s.io/initial-events-end":"true""#],
    );
    let refused = http.get(&format!("{MAPS}?watch=true&sendInitialEvents=true"));
    has(
        &refused.status(),
        &[
            "422 Invalid",
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ],
    );
}
