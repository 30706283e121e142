//! Standard base64 as Go's decoder reads it: line breaks are skipped, padding is required, spare bits are ignored.

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// Padding is written and required; bits beyond the last byte may be set, as in Go.
const GO: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// Text that is not base64.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("illegal base64 data at input byte {offset}")]
pub(crate) struct CorruptInput {
    offset: usize,
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    GO.encode(bytes)
}

pub(crate) fn decode(text: &str) -> Result<Vec<u8>, CorruptInput> {
    if let Ok(bytes) = GO.decode(text) {
        return Ok(bytes);
    }
    if let Some(offset) = first_corrupt(text.as_bytes()) {
        return Err(CorruptInput { offset });
    }
    // Only line breaks stood in the way.
    let unbroken: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    GO.decode(unbroken)
        .map_err(|_| CorruptInput { offset: text.len() })
}

/// The offset Go names in `base64.CorruptInputError` (encoding/base64, `decodeQuantum`).
fn first_corrupt(text: &[u8]) -> Option<usize> {
    let is_break = |byte: &u8| matches!(byte, b'\r' | b'\n');
    let next = |from: usize| (from..text.len()).find(|&at| !is_break(&text[at]));
    let mut at = 0;
    let mut in_quantum = 0;
    while let Some(here) = next(at) {
        let byte = text[here];
        at = here + 1;
        if byte.is_ascii_alphanumeric() || byte == b'+' || byte == b'/' {
            in_quantum = (in_quantum + 1) % 4;
            continue;
        }
        if byte != b'=' || in_quantum < 2 {
            return Some(here);
        }
        if in_quantum == 2 {
            match next(at) {
                None => return Some(text.len()),
                Some(second) if text[second] != b'=' => return Some(second - 1),
                Some(second) => at = second + 1,
            }
        }
        return next(at);
    }
    (in_quantum != 0).then(|| text.len() - in_quantum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_byte_that_go_names() {
        for (text, expected) in [
            ("", Ok("")),
            ("aGk=", Ok("hi")),
            ("aG\nk=\n", Ok("hi")),
            ("aGl=", Ok("hi")),
            ("not base64", Err(3)),
            ("abc", Err(0)),
            ("aGk", Err(0)),
            ("aGk==", Err(4)),
            ("aGk=x", Err(4)),
            ("aG=", Err(3)),
            ("=", Err(0)),
            ("aGkaGk=!", Err(6)),
        ] {
            let decoded = decode(text).map(|bytes| String::from_utf8(bytes).expect("text"));
            assert_eq!(
                decoded,
                expected
                    .map(str::to_owned)
                    .map_err(|offset| CorruptInput { offset }),
                "{text:?}"
            );
        }
    }
}
