//! Which hotmap this is, and which Kubernetes it follows.

/// Version of this program.
pub(crate) const OWN: &str = env!("CARGO_PKG_VERSION");
/// The Kubernetes release whose behaviour we follow.
const KUBERNETES: &str = "v1.36";

/// The answer to `hotmap version`.
pub(crate) fn line() -> String {
    format!("hotmap {OWN} (follows Kubernetes {KUBERNETES})")
}
