//! The agent's socket in a pod: docs/agent-socket.md is the protocol.

use std::io;
use std::path::Path;
use std::time::Duration;

use hotmap_client::Backoff;
use hotmap_volume::RevisionName;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::time::{sleep, timeout};
use tracing::{debug, info};

use super::statement::{Statement, Statements};
use crate::endpoint::{EndpointMetrics, Receiver, Reported};

/// Bytes of an answer.
const ANSWER_BYTES_MAX: u64 = 4_096;
/// An agent that says nothing for so long is asked again on a new connection.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(10);
/// Between two tries to connect: at first, and at most.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));
/// After a refusal. A program may be faster than the agent's own note of what it has projected; after the last of them it
/// is taken for a directory that the agent knows nothing of.
const AGAIN: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(5),
];

/// Says everything, then each change; again after each reconnect, as a new agent knows nothing. Until it is dropped.
pub(super) async fn report(socket: &Path, mut statements: Statements, metrics: &EndpointMetrics) {
    let mut backoff = Backoff::seeded(RECONNECT.0, RECONNECT.1);
    loop {
        let error = match UnixStream::connect(socket).await {
            Ok(stream) => {
                let mut conversation = Conversation::new(stream);
                conversation.hold(&mut statements, metrics, &mut backoff).await
            }
            Err(error) => error,
        };
        metrics.reported(Receiver::Agent, Reported::Unreachable);
        debug!(%error, socket = %socket.display(), "the agent is away: what is loaded is said again when it is back");
        sleep(backoff.next_delay()).await;
    }
}

struct Conversation {
    reader: BufReader<OwnedReadHalf>,
    writer: OwnedWriteHalf,
    /// What the agent has taken, or will not take, on this connection.
    done: Vec<Statement>,
    /// How often it has refused what is said now.
    refusals: usize,
}

#[derive(Debug, Deserialize)]
struct AgentAnswer {
    #[serde(default)]
    error: Option<String>,
}

impl Conversation {
    fn new(stream: UnixStream) -> Self {
        let (reader, writer) = stream.into_split();
        Self {
            reader: BufReader::with_capacity(512, reader),
            writer,
            done: Vec::new(),
            refusals: 0,
        }
    }

    /// Returns why it has ended.
    async fn hold(
        &mut self,
        statements: &mut Statements,
        metrics: &EndpointMetrics,
        backoff: &mut Backoff,
    ) -> io::Error {
        loop {
            let again = match self.say_what_is_new(statements, metrics).await {
                Ok(again) => again,
                Err(error) => return error,
            };
            backoff.reset();
            tokio::select! {
                changed = statements.changed() => {
                    self.refusals = 0;
                    if changed.is_err() {
                        // Nothing will change any more; what is said stays said while the connection stands.
                        std::future::pending::<()>().await;
                    }
                }
                ended = self.reader.fill_buf() => return match ended {
                    Ok([]) => io::ErrorKind::UnexpectedEof.into(),
                    Ok(_) => io::Error::other("the agent speaks without having been asked"),
                    Err(error) => error,
                },
                () = sleep(again.unwrap_or_default()), if again.is_some() => {}
            }
        }
    }

    /// Returns when it is worth a try to say the rest.
    async fn say_what_is_new(
        &mut self,
        statements: &mut Statements,
        metrics: &EndpointMetrics,
    ) -> io::Result<Option<Duration>> {
        let mut is_refused = false;
        for latest in statements.now(Timestamp::now).await {
            let statement = &latest.statement;
            // Only what it has projected has a name that it knows.
            if self.done.contains(statement) || RevisionName::parse(statement.revision.as_str()).is_none() {
                continue;
            }
            match self.say(statement).await? {
                None => metrics.reported(Receiver::Agent, Reported::Taken),
                Some(error) => {
                    metrics.reported(Receiver::Agent, Reported::Refused);
                    if self.refusals < AGAIN.len() {
                        is_refused = true;
                        continue;
                    }
                    let path = statement.path.display();
                    info!(%path, %error, "the agent does not take the report of what is loaded");
                }
            }
            self.done.retain(|done| done.path != statement.path);
            self.done.push(statement.clone());
        }
        let again = is_refused.then(|| AGAIN[self.refusals]);
        self.refusals = if is_refused { self.refusals + 1 } else { 0 };
        Ok(again)
    }

    /// Says it, and returns why it was refused, if it was.
    async fn say(&mut self, statement: &Statement) -> io::Result<Option<String>> {
        let mut line = json!({"loaded": {"revision": statement.revision.as_str()}, "ok": statement.is_ok});
        if let Some(message) = &statement.message {
            line["message"] = message.as_str().into();
        }
        self.writer.write_all(format!("{line}\n").as_bytes()).await?;
        let mut answer = Vec::new();
        let mut limited = (&mut self.reader).take(ANSWER_BYTES_MAX);
        timeout(ANSWER_TIME_MAX, limited.read_until(b'\n', &mut answer)).await??;
        if answer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let answer: AgentAnswer = serde_json::from_slice(&answer)?;
        Ok(answer.error)
    }
}

#[cfg(test)]
mod tests;
