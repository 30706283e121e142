//! Probes, and the handlers that they share with hooks.

use crate::{Table, row::works};

const KINDS: &str = "crates/hotmap/tests/node/probes.rs::readiness_follows_each_kind_of_probe";
const STARTUP: &str =
    "crates/hotmap/tests/node/probes.rs::nothing_else_is_asked_before_a_container_has_started_up";
const THRESHOLDS: &str = "crates/node/agent/src/probes.rs::thresholds_count_equal_outcomes_in_a_row";
const HEADERS: &str = "crates/node/agent/src/probes/ask.rs::headers_are_sent_along_and_stand_for_ours";

const GRPC: &str = "crates/node/agent/src/probes/grpc.rs::only_who_says_serving_is_healthy";
const HTTPS: &str = "crates/node/agent/src/http_get.rs::anybody_may_answer_over_https";

pub(super) const PROBE: Table = Table {
    message: "Probe",
    rows: &[
        works("exec", "a command that ends with 0", &[KINDS]),
        works(
            "failureThreshold",
            "failures in a row that count",
            &[THRESHOLDS, STARTUP],
        ),
        works("grpc", "grpc.health.v1.Health says SERVING", &[GRPC]),
        works("httpGet", "an answer from 200 to 399", &[KINDS]),
        works(
            "initialDelaySeconds",
            "counts from the start of the container",
            &["crates/node/agent/src/probes.rs::the_initial_delay_is_the_containers_not_the_nodes"],
        ),
        works(
            "periodSeconds",
            "from one question to the next",
            &[KINDS, STARTUP],
        ),
        works("successThreshold", "successes in a row that count", &[THRESHOLDS]),
        works("tcpSocket", "a connection", &[KINDS]),
        works(
            "terminationGracePeriodSeconds",
            "stands for the pod's own when the probe ends the container",
            &[
                "crates/hotmap/tests/node/hooks.rs::a_dead_container_has_its_hook_and_the_grace_period_of_its_probe",
            ],
        ),
        works(
            "timeoutSeconds",
            "a probe that takes longer has failed",
            &["crates/node/runtime/tests/pods/sessions.rs::a_probe_that_takes_too_long_is_killed"],
        ),
    ],
};

pub(super) const EXEC_ACTION: Table = Table {
    message: "ExecAction",
    rows: &[works(
        "command",
        "run in the container, without a shell",
        &[KINDS],
    )],
};

pub(super) const HTTP_GET_ACTION: Table = Table {
    message: "HTTPGetAction",
    rows: &[
        works("host", "the pod's address if it names none", &[KINDS]),
        works(
            "httpHeaders",
            "sent along; `Host` and `User-Agent` included",
            &[HEADERS],
        ),
        works("path", "with its query", &[KINDS]),
        works(
            "port",
            "a number, or the name of a port of the container",
            &[KINDS],
        ),
        works(
            "scheme",
            "HTTP, or HTTPS without a look at the certificate",
            &[KINDS, HTTPS],
        ),
    ],
};

pub(super) const HTTP_HEADER: Table = Table {
    message: "HTTPHeader",
    rows: &[
        works("name", "of the header", &[HEADERS]),
        works("value", "of the header", &[HEADERS]),
    ],
};

pub(super) const TCP_SOCKET_ACTION: Table = Table {
    message: "TCPSocketAction",
    rows: &[
        works("host", "the pod's address if it names none", &[KINDS]),
        works(
            "port",
            "a number, or the name of a port of the container",
            &[KINDS],
        ),
    ],
};

pub(super) const GRPC_ACTION: Table = Table {
    message: "GRPCAction",
    rows: &[
        works("port", "a number", &[GRPC]),
        works("service", "whose health; without it the server's own", &[GRPC]),
    ],
};
