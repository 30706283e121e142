//! Reads every given file from one and the same revision of a volume, even while somebody writes it.
//!
//! `cargo run -p hotmap-volume --example read_one_revision -- DIR FILE…`

use std::io::Write;

use hotmap_volume::{Directory, PayloadPath, Snapshot, SnapshotError};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let volume = Directory::open(arguments.next().ok_or("which directory?")?)?;
    let paths: Vec<PayloadPath> = arguments.map(|path| path.parse()).collect::<Result<_, _>>()?;
    let files = loop {
        let snapshot = Snapshot::open(&volume)?;
        let files: Result<Vec<_>, _> = paths.iter().map(|path| snapshot.read(path)).collect();
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
