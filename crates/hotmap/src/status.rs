//! `hotmap status`: who has which revision of a ConfigMap or Secret, who is behind, and why.

use std::{
    io::{IsTerminal, Write},
    path::PathBuf,
    process::ExitCode,
    time::Duration,
};

use anyhow::Context;
use clap::{Args, ValueEnum};
use hotmap_client::{Client, ClientConfig, Surroundings};
use hotmap_delivery::{Following, RBAC, Status, Target, TargetError, ask, progress, summary, table};
use jiff::{SignedDuration, Timestamp};
use tokio::task::spawn_blocking;

use crate::output::say;

/// Where an object is looked for if nobody says otherwise.
const DEFAULT_NAMESPACE: &str = "default";

/// Flags of `status`, as typed.
#[derive(Debug, Args)]
pub(crate) struct StatusArgs {
    /// The object: configmap/NAME (cm/NAME) or secret/NAME.
    #[arg(value_name = "KIND/NAME", required_unless_present = "print_rbac")]
    target: Option<String>,
    /// The namespace of the object [default: the one of the kubeconfig's context, else "default"]
    #[arg(short, long, env = "HOTMAP_NAMESPACE", value_name = "NAMESPACE")]
    namespace: Option<String>,
    /// Wait until every pod has the newest revision; exits with 1 if --timeout comes first.
    #[arg(short, long)]
    watch: bool,
    /// How long --watch waits, such as 30s or 5m [default: for ever]
    #[arg(long, env = "HOTMAP_TIMEOUT", value_name = "DURATION", requires = "watch", value_parser = timeout)]
    timeout: Option<Duration>,
    /// Form of the answer.
    #[arg(short, long, value_enum)]
    output: Option<Output>,
    /// Finds the API with this file [default: $KUBECONFIG, ~/.kube/config, or the pod's own account]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current one]
    #[arg(long, env = "HOTMAP_CONTEXT", value_name = "NAME")]
    context: Option<String>,
    /// Print a ClusterRole with the rights this command needs, and do nothing else.
    #[arg(long)]
    print_rbac: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    /// The whole answer as JSON.
    Json,
    /// The whole answer as YAML.
    Yaml,
    /// The table with exact times.
    Wide,
}

/// Flags that were checked.
#[derive(Debug)]
pub(crate) enum StatusConfig {
    PrintRbac,
    Ask(Question),
}

#[derive(Debug)]
pub(crate) struct Question {
    target: Target,
    /// Whether its namespace was named; if not, the kubeconfig may have another.
    has_namespace: bool,
    follow: Option<Option<Duration>>,
    output: Option<Output>,
    kubeconfig: Option<PathBuf>,
    context: Option<String>,
}

impl StatusConfig {
    pub(crate) fn try_from(args: StatusArgs) -> Result<Self, TargetError> {
        if args.print_rbac {
            return Ok(Self::PrintRbac);
        }
        let target = args.target.unwrap_or_default();
        let namespace = args.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        Ok(Self::Ask(Question {
            target: Target::parse(&target, namespace)?,
            has_namespace: args.namespace.is_some(),
            follow: args.watch.then_some(args.timeout),
            output: args.output,
            kubeconfig: args.kubeconfig,
            context: args.context,
        }))
    }
}

fn timeout(given: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = given
        .parse()
        .map_err(|_| "not a duration such as 30s or 5m".to_owned())?;
    Duration::try_from(parsed)
        .ok()
        .filter(|timeout| !timeout.is_zero())
        .ok_or_else(|| "not longer than nothing".to_owned())
}

/// Answers once, or until everybody has it.
pub(crate) async fn run(config: StatusConfig) -> anyhow::Result<ExitCode> {
    let mut question = match config {
        StatusConfig::PrintRbac => {
            let _ = write!(std::io::stdout(), "{RBAC}");
            return Ok(ExitCode::SUCCESS);
        }
        StatusConfig::Ask(question) => question,
    };
    let (kubeconfig, context) = (question.kubeconfig.clone(), question.context.clone());
    let find = move || {
        ClientConfig::find(
            kubeconfig.as_deref(),
            context.as_deref(),
            &Surroundings::of_process(),
        )
    };
    let api = spawn_blocking(find).await?.context("cannot find the API")?;
    if let Some(namespace) = api.namespace.as_deref().filter(|_| !question.has_namespace) {
        question.target = Target::parse(&question.target.to_string(), namespace)?;
    }
    let client = Client::new(api)?;
    let Some(timeout) = question.follow else {
        let status = ask(&client, &question.target).await?;
        show(&status, question.output)?;
        return Ok(ExitCode::SUCCESS);
    };
    follow(client, &question, timeout).await
}

async fn follow(client: Client, question: &Question, timeout: Option<Duration>) -> anyhow::Result<ExitCode> {
    let mut following = Following::new(client, question.target.clone());
    let mut line = ProgressLine::default();
    let mut last = None;
    let wait = async {
        loop {
            let status = following.next().await?;
            line.show(&status);
            let is_complete = status.is_complete();
            last = Some(status);
            if is_complete {
                return anyhow::Ok(());
            }
        }
    };
    let ended = match timeout {
        Some(timeout) => tokio::time::timeout(timeout, wait).await,
        None => Ok(wait.await),
    };
    line.end();
    let is_late = ended.is_err();
    ended.unwrap_or(Ok(()))?;
    let Some(status) = last else {
        anyhow::bail!("the API said nothing in time");
    };
    show(&status, question.output)?;
    if is_late {
        eprintln!("hotmap: not everybody has it in time");
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn show(status: &Status, output: Option<Output>) -> anyhow::Result<()> {
    match output {
        Some(Output::Json) => say(serde_json::to_string_pretty(status)?),
        Some(Output::Yaml) => say(serde_saphyr::to_string(&serde_json::to_value(status)?)?.trim_end()),
        other => {
            if !status.rows.is_empty() {
                let is_wide = other == Some(Output::Wide);
                table(status, Timestamp::now(), is_wide).iter().for_each(say);
                say("");
            }
            say(summary(status));
            if !status.note.is_empty() {
                say(format_args!("note: {}", status.note));
            }
        }
    }
    Ok(())
}

/// How far it is, on standard error: one line that changes on a terminal, a line for each change elsewhere.
#[derive(Default)]
struct ProgressLine {
    is_open: bool,
}

impl ProgressLine {
    fn show(&mut self, status: &Status) {
        let mut out = std::io::stderr();
        if out.is_terminal() {
            self.is_open = true;
            // Back to the beginning, and nothing of the line before; no wider than any terminal.
            let line: String = progress(status).chars().take(79).collect();
            let _ = write!(out, "\r\x1b[K{line}");
            let _ = out.flush();
        } else {
            let _ = writeln!(out, "{}", summary(status));
        }
    }

    fn end(&mut self) {
        if std::mem::take(&mut self.is_open) {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}
