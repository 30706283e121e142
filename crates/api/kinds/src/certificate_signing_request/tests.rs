use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

use super::*;
use crate::testing::{created, map, updated};

const PLURAL: &str = "certificatesigningrequests";

fn pem(common_name: &str, organization: &str, names: &[SanType]) -> String {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
        .distinguished_name
        .push(DnType::OrganizationName, organization);
    params.subject_alt_names = names.to_vec();
    let key = KeyPair::generate().expect("a key");
    params
        .serialize_request(&key)
        .expect("a request")
        .pem()
        .expect("PEM")
}

fn object(changes: Value) -> Value {
    let request = STANDARD.encode(pem("system:node:a", "system:nodes", &[]));
    let spec = json!({
        "request": request, "signerName": "kubernetes.io/kube-apiserver-client-kubelet",
        "usages": ["client auth", "digital signature"],
    });
    crate::testing::with(json!({"metadata": {"name": "a"}, "spec": spec}), changes)
}

fn strings(words: &[&str]) -> Vec<String> {
    words.iter().map(|&word| word.to_owned()).collect()
}

#[test]
fn new_requests_are_checked_with_the_known_sentences() {
    for (changes, wanted) in [
        (json!({}), vec![]),
        (
            json!({"spec": {"expirationSeconds": 599, "usages": []}}),
            vec![
                "spec.usages: Required value",
                "spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 600 seconds (10 minutes)",
            ],
        ),
        (
            json!({"spec": {"request": "eA=="}}),
            vec!["spec.request: Invalid value: \"eA==\": PEM block type must be CERTIFICATE REQUEST"],
        ),
        (
            json!({"spec": {"usages": ["any", "any"], "signerName": "kubernetes.io/legacy-unknown"}}),
            vec![
                "spec.usages[1]: Duplicate value: \"any\"",
                "spec.signerName: Invalid value: \"kubernetes.io/legacy-unknown\": the legacy signerName is not allowed via this API version",
            ],
        ),
        (
            json!({"spec": {"signerName": ""}}),
            vec!["spec.signerName: Required value"],
        ),
        (
            json!({"spec": {"signerName": "plain/name"}}),
            vec![
                "spec.signerName: Invalid value: \"plain\": should be a domain with at least two segments separated by dots",
            ],
        ),
        (
            json!({"spec": {"signerName": "example.com"}}),
            vec![
                "spec.signerName: Invalid value: \"example.com\": must be a fully qualified domain and path of the form 'example.com/signer-name'",
            ],
        ),
    ] {
        let (_, errors) = created("certificates.k8s.io", PLURAL, object(changes.clone()));
        assert_eq!(errors, wanted, "{changes}");
    }
    let (_, errors) = created(
        "certificates.k8s.io",
        PLURAL,
        object(json!({"spec": {"usages": ["juggling"]}})),
    );
    assert!(errors[0].starts_with("spec.usages[0]: Unsupported value: \"juggling\": supported values:"));
}

#[test]
fn nobody_brings_a_status_or_changes_the_spec() {
    let approved = json!({"status": {"conditions": [{"type": "Approved", "status": "True"}]}});
    let (made, errors) = created("certificates.k8s.io", PLURAL, object(approved.clone()));
    assert_eq!((made["status"].clone(), errors.len()), (json!({}), 0));

    let old = map(object(json!({})));
    let mut new = map(object(crate::testing::with(
        approved,
        json!({"spec": {"signerName": "a.b/c"}}),
    )));
    CertificateSigningRequest.prepare_for_update(&mut new, &old, "");
    assert_eq!((&new["spec"], new.get("status")), (&old["spec"], None));
}

#[test]
fn approval_and_certificate_each_have_their_own_path() {
    let with = |status: Value| object(json!({"status": status}));
    let condition = |kind: &str, reason: &str| json!({"type": kind, "status": "True", "reason": reason});
    let pending = with(json!({}));
    let yes = with(json!({"conditions": [condition("Approved", "Me")]}));
    let no = "status.conditions: Forbidden: updates may not add a condition of type \"Approved\"";
    for (old, new, subresource, wanted) in [
        (&pending, yes.clone(), "approval", vec![]),
        (&pending, yes.clone(), "status", vec![no]),
        (
            &pending,
            with(json!({"conditions": [condition("Approved", "a"), condition("Denied", "b")]})),
            "approval",
            vec![
                "status.conditions: Invalid value: \"Denied\": Approved and Denied conditions are mutually exclusive",
            ],
        ),
        (
            &pending,
            with(
                json!({"conditions": [{"type": "Denied", "status": "False"}, {"type": "Other", "status": "No"}]}),
            ),
            "approval",
            vec![
                "status.conditions[0].status: Unsupported value: \"False\": supported values: \"True\"",
                "status.conditions[1].status: Unsupported value: \"No\": supported values: \"False\", \"True\", \"Unknown\"",
            ],
        ),
        (
            &pending,
            with(json!({"conditions": [condition("Failed", "a")]})),
            "status",
            vec![],
        ),
    ] {
        // A new object has no status: the old one is given here as it is stored.
        let resource = crate::find("certificates.k8s.io", "v1", PLURAL).expect("served");
        let (old, mut new) = (map(old.clone()), map(new));
        resource.strategy.prepare_for_update(&mut new, &old, subresource);
        let errors = crate::testing::texts(&resource.strategy.validate_update(&new, &old, subresource));
        assert_eq!(errors, wanted, "{subresource} {new:?}");
    }
    // What was approved stays so.
    let (old, mut new) = (map(yes), map(pending));
    CertificateSigningRequest.prepare_for_update(&mut new, &old, "approval");
    assert_eq!(
        new["status"].get("conditions"),
        old["status"].get("conditions"),
        "absent is no change"
    );
    new["status"]["conditions"] = json!([]);
    let errors = CertificateSigningRequest.validate_update(&new, &old, "approval");
    assert_eq!(
        crate::testing::texts(&errors),
        ["status.conditions: Forbidden: updates may not remove a condition of type \"Approved\""]
    );
    assert!(
        updated(
            "certificates.k8s.io",
            PLURAL,
            object(json!({})),
            object(json!({})),
            ""
        )
        .is_empty()
    );
}

#[test]
fn conditions_get_their_times() {
    let now: Timestamp = "2026-01-02T15:04:05Z".parse().expect("a time");
    let old = map(json!({"status": {"conditions": [
        {"type": "Approved", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}}));
    let mut new = map(json!({"status": {"conditions": [
        {"type": "Approved", "status": "True"},
        {"type": "Failed", "status": "True", "lastUpdateTime": "2026-01-02T00:00:00Z"}]}}));
    fill_condition_times(&mut new, &old, now);
    assert_eq!(
        new["status"]["conditions"],
        json!([
            {"type": "Approved", "status": "True", "lastUpdateTime": "2026-01-02T15:04:05Z",
             "lastTransitionTime": "2026-01-01T00:00:00Z"},
            {"type": "Failed", "status": "True", "lastUpdateTime": "2026-01-02T00:00:00Z",
             "lastTransitionTime": "2026-01-02T15:04:05Z"}])
    );
}

#[test]
fn a_node_asks_for_its_own_certificate_and_nothing_more() {
    let address = SanType::IpAddress([10, 0, 0, 1].into());
    let name = SanType::DnsName("a".try_into().expect("a name"));
    let client = ["client auth", "digital signature"];
    let server = ["digital signature", "key encipherment", "server auth"];
    for (user, group, names, usages, as_client, as_server) in [
        (
            "system:node:a",
            "system:nodes",
            vec![],
            &client[..],
            None,
            Some("DNS or IP subjectAltName is required"),
        ),
        (
            "system:node:a",
            "system:nodes",
            vec![name, address.clone()],
            &server[..],
            Some("DNS subjectAltNames are not allowed"),
            None,
        ),
        (
            "system:node:a",
            "system:nodes",
            vec![address],
            &client[..],
            Some("IP subjectAltNames are not allowed"),
            Some("usages did not match [digital signature key encipherment server auth]"),
        ),
        (
            "admin",
            "system:nodes",
            vec![],
            &client[..],
            Some("subject common name does not begin with system:node:"),
            Some("DNS or IP subjectAltName is required"),
        ),
        (
            "system:node:a",
            "system:masters",
            vec![],
            &client[..],
            Some("subject organization is not system:nodes"),
            Some("subject organization is not system:nodes"),
        ),
        (
            "system:node:a",
            "system:nodes",
            vec![],
            &["client auth"],
            Some("usages did not match [client auth digital signature key encipherment]"),
            Some("DNS or IP subjectAltName is required"),
        ),
    ] {
        let request = CertificateRequest::parse(pem(user, group, &names).as_bytes()).expect("a request");
        let usages = strings(usages);
        let text = |checked: Result<(), NodeRequestError>| checked.err().map(|error| error.to_string());
        assert_eq!(
            text(request.check_node_client(&usages)).as_deref(),
            as_client,
            "{user} {group}"
        );
        assert_eq!(
            text(request.check_node_serving(&usages)).as_deref(),
            as_server,
            "{user} {group}"
        );
    }
}

#[test]
fn who_does_not_have_the_key_gets_nowhere() {
    use x509_parser::pem::parse_x509_pem;
    let (_, block) = parse_x509_pem(pem("a", "b", &[]).as_bytes())
        .map(|(rest, pem)| (rest.len(), pem))
        .expect("PEM");
    let mut der = block.contents;
    let at = der.len() - 1;
    der[at] ^= 1;
    let body = STANDARD.encode(&der);
    let forged = format!("-----BEGIN CERTIFICATE REQUEST-----\n{body}\n-----END CERTIFICATE REQUEST-----\n");
    let refused = CertificateRequest::parse(forged.as_bytes()).expect_err("a changed signature");
    assert!(matches!(
        refused,
        CertificateRequestError::Signature | CertificateRequestError::Malformed
    ));
}

#[test]
fn a_row_tells_how_far_it_is() {
    let now = "2026-01-01T00:00:00Z".parse().expect("a time");
    let state = |status: Value| RequestState::of(&map(status)).to_string();
    assert_eq!(state(json!({})), "Pending");
    assert_eq!(
        state(json!({"conditions": [{"type": "Approved"}], "certificate": "YQ=="})),
        "Approved,Issued"
    );
    assert_eq!(
        state(json!({"conditions": [{"type": "Denied"}, {"type": "Failed"}]})),
        "Denied,Failed"
    );
    let row = map(json!({"metadata": {"name": "a"}, "spec": {"username": "u", "expirationSeconds": 86400}}));
    assert_eq!(
        CertificateSigningRequest.cells(&row, now),
        ["a", "<unknown>", "<none>", "u", "24h", "Pending"].map(Value::from)
    );
}
