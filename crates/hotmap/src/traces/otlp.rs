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
    flag.is_some() || !is_disabled && ENDPOINTS.iter().any(is_set)
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

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, net::SocketAddr, sync::mpsc::Sender};

    use bytes::Bytes;
    use http_body_util::{BodyExt, StreamBody};
    use hyper::{
        HeaderMap, Request, Response,
        body::{Frame, Incoming},
        header::HeaderValue,
        server::conn::http2,
        service::service_fn,
    };
    use hyper_util::rt::{TokioExecutor, TokioIo};
    use tokio::net::TcpListener;
    use tracing::{debug_span, subscriber::with_default};
    use tracing_subscriber::layer::SubscriberExt;

    use super::*;

    /// A collector that hands over what it is sent.
    fn collector(runtime: &Runtime, received: Sender<(String, Bytes)>) -> SocketAddr {
        let listener = runtime
            .block_on(TcpListener::bind("127.0.0.1:0"))
            .expect("a free port");
        let address = listener.local_addr().expect("it listens");
        runtime.spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let received = received.clone();
                let answer = service_fn(move |request: Request<Incoming>| {
                    let received = received.clone();
                    async move {
                        let path = request.uri().path().to_owned();
                        let body = request.into_body().collect().await.expect("a body").to_bytes();
                        // The test may be over.
                        let _ = received.send((path, body));
                        let mut trailers = HeaderMap::new();
                        trailers.insert("grpc-status", HeaderValue::from_static("0"));
                        // An empty message: not compressed, no bytes.
                        let frames = [
                            Frame::data(Bytes::from_static(&[0; 5])),
                            Frame::trailers(trailers),
                        ];
                        let body =
                            StreamBody::new(futures_util::stream::iter(frames.map(Ok::<_, Infallible>)));
                        let response = Response::builder().header("content-type", "application/grpc");
                        response.body(body)
                    }
                });
                let server = http2::Builder::new(TokioExecutor::new());
                tokio::spawn(server.serve_connection(TokioIo::new(stream), answer));
            }
        });
        address
    }

    #[test]
    fn what_is_left_is_sent_at_the_end_in_the_trace_it_belongs_to() {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        let (sender, received) = std::sync::mpsc::channel();
        let address = collector(&runtime, sender);
        let (exporter, layer) = start(Some(&format!("http://{address}"))).expect("an address");
        let parent = TraceContext::sampled(0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7);
        let parent = parent.expect("no id is zero");
        let unsampled = TraceContext::new(parent.trace_id() + 1, parent.span_id(), 0).expect("no id is zero");
        let tracer: &dyn hotmap_trace::Tracer = &Tracer;
        let heard = with_default(tracing_subscriber::registry().with(layer), || {
            let heard = debug_span!("heard");
            tracer.continue_from(&heard, parent);
            let place = tracer.of(&heard).expect("it is in a trace");
            heard.in_scope(|| drop(debug_span!("volume").entered()));
            let unkept = debug_span!("unkept");
            tracer.continue_from(&unkept, unsampled);
            assert!(!tracer.of(&unkept).expect("it is in a trace").is_sampled());
            place
        });
        assert_eq!((heard.trace_id(), heard.is_sampled()), (parent.trace_id(), true));
        drop(exporter);
        let (path, body) = received.recv().expect("the collector was sent something");
        assert_eq!(
            path,
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
        );
        let holds = |part: &[u8]| body.windows(part.len()).any(|window| window == part);
        assert!(
            holds(b"heard") && holds(b"volume") && !holds(b"unkept"),
            "{body:?}"
        );
        assert!(holds(&parent.trace_id().to_be_bytes()) && holds(&parent.span_id().to_be_bytes()));
        assert!(holds(&heard.span_id().to_be_bytes()), "{body:?}");
    }
}
