//! The file kubectl and every client library read.

use base64::{Engine, prelude::BASE64_STANDARD};

use super::{ClientCertificate, Identity};

/// A kubeconfig with one cluster, one user and one context, all named `hotmap`.
pub(super) fn render(
    authority_pem: &str,
    server: &str,
    identity: &Identity,
    client: &ClientCertificate,
) -> String {
    let [authority, certificate, key] =
        [authority_pem, &client.certificate_pem, &client.key_pem].map(|pem| BASE64_STANDARD.encode(pem));
    let user = serde_json::Value::from(identity.user());
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: hotmap
  cluster:
    server: {server}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: hotmap
  context:
    cluster: hotmap
    user: {user}
current-context: hotmap
"
    )
}
