//! The shim.

use std::process::ExitCode;

/// Becomes a pod's shim if this process was started as one; `None` otherwise. The first thing `main` calls:
/// no other thread may exist yet.
pub fn shim_main_if_asked() -> Option<ExitCode> {
    None
}
