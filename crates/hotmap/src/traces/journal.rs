//! The log as systemd's journal takes it: the priority in front of each line (sd-daemon(3)), the time left to the journal.

use std::{env, fmt, io};

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::{Format, Full, Writer},
    },
    registry::LookupSpan,
};

/// Formats events for the journal.
pub(super) struct Journal(Format<Full, ()>);

impl Journal {
    /// If standard error leads there.
    pub(super) fn behind_stderr() -> Option<Self> {
        let stream = env::var("JOURNAL_STREAM").ok()?;
        let stderr = rustix::fs::fstat(io::stderr()).ok()?;
        is_file(&stream, stderr.st_dev, stderr.st_ino).then(|| Self(Format::default().without_time()))
    }
}

impl<S, N> FormatEvent<S, N> for Journal
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        write!(writer, "<{}>", priority(*event.metadata().level()))?;
        self.0.format_event(context, writer, event)
    }
}

/// `JOURNAL_STREAM` is `device:inode` of what systemd gave the service (systemd.exec(5)). A service that has redirected its
/// standard error since inherits the variable all the same.
fn is_file(stream: &str, device: u64, inode: u64) -> bool {
    stream == format!("{device}:{inode}")
}

/// Of syslog(3).
fn priority(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::{fmt::MakeWriter, layer::SubscriberExt};

    use super::*;

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("whole").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl<'a> MakeWriter<'a> for Kept {
        type Writer = Self;

        fn make_writer(&'a self) -> Self {
            self.clone()
        }
    }

    #[test]
    fn a_line_for_the_journal_begins_with_its_priority_and_has_no_time() {
        let kept = Kept::default();
        let layer = tracing_subscriber::fmt::layer()
            .with_ansi(false)
            .with_writer(kept.clone())
            .event_format(Journal(Format::default().without_time()));
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            tracing::error!(target: "t", "the end");
            tracing::warn!(target: "t", pod = "p", "look here");
            tracing::info!(target: "t", "read on");
            tracing::debug!(target: "t", "never mind");
        });
        let text = String::from_utf8(kept.0.lock().expect("whole").clone()).expect("text");
        let lines = [
            "<3>ERROR t: the end",
            "<4> WARN t: look here pod=\"p\"",
            "<6> INFO t: read on",
            "<7>DEBUG t: never mind",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn the_journal_is_behind_the_file_that_its_variable_names() {
        for (stream, leads_there) in [("8:12", true), ("8:1", false), ("", false), ("8:12 ", false)] {
            assert_eq!(is_file(stream, 8, 12), leads_there, "{stream:?}");
        }
    }
}
