//! TLS as clients of Kubernetes expect it: 1.2 or 1.3, `h2` and `http/1.1`, a client certificate asked for but not needed.
//!
//! The handshake accepts any client certificate whose key the client proves to hold; whether our authority signed it is
//! checked right after. So a foreign or expired certificate gets an answer, 401, and not a broken connection, as upstream
//! does it. Keys of kinds that the verifier does not know (RSA under 2048 bits, DSA) do fail the handshake.

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::RwLock;
use rustls::{
    DigitallySignedStruct, DistinguishedName, Error, RootCertStore, ServerConfig, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    crypto::{CryptoProvider, ring},
    server::{
        ClientHello, ResolvesServerCert, WebPkiClientVerifier,
        danger::{ClientCertVerified, ClientCertVerifier},
    },
    sign::CertifiedKey,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject};

use crate::credentials::{Credentials, KeyPairPem};

/// A client that has not finished its handshake by then is cut off.
pub(crate) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// Why TLS cannot be set up: our own certificates do not fit each other.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A stored certificate or key is no PEM.
    #[error("a stored certificate cannot be read")]
    Pem(#[from] rustls_pki_types::pem::Error),
    /// The certificates are refused by the TLS library.
    #[error("the stored certificates cannot be used")]
    Rustls(#[from] Error),
    /// The authority cannot be a root of trust.
    #[error("the stored authority cannot verify clients")]
    Verifier(#[from] rustls::server::VerifierBuilderError),
}

/// The server's side of TLS; its certificate can be exchanged while it serves.
#[derive(Debug)]
pub(crate) struct Tls {
    pub(crate) config: Arc<ServerConfig>,
    serving: Arc<Serving>,
    clients: Arc<dyn ClientCertVerifier>,
}

impl Tls {
    pub(crate) fn new(credentials: &Credentials) -> Result<Self, TlsError> {
        Self::of(credentials.authority_pem(), &credentials.serving())
    }

    /// Serves `pair` to clients of that authority.
    pub(crate) fn of(authority_pem: &str, pair: &KeyPairPem) -> Result<Self, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        for authority in CertificateDer::pem_slice_iter(authority_pem.as_bytes()) {
            roots.add(authority?)?;
        }
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .allow_unauthenticated()
            .build()?;
        let serving = Arc::new(Serving(RwLock::new(certified_key(pair, &provider)?)));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(AnyHeldKey(clients.clone())))
            .with_cert_resolver(serving.clone());
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        // Resumption would keep session state per client; our clients hold their connections.
        config.session_storage = Arc::new(rustls::server::NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
        Ok(Self {
            config: Arc::new(config),
            serving,
            clients,
        })
    }

    /// Serves this certificate to every connection from now on.
    pub(crate) fn exchange(&self, pair: &KeyPairPem) -> Result<(), TlsError> {
        *self.serving.0.write() = certified_key(pair, self.config.crypto_provider())?;
        Ok(())
    }

    /// Whether our authority signed the client's certificate, for clients, and it is valid now.
    pub(crate) fn verify_client(&self, chain: &[CertificateDer<'_>]) -> Result<(), Error> {
        let Some((leaf, intermediates)) = chain.split_first() else {
            return Err(Error::NoCertificatesPresented);
        };
        self.clients
            .verify_client_cert(leaf, intermediates, UnixTime::now())
            .map(drop)
    }
}

fn certified_key(pair: &KeyPairPem, provider: &CryptoProvider) -> Result<Arc<CertifiedKey>, TlsError> {
    let chain = CertificateDer::pem_slice_iter(pair.certificate.as_bytes()).collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes())?;
    Ok(Arc::new(CertifiedKey::from_der(chain, key, provider)?))
}

/// The certificate served now.
struct Serving(RwLock<Arc<CertifiedKey>>);

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Serving")
    }
}

impl ResolvesServerCert for Serving {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.read().clone())
    }
}

/// Asks for a certificate and checks that its key signed the handshake, nothing more.
#[derive(Debug)]
struct AnyHeldKey(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AnyHeldKey {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
