//! Digests of the content of ConfigMaps and Secrets.
//!
//! Canonical content, version 1: the text `hotmap.dev/payload/v1` and a line feed; then for each key, in ascending order of
//! its bytes, the key's length (64 bits, big endian), the key, one byte (0 for a text of `data` or a value of a Secret, 1
//! for a value of `binaryData`), the value's length (64 bits, big endian), and the value, decoded. Names, labels and
//! versions are no part of it: the same content has the same digest.
//!
//! A ConfigMap's digest is `sha256:` and the SHA-256 of that. A Secret's is `hmac-sha256:` and an HMAC-SHA256 under the key
//! of the instance over: the text `hotmap.dev/secret/v1` and a line feed, the lengths and bytes of namespace and name as
//! above, the canonical content. So nobody can try values, or see that two Secrets hold the same.

use std::{
    fs, io,
    io::Write,
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use ring::{
    digest::{Context, SHA256},
    hmac,
    rand::{SecureRandom, SystemRandom},
};

use crate::{
    objects::Held,
    references::{ObjectKind, ObjectRef},
};

/// Bytes of a key: as many as the digest has.
const KEY_BYTES: usize = 32;
/// Modes that let others than the owner in.
const OTHERS: u32 = 0o077;

/// The key of Secrets' digests. Never printed.
#[derive(Clone)]
pub struct DigestKey([u8; KEY_BYTES]);

/// Why the key of Secrets' digests cannot be used. Without a file there is no key, which is no error.
#[derive(Debug, thiserror::Error)]
pub enum DigestKeyError {
    /// The file system refuses.
    #[error("cannot use the key of digests {}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is no key.
    #[error("{} is not a key of digests: it holds {found} bytes, not {KEY_BYTES}", .path.display())]
    Length {
        /// The file.
        path: PathBuf,
        /// Its size.
        found: usize,
    },
    /// Others may read it.
    #[error("{} can be read by others (mode {mode:o}); a key of digests has mode 600", .path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The system gives no random numbers.
    #[error("the system gives no random numbers for a key of digests")]
    NoRandom,
}

impl DigestKey {
    /// The key in a file; none if there is no such file.
    ///
    /// # Errors
    /// [`DigestKeyError`] if the file is there and holds no key, or others may read it.
    pub fn read(path: &Path) -> Result<Option<Self>, DigestKeyError> {
        let failed = |source| DigestKeyError::Io {
            path: path.to_owned(),
            source,
        };
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        let mode = fs::metadata(path).map_err(failed)?.mode() & 0o7777;
        if mode & OTHERS != 0 {
            return Err(DigestKeyError::Open {
                path: path.to_owned(),
                mode,
            });
        }
        let found = bytes.len();
        let key = bytes.try_into().map_err(|_| DigestKeyError::Length {
            path: path.to_owned(),
            found,
        })?;
        Ok(Some(Self(key)))
    }

    /// Writes a new key where there is none; a key that is there stays. The file appears whole, with mode 600.
    ///
    /// # Errors
    /// [`DigestKeyError`]; what was there is as it was.
    pub fn create_if_missing(path: &Path) -> Result<(), DigestKeyError> {
        if Self::read(path)?.is_some() {
            return Ok(());
        }
        let failed = |source| DigestKeyError::Io {
            path: path.to_owned(),
            source,
        };
        let key = random()?;
        let staged = path.with_extension("key.new");
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&staged)
            .map_err(failed)?;
        file.write_all(&key)
            .and_then(|()| file.sync_all())
            .map_err(failed)?;
        fs::rename(&staged, path).map_err(failed)
    }
}

fn random() -> Result<[u8; KEY_BYTES], DigestKeyError> {
    let mut key = [0; KEY_BYTES];
    SystemRandom::new()
        .fill(&mut key)
        .map_err(|_| DigestKeyError::NoRandom)?;
    Ok(key)
}

/// One revision of one object, and what tells its content from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Revision {
    pub(crate) uid: String,
    pub(crate) resource_version: String,
    pub(crate) fingerprint: [u8; 32],
    /// How reports call the content; empty if they must not.
    pub(crate) digest: String,
}

impl Revision {
    /// Whether both have the same content.
    pub(crate) fn is_like(&self, other: &Revision) -> bool {
        let is_same = self.uid == other.uid && self.resource_version == other.resource_version;
        is_same || self.fingerprint == other.fingerprint
    }
}

/// Computes fingerprints.
pub(crate) struct Fingerprints {
    secrets: hmac::Key,
    /// Whether others have the key of Secrets too; if not, it only serves this process for comparing.
    is_shared: bool,
}

impl Fingerprints {
    pub(crate) fn new(key: Option<DigestKey>) -> Self {
        let is_shared = key.is_some();
        let bytes = match key {
            Some(DigestKey(bytes)) => bytes,
            // Without random numbers contents are compared by a key that somebody could know, and told to nobody.
            None => random().unwrap_or_default(),
        };
        Self {
            secrets: hmac::Key::new(hmac::HMAC_SHA256, &bytes),
            is_shared,
        }
    }

    pub(crate) fn of(&self, reference: &ObjectRef, held: &Held) -> Arc<Revision> {
        let (fingerprint, digest) = match reference.kind {
            ObjectKind::ConfigMap => {
                let mut context = Context::new(&SHA256);
                canonical(held, |bytes| context.update(bytes));
                let fingerprint = bytes_of(context.finish().as_ref());
                (fingerprint, format!("sha256:{}", hex(&fingerprint)))
            }
            ObjectKind::Secret => {
                let mut context = hmac::Context::with_key(&self.secrets);
                context.update(b"hotmap.dev/secret/v1\n");
                for name in [&reference.namespace, &reference.name] {
                    context.update(&(name.len() as u64).to_be_bytes());
                    context.update(name.as_bytes());
                }
                canonical(held, |bytes| context.update(bytes));
                let fingerprint = bytes_of(context.sign().as_ref());
                let digest = match self.is_shared {
                    true => format!("hmac-sha256:{}", hex(&fingerprint)),
                    false => String::new(),
                };
                (fingerprint, digest)
            }
        };
        Arc::new(Revision {
            uid: held.uid().to_owned(),
            resource_version: held.resource_version().to_owned(),
            fingerprint,
            digest,
        })
    }
}

fn canonical(held: &Held, mut put: impl FnMut(&[u8])) {
    put(b"hotmap.dev/payload/v1\n");
    // The map is in ascending order of its keys' bytes.
    for (key, value) in held.keys().iter() {
        put(&(key.len() as u64).to_be_bytes());
        put(key.as_bytes());
        put(&[u8::from(held.is_binary(key))]);
        put(&(value.len() as u64).to_be_bytes());
        put(value);
    }
}

fn bytes_of(digest: &[u8]) -> [u8; 32] {
    digest.try_into().expect("SHA-256 has 32 bytes")
}

/// Lower-case hex digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::objects::Heard;

    fn reference(kind: ObjectKind, name: &str) -> ObjectRef {
        ObjectRef {
            kind,
            namespace: "default".to_owned(),
            name: name.to_owned(),
        }
    }

    fn digest(key: Option<u8>, of: &ObjectRef, json: &str) -> String {
        let held = Held::parse(of.kind, json.as_bytes(), Heard::now(None)).expect("an object");
        let key = key.map(|byte| DigestKey([byte; KEY_BYTES]));
        Fingerprints::new(key).of(of, &held).digest.clone()
    }

    #[test]
    fn a_config_map_has_the_digest_of_its_content_and_of_nothing_else() {
        let of = reference(ObjectKind::ConfigMap, "app");
        // printf 'hotmap.dev/payload/v1\n' | sha256sum
        let empty = digest(None, &of, r#"{"metadata":{"uid":"u","resourceVersion":"7"}}"#);
        assert_eq!(empty, VECTOR_EMPTY);
        // … and `a` = x as text, `b` = 00 01 as bytes.
        let two = r#"{"metadata":{"uid":"u"},"data":{"a":"x"},"binaryData":{"b":"AAE="}}"#;
        assert_eq!(digest(None, &of, two), VECTOR_TWO);
        let elsewhere =
            r#"{"metadata":{"uid":"v","labels":{"a":"b"}},"data":{"a":"x"},"binaryData":{"b":"AAE="}}"#;
        assert_eq!(
            digest(Some(1), &reference(ObjectKind::ConfigMap, "other"), elsewhere),
            VECTOR_TWO
        );
        for other in [
            r#"{"data":{"a":"x"}}"#,
            r#"{"data":{"a":"x","b":"\u0000\u0001"}}"#,
            r#"{"data":{"ax":""},"binaryData":{"b":"AAE="}}"#,
        ] {
            assert_ne!(digest(None, &of, other), VECTOR_TWO, "{other}");
        }
    }

    const VECTOR_EMPTY: &str = "sha256:2d412cc3585e9481cafc209dde94e7bc10ff64f18eae7ca8bf78e4b868442b6b";
    const VECTOR_TWO: &str = "sha256:1ef758a23eb3b34a6bfc6033b1655faad2843a0f8667b70a7613f8e85f772d0e";
    const VECTOR_SECRET: &str =
        "hmac-sha256:c272931f540d61a7bbc6406f64f8fb77831590cd8501d09e33df306028255fd4";

    #[test]
    fn a_secret_has_a_keyed_digest_or_none() {
        let of = reference(ObjectKind::Secret, "db");
        let secret = r#"{"metadata":{"uid":"u","resourceVersion":"7"},"data":{"password":"aHVudGVyMg=="}}"#;
        assert_eq!(digest(None, &of, secret), "");
        let keyed = digest(Some(7), &of, secret);
        assert_eq!(keyed, VECTOR_SECRET);
        assert_ne!(digest(Some(8), &of, secret), keyed, "another key");
        let twin = reference(ObjectKind::Secret, "db-2");
        assert_ne!(
            digest(Some(7), &twin, secret),
            keyed,
            "nobody sees that two Secrets are the same"
        );
    }

    #[test]
    fn a_key_is_made_once_for_its_owner_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("digest.key");
        assert!(DigestKey::read(&path).expect("no file is no error").is_none());
        DigestKey::create_if_missing(&path).expect("made");
        let mode = fs::metadata(&path).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let first = fs::read(&path).expect("readable");
        DigestKey::create_if_missing(&path).expect("kept");
        assert_eq!(fs::read(&path).expect("readable"), first);
        assert_eq!(first.len(), KEY_BYTES);

        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("opened up");
        assert!(matches!(
            DigestKey::read(&path),
            Err(DigestKeyError::Open { mode: 0o640, .. })
        ));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("closed");
        fs::write(&path, "short").expect("written");
        let damaged = DigestKey::create_if_missing(&path);
        assert!(matches!(damaged, Err(DigestKeyError::Length { found: 5, .. })));
    }
}
