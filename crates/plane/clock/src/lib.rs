//! Tells when the wall clock was set, or the machine has slept; counts time from a start that only the wall clock knows.
//!
//! Timers run by a clock that nobody sets; certificates, tokens and schedules end by the wall clock. Whoever waits with a
//! timer for a time of day listens here beside it, and looks at the clock again when it jumps.
//!
//! ```text
//!   settimeofday · a step of NTP · resume ──▶ kernel ──ECANCELED──▶ Listener ──▶ ClockJumps, one for each who waits
//! ```
//!
//! The clock itself is read by those who wait: what is told is only that it is worth a look.

mod active_time;
mod drift;
mod jumps;
mod listener;

pub use active_time::ActiveTime;
pub use jumps::{ClockJumps, Jumper};
pub use listener::{Listener, listen};
