//! Every resource the API serves.

use std::{sync::LazyLock, time::Duration};

use hotmap_object::GroupVersionKind;

use crate::{
    NameRule, Resource, Strategy, Subresource,
    certificate_signing_request::CertificateSigningRequest,
    config_map::ConfigMap,
    controller_revision::ControllerRevision,
    cron_job::CronJob,
    daemon_set::DaemonSet,
    delivery_report::DeliveryReport,
    deployment::Deployment,
    endpoints::Endpoints,
    event::{CoreEvent, EventsEvent},
    job::Job,
    lease::Lease,
    namespace::Namespace,
    node::Node,
    pod::Pod,
    pod_disruption_budget::PodDisruptionBudget,
    replica_set::ReplicaSet,
    review::Review,
    role::{ClusterRole, Role},
    role_binding::{ClusterRoleBinding, RoleBinding},
    secret::Secret,
    service::Service,
    service_account::ServiceAccount,
    stateful_set::StatefulSet,
};

/// Events are gone an hour after their last write; upstream's `--event-ttl` has the same default.
const EVENT_TTL: Duration = Duration::from_secs(60 * 60);

const ALL_VERBS: &[&str] = &[
    "create",
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "update",
    "watch",
];
const NAMESPACE_VERBS: &[&str] = &["create", "delete", "get", "list", "patch", "update", "watch"];
const STATUS_VERBS: &[&str] = &["get", "patch", "update"];
const STREAM_VERBS: &[&str] = &["create", "get"];

static RESOURCES: LazyLock<Vec<Resource>> = LazyLock::new(|| {
    vec![
        Resource {
            short_names: &["cm"],
            ..namespaced("", "ConfigMap", "configmaps", "configmap", &ConfigMap)
        },
        Resource {
            short_names: &["ep"],
            prefix: "/registry/services/endpoints/",
            create_on_update: true,
            ..namespaced("", "Endpoints", "endpoints", "endpoints", &Endpoints)
        },
        Resource {
            short_names: &["ev"],
            name_rule: NameRule::PathSegment,
            create_on_update: true,
            ttl: Some(EVENT_TTL),
            ..namespaced("", "Event", "events", "event", &CoreEvent)
        },
        Resource {
            short_names: &["ns"],
            namespaced: false,
            verbs: NAMESPACE_VERBS,
            subresources: NAMESPACE_SUBRESOURCES,
            name_rule: NameRule::Label,
            delete_returns_object: true,
            ..namespaced("", "Namespace", "namespaces", "namespace", &Namespace)
        },
        Resource {
            short_names: &["no"],
            namespaced: false,
            subresources: NODE_SUBRESOURCES,
            prefix: "/registry/minions/",
            ..namespaced("", "Node", "nodes", "node", &Node)
        },
        Resource {
            short_names: &["po"],
            categories: &["all"],
            subresources: POD_SUBRESOURCES,
            delete_returns_object: true,
            has_generation: true,
            ..namespaced("", "Pod", "pods", "pod", &Pod)
        },
        namespaced("", "Secret", "secrets", "secret", &Secret),
        Resource {
            short_names: &["sa"],
            subresources: SERVICE_ACCOUNT_SUBRESOURCES,
            delete_returns_object: true,
            ..namespaced(
                "",
                "ServiceAccount",
                "serviceaccounts",
                "serviceaccount",
                &ServiceAccount,
            )
        },
        Resource {
            short_names: &["svc"],
            categories: &["all"],
            subresources: SERVICE_SUBRESOURCES,
            prefix: "/registry/services/specs/",
            name_rule: NameRule::Dns1035,
            create_on_update: true,
            delete_returns_object: true,
            ..namespaced("", "Service", "services", "service", &Service)
        },
        namespaced(
            "apps",
            "ControllerRevision",
            "controllerrevisions",
            "controllerrevision",
            &ControllerRevision,
        ),
        Resource {
            short_names: &["ds"],
            categories: &["all"],
            subresources: DAEMON_SET_SUBRESOURCES,
            has_generation: true,
            ..namespaced("apps", "DaemonSet", "daemonsets", "daemonset", &DaemonSet)
        },
        Resource {
            short_names: &["deploy"],
            categories: &["all"],
            subresources: DEPLOYMENT_SUBRESOURCES,
            has_generation: true,
            ..namespaced("apps", "Deployment", "deployments", "deployment", &Deployment)
        },
        Resource {
            short_names: &["rs"],
            categories: &["all"],
            subresources: REPLICA_SET_SUBRESOURCES,
            has_generation: true,
            ..namespaced("apps", "ReplicaSet", "replicasets", "replicaset", &ReplicaSet)
        },
        Resource {
            short_names: &["sts"],
            categories: &["all"],
            subresources: STATEFUL_SET_SUBRESOURCES,
            name_rule: NameRule::Label,
            has_generation: true,
            ..namespaced("apps", "StatefulSet", "statefulsets", "statefulset", &StatefulSet)
        },
        Resource {
            short_names: &["cj"],
            categories: &["all"],
            subresources: CRON_JOB_SUBRESOURCES,
            has_generation: true,
            ..namespaced("batch", "CronJob", "cronjobs", "cronjob", &CronJob)
        },
        Resource {
            categories: &["all"],
            subresources: JOB_SUBRESOURCES,
            has_generation: true,
            ..namespaced("batch", "Job", "jobs", "job", &Job)
        },
        Resource {
            short_names: &["csr"],
            namespaced: false,
            subresources: CERTIFICATE_SIGNING_REQUEST_SUBRESOURCES,
            name_rule: NameRule::PathSegment,
            ..namespaced(
                "certificates.k8s.io",
                "CertificateSigningRequest",
                "certificatesigningrequests",
                "certificatesigningrequest",
                &CertificateSigningRequest,
            )
        },
        Resource {
            create_on_update: true,
            update_needs_revision: true,
            ..namespaced("coordination.k8s.io", "Lease", "leases", "lease", &Lease)
        },
        Resource {
            short_names: &["ev"],
            create_on_update: true,
            ttl: Some(EVENT_TTL),
            ..namespaced("events.k8s.io", "Event", "events", "event", &EventsEvent)
        },
        Resource {
            namespaced: false,
            ..own(
                "DeliveryReport",
                "deliveryreports",
                "deliveryreport",
                &DeliveryReport,
            )
        },
        Resource {
            short_names: &["pdb"],
            subresources: POD_DISRUPTION_BUDGET_SUBRESOURCES,
            name_rule: NameRule::PathSegment,
            update_needs_revision: true,
            has_generation: true,
            ..namespaced(
                "policy",
                "PodDisruptionBudget",
                "poddisruptionbudgets",
                "poddisruptionbudget",
                &PodDisruptionBudget,
            )
        },
        review(
            "authentication.k8s.io",
            "SelfSubjectReview",
            "selfsubjectreviews",
            "selfsubjectreview",
        ),
        Resource {
            namespaced: true,
            ..review(
                "authorization.k8s.io",
                "LocalSubjectAccessReview",
                "localsubjectaccessreviews",
                "localsubjectaccessreview",
            )
        },
        review(
            "authentication.k8s.io",
            "TokenReview",
            "tokenreviews",
            "tokenreview",
        ),
        review(
            "authorization.k8s.io",
            "SelfSubjectAccessReview",
            "selfsubjectaccessreviews",
            "selfsubjectaccessreview",
        ),
        review(
            "authorization.k8s.io",
            "SelfSubjectRulesReview",
            "selfsubjectrulesreviews",
            "selfsubjectrulesreview",
        ),
        review(
            "authorization.k8s.io",
            "SubjectAccessReview",
            "subjectaccessreviews",
            "subjectaccessreview",
        ),
        Resource {
            namespaced: false,
            ..access(
                "ClusterRoleBinding",
                "clusterrolebindings",
                "clusterrolebinding",
                &ClusterRoleBinding,
            )
        },
        Resource {
            namespaced: false,
            ..access("ClusterRole", "clusterroles", "clusterrole", &ClusterRole)
        },
        access("RoleBinding", "rolebindings", "rolebinding", &RoleBinding),
        access("Role", "roles", "role", &Role),
    ]
});

const NAMESPACE_SUBRESOURCES: &[Subresource] = &[
    core("finalize", "Namespace", &["update"]),
    core("status", "Namespace", STATUS_VERBS),
];
const NODE_SUBRESOURCES: &[Subresource] = &[core("status", "Node", STATUS_VERBS)];
const POD_SUBRESOURCES: &[Subresource] = &[
    core("attach", "PodAttachOptions", STREAM_VERBS),
    core("binding", "Binding", &["create"]),
    core("ephemeralcontainers", "Pod", STATUS_VERBS),
    Subresource {
        name: "eviction",
        kind: GroupVersionKind::fixed("policy", "v1", "Eviction"),
        verbs: &["create"],
    },
    core("exec", "PodExecOptions", STREAM_VERBS),
    core("log", "Pod", &["get"]),
    core("portforward", "PodPortForwardOptions", STREAM_VERBS),
    core("status", "Pod", STATUS_VERBS),
];
const DEPLOYMENT_SUBRESOURCES: &[Subresource] = &[SCALE, status("apps", "Deployment")];
const REPLICA_SET_SUBRESOURCES: &[Subresource] = &[SCALE, status("apps", "ReplicaSet")];
const SERVICE_ACCOUNT_SUBRESOURCES: &[Subresource] = &[Subresource {
    name: "token",
    kind: GroupVersionKind::fixed("authentication.k8s.io", "v1", "TokenRequest"),
    verbs: &["create"],
}];
const DAEMON_SET_SUBRESOURCES: &[Subresource] = &[status("apps", "DaemonSet")];
const STATEFUL_SET_SUBRESOURCES: &[Subresource] = &[SCALE, status("apps", "StatefulSet")];
const POD_DISRUPTION_BUDGET_SUBRESOURCES: &[Subresource] = &[status("policy", "PodDisruptionBudget")];
const CERTIFICATE_SIGNING_REQUEST_SUBRESOURCES: &[Subresource] = &[
    Subresource {
        name: "approval",
        kind: GroupVersionKind::fixed("certificates.k8s.io", "v1", "CertificateSigningRequest"),
        verbs: STATUS_VERBS,
    },
    status("certificates.k8s.io", "CertificateSigningRequest"),
];
const CRON_JOB_SUBRESOURCES: &[Subresource] = &[status("batch", "CronJob")];
const JOB_SUBRESOURCES: &[Subresource] = &[status("batch", "Job")];
const SERVICE_SUBRESOURCES: &[Subresource] = &[core("status", "Service", STATUS_VERBS)];

const SCALE: Subresource = Subresource {
    name: "scale",
    kind: GroupVersionKind::fixed("autoscaling", "v1", "Scale"),
    verbs: STATUS_VERBS,
};

/// All served resources: core first, then by group; within a group by plural name.
pub fn resources() -> &'static [Resource] {
    &RESOURCES
}

/// The resource of a URL.
pub fn find(group: &str, version: &str, plural: &str) -> Option<&'static Resource> {
    resources()
        .iter()
        .find(|one| one.group == group && one.version == version && one.plural == plural)
}

/// The resource whose objects have this `apiVersion` and `kind`.
pub fn find_kind(group: &str, version: &str, kind: &str) -> Option<&'static Resource> {
    resources()
        .iter()
        .find(|one| one.group == group && one.version == version && one.kind == kind)
}

/// What most kinds have in common; the table above overrides the rest.
fn namespaced(
    group: &'static str,
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    strategy: &'static dyn Strategy,
) -> Resource {
    versioned((group, "v1"), kind, plural, singular, strategy)
}

/// A kind of ours: nobody but hotmap serves it.
fn own(
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    strategy: &'static dyn Strategy,
) -> Resource {
    versioned(("hotmap.dev", "v1alpha1"), kind, plural, singular, strategy)
}

fn versioned(
    (group, version): (&'static str, &'static str),
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    strategy: &'static dyn Strategy,
) -> Resource {
    Resource {
        group,
        version,
        kind,
        plural,
        singular,
        short_names: &[],
        categories: &[],
        namespaced: true,
        verbs: ALL_VERBS,
        subresources: &[],
        prefix: default_prefix(plural),
        name_rule: NameRule::Subdomain,
        create_on_update: false,
        update_needs_revision: false,
        delete_returns_object: false,
        has_generation: false,
        ttl: None,
        schema: hotmap_schema::kind(group, version, kind).expect("the schema tables hold every served kind"),
        strategy,
    }
}

/// A question that is answered at once and never stored.
fn review(group: &'static str, kind: &'static str, plural: &'static str, singular: &'static str) -> Resource {
    Resource {
        namespaced: false,
        verbs: &["create"],
        prefix: "",
        ..namespaced(group, kind, plural, singular, &Review)
    }
}

/// Roles and bindings have names such as `system:node`, and PUT creates what is missing.
fn access(
    kind: &'static str,
    plural: &'static str,
    singular: &'static str,
    strategy: &'static dyn Strategy,
) -> Resource {
    Resource {
        name_rule: NameRule::PathSegment,
        create_on_update: true,
        ..namespaced("rbac.authorization.k8s.io", kind, plural, singular, strategy)
    }
}

const fn core(name: &'static str, kind: &'static str, verbs: &'static [&'static str]) -> Subresource {
    Subresource {
        name,
        kind: GroupVersionKind::fixed("", "v1", kind),
        verbs,
    }
}

const fn status(group: &'static str, kind: &'static str) -> Subresource {
    Subresource {
        name: "status",
        kind: GroupVersionKind::fixed(group, "v1", kind),
        verbs: STATUS_VERBS,
    }
}

/// The key prefix of resources that are stored under their plural name; the group is not part of it.
fn default_prefix(plural: &str) -> &'static str {
    match plural {
        "certificatesigningrequests" => "/registry/certificatesigningrequests/",
        "clusterrolebindings" => "/registry/clusterrolebindings/",
        "clusterroles" => "/registry/clusterroles/",
        "configmaps" => "/registry/configmaps/",
        "controllerrevisions" => "/registry/controllerrevisions/",
        "cronjobs" => "/registry/cronjobs/",
        "daemonsets" => "/registry/daemonsets/",
        // Not where a custom resource of that name is kept: a kube-apiserver that takes the data over would look there for JSON.
        "deliveryreports" => "/registry/deliveryreports/",
        "deployments" => "/registry/deployments/",
        "events" => "/registry/events/",
        "jobs" => "/registry/jobs/",
        "leases" => "/registry/leases/",
        "namespaces" => "/registry/namespaces/",
        "poddisruptionbudgets" => "/registry/poddisruptionbudgets/",
        "pods" => "/registry/pods/",
        "replicasets" => "/registry/replicasets/",
        "rolebindings" => "/registry/rolebindings/",
        "roles" => "/registry/roles/",
        "secrets" => "/registry/secrets/",
        "serviceaccounts" => "/registry/serviceaccounts/",
        "statefulsets" => "/registry/statefulsets/",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    #[test]
    fn every_resource_is_found_by_its_names() {
        for one in resources() {
            let found = find(one.group, one.version, one.plural).expect(one.plural);
            assert!(std::ptr::eq(found, one), "{} is there twice", one.plural);
            let found = find_kind(one.group, one.version, one.kind).expect(one.kind);
            assert!(std::ptr::eq(found, one), "{} is there twice", one.kind);
            assert_eq!((one.schema.group, one.schema.kind), (one.group, one.kind));
        }
        assert!(find("apps", "v2", "deployments").is_none());
        assert!(find_kind("", "v1", "Binding").is_none());
    }

    #[test]
    fn verbs_are_sorted_as_discovery_wants_them() {
        for one in resources() {
            assert!(one.verbs.is_sorted(), "{}", one.plural);
            assert!(
                one.subresources.is_sorted_by_key(|sub| sub.name),
                "{}",
                one.plural
            );
            for sub in one.subresources {
                assert!(sub.verbs.is_sorted(), "{}/{}", one.plural, sub.name);
                let of = &sub.kind;
                let schema = hotmap_schema::kind(&of.group, &of.version, &of.kind);
                assert!(schema.is_some(), "{}/{}", one.plural, sub.name);
            }
        }
    }

    #[test]
    fn keys_in_the_store_are_upstreams() {
        for (group, plural, prefix) in [
            ("", "nodes", "/registry/minions/"),
            ("", "services", "/registry/services/specs/"),
            ("", "endpoints", "/registry/services/endpoints/"),
            ("", "configmaps", "/registry/configmaps/"),
            ("coordination.k8s.io", "leases", "/registry/leases/"),
            ("rbac.authorization.k8s.io", "roles", "/registry/roles/"),
            (
                "rbac.authorization.k8s.io",
                "clusterrolebindings",
                "/registry/clusterrolebindings/",
            ),
            ("", "events", "/registry/events/"),
            ("events.k8s.io", "events", "/registry/events/"),
            ("authentication.k8s.io", "selfsubjectreviews", ""),
        ] {
            let found = find(group, "v1", plural).expect(plural);
            assert_eq!(found.prefix, prefix, "{plural}");
            assert_eq!(found.verbs.contains(&"get"), !prefix.is_empty(), "{plural}");
        }
    }

    #[test]
    fn rows_fit_their_columns() {
        let now = "2026-01-01T00:00:00Z".parse().expect("a time");
        for one in resources() {
            let cells = one.strategy.cells(&Map::new(), now);
            assert_eq!(cells.len(), one.strategy.columns().len(), "{}", one.plural);
        }
    }
}
