//! Names and values that become paths, interface names and arguments.

use crate::config::IdRange;
use crate::protocol;
use crate::spec::{ContainerConfig, SandboxConfig};

/// Linux's `HOST_NAME_MAX`.
const HOSTNAME_BYTES_MAX: usize = 64;

/// Mounts of one container.
const MOUNTS_MAX: usize = 1_024;

/// Groups that Linux gives a process.
const GROUPS_MAX: usize = 65_536;

type Checked = Result<(), String>;

pub(crate) fn pod_uid(uid: &str) -> Checked {
    if protocol::is_pod_uid(uid) {
        Ok(())
    } else {
        Err(format!("pod uid {uid:?} must be 1 to 63 of [A-Za-z0-9-]"))
    }
}

pub(crate) fn sandbox(config: &SandboxConfig) -> Checked {
    pod_uid(&config.pod_uid)?;
    if config.hostname.is_empty() || config.hostname.len() > HOSTNAME_BYTES_MAX {
        return Err(format!(
            "host name {:?} must have 1 to {HOSTNAME_BYTES_MAX} bytes",
            config.hostname
        ));
    }
    Ok(())
}

pub(crate) fn container_name(name: &str) -> Checked {
    let safe = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if (1..=63).contains(&name.len()) && name.bytes().all(safe) {
        Ok(())
    } else {
        Err(format!("container name {name:?} must be 1 to 63 of [a-z0-9-]"))
    }
}

pub(crate) fn argv(argv: &[String]) -> Checked {
    if argv.is_empty() {
        return Err("no command specified".to_owned());
    }
    if argv.iter().any(|argument| argument.contains('\0')) {
        return Err("an argument holds a zero byte".to_owned());
    }
    Ok(())
}

pub(crate) fn container(config: &ContainerConfig) -> Checked {
    container_name(&config.name)?;
    argv(&config.argv)?;
    for (name, value) in &config.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(format!("environment variable {name:?} holds = or a zero byte"));
        }
    }
    let user = &config.user;
    let mut ids = [user.uid, user.gid]
        .into_iter()
        .chain(user.supplementary_groups.iter().copied());
    if let Some(id) = ids.find(|id| *id >= IdRange::LEN) {
        return Err(format!("id {id} is above 65535, the last that a pod has"));
    }
    if user.supplementary_groups.len() > GROUPS_MAX {
        return Err(format!("more than {GROUPS_MAX} supplementary groups"));
    }
    if config.mounts.len() > MOUNTS_MAX {
        return Err(format!("more than {MOUNTS_MAX} mounts"));
    }
    let targets = config.mounts.iter().map(|mount| &mount.target);
    let links = config.links.iter().map(|(link, _)| link);
    let files = config.files.iter().map(|file| &file.path);
    for path in targets
        .chain(files)
        .chain(&config.writable)
        .chain(links)
        .chain([&config.cwd, &config.log_path])
    {
        let up = path
            .components()
            .any(|component| component == std::path::Component::ParentDir);
        if !path.is_absolute() || up {
            return Err(format!(
                "the path {:?} must be absolute and without ..",
                path.display().to_string()
            ));
        }
    }
    if let Some(root) = config
        .mounts
        .iter()
        .find(|mount| mount.target.components().count() < 2)
    {
        return Err(format!("{} cannot be mounted at /", root.source.display()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_safe_as_path_segments() {
        for (uid, valid) in [
            ("8a7e-11", true),
            ("", false),
            ("..", false),
            ("a/b", false),
            (&"x".repeat(64), false),
        ] {
            assert_eq!(pod_uid(uid).is_ok(), valid, "{uid:?}");
        }
        for (name, valid) in [("web", true), ("_shim", false), ("A", false), (".", false)] {
            assert_eq!(container_name(name).is_ok(), valid, "{name:?}");
        }
    }
}
