//! ServiceAccount: a name for pods to run as.
//!
//! Rules follow `pkg/registry/core/serviceaccount/strategy.go`, Kubernetes 1.36.

use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::{
    Column, Strategy,
    fields::{Fields, list_mut},
    table,
};

/// The rules of ServiceAccounts.
pub(crate) struct ServiceAccount;

const ENFORCE_MOUNTABLE_SECRETS: &str = "kubernetes.io/enforce-mountable-secrets";

const COLUMNS: &[Column] = &[table::NAME, table::AGE];

impl Strategy for ServiceAccount {
    fn prepare_for_create(&self, object: &mut Map<String, Value>) {
        keep_only_secret_names(object);
    }

    fn prepare_for_update(
        &self,
        new: &mut Map<String, Value>,
        _old: &Map<String, Value>,
        _subresource: &str,
    ) {
        keep_only_secret_names(new);
    }

    fn warnings(&self, object: &Map<String, Value>, old: Option<&Map<String, Value>>) -> Vec<String> {
        let has = |object: &Map<String, Value>| {
            let annotations = object.map("metadata").map("annotations");
            annotations.contains_key(ENFORCE_MOUNTABLE_SECRETS)
        };
        if !has(object) || old.is_some_and(has) {
            return Vec::new();
        }
        vec![format!(
            "metadata.annotations[{ENFORCE_MOUNTABLE_SECRETS}]: deprecated in v1.32+; prefer separate namespaces to isolate access to mounted secrets"
        )]
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value> {
        vec![table::name(object), table::age(object, now)]
    }
}

fn keep_only_secret_names(object: &mut Map<String, Value>) {
    for secret in list_mut(object, "secrets") {
        *secret = match secret.text("name") {
            "" => json!({}),
            name => json!({ "name": name }),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::map;

    #[test]
    fn references_to_secrets_are_names() {
        let mut object = map(json!({"secrets": [{"name": "a", "namespace": "other", "uid": "u"}]}));
        ServiceAccount.prepare_for_create(&mut object);
        assert_eq!(Value::Object(object), json!({"secrets": [{"name": "a"}]}));
    }

    #[test]
    fn an_annotation_that_goes_away_is_warned_of_once() {
        let plain = map(json!({"metadata": {"name": "a"}}));
        let limited = map(json!({"metadata": {"annotations": {ENFORCE_MOUNTABLE_SECRETS: "true"}}}));
        for (new, old, count) in [
            (&plain, None, 0),
            (&limited, None, 1),
            (&limited, Some(&plain), 1),
            (&limited, Some(&limited), 0),
        ] {
            assert_eq!(ServiceAccount.warnings(new, old).len(), count);
        }
    }
}
