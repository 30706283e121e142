//! From a volume of a pod to its payload: objects and fields in, files out.

use hotmap_volume::{
    ConfigMapSource, DownwardFile, FileMode, KeyToPath, Lookup, ModeError, Payload, ProjectionError,
    SecretSource, Source, project,
};

use super::DesiredVolume;
use crate::{
    environment::Known,
    fields, objects,
    pod::{self, DownwardSource},
    references::{ObjectKind, ObjectRef},
};

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
) -> Result<Payload, PayloadError> {
    let volume = &desired.volume;
    let builder = Builder { desired, look_up };
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
        }
        (sources, projected.default_mode)
    } else {
        (Vec::new(), None)
    };
    let default_mode = default_mode.map_or(Ok(FileMode::DEFAULT), FileMode::new)?;
    Ok(project(&sources, default_mode)?)
}

struct Builder<'a, L> {
    desired: &'a DesiredVolume,
    look_up: L,
}

impl<L: Fn(&ObjectRef) -> Known> Builder<'_, L> {
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
            Known::Missing => Lookup::NotFound(objects::not_found(kind, name)),
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
