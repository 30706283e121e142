//! Identifiers in the form of version 4 UUIDs.

use std::sync::{
    LazyLock,
    atomic::{AtomicU64, Ordering},
};

/// 122 random bits: nobody can guess it, nothing else has it.
///
/// # Errors
///
/// The system has no randomness.
pub(crate) fn random() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    Ok(text(bytes))
}

/// Different from every other one, but easy to guess from an earlier one: costs no system call.
pub(crate) fn distinct() -> String {
    static FIRST: LazyLock<[u8; 16]> = LazyLock::new(|| {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).expect("the kernel has random bytes");
        bytes
    });
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut bytes = *FIRST;
    // The tail alone counts: the marks of version and variant are not in its seven bytes.
    let mut tail = [0; 8];
    tail[1..].copy_from_slice(&bytes[9..]);
    let number = u64::from_be_bytes(tail).wrapping_add(COUNT.fetch_add(1, Ordering::Relaxed));
    bytes[9..].copy_from_slice(&number.to_be_bytes()[1..]);
    text(bytes)
}

fn text(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let mut text = String::with_capacity(36);
    for (at, byte) in bytes.into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        for digit in [byte >> 4, byte & 0xf] {
            text.push(char::from(b"0123456789abcdef"[usize::from(digit)]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn both_have_the_form_of_version_4_and_differ() {
        let mut seen = HashSet::new();
        let random = (0..300).map(|_| random().expect("randomness"));
        for id in random.chain((0..300).map(|_| distinct())) {
            let parts: Vec<usize> = id.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12], "{id}");
            assert_eq!(&id[14..15], "4", "{id}");
            assert!(matches!(&id[19..20], "8" | "9" | "a" | "b"), "{id}");
            assert!(seen.insert(id), "twice the same");
        }
    }
}
