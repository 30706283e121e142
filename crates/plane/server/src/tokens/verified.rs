//! Tokens whose signature was good, so that a client that asks often is not checked each time by the slow way.
//!
//! Two generations: when the young one is full it becomes the old one, and what nobody asked for since is gone. What is
//! remembered is the hash of a token, never the token.

use std::{collections::HashMap, mem, sync::Arc};

use sha2::{Digest, Sha256};

use super::Claims;

type Hash = [u8; 32];

pub(super) struct Verified {
    max: usize,
    young: HashMap<Hash, Arc<Claims>>,
    old: HashMap<Hash, Arc<Claims>>,
}

impl Verified {
    /// Remembers at most `max` tokens.
    pub(super) fn new(max: usize) -> Self {
        Self {
            max: max.max(2),
            young: HashMap::new(),
            old: HashMap::new(),
        }
    }

    pub(super) fn get(&mut self, token: &str) -> Option<Arc<Claims>> {
        let hash = hash(token);
        if let Some(claims) = self.young.get(&hash) {
            return Some(claims.clone());
        }
        let claims = self.old.remove(&hash)?;
        self.keep(hash, claims.clone());
        Some(claims)
    }

    pub(super) fn insert(&mut self, token: &str, claims: Arc<Claims>) {
        self.keep(hash(token), claims);
    }

    fn keep(&mut self, hash: Hash, claims: Arc<Claims>) {
        if self.young.len() >= self.max / 2 {
            self.old = mem::take(&mut self.young);
        }
        self.young.insert(hash, claims);
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }
}

fn hash(token: &str) -> Hash {
    Sha256::digest(token).into()
}

#[cfg(test)]
mod tests {
    use hotmap_object::Status;
    use jiff::Timestamp;

    use super::*;
    use crate::tokens::{Bound, Reference};

    #[test]
    fn what_is_asked_for_stays_and_the_rest_goes() -> Result<(), Status> {
        let account = Reference {
            name: "a".to_owned(),
            uid: "u".to_owned(),
        };
        let claims = Claims::new(
            "ns",
            account,
            Bound::Nothing,
            Vec::new(),
            Timestamp::UNIX_EPOCH,
            600,
        )?;
        let claims = Arc::new(claims);
        let mut verified = Verified::new(10);
        verified.insert("often", claims.clone());
        for number in 0..100 {
            verified.insert(&format!("once {number}"), claims.clone());
            assert!(verified.get("often").is_some(), "after {number}");
            assert!(verified.len() <= 10);
        }
        assert!(verified.get("once 0").is_none());
        assert!(verified.get("once 99").is_some());
        Ok(())
    }
}
