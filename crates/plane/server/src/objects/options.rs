//! What stands in the query of a request, checked once.
//!
//! Rules and texts follow `apimachinery/pkg/apis/meta/v1/validation/validation.go` and
//! `apimachinery/pkg/apis/meta/internalversion/validation/validation.go`, Kubernetes 1.36.

use hotmap_object::{FieldError, FieldSelector, GroupVersionKind, LabelSelector, Status};
use serde_json::Value;

use crate::{cache::IncludeObject, request::Query};

/// Longest name of a field manager, in bytes.
const FIELD_MANAGER_MAX: usize = 128;

/// What becomes of fields that the schema does not know and of keys that stand twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FieldValidation {
    Ignore,
    Warn,
    Strict,
}

/// The options of create, update and patch.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteOptions {
    pub(super) dry_run: bool,
    pub(super) field_validation: FieldValidation,
}

impl WriteOptions {
    /// `kind` is the name of the options in error texts: `CreateOptions`, `UpdateOptions`, `PatchOptions`.
    ///
    /// # Errors
    ///
    /// 422 with one cause per bad option.
    pub(super) fn of(query: &Query, kind: &'static str) -> Result<Self, Status> {
        let mut errors = Vec::new();
        if kind == "PatchOptions" && query.get("force").is_some() {
            errors.push(FieldError::forbidden(
                "force",
                "may not be specified for non-apply patch",
            ));
        }
        if let Some(manager) = query.text("fieldManager") {
            check_field_manager(manager, &mut errors);
        }
        let dry_run: Vec<&str> = query.all("dryRun").collect();
        check_dry_run(&dry_run, &mut errors);
        let field_validation = match query.text("fieldValidation") {
            None | Some("Warn") => FieldValidation::Warn,
            Some("Ignore") => FieldValidation::Ignore,
            Some("Strict") => FieldValidation::Strict,
            Some(other) => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                errors.push(FieldError::not_supported("fieldValidation", other, &supported));
                FieldValidation::Warn
            }
        };
        invalid(kind, errors)?;
        Ok(Self {
            dry_run: !dry_run.is_empty(),
            field_validation,
        })
    }
}

pub(super) fn check_dry_run(values: &[&str], errors: &mut Vec<FieldError>) {
    if values.iter().any(|value| *value != "All") {
        let values: Vec<Value> = values.iter().map(|value| Value::from(*value)).collect();
        errors.push(FieldError::not_supported("dryRun", values, &["All"]));
    }
}

fn check_field_manager(manager: &str, errors: &mut Vec<FieldError>) {
    if manager.len() > FIELD_MANAGER_MAX {
        errors.push(FieldError::too_long("fieldManager", FIELD_MANAGER_MAX));
    }
    for (at, c) in manager.char_indices().filter(|(_, c)| c.is_control()) {
        let detail = format!("invalid character U+{:04X} (at position {at})", u32::from(c));
        errors.push(FieldError::invalid("fieldManager", manager, detail));
    }
}

/// 422 about options of this kind, unless there is nothing wrong.
pub(super) fn invalid(kind: &'static str, errors: Vec<FieldError>) -> Result<(), Status> {
    if errors.is_empty() {
        return Ok(());
    }
    Err(Status::invalid(
        &GroupVersionKind::fixed("meta.k8s.io", "v1", kind),
        "",
        &errors,
    ))
}

/// `resourceVersionMatch`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Match {
    NotOlderThan,
    Exact,
}

/// Asks a watch for the commit time of each change, in nanoseconds since 1970, as `committedUnixNano` beside `type` and
/// `object`; JSON only. Clients that do not ask see upstream's frames. Who asks is a node, and gets a node's bookmarks.
const COMMIT_TIME: &str = "hotmap.dev/commit-time";

/// The options of list, watch and deletecollection.
#[derive(Debug, Clone)]
pub(super) struct ListOptions {
    pub(super) labels: LabelSelector,
    pub(super) fields: FieldSelector,
    /// `None`: no limit.
    pub(super) limit: Option<usize>,
    /// The `continue` token as sent; empty if there is none.
    pub(super) continue_token: String,
    /// As sent; empty if there is none.
    pub(super) resource_version: String,
    pub(super) resource_version_match: Option<Match>,
    pub(super) send_initial_events: Option<bool>,
    pub(super) allow_bookmarks: bool,
    pub(super) timeout_seconds: Option<u64>,
    /// Whether events tell when they were committed; ours alone.
    pub(super) commit_time: bool,
}

impl ListOptions {
    /// # Errors
    ///
    /// 400 for what cannot be read, 422 with a cause for each combination that makes no sense.
    pub(super) fn of(query: &Query, is_watch: bool) -> Result<Self, Status> {
        let text = |key: &str| query.text(key).unwrap_or_default().to_owned();
        let bad = |error: &dyn std::fmt::Display| Status::bad_request(error.to_string());
        let options = Self {
            labels: text("labelSelector").parse().map_err(|error| bad(&error))?,
            fields: text("fieldSelector").parse().map_err(|error| bad(&error))?,
            limit: integer(query, "limit")?
                .and_then(|limit| usize::try_from(limit).ok())
                .filter(|limit| *limit > 0),
            continue_token: text("continue"),
            resource_version: text("resourceVersion"),
            resource_version_match: match query.text("resourceVersionMatch") {
                Some("Exact") => Some(Match::Exact),
                Some("NotOlderThan") => Some(Match::NotOlderThan),
                _ => None,
            },
            send_initial_events: query
                .get("sendInitialEvents")
                .map(|_| query.flag("sendInitialEvents")),
            allow_bookmarks: query.flag("allowWatchBookmarks"),
            timeout_seconds: integer(query, "timeoutSeconds")?
                .and_then(|seconds| u64::try_from(seconds).ok())
                .filter(|seconds| *seconds > 0),
            commit_time: query.flag(COMMIT_TIME),
        };
        let matching = query.text("resourceVersionMatch");
        let errors = if is_watch {
            options.watch_errors(matching)
        } else {
            options.list_errors(matching)
        };
        invalid("ListOptions", errors)?;
        Ok(options)
    }

    fn list_errors(&self, matching: Option<&str>) -> Vec<FieldError> {
        const FIELD: &str = "resourceVersionMatch";
        let mut errors = Vec::new();
        if let Some(matching) = matching {
            if self.resource_version.is_empty() {
                let detail = "resourceVersionMatch is forbidden unless resourceVersion is provided";
                errors.push(FieldError::forbidden(FIELD, detail));
            }
            if !self.continue_token.is_empty() {
                let detail = "resourceVersionMatch is forbidden when continue is provided";
                errors.push(FieldError::forbidden(FIELD, detail));
            }
            if self.resource_version_match.is_none() {
                errors.push(FieldError::not_supported(
                    FIELD,
                    matching,
                    &["Exact", "NotOlderThan", ""],
                ));
            }
            if self.resource_version_match == Some(Match::Exact) && self.resource_version == "0" {
                let detail = r#"resourceVersionMatch "exact" is forbidden for resourceVersion "0""#;
                errors.push(FieldError::forbidden(FIELD, detail));
            }
        }
        if self.send_initial_events.is_some() {
            errors.push(FieldError::forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        errors
    }

    fn watch_errors(&self, matching: Option<&str>) -> Vec<FieldError> {
        const FIELD: &str = "resourceVersionMatch";
        let is_not_older = self.resource_version_match == Some(Match::NotOlderThan);
        let mut errors = Vec::new();
        if self.send_initial_events.is_some() && !is_not_older {
            let detail = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            errors.push(FieldError::forbidden(FIELD, detail));
        }
        if let Some(matching) = matching {
            if self.send_initial_events.is_none() {
                let detail =
                    "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided";
                errors.push(FieldError::forbidden(FIELD, detail));
            }
            if !is_not_older {
                errors.push(FieldError::not_supported(FIELD, matching, &["NotOlderThan"]));
            }
            if !self.continue_token.is_empty() {
                let detail = "resourceVersionMatch is forbidden when continue is provided";
                errors.push(FieldError::forbidden(FIELD, detail));
            }
        }
        errors
    }

    /// Whether every object is selected.
    pub(super) fn selects_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_everything()
    }
}

fn integer(query: &Query, key: &str) -> Result<Option<i64>, Status> {
    let Some(raw) = query.text(key) else {
        return Ok(None);
    };
    let parsed = raw.parse::<i64>().map(Some);
    parsed.map_err(|_| Status::bad_request(format!("strconv.ParseInt: parsing {raw:?}: invalid syntax")))
}

/// The `includeObject` parameter of tables.
///
/// # Errors
///
/// 400 for a value that does not exist.
pub(super) fn include_object(query: &Query) -> Result<IncludeObject, Status> {
    match query.text("includeObject") {
        None | Some("Metadata") => Ok(IncludeObject::Metadata),
        Some("Object") => Ok(IncludeObject::Object),
        Some("None") => Ok(IncludeObject::None),
        Some(other) => {
            let detail = "must be 'Metadata', 'Object', 'None', or empty";
            let error = FieldError::invalid("includeObject", other, detail);
            Err(Status::bad_request(error.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn combinations_that_make_no_sense_are_refused() {
        let name = |detail: &str| format!("ListOptions.meta.k8s.io \"\" is invalid: {detail}");
        let table = [
            (
                false,
                "resourceVersionMatch=Exact",
                name(
                    "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
                ),
            ),
            (
                false,
                "resourceVersionMatch=Exact&resourceVersion=0",
                name(
                    r#"resourceVersionMatch: Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0""#,
                ),
            ),
            (
                false,
                "resourceVersionMatch=Old&resourceVersion=1",
                name(
                    r#"resourceVersionMatch: Unsupported value: "Old": supported values: "Exact", "NotOlderThan", """#,
                ),
            ),
            (
                false,
                "sendInitialEvents=true",
                name("sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
            ),
            (
                true,
                "sendInitialEvents=true",
                name(
                    "resourceVersionMatch: Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ),
            ),
            (
                true,
                "resourceVersionMatch=NotOlderThan&resourceVersion=1",
                name(
                    "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
                ),
            ),
            (
                false,
                "limit=x",
                r#"strconv.ParseInt: parsing "x": invalid syntax"#.to_owned(),
            ),
            (
                false,
                "fieldSelector=x",
                "invalid selector: 'x'; can't understand 'x'".to_owned(),
            ),
        ];
        for (is_watch, query, text) in table {
            let refused = ListOptions::of(&Query::parse(query), is_watch).expect_err(query);
            assert_eq!(refused.message, text, "{query}");
        }
    }

    #[test]
    fn write_options_are_checked() {
        let table = [
            (
                "dryRun=Some",
                r#"CreateOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["Some"]: supported values: "All""#,
            ),
            (
                "fieldValidation=Hard",
                r#"CreateOptions.meta.k8s.io "" is invalid: fieldValidation: Unsupported value: "Hard": supported values: "", "Ignore", "Strict", "Warn""#,
            ),
        ];
        for (query, text) in table {
            let refused = WriteOptions::of(&Query::parse(query), "CreateOptions").expect_err(query);
            assert_eq!((refused.code, refused.message.as_str()), (422, text));
        }
        let patch = WriteOptions::of(&Query::parse("force=true"), "PatchOptions").expect_err("force");
        assert_eq!(
            patch.message,
            r#"PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch"#
        );
    }
}
