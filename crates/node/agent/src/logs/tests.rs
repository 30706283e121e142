use std::fs;
use std::path::Path;
use std::pin::Pin;
use std::thread;

use futures_util::StreamExt;
use proptest::prelude::*;
use tempfile::TempDir;
use tokio::sync::watch::{Sender, channel};

use super::reader::{Reader, Step};
use super::testing::{Writer, records};
use super::*;

/// A log in a directory that is not there yet.
fn place() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let file = dir.path().join("logs/default_web_1/nginx/0.log");
    (dir, file)
}

fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime")
        .block_on(test)
}

/// Everything until the stream ends.
fn read_all(file: &Path, options: LogOptions) -> String {
    let (_ended, ended) = channel(true);
    let chunks: Vec<_> = run(read(file.to_owned(), options, ended).collect());
    let chunks: io::Result<Vec<Bytes>> = chunks.into_iter().collect();
    String::from_utf8_lossy(&chunks.expect("read").concat()).into_owned()
}

/// A follower that the test drives step by step.
struct Follower {
    reader: Reader,
    _runtime: tokio::runtime::Runtime,
}

impl Follower {
    fn new(file: &Path, options: LogOptions) -> Self {
        let mut reader = Reader::new(
            file.to_owned(),
            LogOptions {
                follow: true,
                ..options
            },
        );
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let (_changes, watch) = runtime
            .block_on(async { watch::open() })
            .expect("an inotify instance");
        reader.follow(watch);
        Self {
            reader,
            _runtime: runtime,
        }
    }

    /// What there is until there is nothing more.
    fn read(&mut self) -> String {
        let mut all = Vec::new();
        loop {
            match self.reader.step().expect("read") {
                Step::Bytes(bytes) => all.extend(bytes),
                Step::Idle => return String::from_utf8(all).expect("text"),
                Step::Finished => return String::from_utf8(all).expect("text") + "<end>",
            }
        }
    }
}

/// A running stream that the test reads until it has seen enough.
struct Running {
    stream: Pin<Box<dyn Stream<Item = io::Result<Bytes>> + Send>>,
    ended: Sender<bool>,
}

impl Running {
    /// Follows from the first line on, whatever was rotated before the file is opened.
    fn new(file: &Path) -> Self {
        let (ended, is_ended) = channel(false);
        let options = LogOptions {
            follow: true,
            tail_lines: Some(u64::MAX),
            ..LogOptions::default()
        };
        Self {
            stream: Box::pin(read(file.to_owned(), options, is_ended)),
            ended,
        }
    }

    /// The next bytes, as many as `expected` has.
    async fn expect(&mut self, expected: &str) {
        let mut seen = Vec::new();
        while seen.len() < expected.len() {
            seen.extend(self.stream.next().await.expect("not ended").expect("read"));
        }
        assert_eq!(String::from_utf8_lossy(&seen), expected);
    }

    async fn expect_end(mut self) {
        self.ended.send_replace(true);
        assert!(self.stream.next().await.is_none());
    }
}

#[test]
fn without_a_file_the_log_is_empty() {
    let (_dir, file) = place();
    for follow in [false, true] {
        assert_eq!(
            read_all(
                &file,
                LogOptions {
                    follow,
                    tail_lines: Some(3),
                    ..LogOptions::default()
                }
            ),
            ""
        );
        assert_eq!(
            read_all(
                &file,
                LogOptions {
                    follow,
                    ..LogOptions::default()
                }
            ),
            ""
        );
    }
}

#[test]
fn what_is_not_a_file_is_not_read() {
    let (_dir, file) = place();
    fs::create_dir_all(&file).expect("made");
    let link = file.with_file_name("1.log");
    std::os::unix::fs::symlink("/etc/hostname", &link).expect("linked");
    for path in [file, link] {
        let (_ended, ended) = channel(true);
        let chunks: Vec<_> = run(read(path, LogOptions::default(), ended).collect());
        assert!(matches!(&chunks[..], [Err(_)]), "{chunks:?}");
    }
}

#[test]
fn all_is_what_is_kept_and_a_tail_reaches_as_far_back() {
    let (_dir, file) = place();
    let mut writer = Writer::create(&file);
    for line in ["one", "two", "|", "three", "|", "four", "five"] {
        if line == "|" {
            writer.rotate()
        } else {
            writer.line(line)
        }
    }
    fs::write(file.with_file_name("0.log.notes"), "not a log").expect("written");
    fs::write(file.with_file_name("1.log"), "another log").expect("written");
    let whole = "one\ntwo\nthree\nfour\nfive\n";
    assert_eq!(read_all(&file, LogOptions::default()), whole);
    for (tail, expected) in [
        (0, ""),
        (1, "five\n"),
        (2, "four\nfive\n"),
        (3, "three\nfour\nfive\n"),
        (4, "two\nthree\nfour\nfive\n"),
        (5, "one\ntwo\nthree\nfour\nfive\n"),
        (u64::MAX, "one\ntwo\nthree\nfour\nfive\n"),
    ] {
        for follow in [false, true] {
            let options = LogOptions {
                tail_lines: Some(tail),
                follow,
                ..LogOptions::default()
            };
            assert_eq!(read_all(&file, options), expected, "{tail}, follow {follow}");
        }
    }
    writer.rotate();
    assert_eq!(read_all(&file, LogOptions::default()), whole);
    assert_eq!(
        read_all(
            &file,
            LogOptions {
                tail_lines: Some(2),
                ..LogOptions::default()
            }
        ),
        "four\nfive\n"
    );
}

#[test]
fn a_line_of_10_mib_comes_whole_and_counts_once() {
    let (_dir, file) = place();
    let mut writer = Writer::create(&file);
    writer.line("before");
    let long = "x".repeat(10 << 20);
    writer.line(&long);
    writer.line("after");
    let options = |tail| LogOptions {
        tail_lines: Some(tail),
        ..LogOptions::default()
    };
    assert!(read_all(&file, options(2)) == format!("{long}\nafter\n"));
    assert!(read_all(&file, options(3)) == format!("before\n{long}\nafter\n"));
    let limited = LogOptions {
        limit_bytes: Some(100_007),
        ..LogOptions::default()
    };
    assert!(read_all(&file, limited) == format!("before\n{}", &long[..100_000]));
}

#[test]
fn a_limit_ends_a_follower() {
    let (_dir, file) = place();
    let mut writer = Writer::create(&file);
    writer.line("one");
    let mut follower = Follower::new(
        &file,
        LogOptions {
            limit_bytes: Some(6),
            ..LogOptions::default()
        },
    );
    assert_eq!(follower.read(), "one\n");
    writer.line("two");
    assert_eq!(follower.read(), "tw<end>");
}

#[test]
fn a_follower_misses_nothing_between_two_looks() {
    let (_dir, file) = place();
    let mut follower = Follower::new(&file, LogOptions::default());
    assert_eq!(follower.read(), "");
    let mut writer = Writer::create(&file);
    assert_eq!(follower.read(), "");
    writer.line("one");
    assert_eq!(follower.read(), "one\n");
    // A record in the middle of its writing.
    writer.append(b"2026-01-01T00:00:00Z std");
    assert_eq!(follower.read(), "");
    writer.append(b"out F two\n");
    assert_eq!(follower.read(), "two\n");
    // Both halves of a rotation, seen apart.
    writer.line("three");
    writer.rename();
    assert_eq!(follower.read(), "three\n");
    let mut writer = Writer::resume(&file, 1);
    assert_eq!(follower.read(), "");
    writer.line("four");
    assert_eq!(follower.read(), "four\n");
    // Several rotations at once.
    for line in ["five", "six", "seven"] {
        writer.line(line);
        writer.rotate();
    }
    writer.line("eight");
    assert_eq!(follower.read(), "five\nsix\nseven\neight\n");
    // The file being read was removed as the oldest one: its end is still there, and so is what is kept.
    for line in ["nine", "ten", "eleven"] {
        writer.line(line);
        writer.rotate();
    }
    for number in 0..6 {
        fs::remove_file(writer.rotated(number)).expect("removed");
    }
    writer.line("twelve");
    assert_eq!(follower.read(), "nine\neleven\ntwelve\n");
    // Removed by hand: what is kept of old is not shown again.
    fs::remove_file(&file).expect("removed");
    let mut writer = Writer::resume(&file, 7);
    writer.line("thirteen");
    assert_eq!(follower.read(), "thirteen\n");
    writer.truncate();
    assert_eq!(follower.read(), "");
    writer.line("fourteen");
    assert_eq!(follower.read(), "fourteen\n");
    // The whole directory goes and comes.
    fs::remove_dir_all(file.parent().expect("a directory")).expect("removed");
    assert_eq!(follower.read(), "");
    Writer::create(&file).line("fifteen");
    assert_eq!(follower.read(), "fifteen\n");
}

#[test]
fn a_follower_that_begins_in_the_middle_of_a_rotation_is_shown_each_line_once() {
    let (_dir, file) = place();
    let mut writer = Writer::create(&file);
    writer.line("past");
    writer.rename();
    let mut follower = Follower::new(&file, LogOptions::default());
    let mut last_line = Follower::new(
        &file,
        LogOptions {
            tail_lines: Some(1),
            ..LogOptions::default()
        },
    );
    assert_eq!(follower.read(), "past\n");
    assert_eq!(last_line.read(), "past\n");
    let mut writer = Writer::resume(&file, 1);
    writer.line("one");
    writer.rotate();
    writer.line("two");
    assert_eq!(follower.read(), "one\ntwo\n");
    assert_eq!(last_line.read(), "one\ntwo\n");
}

#[test]
fn a_follower_wakes_for_every_change_and_ends_with_the_container() {
    let (_dir, file) = place();
    run(async {
        let mut running = Running::new(&file);
        // The directories come one by one while the follower looks for the nearest.
        let log = file.clone();
        let writer = thread::spawn(move || {
            let mut writer = Writer::create(&log);
            writer.line("one");
            writer
        });
        running.expect("one\n").await;
        let mut writer = writer.join().expect("written");
        for round in 0..200 {
            let line = format!("line {round}");
            writer.line(&line);
            if round % 3 == 0 {
                writer.rotate();
            }
            running.expect(&format!("{line}\n")).await;
        }
        running.expect_end().await;
    });
}

#[test]
fn a_follower_ends_when_nobody_can_say_that_the_container_ended() {
    let (_dir, file) = place();
    Writer::create(&file).line("one");
    run(async {
        let mut running = Running::new(&file);
        running.expect("one\n").await;
        let Running { mut stream, ended } = running;
        let next = tokio::spawn(async move { stream.next().await.is_none() });
        tokio::task::yield_now().await;
        drop(ended);
        assert!(next.await.expect("ended"));
    });
}

#[test]
fn a_follower_keeps_up_with_a_writer_that_rotates_all_the_time() {
    const LINES: u32 = 20_000;
    let (_dir, file) = place();
    let lines: String = (0..LINES).map(|number| format!("{number}\n")).collect();
    run(async {
        let mut running = Running::new(&file);
        let writer = thread::spawn(move || {
            let mut writer = Writer::create(&file);
            for number in 0..LINES {
                writer.line(&number.to_string());
                if number % 97 == 0 {
                    writer.rotate();
                }
            }
        });
        running.expect(&lines).await;
        writer.join().expect("written");
        running.expect_end().await;
    });
}

#[test]
fn what_was_written_before_the_end_is_read_before_the_end() {
    for _ in 0..100 {
        let (_dir, file) = place();
        run(async {
            let Running { stream, ended } = Running::new(&file);
            let writer = thread::spawn(move || {
                let mut writer = Writer::create(&file);
                writer.line("one");
                writer.rotate();
                writer.line("two");
                ended.send_replace(true);
            });
            let chunks: Vec<_> = stream.map(|chunk| chunk.expect("read")).collect().await;
            assert_eq!(chunks.concat(), b"one\ntwo\n");
            writer.join().expect("written");
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn a_tail_is_the_last_lines_of_everything(
        lines in prop::collection::vec((prop_oneof![0usize..50, 0usize..100_000], prop::bool::weighted(0.2)), 0..20),
        is_ended in any::<bool>(),
        tail in 0usize..25,
    ) {
        let (_dir, file) = place();
        let mut writer = Writer::create(&file);
        let mut all = Vec::new();
        for (number, (length, rotates)) in lines.iter().enumerate() {
            let mut line = vec![b'a' + number as u8; *length];
            if is_ended || number + 1 < lines.len() {
                line.push(b'\n');
            }
            let log = records("2026-01-01T00:00:00Z", LogStream::Stdout, &line);
            // Between any two records of a long line, too.
            let half = log[..log.len() / 2].iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
            writer.append(&log[..half]);
            if *rotates {
                writer.rotate();
            }
            writer.append(&log[half..]);
            all.extend(line);
        }
        let all: Vec<&[u8]> = all.split_inclusive(|byte| *byte == b'\n').collect();
        let expected = all[all.len().saturating_sub(tail)..].concat();
        let options = LogOptions { tail_lines: Some(tail as u64), ..LogOptions::default() };
        prop_assert!(read_all(&file, options).as_bytes() == expected);
    }
}
