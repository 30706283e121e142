//! Values whose JSON is a scalar with rules of its own.

pub(crate) mod base64;
pub(crate) mod quantity;
pub(crate) mod time;
