//! A deployment, its ReplicaSets and their pods in memory. Both controllers decide as they do outside; writes are applied as
//! the server would.

use std::{cell::RefCell, collections::BTreeMap, sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::{
    claims,
    deployment::{
        bounds::Bounds,
        creation::{NameTaken, name_taken},
        plan::{Observed, Step, Steps, next_steps},
    },
    replica_set::decision::{self, Failure, Members, Scale},
    view::{Deployment, Pod, ReplicaSet, View, deployment::DeploymentStatus, deployment::StrategyType},
};

/// Pods of this image never become ready.
pub(super) const BAD: &str = "bad";
/// More looks than anything needs: who gets here goes round in circles.
const LOOKS_MAX: usize = 2_000;

#[derive(Clone)]
pub(super) struct Cluster {
    pub(super) now: Timestamp,
    deployment: Value,
    sets: BTreeMap<String, Value>,
    pods: BTreeMap<String, Value>,
    set_views: Views<ReplicaSet>,
    pod_views: Views<Pod>,
    /// What was said about sizes, oldest first.
    pub(super) events: Vec<String>,
    /// No pod can be created, for this reason.
    pub(super) quota: Option<String>,
    /// When the deployment wants to be looked at again.
    pub(super) look_again_at: Option<Timestamp>,
    /// What the controllers have written so far.
    pub(super) writes: usize,
    /// The controllers die when they want to write once more than that; others take their place.
    pub(super) die_after: Option<usize>,
    next_id: usize,
}

impl Cluster {
    /// A deployment of this spec, with image `v1`; nobody has looked at it yet.
    pub(super) fn new(spec: &Value) -> Self {
        let mut deployment = json!({
            "metadata": {"namespace": "shop", "name": "web", "uid": "d", "generation": 1, "annotations": {}},
            "spec": {
                "replicas": 3,
                "selector": {"matchLabels": {"app": "web"}},
                "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"image": "v1"}},
                "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
                "revisionHistoryLimit": 10,
                "progressDeadlineSeconds": 600,
            },
        });
        merge(&mut deployment["spec"], spec);
        Self {
            now: Timestamp::from_second(1_800_000_000).expect("in range"),
            deployment,
            sets: BTreeMap::new(),
            pods: BTreeMap::new(),
            set_views: Views::default(),
            pod_views: Views::default(),
            events: Vec::new(),
            quota: None,
            look_again_at: None,
            writes: 0,
            die_after: None,
            next_id: 0,
        }
    }

    /// The same after its first rollout.
    pub(super) fn rolled_out(spec: &Value) -> Self {
        let mut cluster = Self::new(spec);
        cluster.settle();
        cluster.events.clear();
        cluster
    }

    pub(super) fn deployment(&self) -> Deployment {
        serde_json::from_value(self.deployment.clone()).expect("a deployment")
    }

    pub(super) fn status(&self) -> DeploymentStatus {
        self.deployment().status
    }

    /// `status/reason` of one of its conditions.
    pub(super) fn condition(&self, kind: &str) -> String {
        let status = self.status();
        let condition = status.condition(kind);
        condition.map_or_else(String::new, |held| format!("{}/{}", held.status, held.reason))
    }

    /// A user's edit.
    pub(super) fn edit(&mut self, patch: &Value) {
        let before = self.deployment.clone();
        merge(&mut self.deployment, patch);
        if before != self.deployment {
            let generation = self.deployment["metadata"]["generation"].as_i64().unwrap_or(0) + 1;
            self.deployment["metadata"]["generation"] = generation.into();
        }
    }

    pub(super) fn edit_spec(&mut self, patch: &Value) {
        self.edit(&json!({"spec": patch}));
    }

    pub(super) fn set_image(&mut self, image: &str) {
        self.edit_spec(&json!({"template": {"spec": {"image": image}}}));
    }

    pub(super) fn image(&self) -> &str {
        self.deployment["spec"]["template"]["spec"]["image"]
            .as_str()
            .unwrap_or_default()
    }

    pub(super) fn sets(&self) -> Vec<Arc<ReplicaSet>> {
        self.set_views.of(&self.sets)
    }

    /// The ReplicaSet of an image.
    pub(super) fn set_of(&self, image: &str) -> Option<Arc<ReplicaSet>> {
        let is_its = |set: &Arc<ReplicaSet>| set.spec.template.value()["spec"]["image"] == image;
        self.sets().into_iter().find(is_its)
    }

    /// The size of the ReplicaSet of an image.
    pub(super) fn size_of(&self, image: &str) -> i32 {
        self.set_of(image).map_or(-1, |set| set.spec.replicas)
    }

    pub(super) fn edit_set(&mut self, name: &str, patch: &Value) {
        let set = self.sets.get_mut(name).expect("there");
        let before = set["spec"].clone();
        merge(set, patch);
        if before != set["spec"] {
            set["metadata"]["generation"] = (set["metadata"]["generation"].as_i64().unwrap_or(0) + 1).into();
        }
    }

    pub(super) fn add_set(&mut self, name: &str, body: &Value) {
        let mut set = body.clone();
        self.next_id += 1;
        merge(
            &mut set,
            &json!({"metadata": {
                "name": name, "uid": format!("set-{}", self.next_id), "generation": 1,
                "creationTimestamp": self.now,
            }}),
        );
        self.sets.insert(name.to_owned(), set);
        // So that age decides between any two.
        self.pass(1);
    }

    pub(super) fn pods(&self) -> Vec<Arc<Pod>> {
        self.pod_views.of(&self.pods)
    }

    /// The pods that a set controls and selects.
    fn pods_of(&self, set: &ReplicaSet) -> Vec<Arc<Pod>> {
        let is_its = |pod: &Arc<Pod>| {
            let controller = pod.metadata.controller();
            controller.is_some_and(|owner| owner.uid == set.metadata.uid)
                && set.spec.selector.matches(&pod.metadata.labels)
        };
        self.pods().into_iter().filter(is_its).collect()
    }

    pub(super) fn available_pods(&self) -> i64 {
        let seconds = self.deployment().spec.min_ready_seconds;
        let pods = self.pods();
        let available = pods
            .iter()
            .filter(|pod| pod.is_active() && pod.is_available(seconds, self.now));
        i64::try_from(available.count()).expect("few")
    }

    pub(super) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    pub(super) fn seconds_to_the_next_look(&self) -> Option<Duration> {
        Some(self.look_again_at?.duration_since(self.now).unsigned_abs())
    }

    pub(super) fn plan(&self) -> Steps {
        let (deployment, sets) = (self.deployment(), self.owned_sets());
        let pods: Vec<_> = sets.iter().flat_map(|set| self.pods_of(set)).collect();
        next_steps(&Observed {
            deployment: &deployment,
            replica_sets: &sets,
            pods: &pods,
            now: self.now,
        })
    }

    fn owned_sets(&self) -> Vec<Arc<ReplicaSet>> {
        let deployment = self.deployment();
        claims::claim(&deployment.metadata, &deployment.spec.selector, self.sets()).owned
    }

    /// One write of a controller. `None`: it dies before it.
    fn write(&mut self) -> Option<()> {
        if self.die_after == Some(self.writes) {
            self.die_after = None;
            return None;
        }
        self.writes += 1;
        Some(())
    }

    /// The deployment controller looks, and dies if it wants more writes than these. Answers whether it wants anything.
    pub(super) fn look_at_deployment(&mut self, writes_max: usize) -> bool {
        self.within(writes_max, |cluster| {
            cluster.claim_sets()?;
            let before = cluster.sizes();
            let steps = cluster.plan();
            cluster.keeps_history(&steps.steps);
            cluster.look_again_at = steps.look_again_at;
            let done = cluster.execute(steps.steps);
            cluster.keeps_bounds(&[cluster.deployment()], &before);
            done
        })
    }

    /// The deployment controller looks, and the deployment is edited between two of its writes, of which it hears later.
    pub(super) fn look_at_deployment_during(&mut self, writes_before: usize, edit: impl FnOnce(&mut Self)) {
        if self.claim_sets().is_none() {
            return;
        }
        let (before, seen) = (self.sizes(), self.deployment());
        let mut steps = self.plan().steps;
        self.keeps_history(&steps);
        let later = steps.split_off(writes_before.min(steps.len()));
        if self.execute(steps).is_some() {
            edit(self);
            self.execute(later);
        }
        self.keeps_bounds(&[seen, self.deployment()], &before);
    }

    /// Answers whether a look wants to write, which it does only so often.
    fn within(&mut self, writes_max: usize, look: impl FnOnce(&mut Self) -> Option<()>) -> bool {
        let before = self.writes;
        if writes_max < usize::MAX {
            self.die_after = Some(before + writes_max);
        }
        let died = look(self).is_none();
        if writes_max < usize::MAX {
            self.die_after = None;
        }
        died || self.writes > before
    }

    fn claim_sets(&mut self) -> Option<()> {
        let deployment = self.deployment();
        let claims = claims::claim(&deployment.metadata, &deployment.spec.selector, self.sets());
        for set in claims.release {
            self.write()?;
            release(self.sets.get_mut(&set.metadata.name));
        }
        for set in claims.adopt {
            self.write()?;
            adopt(self.sets.get_mut(&set.metadata.name), &deployment);
        }
        Some(())
    }

    fn execute(&mut self, steps: Vec<Step>) -> Option<()> {
        for step in steps {
            self.write()?;
            if !self.apply(step) {
                break;
            }
        }
        Some(())
    }

    /// Answers whether the controller goes on.
    fn apply(&mut self, step: Step) -> bool {
        match step {
            Step::CreateReplicaSet { name, body, replicas } => {
                if let Some(taken_by) = self.sets.get(&name) {
                    let taken_by = serde_json::from_value(taken_by.clone()).expect("a ReplicaSet");
                    match name_taken(&self.deployment(), &taken_by) {
                        NameTaken::ByOurs => panic!("a template that has a ReplicaSet is not new"),
                        NameTaken::ByAnother { status } => merge(&mut self.deployment, &status),
                    }
                    return false;
                }
                if replicas > 0 {
                    self.events.push(format!("{name} 0→{replicas}"));
                }
                self.add_set(&name, &body);
            }
            Step::ChangeReplicaSet { name, patch, scaled } => {
                if let Some((from, to)) = scaled {
                    self.events.push(format!("{name} {from}→{to}"));
                }
                self.edit_set(&name, &patch);
            }
            Step::DeleteReplicaSet { name } => {
                let set = self.sets.remove(&name).expect("there");
                assert_eq!(set["spec"]["replicas"], 0, "{name} is in use");
                let uid = set["metadata"]["uid"].clone();
                self.pods
                    .retain(|_, pod| pod["metadata"]["ownerReferences"][0]["uid"] != uid);
            }
            Step::WriteStatus(patch) => merge(&mut self.deployment, &patch),
        }
        true
    }

    /// The ReplicaSet controller looks at one set, and dies if it wants more writes than these. Answers whether it wants
    /// anything.
    pub(super) fn look_at_set(&mut self, name: &str, writes_max: usize) -> bool {
        let Some(set) = self.sets().into_iter().find(|set| set.metadata.name == name) else {
            return false;
        };
        if set.spec.selector.is_everything() {
            return false;
        }
        self.within(writes_max, |cluster| cluster.sync_set(&set))
    }

    fn sync_set(&mut self, set: &ReplicaSet) -> Option<()> {
        self.claim_pods(set)?;
        let members = |cluster: &Self| Members::of(cluster.pods_of(set));
        let active = members(self).active;
        let mut failure = None;
        match decision::scale(set, &active, || active.clone(), self.now) {
            Scale::Enough => {}
            Scale::Create(_) if self.quota.is_some() => {
                failure = self.quota.clone().map(|message| Failure {
                    reason: "FailedCreate",
                    message,
                });
            }
            Scale::Create(count) => {
                for _ in 0..count {
                    self.write()?;
                    self.create_pod(set);
                }
            }
            Scale::Delete(pods) => {
                for pod in &pods {
                    self.write()?;
                    self.delete_pod(&pod.metadata.name);
                }
            }
        }
        let status = decision::status(set, &members(self), failure.as_ref(), self.now);
        if status != set.status {
            self.write()?;
            let patch = decision::status_patch(&status);
            merge(self.sets.get_mut(&set.metadata.name).expect("there"), &patch);
        }
        Some(())
    }

    fn claim_pods(&mut self, set: &ReplicaSet) -> Option<()> {
        let candidates = self.pods().into_iter().filter(|pod| pod.is_active());
        let claims = claims::claim(&set.metadata, &set.spec.selector, candidates);
        for pod in claims.release {
            self.write()?;
            release(self.pods.get_mut(&pod.metadata.name));
        }
        for pod in claims.adopt {
            self.write()?;
            adopt(self.pods.get_mut(&pod.metadata.name), set);
        }
        Some(())
    }

    fn create_pod(&mut self, set: &ReplicaSet) {
        self.next_id += 1;
        let name = format!("pod-{:05}", self.next_id);
        let template = set.spec.template.value();
        let pod = json!({
            "metadata": {
                "name": name, "uid": name, "labels": template["metadata"]["labels"], "creationTimestamp": self.now,
                "ownerReferences": [{"kind": "ReplicaSet", "uid": set.metadata.uid, "controller": true}],
            },
            "spec": {"nodeName": "n", "image": template["spec"]["image"]},
            "status": {"phase": "Pending"},
        });
        self.pods.insert(name, pod);
    }

    pub(super) fn delete_pod(&mut self, name: &str) {
        self.pods.get_mut(name).expect("there")["metadata"]["deletionTimestamp"] = json!(self.now);
    }

    /// Somebody takes a label off a pod, or puts it back.
    pub(super) fn relabel_pod(&mut self, name: &str) {
        let labels = &mut self.pods.get_mut(name).expect("there")["metadata"]["labels"];
        match labels["app"] {
            Value::Null => labels["app"] = "web".into(),
            _ => drop(labels.as_object_mut().expect("labels").remove("app")),
        }
    }

    /// Somebody takes the owner references off a ReplicaSet.
    pub(super) fn orphan_set(&mut self, name: &str) {
        release(self.sets.get_mut(name));
    }

    /// The pod is evicted: it stays, and counts no more.
    pub(super) fn fail_pod(&mut self, name: &str) {
        self.pods.get_mut(name).expect("there")["status"] = json!({"phase": "Failed"});
    }

    /// The pod's process ends, or starts failing its probe.
    pub(super) fn break_pod(&mut self, name: &str) {
        let pod = self.pods.get_mut(name).expect("there");
        pod["status"] = json!({"phase": "Running"});
        pod["broken"] = json!(true);
    }

    /// The node: what is to go goes, what can become ready does. Answers whether anything changed.
    pub(super) fn run_pods(&mut self) -> bool {
        let names: Vec<String> = self.pods.keys().cloned().collect();
        names
            .iter()
            .fold(false, |changed, name| self.run_pod(name) | changed)
    }

    pub(super) fn run_pod(&mut self, name: &str) -> bool {
        let Some(pod) = self.pods.get_mut(name) else {
            return false;
        };
        if pod["metadata"]["deletionTimestamp"].is_string() {
            self.pods.remove(name);
            return true;
        }
        let is_done = pod["status"]["phase"] == "Failed" || pod["status"]["conditions"].is_array();
        if pod["spec"]["image"] == BAD || is_done {
            return false;
        }
        // A broken pod is restarted, and well again.
        pod["status"] = json!({"phase": "Running", "conditions": [
            {"type": "Ready", "status": "True", "lastTransitionTime": self.now}]});
        true
    }

    /// Both controllers look until they have nothing to write; pods stay as they are.
    pub(super) fn control(&mut self) {
        for _ in 0..LOOKS_MAX {
            let mut wrote = self.look_at_deployment(usize::MAX);
            for name in self.sets.keys().cloned().collect::<Vec<_>>() {
                wrote |= self.look_at_set(&name, usize::MAX);
            }
            if !wrote {
                return;
            }
        }
        panic!("the controllers never rest: {:?}", self.plan().steps);
    }

    /// Settles until the controllers die, and no further.
    pub(super) fn live_until_death(&mut self) {
        while self.die_after.is_some() {
            let mut wrote = self.look_at_deployment(usize::MAX);
            for name in self.sets.keys().cloned().collect::<Vec<_>>() {
                wrote |= self.die_after.is_some() && self.look_at_set(&name, usize::MAX);
            }
            if !wrote && !self.run_pods() {
                return;
            }
        }
    }

    /// Everything that can happen by itself happens, time apart.
    pub(super) fn settle(&mut self) {
        for _ in 0..LOOKS_MAX {
            self.control();
            if !self.run_pods() {
                return;
            }
            self.pass(1);
        }
        panic!("the cluster never rests");
    }

    fn sizes(&self) -> Sizes {
        let desired = self.deployment["spec"]["replicas"].to_string();
        let mut sizes = Sizes {
            asked: 0,
            known: 0,
            are_current: true,
        };
        for set in self.owned_sets() {
            sizes.asked += i64::from(set.spec.replicas);
            sizes.known += i64::from(set.status.available_replicas.min(set.spec.replicas));
            let sized_for = set
                .metadata
                .annotation("deployment.kubernetes.io/desired-replicas");
            sizes.are_current &= set.spec.replicas == 0 || sized_for == Some(&desired);
        }
        sizes
    }

    /// As many old ReplicaSets stay as the deployment wants.
    fn keeps_history(&self, steps: &[Step]) {
        let new = self.set_of(self.image()).map(|new| new.metadata.uid.clone());
        let is_old = |set: &&Arc<ReplicaSet>| new.as_ref() != Some(&set.metadata.uid);
        let old = self.owned_sets().iter().filter(is_old).count();
        let is_deletion = |step: &&Step| matches!(step, Step::DeleteReplicaSet { .. });
        let deleted = steps.iter().filter(is_deletion).count();
        let limit = self.deployment().spec.revision_history_limit.unwrap_or(0);
        let kept = old.min(usize::try_from(limit).expect("a limit"));
        assert!(
            old - deleted >= kept,
            "{deleted} of {old} old ones go, {kept} are to stay"
        );
    }

    /// What upstream promises of every single look at the deployment, which may have changed meanwhile.
    fn keeps_bounds(&self, seen: &[Deployment], before: &Sizes) {
        let after = self.sizes();
        let sizes = |deployment: &Deployment| {
            let (bounds, replicas) = (Bounds::of(deployment), i64::from(deployment.spec.replicas));
            (replicas + bounds.max_surge, replicas - bounds.max_unavailable)
        };
        let most = seen.iter().map(|deployment| sizes(deployment).0).max();
        let most = most.expect("somebody looked").max(before.asked);
        assert!(
            after.asked <= most,
            "{} of at most {most} pods: {:?}",
            after.asked,
            self.events
        );
        let rolls = |deployment: &Deployment| {
            !deployment.spec.paused && deployment.spec.strategy.kind == StrategyType::RollingUpdate
        };
        let least = seen.iter().map(|deployment| sizes(deployment).1).min();
        let least = least.expect("somebody looked").min(before.known);
        let is_rollout = before.are_current && seen.iter().all(rolls);
        assert!(
            !is_rollout || after.known >= least,
            "{} of at least {least} available: {:?}",
            after.known,
            self.events
        );
    }
}

fn release(object: Option<&mut Value>) {
    let metadata = &mut object.expect("there")["metadata"];
    metadata
        .as_object_mut()
        .expect("metadata")
        .remove("ownerReferences");
}

fn adopt<V: View>(object: Option<&mut Value>, owner: &V) {
    object.expect("there")["metadata"]["ownerReferences"] = json!([claims::controller_reference(owner)]);
}

/// Views of objects, made once for each state of an object.
#[derive(Clone, Default)]
struct Views<V>(RefCell<BTreeMap<String, (Value, Arc<V>)>>);

impl<V: View> Views<V> {
    fn of(&self, objects: &BTreeMap<String, Value>) -> Vec<Arc<V>> {
        let mut views = self.0.borrow_mut();
        let view = |(name, object): (&String, &Value)| match views.get(name) {
            Some((seen, view)) if seen == object => view.clone(),
            _ => {
                let view = Arc::new(serde_json::from_value::<V>(object.clone()).expect("an object"));
                views.insert(name.clone(), (object.clone(), view.clone()));
                view
            }
        };
        objects.iter().map(view).collect()
    }
}

/// The ReplicaSets of a deployment together.
struct Sizes {
    asked: i64,
    /// Of the pods that are known to be available, those that nobody wants to go.
    known: i64,
    /// Whether all that have pods got their size for the deployment's.
    are_current: bool,
}

/// A merge patch, as the server applies it.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    let target = target.as_object_mut().expect("an object by now");
    for (key, value) in patch {
        match value {
            Value::Null => drop(target.remove(key)),
            value => merge(target.entry(key).or_insert(Value::Null), value),
        }
    }
}
