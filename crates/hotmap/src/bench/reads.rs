//! Get and list.

use std::time::{Duration, Instant};

use anyhow::ensure;
use bytes::Bytes;
use clap::Args;
use hyper::{Method, header::CONTENT_ENCODING};

use super::{
    Bench, config_map,
    connection::{self, Connection},
    load::{self, Exchange, Until},
    report::Row,
};

const LISTS: usize = 20;

/// Flags of `bench reads`.
#[derive(Debug, Args)]
pub(super) struct ReadsArgs {
    /// Clients of the concurrent row, each with its own connection.
    #[arg(long, env = "HOTMAP_BENCH_CLIENTS", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    clients: u16,
    /// How long get is measured, in seconds.
    #[arg(long, env = "HOTMAP_BENCH_SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    seconds: u16,
    /// ConfigMaps of 1 KiB in the list.
    #[arg(long, env = "HOTMAP_BENCH_OBJECTS", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..1_000_000))]
    objects: u32,
}

/// Gets at one client and at many, then whole lists, plain and with gzip, over one connection.
pub(super) async fn measure(bench: &Bench<'_>, args: &ReadsArgs) -> anyhow::Result<Vec<Row>> {
    let connections = bench.connections(args.clients.into()).await?;
    let per_client = (args.objects as usize).div_ceil(connections.len());
    let collection = bench.config_maps();
    let fill = {
        let collection = collection.clone();
        move |client, sent| Exchange {
            method: Method::POST,
            path: collection.clone(),
            body: config_map(&format!("bench-{client}-{sent}"), 0),
        }
    };
    let objects = per_client * connections.len();
    load::run(
        bench,
        format!("creating {objects} objects"),
        &connections,
        Until::Sent(per_client),
        fill,
    )
    .await?;

    let until = Until::Elapsed(Duration::from_secs(args.seconds.into()));
    let mut rows = Vec::new();
    for count in [1, connections.len()] {
        let collection = collection.clone();
        let get = move |client: usize, sent: usize| {
            let path = format!("{collection}/bench-{client}-{}", sent % per_client);
            Exchange {
                method: Method::GET,
                path,
                body: Bytes::new(),
            }
        };
        let name = format!("get, {}", load::clients(count));
        rows.push(load::run(bench, name, &connections[..count], until, get).await?);
    }
    rows.push(list(bench, &connections[0], objects, false).await?);
    rows.push(list(bench, &connections[0], objects, true).await?);
    Ok(rows)
}

async fn list(bench: &Bench<'_>, connection: &Connection, objects: usize, gzip: bool) -> anyhow::Result<Row> {
    let name = format!("list {objects} objects, {}", if gzip { "gzip" } else { "plain" });
    super::progress(&name);
    let path = bench.config_maps();
    let mut samples = Vec::with_capacity(LISTS);
    let mut bytes = 0;
    let mut is_compressed = false;
    let cpu_before = bench.cpu_time()?;
    let start = Instant::now();
    for _ in 0..LISTS {
        let sent = Instant::now();
        let answer = connection.send(Method::GET, &path, Bytes::new(), gzip).await?;
        is_compressed = answer
            .headers()
            .get(CONTENT_ENCODING)
            .is_some_and(|encoding| encoding == "gzip");
        bytes = connection::read(answer).await?.len();
        samples.push(sent.elapsed());
    }
    let (elapsed, cpu) = (start.elapsed(), bench.cpu_since(cpu_before)?);
    ensure!(
        gzip || !is_compressed,
        "the server compressed an answer without being asked"
    );
    let mut row = Row::new(name, samples, LISTS, elapsed, cpu)?;
    row.answer_bytes = Some(bytes as u64);
    Ok(if gzip && !is_compressed {
        row.noted("the server did not compress")
    } else {
        row
    })
}
