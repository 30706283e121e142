//! As much of SPDY/3.1 as carries forwarded ports: frames in, frames out, no I/O.
//!
//! ```text
//!   control   1 │ version 15 │ type 16 │ flags 8 │ length 24 │ what the type says
//!   data      0 │ stream 31            │ flags 8 │ length 24 │ bytes
//! ```
//!
//! Clients of Kubernetes speak it with `github.com/moby/spdystream`, which knows neither windows nor priorities on the wire.
//! What it does not send is not read here; what it may send and nobody needs is passed over.

mod headers;

use bytes::{Buf, BufMut, Bytes, BytesMut};

use headers::HeaderReader;

/// Data comes in pieces of a copy's buffer, 32 KiB; a client that sends more than this at once is not one of them.
const DATA_BYTES_MAX: usize = 1024 * 1024;
/// A stream is opened with three short headers.
const CONTROL_BYTES_MAX: usize = 16 * 1024;

const VERSION: u16 = 3;
const SYN_STREAM: u16 = 1;
const SYN_REPLY: u16 = 2;
const RST_STREAM: u16 = 3;
const PING: u16 = 6;
const GOAWAY: u16 = 7;
const HEADERS: u16 = 8;

const FIN: u8 = 1;

/// Why a stream is reset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResetReason {
    Protocol = 1,
    Refused = 3,
}

/// What a client sent.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A new stream, of names in lower case and values.
    Open {
        stream: u32,
        is_finished: bool,
        headers: Vec<(String, String)>,
    },
    Data {
        stream: u32,
        is_last: bool,
        data: Bytes,
    },
    Reset {
        stream: u32,
    },
    Ping(u32),
    /// No stream comes after this one.
    GoAway,
    /// Of no importance here.
    Other,
}

/// What makes a connection useless.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum SpdyError {
    #[error("a frame of SPDY version {0}")]
    Version(u16),
    #[error("a frame of {0} bytes")]
    TooLong(usize),
    #[error("a frame of type {0} that is too short")]
    TooShort(u16),
    #[error("headers that cannot be unpacked")]
    Headers,
}

/// Cuts bytes into frames. The headers of all of them are one compressed stream, so it sees every one.
pub(super) struct FrameReader {
    buffer: BytesMut,
    headers: HeaderReader,
}

impl FrameReader {
    pub(super) fn new() -> Self {
        Self {
            buffer: BytesMut::new(),
            headers: HeaderReader::new(),
        }
    }

    pub(super) fn extend(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame.
    ///
    /// # Errors
    ///
    /// The connection is of no use any more.
    pub(super) fn next_frame(&mut self) -> Result<Option<Frame>, SpdyError> {
        let Some(head) = self.buffer.first_chunk::<8>() else {
            return Ok(None);
        };
        let [a, b, c, d, flags, l1, l2, l3] = *head;
        let length = u32::from_be_bytes([0, l1, l2, l3]) as usize;
        let is_control = a & 0x80 != 0;
        let most = if is_control {
            CONTROL_BYTES_MAX
        } else {
            DATA_BYTES_MAX
        };
        if length > most {
            return Err(SpdyError::TooLong(length));
        }
        if self.buffer.len() < 8 + length {
            return Ok(None);
        }
        self.buffer.advance(8);
        let body = self.buffer.split_to(length).freeze();
        if !is_control {
            return Ok(Some(Frame::Data {
                stream: u32::from_be_bytes([a, b, c, d]),
                is_last: flags & FIN != 0,
                data: body,
            }));
        }
        let version = u16::from_be_bytes([a & 0x7f, b]);
        if version != VERSION {
            return Err(SpdyError::Version(version));
        }
        self.control(u16::from_be_bytes([c, d]), flags, body).map(Some)
    }

    fn control(&mut self, kind: u16, flags: u8, mut body: Bytes) -> Result<Frame, SpdyError> {
        let needed = match kind {
            SYN_STREAM => 10,
            SYN_REPLY | HEADERS | PING => 4,
            RST_STREAM => 8,
            _ => 0,
        };
        if body.len() < needed {
            return Err(SpdyError::TooShort(kind));
        }
        Ok(match kind {
            SYN_STREAM => {
                let stream = body.get_u32() & 0x7fff_ffff;
                // The stream it belongs to, its priority and its slot.
                body.advance(6);
                Frame::Open {
                    stream,
                    is_finished: flags & FIN != 0,
                    headers: self.headers.read(&body)?,
                }
            }
            SYN_REPLY | HEADERS => {
                body.advance(4);
                self.headers.read(&body)?;
                Frame::Other
            }
            RST_STREAM => Frame::Reset {
                stream: body.get_u32() & 0x7fff_ffff,
            },
            PING => Frame::Ping(body.get_u32()),
            GOAWAY => Frame::GoAway,
            _ => Frame::Other,
        })
    }
}

/// Makes the frames that accept streams: their headers are one compressed stream too.
pub(super) struct ReplyWriter {
    is_begun: bool,
}

impl ReplyWriter {
    /// Nothing is said in a reply, and nothing is packed: the compressed stream is made of stored blocks. The empty one is a
    /// flush, without which Go's reader waits for the next block and fails.
    const NO_HEADERS: [u8; 14] = [0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    /// What a zlib stream begins with (RFC 1950), without a dictionary.
    const ZLIB: [u8; 2] = [0x78, 0x01];

    pub(super) fn new() -> Self {
        Self { is_begun: false }
    }

    pub(super) fn reply(&mut self, stream: u32) -> Bytes {
        let mut body = BytesMut::new();
        body.put_u32(stream);
        if !std::mem::replace(&mut self.is_begun, true) {
            body.put_slice(&Self::ZLIB);
        }
        body.put_slice(&Self::NO_HEADERS);
        control(SYN_REPLY, &body)
    }
}

/// A piece of a stream; `is_last`: nothing comes after it.
pub(super) fn data(stream: u32, data: &[u8], is_last: bool) -> Bytes {
    let mut frame = BytesMut::with_capacity(8 + data.len());
    frame.put_u32(stream);
    put_length(&mut frame, if is_last { FIN } else { 0 }, data.len());
    frame.put_slice(data);
    frame.freeze()
}

pub(super) fn reset(stream: u32, reason: ResetReason) -> Bytes {
    let mut body = BytesMut::new();
    body.put_u32(stream);
    body.put_u32(reason as u32);
    control(RST_STREAM, &body)
}

pub(super) fn ping(id: u32) -> Bytes {
    control(PING, &id.to_be_bytes())
}

fn control(kind: u16, body: &[u8]) -> Bytes {
    let mut frame = BytesMut::with_capacity(8 + body.len());
    frame.put_u16(0x8000 | VERSION);
    frame.put_u16(kind);
    put_length(&mut frame, 0, body.len());
    frame.put_slice(body);
    frame.freeze()
}

fn put_length(frame: &mut BytesMut, flags: u8, length: usize) {
    debug_assert!(length < 1 << 24, "a length has 24 bits");
    frame.put_u32(u32::from(flags) << 24 | length as u32);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What `github.com/moby/spdystream` sends for two streams of one connection to port 8080, compressed with zlib.
    const ERROR_HEADERS: [u8; 51] = *b"\x78\xf9\xe3\xc6\xa7\xc2\x02\x25\x3a\x48\xf9\x5b\x04\x4e\xea\x16\x06\x16\
        \x06\x40\x9a\xb3\x08\x12\x5f\x99\xa0\x74\xcc\x68\x00\x4e\x89\x25\x45\xa9\x89\xb9\xd0\xc2\x86\x35\x15\x14\
        \x15\x00\x00\x00\x00\xff\xff";
    const DATA_HEADERS: [u8; 12] = *b"\x22\x53\x33\xa8\xa4\x4a\x04\x00\x00\x00\xff\xff";

    fn open(stream: u32, headers: &[u8]) -> Vec<u8> {
        let mut body = stream.to_be_bytes().to_vec();
        body.extend([0; 6]);
        body.extend(headers);
        control(SYN_STREAM, &body).to_vec()
    }

    fn read(bytes: &[u8], cut: usize) -> Result<Vec<Frame>, SpdyError> {
        let mut reader = FrameReader::new();
        let mut frames = Vec::new();
        for chunk in bytes.chunks(cut) {
            reader.extend(chunk);
            while let Some(frame) = reader.next_frame()? {
                frames.push(frame);
            }
        }
        Ok(frames)
    }

    fn opened(stream: u32, kind: &str) -> Frame {
        let headers = [("port", "8080"), ("requestid", "0"), ("streamtype", kind)];
        Frame::Open {
            stream,
            is_finished: false,
            headers: headers
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
        }
    }

    #[test]
    fn streams_are_opened_as_spdystream_opens_them() {
        let bytes = [
            open(1, &ERROR_HEADERS),
            open(3, &DATA_HEADERS),
            data(3, b"hello", false).to_vec(),
            data(3, b"", true).to_vec(),
            ping(1).to_vec(),
            reset(3, ResetReason::Refused).to_vec(),
            control(GOAWAY, &[0; 8]).to_vec(),
            control(4, &[0; 4]).to_vec(),
        ]
        .concat();
        for cut in [1, 7, bytes.len()] {
            let piece = |is_last, data: &'static [u8]| Frame::Data {
                stream: 3,
                is_last,
                data: Bytes::from_static(data),
            };
            let expected = [
                opened(1, "error"),
                opened(3, "data"),
                piece(false, b"hello"),
                piece(true, b""),
                Frame::Ping(1),
                Frame::Reset { stream: 3 },
                Frame::GoAway,
                Frame::Other,
            ];
            assert_eq!(read(&bytes, cut).expect("frames"), expected);
        }
    }

    #[test]
    fn what_breaks_a_rule_ends_the_connection() {
        let mut too_long = data(1, b"", false).to_vec();
        too_long[5..8].copy_from_slice(&[0xff; 3]);
        let mut old = ping(1).to_vec();
        old[1] = 2;
        let mut wrong = ERROR_HEADERS;
        wrong[3] ^= 1;
        for (bytes, error) in [
            (too_long, SpdyError::TooLong(0xff_ffff)),
            (old, SpdyError::Version(2)),
            (control(PING, &[0; 3]).to_vec(), SpdyError::TooShort(PING)),
            (open(1, &wrong), SpdyError::Headers),
            (open(1, &ERROR_HEADERS[..20]), SpdyError::Headers),
            (open(1, &[]), SpdyError::Headers),
        ] {
            assert_eq!(read(&bytes, 3), Err(error));
        }
    }

    #[test]
    fn replies_are_one_stream_of_stored_blocks() {
        let mut writer = ReplyWriter::new();
        let bytes = [writer.reply(1), writer.reply(3)].concat();
        let packed = [&bytes[12..28], &bytes[28 + 12..]].concat();
        let unpacked = flate2::read::ZlibDecoder::new(&packed[..]);
        let mut seen = Vec::new();
        // The stream goes on for as long as the connection: its end is missing.
        let _ = std::io::Read::read_to_end(&mut { unpacked }, &mut seen);
        assert_eq!(seen, [0; 8], "no headers, twice");
        assert_eq!(bytes[..8], [0x80, 3, 0, 2, 0, 0, 0, 20]);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), headers in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = read(&bytes, 16);
            let mut packed = ERROR_HEADERS.to_vec();
            packed.extend(headers);
            let _ = read(&open(1, &packed), 64);
        }
    }
}
