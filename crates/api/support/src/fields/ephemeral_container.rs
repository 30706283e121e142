//! One ephemeral container.

use crate::{
    Table,
    row::{refused, works},
};

const DEBUG: &str = "crates/hotmap/tests/node/debug.rs::the_newest_kubectl_looks_into_a_pod_that_runs";
const FAILS: &str =
    "crates/hotmap/tests/node/debug.rs::an_ephemeral_container_has_what_others_have_and_fails_alone";
const FIELDS: &str = FAILS;
const NOT_EPHEMERAL: &str =
    "the API refuses it, as upstream: an ephemeral container is no part of the workload";
const TARGET: &str = "crates/node/runtime/tests/pods/targets.rs::a_container_shares_the_processes_of_its_target_and_ends_with_it";

pub(super) const EPHEMERAL_CONTAINER: Table = Table {
    message: "EphemeralContainer",
    rows: &[
        works(
            "args",
            "replace the image's arguments; variables expand",
            &[FIELDS],
        ),
        works(
            "command",
            "replaces the image's program; variables expand",
            &[DEBUG],
        ),
        works("env", "variables, in their order", &[FIELDS]),
        works(
            "envFrom",
            "variables from whole objects, beneath `env`",
            &[FIELDS],
        ),
        works("image", "names a program of the host", &[DEBUG, FAILS]),
        works("imagePullPolicy", "nothing is pulled, whatever it says", &[DEBUG]),
        refused("lifecycle", NOT_EPHEMERAL),
        refused("livenessProbe", NOT_EPHEMERAL),
        works("name", "names it in the pod, in logs and in events", &[DEBUG]),
        refused("ports", NOT_EPHEMERAL),
        refused("readinessProbe", NOT_EPHEMERAL),
        refused("resizePolicy", NOT_EPHEMERAL),
        refused("resources", NOT_EPHEMERAL),
        refused("restartPolicy", NOT_EPHEMERAL),
        refused("restartPolicyRules", NOT_EPHEMERAL),
        works("securityContext", "who it is and what it may do", &[FIELDS]),
        refused("startupProbe", NOT_EPHEMERAL),
        works("stdin", "kept open for who attaches", &[DEBUG]),
        works(
            "stdinOnce",
            "at its end once the first who attached has left; a terminal stays open",
            &["crates/node/runtime/tests/pods/attach.rs::an_input_for_one_ends_with_its_client"],
        ),
        works(
            "targetContainerName",
            "shares the pid namespace of that container, and ends with it",
            &[DEBUG, FAILS, TARGET],
        ),
        works(
            "terminationMessagePath",
            "a file for last words; 4096 bytes of it are read",
            &[FIELDS],
        ),
        works(
            "terminationMessagePolicy",
            "FallbackToLogsOnError takes the end of the log where the file is empty",
            &["crates/node/agent/src/termination_message.rs::a_log_gives_its_last_lines_within_their_limits"],
        ),
        works(
            "tty",
            "the process has a terminal, which who attaches types on",
            &[DEBUG],
        ),
        refused(
            "volumeDevices",
            "there are no persistent volumes here, and no block device is given to a pod",
        ),
        works(
            "volumeMounts",
            "volumes of the pod inside, also those that no other container mounts",
            &[FIELDS],
        ),
        works(
            "workingDir",
            "where the process starts; made if it is missing",
            &[FIELDS],
        ),
    ],
};
