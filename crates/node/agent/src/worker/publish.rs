//! Hands the pod's volumes to the writers, and hears how they stand.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use hotmap_volume::Ownership;
use tokio::task::spawn_blocking;
use tracing::warn;

use super::{Worker, printed};
use crate::{
    events::Subject, pod::Pod, records::RunState, references, report::Wants, tokens, volumes::DesiredVolume,
};

/// What of a pod its volumes depend on, and since when they have it. The status is no part of it: each of our own writes
/// would look like an edit.
#[derive(Debug)]
pub(super) struct Published {
    generation: i64,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    pub(super) since: Instant,
}

impl Published {
    fn of(pod: &Pod) -> Self {
        let metadata = &pod.metadata;
        Self {
            generation: metadata.generation,
            labels: metadata.labels.clone(),
            annotations: metadata.annotations.clone(),
            since: Instant::now(),
        }
    }

    fn is_of(&self, pod: &Pod) -> bool {
        let metadata = &pod.metadata;
        self.generation == metadata.generation
            && self.labels == metadata.labels
            && self.annotations == metadata.annotations
    }
}

impl Worker {
    /// Hands the pod's volumes to the writers when the pod is new here or was edited.
    pub(super) async fn publish_volumes(&mut self, pod: &Arc<Pod>) {
        let is_edit = self.published.is_some();
        if self.published.as_ref().is_some_and(|held| held.is_of(pod)) {
            return;
        }
        let ids = match self.shared.runtime.reserve_ids(&self.uid).await {
            Ok(ids) => ids,
            Err(error) => {
                let message = format!("Failed to create pod sandbox: {}", printed(&error));
                self.shared
                    .recorder
                    .warning(Subject::pod(pod), "FailedCreatePodSandBox", message);
                return self.retry_later();
            }
        };
        let references = references::of_pod(pod);
        self.note_consumers(pod).await;
        let tokens = pod.spec.volumes.iter().filter(|volume| pod.mounts(&volume.name));
        let tokens = tokens.flat_map(|volume| tokens::of_volume(pod, volume)).collect();
        self.shared.tokens.set_wanted(&self.uid, tokens);
        self.shared.objects.set_references(&self.uid, &references);
        if is_edit {
            // As a kubelet's Cache strategy is described: an edited pod sees the newest objects at once, whatever was held
            // fresh and whatever the watches say.
            self.shared.objects.refresh(&references);
        }
        let owner = Ownership {
            uid: ids.base,
            gid: ids.base,
        };
        let fs_group = pod
            .spec
            .security_context
            .fs_group
            .and_then(|group| ids.host_id(group));
        let desired = pod
            .spec
            .volumes
            .iter()
            .filter(|volume| volume.is_projected() && pod.mounts(&volume.name));
        let desired = desired.map(|volume| DesiredVolume {
            pod: Arc::clone(pod),
            facts: self.facts(None),
            volume: volume.clone(),
            owner,
            fs_group,
            token_owner: pod.common_user().and_then(|user| ids.host_id(user)),
        });
        self.shared.volumes.publish(&self.uid, desired.collect());
        self.published = Some(Published::of(pod));
    }

    /// Says who of the pod uses which object: before the first word about any of them can come.
    async fn note_consumers(&self, pod: &Arc<Pod>) {
        let namespace = &pod.metadata.namespace;
        let volumes = pod.spec.volumes.iter();
        let volumes = volumes.filter(|volume| volume.is_projected() && pod.mounts(&volume.name));
        let wants: Wants = volumes
            .map(|volume| (volume.name.clone(), references::of_volume(namespace, volume)))
            .filter(|(_, refs)| !refs.is_empty())
            .collect();
        let (uid, reports) = (&self.uid, &self.shared.reports);
        let has_volumes = !wants.is_empty();
        reports.note(|ledger, now| ledger.pod(uid, &pod.metadata.name, wants, now));
        if has_volumes && let Err(error) = self.shared.sockets.open(uid).await {
            // Without it nobody hears what was loaded; what is delivered does not depend on it.
            warn!(pod_uid = %uid, %error, "the pod has no socket of the agent");
        }
        if self.published.is_none() {
            self.note_running(pod).await;
        }
    }

    /// Says what the containers have that ran before this agent did.
    async fn note_running(&self, pod: &Arc<Pod>) {
        let running: Vec<(&str, u32)> = self
            .records
            .iter()
            .filter(|(_, record)| matches!(record.state, RunState::Running { .. }))
            .filter_map(|(name, record)| Some((name.as_str(), record.attempt?)))
            .collect();
        if running.is_empty() {
            return;
        }
        let (snapshots, uid) = (self.shared.snapshots.clone(), self.uid.clone());
        let kept = spawn_blocking(move || snapshots.of(&uid)).await;
        let kept = kept.expect("reading what was kept does not panic");
        let kept = kept.unwrap_or_else(|error| {
            warn!(pod_uid = %self.uid, %error, "what containers started with cannot be read");
            Vec::new()
        });
        for (name, attempt) in running {
            let of_it = kept
                .iter()
                .find(|one| one.container == name && one.attempt == attempt);
            let refs = || {
                let container = pod.all_containers().find(|container| container.name == name);
                let namespace = &pod.metadata.namespace;
                container
                    .map(|container| references::of_environment(namespace, container))
                    .unwrap_or_default()
            };
            self.shared.reports.note(|ledger, now| match of_it {
                Some(kept) => ledger.started(&self.uid, name, kept.built.clone(), now),
                None => ledger.found(&self.uid, name, refs(), now),
            });
        }
    }

    /// Whether every volume has been projected once; tells of each failed attempt and of hidden keys.
    pub(super) fn has_volumes(&mut self, pod: &Arc<Pod>) -> bool {
        let states = self.shared.volumes.states(&self.uid);
        for (volume, state) in &states {
            let told = self.told_failures.get(volume).copied().unwrap_or_default();
            if let Some(failure) = state.failure.as_ref().filter(|_| state.failures > told) {
                self.told_failures.insert(volume.clone(), state.failures);
                let message = format!("MountVolume.SetUp failed for volume {volume:?} : {failure}");
                self.shared
                    .recorder
                    .warning(Subject::pod(pod), "FailedMount", message);
            }
            self.tell_of_shadowed(pod, volume, &state.shadowed);
        }
        states.values().all(|state| state.is_mounted) && self.published.is_some()
    }

    /// A kubelet says nothing when a file in the volume hides a key; here the pod is told, once.
    fn tell_of_shadowed(&mut self, pod: &Arc<Pod>, volume: &str, shadowed: &[String]) {
        let told = self.told_shadowed.entry(volume.to_owned()).or_default();
        if told == shadowed {
            return;
        }
        shadowed.clone_into(told);
        for key in shadowed {
            let message = format!("volume {volume:?}: a foreign {key:?} hides what ..data/{key} has");
            self.shared
                .recorder
                .warning(Subject::pod(pod), "ShadowedKey", message);
        }
    }
}
