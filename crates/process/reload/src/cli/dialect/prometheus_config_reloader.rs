//! prometheus-config-reloader 0.80 (cmd/prometheus-config-reloader/main.go of prometheus-operator/prometheus-operator).

use std::ffi::OsString;

use super::{Call, DialectError, Flag};

/// The flags by which it is known.
pub(super) const NAMES: &[&str] = &[
    "config-file",
    "config-envsubst-file",
    "watched-dir",
    "reload-url",
    "reload-method",
    "reload-timeout",
    "process-executable-name",
    "runtimeinfo-url",
    "listen-address",
    "watch-interval",
    "delay-interval",
    "retry-interval",
    "statefulset-ordinal-from-envvar",
    "web-config-file",
    "log-format",
    "log-level",
    "auto-gomemlimit-ratio",
];

/// What its flags say, its defaults included.
struct Said {
    config_file: OsString,
    envsubst_file: OsString,
    watched_dirs: Vec<OsString>,
    reload_url: OsString,
    reload_method: String,
    reload_timeout: OsString,
    process: OsString,
    runtimeinfo_url: OsString,
    listen_address: OsString,
    watch_interval: OsString,
    delay_interval: OsString,
    retry_interval: OsString,
    ordinal_from: OsString,
    log_level: String,
    notes: Vec<String>,
}

pub(super) fn translate(flags: Vec<Flag>) -> Result<Call, DialectError> {
    let said = said(flags)?;
    let log = match said.log_level.as_str() {
        "none" => "off",
        "all" => "trace",
        level @ ("debug" | "info" | "warn" | "error") => level,
        _ => {
            let message = "all, debug, info, warn, error or none is expected";
            return Err(DialectError::Value {
                flag: "log-level",
                value: said.log_level,
                message,
            });
        }
    };
    let mut call = Call {
        arguments: Vec::new(),
        notes: said.notes,
    };
    call.flag("--log", log);
    call.arguments.push("reload".into());
    for directory in said.watched_dirs {
        call.flag("--volume-dir", directory);
    }
    if !said.envsubst_file.is_empty() {
        let mut paths = said.config_file;
        paths.push(":");
        paths.push(said.envsubst_file);
        call.flag("--render", paths);
        call.flag("--render-syntax", "parentheses");
        call.flag("--render-ordinal-from", said.ordinal_from);
    } else if !said.config_file.is_empty() {
        call.flag("--volume-dir", said.config_file);
    }
    match said.reload_method.as_str() {
        "http" => {
            // It does not look at certificates: Prometheus has one for its clients, not for its own loopback address.
            if said.reload_url.as_encoded_bytes().starts_with(b"https:") {
                call.arguments.push("--webhook-insecure".into());
            }
            call.flag("--webhook-url", said.reload_url);
            call.flag("--webhook-timeout", said.reload_timeout.clone());
        }
        "signal" => {
            call.flag("--signal", "HUP");
            call.flag("--process", said.process);
            if !said.runtimeinfo_url.is_empty() {
                call.flag("--runtimeinfo-url", said.runtimeinfo_url);
            }
        }
        _ => {
            let message = "http or signal is expected";
            return Err(DialectError::Value {
                flag: "reload-method",
                value: said.reload_method,
                message,
            });
        }
    }
    call.flag("--timeout", said.reload_timeout);
    call.flag("--delay", said.delay_interval);
    call.flag("--retry-delay", said.retry_interval.clone());
    call.flag("--retry-delay-max", said.retry_interval);
    // There 0 means: once, at the start. And in any case what is found at the start is told.
    if ["0", "0s", "0ms"].iter().any(|zero| said.watch_interval == *zero) {
        call.arguments.push("--once".into());
    } else {
        call.arguments.push("--on-start".into());
        call.flag("--watch-interval", said.watch_interval);
    }
    if !said.listen_address.is_empty() {
        call.flag("--metrics-address", said.listen_address);
    }
    call.flag("--metric-names", "prometheus-config-reloader");
    Ok(call)
}

fn said(flags: Vec<Flag>) -> Result<Said, DialectError> {
    let mut said = Said {
        config_file: OsString::new(),
        envsubst_file: OsString::new(),
        watched_dirs: Vec::new(),
        reload_url: "http://127.0.0.1:9090/-/reload".into(),
        reload_method: "http".to_owned(),
        reload_timeout: "30s".into(),
        process: "prometheus".into(),
        // Without the flag the process may be another one than Prometheus.
        runtimeinfo_url: OsString::new(),
        listen_address: OsString::new(),
        watch_interval: "3m".into(),
        delay_interval: "1s".into(),
        retry_interval: "5s".into(),
        ordinal_from: "POD_NAME".into(),
        log_level: "info".to_owned(),
        notes: Vec::new(),
    };
    for flag in flags {
        match flag.name.as_str() {
            "config-file" => said.config_file = flag.value,
            "config-envsubst-file" => said.envsubst_file = flag.value,
            "watched-dir" => said.watched_dirs.push(flag.value),
            "reload-url" => said.reload_url = flag.value,
            "reload-method" => said.reload_method = flag.text(),
            "reload-timeout" => said.reload_timeout = flag.value,
            "process-executable-name" => said.process = flag.value,
            "listen-address" => said.listen_address = flag.value,
            "watch-interval" => said.watch_interval = flag.value,
            "delay-interval" => said.delay_interval = flag.value,
            "retry-interval" => said.retry_interval = flag.value,
            "statefulset-ordinal-from-envvar" => said.ordinal_from = flag.value,
            "log-level" => said.log_level = flag.text(),
            "runtimeinfo-url" => said.runtimeinfo_url = flag.value,
            "log-format" if flag.value == "logfmt" => {}
            "log-format" => said
                .notes
                .push("--log-format is not followed: logs are lines of text".to_owned()),
            // There is no collector whose memory would need a limit.
            "auto-gomemlimit-ratio" => {}
            "web-config-file" if flag.value.is_empty() => {}
            "web-config-file" => {
                return Err(DialectError::Unsupported {
                    flag: "web-config-file",
                    message: "/metrics is served without TLS and credentials: leave the flag away and give \
                              --listen-address=127.0.0.1:8080 to a proxy that has them, or keep strangers out with a \
                              NetworkPolicy",
                });
            }
            _ => {
                return Err(DialectError::Unknown {
                    program: "prometheus-config-reloader",
                    flag: flag.name,
                });
            }
        }
    }
    if said.config_file.is_empty() && !said.envsubst_file.is_empty() {
        return Err(DialectError::Value {
            flag: "config-envsubst-file",
            value: said.envsubst_file.to_string_lossy().into_owned(),
            message: "--config-file is missing",
        });
    }
    Ok(said)
}
