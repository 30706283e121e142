//! `hotmap run`: supervises one program, also as process 1 of a container.
//!
//! ```text
//!   main thread                          supervisor's thread (tokio, one thread)
//!   takes every signal, one by one ────▶ forwards it; looks at its children
//!   reaps orphans, which become its      starts the program, checks and commands,
//!   children                             which become its children, and reaps those
//! ```
//!
//! The two reap different children, because a child belongs to the thread that has started it and an orphan to the main
//! thread: `waitid` with `__WNOTHREAD` sees those of its own thread only.

mod accepts;
mod backoff;
mod drive;
mod environment;
mod machine;
mod manager;
mod metrics;
mod notify;
mod program_target;
pub(crate) mod signal_name;
mod sockets;
mod spawn;
mod supervisor;
mod sys;
mod terminal;

use std::sync::OnceLock;
use std::thread;

use tokio::sync::mpsc;
use tracing::debug;

pub(crate) use backoff::Backoff;
pub(crate) use drive::{Changes, RunConfig, drive};
pub(crate) use environment::{EnvironmentSource, EnvironmentSources, source};
pub(crate) use machine::{Overlap, Policy, RestartPolicy};
pub(crate) use metrics::ProgramMetrics;
pub(crate) use program_target::OnChange;
pub(crate) use sockets::Listen;
pub(crate) use supervisor::Heard;

use sys::SignalSet;

/// Signals that may wait for the supervisor; the kernel keeps one of each kind beyond that.
const HEARD_MAX: usize = 64;

/// `run` could not begin.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BeginError {
    #[error("cannot take over the signals: {0}")]
    Signals(std::io::Error),
    #[error("cannot adopt orphans (PR_SET_CHILD_SUBREAPER): {0}")]
    Subreaper(std::io::Error),
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
    #[error("cannot build a runtime: {0}")]
    Runtime(std::io::Error),
}

/// Takes the signals and the orphans of this process, and has `supervise` do the rest on a runtime of its own. Call it
/// on the main thread, before there is another one. Orphans are counted in `metrics`. Returns the exit code of `supervise`.
///
/// # Errors
/// [`BeginError`]: nothing was started.
pub(crate) fn as_init<F>(
    metrics: &ProgramMetrics,
    supervise: impl FnOnce(mpsc::Receiver<Heard>) -> F + Send,
) -> Result<u8, BeginError>
where
    F: Future<Output = u8>,
{
    let signals = SignalSet::block().map_err(BeginError::Signals)?;
    let own = rustix::process::getpid();
    if own.as_raw_nonzero().get() != 1 {
        rustix::process::set_child_subreaper(Some(own))
            .map_err(|error| BeginError::Subreaper(error.into()))?;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(BeginError::Runtime)?;
    let (hears, heard) = mpsc::channel(HEARD_MAX);
    let exit_code = OnceLock::new();
    thread::scope(|scope| {
        let supervisor = thread::Builder::new()
            .name("supervisor".to_owned())
            .spawn_scoped(scope, || {
                // Dropped whatever happens, so that the main thread never waits for a supervisor that has panicked.
                let _wakes = WakeMain;
                let code = runtime.block_on(supervise(heard));
                let _ = exit_code.set(code);
                runtime.shutdown_background();
            });
        let supervisor = supervisor.map_err(BeginError::Thread)?;
        while !supervisor.is_finished() && exit_code.get().is_none() {
            let signal = signals.wait();
            let heard = if signal == libc::SIGCHLD {
                reap_orphans(metrics);
                Heard::Children
            } else {
                Heard::Signal(signal)
            };
            if hears.blocking_send(heard).is_err() {
                break;
            }
        }
        Ok(())
    })?;
    Ok(exit_code
        .into_inner()
        .expect("a supervisor that panicked has ended the scope"))
}

fn reap_orphans(metrics: &ProgramMetrics) {
    while let Some(pid) = sys::reap_child_of_this_thread() {
        metrics.orphan_reaped();
        debug!(pid, "orphan reaped");
    }
}

/// Wakes the main thread when the supervisor ends.
struct WakeMain;

impl Drop for WakeMain {
    fn drop(&mut self) {
        sys::signal_self(libc::SIGCHLD);
    }
}
