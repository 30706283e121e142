//! Secrets that a pod may not refer to: any at all if a node only shows it, and those that its account does not name if the
//! account says so by annotation.

use serde_json::{Map, Value};

use super::{list, metadata::Object};

/// `true`, as Go reads it: pods of the account refer to its own Secrets alone.
const ENFORCED: &str = "kubernetes.io/enforce-mountable-secrets";
/// The containers that a pod is made with, and what they are called.
const KINDS: [(&str, &str); 2] = [("initContainers", "init container"), ("containers", "container")];

/// Why a pod that a node only shows is refused.
pub(super) fn of_mirror(spec: &Map<String, Value>) -> Result<(), String> {
    if !spec.get("serviceAccountName").is_none_or(is_empty) {
        return Err("a mirror pod may not reference service accounts".to_owned());
    }
    let projected = || {
        let volumes = list(spec, "volumes").iter();
        volumes.flat_map(|volume| {
            let sources = volume["projected"]["sources"].as_array();
            sources.into_iter().flatten()
        })
    };
    let mut volumes = list(spec, "volumes").iter();
    let has_secrets = volumes.any(|volume| volume["secret"].is_object())
        || projected().any(|source| source["secret"].is_object())
        || !list(spec, "imagePullSecrets").is_empty()
        || in_containers(spec, &KINDS).next().is_some();
    if has_secrets {
        return Err("a mirror pod may not reference secrets".to_owned());
    }
    if projected().any(|source| source["serviceAccountToken"].is_object()) {
        return Err("a mirror pod may not use ServiceAccountToken volume projections".to_owned());
    }
    Ok(())
}

/// Why a pod of this account is refused. Volumes of projected Secrets are not looked at, as upstream.
pub(super) fn of_account(spec: &Map<String, Value>, name: &str, account: &Object) -> Result<(), String> {
    if !is_enforced(account) {
        return Ok(());
    }
    let names = |field| list(account, field).iter().map(|secret| &secret["name"]);
    for volume in list(spec, "volumes") {
        let secret = &volume["secret"]["secretName"];
        if volume["secret"].is_object() {
            mountable("volume with", secret, name, account)?;
        }
    }
    for (what, secret) in in_containers(spec, &KINDS) {
        mountable(&what, secret, name, account)?;
    }
    for (at, secret) in list(spec, "imagePullSecrets").iter().enumerate() {
        if !names("imagePullSecrets").any(|held| *held == secret["name"]) {
            let secret = secret["name"].as_str().unwrap_or_default();
            return Err(format!(
                "imagePullSecrets[{at}].name=\"{secret}\" is not allowed because service account {name} does not reference that imagePullSecret"
            ));
        }
    }
    Ok(())
}

/// Why the ephemeral containers of a pod of this account are refused.
pub(super) fn of_ephemeral(spec: &Map<String, Value>, name: &str, account: &Object) -> Result<(), String> {
    if !is_enforced(account) {
        return Ok(());
    }
    let mut refers = in_containers(spec, &[("ephemeralContainers", "ephemeral container")]);
    refers.try_for_each(|(what, secret)| mountable(&what, secret, name, account))
}

/// Whether the account of this name names the Secret.
fn mountable(what: &str, secret: &Value, name: &str, account: &Object) -> Result<(), String> {
    let mut named = list(account, "secrets").iter();
    if named.any(|held| held["name"] == *secret) {
        return Ok(());
    }
    let secret = secret.as_str().unwrap_or_default();
    Err(format!(
        "{what} secret.secretName=\"{secret}\" is not allowed because service account {name} does not reference that secret"
    ))
}

/// Secrets that environments of these lists refer to, each with what refers to it.
fn in_containers<'s>(
    spec: &'s Map<String, Value>,
    kinds: &[(&'static str, &'static str)],
) -> impl Iterator<Item = (String, &'s Value)> {
    let containers = kinds
        .iter()
        .flat_map(|(field, kind)| list(spec, field).iter().map(move |container| (*kind, container)));
    containers.flat_map(|(kind, container)| {
        let called = format!("{kind} {}", container["name"].as_str().unwrap_or_default());
        let array = |field: &str| container[field].as_array().into_iter().flatten();
        let variables = array("env").filter_map({
            let called = called.clone();
            move |variable| {
                let secret = &variable["valueFrom"]["secretKeyRef"];
                let variable = variable["name"].as_str().unwrap_or_default();
                let what = format!("{called} with envVar {variable} referencing");
                secret.is_object().then_some((what, &secret["name"]))
            }
        });
        let sources = array("envFrom").filter_map(move |source| {
            let secret = &source["secretRef"];
            let what = format!("{called} with envFrom referencing");
            secret.is_object().then_some((what, &secret["name"]))
        });
        variables.chain(sources)
    })
}

fn is_enforced(account: &Object) -> bool {
    let annotations = account.get("metadata").map(|metadata| &metadata["annotations"]);
    let value = annotations.and_then(|held| held[ENFORCED].as_str());
    matches!(value, Some("1" | "t" | "T" | "TRUE" | "true" | "True"))
}

fn is_empty(value: &Value) -> bool {
    value.as_str().is_none_or(str::is_empty)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        serde_json::from_value(value).expect("an object")
    }

    #[test]
    fn an_account_that_says_so_lends_its_own_secrets_alone() {
        let account = |enforced: &str| {
            object(json!({"metadata": {"annotations": {ENFORCED: enforced}},
                "secrets": [{"name": "held"}], "imagePullSecrets": [{"name": "pull"}]}))
        };
        let env =
            |name: &str| json!({"name": "E", "valueFrom": {"secretKeyRef": {"name": name, "key": "k"}}});
        for (spec, refused) in [
            (
                json!({"volumes": [{"secret": {"secretName": "held"}}, {"emptyDir": {}}]}),
                "",
            ),
            (
                json!({"volumes": [{"projected": {"sources": [{"secret": {"name": "other"}}]}}]}),
                "",
            ),
            (json!({"containers": [{"name": "c", "env": [env("held")]}]}), ""),
            (json!({"imagePullSecrets": [{"name": "pull"}]}), ""),
            (
                json!({"volumes": [{"secret": {"secretName": "other"}}]}),
                r#"volume with secret.secretName="other" is not allowed because service account robot does not reference that secret"#,
            ),
            (
                json!({"containers": [{"name": "c", "env": [env("other")]}]}),
                r#"container c with envVar E referencing secret.secretName="other" is not allowed because service account robot does not reference that secret"#,
            ),
            (
                json!({"initContainers": [{"name": "i", "envFrom": [{"secretRef": {"name": "other"}}]}]}),
                r#"init container i with envFrom referencing secret.secretName="other" is not allowed because service account robot does not reference that secret"#,
            ),
            (
                json!({"imagePullSecrets": [{"name": "pull"}, {"name": "other"}]}),
                r#"imagePullSecrets[1].name="other" is not allowed because service account robot does not reference that imagePullSecret"#,
            ),
        ] {
            let spec = object(spec);
            let answer = of_account(&spec, "robot", &account("true"))
                .err()
                .unwrap_or_default();
            assert_eq!(answer, refused, "{spec:?}");
            for unenforced in ["false", "yes", ""] {
                assert_eq!(
                    of_account(&spec, "robot", &account(unenforced)),
                    Ok(()),
                    "{spec:?}"
                );
            }
        }
    }

    #[test]
    fn an_account_that_says_so_lends_ephemeral_containers_no_other_secrets() {
        let account = |enforced: &str| {
            object(json!({"metadata": {"annotations": {ENFORCED: enforced}}, "secrets": [{"name": "held"}]}))
        };
        let spec = |secret: &str| {
            object(
                json!({"volumes": [{"secret": {"secretName": "older than the annotation"}}],
                "ephemeralContainers": [{"name": "e", "envFrom": [{"secretRef": {"name": secret}}]}]}),
            )
        };
        let answer = |secret: &str, enforced: &str| of_ephemeral(&spec(secret), "robot", &account(enforced));
        assert_eq!(answer("held", "true"), Ok(()));
        assert_eq!(answer("other", "false"), Ok(()));
        assert_eq!(
            answer("other", "true").err().unwrap_or_default(),
            r#"ephemeral container e with envFrom referencing secret.secretName="other" is not allowed because service account robot does not reference that secret"#
        );
    }

    #[test]
    fn a_pod_that_a_node_only_shows_has_no_account_and_no_secrets() {
        for (spec, refused) in [
            (
                json!({"containers": [{"name": "c"}], "volumes": [{"emptyDir": {}}]}),
                "",
            ),
            (
                json!({"serviceAccountName": "robot"}),
                "a mirror pod may not reference service accounts",
            ),
            (
                json!({"volumes": [{"secret": {"secretName": "s"}}]}),
                "a mirror pod may not reference secrets",
            ),
            (
                json!({"containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "s"}}]}]}),
                "a mirror pod may not reference secrets",
            ),
            (
                json!({"volumes": [{"projected": {"sources": [{"serviceAccountToken": {"path": "t"}}]}}]}),
                "a mirror pod may not use ServiceAccountToken volume projections",
            ),
        ] {
            let answer = of_mirror(&object(spec.clone())).err().unwrap_or_default();
            assert_eq!(answer, refused, "{spec}");
        }
    }
}
