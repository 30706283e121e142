//! One line for each span that ends.

use std::{
    fmt::{self, Write as _},
    io::{self, Write},
    time::Instant,
};

use jiff::Timestamp;
use parking_lot::Mutex;
use tracing::{
    Subscriber,
    field::{Field, Visit},
    span,
};
use tracing_subscriber::{Layer, layer::Context, registry::LookupSpan};

use super::ids;

/// Prints spans of traces that somebody keeps.
pub(super) struct Print<W> {
    out: Mutex<W>,
}

/// What is known of an open span.
struct Open {
    since: Instant,
    fields: Fields,
}

/// Fields as ` name="text"`.
#[derive(Default)]
struct Fields(String);

impl Print<io::Stderr> {
    pub(super) fn to_stderr() -> Self {
        Self::to(io::stderr())
    }
}

impl<W> Print<W> {
    pub(super) fn to(out: W) -> Self {
        Self { out: Mutex::new(out) }
    }
}

impl<S, W> Layer<S> for Print<W>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: Write + Send + 'static,
{
    fn on_new_span(&self, attributes: &span::Attributes<'_>, id: &span::Id, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let since = Instant::now();
        span.extensions_mut().insert(Open { since, fields });
    }

    fn on_record(&self, id: &span::Id, values: &span::Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(open) = span.extensions_mut().get_mut::<Open>() {
            values.record(&mut open.fields);
        }
    }

    fn on_close(&self, id: span::Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let Some(place) = ids::place(&span).filter(|place| place.context.is_sampled()) else {
            return;
        };
        let Some(Open { since, fields }) = span.extensions_mut().remove() else {
            return;
        };
        let parent = place
            .parent
            .map_or_else(|| "-".to_owned(), |parent| format!("{parent:016x}"));
        let line = format!(
            "{} SPAN {} trace={:032x} span={:016x} parent={parent} took={:?}{}\n",
            Timestamp::now(),
            span.name(),
            place.context.trace_id(),
            place.context.span_id(),
            since.elapsed(),
            fields.0,
        );
        // Nobody can be told that standard error is gone.
        let _ = self.out.lock().write_all(line.as_bytes());
    }
}

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        // An empty one says nothing: the core group, an object without a namespace.
        if !value.is_empty() {
            let _ = write!(self.0, " {}={value:?}", field.name());
        }
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _ = write!(self.0, " {}={value:?}", field.name());
    }
}
