//! The server's own certificate authority and every certificate it signs.
//!
//! ```text
//!   <data-dir>/pki/ca.crt, ca.key              10 years, made on first start
//!                 ├─ serving.crt, serving.key   1 year, for the addresses of this server
//!                 ├─ <identity>.crt, .key       1 year, one pair per client identity
//!                 └─ what others asked for      at most 1 year, nothing of it is kept here
//!              sa.key                          signs tokens of service accounts, made on first start
//!              sa-*.key, sa-*.pub              verify tokens that earlier keys have signed
//! ```
//!
//! All keys are ECDSA P-256; all files are 0600 in a directory that is 0700. A certificate is signed anew when 80 % of
//! its life is over, when the authority has changed, or when the serving certificate lacks a name. CA and leaves carry
//! basicConstraints, keyUsage and both key identifiers: Python 3.13 refuses chains without them.

mod certificate;
mod files;
mod kubeconfig;
mod signer;
mod token_keys;

use std::{
    collections::BTreeSet,
    fmt, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    path::{Path, PathBuf},
    sync::Arc,
};

use jiff::Timestamp;
use parking_lot::Mutex;

pub(crate) use certificate::KeyPairPem;
pub(crate) use certificate::subject_of;
use certificate::{Authority, Purpose};
pub use signer::{CertificateSigner, SignError};
pub(crate) use token_keys::TokenKeys;

/// Who a client certificate stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Identity {
    /// `kubernetes-admin` in `system:masters`: may do everything.
    Admin,
    /// `system:node:NAME` in `system:nodes`.
    Node(String),
    /// `system:hotmap-controllers`: what controllers need.
    Controllers,
    /// `kube-apiserver-kubelet-client` in `system:masters`: this server towards agents.
    ApiServer,
}

/// The user name of [`Identity::Controllers`].
pub(crate) const CONTROLLERS_USER: &str = "system:hotmap-controllers";

impl Identity {
    /// The common name: the user.
    pub fn user(&self) -> String {
        match self {
            Identity::Admin => "kubernetes-admin".to_owned(),
            Identity::Node(name) => format!("system:node:{name}"),
            Identity::Controllers => CONTROLLERS_USER.to_owned(),
            Identity::ApiServer => "kube-apiserver-kubelet-client".to_owned(),
        }
    }

    /// The organisation: the group, if there is one.
    pub fn group(&self) -> Option<&'static str> {
        match self {
            Identity::Admin | Identity::ApiServer => Some("system:masters"),
            Identity::Node(_) => Some("system:nodes"),
            Identity::Controllers => None,
        }
    }

    fn file_stem(&self) -> String {
        match self {
            Identity::Admin => "admin".to_owned(),
            Identity::Node(name) => format!("node-{name}"),
            Identity::Controllers => "controllers".to_owned(),
            Identity::ApiServer => "apiserver-kubelet-client".to_owned(),
        }
    }
}

/// A certificate chain and its key, as PEM.
#[derive(Clone, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The certificate.
    pub certificate_pem: String,
    /// Its private key, PKCS #8.
    pub key_pem: String,
}

impl fmt::Debug for ClientCertificate {
    // The key is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientCertificate").finish_non_exhaustive()
    }
}

/// Why certificates cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// A file or the directory cannot be read or written.
    #[error("cannot {action} {}", .path.display())]
    File {
        /// What was tried: `read`, `write`, `create`.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A stored authority or token key is damaged. It is not replaced: clients trust it, tokens need it.
    #[error("{} is damaged: {reason}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A name cannot stand in a certificate.
    #[error("{name:?} cannot be a name in a certificate")]
    Name {
        /// The name.
        name: String,
    },
    /// Signing failed.
    #[error("cannot sign a certificate")]
    Sign(#[from] rcgen::Error),
}

/// The authority of one data directory. Cheap to clone; all clones are one.
///
/// Its methods read and write small files: call them from a thread that may block.
#[derive(Debug, Clone)]
pub struct Credentials(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    directory: PathBuf,
    names: BTreeSet<String>,
    authority: Authority,
    token_keys: Arc<TokenKeys>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    serving: KeyPairPem,
    /// Identities handed out: their files are renewed too.
    issued: BTreeSet<Identity>,
    kubeconfigs: Vec<(PathBuf, String, Identity)>,
}

impl Credentials {
    /// Opens `<data_dir>/pki`, making what is missing or due: authority and serving certificate.
    ///
    /// `more_names` are DNS names or addresses besides localhost, the loopback addresses, the host's own name and
    /// `kubernetes[.default[.svc[.cluster.local]]]`.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`]; a leaf certificate that cannot be read as one is replaced, a damaged authority or token key
    /// is not.
    pub fn open(data_dir: &Path, more_names: &[String], now: Timestamp) -> Result<Self, CredentialsError> {
        let directory = data_dir.join("pki");
        files::create_directory(&directory)?;
        let authority = Authority::open(&directory, now)?;
        let names = serving_names(more_names)?;
        let serving = Purpose::Serving(&names);
        let serving = authority.leaf(&directory.join("serving"), &serving, now)?.0;
        let token_keys = Arc::new(TokenKeys::open(&directory)?);
        let state = State {
            serving,
            issued: BTreeSet::new(),
            kubeconfigs: Vec::new(),
        };
        Ok(Self(Arc::new(Inner {
            directory,
            names,
            authority,
            token_keys,
            state: Mutex::new(state),
        })))
    }

    /// The authority's certificate, PEM: what clients trust.
    pub fn authority_pem(&self) -> &str {
        &self.0.authority.certificate_pem
    }

    /// A client's certificate: the stored one, or a new one where that is missing or due.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`]
    pub fn client(&self, identity: &Identity, now: Timestamp) -> Result<ClientCertificate, CredentialsError> {
        self.0.state.lock().issued.insert(identity.clone());
        let (pair, _) = self.client_pair(identity, now)?;
        Ok(ClientCertificate {
            certificate_pem: pair.certificate,
            key_pem: pair.key,
        })
    }

    /// Writes a kubeconfig with everything embedded, 0600, whole or not at all. It is written again when its
    /// certificate is renewed.
    ///
    /// `server` is the URL, such as `https://127.0.0.1:6443`.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`]
    pub fn write_kubeconfig(
        &self,
        path: &Path,
        server: &str,
        identity: &Identity,
        now: Timestamp,
    ) -> Result<(), CredentialsError> {
        let client = self.client(identity, now)?;
        files::write(
            path,
            kubeconfig::render(self.authority_pem(), server, identity, &client).as_bytes(),
        )?;
        let entry = (path.to_owned(), server.to_owned(), identity.clone());
        let mut state = self.0.state.lock();
        state.kubeconfigs.retain(|(held, ..)| held != path);
        state.kubeconfigs.push(entry);
        Ok(())
    }

    /// Signs anew what is past 80 % of its life: the serving certificate, every client certificate handed out, and the
    /// kubeconfigs they stand in. Returns whether the serving certificate changed.
    ///
    /// # Errors
    ///
    /// [`CredentialsError`]; what was renewed before it stays renewed, the rest stays as it is.
    pub fn renew(&self, now: Timestamp) -> Result<bool, CredentialsError> {
        let purpose = Purpose::Serving(&self.0.names);
        let (serving, is_new) = self
            .0
            .authority
            .leaf(&self.0.directory.join("serving"), &purpose, now)?;
        self.0.state.lock().serving = serving;
        let issued = self.0.state.lock().issued.clone();
        for identity in issued {
            let (_, renewed) = self.client_pair(&identity, now)?;
            let kubeconfigs = self.0.state.lock().kubeconfigs.clone();
            let due = kubeconfigs.iter().filter(|(_, _, of)| renewed && *of == identity);
            for (path, server, identity) in due {
                self.write_kubeconfig(path, server, identity, now)?;
            }
        }
        Ok(is_new)
    }

    /// What signs for others, and can nothing else.
    pub fn signer(&self) -> CertificateSigner {
        CertificateSigner(self.0.clone())
    }

    /// The keys of service account tokens.
    pub(crate) fn token_keys(&self) -> &Arc<TokenKeys> {
        &self.0.token_keys
    }

    /// The serving certificate and after it the authority's: who joins knows that by its hash alone.
    pub(crate) fn serving(&self) -> KeyPairPem {
        let mut pair = self.0.state.lock().serving.clone();
        pair.certificate.push_str(self.authority_pem());
        pair
    }

    fn client_pair(
        &self,
        identity: &Identity,
        now: Timestamp,
    ) -> Result<(KeyPairPem, bool), CredentialsError> {
        let stem = identity.file_stem();
        if stem.contains(['/', '\0']) {
            return Err(CredentialsError::Name {
                name: identity.user(),
            });
        }
        self.0
            .authority
            .leaf(&self.0.directory.join(stem), &Purpose::Client(identity), now)
    }
}

fn serving_names(more: &[String]) -> Result<BTreeSet<String>, CredentialsError> {
    let mut names: BTreeSet<String> = [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
    ]
    .map(str::to_owned)
    .into();
    names.extend(
        [
            IpAddr::from(Ipv4Addr::LOCALHOST),
            IpAddr::from(Ipv6Addr::LOCALHOST),
        ]
        .map(|ip| ip.to_string()),
    );
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    names.extend(Some(host).filter(|host| is_dns_name(host)));
    for name in more {
        if name.parse::<IpAddr>().is_err() && !is_dns_name(name) {
            return Err(CredentialsError::Name { name: name.clone() });
        }
        names.insert(name.clone());
    }
    Ok(names)
}

/// A name that clients can compare: labels of letters, digits and hyphens, the first of them may be `*`.
fn is_dns_name(name: &str) -> bool {
    let label = |(at, label): (usize, &str)| {
        let is_plain = label
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        (at == 0 && label == "*") || (!label.is_empty() && label.len() <= 63 && is_plain)
    };
    name.len() <= 253 && name.split('.').enumerate().all(label)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use x509_parser::prelude::*;

    use super::*;

    fn now() -> Timestamp {
        Timestamp::from_second(1_800_000_000).expect("a date")
    }

    fn later(days: i64) -> Timestamp {
        Timestamp::from_second(now().as_second() + days * 24 * 60 * 60).expect("a date")
    }

    fn der(pem: &str) -> Vec<u8> {
        parse_x509_pem(pem.as_bytes()).expect("PEM").1.contents
    }

    #[test]
    fn certificates_carry_what_strict_clients_ask_for() {
        let directory = tempfile::tempdir().expect("a directory");
        let credentials = Credentials::open(
            directory.path(),
            &["10.1.2.3".into(), "api.example".into()],
            now(),
        )
        .expect("fresh credentials");
        let admin = credentials
            .client(&Identity::Admin, now())
            .expect("an admin certificate");
        let authority = der(credentials.authority_pem());
        let (_, authority) = X509Certificate::from_der(&authority).expect("a certificate");
        for (what, pem) in [
            ("ca", credentials.authority_pem()),
            ("serving", &credentials.serving().certificate),
            ("admin", &admin.certificate_pem),
        ] {
            let der = der(pem);
            let (_, held) = X509Certificate::from_der(&der).expect("a certificate");
            assert!(
                held.verify_signature(Some(authority.public_key())).is_ok(),
                "{what}"
            );
            assert!(held.basic_constraints().expect("readable").is_some(), "{what}");
            assert!(held.key_usage().expect("readable").is_some(), "{what}");
            for oid in [
                oid_registry::OID_X509_EXT_SUBJECT_KEY_IDENTIFIER,
                oid_registry::OID_X509_EXT_AUTHORITY_KEY_IDENTIFIER,
            ] {
                assert!(
                    held.get_extension_unique(&oid).expect("readable").is_some(),
                    "{what} {oid}"
                );
            }
        }
        let (user, groups) = subject_of(&der(&admin.certificate_pem)).expect("a subject");
        assert_eq!(
            (user.as_str(), groups),
            ("kubernetes-admin", vec!["system:masters".to_owned()])
        );
        let serving = der(&credentials.serving().certificate);
        let (_, serving) = X509Certificate::from_der(&serving).expect("a certificate");
        let names = format!("{:?}", serving.subject_alternative_name());
        for name in [
            "localhost",
            "kubernetes.default.svc",
            "api.example",
            "[10, 1, 2, 3]",
        ] {
            assert!(names.contains(name), "{name} in {names}");
        }
    }

    #[test]
    fn a_clock_that_is_set_back_by_a_day_locks_nobody_out() {
        let directory = tempfile::tempdir().expect("a directory");
        let credentials = Credentials::open(directory.path(), &[], now()).expect("credentials");
        let admin = credentials.client(&Identity::Admin, now()).expect("a pair");
        let serving = credentials.serving().certificate;
        for pem in [credentials.authority_pem(), &serving, &admin.certificate_pem] {
            let der = der(pem);
            let (_, held) = X509Certificate::from_der(&der).expect("a certificate");
            let validity = held.validity();
            let day = 24 * 60 * 60;
            assert!(validity.not_before.timestamp() <= now().as_second() - day);
            assert!(validity.not_after.timestamp() >= now().as_second() + 300 * day);
        }
    }

    #[test]
    fn what_others_ask_for_is_signed_within_limits() {
        let directory = tempfile::tempdir().expect("a directory");
        let credentials = Credentials::open(directory.path(), &[], now()).expect("credentials");
        let signer = credentials.signer();
        let key = rcgen::KeyPair::generate().expect("a key");
        let request = hotmap_kinds::CertificateRequest {
            common_name: "system:node:a".to_owned(),
            organizations: vec!["system:nodes".to_owned()],
            dns_names: vec!["a".to_owned()],
            ip_addresses: vec![Ipv4Addr::LOCALHOST.into()],
            public_key: rcgen::PublicKeyData::subject_public_key_info(&key),
            ..hotmap_kinds::CertificateRequest::default()
        };
        let usages = ["digital signature", "server auth"].map(str::to_owned);
        for (asked, life) in [
            (None, 365 * 86_400 - 300),
            (Some(3_600), 3_600),
            (Some(1), 600),
            (Some(i64::MAX), 365 * 86_400 - 300),
        ] {
            let pem = signer
                .sign(&request, &usages, asked, now())
                .expect("a certificate");
            let der = der(&pem);
            let (_, held) = X509Certificate::from_der(&der).expect("a certificate");
            let validity = held.validity();
            assert_eq!(validity.not_before.timestamp(), now().as_second() - 300);
            assert_eq!(
                validity.not_after.timestamp(),
                now().as_second() + life,
                "{asked:?}"
            );
            assert_eq!(held.public_key().raw, request.public_key);
            let of = subject_of(&der).expect("a subject");
            assert_eq!(of, ("system:node:a".to_owned(), vec!["system:nodes".to_owned()]));
            assert!(!held.is_ca());
        }
        let last = signer
            .sign(&request, &usages, None, later(3_651))
            .expect("a certificate");
        let (ca, last) = (der(credentials.authority_pem()), der(&last));
        let end = |der: &[u8]| {
            X509Certificate::from_der(der)
                .expect("a certificate")
                .1
                .validity()
                .not_after
                .timestamp()
        };
        assert_eq!(end(&ca), end(&last), "not longer than the authority");
        assert!(signer.sign(&request, &usages, None, later(3_700)).is_err());
        let signs = |usages: &[&str], request: &hotmap_kinds::CertificateRequest| {
            let usages: Vec<String> = usages.iter().map(|&usage| usage.to_owned()).collect();
            signer.sign(request, &usages, None, now()).is_ok()
        };
        assert!(!signs(&["cert sign"], &request));
        let groups = vec!["a".to_owned(), "b".to_owned()];
        assert!(!signs(
            &["client auth"],
            &hotmap_kinds::CertificateRequest {
                organizations: groups,
                ..request.clone()
            }
        ));
        assert!(signer.is_name_of_api("localhost") && !signer.is_name_of_api("a"));
    }

    #[test]
    fn certificates_live_on_until_they_are_due() {
        let directory = tempfile::tempdir().expect("a directory");
        let open =
            |names: &[String], at| Credentials::open(directory.path(), names, at).expect("credentials");
        let first = open(&[], now());
        let admin = first.client(&Identity::Admin, now()).expect("a certificate");
        let again = open(&[], later(200));
        assert_eq!(first.authority_pem(), again.authority_pem());
        assert_eq!(first.serving().certificate, again.serving().certificate);
        assert_eq!(
            admin,
            again.client(&Identity::Admin, later(200)).expect("a certificate")
        );

        let renamed = open(&["new.example".into()], later(200));
        assert_ne!(
            first.serving().certificate,
            renamed.serving().certificate,
            "a new name"
        );
        assert!(!renamed.renew(later(201)).expect("nothing to do"));
        assert!(renamed.renew(later(500)).expect("renewal"), "past four fifths");
        assert_ne!(
            admin,
            renamed
                .client(&Identity::Admin, later(500))
                .expect("a certificate")
        );
    }

    #[test]
    fn files_are_for_the_owner_alone_and_kubeconfigs_follow_renewals() {
        let directory = tempfile::tempdir().expect("a directory");
        let credentials = Credentials::open(directory.path(), &[], now()).expect("credentials");
        let kubeconfig = directory.path().join("admin.kubeconfig");
        credentials
            .write_kubeconfig(&kubeconfig, "https://127.0.0.1:6443", &Identity::Admin, now())
            .expect("a kubeconfig");
        for entry in std::fs::read_dir(directory.path().join("pki")).expect("the directory") {
            let entry = entry.expect("an entry");
            let mode = entry.metadata().expect("metadata").permissions().mode() & 0o777;
            assert_eq!(mode, 0o600, "{:?}", entry.path());
        }
        let before = std::fs::read_to_string(&kubeconfig).expect("text");
        assert!(before.contains("server: https://127.0.0.1:6443"));
        credentials.renew(later(400)).expect("renewal");
        assert_ne!(before, std::fs::read_to_string(&kubeconfig).expect("text"));
    }

    #[test]
    fn a_damaged_authority_is_not_replaced_and_a_damaged_leaf_is() {
        let directory = tempfile::tempdir().expect("a directory");
        Credentials::open(directory.path(), &[], now()).expect("credentials");
        std::fs::write(directory.path().join("pki/serving.crt"), "nonsense").expect("written");
        Credentials::open(directory.path(), &[], now()).expect("a new leaf");
        std::fs::write(directory.path().join("pki/ca.key"), "nonsense").expect("written");
        let refused = Credentials::open(directory.path(), &[], now()).expect_err("a damaged key");
        assert!(matches!(refused, CredentialsError::Damaged { .. }), "{refused}");
    }

    #[test]
    fn names_that_no_client_could_match_are_refused() {
        for (name, fine) in [
            ("a.example", true),
            ("*.example", true),
            ("fd00::1", true),
            ("", false),
            ("a b", false),
        ] {
            assert_eq!(serving_names(&[name.to_owned()]).is_ok(), fine, "{name:?}");
        }
    }
}
