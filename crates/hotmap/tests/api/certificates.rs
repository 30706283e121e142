//! Certificates that clients and nodes ask for, and the tokens with which nodes ask first.

use base64::{Engine, prelude::BASE64_STANDARD};
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

use crate::{
    harness::{Finished, Http, Kubectl, finish, hotmap},
    has,
};

const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const NODE_SIGNER: &str = "kubernetes.io/kube-apiserver-client-kubelet";
const CLIENT_SIGNER: &str = "kubernetes.io/kube-apiserver-client";

/// A key and a request that it has signed.
fn request(name: &str, signer: &str, user: &str, group: &str) -> (KeyPair, String) {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, user);
    params.distinguished_name.push(DnType::OrganizationName, group);
    let key = KeyPair::generate().expect("a key");
    let pem = params
        .serialize_request(&key)
        .expect("a request")
        .pem()
        .expect("PEM");
    let object = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": name},
        "spec": {"request": BASE64_STANDARD.encode(pem), "signerName": signer,
            "usages": ["client auth", "digital signature"]},
    });
    (key, object.to_string())
}

fn tokens(kubectl: &Kubectl, arguments: &str) -> Finished {
    let mut command = hotmap();
    let arguments = arguments.split_whitespace();
    command
        .arg("token")
        .args(arguments)
        .arg("--kubeconfig")
        .arg(kubectl.server.kubeconfig());
    finish(&mut command, None)
}

/// Sends as the bearer of a token.
fn post(kubectl: &Kubectl, token: &str, path: &str, body: &str) -> (u16, Value) {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("content-type", "application/json"),
        ("authorization", bearer.as_str()),
    ];
    let answer = Http::anonymous(&kubectl.server).send("POST", path, &headers, body.to_owned());
    (answer.code, answer.json())
}

fn issued(kubectl: &Kubectl, name: &str) -> String {
    kubectl.ok(&format!(
        "wait csr/{name} --for=jsonpath={{.status.certificate}} --timeout=120s"
    ));
    let pem = kubectl.field(&format!("csr/{name}"), ".status.certificate");
    let pem = BASE64_STANDARD.decode(pem).expect("base64");
    String::from_utf8(pem).expect("PEM")
}

fn whoami(kubectl: &Kubectl, certificate: &str, key: &KeyPair) -> String {
    let certificate = kubectl.file("client.crt", certificate);
    let key = kubectl.file("client.key", key.serialize_pem());
    // The kubeconfig's own certificate comes before flags: this one names no user.
    let kubeconfig = kubectl.file("stranger.kubeconfig", format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: a\nclusters:\n- name: a\n  cluster: {{server: '{}', certificate-authority: '{}'}}\n\
         contexts:\n- name: a\n  context: {{cluster: a}}\n",
        kubectl.server.url(),
        kubectl.server.data_dir().join("pki/ca.crt").display(),
    ));
    kubectl.ok(&format!(
        "auth whoami --kubeconfig={} --client-certificate={} --client-key={} -o jsonpath={{.status.userInfo.username}}/{{.status.userInfo.groups[0]}}",
        kubeconfig.display(),
        certificate.display(),
        key.display()
    ))
}

each_kubectl! {
    fn people_get_certificates_from_who_may_approve(kubectl) {
        let (key, jane) = request("jane", CLIENT_SIGNER, "jane", "dev");
        kubectl.feed("create -f -", jane).ok();
        has(&kubectl.ok("get csr jane"), &["NAME", "SIGNERNAME", "REQUESTOR", "REQUESTEDDURATION", "CONDITION",
            CLIENT_SIGNER, "kubernetes-admin", "<none>", "Pending"]);
        has(&kubectl.ok("explain csr.spec"), &["GROUP:      certificates.k8s.io", "signerName"]);

        // The right to change the sub-resource alone approves nothing.
        kubectl.ok("create clusterrole approver --verb=get,list,update,patch --resource=csr,csr/approval");
        kubectl.ok("create clusterrolebinding approver --clusterrole=approver --user=eve");
        has(&kubectl.run("certificate approve jane --as=eve").refused(),
            &["user not permitted to approve requests with signerName \"kubernetes.io/kube-apiserver-client\""]);
        // Signers are no resource that is served: only a manifest names them.
        kubectl.apply(r#"{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "signers"},
            "rules": [{"apiGroups": ["certificates.k8s.io"], "resources": ["signers"], "verbs": ["approve"], "resourceNames": ["kubernetes.io/*"]}]}"#);
        kubectl.ok("create clusterrolebinding signers --clusterrole=signers --user=eve");
        kubectl.ok("certificate approve jane --as=eve");
        let certificate = issued(kubectl, "jane");
        has(&kubectl.ok("get csr jane"), &["Approved,Issued"]);
        assert_eq!(whoami(kubectl, &certificate, &key), "jane/dev");

        let (_, other) = request("other", CLIENT_SIGNER, "other", "dev");
        kubectl.feed("create -f -", other).ok();
        kubectl.ok("certificate deny other");
        has(&kubectl.ok("get csr other"), &["Denied"]);
        has(&kubectl.run("certificate approve other").refused(), &["Denied"]);
        let (_, root) = request("root", CLIENT_SIGNER, "root", "system:masters");
        has(&kubectl.feed("create -f -", root).refused(), &["with system:masters group is not allowed"]);
    }

    fn nodes_get_theirs_for_a_token(kubectl) {
        let made: Value = serde_json::from_str(&tokens(kubectl, "create --description=rack -o json").ok()).expect("JSON");
        let (token, id) = (made["token"].as_str().expect("a token"), made["id"].as_str().expect("an id"));
        let command = made["joinCommand"].as_str().expect("a command");
        has(command, &["hotmap agent --join https://127.0.0.1:", token, " --ca-hash sha256:"]);
        let list = tokens(kubectl, "list").ok();
        has(&list, &[id, "23h", "authentication,signing", "system:bootstrappers:kubeadm:default-node-token", "rack"]);
        assert!(!list.contains(token) && !list.contains(&token[7..]), "{list}");

        let review = r#"{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}"#;
        let reviews = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
        let (code, answer) = post(kubectl, token, reviews, review);
        assert_eq!((code, &answer["status"]["userInfo"]["username"]), (201, &json!(format!("system:bootstrap:{id}"))));
        assert_eq!(post(kubectl, "abcdef.0123456789abcdef", reviews, review).0, 401);

        let (key, node) = request("n1", NODE_SIGNER, "system:node:n1", "system:nodes");
        assert_eq!(post(kubectl, token, REQUESTS, &node).0, 201);
        let certificate = issued(kubectl, "n1");
        has(&kubectl.ok("get csr n1"), &[&format!("system:bootstrap:{id}"), "Approved,Issued"]);
        assert_eq!(whoami(kubectl, &certificate, &key), "system:node:n1/system:nodes");

        // The name of a node that lives is taken; what is no node's own waits for somebody.
        kubectl.feed("create -f -", r#"{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}"#).ok();
        kubectl.ok(r#"patch node n1 --subresource=status -p {"status":{"conditions":[{"type":"Ready","status":"True"}]}}"#);
        let (_, again) = request("again", NODE_SIGNER, "system:node:n1", "system:nodes");
        assert_eq!(post(kubectl, token, REQUESTS, &again).0, 201);
        kubectl.ok("wait csr/again --for=condition=Denied --timeout=120s");
        has(&kubectl.field("csr/again", ".status.conditions[0].message"), &["node \"n1\" is there and alive"]);
        let (_, masters) = request("masters", NODE_SIGNER, "system:node:n2", "system:masters");
        assert_eq!(post(kubectl, token, REQUESTS, &masters).0, 201);
        kubectl.ok("certificate approve masters");
        kubectl.ok("wait csr/masters --for=condition=Failed --timeout=120s");
        has(&kubectl.ok("get csr masters"), &["Approved,Failed"]);

        assert_eq!(tokens(kubectl, &format!("delete {token}")).ok(), format!("token {id} deleted\n"));
        assert_eq!(post(kubectl, token, reviews, review).0, 401);
        has(&tokens(kubectl, &format!("delete {id}")).refused(), &["there is no token"]);
        // What has a short life goes by itself.
        let short = tokens(kubectl, "create --ttl=1s").ok();
        let secret = format!("bootstrap-token-{}", &short[..6]);
        kubectl.ok(&format!("wait secret/{secret} -n kube-system --for=delete --timeout=120s"));
        let log = kubectl.server.log();
        assert!(!log.contains(token), "a token is in the log");
    }
}
