//! What a shim says of itself, in `shim.log`: bounded, because nobody rotates that file.

use std::fmt::Display;
use std::io::Write;
use std::sync::atomic::{AtomicU32, Ordering};

/// Complaints of one shim that are kept; whoever has this many keeps saying the same.
const COMPLAINTS_MAX: u32 = 1_000;

/// Adds a line, unless there are enough. The disk may be full: a pod does not end because nobody can be told of it, as it would with
/// `eprintln!`, which panics.
pub(crate) fn complain(message: impl Display) {
    static SAID: AtomicU32 = AtomicU32::new(0);
    let said = SAID.fetch_add(1, Ordering::Relaxed);
    let mut log = std::io::stderr();
    let _ = match said {
        said if said < COMPLAINTS_MAX => writeln!(log, "{message}"),
        COMPLAINTS_MAX => writeln!(log, "more than {COMPLAINTS_MAX} complaints: the rest is not said"),
        _ => {
            // It must not come round to zero.
            SAID.store(COMPLAINTS_MAX + 1, Ordering::Relaxed);
            Ok(())
        }
    };
}
