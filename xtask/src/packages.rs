//! The API packages that have a table.

/// One Go package of API types.
pub(crate) struct Package {
    /// Folder below `staging/src/k8s.io`; its protobuf package and OpenAPI prefix follow from it.
    pub(crate) dir: &'static str,
    /// API group.
    pub(crate) group: &'static str,
    /// Name of the Rust module.
    pub(crate) module: &'static str,
    /// Go files with type declarations.
    pub(crate) sources: &'static [&'static str],
}

impl Package {
    /// `k8s.io.api.core.v1`
    pub(crate) fn proto(&self) -> String {
        format!("k8s.io.{}", self.dir.replace('/', "."))
    }

    /// `io.k8s.api.core.v1`
    pub(crate) fn openapi(&self) -> String {
        format!("io.k8s.{}", self.dir.replace('/', "."))
    }
}

/// The package every other one refers to.
pub(crate) const META: &str = "meta_v1";

/// All packages are version v1 of their group.
pub(crate) const VERSION: &str = "v1";

const fn api(dir: &'static str, group: &'static str, module: &'static str) -> Package {
    Package {
        dir,
        group,
        module,
        sources: &["types.go"],
    }
}

pub(crate) const PACKAGES: &[Package] = &[
    api("api/apps/v1", "apps", "apps_v1"),
    api(
        "api/authentication/v1",
        "authentication.k8s.io",
        "authentication_v1",
    ),
    api("api/authorization/v1", "authorization.k8s.io", "authorization_v1"),
    api("api/autoscaling/v1", "autoscaling", "autoscaling_v1"),
    api("api/batch/v1", "batch", "batch_v1"),
    api("api/certificates/v1", "certificates.k8s.io", "certificates_v1"),
    api("api/coordination/v1", "coordination.k8s.io", "coordination_v1"),
    api("api/core/v1", "", "core_v1"),
    api("api/discovery/v1", "discovery.k8s.io", "discovery_v1"),
    api("api/events/v1", "events.k8s.io", "events_v1"),
    Package {
        dir: "apimachinery/pkg/apis/meta/v1",
        group: "meta.k8s.io",
        module: META,
        sources: &["types.go", "watch.go"],
    },
    api("api/policy/v1", "policy", "policy_v1"),
    api("api/rbac/v1", "rbac.authorization.k8s.io", "rbac_v1"),
];
