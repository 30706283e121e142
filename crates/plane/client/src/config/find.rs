//! Finds the API as kubectl does: a kubeconfig that is named, `$KUBECONFIG`, `~/.kube/config`, the pod's own account.
//!
//! Order: Kubernetes 1.36 `client-go/tools/clientcmd` (loader.go, client_config.go) and `client-go/rest/config.go`.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use crate::config::{ClientConfig, ConfigError, Server, Token};

/// Where a pod finds its account's token and the certificate of the API.
const ACCOUNT_DIRECTORY: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The pod's own namespace, in that directory.
const NAMESPACE_FILE: &str = "namespace";

/// The variables that say where the API is. The binary reads them, nobody below it.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// `KUBECONFIG`.
    pub kubeconfig: Option<OsString>,
    /// `HOME`.
    pub home: Option<OsString>,
    /// `KUBERNETES_SERVICE_HOST`.
    pub service_host: Option<String>,
    /// `KUBERNETES_SERVICE_PORT`.
    pub service_port: Option<String>,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process() -> Self {
        Self {
            kubeconfig: std::env::var_os("KUBECONFIG"),
            home: std::env::var_os("HOME"),
            service_host: std::env::var("KUBERNETES_SERVICE_HOST").ok(),
            service_port: std::env::var("KUBERNETES_SERVICE_PORT").ok(),
        }
    }
}

impl ClientConfig {
    /// The config of the API that kubectl would talk to; `named` is what `--kubeconfig` says. Reads files: not for a
    /// thread that must not wait.
    ///
    /// # Errors
    /// [`ConfigError`]; [`ConfigError::NoApi`] says where was looked.
    pub fn find(
        named: Option<&Path>,
        context: Option<&str>,
        surroundings: &Surroundings,
    ) -> Result<Self, ConfigError> {
        match place(named, surroundings, Path::exists)? {
            Place::Kubeconfig(path) => Self::from_kubeconfig(&path, context),
            Place::Account { host, port } => of_account(Path::new(ACCOUNT_DIRECTORY), &host, &port),
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Place {
    Kubeconfig(PathBuf),
    Account { host: String, port: String },
}

fn place(
    named: Option<&Path>,
    surroundings: &Surroundings,
    exists: impl Fn(&Path) -> bool,
) -> Result<Place, ConfigError> {
    if let Some(path) = named {
        return Ok(Place::Kubeconfig(path.to_owned()));
    }
    if let Some(list) = surroundings.kubeconfig.as_ref().filter(|list| !list.is_empty()) {
        let mut files = std::env::split_paths(list).filter(|path| !path.as_os_str().is_empty());
        return match (files.next(), files.next()) {
            (Some(only), None) => Ok(Place::Kubeconfig(only)),
            _ => Err(ConfigError::SeveralFiles),
        };
    }
    let home = surroundings
        .home
        .as_ref()
        .map(|home| Path::new(home).join(".kube/config"));
    if let Some(path) = home.filter(|path| exists(path)) {
        return Ok(Place::Kubeconfig(path));
    }
    match (&surroundings.service_host, &surroundings.service_port) {
        (Some(host), Some(port)) if !host.is_empty() && !port.is_empty() => Ok(Place::Account {
            host: host.clone(),
            port: port.clone(),
        }),
        _ => Err(ConfigError::NoApi),
    }
}

fn of_account(directory: &Path, host: &str, port: &str) -> Result<ClientConfig, ConfigError> {
    let ca = directory.join("ca.crt");
    let ca_pem = std::fs::read(&ca).map_err(|source| ConfigError::Read { path: ca, source })?;
    let host = if host.contains(':') {
        format!("[{host}]")
    } else {
        host.to_owned()
    };
    let mut config = ClientConfig::new(Server::parse(&format!("https://{host}:{port}"))?, ca_pem);
    config.token = Some(Token::File(directory.join("token")));
    config.namespace = namespace_of_account(directory)?;
    Ok(config)
}

/// An account without the file has credentials all the same (client-go reads the two apart).
fn namespace_of_account(directory: &Path) -> Result<Option<String>, ConfigError> {
    let path = directory.join(NAMESPACE_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|name| !name.is_empty())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ConfigError::Read { path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_place_that_says_where_wins() {
        let everything = Surroundings {
            kubeconfig: Some("/k/config".into()),
            home: Some("/home/a".into()),
            service_host: Some("10.0.0.1".to_owned()),
            service_port: Some("443".to_owned()),
        };
        let without_variable = Surroundings {
            kubeconfig: None,
            ..everything.clone()
        };
        let file = |path: &str| Some(Place::Kubeconfig(path.into()));
        let account = Some(Place::Account {
            host: "10.0.0.1".to_owned(),
            port: "443".to_owned(),
        });
        let named = Some(Path::new("/n"));
        for (named, surroundings, has_home, expected) in [
            (named, &everything, true, file("/n")),
            (None, &everything, true, file("/k/config")),
            (None, &without_variable, true, file("/home/a/.kube/config")),
            (None, &without_variable, false, account),
            (None, &Surroundings::default(), true, None),
        ] {
            assert_eq!(place(named, surroundings, |_| has_home).ok(), expected);
        }
    }

    #[test]
    fn an_account_brings_its_namespace() {
        let directory = tempfile::tempdir().expect("a directory");
        std::fs::write(directory.path().join("ca.crt"), "ca").expect("written");
        for (file, expected) in [(None, None), (Some(""), None), (Some("shop\n"), Some("shop"))] {
            if let Some(text) = file {
                std::fs::write(directory.path().join(NAMESPACE_FILE), text).expect("written");
            }
            let config = of_account(directory.path(), "10.0.0.1", "443").expect("an account");
            assert_eq!(config.namespace.as_deref(), expected);
        }
    }

    #[test]
    fn a_list_of_files_is_refused_with_what_to_do() {
        let surroundings = Surroundings {
            kubeconfig: Some("/a:/b".into()),
            ..Surroundings::default()
        };
        let error = place(None, &surroundings, |_| true).expect_err("two files");
        assert!(error.to_string().contains("--kubeconfig"), "{error}");
    }
}
