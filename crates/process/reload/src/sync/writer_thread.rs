//! The thread that writes, so that a slow disk holds up no watch.

use std::io;
use std::sync::mpsc;
use std::thread;

use tokio::sync::oneshot;

use crate::sync::destination::Destination;

type Job = Box<dyn FnOnce(&mut Destination) + Send>;

/// A thread that owns the directory. It ends when this is dropped, after what it is at.
pub(crate) struct WriterThread {
    jobs: mpsc::Sender<Job>,
}

impl WriterThread {
    pub(crate) fn start(mut destination: Destination) -> io::Result<Self> {
        let (jobs, receiver) = mpsc::channel::<Job>();
        thread::Builder::new()
            .name("sync-writer".to_owned())
            .spawn(move || {
                for job in receiver {
                    job(&mut destination);
                }
            })?;
        Ok(Self { jobs })
    }

    /// Does something there, and waits for it.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Destination) -> T + Send + 'static,
    ) -> T {
        let (sender, answer) = oneshot::channel();
        let job: Job = Box::new(move |destination| {
            // Nobody waits any more when the process is about to end; what was done is whole all the same.
            let _ = sender.send(work(destination));
        });
        self.jobs.send(job).expect("the thread lives as long as this");
        answer.await.expect("a write does not panic")
    }
}
