//! SubPath mounts that follow their volume while the container runs: `hotmap.dev/live-subpath: "true"`.
//!
//! Kubernetes pins what a subPath shows when the container starts. Here the mount is swapped after each change of the volume:
//!
//! ```text
//!   writer thread   rename of `..data` ─▶ opens what each sub-path names now ─┐ one slot per mount, latest wins
//!   task of the pod                       asks the shim to show it  ◀─────────┘ tries again what failed
//! ```
//!
//! The descriptor holds on to its revision, so nothing hangs on when the volume's writer removes it. Whatever goes wrong, the
//! container goes on seeing what it saw.

mod desk;
mod follow;
mod open;

use std::path::{Path, PathBuf};

pub(crate) use desk::{LiveSubPaths, PodMounts, Standing};
pub(crate) use follow::follow;

use crate::pod::{Container, Pod};

/// The annotation on a pod.
pub(crate) const ANNOTATION: &str = "hotmap.dev/live-subpath";

/// What the annotation says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Wish {
    /// Kubernetes' semantics.
    Snapshot,
    Live,
    /// Neither `true` nor `false`, and taken for the latter.
    Unclear(String),
}

impl Wish {
    pub(crate) fn of(pod: &Pod) -> Self {
        match pod.metadata.annotations.get(ANNOTATION).map(String::as_str) {
            None | Some("false") => Self::Snapshot,
            Some("true") => Self::Live,
            Some(other) => Self::Unclear(other.to_owned()),
        }
    }
}

/// A mount of one start of one container.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LiveMount {
    pub(crate) container: String,
    pub(crate) attempt: u32,
    pub(crate) target: PathBuf,
    pub(crate) volume: String,
    pub(crate) sub_path: String,
}

/// The mounts of a container that can follow their volumes: a sub-path of one of the four config kinds. With each, why it
/// cannot after all, if so.
pub(crate) fn of_container(
    pod: &Pod,
    container: &Container,
    attempt: u32,
) -> Vec<(LiveMount, Option<String>)> {
    let is_config = |name: &str| {
        let mut volumes = pod.spec.volumes.iter();
        volumes.any(|volume| volume.name == name && volume.is_projected())
    };
    let mounts = container.volume_mounts.iter();
    mounts
        .filter(|mount| !is_whole(&mount.sub_path) && is_config(&mount.name))
        .map(|mount| {
            let target = PathBuf::from(&mount.mount_path);
            let inner = container.volume_mounts.iter().find(|other| {
                Path::new(&other.mount_path) != target && Path::new(&other.mount_path).starts_with(&target)
            });
            let obstacle = inner.map(|inner| {
                format!(
                    "{} is mounted inside it and would go with the old content",
                    inner.mount_path
                )
            });
            let live = LiveMount {
                container: container.name.clone(),
                attempt,
                target,
                volume: mount.name.clone(),
                sub_path: mount.sub_path.clone(),
            };
            (live, obstacle)
        })
        .collect()
}

/// Whether it names the volume itself, which follows without our help.
fn is_whole(sub_path: &str) -> bool {
    Path::new(sub_path)
        .components()
        .all(|component| component == std::path::Component::CurDir)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_true_makes_sub_paths_live() {
        for (annotations, wish) in [
            (json!({}), Wish::Snapshot),
            (json!({"hotmap.dev/live-subpath": "false"}), Wish::Snapshot),
            (json!({"hotmap.dev/live-subpath": "true"}), Wish::Live),
            (
                json!({"hotmap.dev/live-subpath": "True"}),
                Wish::Unclear("True".to_owned()),
            ),
            (
                json!({"hotmap.dev/live-subpath": ""}),
                Wish::Unclear(String::new()),
            ),
        ] {
            let document = json!({"metadata": {"name": "p", "annotations": annotations}});
            assert_eq!(Wish::of(&Pod::from_document(&document).expect("a pod")), wish);
        }
    }

    #[test]
    fn sub_paths_of_config_volumes_are_live_unless_something_is_mounted_inside() {
        let document = json!({"metadata": {"name": "p"}, "spec": {
            "containers": [{"name": "c", "volumeMounts": [
                {"name": "config", "mountPath": "/etc/app.conf", "subPath": "app.conf"},
                {"name": "down", "mountPath": "/etc/down", "subPath": "labels"},
                {"name": "config", "mountPath": "/etc/dir", "subPath": "dir"},
                {"name": "secret", "mountPath": "/etc/dir/key", "subPath": "key"},
                {"name": "config", "mountPath": "/whole"},
                {"name": "config", "mountPath": "/also-whole", "subPath": "./"},
                {"name": "scratch", "mountPath": "/scratch", "subPath": "x"},
                {"name": "nothing", "mountPath": "/nothing", "subPath": "x"}]}],
            "volumes": [{"name": "config", "configMap": {"name": "a"}}, {"name": "secret", "secret": {"secretName": "b"}},
                {"name": "down", "downwardAPI": {}}, {"name": "scratch", "emptyDir": {}}]}});
        let pod = Pod::from_document(&document).expect("a pod");
        let found: Vec<String> = of_container(&pod, &pod.spec.containers[0], 3)
            .into_iter()
            .map(|(mount, obstacle)| {
                let (target, attempt) = (mount.target.display(), mount.attempt);
                format!(
                    "{target}={}/{} {attempt} {}",
                    mount.volume,
                    mount.sub_path,
                    obstacle.is_none()
                )
            })
            .collect();
        let expected = [
            "/etc/app.conf=config/app.conf 3 true",
            "/etc/down=down/labels 3 true",
            "/etc/dir=config/dir 3 false",
            "/etc/dir/key=secret/key 3 true",
        ];
        assert_eq!(found, expected);
    }
}
