//! Writes a volume one swap at a time, for those who watch it: `scripts/contract` drives it.
//!
//! `cargo run -p hotmap-volume --example swaps -- DIR` reads lines from its standard input. Each is the content of the
//! key `app.yaml` of the next revision; the revision's name is written back when readers see it. A second key, `site`,
//! always has the same content.

use std::error::Error;
use std::io::{self, BufRead, Write};

use hotmap_volume::{AtomicWriter, Directory, Durability, FileMode, Options, Payload, PayloadFile, Written};

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args().nth(1).ok_or("which directory?")?;
    let options = Options {
        durability: Durability::Process,
        ..Options::default()
    };
    let writer = AtomicWriter::new(Directory::open(&directory)?, options);
    for line in io::stdin().lock().lines() {
        let mut payload = Payload::new();
        for (key, content) in [("app.yaml", line?), ("site", "unchanged".to_owned())] {
            payload.insert(key.parse()?, PayloadFile::new(content, FileMode::DEFAULT))?;
        }
        let Written { revision, .. } = writer.write(&payload)?;
        writeln!(io::stdout(), "{revision}")?;
    }
    Ok(())
}
