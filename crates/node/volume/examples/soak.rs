//! Readers in other processes, at full speed, through a great many real swaps.
//!
//! `cargo run --release -p hotmap-volume --example soak -- DIR SWAPS READERS [deferred]`
//!
//! Each reader opens `..data` once and reads both files of a revision through that handle. A torn file, a mix of
//! two revisions or a missing `..data` ends it with an error, and the whole run with it. Having been overtaken
//! (`..data` moved on while the reader walked, and the old revision is gone) is counted: such a reader looks again.

use std::error::Error;
use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use hotmap_volume::{AtomicWriter, Directory, Durability, FileMode, Options, Payload, PayloadFile, Removal};
use rustix::fs::{CWD, Mode, OFlags, openat};

/// Two pages and some: a torn file would show.
const FILE_BYTES: usize = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments[..] {
        ["read", directory] => read_until_told(Path::new(directory)),
        [directory, swaps, readers] => run(directory, swaps.parse()?, readers.parse()?, Removal::AtOnce),
        [directory, swaps, readers, "deferred"] => {
            run(directory, swaps.parse()?, readers.parse()?, Removal::Deferred)
        }
        _ => Err("usage: soak DIR SWAPS READERS [deferred]".into()),
    }
}

fn run(directory: &str, swaps: u32, readers: usize, removal: Removal) -> Result<(), Box<dyn Error>> {
    let options = Options {
        durability: Durability::Process,
        removal,
        ..Options::default()
    };
    let writer = AtomicWriter::new(Directory::open(directory)?, options);
    writer.write(&payload(0)?)?;
    let program = std::env::current_exe()?;
    let reader = || {
        Command::new(&program)
            .args(["read", directory])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
    };
    let readers: Vec<Child> = (0..readers).map(|_| reader()).collect::<io::Result<_>>()?;
    let started = Instant::now();
    for number in 1..=swaps {
        writer.write(&payload(number)?)?;
    }
    let elapsed = started.elapsed();
    let (mut reads, mut overtaken) = (0, 0);
    for mut reader in readers {
        drop(reader.stdin.take());
        let output = reader.wait_with_output()?;
        if !output.status.success() {
            return Err(format!("a reader failed: {}", output.status).into());
        }
        let text = String::from_utf8(output.stdout)?;
        let counts: Vec<u64> = text
            .split_whitespace()
            .map(str::parse)
            .collect::<Result<_, _>>()?;
        let [of_reader, overtaken_here] = counts[..] else {
            return Err(format!("a reader said {text:?}").into());
        };
        reads += of_reader;
        overtaken += overtaken_here;
    }
    let per_second = f64::from(swaps) / elapsed.as_secs_f64();
    println!(
        "{removal:?}: {swaps} swaps in {elapsed:.1?}, {per_second:.0} a second; {reads} reads of two files, none torn, \
         mixed or missing; {overtaken} overtaken"
    );
    Ok(())
}

fn payload(number: u32) -> Result<Payload, Box<dyn Error>> {
    let content = format!("{number:08}").repeat(FILE_BYTES / 8);
    let mut payload = Payload::new();
    for path in ["first", "deep/second"] {
        payload.insert(
            path.parse()?,
            PayloadFile::new(content.clone(), FileMode::DEFAULT),
        )?;
    }
    Ok(payload)
}

/// Reads until its standard input ends, then says how often.
fn read_until_told(volume: &Path) -> Result<(), Box<dyn Error>> {
    let told = std::thread::spawn(|| io::stdin().read(&mut [0]));
    let (mut reads, mut overtaken) = (0_u64, 0_u64);
    let data = volume.join("..data");
    while !told.is_finished() {
        let before = fs::read_link(&data).map_err(|error| format!("`..data` is missing: {error}"))?;
        match read_both(&data) {
            Ok((first, second)) => {
                let number = first.get(..8).ok_or("a file is torn")?;
                if first != second {
                    return Err("two revisions are mixed".into());
                }
                if first.len() != FILE_BYTES || first.chunks(8).any(|chunk| chunk != number) {
                    return Err("a file is torn".into());
                }
                reads += 1;
            }
            Err(error) => {
                if fs::read_link(&data)? == before {
                    return Err(format!("the visible revision is incomplete: {error}").into());
                }
                overtaken += 1;
            }
        }
    }
    io::stdout().write_all(format!("{reads} {overtaken}\n").as_bytes())?;
    Ok(())
}

fn read_both(data: &Path) -> io::Result<(Vec<u8>, Vec<u8>)> {
    let directory = openat(
        CWD,
        data,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let read = |path: &str| -> io::Result<Vec<u8>> {
        let file = openat(&directory, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut bytes = Vec::with_capacity(FILE_BYTES);
        fs::File::from(file).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    Ok((read("first")?, read("deep/second")?))
}
