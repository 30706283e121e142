//! `hotmap agent --join`: who the node is, from a token the first time and from its own file ever after.

use std::{
    fmt,
    path::{Path, PathBuf},
};

use anyhow::{Context, bail};
use clap::Args;
use hotmap_agent::{ApiClock, JoinConfig, Rotation, certificate_end, join};
use hotmap_client::{AuthorityHash, Client, ClientConfig};
use jiff::Timestamp;
use tokio::task::{JoinHandle, spawn_blocking};
use tracing::info;

use crate::{data_dir::DataDir, token::is_token};

/// What a join writes into the data directory.
const KUBECONFIG: &str = "agent.kubeconfig";

/// Flags of joining, as typed.
#[derive(Debug, Args)]
pub(crate) struct JoinArgs {
    /// Join the API at this URL with --token and --ca-hash; a node that has joined needs none of them
    #[arg(long, env = "HOTMAP_JOIN", value_name = "URL", conflicts_with_all = ["kubeconfig", "context"])]
    join: Option<String>,
    /// A token of `hotmap token create`; it is not kept.
    #[arg(
        long,
        env = "HOTMAP_TOKEN",
        hide_env_values = true,
        value_name = "TOKEN",
        requires = "join",
        value_parser = token
    )]
    token: Option<BootstrapToken>,
    /// What the API's authority is known by, as `hotmap token create --print-join-command` prints it.
    #[arg(long, env = "HOTMAP_CA_HASH", value_name = "sha256:HEX", requires = "join")]
    ca_hash: Option<AuthorityHash>,
    /// Replace the node's certificate at once; for tests.
    #[arg(long, hide = true, env = "HOTMAP_FAULT_ROTATE_AT_START")]
    fault_rotate_at_start: bool,
}

/// A node that has joined.
pub(super) struct Joined {
    kubeconfig: PathBuf,
    node_name: String,
    rotate_at_start: bool,
}

impl JoinArgs {
    /// Joins, if that is asked for and has not happened. `None`: the node is not one that joins.
    pub(super) async fn ensure(self, data_dir: &DataDir, node_name: &str) -> anyhow::Result<Option<Joined>> {
        let kubeconfig = data_dir.join(KUBECONFIG);
        let joined = Joined {
            kubeconfig: kubeconfig.clone(),
            node_name: node_name.to_owned(),
            rotate_at_start: self.fault_rotate_at_start,
        };
        if kubeconfig.exists() {
            let config = joined.config().await?;
            self.check_server(&config, &kubeconfig)?;
            let end = config
                .identity
                .and_then(|identity| certificate_end(&identity.certificate_pem));
            if end.is_some_and(|end| Timestamp::now() < end) {
                return Ok(Some(joined));
            }
            if self.token.is_none() {
                bail!(
                    "the certificate in {} has ended: join again with --join, --token and --ca-hash",
                    kubeconfig.display()
                );
            }
        }
        let Some(url) = self.join else { return Ok(None) };
        let (Some(token), Some(authority)) = (self.token, self.ca_hash) else {
            bail!(
                "this node has not joined yet: --join needs --token and --ca-hash, as `hotmap token create --print-join-command` prints them"
            );
        };
        let config = JoinConfig {
            url: url.clone(),
            token: token.0,
            authority,
            node_name: node_name.to_owned(),
            kubeconfig,
        };
        join(&config)
            .await
            .with_context(|| format!("cannot join {url} as node {node_name:?}"))?;
        info!(node = node_name, url, "joined");
        Ok(Some(joined))
    }

    fn check_server(&self, config: &ClientConfig, kubeconfig: &Path) -> anyhow::Result<()> {
        match &self.join {
            Some(url) if url.trim_end_matches('/') != config.server.url() => bail!(
                "this node has joined {}, not {url}: remove {} to join another API",
                config.server.url(),
                kubeconfig.display()
            ),
            _ => Ok(()),
        }
    }
}

impl Joined {
    /// How the node reaches the API.
    pub(super) async fn config(&self) -> anyhow::Result<ClientConfig> {
        let path = self.kubeconfig.clone();
        Ok(spawn_blocking(move || ClientConfig::from_kubeconfig(&path, None)).await??)
    }

    /// Keeps the node's certificate fresh until the handle is aborted.
    pub(super) fn keep_fresh(self, client: Client, api_clock: ApiClock) -> JoinHandle<()> {
        let rotation = Rotation {
            kubeconfig: self.kubeconfig,
            node_name: self.node_name,
            at_start: self.rotate_at_start,
            api_clock,
        };
        tokio::spawn(async move { match rotation.run(client, |_| {}).await {} })
    }
}

/// A token; never shown.
#[derive(Clone)]
struct BootstrapToken(String);

impl fmt::Debug for BootstrapToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BootstrapToken(…)")
    }
}

fn token(text: &str) -> Result<BootstrapToken, &'static str> {
    match is_token(text) {
        true => Ok(BootstrapToken(text.to_owned())),
        false => Err("must look like abcdef.0123456789abcdef, as `hotmap token create` prints it"),
    }
}
