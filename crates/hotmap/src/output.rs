//! Standard output: read by people, or by scripts that may stop reading.

use std::{fmt::Display, io::Write};

/// Prints a line. That nobody reads any more is no reason to fail: what was done is done.
pub(crate) fn say(line: impl Display) {
    // The only errors are a reader that left and a full disk behind a redirection; neither concerns the work.
    let _ = writeln!(std::io::stdout(), "{line}");
}

/// Prints a line of trouble on standard error. That this fails, on a full disk behind a redirection, ends nothing either.
pub(crate) fn complain(line: impl Display) {
    let _ = writeln!(std::io::stderr(), "hotmap: {line}");
}
