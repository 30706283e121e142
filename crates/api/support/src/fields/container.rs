//! One container, main or init.

use crate::{
    State, Table,
    row::{refused, warned, works},
};

const ATTACH: &str =
    "crates/node/runtime/tests/pods/attach.rs::all_who_attach_see_the_output_and_an_open_stdin_outlives_them";
const ATTACHED_ONCE: &str = "crates/node/runtime/tests/pods/attach.rs::an_input_for_one_ends_with_its_client";
const ENVIRONMENT: &str = "crates/hotmap/tests/node/lifecycle.rs::variables_come_from_everywhere_and_expand";
const FIELDS: &str = "crates/hotmap/tests/node/fields.rs::small_fields_are_seen_from_inside";
const IMAGE: &str =
    "crates/hotmap/tests/node/broken_config.rs::an_image_that_stands_for_nothing_says_what_to_do";
const LIMITS: &str =
    "crates/hotmap/tests/node/limits.rs::limits_are_the_kernels_and_who_exceeds_them_is_killed";
const MESSAGES: &str =
    "crates/hotmap/tests/node/endings.rs::what_containers_say_about_their_end_is_in_the_status";
const PORTS: &str = "crates/hotmap/tests/node/probes.rs::readiness_follows_each_kind_of_probe";
const RUN: &str = "crates/hotmap/tests/node/streams.rs::the_newest_kubectl_runs_programs_one_talks_to";
const STARTUP: &str =
    "crates/hotmap/tests/node/probes.rs::nothing_else_is_asked_before_a_container_has_started_up";
const WORDS: &str = "crates/node/agent/src/command.rs::words_come_from_the_container_or_from_the_image";

pub(super) const CONTAINER: Table = Table {
    message: "Container",
    rows: &[
        works("args", "replace the image's arguments; variables expand", &[WORDS]),
        works("command", "replaces the image's program; variables expand", &[WORDS]),
        works("env", "variables, in their order", &[ENVIRONMENT]),
        works("envFrom", "variables from whole objects, beneath `env`", &[ENVIRONMENT]),
        works("image", "names a program of the host", &[IMAGE, WORDS]),
        works("imagePullPolicy", "nothing is pulled, whatever it says", &[IMAGE]),
        works(
            "lifecycle",
            "hooks, and the signal that stops",
            &["crates/hotmap/tests/node/hooks.rs::a_container_is_there_once_its_hook_has_ended_and_the_next_one_starts_then"],
        ),
        works(
            "livenessProbe",
            "restarts a container that does not live",
            &["crates/hotmap/tests/node/probes.rs::a_container_that_does_not_live_is_restarted"],
        ),
        works("name", "names it in the pod, in logs and in events", &[IMAGE]),
        works("ports", "names for probes and hooks; every port of a pod can be reached", &[PORTS]),
        works("readinessProbe", "says whether a container can serve", &[PORTS]),
        warned("resizePolicy", "resources of a pod that runs are not changed"),
        works("resources", "what it asks for and what it may use", &[LIMITS]),
        works(
            "restartPolicy",
            "Always makes a sidecar of an init container",
            &[
                "crates/hotmap/tests/node/sidecars.rs::a_sidecar_holds_up_whoever_comes_after_it_until_it_has_started_up",
                "crates/hotmap/tests/node/sidecars.rs::sidecars_go_after_the_main_containers_the_last_one_first",
                "crates/hotmap/tests/node/sidecars.rs::a_sidecar_is_restarted_whatever_its_pod_says_and_a_failed_init_container_ends_it",
                "crates/hotmap/tests/node/sidecars.rs::a_job_is_done_when_its_main_containers_are",
            ],
        )
        .only(
            &["Always"],
            State::Refused,
            "only Always is supported, which makes a sidecar of an init container",
        ),
        refused("restartPolicyRules", "exit codes do not decide about restarts here"),
        works(
            "securityContext",
            "who it is and what it may do",
            &["crates/hotmap/tests/node/security.rs::users_groups_and_privileges_are_as_asked"],
        ),
        works(
            "startupProbe",
            "comes before the other probes, which wait until it has succeeded",
            &[STARTUP],
        ),
        works("stdin", "kept open for who attaches", &[RUN, ATTACH]),
        works(
            "stdinOnce",
            "at its end once the first who attached has left; a terminal stays open",
            &[RUN, ATTACHED_ONCE],
        ),
        works("terminationMessagePath", "a file for last words; 4096 bytes of it are read", &[MESSAGES]),
        works("terminationMessagePolicy", "FallbackToLogsOnError takes the end of the log where the file is empty", &[MESSAGES, "crates/node/agent/src/termination_message.rs::a_log_gives_its_last_lines_within_their_limits"]),
        works(
            "tty",
            "the process has a terminal, which who attaches types on",
            &[FIELDS, RUN],
        ),
        refused("volumeDevices", "there are no persistent volumes here, and no block device is given to a pod"),
        works(
            "volumeMounts",
            "volumes, or parts of them, inside",
            &["crates/hotmap/tests/node/volumes.rs::containers_share_an_empty_dir_and_the_hosts_directory"],
        ),
        works("workingDir", "where the process starts; made if it is missing", &[FIELDS]),
    ],
};

pub(super) const RESOURCE_REQUIREMENTS: Table = Table {
    message: "ResourceRequirements",
    rows: &[
        refused("claims", "devices are not given to pods"),
        works(
            "limits",
            "cpu and memory are limited by cgroups; see also `--pod-max-pids`",
            &[
                LIMITS,
                "crates/node/agent/src/resources.rs::a_container_has_what_a_kubelet_would_give_it",
                "crates/node/runtime/tests/pods/limits.rs::who_takes_too_much_memory_is_killed_and_its_neighbours_are_not",
            ],
        ),
        works(
            "requests",
            "shares of contended CPUs, and who is killed first when memory runs out; nothing is set aside",
            &[
                "crates/node/agent/src/resources.rs::a_pod_has_the_sum_and_limits_only_if_all_have_one",
                "crates/node/agent/src/resources.rs::who_goes_first_when_memory_runs_out_follows_the_class_and_the_request",
            ],
        ),
    ],
};

pub(super) const CONTAINER_PORT: Table = Table {
    message: "ContainerPort",
    rows: &[
        works("containerPort", "for people, and for whoever names it", &[PORTS]),
        warned("hostIP", "no port of the host leads to a pod"),
        warned("hostPort", "no port of the host leads to a pod").except(&["0"]),
        works("name", "stands for the number in probes and hooks", &[PORTS]),
        works(
            "protocol",
            "TCP, UDP or SCTP; nothing is filtered by it",
            &["crates/api/kinds/src/pod/container.rs::ports_have_numbers_names_and_protocols"],
        ),
    ],
};
