//! What stands in a PKCS #10 request: whose certificate it shall be, and for which names.

use std::net::IpAddr;

use serde_json::{Map, Value};
use x509_parser::{
    certification_request::X509CertificationRequest,
    extensions::{GeneralName, ParsedExtension},
    pem::Pem,
    prelude::{FromDer, X509Certificate},
    x509::X509Name,
};

use super::bytes;
use crate::fields::Fields;

/// Longer requests and certificates are not read: an RSA-4096 request with a hundred names has under ten kilobytes.
const PEM_BYTES_MAX: usize = 64 * 1024;
const NODE_PREFIX: &str = "system:node:";
const NODES: &str = "system:nodes";

/// A certificate as somebody would like to have it. Its signature is checked: who sent it has the key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CertificateRequest {
    /// Common name: the user. Empty if there is none.
    pub common_name: String,
    /// Organizations: the groups.
    pub organizations: Vec<String>,
    /// DNS names it shall serve.
    pub dns_names: Vec<String>,
    /// Addresses it shall serve.
    pub ip_addresses: Vec<IpAddr>,
    /// Mail addresses.
    pub email_addresses: Vec<String>,
    /// URIs.
    pub uris: Vec<String>,
    /// Whether the subject says more than common name and organizations, or more names of other kinds are asked for.
    pub says_more: bool,
    /// Its SubjectPublicKeyInfo, DER.
    pub public_key: Vec<u8>,
}

/// Why a request cannot be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CertificateRequestError {
    /// It is no PEM, or another kind of PEM.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    Pem,
    /// It is larger than any request is.
    #[error("a certificate request has at most {PEM_BYTES_MAX} bytes")]
    TooLarge,
    /// It is no PKCS #10 request.
    #[error("the PEM block holds no PKCS #10 certificate request")]
    Malformed,
    /// An address among its names is neither IPv4 nor IPv6.
    #[error("an IP address in it has the wrong length")]
    Address,
    /// Who sent it does not have the key, or the key is of a kind that is not known.
    #[error(
        "its signature does not belong to its key, or the key is neither RSA, ECDSA P-256 or P-384, nor Ed25519"
    )]
    Signature,
}

/// Why a request is not one that a node makes for itself. Texts follow `pkg/apis/certificates/helpers.go`, Kubernetes
/// 1.36.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NodeRequestError {
    /// Nodes are in one group.
    #[error("subject organization is not system:nodes")]
    Organization,
    /// Nodes have one kind of name.
    #[error("subject common name does not begin with system:node:")]
    CommonName,
    /// A server has names.
    #[error("DNS or IP subjectAltName is required")]
    NameRequired,
    /// A client has no names.
    #[error("DNS subjectAltNames are not allowed")]
    DnsName,
    /// A node gets no mail.
    #[error("Email subjectAltNames are not allowed")]
    Email,
    /// A client has no addresses.
    #[error("IP subjectAltNames are not allowed")]
    Address,
    /// A node is no URI.
    #[error("URI subjectAltNames are not allowed")]
    Uri,
    /// Other uses than a node has.
    #[error("usages did not match [{0}]")]
    Usages(&'static str),
}

impl CertificateRequest {
    /// Reads a request, PEM.
    ///
    /// # Errors
    ///
    /// [`CertificateRequestError`]
    pub fn parse(pem: &[u8]) -> Result<Self, CertificateRequestError> {
        if pem.len() > PEM_BYTES_MAX {
            return Err(CertificateRequestError::TooLarge);
        }
        let block = Pem::iter_from_buffer(pem).next().and_then(Result::ok);
        let block = block.filter(|block| block.label == "CERTIFICATE REQUEST");
        let block = block.ok_or(CertificateRequestError::Pem)?;
        let (rest, request) = X509CertificationRequest::from_der(&block.contents)
            .map_err(|_| CertificateRequestError::Malformed)?;
        if !rest.is_empty() {
            return Err(CertificateRequestError::Malformed);
        }
        request
            .verify_signature()
            .map_err(|_| CertificateRequestError::Signature)?;
        let info = &request.certification_request_info;
        let mut wanted = Self {
            public_key: info.subject_pki.raw.to_vec(),
            ..Self::default()
        };
        wanted.read_subject(&info.subject)?;
        for extension in request.requested_extensions().into_iter().flatten() {
            if let ParsedExtension::SubjectAlternativeName(names) = extension {
                for name in &names.general_names {
                    wanted.read_name(name)?;
                }
            }
        }
        Ok(wanted)
    }

    /// The request in the `spec` of a CertificateSigningRequest.
    ///
    /// # Errors
    ///
    /// [`CertificateRequestError`]
    pub fn of_spec(spec: &Map<String, Value>) -> Result<Self, CertificateRequestError> {
        Self::parse(&bytes(spec.text("request")))
    }

    /// The node it is for, if it is for one.
    pub fn node(&self) -> Option<&str> {
        self.common_name
            .strip_prefix(NODE_PREFIX)
            .filter(|name| !name.is_empty())
    }

    /// Checks that it is what a node asks for to be known by the API.
    ///
    /// # Errors
    ///
    /// [`NodeRequestError`]
    pub fn check_node_client(&self, usages: &[String]) -> Result<(), NodeRequestError> {
        self.check_organization()?;
        for (is_asked, error) in [
            (!self.dns_names.is_empty(), NodeRequestError::DnsName),
            (!self.email_addresses.is_empty(), NodeRequestError::Email),
            (!self.ip_addresses.is_empty(), NodeRequestError::Address),
            (!self.uris.is_empty(), NodeRequestError::Uri),
            (self.node().is_none(), NodeRequestError::CommonName),
        ] {
            if is_asked {
                return Err(error);
            }
        }
        match are_uses(usages, "client auth") {
            true => Ok(()),
            false => Err(NodeRequestError::Usages(
                "client auth digital signature key encipherment",
            )),
        }
    }

    /// Checks that it is what a node asks for to serve its own port.
    ///
    /// # Errors
    ///
    /// [`NodeRequestError`]
    pub fn check_node_serving(&self, usages: &[String]) -> Result<(), NodeRequestError> {
        self.check_organization()?;
        for (is_wrong, error) in [
            (
                self.dns_names.is_empty() && self.ip_addresses.is_empty(),
                NodeRequestError::NameRequired,
            ),
            (!self.email_addresses.is_empty(), NodeRequestError::Email),
            (!self.uris.is_empty(), NodeRequestError::Uri),
            (
                !are_uses(usages, "server auth"),
                NodeRequestError::Usages("digital signature key encipherment server auth"),
            ),
            (self.node().is_none(), NodeRequestError::CommonName),
        ] {
            if is_wrong {
                return Err(error);
            }
        }
        Ok(())
    }

    fn check_organization(&self) -> Result<(), NodeRequestError> {
        match self.organizations.as_slice() {
            [one] if one == NODES => Ok(()),
            _ => Err(NodeRequestError::Organization),
        }
    }

    fn read_subject(&mut self, subject: &X509Name<'_>) -> Result<(), CertificateRequestError> {
        let text = |value: Result<&str, _>| {
            let text: Result<&str, CertificateRequestError> =
                value.map_err(|_: x509_parser::error::X509Error| CertificateRequestError::Malformed);
            text.map(str::to_owned)
        };
        let mut names = subject.iter_common_name();
        if let Some(name) = names.next() {
            self.common_name = text(name.as_str())?;
        }
        // Which of several would be the user is nothing to guess about.
        if names.next().is_some() {
            return Err(CertificateRequestError::Malformed);
        }
        for organization in subject.iter_organization() {
            self.organizations.push(text(organization.as_str())?);
        }
        let known = usize::from(!self.common_name.is_empty()) + self.organizations.len();
        self.says_more = subject.iter_attributes().count() > known;
        Ok(())
    }

    fn read_name(&mut self, name: &GeneralName<'_>) -> Result<(), CertificateRequestError> {
        match name {
            GeneralName::DNSName(name) => self.dns_names.push((*name).to_owned()),
            GeneralName::RFC822Name(name) => self.email_addresses.push((*name).to_owned()),
            GeneralName::URI(name) => self.uris.push((*name).to_owned()),
            GeneralName::IPAddress(octets) => {
                let v4 = <[u8; 4]>::try_from(*octets).map(IpAddr::from);
                let address = v4.or_else(|_| <[u8; 16]>::try_from(*octets).map(IpAddr::from));
                self.ip_addresses
                    .push(address.map_err(|_| CertificateRequestError::Address)?);
            }
            _ => self.says_more = true,
        }
        Ok(())
    }
}

/// `digital signature` and `purpose`; `key encipherment` may be there, which RSA keys need.
fn are_uses(usages: &[String], purpose: &str) -> bool {
    let has = |wanted: &str| usages.iter().any(|usage| usage == wanted);
    let only = [purpose, "digital signature", "key encipherment"];
    has(purpose) && has("digital signature") && usages.iter().all(|usage| only.contains(&usage.as_str()))
}

/// Checks that the certificate in a status, if there is one, is PEM certificates and nothing else.
pub(super) fn check_certificates(status: &Map<String, Value>) -> Result<(), String> {
    let text = status.text("certificate");
    if text.is_empty() {
        return Ok(());
    }
    let pem = bytes(text);
    let mut blocks = 0;
    for block in Pem::iter_from_buffer(&pem) {
        let block = block.map_err(|_| "must contain at least one CERTIFICATE PEM block".to_owned())?;
        if block.label != "CERTIFICATE" {
            let label = &block.label;
            return Err(format!(
                "only CERTIFICATE PEM blocks are allowed, found {label:?}"
            ));
        }
        X509Certificate::from_der(&block.contents).map_err(|_| "malformed certificate".to_owned())?;
        blocks += 1;
    }
    match blocks {
        0 => Err("must contain at least one CERTIFICATE PEM block".to_owned()),
        _ => Ok(()),
    }
}
