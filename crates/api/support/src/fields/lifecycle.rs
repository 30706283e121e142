//! What happens right after the start of a container and right before its end.

use crate::{
    Table,
    row::{refused, works},
};

const POST_START: &str = "crates/hotmap/tests/node/hooks.rs::a_container_is_there_once_its_hook_has_ended_and_the_next_one_starts_then";
const PRE_STOP: &str =
    "crates/hotmap/tests/node/hooks.rs::the_last_hook_runs_before_the_signal_and_within_the_grace_period";

pub(super) const LIFECYCLE: Table = Table {
    message: "Lifecycle",
    rows: &[
        works(
            "postStart",
            "the container is not there for others before it has ended",
            &[POST_START],
        ),
        works(
            "preStop",
            "comes before the signal, within the grace period",
            &[PRE_STOP],
        ),
        works(
            "stopSignal",
            "stands for TERM",
            &["crates/hotmap/tests/node/hooks.rs::a_container_names_its_own_signal"],
        ),
    ],
};

pub(super) const LIFECYCLE_HANDLER: Table = Table {
    message: "LifecycleHandler",
    rows: &[
        works("exec", "a command in the container", &[POST_START, PRE_STOP]),
        works("httpGet", "any answer will do", &[PRE_STOP]),
        works("sleep", "waits", &[PRE_STOP]),
        refused(
            "tcpSocket",
            "it never did anything, and upstream's hook fails too",
        ),
    ],
};

pub(super) const SLEEP_ACTION: Table = Table {
    message: "SleepAction",
    rows: &[works(
        "seconds",
        "at most the grace period",
        &["crates/api/kinds/src/pod/probe.rs::hooks_may_sleep_within_the_grace_period"],
    )],
};
