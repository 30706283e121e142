//! A small cluster: one DaemonSet, its nodes and pods, with people, nodes and crashes doing as they please.

use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;

use super::{
    decision::{DaemonPod, Decision, NodeState, Progress, Update, decide},
    eligibility::Fit,
};
use crate::view::int_or_percent::{IntOrPercent, Round};

const NODES: [&str; 5] = ["a", "b", "c", "d", "e"];

#[derive(Debug, Clone)]
struct Pod {
    name: String,
    node: usize,
    template: u8,
    is_bound: bool,
    progress: Progress,
    is_terminating: bool,
}

#[derive(Debug)]
struct World {
    update: Update,
    template: u8,
    fits: [Fit; NODES.len()],
    pods: Vec<Pod>,
    created: usize,
}

/// What happens to the world. Pods and nodes are named by a number that wraps around.
#[derive(Debug, Clone)]
enum Happening {
    Fit(usize, Fit),
    Strategy(Update),
    Template(u8),
    /// The controller looks, and dies after so many requests; with or without patience for failed pods.
    Look(usize, bool),
    /// The binding controller or the node brings a pod one step on.
    Advance(usize),
    Finish(usize, Progress),
    Unready(usize),
    Delete(usize),
}

impl World {
    fn happen(&mut self, happening: &Happening) {
        match *happening {
            Happening::Fit(node, fit) => self.fits[node % NODES.len()] = fit,
            Happening::Strategy(update) => self.update = update,
            Happening::Template(template) => self.template = template,
            Happening::Look(requests, is_patient) => drop(self.look(requests, is_patient)),
            Happening::Advance(pod) => self.advance(pod),
            Happening::Finish(pod, end) => self.edit(pod, |pod| pod.progress = end),
            Happening::Unready(pod) => {
                self.edit(pod, |pod| pod.progress = pod.progress.min(Progress::Waiting))
            }
            Happening::Delete(pod) => self.edit(pod, |pod| pod.is_terminating = true),
        }
    }

    fn edit(&mut self, pod: usize, edit: impl Fn(&mut Pod)) {
        if let Some(pod) = pod.checked_rem(self.pods.len()) {
            edit(&mut self.pods[pod]);
        }
    }

    fn advance(&mut self, pod: usize) {
        let Some(at) = pod.checked_rem(self.pods.len()) else {
            return;
        };
        let fit = self.fits[self.pods[at].node];
        let pod = &mut self.pods[at];
        if pod.is_terminating || (fit == Fit::Gone && pod.is_bound) {
            self.pods.remove(at);
        } else if !pod.is_bound {
            pod.is_bound = fit == Fit::Runs;
        } else if pod.progress >= Progress::Waiting {
            pod.progress = if pod.progress == Progress::Waiting {
                Progress::Ready
            } else {
                Progress::Available
            };
        }
    }

    /// One look of the controller; answers with how many requests it sent.
    fn look(&mut self, mut requests: usize, is_patient: bool) -> usize {
        let (pods, template) = (self.pods.clone(), self.template);
        let states: Vec<_> = NODES
            .iter()
            .enumerate()
            .map(|(at, name)| NodeState {
                name,
                fit: self.fits[at],
                pods: pods
                    .iter()
                    .filter(|pod| pod.node == at && !is_over(pod))
                    .map(|pod| view(pod, template))
                    .collect(),
            })
            .collect();
        let decision = decide(self.update, &states, |_| {
            is_patient.then_some(Duration::from_secs(1))
        });
        check(self.update, &states, &decision);
        let mut sent = 0;
        for node in &decision.create {
            if requests == 0 {
                return sent;
            }
            (requests, sent) = (requests - 1, sent + 1);
            self.created += 1;
            self.pods.push(Pod {
                name: format!("pod-{:04}", self.created),
                node: NODES.iter().position(|one| one == node).expect("a node"),
                template,
                is_bound: false,
                progress: Progress::Waiting,
                is_terminating: false,
            });
        }
        for name in &decision.delete {
            if requests == 0 {
                return sent;
            }
            (requests, sent) = (requests - 1, sent + 1);
            let pod = self
                .pods
                .iter_mut()
                .find(|pod| pod.name == *name)
                .expect("only pods that exist are deleted");
            assert!(
                !std::mem::replace(&mut pod.is_terminating, true),
                "{name} is deleted twice"
            );
        }
        sent
    }

    /// Lets everything take its course; nobody interferes any more, and no node refuses what is meant for it: a pod that
    /// cannot be bound holds up a surging update, as upstream.
    fn settle(&mut self) {
        for fit in self.fits.iter_mut().filter(|fit| **fit == Fit::Stays) {
            *fit = Fit::Runs;
        }
        for _ in 0..200 {
            let sent = self.look(usize::MAX, false);
            let before = format!("{:?}", self.pods);
            for pod in (0..self.pods.len()).rev() {
                self.advance(pod);
            }
            if sent == 0 && before == format!("{:?}", self.pods) {
                return;
            }
        }
        panic!("does not settle: {self:#?}");
    }
}

fn is_over(pod: &Pod) -> bool {
    pod.is_terminating && pod.progress < Progress::Waiting
}

fn view(pod: &Pod, template: u8) -> DaemonPod<'_> {
    let number: i64 = pod.name[4..].parse().expect("a number");
    DaemonPod {
        name: &pod.name,
        created: Some(Timestamp::from_second(number).expect("in range")),
        is_bound: pod.is_bound,
        progress: pod.progress,
        is_terminating: pod.is_terminating,
        is_updated: pod.template == template,
    }
}

/// What must be true of every decision, whatever led to it.
fn check(update: Update, nodes: &[NodeState<'_>], decision: &Decision<'_>) {
    let desired = nodes.iter().filter(|node| node.fit == Fit::Runs).count();
    let (unavailable, surge) = match update {
        Update::OnDelete => (0, 0),
        Update::Rolling {
            max_unavailable,
            max_surge,
        } => {
            let of = |share: IntOrPercent| {
                usize::try_from(share.of(desired.try_into().expect("few"), Round::Up)).expect("positive")
            };
            (of(max_unavailable), of(max_surge))
        }
    };
    let goes = |pod: &DaemonPod<'_>| decision.delete.contains(&pod.name);
    let mut is_down = 0;
    let mut is_hurt = false;
    let mut second = 0;
    // What a vanished node leaves behind is not the controller's any more.
    for node in nodes.iter().filter(|node| node.fit != Fit::Gone) {
        let staying: Vec<_> = node
            .pods
            .iter()
            .filter(|pod| !pod.is_terminating && pod.progress >= Progress::Waiting)
            .collect();
        let left: Vec<_> = staying.iter().filter(|pod| !goes(pod)).collect();
        let gets = decision.create.iter().filter(|name| **name == node.name).count();
        assert!(
            gets == 0 || node.fit == Fit::Runs,
            "{} is no node for a new pod",
            node.name
        );
        assert!(
            gets <= 1 && left.len() + gets <= 2,
            "{} has too many: {decision:?}",
            node.name
        );
        if surge == 0 {
            assert!(
                gets == 0 || node.pods.is_empty(),
                "{} gets a second pod: {decision:?}",
                node.name
            );
        }
        if gets == 1 && left.iter().any(|pod| pod.progress == Progress::Available) {
            second += 1;
        }
        if surge > 0 && left.len() == 2 {
            assert!(
                left.iter().filter(|pod| pod.is_updated).count() == 1,
                "{} has two of a kind",
                node.name
            );
            second += usize::from(gets == 0);
        }
        let was_up = staying.iter().any(|pod| pod.progress == Progress::Available);
        let is_up = left.iter().any(|pod| pod.progress == Progress::Available);
        if node.fit == Fit::Runs {
            is_down += usize::from(!is_up);
            // An excess pod may go though it is the better one: upstream keeps the older.
            is_hurt |= was_up && !is_up && staying.len() == 1;
        }
    }
    if is_hurt {
        let allowed = if unavailable == 0 && surge == 0 {
            1
        } else {
            unavailable
        };
        assert!(
            surge == 0 && is_down <= allowed,
            "too few available: {update:?} {nodes:#?} {decision:?}"
        );
    }
    if !decision.create.is_empty()
        && decision.create.iter().any(|name| {
            nodes
                .iter()
                .any(|node| node.name == *name && !node.pods.is_empty())
        })
    {
        let surging_before = nodes
            .iter()
            .filter(|node| node.pods.iter().filter(|pod| !pod.is_terminating).count() > 1)
            .count();
        assert!(
            second <= surge.max(surging_before),
            "too many at once: {update:?} {nodes:#?} {decision:?}"
        );
    }
}

fn updates() -> impl Strategy<Value = Update> {
    let shares = || {
        prop_oneof![
            (0..4i64).prop_map(IntOrPercent::Int),
            (0..101i64).prop_map(IntOrPercent::Percent),
        ]
    };
    prop_oneof![
        1 => Just(Update::OnDelete),
        6 => (shares(), shares(), any::<bool>()).prop_map(|(max_unavailable, max_surge, in_place)| Update::Rolling {
            max_unavailable: if in_place { max_unavailable } else { IntOrPercent::Int(0) },
            max_surge: if in_place { IntOrPercent::Int(0) } else { max_surge },
        }),
    ]
}

fn fits() -> impl Strategy<Value = Fit> {
    prop_oneof![5 => Just(Fit::Runs), 1 => Just(Fit::Stays), 1 => Just(Fit::Leaves), 1 => Just(Fit::Gone)]
}

fn happenings() -> impl Strategy<Value = Happening> {
    let ends = prop_oneof![Just(Progress::Failed), Just(Progress::Succeeded)];
    prop_oneof![
        2 => (any::<usize>(), fits()).prop_map(|(node, fit)| Happening::Fit(node, fit)),
        1 => updates().prop_map(Happening::Strategy),
        2 => (0..3u8).prop_map(Happening::Template),
        3 => (0..3usize, any::<bool>()).prop_map(|(requests, is_patient)| Happening::Look(requests, is_patient)),
        8 => any::<bool>().prop_map(|is_patient| Happening::Look(usize::MAX, is_patient)),
        20 => any::<usize>().prop_map(Happening::Advance),
        1 => (any::<usize>(), ends).prop_map(|(pod, end)| Happening::Finish(pod, end)),
        1 => any::<usize>().prop_map(Happening::Unready),
        1 => any::<usize>().prop_map(Happening::Delete),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_node_has_its_pod_and_enough_stay_available_whatever_happens(
        update in updates(),
        fits in proptest::array::uniform5(fits()),
        script in proptest::collection::vec(happenings(), 0..150),
    ) {
        let mut world = World { update, template: 0, fits, pods: Vec::new(), created: 0 };
        for happening in &script {
            world.happen(happening);
        }
        world.settle();
        for (at, fit) in world.fits.iter().enumerate() {
            let pods: Vec<_> = world.pods.iter().filter(|pod| pod.node == at).collect();
            let expected = match fit {
                Fit::Runs => 1..=1,
                Fit::Stays | Fit::Leaves | Fit::Gone => 0..=0,
            };
            prop_assert!(expected.contains(&pods.len()), "{fit:?} has {pods:?}");
            for pod in pods.iter().filter(|_| *fit == Fit::Runs) {
                prop_assert!(pod.progress == Progress::Available && !pod.is_terminating);
                prop_assert!(pod.template == world.template || world.update == Update::OnDelete);
            }
        }
    }
}
