//! A worker in plain threads: its pause follows a file, and it starts anew only when that field changes.
//!
//! `cargo run -p hotmap-live --example worker -- FILE`, with `pause_millis: 1000` in FILE (`.yaml`)

use std::time::{Duration, Instant};

use serde::Deserialize;

use hotmap_live::{Closed, Live, Subscription};

#[derive(Debug, Deserialize)]
pub(crate) struct Config {
    pause_millis: u64,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let file = std::env::args().nth(1).ok_or("which file?")?;
    let live: Live<Config> = Live::builder().file(file).start()?;
    let pause = live.subscribe(pause_of);
    work(pause, |number, millis| {
        println!("round {number}, {millis} ms to the next")
    })?;
    Ok(())
}

pub(crate) fn pause_of(config: &Config) -> &u64 {
    &config.pause_millis
}

/// Works once per pause. A new pause holds at once, not after the old one is over.
pub(crate) fn work(
    mut pause: Subscription<Config, u64>,
    mut round: impl FnMut(u64, u64),
) -> Result<(), Closed> {
    for number in 1.. {
        let millis = *pause.get();
        round(number, millis);
        let end = Instant::now() + Duration::from_millis(millis);
        // A change ends the wait; no change until the end is a pause.
        pause.wait_until(end)?;
    }
    Ok(())
}
