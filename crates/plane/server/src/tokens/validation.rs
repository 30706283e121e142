//! Whether a token that we have signed is still good.
//!
//! Follows `pkg/serviceaccount/claims.go` (`Validate`) and the leeway of go-jose, Kubernetes 1.36.

use hotmap_object::Object;
use jiff::{SignedDuration, Timestamp};

use super::{Claims, Held, Reference};

/// How far two clocks may be apart, and how long something that is being deleted still counts after its grace.
const LEEWAY: SignedDuration = SignedDuration::from_secs(60);

/// Why a token is not taken. No text shows any of the token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    #[error("invalid bearer token")]
    Malformed,
    #[error("invalid signature, no keys found")]
    Signature,
    #[error("token audiences are invalid for the target audiences")]
    Audience,
    #[error("service account token has expired")]
    Expired,
    #[error("service account token is not valid yet")]
    NotYet,
    #[error("service account token is issued in the future")]
    FromTheFuture,
    #[error("serviceaccounts {name:?} not found")]
    NoAccount { name: String },
    #[error("{kind} UID ({held}) does not match {claim} ({claimed})")]
    OtherUid {
        kind: &'static str,
        claim: &'static str,
        held: String,
        claimed: String,
    },
    #[error("service account {namespace}/{name} has been deleted")]
    AccountDeleted { namespace: String, name: String },
    /// A token to join with that is not, or no longer, one.
    #[error("invalid bootstrap token: {0}")]
    Bootstrap(&'static str),
    /// What it was bound to is gone.
    #[error("service account token has been invalidated")]
    Invalidated,
}

pub(super) fn check_times(claims: &Claims, now: Timestamp) -> Result<(), Refused> {
    let (now, leeway) = (now.as_second(), LEEWAY.as_secs());
    if now + leeway < claims.nbf {
        return Err(Refused::NotYet);
    }
    if now - leeway > claims.exp {
        return Err(Refused::Expired);
    }
    if now + leeway < claims.iat {
        return Err(Refused::FromTheFuture);
    }
    Ok(())
}

/// The account, and what the token is bound to, must exist, be the same as then, and not be gone but for a finalizer.
pub(super) fn check_objects(claims: &Claims, held: &dyn Held, now: Timestamp) -> Result<(), Refused> {
    let own = &claims.kubernetes;
    let account = &own.serviceaccount;
    let current = held
        .held("serviceaccounts", &own.namespace, &account.name)
        .ok_or_else(|| Refused::NoAccount {
            name: account.name.clone(),
        })?;
    same_uid(account, &current, "service account", "claim")?;
    if is_past_deletion(&current, now) {
        return Err(Refused::AccountDeleted {
            namespace: own.namespace.clone(),
            name: account.name.clone(),
        });
    }
    let bound = |plural: &str, namespace: &str, reference: &Reference, kind, claim| {
        let current = held
            .held(plural, namespace, &reference.name)
            .ok_or(Refused::Invalidated)?;
        same_uid(reference, &current, kind, claim)?;
        if is_past_deletion(&current, now) {
            return Err(Refused::Invalidated);
        }
        Ok(())
    };
    if let Some(secret) = &own.secret {
        let claim = "service account secret ref claim";
        bound("secrets", &own.namespace, secret, "secret", claim)?;
    }
    match (&own.pod, &own.node) {
        (Some(pod), _) => bound(
            "pods",
            &own.namespace,
            pod,
            "pod",
            "service account pod ref claim",
        ),
        (None, Some(node)) => bound("nodes", "", node, "node", "service account node ref claim"),
        (None, None) => Ok(()),
    }
}

fn same_uid(
    claimed: &Reference,
    current: &Object,
    kind: &'static str,
    claim: &'static str,
) -> Result<(), Refused> {
    if *claimed.uid == *current.index().uid {
        return Ok(());
    }
    Err(Refused::OtherUid {
        kind,
        claim,
        held: current.index().uid.to_string(),
        claimed: claimed.uid.clone(),
    })
}

/// Whether its deletion, grace included, is longer ago than clocks may differ.
fn is_past_deletion(object: &Object, now: Timestamp) -> bool {
    if !object.index().is_deleting {
        return false;
    }
    let value = object.value();
    let at = value
        .get("metadata")
        .and_then(|metadata| metadata["deletionTimestamp"].as_str());
    let at = at.and_then(|text| text.parse::<Timestamp>().ok());
    // A time that cannot be read ends the token: it is being deleted for sure.
    at.is_none_or(|at| at.duration_until(now) > LEEWAY)
}
