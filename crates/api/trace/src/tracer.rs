//! Who gives spans their ids.

use std::sync::OnceLock;

use tracing::Span;

use crate::TraceContext;

/// The target of every span of the way of a change.
pub const TARGET: &str = "hotmap::trace";

static TRACER: OnceLock<Box<dyn Tracer>> = OnceLock::new();

/// Knows the place of each span in its trace.
pub trait Tracer: Send + Sync + 'static {
    /// Where a span is; `None` if it has no trace.
    fn of(&self, span: &Span) -> Option<TraceContext>;

    /// Makes a span that nobody has entered yet the child of one that may be another process's.
    fn continue_from(&self, span: &Span, parent: TraceContext);
}

/// Gives this process its tracer; false if it has one already.
pub fn install(tracer: impl Tracer) -> bool {
    TRACER.set(Box::new(tracer)).is_ok()
}

/// Whether this process has a tracer.
pub fn is_on() -> bool {
    TRACER.get().is_some()
}

/// Where a span is in its trace; `None` without a tracer, and if nobody keeps the trace.
pub fn of(span: &Span) -> Option<TraceContext> {
    let tracer = TRACER.get()?;
    tracer
        .of(span)
        .filter(|context| !span.is_disabled() && context.is_sampled())
}

/// Where the span that this thread is in is in its trace.
pub fn current() -> Option<TraceContext> {
    TRACER.get()?;
    of(&Span::current())
}

/// A part of what this thread does in a trace that somebody keeps; no span at all outside of one.
pub fn step(span: impl FnOnce() -> Span) -> Span {
    if current().is_some() { span() } else { Span::none() }
}

/// Makes a span that nobody has entered yet the child of `parent`; without one it stays where it is.
pub fn continue_from(span: &Span, parent: Option<TraceContext>) {
    if let (Some(tracer), Some(parent), false) = (TRACER.get(), parent, span.is_disabled()) {
        tracer.continue_from(span, parent);
    }
}
