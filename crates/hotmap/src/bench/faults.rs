//! How long a node stays behind when it loses the API, and when it gets it back.
//!
//! ```text
//!   node ──▶ the way ──▶ API            the way is ours: it closes, opens again, or swallows what is sent
//!    │                    ▲
//!    ▼ rename             └── changes, past the way
//!   volume of a running pod, read as in `bench propagation`
//! ```

use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use clap::Args;
use hyper::Method;
use tokio::time::{sleep, timeout};

use super::{
    Bench, config_map,
    faulty_way::FaultyWay,
    propagation::{Arrivals, NAME, pod, running_pods, volume_name},
    report::Row,
};

const PODS_TIMEOUT: Duration = Duration::from_secs(120);
/// A node that has not come back after this never will.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
/// Between what is done to the way and the change that nobody hears of.
const SETTLE: Duration = Duration::from_millis(200);

/// Flags of `bench faults`.
#[derive(Debug, Args)]
pub(super) struct FaultsArgs {
    /// How long the API is away; a node that is away for longer than its pods tolerate loses them.
    #[arg(long, env = "HOTMAP_BENCH_AWAY", default_value = "60s", value_parser = away, value_name = "DURATION")]
    away: Duration,
    /// How often each fault happens.
    #[arg(long, env = "HOTMAP_BENCH_ROUNDS", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
}

fn away(given: &str) -> Result<Duration, String> {
    let parsed: Result<jiff::SignedDuration, _> = given.parse();
    let parsed = parsed.map_err(|_| "not a duration such as 5s or 1m".to_owned())?;
    Duration::try_from(parsed)
        .ok()
        .filter(|away| (Duration::from_secs(1)..=Duration::from_secs(240)).contains(away))
        .ok_or_else(|| "not between 1s and 4m".to_owned())
}

/// For each fault the times until the node is back, and from there until a change made meanwhile is in the volume.
pub(super) async fn measure(
    bench: &Bench<'_>,
    args: &FaultsArgs,
    way: &mut FaultyWay,
) -> anyhow::Result<Vec<Row>> {
    let (_, data_dir) = bench.server.context("the server is not ours")?;
    let api = bench.connector.connect().await?;
    api.exchange(Method::POST, &bench.config_maps(), config_map(NAME, 0))
        .await?;
    let pods = format!("/api/v1/namespaces/{}/pods", bench.namespace);
    let reader: Bytes = pod("reader", 1).to_string().into();
    api.exchange(Method::POST, &pods, reader).await?;
    let running = timeout(PODS_TIMEOUT, running_pods(&api, &pods, 1)).await;
    let uids = running.context("the pod did not run in time").flatten()?;
    let volume = data_dir.join("volumes").join(&uids[0]).join(volume_name(0));
    let mut arrivals = Arrivals::listen(vec![volume])?;
    let connections = way.accepted_so_far();

    let target = format!("{}/{NAME}", bench.config_maps());
    let mut change = 0;
    let (mut connect, mut delivered, mut notice, mut caught_up) = (vec![], vec![], vec![], vec![]);
    let begun = Instant::now();
    for round in 1..=args.rounds {
        super::progress(&format!(
            "round {round} of {}: the API is away for {} s",
            args.rounds,
            args.away.as_secs()
        ));
        way.close();
        sleep(SETTLE).await;
        change += 1;
        api.exchange(Method::PUT, &target, config_map(NAME, change))
            .await?;
        sleep(args.away).await;
        let back = way.open().await?;
        let connected = accepted(way).await?;
        let (arrived, _) = arrivals.round(change, 1).await?;
        connect.push(connected - back);
        delivered.push(arrived - connected);

        super::progress("what is sent between node and API is swallowed");
        let swallowed = way.swallow();
        sleep(SETTLE).await;
        change += 1;
        api.exchange(Method::PUT, &target, config_map(NAME, change))
            .await?;
        let connected = accepted(way).await?;
        let (arrived, _) = arrivals.round(change, 1).await?;
        notice.push(connected - swallowed);
        caught_up.push(arrived - connected);
    }
    let row = |name: &str, samples| Row::new(name, samples, args.rounds.into(), begun.elapsed(), None);
    Ok(vec![
        row("API back → node connected", connect)?.noted(format!(
            "{} s away; it tries again every 2 s at most",
            args.away.as_secs()
        )),
        row("connected → change made meanwhile in the volume", delivered)?,
        row("packets dropped → noticed, connected anew", notice)?,
        row("connected anew → change made meanwhile in the volume", caught_up)?.noted(format!(
            "the node had {connections} connection before the first fault"
        )),
    ])
}

async fn accepted(way: &mut FaultyWay) -> anyhow::Result<Instant> {
    timeout(CONNECT_TIMEOUT, way.accepted())
        .await
        .context("the node did not connect again in time")
}
