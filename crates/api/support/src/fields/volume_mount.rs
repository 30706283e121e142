//! A volume inside a container.

use crate::{
    Table,
    row::{warned, works},
};

const VOLUMES: &str =
    "crates/hotmap/tests/node/volumes.rs::every_kind_of_configuration_has_its_content_owner_and_mode";
const READ_ONLY: &str =
    "crates/node/runtime/tests/pods/lifecycle.rs::mounts_users_and_writable_directories_are_as_asked_for";

pub(super) const VOLUME_MOUNT: Table = Table {
    message: "VolumeMount",
    rows: &[
        works("mountPath", "where it is inside", &[VOLUMES]),
        warned("mountPropagation", "mounts do not propagate").except(&["None"]),
        works("name", "which volume", &[VOLUMES]),
        works("readOnly", "submounts included", &[READ_ONLY]),
        works(
            "recursiveReadOnly",
            "a read-only mount covers its submounts always; the status says Enabled",
            &[
                "crates/node/agent/src/status/tests.rs::mounts_and_messages_are_shown_within_their_limits",
                READ_ONLY,
            ],
        ),
        works(
            "subPath",
            "a part of the volume, as it is when the container starts",
            &[
                "crates/hotmap/tests/node/article_001.rs::an_edit_reaches_the_volume_and_a_new_pod_the_environment_and_the_subpath",
            ],
        ),
        works(
            "subPathExpr",
            "a sub-path with variables of the container in it",
            &[
                "crates/hotmap/tests/node/endings.rs::a_sub_path_is_made_of_variables_and_stays_inside",
                "crates/node/agent/src/sub_path.rs::expressions_become_sub_paths_that_stay_inside",
            ],
        ),
    ],
};
