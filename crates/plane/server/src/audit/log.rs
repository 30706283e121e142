//! The thread that writes records, so that no request waits for the disk.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Write},
    os::{
        fd::AsFd,
        unix::fs::{OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::{self, Receiver, SyncSender, TrySendError},
    },
    thread,
    time::{Duration, Instant},
};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tracing::warn;

use super::AuditTarget;
use crate::metrics::AuditCounts;

/// Lines that wait for the disk, and their bytes together: some seconds of a busy server.
const WAITING_LINES_MAX: usize = 16_384;
const WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Lines are written together up to this many bytes.
const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// How often a full queue is looked at while the server stops.
const FLUSH_RETRY: Duration = Duration::from_millis(10);

enum Message {
    Line(Vec<u8>),
    Flush(mpsc::SyncSender<()>),
}

/// A handle on the log. Dropping it lets the thread write the rest and end.
pub(super) struct AuditLog {
    waiting: SyncSender<Message>,
    shared: Arc<Shared>,
}

struct Shared {
    waiting_bytes: AtomicUsize,
    waiting_lines: AtomicUsize,
    /// Records that were lost since that was said; 0 while all are written.
    losing: AtomicUsize,
    counts: AuditCounts,
}

impl Shared {
    /// One warning for each time that records begin to be dropped; the metric has the number.
    fn lost(&self, lines: usize, why: &str) {
        self.counts.lost(lines);
        if lines > 0 && self.losing.fetch_add(lines, Ordering::Relaxed) == 0 {
            warn!(
                error = why,
                "audit records are being lost; apiserver_audit_error_total counts them"
            );
        }
    }

    /// It is over once the queue is empty: else one that is full again and again would be told of each time.
    fn written(&self, lines: usize) {
        self.counts.written(lines);
        if lines > 0 && self.waiting_lines.load(Ordering::Relaxed) == 0 {
            let lost = self.losing.swap(0, Ordering::Relaxed);
            if lost > 0 {
                warn!(lost, "audit records were lost; they are being written again");
            }
        }
    }

    fn taken(&self, lines: usize, bytes: usize) {
        self.waiting_lines.fetch_sub(lines, Ordering::Relaxed);
        self.waiting_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

impl AuditLog {
    pub(super) fn open(target: &AuditTarget, counts: AuditCounts) -> io::Result<Self> {
        let output: Box<dyn Output> = match target {
            AuditTarget::StandardOutput => Box::new(io::stdout()),
            AuditTarget::File {
                path,
                bytes_max,
                old_max,
            } => Box::new(Rotated::open(path, *bytes_max, *old_max)?),
        };
        let (log, lines) = Self::new(counts);
        let shared = log.shared.clone();
        thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || write_all(&lines, output, &shared))?;
        Ok(log)
    }

    fn new(counts: AuditCounts) -> (Self, Receiver<Message>) {
        let (waiting, lines) = mpsc::sync_channel(WAITING_LINES_MAX);
        let shared = Arc::new(Shared {
            waiting_bytes: AtomicUsize::new(0),
            waiting_lines: AtomicUsize::new(0),
            losing: AtomicUsize::new(0),
            counts,
        });
        (Self { waiting, shared }, lines)
    }

    /// Hands one line over, with its line feed. Never waits: where the disk cannot follow, the line is lost and counted.
    pub(super) fn push(&self, line: Vec<u8>) {
        let bytes = line.len();
        let waiting = self.shared.waiting_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.shared.waiting_lines.fetch_add(1, Ordering::Relaxed);
        let refused = match waiting + bytes > WAITING_BYTES_MAX {
            true => Some("too many bytes wait to be written"),
            false => match self.waiting.try_send(Message::Line(line)) {
                Ok(()) => None,
                Err(TrySendError::Full(_)) => Some("too many records wait to be written"),
                Err(TrySendError::Disconnected(_)) => Some("the writer is gone"),
            },
        };
        if let Some(why) = refused {
            self.shared.taken(1, bytes);
            self.shared.lost(1, why);
        }
    }

    /// Waits until what was pushed so far is written, for this long at most; what is not written then counts as lost.
    pub(super) fn flush(&self, patience: Duration) {
        let begun = Instant::now();
        let (done, is_done) = mpsc::sync_channel(1);
        let mut message = Message::Flush(done);
        loop {
            match self.waiting.try_send(message) {
                Ok(()) => break,
                Err(TrySendError::Full(refused)) if begun.elapsed() < patience => {
                    message = refused;
                    thread::sleep(FLUSH_RETRY);
                }
                Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => return self.given_up(),
            }
        }
        if is_done
            .recv_timeout(patience.saturating_sub(begun.elapsed()))
            .is_err()
        {
            return self.given_up();
        }
        // The metric ends with the server.
        let lost = self.shared.losing.swap(0, Ordering::Relaxed);
        if lost > 0 {
            warn!(lost, "audit records were lost before the end");
        }
    }

    fn given_up(&self) {
        let lost = self.shared.waiting_lines.load(Ordering::Relaxed);
        self.shared.counts.lost(lost);
        warn!(lost, "the last audit records could not be written before the end");
    }
}

fn write_all(lines: &Receiver<Message>, mut output: Box<dyn Output>, shared: &Shared) {
    let mut batch = Vec::new();
    let mut next = lines.recv().ok();
    while let Some(message) = next.take() {
        let (mut count, mut flushed) = (0, None);
        let mut message = Some(message);
        while let Some(one) = message.take() {
            match one {
                Message::Line(line) => {
                    batch.extend_from_slice(&line);
                    count += 1;
                }
                Message::Flush(done) => flushed = Some(done),
            }
            if flushed.is_none() && batch.len() < BATCH_BYTES_MAX {
                message = lines.try_recv().ok();
            }
        }
        let (written, result) = output.append(&batch);
        shared.taken(count, batch.len());
        let whole = batch[..written].iter().filter(|byte| **byte == b'\n').count();
        shared.written(whole);
        if let Err(error) = result {
            shared.lost(count - whole, &error.to_string());
        }
        batch.clear();
        batch.shrink_to(BATCH_BYTES_MAX);
        if let Some(done) = flushed {
            // Who asked may have lost patience.
            let _ = done.send(());
        }
        next = lines.recv().ok();
    }
}

/// Takes whole lines, and says how many of their bytes it took before it failed.
trait Output: Send {
    fn append(&mut self, lines: &[u8]) -> (usize, io::Result<()>);
}

impl Output for io::Stdout {
    fn append(&mut self, lines: &[u8]) -> (usize, io::Result<()>) {
        // The descriptor itself: std's buffer would keep what it could not write, and not say how much.
        match self.as_fd().try_clone_to_owned() {
            Ok(descriptor) => write_some(&mut File::from(descriptor), lines),
            Err(error) => (0, Err(error)),
        }
    }
}

/// A file that makes place for a new one when it is full: `FILE` becomes `FILE.1`, that `FILE.2`.
struct Rotated {
    path: PathBuf,
    bytes_max: u64,
    old_max: usize,
    file: File,
    /// `None`: it is no regular file, and is never full.
    bytes: Option<u64>,
    /// A write broke off within a line: the next one begins on a line of its own.
    is_torn: bool,
}

impl Rotated {
    fn open(path: &Path, bytes_max: u64, old_max: usize) -> io::Result<Self> {
        let (file, bytes) = open(path)?;
        Ok(Self {
            // A link stays a link: what it names is rotated.
            path: match bytes {
                Some(_) => fs::canonicalize(path)?,
                None => path.to_owned(),
            },
            bytes_max,
            old_max,
            file,
            bytes,
            is_torn: false,
        })
    }

    fn rotate(&mut self) -> io::Result<()> {
        let old = |number: usize| {
            let mut name = self.path.clone().into_os_string();
            name.push(format!(".{number}"));
            PathBuf::from(name)
        };
        // An attempt that ended half-way has moved the old ones already: they must not fall off the end for it.
        if fs::exists(&self.path)? {
            for number in (1..self.old_max).rev() {
                rename_if_there(&old(number), &old(number + 1))?;
            }
            match self.old_max {
                0 => fs::remove_file(&self.path)?,
                _ => rename_if_there(&self.path, &old(1))?,
            }
        }
        (self.file, self.bytes) = open(&self.path)?;
        self.is_torn = false;
        Ok(())
    }
}

impl Output for Rotated {
    fn append(&mut self, lines: &[u8]) -> (usize, io::Result<()>) {
        let is_full = |bytes: u64| bytes > 0 && bytes + lines.len() as u64 > self.bytes_max;
        if self.bytes.is_some_and(is_full)
            && let Err(error) = self.rotate()
        {
            return (0, Err(error));
        }
        if self.is_torn
            && let (_, Err(error)) = write_some(&mut self.file, b"\n")
        {
            return (0, Err(error));
        }
        let (written, result) = write_some(&mut self.file, lines);
        self.bytes = self.bytes.map(|bytes| bytes + written as u64);
        self.is_torn = match lines[..written].last() {
            Some(last) => *last != b'\n',
            None => false,
        };
        (written, result)
    }
}

/// As `write_all`, and says how far it came.
fn write_some(file: &mut File, bytes: &[u8]) -> (usize, io::Result<()>) {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return (written, Err(io::ErrorKind::WriteZero.into())),
            Ok(more) => written += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return (written, Err(error)),
        }
    }
    (written, Ok(()))
}

/// Only its owner may read what users do. What is no regular file, as `/dev/stderr`, is left as it is; a pipe that
/// nobody reads is an error and not waited for.
fn open(path: &Path) -> io::Result<(File, Option<u64>)> {
    let file = OpenOptions::new()
        .append(true)
        .create(true)
        .mode(0o600)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    // The thread that writes may wait.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Ok((file, None));
    }
    if metadata.permissions().mode() & 0o777 != 0o600 {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
    }
    Ok((file, Some(metadata.len())))
}

fn rename_if_there(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        renamed => renamed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    fn text(path: &Path) -> String {
        fs::read_to_string(path).unwrap_or_default()
    }

    #[test]
    fn a_full_file_makes_place_and_only_so_many_are_kept() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.log");
        let numbered = |number: usize| directory.path().join(format!("audit.log.{number}"));
        let mut file = Rotated::open(&path, 8, 2).expect("opens");
        for line in ["one\n", "two\n", "three\n", "four\n", "five\n"] {
            file.append(line.as_bytes()).1.expect("written");
        }
        assert_eq!(text(&path), "five\n");
        assert_eq!(
            (text(&numbered(1)), text(&numbered(2))),
            ("four\n".to_owned(), "three\n".to_owned())
        );
        assert!(!numbered(3).exists());
        for path in [&path, &numbered(1)] {
            assert_eq!(
                fs::metadata(path).expect("is there").permissions().mode() & 0o777,
                0o600
            );
        }
        // Opened anew it goes on where it was, and nobody else may read it.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("set");
        let mut file = Rotated::open(&path, 100, 2).expect("opens");
        file.append(b"six\n").1.expect("written");
        assert_eq!(text(&path), "five\nsix\n");
        assert_eq!(
            fs::metadata(&path).expect("is there").permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn what_the_disk_does_not_take_is_counted() {
        let metrics = Metrics::new(prometheus_client::registry::Registry::default());
        let target = AuditTarget::File {
            path: PathBuf::from("/dev/full"),
            bytes_max: u64::MAX,
            old_max: 1,
        };
        let log = AuditLog::open(&target, metrics.audit()).expect("opens");
        log.push(b"{}\n".to_vec());
        log.push(b"{}\n".to_vec());
        log.flush(Duration::from_secs(60));
        log.push(vec![b' '; WAITING_BYTES_MAX + 1]);
        let text = metrics.render(hotmap_object::Revision(1));
        assert!(
            text.contains("apiserver_audit_error_total{plugin=\"log\"} 3"),
            "{text}"
        );
        assert!(text.contains("apiserver_audit_event_total 0"), "{text}");
    }

    /// Takes so many bytes each time, as a disk that gets full.
    struct Narrow(File, usize);

    impl Output for Narrow {
        fn append(&mut self, lines: &[u8]) -> (usize, io::Result<()>) {
            let taken = &lines[..lines.len().min(self.1)];
            self.0.write_all(taken).expect("written");
            match taken.len() == lines.len() {
                true => (taken.len(), Ok(())),
                false => (taken.len(), Err(io::ErrorKind::StorageFull.into())),
            }
        }
    }

    #[test]
    fn lines_that_were_written_before_the_disk_was_full_are_not_counted_as_lost() {
        let metrics = Metrics::new(prometheus_client::registry::Registry::default());
        let (log, lines) = AuditLog::new(metrics.audit());
        for line in ["one\n", "two\n", "three\n"] {
            log.push(line.as_bytes().to_vec());
        }
        let shared = log.shared.clone();
        drop(log);
        let file = tempfile::tempfile().expect("a file");
        write_all(&lines, Box::new(Narrow(file, 9)), &shared);
        let text = metrics.render(hotmap_object::Revision(1));
        assert!(
            text.contains("apiserver_audit_error_total{plugin=\"log\"} 1"),
            "{text}"
        );
        assert!(text.contains("apiserver_audit_event_total 2"), "{text}");
        assert_eq!(shared.waiting_bytes.load(Ordering::Relaxed), 0);
        assert_eq!(shared.waiting_lines.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn nobody_waits_for_a_disk_that_stands_still() {
        let metrics = Metrics::new(prometheus_client::registry::Registry::default());
        // Nothing reads the queue.
        let (log, _lines) = AuditLog::new(metrics.audit());
        for _ in 0..WAITING_LINES_MAX + 5 {
            log.push(b"{}\n".to_vec());
        }
        let text = metrics.render(hotmap_object::Revision(1));
        assert!(
            text.contains("apiserver_audit_error_total{plugin=\"log\"} 5"),
            "{text}"
        );
        log.flush(Duration::ZERO);
        let text = metrics.render(hotmap_object::Revision(1));
        let all = WAITING_LINES_MAX + 5;
        assert!(
            text.contains(&format!("apiserver_audit_error_total{{plugin=\"log\"}} {all}")),
            "{text}"
        );
    }

    #[test]
    fn a_rotation_that_fails_half_way_loses_no_old_file() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.log");
        let numbered = |number: usize| directory.path().join(format!("audit.log.{number}"));
        let mut file = Rotated::open(&path, 4, 2).expect("opens");
        file.append(b"one\n").1.expect("written");
        file.append(b"two\n").1.expect("written");
        // As after a rotation that could not open the new file, many times.
        for _ in 0..3 {
            if path.exists() {
                fs::rename(&path, numbered(1)).expect("moved");
                fs::write(numbered(2), "one\n").expect("written");
            }
            file.rotate().expect("rotated");
            fs::remove_file(&path).expect("removed");
        }
        assert_eq!(
            (text(&numbered(1)), text(&numbered(2))),
            ("two\n".to_owned(), "one\n".to_owned())
        );
    }

    #[test]
    fn a_device_is_never_rotated_and_a_pipe_without_reader_is_an_error() {
        let mut device = Rotated::open(Path::new("/dev/null"), 1, 2).expect("opens");
        for _ in 0..3 {
            device.append(b"line\n").1.expect("written");
        }
        assert_eq!(device.bytes, None);
        assert!(!Path::new("/dev/null.1").exists());
        let directory = tempfile::tempdir().expect("a directory");
        let pipe = directory.path().join("pipe");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &pipe,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RWXU,
            0,
        )
        .expect("a pipe");
        assert!(Rotated::open(&pipe, 1, 2).is_err());
    }

    #[test]
    fn lines_are_whole_and_in_order() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("audit.log");
        let target = AuditTarget::File {
            path: path.clone(),
            bytes_max: u64::MAX,
            old_max: 1,
        };
        let metrics = Metrics::new(prometheus_client::registry::Registry::default());
        let log = AuditLog::open(&target, metrics.audit()).expect("opens");
        let lines: Vec<String> = (0..1000).map(|number| format!("{number}\n")).collect();
        lines.iter().for_each(|line| log.push(line.clone().into_bytes()));
        log.flush(Duration::from_secs(60));
        assert_eq!(text(&path), lines.concat());
        assert!(
            metrics
                .render(hotmap_object::Revision(1))
                .contains("apiserver_audit_event_total 1000")
        );
    }
}
