//! Whether the program takes the connections of the sockets that it was handed.
//!
//! A program that knows nothing of `LISTEN_FDS` starts well and never accepts; its clients wait for ever. After each
//! start the first connection on each socket is followed: if the queue is never found empty for [`PATIENCE`], that is
//! said. After the first one that was taken nobody looks any more, so a busy program pays nothing for it.

use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use futures_util::future::join_all;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tracing::{error, info};

use super::metrics::ProgramMetrics;
use crate::progress::{Phase, Progress};

/// How long connections may wait.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often the queue is looked at meanwhile: no event tells that a connection was taken.
const LOOK: Duration = Duration::from_millis(250);

/// A listening socket, and its address for a person.
pub(crate) type Listening = (String, OwnedFd);

/// Follows each start, for ever.
pub(crate) async fn follow(
    sockets: Vec<Listening>,
    mut starts: watch::Receiver<u64>,
    progress: Option<watch::Sender<Progress>>,
    metrics: ProgramMetrics,
) -> std::convert::Infallible {
    loop {
        let first_taken = async {
            join_all(
                sockets
                    .iter()
                    .map(|socket| taken(socket, progress.as_ref(), &metrics)),
            )
            .await;
            std::future::pending().await
        };
        tokio::select! {
            // The supervisor ends with its sender, and with it whoever waits for this.
            changed = starts.changed() => if changed.is_err() { return std::future::pending().await },
            never = first_taken => return never,
        }
    }
}

/// Returns when the program has taken the first connection after its start.
async fn taken(
    (address, socket): &Listening,
    progress: Option<&watch::Sender<Progress>>,
    metrics: &ProgramMetrics,
) {
    // SAFETY: the socket is open for longer than this.
    let Ok(queue) = (unsafe { AsyncFd::register_with_interest(socket.as_raw_fd(), Interest::READABLE) })
    else {
        return;
    };
    if queue.readable().await.is_err() {
        return;
    }
    let mut waited = Duration::ZERO;
    let mut stall = None;
    while is_waiting(socket) {
        if waited >= PATIENCE && stall.is_none() {
            let message = format!(
                "connections have been waiting on {address} for {} s: the program does not accept (does it take \
                 LISTEN_FDS?), or cannot keep up",
                PATIENCE.as_secs()
            );
            error!("{message}");
            metrics.never_accepted();
            set(progress, |phase| *phase = Phase::Failed(message.clone()));
            stall = Some(message);
        }
        tokio::time::sleep(LOOK).await;
        waited += LOOK;
    }
    if let Some(message) = stall {
        info!(address, "the program accepts connections");
        set(progress, |phase| {
            if *phase == Phase::Failed(message) {
                *phase = Phase::Loaded;
            }
        });
    }
}

fn set(progress: Option<&watch::Sender<Progress>>, change: impl FnOnce(&mut Phase)) {
    if let Some(progress) = progress {
        progress.send_modify(|progress| change(&mut progress.phase));
    }
}

/// Whether a connection is in the queue at this moment.
fn is_waiting(socket: &OwnedFd) -> bool {
    let mut polled = [PollFd::new(socket, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use prometheus_client::registry::Registry;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_program_that_never_accepts_is_told_of_until_it_does() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback");
        let address = listener.local_addr().expect("it is bound");
        let socket = (
            address.to_string(),
            OwnedFd::from(listener.try_clone().expect("a descriptor")),
        );
        let progress = watch::Sender::new(Progress {
            volumes: Vec::new(),
            phase: Phase::Loaded,
            deaf: None,
        });
        let mut seen = progress.subscribe();
        let (starts, started) = watch::channel(0);
        let metrics = ProgramMetrics::register(&mut Registry::default());
        let client = TcpStream::connect(address).expect("it listens");
        let program = async {
            seen.wait_for(
                |progress| matches!(&progress.phase, Phase::Failed(why) if why.contains("LISTEN_FDS")),
            )
            .await
            .expect("it is there");
            drop(listener.accept().expect("it waits"));
            seen.wait_for(|progress| progress.phase == Phase::Loaded)
                .await
                .expect("it is there");
            starts.send_replace(1);
            // Another start is followed anew.
            let second = TcpStream::connect(address).expect("it listens");
            seen.wait_for(|progress| matches!(progress.phase, Phase::Failed(_)))
                .await
                .expect("it is there");
            drop(second);
        };
        tokio::select! {
            never = follow(vec![socket], started, Some(progress.clone()), metrics) => match never {},
            () = program => {}
        }
        drop(client);
    }
}
