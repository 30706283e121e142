use serde_json::json;

use super::*;
use crate::view::{CertificateSigningRequestSpec, Node};

struct Api;

impl Signer for Api {
    fn sign(
        &self,
        _: &CertificateRequest,
        _: &[String],
        _: Option<i64>,
        _: Timestamp,
    ) -> Result<String, String> {
        Err("not asked to".to_owned())
    }

    fn is_name_of_api(&self, name: &str) -> bool {
        ["localhost", "10.0.0.1", "127.0.0.1"].contains(&name)
    }
}

fn node(name: &str, ready: &str, addresses: &[&str]) -> Node {
    let addresses: Vec<Value> = addresses
        .iter()
        .map(|address| json!({"type": "InternalIP", "address": address}))
        .collect();
    let conditions = json!([{"type": "Ready", "status": ready}]);
    let node =
        json!({"metadata": {"name": name}, "status": {"conditions": conditions, "addresses": addresses}});
    serde_json::from_value(node).expect("a node")
}

fn wanted(user: &str, names: &[&str]) -> CertificateRequest {
    let (addresses, names): (Vec<&str>, Vec<&str>) = names
        .iter()
        .partition(|name| name.parse::<std::net::IpAddr>().is_ok());
    CertificateRequest {
        common_name: user.to_owned(),
        organizations: vec!["system:nodes".to_owned()],
        dns_names: names.into_iter().map(str::to_owned).collect(),
        ip_addresses: addresses
            .into_iter()
            .filter_map(|address| address.parse().ok())
            .collect(),
        ..CertificateRequest::default()
    }
}

#[test]
fn nodes_get_their_own_certificates_and_nobody_elses() {
    const JOINER: &str = "system:bootstrap:abcdef";
    const A: &str = "system:node:a";
    let client = ["client auth", "digital signature"];
    let server = ["digital signature", "server auth"];
    let alive = node("a", "True", &["10.0.0.7", "127.0.0.1", "10.0.0.1"]);
    let ill = node("a", "False", &[]);
    let silent = node("a", "Unknown", &[]);
    let api_by_name = node("localhost", "True", &[]);
    for (what, signer, user, of, names, usages, node, verdict) in [
        (
            "a new node",
            NODE_CLIENT,
            JOINER,
            A,
            vec![],
            client,
            None,
            "nodeclient",
        ),
        (
            "a node again",
            NODE_CLIENT,
            JOINER,
            A,
            vec![],
            client,
            Some(&silent),
            "nodeclient",
        ),
        (
            "a living node's name",
            NODE_CLIENT,
            JOINER,
            A,
            vec![],
            client,
            Some(&alive),
            "denied",
        ),
        (
            "an ill node's name",
            NODE_CLIENT,
            JOINER,
            A,
            vec![],
            client,
            Some(&ill),
            "denied",
        ),
        (
            "rotation",
            NODE_CLIENT,
            A,
            A,
            vec![],
            client,
            Some(&alive),
            "selfnodeclient",
        ),
        (
            "another node's",
            NODE_CLIENT,
            "system:node:b",
            A,
            vec![],
            client,
            None,
            "nodeclient",
        ),
        (
            "no node's",
            NODE_CLIENT,
            JOINER,
            "admin",
            vec![],
            client,
            None,
            "left",
        ),
        (
            "a server as a client",
            NODE_CLIENT,
            JOINER,
            A,
            vec![],
            server,
            None,
            "left",
        ),
        ("a person", CLIENT, JOINER, A, vec![], client, None, "left"),
        (
            "its port",
            NODE_SERVING,
            A,
            A,
            vec!["a", "10.0.0.7"],
            server,
            Some(&alive),
            "selfnodeclient",
        ),
        (
            "its port on loopback",
            NODE_SERVING,
            A,
            A,
            vec!["127.0.0.1"],
            server,
            Some(&alive),
            "selfnodeclient",
        ),
        (
            "another address",
            NODE_SERVING,
            A,
            A,
            vec!["a", "10.0.0.8"],
            server,
            Some(&alive),
            "left",
        ),
        (
            "the API's address",
            NODE_SERVING,
            A,
            A,
            vec!["10.0.0.1"],
            server,
            Some(&alive),
            "left",
        ),
        (
            "another name",
            NODE_SERVING,
            A,
            A,
            vec!["b"],
            server,
            Some(&alive),
            "left",
        ),
        (
            "before it is known",
            NODE_SERVING,
            A,
            A,
            vec!["a"],
            server,
            None,
            "left",
        ),
        (
            "for somebody else",
            NODE_SERVING,
            JOINER,
            A,
            vec!["a"],
            server,
            Some(&alive),
            "left",
        ),
        (
            "the API's name",
            NODE_SERVING,
            "system:node:localhost",
            "system:node:localhost",
            vec!["localhost"],
            server,
            Some(&api_by_name),
            "left",
        ),
    ] {
        let spec = CertificateSigningRequestSpec {
            signer_name: signer.to_owned(),
            username: user.to_owned(),
            usages: usages.iter().map(|&usage| usage.to_owned()).collect(),
            ..CertificateSigningRequestSpec::default()
        };
        let judged = judge(&spec, &wanted(of, &names), &World { node, signer: &Api });
        let said = match judged {
            Judgement::Approve { permission, .. } => permission,
            Judgement::Deny(message) => {
                assert!(message.contains("kubectl delete node a"), "{message}");
                "denied"
            }
            Judgement::Leave => "left",
        };
        assert_eq!(said, verdict, "{what}");
    }
}

#[test]
fn requests_stay_as_long_as_upstream_keeps_them() {
    let condition = |kind: &str| json!([{"type": kind, "lastUpdateTime": "2026-01-02T10:00:00Z"}]);
    for (what, status, wanted) in [
        ("pending", json!({}), "2026-01-03T09:00:00Z"),
        (
            "denied",
            json!({"conditions": condition("Denied")}),
            "2026-01-02T11:00:00Z",
        ),
        (
            "failed",
            json!({"conditions": condition("Failed")}),
            "2026-01-02T11:00:00Z",
        ),
        (
            "approved",
            json!({"conditions": condition("Approved")}),
            "2026-01-03T10:00:00Z",
        ),
        (
            "issued",
            json!({"conditions": condition("Approved"), "certificate": "eA=="}),
            "2026-01-02T11:00:00Z",
        ),
    ] {
        let request = json!({"metadata": {"creationTimestamp": "2026-01-02T09:00:00Z"}, "status": status});
        let request: CertificateSigningRequest = serde_json::from_value(request).expect("a request");
        assert_eq!(over_at(&request), wanted.parse().ok(), "{what}");
    }
}

#[test]
fn clients_are_clients_only() {
    let strings = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    assert_eq!(client_usages(&strings(&["client auth"])), Ok(()));
    assert_eq!(
        client_usages(&strings(&["server auth", "client auth"])),
        Err("invalid usage for client certificate: server auth".to_owned())
    );
    assert_eq!(
        client_usages(&strings(&["digital signature"])),
        Err("missing required usage for client certificate: client auth".to_owned())
    );
}
