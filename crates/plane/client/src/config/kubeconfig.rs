//! Reads a kubeconfig: one file, one context.
//!
//! Fields: Kubernetes 1.36 `client-go/tools/clientcmd/api/v1/types.go`. What would change whom we trust or who
//! we are and is not supported is an error, never ignored.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use crate::config::{ClientConfig, ConfigError, Identity, Server, Token};

impl ClientConfig {
    /// Reads `context` of a kubeconfig, or its current context. Relative paths in it start at its directory.
    /// Reads files: not for a thread that must not wait.
    ///
    /// # Errors
    /// [`ConfigError`], also for what this client does not do: exec and auth-provider plugins, passwords,
    /// proxies, impersonation, and trusting any server.
    pub fn from_kubeconfig(path: &Path, context: Option<&str>) -> Result<Self, ConfigError> {
        let text = String::from_utf8(read(path)?).map_err(|_| ConfigError::Parse {
            path: path.to_owned(),
            line: None,
        })?;
        let directory = path.parent().unwrap_or(Path::new(""));
        let file: Kubeconfig = serde_saphyr::from_str(&text).map_err(|error| ConfigError::Parse {
            path: path.to_owned(),
            line: error.location().map(|location| location.line()),
        })?;
        file.select(context, directory)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Kubeconfig {
    #[serde(default)]
    current_context: Option<String>,
    #[serde(default)]
    contexts: Option<Vec<NamedContext>>,
    #[serde(default)]
    clusters: Option<Vec<NamedCluster>>,
    #[serde(default)]
    users: Option<Vec<NamedUser>>,
}

#[derive(Deserialize)]
struct NamedContext {
    name: String,
    context: Context,
}

#[derive(Deserialize)]
struct Context {
    cluster: String,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    namespace: Option<String>,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: String,
    cluster: Cluster,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: String,
    #[serde(default)]
    certificate_authority: Option<PathBuf>,
    #[serde(default)]
    certificate_authority_data: Option<String>,
    #[serde(default)]
    tls_server_name: Option<String>,
    #[serde(default)]
    insecure_skip_tls_verify: bool,
    #[serde(default)]
    proxy_url: Option<String>,
}

#[derive(Deserialize)]
struct NamedUser {
    name: String,
    user: User,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "kebab-case")]
struct User {
    client_certificate: Option<PathBuf>,
    client_certificate_data: Option<String>,
    client_key: Option<PathBuf>,
    client_key_data: Option<String>,
    token: Option<String>,
    #[serde(rename = "tokenFile")]
    token_file: Option<PathBuf>,
    username: Option<String>,
    #[serde(rename = "as")]
    impersonate: Option<String>,
    exec: Option<serde::de::IgnoredAny>,
    auth_provider: Option<serde::de::IgnoredAny>,
}

impl Kubeconfig {
    fn select(self, context: Option<&str>, directory: &Path) -> Result<ClientConfig, ConfigError> {
        let name = context
            .map(str::to_owned)
            .or(self.current_context)
            .filter(|name| !name.is_empty());
        let name = name.ok_or(ConfigError::NoContext)?;
        let context = self
            .contexts
            .into_iter()
            .flatten()
            .find(|named| named.name == name);
        let context = context
            .ok_or(ConfigError::Missing {
                what: "context",
                name,
            })?
            .context;
        let cluster = self
            .clusters
            .into_iter()
            .flatten()
            .find(|named| named.name == context.cluster);
        let cluster = cluster
            .ok_or(ConfigError::Missing {
                what: "cluster",
                name: context.cluster,
            })?
            .cluster;
        let user = match context.user.filter(|name| !name.is_empty()) {
            None => User::default(),
            Some(name) => {
                let user = self.users.into_iter().flatten().find(|named| named.name == name);
                user.ok_or(ConfigError::Missing { what: "user", name })?.user
            }
        };
        let mut config = cluster.into_config(directory)?;
        config.identity = user.identity(directory)?;
        config.token = user.into_token(directory);
        config.namespace = context.namespace.filter(|name| !name.is_empty());
        Ok(config)
    }
}

impl Cluster {
    fn into_config(self, directory: &Path) -> Result<ClientConfig, ConfigError> {
        refuse(
            "insecure-skip-tls-verify",
            self.insecure_skip_tls_verify,
            "; name the server's CA instead",
        )?;
        refuse("proxy-url", self.proxy_url.is_some(), "")?;
        let mut server = Server::parse(&self.server)?;
        if let Some(name) = self.tls_server_name {
            server.tls_name = name;
        }
        let what = "certificate-authority";
        let ca = pem(
            what,
            self.certificate_authority_data,
            self.certificate_authority,
            directory,
        )?;
        let ca = ca.ok_or(ConfigError::Certificate {
            what,
            why: "there is none".to_owned(),
        })?;
        Ok(ClientConfig::new(server, ca))
    }
}

impl User {
    fn identity(&self, directory: &Path) -> Result<Option<Identity>, ConfigError> {
        refuse(
            "exec",
            self.exec.is_some(),
            "; use a client certificate or a token",
        )?;
        refuse(
            "auth-provider",
            self.auth_provider.is_some(),
            "; use a client certificate or a token",
        )?;
        refuse(
            "username",
            self.username.is_some(),
            "; use a client certificate or a token",
        )?;
        refuse("as", self.impersonate.is_some(), "")?;
        let (certificate, key) = (&self.client_certificate, &self.client_key);
        let (certificate_data, key_data) = (&self.client_certificate_data, &self.client_key_data);
        let certificate = pem(
            "client-certificate",
            certificate_data.clone(),
            certificate.clone(),
            directory,
        )?;
        let key = pem("client-key", key_data.clone(), key.clone(), directory)?;
        match (certificate, key) {
            (Some(certificate_pem), Some(key_pem)) => Ok(Some(Identity {
                certificate_pem,
                key_pem,
            })),
            (None, None) => Ok(None),
            (Some(_), None) => Err(ConfigError::Certificate {
                what: "client-key",
                why: "there is none".to_owned(),
            }),
            (None, Some(_)) => Err(ConfigError::Certificate {
                what: "client-certificate",
                why: "there is none".to_owned(),
            }),
        }
    }

    /// A token file comes before a token, as with client-go: it is the one that is renewed.
    fn into_token(self, directory: &Path) -> Option<Token> {
        let file = self.token_file.map(|path| Token::File(directory.join(path)));
        file.or(self.token.filter(|token| !token.is_empty()).map(Token::Fixed))
    }
}

fn refuse(field: &'static str, is_asked_for: bool, hint: &'static str) -> Result<(), ConfigError> {
    if is_asked_for {
        Err(ConfigError::Unsupported { field, hint })
    } else {
        Ok(())
    }
}

/// The data form, which comes first, or the file form.
fn pem(
    what: &'static str,
    data: Option<String>,
    file: Option<PathBuf>,
    directory: &Path,
) -> Result<Option<Vec<u8>>, ConfigError> {
    if let Some(data) = data.filter(|data| !data.is_empty()) {
        let compact: String = data.split_whitespace().collect();
        let why = "not base64".to_owned();
        return STANDARD
            .decode(compact)
            .map(Some)
            .map_err(|_| ConfigError::Certificate { what, why });
    }
    file.map(|file| read(&directory.join(file))).transpose()
}

fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    std::fs::read(path).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(user: &str, cluster: &str, context: Option<&str>) -> Result<ClientConfig, String> {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca.pem"), "ca file").unwrap();
        let path = directory.path().join("config");
        let text = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: here\npreferences: {{}}\n\
             contexts:\n- name: here\n  context: {{cluster: c, user: u, namespace: n}}\n\
             - name: broken\n  context: {{cluster: nowhere}}\n\
             clusters:\n- name: c\n  cluster: {{server: 'https://127.0.0.1:6443', {cluster}}}\n\
             users:\n- name: u\n  user: {{{user}}}\n"
        );
        std::fs::write(&path, text).unwrap();
        ClientConfig::from_kubeconfig(&path, context).map_err(|error| error.to_string())
    }

    #[test]
    fn data_and_file_forms_and_tokens_are_read() {
        let config = load(
            "client-certificate-data: Yw==, client-key-data: aw==",
            "certificate-authority: ca.pem",
            None,
        );
        let config = config.unwrap();
        assert_eq!((config.server.port, &config.ca_pem[..]), (6443, &b"ca file"[..]));
        assert_eq!(config.namespace.as_deref(), Some("n"));
        let identity = config.identity.expect("certificate and key are there");
        assert_eq!(
            (&identity.certificate_pem[..], &identity.key_pem[..]),
            (&b"c"[..], &b"k"[..])
        );

        let config = load(
            "token: t",
            "certificate-authority-data: Y2E=, tls-server-name: api",
            Some("here"),
        )
        .unwrap();
        assert_eq!(
            (&config.ca_pem[..], config.server.tls_name.as_str()),
            (&b"ca"[..], "api")
        );
        assert!(matches!(config.token, Some(Token::Fixed(token)) if token == "t"));
    }

    #[test]
    fn what_cannot_work_has_its_sentence() {
        const CA: &str = "certificate-authority-data: Y2E=";
        for (user, cluster, context, text) in [
            ("", CA, Some("gone"), r#"the kubeconfig has no context "gone""#),
            (
                "",
                CA,
                Some("broken"),
                r#"the kubeconfig has no cluster "nowhere""#,
            ),
            ("", "", None, "certificate-authority: there is none"),
            (
                "",
                "certificate-authority-data: '!'",
                None,
                "certificate-authority: not base64",
            ),
            (
                "client-key-data: aw==",
                CA,
                None,
                "client-certificate: there is none",
            ),
            (
                "client-certificate-data: Yw==",
                CA,
                None,
                "client-key: there is none",
            ),
            (
                "exec: {command: aws}",
                CA,
                None,
                "exec of a kubeconfig is not supported; use a client certificate or a token",
            ),
            ("as: root", CA, None, "as of a kubeconfig is not supported"),
            (
                "",
                "insecure-skip-tls-verify: true",
                None,
                "insecure-skip-tls-verify of a kubeconfig is not supported; name the server's CA instead",
            ),
        ] {
            assert_eq!(load(user, cluster, context).expect_err(text), text);
        }
    }

    #[test]
    fn a_malformed_file_is_named_and_not_quoted() {
        let error = load("token: [hunter2", "", None).expect_err("no YAML");
        assert!(
            error.contains("is not a kubeconfig") && !error.contains("hunter2"),
            "{error}"
        );
    }
}
