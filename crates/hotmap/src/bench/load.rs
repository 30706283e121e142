//! Closed loops: each client sends its next request when it has the answer to the one before.

use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use hyper::Method;
use tokio::task::JoinSet;

use super::{Bench, connection::Connection, report::Row};

/// One request of a load.
pub(super) struct Exchange {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) body: Bytes,
}

/// When a load is over.
#[derive(Debug, Clone, Copy)]
pub(super) enum Until {
    /// After this time; requests under way are finished and counted.
    Elapsed(Duration),
    /// When each client has sent so many.
    Sent(usize),
}

/// Runs the load and makes a row of it. `request` gets the client's number and how many it has sent so far.
pub(super) async fn run(
    bench: &Bench<'_>,
    name: String,
    connections: &[Connection],
    until: Until,
    request: impl Fn(usize, usize) -> Exchange + Clone + Send + 'static,
) -> anyhow::Result<Row> {
    super::progress(&name);
    let cpu_before = bench.cpu_time()?;
    let start = Instant::now();
    let mut clients = JoinSet::new();
    for (client, connection) in connections.iter().enumerate() {
        clients.spawn(client_loop(
            client,
            connection.clone(),
            start,
            until,
            request.clone(),
        ));
    }
    let mut samples = Vec::new();
    while let Some(ended) = clients.join_next().await {
        samples.extend(ended.context("a client panicked")??);
    }
    let elapsed = start.elapsed();
    let cpu = bench.cpu_since(cpu_before)?;
    let operations = samples.len();
    Row::new(name, samples, operations, elapsed, cpu)
}

async fn client_loop(
    client: usize,
    connection: Connection,
    start: Instant,
    until: Until,
    request: impl Fn(usize, usize) -> Exchange,
) -> anyhow::Result<Vec<Duration>> {
    let mut samples = Vec::new();
    let goes_on = |sent: usize| match until {
        Until::Elapsed(limit) => start.elapsed() < limit,
        Until::Sent(count) => sent < count,
    };
    while goes_on(samples.len()) {
        let Exchange { method, path, body } = request(client, samples.len());
        let sent = Instant::now();
        connection.exchange(method, &path, body).await?;
        samples.push(sent.elapsed());
    }
    Ok(samples)
}

/// `1 client`, `64 clients`.
pub(super) fn clients(count: usize) -> String {
    format!("{count} client{}", if count == 1 { "" } else { "s" })
}
