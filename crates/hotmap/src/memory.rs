//! The allocator, and when it gives memory back.

use std::cell::Cell;
use std::time::{Duration, Instant};

// A write's memory is taken on one thread and given back on another, thousands of times a second: with glibc's
// allocator a write costs a tenth to a quarter more CPU time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

// SAFETY: the declaration is that of mimalloc.h, which asks nothing of the caller.
unsafe extern "C" {
    safe fn mi_collect(force: bool);
}

/// A thread that rests gives back this often. The allocator itself does so while it works, and keeps what a burst has
/// freed until the next one.
pub(crate) const GIVE_BACK_PERIOD: Duration = Duration::from_secs(1);

/// Gives what this thread, and threads that have ended, have freed back to the system.
pub(crate) fn give_back() {
    mi_collect(true);
}

/// For a thread that has nothing to do at the moment: the same, unless it did so less than [`GIVE_BACK_PERIOD`] ago.
pub(crate) fn give_back_now_and_then() {
    thread_local! {
        static LAST: Cell<Option<Instant>> = const { Cell::new(None) };
    }
    let now = Instant::now();
    if LAST
        .get()
        .is_none_or(|last| now.duration_since(last) >= GIVE_BACK_PERIOD)
    {
        LAST.set(Some(now));
        give_back();
    }
}
