//! The command line: what can be typed. What it may mean is checked by each command.

use std::{path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand};
use jiff::SignedDuration;

use crate::node_flags::NodeArgs;

/// Whoever waits longer for the end of a pod has forgotten it.
const GRACE_PERIOD_MAX: Duration = Duration::from_secs(3_600);

/// Delivers a ConfigMap or Secret change to every process that uses it.
///
/// Exit codes: 0 done, 1 it failed, 2 the call was wrong.
#[derive(Debug, Parser)]
#[command(
    name = "hotmap",
    version,
    disable_help_subcommand = true,
    arg_required_else_help = true
)]
pub(crate) struct Cli {
    /// What is logged to standard error, such as `info` or `hotmap_agent=debug`.
    #[arg(
        long,
        global = true,
        env = "HOTMAP_LOG",
        value_name = "FILTER",
        default_value = "warn"
    )]
    pub(crate) log: String,
    #[command(flatten)]
    pub(crate) traces: crate::traces::TraceArgs,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the API server, the store and the node in one process.
    Up(UpArgs),
    /// Run the API server, the store and the controllers; nodes join with `hotmap agent`.
    Serve(ServeArgs),
    /// Run a node alone, against any Kubernetes API.
    Agent(AgentArgs),
    /// Stop the pods that outlive `up` and `agent`.
    Down(DownArgs),
    /// Tell who has which revision of a ConfigMap or Secret, who is behind, and why.
    Status(crate::status::StatusArgs),
    #[command(flatten)]
    Process(hotmap_reload::cli::ProcessCommand),
    /// Measure this machine, or a cluster with --kubeconfig.
    Bench(crate::bench::BenchArgs),
    /// Make, list and delete the tokens with which nodes join.
    Token(crate::token::TokenArgs),
    /// Print shell completions.
    Completions {
        /// The shell to complete for.
        shell: clap_complete::Shell,
    },
    /// Print the version of hotmap and the Kubernetes release it follows.
    Version,
}

/// How much is recorded of a request; named as upstream's levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
#[value(rename_all = "PascalCase")]
pub(crate) enum AuditLevel {
    /// Nothing.
    None,
    /// Who asked for what, when, from where, and what came of it.
    Metadata,
    /// The bodies of requests as well.
    Request,
}

/// Flags of `up`, as typed.
#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    /// Apply these manifests: a file or - (standard input) once at start, a directory of .yaml, .yml and .json files at start and
    /// whenever one of them changes. Repeatable.
    #[arg(
        short = 'f',
        long = "filename",
        env = "HOTMAP_FILENAME",
        value_name = "FILE|-|DIR",
        value_delimiter = ','
    )]
    pub(crate) manifests: Vec<PathBuf>,
    /// Delete what was applied from a directory and is in no file any more; without it, that stays.
    #[arg(long, env = "HOTMAP_PRUNE", requires = "manifests", conflicts_with = "temp")]
    pub(crate) prune: bool,
    /// Serve the API and the store only; pods stay Pending. Needs no root.
    #[arg(long, env = "HOTMAP_NO_NODE")]
    pub(crate) no_node: bool,
    /// Serve on a free port from a temporary directory, run CMD with KUBECONFIG set, leave nothing behind.
    #[arg(long, requires = "command", conflicts_with_all = ["data_dir", "kubeconfig"])]
    pub(crate) temp: bool,
    #[command(flatten)]
    pub(crate) api: ApiArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
    /// Let the node reach the API at this address, as over a network; for tests and `bench faults`.
    #[arg(long, hide = true, env = "HOTMAP_FAULT_NODE_API", value_name = "ADDR")]
    pub(crate) fault_node_api: Option<std::net::SocketAddr>,
    /// Command to run with --temp; its exit code is returned.
    #[arg(last = true, value_name = "CMD", requires = "temp")]
    pub(crate) command: Vec<String>,
}

/// Flags of whoever serves the API, as typed.
#[derive(Debug, Args)]
pub(crate) struct ApiArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    /// Where the API listens, loopback by default; port 0 takes a free one.
    #[arg(
        long,
        env = "HOTMAP_LISTEN",
        value_name = "ADDR",
        default_value = "127.0.0.1:6443"
    )]
    pub(crate) listen: String,
    /// One more name or address in the serving certificate. Repeatable.
    #[arg(long, env = "HOTMAP_TLS_SAN", value_name = "NAME", value_delimiter = ',')]
    pub(crate) tls_san: Vec<String>,
    /// Where the admin kubeconfig is written, mode 0600 [default: DIR/admin.kubeconfig in the data directory]
    #[arg(long, env = "HOTMAP_KUBECONFIG", value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Append a line of JSON (audit.k8s.io/v1) for each request to this file, mode 0600; - is standard output.
    #[arg(long, env = "HOTMAP_AUDIT_LOG", value_name = "FILE|-")]
    pub(crate) audit_log: Option<PathBuf>,
    /// How much the audit log holds; bodies of Secrets and tokens are never in it.
    #[arg(
        long,
        env = "HOTMAP_AUDIT_LEVEL",
        value_enum,
        ignore_case = true,
        default_value_t = AuditLevel::Metadata,
        requires = "audit_log"
    )]
    pub(crate) audit_level: AuditLevel,
}

/// Flags of `serve`, as typed.
#[derive(Debug, Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) api: ApiArgs,
    /// Where objects are kept.
    #[arg(long, env = "HOTMAP_STORE", value_enum, default_value_t = StoreKind::Embedded)]
    pub(crate) store: StoreKind,
    /// Serve the API only: Deployments make no pods, nothing is collected.
    #[arg(long, env = "HOTMAP_NO_CONTROLLERS")]
    pub(crate) no_controllers: bool,
}

/// Where objects are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum StoreKind {
    /// In a file of the data directory.
    Embedded,
    /// In an etcd cluster.
    Etcd,
}

/// Flags of `agent`, as typed.
#[derive(Debug, Args)]
pub(crate) struct AgentArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    /// How the API is reached [default: as it has joined; else as kubectl finds it: KUBECONFIG, ~/.kube/config, the pod's account]
    #[arg(long, env = "HOTMAP_KUBECONFIG", value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Which context of the kubeconfig [default: its current one]
    #[arg(long, env = "HOTMAP_CONTEXT", value_name = "NAME")]
    pub(crate) context: Option<String>,
    #[command(flatten)]
    pub(crate) join: crate::agent::JoinArgs,
    #[command(flatten)]
    pub(crate) node: NodeArgs,
    /// The node's address in its status [default: the one that packets to the API leave from]
    #[arg(long, env = "HOTMAP_NODE_IP", value_name = "ADDR")]
    pub(crate) node_ip: Option<std::net::IpAddr>,
    /// Where logs, commands and metrics are served to the API server [default: port 10250 of the node's address]
    #[arg(long, env = "HOTMAP_LISTEN", value_name = "ADDR")]
    pub(crate) listen: Option<std::net::SocketAddr>,
}

/// Flags of `down`, as typed.
#[derive(Debug, Args)]
pub(crate) struct DownArgs {
    #[command(flatten)]
    pub(crate) data_dir: DataDirArg,
    /// Also remove the data directory and everything in it: all objects, certificates and logs.
    #[arg(long)]
    pub(crate) purge: bool,
    /// Ask the containers first: SIGTERM to all at once, and SIGKILL to who is there after this time. Without it they are killed.
    #[arg(long, value_name = "DURATION", value_parser = grace_period)]
    pub(crate) grace_period: Option<Duration>,
}

fn grace_period(given: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = given
        .parse()
        .map_err(|_| "not a duration such as 30s or 1m".to_owned())?;
    let bounded = Duration::try_from(parsed).ok();
    bounded
        .filter(|grace| *grace <= GRACE_PERIOD_MAX)
        .ok_or_else(|| "not between 0s and 1h".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct DataDirArg {
    /// Where everything is kept [default: /var/lib/hotmap for root, else $XDG_STATE_HOME/hotmap]
    #[arg(long, env = "HOTMAP_DATA_DIR", value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}
