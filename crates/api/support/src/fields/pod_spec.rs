//! The pod itself.

use crate::{
    State, Table,
    row::{refused, warned, works},
};

const DEFAULTS: &str = "crates/api/kinds/src/pod/defaults.rs::a_bare_pod_gets_its_defaults";
const DEBUG: &str = "crates/hotmap/tests/node/debug.rs::the_newest_kubectl_looks_into_a_pod_that_runs";
const FIELDS: &str = "crates/hotmap/tests/node/fields.rs::small_fields_are_seen_from_inside";
const HOST_NAMESPACES: &str = "pods do not share the host's namespaces";
const INIT: &str =
    "crates/hotmap/tests/node/lifecycle.rs::init_containers_run_one_after_the_other_before_the_rest";
const NAMES: &str =
    "crates/hotmap/tests/node/network.rs::a_pod_has_names_a_resolver_and_where_it_asks_the_hosts_network";
const FULL_NAME: &str =
    "crates/node/agent/src/hosts.rs::a_pod_has_a_short_name_and_with_a_subdomain_a_full_one";
const PLACEMENT: &str =
    "crates/plane/workload/src/binding/placement.rs::a_node_takes_what_it_has_no_reason_to_refuse";
const TOKEN: &str = "crates/hotmap/tests/node/tokens_in_pods.rs::a_pod_speaks_as_its_account_and_the_token_is_for_its_user_alone";

pub(super) const POD_SPEC: Table = Table {
    message: "PodSpec",
    rows: &[
        works(
            "activeDeadlineSeconds",
            "ends the pod that long after its start, for good",
            &[
                "crates/hotmap/tests/node/endings.rs::a_pod_that_is_active_for_too_long_is_ended_for_good",
                "crates/plane/clock/src/active_time.rs::time_counts_from_the_start_whatever_becomes_of_the_clock",
            ],
        ),
        works(
            "affinity",
            "required node affinity decides where the pod is bound",
            &[PLACEMENT],
        ),
        works(
            "automountServiceAccountToken",
            "decides whether containers find the token of their account",
            &[FIELDS],
        ),
        works("containers", "run side by side", &[INIT]),
        works("dnsConfig", "adds to what the policy gives", &[NAMES]),
        works(
            "dnsPolicy",
            "None and Default; ClusterFirst is Default, as there is no cluster DNS",
            &[
                NAMES,
                "crates/node/agent/src/resolver.rs::each_policy_has_its_file",
            ],
        ),
        works(
            "enableServiceLinks",
            "variables name the service `kubernetes`, the only one with an address",
            &["crates/node/agent/src/environment.rs::pods_are_told_where_the_api_is"],
        ),
        works(
            "ephemeralContainers",
            "start beside the others when `kubectl debug` brings them, and are never started again",
            &[
                DEBUG,
                "crates/hotmap/tests/node/debug.rs::kubectl_1_32_looks_into_a_pod_that_runs",
                "crates/node/agent/src/lifecycle/tests.rs::ephemeral_containers_start_once_and_count_for_nothing",
                "crates/node/agent/src/status/tests.rs::ephemeral_containers_have_a_state_and_no_say",
            ],
        ),
        works("hostAliases", "lines in /etc/hosts", &[NAMES]),
        refused("hostIPC", HOST_NAMESPACES).except(&["false"]),
        works(
            "hostNetwork",
            "the node's address, name and ports, but none below 1024",
            &[NAMES],
        ),
        refused("hostPID", HOST_NAMESPACES).except(&["false"]),
        warned("hostUsers", "every pod has a user namespace of its own").except(&["false"]),
        works("hostname", "is the host name inside", &[FIELDS]),
        works(
            "hostnameOverride",
            "is the host name inside, whatever `hostname` and `subdomain` say",
            &[FULL_NAME],
        ),
        warned("imagePullSecrets", "no image is pulled"),
        works(
            "initContainers",
            "run one after the other before the rest, sidecars beside it",
            &[INIT],
        ),
        works(
            "nodeName",
            "the node that runs the pod; without it the pod is bound to one",
            &["crates/plane/workload/src/view/pod.rs::only_waiting_pods_of_this_scheduler_want_a_node"],
        ),
        works("nodeSelector", "labels a node must have", &[PLACEMENT]),
        works(
            "os",
            "pods run on Linux",
            &["crates/api/kinds/src/pod/stop_signal.rs::a_signal_wants_a_system_that_has_it"],
        ),
        warned("overhead", "nothing is added to what containers ask for"),
        warned("preemptionPolicy", "no pod makes room for another one").except(&["PreemptLowerPriority"]),
        warned("priority", "pods are not ordered by priority").except(&["0"]),
        warned("priorityClassName", "pods are not ordered by priority"),
        works(
            "readinessGates",
            "conditions that others set hold readiness back",
            &["crates/hotmap/tests/node/draining.rs::a_readiness_gate_is_opened_by_somebody_else"],
        ),
        refused("resourceClaims", "devices are not given to pods"),
        works(
            "resources",
            "what all containers may use together",
            &["crates/node/agent/src/resources.rs::a_pod_has_the_sum_and_limits_only_if_all_have_one"],
        ),
        works(
            "restartPolicy",
            "Always, OnFailure and Never",
            &["crates/hotmap/tests/node/lifecycle.rs::each_restart_policy_is_kept"],
        ),
        refused("runtimeClassName", "there is one way to run pods here"),
        works(
            "schedulerName",
            "a pod of another scheduler waits for that one",
            &["crates/plane/workload/src/view/pod.rs::only_waiting_pods_of_this_scheduler_want_a_node"],
        ),
        works(
            "schedulingGates",
            "hold back the binding until all are gone",
            &[PLACEMENT],
        ),
        refused("schedulingGroup", "pods are bound one by one"),
        works(
            "securityContext",
            "what containers do not say themselves",
            &["crates/node/agent/src/command.rs::the_container_outranks_the_pod_and_the_pod_the_image"],
        ),
        works(
            "serviceAccount",
            "the old name of serviceAccountName",
            &[DEFAULTS],
        ),
        works(
            "serviceAccountName",
            "the account that the pod's token speaks for",
            &[TOKEN],
        ),
        works(
            "setHostnameAsFQDN",
            "the host name inside is the full one, in cluster.local",
            &[NAMES, FULL_NAME],
        ),
        works(
            "shareProcessNamespace",
            "containers see and signal each other",
            &["crates/hotmap/tests/node/shared_pids.rs::a_container_signals_another_one_of_its_pod"],
        ),
        works(
            "subdomain",
            "makes the full name in /etc/hosts; nobody else resolves it",
            &[NAMES, FULL_NAME],
        ),
        works(
            "terminationGracePeriodSeconds",
            "the time between the signal and the kill, for the whole pod",
            &["crates/hotmap/tests/node/lifecycle.rs::a_pod_is_asked_to_stop_and_then_stopped"],
        ),
        works(
            "tolerations",
            "taints that do not keep the pod away, and for how long",
            &[
                PLACEMENT,
                "crates/hotmap/tests/api/node_life.rs::pods_leave_a_node_whose_taint_they_do_not_tolerate",
            ],
        ),
        warned("topologySpreadConstraints", "pods are not placed by it"),
        works(
            "volumes",
            "are there before a container that mounts them starts",
            &[
                "crates/hotmap/tests/node/volumes.rs::every_kind_of_configuration_has_its_content_owner_and_mode",
            ],
        ),
    ],
};

pub(super) const POD_OS: Table = Table {
    message: "PodOS",
    rows: &[works(
        "name",
        "linux",
        &["crates/api/kinds/src/pod/stop_signal.rs::a_signal_wants_a_system_that_has_it"],
    )
    .only(&["linux"], State::Refused, "nodes run Linux")],
};

pub(super) const POD_READINESS_GATE: Table = Table {
    message: "PodReadinessGate",
    rows: &[works(
        "conditionType",
        "the condition to wait for",
        &["crates/node/agent/src/status/tests.rs::readiness_waits_for_what_others_say"],
    )],
};
