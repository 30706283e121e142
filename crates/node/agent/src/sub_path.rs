//! `subPathExpr`: a sub-path with variables of the container in it.
//!
//! Rules and words follow `ExpandContainerVolumeMounts` in `pkg/kubelet/container/helpers.go` and `makeMounts` in
//! `pkg/kubelet/kubelet_pods.go`, Kubernetes 1.36. That nothing leaves the volume is seen to when the path is opened.

use std::{cell::RefCell, collections::BTreeSet, path::Component, path::Path};

use crate::{environment::Environment, expansion::expand, pod::Container};

/// Why a sub-path is none; the container waits with `CreateContainerConfigError`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SubPathError {
    /// Names of variables that are not there, or empty.
    #[error("missing value for {0}")]
    Missing(String),
    #[error("error SubPath `{0}` must not be an absolute path")]
    Absolute(String),
    #[error("unable to provision SubPath `{0}`: must not contain '..'")]
    Backsteps(String),
}

/// The container with every expression written out as the sub-path that it means.
pub(crate) fn expanded(mut container: Container, env: &Environment) -> Result<Container, SubPathError> {
    for mount in &mut container.volume_mounts {
        if mount.sub_path_expr.is_empty() {
            continue;
        }
        let missing = RefCell::new(BTreeSet::new());
        let path = expand(&mount.sub_path_expr, |name| {
            let value = env.get(name).map_or("", String::as_str);
            if value.is_empty() {
                missing.borrow_mut().insert(name.to_owned());
            }
            Some(value)
        });
        let missing = Vec::from_iter(missing.into_inner());
        if !missing.is_empty() {
            return Err(SubPathError::Missing(missing.join(", ")));
        }
        if Path::new(&path).is_absolute() {
            return Err(SubPathError::Absolute(path));
        }
        if Path::new(&path)
            .components()
            .any(|one| one == Component::ParentDir)
        {
            return Err(SubPathError::Backsteps(path));
        }
        mount.sub_path = path;
    }
    Ok(container)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn expressions_become_sub_paths_that_stay_inside() {
        let env = [
            ("POD", "shop-0"),
            ("ROOT", "/etc"),
            ("UP", "a/../.."),
            ("EMPTY", ""),
        ];
        let env: Environment = env
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let missing = |names: &str| Err(SubPathError::Missing(names.to_owned()));
        for (expression, path) in [
            ("", Ok("kept".to_owned())),
            ("plain", Ok("plain".to_owned())),
            ("logs/$(POD)", Ok("logs/shop-0".to_owned())),
            ("$$(POD)", Ok("$(POD)".to_owned())),
            ("..data/$(POD)", Ok("..data/shop-0".to_owned())),
            ("$(NO)/$(EMPTY)/$(NO)", missing("EMPTY, NO")),
            ("$(ROOT)/x", Err(SubPathError::Absolute("/etc/x".to_owned()))),
            ("x/$(UP)", Err(SubPathError::Backsteps("x/a/../..".to_owned()))),
        ] {
            let container = json!({"name": "c", "volumeMounts": [{"name": "v", "subPath": "kept", "subPathExpr": expression}]});
            let container: Container = serde_json::from_value(container).expect("a container");
            let found =
                expanded(container, &env).map(|container| container.volume_mounts[0].sub_path.clone());
            assert_eq!(found, path, "{expression}");
        }
    }
}
