//! `hotmap bench`: measures a server, and beside it what the bare system calls cost on the same machine.
//!
//! ```text
//!   own server   this binary again: up, free port, temporary directory ───────────┐
//!                                                                                 ├─▶ measure ─▶ table or JSON
//!   --kubeconfig any cluster: a namespace of our own, deleted afterwards ─────────┘
//! ```
//!
//! The load comes from this process over real TLS and HTTP/2, so that the server's CPU time and memory are its own. On
//! few cores both compete, which makes every figure an upper bound.

mod connection;
mod faults;
mod faulty_way;
mod floor;
mod load;
mod process;
mod propagation;
mod reads;
mod report;
mod server;
mod start;
mod statistics;
mod storm;
mod sync;
mod watch;
mod writes;

use std::{
    io::{IsTerminal, Write},
    net::{Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::{Args, Subcommand, ValueEnum};
use hotmap_client::ClientConfig;
use hyper::Method;
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use self::{
    connection::{Connection, Connector},
    faulty_way::FaultyWay,
    process::Memory,
    report::{Machine, Report, Row, ServerFacts},
    server::{Node, OwnServer},
};

/// Where the API listens whose way fails: an address of this machine that nothing else uses.
const FAULTY_API: Ipv4Addr = Ipv4Addr::new(127, 83, 0, 1);

/// Flags of `bench`, as typed.
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    measurement: Measurement,
    /// Measure this cluster instead of a server of our own; it sees a namespace hotmap-bench-… come and go.
    #[arg(long, global = true, env = "HOTMAP_BENCH_KUBECONFIG", value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Where the own server's temporary data directory is made: use the disk you mean to use
    /// [default: the system's temporary directory]
    #[arg(long, global = true, env = "HOTMAP_BENCH_DATA_DIR", value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// How the result is printed.
    #[arg(short = 'o', long, global = true, env = "HOTMAP_BENCH_OUTPUT", value_enum, default_value_t = Output::Wide)]
    output: Output,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// A table for people.
    Wide,
    /// Everything, for programs.
    Json,
}

#[derive(Debug, Subcommand)]
enum Measurement {
    /// From sending a change to reading it in the volume of a pod. Runs a node: needs root.
    Propagation(propagation::PropagationArgs),
    /// Start with many objects, until all of them can be listed; and the memory they take.
    Start(start::StartArgs),
    /// Create and update ConfigMaps of 1 KiB: with one client, then with many.
    Writes(writes::WritesArgs),
    /// Get one ConfigMap, and list many, as they are and with gzip.
    Reads(reads::ReadsArgs),
    /// One change to many watchers, until the last has it.
    Watch(watch::WatchArgs),
    /// A node that loses the API and gets it back. Runs a node: needs root.
    Faults(faults::FaultsArgs),
    /// Many volumes of one ConfigMap that changes all the time. Runs a node: needs root.
    Storm(storm::StormArgs),
    /// From the event of a change to its content in a directory that `hotmap sync` keeps.
    Sync(sync::SyncArgs),
}

/// Runs one measurement and prints it.
///
/// # Errors
/// A server that does not start or answer, and everything the measurement itself cannot do.
pub(crate) async fn run(args: BenchArgs) -> anyhow::Result<()> {
    args.measurement.check(args.kubeconfig.is_some())?;
    raise_file_limit()?;
    let report = match &args.kubeconfig {
        Some(kubeconfig) => measure_cluster(&args, kubeconfig.clone()).await?,
        None => measure_own_server(&args).await?,
    };
    let text = match args.output {
        Output::Wide => report.to_string(),
        Output::Json => serde_json::to_string_pretty(&report)? + "\n",
    };
    std::io::stdout()
        .write_all(text.as_bytes())
        .context("cannot print the result")
}

async fn measure_own_server(args: &BenchArgs) -> anyhow::Result<Report> {
    progress("starting a server");
    let parent = args.data_dir.clone().unwrap_or_else(std::env::temp_dir);
    // From here on there is something to clean up: a signal must not end us in between.
    let mut interrupt = Interrupt::listen()?;
    let (node, mut way) = args.measurement.node().await?;
    let mut server = OwnServer::start(&parent, node).await?;
    let outcome = interrupt.or(on_own_server(args, &mut server, way.as_mut())).await;
    // Connections that swallow would keep the server waiting for their ends.
    drop(way);
    let stopped = server.stop().await;
    let cleaned = server.clean_up().await;
    let (rows, facts) = outcome?;
    stopped?;
    cleaned?;
    // The floors belong to a machine that does nothing else.
    let floors = tokio::task::spawn_blocking(move || floor::measure(&parent)).await??;
    Ok(Report {
        measurement: args.measurement.name(),
        target: "own server".to_owned(),
        machine: Machine::this(),
        rows,
        server: Some(facts),
        floors,
    })
}

async fn on_own_server(
    args: &BenchArgs,
    server: &mut OwnServer,
    way: Option<&mut FaultyWay>,
) -> anyhow::Result<(Vec<Row>, ServerFacts)> {
    let connector = Connector::new(&server.client_config()?).await?;
    let start_to_list = server.time_first_list(&connector).await?;
    let start_to_ready = server.start_to_ready();
    let idle = server.idle_memory().await?;
    let rows = if let Measurement::Start(args) = &args.measurement {
        start::measure(server, &connector, args).await?
    } else {
        let namespace = create_namespace(&connector.connect().await?).await?;
        let data_dir = server.data_dir();
        let bench = Bench {
            connector: &connector,
            namespace: &namespace,
            server: Some((server.pid(), &data_dir)),
        };
        match (&args.measurement, way) {
            (Measurement::Faults(args), Some(way)) => faults::measure(&bench, args, way).await?,
            _ => measure(args, &bench).await?,
        }
    };
    if server.node() != Node::Absent {
        // Where it is now: who measures starts has it on another port each time.
        let connector = Connector::new(&server.client_config()?).await?;
        check_the_net(&connector.connect().await?).await?;
    }
    let facts = ServerFacts {
        start_to_ready_ms: millis(start_to_ready),
        start_to_list_ms: millis(start_to_list),
        has_node: server.node() != Node::Absent,
        idle,
        end: server.memory()?,
        binary_bytes: OwnServer::binary_bytes()?,
    };
    Ok((rows, facts))
}

/// A change that only the periodic comparison delivered is a defect, however fast the others were.
async fn check_the_net(connection: &Connection) -> anyhow::Result<()> {
    const REPAIRS: &str = "hotmap_resync_repairs_total ";
    let metrics = connection.exchange(Method::GET, "/metrics", Bytes::new()).await?;
    let metrics = String::from_utf8_lossy(&metrics);
    let repairs = metrics.lines().find_map(|line| line.strip_prefix(REPAIRS));
    match repairs.context("the node does not count what its net finds")? {
        "0" => Ok(()),
        repairs => bail!("{repairs} changes were found by the periodic comparison only"),
    }
}

async fn measure_cluster(args: &BenchArgs, kubeconfig: PathBuf) -> anyhow::Result<Report> {
    let config =
        tokio::task::spawn_blocking(move || ClientConfig::from_kubeconfig(&kubeconfig, None)).await??;
    let target = format!("{}:{}", config.server.host, config.server.port);
    let connector = Connector::new(&config).await?;
    let rows = measure_in_namespace(args, &connector).await?;
    let data_dir = args.data_dir.clone().unwrap_or_else(std::env::temp_dir);
    let floors = tokio::task::spawn_blocking(move || floor::measure(&data_dir)).await??;
    let measurement = args.measurement.name();
    Ok(Report {
        measurement,
        target,
        machine: Machine::this(),
        rows,
        server: None,
        floors,
    })
}

/// Measures in a namespace of its own, which goes again, whatever happens.
async fn measure_in_namespace(args: &BenchArgs, connector: &Connector) -> anyhow::Result<Vec<Row>> {
    let mut interrupt = Interrupt::listen()?;
    let namespace = create_namespace(&connector.connect().await?).await?;
    let bench = Bench {
        connector,
        namespace: &namespace,
        server: None,
    };
    let rows = interrupt.or(measure(args, &bench)).await;
    progress("deleting what was created");
    let deleted = delete_namespace(connector, &namespace).await;
    let deleted = deleted.with_context(|| format!("cannot delete namespace {namespace}, do it by hand"));
    match (rows, deleted) {
        (Ok(rows), deleted) => deleted.map(|()| rows),
        (Err(error), Ok(())) => Err(error),
        (Err(error), Err(also)) => Err(error.context(format!("{also:#}"))),
    }
}

async fn measure(args: &BenchArgs, bench: &Bench<'_>) -> anyhow::Result<Vec<Row>> {
    match &args.measurement {
        Measurement::Propagation(args) => propagation::measure(bench, args).await,
        Measurement::Start(_) => bail!("start is measured on a server of its own"),
        Measurement::Writes(args) => writes::measure(bench, args).await,
        Measurement::Reads(args) => reads::measure(bench, args).await,
        Measurement::Watch(args) => watch::measure(bench, args).await,
        Measurement::Storm(args) => storm::measure(bench, args).await,
        Measurement::Sync(args) => sync::measure(bench, args).await,
        Measurement::Faults(_) => bail!("faults are measured on a server of its own"),
    }
}

async fn delete_namespace(connector: &Connector, namespace: &str) -> anyhow::Result<()> {
    let path = format!("/api/v1/namespaces/{namespace}");
    connector
        .connect()
        .await?
        .exchange(Method::DELETE, &path, Bytes::new())
        .await?;
    Ok(())
}

async fn create_namespace(connection: &Connection) -> anyhow::Result<String> {
    let body =
        json!({"kind": "Namespace", "apiVersion": "v1", "metadata": {"generateName": "hotmap-bench-"}});
    let answer = connection
        .exchange(Method::POST, "/api/v1/namespaces", body.to_string().into())
        .await?;
    let namespace: Value = serde_json::from_slice(&answer).context("cannot read the created namespace")?;
    let name = namespace.pointer("/metadata/name").and_then(Value::as_str);
    Ok(name.context("the created namespace has no name")?.to_owned())
}

/// Somebody asks for an early end; there is something to clean up first.
struct Interrupt {
    terminate: Signal,
    interrupt: Signal,
}

impl Interrupt {
    fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    /// The work's end, or an error when a signal came first.
    async fn or<T>(&mut self, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
        tokio::select! {
            done = work => done,
            _ = self.terminate.recv() => bail!("terminated"),
            _ = self.interrupt.recv() => bail!("interrupted"),
        }
    }
}

/// What every measurement needs.
struct Bench<'a> {
    connector: &'a Connector,
    namespace: &'a str,
    /// The server's process and data directory, when it is ours.
    server: Option<(u32, &'a Path)>,
}

impl Bench<'_> {
    fn config_maps(&self) -> String {
        format!("/api/v1/namespaces/{}/configmaps", self.namespace)
    }

    async fn connections(&self, count: usize) -> anyhow::Result<Vec<Connection>> {
        let mut connections = Vec::with_capacity(count);
        for _ in 0..count {
            connections.push(self.connector.connect().await?);
        }
        Ok(connections)
    }

    fn cpu_time(&self) -> anyhow::Result<Option<Duration>> {
        self.server
            .map(|(pid, _)| process::cpu_time(pid))
            .transpose()
            .context("cannot read the server's CPU time")
    }

    /// CPU time since an earlier reading.
    fn cpu_since(&self, before: Option<Duration>) -> anyhow::Result<Option<Duration>> {
        Ok(self
            .cpu_time()?
            .zip(before)
            .map(|(now, before)| now.saturating_sub(before)))
    }

    fn memory(&self) -> anyhow::Result<Option<Memory>> {
        self.server
            .map(|(pid, _)| process::memory(pid))
            .transpose()
            .context("cannot read the server's memory")
    }
}

/// A ConfigMap whose JSON is close to 1 KiB. `fill` makes one version differ from the next.
fn config_map(name: &str, fill: usize) -> Bytes {
    const VALUE_BYTES: usize = 800;
    let line = format!("# revision {fill}\n");
    let value = line + &"setting = \"value\"\n".repeat(VALUE_BYTES / 18);
    let object = json!({
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": "hotmap-bench"}},
        "data": {"app.conf": value},
    });
    object.to_string().into()
}

impl Measurement {
    /// What cannot be measured as asked for, before anything is started.
    fn check(&self, on_cluster: bool) -> anyhow::Result<()> {
        match self {
            Self::Propagation(_) | Self::Storm(_) if on_cluster => bail!(
                "this reads the volumes from this machine, where it knows only the node that it starts \
                 itself: run it without --kubeconfig, as root"
            ),
            Self::Sync(_) if on_cluster => {
                bail!("bench sync starts its own server: run it without --kubeconfig")
            }
            Self::Faults(_) if on_cluster => {
                bail!("bench faults breaks the way to its own server: run it without --kubeconfig")
            }
            Self::Propagation(_)
            | Self::Faults(_)
            | Self::Start(start::StartArgs { with_node: true, .. })
                if !rustix::process::geteuid().is_root() =>
            {
                bail!("a node needs root; bench watch measures the way to a watcher without one")
            }
            Self::Start(_) if on_cluster => {
                bail!("bench start stops and starts its server: run it without --kubeconfig")
            }
            _ => Ok(()),
        }
    }

    /// What the own server must have, and the way between it and its node where that is to fail.
    async fn node(&self) -> anyhow::Result<(Node, Option<FaultyWay>)> {
        let node = match self {
            Self::Propagation(_) | Self::Storm(_) => Node::InProcess,
            Self::Start(args) => args.node(),
            Self::Writes(_) | Self::Reads(_) | Self::Watch(_) | Self::Sync(_) => Node::Absent,
            Self::Faults(_) => {
                // The API has the way's port at another address of this machine: nobody else is there.
                let api = |port| SocketAddr::from((FAULTY_API, port));
                let way = FaultyWay::to(Ipv4Addr::LOCALHOST, api).await?;
                let node = Node::Behind {
                    way: way.address(),
                    api: way.api(),
                };
                return Ok((node, Some(way)));
            }
        };
        Ok((node, None))
    }

    fn name(&self) -> &'static str {
        match self {
            Self::Propagation(_) => "propagation",
            Self::Start(_) => "start",
            Self::Writes(_) => "writes",
            Self::Reads(_) => "reads",
            Self::Watch(_) => "watch",
            Self::Faults(_) => "faults",
            Self::Storm(_) => "storm",
            Self::Sync(_) => "sync",
        }
    }
}

/// A thousand watchers are a thousand connections, at both ends: the server inherits the limit.
fn raise_file_limit() -> anyhow::Result<()> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).context("cannot raise the limit of open files")
}

/// Says on a terminal what takes its time; a pipe gets the result only.
fn progress(what: &str) {
    if std::io::stderr().is_terminal() {
        eprintln!("{what} …");
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_maps_are_about_a_kibibyte_and_differ() {
        let (one, two) = (config_map("bench-0-0", 1), config_map("bench-0-0", 2));
        assert!((950..1100).contains(&one.len()), "{}", one.len());
        assert_ne!(one, two);
    }
}
