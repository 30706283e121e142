//! One ConfigMap, many volumes, changes faster than all of them can be written: who is behind at the end, and what it costs.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Args;
use hyper::Method;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::{
    Bench, config_map,
    connection::Connection,
    process::Memory,
    propagation::{NAME, pod, read_revision, running_pods, volume_name},
    report::Row,
};

/// Pods start one after the other on few cores.
const PODS_TIMEOUT: Duration = Duration::from_secs(600);
const CATCH_UP_TIMEOUT: Duration = Duration::from_secs(60);
/// Between two looks at the volumes that are behind.
const LOOK_PAUSE: Duration = Duration::from_millis(1);
/// Between two readings of the memory.
const MEMORY_PAUSE: Duration = Duration::from_secs(10);

/// Flags of `bench storm`.
#[derive(Debug, Args)]
pub(super) struct StormArgs {
    /// Pods that mount the ConfigMap.
    #[arg(long, env = "HOTMAP_BENCH_PODS", default_value_t = 200, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pods: u16,
    /// Volumes that show it, spread over the pods.
    #[arg(long, env = "HOTMAP_BENCH_VOLUMES", default_value_t = 500, value_parser = clap::value_parser!(u16).range(1..=10_000))]
    volumes: u16,
    /// Changes a second.
    #[arg(long, env = "HOTMAP_BENCH_RATE", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rate: u16,
    /// How long the storm blows, in seconds.
    #[arg(long, env = "HOTMAP_BENCH_SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u16).range(1..=3_600))]
    seconds: u16,
}

/// The times of the writes, and from the last one until the first and the last volume show it.
pub(super) async fn measure(bench: &Bench<'_>, args: &StormArgs) -> anyhow::Result<Vec<Row>> {
    if args.volumes < args.pods {
        bail!("--volumes must not be less than --pods: each pod has one at least");
    }
    let (_, data_dir) = bench.server.context("the server is not ours")?;
    let api = bench.connector.connect().await?;
    api.exchange(Method::POST, &bench.config_maps(), config_map(NAME, 0))
        .await?;
    let mut behind = start_pods(bench, args, &api, data_dir).await?;

    super::progress(&format!("{} changes a second for {} s", args.rate, args.seconds));
    let target = format!("{}/{NAME}", bench.config_maps());
    let swaps_before = swaps(&api).await?;
    let cpu_before = bench.cpu_time()?;
    let begun = Instant::now();
    let mut memory = vec![bench.memory()?.context("the server is not ours")?];
    let changes = usize::from(args.rate) * usize::from(args.seconds);
    let mut answered = Vec::with_capacity(changes);
    let mut pace = interval(Duration::from_secs(1) / u32::from(args.rate));
    // A machine that cannot keep up blows less, not in gusts.
    pace.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for change in 1..=changes {
        pace.tick().await;
        let sent = Instant::now();
        api.exchange(Method::PUT, &target, config_map(NAME, change))
            .await?;
        answered.push(sent.elapsed());
        if begun.elapsed() > MEMORY_PAUSE * u32::try_from(memory.len())? {
            memory.extend(bench.memory()?);
        }
    }
    let (last, blown) = (Instant::now(), begun.elapsed());
    let (mut caught_up, volumes) = (Vec::with_capacity(behind.len()), behind.len());
    let catch_up = async {
        loop {
            let before = behind.len();
            behind.retain(|volume| read_revision(volume).ok() != Some(changes));
            caught_up.extend(std::iter::repeat_n(last.elapsed(), before - behind.len()));
            if behind.is_empty() {
                break;
            }
            sleep(LOOK_PAUSE).await;
        }
    };
    if timeout(CATCH_UP_TIMEOUT, catch_up).await.is_err() {
        bail!("{} volumes never showed the last change", behind.len());
    }
    let cpu = bench.cpu_since(cpu_before)?;
    memory.extend(bench.memory()?);
    let swapped = swaps(&api).await? - swaps_before;
    let anonymous = |memory: &Memory| format!("{:.1}", memory.anonymous_bytes as f64 / 1_048_576.0);
    let sampled: Vec<String> = memory.iter().map(anonymous).collect();
    let note = format!(
        "{volumes} volumes, {swapped:.0} swaps, {:.0} % of all revisions were skipped; anonymous memory over time, MiB: {}",
        100.0 - 100.0 * swapped / (changes * volumes) as f64,
        sampled.join(" "),
    );
    Ok(vec![
        Row::new("change sent → answered", answered, changes, blown, cpu)?,
        Row::new(
            "last change answered → in each volume",
            caught_up,
            volumes,
            blown,
            None,
        )?
        .noted(note),
    ])
}

/// The volumes of all pods once these run.
async fn start_pods(
    bench: &Bench<'_>,
    args: &StormArgs,
    api: &Connection,
    data_dir: &Path,
) -> anyhow::Result<Vec<PathBuf>> {
    super::progress(&format!("starting {} pods", args.pods));
    let pods = format!("/api/v1/namespaces/{}/pods", bench.namespace);
    let (each, more) = (args.volumes / args.pods, args.volumes % args.pods);
    for number in 0..args.pods {
        let volumes = each + u16::from(number < more);
        let body: Bytes = pod(&format!("reader-{number}"), volumes).to_string().into();
        api.exchange(Method::POST, &pods, body).await?;
    }
    let running = timeout(PODS_TIMEOUT, running_pods(api, &pods, args.pods.into())).await;
    let mut directories = Vec::new();
    for uid in running.context("the pods did not run in time").flatten()? {
        let pod = data_dir.join("volumes").join(uid);
        let volumes = (0..=each).map(|number| pod.join(volume_name(number)));
        directories.extend(volumes.filter(|volume| volume.exists()));
    }
    Ok(directories)
}

/// How many revisions the node has published in volumes so far.
async fn swaps(api: &Connection) -> anyhow::Result<f64> {
    let metrics = api.exchange(Method::GET, "/metrics", Bytes::new()).await?;
    let metrics = String::from_utf8_lossy(&metrics).into_owned();
    let name = "hotmap_volume_writes_total{outcome=\"swapped\"} ";
    let value = metrics.lines().find_map(|line| line.strip_prefix(name));
    value
        .and_then(|value| value.parse().ok())
        .context("the node does not count what it writes")
}
