//! What requests may ask for beside their path.

use std::time::Duration;

use bytes::Bytes;
use serde::Serialize;

use crate::error::ClientError;
use crate::path::Query;

/// Which objects of a collection, and as of when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListParams {
    /// `metadata.name=a,type=b`; empty for all.
    pub field_selector: String,
    /// `app=web,tier!=test`; empty for all.
    pub label_selector: String,
    /// Empty: the newest state. `0`: any. A revision: that one or newer.
    pub resource_version: String,
    /// Objects per page; 0 for all at once.
    pub limit: u32,
    /// The page to read; empty for the first one.
    pub continue_token: String,
}

impl ListParams {
    pub(crate) fn query(&self) -> Query {
        let mut query = Query::default();
        query.push_unless_empty("fieldSelector", &self.field_selector);
        query.push_unless_empty("labelSelector", &self.label_selector);
        query.push_unless_empty("resourceVersion", &self.resource_version);
        if self.limit > 0 {
            query.push("limit", &self.limit.to_string());
        }
        query.push_unless_empty("continue", &self.continue_token);
        query
    }
}

/// What to watch, and from where.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WatchParams {
    /// `metadata.name=a,type=b`; empty for all.
    pub field_selector: String,
    /// `app=web,tier!=test`; empty for all.
    pub label_selector: String,
    /// Changes after this revision; empty or `0`: what is there now, then changes.
    pub resource_version: String,
    /// Whether bookmarks may come.
    pub allow_bookmarks: bool,
    /// Whether what is there now comes first, then a bookmark that says so; needs `allow_bookmarks`.
    pub send_initial_events: bool,
    /// When the server shall end the watch, in whole seconds; it has its own idea without.
    pub timeout: Option<Duration>,
    /// Whether events shall tell when they were committed. Servers other than ours do not know the question.
    pub commit_time: bool,
}

impl WatchParams {
    pub(crate) fn query(&self) -> Query {
        let mut query = Query::default();
        query.push_if("watch", true);
        query.push_unless_empty("fieldSelector", &self.field_selector);
        query.push_unless_empty("labelSelector", &self.label_selector);
        query.push_unless_empty("resourceVersion", &self.resource_version);
        query.push_if("allowWatchBookmarks", self.allow_bookmarks);
        query.push_if("hotmap.dev/commit-time", self.commit_time);
        if self.send_initial_events {
            query.push("sendInitialEvents", "true");
            query.push("resourceVersionMatch", "NotOlderThan");
        }
        if let Some(timeout) = self.timeout {
            query.push("timeoutSeconds", &timeout.as_secs().max(1).to_string());
        }
        query
    }
}

/// How to write.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteParams {
    /// Do all but the writing.
    pub dry_run: bool,
    /// Who writes, for managed fields; empty for the server's guess.
    pub field_manager: String,
    /// `Ignore`, `Warn` or `Strict`; empty for the server's default.
    pub field_validation: &'static str,
    /// Take fields from other managers; for an apply patch only.
    pub force: bool,
}

impl WriteParams {
    pub(crate) fn query(&self) -> Query {
        let mut query = Query::default();
        if self.dry_run {
            query.push("dryRun", "All");
        }
        query.push_unless_empty("fieldManager", &self.field_manager);
        query.push_unless_empty("fieldValidation", self.field_validation);
        query.push_if("force", self.force);
        query
    }
}

/// What the body of a patch is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// A list of operations (RFC 6902).
    Json,
    /// A part of the object; null removes (RFC 7386).
    Merge,
    /// A part of the object; lists merge by key.
    StrategicMerge,
    /// What the field manager wants the object to say.
    Apply,
}

impl PatchType {
    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json-patch+json",
            Self::Merge => "application/merge-patch+json",
            Self::StrategicMerge => "application/strategic-merge-patch+json",
            // JSON is YAML.
            Self::Apply => "application/apply-patch+yaml",
        }
    }
}

/// How to delete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DeleteParams {
    /// Time for a pod to end; the pod's own without.
    pub grace_period: Option<Duration>,
    /// What becomes of what the object owns; the kind's own rule without.
    pub propagation: Option<Propagation>,
    /// Only the object with this uid; empty for any.
    pub uid: String,
    /// Only this version of it; empty for any.
    pub resource_version: String,
    /// Do all but the deletion.
    pub dry_run: bool,
}

/// What becomes of the objects that a deleted object owns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Propagation {
    /// They stay, without owner.
    Orphan,
    /// They go afterwards.
    Background,
    /// They go first.
    Foreground,
}

impl DeleteParams {
    pub(crate) fn body(&self) -> Result<Bytes, ClientError> {
        let mut options = serde_json::json!({"kind": "DeleteOptions", "apiVersion": "v1"});
        if let Some(grace) = self.grace_period {
            options["gracePeriodSeconds"] = grace.as_secs().into();
        }
        if let Some(propagation) = self.propagation {
            options["propagationPolicy"] = format!("{propagation:?}").into();
        }
        for (field, value) in [("uid", &self.uid), ("resourceVersion", &self.resource_version)] {
            if !value.is_empty() {
                options["preconditions"][field] = value.as_str().into();
            }
        }
        if self.dry_run {
            options["dryRun"] = serde_json::json!(["All"]);
        }
        to_json(&options)
    }
}

pub(crate) fn to_json(body: &(impl Serialize + ?Sized)) -> Result<Bytes, ClientError> {
    serde_json::to_vec(body)
        .map(Bytes::from)
        .map_err(|error| ClientError::Request {
            why: format!("the body is no JSON: {:?} error", error.classify()),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_have_the_names_of_the_api() {
        let list = ListParams {
            limit: 500,
            resource_version: "0".to_owned(),
            ..ListParams::default()
        };
        assert_eq!(list.query().as_str(), "?resourceVersion=0&limit=500");
        let watch = WatchParams {
            resource_version: "7".to_owned(),
            allow_bookmarks: true,
            send_initial_events: true,
            timeout: Some(Duration::from_millis(1)),
            ..WatchParams::default()
        };
        assert_eq!(
            watch.query().as_str(),
            "?watch=true&resourceVersion=7&allowWatchBookmarks=true&sendInitialEvents=true\
             &resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
        );
        let write = WriteParams {
            dry_run: true,
            field_manager: "me".to_owned(),
            force: true,
            ..WriteParams::default()
        };
        assert_eq!(write.query().as_str(), "?dryRun=All&fieldManager=me&force=true");
        let delete = DeleteParams {
            grace_period: Some(Duration::ZERO),
            propagation: Some(Propagation::Background),
            uid: "u".to_owned(),
            ..DeleteParams::default()
        };
        let body: serde_json::Value = serde_json::from_slice(&delete.body().unwrap()).unwrap();
        assert_eq!(body["gracePeriodSeconds"], 0);
        assert_eq!(body["propagationPolicy"], "Background");
        assert_eq!(body["preconditions"], serde_json::json!({"uid": "u"}));
    }
}
