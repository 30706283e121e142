//! What a table is made of: a kind names a message, a message lists its fields, a field says how it looks in JSON and
//! on the protobuf wire.
//!
//! Everything here is static data. The tables are generated; only the shapes below are written by hand.

use std::{borrow::Cow, fmt};

/// A kind that can stand alone in a request body: a resource, its list, an options or a review object.
#[derive(Debug)]
pub struct Kind {
    /// API group, `""` for the core group.
    pub group: &'static str,
    /// Version within the group, such as `v1`.
    pub version: &'static str,
    /// The kind's name, such as `ConfigMap`.
    pub kind: &'static str,
    /// The fields of its objects, without `apiVersion` and `kind`.
    pub message: &'static Message,
}

impl Kind {
    /// What stands in `apiVersion`: `v1` for the core group, else `group/version`.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }
}

/// A structured type: the same fields in JSON and on the wire.
pub struct Message {
    /// OpenAPI style name: `io.k8s.api.core.v1.PodSpec`.
    pub name: &'static str,
    /// Fields in ascending order of their wire number.
    pub fields: &'static [Field],
    /// Objects of this type carry `apiVersion` and `kind` in JSON (they are not on the wire: the envelope has them).
    pub type_meta: bool,
    /// `x-kubernetes-map-type: atomic`: one owner for all fields in server-side apply.
    pub atomic: bool,
}

impl Message {
    /// The field with this JSON name, also when it lives in an embedded message that JSON shows inline.
    pub fn field(&self, json_name: &str) -> Option<&'static Field> {
        let inlined = |field: &'static Field| match field.kind {
            Type::Message(nested) if field.inline => nested.field(json_name),
            _ => None,
        };
        self.fields
            .iter()
            .find(|field| !field.inline && field.json == json_name)
            .or_else(|| self.fields.iter().find_map(inlined))
    }

    /// Every field as JSON shows it: embedded messages are replaced by their fields.
    pub fn json_fields(&self) -> Vec<&'static Field> {
        let mut all = Vec::with_capacity(self.fields.len());
        for field in self.fields {
            match field.kind {
                Type::Message(nested) if field.inline => all.extend(nested.json_fields()),
                _ => all.push(field),
            }
        }
        all
    }

    /// The Go name that error texts use: `v1.PodSpec` for `io.k8s.api.core.v1.PodSpec`.
    pub fn go_name(&self) -> &'static str {
        let mut dots = self.name.rmatch_indices('.').map(|(at, _)| at);
        let package_end = dots.nth(1);
        package_end.map_or(self.name, |at| &self.name[at + 1..])
    }

    /// The name without its package: `PodSpec`.
    pub fn short_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }
}

impl fmt::Debug for Message {
    /// Names only: messages refer to each other, some to themselves.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Message").field(&self.name).finish()
    }
}

/// One field of a message.
#[derive(Debug)]
pub struct Field {
    /// Name in JSON; for an inline field the name of the embedded message on the wire.
    pub json: &'static str,
    /// Number on the protobuf wire.
    pub number: u32,
    /// Type of the value, or of each element of a list or map.
    pub kind: Type,
    /// One value, a list, or a map with string keys.
    pub cardinality: Cardinality,
    /// A Go pointer: absent and zero are different things.
    pub pointer: bool,
    /// When canonical JSON leaves the field out.
    pub omit: Omit,
    /// The embedded message's fields appear in the parent's JSON object.
    pub inline: bool,
    /// OpenAPI calls it required.
    pub required: bool,
    /// Go name of the element type where it is not the plain one: `v1.PullPolicy` for a string. `""` otherwise.
    pub go_type: &'static str,
    /// `x-kubernetes-list-type`, with its keys.
    pub list_type: ListType,
    /// `x-kubernetes-map-type: atomic` on the field itself.
    pub atomic: bool,
    /// `x-kubernetes-patch-merge-key`, the key that strategic merge patches match elements by.
    pub merge_key: Option<&'static str>,
    /// `x-kubernetes-patch-strategy`.
    pub patch_strategy: PatchStrategy,
    /// The values upstream names constants for; empty if the field is no enumeration. Not a validation rule.
    pub enum_values: &'static [&'static str],
}

impl Field {
    /// The Go type that error texts name, such as `[]v1.Container`.
    pub fn go_type_name(&self) -> Cow<'static, str> {
        if !self.go_type.is_empty() {
            return Cow::Borrowed(self.go_type);
        }
        let element = self.kind.go_name();
        match self.cardinality {
            Cardinality::Single => Cow::Borrowed(element),
            Cardinality::List => Cow::Owned(format!("[]{element}")),
            Cardinality::Map => Cow::Owned(format!("map[string]{element}")),
        }
    }

    /// The Go type of one element of a list or map, or of the value itself.
    pub fn go_element_name(&self) -> &'static str {
        let list_element = self
            .go_type
            .strip_prefix("[]")
            .filter(|_| self.cardinality == Cardinality::List);
        match self.cardinality {
            Cardinality::Single if !self.go_type.is_empty() => self.go_type,
            _ => list_element.unwrap_or_else(|| self.kind.go_name()),
        }
    }
}

/// The type of a field's value, or of each element.
#[derive(Debug, Clone, Copy)]
pub enum Type {
    /// `true` or `false`.
    Bool,
    /// Signed 32 bit integer.
    Int32,
    /// Signed 64 bit integer.
    Int64,
    /// UTF-8 text.
    String,
    /// Bytes: standard base64 in JSON.
    Bytes,
    /// A nested message.
    Message(&'static Message),
    /// `metav1.Time`: RFC 3339 with whole seconds.
    Time,
    /// `metav1.MicroTime`: RFC 3339 with six decimals.
    MicroTime,
    /// `resource.Quantity`: a number with a suffix, in canonical form.
    Quantity,
    /// `intstr.IntOrString`: a number or a text.
    IntOrString,
    /// `metav1.FieldsV1`: JSON text on the wire.
    FieldsV1,
    /// `runtime.RawExtension`: any object.
    RawExtension,
    /// A list of strings that the wire wraps in a message of its own (`Verbs`, `ExtraValue`).
    Strings,
}

impl Type {
    /// What Go calls the plain type.
    fn go_name(self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::String => "string",
            Self::Bytes => "[]uint8",
            Self::Message(message) => message.go_name(),
            Self::Time => "v1.Time",
            Self::MicroTime => "v1.MicroTime",
            Self::Quantity => "resource.Quantity",
            Self::IntOrString => "intstr.IntOrString",
            Self::FieldsV1 => "v1.FieldsV1",
            Self::RawExtension => "runtime.RawExtension",
            Self::Strings => "[]string",
        }
    }
}

/// How many values a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cardinality {
    /// At most one.
    Single,
    /// A list.
    List,
    /// A map with string keys.
    Map,
}

/// When canonical JSON leaves a field out (Go's `omitempty` and `omitzero`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Omit {
    /// Always written; `null` where Go has a nil.
    Never,
    /// Left out when false, 0, "", nil, or without elements. A structure is never empty in this sense.
    Empty,
    /// Left out also when it is a structure whose every field is zero.
    Zero,
}

/// `x-kubernetes-list-type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// Not declared; server-side apply treats it as atomic.
    Unset,
    /// One owner for the whole list.
    Atomic,
    /// A set of scalars.
    Set,
    /// A map written as a list, with these key fields.
    Map(&'static [&'static str]),
}

/// `x-kubernetes-patch-strategy`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchStrategy {
    /// Not declared: lists are replaced, structures merged.
    Unset,
    /// Merge elements by the merge key, or as a set.
    Merge,
    /// Clear the fields that the patch does not name.
    RetainKeys,
    /// Both of these.
    MergeRetainKeys,
    /// Replace as a whole.
    Replace,
}

impl PatchStrategy {
    /// Elements are merged.
    pub fn merges(self) -> bool {
        matches!(self, Self::Merge | Self::MergeRetainKeys)
    }

    /// Fields that the patch does not name are cleared.
    pub fn retains_keys(self) -> bool {
        matches!(self, Self::RetainKeys | Self::MergeRetainKeys)
    }

    /// The value of the OpenAPI extension.
    pub fn as_str(self) -> Option<&'static str> {
        match self {
            Self::Unset => None,
            Self::Merge => Some("merge"),
            Self::RetainKeys => Some("retainKeys"),
            Self::MergeRetainKeys => Some("merge,retainKeys"),
            Self::Replace => Some("replace"),
        }
    }
}

/// The words the generated tables are written in.
impl Field {
    pub(crate) const fn new(json: &'static str, number: u32, kind: Type) -> Self {
        Self {
            json,
            number,
            kind,
            cardinality: Cardinality::Single,
            pointer: false,
            omit: Omit::Never,
            inline: false,
            required: false,
            go_type: "",
            list_type: ListType::Unset,
            atomic: false,
            merge_key: None,
            patch_strategy: PatchStrategy::Unset,
            enum_values: &[],
        }
    }

    pub(crate) const fn list(mut self) -> Self {
        self.cardinality = Cardinality::List;
        self
    }

    pub(crate) const fn map(mut self) -> Self {
        self.cardinality = Cardinality::Map;
        self
    }

    pub(crate) const fn pointer(mut self) -> Self {
        self.pointer = true;
        self
    }

    pub(crate) const fn omitempty(mut self) -> Self {
        self.omit = Omit::Empty;
        self
    }

    pub(crate) const fn omitzero(mut self) -> Self {
        self.omit = Omit::Zero;
        self
    }

    pub(crate) const fn inline(mut self) -> Self {
        self.inline = true;
        self
    }

    pub(crate) const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    pub(crate) const fn go(mut self, go_type: &'static str) -> Self {
        self.go_type = go_type;
        self
    }

    pub(crate) const fn list_type(mut self, list_type: ListType) -> Self {
        self.list_type = list_type;
        self
    }

    pub(crate) const fn atomic(mut self) -> Self {
        self.atomic = true;
        self
    }

    pub(crate) const fn merge_key(mut self, key: &'static str) -> Self {
        self.merge_key = Some(key);
        self
    }

    pub(crate) const fn patch(mut self, strategy: PatchStrategy) -> Self {
        self.patch_strategy = strategy;
        self
    }

    pub(crate) const fn one_of(mut self, values: &'static [&'static str]) -> Self {
        self.enum_values = values;
        self
    }
}
