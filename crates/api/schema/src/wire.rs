//! The protobuf wire: varints, keys and lengths.

use crate::{Field, Message};

/// Bytes are not the message they should be, or a value is not in canonical form.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// The input ends inside a field.
    #[error("unexpected EOF")]
    Truncated,
    /// A varint has more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A field has field number 0, or a wire type that the format does not have.
    #[error("proto: illegal tag or wire type")]
    IllegalTag,
    /// A field arrives in another wire type than its own.
    #[error("proto: wrong wireType = {wire_type} for field {field} of {message}")]
    WireType {
        /// OpenAPI name of the message.
        message: &'static str,
        /// The field.
        field: &'static str,
        /// What arrived.
        wire_type: u8,
    },
    /// A text is not UTF-8. Upstream lets it through and prints replacement characters; here it is refused.
    #[error("proto: field {field} contains invalid UTF-8")]
    NotUtf8 {
        /// The field.
        field: &'static str,
    },
    /// A field has a value that its type cannot have: a quantity without a number, a year beyond 9999.
    #[error("proto: field {field} of {message}: {reason}")]
    Value {
        /// OpenAPI name of the message.
        message: &'static str,
        /// The field.
        field: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// Messages in messages in messages.
    #[error("proto: messages are nested too deeply")]
    TooDeep,
    /// The bytes do not begin with `k8s\0`.
    #[error("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")]
    NoMagic,
    /// The envelope names a kind that has no table.
    #[error("no kind \"{kind}\" is registered for version \"{api_version}\"")]
    UnknownKind {
        /// `apiVersion` of the envelope.
        api_version: String,
        /// `kind` of the envelope.
        kind: String,
    },
}

impl WireError {
    pub(crate) fn value(message: &'static Message, field: &'static Field, reason: impl ToString) -> Self {
        Self::Value {
            message: message.name,
            field: field.json,
            reason: reason.to_string(),
        }
    }
}

/// Messages may be nested this deep; Kubernetes types reach 15, and the rest is for objects inside `RawExtension`.
pub(crate) const DEPTH_MAX: usize = 100;

pub(crate) const VARINT: u8 = 0;
pub(crate) const FIXED64: u8 = 1;
pub(crate) const LENGTH: u8 = 2;
pub(crate) const FIXED32: u8 = 5;

/// One field's content.
#[derive(Clone, Copy)]
pub(crate) enum Content<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    Fixed(u8),
}

impl Content<'_> {
    pub(crate) fn wire_type(&self) -> u8 {
        match self {
            Self::Varint(_) => VARINT,
            Self::Bytes(_) => LENGTH,
            Self::Fixed(wire_type) => *wire_type,
        }
    }
}

/// Reads fields one after the other.
pub(crate) struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub(crate) fn new(raw: &'a [u8]) -> Self {
        Self { rest: raw }
    }

    /// The next field, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Content<'a>)>, WireError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3)
            .ok()
            .filter(|number| *number > 0)
            .ok_or(WireError::IllegalTag)?;
        let content = match (tag & 7) as u8 {
            VARINT => Content::Varint(self.varint()?),
            LENGTH => {
                let length = usize::try_from(self.varint()?).map_err(|_| WireError::Truncated)?;
                Content::Bytes(self.take(length)?)
            }
            FIXED64 => self.take(8).map(|_| Content::Fixed(FIXED64))?,
            FIXED32 => self.take(4).map(|_| Content::Fixed(FIXED32))?,
            _ => return Err(WireError::IllegalTag),
        };
        Ok(Some((number, content)))
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], WireError> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(WireError::Truncated)?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let (byte, rest) = self.rest.split_first().ok_or(WireError::Truncated)?;
            self.rest = rest;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(WireError::Overflow)
    }
}

/// Appends fields to a buffer.
#[derive(Default)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(capacity),
        }
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    pub(crate) fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub(crate) fn varint_field(&mut self, number: u32, value: u64) {
        self.varint(u64::from(number) << 3);
        self.varint(value);
    }

    /// A signed number of 32 or 64 bits; negative ones take ten bytes.
    pub(crate) fn signed_field(&mut self, number: u32, value: i64) {
        self.varint_field(number, value as u64);
    }

    pub(crate) fn bytes_field(&mut self, number: u32, bytes: &[u8]) {
        self.varint(u64::from(number) << 3 | u64::from(LENGTH));
        self.varint(bytes.len() as u64);
        self.append(bytes);
    }

    /// A message whose length is known only once it is written: one byte is kept free, and the content moves if the
    /// length needs more.
    pub(crate) fn nested<E>(
        &mut self,
        number: u32,
        write: impl FnOnce(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.varint(u64::from(number) << 3 | u64::from(LENGTH));
        let length_at = self.bytes.len();
        self.bytes.push(0);
        write(self)?;
        let mut length = self.bytes.len() - length_at - 1;
        if length < 0x80 {
            self.bytes[length_at] = length as u8;
            return Ok(());
        }
        let mut encoded = [0_u8; 10];
        let mut used = 0;
        while length >= 0x80 {
            encoded[used] = length as u8 | 0x80;
            length >>= 7;
            used += 1;
        }
        encoded[used] = length as u8;
        self.bytes
            .splice(length_at..=length_at, encoded[..=used].iter().copied());
        Ok(())
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }
}
