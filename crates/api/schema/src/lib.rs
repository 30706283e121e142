//! One table per Kubernetes kind: JSON to protobuf and back, strict decoding, OpenAPI.
//!
//! ```text
//!   JSON, YAML ──parse──▶ Value + duplicates ──conform──▶ canonical Value + unknown fields
//!                                                            │ ▲
//!                                            encode_protobuf ▼ │ decode_protobuf
//!                                                    k8s\0 envelope, message bytes
//! ```
//!
//! A canonical value is what Go prints after decoding into upstream's structures: only known fields, `omitempty` applied,
//! `null` where Go has a nil that its tags do not hide, quantities and times in their one form.
//!
//! What a kind means (defaults, validation) is not known here, and nothing here does I/O.

mod conform;
mod decode;
mod descriptions;
mod document;
mod encode;
pub mod envelope;
pub mod json;
mod message;
mod object;
pub mod openapi;
mod path;
mod scalar;
mod tables;
mod wire;
pub mod yaml;

pub use conform::{Conformed, TypeError, conform};
pub use decode::decode_protobuf;
pub use document::{Duplicate, ParseError};
pub use encode::encode_protobuf;
pub use message::{Cardinality, Field, Kind, ListType, Message, Omit, PatchStrategy, Type};
pub use object::{decode_object, encode_object};
pub use tables::{kind, kinds};
pub use wire::WireError;
