//! A small cluster: one StatefulSet, its pods and its history, with people, nodes and crashes doing as they please.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use proptest::prelude::*;
use serde_json::json;

use super::decision::{Action, Decision, Desired, Member, Order, Progress, Revision, Update, decide};
use crate::{
    revision::{self, Current, Snapshot},
    stateful_set::history,
    view::ControllerRevision,
};

#[derive(Debug, Clone)]
struct Pod {
    revision: String,
    template: u8,
    progress: Progress,
    is_terminating: bool,
    is_labelled: bool,
}

#[derive(Debug)]
struct World {
    order: Order,
    update: Update,
    replicas: i64,
    start: i64,
    template: u8,
    history_limit: usize,
    pods: BTreeMap<i64, Pod>,
    history: Vec<Arc<ControllerRevision>>,
    current_revision: String,
    collisions: i32,
}

/// What happens to the world. Pods are named by a number that wraps around.
#[derive(Debug, Clone)]
enum Happening {
    Scale(i64),
    Start(i64),
    Strategy(Update),
    Template(u8),
    /// The controller looks, and dies after so many requests.
    Look(usize),
    /// The node brings a pod one step on.
    Advance(usize),
    Fail(usize),
    Unready(usize),
    Delete(usize),
    Unlabel(usize),
}

impl World {
    fn new(order: Order, update: Update, history_limit: usize) -> Self {
        Self {
            order,
            update,
            replicas: 3,
            start: 0,
            template: 0,
            history_limit,
            pods: BTreeMap::new(),
            history: Vec::new(),
            current_revision: String::new(),
            collisions: 0,
        }
    }

    fn happen(&mut self, happening: &Happening) {
        match *happening {
            Happening::Scale(replicas) => self.replicas = replicas,
            Happening::Start(start) => self.start = start,
            Happening::Strategy(update) => self.update = update,
            Happening::Template(template) => self.template = template,
            Happening::Look(requests) => drop(self.look(requests)),
            Happening::Advance(pod) => self.advance(pod),
            Happening::Fail(pod) => self.edit(pod, |pod| pod.progress = Progress::Finished),
            Happening::Unready(pod) => {
                self.edit(pod, |pod| pod.progress = pod.progress.min(Progress::Waiting))
            }
            Happening::Delete(pod) => self.edit(pod, |pod| pod.is_terminating = true),
            Happening::Unlabel(pod) => self.edit(pod, |pod| pod.is_labelled = false),
        }
    }

    fn nth(&self, pod: usize) -> Option<i64> {
        self.pods.keys().nth(pod.checked_rem(self.pods.len())?).copied()
    }

    fn edit(&mut self, pod: usize, edit: impl Fn(&mut Pod)) {
        if let Some(ordinal) = self.nth(pod) {
            edit(self.pods.get_mut(&ordinal).expect("it is one of them"));
        }
    }

    fn advance(&mut self, pod: usize) {
        let Some(ordinal) = self.nth(pod) else {
            return;
        };
        if self.pods[&ordinal].is_terminating {
            self.pods.remove(&ordinal);
        } else {
            self.edit(pod, |pod| {
                pod.progress = match pod.progress {
                    Progress::Finished => Progress::Finished,
                    Progress::Waiting => Progress::Ready,
                    Progress::Ready | Progress::Available => Progress::Available,
                }
            });
        }
    }

    /// One look of the controller; answers with how many requests it sent.
    fn look(&mut self, mut requests: usize) -> usize {
        let before = requests;
        let update_revision = match self.establish(&mut requests) {
            Some(name) => name,
            None => return before,
        };
        let current =
            history::current_name(&self.history, &self.current_revision, &update_revision).to_owned();
        let pods = self.pods.clone();
        let members: Vec<_> = pods.iter().map(|(ordinal, pod)| member(*ordinal, pod)).collect();
        let desired = Desired {
            replicas: self.replicas,
            start: self.start,
            order: self.order,
            update: self.update,
            is_deleting: false,
            current_revision: &current,
            update_revision: &update_revision,
        };
        let decision = decide(&desired, &members);
        check(&desired, &members, &decision);
        for action in &decision.actions {
            if !spend(&mut requests) {
                return before;
            }
            self.act(*action, &desired);
        }
        if !spend(&mut requests) {
            return before;
        }
        self.current_revision = if decision.is_complete {
            update_revision.clone()
        } else {
            current.clone()
        };
        let live = pods
            .values()
            .map(|pod| pod.revision.as_str())
            .collect::<BTreeSet<_>>();
        let idle: Vec<_> = history::idle(
            &self.history,
            &self.current_revision,
            &update_revision,
            &live,
            self.history_limit,
        )
        .into_iter()
        .map(|revision| revision.metadata.name.clone())
        .collect();
        for name in idle {
            if !spend(&mut requests) {
                return before;
            }
            let is_needed = [&self.current_revision, &update_revision].contains(&&name);
            assert!(
                !is_needed && !live.contains(name.as_str()),
                "{name} is still needed"
            );
            self.history.retain(|revision| revision.metadata.name != name);
        }
        before - requests
    }

    /// The revision of the template as it is, unless the controller dies before it is there.
    fn establish(&mut self, requests: &mut usize) -> Option<String> {
        let snapshot = Snapshot::of(&json!({"spec": {"hostname": self.template.to_string()}}));
        revision::sort(&mut self.history);
        match revision::current(&self.history, &snapshot) {
            Current::Is(revision) => Some(revision.metadata.name.clone()),
            Current::Again { revision, number } => {
                if !spend(requests) {
                    return None;
                }
                let again = ControllerRevision {
                    revision: number,
                    ..(*revision).clone()
                };
                self.history
                    .retain(|one| one.metadata.name != revision.metadata.name);
                self.history.push(Arc::new(again));
                Some(revision.metadata.name.clone())
            }
            Current::New { number } => {
                if !spend(requests) {
                    return None;
                }
                let name = Snapshot::name("web", &snapshot.hash(self.collisions));
                let created =
                    json!({"metadata": {"name": name}, "data": snapshot.data(), "revision": number});
                self.history
                    .push(Arc::new(serde_json::from_value(created).expect("a revision")));
                Some(name)
            }
        }
    }

    fn act(&mut self, action: Action, desired: &Desired<'_>) {
        match action {
            Action::Create { ordinal, revision } => {
                let name = match revision {
                    Revision::Current => desired.current_revision,
                    Revision::Update => desired.update_revision,
                };
                let held = self
                    .history
                    .iter()
                    .find(|one| one.metadata.name == name)
                    .expect("it is in the history");
                let template = revision::template_of(&held.data).expect("it is a snapshot");
                let pod = Pod {
                    revision: name.to_owned(),
                    template: template["spec"]["hostname"]
                        .as_str()
                        .and_then(|text| text.parse().ok())
                        .expect("a number"),
                    progress: Progress::Waiting,
                    is_terminating: false,
                    is_labelled: true,
                };
                assert!(
                    self.pods.insert(ordinal, pod).is_none(),
                    "two pods of ordinal {ordinal}"
                );
            }
            Action::Delete { ordinal } => {
                let pod = self
                    .pods
                    .get_mut(&ordinal)
                    .expect("only pods that exist are deleted");
                assert!(
                    !std::mem::replace(&mut pod.is_terminating, true),
                    "{ordinal} is deleted twice"
                );
            }
            Action::Label { ordinal } => self.pods.get_mut(&ordinal).expect("it exists").is_labelled = true,
        }
    }

    /// Lets everything take its course; nobody interferes any more.
    fn settle(&mut self) {
        for _ in 0..200 {
            let sent = self.look(usize::MAX);
            let before: Vec<_> = self
                .pods
                .values()
                .map(|pod| (pod.progress, pod.is_terminating))
                .collect();
            for pod in (0..self.pods.len()).rev() {
                self.advance(pod);
            }
            let after: Vec<_> = self
                .pods
                .values()
                .map(|pod| (pod.progress, pod.is_terminating))
                .collect();
            // One request is the status, which this model always writes.
            if sent <= 1 && before == after {
                return;
            }
        }
        panic!("does not settle: {self:#?}");
    }
}

fn spend(requests: &mut usize) -> bool {
    match requests.checked_sub(1) {
        Some(left) => {
            *requests = left;
            true
        }
        None => false,
    }
}

fn member(ordinal: i64, pod: &Pod) -> Member<'_> {
    Member {
        ordinal,
        revision: &pod.revision,
        progress: pod.progress,
        is_terminating: pod.is_terminating,
        is_labelled: pod.is_labelled,
    }
}

/// What must be true of every decision, whatever led to it.
fn check(desired: &Desired<'_>, members: &[Member<'_>], decision: &Decision) {
    let range = desired.start..desired.start + desired.replicas;
    let of = |ordinal: i64| members.iter().find(|member| member.ordinal == ordinal);
    let is_well = |ordinal: i64| {
        of(ordinal).is_some_and(|member| member.progress == Progress::Available && !member.is_terminating)
    };
    let mut creations = 0;
    let mut deletions = 0;
    for action in &decision.actions {
        match *action {
            Action::Create { ordinal, .. } => {
                creations += 1;
                assert!(
                    range.contains(&ordinal) && of(ordinal).is_none(),
                    "created {ordinal} of {members:?}"
                );
                if desired.order == Order::OrderedReady {
                    assert!(
                        (desired.start..ordinal).all(is_well),
                        "created {ordinal} out of order: {members:?}"
                    );
                }
            }
            Action::Delete { ordinal } => {
                deletions += 1;
                let pod = of(ordinal).expect("only pods that exist are deleted");
                let is_outdated = range.contains(&ordinal) && pod.progress != Progress::Finished;
                if is_outdated {
                    let Update::Rolling { partition } = desired.update else {
                        panic!("deleted {ordinal} for an update: {members:?}");
                    };
                    assert!(ordinal >= desired.start + partition && pod.revision != desired.update_revision);
                    let above = ordinal + 1..range.end;
                    assert!(
                        above.clone().all(|ordinal| is_well(ordinal)
                            && of(ordinal).is_some_and(|pod| pod.revision == desired.update_revision)),
                        "updated {ordinal} too early: {members:?}"
                    );
                }
                if desired.order == Order::OrderedReady {
                    let must_be_well = if pod.progress == Progress::Finished && range.contains(&ordinal) {
                        range.start..ordinal
                    } else {
                        range.clone()
                    };
                    assert!(
                        must_be_well.clone().all(is_well),
                        "deleted {ordinal} from an unhealthy set: {members:?}"
                    );
                    let is_last = !members
                        .iter()
                        .any(|member| member.ordinal > ordinal && !range.contains(&member.ordinal));
                    assert!(
                        range.contains(&ordinal) || is_last,
                        "shrank out of order: {members:?}"
                    );
                }
            }
            Action::Label { .. } => {}
        }
    }
    if desired.order == Order::OrderedReady {
        assert!(creations + deletions <= 1, "{:?}", decision.actions);
    }
    let are_updated = members
        .iter()
        .all(|member| member.revision == desired.update_revision);
    assert!(!decision.is_complete || are_updated, "not complete: {members:?}");
}

fn updates() -> impl Strategy<Value = Update> {
    prop_oneof![
        1 => Just(Update::OnDelete),
        3 => (0..4i64).prop_map(|partition| Update::Rolling { partition }),
        3 => Just(Update::Rolling { partition: 0 }),
    ]
}

fn happenings() -> impl Strategy<Value = Happening> {
    prop_oneof![
        2 => (0..6i64).prop_map(Happening::Scale),
        1 => (0..3i64).prop_map(Happening::Start),
        1 => updates().prop_map(Happening::Strategy),
        2 => (0..4u8).prop_map(Happening::Template),
        4 => (0..9usize).prop_map(Happening::Look),
        8 => Just(Happening::Look(usize::MAX)),
        14 => any::<usize>().prop_map(Happening::Advance),
        1 => any::<usize>().prop_map(Happening::Fail),
        1 => any::<usize>().prop_map(Happening::Unready),
        1 => any::<usize>().prop_map(Happening::Delete),
        1 => any::<usize>().prop_map(Happening::Unlabel),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn a_set_keeps_its_order_and_arrives_whatever_happens(
        is_ordered in any::<bool>(),
        update in updates(),
        history_limit in 0..4usize,
        script in proptest::collection::vec(happenings(), 0..120),
    ) {
        let order = if is_ordered { Order::OrderedReady } else { Order::Parallel };
        let mut world = World::new(order, update, history_limit);
        for happening in &script {
            world.happen(happening);
        }
        world.settle();
        let end = world.start + world.replicas;
        prop_assert_eq!(world.pods.keys().copied().collect::<Vec<_>>(), (world.start..end).collect::<Vec<_>>());
        for (ordinal, pod) in &world.pods {
            prop_assert!(pod.progress == Progress::Available && !pod.is_terminating && pod.is_labelled);
            if let Update::Rolling { partition } = world.update && *ordinal >= world.start + partition {
                prop_assert_eq!(pod.template, world.template);
            }
        }
        let live: BTreeSet<_> = world.pods.values().map(|pod| pod.revision.as_str()).collect();
        let newest = world.history.iter().max_by_key(|one| one.revision).expect("there is a history").metadata.name.as_str();
        let idle = world.history.iter().map(|one| one.metadata.name.as_str())
            .filter(|name| !live.contains(name) && *name != newest && *name != world.current_revision);
        prop_assert!(idle.count() <= history_limit);
        let numbers: BTreeSet<_> = world.history.iter().map(|one| one.revision).collect();
        prop_assert_eq!(numbers.len(), world.history.len());
        if world.update == (Update::Rolling { partition: 0 }) {
            prop_assert_eq!(world.current_revision.as_str(), newest);
        }
    }
}
