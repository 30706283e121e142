//! What a new pod is given by its service account, which must exist: its token, its pull secrets, its limits.
//!
//! Follows `plugin/pkg/admission/serviceaccount/admission.go`, Kubernetes 1.36. The volume's last source upstream, a
//! ConfigMap that only another distribution has, is left out.

mod secret_limits;

use hotmap_kinds::Resource;
use hotmap_object::Status;
use serde_json::{Map, Value, json};

use super::{Objects, metadata, metadata::Object, namespace_defaults};
use crate::tokens::Held;

/// The beginning of the volume's name.
const VOLUME: &str = "kube-api-access-";
/// Where programs look for the token.
const MOUNT_PATH: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// Seconds that the token is asked for; the server gives such tokens longer and warns (`token_request`).
const TOKEN_SECONDS: i64 = 60 * 60 + 7;

impl Objects {
    /// Completes a new pod; every other object passes.
    ///
    /// # Errors
    ///
    /// 403 if the account does not exist or does not allow what the pod refers to.
    pub(super) async fn admit(
        &self,
        resource: &Resource,
        namespace: &str,
        object: &mut Object,
        dry_run: bool,
    ) -> Result<(), Status> {
        if (resource.group, resource.plural) != ("", "pods") {
            return Ok(());
        }
        if is_mirror(object) {
            // Its spec is the node's: what it must not have is refused, and nothing is added.
            let limits = secret_limits::of_mirror(spec(object));
            return limits.map_err(|why| forbidden(resource, object, why));
        }
        let name = spec(object)
            .get("serviceAccountName")
            .and_then(Value::as_str)
            .filter(|name| !name.is_empty())
            .unwrap_or(namespace_defaults::DEFAULT_ACCOUNT)
            .to_owned();
        let Some(account) = self.account(namespace, &name, dry_run).await? else {
            let why = format!(
                "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
            );
            return Err(forbidden(resource, object, why));
        };
        let volume = metadata::generate_name(VOLUME)?;
        complete(spec(object), &name, &account, volume);
        let limits = secret_limits::of_account(spec(object), &name, &account);
        limits.map_err(|why| forbidden(resource, object, why))?;
        // What was added has defaults too, and an account has two spellings.
        resource.strategy.default(object);
        Ok(())
    }

    /// Whether the account of a pod allows what its ephemeral containers refer to.
    ///
    /// # Errors
    ///
    /// 403 if it does not, or is gone.
    pub(super) fn admit_ephemeral(
        &self,
        resource: &Resource,
        namespace: &str,
        pod: &mut Object,
    ) -> Result<(), Status> {
        let given = spec(pod).get("serviceAccountName").and_then(Value::as_str);
        let name = given.filter(|name| !name.is_empty());
        let name = name.unwrap_or(namespace_defaults::DEFAULT_ACCOUNT).to_owned();
        let Some(account) = self.held("serviceaccounts", namespace, &name) else {
            let why = format!(
                "error looking up service account {namespace}/{name}: serviceaccount {name:?} not found"
            );
            return Err(forbidden(resource, pod, why));
        };
        let limits = secret_limits::of_ephemeral(spec(pod), &name, &account.value());
        limits.map_err(|why| forbidden(resource, pod, why))
    }

    async fn account(&self, namespace: &str, name: &str, dry_run: bool) -> Result<Option<Object>, Status> {
        let held = || self.held("serviceaccounts", namespace, name);
        if let Some(account) = held() {
            return Ok(Some(account.value()));
        }
        // What the cache shows may be a moment old: only a refusal needs the newest state.
        self.cache.fresh().await?;
        if let Some(account) = held() {
            return Ok(Some(account.value()));
        }
        if name != namespace_defaults::DEFAULT_ACCOUNT {
            return Ok(None);
        }
        if dry_run {
            return Ok(Some(Map::new()));
        }
        // Somebody has deleted it, or it could not be written with its namespace.
        self.ensure_namespace_defaults(namespace).await?;
        Ok(held().map(|account| account.value()))
    }
}

/// Pods that a node has of its own and only shows.
fn is_mirror(object: &Object) -> bool {
    let annotations = metadata::of(object).get("annotations");
    annotations.is_some_and(|held| held["kubernetes.io/config.mirror"].is_string())
}

fn spec(object: &mut Object) -> &mut Map<String, Value> {
    let held = object.entry("spec").or_insert(Value::Null);
    if !held.is_object() {
        *held = Value::Object(Map::new());
    }
    held.as_object_mut().expect("just made an object")
}

/// Names have not been generated yet: a pod without one is called by the prefix it gave.
fn forbidden(resource: &Resource, pod: &Object, why: String) -> Status {
    let given = metadata::of(pod);
    let mut names = ["name", "generateName"]
        .iter()
        .map(|field| metadata::text(given, field));
    let name = names.find(|name| !name.is_empty()).unwrap_or("Unknown");
    Status::forbidden(&resource.group_resource(), name, why)
}

/// Everything that the account decides, as a function of pod and account.
fn complete(spec: &mut Map<String, Value>, name: &str, account: &Object, volume: String) {
    spec.insert("serviceAccountName".to_owned(), name.into());
    let wish = |of: &Map<String, Value>| of.get("automountServiceAccountToken").and_then(Value::as_bool);
    if wish(spec).or(wish(account)).unwrap_or(true) {
        mount_token(spec, volume);
    }
    if list(spec, "imagePullSecrets").is_empty()
        && let Some(secrets) = account.get("imagePullSecrets").and_then(Value::as_array)
    {
        let names = secrets.iter().map(|secret| json!({"name": secret["name"]}));
        let names: Vec<Value> = names.collect();
        if !names.is_empty() {
            spec.insert("imagePullSecrets".to_owned(), names.into());
        }
    }
}

fn mount_token(spec: &mut Map<String, Value>, generated: String) {
    let volumes = list(spec, "volumes").iter();
    let mut names = volumes.filter_map(|volume| volume["name"].as_str());
    let held = names.find(|name| name.starts_with(VOLUME)).map(str::to_owned);
    let is_new = held.is_none();
    let volume = held.unwrap_or(generated);
    let mount = json!({"name": volume, "readOnly": true, "mountPath": MOUNT_PATH});
    let mut is_mounted = false;
    for containers in ["initContainers", "containers"] {
        let containers = spec.get_mut(containers).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            let mounts = list(container, "volumeMounts");
            if mounts.iter().any(|mount| mount["mountPath"] == MOUNT_PATH) {
                continue;
            }
            append(container, "volumeMounts", mount.clone());
            is_mounted = true;
        }
    }
    if is_new && is_mounted {
        append(spec, "volumes", token_volume(&volume));
    }
}

fn token_volume(name: &str) -> Value {
    let authority = namespace_defaults::ROOT_CA;
    json!({"name": name, "projected": {"defaultMode": 0o644, "sources": [
        {"serviceAccountToken": {"path": "token", "expirationSeconds": TOKEN_SECONDS}},
        {"configMap": {"name": authority, "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {"downwardAPI": {"items": [
            {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}]}},
    ]}})
}

fn list<'o>(object: &'o Map<String, Value>, field: &str) -> &'o [Value] {
    object
        .get(field)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

fn append(object: &mut Map<String, Value>, field: &str, value: Value) {
    match object.get_mut(field).and_then(Value::as_array_mut) {
        Some(held) => held.push(value),
        None => drop(object.insert(field.to_owned(), json!([value]))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(value: Value) -> Object {
        serde_json::from_value(value).expect("an object")
    }

    fn completed(spec: Value, account: Value) -> Value {
        let mut spec = object(spec);
        complete(
            &mut spec,
            "robot",
            &object(account),
            "kube-api-access-xxxxx".to_owned(),
        );
        Value::Object(spec)
    }

    #[test]
    fn the_token_is_mounted_unless_pod_or_account_say_no() {
        for (pod, account, mounted) in [
            (json!(null), json!(null), true),
            (json!(null), json!(false), false),
            (json!(true), json!(false), true),
            (json!(false), json!(true), false),
            (json!(false), json!(null), false),
        ] {
            let spec = json!({"containers": [{"name": "a"}], "automountServiceAccountToken": pod});
            let spec = completed(spec, json!({"automountServiceAccountToken": account}));
            assert_eq!(spec["volumes"].is_array(), mounted, "{pod} {account}");
            assert_eq!(
                spec["containers"][0]["volumeMounts"].is_array(),
                mounted,
                "{pod} {account}"
            );
            assert_eq!(spec["serviceAccountName"], "robot");
        }
    }

    #[test]
    fn every_container_gets_it_that_has_nothing_there() {
        let own = json!({"name": "own", "mountPath": MOUNT_PATH});
        let spec = completed(
            json!({
                "initContainers": [{"name": "i", "volumeMounts": [{"name": "v", "mountPath": "/v"}]}],
                "containers": [{"name": "a", "volumeMounts": [own]}, {"name": "b"}],
                "volumes": [{"name": "v", "emptyDir": {}}],
            }),
            json!({}),
        );
        let mounts = |at: &str| spec.pointer(at).cloned().unwrap_or_default();
        let token = json!({"name": "kube-api-access-xxxxx", "readOnly": true, "mountPath": MOUNT_PATH});
        assert_eq!(mounts("/initContainers/0/volumeMounts/1"), token);
        assert_eq!(mounts("/containers/0/volumeMounts"), json!([own]));
        assert_eq!(mounts("/containers/1/volumeMounts"), json!([token]));
        assert_eq!(spec["volumes"].as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn a_volume_that_is_there_already_is_used_and_one_that_nobody_mounts_is_not_made() {
        let spec = completed(
            json!({"containers": [{"name": "a"}], "volumes": [{"name": "kube-api-access-abcde", "emptyDir": {}}]}),
            json!({}),
        );
        assert_eq!(
            spec["containers"][0]["volumeMounts"][0]["name"],
            "kube-api-access-abcde"
        );
        assert_eq!(spec["volumes"].as_array().map(Vec::len), Some(1));
        let own = json!([{"name": "own", "mountPath": MOUNT_PATH}]);
        let spec = completed(
            json!({"containers": [{"name": "a", "volumeMounts": own}]}),
            json!({}),
        );
        assert!(spec["volumes"].is_null());
    }

    #[test]
    fn pull_secrets_are_the_accounts_unless_the_pod_has_its_own() {
        let account = json!({"imagePullSecrets": [{"name": "registry"}]});
        let of_account = completed(json!({"containers": []}), account.clone());
        assert_eq!(of_account["imagePullSecrets"], json!([{"name": "registry"}]));
        let own = completed(json!({"imagePullSecrets": [{"name": "own"}]}), account);
        assert_eq!(own["imagePullSecrets"], json!([{"name": "own"}]));
    }
}
