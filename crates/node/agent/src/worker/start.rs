//! Starts one container: environment, command, mounts, and what went wrong in the words kubectl users know.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs,
    path::Path,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use hotmap_runtime::{Capabilities, ContainerConfig, ContainerState, LogLimits, Sandbox, StartError, Stdin};
use jiff::Timestamp;
use tokio::task::spawn_blocking;
use tracing::{info, warn};

use super::{RETRY, Wanted, Worker, log_directory, mounts, printed};
use crate::{
    command::command,
    environment::{EnvironmentError, environment},
    events::Subject,
    pod::{Container, Pod, VolumeMount},
    pod_files,
    records::{Ended, timestamp},
    references,
    report::{Built, Snapshot, Way},
    resources, sub_path,
    volumes::SYNC_PATIENCE,
};

/// What upstream shows for a program that could not be executed (`pkg/kubelet/kuberuntime`, Kubernetes 1.36).
const EXIT_START_ERROR: i32 = 128;

/// A container's start waits so long for answers about its objects.
const LOOK_PATIENCE: Duration = Duration::from_secs(5);
/// Why a container waits whose variables cannot be made (`pkg/kubelet/kuberuntime`, Kubernetes 1.36).
const CONFIG_ERROR: &str = "CreateContainerConfigError";
/// Why one waits that could not be made.
const CREATE_ERROR: &str = "CreateContainerError";
/// A pod that asks for this has sub-paths that follow changes.
const LIVE_SUB_PATH: &str = "hotmap.dev/live-subpath";

/// A failed start is told again after this, if its message stays the same.
const TOLD_AGAIN: Duration = Duration::from_secs(60);

/// Why a container did not start.
enum NotStarted {
    /// With the reason its waiting state gives.
    Failed { reason: &'static str, message: String },
    /// A volume could not be placed; the container waits as it has done until now.
    NoVolume(String),
    /// Too early to tell: the worker hears of it, or looks again in a moment.
    NotYet,
}

/// A failed start that an event has told of.
#[derive(Debug)]
pub(super) struct ToldFailure {
    message: String,
    at: Timestamp,
}

impl Worker {
    /// True if the container's state changed.
    pub(super) async fn start_container(&mut self, pod: &Arc<Pod>, name: &str, attempt: u32) -> bool {
        let Some(container) = pod
            .all_containers()
            .find(|container| container.name == name)
            .cloned()
        else {
            return false;
        };
        let subject = || Subject::container(pod, name);
        let judged = match pod.is_ephemeral(name) {
            true => self.judge_ephemeral(&container),
            false => Ok(Vec::new()),
        };
        let left_aside = match judged {
            Ok(left_aside) => left_aside,
            // Nothing of that changes while the node is what it is.
            Err(message) => {
                let told = format!("Error: {message}");
                self.tell_failed_start(name, subject(), "Failed", told);
                if let Some(record) = self.records.get_mut(name) {
                    record.waits(CONFIG_ERROR, message);
                }
                return false;
            }
        };
        self.nudge.wait_for_objects(true);
        let not_started = match self.configure(pod, &container, attempt).await {
            Ok((config, held, built)) => {
                let mut changes = self.wanted.clone();
                let started = tokio::select! {
                    started = self.shared.runtime.start_container(&self.uid, config) => started,
                    // A start that hangs must not hold up the pod's end. What comes of it is seen at the next look.
                    _ = changes.wait_for(Wanted::is_end) => return true,
                };
                // The handles pin what is mounted until the shim has bound it.
                drop(held);
                match started {
                    Ok(status) => {
                        let started_at = match &status.state {
                            ContainerState::Running { started_at, .. } => timestamp(*started_at),
                            ContainerState::Exited(exit) => timestamp(exit.started_at),
                        };
                        if let Some(record) = self.records.get_mut(name) {
                            record.started(attempt, started_at);
                            record.user = status.user;
                            record.is_starting = container.lifecycle.post_start.is_some();
                        }
                        self.told_starts.remove(name);
                        self.tell_missing_limits(pod, &container);
                        self.note_start(name, attempt, built).await;
                        self.forget_older(pod, name, attempt).await;
                        info!(namespace = %pod.metadata.namespace, pod = %pod.metadata.name, container = name, attempt, "container started");
                        self.shared
                            .recorder
                            .normal(subject(), "Created", "Container created");
                        self.shared
                            .recorder
                            .normal(subject(), "Started", "Container started");
                        for note in left_aside {
                            self.shared.recorder.warning(subject(), "Ignored", note);
                        }
                        if let Some(hook) = container.lifecycle.post_start.clone() {
                            self.begin_post_start(pod, &container, attempt, hook);
                        }
                        return true;
                    }
                    Err(StartError::Exec(message)) => {
                        self.shared
                            .recorder
                            .warning(subject(), "Failed", format!("Error: {message}"));
                        self.note_start_error(name, attempt, message);
                        return true;
                    }
                    // The sandbox died, or an answer was lost: the next look tells.
                    Err(StartError::NoSandbox(_)) => NotStarted::NotYet,
                    Err(StartError::Exists { .. }) if self.is_there(name, attempt) => return true,
                    Err(error) => {
                        if let Some(record) = self.records.get_mut(name) {
                            record.held_until = Some(Timestamp::now() + RETRY);
                        }
                        NotStarted::Failed {
                            reason: CREATE_ERROR,
                            message: printed(&error),
                        }
                    }
                }
            }
            Err(not_started) => not_started,
        };
        match not_started {
            NotStarted::NotYet => self.retry_after(SYNC_PATIENCE),
            NotStarted::NoVolume(message) => {
                self.tell_failed_start(name, Subject::pod(pod), "FailedMount", message);
                self.retry_later();
            }
            NotStarted::Failed { reason, message } => {
                let told = format!("Error: {message}");
                self.tell_failed_start(name, Subject::container(pod, name), "Failed", told);
                if reason == CONFIG_ERROR {
                    let refs = references::of_environment(&pod.metadata.namespace, &container);
                    self.shared
                        .reports
                        .note(|ledger, now| ledger.not_started(&self.uid, name, refs, &message, now));
                }
                if let Some(record) = self.records.get_mut(name) {
                    record.waits(reason, message);
                }
                self.retry_later();
            }
        }
        false
    }

    /// Whether the runtime has this attempt, or a later one.
    fn is_there(&self, name: &str, attempt: u32) -> bool {
        let sandbox = self.shared.runtime.sandbox(&self.uid);
        sandbox.is_some_and(|sandbox| sandbox.container(name).is_some_and(|one| one.attempt >= attempt))
    }

    /// The controllers with which no limit of the pod's containers is put into force.
    pub(super) fn unenforced(&self, sandbox: Option<&Sandbox>) -> Vec<&'static str> {
        if sandbox.is_some_and(|sandbox| !sandbox.has_limits) {
            return ["cpu", "memory"].into();
        }
        let missing = self.shared.runtime.unenforced().iter();
        missing.map(|one| one.controller).collect()
    }

    /// A pod that runs is not moved to a new shim for that.
    fn tell_missing_limits(&self, pod: &Pod, container: &Container) {
        let sandbox = self.shared.runtime.sandbox(&self.uid);
        let has_limits = sandbox.is_none_or(|sandbox| sandbox.has_limits);
        if !has_limits && !container.resources.limits.is_empty() {
            let message =
                "the pod's shim is of an earlier release: limits are in force once the pod is replaced";
            let subject = Subject::container(pod, &container.name);
            self.shared
                .recorder
                .warning(subject, "LimitsNotEnforced", message);
        }
    }

    /// Every look at a pod tries again; an event is worth what is new in it.
    fn tell_failed_start(&mut self, name: &str, subject: Subject, reason: &'static str, message: String) {
        let now = Timestamp::now();
        let told = self.told_starts.get(name);
        if told.is_some_and(|told| told.message == message && now < told.at + TOLD_AGAIN) {
            return;
        }
        let told = ToldFailure {
            message: message.clone(),
            at: now,
        };
        self.told_starts.insert(name.to_owned(), told);
        self.shared.recorder.warning(subject, reason, message);
    }

    async fn configure(
        &self,
        pod: &Arc<Pod>,
        container: &Container,
        attempt: u32,
    ) -> Result<(ContainerConfig, mounts::Held, BTreeMap<Way, Built>), NotStarted> {
        let config_error = |message: String| NotStarted::Failed {
            reason: CONFIG_ERROR,
            message,
        };
        let target = self.target_of(pod, container)?;
        let sandbox = self.shared.runtime.sandbox(&self.uid);
        let facts = self.facts(sandbox.as_ref());
        self.look_at_objects(pod).await;
        let standing = self.standing(sandbox.as_ref());
        let services = self.shared.service_environment.of(&standing).clone();
        let looked_up = RefCell::new(Vec::new());
        let env = environment(pod, container, &facts, services, |reference| {
            let known = self.shared.objects.get(reference);
            looked_up.borrow_mut().push((reference.clone(), known.clone()));
            known
        })
        .map_err(|error| match error {
            // The first answer about an object is still on its way.
            EnvironmentError::NotSynced(_) if self.is_syncing() => NotStarted::NotYet,
            error => config_error(error.to_string()),
        })?;
        let container =
            &sub_path::expanded(container.clone(), &env).map_err(|error| config_error(error.to_string()))?;
        let built = self.built(pod, container, self.shared.reports.built(looked_up.into_inner()));
        let (shared, for_pod, for_container) = (Arc::clone(&self.shared), Arc::clone(pod), container.clone());
        // The table and the program are on a disk, which may be slow.
        let resolved = spawn_blocking(move || {
            let images = shared.images.current();
            let command = command(&for_pod, &for_container, env, &images, |path| path.exists());
            let files = pod_files::of(&for_pod, &standing, shared.resolv_conf.as_ref());
            (command, files)
        });
        let (command, files) = resolved.await.expect("resolving a command does not panic");
        let command = command.map_err(|error| NotStarted::Failed {
            reason: error.reason(),
            message: error.to_string(),
        })?;
        let files = files.map_err(config_error)?;
        self.tell_of_resolver(pod, &files.warnings);
        let security = &container.security_context;
        let words = |list: &'_ [String]| -> Vec<String> { list.to_vec() };
        let (add, drop) = (
            words(&security.capabilities.add),
            words(&security.capabilities.drop),
        );
        let capabilities =
            Capabilities::from_default(add.iter().map(String::as_str), drop.iter().map(String::as_str))
                .map_err(|error| config_error(error.to_string()))?;
        let (mounts, held) = mounts::prepare(
            Arc::clone(&self.shared),
            Arc::clone(pod),
            container.clone(),
            attempt,
        )
        .await
        .map_err(|error| match error {
            error @ mounts::MountError::Placement { .. } => NotStarted::NoVolume(error.to_string()),
            error => config_error(error.to_string()),
        })?;
        let privileged = security.privileged == Some(true);
        let config = ContainerConfig {
            name: container.name.clone(),
            attempt,
            argv: command.argv,
            env: command.env.into_iter().collect(),
            cwd: command.cwd,
            user: command.user,
            capabilities: if privileged {
                Capabilities::ALL
            } else {
                capabilities
            },
            no_new_privileges: security.allow_privilege_escalation == Some(false),
            seccomp: pod.seccomp_of(container),
            privileged,
            read_only_root: security.read_only_root_filesystem,
            mounts,
            writable: command.writable,
            links: command.links,
            files: files.files,
            log_path: log_directory(&self.shared.log_root, pod)
                .join(&container.name)
                .join(format!("{attempt}.log")),
            log_limits: LogLimits::default(),
            tty: container.tty,
            stdin: match (container.stdin, container.stdin_once) {
                (false, _) => Stdin::Empty,
                (true, false) => Stdin::Open,
                (true, true) => Stdin::Once,
            },
            resources: resources::of_container(pod, container),
            oom_score_adj: Some(resources::oom_score_adj(
                pod,
                container,
                self.shared.machine.memory_bytes(),
            )),
            target,
        };
        Ok((config, held, built))
    }

    /// The container whose processes this one shares; its start or end wakes us. In a pod that shares them all there is nothing
    /// left to choose.
    fn target_of(&self, pod: &Pod, container: &Container) -> Result<Option<String>, NotStarted> {
        let target = &container.target_container_name;
        if target.is_empty() || pod.spec.share_process_namespace {
            return Ok(None);
        }
        let record = self.records.get(target);
        let failed = |reason, message| NotStarted::Failed { reason, message };
        match record.filter(|record| record.attempt.is_some()) {
            // Upstream's words.
            None => Err(failed(
                CONFIG_ERROR,
                format!("unable to find target container {target}"),
            )),
            Some(record) if !record.is_running() => Err(failed(
                CREATE_ERROR,
                format!("target container {target} does not run: there are no processes to share"),
            )),
            Some(_) => Ok(Some(target.clone())),
        }
    }

    fn tell_of_resolver(&self, pod: &Pod, warnings: &[String]) {
        let recorder = &self.shared.recorder;
        for warning in warnings {
            recorder.warning(Subject::pod(pod), "DNSConfigForming", warning.as_str());
        }
        let told = &self.shared.told_of_cluster_dns;
        if pod_files::misses_cluster_dns(pod) && !told.swap(true, Ordering::Relaxed) {
            let message = "there is no cluster DNS: pods with dnsPolicy ClusterFirst have this host's name servers, as with Default";
            recorder.warning(
                Subject::node(&self.shared.machine.name),
                "MissingClusterDNS",
                message,
            );
        }
    }

    /// What the container will have for as long as it runs. Sub-paths are looked at before they are mounted: a change in
    /// between is taken for one that the container does not have.
    fn built(&self, pod: &Pod, container: &Container, environment: Built) -> BTreeMap<Way, Built> {
        let name = &container.name;
        let mut built = BTreeMap::new();
        if !environment.is_empty() {
            let container = name.clone();
            built.insert(Way::Environment { container }, environment);
        }
        let is_live = pod
            .metadata
            .annotations
            .get(LIVE_SUB_PATH)
            .is_some_and(|set| set == "true");
        // What was expanded once stays what it was.
        let stays = |mount: &&VolumeMount| {
            !mount.sub_path.is_empty() && (!is_live || !mount.sub_path_expr.is_empty())
        };
        for mount in container.volume_mounts.iter().filter(stays) {
            let held = self.shared.reports.held_by(&self.uid, &mount.name);
            if !held.is_empty() {
                let (container, volume) = (name.clone(), mount.name.clone());
                built.insert(Way::SubPath { container, volume }, held);
            }
        }
        built
    }

    /// The container runs with this, until it ends.
    async fn note_start(&self, name: &str, attempt: u32, built: BTreeMap<Way, Built>) {
        let snapshot = Snapshot {
            container: name.to_owned(),
            attempt,
            built: built.clone(),
        };
        self.shared
            .reports
            .note(|ledger, now| ledger.started(&self.uid, name, built, now));
        let (snapshots, uid) = (self.shared.snapshots.clone(), self.uid.clone());
        let kept = spawn_blocking(move || snapshots.keep(&uid, &snapshot)).await;
        if let Err(error) = kept.expect("keeping what a container started with does not panic") {
            warn!(pod_uid = %self.uid, container = name, %error, "what the container started with is not kept, a restart of the agent forgets it");
        }
    }

    /// A container starts with what is there now. An API that does not answer is not waited for for long: then the last value
    /// stands.
    async fn look_at_objects(&self, pod: &Arc<Pod>) {
        let references = references::of_pod(pod);
        let mut changes = self.wanted.clone();
        tokio::select! {
            () = self.shared.objects.look(&references) => {}
            () = tokio::time::sleep(LOOK_PATIENCE) => {}
            _ = changes.wait_for(Wanted::is_end) => {}
        }
    }

    /// An attempt that never ran its program: it ended as it began, and backs off like any other.
    fn note_start_error(&mut self, name: &str, attempt: u32, message: String) {
        let Some(record) = self.records.get_mut(name) else {
            return;
        };
        let now = Timestamp::now();
        record.started(attempt, now);
        record.exited(Ended {
            attempt,
            exit_code: EXIT_START_ERROR,
            signal: None,
            reason: "StartError",
            message,
            started_at: Timestamp::UNIX_EPOCH,
            finished_at: now,
        });
        // Not even the first restart is immediate: nothing has changed since.
        record.not_before = record.not_before.map(|due| due.max(now + Duration::from_secs(1)));
    }

    /// Whether the objects of the pod have only just been asked for.
    fn is_syncing(&self) -> bool {
        let published = self.published.as_ref();
        published.is_some_and(|held| held.since.elapsed() < SYNC_PATIENCE)
    }

    /// Keeps the log of the attempt before the newest one, which is `kubectl logs --previous`, and nothing older.
    async fn forget_older(&self, pod: &Arc<Pod>, name: &str, newest: u32) {
        let logs = log_directory(&self.shared.log_root, pod).join(name);
        let pruned = spawn_blocking(move || prune_logs(&logs, newest.saturating_sub(1)));
        if let Ok(Err(error)) = pruned.await {
            warn!(pod_uid = %self.uid, container = name, %error, "logs of earlier attempts not removed");
        }
        let Some(sandbox) = self.shared.runtime.sandbox(&self.uid) else {
            return;
        };
        let older = sandbox
            .containers
            .iter()
            .filter(|one| one.name == name && one.attempt < newest);
        for one in older {
            if let Err(error) = self
                .shared
                .runtime
                .remove_container(&self.uid, name, one.attempt)
                .await
            {
                warn!(pod_uid = %self.uid, container = name, attempt = one.attempt, error = %printed(&error), "ended container not removed");
            }
        }
    }
}

/// Removes the logs of attempts before `oldest`, the rotated ones too. Blocks.
fn prune_logs(directory: &Path, oldest: u32) -> std::io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        let attempt = name
            .to_str()
            .and_then(|name| name.split_once(".log")?.0.parse().ok());
        if attempt.is_some_and(|attempt: u32| attempt < oldest) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_of_the_last_two_attempts_stay() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().to_owned();
        for name in [
            "0.log",
            "1.log",
            "1.log.20260101-000000",
            "2.log",
            "10.log",
            "notes",
        ] {
            fs::write(path.join(name), "x").expect("written");
        }
        prune_logs(&path, 2).expect("pruned");
        let left = fs::read_dir(&path).expect("readable");
        let mut left: Vec<_> = left.map(|entry| entry.expect("an entry").file_name()).collect();
        left.sort();
        assert_eq!(left, ["10.log", "2.log", "notes"]);
    }
}
