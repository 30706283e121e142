//! `hotmap up`: API server, store, controllers and node in one process.

mod command;
mod config;
mod manifests;
mod node_access;
mod plane;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Instant,
};

use anyhow::Context;
use hotmap_server::credentials::Identity;
use tokio::signal::unix::{SignalKind, signal};

use config::Home;
pub(crate) use config::UpConfig;
use plane::Plane;

use crate::data_dir::DataDir;

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
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut plane = Plane::start(config, data_dir).await?;
    plane.write_kubeconfig(kubeconfig).await?;
    let admin = plane.client(Identity::Admin).await?;
    let applied = manifests::apply(&admin, &config.manifests).await;
    println!(
        "hotmap {} is ready after {} ms",
        crate::version::OWN,
        begun.elapsed().as_millis()
    );
    println!("  API         {}", plane.url());
    println!("  kubeconfig  {}", kubeconfig.display());
    println!("  data        {}", data_dir.path().display());
    match &config.node {
        Some(node) => println!("  node        {}", node.name),
        None => println!("  node        none: pods stay Pending"),
    }
    println!();
    println!("  export KUBECONFIG={}", absolute(kubeconfig).display());
    println!("  kubectl get configmaps --all-namespaces");
    for line in applied? {
        println!("{line}");
    }
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
        ended = plane.failed() => return Err(ended),
    }
    let farewell = plane.stop().await?;
    println!("{farewell}");
    Ok(ExitCode::SUCCESS)
}

async fn run_beside(config: &UpConfig, data_dir: &DataDir, command: &[String]) -> anyhow::Result<u8> {
    let mut plane = Plane::start(config, data_dir).await?;
    let kubeconfig = data_dir.join("admin.kubeconfig");
    plane.write_kubeconfig(&kubeconfig).await?;
    let admin = plane.client(Identity::Admin).await?;
    manifests::apply(&admin, &config.manifests).await?;
    let code = tokio::select! {
        code = command::run(command, &kubeconfig) => code?,
        ended = plane.failed() => return Err(ended),
    };
    plane.stop().await?;
    Ok(code)
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
