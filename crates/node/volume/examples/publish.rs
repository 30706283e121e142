//! Publishes a 1 KiB file again and again into a directory and prints how long a write takes, and beside it what the
//! bare system calls of such a write take: no writer can be faster.
//!
//! `cargo run --release -p hotmap-volume --example publish -- DIR [COUNT]`

use std::error::Error;
use std::io::{self, Write};
use std::time::{Duration, Instant};

use hotmap_volume::{AtomicWriter, Directory, Durability, FileMode, Options, Payload, PayloadFile};
use rustix::fs::{AtFlags, Mode, OFlags, fchmod, fsync, mkdirat, openat, renameat, symlinkat, unlinkat};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("which directory?")?;
    let count = arguments
        .next()
        .map_or(Ok(1_000), |count| count.parse::<usize>())?;
    for durability in [Durability::Process, Durability::PowerLoss] {
        let options = Options {
            durability,
            ..Options::default()
        };
        let writer = AtomicWriter::new(Directory::open(&directory)?, options);
        show(&format!("{durability:?}"), count, |number| {
            let mut payload = Payload::new();
            let content = format!("{number:01024}");
            payload.insert("app.yaml".parse()?, PayloadFile::new(content, FileMode::DEFAULT))?;
            let started = Instant::now();
            writer.write(&payload)?;
            Ok(started.elapsed())
        })?;
        let floor = tempfile::tempdir_in(&directory)?;
        let root = openat(rustix::fs::CWD, floor.path(), OFlags::DIRECTORY, Mode::empty())?;
        show(&format!("{durability:?}, bare calls"), count, |number| {
            let content = format!("{number:01024}");
            let started = Instant::now();
            bare_write(&root, number, content.as_bytes(), durability)?;
            Ok(started.elapsed())
        })?;
    }
    Ok(())
}

/// What cannot be left out: a directory, a file in it, a link to it, a rename, and the old ones gone.
fn bare_write(
    root: impl rustix::fd::AsFd,
    number: usize,
    content: &[u8],
    durability: Durability,
) -> io::Result<()> {
    let is_power_proof = durability == Durability::PowerLoss;
    let revision = number.to_string();
    mkdirat(&root, &revision, Mode::from_raw_mode(0o755))?;
    let directory = openat(&root, &revision, OFlags::DIRECTORY, Mode::empty())?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
    let mut file = std::fs::File::from(openat(&directory, "app.yaml", flags, Mode::from_raw_mode(0o600))?);
    file.write_all(content)?;
    fchmod(&file, Mode::from_raw_mode(0o644))?;
    if is_power_proof {
        fsync(&file)?;
        fsync(&directory)?;
    }
    symlinkat(&revision, &root, "new")?;
    renameat(&root, "new", &root, "data")?;
    if is_power_proof {
        fsync(&root)?;
    }
    if let Some(old) = number.checked_sub(1) {
        let old = old.to_string();
        unlinkat(&root, format!("{old}/app.yaml"), AtFlags::empty())?;
        unlinkat(&root, &old, AtFlags::REMOVEDIR)?;
    }
    Ok(())
}

fn show(
    what: &str,
    count: usize,
    mut write: impl FnMut(usize) -> Result<Duration, Box<dyn Error>>,
) -> Result<(), Box<dyn Error>> {
    let mut times = (0..count).map(&mut write).collect::<Result<Vec<_>, _>>()?;
    times.sort_unstable();
    if let (Some(median), Some(worst)) = (times.get(count / 2), times.last()) {
        println!("{what}: {count} writes, median {median:?}, worst {worst:?}");
    }
    Ok(())
}
