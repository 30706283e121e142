//! Who a container is, and what it may do.

use super::pod_security_context::{APP_ARMOR, CALLS, SE_LINUX};
use crate::{
    Table,
    row::{refused, warned, works},
};

const USERS: &str = "crates/hotmap/tests/node/security.rs::users_groups_and_privileges_are_as_asked";

pub(super) const SECURITY_CONTEXT: Table = Table {
    message: "SecurityContext",
    rows: &[
        works("allowPrivilegeEscalation", "false sets no_new_privs", &[USERS]),
        refused("appArmorProfile", APP_ARMOR),
        works("capabilities", "over containerd's default set", &[USERS]),
        works(
            "privileged",
            "every capability of the pod's own user namespace, on nodes that allow it",
            &[
                "crates/node/runtime/tests/pods/lifecycle.rs::a_privileged_container_has_every_capability_of_its_pod_and_is_still_not_the_hosts_root",
            ],
        ),
        warned("procMount", "/proc is always masked").except(&["Default"]),
        works(
            "readOnlyRootFilesystem",
            "all but volumes and /dev is read-only, /tmp and the directories that images write to included",
            &[
                "crates/node/runtime/tests/pods/confinement.rs::a_read_only_root_is_so_everywhere_but_in_volumes",
                USERS,
            ],
        ),
        works("runAsGroup", "the primary group, at most 65535", &[USERS]),
        works(
            "runAsNonRoot",
            "a container that would run as uid 0 is not started",
            &[USERS],
        ),
        works("runAsUser", "the user, at most 65535", &[USERS]),
        refused("seLinuxOptions", SE_LINUX),
        works("seccompProfile", "outranks that of the pod", &[CALLS, USERS]),
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
