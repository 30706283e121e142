use crate::{COPY_BYTES_MAX, NESTING_DEPTH_MAX, OPERATIONS_MAX};

/// Why a patch was not applied. The object is unchanged.
///
/// Texts that clients of Kubernetes may match on follow `apimachinery/pkg/util/mergepatch/errors.go` and
/// `apiserver/pkg/endpoints/handlers/patch.go`, Kubernetes 1.36.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The bytes are not JSON, or not JSON of the form this kind of patch has.
    #[error("error decoding patch: {0}")]
    Undecodable(String),
    /// A JSON patch with more than [`OPERATIONS_MAX`] operations.
    #[error("The allowed maximum operations in a JSON patch is {max}, got {found}", max = OPERATIONS_MAX)]
    TooManyOperations {
        /// How many there are.
        found: usize,
    },
    /// The patch, or what it makes, nests deeper than [`NESTING_DEPTH_MAX`].
    #[error("nested deeper than {max} levels", max = NESTING_DEPTH_MAX)]
    TooDeep,
    /// One operation of a JSON patch cannot be done on this object.
    #[error("operation {operation} (\"{op}\" at {path:?}): {failure}")]
    OperationFailed {
        /// Position in the patch, from 0.
        operation: usize,
        /// The operation's name as the client wrote it.
        op: String,
        /// Where it was to work.
        path: String,
        /// What was wrong.
        failure: OperationFailure,
    },
    /// `$deleteFromPrimitiveList` without the name of a list.
    #[error("invalid patch format of primitive list")]
    PrimitiveListFormat,
    /// `$retainKeys` is no list, or the patch sets a field that the list does not name.
    #[error("invalid patch format of retainKeys")]
    RetainKeysFormat,
    /// `$setElementOrder` without the name of a list.
    #[error("invalid patch format of setElementOrder list")]
    SetElementOrderFormat,
    /// A list to be merged holds lists.
    #[error("lists of lists are not supported")]
    ListOfLists,
    /// An element of a list that is merged by key has no such key.
    #[error("map: {map} does not contain declared merge key: {key}")]
    MissingMergeKey {
        /// The element, as Go prints it.
        map: String,
        /// The merge key.
        key: String,
    },
    /// The list's schema names no merge key, but its elements are objects that were to be merged.
    #[error("cannot merge lists without merge key for struct")]
    NoMergeKey,
    /// `$patch` with a value other than `delete`, `replace` or, where it has a meaning, `merge`.
    #[error("unknown patch type: {directive} in map: {map}")]
    UnknownDirective {
        /// The value of `$patch`.
        directive: String,
        /// The object it stands in, as Go prints it.
        map: String,
    },
    /// `$patch: merge` in an element of a list.
    #[error("merging lists cannot yet be specified in the patch")]
    MergeDirectiveInList,
    /// The patch's elements do not come in the order that its `$setElementOrder` asks for, or are not all named there.
    #[error("The order in patch list:\n{patch}\n doesn't match $setElementOrder list:\n{order}\n")]
    OrderMismatch {
        /// The patch's list, as Go prints it.
        patch: String,
        /// The order, as Go prints it.
        order: String,
    },
    /// A value of one JSON type where only another makes sense; types in Go's words.
    #[error("expected a {expected}, but received a {actual}")]
    WrongType {
        /// Go type that was needed.
        expected: &'static str,
        /// Go type that was there.
        actual: &'static str,
    },
    /// The elements of the lists to be merged are not all of one type.
    #[error("list element types are not identical: {lists}")]
    MixedElementTypes {
        /// The lists, as Go prints them.
        lists: String,
    },
    /// An order was given for lists without elements.
    #[error("no elements in any of the given slices")]
    NoElements,
    /// The schema has no field of this name, so nothing says how to merge its value.
    #[error("unable to find api field in struct {message} for the json field {field:?}")]
    UnknownField {
        /// The structure's name.
        message: String,
        /// The field's name in JSON.
        field: String,
    },
    /// Objects are to be merged where the schema has no structure.
    #[error("merging an object in json but data type is not struct, instead is: {0}")]
    NotAStructure(&'static str),
    /// Lists are to be merged where the schema has no list.
    #[error("expected slice or array type, but got: struct")]
    NotAList,
}

/// Why one operation of a JSON patch cannot be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OperationFailure {
    /// `op` is none of the six.
    #[error("unexpected kind: {0}")]
    UnknownOperation(String),
    /// `path`, `from` or `value` is missing.
    #[error("missing {0}")]
    MissingMember(&'static str),
    /// `path` or `from` is not a JSON pointer.
    #[error("{0} is not a JSON pointer")]
    NotAPointer(&'static str),
    /// Nothing is where `path` points, or its parent is missing or a scalar.
    #[error("doc is missing path")]
    MissingPath,
    /// Nothing is where `from` points.
    #[error("doc is missing path given by from")]
    MissingFrom,
    /// `test` found another value.
    #[error("testing value failed")]
    TestFailed,
    /// `move` into the moved value.
    #[error("cannot move a value inside itself")]
    MoveInsideItself,
    /// The `copy` operations together copied more than [`COPY_BYTES_MAX`].
    #[error(
        "unable to complete the copy, the accumulated size increase of copy exceeds the limit {max}",
        max = COPY_BYTES_MAX
    )]
    CopyBudget,
}

impl PatchError {
    /// The HTTP status code this error deserves: 400, 413 or 422.
    ///
    /// Where upstream answers 500 without a reason (a missing merge key, an unknown directive and other faults of the
    /// patch that it does not classify) this is 422: the request is at fault, not the server.
    pub fn http_code(&self) -> u16 {
        match self {
            Self::Undecodable(_)
            | Self::TooDeep
            | Self::PrimitiveListFormat
            | Self::RetainKeysFormat
            | Self::SetElementOrderFormat => 400,
            Self::TooManyOperations { .. } => 413,
            Self::OperationFailed { .. }
            | Self::ListOfLists
            | Self::MissingMergeKey { .. }
            | Self::NoMergeKey
            | Self::UnknownDirective { .. }
            | Self::MergeDirectiveInList
            | Self::OrderMismatch { .. }
            | Self::WrongType { .. }
            | Self::MixedElementTypes { .. }
            | Self::NoElements
            | Self::UnknownField { .. }
            | Self::NotAStructure(_)
            | Self::NotAList => 422,
        }
    }
}
