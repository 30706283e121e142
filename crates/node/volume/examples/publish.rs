//! Publishes a 1 KiB file again and again into a directory and prints how long a write takes.
//!
//! `cargo run -p hotmap-volume --example publish -- DIR [COUNT]`

use std::time::Instant;

use hotmap_volume::{AtomicWriter, Directory, Durability, FileMode, Options, Payload, PayloadFile};

fn main() -> Result<(), Box<dyn std::error::Error>> {
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
        let mut times = Vec::with_capacity(count);
        for number in 0..count {
            let mut payload = Payload::new();
            let content = format!("{number:01024}");
            payload.insert("app.yaml".parse()?, PayloadFile::new(content, FileMode::DEFAULT))?;
            let started = Instant::now();
            writer.write(&payload)?;
            times.push(started.elapsed());
        }
        times.sort_unstable();
        if let (Some(median), Some(worst)) = (times.get(count / 2), times.last()) {
            println!("{durability:?}: {count} writes, median {median:?}, worst {worst:?}");
        }
    }
    Ok(())
}
