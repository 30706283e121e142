//! The keys that sign and verify the tokens of service accounts.
//!
//! One signs: `sa.key`, PKCS #8, ECDSA P-256, made on first start. It verifies too, and so does every `sa-*.key` (PKCS #8)
//! and `sa-*.pub` (SubjectPublicKeyInfo) beside it: renaming `sa.key` to `sa-old.key` begins a new key with the next start,
//! while tokens of the old one go on being good.
//!
//! Key ids follow `pkg/serviceaccount/jwt.go` (`keyIDFromPublicKey`), Kubernetes 1.36.

use std::{fmt, fs, path::Path};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256};
use ring::{
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
        UnparsedPublicKey,
    },
};
use rustls_pki_types::{PrivatePkcs8KeyDer, SubjectPublicKeyInfoDer, pem::PemObject};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{CredentialsError, files};

/// What stands in front of the point in the SubjectPublicKeyInfo of a P-256 key (RFC 5480).
const P256_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
/// An uncompressed point: a mark and two coordinates.
const POINT_LEN: usize = 65;
const COORDINATE_LEN: usize = 32;

/// All keys of tokens, read once.
pub(crate) struct TokenKeys {
    signing: EcdsaKeyPair,
    random: SystemRandom,
    /// The signing one first.
    verifying: Vec<VerifyingKey>,
}

/// A public key and its id.
struct VerifyingKey {
    id: String,
    point: [u8; POINT_LEN],
}

impl fmt::Debug for TokenKeys {
    // The signing key is a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<&str> = self.verifying.iter().map(|key| key.id.as_str()).collect();
        f.debug_struct("TokenKeys")
            .field("verifying", &ids)
            .finish_non_exhaustive()
    }
}

impl TokenKeys {
    /// Reads every key of the directory, and makes the signing one if it is missing.
    pub(super) fn open(directory: &Path) -> Result<Self, CredentialsError> {
        let path = directory.join("sa.key");
        let pem = match files::read(&path)? {
            Some(pem) => pem,
            None => {
                let pem = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?.serialize_pem();
                files::write(&path, pem.as_bytes())?;
                pem
            }
        };
        let random = SystemRandom::new();
        let signing = key_pair(&path, &pem, &random)?;
        let mut verifying = vec![VerifyingKey::new(&path, signing.public_key().as_ref())?];
        for path in others(directory)? {
            let pem = files::read(&path)?.unwrap_or_default();
            let key = if path.extension().is_some_and(|extension| extension == "pub") {
                VerifyingKey::of_public_pem(&path, &pem)?
            } else {
                VerifyingKey::new(&path, key_pair(&path, &pem, &random)?.public_key().as_ref())?
            };
            if verifying.iter().all(|held| held.id != key.id) {
                verifying.push(key);
            }
        }
        Ok(Self {
            signing,
            random,
            verifying,
        })
    }

    /// The id of the key that signs.
    pub(crate) fn signing_id(&self) -> &str {
        &self.verifying[0].id
    }

    /// Signs as ES256 (RFC 7518): both numbers, 32 bytes each.
    ///
    /// # Errors
    ///
    /// The system has no randomness.
    pub(crate) fn sign(&self, message: &[u8]) -> Result<Vec<u8>, ring::error::Unspecified> {
        Ok(self.signing.sign(&self.random, message)?.as_ref().to_vec())
    }

    /// Whether one of the keys has signed this: the one with the id, if there is an id.
    pub(crate) fn verify(&self, id: Option<&str>, message: &[u8], signature: &[u8]) -> bool {
        let mut asked = self
            .verifying
            .iter()
            .filter(|key| id.is_none_or(|id| id == key.id));
        asked.any(|key| {
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, &key.point)
                .verify(message, signature)
                .is_ok()
        })
    }

    /// The public keys as a JSON Web Key Set (RFC 7517).
    pub(crate) fn key_set(&self) -> Value {
        let keys = self.verifying.iter().map(|key| {
            let (x, y) = key.point[1..].split_at(COORDINATE_LEN);
            json!({
                "use": "sig", "kty": "EC", "kid": key.id, "crv": "P-256", "alg": "ES256",
                "x": BASE64_URL_SAFE_NO_PAD.encode(x), "y": BASE64_URL_SAFE_NO_PAD.encode(y),
            })
        });
        json!({"keys": keys.collect::<Vec<_>>()})
    }
}

impl VerifyingKey {
    fn new(path: &Path, point: &[u8]) -> Result<Self, CredentialsError> {
        let point: [u8; POINT_LEN] = point
            .try_into()
            .map_err(|_| damaged(path, "it is no P-256 key"))?;
        let id = Sha256::new()
            .chain_update(P256_PREFIX)
            .chain_update(point)
            .finalize();
        Ok(Self {
            id: BASE64_URL_SAFE_NO_PAD.encode(id),
            point,
        })
    }

    fn of_public_pem(path: &Path, pem: &str) -> Result<Self, CredentialsError> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(pem.as_bytes());
        let der = der.map_err(|_| damaged(path, "it is no public key in PEM"))?;
        let point = der
            .strip_prefix(&P256_PREFIX)
            .ok_or_else(|| damaged(path, "it is no P-256 key"))?;
        Self::new(path, point)
    }
}

/// Keys that only verify, in the order of their names.
fn others(directory: &Path) -> Result<Vec<std::path::PathBuf>, CredentialsError> {
    let read = || {
        let entries = fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path()));
        let mut paths = entries.collect::<Result<Vec<_>, _>>()?;
        paths.retain(|path| {
            let name = path
                .file_name()
                .and_then(|name| name.to_str())
                .unwrap_or_default();
            name.starts_with("sa-") && (name.ends_with(".key") || name.ends_with(".pub"))
        });
        paths.sort();
        Ok(paths)
    };
    read().map_err(|source| CredentialsError::File {
        action: "read",
        path: directory.to_owned(),
        source,
    })
}

fn key_pair(path: &Path, pem: &str, random: &SystemRandom) -> Result<EcdsaKeyPair, CredentialsError> {
    let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes());
    let der = der.map_err(|_| damaged(path, "it is no PKCS #8 key in PEM"))?;
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der.secret_pkcs8_der(), random)
        .map_err(|_| damaged(path, "it is no P-256 key"))
}

fn damaged(path: &Path, reason: &str) -> CredentialsError {
    CredentialsError::Damaged {
        path: path.to_owned(),
        reason: reason.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn open(directory: &Path) -> TokenKeys {
        TokenKeys::open(directory).expect("keys")
    }

    #[test]
    fn a_key_survives_restarts_and_verifies_after_it_was_replaced() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let first = open(directory.path());
        let mode = fs::metadata(path("sa.key"))
            .expect("the key")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let signature = first.sign(b"message").expect("randomness");
        assert_eq!(signature.len(), 64);

        let again = open(directory.path());
        assert_eq!(first.signing_id(), again.signing_id());
        assert!(again.verify(Some(first.signing_id()), b"message", &signature));
        assert!(again.verify(None, b"message", &signature));
        assert!(!again.verify(Some("another"), b"message", &signature));
        assert!(!again.verify(None, b"massage", &signature));

        fs::rename(path("sa.key"), path("sa-old.key")).expect("renamed");
        let replaced = open(directory.path());
        assert_ne!(first.signing_id(), replaced.signing_id());
        assert!(replaced.verify(Some(first.signing_id()), b"message", &signature));
        assert_eq!(replaced.key_set()["keys"].as_array().map(Vec::len), Some(2));

        fs::remove_file(path("sa-old.key")).expect("removed");
        assert!(!open(directory.path()).verify(None, b"message", &signature));
    }

    #[test]
    fn key_ids_are_upstreams() {
        // A key and its id, from pkg/serviceaccount/jwt_test.go, Kubernetes 1.36.
        let directory = tempfile::tempdir().expect("a directory");
        let public = "-----BEGIN PUBLIC KEY-----\n\
                      MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEH6cuzP8XuD5wal6wf9M6xDljTOPL\n\
                      X2i8uIp/C/ASqiIGUeeKQtX0/IR3qCXyThP/dbCiHrF3v1cuhBOHY8CLVg==\n\
                      -----END PUBLIC KEY-----\n";
        fs::write(directory.path().join("sa-upstream.pub"), public).expect("written");
        let keys = open(directory.path()).key_set();
        assert_eq!(
            keys["keys"][1]["kid"],
            "SoABiieYuNx4UdqYvZRVeuC6SihxgLrhLy9peHMHpTc"
        );
    }

    #[test]
    fn damaged_keys_are_named_and_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        fs::write(directory.path().join("sa.key"), "oops").expect("written");
        let refused = TokenKeys::open(directory.path()).expect_err("damaged");
        assert!(refused.to_string().contains("sa.key is damaged"), "{refused}");
        assert_eq!(
            fs::read_to_string(directory.path().join("sa.key")).expect("kept"),
            "oops"
        );
    }
}
