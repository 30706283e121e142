//! `hotmap up`: API server, store, controllers and node in one process.

mod certificate_signer;
mod command;
mod config;
mod local_collections;
mod manifests;
mod plane;
mod pods_door;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::{Context, anyhow, bail};
use hotmap_client::Client;
use hotmap_server::credentials::Identity;

use config::Home;
pub(crate) use config::UpConfig;
use manifests::Followed;
use plane::Plane;

use crate::{
    data_dir::DataDir,
    output::say,
    service_manager::{Notice, notify},
    stop_signals::StopSignals,
};

/// Runs until a signal, or until the command of `--temp` has ended.
pub(crate) async fn run(config: UpConfig) -> anyhow::Result<ExitCode> {
    match &config.home {
        Home::Kept { data_dir, kubeconfig } => {
            let data_dir = DataDir::create(data_dir)?;
            let kubeconfig = kubeconfig
                .clone()
                .unwrap_or_else(|| data_dir.join("admin.kubeconfig"));
            stay_up(&config, &data_dir, &kubeconfig).await
        }
        Home::Temporary { command } => {
            let parent = tempfile::Builder::new()
                .prefix("hotmap-")
                .tempdir()
                .context("cannot make a temporary directory")?;
            let data_dir = DataDir::create(&parent.path().join("data"))?;
            let code = run_beside(&config, &data_dir, command).await;
            drop(data_dir);
            parent.close().context("cannot remove the temporary directory")?;
            code.map(ExitCode::from)
        }
    }
}

async fn stay_up(config: &UpConfig, data_dir: &DataDir, kubeconfig: &Path) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    // Before anything is started: a signal from here on is a clean stop.
    let mut signals = StopSignals::listen()?;
    let started = tokio::select! {
        started = start(config, data_dir, kubeconfig) => started,
        _ = signals.next() => bail!("stopped before it was ready"),
    };
    let (mut plane, admin) = started?;
    say(format_args!(
        "hotmap {} is ready after {} ms",
        crate::version::OWN,
        begun.elapsed().as_millis()
    ));
    say(format_args!("  API         {}", plane.url()));
    say(format_args!("  kubeconfig  {}", kubeconfig.display()));
    say(format_args!("  data        {}", data_dir.path().display()));
    match &config.node {
        Some(node) => say(format_args!("  node        {}", node.name)),
        None => say("  node        none here: pods stay Pending until `hotmap agent` brings one"),
    }
    if let Some(network) = plane.pod_network() {
        crate::agent::say_network(network);
    }
    say("");
    say(format_args!(
        "  export KUBECONFIG={}",
        absolute(kubeconfig).display()
    ));
    say("  kubectl get configmaps --all-namespaces");
    notify(Notice::Ready(&format!("serves {}", plane.url())));
    let manifests = async {
        let sources = &config.manifests;
        let followed = Followed::start(admin, sources, config.prune, data_dir.path()).await?;
        match followed.follow().await {}
    };
    let work = async {
        tokio::select! {
            ended = manifests => ended,
            failed = plane.failed() => Err(failed),
        }
    };
    let ended = tokio::select! {
        ended = work => ended,
        _ = signals.next() => Ok(()),
    };
    notify(Notice::Stopping);
    let farewell = tokio::select! {
        farewell = plane.stop() => farewell,
        _ = signals.next() => Err(anyhow!("asked to stop twice: not everything was stopped in order")),
    };
    // Why it stopped says more than how.
    ended?;
    say(farewell?);
    Ok(ExitCode::SUCCESS)
}

async fn start(config: &UpConfig, data_dir: &DataDir, kubeconfig: &Path) -> anyhow::Result<(Plane, Client)> {
    let plane = Plane::start(config, data_dir).await?;
    plane.write_kubeconfig(kubeconfig).await?;
    let admin = plane.client(Identity::Admin).await?;
    Ok((plane, admin))
}

async fn run_beside(config: &UpConfig, data_dir: &DataDir, command: &[String]) -> anyhow::Result<u8> {
    // From here on no signal ends us with files left behind; the start is short, so it is waited for.
    let mut signals = StopSignals::listen()?;
    let kubeconfig = data_dir.join("admin.kubeconfig");
    let (mut plane, admin) = start(config, data_dir, &kubeconfig).await?;
    let work = async {
        tokio::select! {
            applied = manifests::apply_once(&admin, &config.manifests) => applied.map(drop)?,
            code = signals.next() => return Ok(code),
        }
        // Signals are the command's from now on.
        tokio::select! {
            code = command::run(command, &kubeconfig) => Ok(code?),
            ended = plane.failed() => Err(ended),
        }
    };
    let code = work.await;
    let stopped = plane.stop().await;
    let code = code?;
    stopped.map(|_| code)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
