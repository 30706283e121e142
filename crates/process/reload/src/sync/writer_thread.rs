//! The thread that writes, so that a slow disk holds up no watch.

use std::io;
use std::sync::mpsc;
use std::thread;

use hotmap_volume::Payload;
use tokio::sync::oneshot;

use crate::sync::destination::{Destination, PlaceError, Placed};

type Answer = Result<Placed, PlaceError>;

/// A thread with the only writer of a directory. It ends when this is dropped, after what it is at.
pub(crate) struct WriterThread {
    jobs: mpsc::Sender<(Payload, oneshot::Sender<Answer>)>,
}

impl WriterThread {
    pub(crate) fn start(destination: Destination) -> io::Result<Self> {
        let (jobs, receiver) = mpsc::channel::<(Payload, oneshot::Sender<Answer>)>();
        thread::Builder::new()
            .name("sync-writer".to_owned())
            .spawn(move || {
                for (payload, answer) in receiver {
                    // Nobody waits any more when the process is about to end; the write is whole all the same.
                    let _ = answer.send(destination.place(&payload));
                }
            })?;
        Ok(Self { jobs })
    }

    /// Writes; whoever calls waits, and sends no second one meanwhile.
    pub(crate) async fn place(&self, payload: Payload) -> Answer {
        let (sender, answer) = oneshot::channel();
        let gone = || PlaceError {
            message: "the thread that writes has ended".to_owned(),
            is_published: false,
        };
        self.jobs.send((payload, sender)).map_err(|_| gone())?;
        answer.await.unwrap_or_else(|_| Err(gone()))
    }
}
