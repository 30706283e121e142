//! What a kind adds to the generic rules of reading and writing objects.

use hotmap_object::FieldError;
use jiff::Timestamp;
use serde_json::{Map, Value};

/// The rules of one kind. Every method has the generic behaviour as its default; none does I/O.
///
/// `subresource` is empty for the object itself. Objects are complete documents whose shape the schema has checked.
pub trait Strategy: Send + Sync {
    /// Fills in what the client left out, as upstream's `defaults.go` of the kind, and joins fields that say the same
    /// twice (`stringData` of Secrets, both spellings of a pod's account). For every write, create and update alike;
    /// doing it again changes nothing.
    fn default(&self, _object: &mut Map<String, Value>) {}

    /// Clears and sets what a client does not decide on create: `status`, finalizers of namespaces, and the label with a
    /// namespace's name, which is why a generated name has to be there first.
    fn prepare_for_create(&self, _object: &mut Map<String, Value>) {}

    /// Keeps from `old` what this path may not write.
    fn prepare_for_update(
        &self,
        _new: &mut Map<String, Value>,
        _old: &Map<String, Value>,
        _subresource: &str,
    ) {
    }

    /// Rules of the kind, metadata apart; none broken means valid.
    fn validate(&self, _object: &Map<String, Value>) -> Vec<FieldError> {
        Vec::new()
    }

    /// Rules of a change, `validate` of the new object included, metadata apart.
    fn validate_update(
        &self,
        new: &Map<String, Value>,
        _old: &Map<String, Value>,
        _subresource: &str,
    ) -> Vec<FieldError> {
        self.validate(new)
    }

    /// Sentences for `Warning` headers about a valid object that is created, or changed through its own path or that of its
    /// ephemeral containers.
    fn warnings(&self, _object: &Map<String, Value>, _old: Option<&Map<String, Value>>) -> Vec<String> {
        Vec::new()
    }

    /// Whether a change through the object's own path is one that controllers shall notice: it bumps
    /// `metadata.generation`, for kinds that have one.
    fn bumps_generation(&self, new: &Map<String, Value>, old: &Map<String, Value>) -> bool {
        new.get("spec") != old.get("spec")
    }

    /// Fields a field selector may name, besides `metadata.name` and `metadata.namespace`.
    fn selectable_fields(&self) -> &'static [&'static str] {
        &[]
    }

    /// The values of [`Strategy::selectable_fields`]; an absent value is the empty string.
    ///
    /// Kinds with two views of one stored object answer with the names of both, from either shape, so that one index
    /// serves both.
    fn field_values(&self, _object: &Map<String, Value>) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// The columns of `kubectl get`, wide ones included.
    fn columns(&self) -> &'static [Column];

    /// One row, a cell per column.
    fn cells(&self, object: &Map<String, Value>, now: Timestamp) -> Vec<Value>;

    /// Conditions of its table row, such as `Completed` for a pod that has ended; `kubectl` may hide such rows.
    fn row_conditions(&self, _object: &Map<String, Value>) -> Vec<Value> {
        Vec::new()
    }

    /// From the stored shape to this version's; only `events.k8s.io` differs from what it is stored as.
    #[expect(
        clippy::wrong_self_convention,
        reason = "it converts objects, not the strategy"
    )]
    fn from_stored(&self, object: Map<String, Value>) -> Map<String, Value> {
        object
    }

    /// From this version's shape to the stored one.
    fn to_stored(&self, object: Map<String, Value>) -> Map<String, Value> {
        object
    }
}

/// One column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Heading as clients get it, such as `Name`.
    pub name: &'static str,
    /// OpenAPI type: `string`, `integer`, `date`.
    pub kind: &'static str,
    /// OpenAPI format; `name` for the name column.
    pub format: &'static str,
    /// What the column says, one sentence.
    pub description: &'static str,
    /// 0 is always shown, 1 only with `-o wide`.
    pub priority: i32,
}
