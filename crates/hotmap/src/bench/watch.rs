//! One change, many watchers.

use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use bytes::Bytes;
use clap::Args;
use http_body_util::BodyExt;
use hyper::{Method, body::Incoming};
use serde_json::Value;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::{Bench, config_map, connection::Connection, process::Memory, report::Row};

const NAME: &str = "watched";
/// Watches that are opened at the same time.
const OPENING: usize = 32;
const ROUND_TIMEOUT: Duration = Duration::from_secs(30);
/// After the last watch is open, until memory is read.
const SETTLE: Duration = Duration::from_secs(1);

/// Flags of `bench watch`.
#[derive(Debug, Args)]
pub(super) struct WatchArgs {
    /// Watches on the one object that changes.
    #[arg(long, env = "HOTMAP_BENCH_WATCHERS", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    watchers: u32,
    /// Connections the watches share [default: each has its own]
    #[arg(long, env = "HOTMAP_BENCH_CONNECTIONS", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    connections: Option<u32>,
    /// Changes that are measured, one after the other.
    #[arg(long, env = "HOTMAP_BENCH_CHANGES", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    changes: u32,
}

/// For each change the times from sending it to the first and to the last watcher's event.
pub(super) async fn measure(bench: &Bench<'_>, args: &WatchArgs) -> anyhow::Result<Vec<Row>> {
    let watchers = args.watchers as usize;
    let connections = args
        .connections
        .map_or(watchers, |count| count as usize)
        .min(watchers);
    let writer = bench.connector.connect().await?;
    let created = writer
        .exchange(Method::POST, &bench.config_maps(), config_map(NAME, 0))
        .await?;
    let created: Value = serde_json::from_slice(&created).context("cannot read the created object")?;
    let version = created
        .pointer("/metadata/resourceVersion")
        .and_then(Value::as_str);
    let path = format!(
        "{}?watch=true&fieldSelector=metadata.name%3D{NAME}&resourceVersion={}&timeoutSeconds=1800",
        bench.config_maps(),
        version.context("the created object has no resourceVersion")?
    );

    super::progress(&format!(
        "opening {watchers} watches over {connections} connections"
    ));
    let memory_before = bench.memory()?;
    let mut arrivals = Arrivals::open(bench, &path, watchers, connections).await?;
    sleep(SETTLE).await;
    let memory_after = bench.memory()?;

    super::progress(&format!("changing the object {} times", args.changes));
    let target = format!("{}/{NAME}", bench.config_maps());
    let (mut first, mut last) = (Vec::new(), Vec::new());
    let cpu_before = bench.cpu_time()?;
    let start = Instant::now();
    for change in 0..args.changes as usize {
        let body = config_map(NAME, change + 1);
        let sent = Instant::now();
        let (written, heard) = tokio::join!(
            writer.exchange(Method::PUT, &target, body),
            arrivals.round(watchers)
        );
        written?;
        let (earliest, latest) = heard?;
        first.push(earliest - sent);
        last.push(latest - sent);
    }
    let (elapsed, cpu) = (start.elapsed(), bench.cpu_since(cpu_before)?);
    let events = watchers * args.changes as usize;
    let over = if connections == watchers {
        "own connections".to_owned()
    } else {
        format!("{connections} connections")
    };
    let mut whole = Row::new(
        format!("change → last of {watchers} watchers, {over}"),
        last,
        events,
        elapsed,
        cpu,
    )?
    .noted("rate and server CPU are per event");
    if let Some(note) = per_watcher(memory_before, memory_after, watchers) {
        whole.note = Some(format!("rate and server CPU are per event; {note}"));
    }
    let first = Row::new(
        "change → first watcher",
        first,
        args.changes as usize,
        elapsed,
        None,
    )?;
    Ok(vec![first, whole])
}

fn per_watcher(before: Option<Memory>, after: Option<Memory>, watchers: usize) -> Option<String> {
    let (before, after) = before.zip(after)?;
    let each = |before: u64, after: u64| after.saturating_sub(before) as f64 / watchers as f64 / 1024.0;
    Some(format!(
        "server memory per idle watcher: {:.1} KiB resident, {:.1} KiB of it anonymous",
        each(before.resident_bytes, after.resident_bytes),
        each(before.anonymous_bytes, after.anonymous_bytes)
    ))
}

/// When events arrive at any of the watchers.
struct Arrivals {
    times: mpsc::UnboundedReceiver<Instant>,
    watchers: JoinSet<anyhow::Result<()>>,
}

impl Arrivals {
    async fn open(
        bench: &Bench<'_>,
        path: &str,
        watchers: usize,
        connections: usize,
    ) -> anyhow::Result<Self> {
        // Bounded by what is sent: one event per watcher and change, and the next change waits for all of them.
        let (sender, times) = mpsc::unbounded_channel();
        let mut running = JoinSet::new();
        let mut opening = JoinSet::new();
        let mut open = 0;
        for group in 0..connections {
            let size = watchers / connections + usize::from(group < watchers % connections);
            let (connector, path) = (bench.connector.clone(), path.to_owned());
            if opening.len() >= OPENING {
                open += start(&mut opening, &mut running, &sender).await?;
            }
            opening.spawn(async move {
                let connection = connector.connect().await?;
                let mut watches = Vec::with_capacity(size);
                for _ in 0..size {
                    watches.push(watch(&connection, &path).await?);
                }
                anyhow::Ok((connection, watches))
            });
        }
        while !opening.is_empty() {
            open += start(&mut opening, &mut running, &sender).await?;
        }
        ensure!(open == watchers, "{open} of {watchers} watches are open");
        Ok(Self {
            times,
            watchers: running,
        })
    }

    /// Waits for one event at every watcher; the first and the last arrival.
    async fn round(&mut self, watchers: usize) -> anyhow::Result<(Instant, Instant)> {
        let collected = timeout(ROUND_TIMEOUT, async {
            let mut heard = Vec::with_capacity(watchers);
            while heard.len() < watchers {
                tokio::select! {
                    time = self.times.recv() => heard.push(time.context("all watchers are gone")?),
                    ended = self.watchers.join_next() => {
                        ended.context("all watchers are gone")?.context("a watcher panicked")??;
                        bail!("the server ended a watch");
                    }
                }
            }
            let earliest = heard.iter().min().copied().context("no watchers")?;
            let latest = heard.iter().max().copied().context("no watchers")?;
            Ok((earliest, latest))
        });
        collected
            .await
            .context("not every watcher had the change in time")
            .flatten()
    }
}

type Opening = JoinSet<anyhow::Result<(Connection, Vec<Incoming>)>>;

/// Takes the next connection whose watches are open and lets them listen.
async fn start(
    opening: &mut Opening,
    running: &mut JoinSet<anyhow::Result<()>>,
    times: &mpsc::UnboundedSender<Instant>,
) -> anyhow::Result<usize> {
    let Some(opened) = opening.join_next().await else {
        return Ok(0);
    };
    let (connection, watches) = opened.context("a watcher panicked")??;
    let count = watches.len();
    for watch in watches {
        running.spawn(listen(connection.clone(), watch, times.clone()));
    }
    Ok(count)
}

async fn watch(connection: &Connection, path: &str) -> anyhow::Result<Incoming> {
    let answer = connection.send(Method::GET, path, Bytes::new(), false).await?;
    if !answer.status().is_success() {
        bail!("cannot watch: {}", answer.status());
    }
    Ok(answer.into_body())
}

/// Tells the time of each event; an event is a line. Parsing would measure this process.
async fn listen(
    connection: Connection,
    mut watch: Incoming,
    times: mpsc::UnboundedSender<Instant>,
) -> anyhow::Result<()> {
    while let Some(frame) = watch.frame().await {
        let frame = frame.context("a watch broke")?;
        let events = frame
            .data_ref()
            .map_or(0, |bytes| bytes.iter().filter(|byte| **byte == b'\n').count());
        let now = Instant::now();
        if (0..events).any(|_| times.send(now).is_err()) {
            break;
        }
    }
    // The connection lives as long as its watches.
    drop(connection);
    Ok(())
}
