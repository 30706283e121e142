//! Signing, storing and reading certificates.

use std::{collections::BTreeSet, fmt, net::IpAddr, path::Path, time::Duration};

use jiff::Timestamp;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, SanType, SubjectPublicKeyInfo,
};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate, parse_x509_pem};

use hotmap_kinds::CertificateRequest;

use super::{CredentialsError, Identity, SignError, files};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Ten years: clients hold the authority in their kubeconfigs.
const AUTHORITY_LIFE: Duration = DAY.saturating_mul(3_652);
/// One year, as kubeadm gives.
const LEAF_LIFE: Duration = DAY.saturating_mul(365);
/// Certificates are valid from a while before they are signed: clocks differ, and a clock that is set back by a day after the
/// first start must not lock everybody out for a day.
const CLOCK_SKEW: Duration = Duration::from_secs(25 * 60 * 60);
/// The same for certificates that others asked for, as upstream's signer does it.
const BACKDATE: Duration = Duration::from_secs(5 * 60);
/// Shorter ones do not end earlier for having begun earlier.
const SHORT: Duration = Duration::from_secs(8 * 60 * 60);

/// A certificate and its key, PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct KeyPairPem {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl fmt::Debug for KeyPairPem {
    // The key is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPairPem").finish_non_exhaustive()
    }
}

/// What a leaf certificate is for.
pub(super) enum Purpose<'a> {
    Serving(&'a BTreeSet<String>),
    Client(&'a Identity),
}

/// The certificate that signs all others.
pub(super) struct Authority {
    pub(super) certificate_pem: String,
    der: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

impl fmt::Debug for Authority {
    // The key is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    pub(super) fn open(directory: &Path, now: Timestamp) -> Result<Self, CredentialsError> {
        let paths = ["ca.crt", "ca.key"].map(|name| directory.join(name));
        let [certificate, key] = [files::read(&paths[0])?, files::read(&paths[1])?];
        let damaged = |path: &Path, reason: &dyn fmt::Display| CredentialsError::Damaged {
            path: path.to_owned(),
            reason: reason.to_string(),
        };
        match (certificate, key) {
            (Some(certificate), Some(key)) => {
                let key = KeyPair::from_pem(&key).map_err(|error| damaged(&paths[1], &error))?;
                let der =
                    der_of(&certificate).ok_or_else(|| damaged(&paths[0], &"it is no PEM certificate"))?;
                check_authority(&der, &key, now).map_err(|reason| damaged(&paths[0], &reason))?;
                let issuer = Issuer::from_ca_cert_pem(&certificate, key)
                    .map_err(|error| damaged(&paths[0], &error))?;
                Ok(Self {
                    certificate_pem: certificate,
                    der,
                    issuer,
                })
            }
            // A key without its certificate signed nothing that anybody has seen: the certificate is written last.
            (None, _) => Self::create(&paths, now),
            (Some(_), None) => Err(damaged(&paths[1], &"it is missing")),
        }
    }

    fn create(paths: &[std::path::PathBuf; 2], now: Timestamp) -> Result<Self, CredentialsError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = parameters("hotmap-ca", None, AUTHORITY_LIFE, now);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::CrlSign,
        ];
        let certificate = params.self_signed(&key)?;
        files::write(&paths[1], key.serialize_pem().as_bytes())?;
        files::write(&paths[0], certificate.pem().as_bytes())?;
        Ok(Self {
            certificate_pem: certificate.pem(),
            der: certificate.der().to_vec(),
            issuer: Issuer::new(params, key),
        })
    }

    /// The pair at `<stem>.crt` and `<stem>.key`; signed anew where it is missing, damaged, foreign or due. The flag
    /// says whether it was.
    pub(super) fn leaf(
        &self,
        stem: &Path,
        purpose: &Purpose<'_>,
        now: Timestamp,
    ) -> Result<(KeyPairPem, bool), CredentialsError> {
        let with = |extension: &str| {
            let mut path = stem.as_os_str().to_owned();
            path.push(extension);
            std::path::PathBuf::from(path)
        };
        let (certificate_path, key_path) = (with(".crt"), with(".key"));
        if let (Some(certificate), Some(key)) = (files::read(&certificate_path)?, files::read(&key_path)?)
            && self.still_serves(&certificate, &key, purpose, now)
        {
            return Ok((KeyPairPem { certificate, key }, false));
        }
        let signed = self.sign(purpose, now)?;
        files::write(&key_path, signed.key.as_bytes())?;
        files::write(&certificate_path, signed.certificate.as_bytes())?;
        Ok((signed, true))
    }

    fn sign(&self, purpose: &Purpose<'_>, now: Timestamp) -> Result<KeyPairPem, CredentialsError> {
        let mut params = match purpose {
            Purpose::Serving(_) => parameters("kube-apiserver", None, LEAF_LIFE, now),
            Purpose::Client(identity) => parameters(&identity.user(), identity.group(), LEAF_LIFE, now),
        };
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![match purpose {
            Purpose::Serving(_) => ExtendedKeyUsagePurpose::ServerAuth,
            Purpose::Client(_) => ExtendedKeyUsagePurpose::ClientAuth,
        }];
        if let Purpose::Serving(names) = purpose {
            for name in *names {
                params.subject_alt_names.push(match name.parse::<IpAddr>() {
                    Ok(address) => SanType::IpAddress(address),
                    Err(_) => SanType::DnsName(name.as_str().try_into()?),
                });
            }
        }
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(KeyPairPem {
            certificate: certificate.pem(),
            key: key.serialize_pem(),
        })
    }

    /// A certificate of what somebody else asked for, PEM: their key, their names, and none of their extensions.
    pub(super) fn sign_request(
        &self,
        request: &CertificateRequest,
        usages: &[String],
        life: Duration,
        now: Timestamp,
    ) -> Result<String, SignError> {
        let has_more = !request.email_addresses.is_empty() || !request.uris.is_empty() || request.says_more;
        if has_more || request.organizations.len() > 1 || request.common_name.is_empty() {
            return Err(SignError::Unsupported);
        }
        let organization = request.organizations.first().map(String::as_str);
        let mut params = parameters(&request.common_name, organization, life, now);
        let (_, authority) = X509Certificate::from_der(&self.der).map_err(|_| SignError::Expired)?;
        let end = authority.validity().not_after.timestamp();
        let (now, end) = (
            u64::try_from(now.as_second()).unwrap_or_default(),
            u64::try_from(end).unwrap_or_default(),
        );
        if now >= end {
            return Err(SignError::Expired);
        }
        let of_life = if life < SHORT {
            life
        } else {
            life.saturating_sub(BACKDATE)
        };
        let at = |seconds: u64| rcgen::date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds);
        params.not_before = at(now.saturating_sub(BACKDATE.as_secs()));
        params.not_after = at((now + of_life.as_secs()).min(end));
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        for usage in usages {
            match usage.as_str() {
                "digital signature" | "signing" => params.key_usages.push(KeyUsagePurpose::DigitalSignature),
                "key encipherment" => params.key_usages.push(KeyUsagePurpose::KeyEncipherment),
                "client auth" => params
                    .extended_key_usages
                    .push(ExtendedKeyUsagePurpose::ClientAuth),
                "server auth" => params
                    .extended_key_usages
                    .push(ExtendedKeyUsagePurpose::ServerAuth),
                other => return Err(SignError::Usage(other.to_owned())),
            }
        }
        for name in &request.dns_names {
            let dns_name = name
                .as_str()
                .try_into()
                .map_err(|_| SignError::Name(name.clone()))?;
            params.subject_alt_names.push(SanType::DnsName(dns_name));
        }
        params
            .subject_alt_names
            .extend(request.ip_addresses.iter().copied().map(SanType::IpAddress));
        let key = SubjectPublicKeyInfo::from_der(&request.public_key)?;
        Ok(params.signed_by(&key, &self.issuer)?.pem())
    }

    fn still_serves(&self, certificate: &str, key: &str, purpose: &Purpose<'_>, now: Timestamp) -> bool {
        let (Some(der), Ok(key)) = (der_of(certificate), KeyPair::from_pem(key)) else {
            return false;
        };
        let (Ok((_, held)), Ok((_, authority))) = (
            X509Certificate::from_der(&der),
            X509Certificate::from_der(&self.der),
        ) else {
            return false;
        };
        let (start, end) = (
            held.validity().not_before.timestamp(),
            held.validity().not_after.timestamp(),
        );
        let due = start + (end - start) / 5 * 4;
        (start..due).contains(&now.as_second())
            && held.public_key().subject_public_key.data == key.public_key_raw()
            && held.verify_signature(Some(authority.public_key())).is_ok()
            && match purpose {
                Purpose::Serving(names) => names.is_subset(&names_in(&held)),
                Purpose::Client(identity) => subject(&held).is_some_and(|(user, groups)| {
                    user == identity.user() && groups.iter().map(String::as_str).eq(identity.group())
                }),
            }
    }
}

/// The user (common name) and the groups (organisations) of a certificate, DER; `None` without a common name.
pub(crate) fn subject_of(der: &[u8]) -> Option<(String, Vec<String>)> {
    subject(&X509Certificate::from_der(der).ok()?.1)
}

fn subject(certificate: &X509Certificate<'_>) -> Option<(String, Vec<String>)> {
    let subject = certificate.subject();
    let user = subject.iter_common_name().next()?.as_str().ok()?.to_owned();
    let groups = subject.iter_organization().filter_map(|name| name.as_str().ok());
    Some((user, groups.map(str::to_owned).collect())).filter(|(user, _)| !user.is_empty())
}

fn names_in(certificate: &X509Certificate<'_>) -> BTreeSet<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else {
        return BTreeSet::new();
    };
    let names = extension
        .value
        .general_names
        .iter()
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string()),
            _ => None,
        });
    names.collect()
}

fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => <[u8; 4]>::try_from(bytes).ok().map(IpAddr::from),
        _ => <[u8; 16]>::try_from(bytes).ok().map(IpAddr::from),
    }
}

fn check_authority(der: &[u8], key: &KeyPair, now: Timestamp) -> Result<(), &'static str> {
    let (_, held) = X509Certificate::from_der(der).map_err(|_| "it is no certificate")?;
    if held.public_key().subject_public_key.data != key.public_key_raw() {
        return Err("it does not belong to ca.key");
    }
    if held.validity().not_after.timestamp() <= now.as_second() {
        return Err(
            "it has expired: remove the pki directory to make a new authority, and hand out new kubeconfigs",
        );
    }
    Ok(())
}

fn der_of(pem: &str) -> Option<Vec<u8>> {
    parse_x509_pem(pem.as_bytes())
        .ok()
        .filter(|(_, pem)| pem.label == "CERTIFICATE")
        .map(|(_, pem)| pem.contents)
}

fn parameters(
    common_name: &str,
    organisation: Option<&str>,
    life: Duration,
    now: Timestamp,
) -> CertificateParams {
    let epoch = rcgen::date_time_ymd(1970, 1, 1);
    let seconds = u64::try_from(now.as_second()).unwrap_or_default();
    let start = epoch + Duration::from_secs(seconds).saturating_sub(CLOCK_SKEW);
    let mut params = CertificateParams::default();
    params.not_before = start;
    params.not_after = start + CLOCK_SKEW + life;
    params.distinguished_name = DistinguishedName::new();
    if let Some(organisation) = organisation {
        params
            .distinguished_name
            .push(DnType::OrganizationName, organisation);
    }
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}
