//! What a shim says of itself, in `shim.log`: bounded, because nobody rotates that file.

use std::fmt::Display;
use std::sync::atomic::{AtomicU32, Ordering};

/// Complaints of one shim that are kept; whoever has this many keeps saying the same.
const COMPLAINTS_MAX: u32 = 1_000;

/// Adds a line, unless there are enough.
pub(crate) fn complain(message: impl Display) {
    static SAID: AtomicU32 = AtomicU32::new(0);
    match SAID.fetch_add(1, Ordering::Relaxed) {
        said if said < COMPLAINTS_MAX => eprintln!("{message}"),
        COMPLAINTS_MAX => eprintln!("more than {COMPLAINTS_MAX} complaints: the rest is silence"),
        // It must not come round to zero.
        _ => SAID.store(COMPLAINTS_MAX + 1, Ordering::Relaxed),
    }
}
