//! Reads every given file from one and the same revision of a directory, even while somebody writes it.
//!
//! `cargo run -p hotmap-projection --example read_one_revision -- DIR FILE…`

use std::io::Write;

use hotmap_projection::{Snapshot, SnapshotError};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().ok_or("which directory?")?;
    let keys: Vec<String> = arguments.collect();
    let files = loop {
        let snapshot = Snapshot::open(&directory)?;
        let files: Result<Vec<_>, _> = keys.iter().map(|key| snapshot.read(key)).collect();
        match files {
            // The writer was faster: all files again, from the new revision.
            Err(SnapshotError::Replaced) => {}
            files => break files?,
        }
    };
    files
        .iter()
        .try_for_each(|bytes| std::io::stdout().write_all(bytes))?;
    Ok(())
}
