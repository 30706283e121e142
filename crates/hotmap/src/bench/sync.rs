//! From the event of a change to its content in a directory that `hotmap sync` keeps.
//!
//! ```text
//!   PUT ──▶ server ──watch──▶ hotmap sync ──rename──▶ directory ── inotify, a thread that reads through ..data ── arrived
//!    │         └─────watch──▶ this process ── event
//!    └── sent
//! ```

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use clap::Args;
use hotmap_client::{Client, ClientConfig, ResourcePath, WatchEvent, WatchParams, WatchStream};
use hyper::Method;
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout},
};

use super::{
    Bench, config_map, process,
    propagation::{Arrivals, NAME},
    report::Row,
};

const START_TIMEOUT: Duration = Duration::from_secs(30);
/// Between two looks at the directory while its sync starts.
const START_POLL: Duration = Duration::from_millis(2);

/// Flags of `bench sync`.
#[derive(Debug, Args)]
pub(super) struct SyncArgs {
    /// Changes that are measured in each directory, one after the other.
    #[arg(long, env = "HOTMAP_BENCH_CHANGES", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    changes: u32,
    /// Where the directories are made, one after the other: name a disk and a tmpfs.
    #[arg(
        long = "in",
        env = "HOTMAP_BENCH_IN",
        value_name = "DIR",
        value_delimiter = ',',
        default_value = "/dev/shm,/var/tmp"
    )]
    places: Vec<PathBuf>,
    /// The program that syncs, such as hotmap-reload [default: this one]
    #[arg(long, env = "HOTMAP_BENCH_PROGRAM", value_name = "FILE")]
    program: Option<PathBuf>,
    /// Rest between two changes, in milliseconds: an edit now and then, not a storm.
    #[arg(long, env = "HOTMAP_BENCH_PAUSE_MS", default_value_t = 20)]
    pause_ms: u16,
}

/// For each place the times from sending a change, and from its event, to its content.
pub(super) async fn measure(bench: &Bench<'_>, args: &SyncArgs) -> anyhow::Result<Vec<Row>> {
    let (_, data_dir) = bench.server.context("the server is not ours")?;
    let kubeconfig = data_dir.with_file_name("kubeconfig");
    let connection = bench.connector.connect().await?;
    let mut change = 0;
    connection
        .exchange(Method::POST, &bench.config_maps(), config_map(NAME, change))
        .await?;
    let target = format!("{}/{NAME}", bench.config_maps());
    let mut rows = Vec::new();
    for place in &args.places {
        let directory = tempfile::Builder::new().prefix("hotmap-bench-").tempdir_in(place);
        let directory =
            directory.with_context(|| format!("cannot make a directory in {}", place.display()))?;
        let mut syncing = Syncing::start(args, bench.namespace, &kubeconfig, directory.path()).await?;
        let mut arrivals = Arrivals::listen(vec![directory.path().to_owned()])?;
        let mut events = Events::listen(&kubeconfig, bench.namespace).await?;
        super::progress(&format!("changing the ConfigMap {} times", args.changes));
        let (mut since_sent, mut since_event) = (Vec::new(), Vec::new());
        let mut busy = Duration::ZERO;
        for _ in 0..args.changes {
            change += 1;
            sleep(Duration::from_millis(args.pause_ms.into())).await;
            let body = config_map(NAME, change);
            let sent = Instant::now();
            let write = async {
                connection.exchange(Method::PUT, &target, body).await?;
                anyhow::Ok(())
            };
            let ((), event, (_, arrived)) =
                tokio::try_join!(write, events.next(), arrivals.round(change, 1))?;
            since_sent.push(arrived - sent);
            since_event.push(arrived.saturating_duration_since(event));
            busy += arrived - sent;
        }
        let memory = syncing.memory()?;
        let (place, changes) = (place.display(), args.changes as usize);
        let name = format!("event → read in {place}");
        rows.push(Row::new(name, since_event, changes, busy, None)?);
        let name = format!("change sent → read in {place}");
        let kib = |bytes: u64| bytes / 1024;
        let note = format!(
            "sync has {} KiB resident, {} KiB anonymous",
            kib(memory.resident_bytes),
            kib(memory.anonymous_bytes)
        );
        rows.push(Row::new(name, since_sent, changes, busy, None)?.noted(note));
        syncing.end().await?;
    }
    Ok(rows)
}

/// A sync of ours; killed when dropped.
struct Syncing {
    child: Child,
    pid: u32,
}

impl Syncing {
    async fn start(
        args: &SyncArgs,
        namespace: &str,
        kubeconfig: &Path,
        directory: &Path,
    ) -> anyhow::Result<Self> {
        let program = match &args.program {
            Some(program) => program.clone(),
            None => std::env::current_exe().context("cannot find this program")?,
        };
        let mut child = Command::new(&program)
            .args(["sync", "--namespace", namespace, "--kubeconfig"])
            .arg(kubeconfig)
            .arg(format!("configmap/{NAME}"))
            .arg(directory)
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let pid = child.id().context("the sync has ended")?;
        let shows = async {
            while !directory.join("..data").exists() {
                if let Some(status) = child.try_wait()? {
                    bail!("the sync has ended: {status}");
                }
                sleep(START_POLL).await;
            }
            Ok(())
        };
        timeout(START_TIMEOUT, shows)
            .await
            .context("the sync wrote nothing in time")
            .flatten()?;
        Ok(Self { child, pid })
    }

    fn memory(&mut self) -> anyhow::Result<process::Memory> {
        process::memory(self.pid).context("cannot read the memory of the sync")
    }

    async fn end(mut self) -> anyhow::Result<()> {
        self.child.kill().await.context("cannot end the sync")
    }
}

/// When this process hears of changes, over a watch like that of the sync.
struct Events(WatchStream);

impl Events {
    async fn listen(kubeconfig: &Path, namespace: &str) -> anyhow::Result<Self> {
        let config = ClientConfig::from_kubeconfig(kubeconfig, None)?;
        let client = Client::new(config)?;
        let path = ResourcePath::new("", "v1", "configmaps").in_namespace(namespace);
        let params = WatchParams {
            field_selector: format!("metadata.name={NAME}"),
            resource_version: client
                .get(&path.clone().name(NAME))
                .await?
                .resource_version()
                .to_owned(),
            ..WatchParams::default()
        };
        Ok(Self(client.watch(&path, &params).await?))
    }

    async fn next(&mut self) -> anyhow::Result<Instant> {
        loop {
            match self.0.next().await.context("the watch has ended")?? {
                WatchEvent::Modified(_) => return Ok(Instant::now()),
                WatchEvent::Error(status) => bail!("the watch failed: {status}"),
                _ => {}
            }
        }
    }
}
