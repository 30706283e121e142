//! Logs, and the traces of changes: printed, or with the feature `otel` sent to a collector.

mod ids;
mod journal;
#[cfg(feature = "otel")]
mod otlp;
mod print;

use std::io::{self, IsTerminal};

use clap::Args;
use tracing_subscriber::{
    EnvFilter, Layer,
    filter::{LevelFilter, Targets},
    fmt,
    layer::SubscriberExt,
    util::SubscriberInitExt,
};

/// How the steps of a change are told, as typed.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    /// Print each step of each change to standard error as it ends, with its trace and how long it took.
    #[arg(
        long,
        global = true,
        env = "HOTMAP_LOG_SPANS",
        conflicts_with = "otlp_endpoint"
    )]
    log_spans: bool,
    /// Send each step of each change to this OpenTelemetry collector; for builds with the feature `otel`.
    #[arg(long, global = true, value_name = "URL")]
    otlp_endpoint: Option<String>,
}

/// What ends with the program.
pub(crate) struct Traces {
    #[cfg(feature = "otel")]
    _exporter: Option<otlp::Exporter>,
}

/// Starts logs and traces of this process.
///
/// # Errors
///
/// A collector is named, and this build cannot send, or what is named is no address.
pub(crate) fn init(args: &TraceArgs, filter: EnvFilter) -> anyhow::Result<Traces> {
    let wants_colour = std::env::var_os("NO_COLOR").is_none_or(|set| set.is_empty());
    let log = fmt::layer().with_writer(io::stderr);
    let log = match journal::Journal::behind_stderr() {
        Some(journal) => log.with_ansi(false).event_format(journal).boxed(),
        None => log.with_ansi(wants_colour && io::stderr().is_terminal()).boxed(),
    };
    let spans = Targets::new().with_target(hotmap_trace::TARGET, LevelFilter::DEBUG);
    if args.log_spans {
        tracing_subscriber::registry()
            .with(log.with_filter(filter))
            .with(ids::Ids.and_then(print::Print::to_stderr()).with_filter(spans))
            .init();
        hotmap_trace::install(ids::Tracer);
        return Ok(Traces::none());
    }
    #[cfg(feature = "otel")]
    if otlp::is_wanted(args.otlp_endpoint.as_deref()) {
        let (exporter, layer) = otlp::start(args.otlp_endpoint.as_deref())?;
        tracing_subscriber::registry()
            .with(log.with_filter(filter))
            .with(layer.with_filter(spans))
            .init();
        hotmap_trace::install(otlp::Tracer);
        return Ok(Traces {
            _exporter: Some(exporter),
        });
    }
    #[cfg(not(feature = "otel"))]
    if args.otlp_endpoint.is_some() {
        anyhow::bail!(
            "--otlp-endpoint: this build sends no traces; build one that does with `cargo build --release --package \
             hotmap --features otel`, or see them with --log-spans"
        );
    }
    // One filter for all: what nobody wants is a load and a branch.
    drop(spans);
    tracing_subscriber::registry().with(log).with(filter).init();
    Ok(Traces::none())
}

impl Traces {
    fn none() -> Self {
        Self {
            #[cfg(feature = "otel")]
            _exporter: None,
        }
    }
}
