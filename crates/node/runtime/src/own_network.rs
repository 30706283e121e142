//! A network namespace of its own for a test that changes rules, links or routes.

use std::env;
use std::process::Command;

const INSIDE: &str = "HOTMAP_TEST_OWN_NETWORK";

/// Runs a test again in a process with an empty network; true in that process. False without root, which is said.
pub(crate) fn enter(test: &str) -> bool {
    if env::var_os(INSIDE).is_some() {
        return true;
    }
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: a network of its own needs root");
        return false;
    }
    let this = env::current_exe().expect("a test binary");
    let status = Command::new("unshare")
        .arg("--net")
        .arg(this)
        .args(["--exact", test, "--nocapture"])
        .env(INSIDE, "1")
        .status();
    assert!(
        status.expect("unshare is a part of every Debian").success(),
        "{test}"
    );
    false
}
