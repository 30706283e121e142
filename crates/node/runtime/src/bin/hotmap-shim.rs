//! A program that can be nothing but a pod's shim, or what shims are forked from. The tests of this crate start pods with it; `hotmap` is its own shim.

use std::process::ExitCode;

fn main() -> ExitCode {
    // It has the system's allocator, and a test ends soon.
    hotmap_runtime::shim_main_if_asked(|| ()).unwrap_or_else(|| {
        eprintln!("this program is started by hotmap, not by hand");
        ExitCode::from(2)
    })
}
