//! The clients that the tests drive: installed by `scripts/tools`.

use std::{
    env,
    path::{Path, PathBuf},
};

/// Set to 1, a missing tool fails the test that needs it.
const REQUIRE_TOOLS: &str = "HOTMAP_REQUIRE_TOOLS";

/// Finds a tool where `scripts/tools` puts it, then on the path. `None`: the test is skipped and has said so.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let installed = installed_tools().join(name);
    if installed.exists() {
        return Some(installed);
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|file| file.exists());
    if found.is_none() {
        skipped(&format!("{name} is not here; scripts/tools installs it"));
    }
    found
}

/// Says why a test does nothing; fails where every tool is required.
#[track_caller]
pub(crate) fn skipped(why: &str) {
    assert!(
        env::var_os(REQUIRE_TOOLS).is_none_or(|value| value != "1"),
        "{REQUIRE_TOOLS} is set, and {why}"
    );
    eprintln!("skipped: {why}");
}

fn installed_tools() -> PathBuf {
    // target/debug/hotmap -> target/tools/bin
    let profile = Path::new(env!("CARGO_BIN_EXE_hotmap")).parent();
    profile
        .and_then(Path::parent)
        .expect("cargo builds into target/<profile>")
        .join("tools/bin")
}
