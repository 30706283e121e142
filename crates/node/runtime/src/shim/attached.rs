//! Who sees a container's output besides its log.
//!
//! A client brings pipes of its own, and what does not fit into one at once is lost to it: it is cut off, so that neither
//! the container nor its log ever waits for anybody. The pipe's size is the client's to choose; the shim holds nothing back.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::cri_log::Stream;

/// Clients of one container at once; each costs a copy of every piece of output.
pub(crate) const ATTACHED_MAX: usize = 16;

/// A client, and the pipes to it.
pub(crate) struct Attached {
    pub(crate) client: u64,
    pub(crate) stdout: Option<OwnedFd>,
    pub(crate) stderr: Option<OwnedFd>,
}

impl Attached {
    fn pipe(&mut self, stream: Stream) -> &mut Option<OwnedFd> {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }

    /// False if not all of it went.
    fn tell(&mut self, stream: Stream, mut bytes: &[u8]) -> bool {
        let pipe = self.pipe(stream);
        while let Some(open) = pipe
            && !bytes.is_empty()
        {
            match rustix::io::write(open, bytes) {
                Ok(length) => bytes = &bytes[length..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return false,
                // It reads this stream no more; the other one may still interest it.
                Err(_) => *pipe = None,
            }
        }
        true
    }
}

/// Passes output on to everybody. Who could not take all of it is removed and returned.
pub(crate) fn tell(attached: &mut Vec<Attached>, stream: Stream, bytes: &[u8]) -> Vec<u64> {
    let mut lost = Vec::new();
    attached.retain_mut(|one| {
        let took = one.tell(stream, bytes);
        if !took {
            lost.push(one.client);
        }
        took
    });
    lost
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use rustix::pipe::PipeFlags;

    use super::*;

    #[test]
    fn who_does_not_read_is_cut_off_and_nobody_else_notices() {
        let pipe = || {
            let (reader, writer) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC).expect("a pipe");
            rustix::io::ioctl_fionbio(&writer, true).expect("set");
            (std::fs::File::from(reader), writer)
        };
        let ((mut reader, first), (_asleep, second), (gone, third)) = (pipe(), pipe(), pipe());
        let client = |client, stdout| Attached {
            client,
            stdout: Some(stdout),
            stderr: None,
        };
        let mut attached = vec![client(1, first), client(2, second), client(3, third)];
        drop(gone);
        let piece = [b'x'; 40_000];
        let mut taken = [0; 40_000];
        assert!(tell(&mut attached, Stream::Stderr, &piece).is_empty());
        assert!(tell(&mut attached, Stream::Stdout, &piece).is_empty());
        reader.read_exact(&mut taken).expect("read");
        assert_eq!(tell(&mut attached, Stream::Stdout, &piece), [2]);
        let left: Vec<u64> = attached.iter().map(|one| one.client).collect();
        assert_eq!(left, [1, 3]);
        assert!(attached[1].stdout.is_none(), "it reads no more");
    }
}
