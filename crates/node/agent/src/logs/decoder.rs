//! From the bytes of CRI log files to the bytes a client sees. No file, no clock.

use std::io::Write;

use super::header::{HEADER_BYTES_MAX, Header};
use super::{LogOptions, LogStream};

/// Takes a log in blocks, cut anywhere, and holds of it never more than one header.
#[derive(Debug)]
pub(crate) struct Decoder {
    stream: Option<LogStream>,
    since: Option<jiff::Timestamp>,
    timestamps: bool,
    bytes_left: u64,
    lines_left: u64,
    record: Record,
    line: Line,
    damaged: u64,
}

/// Where in a record the next byte lies.
#[derive(Debug)]
enum Record {
    /// This much of the header is there.
    Header { start: Vec<u8>, spaces: u8 },
    /// The content of a wanted record.
    Content { ends_line: bool },
    /// The rest of a record that nobody wants.
    Unwanted,
}

/// Where in a line, as the client sees lines, the next content belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Start,
    Shown,
    /// It began before `since`.
    TooOld,
}

impl Decoder {
    pub(crate) fn new(options: &LogOptions) -> Self {
        Self {
            stream: options.stream,
            since: options.since,
            timestamps: options.timestamps,
            bytes_left: options.limit_bytes.unwrap_or(u64::MAX),
            // Lines that arrive while the tail is read are not part of it, unless they are waited for.
            lines_left: if options.follow {
                u64::MAX
            } else {
                options.tail_lines.unwrap_or(u64::MAX)
            },
            record: Record::start(),
            line: Line::Start,
            damaged: 0,
        }
    }

    /// Whether a limit is reached: all that comes is ignored.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes_left == 0 || self.lines_left == 0
    }

    /// The next byte is the first of a record: a file begins, or begins again. What is not whole is given up.
    pub(crate) fn restart(&mut self) {
        self.record = Record::start();
    }

    /// How many damaged records were left out since the last call.
    pub(crate) fn take_damaged(&mut self) -> u64 {
        std::mem::take(&mut self.damaged)
    }

    /// Appends to `out` what the client sees of these bytes.
    pub(crate) fn push(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        while !bytes.is_empty() && !self.is_full() {
            let used = match &mut self.record {
                Record::Header { .. } => self.push_header(bytes, out),
                Record::Content { ends_line } => {
                    let ends_line = *ends_line;
                    self.push_content(bytes, ends_line, out)
                }
                Record::Unwanted => self.skip(bytes),
            };
            bytes = &bytes[used..];
        }
    }

    fn push_header(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> usize {
        let Record::Header { start, spaces } = &mut self.record else {
            return 0;
        };
        for (index, byte) in bytes.iter().enumerate() {
            start.push(*byte);
            *spaces += u8::from(*byte == b' ');
            let is_whole = *spaces == 3;
            if is_whole || *byte == b'\n' || start.len() == HEADER_BYTES_MAX {
                let header = if is_whole { Header::parse(start) } else { None };
                start.clear();
                *spaces = 0;
                if header.is_none() {
                    self.damaged += 1;
                }
                if *byte != b'\n' {
                    self.begin_record(header, out);
                }
                return index + 1;
            }
        }
        bytes.len()
    }

    fn begin_record(&mut self, header: Option<Header>, out: &mut Vec<u8>) {
        let Some(header) = header.filter(|header| self.stream.is_none_or(|stream| stream == header.stream))
        else {
            self.record = Record::Unwanted;
            return;
        };
        self.record = Record::Content {
            ends_line: header.ends_line,
        };
        if self.line != Line::Start {
            return;
        }
        if self.since.is_some_and(|since| header.time < since) {
            self.line = Line::TooOld;
            return;
        }
        self.line = Line::Shown;
        if self.timestamps {
            let mut prefix = Vec::with_capacity(32);
            write!(prefix, "{:.9} ", header.time).expect("a vector takes every write");
            self.emit(&prefix, out);
        }
    }

    fn push_content(&mut self, bytes: &[u8], ends_line: bool, out: &mut Vec<u8>) -> usize {
        let newline = bytes.iter().position(|byte| *byte == b'\n');
        let used = newline.map_or(bytes.len(), |newline| newline + 1);
        let shown = if ends_line { used } else { newline.unwrap_or(used) };
        if self.line == Line::Shown {
            self.emit(&bytes[..shown], out);
        }
        if newline.is_some() {
            self.record = Record::start();
            if ends_line {
                self.line = Line::Start;
                self.lines_left -= 1;
            }
        }
        used
    }

    fn skip(&mut self, bytes: &[u8]) -> usize {
        let Some(newline) = bytes.iter().position(|byte| *byte == b'\n') else {
            return bytes.len();
        };
        self.record = Record::start();
        newline + 1
    }

    fn emit(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let room = usize::try_from(self.bytes_left).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(room)];
        out.extend_from_slice(bytes);
        self.bytes_left -= bytes.len() as u64;
    }
}

impl Record {
    fn start() -> Self {
        Self::Header {
            start: Vec::new(),
            spaces: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::logs::testing::{LINE_BYTES_MAX, records};

    fn decode(options: &LogOptions, blocks: &[&[u8]]) -> (Vec<u8>, u64) {
        let mut decoder = Decoder::new(options);
        let mut out = Vec::new();
        blocks.iter().for_each(|block| decoder.push(block, &mut out));
        (out, decoder.take_damaged())
    }

    fn check(options: &LogOptions, log: &str, expected: &str) {
        let (out, _) = decode(options, &[log.as_bytes()]);
        assert_eq!(String::from_utf8_lossy(&out), expected, "{options:?} of {log:?}");
        let bytes: Vec<&[u8]> = log.as_bytes().chunks(1).collect();
        assert_eq!(
            decode(options, &bytes).0,
            out,
            "byte by byte: {options:?} of {log:?}"
        );
    }

    const MIXED: &str = "2026-01-01T00:00:01Z stdout F one\n\
        2026-01-01T00:00:02Z stdout P two\n\
        2026-01-01T00:00:03Z stdout P -and\n\
        2026-01-01T00:00:04Z stdout F -a-half\n\
        2026-01-01T00:00:05Z stderr F three\n\
        2026-01-01T00:00:06Z stdout F \n\
        2026-01-01T00:00:07Z stdout P end";

    #[test]
    fn options_choose_what_is_shown() {
        let all = LogOptions::default();
        let at = |text: &str| Some(text.parse().expect("a time"));
        check(&all, MIXED, "one\ntwo-and-a-half\nthree\n\nend");
        for (stream, expected) in [
            (LogStream::Stdout, "one\ntwo-and-a-half\n\nend"),
            (LogStream::Stderr, "three\n"),
        ] {
            check(
                &LogOptions {
                    stream: Some(stream),
                    ..all.clone()
                },
                MIXED,
                expected,
            );
        }
        for (since, expected) in [
            ("2026-01-01T00:00:01Z", "one\ntwo-and-a-half\nthree\n\nend"),
            ("2026-01-01T00:00:01.000000001Z", "two-and-a-half\nthree\n\nend"),
            // A line is as old as its beginning.
            ("2026-01-01T00:00:03Z", "three\n\nend"),
            ("2027-01-01T00:00:00Z", ""),
        ] {
            check(
                &LogOptions {
                    since: at(since),
                    ..all.clone()
                },
                MIXED,
                expected,
            );
        }
        check(
            &LogOptions {
                timestamps: true,
                since: at("2026-01-01T00:00:02Z"),
                ..all.clone()
            },
            MIXED,
            "2026-01-01T00:00:02.000000000Z two-and-a-half\n2026-01-01T00:00:05.000000000Z three\n\
             2026-01-01T00:00:06.000000000Z \n2026-01-01T00:00:07.000000000Z end",
        );
        check(
            &LogOptions {
                tail_lines: Some(2),
                ..all.clone()
            },
            MIXED,
            "one\ntwo-and-a-half\n",
        );
        check(
            &LogOptions {
                tail_lines: Some(2),
                follow: true,
                ..all.clone()
            },
            MIXED,
            "one\ntwo-and-a-half\nthree\n\nend",
        );
    }

    #[test]
    fn a_limit_cuts_to_the_byte() {
        let all = "one\ntwo-and-a-half\nthree\n\nend";
        for limit in 0..=all.len() + 1 {
            let options = LogOptions {
                limit_bytes: Some(limit as u64),
                ..LogOptions::default()
            };
            check(&options, MIXED, &all[..limit.min(all.len())]);
        }
        let options = LogOptions {
            limit_bytes: Some(5),
            timestamps: true,
            ..LogOptions::default()
        };
        check(&options, MIXED, "2026-");
    }

    #[test]
    fn damaged_records_are_left_out_and_counted() {
        let endless = format!("{}\n", "x".repeat(300_000));
        for (damaged, count) in [
            ("\n", 1),
            ("no header\n", 1),
            ("2026-01-01T00:00:00Z stdout F\n", 1),
            ("a b c d\n", 1),
            (&*endless, 1),
        ] {
            let log = format!(
                "2026-01-01T00:00:00Z stdout F before\n{damaged}2026-01-01T00:00:00Z stdout F after\n{damaged}"
            );
            check(&LogOptions::default(), &log, "before\nafter\n");
            assert_eq!(
                decode(&LogOptions::default(), &[log.as_bytes()]).1,
                2 * count,
                "{log:.80?}"
            );
        }
    }

    #[test]
    fn a_record_that_stops_short_does_not_spoil_the_next_file() {
        let mut decoder = Decoder::new(&LogOptions::default());
        let mut out = Vec::new();
        for torn in [
            "2026-01-01T00:00:00Z std",
            "2026-01-01T00:00:00Z stdout F to",
            "bad",
        ] {
            decoder.push(torn.as_bytes(), &mut out);
            decoder.restart();
            decoder.push(b"2026-01-01T00:00:00Z stdout F rn\n", &mut out);
        }
        assert_eq!(out, b"rn\ntorn\nrn\n");
    }

    #[test]
    fn a_line_of_10_mib_is_never_held() {
        let line = [vec![b'x'; 10 << 20], b"\n".to_vec()].concat();
        let log = records("2026-01-01T00:00:00.000000000Z", LogStream::Stdout, &line);
        let options = LogOptions {
            timestamps: true,
            tail_lines: Some(1),
            ..LogOptions::default()
        };
        let mut decoder = Decoder::new(&options);
        let mut length = 0;
        for block in log.chunks(10_000) {
            let mut out = Vec::new();
            decoder.push(block, &mut out);
            assert!(out.len() <= block.len());
            length += out.len();
        }
        assert_eq!(length, "2026-01-01T00:00:00.000000000Z ".len() + line.len());
        assert!(decoder.is_full());
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_wherever_it_is_cut(
            content in prop::collection::vec(prop_oneof![
                Just(b"\n".to_vec()),
                prop::collection::vec(any::<u8>(), 0..40),
                (any::<u8>(), 0..3 * LINE_BYTES_MAX).prop_map(|(byte, length)| vec![byte; length]),
                (any::<u8>(), 0usize..3).prop_map(|(byte, more)| vec![byte; LINE_BYTES_MAX - 1 + more]),
            ], 0..12),
            block in 1usize..70_000,
        ) {
            let content = content.concat();
            let log = records("2026-01-01T00:00:00.5Z", LogStream::Stderr, &content);
            let blocks: Vec<&[u8]> = log.chunks(block).collect();
            prop_assert_eq!(decode(&LogOptions::default(), &blocks), (content, 0));
        }

        #[test]
        fn no_bytes_make_it_panic_and_blocks_do_not_matter(
            log in prop::collection::vec(prop_oneof![
                Just(b"2026-01-01T00:00:00Z stdout P ".to_vec()),
                Just(b"2026-01-01T00:00:00Z stderr F ".to_vec()),
                Just(b"\n".to_vec()),
                prop::collection::vec(any::<u8>(), 0..40),
            ], 0..60),
            block in 1usize..100,
            tail_lines in prop::option::of(0u64..5),
            limit_bytes in prop::option::of(0u64..100),
        ) {
            let log = log.concat();
            let options = LogOptions { tail_lines, limit_bytes, timestamps: true, ..LogOptions::default() };
            let whole = decode(&options, &[&log]);
            let blocks: Vec<&[u8]> = log.chunks(block).collect();
            prop_assert_eq!(decode(&options, &blocks), whole);
        }
    }
}
