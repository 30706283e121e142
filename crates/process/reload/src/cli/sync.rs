//! `hotmap sync`.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use hotmap_volume::Ownership;
use tokio::signal::unix::{SignalKind, signal};

use crate::cli::duration::duration;
use crate::cli::serve::ServeArgs;
use crate::cli::targets::ReloaderArgs;
use crate::sync::{FetchArgs, Layout, SyncConfig, object::ObjectKind, print, run, with_causes};

/// The call was wrong.
const EXIT_CALL: u8 = 2;

/// Flags of `sync`, as typed.
#[derive(Debug, Args)]
pub struct SyncArgs {
    /// The objects, [NAMESPACE/]KIND/NAME[=SUBDIRECTORY] with KIND configmap (cm) or secret, and last the directory. Of two
    /// objects that have the same key the later one wins.
    #[arg(value_name = "KIND/NAME... DIR", required = true)]
    pub(crate) objects: Vec<String>,
    /// Sync all objects with these labels, too; those that are named win over them.
    #[arg(short = 'l', long, env = "HOTMAP_SELECTOR", value_name = "LABELS")]
    pub(crate) selector: Option<String>,
    /// The kinds that --selector means: configmap, secret [default: configmap]
    #[arg(
        long = "kind",
        env = "HOTMAP_KIND",
        value_name = "KIND",
        value_delimiter = ',',
        requires = "selector"
    )]
    pub(crate) kinds: Vec<ObjectKind>,
    /// Where objects are that do not say it; several for --selector [default: the one of the kubeconfig's context, else
    /// "default"]
    #[arg(
        short,
        long,
        env = "HOTMAP_NAMESPACE",
        value_name = "NAMESPACE",
        value_delimiter = ','
    )]
    pub(crate) namespace: Vec<String>,
    /// Look for labels in all namespaces.
    #[arg(
        short = 'A',
        long,
        env = "HOTMAP_ALL_NAMESPACES",
        requires = "selector",
        conflicts_with = "namespace"
    )]
    pub(crate) all_namespaces: bool,
    /// How files lie in DIR.
    #[arg(
        long,
        env = "HOTMAP_LAYOUT",
        value_name = "LAYOUT",
        default_value = "projected"
    )]
    pub(crate) layout: Layout,
    /// The mode of files [default: 0644, and 0600 for those of Secrets]
    #[arg(long, env = "HOTMAP_MODE", value_name = "MODE", value_parser = octal)]
    pub(crate) mode: Option<u32>,
    /// Who owns the files, by number [default: who runs this]
    #[arg(long, env = "HOTMAP_OWNER", value_name = "UID:GID", value_parser = ownership)]
    pub(crate) owner: Option<Ownership>,
    /// Write Secrets although DIR is not on tmpfs: whoever has the disk has them.
    #[arg(long, env = "HOTMAP_SECRETS_ON_DISK")]
    pub(crate) secrets_on_disk: bool,
    /// Objects may be missing: without them, or when they are deleted, their files are not there.
    #[arg(long, env = "HOTMAP_OPTIONAL")]
    pub(crate) optional: bool,
    /// Write one revision and end.
    #[arg(long, env = "HOTMAP_ONCE")]
    pub(crate) once: bool,
    /// How long --once waits for objects and the API [default: 1m]
    #[arg(long, env = "HOTMAP_ONCE_TIMEOUT", value_name = "DURATION", value_parser = duration, requires = "once")]
    pub(crate) once_timeout: Option<Duration>,
    /// Ask a command or a URL (http://, https://, unix:) whether all is well once a revision is loaded. If it is not, the
    /// former revision is put back, and the bad one is not tried again until its objects change.
    #[arg(long, env = "HOTMAP_VERIFY", value_name = "CMD|URL")]
    pub(crate) verify: Option<String>,
    /// For how long --verify asks, once a second. After the first good answer a bad one is a failure.
    #[arg(
        long,
        env = "HOTMAP_VERIFY_FOR",
        value_name = "DURATION",
        default_value = "30s",
        value_parser = duration
    )]
    pub(crate) verify_for: Duration,
    /// Authorities (PEM) that sign the certificate of an https:// --verify, instead of the system's.
    #[arg(long, env = "HOTMAP_VERIFY_CA", value_name = "FILE", requires = "verify")]
    pub(crate) verify_ca: Option<PathBuf>,
    /// Take objects from manifests, a file or a directory of .yaml, .yml and .json files, and follow these; no API is asked.
    #[arg(long, env = "HOTMAP_FROM", value_name = "DIR|FILE", conflicts_with_all = ["kubeconfig", "context"])]
    pub(crate) from: Option<PathBuf>,
    /// Finds the API with this file [default: $KUBECONFIG, ~/.kube/config, or the pod's own account]
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current one]
    #[arg(long, env = "HOTMAP_CONTEXT", value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Files of an object that has this annotation go into the directory beneath DIR that it names.
    #[arg(long, env = "HOTMAP_FOLDER_ANNOTATION", value_name = "ANNOTATION")]
    pub(crate) folder_annotation: Option<String>,
    /// Call files namespace_NAMESPACE.KIND_NAME.KEY, so that no two objects have the same one.
    #[arg(long, env = "HOTMAP_UNIQUE_NAMES")]
    pub(crate) unique_names: bool,
    /// Fetch what is at the value of keys that end in `.url`, as k8s-sidecar does.
    #[arg(long, hide = true)]
    pub(crate) as_k8s_sidecar: bool,
    #[command(flatten)]
    pub(crate) fetch: FetchArgs,
    /// Do not look at the certificate of the API: whoever stands between reads the credentials and decides what is written.
    #[arg(long, env = "HOTMAP_INSECURE_SKIP_TLS_VERIFY", conflicts_with = "from")]
    pub(crate) insecure_skip_tls_verify: bool,
    /// Print a service account with the rights that this call needs, and do nothing else.
    #[arg(
        long,
        value_name = "ACCOUNT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "hotmap-sync",
        conflicts_with = "from"
    )]
    pub(crate) print_rbac: Option<String>,
    /// Print a systemd service that makes this call, and do nothing else.
    #[arg(long, conflicts_with = "print_rbac")]
    pub(crate) print_unit: bool,
    #[command(flatten)]
    pub(crate) reloader: ReloaderArgs,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

impl SyncArgs {
    pub(crate) fn main(self) -> ExitCode {
        let (account, is_unit) = (self.print_rbac.clone(), self.print_unit);
        let config = match SyncConfig::try_from(self) {
            Ok(config) => config,
            Err(error) => {
                eprintln!("hotmap: {error}");
                return ExitCode::from(EXIT_CALL);
            }
        };
        if let Some(account) = account {
            return printed(&print::rbac(&config, &account));
        }
        if is_unit {
            return match print::unit(&config) {
                Ok(unit) => printed(&unit),
                Err(error) => {
                    eprintln!("hotmap: {error}");
                    ExitCode::from(EXIT_CALL)
                }
            };
        }
        match run_to_end(config) {
            Ok(code) => code,
            Err(error) => {
                eprintln!("hotmap: cannot start: {error}");
                ExitCode::FAILURE
            }
        }
    }
}

fn printed(text: &str) -> ExitCode {
    match std::io::stdout().write_all(text.as_bytes()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads has seen enough.
        Err(_) => ExitCode::FAILURE,
    }
}

fn run_to_end(config: SyncConfig) -> std::io::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        let stop = async {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
        };
        Ok(match run(config, stop).await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("hotmap: {}", with_causes(&error));
                error.exit_code()
            }
        })
    })
}

fn octal(text: &str) -> Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|bits| *bits <= 0o777)
        .ok_or_else(|| "not an octal mode such as 0640".to_owned())
}

fn ownership(text: &str) -> Result<Ownership, String> {
    let ids = text
        .split_once(':')
        .and_then(|(uid, gid)| Some((uid.parse().ok()?, gid.parse().ok()?)));
    let (uid, gid) = ids.ok_or_else(|| "not two numbers such as 33:33".to_owned())?;
    Ok(Ownership { uid, gid })
}
