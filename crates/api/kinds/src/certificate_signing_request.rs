//! CertificateSigningRequest: who wants a certificate from which signer, whether somebody approves, and what was signed.
//!
//! Rules follow `pkg/apis/certificates/validation/validation.go` and
//! `pkg/registry/certificates/certificates/strategy.go`, Kubernetes 1.36. Who asks, and the times of conditions, are the
//! server's to fill in: a strategy knows neither users nor clocks.

mod decision;
mod request;

pub use decision::{RequestState, fill_condition_times};
pub use request::{CertificateRequest, CertificateRequestError, NodeRequestError};

use base64::{Engine, engine::general_purpose::STANDARD};
use hotmap_object::{FieldError, timestamp};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use crate::{
    Column, Strategy,
    fields::{Fields, keep, map_mut},
    rules::{self, Errors, index},
    table,
};

/// The shortest life that may be asked for, in seconds.
const EXPIRATION_SECONDS_MIN: i64 = 600;
/// A name of the beta API that v1 does not take.
const LEGACY_SIGNER: &str = "kubernetes.io/legacy-unknown";
const SIGNER_RULE: &str = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
const SIGNER_PATH_BYTES_MAX: usize = 317;
const DOMAIN_BYTES_MAX: usize = 253;

/// The uses of a certificate that may be asked for, sorted.
const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// The rules of CertificateSigningRequests.
pub(crate) struct CertificateSigningRequest;

const COLUMNS: &[Column] = &[
    table::NAME,
    table::AGE,
    table::column("SignerName", "string", "Who is asked to sign."),
    table::column("Requestor", "string", "Who asks, as the server knows them."),
    table::column(
        "RequestedDuration",
        "string",
        "How long the certificate shall last.",
    ),
    table::column(
        "Condition",
        "string",
        "Whether it is approved, denied, failed or issued.",
    ),
];

impl Strategy for CertificateSigningRequest {
    fn prepare_for_create(&self, object: &mut Map<String, Value>) {
        object.insert("status".to_owned(), json!({}));
    }

    fn prepare_for_update(&self, new: &mut Map<String, Value>, old: &Map<String, Value>, subresource: &str) {
        keep(new, old, "spec");
        match subresource {
            "approval" => {
                let conditions = new.map("status").get("conditions").cloned();
                keep(new, old, "status");
                if let (Some(status), Some(conditions)) = (map_mut(new, "status"), conditions) {
                    status.insert("conditions".to_owned(), conditions);
                }
            }
            "status" => decision::keep_decisions(new, old),
            _ => keep(new, old, "status"),
        }
    }

    fn validate(&self, object: &Map<String, Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let spec = object.map("spec");
        if let Err(error) = CertificateRequest::of_spec(spec) {
            let shown = spec.text("request");
            errors.push(FieldError::invalid("spec.request", shown, error.to_string()));
        }
        usages(&mut errors, spec.list("usages"));
        signer(&mut errors, "spec.signerName", spec.text("signerName"));
        if let Some(seconds) = spec
            .int("expirationSeconds")
            .filter(|&asked| asked < EXPIRATION_SECONDS_MIN)
        {
            let rule = "may not specify a duration less than 600 seconds (10 minutes)";
            errors.push(FieldError::invalid("spec.expirationSeconds", seconds, rule));
        }
        let status = object.map("status");
        decision::conditions(&mut errors, "status.conditions", status.list("conditions"));
        if let Err(why) = request::check_certificates(status) {
            errors.push(FieldError::invalid(
                "status.certificate",
                "<certificate data>",
                why,
            ));
        }
        errors
    }

    fn validate_update(
        &self,
        new: &Map<String, Value>,
        old: &Map<String, Value>,
        subresource: &str,
    ) -> Vec<FieldError> {
        let mut errors = self.validate(new);
        decision::update(&mut errors, new, old, subresource);
        errors
    }

    fn selectable_fields(&self) -> &'static [&'static str] {
        &["spec.signerName"]
    }

    fn field_values(&self, object: &Map<String, Value>) -> Vec<(&'static str, String)> {
        vec![(
            "spec.signerName",
            object.map("spec").text("signerName").to_owned(),
        )]
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        let spec = object.map("spec");
        let duration = spec.int("expirationSeconds").and_then(|seconds| {
            let since = now.checked_sub(SignedDuration::from_secs(seconds)).ok()?;
            Some(timestamp::human_age(since, now))
        });
        vec![
            table::name(object),
            table::age(object, now),
            table::or_none(spec.text("signerName")),
            spec.text("username").into(),
            table::or_none(&duration.unwrap_or_default()),
            RequestState::of(object.map("status")).to_string().into(),
        ]
    }
}

fn usages(errors: &mut Errors, usages: &[Value]) {
    if usages.is_empty() {
        errors.push(FieldError::required("spec.usages", ""));
    }
    let texts: Vec<&str> = usages
        .iter()
        .map(|usage| usage.as_str().unwrap_or_default())
        .collect();
    for (at, usage) in texts.iter().enumerate() {
        if !USAGES.contains(usage) {
            errors.push(FieldError::not_supported(
                index("spec.usages", at),
                *usage,
                USAGES,
            ));
        }
    }
    for (at, usage) in texts.iter().enumerate() {
        if texts[..at].contains(usage) {
            errors.push(FieldError::duplicate(index("spec.usages", at), *usage));
        }
    }
}

/// Checks the name of a signer. Follows `ValidateSignerName` in `pkg/apis/core/validation/names.go`, Kubernetes 1.36.
fn signer(errors: &mut Errors, path: &str, name: &str) {
    if name == LEGACY_SIGNER {
        let rule = "the legacy signerName is not allowed via this API version";
        errors.push(FieldError::invalid(path, name, rule));
        return;
    }
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let Some((domain, rest)) = name.split_once('/').filter(|(_, rest)| !rest.contains('/')) else {
        errors.push(FieldError::invalid(path, name, SIGNER_RULE));
        return;
    };
    if domain.len() > DOMAIN_BYTES_MAX {
        errors.push(FieldError::too_long(path, DOMAIN_BYTES_MAX));
    }
    labels(errors, path, domain, rules::label);
    if !domain.contains('.') {
        let rule = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(path, domain, rule));
    }
    labels(errors, path, rest, rules::subdomain);
    // Room for what the longest names of the built-in signers need: a domain, a namespace and a name.
    let limit = DOMAIN_BYTES_MAX + 1 + SIGNER_PATH_BYTES_MAX;
    if name.len() > limit {
        errors.push(FieldError::too_long(path, limit));
    }
}

/// Only the first label that breaks a rule is told about: others would say the same.
fn labels(errors: &mut Errors, path: &str, segment: &str, rule: fn(&str) -> Vec<String>) {
    let broken = segment.split('.').map(|label| (label, rule(label)));
    if let Some((label, broken)) = broken.into_iter().find(|(_, broken)| !broken.is_empty()) {
        errors.extend(
            broken
                .into_iter()
                .map(|why| FieldError::invalid(path, segment, format!("validating label {label:?}: {why}"))),
        );
    }
}

/// The bytes of a value in base64; what is none reads as nothing.
fn bytes(value: &str) -> Vec<u8> {
    STANDARD.decode(value).unwrap_or_default()
}

#[cfg(test)]
mod tests;
