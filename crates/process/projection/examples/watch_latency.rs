//! How long it takes from the rename of `..data` until a watcher has told of it.
//!
//! `cargo run --release -p hotmap-projection --example watch_latency -- [SWAPS [FILES [BYTES]]]`
//!
//! The writer waits 5 ms after each swap, so that the watcher sleeps when the next one comes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use hotmap_projection::{WatchConfig, Watcher};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut numbers = std::env::args().skip(1).map(|argument| argument.parse());
    let mut number = |otherwise: usize| numbers.next().unwrap_or(Ok(otherwise));
    let (swaps, files, bytes) = (number(1_000)?, number(3)?, number(200)?);
    let directory = Path::new("/dev/shm").join(format!("hotmap-latency-{}", std::process::id()));
    fs::create_dir(&directory)?;
    let measured = measure(&directory, swaps, files, bytes);
    fs::remove_dir_all(&directory)?;
    let mut times = measured?;
    times.sort_unstable();
    let at = |per_mille: usize| times[(times.len() - 1) * per_mille / 1_000];
    println!(
        "{swaps} swaps of {files} files of {bytes} bytes: p50 {:.1?}, p99 {:.1?}, worst {:.1?}",
        at(500),
        at(990),
        at(1_000)
    );
    Ok(())
}

fn measure(
    directory: &Path,
    swaps: usize,
    files: usize,
    bytes: usize,
) -> Result<Vec<Duration>, Box<dyn std::error::Error>> {
    publish(directory, 0, files, bytes)?;
    let mut watcher = Watcher::new(directory, WatchConfig::default())?;
    let stopper = watcher.stopper();
    let (told, hears) = mpsc::channel();
    let watching = std::thread::spawn(move || {
        while watcher.next().is_ok() && told.send(Instant::now()).is_ok() {}
        watcher.handle().counts()
    });
    hears.recv()?;
    let mut times = Vec::with_capacity(swaps);
    for number in 1..=swaps {
        let swapped = publish(directory, number, files, bytes)?;
        times.push(hears.recv()?.saturating_duration_since(swapped));
        std::thread::sleep(Duration::from_millis(5));
    }
    stopper.stop();
    println!("{:?}", watching.join().expect("the watcher does not panic"));
    Ok(times)
}

/// A new revision in place of the old one. When the rename began.
fn publish(directory: &Path, number: usize, files: usize, bytes: usize) -> std::io::Result<Instant> {
    let revision = format!("..2026_01_31_09_05_07.{number}");
    fs::create_dir(directory.join(&revision))?;
    for file in 0..files {
        let content = format!("{number:08}").repeat(bytes.div_ceil(8));
        fs::write(
            directory.join(&revision).join(format!("file-{file}")),
            &content[..bytes],
        )?;
    }
    let old = fs::read_link(directory.join("..data")).ok();
    symlink(&revision, directory.join("..data_tmp"))?;
    let swapped = Instant::now();
    fs::rename(directory.join("..data_tmp"), directory.join("..data"))?;
    if let Some(old) = old {
        fs::remove_dir_all(directory.join(old))?;
    }
    Ok(swapped)
}
