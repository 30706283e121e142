//! The way between a node and its API, which fails when it is told to.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Instant,
};

use anyhow::Context;
use tokio::{
    io::copy_bidirectional,
    net::{TcpListener, TcpStream},
    sync::{mpsc, watch},
    task::JoinSet,
};
use tokio_util::task::AbortOnDropHandle;

/// Takes connections and passes on what is sent, byte by byte: it sees none of it, TLS goes from end to end.
pub(super) struct FaultyWay {
    address: SocketAddr,
    api: SocketAddr,
    /// Connections older than this generation swallow what is sent.
    generation: watch::Sender<usize>,
    connected: mpsc::UnboundedSender<Instant>,
    accepted: mpsc::UnboundedReceiver<Instant>,
    count: Arc<AtomicUsize>,
    task: Option<AbortOnDropHandle<()>>,
}

impl FaultyWay {
    /// Opens a way to `api` at a free port of `ip`.
    pub(super) async fn to(ip: std::net::Ipv4Addr, api: impl Fn(u16) -> SocketAddr) -> anyhow::Result<Self> {
        let listener = TcpListener::bind((ip, 0)).await.context("cannot listen")?;
        let address = listener.local_addr()?;
        // Bounded by what the node does: an entry for each of its connections.
        let (connected, accepted) = mpsc::unbounded_channel();
        let mut way = Self {
            address,
            api: api(address.port()),
            generation: watch::Sender::new(0),
            connected,
            accepted,
            count: Arc::default(),
            task: None,
        };
        way.pass_on(listener);
        Ok(way)
    }

    /// Where the node connects to.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the API is to listen.
    pub(super) fn api(&self) -> SocketAddr {
        self.api
    }

    /// Connections taken so far; [`FaultyWay::accepted`] tells of those after this call.
    pub(super) fn accepted_so_far(&mut self) -> usize {
        while self.accepted.try_recv().is_ok() {}
        self.count.load(Ordering::Relaxed)
    }

    /// When the next connection was taken.
    pub(super) async fn accepted(&mut self) -> Instant {
        self.accepted.recv().await.expect("the sender is ours")
    }

    /// Ends all connections and refuses new ones.
    pub(super) fn close(&mut self) {
        self.task = None;
        while self.accepted.try_recv().is_ok() {}
    }

    /// Takes connections again; since when.
    pub(super) async fn open(&mut self) -> anyhow::Result<Instant> {
        let listener = TcpListener::bind(self.address)
            .await
            .context("cannot listen again")?;
        let since = Instant::now();
        self.pass_on(listener);
        Ok(since)
    }

    /// Passes on nothing more of what is sent on the connections there are, and leaves them open. New ones work. Since when.
    pub(super) fn swallow(&mut self) -> Instant {
        while self.accepted.try_recv().is_ok() {}
        self.generation.send_modify(|generation| *generation += 1);
        Instant::now()
    }

    fn pass_on(&mut self, listener: TcpListener) {
        let (api, generation) = (self.api, self.generation.subscribe());
        let (connected, count) = (self.connected.clone(), Arc::clone(&self.count));
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((node, _)) = listener.accept().await {
                count.fetch_add(1, Ordering::Relaxed);
                // Nobody hears it at the end of the measurement.
                let _ = connected.send(Instant::now());
                connections.spawn(connect(node, api, generation.clone()));
                while connections.try_join_next().is_some() {}
            }
        });
        self.task = Some(AbortOnDropHandle::new(task));
    }
}

async fn connect(mut node: TcpStream, api: SocketAddr, mut generation: watch::Receiver<usize>) {
    let own = *generation.borrow();
    let Ok(mut api) = TcpStream::connect(api).await else {
        return;
    };
    // A frame that waits for an acknowledgement would be measured as the node's delay.
    let _ = (node.set_nodelay(true), api.set_nodelay(true));
    tokio::select! {
        biased;
        () = async { drop(generation.wait_for(|now| *now > own).await) } => {
            // Both ends stay open and hear nothing, until one of them gives up: as if packets were lost on the way.
            std::future::pending::<()>().await;
        }
        _ = copy_bidirectional(&mut node, &mut api) => {}
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn a_way_passes_on_closes_and_swallows_as_it_is_told() {
        let echo = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = echo.local_addr().expect("bound");
        tokio::spawn(async move {
            while let Ok((mut one, _)) = echo.accept().await {
                tokio::spawn(async move {
                    let (mut read, mut write) = one.split();
                    tokio::io::copy(&mut read, &mut write).await.ok();
                });
            }
        });
        let mut way = FaultyWay::to([127, 0, 0, 1].into(), |_| address)
            .await
            .expect("a way");
        let mut byte = [0];
        let mut old = TcpStream::connect(way.address()).await.expect("open");
        old.write_all(b"a").await.expect("sent");
        old.read_exact(&mut byte).await.expect("passed on");
        assert_eq!(way.accepted_so_far(), 1);

        way.swallow();
        let mut new = TcpStream::connect(way.address()).await.expect("open");
        way.accepted().await;
        new.write_all(b"b").await.expect("sent");
        new.read_exact(&mut byte).await.expect("new connections work");
        old.write_all(b"c").await.expect("taken, and swallowed");
        assert!(
            old.try_read(&mut byte)
                .is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
        );

        way.close();
        assert!(matches!(new.read(&mut byte).await, Ok(0) | Err(_)));
        assert!(TcpStream::connect(way.address()).await.is_err());
        way.open().await.expect("the same port");
        TcpStream::connect(way.address()).await.expect("open again");
    }
}
