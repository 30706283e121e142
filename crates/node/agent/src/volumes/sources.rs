//! From a volume of a pod to its payload: objects and fields in, files out.

use bytes::Bytes;
use hotmap_volume::{
    ConfigMapSource, DownwardFile, FileMode, KeyToPath, Lookup, ModeError, Payload, ProjectionError,
    SecretSource, Source, TokenFile, project,
};

use super::DesiredVolume;
use crate::{
    environment::Known,
    fields, objects,
    pod::{self, DownwardSource},
    references::{ObjectKind, ObjectRef},
    tokens::TokenRef,
};

/// Mode of a token that belongs to a user or a group of the pod's own (`pkg/volume/projected`, Kubernetes 1.36).
const TOKEN_MODE: u32 = 0o600;

/// Why there is no payload.
#[derive(Debug, thiserror::Error)]
pub(super) enum PayloadError {
    #[error(transparent)]
    Projection(#[from] ProjectionError),
    #[error(transparent)]
    Mode(#[from] ModeError),
}

impl PayloadError {
    /// Whether a change of an object, and nothing else, is the cure.
    pub(super) fn waits_for_object(&self) -> bool {
        match self {
            Self::Projection(error) => error.is_only_missing(),
            Self::Mode(_) => false,
        }
    }
}

/// Builds the payload of a volume of one of the four config kinds.
pub(super) fn payload(
    desired: &DesiredVolume,
    look_up: impl Fn(&ObjectRef) -> Known,
    token: impl Fn(&TokenRef) -> Result<Bytes, String>,
) -> Result<Payload, PayloadError> {
    let volume = &desired.volume;
    let builder = Builder {
        desired,
        look_up,
        token,
    };
    let (sources, default_mode) = if let Some(source) = &volume.config_map {
        (vec![builder.config_map(source)?], source.default_mode)
    } else if let Some(source) = &volume.secret {
        (vec![builder.secret(source)?], source.default_mode)
    } else if let Some(source) = &volume.downward_api {
        (vec![builder.downward(source)?], source.default_mode)
    } else if let Some(projected) = &volume.projected {
        let mut sources = Vec::new();
        for entry in &projected.sources {
            if let Some(source) = &entry.config_map {
                sources.push(builder.config_map(source)?);
            }
            if let Some(source) = &entry.secret {
                sources.push(builder.secret(source)?);
            }
            if let Some(source) = &entry.downward_api {
                sources.push(builder.downward(source)?);
            }
            if let Some(source) = &entry.service_account_token {
                sources.push(builder.token(source)?);
            }
        }
        (sources, projected.default_mode)
    } else {
        (Vec::new(), None)
    };
    let default_mode = default_mode.map_or(Ok(FileMode::DEFAULT), FileMode::new)?;
    Ok(project(&sources, default_mode)?)
}

struct Builder<'a, L, T> {
    desired: &'a DesiredVolume,
    look_up: L,
    token: T,
}

impl<L: Fn(&ObjectRef) -> Known, T: Fn(&TokenRef) -> Result<Bytes, String>> Builder<'_, L, T> {
    fn config_map(&self, source: &pod::ConfigMapSource) -> Result<Source, ModeError> {
        let object = self.object(ObjectKind::ConfigMap, &source.name);
        Ok(Source::ConfigMap(ConfigMapSource {
            object,
            items: items(&source.items)?,
            optional: source.optional,
        }))
    }

    fn secret(&self, source: &pod::SecretSource) -> Result<Source, ModeError> {
        let object = self.object(ObjectKind::Secret, &source.secret_name);
        Ok(Source::Secret(SecretSource {
            object,
            items: items(&source.items)?,
            optional: source.optional,
        }))
    }

    fn object(&self, kind: ObjectKind, name: &str) -> Lookup {
        let namespace = self.desired.pod.metadata.namespace.clone();
        match (self.look_up)(&ObjectRef {
            kind,
            namespace,
            name: name.to_owned(),
        }) {
            Known::Present(held) => Lookup::Found(held.keys().clone()),
            Known::Missing(wording) => Lookup::NotFound(objects::not_found(kind, name, wording)),
            Known::Unknown => Lookup::Failed(objects::not_synced(kind)),
        }
    }

    fn downward(&self, source: &DownwardSource) -> Result<Source, ModeError> {
        let files = source.items.iter().map(|file| {
            Ok(DownwardFile {
                path: file.path.clone(),
                value: self
                    .field(file)
                    .map(Into::into)
                    .map_err(|error| error.to_string()),
                mode: file.mode.map(FileMode::new).transpose()?,
            })
        });
        files.collect::<Result<_, _>>().map(Source::DownwardApi)
    }

    fn token(&self, source: &pod::TokenSource) -> Result<Source, ModeError> {
        let DesiredVolume {
            pod,
            fs_group,
            token_owner,
            ..
        } = self.desired;
        let is_somebodys = fs_group.is_some() || token_owner.is_some();
        Ok(Source::ServiceAccountToken(TokenFile {
            path: source.path.clone(),
            token: (self.token)(&TokenRef::new(pod, source)),
            mode: is_somebodys.then(|| FileMode::new(TOKEN_MODE)).transpose()?,
            owner: *token_owner,
        }))
    }

    fn field(&self, file: &pod::DownwardFile) -> Result<String, fields::FieldError> {
        let DesiredVolume { pod, facts, .. } = self.desired;
        match (&file.field_ref, &file.resource_field_ref) {
            (Some(field), _) => fields::for_volume(pod, &field.field_path),
            (None, Some(selector)) => fields::resource(pod, None, facts, selector),
            (None, None) => Err(fields::FieldError::Unsupported(String::new())),
        }
    }
}

fn items(items: &[pod::KeyToPath]) -> Result<Vec<KeyToPath>, ModeError> {
    let items = items.iter().map(|item| {
        let mode = item.mode.map(FileMode::new).transpose()?;
        Ok(KeyToPath {
            key: item.key.clone(),
            path: item.path.clone(),
            mode,
        })
    });
    items.collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use hotmap_volume::Ownership;
    use serde_json::json;

    use super::*;
    use crate::{fields::PodFacts, pod::Pod};

    #[test]
    fn tokens_are_for_their_user_alone_where_the_pod_names_one() {
        let document = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"serviceAccountName": "robot",
            "containers": [], "volumes": [{"name": "v", "projected": {"defaultMode": 0o444, "sources": [
                {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
                {"downwardAPI": {"items": [{"path": "namespace", "fieldRef": {"fieldPath": "metadata.namespace"}}]}}]}}]}});
        let pod = Arc::new(Pod::from_document(&document).expect("a pod"));
        for (fs_group, token_owner, shown) in [
            (None, None, "namespace=n 444 None; token=robot 444 None"),
            (Some(9), None, "namespace=n 444 None; token=robot 600 None"),
            (None, Some(7), "namespace=n 444 None; token=robot 600 Some(7)"),
        ] {
            let desired = DesiredVolume {
                pod: Arc::clone(&pod),
                facts: PodFacts::default(),
                volume: pod.spec.volumes[0].clone(),
                owner: Ownership { uid: 1, gid: 1 },
                fs_group,
                token_owner,
            };
            let token = |token: &TokenRef| Ok(Bytes::from(token.service_account.clone()));
            let payload = payload(&desired, |_| Known::Unknown, token).expect("a payload");
            let files: Vec<String> = payload
                .iter()
                .map(|(path, file)| {
                    let text = String::from_utf8_lossy(&file.bytes);
                    format!("{path}={text} {:o} {:?}", file.mode.bits(), file.owner)
                })
                .collect();
            assert_eq!(files.join("; "), shown);
        }
    }

    #[test]
    fn a_volume_without_its_token_is_not_written_and_waits_for_it() {
        let document = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": {"containers": [],
            "volumes": [{"name": "v", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}]}});
        let pod = Arc::new(Pod::from_document(&document).expect("a pod"));
        let desired = DesiredVolume {
            volume: pod.spec.volumes[0].clone(),
            pod,
            facts: PodFacts::default(),
            owner: Ownership { uid: 1, gid: 1 },
            fs_group: None,
            token_owner: None,
        };
        let failed = "failed to fetch token: no route";
        let error = payload(&desired, |_| Known::Unknown, |_| Err(failed.to_owned())).expect_err("no token");
        assert!(error.waits_for_object());
        assert_eq!(error.to_string(), failed);
    }
}
