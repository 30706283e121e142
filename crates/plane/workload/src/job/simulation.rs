//! A cluster for tests: one Job, its pods, a node that runs them, and a controller that can die between any two writes.

use std::{collections::BTreeSet, sync::Arc};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Map, Value, json};

use super::{
    backoff::BackoffRecord,
    decision::{Step, World, decide},
    indexes::Indexes,
    own_pod::TRACKING_FINALIZER,
    request,
};
use crate::view::{Job, Pod};

/// Far more than any reconcile needs.
const STEPS_MAX: usize = 200;

pub(super) struct Simulation {
    pub(super) job: Value,
    pub(super) pods: Vec<Value>,
    pub(super) now: Timestamp,
    /// When the controller wants to look again.
    pub(super) again_at: Option<Timestamp>,
    /// Reasons of events, oldest first.
    pub(super) news: Vec<&'static str>,
    backoff: BackoffRecord,
    created: usize,
    revision: u64,
    /// Uids, or for Indexed Jobs indexes, of pods that succeeded while they were tracked.
    succeeded: BTreeSet<String>,
    /// Uids of pods that failed, or were deleted, while they were tracked.
    failed: BTreeSet<String>,
}

/// What became of a reconcile.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reconciled {
    Settled,
    /// The controller died after its last permitted write.
    Died,
}

impl Simulation {
    pub(super) fn new(spec: Value) -> Self {
        let defaults = json!({"parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false,
            "podReplacementPolicy": "TerminatingOrFailed", "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c"}]}}});
        let mut job = json!({"metadata": {"namespace": "a", "name": "job", "uid": "job-uid", "resourceVersion": "0"}, "spec": defaults, "status": {}});
        merge(&mut job["spec"], &spec);
        Self {
            job,
            pods: Vec::new(),
            now: Timestamp::from_second(1_700_000_000).expect("in range"),
            again_at: None,
            news: Vec::new(),
            backoff: BackoffRecord::default(),
            created: 0,
            revision: 0,
            succeeded: BTreeSet::new(),
            failed: BTreeSet::new(),
        }
    }

    pub(super) fn view(&self) -> Job {
        serde_json::from_value(self.job.clone()).expect("a job")
    }

    pub(super) fn pod_views(&self) -> Vec<Arc<Pod>> {
        let pods = self.pods.iter().cloned();
        pods.map(|pod| Arc::new(serde_json::from_value(pod).expect("a pod")))
            .collect()
    }

    pub(super) fn edit(&mut self, spec: Value) {
        merge(&mut self.job["spec"], &spec);
    }

    pub(super) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// Acts until there is nothing left to do, or until `writes` were made. Checks the invariants after every write.
    pub(super) fn reconcile(&mut self, mut writes: usize) -> Reconciled {
        for _ in 0..STEPS_MAX {
            let (job, pods) = (self.view(), self.pod_views());
            self.backoff.observe(&job, &pods);
            let world = World {
                job: &job,
                pods: &pods,
                backoff: &self.backoff,
                now: self.now,
                active: job
                    .status
                    .start_time
                    .map_or(SignedDuration::ZERO, |start| self.now.duration_since(start)),
                creation_failed: false,
            };
            let decision = decide(&world);
            let Some(step) = decision.step else {
                self.again_at = decision.again_at;
                return Reconciled::Settled;
            };
            for write in self.writes(&job, step) {
                let creates = matches!(write, Write::Create(_));
                let Some(left) = writes.checked_sub(1) else {
                    self.backoff = BackoffRecord::default();
                    return Reconciled::Died;
                };
                writes = left;
                self.write(write);
                self.check(&job);
                let parallelism = usize::try_from(job.spec.parallelism.expect("set")).expect("not negative");
                assert!(
                    !creates || self.active() <= parallelism,
                    "{} pods, {parallelism} may be",
                    self.active()
                );
            }
        }
        panic!("the controller does not come to rest: {:#}", self.job);
    }

    /// Acts until nothing is left to do.
    pub(super) fn settle(&mut self) {
        assert_eq!(self.reconcile(usize::MAX), Reconciled::Settled);
    }

    fn writes(&self, job: &Job, step: Step) -> Vec<Write> {
        match step {
            Step::Create(new) => new
                .iter()
                .map(|new| Write::Create(request::pod(job, new)))
                .collect(),
            Step::Stop { pods, counted } => {
                let writes = pods.iter().flat_map(|pod| {
                    let uid = pod.metadata.uid.clone();
                    let free = (!counted && pod.is_tracked()).then(|| Write::Free(uid.clone()));
                    free.into_iter().chain([Write::Delete(uid)])
                });
                writes.collect()
            }
            Step::Write { status, news } => {
                let reasons = news.iter().map(|news| news.reason).collect();
                vec![Write::Status(request::status_patch(job, &status), reasons)]
            }
            Step::Release(pods) => pods
                .iter()
                .map(|pod| Write::Free(pod.metadata.uid.clone()))
                .collect(),
        }
    }

    fn write(&mut self, write: Write) {
        match write {
            Write::Create(mut pod) => {
                self.created += 1;
                let name = format!(
                    "{}{}",
                    pod["metadata"]["generateName"].as_str().expect("a name"),
                    self.created
                );
                pod["metadata"]["name"] = name.as_str().into();
                pod["metadata"]["uid"] = name.into();
                pod["metadata"]["creationTimestamp"] = self.now.to_string().into();
                pod["status"] = json!({"phase": "Pending"});
                self.pods.push(pod);
            }
            Write::Free(uid) => self.free(&uid),
            Write::Delete(uid) => {
                if let Some(at) = self.find(&uid) {
                    self.delete(at);
                }
            }
            Write::Status(patch, reasons) => {
                let held = &self.job["metadata"]["resourceVersion"];
                assert_eq!(
                    patch["metadata"]["resourceVersion"], *held,
                    "of this very version"
                );
                merge(&mut self.job["status"], &patch["status"]);
                self.revision += 1;
                self.job["metadata"]["resourceVersion"] = self.revision.to_string().into();
                self.news.extend(reasons);
            }
        }
    }

    fn find(&self, uid: &str) -> Option<usize> {
        self.pods.iter().position(|pod| pod["metadata"]["uid"] == uid)
    }

    fn free(&mut self, uid: &str) {
        if let Some(at) = self.find(uid) {
            let finalizers = self.pods[at]["metadata"]["finalizers"]
                .as_array_mut()
                .expect("a list");
            finalizers.retain(|finalizer| finalizer != TRACKING_FINALIZER);
            self.remove_if_over(at);
        }
    }

    /// Somebody deletes a pod: it is on its way out until it has ended.
    pub(super) fn delete(&mut self, at: usize) {
        let pod = &mut self.pods[at];
        if pod["metadata"]["deletionTimestamp"].is_null() {
            let is_over = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
            let is_tracked = is_tracked(pod);
            pod["metadata"]["deletionTimestamp"] = self.now.to_string().into();
            pod["metadata"]["deletionGracePeriodSeconds"] = 0.into();
            if is_tracked && !is_over {
                self.failed.insert(uid(&self.pods[at]));
            }
        }
        self.remove_if_over(at);
    }

    pub(super) fn run(&mut self, at: usize) {
        let status = &mut self.pods[at]["status"];
        if status["phase"] == "Pending" {
            *status = json!({"phase": "Running", "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": self.now.to_string()}]});
        }
    }

    /// The pod's process ends with this code. What is on its way out ends as killed.
    pub(super) fn end(&mut self, at: usize, code: i32) {
        let is_leaving = !self.pods[at]["metadata"]["deletionTimestamp"].is_null();
        let code = if is_leaving { 137 } else { code };
        let phase = if code == 0 { "Succeeded" } else { "Failed" };
        let pod = &mut self.pods[at];
        if matches!(pod["status"]["phase"].as_str(), Some("Pending" | "Running")) {
            let terminated = json!({"exitCode": code, "finishedAt": self.now.to_string()});
            pod["status"] = json!({"phase": phase, "containerStatuses": [{"name": "c", "state": {"terminated": terminated}}]});
            if is_tracked(pod) {
                let index = &pod["metadata"]["annotations"][super::own_pod::COMPLETION_INDEX];
                match (code, index.as_str()) {
                    (0, Some(index)) => self.succeeded.insert(index.to_owned()),
                    (0, None) => self.succeeded.insert(uid(pod)),
                    _ => self.failed.insert(uid(pod)),
                };
            }
        }
        self.remove_if_over(at);
    }

    /// A deleted object is gone once it has ended and nobody holds it.
    fn remove_if_over(&mut self, at: usize) {
        let pod = &self.pods[at];
        let is_over = matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"));
        if is_over && !pod["metadata"]["deletionTimestamp"].is_null() && !is_tracked(pod) {
            self.pods.remove(at);
        }
    }

    pub(super) fn active(&self) -> usize {
        self.pod_views().iter().filter(|pod| pod.is_active()).count()
    }

    /// What holds after every single write.
    fn check(&self, before: &Job) {
        let (job, pods) = (self.view(), self.pod_views());
        let (status, uncounted) = (&job.status, &job.status.uncounted_terminated_pods);
        assert!(status.failed >= before.status.failed, "a counter goes down");
        for kind in ["FailureTarget", "SuccessCriteriaMet", "Failed", "Complete"] {
            let was = before.status.true_condition(kind).is_some();
            assert!(
                !was || status.true_condition(kind).is_some(),
                "{kind} is taken back"
            );
        }
        if before.is_finished() {
            assert_eq!(*status, before.status, "a finished Job changes");
        }
        let tracked = |pod: &&Arc<Pod>| pod.is_tracked();
        if job.spec.is_indexed() {
            let completions = job.spec.index_count();
            let known = Indexes::parse(&status.completed_indexes, completions);
            let waiting: Indexes = pods
                .iter()
                .filter(tracked)
                .filter(|pod| pod.has_succeeded())
                .filter_map(|pod| pod.valid_index(&job))
                .collect();
            let truth: Indexes = self
                .succeeded
                .iter()
                .map(|index| index.parse().expect("an index"))
                .collect();
            assert_eq!(known.union(&waiting), truth, "of succeeded indexes");
        } else {
            assert!(status.succeeded >= before.status.succeeded, "a counter goes down");
            let of = |ends: &dyn Fn(&Pod) -> bool, uids: &[String]| {
                let tracked = pods
                    .iter()
                    .filter(tracked)
                    .filter(|pod| ends(pod))
                    .map(|pod| pod.metadata.uid.clone());
                let all: BTreeSet<String> = tracked.chain(uids.iter().cloned()).collect();
                let unique: BTreeSet<&String> = uids.iter().collect();
                assert_eq!(unique.len(), uids.len(), "a uid is listed twice");
                i32::try_from(all.len()).expect("few")
            };
            let succeeded = status.succeeded + of(&|pod| pod.has_succeeded(), &uncounted.succeeded);
            assert_eq!(
                usize::try_from(succeeded),
                Ok(self.succeeded.len()),
                "of succeeded pods: {:#}",
                self.job
            );
            let failed = status.failed + of(&|pod| pod.has_failed(&job), &uncounted.failed);
            if !job.spec.replaces_only_failed() {
                assert_eq!(
                    usize::try_from(failed),
                    Ok(self.failed.len()),
                    "of failed pods: {:#}",
                    self.job
                );
            }
        }
    }
}

enum Write {
    Create(Value),
    Free(String),
    Delete(String),
    Status(Value, Vec<&'static str>),
}

fn uid(pod: &Value) -> String {
    pod["metadata"]["uid"].as_str().expect("a uid").to_owned()
}

fn is_tracked(pod: &Value) -> bool {
    let finalizers = pod["metadata"]["finalizers"].as_array().into_iter().flatten();
    finalizers
        .into_iter()
        .any(|finalizer| finalizer == TRACKING_FINALIZER)
}

/// RFC 7386.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Map::new().into();
    }
    let fields = target.as_object_mut().expect("just made one");
    for (field, value) in patch {
        match value {
            Value::Null => drop(fields.remove(field)),
            value => merge(fields.entry(field).or_insert(Value::Null), value),
        }
    }
}
