//! The roles and bindings that every cluster has, as tables.
//!
//! Facts follow `plugin/pkg/auth/authorizer/rbac/bootstrappolicy/policy.go`, Kubernetes 1.36, with its feature gates as
//! they are by default. Left out are the roles of components that are not here and of kinds that are not served:
//! volumes, cloud providers, and one role for each controller (ours have one identity with a list of its own).
//! How nodes join is bound as kubeadm binds it (`cmd/kubeadm/app/phases/bootstraptoken/node/tlsbootstrap.go`).

use std::collections::BTreeMap;

use super::{
    role::{AggregationRule, Binding, GROUP, LabelSelector, Metadata, Role, RoleRef, Subject},
    rule::PolicyRule,
};

/// `false` on an object keeps the start from touching it; what we create has `true`.
pub(crate) const AUTO_UPDATE: &str = "rbac.authorization.kubernetes.io/autoupdate";
const BOOTSTRAPPING: (&str, &str) = ("kubernetes.io/bootstrapping", "rbac-defaults");

type Words = &'static [&'static str];
/// Kinds and names.
type Subjects = &'static [(&'static str, &'static str)];

const READ: Words = &["get", "list", "watch"];
const WRITE: Words = &["create", "update", "patch", "delete", "deletecollection"];
const READ_WRITE: Words = &[
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
];
const CREATE: Words = &["create"];
const CORE: Words = &[""];
const APPS: Words = &["apps"];
const AUTHENTICATION: Words = &["authentication.k8s.io"];
const AUTHORIZATION: Words = &["authorization.k8s.io"];
const AUTOSCALING: Words = &["autoscaling"];
const BATCH: Words = &["batch"];
const CERTIFICATES: Words = &["certificates.k8s.io"];
const COORDINATION: Words = &["coordination.k8s.io"];
const DISCOVERY: Words = &["discovery.k8s.io"];
const EVENTS: Words = &["", "events.k8s.io"];
const HOTMAP: Words = &["hotmap.dev"];
const EXTENSIONS: Words = &["extensions"];
const NETWORKING: Words = &["networking.k8s.io"];
const POLICY: Words = &["policy"];
const RESOURCE: Words = &["resource.k8s.io"];
const STORAGE: Words = &["storage.k8s.io"];

/// A default role: its rules, or the label it gathers by.
struct Default {
    name: &'static str,
    /// The role that gathers this one's rules.
    gathered_by: Option<&'static str>,
    rules: Rules,
}

enum Rules {
    Own(&'static [Rule]),
    /// Those of the roles labelled `aggregate-to-` this one.
    Gathered,
}

/// Verbs, and what they are about.
enum Rule {
    On(Words, Words, Words),
    Named(Words, Words, Words, Words),
    Paths(Words, Words),
}
use Rule::{Named, On, Paths};

const CLUSTER_ROLES: &[Default] = &[
    own(
        "cluster-admin",
        &[On(&["*"], &["*"], &["*"]), Paths(&["*"], &["*"])],
    ),
    Default {
        name: "admin",
        gathered_by: None,
        rules: Rules::Gathered,
    },
    Default {
        name: "edit",
        gathered_by: Some("admin"),
        rules: Rules::Gathered,
    },
    Default {
        name: "view",
        gathered_by: Some("edit"),
        rules: Rules::Gathered,
    },
    Default {
        name: "system:aggregate-to-admin",
        gathered_by: Some("admin"),
        rules: Rules::Own(ADMIN_RULES),
    },
    Default {
        name: "system:aggregate-to-edit",
        gathered_by: Some("edit"),
        rules: Rules::Own(EDIT_RULES),
    },
    Default {
        name: "system:aggregate-to-view",
        gathered_by: Some("view"),
        rules: Rules::Own(VIEW_RULES),
    },
    own(
        "system:discovery",
        &[Paths(
            &["get"],
            &[
                "/livez",
                "/readyz",
                "/healthz",
                "/version",
                "/version/",
                "/openapi",
                "/openapi/*",
                "/api",
                "/api/*",
                "/apis",
                "/apis/*",
            ],
        )],
    ),
    own(
        "system:public-info-viewer",
        &[Paths(
            &["get"],
            &["/livez", "/readyz", "/healthz", "/version", "/version/"],
        )],
    ),
    own(
        "system:basic-user",
        &[
            On(
                CREATE,
                AUTHORIZATION,
                &["selfsubjectaccessreviews", "selfsubjectrulesreviews"],
            ),
            On(CREATE, AUTHENTICATION, &["selfsubjectreviews"]),
        ],
    ),
    own(
        "system:monitoring",
        &[
            Paths(
                &["get"],
                &[
                    "/metrics",
                    "/metrics/slis",
                    "/livez",
                    "/readyz",
                    "/healthz",
                    "/livez/*",
                    "/readyz/*",
                    "/healthz/*",
                    "/flagz",
                    "/statusz",
                ],
            ),
            On(&["get"], CORE, &["nodes/metrics"]),
        ],
    ),
    own(
        "system:service-account-issuer-discovery",
        &[Paths(
            &["get"],
            &[
                "/.well-known/openid-configuration",
                "/.well-known/openid-configuration/",
                "/openid/v1/jwks",
                "/openid/v1/jwks/",
            ],
        )],
    ),
    own(
        "system:auth-delegator",
        &[
            On(CREATE, AUTHENTICATION, &["tokenreviews"]),
            On(CREATE, AUTHORIZATION, &["subjectaccessreviews"]),
        ],
    ),
    own("system:node", NODE_RULES),
    own(
        "system:node-problem-detector",
        &[
            On(&["get"], CORE, &["nodes"]),
            On(&["patch"], CORE, &["nodes/status"]),
            On(&["create", "update", "patch"], EVENTS, &["events"]),
        ],
    ),
    own(
        "system:node-proxier",
        &[
            On(&["list", "watch"], CORE, &["services", "endpoints"]),
            On(READ, CORE, &["nodes"]),
            On(&["create", "update", "patch"], EVENTS, &["events"]),
            On(&["list", "watch"], NETWORKING, &["servicecidrs"]),
            On(&["list", "watch"], DISCOVERY, &["endpointslices"]),
        ],
    ),
    own(
        "system:kube-dns",
        &[On(&["list", "watch"], CORE, &["endpoints", "services"])],
    ),
    own("system:kube-scheduler", SCHEDULER_RULES),
    own(
        "system:node-bootstrapper",
        &[On(
            &["create", "get", "list", "watch"],
            CERTIFICATES,
            &["certificatesigningrequests"],
        )],
    ),
    own(
        NODE_CLIENT_ROLE,
        &[On(
            CREATE,
            CERTIFICATES,
            &["certificatesigningrequests/nodeclient"],
        )],
    ),
    own(
        SELF_NODE_CLIENT_ROLE,
        &[On(
            CREATE,
            CERTIFICATES,
            &["certificatesigningrequests/selfnodeclient"],
        )],
    ),
    own(
        "system:certificates.k8s.io:legacy-unknown-approver",
        &[approves(&["kubernetes.io/legacy-unknown"])],
    ),
    own(
        "system:certificates.k8s.io:kubelet-serving-approver",
        &[approves(&["kubernetes.io/kubelet-serving"])],
    ),
    own(
        "system:certificates.k8s.io:kube-apiserver-client-approver",
        &[approves(&["kubernetes.io/kube-apiserver-client"])],
    ),
    own(
        "system:certificates.k8s.io:kube-apiserver-client-kubelet-approver",
        &[approves(&["kubernetes.io/kube-apiserver-client-kubelet"])],
    ),
];

const NODE_CLIENT_ROLE: &str = "system:certificates.k8s.io:certificatesigningrequests:nodeclient";
const SELF_NODE_CLIENT_ROLE: &str = "system:certificates.k8s.io:certificatesigningrequests:selfnodeclient";
/// The group of tokens with which nodes join; kubeadm's.
const JOINERS: &str = "system:bootstrappers:kubeadm:default-node-token";

const fn approves(signer: Words) -> Rule {
    Named(&["approve"], CERTIFICATES, &["signers"], signer)
}

const ADMIN_RULES: &[Rule] = &[
    On(CREATE, AUTHORIZATION, &["localsubjectaccessreviews"]),
    On(READ_WRITE, &[GROUP], &["roles", "rolebindings"]),
];

const EDIT_RULES: &[Rule] = &[
    On(
        READ,
        CORE,
        &[
            "pods/attach",
            "pods/proxy",
            "pods/exec",
            "pods/portforward",
            "secrets",
            "services/proxy",
        ],
    ),
    On(&["impersonate"], CORE, &["serviceaccounts"]),
    On(
        WRITE,
        CORE,
        &[
            "pods",
            "pods/attach",
            "pods/proxy",
            "pods/exec",
            "pods/portforward",
        ],
    ),
    On(CREATE, CORE, &["pods/eviction"]),
    On(
        WRITE,
        CORE,
        &[
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "serviceaccounts",
            "services",
            "services/proxy",
            "persistentvolumeclaims",
            "configmaps",
            "secrets",
        ],
    ),
    On(CREATE, CORE, &["serviceaccounts/token"]),
    On(WRITE, EVENTS, &["events"]),
    On(
        WRITE,
        APPS,
        &[
            "statefulsets",
            "statefulsets/scale",
            "daemonsets",
            "deployments",
            "deployments/scale",
            "deployments/rollback",
            "replicasets",
            "replicasets/scale",
        ],
    ),
    On(WRITE, AUTOSCALING, &["horizontalpodautoscalers"]),
    On(WRITE, BATCH, &["jobs", "cronjobs"]),
    On(
        WRITE,
        EXTENSIONS,
        &[
            "daemonsets",
            "deployments",
            "deployments/scale",
            "deployments/rollback",
            "ingresses",
            "replicasets",
            "replicasets/scale",
            "replicationcontrollers/scale",
            "networkpolicies",
        ],
    ),
    On(WRITE, POLICY, &["poddisruptionbudgets"]),
    On(WRITE, NETWORKING, &["networkpolicies", "ingresses"]),
    On(READ_WRITE, COORDINATION, &["leases"]),
    On(WRITE, RESOURCE, &["resourceclaims", "resourceclaimtemplates"]),
];

const VIEW_RULES: &[Rule] = &[
    On(
        READ,
        CORE,
        &[
            "pods",
            "replicationcontrollers",
            "replicationcontrollers/scale",
            "serviceaccounts",
            "services",
            "services/status",
            "endpoints",
            "persistentvolumeclaims",
            "persistentvolumeclaims/status",
            "configmaps",
        ],
    ),
    On(
        READ,
        CORE,
        &[
            "limitranges",
            "resourcequotas",
            "bindings",
            "pods/status",
            "resourcequotas/status",
            "namespaces/status",
            "replicationcontrollers/status",
            "pods/log",
        ],
    ),
    On(READ, CORE, &["namespaces"]),
    On(READ, EVENTS, &["events"]),
    On(READ, DISCOVERY, &["endpointslices"]),
    // Ours, not upstream's: who has which revision, of Secrets too, without a right on Secrets. It tells nothing of values.
    On(READ, HOTMAP, &["deliveryreports"]),
    On(
        READ,
        APPS,
        &[
            "controllerrevisions",
            "statefulsets",
            "statefulsets/status",
            "statefulsets/scale",
            "daemonsets",
            "daemonsets/status",
            "deployments",
            "deployments/status",
            "deployments/scale",
            "replicasets",
            "replicasets/status",
            "replicasets/scale",
        ],
    ),
    On(
        READ,
        AUTOSCALING,
        &["horizontalpodautoscalers", "horizontalpodautoscalers/status"],
    ),
    On(
        READ,
        BATCH,
        &["jobs", "cronjobs", "cronjobs/status", "jobs/status"],
    ),
    On(
        READ,
        EXTENSIONS,
        &[
            "daemonsets",
            "daemonsets/status",
            "deployments",
            "deployments/scale",
            "deployments/status",
            "ingresses",
            "ingresses/status",
            "replicasets",
            "replicasets/scale",
            "replicasets/status",
            "replicationcontrollers/scale",
            "networkpolicies",
        ],
    ),
    On(
        READ,
        POLICY,
        &["poddisruptionbudgets", "poddisruptionbudgets/status"],
    ),
    On(
        READ,
        NETWORKING,
        &["networkpolicies", "ingresses", "ingresses/status"],
    ),
    On(
        READ,
        RESOURCE,
        &[
            "resourceclaims",
            "resourceclaims/status",
            "resourceclaimtemplates",
        ],
    ),
];

/// Nobody has it by default: nodes are the node authorizer's. Old kubelets and their proxies are bound to it by hand.
const NODE_RULES: &[Rule] = &[
    On(CREATE, AUTHENTICATION, &["tokenreviews"]),
    On(
        CREATE,
        AUTHORIZATION,
        &["subjectaccessreviews", "localsubjectaccessreviews"],
    ),
    On(READ, CORE, &["services"]),
    On(&["create", "get", "list", "watch"], CORE, &["nodes"]),
    On(&["update", "patch"], CORE, &["nodes/status"]),
    On(&["update", "patch"], CORE, &["nodes"]),
    On(&["create", "update", "patch"], EVENTS, &["events"]),
    On(READ, CORE, &["pods"]),
    On(&["create", "delete"], CORE, &["pods"]),
    On(&["update", "patch"], CORE, &["pods/status"]),
    On(CREATE, CORE, &["pods/eviction"]),
    On(READ, CORE, &["secrets", "configmaps"]),
    On(&["get"], CORE, &["persistentvolumeclaims", "persistentvolumes"]),
    On(&["get"], CORE, &["endpoints"]),
    On(
        &["create", "get", "list", "watch"],
        CERTIFICATES,
        &["certificatesigningrequests"],
    ),
    On(
        &["get", "create", "update", "patch", "delete"],
        COORDINATION,
        &["leases"],
    ),
    On(&["get"], STORAGE, &["volumeattachments"]),
    On(CREATE, CORE, &["serviceaccounts/token"]),
    On(
        &["get", "update", "patch"],
        CORE,
        &["persistentvolumeclaims/status"],
    ),
    On(READ, STORAGE, &["csidrivers"]),
    On(
        &["get", "create", "update", "patch", "delete"],
        STORAGE,
        &["csinodes"],
    ),
    On(READ, &["node.k8s.io"], &["runtimeclasses"]),
    On(&["get"], RESOURCE, &["resourceclaims"]),
    On(&["deletecollection"], RESOURCE, &["resourceslices"]),
    On(&["get"], CORE, &["serviceaccounts"]),
];

/// Of a second scheduler, whose account people bind to it.
const SCHEDULER_RULES: &[Rule] = &[
    On(&["create", "update", "patch"], EVENTS, &["events"]),
    On(CREATE, COORDINATION, &["leases"]),
    Named(
        &["get", "update", "list", "watch"],
        COORDINATION,
        &["leases"],
        &["kube-scheduler"],
    ),
    On(READ_WRITE, COORDINATION, &["leasecandidates"]),
    On(READ, CORE, &["nodes"]),
    On(&["get", "list", "watch", "delete"], CORE, &["pods"]),
    On(CREATE, CORE, &["pods/binding", "bindings"]),
    On(&["patch", "update"], CORE, &["pods/status"]),
    On(READ, CORE, &["services", "replicationcontrollers"]),
    On(READ, &["apps", "extensions"], &["replicasets"]),
    On(READ, APPS, &["statefulsets"]),
    On(READ, POLICY, &["poddisruptionbudgets"]),
    On(READ, CORE, &["persistentvolumeclaims", "persistentvolumes"]),
    On(CREATE, AUTHENTICATION, &["tokenreviews"]),
    On(CREATE, AUTHORIZATION, &["subjectaccessreviews"]),
    On(READ, STORAGE, &["csinodes"]),
    On(READ, STORAGE, &["volumeattachments"]),
    On(READ, CORE, &["namespaces"]),
    On(READ, STORAGE, &["csidrivers"]),
    On(READ, STORAGE, &["csistoragecapacities"]),
    On(READ, RESOURCE, &["deviceclasses"]),
    On(
        &["get", "list", "watch", "update", "patch"],
        RESOURCE,
        &["resourceclaims"],
    ),
    On(
        &["get", "list", "watch", "update", "patch"],
        RESOURCE,
        &["resourceclaims/status"],
    ),
    On(&["update"], CORE, &["pods/finalizers"]),
    On(READ, RESOURCE, &["resourceslices"]),
    On(&["create", "delete"], RESOURCE, &["resourceclaims"]),
    On(&["update", "patch"], RESOURCE, &["resourceclaims/binding"]),
];

/// The role of the same name, and who has it.
const CLUSTER_ROLE_BINDINGS: &[(&str, Subjects)] = &[
    ("cluster-admin", &[("Group", "system:masters")]),
    ("system:monitoring", &[("Group", "system:monitoring")]),
    ("system:discovery", &[("Group", "system:authenticated")]),
    ("system:basic-user", &[("Group", "system:authenticated")]),
    (
        "system:public-info-viewer",
        &[
            ("Group", "system:authenticated"),
            ("Group", "system:unauthenticated"),
        ],
    ),
    ("system:node-proxier", &[("User", "system:kube-proxy")]),
    ("system:kube-dns", &[("ServiceAccount", "kube-dns")]),
    ("system:kube-scheduler", &[("User", "system:kube-scheduler")]),
    ("system:node", &[]),
    (
        "system:service-account-issuer-discovery",
        &[("Group", "system:serviceaccounts")],
    ),
];

/// What lets nodes in: a binding's name, its role, and who has it.
const JOIN_BINDINGS: &[(&str, &str, Subjects)] = &[
    (
        "kubeadm:kubelet-bootstrap",
        "system:node-bootstrapper",
        &[("Group", JOINERS)],
    ),
    (
        "kubeadm:node-autoapprove-bootstrap",
        NODE_CLIENT_ROLE,
        &[("Group", JOINERS)],
    ),
    (
        "kubeadm:node-autoapprove-certificate-rotation",
        SELF_NODE_CLIENT_ROLE,
        &[("Group", "system:nodes")],
    ),
];

const fn own(name: &'static str, rules: &'static [Rule]) -> Default {
    Default {
        name,
        gathered_by: None,
        rules: Rules::Own(rules),
    }
}

/// The default ClusterRoles; those that gather have no rules yet.
pub(crate) fn cluster_roles() -> Vec<Role> {
    CLUSTER_ROLES.iter().map(Default::role).collect()
}

/// The default ClusterRoleBindings.
pub(crate) fn cluster_role_bindings() -> Vec<Binding> {
    let of_roles = CLUSTER_ROLE_BINDINGS
        .iter()
        .map(|(name, subjects)| (*name, *name, *subjects));
    let bindings = of_roles.chain(JOIN_BINDINGS.iter().copied());
    let bindings = bindings.map(|(name, role, subjects)| Binding {
        metadata: metadata(name),
        role_ref: RoleRef {
            api_group: GROUP.to_owned(),
            kind: "ClusterRole".to_owned(),
            name: role.to_owned(),
        },
        subjects: subjects.iter().map(|(kind, name)| subject(kind, name)).collect(),
    });
    bindings.collect()
}

fn subject(kind: &str, name: &str) -> Subject {
    let is_account = kind == "ServiceAccount";
    Subject {
        kind: kind.to_owned(),
        api_group: if is_account { "" } else { GROUP }.to_owned(),
        name: name.to_owned(),
        namespace: if is_account { "kube-system" } else { "" }.to_owned(),
    }
}

fn metadata(name: &str) -> Metadata {
    let pair = |(key, value): (&str, &str)| BTreeMap::from([(key.to_owned(), value.to_owned())]);
    Metadata {
        name: name.to_owned(),
        namespace: String::new(),
        labels: pair(BOOTSTRAPPING),
        annotations: pair((AUTO_UPDATE, "true")),
    }
}

fn label(role: &str) -> (String, String) {
    (format!("{GROUP}/aggregate-to-{role}"), "true".to_owned())
}

impl Default {
    fn role(&self) -> Role {
        let mut metadata = metadata(self.name);
        metadata.labels.extend(self.gathered_by.map(label));
        let (rules, aggregation_rule) = match self.rules {
            Rules::Own(rules) => (rules.iter().map(Rule::policy).collect(), None),
            Rules::Gathered => {
                let selector = LabelSelector {
                    match_labels: BTreeMap::from([label(self.name)]),
                    ..LabelSelector::default()
                };
                let rule = AggregationRule {
                    cluster_role_selectors: vec![selector],
                };
                (Vec::new(), Some(rule))
            }
        };
        Role {
            metadata,
            rules,
            aggregation_rule,
        }
    }
}

impl Rule {
    /// Lists in upstream's order: sorted, so that a diff with a stock cluster is empty.
    fn policy(&self) -> PolicyRule {
        let sorted = |words: Words| {
            let mut words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            words.sort_unstable();
            words
        };
        let (verbs, groups, resources, names, urls): (Words, Words, Words, Words, Words) = match *self {
            Rule::On(verbs, groups, resources) => (verbs, groups, resources, &[], &[]),
            Rule::Named(verbs, groups, resources, names) => (verbs, groups, resources, names, &[]),
            Rule::Paths(verbs, urls) => (verbs, &[], &[], &[], urls),
        };
        PolicyRule {
            verbs: sorted(verbs),
            api_groups: sorted(groups),
            resources: sorted(resources),
            resource_names: sorted(names),
            non_resource_urls: sorted(urls),
        }
    }
}
