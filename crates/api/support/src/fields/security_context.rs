//! Who a container is, and what it may do.

use crate::{
    Table,
    row::{refused, warned, works},
};

const USERS: &str = "crates/hotmap/tests/node/security.rs::users_groups_and_privileges_are_as_asked";

pub(super) const SECURITY_CONTEXT: Table = Table {
    message: "SecurityContext",
    rows: &[
        works("allowPrivilegeEscalation", "false sets no_new_privs", &[USERS]),
        refused("appArmorProfile", "profiles are not applied"),
        works("capabilities", "over containerd's default set", &[USERS]),
        works(
            "privileged",
            "every capability of the pod's own user namespace, on nodes that allow it",
            &[
                "crates/node/runtime/tests/pods/lifecycle.rs::a_privileged_container_has_every_capability_of_its_pod_and_is_still_not_the_hosts_root",
            ],
        ),
        warned("procMount", "/proc is always masked").except(&["Default"]),
        refused(
            "readOnlyRootFilesystem",
            "the root file system is always writable",
        )
        .except(&["false"]),
        works("runAsGroup", "the primary group, at most 65535", &[USERS]),
        works(
            "runAsNonRoot",
            "a container that would run as uid 0 is not started",
            &[USERS],
        ),
        works("runAsUser", "the user, at most 65535", &[USERS]),
        refused("seLinuxOptions", "labels are not applied"),
        warned("seccompProfile", "seccomp profiles are not applied"),
        refused("windowsOptions", "nodes run Linux"),
    ],
};

const SET: &str = "crates/node/runtime/src/spec.rs::capabilities_follow_the_security_context";

pub(super) const CAPABILITIES: Table = Table {
    message: "Capabilities",
    rows: &[
        works("add", "`ALL`, or names with or without `CAP_`", &[USERS, SET]),
        works("drop", "`ALL`, or names with or without `CAP_`", &[USERS, SET]),
    ],
};
