//! What a change has to pass before anybody is told of it.

use std::time::Duration;

use hotmap_projection::Change;

use crate::command::{CommandError, CommandLine, Words};

/// A command that says by its exit code whether changed content is good: `nginx -t`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    command: CommandLine,
    timeout: Duration,
}

/// A change does not pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CheckError {
    /// For a person.
    pub message: String,
    /// The label `reason` of metrics.
    pub reason: &'static str,
}

impl Check {
    /// A check by this command, which is killed after `timeout`.
    pub fn new(command: CommandLine, timeout: Duration) -> Self {
        Self { command, timeout }
    }

    /// Runs the command once.
    ///
    /// # Errors
    /// [`CheckError`]: it said no, did not start or did not end. The change is not good, or nobody knows.
    pub async fn run(&self, changes: &[Change]) -> Result<(), CheckError> {
        self.words(changes).await.map(|words| words.log(&self.command))
    }

    /// As [`run`](Self::run); what the command says is for whoever asks.
    pub(crate) async fn words(&self, changes: &[Change]) -> Result<Words, CheckError> {
        let ended = self.command.run(changes, self.timeout).await;
        ended.map_err(|error| self.refusal(&error))
    }

    pub(crate) fn command(&self) -> &CommandLine {
        &self.command
    }

    fn refusal(&self, error: &CommandError) -> CheckError {
        CheckError {
            message: format!("check {}: {error}", self.command),
            reason: error.reason(),
        }
    }
}
