//! Sends spans to an OpenTelemetry collector, over gRPC.

use std::env;

use anyhow::Context as _;
use hotmap_trace::TraceContext;
use opentelemetry::{
    Context, SpanId, TraceFlags, TraceId,
    trace::{SpanContext, TraceContextExt, TraceState, TracerProvider},
};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{SdkTracer, SdkTracerProvider},
};
use tokio::runtime::Runtime;
use tracing::{Span, Subscriber, warn};
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt};
use tracing_subscriber::registry::LookupSpan;

/// The variables of the standard that name a collector.
const ENDPOINTS: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
];

/// Sends what is left when it is dropped, for some seconds at most. Its queue is bounded
/// (`OTEL_BSP_MAX_QUEUE_SIZE`): what does not fit is dropped, never waited for.
pub(super) struct Exporter {
    provider: SdkTracerProvider,
    /// Carries the connection, apart from everything else that the program does.
    runtime: Option<Runtime>,
}

/// Reads and sets the place of spans as OpenTelemetry keeps it.
pub(super) struct Tracer;

/// Whether a collector is named, by flag or by the environment.
pub(super) fn is_wanted(flag: Option<&str>) -> bool {
    let is_set = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_disabled = env::var("OTEL_SDK_DISABLED").is_ok_and(|value| value.eq_ignore_ascii_case("true"));
    flag.is_some() || !is_disabled && ENDPOINTS.iter().any(|name| is_set(&name))
}

/// Begins to send. A collector that is away is tried again with each batch.
///
/// # Errors
///
/// What is named is no address of a collector.
pub(super) fn start<S>(flag: Option<&str>) -> anyhow::Result<(Exporter, OpenTelemetryLayer<S, SdkTracer>)>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    let runtime = builder
        .worker_threads(1)
        .thread_name("otlp")
        .enable_all()
        .build()?;
    let exporter = {
        let _entered = runtime.enter();
        let mut builder = SpanExporter::builder().with_tonic();
        if let Some(endpoint) = flag {
            builder = builder.with_endpoint(endpoint);
        }
        builder.build().context("cannot send traces")?
    };
    let mut resource = Resource::builder();
    if env::var_os("OTEL_SERVICE_NAME").is_none() {
        resource = resource.with_service_name("hotmap");
    }
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource.build())
        .build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("hotmap"));
    let runtime = Some(runtime);
    Ok((Exporter { provider, runtime }, layer))
}

impl Drop for Exporter {
    fn drop(&mut self) {
        if let Err(error) = self.provider.shutdown() {
            warn!(%error, "the last spans were not sent");
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

impl hotmap_trace::Tracer for Tracer {
    fn of(&self, span: &Span) -> Option<TraceContext> {
        let context = span.context();
        let place = context.span().span_context().clone();
        TraceContext::new(
            u128::from_be_bytes(place.trace_id().to_bytes()),
            u64::from_be_bytes(place.span_id().to_bytes()),
            place.trace_flags().to_u8(),
        )
    }

    fn continue_from(&self, span: &Span, parent: TraceContext) {
        let parent = SpanContext::new(
            TraceId::from_bytes(parent.trace_id().to_be_bytes()),
            SpanId::from_bytes(parent.span_id().to_be_bytes()),
            TraceFlags::new(parent.flags()),
            true,
            TraceState::default(),
        );
        // Fails for a span that has begun, which this is not, or that is filtered out.
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
}
