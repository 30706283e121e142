//! What holds for all containers of a pod unless they say otherwise.

use crate::{
    Table,
    row::{refused, warned, works},
};

const USERS: &str = "crates/hotmap/tests/node/security.rs::users_groups_and_privileges_are_as_asked";
const VOLUMES: &str =
    "crates/hotmap/tests/node/volumes.rs::every_kind_of_configuration_has_its_content_owner_and_mode";
const OUTRANKS: &str =
    "crates/node/agent/src/command.rs::the_container_outranks_the_pod_and_the_pod_the_image";

pub(super) const POD_SECURITY_CONTEXT: Table = Table {
    message: "PodSecurityContext",
    rows: &[
        refused("appArmorProfile", "profiles are not applied"),
        works(
            "fsGroup",
            "owns the files of volumes, and every process has it",
            &[VOLUMES],
        ),
        works(
            "fsGroupChangePolicy",
            "volumes are made with their owner: both policies come to the same",
            &[VOLUMES],
        ),
        works(
            "runAsGroup",
            "the primary group, at most 65535",
            &[VOLUMES, OUTRANKS],
        ),
        works(
            "runAsNonRoot",
            "a container that would run as uid 0 is not started",
            &[USERS],
        ),
        works("runAsUser", "the user, at most 65535", &[USERS, OUTRANKS]),
        refused("seLinuxChangePolicy", "labels are not applied"),
        refused("seLinuxOptions", "labels are not applied"),
        warned("seccompProfile", "seccomp profiles are not applied"),
        refused("supplementalGroups", "supplemental groups are not set"),
        warned("supplementalGroupsPolicy", "supplemental groups are not set"),
        refused("sysctls", "kernel parameters are not set"),
        refused("windowsOptions", "nodes run Linux"),
    ],
};
