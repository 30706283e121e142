//! What is said of each watched path.

use std::path::PathBuf;
use std::sync::Arc;

use hotmap_projection::Revision;
use jiff::Timestamp;

use crate::endpoint::{MESSAGE_BYTES_MAX, Secrecy, Standing, redacted};
use crate::progress::{Phase, Progress, VolumeProgress};

/// Which revision of a path is in use, or was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Statement {
    pub(crate) path: PathBuf,
    pub(crate) revision: Revision,
    /// In use. Otherwise it was refused, and what was there before goes on.
    pub(crate) is_ok: bool,
    pub(crate) message: Option<String>,
}

/// A statement, and when it became true.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Since {
    pub(crate) statement: Statement,
    pub(crate) since: Timestamp,
}

/// What there is to say, as it changes.
#[derive(Debug)]
pub(crate) struct Statements {
    standing: Standing,
    secrecy: Arc<Secrecy>,
    latest: Vec<Since>,
}

impl Statements {
    pub(crate) fn new(standing: Standing, secrecy: Arc<Secrecy>) -> Self {
        Self {
            standing,
            secrecy,
            latest: Vec::new(),
        }
    }

    /// What there is to say now: of each path what became true last. Nothing of a path that has never been loaded or
    /// refused.
    pub(crate) async fn now(&mut self, clock: fn() -> Timestamp) -> &[Since] {
        let progress = redacted(&self.secrecy, self.standing.now()).await;
        for volume in &progress.volumes {
            let Some(mut statement) = statement_of(&progress, volume) else {
                continue;
            };
            // A program's own words are for others to read; what a check says may be anything.
            if !statement.is_ok
                && let Some(word) = self.standing.acknowledged(&volume.path)
                && !word.is_ok
                && volume.now(&word.revision) == statement.revision
            {
                statement.message = word.message;
            }
            self.note(statement, clock);
        }
        &self.latest
    }

    /// Returns when there may be something else to say.
    ///
    /// # Errors
    /// There will be nothing more.
    pub(crate) async fn changed(&mut self) -> Result<(), tokio::sync::watch::error::RecvError> {
        self.standing.changed().await
    }

    fn note(&mut self, statement: Statement, clock: fn() -> Timestamp) {
        match self
            .latest
            .iter_mut()
            .find(|latest| latest.statement.path == statement.path)
        {
            Some(latest) if latest.statement == statement => {}
            Some(latest) => {
                *latest = Since {
                    statement,
                    since: clock(),
                }
            }
            None => self.latest.push(Since {
                statement,
                since: clock(),
            }),
        }
    }
}

/// Nothing while a change is on its way: what was said before is still what is known.
fn statement_of(progress: &Progress, volume: &VolumeProgress) -> Option<Statement> {
    let seen = volume.seen.as_ref()?;
    let path = volume.path.clone();
    if volume.loaded.as_ref() == Some(seen) {
        return Some(Statement {
            path,
            revision: seen.clone(),
            is_ok: true,
            message: None,
        });
    }
    let (Phase::HeldBack(why) | Phase::Failed(why)) = &progress.phase else {
        return None;
    };
    let message = why[..why.floor_char_boundary(MESSAGE_BYTES_MAX)].to_owned();
    Some(Statement {
        path,
        revision: seen.clone(),
        is_ok: false,
        message: Some(message),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tokio::sync::watch;

    use super::*;

    fn progress(seen: &str, loaded: Option<&str>, phase: Phase) -> Progress {
        let volume = VolumeProgress {
            path: PathBuf::from("/etc/app"),
            seen: Some(Revision::new(seen)),
            told: None,
            loaded: loaded.map(Revision::new),
        };
        Progress {
            volumes: vec![volume],
            phase,
            deaf: None,
        }
    }

    fn clock() -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    #[tokio::test]
    async fn each_transition_is_said_and_what_is_on_its_way_is_not() {
        let (sender, receiver) = watch::channel(progress("a", None, Phase::Loading));
        let public = Secrecy {
            public: vec![PathBuf::from("/etc/app")],
            ..Secrecy::default()
        };
        let mut statements = Statements::new(Standing::new(receiver, true), Arc::new(public));
        assert_eq!(statements.now(clock).await, []);
        let held = || Phase::HeldBack("check nginx -t: exit code 1".to_owned());
        for (told, revision, is_ok, message) in [
            (progress("a", Some("a"), Phase::Loaded), "a", true, None),
            (progress("b", Some("a"), Phase::Loading), "a", true, None),
            (
                progress("b", Some("a"), held()),
                "b",
                false,
                Some("check nginx -t: exit code 1"),
            ),
            (
                progress("c", Some("a"), Phase::Loading),
                "b",
                false,
                Some("check nginx -t: exit code 1"),
            ),
            (progress("c", Some("c"), Phase::Loaded), "c", true, None),
        ] {
            sender.send_replace(told);
            let [latest] = statements.now(clock).await else {
                panic!("one path is watched")
            };
            let statement = &latest.statement;
            assert_eq!((statement.revision.as_str(), statement.is_ok), (revision, is_ok));
            assert_eq!(statement.message.as_deref(), message);
        }
    }

    #[tokio::test]
    async fn of_a_secret_only_the_programs_own_words_are_passed_on() {
        let failed = Phase::Failed("line 1: bad value hunter2".to_owned());
        let (sender, receiver) = watch::channel(progress("b", Some("a"), failed));
        let secret = Secrecy {
            secret: vec![PathBuf::from("/etc/app")],
            ..Secrecy::default()
        };
        let standing = Standing::new(receiver, true);
        let mut statements = Statements::new(standing.clone(), Arc::new(secret));
        let message = statements.now(clock).await[0].statement.message.clone().unwrap();
        assert!(
            !message.contains("hunter2") && message.contains("log"),
            "{message}"
        );

        sender.send_replace(progress("b", Some("b"), Phase::Loaded));
        let word = crate::endpoint::Acknowledgement {
            revision: Revision::new("b"),
            is_ok: false,
            message: Some("no such level".to_owned()),
        };
        standing.acknowledge(Path::new("/etc/app"), word);
        let statement = &statements.now(clock).await[0].statement;
        assert_eq!(
            (statement.is_ok, statement.message.as_deref()),
            (false, Some("no such level"))
        );
    }
}
