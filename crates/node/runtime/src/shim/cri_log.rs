//! A container's log file in CRI's format.
//!
//! ```text
//! 2026-01-01T00:00:00.000000000Z stdout F a whole line
//! 2026-01-01T00:00:00.000000000Z stderr P 16 KiB of a longer one, or the end of a stream without newline
//! ```
//!
//! As containerd writes it (`internal/cri/io/logger.go`, release 2): a line of up to 16 KiB is one `F`; a longer one is `P`
//! pieces of 16 KiB and an `F` with the rest; what is left at the end of a stream is a `P`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::spec::LogLimits;

/// containerd's `max_container_log_line_size`.
const LINE_BYTES_MAX: usize = 16 << 10;

/// Which stream a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// Cuts one stream into log lines; what is not yet a line waits here, at most 16 KiB.
#[derive(Debug)]
pub(crate) struct LineCutter {
    stream: Stream,
    pending: Vec<u8>,
    /// Pieces of a line are out, and not its end.
    is_inside_line: bool,
}

impl LineCutter {
    pub(crate) fn new(stream: Stream) -> Self {
        Self {
            stream,
            pending: Vec::new(),
            is_inside_line: false,
        }
    }

    /// Which stream this is.
    pub(crate) fn stream(&self) -> Stream {
        self.stream
    }

    /// Whether the end of a line is missing of which the first pieces were emitted.
    pub(crate) fn is_inside_line(&self) -> bool {
        self.is_inside_line
    }

    /// Appends the log lines that these bytes complete to `out`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], time: &str, out: &mut Vec<u8>) {
        while !bytes.is_empty() {
            if let Some(end) = bytes.iter().position(|byte| *byte == b'\n')
                && self.pending.len() + end <= LINE_BYTES_MAX
            {
                self.emit(time, "F", &bytes[..end], out);
                bytes = &bytes[end + 1..];
                continue;
            }
            let room = LINE_BYTES_MAX - self.pending.len();
            if bytes.len() <= room {
                self.pending.extend_from_slice(bytes);
                return;
            }
            self.emit(time, "P", &bytes[..room], out);
            bytes = &bytes[room..];
        }
    }

    /// The stream is over.
    pub(crate) fn finish(&mut self, time: &str, out: &mut Vec<u8>) {
        if !self.pending.is_empty() {
            self.emit(time, "P", &[], out);
        }
        self.is_inside_line = false;
    }

    fn emit(&mut self, time: &str, tag: &str, tail: &[u8], out: &mut Vec<u8>) {
        for part in [
            time.as_bytes(),
            b" ",
            self.stream.name().as_bytes(),
            b" ",
            tag.as_bytes(),
            b" ",
        ] {
            out.extend_from_slice(part);
        }
        out.extend_from_slice(&self.pending);
        out.extend_from_slice(tail);
        out.push(b'\n');
        self.is_inside_line = tag == "P";
        self.pending.clear();
        self.pending.shrink_to(LINE_BYTES_MAX);
    }
}

/// The file, rotated by the kubelet's naming.
#[derive(Debug)]
pub(crate) struct LogFile {
    path: PathBuf,
    file: File,
    written: u64,
    limits: LogLimits,
    resumes_at: Option<Instant>,
}

impl LogFile {
    /// Opens the file for appending; its directory is created when missing.
    pub(crate) fn open(path: &Path, limits: LogLimits) -> io::Result<Self> {
        if let Some(dir) = path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o755).create(dir)?;
        }
        let file = Self::open_file(path)?;
        let written = file.metadata()?.len();
        Ok(Self {
            path: path.to_owned(),
            file,
            written,
            limits,
            resumes_at: None,
        })
    }

    /// Until then nothing more should come: two files were filled within a second. Who prints faster waits for the pipe, so a flood
    /// takes no more of the disk than its files may, and little of a CPU.
    pub(crate) fn resumes_at(&self) -> Option<Instant> {
        self.resumes_at
    }

    fn open_file(path: &Path) -> io::Result<File> {
        OpenOptions::new()
            .append(true)
            .create(true)
            .mode(0o640)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)
    }

    /// Appends whole log lines. An error means that they are lost; the container goes on. A full file waits for the end of a
    /// line that is in pieces, so that who reads the newest file reads whole lines; a line without end waits no longer than
    /// until the file has twice its size.
    pub(crate) fn append(&mut self, lines: &[u8], is_inside_line: bool) -> io::Result<()> {
        if self.resumes_at.take().is_some() {
            self.rotate()?;
        }
        if let Err(error) = self.file.write_all(lines) {
            // On a full disk a part of them may have come: the next line shall begin a line.
            let _ = self.file.set_len(self.written);
            return Err(error);
        }
        self.written += lines.len() as u64;
        let max = self.limits.max_bytes.max(1);
        let most = if is_inside_line {
            max.saturating_mul(2)
        } else {
            max
        };
        if self.written >= most {
            self.rotate()?;
        }
        Ok(())
    }

    /// `0.log` becomes `0.log.20260101-000000`, and the oldest go. A reader that follows finds the new file under the old name.
    fn rotate(&mut self) -> io::Result<()> {
        let now = SystemTime::now();
        let stamp: String = timestamp(now)
            .chars()
            .filter(|char| !"-:".contains(*char))
            .collect();
        let mut rotated = self.path.clone().into_os_string();
        rotated.push(format!(".{}-{}", &stamp[..8], &stamp[9..15]));
        // Two rotations in one second would share a name.
        if Path::new(&rotated).exists() {
            self.resumes_at = Some(Instant::now() + until_next_second(now));
            return Ok(());
        }
        self.resumes_at = None;
        match fs::rename(&self.path, &rotated) {
            // The last rotation found no room for a new file, or somebody has removed this one.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            renamed => renamed?,
        }
        self.file = Self::open_file(&self.path)?;
        self.written = 0;
        self.remove_oldest()
    }

    fn remove_oldest(&self) -> io::Result<()> {
        let (Some(dir), Some(name)) = (
            self.path.parent(),
            self.path.file_name().and_then(|name| name.to_str()),
        ) else {
            return Ok(());
        };
        let mut rotated = Vec::new();
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let is_ours = entry
                .file_name()
                .to_str()
                .and_then(|other| {
                    other
                        .strip_prefix(name)?
                        .strip_prefix('.')
                        .map(|rest| rest.len() == 15)
                })
                .unwrap_or(false);
            if is_ours {
                rotated.push(entry.path());
            }
        }
        rotated.sort();
        let keep = self.limits.max_files.max(2) as usize - 1;
        let surplus = rotated.len().saturating_sub(keep);
        rotated.iter().take(surplus).try_for_each(fs::remove_file)
    }
}

fn until_next_second(now: SystemTime) -> Duration {
    let since = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Duration::from_secs(1) - Duration::from_nanos(since.subsec_nanos().into())
}

/// RFC 3339 in UTC with nine digits of a second.
pub(crate) fn timestamp(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:09}Z",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60,
        since.subsec_nanos()
    )
}

/// The Gregorian date of a day since 1970: years begin in March, so that the leap day is the last of one.
fn civil(days_since_1970: u64) -> (u64, u64, u64) {
    let days = days_since_1970 + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_log_whose_file_is_gone_has_one_again_after_its_rotation() {
        let dir = std::env::temp_dir().join(format!("hotmap-gone-log-{}", std::process::id()));
        let path = dir.join("0.log");
        let limits = LogLimits {
            max_bytes: 10,
            max_files: 2,
        };
        let mut log = LogFile::open(&path, limits).expect("writable");
        fs::remove_file(&path).expect("there");
        log.append(b"lost with it\n", false).expect("rotated");
        log.append(b"new\n", false).expect("there again");
        assert_eq!(fs::read(&path).expect("there"), b"new\n");
        fs::remove_dir_all(&dir).expect("ours");
    }

    fn cut(chunks: &[&[u8]]) -> Vec<(String, Vec<u8>)> {
        let mut cutter = LineCutter::new(Stream::Stdout);
        let mut out = Vec::new();
        chunks.iter().for_each(|chunk| cutter.push(chunk, "T", &mut out));
        cutter.finish("T", &mut out);
        out.strip_suffix(b"\n").map_or(Vec::new(), |out| {
            out.split(|byte| *byte == b'\n')
                .map(|line| {
                    (
                        String::from_utf8_lossy(&line[..10]).into_owned(),
                        line[11..].to_vec(),
                    )
                })
                .collect()
        })
    }

    #[test]
    fn lines_are_cut_as_containerd_cuts_them() {
        let full = vec![b'x'; LINE_BYTES_MAX];
        let lines = |chunks: &[&[u8]]| -> Vec<(String, usize)> {
            cut(chunks)
                .into_iter()
                .map(|(head, body)| (head[9..].to_owned(), body.len()))
                .collect()
        };
        let tagged = |expected: &[(&str, usize)]| -> Vec<(String, usize)> {
            expected
                .iter()
                .map(|(tag, length)| ((*tag).to_owned(), *length))
                .collect()
        };
        assert_eq!(lines(&[b"a\n\nbc\n"]), tagged(&[("F", 1), ("F", 0), ("F", 2)]));
        assert_eq!(lines(&[b"a", b"b", b"\n"]), tagged(&[("F", 2)]));
        assert_eq!(lines(&[b"no newline"]), tagged(&[("P", 10)]));
        assert_eq!(lines(&[&full, b"\n"]), tagged(&[("F", LINE_BYTES_MAX)]));
        assert_eq!(
            lines(&[&full, b"y\n"]),
            tagged(&[("P", LINE_BYTES_MAX), ("F", 1)])
        );
        assert_eq!(
            cut(&[b"\xff\x00\n"]),
            [("T stdout F".to_owned(), b"\xff\x00".to_vec())],
            "bytes stay bytes"
        );
    }

    #[test]
    fn a_line_of_10_mib_becomes_pieces_and_is_never_held() {
        let mut cutter = LineCutter::new(Stream::Stderr);
        let mut out = Vec::new();
        let chunk = vec![b'z'; 10_000];
        for _ in 0..1_049 {
            cutter.push(&chunk, "T", &mut out);
            assert!(cutter.pending.capacity() <= 4 * LINE_BYTES_MAX);
        }
        assert!(cutter.is_inside_line());
        cutter.push(b"\n", "T", &mut out);
        assert!(!cutter.is_inside_line());
        let lines: Vec<&[u8]> = out.split_inclusive(|byte| *byte == b'\n').collect();
        assert_eq!(lines.len(), 10_490_000usize.div_ceil(LINE_BYTES_MAX));
        assert!(
            lines[..lines.len() - 1]
                .iter()
                .all(|line| line.starts_with(b"T stderr P "))
        );
        assert!(lines[lines.len() - 1].starts_with(b"T stderr F "));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_however_the_bytes_arrive(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), any::<u8>()], 0..300), repeat in 1usize..120, cut_at in 1usize..20_000) {
            let bytes = bytes.repeat(repeat);
            let chunks: Vec<&[u8]> = bytes.chunks(cut_at).collect();
            let mut again = Vec::new();
            for (head, body) in cut(&chunks) {
                again.extend_from_slice(&body);
                if head.ends_with('F') {
                    again.push(b'\n');
                }
            }
            prop_assert_eq!(again, bytes);
        }
    }

    #[test]
    fn times_are_rfc_3339_with_nine_digits() {
        for (seconds, nanos, text) in [
            (0, 0, "1970-01-01T00:00:00.000000000Z"),
            (951_782_399, 1, "2000-02-28T23:59:59.000000001Z"),
            (951_782_400, 0, "2000-02-29T00:00:00.000000000Z"),
            (1_767_225_600, 999_999_999, "2026-01-01T00:00:00.999999999Z"),
            (4_102_444_799, 0, "2099-12-31T23:59:59.000000000Z"),
        ] {
            assert_eq!(timestamp(UNIX_EPOCH + Duration::new(seconds, nanos)), text);
        }
    }

    #[test]
    fn a_full_file_is_renamed_and_the_oldest_go() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("pod/web/0.log");
        let limits = LogLimits {
            max_bytes: 100,
            max_files: 2,
        };
        let mut log = LogFile::open(&path, limits).expect("opened");
        for old in ["20250101-000000", "20250101-000001"] {
            fs::write(dir.path().join(format!("pod/web/0.log.{old}")), "old").expect("written");
        }
        fs::write(dir.path().join("pod/web/0.log.notes"), "not ours").expect("written");
        log.append(&[b'a'; 99], false).expect("appended");
        log.append(b"pieces\n", true).expect("appended, and not rotated");
        log.append(b"b\n", false).expect("appended, then rotated");
        log.append(b"c\n", false).expect("appended");
        assert_eq!(fs::read(&path).expect("the new file"), b"c\n");
        let mut names: Vec<String> = fs::read_dir(dir.path().join("pod/web"))
            .expect("listed")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("utf-8"))
            .collect();
        names.sort();
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(!names[1].starts_with("0.log.2025"), "{names:?}");
        let rotated = fs::read(dir.path().join("pod/web").join(&names[1])).expect("the old file");
        assert!(rotated.ends_with(b"pieces\nb\n"));
    }

    #[test]
    fn who_fills_two_files_in_a_second_waits_for_the_next() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let limits = LogLimits {
            max_bytes: 100,
            max_files: 2,
        };
        let mut log = LogFile::open(&dir.path().join("0.log"), limits).expect("opened");
        // The second may end between two of them, but not each time.
        let waits = (0..1_000).any(|_| {
            log.append(&[b'x'; 100], false).expect("appended");
            log.resumes_at().is_some()
        });
        assert!(waits);
        let wait = log
            .resumes_at()
            .expect("it waits")
            .saturating_duration_since(Instant::now());
        assert!(wait <= Duration::from_secs(1));
    }
}
