//! What a reader pays: `cargo bench -p hotmap-live`.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use criterion::{Criterion, criterion_group, criterion_main};
use hotmap_live::Live;

#[derive(Debug, serde::Deserialize)]
struct Config {
    limit: u64,
}

fn load(criterion: &mut Criterion) {
    let directory = std::env::temp_dir().join(format!("hotmap-live-bench-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a temporary directory can be made");
    let path = directory.join("config.json");
    std::fs::write(&path, r#"{"limit": 1}"#).expect("a file can be written");
    let live: Live<Config> = Live::builder()
        .file(&path)
        .agent_socket(None)
        .start()
        .expect("it is a configuration");
    criterion.bench_function("load", |bencher| bencher.iter(|| black_box(live.load().limit)));
    let is_done = Arc::new(AtomicBool::new(false));
    let writing = {
        let (is_done, path) = (is_done.clone(), path.clone());
        std::thread::spawn(move || {
            let mut number = 0_u64;
            while !is_done.load(Ordering::Relaxed) {
                number += 1;
                let _ = std::fs::write(path.with_extension("new"), format!(r#"{{"limit": {number}}}"#));
                let _ = std::fs::rename(path.with_extension("new"), &path);
            }
        })
    };
    criterion.bench_function("load while somebody writes", |bencher| {
        bencher.iter(|| black_box(live.load().limit));
    });
    is_done.store(true, Ordering::Relaxed);
    writing.join().expect("the writer does not panic");
    let _ = std::fs::remove_dir_all(&directory);
}

criterion_group!(benches, load);
criterion_main!(benches);
