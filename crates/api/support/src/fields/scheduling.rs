//! Where a pod may be.

use crate::{
    Table,
    row::{warned, works},
};

const PLACEMENT: &str =
    "crates/plane/workload/src/binding/placement.rs::a_node_takes_what_it_has_no_reason_to_refuse";
const DAEMONS: &str =
    "crates/hotmap/tests/node/daemon_sets.rs::nodes_decide_by_labels_and_taints_who_runs_a_daemon";
const NOT_PLACED: &str = "pods are not placed by it";

pub(super) const AFFINITY: Table = Table {
    message: "Affinity",
    rows: &[
        works("nodeAffinity", "what a node must be like", &[PLACEMENT]),
        warned("podAffinity", NOT_PLACED),
        warned("podAntiAffinity", NOT_PLACED),
    ],
};

pub(super) const NODE_AFFINITY: Table = Table {
    message: "NodeAffinity",
    rows: &[
        works(
            "requiredDuringSchedulingIgnoredDuringExecution",
            "a node that does not match is not chosen",
            &[PLACEMENT],
        ),
        warned("preferredDuringSchedulingIgnoredDuringExecution", NOT_PLACED),
    ],
};

pub(super) const NODE_SELECTOR: Table = Table {
    message: "NodeSelector",
    rows: &[works("nodeSelectorTerms", "one of them must match", &[PLACEMENT])],
};

pub(super) const NODE_SELECTOR_TERM: Table = Table {
    message: "NodeSelectorTerm",
    rows: &[
        works("matchExpressions", "all of them, over labels", &[PLACEMENT]),
        works(
            "matchFields",
            "all of them, over `metadata.name`",
            &[PLACEMENT, DAEMONS],
        ),
    ],
};

pub(super) const NODE_SELECTOR_REQUIREMENT: Table = Table {
    message: "NodeSelectorRequirement",
    rows: &[
        works("key", "the label or field", &[PLACEMENT]),
        works(
            "operator",
            "In, NotIn, Exists, DoesNotExist, Gt, Lt",
            &[PLACEMENT],
        ),
        works("values", "what it is compared with", &[PLACEMENT]),
    ],
};

pub(super) const POD_SCHEDULING_GATE: Table = Table {
    message: "PodSchedulingGate",
    rows: &[works("name", "whose gate it is", &[PLACEMENT])],
};

const EVICTION: &str =
    "crates/plane/workload/src/taint_eviction.rs::a_pod_stays_as_long_as_its_tolerations_say";

pub(super) const TOLERATION: Table = Table {
    message: "Toleration",
    rows: &[
        works("key", "the taint's key; without it every taint", &[PLACEMENT]),
        works("operator", "Equal or Exists", &[PLACEMENT]),
        works("value", "the taint's value", &[PLACEMENT]),
        works(
            "effect",
            "the taint's effect; without it every effect",
            &[PLACEMENT],
        ),
        works(
            "tolerationSeconds",
            "how long a NoExecute taint is borne",
            &[EVICTION],
        ),
    ],
};
