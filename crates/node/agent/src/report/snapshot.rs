//! What containers started with, kept beside their pod's volumes: it lives as long as they can, through the agent's death.

use std::{
    collections::BTreeMap,
    fs, io,
    io::Write,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::PathBuf,
    sync::Arc,
};

use serde::{Deserialize, Serialize};

use super::{Built, Revision, Way, digest::hex};
use crate::references::{ObjectKind, ObjectRef};

/// No volume has a name that begins with a dot.
const FILE: &str = ".started-with.json";

/// What one container started with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub(crate) container: String,
    pub(crate) attempt: u32,
    pub(crate) built: BTreeMap<Way, Built>,
}

/// The files of a node, one a pod.
#[derive(Debug, Clone)]
pub(crate) struct Snapshots {
    volumes: PathBuf,
}

#[derive(Serialize, Deserialize)]
struct Line {
    container: String,
    attempt: u32,
    /// Of a sub-path; none for variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    volume: Option<String>,
    is_secret: bool,
    namespace: String,
    name: String,
    /// None if the object was not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<Kept>,
}

#[derive(Serialize, Deserialize)]
struct Kept {
    uid: String,
    resource_version: String,
    fingerprint: String,
    digest: String,
}

impl Snapshots {
    /// `volumes` is the instance's tmpfs.
    pub(crate) fn new(volumes: PathBuf) -> Self {
        Self { volumes }
    }

    /// Keeps what a container started with, in place of what is kept of it. Blocks.
    pub(crate) fn keep(&self, pod_uid: &str, snapshot: &Snapshot) -> io::Result<()> {
        let mut lines = self.lines(pod_uid)?;
        lines.retain(|line| line.container != snapshot.container);
        lines.extend(snapshot.lines());
        if lines.is_empty() {
            return Ok(());
        }
        let pod = self.volumes.join(pod_uid);
        fs::DirBuilder::new().recursive(true).mode(0o711).create(&pod)?;
        let staged = pod.join(format!("{FILE}.new"));
        let mut file = fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&staged)?;
        file.write_all(&serde_json::to_vec(&lines)?)?;
        fs::rename(&staged, pod.join(FILE))
    }

    /// What the containers of a pod started with, as far as it was kept. Blocks.
    pub(crate) fn of(&self, pod_uid: &str) -> io::Result<Vec<Snapshot>> {
        let mut found: BTreeMap<(String, u32), BTreeMap<Way, Built>> = BTreeMap::new();
        for line in self.lines(pod_uid)? {
            let (way, reference, revision) = line.parts();
            let built = found.entry((line.container, line.attempt)).or_default();
            built.entry(way).or_default().insert(reference, revision);
        }
        let snapshots = found.into_iter().map(|((container, attempt), built)| Snapshot {
            container,
            attempt,
            built,
        });
        Ok(snapshots.collect())
    }

    fn lines(&self, pod_uid: &str) -> io::Result<Vec<Line>> {
        match fs::read(self.volumes.join(pod_uid).join(FILE)) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }
}

impl Snapshot {
    fn lines(&self) -> impl Iterator<Item = Line> {
        let each = move |(way, built): (&Way, &Built)| {
            let volume = match way {
                Way::SubPath { volume, .. } => Some(volume.clone()),
                Way::Environment { .. } | Way::Volume(_) => None,
            };
            let lines = built.iter().map(move |(reference, revision)| Line {
                container: self.container.clone(),
                attempt: self.attempt,
                volume: volume.clone(),
                is_secret: reference.kind == ObjectKind::Secret,
                namespace: reference.namespace.clone(),
                name: reference.name.clone(),
                revision: revision.as_ref().map(|revision| Kept {
                    uid: revision.uid.clone(),
                    resource_version: revision.resource_version.clone(),
                    fingerprint: hex(&revision.fingerprint),
                    digest: revision.digest.clone(),
                }),
            });
            lines.collect::<Vec<_>>()
        };
        self.built.iter().flat_map(each)
    }
}

impl Line {
    fn parts(&self) -> (Way, ObjectRef, Option<Arc<Revision>>) {
        let container = self.container.clone();
        let way = match self.volume.clone() {
            Some(volume) => Way::SubPath { container, volume },
            None => Way::Environment { container },
        };
        let kind = match self.is_secret {
            true => ObjectKind::Secret,
            false => ObjectKind::ConfigMap,
        };
        let reference = ObjectRef {
            kind,
            namespace: self.namespace.clone(),
            name: self.name.clone(),
        };
        let revision = self.revision.as_ref().map(|kept| {
            Arc::new(Revision {
                uid: kept.uid.clone(),
                resource_version: kept.resource_version.clone(),
                fingerprint: unhex(&kept.fingerprint),
                digest: kept.digest.clone(),
            })
        });
        (way, reference, revision)
    }
}

/// Nonsense becomes a fingerprint that no content has.
fn unhex(text: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    let digits = text.as_bytes().chunks_exact(2);
    for (byte, pair) in bytes.iter_mut().zip(digits) {
        let pair = std::str::from_utf8(pair).unwrap_or_default();
        *byte = u8::from_str_radix(pair, 16).unwrap_or_default();
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_kept_is_found_again() {
        let directory = tempfile::tempdir().expect("a directory");
        let snapshots = Snapshots::new(directory.path().to_owned());
        assert_eq!(snapshots.of("u").expect("nothing is no error"), []);
        let reference = |name: &str| ObjectRef {
            kind: ObjectKind::Secret,
            namespace: "default".to_owned(),
            name: name.to_owned(),
        };
        let revision = Arc::new(Revision {
            uid: "s".to_owned(),
            resource_version: "7".to_owned(),
            fingerprint: [0xa5; 32],
            digest: "hmac-sha256:a5".to_owned(),
        });
        let snapshot = |container: &str, attempt| {
            let built = Built::from([
                (reference("db"), Some(Arc::clone(&revision))),
                (reference("no"), None),
            ]);
            let container = container.to_owned();
            let environment = Way::Environment {
                container: container.clone(),
            };
            let sub_path = Way::SubPath {
                container: container.clone(),
                volume: "cfg".to_owned(),
            };
            Snapshot {
                container,
                attempt,
                built: BTreeMap::from([(environment, built.clone()), (sub_path, built)]),
            }
        };
        snapshots.keep("u", &snapshot("app", 0)).expect("kept");
        snapshots.keep("u", &snapshot("app", 1)).expect("kept");
        snapshots.keep("u", &snapshot("side", 0)).expect("kept");
        assert_eq!(
            snapshots.of("u").expect("readable"),
            [snapshot("app", 1), snapshot("side", 0)]
        );
        fs::write(directory.path().join("u").join(FILE), "x").expect("written");
        assert!(snapshots.of("u").is_err());
    }
}
