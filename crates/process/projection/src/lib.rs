//! Watches projected configuration rightly, and reads one revision of it.

mod change;
mod revision;

pub use change::{Change, KeyChange};
pub use revision::Revision;
