//! Cuts a stream of chunks into lines.

use bytes::{Buf, Bytes, BytesMut};

/// The longest line, in bytes. An object has at most 3 MiB as a request body; escaping and server-side fields
/// add less than the rest.
pub(crate) const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Chunks in, lines out; holds no more than one line and the chunk it ends in.
#[derive(Default)]
pub(crate) struct Lines {
    buffer: BytesMut,
    /// So many bytes at the start hold no line end: each byte is looked at once.
    searched: usize,
}

/// A line is longer than [`LINE_BYTES_MAX`].
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LineTooLong;

impl Lines {
    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// The next complete line, without its end; empty lines are passed over.
    pub(crate) fn next_line(&mut self) -> Result<Option<Bytes>, LineTooLong> {
        loop {
            let Some(end) = self.buffer[self.searched..]
                .iter()
                .position(|byte| *byte == b'\n')
            else {
                self.searched = self.buffer.len();
                return if self.searched > LINE_BYTES_MAX {
                    Err(LineTooLong)
                } else {
                    Ok(None)
                };
            };
            let line = self.buffer.split_to(self.searched + end).freeze();
            self.buffer.advance(1);
            self.searched = 0;
            if line.len() > LINE_BYTES_MAX {
                return Err(LineTooLong);
            }
            if !line.is_empty() {
                return Ok(Some(line));
            }
        }
    }

    /// Whether bytes of an unfinished line are left.
    pub(crate) fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn drain(lines: &mut Lines) -> Vec<Bytes> {
        std::iter::from_fn(|| lines.next_line().unwrap()).collect()
    }

    proptest! {
        #[test]
        fn chunks_cut_anywhere_give_the_same_lines(text in "[ab\n]{0,40}", cuts in prop::collection::vec(0..40_usize, 0..6)) {
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.extend([0, text.len()]);
            cuts.sort_unstable();
            let mut lines = Lines::default();
            let mut found = Vec::new();
            for pair in cuts.windows(2) {
                lines.push(&text.as_bytes()[pair[0]..pair[1]]);
                found.extend(drain(&mut lines));
            }
            let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
            let expected: Vec<&str> = complete.split('\n').filter(|line| !line.is_empty()).collect();
            prop_assert_eq!(found, expected);
            prop_assert_eq!(lines.is_empty(), text.is_empty() || text.ends_with('\n'));
        }
    }

    #[test]
    fn a_line_over_the_limit_is_an_error_whether_it_ends_or_not() {
        for (length, ended, allowed) in [
            (LINE_BYTES_MAX, true, true),
            (LINE_BYTES_MAX, false, true),
            (LINE_BYTES_MAX + 1, true, false),
            (LINE_BYTES_MAX + 1, false, false),
        ] {
            let mut lines = Lines::default();
            lines.push(&vec![b'x'; length]);
            if ended {
                lines.push(b"\n");
            }
            assert_eq!(lines.next_line().is_ok(), allowed, "{length} {ended}");
        }
    }
}
