//! Restarts containers whose environment has changed, where the pod asks for it.

use std::{collections::BTreeMap, sync::Arc};

use hotmap_runtime::CompareError;
use jiff::Timestamp;
use tokio::task::spawn_blocking;
use tracing::{info, warn};

use super::{Worker, min, printed};
use crate::{
    command::command,
    env_restart::{self, Candidate, Next, Wish},
    environment::{EnvironmentError, Known, environment},
    events::Subject,
    pod::{Container, Pod},
};

/// What the worker knows of the environments of its containers.
#[derive(Debug, Default)]
pub(super) struct EnvRestarts {
    /// The newest comparison of each container.
    compared: BTreeMap<String, Compared>,
    /// The start that was ended for this and has no successor that runs yet.
    under_way: Option<(String, u32)>,
    last: Option<Timestamp>,
    /// What is wrong with the annotation, as an event has told.
    told_unclear: Option<String>,
    /// Why an environment cannot be had, as an event has told, by container.
    told_missing: BTreeMap<String, String>,
}

/// One start of a container against what objects said then.
#[derive(Debug)]
struct Compared {
    attempt: u32,
    /// Each object's uid and version; empty for one that is not there.
    seen: Vec<String>,
    differs: bool,
}

impl Worker {
    pub(super) async fn restart_for_environment(&mut self, pod: &Arc<Pod>) {
        let wish = Wish::of(pod);
        self.tell_unclear_restart(pod, &wish);
        if wish != Wish::Env || pod.is_deleting() {
            return;
        }
        // Before the look, or a change right after it would go unheard.
        self.nudge.wait_for_objects(true);
        let mut differing = Vec::new();
        for container in pod.lasting_containers() {
            let record = self.records.get(&container.name);
            let Some(attempt) = record.filter(|one| one.is_running()).and_then(|one| one.attempt) else {
                continue;
            };
            let is_moving =
                record.is_some_and(|one| one.is_starting) || self.stops.is_stopping(&container.name);
            let differs = self.environment_differs(pod, container, attempt).await;
            differing.push((container.name.clone(), differs, is_moving));
        }
        let candidates: Vec<Candidate<'_>> = differing
            .iter()
            .map(|(container, differs, is_moving)| Candidate {
                container,
                differs: *differs,
                is_moving: *is_moving,
            })
            .collect();
        let now = Timestamp::now();
        match env_restart::next(&candidates, self.is_restart_under_way(), self.env.last, now) {
            Next::Nothing => {}
            Next::At(due) => self.retry_at = min(self.retry_at, Some(due)),
            Next::Restart(container) => {
                let container = container.to_owned();
                let Some(record) = self.records.get_mut(&container) else {
                    return;
                };
                // Its end is our doing, and no crash.
                record.is_replaced = true;
                let attempt = record.attempt.unwrap_or_default();
                self.env.under_way = Some((container.clone(), attempt));
                self.env.last = Some(now);
                info!(namespace = %pod.metadata.namespace, pod = %pod.metadata.name, %container, "environment changed, the container is restarted");
                let message = format!("Container {container} environment changed, will be restarted");
                self.begin_stop(pod, container, pod.grace_period(), true, message);
            }
        }
    }

    /// Whether the container that was stopped last has not come back yet. One that came back and ended has.
    fn is_restart_under_way(&mut self) -> bool {
        let Some((container, before)) = &self.env.under_way else {
            return false;
        };
        let record = self.records.get(container);
        let is_back = record.is_none_or(|record| {
            let has_succeeded = record.attempt > Some(*before) && !record.is_starting;
            // The stop did not begin, or did not end it.
            let goes_on =
                record.is_running() && record.attempt == Some(*before) && !self.stops.is_stopping(container);
            has_succeeded || goes_on
        });
        if is_back {
            if let Some(record) = self.records.get_mut(container) {
                record.is_replaced = false;
            }
            self.env.under_way = None;
        }
        !is_back
    }

    /// Whether the container would start with other values of objects now. Asks the shim once per change of an object.
    async fn environment_differs(&mut self, pod: &Arc<Pod>, container: &Container, attempt: u32) -> bool {
        let objects = env_restart::objects(pod, container);
        if objects.is_empty() {
            return false;
        }
        let mut seen = Vec::new();
        for reference in &objects {
            match self.shared.objects.get(reference) {
                Known::Present(held) => seen.push(held.version()),
                Known::Missing(_) => seen.push(String::new()),
                // Its coming wakes us.
                Known::Unknown => return false,
            }
        }
        let compared = self.env.compared.get(&container.name);
        if let Some(compared) = compared.filter(|one| one.attempt == attempt && one.seen == seen) {
            return compared.differs;
        }
        let differs = match self.compare_environment(pod, container, attempt).await {
            Ok(Some(differs)) => {
                self.env.told_missing.remove(&container.name);
                differs
            }
            Ok(None) => return false,
            // The last good environment stays until it is back.
            Err(message) => {
                let told = self
                    .env
                    .told_missing
                    .insert(container.name.clone(), message.clone());
                if told.as_ref() != Some(&message) {
                    let message = format!(
                        "environment changed, container {} goes on with the old one: {message}",
                        container.name
                    );
                    self.shared.recorder.warning(
                        Subject::container(pod, &container.name),
                        "EnvironmentBehind",
                        message,
                    );
                }
                false
            }
        };
        let compared = Compared {
            attempt,
            seen,
            differs,
        };
        self.env.compared.insert(container.name.clone(), compared);
        differs
    }

    /// `None`: nobody can tell now, and something will wake us; an error is for the user.
    async fn compare_environment(
        &mut self,
        pod: &Arc<Pod>,
        container: &Container,
        attempt: u32,
    ) -> Result<Option<bool>, String> {
        let sandbox = self.shared.runtime.sandbox(&self.uid);
        let facts = self.facts(sandbox.as_ref());
        let standing = self.standing(sandbox.as_ref());
        let services = self.shared.service_environment.of(&standing).clone();
        let built = environment(pod, container, &facts, services, |reference| {
            self.shared.objects.get(reference)
        });
        let env = match built {
            Err(EnvironmentError::NotSynced(_)) => return Ok(None),
            built => built.map_err(|error| error.to_string())?,
        };
        let (shared, for_pod, for_container) = (Arc::clone(&self.shared), Arc::clone(pod), container.clone());
        let resolved = spawn_blocking(move || {
            let images = shared.images.current();
            command(&for_pod, &for_container, env, &images, |path| path.exists())
        });
        let command = resolved.await.expect("resolving a command does not panic");
        let env = command.map_err(|error| error.to_string())?.env;
        let compared = self.shared.runtime.environment_differs(
            &self.uid,
            &container.name,
            attempt,
            env.into_iter().collect(),
        );
        match compared.await {
            Ok(names) => {
                let services = self.shared.service_environment.of(&standing);
                let is_service = |name: &str| services.contains_key(name);
                let mut names = names.iter();
                Ok(Some(names.any(|name| {
                    env_restart::is_of_objects(container, name, is_service)
                })))
            }
            Err(CompareError::NotRunning) => Ok(None),
            Err(error @ CompareError::OldShim) => Err(error.to_string()),
            Err(error) => {
                warn!(pod_uid = %self.uid, container = %container.name, error = %printed(&error), "environment not compared");
                self.retry_later();
                Ok(None)
            }
        }
    }

    fn tell_unclear_restart(&mut self, pod: &Arc<Pod>, wish: &Wish) {
        let Wish::Unclear(why) = wish else {
            self.env.told_unclear = None;
            return;
        };
        if self.env.told_unclear.as_ref() != Some(why) {
            self.env.told_unclear = Some(why.clone());
            self.shared
                .recorder
                .warning(Subject::pod(pod), "InvalidAnnotation", why.clone());
        }
    }
}
