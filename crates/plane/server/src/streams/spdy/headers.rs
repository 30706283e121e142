//! The headers of SPDY/3.1: names and values, in one zlib stream per direction that is flushed after each block.

use std::sync::LazyLock;

use miniz_oxide::inflate::{
    TINFLStatus,
    core::{DecompressorOxide, decompress, inflate_flags::TINFL_FLAG_HAS_MORE_INPUT},
};

use super::SpdyError;

/// What one block may unpack to: three short headers are some 60 bytes.
const BLOCK_BYTES_MAX: usize = 16 * 1024;
/// How far back a compressed stream refers.
const WINDOW_BYTES: usize = 32 * 1024;
/// Checksum of the dictionary (draft 3 of SPDY, 2.6.10.1), by which a stream names it.
const DICTIONARY_ID: [u8; 4] = [0xe3, 0xc6, 0xa7, 0xc2];

/// The words that both sides know; each after its length in four bytes.
const WORDS: [&str; 65] = [
    "options",
    "head",
    "post",
    "put",
    "delete",
    "trace",
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "accept-ranges",
    "age",
    "allow",
    "authorization",
    "cache-control",
    "connection",
    "content-base",
    "content-encoding",
    "content-language",
    "content-length",
    "content-location",
    "content-md5",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expect",
    "expires",
    "from",
    "host",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "last-modified",
    "location",
    "max-forwards",
    "pragma",
    "proxy-authenticate",
    "proxy-authorization",
    "range",
    "referer",
    "retry-after",
    "server",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "method",
    "get",
    "status",
    "200 OK",
    "version",
    "HTTP/1.1",
    "url",
    "public",
    "set-cookie",
    "keep-alive",
    "origin",
];
/// What follows them.
const PHRASES: &str = "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505\
    203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden\
    404 Not Found500 Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug \
    Sept Oct Nov Dec 00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,\
    application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,\
    sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

static DICTIONARY: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let words = WORDS.iter().flat_map(|word| {
        let length = (word.len() as u32).to_be_bytes();
        length.into_iter().chain(word.bytes())
    });
    words.chain(PHRASES.bytes()).collect()
});

/// Unpacks what one side sends.
pub(super) struct HeaderReader {
    inflating: Box<DecompressorOxide>,
    /// What was unpacked last, in a ring; the dictionary counts as unpacked before everything.
    window: Box<[u8]>,
    position: usize,
    is_begun: bool,
}

impl HeaderReader {
    pub(super) fn new() -> Self {
        let mut window = vec![0; WINDOW_BYTES].into_boxed_slice();
        window[..DICTIONARY.len()].copy_from_slice(&DICTIONARY);
        Self {
            inflating: Box::default(),
            window,
            position: DICTIONARY.len(),
            is_begun: false,
        }
    }

    /// The headers of one block.
    ///
    /// # Errors
    ///
    /// It is no such block, or unpacks to more than 16 KiB; nothing after it can be read.
    pub(super) fn read(&mut self, mut packed: &[u8]) -> Result<Vec<(String, String)>, SpdyError> {
        if !self.is_begun {
            packed = behind_zlib_header(packed).ok_or(SpdyError::Headers)?;
            self.is_begun = true;
        }
        let block = self.inflate(packed)?;
        parse(&block).ok_or(SpdyError::Headers)
    }

    fn inflate(&mut self, mut packed: &[u8]) -> Result<Vec<u8>, SpdyError> {
        let mut block = Vec::new();
        loop {
            let (status, taken, made) = decompress(
                &mut self.inflating,
                packed,
                &mut self.window,
                self.position,
                TINFL_FLAG_HAS_MORE_INPUT,
            );
            packed = &packed[taken..];
            block.extend_from_slice(&self.window[self.position..self.position + made]);
            self.position = (self.position + made) % WINDOW_BYTES;
            if block.len() > BLOCK_BYTES_MAX {
                return Err(SpdyError::Headers);
            }
            match status {
                TINFLStatus::NeedsMoreInput if packed.is_empty() => return Ok(block),
                TINFLStatus::HasMoreOutput if made > 0 || self.position == 0 => {}
                _ => return Err(SpdyError::Headers),
            }
        }
    }
}

/// What is behind the two or six bytes that begin a zlib stream (RFC 1950).
fn behind_zlib_header(packed: &[u8]) -> Option<&[u8]> {
    let ([method, flags], rest) = packed.split_first_chunk()?;
    let is_deflate = method & 0x0f == 8 && u16::from_be_bytes([*method, *flags]).is_multiple_of(31);
    let has_dictionary = flags & 0x20 != 0;
    match (is_deflate, has_dictionary) {
        (false, _) => None,
        (true, false) => Some(rest),
        (true, true) => rest.strip_prefix(&DICTIONARY_ID),
    }
}

/// How many there are, then name and value of each, every one after its length in four bytes.
fn parse(mut block: &[u8]) -> Option<Vec<(String, String)>> {
    let count = number(&mut block)?;
    let mut headers = Vec::new();
    for _ in 0..count {
        headers.push((text(&mut block)?, text(&mut block)?));
    }
    block.is_empty().then_some(headers)
}

fn text(block: &mut &[u8]) -> Option<String> {
    let length = number(block)? as usize;
    let (text, rest) = block.split_at_checked(length)?;
    *block = rest;
    String::from_utf8(text.to_vec()).ok()
}

fn number(block: &mut &[u8]) -> Option<u32> {
    let (number, rest) = block.split_first_chunk()?;
    *block = rest;
    Some(u32::from_be_bytes(*number))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adler-32 (RFC 1950).
    fn checksum(bytes: &[u8]) -> u32 {
        let (low, high) = bytes.iter().fold((1u32, 0u32), |(low, high), byte| {
            let low = (low + u32::from(*byte)) % 65_521;
            (low, (high + low) % 65_521)
        });
        high << 16 | low
    }

    #[test]
    fn the_dictionary_is_the_one_that_clients_name() {
        assert_eq!(DICTIONARY.len(), 1_423);
        assert_eq!(checksum(&DICTIONARY).to_be_bytes(), DICTIONARY_ID);
    }

    #[test]
    fn a_block_that_unpacks_to_too_much_is_refused() {
        let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        std::io::Write::write_all(&mut writer, &vec![0; 1 << 20]).expect("written");
        std::io::Write::flush(&mut writer).expect("flushed");
        let bomb = writer.get_ref().clone();
        assert!(bomb.len() < 4_096);
        assert_eq!(HeaderReader::new().read(&bomb), Err(SpdyError::Headers));
    }

    #[test]
    fn a_long_session_goes_round_the_window() {
        let mut writer = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
        let mut reader = HeaderReader::new();
        for turn in 0..4_000u32 {
            let value = turn.to_string();
            let name = b"requestid";
            let mut block = 1u32.to_be_bytes().to_vec();
            for text in [&name[..], value.as_bytes()] {
                block.extend((text.len() as u32).to_be_bytes());
                block.extend(text);
            }
            std::io::Write::write_all(&mut writer, &block).expect("written");
            std::io::Write::flush(&mut writer).expect("flushed");
            let packed = std::mem::take(writer.get_mut());
            let headers = reader.read(&packed).expect("headers");
            assert_eq!(headers, [("requestid".to_owned(), value)]);
        }
    }
}
