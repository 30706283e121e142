//! What stands in a token.
//!
//! Follows `pkg/serviceaccount/claims.go` and `apiserver/pkg/authentication/serviceaccount/util.go`, Kubernetes 1.36.

use hotmap_object::Status;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::ISSUER;
use crate::{request::User, uuid};

/// The claims of one token; times in Unix seconds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Claims {
    pub(crate) aud: Vec<String>,
    pub(crate) exp: i64,
    pub(crate) iat: i64,
    pub(crate) iss: String,
    pub(crate) jti: String,
    #[serde(rename = "kubernetes.io")]
    pub(crate) kubernetes: Kubernetes,
    pub(crate) nbf: i64,
    pub(crate) sub: String,
}

/// The claims that are Kubernetes' own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kubernetes {
    pub(crate) namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) node: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pod: Option<Reference>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) secret: Option<Reference>,
    pub(crate) serviceaccount: Reference,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) warnafter: Option<i64>,
}

/// An object by name and uid.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reference {
    pub(crate) name: String,
    /// Empty for a node that did not exist when its pod got the token.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) uid: String,
}

/// What a token ends with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bound {
    /// With its account.
    Nothing,
    /// The node that the pod is bound to is told, and does not count.
    Pod {
        pod: Reference,
        node: Option<Reference>,
    },
    Secret(Reference),
    Node(Reference),
}

impl Claims {
    /// Claims of a new token that is good for `seconds`.
    ///
    /// # Errors
    ///
    /// 500 if the system has no randomness.
    pub(crate) fn new(
        namespace: &str,
        account: Reference,
        bound: Bound,
        audiences: Vec<String>,
        now: Timestamp,
        seconds: i64,
    ) -> Result<Self, Status> {
        let (pod, node, secret) = match bound {
            Bound::Nothing => (None, None, None),
            Bound::Pod { pod, node } => (Some(pod), node, None),
            Bound::Secret(secret) => (None, None, Some(secret)),
            Bound::Node(node) => (None, Some(node), None),
        };
        let now = now.as_second();
        Ok(Self {
            aud: audiences,
            exp: now.saturating_add(seconds),
            iat: now,
            iss: ISSUER.to_owned(),
            jti: uuid::random().map_err(Status::internal)?,
            nbf: now,
            sub: format!("system:serviceaccount:{namespace}:{}", account.name),
            kubernetes: Kubernetes {
                namespace: namespace.to_owned(),
                node,
                pod,
                secret,
                serviceaccount: account,
                warnafter: None,
            },
        })
    }

    /// The account as a user.
    pub(super) fn user(&self) -> User {
        let own = &self.kubernetes;
        let mut extra = vec![("credential-id", format!("JTI={}", self.jti))];
        if let Some(node) = &own.node {
            extra.push(("node-name", node.name.clone()));
            extra.push(("node-uid", node.uid.clone()));
        }
        if let Some(pod) = &own.pod {
            extra.push(("pod-name", pod.name.clone()));
            extra.push(("pod-uid", pod.uid.clone()));
        }
        let extra = extra.into_iter().filter(|(_, value)| !value.is_empty());
        User {
            name: self.sub.clone(),
            groups: vec![
                "system:serviceaccounts".to_owned(),
                format!("system:serviceaccounts:{}", own.namespace),
                "system:authenticated".to_owned(),
            ],
            uid: own.serviceaccount.uid.clone(),
            extra: extra
                .map(|(key, value)| (format!("authentication.kubernetes.io/{key}"), vec![value]))
                .collect(),
        }
    }
}
