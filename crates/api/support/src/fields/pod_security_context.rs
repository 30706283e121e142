//! What holds for all containers of a pod unless they say otherwise.

use crate::{
    State, Table,
    row::{refused, works},
};

const USERS: &str = "crates/hotmap/tests/node/security.rs::users_groups_and_privileges_are_as_asked";
const VOLUMES: &str =
    "crates/hotmap/tests/node/volumes.rs::every_kind_of_configuration_has_its_content_owner_and_mode";
const OUTRANKS: &str =
    "crates/node/agent/src/command.rs::the_container_outranks_the_pod_and_the_pod_the_image";

const GROUPS: &str = "crates/node/runtime/tests/pods/confinement.rs::groups_are_those_given_and_with_merge_those_of_the_user_too";
pub(super) const CALLS: &str =
    "crates/node/runtime/tests/pods/confinement.rs::a_confined_container_makes_the_usual_calls_and_no_others";
const PROFILES: &str =
    "crates/node/agent/src/pod/security.rs::a_containers_own_profile_outranks_that_of_its_pod";
pub(super) const APP_ARMOR: &str =
    "no profile of AppArmor is applied: pods are apart by their user namespaces";
pub(super) const SE_LINUX: &str = "no label of SELinux is applied: pods are apart by their user namespaces";

pub(super) const SECCOMP_PROFILE: Table = Table {
    message: "SeccompProfile",
    rows: &[
        refused("localhostProfile", LOCALHOST),
        works(
            "type",
            "RuntimeDefault: the system calls that containerd allows; Unconfined: all",
            &[CALLS, PROFILES],
        )
        .only(&["RuntimeDefault", "Unconfined"], State::Refused, LOCALHOST),
    ],
};

const LOCALHOST: &str = "profiles are not read from files of the node: use RuntimeDefault";

pub(super) const POD_SECURITY_CONTEXT: Table = Table {
    message: "PodSecurityContext",
    rows: &[
        refused("appArmorProfile", APP_ARMOR),
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
        refused("seLinuxChangePolicy", SE_LINUX),
        refused("seLinuxOptions", SE_LINUX),
        works(
            "seccompProfile",
            "of containers that have none of their own",
            &[CALLS, PROFILES],
        ),
        works(
            "supplementalGroups",
            "beside the groups of the user, each at most 65535",
            &[GROUPS, USERS],
        ),
        works(
            "supplementalGroupsPolicy",
            "Merge: those that the container's /etc/group gives its user too; Strict: those alone",
            &[GROUPS, USERS],
        ),
        refused(
            "sysctls",
            "kernel parameters are not set: set them on the host, whose values pods see",
        ),
        refused("windowsOptions", "nodes run Linux"),
    ],
};
