//! The envelope of every protobuf object, in requests and in the store: `k8s\0`, then a `runtime.Unknown`
//! (apimachinery `pkg/runtime/serializer/protobuf` and `pkg/runtime/generated.proto`, release 1.36).

use crate::{
    WireError,
    wire::{Content, Reader, Writer},
};

/// The four bytes every protobuf object starts with.
pub const MAGIC: [u8; 4] = *b"k8s\0";

/// What the envelope says about the message inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unknown<'a> {
    /// `apiVersion` of the object.
    pub api_version: &'a str,
    /// `kind` of the object.
    pub kind: &'a str,
    /// The encoded message.
    pub raw: &'a [u8],
    /// Empty in everything Kubernetes writes.
    pub content_encoding: &'a str,
    /// Empty for protobuf.
    pub content_type: &'a str,
}

/// Puts a message into its envelope; encoding and content type stay empty, yet are written, as upstream does.
pub fn wrap(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
    let mut writer = Writer::with_capacity(raw.len() + api_version.len() + kind.len() + 24);
    writer.append(&MAGIC);
    let mut type_meta = Writer::with_capacity(api_version.len() + kind.len() + 4);
    type_meta.bytes_field(1, api_version.as_bytes());
    type_meta.bytes_field(2, kind.as_bytes());
    writer.bytes_field(1, &type_meta.into_bytes());
    writer.bytes_field(2, raw);
    writer.bytes_field(3, b"");
    writer.bytes_field(4, b"");
    writer.into_bytes()
}

/// Takes the envelope off.
///
/// # Errors
/// [`WireError::NoMagic`] without the prefix, other [`WireError`]s if what follows is no envelope.
pub fn unwrap(bytes: &[u8]) -> Result<Unknown<'_>, WireError> {
    let message = bytes.strip_prefix(&MAGIC).ok_or(WireError::NoMagic)?;
    let mut unknown = Unknown::default();
    let mut reader = Reader::new(message);
    while let Some((number, content)) = reader.next()? {
        match number {
            1 => (unknown.api_version, unknown.kind) = type_meta(content)?,
            2 => unknown.raw = bytes_of(content)?,
            3 => unknown.content_encoding = text(content, "contentEncoding")?,
            4 => unknown.content_type = text(content, "contentType")?,
            _ => {}
        }
    }
    Ok(unknown)
}

fn type_meta(content: Content<'_>) -> Result<(&str, &str), WireError> {
    let (mut api_version, mut kind) = ("", "");
    let mut reader = Reader::new(bytes_of(content)?);
    while let Some((number, content)) = reader.next()? {
        match number {
            1 => api_version = text(content, "apiVersion")?,
            2 => kind = text(content, "kind")?,
            _ => {}
        }
    }
    Ok((api_version, kind))
}

fn bytes_of(content: Content<'_>) -> Result<&[u8], WireError> {
    match content {
        Content::Bytes(bytes) => Ok(bytes),
        _ => Err(WireError::IllegalTag),
    }
}

fn text<'a>(content: Content<'a>, field: &'static str) -> Result<&'a str, WireError> {
    std::str::from_utf8(bytes_of(content)?).map_err(|_| WireError::NotUtf8 { field })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_envelope_is_the_bytes_kubernetes_writes() {
        let wrapped = wrap("v1", "ConfigMap", b"\x0a\x00");
        assert_eq!(
            wrapped,
            b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09ConfigMap\x12\x02\x0a\x00\x1a\x00\x22\x00"
        );
        let unknown = unwrap(&wrapped).expect("valid");
        assert_eq!(
            (unknown.api_version, unknown.kind, unknown.raw),
            ("v1", "ConfigMap", &b"\x0a\x00"[..])
        );
        assert_eq!(unwrap(b"{}"), Err(WireError::NoMagic));
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = unwrap(&[&MAGIC[..], &bytes].concat());
        }

        #[test]
        fn what_is_wrapped_comes_out(api_version in ".{0,20}", kind in ".{0,20}", raw in proptest::collection::vec(any::<u8>(), 0..300)) {
            let wrapped = wrap(&api_version, &kind, &raw);
            let unknown = unwrap(&wrapped).expect("valid");
            prop_assert_eq!((unknown.api_version, unknown.kind, unknown.raw), (&*api_version, &*kind, &*raw));
        }
    }
}
