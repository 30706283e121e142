//! Commits per second for one writer and for 64, beside what the bare disk gives.
//!
//! `cargo run --release -p hotmap-store --example writes -- [DIR]`: DIR (default: the current directory) decides which
//! disk is measured.

use std::{
    env,
    error::Error,
    fs::OpenOptions,
    io::Write as _,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use hotmap_store::{Embedded, Revision, Store, SystemClock, Write};
use tokio::task::JoinSet;

const RUN: Duration = Duration::from_secs(3);
const VALUE_BYTES: usize = 1024;

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<(), Box<dyn Error>> {
    let place = env::args().nth(1).unwrap_or_else(|| ".".into());
    let dir = tempfile::tempdir_in(place)?;
    let floor = fdatasync_floor(dir.path())?;
    println!("{:>10.0}/s  append {VALUE_BYTES} bytes, fdatasync", floor);
    let store: Arc<dyn Store> = Arc::new(Embedded::open(dir.path(), Arc::new(SystemClock))?);
    for writers in [1, 64] {
        let (rate, p50, p99) = measure(&store, writers).await?;
        println!("{rate:>10.0}/s  {writers} writers, p50 {p50:?}, p99 {p99:?}");
    }
    Ok(())
}

fn fdatasync_floor(dir: &Path) -> Result<f64, Box<dyn Error>> {
    let mut file = OpenOptions::new()
        .create_new(true)
        .append(true)
        .open(dir.join("floor"))?;
    let (began, mut syncs) = (Instant::now(), 0_u32);
    while began.elapsed() < RUN {
        file.write_all(&[7; VALUE_BYTES])?;
        file.sync_data()?;
        syncs += 1;
    }
    Ok(f64::from(syncs) / began.elapsed().as_secs_f64())
}

/// Each writer updates a key of its own as fast as it is answered.
async fn measure(
    store: &Arc<dyn Store>,
    writers: usize,
) -> Result<(f64, Duration, Duration), Box<dyn Error>> {
    let mut tasks = JoinSet::new();
    let began = Instant::now();
    for writer in 0..writers {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            let (key, value) = (
                format!("/writes/{writers}/{writer}"),
                Bytes::from(vec![7; VALUE_BYTES]),
            );
            let (mut seen, mut took) = (Revision::ZERO, Vec::new());
            while began.elapsed() < RUN {
                let sent = Instant::now();
                seen = store
                    .commit(Write::update(key.as_str(), seen, value.clone()))
                    .await?
                    .revision;
                took.push(sent.elapsed());
            }
            Ok::<_, hotmap_store::StoreError>(took)
        });
    }
    let mut took = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        took.append(&mut ended??);
    }
    let elapsed = began.elapsed().as_secs_f64();
    took.sort_unstable();
    let percentile = |percent: usize| took.get(took.len() * percent / 100).copied().unwrap_or_default();
    Ok((took.len() as f64 / elapsed, percentile(50), percentile(99)))
}
