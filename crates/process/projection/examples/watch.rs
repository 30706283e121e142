//! Says what changes beneath a path, and why changes may be missed.
//!
//! `cargo run -p hotmap-projection --example watch -- PATH`

use hotmap_projection::{KeyChange, WatchConfig, Watcher};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("which path?")?;
    let mut watcher = Watcher::new(path, WatchConfig::default())?;
    watcher.on_health(|health| eprintln!("{health}"));
    loop {
        let change = watcher.next()?;
        println!("{} ({:?} ago)", change.revision, change.seen.elapsed());
        for key in change.keys.iter() {
            match key {
                KeyChange::Added(key) => println!("  + {key}"),
                KeyChange::Modified(key) => println!("  ~ {key}"),
                KeyChange::Removed(key) => println!("  - {key}"),
            }
        }
    }
}
