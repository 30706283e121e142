//! What a container runs: its own command, or what its image stands for on this host.

use std::path::PathBuf;

use hotmap_runtime::{HostImage, HostImages, ProcessUser};

use crate::{
    environment::Environment,
    expansion::expand,
    pod::{Container, GroupsPolicy, Pod},
};

/// A program with everything that comes from the image and the security contexts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Command {
    pub(crate) argv: Vec<String>,
    pub(crate) env: Environment,
    pub(crate) cwd: PathBuf,
    pub(crate) user: ProcessUser,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
}

/// Why a container has nothing to run; the container waits with this reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum CommandError {
    /// `ErrImageNeverPull`: the reason upstream gives when an image is not there and may not be pulled.
    #[error(
        "image {0:?} stands for no program of this host and no image is ever pulled: give the container a command, or describe the image in host-images.yaml"
    )]
    NoImage(String),
    #[error("image {image:?} stands for {}, which is not installed on this host", .path.display())]
    NotInstalled { image: String, path: PathBuf },
    /// `CreateContainerConfigError` from here on.
    /// This and the next two in upstream's words (`verifyRunAsNonRoot` in `pkg/kubelet/kuberuntime`, Kubernetes 1.36).
    #[error("container has runAsNonRoot and image will run as root (pod: {pod:?}, container: {container})")]
    Root { pod: String, container: String },
    #[error("container's runAsUser breaks non-root policy (pod: {pod:?}, container: {container})")]
    AskedRoot { pod: String, container: String },
    #[error(
        "container has runAsNonRoot and image has non-numeric user ({user}), cannot verify user is non-root (pod: {pod:?}, container: {container})"
    )]
    UnknownUser {
        user: String,
        pod: String,
        container: String,
    },
    #[error("the user of image {image:?} is {user:?}, not uid or uid:gid; correct it in host-images.yaml")]
    ImageUser { image: String, user: String },
    #[error("{what} {id} is above 65535, the highest id inside a pod")]
    IdOutOfRange { what: &'static str, id: u32 },
}

impl CommandError {
    /// The reason of the waiting state.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::NoImage(_) | Self::NotInstalled { .. } => "ErrImageNeverPull",
            Self::Root { .. }
            | Self::AskedRoot { .. }
            | Self::UnknownUser { .. }
            | Self::ImageUser { .. }
            | Self::IdOutOfRange { .. } => "CreateContainerConfigError",
        }
    }
}

/// The highest uid and gid a pod has.
const ID_MAX: u32 = 65_535;

/// Computes what to run. `env` is the container's own environment; the image's goes under it.
pub(crate) fn command(
    pod: &Pod,
    container: &Container,
    env: Environment,
    images: &HostImages,
    is_there: impl Fn(&std::path::Path) -> bool,
) -> Result<Command, CommandError> {
    let known = images.resolve(&container.image);
    if container.command.is_empty() {
        let image = known.ok_or_else(|| CommandError::NoImage(container.image.clone()))?;
        if !is_there(&image.path) {
            return Err(CommandError::NotInstalled {
                image: container.image.clone(),
                path: image.path.clone(),
            });
        }
    }
    let env = match known {
        Some(image) => image.env.clone().into_iter().chain(env).collect(),
        None => env,
    };
    let user = user(pod, container, known)?;
    let cwd = match (
        &container.working_dir,
        known.and_then(|image| image.workdir.clone()),
    ) {
        (own, _) if !own.is_empty() => PathBuf::from(own),
        (_, Some(from_image)) => from_image,
        _ => PathBuf::from("/"),
    };
    let expanded = |word: &String| expand(word, |name| env.get(name).map(String::as_str));
    let argv = words(container, known).iter().map(expanded).collect();
    Ok(Command {
        argv,
        cwd,
        user,
        writable: known.map(|image| image.writable.clone()).unwrap_or_default(),
        links: known
            .map(|image| image.links.clone().into_iter().collect())
            .unwrap_or_default(),
        env,
    })
}

/// Without an image there is the container's own command only.
fn words(container: &Container, image: Option<&HostImage>) -> Vec<String> {
    match image {
        Some(image) => image.argv(&container.command, &container.args),
        None => container.command.iter().chain(&container.args).cloned().collect(),
    }
}

fn user(pod: &Pod, container: &Container, image: Option<&HostImage>) -> Result<ProcessUser, CommandError> {
    let (own, shared) = (&container.security_context, &pod.spec.security_context);
    let asked = own.run_as_user.or(shared.run_as_user);
    let is_non_root = own.run_as_non_root.or(shared.run_as_non_root) == Some(true);
    let shown = || {
        let metadata = &pod.metadata;
        let pod = format!("{}_{}({})", metadata.name, metadata.namespace, metadata.uid);
        (pod, container.name.clone())
    };
    let image_user = image.and_then(|image| image.user.as_deref());
    let (image_uid, image_gid) = match image_user.map(|text| (text, parse_user(text))) {
        Some((_, Some(ids))) => ids,
        Some((text, None)) if is_non_root && asked.is_none() => {
            let (pod, container) = shown();
            return Err(CommandError::UnknownUser {
                user: text.to_owned(),
                pod,
                container,
            });
        }
        Some((text, None)) => {
            return Err(CommandError::ImageUser {
                image: container.image.clone(),
                user: text.to_owned(),
            });
        }
        None => (0, 0),
    };
    let uid = asked.unwrap_or(image_uid);
    let gid = own.run_as_group.or(shared.run_as_group).unwrap_or(image_gid);
    if uid == 0 && is_non_root {
        let (pod, container) = shown();
        return Err(match asked {
            Some(_) => CommandError::AskedRoot { pod, container },
            None => CommandError::Root { pod, container },
        });
    }
    let groups = shared.fs_group.into_iter().map(|group| ("fsGroup", group));
    let groups = groups.chain(
        shared
            .supplemental_groups
            .iter()
            .map(|group| ("supplementalGroups", *group)),
    );
    let ids = [("runAsUser", uid), ("runAsGroup", gid)];
    for (what, id) in ids.into_iter().chain(groups.clone()) {
        if id > ID_MAX {
            return Err(CommandError::IdOutOfRange { what, id });
        }
    }
    Ok(ProcessUser {
        uid,
        gid,
        supplementary_groups: groups.map(|(_, group)| group).collect(),
        merge_groups: shared.supplemental_groups_policy == GroupsPolicy::Merge,
    })
}

/// `uid` or `uid:gid`.
fn parse_user(text: &str) -> Option<(u32, u32)> {
    let (uid, gid) = text.split_once(':').unwrap_or((text, "0"));
    Some((uid.parse().ok()?, gid.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn computed(spec: Value, installed: bool) -> Result<Command, CommandError> {
        let document = json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"}, "spec": spec});
        let pod = Pod::from_document(&document).expect("a pod");
        let env = Environment::from([("WHO".to_owned(), "me".to_owned())]);
        command(
            &pod,
            &pod.spec.containers[0],
            env,
            &HostImages::built_in(),
            |_| installed,
        )
    }

    #[test]
    fn words_come_from_the_container_or_from_the_image() {
        for (container, argv) in [
            (
                json!({"image": "x", "command": ["/bin/echo"], "args": ["$(WHO)", "$(NO)"]}),
                vec!["/bin/echo", "me", "$(NO)"],
            ),
            (
                json!({"image": "registry.example/library/busybox:1.36", "args": ["echo", "x"]}),
                vec!["echo", "x"],
            ),
            (json!({"image": "busybox", "command": ["true"]}), vec!["true"]),
        ] {
            let found = computed(json!({"containers": [container]}), true)
                .expect("runs")
                .argv;
            assert!(found.len() >= argv.len(), "{found:?}");
            assert_eq!(found[found.len() - argv.len() + 1..], argv[1..], "{found:?}");
            assert!(
                found[0].ends_with(argv[0]) || found.contains(&argv[0].to_owned()),
                "{found:?}"
            );
        }
    }

    #[test]
    fn what_cannot_run_says_what_to_do() {
        for (spec, installed, reason, part) in [
            (
                json!({"containers": [{"image": "memcached"}]}),
                true,
                "ErrImageNeverPull",
                "host-images.yaml",
            ),
            (
                json!({"containers": [{"image": "nginx"}]}),
                false,
                "ErrImageNeverPull",
                "not installed",
            ),
            (
                json!({"securityContext": {"runAsNonRoot": true}, "containers": [{"command": ["x"]}]}),
                true,
                "CreateContainerConfigError",
                "container has runAsNonRoot and image will run as root (pod: \"p_n(u)\", container: )",
            ),
            (
                json!({"securityContext": {"runAsNonRoot": true}, "containers": [{"command": ["x"], "securityContext": {"runAsUser": 0}}]}),
                true,
                "CreateContainerConfigError",
                "container's runAsUser breaks non-root policy (pod: \"p_n(u)\", container: )",
            ),
            (
                json!({"securityContext": {"supplementalGroups": [1, 65_536]}, "containers": [{"command": ["x"]}]}),
                true,
                "CreateContainerConfigError",
                "supplementalGroups 65536 is above 65535",
            ),
            (
                json!({"containers": [{"command": ["x"], "securityContext": {"runAsUser": 70_000}}]}),
                true,
                "CreateContainerConfigError",
                "above 65535",
            ),
        ] {
            let error = computed(spec, installed).expect_err(part);
            assert_eq!(error.reason(), reason);
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn the_container_outranks_the_pod_and_the_pod_the_image() {
        let spec = json!({"securityContext": {"runAsUser": 1, "runAsGroup": 2, "fsGroup": 3, "supplementalGroups": [5, 4]},
            "containers": [{"command": ["x"], "securityContext": {"runAsUser": 9}}]});
        let user = computed(spec, true).expect("runs").user;
        assert_eq!(
            user,
            ProcessUser {
                uid: 9,
                gid: 2,
                supplementary_groups: vec![3, 5, 4],
                merge_groups: true,
            }
        );
    }
}
