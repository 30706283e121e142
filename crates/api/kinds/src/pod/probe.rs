//! Probes and lifecycle hooks: one handler each, and sensible numbers.
//!
//! Paths and texts follow `validateProbe` and `validateHandler` in `pkg/apis/core/validation/validation.go`,
//! Kubernetes 1.36.

use hotmap_object::FieldError;
use serde_json::Value;

use crate::{
    fields::Fields,
    rules::{self, Errors, broken, child, not_negative},
};

const PROBE_HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "grpc"];
const HOOK_HANDLERS: [&str; 4] = ["exec", "httpGet", "tcpSocket", "sleep"];
const SCHEMES: &[&str] = &["HTTP", "HTTPS"];
const COUNTS: [&str; 5] = [
    "initialDelaySeconds",
    "timeoutSeconds",
    "periodSeconds",
    "successThreshold",
    "failureThreshold",
];

/// Checks the three probes of a container.
pub(super) fn probes(errors: &mut Errors, path: &str, container: &Value, grace_seconds: Option<i64>) {
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let Some(probe) = container.member(name) else {
            continue;
        };
        let path = child(path, name);
        handler(errors, &path, probe, &PROBE_HANDLERS, grace_seconds);
        for count in COUNTS {
            not_negative(errors, child(&path, count), probe.int(count));
        }
        let grace_path = child(&path, "terminationGracePeriodSeconds");
        let grace = probe.int("terminationGracePeriodSeconds");
        if let Some(seconds) = grace.filter(|seconds| *seconds <= 0) {
            errors.push(FieldError::invalid(
                grace_path.as_str(),
                seconds,
                "must be greater than 0",
            ));
        }
        let successes = probe.int("successThreshold").unwrap_or_default();
        match (name, grace) {
            ("readinessProbe", Some(seconds)) => {
                let rule = "must not be set for readinessProbes";
                errors.push(FieldError::invalid(grace_path, seconds, rule));
            }
            ("livenessProbe" | "startupProbe", _) if successes != 1 => {
                let path = child(&path, "successThreshold");
                errors.push(FieldError::invalid(path, successes, "must be 1"));
            }
            _ => {}
        }
    }
}

/// Checks the hooks of a container.
pub(super) fn lifecycle(errors: &mut Errors, path: &str, lifecycle: &Value, grace_seconds: Option<i64>) {
    for hook in ["postStart", "preStop"] {
        if let Some(of) = lifecycle.member(hook) {
            handler(errors, &child(path, hook), of, &HOOK_HANDLERS, grace_seconds);
        }
    }
}

fn handler(errors: &mut Errors, path: &str, of: &Value, known: &[&str], grace_seconds: Option<i64>) {
    let mut held = known
        .iter()
        .filter_map(|name| Some((child(path, name), *name, of.member(name)?)));
    let Some((first_path, name, first)) = held.next() else {
        errors.push(FieldError::required(path, "must specify a handler type"));
        return;
    };
    match name {
        "exec" if first.list("command").is_empty() => {
            errors.push(FieldError::required(child(&first_path, "command"), ""));
        }
        "httpGet" => http_get(errors, &first_path, first),
        "tcpSocket" | "grpc" => {
            rules::port_or_name(errors, &child(&first_path, "port"), first.member("port"));
        }
        "sleep" => sleep(errors, first_path, first, grace_seconds),
        _ => {}
    }
    errors.extend(
        held.map(|(path, ..)| FieldError::forbidden(path, "may not specify more than 1 handler type")),
    );
}

fn http_get(errors: &mut Errors, path: &str, http: &Value) {
    if !http.has("path") {
        errors.push(FieldError::required(child(path, "path"), ""));
    }
    rules::port_or_name(errors, &child(path, "port"), http.member("port"));
    let scheme = http.text("scheme");
    if !SCHEMES.contains(&scheme) {
        errors.push(FieldError::not_supported(child(path, "scheme"), scheme, SCHEMES));
    }
    for header in http.list("httpHeaders") {
        let name = header.text("name");
        broken(
            errors,
            &child(path, "httpHeaders"),
            name,
            rules::http_header(name),
        );
    }
}

fn sleep(errors: &mut Errors, path: String, sleep: &Value, grace_seconds: Option<i64>) {
    let seconds = sleep.int("seconds").unwrap_or_default();
    if let Some(grace) = grace_seconds
        && !(0..=grace).contains(&seconds)
    {
        errors.push(FieldError::invalid(
            path,
            seconds,
            format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})"),
        ));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::texts;

    #[test]
    fn probes_have_one_handler_and_sensible_numbers() {
        let http = json!({"port": "web", "path": "/", "scheme": "HTTP"});
        let table = [
            (
                json!({"readinessProbe": {"httpGet": http, "successThreshold": 3}}),
                vec![],
            ),
            (
                json!({"livenessProbe": {"successThreshold": 1}}),
                vec!["c.livenessProbe: Required value: must specify a handler type"],
            ),
            (
                json!({"livenessProbe": {"exec": {"command": ["a"]}, "httpGet": http, "successThreshold": 2}}),
                vec![
                    "c.livenessProbe.httpGet: Forbidden: may not specify more than 1 handler type",
                    "c.livenessProbe.successThreshold: Invalid value: 2: must be 1",
                ],
            ),
            (
                json!({"readinessProbe": {"tcpSocket": {"port": 70000}, "periodSeconds": -1, "terminationGracePeriodSeconds": 5}}),
                vec![
                    "c.readinessProbe.tcpSocket.port: Invalid value: 70000: must be between 1 and 65535, inclusive",
                    "c.readinessProbe.periodSeconds: Invalid value: -1: must be greater than or equal to 0",
                    "c.readinessProbe.terminationGracePeriodSeconds: Invalid value: 5: must not be set for readinessProbes",
                ],
            ),
            (
                json!({"startupProbe": {"exec": {}, "successThreshold": 1}}),
                vec!["c.startupProbe.exec.command: Required value"],
            ),
            (
                json!({"readinessProbe": {"httpGet": {"path": "/", "port": 80, "scheme": "http", "httpHeaders": [{"name": "a b"}]}}}),
                vec![
                    "c.readinessProbe.httpGet.scheme: Unsupported value: \"http\": supported values: \"HTTP\", \"HTTPS\"",
                    "c.readinessProbe.httpGet.httpHeaders: Invalid value: \"a b\": a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')",
                ],
            ),
        ];
        for (container, wanted) in table {
            let mut errors = Vec::new();
            probes(&mut errors, "c", &container, Some(30));
            assert_eq!(texts(&errors), wanted, "{container}");
        }
    }

    #[test]
    fn hooks_may_sleep_within_the_grace_period() {
        for (seconds, wanted) in [
            (30, vec![]),
            (
                31,
                vec![
                    "l.preStop.sleep: Invalid value: 31: must be non-negative and less than terminationGracePeriodSeconds (30)",
                ],
            ),
        ] {
            let mut errors = Vec::new();
            lifecycle(
                &mut errors,
                "l",
                &json!({"preStop": {"sleep": {"seconds": seconds}}}),
                Some(30),
            );
            assert_eq!(texts(&errors), wanted);
        }
    }
}
