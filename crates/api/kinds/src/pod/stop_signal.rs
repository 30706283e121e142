//! The signal that a container names for its end.
//!
//! Source: `validateStopSignal` in `pkg/apis/core/validation/validation.go`, Kubernetes 1.36.

use hotmap_object::FieldError;

use crate::rules::Errors;

/// What Linux has, sorted as upstream prints it.
const LINUX: [&str; 65] = [
    "SIGABRT",
    "SIGALRM",
    "SIGBUS",
    "SIGCHLD",
    "SIGCLD",
    "SIGCONT",
    "SIGFPE",
    "SIGHUP",
    "SIGILL",
    "SIGINT",
    "SIGIO",
    "SIGIOT",
    "SIGKILL",
    "SIGPIPE",
    "SIGPOLL",
    "SIGPROF",
    "SIGPWR",
    "SIGQUIT",
    "SIGRTMAX",
    "SIGRTMAX-1",
    "SIGRTMAX-10",
    "SIGRTMAX-11",
    "SIGRTMAX-12",
    "SIGRTMAX-13",
    "SIGRTMAX-14",
    "SIGRTMAX-2",
    "SIGRTMAX-3",
    "SIGRTMAX-4",
    "SIGRTMAX-5",
    "SIGRTMAX-6",
    "SIGRTMAX-7",
    "SIGRTMAX-8",
    "SIGRTMAX-9",
    "SIGRTMIN",
    "SIGRTMIN+1",
    "SIGRTMIN+10",
    "SIGRTMIN+11",
    "SIGRTMIN+12",
    "SIGRTMIN+13",
    "SIGRTMIN+14",
    "SIGRTMIN+15",
    "SIGRTMIN+2",
    "SIGRTMIN+3",
    "SIGRTMIN+4",
    "SIGRTMIN+5",
    "SIGRTMIN+6",
    "SIGRTMIN+7",
    "SIGRTMIN+8",
    "SIGRTMIN+9",
    "SIGSEGV",
    "SIGSTKFLT",
    "SIGSTOP",
    "SIGSYS",
    "SIGTERM",
    "SIGTRAP",
    "SIGTSTP",
    "SIGTTIN",
    "SIGTTOU",
    "SIGURG",
    "SIGUSR1",
    "SIGUSR2",
    "SIGVTALRM",
    "SIGWINCH",
    "SIGXCPU",
    "SIGXFSZ",
];
const WINDOWS: [&str; 2] = ["SIGKILL", "SIGTERM"];

/// Checks the signal; `os` is the name of the system that the pod is for, if it names one.
pub(super) fn validate(errors: &mut Errors, path: String, signal: &str, os: Option<&str>) {
    let supported: &[&str] = match os {
        None => {
            let rule = "may not be set for containers with empty `spec.os.name`";
            return errors.push(FieldError::forbidden(path, rule));
        }
        Some("windows") => &WINDOWS,
        Some("linux") => &LINUX,
        Some(_) => return,
    };
    if !supported.contains(&signal) {
        errors.push(FieldError::not_supported(path, signal, supported));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_wants_a_system_that_has_it() {
        for (signal, os, wanted) in [
            ("SIGQUIT", Some("linux"), ""),
            ("SIGRTMIN+15", Some("linux"), ""),
            ("SIGTERM", Some("windows"), ""),
            (
                "SIGTERM",
                None,
                "s: Forbidden: may not be set for containers with empty `spec.os.name`",
            ),
            (
                "SIGQUIT",
                Some("windows"),
                r#"s: Unsupported value: "SIGQUIT": supported values: "SIGKILL", "SIGTERM""#,
            ),
        ] {
            let mut errors = Vec::new();
            validate(&mut errors, "s".to_owned(), signal, os);
            let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
            assert_eq!(found.join("; "), wanted, "{signal} {os:?}");
        }
        let mut errors = Vec::new();
        validate(&mut errors, "s".to_owned(), "SIGNOPE", Some("linux"));
        let text = errors[0].to_string();
        assert!(text.contains(r#""SIGABRT", "SIGALRM", "SIGBUS""#), "{text}");
        assert!(LINUX.is_sorted());
    }
}
