//! What is done for a change, as typed: the flags that `reload`, `sync` and `run` share.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;

use super::duration::{duration, positive};
use super::flag_order::{FlagOrder, TargetFlag};
use crate::check::Check;
use crate::command::CommandLine;
use crate::metric_names::MetricNames;
use crate::metrics::Metrics;
use crate::pace::Pace;
use crate::reloader::{Order, ReloaderConfig};
use crate::render::{Render, RenderPaths, Syntax, Undefined, Variables};
use crate::target::Target;
use crate::target::container::ContainerArgs;
use crate::target::exec::{Exec, ExecArgs, command_line};
use crate::target::signal::{ConfirmedSignal, SignalArgs, SignalName};
use crate::target::unit::UnitArgs;
use crate::target::webhook::WebhookArgs;

/// Flags of all targets.
#[derive(Debug, Clone, Default, Args)]
pub struct TargetArgs {
    // The first field: clap takes the values of a flag away when it reads them.
    #[command(flatten)]
    order: FlagOrder,
    #[command(flatten)]
    exec: ExecArgs,
    #[command(flatten)]
    signal: SignalArgs,
    #[command(flatten)]
    webhook: WebhookArgs,
    #[command(flatten)]
    unit: UnitArgs,
    #[command(flatten)]
    container: ContainerArgs,
}

impl TargetArgs {
    /// The signal that names no process, which is then not one of the targets any more: `run` sends it to its program.
    pub(crate) fn take_signal_for_program(&mut self) -> Option<SignalName> {
        self.signal
            .is_for_nobody()
            .then(|| self.signal.signal.take())
            .flatten()
    }

    /// The targets in the order in which they are told: that of the flags on the command line.
    fn targets(&self, timeout: Duration) -> Result<Vec<Box<dyn Target>>, String> {
        let mut targets: Vec<(_, Box<dyn Target>)> = Vec::new();
        for (number, command) in self.exec.exec.iter().enumerate() {
            let rank = self.order.rank(TargetFlag::Exec, number);
            targets.push((rank, Box::new(Exec::new(command.clone(), timeout))));
        }
        if self.signal.is_for_nobody() {
            return Err("--signal needs --process, --pid-file or --pid: who is to be signalled".to_owned());
        }
        if let Some(signaller) = self.signal.target() {
            let target: Box<dyn Target> = match &self.signal.runtimeinfo_url {
                Some(url) => Box::new(ConfirmedSignal::new(signaller, url.clone(), timeout)),
                None => Box::new(signaller),
            };
            targets.push((self.order.rank(TargetFlag::Signal, 0), target));
        }
        let webhooks = self.webhook.targets().map_err(|error| error.to_string())?;
        for (number, webhook) in webhooks.into_iter().enumerate() {
            targets.push((self.order.rank(TargetFlag::Webhook, number), Box::new(webhook)));
        }
        for (number, unit) in self.unit.targets().into_iter().enumerate() {
            targets.push((self.order.rank(TargetFlag::Unit, number), Box::new(unit)));
        }
        for (number, container) in self.container.targets().into_iter().enumerate() {
            targets.push((
                self.order.rank(TargetFlag::Container, number),
                Box::new(container),
            ));
        }
        targets.sort_by_key(|(rank, _)| *rank);
        Ok(targets.into_iter().map(|(_, target)| target).collect())
    }
}

/// Flags of everything that is done for a change.
#[derive(Debug, Clone, Args)]
pub struct ReloaderArgs {
    /// Make a file from a template before anything else is done: `$(NAME)` and `${NAME}` stand for variables of the
    /// environment; gzip is unpacked. Repeatable.
    #[arg(
        long,
        env = "HOTMAP_RENDER",
        value_name = "TEMPLATE:OUT",
        value_delimiter = ' '
    )]
    pub(crate) render: Vec<RenderPaths>,
    /// Which references of a template are expanded.
    #[arg(
        long,
        env = "HOTMAP_RENDER_SYNTAX",
        value_name = "SYNTAX",
        default_value = "both"
    )]
    pub(crate) render_syntax: Syntax,
    /// What becomes of references to variables that are not set.
    #[arg(
        long,
        env = "HOTMAP_RENDER_UNDEFINED",
        value_name = "WHAT",
        default_value = "error"
    )]
    pub(crate) render_undefined: Undefined,
    /// Let STATEFULSET_ORDINAL_NUMBER stand for the digits at the end of this variable, as prometheus-config-reloader.
    #[arg(long, env = "HOTMAP_RENDER_ORDINAL_FROM", value_name = "NAME", hide = true)]
    pub(crate) render_ordinal_from: Option<String>,
    /// A command that says by its exit code whether the new content is good, such as `nginx -t`. If not, the change is
    /// held back: nobody is told, and the next change is tried. Split into words as --exec.
    #[arg(long, env = "HOTMAP_CHECK", value_name = "CMD", value_parser = command_line)]
    pub(crate) check: Option<CommandLine>,
    /// When the check is killed with its process group; the change is held back then.
    #[arg(long, env = "HOTMAP_CHECK_TIMEOUT", value_name = "DURATION", default_value = "30s", value_parser = positive)]
    pub(crate) check_timeout: Duration,
    #[command(flatten)]
    pub(crate) targets: TargetArgs,
    /// Tell all targets at once; without it each waits until the one before it on the command line has taken the change.
    #[arg(long, env = "HOTMAP_PARALLEL")]
    pub(crate) parallel: bool,
    /// From the first sign of a change until it is brought on its way, together with all that comes in between.
    #[arg(long, env = "HOTMAP_DELAY", value_name = "DURATION", default_value = "0", value_parser = duration)]
    pub(crate) delay: Duration,
    /// Up to so much is added to --delay, drawn for each change, so that replicas do not reload all at once.
    #[arg(long, env = "HOTMAP_JITTER", value_name = "DURATION", default_value = "0", value_parser = duration)]
    pub(crate) jitter: Duration,
    /// The least time between one change that is brought on its way and the next one.
    #[arg(long, env = "HOTMAP_MIN_INTERVAL", value_name = "DURATION", default_value = "0", value_parser = duration)]
    pub(crate) min_interval: Duration,
    /// How long one call of one target may take; units and containers have times of their own.
    #[arg(long, env = "HOTMAP_TIMEOUT", value_name = "DURATION", default_value = "30s", value_parser = positive)]
    pub(crate) timeout: Duration,
    /// The pause before a call that has failed is repeated; it doubles up to --retry-delay-max, and half of it is drawn.
    #[arg(long, env = "HOTMAP_RETRY_DELAY", value_name = "DURATION", default_value = "200ms", value_parser = positive)]
    pub(crate) retry_delay: Duration,
    /// The longest pause between two calls.
    #[arg(long, env = "HOTMAP_RETRY_DELAY_MAX", value_name = "DURATION", default_value = "30s", value_parser = positive)]
    pub(crate) retry_delay_max: Duration,
    /// How often a call that has failed is repeated. Without it, until it succeeds or a newer change comes.
    #[arg(long, env = "HOTMAP_RETRIES", value_name = "NUMBER")]
    pub(crate) retries: Option<u32>,
    /// Show metrics also under the names of another program, for dashboards that exist.
    #[arg(
        long,
        env = "HOTMAP_METRIC_NAMES",
        value_name = "NAMES",
        default_value = "hotmap"
    )]
    pub(crate) metric_names: MetricNames,
}

impl ReloaderArgs {
    /// Whether programs are started for a change.
    pub(crate) fn starts_commands(&self) -> bool {
        self.check.is_some() || !self.targets.exec.exec.is_empty()
    }

    /// What may run: reads the files that targets need at the start. `variables` is what templates refer to.
    ///
    /// # Errors
    /// A sentence: flags that contradict each other, or name what cannot be used.
    pub(crate) fn config(&self, paths: Vec<PathBuf>, variables: Variables) -> Result<ReloaderConfig, String> {
        let variables = match &self.render_ordinal_from {
            Some(name) => with_ordinal(&variables, name),
            None => variables,
        };
        let renders = self.render.iter().map(|paths| {
            let render = Render::new(
                paths.clone(),
                self.render_syntax,
                self.render_undefined,
                Arc::clone(&variables),
            );
            Box::new(render) as Box<dyn Target>
        });
        Ok(ReloaderConfig {
            paths,
            renders: renders.collect(),
            check: self
                .check
                .clone()
                .map(|command| Check::new(command, self.check_timeout)),
            targets: self.targets.targets(self.timeout)?,
            order: if self.parallel {
                Order::Parallel
            } else {
                Order::Sequence
            },
            pace: Pace {
                delay: self.delay,
                jitter: self.jitter,
                min_interval: self.min_interval,
                timeout: self.timeout,
                backoff: self.retry_delay.min(self.retry_delay_max),
                backoff_max: self.retry_delay_max,
                retries: self.retries,
            },
            metrics: Metrics::new(self.metric_names),
            seed: getrandom::u64().map_err(|error| format!("the system gives no random numbers: {error}"))?,
        })
    }
}

/// The environment as templates see it. What is not UTF-8 is not there.
pub(crate) fn environment() -> Variables {
    let variables = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    Arc::new(variables.collect::<BTreeMap<_, _>>())
}

/// The digits at the end of a variable, `web-12`, as a variable of their own. Empty if there are none.
fn with_ordinal(variables: &Variables, name: &str) -> Variables {
    let pod = variables.get(name).map(String::as_str).unwrap_or_default();
    let ordinal = &pod[pod.trim_end_matches(|digit: char| digit.is_ascii_digit()).len()..];
    let mut variables = BTreeMap::clone(variables);
    variables.insert("STATEFULSET_ORDINAL_NUMBER".to_owned(), ordinal.to_owned());
    Arc::new(variables)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_told_in_the_order_of_their_flags() {
        use clap::Parser;
        #[derive(Parser)]
        struct Cli {
            #[command(flatten)]
            reloader: ReloaderArgs,
        }
        for (typed, names) in [
            (
                "--webhook-url http://a/ --exec one --unit u --signal HUP --process p --exec two --webhook-url=http://b/",
                "POST http://a/, exec one, reload-or-restart of u.service, signal HUP to p, exec two, POST http://b/",
            ),
            ("--process p --exec one --signal HUP", "exec one, signal HUP to p"),
            (
                "--container c --check true --render a:b --exec one --container d",
                "signal HUP to container c, exec one, signal HUP to container d",
            ),
        ] {
            let cli = Cli::try_parse_from(["test"].into_iter().chain(typed.split(' '))).unwrap();
            let targets = cli.reloader.targets.targets(Duration::from_secs(1)).unwrap();
            let told: Vec<&str> = targets.iter().map(|target| target.name()).collect();
            assert_eq!(told.join(", "), names, "{typed}");
        }
    }

    #[test]
    fn the_ordinal_of_a_pod_is_a_variable() {
        for (pod, ordinal) in [
            (Some("web-12"), "12"),
            (Some("web"), ""),
            (None, ""),
            (Some("9"), "9"),
        ] {
            let variables = pod
                .map(|pod| ("POD_NAME".to_owned(), pod.to_owned()))
                .into_iter()
                .collect();
            let variables = with_ordinal(&Arc::new(variables), "POD_NAME");
            assert_eq!(variables["STATEFULSET_ORDINAL_NUMBER"], ordinal, "{pod:?}");
        }
    }
}
