//! Digests under a key that only this process has: equal content is recognised, and nothing about it is told.

use std::io;
use std::sync::OnceLock;

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// The first half of an HMAC-SHA256: half the memory, and still no two files of one process will ever meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Digest([u8; 16]);

impl Digest {
    /// The first 16 hex digits.
    pub(crate) fn short(self) -> String {
        self.0[..8].iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Makes digests. Cloning one is cheaper than keying one.
#[derive(Clone)]
pub(crate) struct Digester(Hmac<Sha256>);

impl Digester {
    /// The digester of this process.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub(crate) fn of_this_process() -> io::Result<Self> {
        static OF_THIS_PROCESS: OnceLock<Digester> = OnceLock::new();
        if let Some(digester) = OF_THIS_PROCESS.get() {
            return Ok(digester.clone());
        }
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
        let digester = Self(Hmac::new_from_slice(&key).expect("HMAC takes keys of any length"));
        Ok(OF_THIS_PROCESS.get_or_init(|| digester).clone())
    }

    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// A field whose end cannot be confused with the start of the next.
    pub(crate) fn update_field(&mut self, bytes: &[u8]) {
        self.update(&(bytes.len() as u64).to_le_bytes());
        self.update(bytes);
    }

    pub(crate) fn update_digest(&mut self, digest: Digest) {
        self.update(&digest.0);
    }

    pub(crate) fn finish(self) -> Digest {
        let whole = self.0.finalize().into_bytes();
        let (half, _) = whole.split_first_chunk().expect("32 bytes have 16");
        Digest(*half)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_follows_the_fields_and_not_where_they_were_cut() {
        let of = |fields: &[&str]| {
            let mut digester = Digester::of_this_process().unwrap();
            fields
                .iter()
                .for_each(|field| digester.update_field(field.as_bytes()));
            digester.finish()
        };
        assert_eq!(of(&["a", "bc"]), of(&["a", "bc"]));
        assert_ne!(of(&["a", "bc"]), of(&["ab", "c"]));
        assert_eq!(of(&["a"]).short().len(), 16);
    }
}
