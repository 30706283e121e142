//! One certificate: a key of our own, a request, and the wait for who approves and signs.

use std::{net::IpAddr, time::Duration};

use base64::{Engine, prelude::BASE64_STANDARD};
use hotmap_client::{
    Client, ClientListWatch, FollowEvent, Follower, FollowerConfig, Identity, RawObject, ResourcePath,
    WriteParams,
};
use jiff::Timestamp;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData, SanType,
};
use serde::Deserialize;
use serde_json::{Value, json};
use tracing::{info, warn};
use x509_parser::prelude::{FromDer, X509Certificate, parse_x509_pem};

use super::{JoinError, refused};

/// What a node's certificate is for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purpose<'a> {
    /// The API knows the node by it.
    Client,
    /// The node serves its port with it, under these names and addresses.
    Serving(&'a [String]),
}

impl Purpose<'_> {
    fn signer(self) -> &'static str {
        match self {
            Purpose::Client => "kubernetes.io/kube-apiserver-client-kubelet",
            Purpose::Serving(_) => "kubernetes.io/kubelet-serving",
        }
    }

    fn usages(self) -> [&'static str; 2] {
        match self {
            Purpose::Client => ["digital signature", "client auth"],
            Purpose::Serving(_) => ["digital signature", "server auth"],
        }
    }
}

/// After this long somebody is told that it waits for them.
const HINT_AFTER: Duration = Duration::from_secs(10);

/// A certificate's life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) from: Timestamp,
    pub(super) until: Timestamp,
}

/// Asks for a certificate of the node, and waits for it.
pub(super) async fn obtain(
    client: &Client,
    node: &str,
    purpose: Purpose<'_>,
    now: impl Fn() -> Timestamp,
) -> Result<Identity, JoinError> {
    let is_joining = !client.has_identity();
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(JoinError::Key)?;
    let request = json!({
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
        "metadata": {"generateName": "node-csr-"},
        "spec": {
            "request": BASE64_STANDARD.encode(request_pem(node, purpose, &key)?),
            "signerName": purpose.signer(),
            "usages": purpose.usages(),
        },
    });
    let collection = ResourcePath::new("certificates.k8s.io", "v1", "certificatesigningrequests");
    let created = client
        .create(&collection, &request, &WriteParams::default())
        .await;
    let created = created.map_err(|error| refused(error, is_joining))?;
    info!(name = created.name(), node, "certificate requested");
    let certificate = wait(client, &collection, created.name(), is_joining).await?;
    check(&certificate, &key, now())?;
    Ok(Identity {
        certificate_pem: certificate,
        key_pem: key.serialize_pem().into_bytes(),
    })
}

fn request_pem(node: &str, purpose: Purpose<'_>, key: &KeyPair) -> Result<String, JoinError> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params
        .distinguished_name
        .push(DnType::OrganizationName, "system:nodes");
    params
        .distinguished_name
        .push(DnType::CommonName, format!("system:node:{node}"));
    if let Purpose::Serving(names) = purpose {
        for name in names {
            params.subject_alt_names.push(match name.parse::<IpAddr>() {
                Ok(address) => SanType::IpAddress(address),
                Err(_) => SanType::DnsName(name.as_str().try_into().map_err(JoinError::Key)?),
            });
        }
    }
    let request = params.serialize_request(key).map_err(JoinError::Key)?;
    request.pem().map_err(JoinError::Key)
}

async fn wait(
    client: &Client,
    collection: &ResourcePath,
    name: &str,
    is_joining: bool,
) -> Result<Vec<u8>, JoinError> {
    let source = ClientListWatch::new(client.clone(), collection.clone())
        .with_field_selector(format!("metadata.name={name}"));
    let mut follower = Follower::new(source, FollowerConfig::NODE);
    let mut hint = std::pin::pin!(tokio::time::sleep(HINT_AFTER));
    let mut is_hinted = false;
    loop {
        let event = tokio::select! {
            event = follower.next() => event,
            () = &mut hint, if !is_hinted => {
                is_hinted = true;
                warn!(name, "waiting for somebody to approve the request: `kubectl certificate approve {name}`");
                continue;
            }
        };
        let object = match event {
            FollowEvent::Initial(objects) => match objects.into_iter().next() {
                Some(object) => object,
                None => {
                    return Err(JoinError::Deleted {
                        name: name.to_owned(),
                    });
                }
            },
            FollowEvent::Applied(object) => object,
            FollowEvent::Deleted(_) => {
                return Err(JoinError::Deleted {
                    name: name.to_owned(),
                });
            }
            // Who is not known any more never will be again; everything else may pass.
            FollowEvent::Interrupted(error) if error.status().is_some_and(|status| status.code == 401) => {
                return Err(refused(error, is_joining));
            }
            FollowEvent::Interrupted(error) => {
                warn!(name, %error, "cannot follow the request, trying again");
                continue;
            }
            FollowEvent::Resumed => continue,
        };
        if let Some(certificate) = outcome(&object)? {
            return Ok(certificate);
        }
    }
}

/// The certificate; nothing while it is awaited.
fn outcome(object: &RawObject) -> Result<Option<Vec<u8>>, JoinError> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Request {
        status: Option<Status>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Status {
        conditions: Option<Vec<Value>>,
        certificate: Option<String>,
    }
    let request: Request = object.parse().map_err(JoinError::Request)?;
    let status = request.status.unwrap_or_default();
    for condition in status.conditions.unwrap_or_default() {
        let (name, message) = (object.name().to_owned(), text(&condition["message"]));
        match condition["type"].as_str() {
            Some("Denied") => return Err(JoinError::Denied { name, message }),
            Some("Failed") => return Err(JoinError::Failed { name, message }),
            _ => {}
        }
    }
    let certificate = status.certificate.filter(|certificate| !certificate.is_empty());
    let decoded = certificate.map(|text| BASE64_STANDARD.decode(text));
    decoded.transpose().map_err(|_| JoinError::Foreign)
}

fn text(value: &Value) -> String {
    let text = value.as_str().filter(|text| !text.is_empty());
    text.unwrap_or("without a reason").to_owned()
}

fn check(pem: &[u8], key: &KeyPair, now: Timestamp) -> Result<(), JoinError> {
    let (_, block) = parse_x509_pem(pem).map_err(|_| JoinError::Foreign)?;
    let (_, certificate) = X509Certificate::from_der(&block.contents).map_err(|_| JoinError::Foreign)?;
    if certificate.public_key().raw != key.subject_public_key_info() {
        return Err(JoinError::Foreign);
    }
    let Validity { from, until } = validity(pem).ok_or(JoinError::Foreign)?;
    match (from..until).contains(&now) {
        true => Ok(()),
        false => Err(JoinError::Clock { from, until, now }),
    }
}

/// The life of the first certificate in a PEM.
pub(super) fn validity(pem: &[u8]) -> Option<Validity> {
    let (_, block) = parse_x509_pem(pem).ok()?;
    let (_, certificate) = X509Certificate::from_der(&block.contents).ok()?;
    let validity = certificate.validity();
    Some(Validity {
        from: Timestamp::from_second(validity.not_before.timestamp()).ok()?,
        until: Timestamp::from_second(validity.not_after.timestamp()).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(status: Value) -> RawObject {
        let object = json!({"metadata": {"name": "node-csr-x", "resourceVersion": "1"}, "status": status});
        RawObject::from_json(object.to_string().into()).expect("an object")
    }

    #[test]
    fn a_request_ends_with_a_certificate_or_a_reason() {
        let condition =
            |kind: &str, message: &str| json!([{"type": kind, "status": "True", "message": message}]);
        for (status, expected) in [
            (json!({}), "nothing"),
            (json!(null), "nothing"),
            (json!({"conditions": condition("Approved", "")}), "nothing"),
            (
                json!({"conditions": condition("Approved", ""), "certificate": "Yw=="}),
                "c",
            ),
            (
                json!({"conditions": condition("Denied", "the name is taken")}),
                "certificate request node-csr-x was denied: the name is taken",
            ),
            (
                json!({"conditions": condition("Failed", "")}),
                "certificate request node-csr-x cannot be signed: without a reason",
            ),
        ] {
            let said = match outcome(&request(status.clone())) {
                Ok(None) => "nothing".to_owned(),
                Ok(Some(certificate)) => String::from_utf8(certificate).expect("text"),
                Err(error) => error.to_string(),
            };
            assert_eq!(said, expected, "{status}");
        }
    }

    #[test]
    fn only_a_certificate_of_our_own_key_that_is_good_now_is_taken() {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::default();
        params.not_before = rcgen::date_time_ymd(2026, 1, 1);
        params.not_after = rcgen::date_time_ymd(2027, 1, 1);
        let pem = params.self_signed(&key).expect("a certificate").pem();
        let at = |text: &str| text.parse::<Timestamp>().expect("a time");
        let check = |key: &KeyPair, now: &str| super::check(pem.as_bytes(), key, at(now));
        assert!(check(&key, "2026-06-01T00:00:00Z").is_ok());
        for now in ["2025-12-31T23:59:59Z", "2027-01-01T00:00:00Z"] {
            let refused = check(&key, now).expect_err("another time").to_string();
            assert!(
                refused.contains("set the clock") && refused.contains(now),
                "{refused}"
            );
        }
        let another = KeyPair::generate().expect("a key");
        assert!(matches!(
            check(&another, "2026-06-01T00:00:00Z"),
            Err(JoinError::Foreign)
        ));
    }
}
