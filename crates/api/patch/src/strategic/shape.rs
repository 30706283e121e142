//! What the schema says about the value at hand: which fields it has and how its lists merge.

use hotmap_schema::{Cardinality, Field, Message, PatchStrategy, Type};

use crate::PatchError;

/// The type of an object that is being merged.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shape {
    /// A structure with known fields.
    Structure(&'static Message),
    /// Anything else, by the word Go's reflection has for it: `map` for free keys, `string` and so on.
    Other(&'static str),
}

/// How the value of a field merges.
#[derive(Debug, Clone, Copy)]
pub(super) struct FieldStrategy {
    strategy: PatchStrategy,
    /// The key that elements of a list are matched by.
    pub(super) merge_key: Option<&'static str>,
}

impl FieldStrategy {
    pub(super) fn replaces(self) -> bool {
        self.strategy == PatchStrategy::Replace
    }

    pub(super) fn merges(self) -> bool {
        self.strategy.merges()
    }
}

impl Shape {
    /// The shape and strategy of the object in the field `key`.
    pub(super) fn structure_at(self, key: &str) -> Result<(Self, FieldStrategy), PatchError> {
        let field = self.field(key)?;
        let shape = match field.cardinality {
            Cardinality::Single => Self::of_element(field),
            Cardinality::Map => Self::Other("map"),
            Cardinality::List => Self::Other("slice"),
        };
        Ok((shape, FieldStrategy::of(field)))
    }

    /// The shape of the elements and the strategy of the list in the field `key`.
    pub(super) fn list_at(self, key: &str) -> Result<(Self, FieldStrategy), PatchError> {
        let field = self.field(key)?;
        if field.cardinality != Cardinality::List {
            return Err(PatchError::NotAList);
        }
        Ok((Self::of_element(field), FieldStrategy::of(field)))
    }

    fn field(self, key: &str) -> Result<&'static Field, PatchError> {
        match self {
            Self::Structure(message) => message.field(key).ok_or_else(|| PatchError::UnknownField {
                message: message.short_name().to_owned(),
                field: key.to_owned(),
            }),
            Self::Other(kind) => Err(PatchError::NotAStructure(kind)),
        }
    }

    fn of_element(field: &Field) -> Self {
        match field.kind {
            Type::Message(message) => Self::Structure(message),
            Type::Bool => Self::Other("bool"),
            Type::Int32 => Self::Other("int32"),
            Type::Int64 => Self::Other("int64"),
            Type::String => Self::Other("string"),
            Type::Bytes | Type::Strings => Self::Other("slice"),
            Type::Time
            | Type::MicroTime
            | Type::Quantity
            | Type::IntOrString
            | Type::FieldsV1
            | Type::RawExtension => Self::Other("struct"),
        }
    }
}

impl FieldStrategy {
    fn of(field: &Field) -> Self {
        Self {
            strategy: field.patch_strategy,
            merge_key: field.merge_key,
        }
    }
}
