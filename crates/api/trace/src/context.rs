//! A place in a trace, as it travels between processes.

use std::fmt;

/// Bit of the flags: somebody keeps this trace.
const SAMPLED: u8 = 1;

/// One span of one trace, in the form of W3C Trace Context (Recommendation of 2021-11-23), version 00.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    trace: [u8; 16],
    span: [u8; 8],
    flags: u8,
}

impl TraceContext {
    /// A sampled one; `None` if either id is all zeros, which means that there is none.
    pub fn sampled(trace: u128, span: u64) -> Option<Self> {
        Self::new(trace, span, SAMPLED)
    }

    /// The same with flags, of which the lowest bit says that the trace is sampled; `None` if either id is zero.
    pub fn new(trace: u128, span: u64, flags: u8) -> Option<Self> {
        (trace != 0 && span != 0).then_some(Self {
            trace: trace.to_be_bytes(),
            span: span.to_be_bytes(),
            flags,
        })
    }

    /// Reads a `traceparent`: 55 characters of lower-case hexadecimal digits and dashes. `None` for everything else,
    /// other versions included.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let (version, rest) = text.split_first_chunk::<3>()?;
        let (trace, rest) = rest.split_first_chunk::<32>()?;
        let (dash, rest) = rest.split_first_chunk::<1>()?;
        let (span, rest) = rest.split_first_chunk::<16>()?;
        let (second_dash, flags) = rest.split_first_chunk::<1>()?;
        let flags: &[u8; 2] = flags.try_into().ok()?;
        if version != b"00-" || dash != b"-" || second_dash != b"-" {
            return None;
        }
        Self::new(
            number(trace)?,
            u64::try_from(number(span)?).ok()?,
            u8::try_from(number(flags)?).ok()?,
        )
    }

    /// The trace's id, never zero.
    pub fn trace_id(&self) -> u128 {
        u128::from_be_bytes(self.trace)
    }

    /// The span's id, never zero.
    pub fn span_id(&self) -> u64 {
        u64::from_be_bytes(self.span)
    }

    /// The flags, as sent.
    pub fn flags(&self) -> u8 {
        self.flags
    }

    /// Whether somebody keeps this trace.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }
}

/// As a `traceparent`.
impl fmt::Display for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "00-{:032x}-{:016x}-{:02x}",
            self.trace_id(),
            self.span_id(),
            self.flags
        )
    }
}

/// Lower-case hexadecimal digits, at most 32 of them.
fn number(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, digit| {
        let value = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(value))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_traceparent_is_read_strictly() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let context = TraceContext::parse(good.as_bytes()).expect("a traceparent");
        assert_eq!(context.to_string(), good);
        assert!(context.is_sampled());
        let unsampled = TraceContext::parse(good.replace("-01", "-02").as_bytes()).expect("a traceparent");
        assert!(!unsampled.is_sampled());
        for bad in [
            "",
            "00",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01 ",
            "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7_01",
            "00-+bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::parse(bad.as_bytes()), None, "{bad:?}");
        }
    }

    proptest! {
        #[test]
        fn what_is_written_is_read(trace in 1u128.., span in 1u64.., flags: u8) {
            let context = TraceContext::new(trace, span, flags).expect("no id is zero");
            let text = context.to_string();
            prop_assert_eq!(text.len(), 55);
            prop_assert_eq!(TraceContext::parse(text.as_bytes()), Some(context));
        }

        #[test]
        fn no_text_breaks_the_reader(text: Vec<u8>) {
            let _ = TraceContext::parse(&text);
        }
    }
}
