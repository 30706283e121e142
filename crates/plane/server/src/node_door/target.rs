//! What a request to an agent is about.

use hotmap_object::Status;
use jiff::Timestamp;

use crate::{
    node_access::{AttachRequest, ExecRequest, LogRequest, PortForwardRequest},
    request::{Query, percent_decode},
    streams::{LogOptions, wanted_streams},
};

/// What a kubelet calls stdin, stdout and stderr.
const STREAMS: [&str; 3] = ["input", "output", "error"];

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    Health,
    Metrics,
    Logs(Container),
    Exec(Container),
    Attach(Container),
    PortForward(Pod),
}

/// A pod of this node.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Pod {
    namespace: String,
    pod: String,
}

/// A container of a pod of this node.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Container {
    namespace: String,
    pod: String,
    container: String,
}

impl Target {
    pub(super) fn parse(path: &str) -> Option<Self> {
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let decoded = |raw: &str| percent_decode(raw, false);
        let container = |segments: &[&str]| {
            let [namespace, pod, container] = segments else {
                return None;
            };
            Some(Container {
                namespace: decoded(namespace),
                pod: decoded(pod),
                container: decoded(container),
            })
        };
        match segments.split_first()? {
            (&"healthz", []) => Some(Self::Health),
            (&"metrics", []) => Some(Self::Metrics),
            (&"containerLogs", rest) => container(rest).map(Self::Logs),
            (&"exec", rest) => container(rest).map(Self::Exec),
            (&"attach", rest) => container(rest).map(Self::Attach),
            (&"portForward", [namespace, pod]) => Some(Self::PortForward(Pod {
                namespace: decoded(namespace),
                pod: decoded(pod),
            })),
            _ => None,
        }
    }

    /// Whether more than reading may come of it.
    pub(super) fn is_session(&self) -> bool {
        matches!(self, Self::Exec(_) | Self::Attach(_) | Self::PortForward(_))
    }

    /// What a user needs a right to, below `nodes` (`pkg/kubelet/server/auth.go`, Kubernetes 1.36).
    pub(super) fn subresource(&self) -> &'static str {
        match self {
            Self::Health => "healthz",
            Self::Metrics => "metrics",
            Self::Logs(_) | Self::Exec(_) | Self::Attach(_) | Self::PortForward(_) => "proxy",
        }
    }
}

impl Container {
    /// # Errors
    ///
    /// 400 and 422, as `pods/log` answers.
    pub(super) fn log_request(self, node: &str, query: &Query, now: Timestamp) -> Result<LogRequest, Status> {
        let options = LogOptions::parse(&self.pod, query, now)?;
        Ok(LogRequest {
            namespace: self.namespace,
            pod: self.pod,
            uid: query.text("uid").unwrap_or_default().to_owned(),
            node: node.to_owned(),
            container: self.container,
            follow: query.flag("follow"),
            previous: query.flag("previous"),
            timestamps: query.flag("timestamps"),
            tail_lines: options.tail_lines,
            since: options.since,
            limit_bytes: options.limit_bytes,
        })
    }

    /// # Errors
    ///
    /// 400 without a command, or without a stream.
    pub(super) fn exec_request(self, node: &str, query: &Query) -> Result<ExecRequest, Status> {
        let command: Vec<String> = query.all("command").map(str::to_owned).collect();
        if command.is_empty() {
            return Err(Status::bad_request(
                "you must specify at least one command for the container",
            ));
        }
        let (stdin, stdout, stderr, tty) = wanted_streams(query, STREAMS)?;
        Ok(ExecRequest {
            namespace: self.namespace,
            pod: self.pod,
            uid: query.text("uid").unwrap_or_default().to_owned(),
            node: node.to_owned(),
            container: self.container,
            command,
            stdin,
            stdout,
            stderr,
            tty,
        })
    }

    /// # Errors
    ///
    /// 400 without a stream.
    pub(super) fn attach_request(self, node: &str, query: &Query) -> Result<AttachRequest, Status> {
        let (stdin, stdout, stderr, tty) = wanted_streams(query, STREAMS)?;
        Ok(AttachRequest {
            namespace: self.namespace,
            pod: self.pod,
            uid: query.text("uid").unwrap_or_default().to_owned(),
            node: node.to_owned(),
            container: self.container,
            stdin,
            stdout,
            stderr,
            tty,
        })
    }
}

impl Pod {
    pub(super) fn port_forward_request(self, node: &str, query: &Query) -> PortForwardRequest {
        PortForwardRequest {
            namespace: self.namespace,
            pod: self.pod,
            uid: query.text("uid").unwrap_or_default().to_owned(),
            node: node.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_a_kubelet_and_nothing_else() {
        let container = || Container {
            namespace: "ns".to_owned(),
            pod: "p".to_owned(),
            container: "c".to_owned(),
        };
        for (path, target) in [
            ("/healthz", Some(Target::Health)),
            ("/metrics", Some(Target::Metrics)),
            ("/containerLogs/ns/p/c", Some(Target::Logs(container()))),
            ("/exec/ns/p/c", Some(Target::Exec(container()))),
            ("/attach/ns/p/c", Some(Target::Attach(container()))),
            (
                "/portForward/ns/p",
                Some(Target::PortForward(Pod {
                    namespace: "ns".to_owned(),
                    pod: "p".to_owned(),
                })),
            ),
            ("/portForward/ns/p/80", None),
            ("/exec/ns/p", None),
            ("/exec/ns/p/c/d", None),
            ("/pods", None),
            ("/", None),
        ] {
            assert_eq!(Target::parse(path), target, "{path}");
        }
    }

    #[test]
    fn a_command_needs_words_and_a_stream() {
        let asked = |query: &str| match Target::parse("/exec/ns/p/c") {
            Some(Target::Exec(container)) => container.exec_request("n", &Query::parse(query)),
            other => panic!("{other:?}"),
        };
        assert!(asked("command=true").is_err() && asked("output=1").is_err());
        let request = asked("command=sh&command=-c&output=1&error=1&tty=1&uid=u").expect("a command");
        assert_eq!(
            (request.command.len(), request.stderr, request.uid.as_str()),
            (2, false, "u")
        );
    }
}
