//! What stands before the content of a record: `<time> <stream> <tags> `.

use std::str;

use jiff::Timestamp;

use super::LogStream;

/// The longest header that is understood, its last space included. The runtime's have 40 bytes.
pub(crate) const HEADER_BYTES_MAX: usize = 96;

/// The header of one CRI record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) time: Timestamp,
    pub(crate) stream: LogStream,
    /// Whether the record ends a line; the other records are pieces of a longer one.
    pub(crate) ends_line: bool,
}

impl Header {
    /// The header at the start of `record`; its length does not matter. None when it is damaged or not whole.
    ///
    /// The rules are `parseCRILog`'s (`k8s.io/cri-client/pkg/logs`): tags are separated by colons, the first says `P` for a
    /// piece, and everything else ends a line.
    pub(crate) fn parse(record: &[u8]) -> Option<Self> {
        let record = &record[..record.len().min(HEADER_BYTES_MAX)];
        let record = record.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let mut parts = record.splitn(4, |byte| *byte == b' ');
        let (time, stream, tags, _content) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
        let stream = match stream {
            b"stdout" => LogStream::Stdout,
            b"stderr" => LogStream::Stderr,
            _ => return None,
        };
        let time = str::from_utf8(time).ok()?.parse().ok()?;
        let ends_line = tags.split(|byte| *byte == b':').next() != Some(b"P");
        Some(Self {
            time,
            stream,
            ends_line,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_the_kubelet_reads_them() {
        let long_tag = format!("2026-01-01T00:00:00Z stdout F:{} x", "t".repeat(HEADER_BYTES_MAX));
        for (record, expected) in [
            (
                "2026-01-01T00:00:00.000000001Z stdout F text",
                Some((1, LogStream::Stdout, true)),
            ),
            (
                "2026-01-01T00:00:00.000000001Z stderr P text",
                Some((1, LogStream::Stderr, false)),
            ),
            (
                "2026-01-01T02:00:00+02:00 stdout F ",
                Some((0, LogStream::Stdout, true)),
            ),
            (
                "2026-01-01T00:00:00Z stdout P:x y",
                Some((0, LogStream::Stdout, false)),
            ),
            (
                "2026-01-01T00:00:00Z stdout F:P y",
                Some((0, LogStream::Stdout, true)),
            ),
            (
                "2026-01-01T00:00:00Z stdout X y",
                Some((0, LogStream::Stdout, true)),
            ),
            ("2026-01-01T00:00:00Z stdout F", None),
            ("2026-01-01T00:00:00Z stdout F\n x y z", None),
            ("2026-01-01T00:00:00Z stdin F x", None),
            ("2026-01-01T00:00:00Z  stdout F x", None),
            ("2026-13-01T00:00:00Z stdout F x", None),
            ("yesterday stdout F x", None),
            ("\0\0\0\0", None),
            ("", None),
            (&*long_tag, None),
        ] {
            let header = Header::parse(record.as_bytes());
            let nanoseconds = |header: Header| header.time.as_nanosecond() - 1_767_225_600_000_000_000;
            assert_eq!(
                header.map(|header| (nanoseconds(header), header.stream, header.ends_line)),
                expected,
                "{record:?}"
            );
        }
        assert_eq!(Header::parse(b"\xff\xfe stdout F x"), None, "a time is text");
    }
}
