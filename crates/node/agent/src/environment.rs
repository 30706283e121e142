//! The environment of a container, computed afresh for each start.
//!
//! Order and precedence follow `pkg/kubelet/kubelet_pods.go` (`makeEnvironmentVariables`), Kubernetes 1.36: `envFrom` in
//! order, then `env` in order, later ones win. Of the variables that name services there are those of `kubernetes`, the API
//! itself, and no others: hotmap does not proxy services. They come first, so that everything else wins over them; as
//! upstream, `enableServiceLinks: false` does not take them away.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
};

use crate::{
    expansion::expand,
    fields::{self, FieldError, PodFacts},
    objects::{self, Held},
    pod::{Container, EnvVarSource, KeySelector, Pod},
    references::{ObjectKind, ObjectRef},
};

/// Variables by name, the form in which commands and arguments look them up.
pub(crate) type Environment = BTreeMap<String, String>;

/// Where pods find the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ApiForPods {
    /// At this port of the bridge that the node's pods are on.
    Bridge(u16),
    /// At this address, which pods can reach by themselves.
    Address(SocketAddr),
}

/// The variables of the service `kubernetes` (`pkg/kubelet/envvars`, Kubernetes 1.36), whose only port is called `https`.
pub(crate) fn of_api(api: Option<ApiForPods>, gateway: Option<Ipv4Addr>) -> Environment {
    let at = match api {
        None => return Environment::new(),
        Some(ApiForPods::Bridge(port)) => match gateway {
            Some(gateway) => SocketAddr::new(IpAddr::V4(gateway), port),
            None => return Environment::new(),
        },
        Some(ApiForPods::Address(at)) => at,
    };
    let (host, port) = (at.ip().to_string(), at.port().to_string());
    let link = format!("KUBERNETES_PORT_{port}_TCP");
    let url = format!("tcp://{at}");
    let variables = [
        ("KUBERNETES_SERVICE_HOST".to_owned(), host.clone()),
        ("KUBERNETES_SERVICE_PORT".to_owned(), port.clone()),
        ("KUBERNETES_SERVICE_PORT_HTTPS".to_owned(), port.clone()),
        ("KUBERNETES_PORT".to_owned(), url.clone()),
        (format!("{link}_PROTO"), "tcp".to_owned()),
        (format!("{link}_PORT"), port),
        (format!("{link}_ADDR"), host),
        (link, url),
    ];
    Environment::from(variables)
}

/// Why a container cannot get its environment, in the kubelet's words: `CreateContainerConfigError`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum EnvironmentError {
    #[error("{}", objects::not_found(*.kind, .name, *.wording))]
    NoObject {
        kind: ObjectKind,
        name: String,
        wording: Wording,
    },
    #[error("{}", objects::not_synced(*.0))]
    NotSynced(ObjectKind),
    #[error("couldn't find key {key} in {} {namespace}/{name}", .kind.name())]
    NoKey {
        kind: ObjectKind,
        namespace: String,
        name: String,
        key: String,
    },
    #[error("variable {0} holds a NUL byte, which no environment can carry")]
    Nul(String),
    #[error("variable {0} is not UTF-8")]
    NotUtf8(String),
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// What is known of an object when the container starts.
#[derive(Debug, Clone)]
pub(crate) enum Known {
    Present(Arc<Held>),
    /// It is not there, which is said in these words.
    Missing(Wording),
    /// Nothing has been heard from the API yet.
    Unknown,
}

/// How a kind is named where an object of it is missing: who watches says `configmap`, who asks the API `configmaps`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wording {
    Singular,
    Plural,
}

/// Computes the environment over that of `services`. `look_up` is asked once per object, so that all variables of it come from
/// one revision.
pub(crate) fn environment(
    pod: &Pod,
    container: &Container,
    facts: &PodFacts,
    services: Environment,
    look_up: impl Fn(&ObjectRef) -> Known,
) -> Result<Environment, EnvironmentError> {
    let mut objects = Objects {
        namespace: &pod.metadata.namespace,
        look_up,
        seen: BTreeMap::new(),
    };
    let mut variables = services;
    for source in &container.env_from {
        let config_map = source
            .config_map_ref
            .as_ref()
            .map(|one| (ObjectKind::ConfigMap, one));
        let secret = source.secret_ref.as_ref().map(|one| (ObjectKind::Secret, one));
        for (kind, reference) in config_map.into_iter().chain(secret) {
            let Some(held) = objects.get(kind, &reference.name, reference.optional)? else {
                continue;
            };
            for (key, value) in held.text_values() {
                let name = format!("{}{key}", source.prefix);
                let value = text(&name, value)?;
                variables.insert(name, value);
            }
        }
    }
    for variable in &container.env {
        let value = match &variable.value_from {
            None => Some(expand(&variable.value, |name| {
                variables.get(name).map(String::as_str)
            })),
            Some(source) => objects.value(pod, container, facts, &variable.name, source)?,
        };
        // An optional key that is missing leaves an earlier value of that name as it is.
        if let Some(value) = value {
            if value.contains('\0') {
                return Err(EnvironmentError::Nul(variable.name.clone()));
            }
            variables.insert(variable.name.clone(), value);
        }
    }
    Ok(variables)
}

struct Objects<'a, L> {
    namespace: &'a str,
    look_up: L,
    seen: BTreeMap<ObjectRef, Known>,
}

impl<L: Fn(&ObjectRef) -> Known> Objects<'_, L> {
    fn get(
        &mut self,
        kind: ObjectKind,
        name: &str,
        optional: bool,
    ) -> Result<Option<Arc<Held>>, EnvironmentError> {
        let reference = ObjectRef {
            kind,
            namespace: self.namespace.to_owned(),
            name: name.to_owned(),
        };
        let look_up = &self.look_up;
        let known = self.seen.entry(reference).or_insert_with_key(look_up);
        match known {
            Known::Present(held) => Ok(Some(Arc::clone(held))),
            Known::Missing(_) if optional => Ok(None),
            Known::Missing(wording) => Err(EnvironmentError::NoObject {
                kind,
                name: name.to_owned(),
                wording: *wording,
            }),
            Known::Unknown => Err(EnvironmentError::NotSynced(kind)),
        }
    }

    fn key(
        &mut self,
        kind: ObjectKind,
        variable: &str,
        selector: &KeySelector,
    ) -> Result<Option<String>, EnvironmentError> {
        let Some(held) = self.get(kind, &selector.name, selector.optional)? else {
            return Ok(None);
        };
        match held.text_value(&selector.key) {
            Some(value) => text(variable, value).map(Some),
            None if selector.optional => Ok(None),
            None => Err(EnvironmentError::NoKey {
                kind,
                namespace: self.namespace.to_owned(),
                name: selector.name.clone(),
                key: selector.key.clone(),
            }),
        }
    }

    fn value(
        &mut self,
        pod: &Pod,
        container: &Container,
        facts: &PodFacts,
        variable: &str,
        source: &EnvVarSource,
    ) -> Result<Option<String>, EnvironmentError> {
        if let Some(field) = &source.field_ref {
            return Ok(Some(fields::for_environment(pod, facts, &field.field_path)?));
        }
        if let Some(selector) = &source.resource_field_ref {
            return Ok(Some(fields::resource(pod, Some(container), facts, selector)?));
        }
        if let Some(selector) = &source.config_map_key_ref {
            return self.key(ObjectKind::ConfigMap, variable, selector);
        }
        if let Some(selector) = &source.secret_key_ref {
            return self.key(ObjectKind::Secret, variable, selector);
        }
        Ok(None)
    }
}

fn text(variable: &str, value: &[u8]) -> Result<String, EnvironmentError> {
    let text = std::str::from_utf8(value).map_err(|_| EnvironmentError::NotUtf8(variable.to_owned()))?;
    if text.contains('\0') {
        Err(EnvironmentError::Nul(variable.to_owned()))
    } else {
        Ok(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn held(reference: &ObjectRef, document: Value) -> Known {
        let json = document.to_string();
        Known::Present(Arc::new(
            Held::parse(reference.kind, json.as_bytes(), crate::objects::Heard::now(None))
                .expect("an object"),
        ))
    }

    fn computed(container: Value) -> Result<Vec<String>, String> {
        let document =
            json!({"metadata": {"name": "p", "namespace": "n"}, "spec": {"containers": [container]}});
        let pod = Pod::from_document(&document).expect("a pod");
        let look_up = |reference: &ObjectRef| match (reference.kind, reference.name.as_str()) {
            (ObjectKind::ConfigMap, "app") => held(
                reference,
                json!({
                    "data": {"level": "INFO", "a.b": "dotted"}, "binaryData": {"bin": "AAE="}
                }),
            ),
            (ObjectKind::Secret, "key") => held(
                reference,
                json!({
                    "data": {"token": "czNjcjN0", "bad": "/w=="}
                }),
            ),
            (ObjectKind::ConfigMap, "unknown") => Known::Unknown,
            (ObjectKind::ConfigMap, "asked") => Known::Missing(Wording::Plural),
            _ => Known::Missing(Wording::Singular),
        };
        let services = Environment::from([("SERVICE".to_owned(), "10.0.0.1".to_owned())]);
        let variables = environment(
            &pod,
            &pod.spec.containers[0],
            &PodFacts::default(),
            services,
            look_up,
        );
        variables
            .map(|variables| {
                variables
                    .iter()
                    .map(|(name, value)| format!("{name}={value}"))
                    .collect()
            })
            .map_err(|error| error.to_string())
    }

    #[test]
    fn later_sources_win_and_values_expand() {
        let container = json!({"name": "c",
            "envFrom": [{"prefix": "P_", "configMapRef": {"name": "app"}}, {"configMapRef": {"name": "none", "optional": true}}],
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "$(A)$(P_level)$(C)"}, {"name": "A", "value": "2"},
                    {"name": "P_level", "valueFrom": {"configMapKeyRef": {"name": "app", "key": "none", "optional": true}}},
                    {"name": "T", "valueFrom": {"secretKeyRef": {"name": "key", "key": "token"}}},
                    {"name": "N", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}, {"name": "E"},
                    {"name": "S", "value": "https://$(SERVICE)"}, {"name": "SERVICE", "value": "own"}]});
        let expected = [
            "A=2",
            "B=1INFO$(C)",
            "E=",
            "N=p",
            "P_a.b=dotted",
            "P_level=INFO",
            "S=https://10.0.0.1",
            "SERVICE=own",
            "T=s3cr3t",
        ];
        assert_eq!(computed(container).expect("complete"), expected);
    }

    #[test]
    fn pods_are_told_where_the_api_is() {
        let gateway = Some(Ipv4Addr::new(10, 88, 0, 1));
        assert_eq!(of_api(None, gateway), Environment::new());
        assert_eq!(of_api(Some(ApiForPods::Bridge(6443)), None), Environment::new());
        let shown = |api| -> Vec<String> {
            let variables = of_api(Some(api), gateway);
            variables
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect()
        };
        let expected = [
            "KUBERNETES_PORT=tcp://10.88.0.1:6443",
            "KUBERNETES_PORT_6443_TCP=tcp://10.88.0.1:6443",
            "KUBERNETES_PORT_6443_TCP_ADDR=10.88.0.1",
            "KUBERNETES_PORT_6443_TCP_PORT=6443",
            "KUBERNETES_PORT_6443_TCP_PROTO=tcp",
            "KUBERNETES_SERVICE_HOST=10.88.0.1",
            "KUBERNETES_SERVICE_PORT=6443",
            "KUBERNETES_SERVICE_PORT_HTTPS=6443",
        ];
        assert_eq!(shown(ApiForPods::Bridge(6443)), expected);
        let elsewhere = shown(ApiForPods::Address("[fd00::1]:443".parse().expect("an address")));
        assert!(elsewhere.contains(&"KUBERNETES_PORT_443_TCP=tcp://[fd00::1]:443".to_owned()));
        assert!(elsewhere.contains(&"KUBERNETES_SERVICE_HOST=fd00::1".to_owned()));
    }

    #[test]
    fn what_is_missing_is_said_in_the_kubelets_words() {
        let from = |source: Value| json!({"name": "c", "env": [{"name": "X", "valueFrom": source}]});
        for (container, text) in [
            (
                from(json!({"configMapKeyRef": {"name": "none", "key": "k"}})),
                r#"configmap "none" not found"#,
            ),
            (
                from(json!({"configMapKeyRef": {"name": "asked", "key": "k"}})),
                r#"configmaps "asked" not found"#,
            ),
            (
                from(json!({"configMapKeyRef": {"name": "app", "key": "bin"}})),
                "couldn't find key bin in ConfigMap n/app",
            ),
            (
                from(json!({"secretKeyRef": {"name": "key", "key": "k"}})),
                "couldn't find key k in Secret n/key",
            ),
            (
                from(json!({"secretKeyRef": {"name": "key", "key": "bad"}})),
                "variable X is not UTF-8",
            ),
            (
                from(json!({"configMapKeyRef": {"name": "unknown", "key": "k"}})),
                "failed to sync configmap cache: timed out waiting for the condition",
            ),
            (
                json!({"name": "c", "envFrom": [{"secretRef": {"name": "none"}}]}),
                r#"secret "none" not found"#,
            ),
        ] {
            assert_eq!(computed(container).expect_err(text), text);
        }
    }
}
