//! Tar archives in the format of POSIX (ustar): regular files and directories, owned by root.

use anyhow::ensure;

const BLOCK_BYTES: usize = 512;

/// An archive in the making. Entries come in the order they are added; directories go before what is in them.
pub(super) struct Tarball {
    time: u64,
    out: Vec<u8>,
}

impl Tarball {
    /// An archive whose entries have this time, seconds since 1970.
    pub(super) fn new(time: u64) -> Self {
        Self {
            time,
            out: Vec::new(),
        }
    }

    pub(super) fn directory(&mut self, path: &str, mode: u32) -> anyhow::Result<()> {
        self.entry(&format!("{path}/"), mode, b'5', &[])
    }

    pub(super) fn file(&mut self, path: &str, mode: u32, content: &[u8]) -> anyhow::Result<()> {
        self.entry(path, mode, b'0', content)
    }

    /// The archive, with the two empty blocks at its end.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.out.resize(self.out.len() + 2 * BLOCK_BYTES, 0);
        self.out
    }

    fn entry(&mut self, path: &str, mode: u32, kind: u8, content: &[u8]) -> anyhow::Result<()> {
        ensure!(path.len() < 100, "{path} is too long for a tar archive");
        ensure!(content.len() < 1 << 33, "{path} is too large for a tar archive");
        let mut header = [0_u8; BLOCK_BYTES];
        let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, path.as_bytes());
        put(100, format!("{mode:07o}").as_bytes());
        put(108, b"0000000");
        put(116, b"0000000");
        put(124, format!("{:011o}", content.len()).as_bytes());
        put(136, format!("{:011o}", self.time).as_bytes());
        put(156, &[kind]);
        put(257, b"ustar\x0000");
        put(265, b"root");
        put(297, b"root");
        // The sum is taken with spaces in its own place.
        put(148, b"        ");
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        self.out.extend_from_slice(&header);
        self.out.extend_from_slice(content);
        let whole = self.out.len().next_multiple_of(BLOCK_BYTES);
        self.out.resize(whole, 0);
        Ok(())
    }
}
