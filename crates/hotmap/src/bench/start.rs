//! Start on a store that holds many objects.

use anyhow::ensure;
use clap::Args;
use hyper::Method;

use super::{
    Bench, config_map,
    connection::Connector,
    create_namespace,
    load::{self, Exchange, Until},
    report::Row,
    server::{Node, OwnServer},
};
use std::time::Instant;

/// Clients that fill the store.
const FILLING_CLIENTS: usize = 64;

/// Flags of `bench start`.
#[derive(Debug, Args)]
pub(super) struct StartArgs {
    /// ConfigMaps of 1 KiB in the store, rounded up to a multiple of 64.
    #[arg(long, env = "HOTMAP_BENCH_OBJECTS", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(..=1_000_000))]
    objects: u32,
    /// How often the server is started.
    #[arg(long, env = "HOTMAP_BENCH_STARTS", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    starts: u16,
    /// With a node: needs root.
    #[arg(long, env = "HOTMAP_BENCH_NODE")]
    pub(super) with_node: bool,
}

impl StartArgs {
    pub(super) fn node(&self) -> Node {
        if self.with_node {
            Node::InProcess
        } else {
            Node::Absent
        }
    }
}

/// Fills the store, then stops and starts the server again and again. At the end it is idle with all objects.
pub(super) async fn measure(
    server: &mut OwnServer,
    connector: &Connector,
    args: &StartArgs,
) -> anyhow::Result<Vec<Row>> {
    let objects = fill(server, connector, args.objects as usize).await?;
    let (mut ready, mut listed) = (Vec::new(), Vec::new());
    let begun = Instant::now();
    for round in 0..args.starts {
        super::progress(&format!("start {} of {}", round + 1, args.starts));
        server.restart().await?;
        let connector = Connector::new(&server.client_config()?).await?;
        ready.push(server.start_to_ready());
        listed.push(server.time_first_list(&connector).await?);
    }
    let elapsed = begun.elapsed();
    ensure!(!ready.is_empty(), "at least one start is measured");
    let memory = server.idle_memory().await?;
    let starts = ready.len();
    let name = format!("start with {objects} objects → ready");
    let ready = Row::new(name, ready, starts, elapsed, None)?;
    let what = if args.with_node {
        "complete list and ready node"
    } else {
        "complete list"
    };
    let name = format!("start with {objects} objects → {what}");
    let listed = Row::new(name, listed, starts, elapsed, None)?;
    let note = format!(
        "idle after the last start and one list: {:.1} MiB resident, {:.1} MiB of it anonymous",
        mebibytes(memory.resident_bytes),
        mebibytes(memory.anonymous_bytes)
    );
    Ok(vec![ready, listed.noted(note)])
}

async fn fill(server: &OwnServer, connector: &Connector, objects: usize) -> anyhow::Result<usize> {
    let per_client = objects.div_ceil(FILLING_CLIENTS);
    if per_client == 0 {
        return Ok(0);
    }
    let namespace = create_namespace(&connector.connect().await?).await?;
    let data_dir = server.data_dir();
    let bench = Bench {
        connector,
        namespace: &namespace,
        server: Some((server.pid(), &data_dir)),
    };
    let connections = bench.connections(FILLING_CLIENTS).await?;
    let collection = bench.config_maps();
    let create = move |client, sent| Exchange {
        method: Method::POST,
        path: collection.clone(),
        body: config_map(&format!("bench-{client}-{sent}"), 0),
    };
    let objects = per_client * FILLING_CLIENTS;
    let name = format!("creating {objects} objects");
    load::run(&bench, name, &connections, Until::Sent(per_client), create).await?;
    Ok(objects)
}

fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / 1_048_576.0
}
