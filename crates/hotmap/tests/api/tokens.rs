//! Tokens of service accounts: asked for with kubectl, shown to the API, and what ends them.

use serde_json::{Value, json};

use crate::{
    harness::{Http, Kubectl, Server},
    has,
};

const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const POD: &str = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
    "spec": {"serviceAccountName": "robot", "containers": [{"name": "a", "image": "busybox"}]}}"#;

/// Who the API takes the bearer of a token for; `Err`: the code.
fn bearer(server: &Server, token: &str) -> Result<Value, u16> {
    let answer = Http::anonymous(server).send(
        "POST",
        "/apis/authentication.k8s.io/v1/selfsubjectreviews",
        &[
            ("content-type", "application/json"),
            ("authorization", &format!("Bearer {token}")),
        ],
        r#"{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}"#,
    );
    match answer.code {
        201 => Ok(answer.json()["status"]["userInfo"].clone()),
        code => Err(code),
    }
}

fn claims(token: &str) -> Value {
    use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
    let part = token.split('.').nth(1).expect("three parts");
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(part).expect("base64");
    serde_json::from_slice(&bytes).expect("JSON")
}

fn token(kubectl: &Kubectl, arguments: &str) -> String {
    kubectl
        .ok(&format!("create token robot {arguments}"))
        .trim()
        .to_owned()
}

each_kubectl! {
    fn a_token_is_asked_for_with_what_it_shall_be_good_for(kubectl) {
        kubectl.ok("create serviceaccount robot");
        let uid = kubectl.field("sa/robot", ".metadata.uid");
        let plain = claims(&token(kubectl, ""));
        assert_eq!(plain["aud"], json!([ISSUER]));
        assert_eq!(plain["sub"], "system:serviceaccount:default:robot");
        assert_eq!(plain["kubernetes.io"], json!({"namespace": "default", "serviceaccount": {"name": "robot", "uid": uid}}));
        let life = |claims: &Value| claims["exp"].as_i64().zip(claims["iat"].as_i64()).map(|(end, begin)| end - begin);
        assert_eq!(life(&plain), Some(3600));
        let special = claims(&token(kubectl, "--duration=10m --audience=vault --audience=hotmap"));
        assert_eq!((life(&special), &special["aud"]), (Some(600), &json!(["vault", "hotmap"])));
        kubectl.feed("create -f -", POD).ok();
        let bound = claims(&token(kubectl, "--bound-object-kind=Pod --bound-object-name=p"));
        assert_eq!(bound["kubernetes.io"]["pod"], json!({"name": "p", "uid": kubectl.field("pod/p", ".metadata.uid")}));
        kubectl.ok("create secret generic s");
        let bound = claims(&token(kubectl, "--bound-object-kind=Secret --bound-object-name=s"));
        assert_eq!(bound["kubernetes.io"]["secret"]["name"], "s");
    }

    fn what_no_token_can_be_made_for_is_refused(kubectl) {
        kubectl.ok("create serviceaccount robot");
        kubectl.ok("create serviceaccount other");
        kubectl.feed("create -f -", POD).ok();
        for (arguments, why) in [
            ("nobody", r#"serviceaccounts "nobody" not found"#),
            ("robot --duration=5m", "spec.expirationSeconds: Invalid value: 300: may not specify a duration less than 10 minutes"),
            ("robot --bound-object-kind=Pod --bound-object-name=gone", r#"pods "gone" not found"#),
            ("robot --bound-object-kind=Pod --bound-object-name=p --bound-object-uid=x", "the UID in the bound object reference (x) does not match the UID in record"),
            ("other --bound-object-kind=Pod --bound-object-name=p", r#"cannot bind token for serviceaccount "other" to pod running with different serviceaccount name"#),
        ] {
            has(&kubectl.run(&format!("create token {arguments}")).refused(), &[why]);
        }
    }

    fn a_bearer_is_who_the_token_says_until_what_it_hangs_on_goes(kubectl) {
        kubectl.ok("create serviceaccount robot");
        kubectl.feed("create -f -", POD).ok();
        let free = token(kubectl, "");
        let bound = token(kubectl, "--bound-object-kind=Pod --bound-object-name=p");
        let user = bearer(&kubectl.server, &bound).expect("known");
        assert_eq!(user["username"], "system:serviceaccount:default:robot");
        assert_eq!(user["uid"], kubectl.field("sa/robot", ".metadata.uid"));
        assert_eq!(user["groups"], json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"]));
        assert_eq!(user["extra"]["authentication.kubernetes.io/pod-name"], json!(["p"]));
        let id = format!("JTI={}", claims(&bound)["jti"].as_str().expect("an id"));
        assert_eq!(user["extra"]["authentication.kubernetes.io/credential-id"], json!([id]));
        assert_eq!(bearer(&kubectl.server, &token(kubectl, "--audience=vault")), Err(401));
        assert_eq!(bearer(&kubectl.server, &format!("{bound}x")), Err(401));
        // Knowing somebody is not allowing them anything.
        let answer = Http::anonymous(&kubectl.server).send("GET", "/api/v1/namespaces/default/secrets",
            &[("authorization", &format!("Bearer {free}"))], "");
        has(&answer.status(), &[r#"User "system:serviceaccount:default:robot" cannot list resource "secrets""#]);
        kubectl.ok("delete pod p --grace-period=0 --force");
        assert_eq!(bearer(&kubectl.server, &bound), Err(401));
        // A pod of that name is another pod.
        kubectl.feed("create -f -", POD).ok();
        assert_eq!(bearer(&kubectl.server, &bound), Err(401));
        assert!(bearer(&kubectl.server, &free).is_ok());
        kubectl.ok("delete serviceaccount robot");
        kubectl.ok("create serviceaccount robot");
        assert_eq!(bearer(&kubectl.server, &free), Err(401));
        let log = kubectl.server.log();
        assert!(!log.contains(&free) && !log.contains(&bound), "a token is in the log");
    }
}

#[test]
fn reviews_say_whose_a_token_is() {
    let server = Server::start();
    let http = Http::admin(&server);
    let account = r#"{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}"#;
    http.post("/api/v1/namespaces/default/serviceaccounts", account);
    let path = "/api/v1/namespaces/default/serviceaccounts/robot/token";
    let answer = http.post(path, r#"{"spec": {"audiences": ["vault", "hotmap"]}}"#);
    let made = answer.json();
    assert_eq!(
        (answer.code, &made["kind"]),
        (201, &json!("TokenRequest")),
        "{made}"
    );
    let token = made["status"]["token"].as_str().expect("a token");
    let review = |token: &str, audiences: Value| {
        let asked = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
            "spec": {"token": token, "audiences": audiences}});
        http.post(REVIEWS, asked.to_string()).json()["status"].clone()
    };
    let good = review(token, json!(["vault"]));
    assert_eq!(good["authenticated"], true);
    assert_eq!(good["audiences"], json!(["vault"]));
    assert_eq!(good["user"]["username"], "system:serviceaccount:default:robot");
    for (token, audiences) in [
        (token, json!(null)),
        (token, json!(["other"])),
        ("x", json!(["vault"])),
    ] {
        let bad = review(token, audiences.clone());
        assert_ne!(bad["authenticated"], true, "{audiences}");
        assert!(bad["error"].as_str().is_some_and(|error| !error.is_empty()));
    }
    let empty = http.post(REVIEWS, r#"{"spec": {}}"#).status();
    has(
        &empty,
        &["400", "token is required for TokenReview in authentication"],
    );
    let anonymous = Http::anonymous(&server).post(REVIEWS, r#"{"spec": {"token": "x"}}"#);
    assert_eq!(anonymous.code, 403);
}

#[test]
fn keys_survive_a_crash_and_are_shown_to_who_checks_tokens() {
    let mut server = Server::start();
    let http = Http::admin(&server);
    let account = r#"{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}}"#;
    http.post("/api/v1/namespaces/default/serviceaccounts", account);
    let path = "/api/v1/namespaces/default/serviceaccounts/robot/token";
    let made = http.post(path, "{}").json();
    let token = made["status"]["token"].as_str().expect("a token").to_owned();
    let keys = http.get("/openid/v1/jwks");
    assert_eq!(keys.header("content-type"), "application/jwk-set+json");
    assert!(crate::harness::is_private(&server.data_dir().join("pki/sa.key")));
    server.crash_and_restart();
    assert!(bearer(&server, &token).is_ok());
    let http = Http::admin(&server);
    assert_eq!(http.get("/openid/v1/jwks").json(), keys.json());
    let configuration = http.get("/.well-known/openid-configuration").json();
    assert_eq!(configuration["issuer"], ISSUER);
    assert_eq!(
        configuration["jwks_uri"],
        format!("https://{}/openid/v1/jwks", server.address())
    );
    // Accounts may look, others may not.
    let authorization = format!("Bearer {token}");
    for (headers, code) in [
        (vec![("authorization", authorization.as_str())], 200),
        (vec![], 403),
    ] {
        let answer = Http::anonymous(&server).send("GET", "/openid/v1/jwks", &headers, "");
        assert_eq!(answer.code, code, "{headers:?}");
    }
}

each_kubectl! {
    fn every_namespace_has_its_account_and_its_authority_and_gets_them_back(kubectl) {
        let authority = std::fs::read_to_string(kubectl.server.data_dir().join("pki/ca.crt")).expect("the authority");
        kubectl.ok("create namespace team");
        for namespace in ["default", "kube-system", "team"] {
            assert_eq!(kubectl.ok(&format!("get sa -o name -n {namespace}")), "serviceaccount/default\n");
            let held = kubectl.ok(&format!("get cm kube-root-ca.crt -n {namespace} -o jsonpath={{.data.ca\\.crt}}"));
            assert_eq!(held.trim(), authority.trim(), "{namespace}");
        }
        kubectl.ok("delete sa default -n team");
        kubectl.ok("wait sa/default -n team --for=create --timeout=60s");
        kubectl.ok("delete cm kube-root-ca.crt -n team");
        kubectl.ok("wait cm/kube-root-ca.crt -n team --for=create --timeout=60s");
        kubectl.call(&["patch", "cm", "kube-root-ca.crt", "-n", "team", "-p", r#"{"data":{"ca.crt":"x","more":"y"}}"#]).ok();
        let mut restored = kubectl.start("get cm kube-root-ca.crt -n team -w -o jsonpath={.data}{\"\\n\"}");
        assert!(!restored.line_with("BEGIN CERTIFICATE").contains("more"));
        kubectl.ok("delete namespace team --timeout=60s");
    }

    fn a_pod_may_come_in_one_file_with_its_namespace(kubectl) {
        let manifest: String = (0..10).map(|at| format!(
            "---\napiVersion: v1\nkind: Namespace\nmetadata: {{name: team-{at}}}\n---\napiVersion: v1\nkind: Pod\n\
             metadata: {{name: p, namespace: team-{at}}}\nspec: {{containers: [{{name: a, image: busybox}}]}}\n")).collect();
        kubectl.apply(&manifest);
        has(&kubectl.apply(&manifest), &["pod/p unchanged"]);
        assert_eq!(kubectl.ok("get pods -A -o jsonpath={.items[*].spec.volumes[*].projected.sources[1].configMap.name}"),
                   ["kube-root-ca.crt"; 10].join(" "));
        let gone = "{apiVersion: v1, kind: Pod, metadata: {name: q}, spec: {serviceAccountName: gone, containers: [{name: a, image: b}]}}";
        has(&kubectl.feed("create -f -", gone).refused(),
            &[r#"pods "q" is forbidden: error looking up service account default/gone: serviceaccount "gone" not found"#]);
    }
}
