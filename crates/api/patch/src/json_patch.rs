//! RFC 6902 with the limits and the habits of the API server.
//!
//! Source: `apiserver/pkg/endpoints/handlers/patch.go` and the release of `evanphx/json-patch` (v4) that Kubernetes
//! 1.36 carries. One habit of the latter is not copied: negative list indexes.

use std::io;

use json_patch::{
    PatchErrorKind, PatchOperation,
    jsonptr::{Pointer, PointerBuf},
};
use serde_json::{Map, Value};

use crate::{
    NESTING_DEPTH_MAX, OperationFailure, PatchError,
    nesting::{depth_up_to, too_deep},
};

/// Most operations in one JSON patch.
pub const OPERATIONS_MAX: usize = 10_000;

/// Most bytes of JSON that the `copy` operations of one patch may copy together: the limit of a request body, so that a
/// small patch cannot grow an object beyond what could be sent.
pub const COPY_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Applies a JSON patch: every operation, in order, or none.
///
/// `test` for `null` passes also when the member is absent, as in Kubernetes.
///
/// # Errors
/// [`PatchError::Undecodable`] if the patch is no list of objects with text in `op`, `path` and `from`;
/// [`PatchError::TooManyOperations`]; [`PatchError::OperationFailed`]; [`PatchError::TooDeep`] if the patch or what it
/// makes nests too deep.
pub fn json_patch(target: Value, patch: &Value) -> Result<Value, PatchError> {
    let operations = decode(patch)?;
    if too_deep(patch) {
        return Err(PatchError::TooDeep);
    }
    let mut document = Document {
        depth_bound: depth_up_to(&target, NESTING_DEPTH_MAX),
        value: target,
        copied_bytes: 0,
    };
    for (index, raw) in operations.iter().enumerate() {
        document.apply(raw).map_err(|failure| match failure {
            Refusal::TooDeep => PatchError::TooDeep,
            Refusal::Failed(failure) => PatchError::OperationFailed {
                operation: index,
                op: text(raw, "op").unwrap_or_default().to_owned(),
                path: text(raw, "path").unwrap_or_default().to_owned(),
                failure,
            },
        })?;
    }
    Ok(document.value)
}

/// What strict decoding says about members of operations that JSON patch does not know; empty if there are none.
pub fn json_patch_unknown_fields(patch: &Value) -> Vec<String> {
    let operations = patch.as_array().map(Vec::as_slice).unwrap_or_default();
    let members = operations
        .iter()
        .enumerate()
        .filter_map(|(index, operation)| Some((index, operation.as_object()?)));
    members
        .flat_map(|(index, operation)| operation.keys().map(move |name| (index, name)))
        .filter(|(_, name)| !matches!(name.as_str(), "op" | "path" | "from" | "value"))
        .map(|(index, name)| format!("json patch unknown field \"[{index}].{name}\""))
        .collect()
}

type Operation = Map<String, Value>;

/// The form of the patch, before anything is applied: what is wrong here is the request's syntax.
fn decode(patch: &Value) -> Result<Vec<&Operation>, PatchError> {
    let undecodable = |what: &str| PatchError::Undecodable(what.to_owned());
    let items = patch
        .as_array()
        .ok_or_else(|| undecodable("a JSON patch is a list of operations"))?;
    if items.len() > OPERATIONS_MAX {
        return Err(PatchError::TooManyOperations { found: items.len() });
    }
    let operations = items.iter().map(|item| {
        item.as_object()
            .ok_or_else(|| undecodable("an operation is an object"))
    });
    let operations: Vec<&Operation> = operations.collect::<Result<_, _>>()?;
    for operation in &operations {
        for member in ["op", "path", "from"] {
            if operation
                .get(member)
                .is_some_and(|value| !value.is_string() && !value.is_null())
            {
                return Err(undecodable(&format!("{member:?} is a text")));
            }
        }
    }
    Ok(operations)
}

fn text<'a>(operation: &'a Operation, member: &str) -> Option<&'a str> {
    operation.get(member).and_then(Value::as_str)
}

enum Refusal {
    TooDeep,
    Failed(OperationFailure),
}

impl From<OperationFailure> for Refusal {
    fn from(failure: OperationFailure) -> Self {
        Self::Failed(failure)
    }
}

/// The object while operations change it.
struct Document {
    value: Value,
    copied_bytes: usize,
    /// At least the depth of `value`. A bound, so that an operation need not walk the whole object.
    depth_bound: usize,
}

impl Document {
    fn apply(&mut self, raw: &Operation) -> Result<(), Refusal> {
        let operation = typed(raw)?;
        match &operation {
            PatchOperation::Test(test) => return Ok(self.test(&test.path, &test.value)?),
            PatchOperation::Copy(copy) => {
                self.spend_copy(&copy.from)?;
                self.deepen_by_moving(&copy.from, copy.path.count())?;
            }
            PatchOperation::Move(moved) => self.deepen_by_moving(&moved.from, moved.path.count())?,
            PatchOperation::Add(add) => self.deepen_to(add.path.count(), &add.value)?,
            PatchOperation::Replace(replace) => self.deepen_to(replace.path.count(), &replace.value)?,
            PatchOperation::Remove(_) => {}
        }
        ::json_patch::patch_unsafe(&mut self.value, std::slice::from_ref(&operation))
            .map_err(|error| failure(&error.kind))?;
        Ok(())
    }

    /// Accounts for a new value that will lie `levels` below the root.
    fn deepen_to(&mut self, levels: usize, value: &Value) -> Result<(), Refusal> {
        let lowest = levels + depth_up_to(value, NESTING_DEPTH_MAX);
        if lowest > NESTING_DEPTH_MAX {
            return Err(Refusal::TooDeep);
        }
        self.depth_bound = self.depth_bound.max(lowest);
        Ok(())
    }

    /// Accounts for a value that is there already and will lie `levels` below the root.
    ///
    /// Its depth is taken to be the whole object's; only when that passes the limit is the true depth looked up.
    fn deepen_by_moving(&mut self, from: &Pointer, levels: usize) -> Result<(), Refusal> {
        if levels + self.depth_bound > NESTING_DEPTH_MAX {
            let source = self
                .value
                .pointer(from.as_str())
                .ok_or(OperationFailure::MissingFrom)?;
            let lowest = levels + depth_up_to(source, NESTING_DEPTH_MAX);
            if lowest > NESTING_DEPTH_MAX {
                return Err(Refusal::TooDeep);
            }
            self.depth_bound = depth_up_to(&self.value, NESTING_DEPTH_MAX).max(lowest);
        } else {
            self.depth_bound += levels;
        }
        Ok(())
    }

    /// A member that is absent counts as `null`, if there is an object that could hold it.
    fn test(&self, path: &Pointer, expected: &Value) -> Result<(), OperationFailure> {
        let found = match self.value.pointer(path.as_str()) {
            Some(found) => found,
            None => {
                let parent = path
                    .split_back()
                    .and_then(|(parent, _)| self.value.pointer(parent.as_str()));
                if !parent.is_some_and(Value::is_object) {
                    return Err(OperationFailure::MissingPath);
                }
                &Value::Null
            }
        };
        if found == expected {
            Ok(())
        } else {
            Err(OperationFailure::TestFailed)
        }
    }

    fn spend_copy(&mut self, from: &Pointer) -> Result<(), OperationFailure> {
        let source = self
            .value
            .pointer(from.as_str())
            .ok_or(OperationFailure::MissingFrom)?;
        let mut meter = Meter {
            left: COPY_BYTES_MAX - self.copied_bytes,
        };
        serde_json::to_writer(&mut meter, source).map_err(|_| OperationFailure::CopyBudget)?;
        self.copied_bytes = COPY_BYTES_MAX - meter.left;
        Ok(())
    }
}

/// One operation in the patch library's types. Faults here count as failed operations, as upstream finds them while it
/// applies the patch.
fn typed(raw: &Operation) -> Result<PatchOperation, OperationFailure> {
    let pointer = |member: &'static str| {
        let raw = text(raw, member).ok_or(OperationFailure::MissingMember(member))?;
        PointerBuf::parse(raw).map_err(|_| OperationFailure::NotAPointer(member))
    };
    let value = || {
        raw.get("value")
            .cloned()
            .ok_or(OperationFailure::MissingMember("value"))
    };
    Ok(
        match text(raw, "op").ok_or(OperationFailure::MissingMember("op"))? {
            "add" => PatchOperation::Add(::json_patch::AddOperation {
                path: pointer("path")?,
                value: value()?,
            }),
            "remove" => PatchOperation::Remove(::json_patch::RemoveOperation {
                path: pointer("path")?,
            }),
            "replace" => PatchOperation::Replace(::json_patch::ReplaceOperation {
                path: pointer("path")?,
                value: value()?,
            }),
            "move" => PatchOperation::Move(::json_patch::MoveOperation {
                from: pointer("from")?,
                path: pointer("path")?,
            }),
            "copy" => PatchOperation::Copy(::json_patch::CopyOperation {
                from: pointer("from")?,
                path: pointer("path")?,
            }),
            // A missing value asks for `null`.
            "test" => PatchOperation::Test(::json_patch::TestOperation {
                path: pointer("path")?,
                value: value().unwrap_or_default(),
            }),
            other => return Err(OperationFailure::UnknownOperation(other.to_owned())),
        },
    )
}

fn failure(kind: &PatchErrorKind) -> OperationFailure {
    match kind {
        PatchErrorKind::TestFailed => OperationFailure::TestFailed,
        PatchErrorKind::InvalidFromPointer => OperationFailure::MissingFrom,
        PatchErrorKind::CannotMoveInsideItself => OperationFailure::MoveInsideItself,
        _ => OperationFailure::MissingPath,
    }
}

/// Counts the bytes of JSON without keeping them, and stops at the budget.
struct Meter {
    left: usize,
}

impl io::Write for Meter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.left = self
            .left
            .checked_sub(bytes.len())
            .ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn operations_change_the_object_in_order() {
        for (target, patch, expected) in [
            (json!({"a": 1}), json!([]), json!({"a": 1})),
            (
                json!({}),
                json!([{"op": "add", "path": "/a", "value": 1}]),
                json!({"a": 1}),
            ),
            (
                json!({"a": 1}),
                json!([{"op": "add", "path": "/a", "value": [2]}]),
                json!({"a": [2]}),
            ),
            (
                json!({"a": [1]}),
                json!([{"op": "add", "path": "/a/-", "value": 2}]),
                json!({"a": [1, 2]}),
            ),
            (
                json!({"a": [1]}),
                json!([{"op": "add", "path": "/a/0", "value": 0}]),
                json!({"a": [0, 1]}),
            ),
            (
                json!({"a": [1, 2]}),
                json!([{"op": "remove", "path": "/a/0"}]),
                json!({"a": [2]}),
            ),
            (
                json!({"a": 1}),
                json!([{"op": "replace", "path": "/a", "value": null}]),
                json!({"a": null}),
            ),
            (
                json!({"a": 1}),
                json!([{"op": "move", "from": "/a", "path": "/b"}]),
                json!({"b": 1}),
            ),
            (
                json!({"a": {"x": 1}}),
                json!([{"op": "copy", "from": "/a", "path": "/b"}]),
                json!({"a": {"x": 1}, "b": {"x": 1}}),
            ),
            (
                json!({"a/b": {"~": 1}}),
                json!([{"op": "remove", "path": "/a~1b/~0"}]),
                json!({"a/b": {}}),
            ),
            (
                json!({"data": {"log": "INFO"}}),
                json!([{"op": "test", "path": "/data/log", "value": "INFO"}, {"op": "replace", "path": "/data/log", "value": "DEBUG"}]),
                json!({"data": {"log": "DEBUG"}}),
            ),
            (
                json!({"a": 1}),
                json!([{"op": "test", "path": "/b", "value": null}]),
                json!({"a": 1}),
            ),
            (
                json!({"a": 1}),
                json!([{"op": "test", "path": "/b"}]),
                json!({"a": 1}),
            ),
            (
                json!({"a": 1}),
                json!([{"op": "replace", "path": "", "value": {"b": 2}}]),
                json!({"b": 2}),
            ),
        ] {
            assert_eq!(
                json_patch(target.clone(), &patch),
                Ok(expected),
                "{target} + {patch}"
            );
        }
    }

    #[test]
    fn a_failed_operation_is_told_from_an_undecodable_patch() {
        use OperationFailure::*;
        let target = json!({"a": {"b": [1]}, "s": "x"});
        for (patch, expected) in [
            (
                json!({"op": "nop", "path": "/a"}),
                UnknownOperation("nop".to_owned()),
            ),
            (json!({"path": "/a"}), MissingMember("op")),
            (json!({"op": "add", "value": 1}), MissingMember("path")),
            (json!({"op": "add", "path": "/c"}), MissingMember("value")),
            (json!({"op": "move", "path": "/c"}), MissingMember("from")),
            (json!({"op": "add", "path": "c", "value": 1}), NotAPointer("path")),
            (
                json!({"op": "add", "path": "/missing/c", "value": 1}),
                MissingPath,
            ),
            (json!({"op": "add", "path": "/s/c", "value": 1}), MissingPath),
            (json!({"op": "add", "path": "/a/b/3", "value": 1}), MissingPath),
            (json!({"op": "add", "path": "/a/b/x", "value": 1}), MissingPath),
            (json!({"op": "remove", "path": "/c"}), MissingPath),
            (json!({"op": "remove", "path": ""}), MissingPath),
            (json!({"op": "remove", "path": "/a/b/-"}), MissingPath),
            (json!({"op": "replace", "path": "/c", "value": 1}), MissingPath),
            (json!({"op": "copy", "from": "/c", "path": "/d"}), MissingFrom),
            (json!({"op": "move", "from": "/c", "path": "/d"}), MissingFrom),
            (
                json!({"op": "move", "from": "/a", "path": "/a/c"}),
                MoveInsideItself,
            ),
            (json!({"op": "test", "path": "/s", "value": "y"}), TestFailed),
            (json!({"op": "test", "path": "/s", "value": null}), TestFailed),
            (
                json!({"op": "test", "path": "/missing/c", "value": null}),
                MissingPath,
            ),
        ] {
            let error = json_patch(target.clone(), &json!([patch])).expect_err("fails");
            assert_eq!(error.http_code(), 422, "{patch}");
            let PatchError::OperationFailed {
                operation: 0,
                failure,
                ..
            } = error
            else {
                panic!("{patch}: {error}")
            };
            assert_eq!(failure, expected, "{patch}");
        }
        for patch in [
            json!({}),
            json!(null),
            json!([1]),
            json!([{"op": 1}]),
            json!([{"op": "add", "path": []}]),
        ] {
            let error = json_patch(target.clone(), &patch).expect_err("refused");
            assert_eq!(error.http_code(), 400, "{patch}");
        }
    }

    #[test]
    fn ten_thousand_operations_and_one_more() {
        let test = json!({"op": "test", "path": "/a", "value": 1});
        let allowed = Value::from(vec![test.clone(); OPERATIONS_MAX]);
        assert_eq!(json_patch(json!({"a": 1}), &allowed), Ok(json!({"a": 1})));
        let error =
            json_patch(json!({"a": 1}), &Value::from(vec![test; OPERATIONS_MAX + 1])).expect_err("too many");
        assert_eq!(error.http_code(), 413);
        assert_eq!(
            error.to_string(),
            "The allowed maximum operations in a JSON patch is 10000, got 10001"
        );
    }

    #[test]
    fn copies_have_a_budget() {
        let doubling: Vec<_> = (0..32)
            .map(|n| json!({"op": "copy", "from": "", "path": format!("/{n}")}))
            .collect();
        let error = json_patch(json!({"a": "x".repeat(1024)}), &Value::from(doubling))
            .expect_err("grows without end");
        let PatchError::OperationFailed { failure, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(failure, OperationFailure::CopyBudget);
    }

    #[test]
    fn moves_cannot_stack_up_depth() {
        let stack = [
            json!({"op": "add", "path": "/b", "value": {}}),
            json!({"op": "move", "from": "/a", "path": "/b/a"}),
            json!({"op": "move", "from": "/b", "path": "/a"}),
        ];
        let patch: Vec<_> = stack.iter().cycle().take(9_000).cloned().collect();
        assert_eq!(
            json_patch(json!({"a": 1}), &Value::from(patch)),
            Err(PatchError::TooDeep)
        );
        let shuffle = [
            json!({"op": "move", "from": "/a", "path": "/b"}),
            json!({"op": "move", "from": "/b", "path": "/a"}),
        ];
        let patch: Vec<_> = shuffle.iter().cycle().take(9_000).cloned().collect();
        assert_eq!(
            json_patch(json!({"a": [[1]]}), &Value::from(patch)),
            Ok(json!({"a": [[1]]}))
        );
    }

    #[test]
    fn unknown_members_are_named() {
        let patch =
            json!([{"op": "add", "path": "/a", "value": 1}, {"op": "remove", "path": "/a", "vlaue": 1}]);
        assert_eq!(
            json_patch_unknown_fields(&patch),
            ["json patch unknown field \"[1].vlaue\""]
        );
        assert!(json_patch_unknown_fields(&json!(1)).is_empty());
    }

    fn operation() -> impl Strategy<Value = Value> {
        let name = prop::sample::select(vec!["add", "remove", "replace", "move", "copy", "test", "x"]);
        let path = prop::sample::select(vec![
            "", "/", "/a", "/b", "/a/0", "/a/-", "/a/1/b", "/b/c", "/~2", "c",
        ]);
        let value = prop::sample::select(vec![
            json!(null),
            json!(1),
            json!([]),
            json!({"b": 1}),
            json!([1, {"b": []}]),
        ]);
        (name, path.clone(), path, value)
            .prop_map(|(op, path, from, value)| json!({"op": op, "path": path, "from": from, "value": value}))
    }

    proptest! {
        #[test]
        fn no_patch_panics(patch in prop::collection::vec(operation(), 0..12)) {
            let _ = json_patch(json!({"a": [1, {"b": 2}], "b": {"c": null}}), &Value::from(patch));
        }
    }
}
