//! Who the node is, in a file that kubectl reads too.

use std::{
    fs, io,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use base64::{Engine, prelude::BASE64_STANDARD};
use hotmap_client::{Identity, Server};
use serde_json::Value;

use super::JoinError;

const MODE: u32 = 0o600;

pub(super) fn render(server: &Server, authority_pem: &[u8], node: &str, identity: &Identity) -> String {
    let encode = |pem: &[u8]| BASE64_STANDARD.encode(pem);
    let [authority, certificate, key] =
        [authority_pem, &identity.certificate_pem, &identity.key_pem].map(encode);
    // JSON strings are YAML strings.
    let [url, tls_name, user] = [
        server.url(),
        server.tls_name.clone(),
        format!("system:node:{node}"),
    ]
    .map(Value::from);
    format!(
        "apiVersion: v1
kind: Config
clusters:
- name: hotmap
  cluster:
    server: {url}
    tls-server-name: {tls_name}
    certificate-authority-data: {authority}
users:
- name: {user}
  user:
    client-certificate-data: {certificate}
    client-key-data: {key}
contexts:
- name: hotmap
  context:
    cluster: hotmap
    user: {user}
current-context: hotmap
"
    )
}

/// Replaces the file whole, for the owner alone.
pub(super) async fn write(path: PathBuf, text: String) -> Result<(), JoinError> {
    let to = path.clone();
    let written = tokio::task::spawn_blocking(move || replace(&to, text.as_bytes())).await;
    written
        .unwrap_or_else(|error| Err(io::Error::other(error)))
        .map_err(|source| JoinError::File { path, source })
}

fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let staged = path.with_extension("new");
    // What a start left that was cut off may have another mode.
    if let Err(error) = fs::remove_file(&staged)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(error);
    }
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(&staged)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(&staged, path)?;
    fs::File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use hotmap_client::ClientConfig;

    use super::*;

    #[tokio::test]
    async fn what_is_written_is_read_again_and_only_by_its_owner() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("agent.kubeconfig");
        fs::write(path.with_extension("new"), "left behind").expect("written");
        let mut server = Server::parse("https://[::1]:6443/prefix").expect("a URL");
        server.tls_name = "api".to_owned();
        for key in ["k1", "k2"] {
            let identity = Identity {
                certificate_pem: b"c".to_vec(),
                key_pem: key.into(),
            };
            let text = render(&server, b"ca", "a", &identity);
            write(path.clone(), text).await.expect("written");
            let read = ClientConfig::from_kubeconfig(&path, None).expect("a kubeconfig");
            assert_eq!((&read.server, &read.ca_pem[..]), (&server, &b"ca"[..]));
            assert_eq!(read.identity.expect("one").key_pem, key.as_bytes());
        }
        let mode = fs::metadata(&path).expect("the file").permissions().mode();
        assert_eq!(mode & 0o777, MODE);
        let left = fs::read_dir(directory.path()).expect("readable").count();
        assert_eq!(left, 1);
    }
}
