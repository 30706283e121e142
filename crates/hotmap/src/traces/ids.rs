//! Ids for spans that stay in this process's own log.

use hotmap_trace::TraceContext;
use tracing::{Span, Subscriber, span};
use tracing_subscriber::{
    Layer, Registry,
    layer::Context,
    registry::{LookupSpan, SpanRef},
};

/// Gives each span its place in a trace.
pub(super) struct Ids;

/// Where one span is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub(super) context: TraceContext,
    /// The id of the span it is a part of.
    pub(super) parent: Option<u64>,
}

/// Reads and sets what [`Ids`] keeps.
pub(super) struct Tracer;

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Ids {
    fn on_new_span(&self, _: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let parent = span.parent().and_then(|parent| place(&parent));
        let place = parent.map_or_else(
            || Place::new(random_trace(), None, true),
            |parent| Place::below(parent.context),
        );
        if let Some(place) = place {
            span.extensions_mut().insert(place);
        }
    }
}

impl Place {
    fn new(trace: u128, parent: Option<u64>, is_sampled: bool) -> Option<Self> {
        let context = TraceContext::new(trace, random(), u8::from(is_sampled))?;
        Some(Self { context, parent })
    }

    fn below(parent: TraceContext) -> Option<Self> {
        Self::new(parent.trace_id(), Some(parent.span_id()), parent.is_sampled())
    }
}

impl hotmap_trace::Tracer for Tracer {
    fn of(&self, span: &Span) -> Option<TraceContext> {
        with_span(span, |span| place(span).map(|place| place.context))
    }

    fn continue_from(&self, span: &Span, parent: TraceContext) {
        with_span(span, |span| {
            span.extensions_mut().replace(Place::below(parent)?);
            Some(())
        });
    }
}

/// Where a span is, if it is in a trace.
pub(super) fn place<'a>(span: &SpanRef<'a, impl LookupSpan<'a>>) -> Option<Place> {
    span.extensions().get::<Place>().copied()
}

fn with_span<T>(span: &Span, work: impl FnOnce(&SpanRef<'_, Registry>) -> Option<T>) -> Option<T> {
    span.with_subscriber(|(id, dispatch)| {
        let registry = dispatch.downcast_ref::<Registry>()?;
        work(&registry.span(id)?)
    })?
}

fn random_trace() -> u128 {
    u128::from(random()) << 64 | u128::from(random())
}

/// Never zero. Nothing depends on its being hard to guess.
fn random() -> u64 {
    getrandom::u64().unwrap_or_default().max(1)
}
