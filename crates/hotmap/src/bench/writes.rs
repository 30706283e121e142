//! Create and update.

use std::time::Duration;

use clap::Args;
use hyper::Method;

use super::{
    Bench, config_map,
    load::{self, Exchange, Until},
    report::Row,
};

/// Flags of `bench writes`.
#[derive(Debug, Args)]
pub(super) struct WritesArgs {
    /// Clients of the concurrent rows, each with its own connection.
    #[arg(long, env = "HOTMAP_BENCH_CLIENTS", default_value_t = 64, value_parser = clap::value_parser!(u16).range(1..))]
    clients: u16,
    /// How long each row is measured, in seconds.
    #[arg(long, env = "HOTMAP_BENCH_SECONDS", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    seconds: u16,
}

/// Every row at one client, then at many. All writes are ConfigMaps of about 1 KiB.
pub(super) async fn measure(bench: &Bench<'_>, args: &WritesArgs) -> anyhow::Result<Vec<Row>> {
    let until = Until::Elapsed(Duration::from_secs(args.seconds.into()));
    let mut rows = Vec::new();
    for (round, count) in [1, usize::from(args.clients)].into_iter().enumerate() {
        let connections = bench.connections(count).await?;
        let collection = bench.config_maps();
        let create = {
            let collection = collection.clone();
            move |client, sent| Exchange {
                method: Method::POST,
                path: collection.clone(),
                body: config_map(&name(round, client, sent), 0),
            }
        };
        let update = move |client, sent| {
            // One object per client: clients do not wait for each other's revisions.
            let name = name(round, client, 0);
            Exchange {
                method: Method::PUT,
                path: format!("{collection}/{name}"),
                body: config_map(&name, sent + 1),
            }
        };
        let clients = load::clients(count);
        rows.push(load::run(bench, format!("create, {clients}"), &connections, until, create).await?);
        rows.push(load::run(bench, format!("update, {clients}"), &connections, until, update).await?);
    }
    Ok(rows)
}

fn name(round: usize, client: usize, sent: usize) -> String {
    format!("bench-{round}-{client}-{sent}")
}
