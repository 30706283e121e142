//! Where the last lines of a log begin.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::LogStream;
use super::header::{HEADER_BYTES_MAX, Header};

/// How much is read at once, from the end to the start.
const BLOCK_BYTES: u64 = 64 << 10;

/// Counts lines backwards, through one file after the other, newest first.
///
/// A line is what the reader sees as one: the records up to and with one that ends a line. What follows the last such
/// record is a line too.
#[derive(Debug)]
pub(crate) struct TailSearch {
    stream: Option<LogStream>,
    lines_wanted: u64,
    lines: u64,
    has_record: bool,
}

impl TailSearch {
    pub(crate) fn new(lines_wanted: u64, stream: Option<LogStream>) -> Self {
        Self {
            stream,
            lines_wanted,
            lines: 0,
            has_record: false,
        }
    }

    /// Goes through one more file. Answers with the offset where the wanted lines begin, or None when the whole file belongs
    /// to them and the file before it may too.
    pub(crate) fn begin_in(&mut self, file: &File) -> io::Result<Option<u64>> {
        let mut begin = None;
        let mut end = file.metadata()?.len();
        while end > 0 {
            let start = end.saturating_sub(BLOCK_BYTES);
            let own = usize::try_from(end - start).expect("a block fits in memory");
            // A header may reach into the block that was read before.
            let block = read_at(file, start, own + HEADER_BYTES_MAX)?;
            let own = &block[..own.min(block.len())];
            let newlines = own.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
            let records = newlines
                .map(|(newline, _)| newline + 1)
                .chain((start == 0).then_some(0));
            for record in records {
                let offset = start + record as u64;
                match self.visit(&block[record..]) {
                    Visit::Beyond => return Ok(Some(begin.unwrap_or(offset))),
                    Visit::Counted => begin = Some(offset),
                    // Behind the last newline: a record may be about to be written there.
                    Visit::Skipped => begin = begin.or(Some(offset)),
                }
            }
            end = start;
        }
        Ok(None)
    }

    fn visit(&mut self, record: &[u8]) -> Visit {
        let header = Header::parse(record);
        let Some(header) = header.filter(|header| self.stream.is_none_or(|stream| stream == header.stream))
        else {
            return Visit::Skipped;
        };
        if header.ends_line || !self.has_record {
            if self.lines == self.lines_wanted {
                return Visit::Beyond;
            }
            self.lines += 1;
        }
        self.has_record = true;
        Visit::Counted
    }
}

enum Visit {
    /// Part of the wanted lines.
    Counted,
    /// Damaged, not whole, or of the other stream.
    Skipped,
    /// The end of the line before the wanted ones.
    Beyond,
}

/// Up to `length` bytes from `offset`; fewer only at the end of the file.
fn read_at(file: &File, offset: u64, length: usize) -> io::Result<Vec<u8>> {
    let mut block = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut block[filled..], offset + filled as u64)? {
            0 => break,
            read => filled += read,
        }
    }
    block.truncate(filled);
    Ok(block)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn begin_of(log: &str, lines: u64, stream: Option<LogStream>) -> Option<u64> {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(log.as_bytes()).expect("written");
        TailSearch::new(lines, stream).begin_in(&file).expect("read")
    }

    #[test]
    fn pieces_of_a_line_count_once() {
        let record = |tag: &str| format!("2026-01-01T00:00:00Z stdout {tag} x\n");
        let length = record("F").len() as u64;
        for (tags, lines, expected) in [
            ("", 1, None),
            ("F", 0, Some(1)),
            ("F", 1, None),
            ("FF", 1, Some(1)),
            ("FPPF", 1, Some(1)),
            ("FPPF", 2, None),
            ("FPPFP", 1, Some(4)),
            ("FPPFPP", 2, Some(1)),
            ("PF", 1, None),
            ("PP", 0, Some(2)),
            ("PP", 1, None),
        ] {
            let log: String = tags.chars().map(|tag| record(&tag.to_string())).collect();
            assert_eq!(
                begin_of(&log, lines, None),
                expected.map(|records: u64| records * length),
                "{tags} {lines}"
            );
        }
    }

    #[test]
    fn the_other_stream_and_damage_do_not_count() {
        let out = "2026-01-01T00:00:00Z stdout F x\n";
        let err = "2026-01-01T00:00:00Z stderr F x\n";
        let log = [out, "damage\n", err, out, err, "\n"].concat();
        let at = |parts: &[&str]| Some(parts.concat().len() as u64);
        assert_eq!(begin_of(&log, 1, None), at(&[out, "damage\n", err, out]));
        assert_eq!(
            begin_of(&log, 1, Some(LogStream::Stdout)),
            at(&[out, "damage\n", err])
        );
        assert_eq!(begin_of(&log, 2, Some(LogStream::Stderr)), None);
    }

    #[test]
    fn a_record_being_written_is_not_cut() {
        let out = "2026-01-01T00:00:00Z stdout F x\n";
        for written in [
            "",
            "2026",
            "2026-01-01T00:00:00Z stdout F",
            "2026-01-01T00:00:00Z stdout F be",
        ] {
            let log = [out, out, written].concat();
            assert_eq!(begin_of(&log, 0, None), Some(2 * out.len() as u64), "{written:?}");
        }
    }

    #[test]
    fn headers_are_found_wherever_a_block_begins() {
        let record = "2026-01-01T00:00:00.123456789Z stdout F xy\n";
        let last = format!(
            "2026-01-01T00:00:00.123456789Z stdout F {}\n",
            "z".repeat(BLOCK_BYTES as usize - 60)
        );
        for shift in 0..2 * record.len() {
            let log = [&record.repeat(4), &last[..last.len() - 1 - shift], "\n", record].concat();
            assert_eq!(begin_of(&log, 3, None), Some(3 * record.len() as u64), "{shift}");
        }
    }
}
