//! `pods/log`.

use futures_util::StreamExt;
use hotmap_object::{FieldError, GroupVersionKind, Status};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::pod::PodFacts;
use crate::{
    answer::Answer,
    node_access::{LogRequest, LogStream},
    request::Query,
};

/// What the node is asked for; `None` for a pod that no node has, whose log is empty.
///
/// # Errors
///
/// 400 for a container that the pod does not have, 422 for options as `ValidatePodLogOptions` in
/// `pkg/apis/core/validation/validation.go`, Kubernetes 1.36, refuses them.
pub(crate) fn log_request(pod: &Value, query: &Query, now: Timestamp) -> Result<Option<LogRequest>, Status> {
    let facts = PodFacts::of(pod);
    let options = LogOptions::parse(facts.name, query, now)?;
    let container = facts.container(query.text("container"))?;
    if facts.node.is_empty() {
        return Ok(None);
    }
    Ok(Some(LogRequest {
        namespace: facts.namespace.to_owned(),
        pod: facts.name.to_owned(),
        uid: facts.uid.to_owned(),
        node: facts.node.to_owned(),
        container: container.to_owned(),
        follow: query.flag("follow"),
        previous: query.flag("previous"),
        timestamps: query.flag("timestamps"),
        tail_lines: options.tail_lines,
        since: options.since,
        limit_bytes: options.limit_bytes,
    }))
}

/// The log as it comes. An error in the middle ends it: the code has long been sent.
pub(crate) fn log_answer(log: LogStream) -> Answer {
    let pieces = log.scan((), |(), piece| {
        if let Err(error) = &piece {
            tracing::warn!(%error, "a log ended early");
        }
        std::future::ready(piece.ok())
    });
    Answer::stream("text/plain", pieces.boxed())
}

/// Which lines.
pub(crate) struct LogOptions {
    pub(crate) tail_lines: Option<u64>,
    pub(crate) since: Option<Timestamp>,
    pub(crate) limit_bytes: Option<u64>,
}

impl LogOptions {
    /// # Errors
    ///
    /// 400 and 422, as upstream words them.
    pub(crate) fn parse(pod: &str, query: &Query, now: Timestamp) -> Result<Self, Status> {
        let mut errors = Vec::new();
        let tail_lines = number(query, "tailLines")?;
        let limit_bytes = number(query, "limitBytes")?;
        let since_seconds = number(query, "sinceSeconds")?;
        let since_time = query.text("sinceTime").map(|raw| {
            raw.parse::<Timestamp>()
                .map_err(|_| Status::bad_request(format!("sinceTime {raw:?} is no RFC 3339 time")))
        });
        let since_time = since_time.transpose()?;
        if let Some(lines) = tail_lines.filter(|lines| *lines < 0) {
            errors.push(FieldError::invalid(
                "tailLines",
                lines,
                "must be greater than or equal to 0",
            ));
        }
        if let Some(bytes) = limit_bytes.filter(|bytes| *bytes < 1) {
            errors.push(FieldError::invalid("limitBytes", bytes, "must be greater than 0"));
        }
        match (since_seconds, since_time) {
            (Some(_), Some(_)) => errors.push(FieldError::forbidden(
                "",
                "at most one of `sinceTime` or `sinceSeconds` may be specified",
            )),
            (Some(seconds), None) if seconds < 1 => {
                errors.push(FieldError::invalid(
                    "sinceSeconds",
                    seconds,
                    "must be greater than 0",
                ));
            }
            _ => {}
        }
        if !errors.is_empty() {
            return Err(Status::invalid(
                &GroupVersionKind::fixed("", "v1", "PodLogOptions"),
                pod,
                &errors,
            ));
        }
        let ago = |seconds: i64| {
            now.checked_sub(SignedDuration::from_secs(seconds))
                .unwrap_or(Timestamp::MIN)
        };
        Ok(Self {
            tail_lines: tail_lines.and_then(|lines| u64::try_from(lines).ok()),
            since: since_time.or(since_seconds.map(ago)),
            limit_bytes: limit_bytes.and_then(|bytes| u64::try_from(bytes).ok()),
        })
    }
}

fn number(query: &Query, name: &str) -> Result<Option<i64>, Status> {
    let parsed = query.text(name).map(str::parse).transpose();
    parsed.map_err(|_| {
        Status::bad_request(format!(
            "{name} {:?} is no number",
            query.text(name).unwrap_or_default()
        ))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_are_checked_and_the_container_is_found() {
        let one = json!({"metadata": {"namespace": "ns", "name": "p", "uid": "u"},
            "spec": {"nodeName": "n", "containers": [{"name": "a"}]}});
        let two = json!({"metadata": {"name": "p"}, "spec": {"nodeName": "n",
            "containers": [{"name": "a"}, {"name": "b"}], "initContainers": [{"name": "i"}]}});
        let unbound = json!({"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]}});
        for (pod, query, expected) in [
            (&one, "", Ok(Some("a"))),
            (&one, "tailLines=5&limitBytes=10&sinceSeconds=3", Ok(Some("a"))),
            (&unbound, "", Ok(None)),
            (&two, "container=i", Ok(Some("i"))),
            (
                &two,
                "",
                Err(
                    "a container name must be specified for pod p, choose one of: [a b] or one of the init containers: [i]",
                ),
            ),
            (&two, "container=c", Err("container c is not valid for pod p")),
            (
                &one,
                "tailLines=-1",
                Err(
                    r#"PodLogOptions "p" is invalid: tailLines: Invalid value: -1: must be greater than or equal to 0"#,
                ),
            ),
            (&one, "limitBytes=x", Err(r#"limitBytes "x" is no number"#)),
        ] {
            let request = log_request(pod, &Query::parse(query), Timestamp::UNIX_EPOCH);
            let held = request
                .as_ref()
                .map(|request| request.as_ref().map(|one| one.container.as_str()));
            assert_eq!(
                held.map_err(|status| status.message.as_str()),
                expected,
                "{query}"
            );
        }
    }
}
