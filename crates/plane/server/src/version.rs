//! `/version`: the Kubernetes release whose behaviour is followed, with our own version behind it.

use serde_json::{Value, json};

const MAJOR: &str = "1";
const MINOR: &str = "36";

/// The document of `/version`.
pub(crate) fn document(own_version: &str) -> Value {
    json!({
        "major": MAJOR,
        "minor": MINOR,
        "gitVersion": format!("v{MAJOR}.{MINOR}.0+hotmap.{own_version}"),
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, architecture()),
    })
}

/// The name that Go and Kubernetes have for this machine.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    }
}
