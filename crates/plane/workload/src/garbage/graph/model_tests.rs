//! The graph against a world that it hears of late and changes through its steps, and against a collector without any
//! graph, which looks at everything again and again.

use std::collections::{BTreeMap, VecDeque};

use proptest::prelude::*;

use super::*;
use crate::garbage::object::Kind;

const HOLD: &str = "example.com/hold";
/// ConfigMap and Secret live in namespaces, Node does not.
const KINDS: [&str; 3] = ["ConfigMap", "Secret", "Node"];

/// What somebody does to the world. Numbers name objects in the order of their creation, modulo how many there were.
#[derive(Debug, Clone)]
enum Act {
    Create {
        kind: usize,
        owners: Vec<(usize, bool)>,
        is_held: bool,
    },
    SetOwners {
        object: usize,
        owners: Vec<(usize, bool)>,
    },
    Delete {
        object: usize,
        policy: Policy,
    },
    LetGo {
        object: usize,
    },
}

/// `held`: how many of the objects have a finalizer of somebody else.
fn acts(held: f64) -> impl Strategy<Value = Vec<Act>> {
    let owners = || prop::collection::vec((0..12usize, any::<bool>()), 0..3);
    let policy = prop_oneof![
        2 => Just(Policy::Background),
        2 => Just(Policy::Foreground),
        1 => Just(Policy::Orphan),
    ];
    let act = prop_oneof![
        5 => (0..KINDS.len(), owners(), prop::bool::weighted(held))
            .prop_map(|(kind, owners, is_held)| Act::Create { kind, owners, is_held }),
        2 => (0..12usize, owners()).prop_map(|(object, owners)| Act::SetOwners { object, owners }),
        3 => (0..12usize, policy).prop_map(|(object, policy)| Act::Delete { object, policy }),
        1 => (0..12usize).prop_map(|object| Act::LetGo { object }),
    ];
    prop::collection::vec(act, 1..30)
}

/// What a server keeps, and what it has told.
#[derive(Default)]
struct World {
    objects: BTreeMap<Uid, Object>,
    places: Vec<(Uid, Place)>,
    revision: u64,
    told: VecDeque<Told>,
}

enum Told {
    Applied(Object),
    Deleted(Uid),
}

impl World {
    fn act(&mut self, act: &Act) {
        match act {
            Act::Create {
                kind,
                owners,
                is_held,
            } => {
                let number = self.places.len();
                let resource = hotmap_kinds::find_kind("", "v1", KINDS[*kind]).expect("a core kind");
                let namespace = if resource.namespaced { "n" } else { "" };
                let place = Place {
                    kind: Kind(resource),
                    namespace: namespace.into(),
                    name: format!("o{number}").into(),
                };
                // Sorted as names are made.
                let uid: Uid = format!("u{number:02}").into();
                self.places.push((uid.clone(), place.clone()));
                let hold: Vec<Box<str>> = is_held.then(|| HOLD.into()).into_iter().collect();
                let owners = self.owners(owners, &place);
                self.put(Object {
                    uid,
                    place,
                    resource_version: "".into(),
                    owners,
                    finalizers: hold.into(),
                    is_deleting: false,
                });
            }
            Act::SetOwners { object, owners } => {
                if let Some(mut held) = self.pick(*object) {
                    held.owners = self.owners(owners, &held.place);
                    self.put(held);
                }
            }
            Act::Delete { object, policy } => {
                if let Some(held) = self.pick(*object) {
                    self.delete(&held.uid, *policy);
                }
            }
            Act::LetGo { object } => {
                if let Some(mut held) = self.pick(*object) {
                    held.finalizers = held
                        .finalizers
                        .iter()
                        .filter(|one| &***one != HOLD)
                        .cloned()
                        .collect();
                    self.put(held);
                }
            }
        }
    }

    fn pick(&self, number: usize) -> Option<Object> {
        let (uid, _) = self.places.get(number.checked_rem(self.places.len())?)?;
        self.objects.get(uid).cloned()
    }

    fn owners(&self, wanted: &[(usize, bool)], dependent: &Place) -> Box<[Owner]> {
        let mut owners: Vec<Owner> = Vec::new();
        for (number, blocks) in wanted {
            let (uid, place) = &self.places[number % self.places.len()];
            let at = match !place.namespace.is_empty() && dependent.namespace.is_empty() {
                true => Whereabouts::OutOfReach(place.clone()),
                false => Whereabouts::At(place.clone()),
            };
            if !owners.iter().any(|one| one.uid == *uid) {
                let (uid, blocks) = (uid.clone(), *blocks);
                owners.push(Owner { uid, at, blocks });
            }
        }
        owners.into()
    }

    /// As a server does: with the last finalizer an object that is being deleted goes.
    fn put(&mut self, mut object: Object) {
        if object.is_deleting && object.finalizers.is_empty() {
            self.objects.remove(&object.uid);
            self.told.push_back(Told::Deleted(object.uid));
            return;
        }
        if self.objects.get(&object.uid).is_some_and(|held| {
            let mut same = object.clone();
            same.resource_version = held.resource_version.clone();
            same == *held
        }) {
            return;
        }
        self.revision += 1;
        object.resource_version = self.revision.to_string().into();
        self.objects.insert(object.uid.clone(), object.clone());
        self.told.push_back(Told::Applied(object));
    }

    fn delete(&mut self, uid: &Uid, policy: Policy) {
        let Some(mut object) = self.objects.get(uid).cloned() else {
            return;
        };
        let ours = |one: &str| one == ORPHAN || one == FOREGROUND;
        let mut finalizers: Vec<Box<str>> = object
            .finalizers
            .iter()
            .filter(|one| !ours(one))
            .cloned()
            .collect();
        match policy {
            Policy::Background => {}
            Policy::Foreground => finalizers.push(FOREGROUND.into()),
            Policy::Orphan => finalizers.push(ORPHAN.into()),
        }
        object.finalizers = finalizers.into();
        object.is_deleting = true;
        self.put(object);
    }

    fn disown(&mut self, uid: &Uid, owners: &[Uid]) {
        if let Some(mut object) = self.objects.get(uid).cloned() {
            object.owners = object
                .owners
                .iter()
                .filter(|one| !owners.contains(&one.uid))
                .cloned()
                .collect();
            self.put(object);
        }
    }

    fn is_there(&self, owner: &Owner) -> Option<&Object> {
        let held = self.objects.get(&owner.uid)?;
        (owner.at == Whereabouts::At(held.place.clone())).then_some(held)
    }

    fn dependents(&self, uid: &Uid) -> Vec<&Object> {
        self.objects
            .values()
            .filter(|one| one.references_to(uid).next().is_some())
            .collect()
    }

    fn blocking<'a>(&'a self, owner: &'a Object) -> impl Iterator<Item = &'a Object> {
        let blocks = |one: &Owner| one.uid == owner.uid && one.blocks && self.is_there(one).is_some();
        self.objects
            .values()
            .filter(move |dependent| dependent.owners.iter().any(blocks))
    }

    /// What it comes to, revisions apart.
    fn sum(&self) -> Vec<String> {
        let line = |object: &Object| {
            let owners: Vec<_> = object
                .owners
                .iter()
                .map(|owner| (&*owner.uid, owner.blocks))
                .collect();
            format!(
                "{} {} {owners:?} {:?}",
                object.uid, object.is_deleting, object.finalizers
            )
        };
        self.objects.values().map(line).collect()
    }
}

/// The graph and who carries its steps out.
#[derive(Default)]
struct Collector {
    graph: Graph,
    queue: BTreeSet<Uid>,
}

impl Collector {
    fn hear(&mut self, world: &mut World) -> bool {
        let changes = match world.told.pop_front() {
            Some(Told::Applied(object)) => self.graph.applied(object),
            Some(Told::Deleted(uid)) => self.graph.deleted(&uid),
            None => return false,
        };
        self.queue.extend(changes.check);
        true
    }

    /// Looks at one object; which one, `choice` says.
    fn look(&mut self, world: &mut World, choice: usize) -> bool {
        let Some(uid) = self.queue.iter().nth(choice % self.queue.len().max(1)).cloned() else {
            return false;
        };
        self.queue.remove(&uid);
        let is_current = |world: &World, target: &Target| {
            world
                .objects
                .get(&target.uid)
                .is_some_and(|held| held.resource_version == target.resource_version)
        };
        match self.graph.step(&uid) {
            Step::Rest => {}
            Step::Verify(owners) => {
                let mut is_unheard = false;
                for (owner, place) in owners {
                    match world.objects.get(&owner).is_some_and(|held| held.place == place) {
                        true => is_unheard = true,
                        false => self.queue.extend(self.graph.absent(&owner, place).check),
                    }
                }
                if is_unheard {
                    self.queue.insert(uid);
                }
            }
            Step::Delete(target, policy) if is_current(world, &target) => {
                let owners = &world.objects[&target.uid].owners;
                let alive = owners.iter().filter_map(|owner| world.is_there(owner));
                for owner in alive {
                    assert!(
                        owner.is_deleting,
                        "{} belongs to {}, which stays",
                        target.uid, owner.uid
                    );
                }
                world.delete(&target.uid, policy);
            }
            Step::Disown(target, owners) if is_current(world, &target) => world.disown(&target.uid, &owners),
            Step::Orphan { dependents, .. } => {
                for dependent in dependents {
                    world.disown(&dependent.uid, std::slice::from_ref(&uid));
                }
                self.queue.insert(uid);
            }
            Step::Release(target, left) if is_current(world, &target) => {
                let mut object = world.objects[&target.uid].clone();
                object.finalizers = left.into();
                world.put(object);
            }
            Step::Delete(..) | Step::Disown(..) | Step::Release(..) => {
                self.queue.insert(uid);
            }
        }
        true
    }

    fn settle(&mut self, world: &mut World) {
        for round in 0..10_000 {
            let heard = self.hear(world);
            if !self.look(world, round) && !heard {
                return;
            }
        }
        panic!("it never comes to rest");
    }
}

/// Collects by looking at everything until nothing is left to do.
fn collect_naively(world: &mut World) {
    for _ in 0..10_000 {
        let objects: Vec<Object> = world.objects.values().cloned().collect();
        let (alive, ending): (Vec<_>, Vec<_>) = objects.iter().partition(|one| !one.is_deleting);
        // Who waits goes on waiting until everybody has seen that.
        let is_better = alive.into_iter().any(|object| improve(world, object))
            || ending.into_iter().any(|object| improve(world, object))
            || break_a_circle(world, &objects);
        if !is_better {
            return;
        }
        world.told.clear();
    }
    panic!("the model never comes to rest");
}

fn improve(world: &mut World, object: &Object) -> bool {
    let before = world.sum();
    match object.deletion() {
        Deletion::OnItsWay => {}
        Deletion::WaitsForOrphans => {
            let dependents: Vec<Uid> = world
                .dependents(&object.uid)
                .iter()
                .map(|one| one.uid.clone())
                .collect();
            for dependent in dependents {
                world.disown(&dependent, std::slice::from_ref(&object.uid));
            }
            drop_finalizer(world, &object.uid, ORPHAN);
        }
        Deletion::WaitsForDependents => {
            if world.blocking(object).all(|one| one.uid == object.uid) {
                drop_finalizer(world, &object.uid, FOREGROUND);
            }
        }
        Deletion::None => {
            let is_hopeless = |owner: &Owner| !matches!(owner.at, Whereabouts::At(_));
            if object.owners.is_empty() || object.owners.iter().any(is_hopeless) {
                return false;
            }
            let waits = |owner: &Owner| {
                world
                    .is_there(owner)
                    .map(|held| held.deletion() == Deletion::WaitsForDependents)
            };
            let good = object.owners.iter().any(|owner| waits(owner) == Some(false));
            if good {
                let bad = object.owners.iter().filter(|owner| waits(owner) != Some(false));
                let bad: Vec<Uid> = bad.map(|owner| owner.uid.clone()).collect();
                world.disown(&object.uid, &bad);
            } else {
                let is_awaited = object.owners.iter().any(|owner| waits(owner) == Some(true));
                let is_owner = !world.dependents(&object.uid).is_empty();
                let policy = match is_awaited && is_owner {
                    true => Policy::Foreground,
                    false => Policy::Background,
                };
                world.delete(&object.uid, policy);
            }
        }
    }
    world.sum() != before
}

fn drop_finalizer(world: &mut World, uid: &Uid, finalizer: &str) {
    if let Some(mut object) = world.objects.get(uid).cloned() {
        object.finalizers = object
            .finalizers
            .iter()
            .filter(|one| &***one != finalizer)
            .cloned()
            .collect();
        world.put(object);
    }
}

/// Lets one go of those who wait for each other and for nobody else.
fn break_a_circle(world: &mut World, objects: &[Object]) -> bool {
    let waits = |object: &Object| object.deletion() == Deletion::WaitsForDependents;
    for object in objects.iter().filter(|object| waits(object)) {
        let reached = reached(world, &object.uid);
        let is_circle =
            |uid: &Uid| waits(&world.objects[uid]) && self::reached(world, uid).contains(&object.uid);
        if !reached.is_empty() && reached.iter().all(is_circle) {
            drop_finalizer(world, &object.uid, FOREGROUND);
            return true;
        }
    }
    false
}

/// Whom an object waits for, and whom those wait for.
fn reached(world: &World, uid: &Uid) -> BTreeSet<Uid> {
    let mut reached: BTreeSet<Uid> = BTreeSet::new();
    loop {
        let from = reached.iter().chain([uid]).map(|uid| &world.objects[uid]);
        let more: BTreeSet<Uid> = from
            .flat_map(|one| world.blocking(one))
            .map(|one| one.uid.clone())
            .collect();
        if more.is_subset(&reached) {
            return reached;
        }
        reached.extend(more);
    }
}

proptest! {
    #[test]
    fn what_is_left_is_what_a_collector_without_a_graph_leaves(acts in acts(0.0)) {
        let (mut world, mut model) = (World::default(), World::default());
        let mut collector = Collector::default();
        for act in &acts {
            world.act(act);
            model.act(act);
            collector.settle(&mut world);
            collect_naively(&mut model);
            prop_assert_eq!(world.sum(), model.sum(), "after {:?}", act);
        }
        // It remembers who is there, and who is named.
        let named: BTreeSet<Uid> = world.objects.values().flat_map(|one| one.owners.iter().map(|owner| owner.uid.clone())).collect();
        let known: BTreeSet<Uid> = world.objects.keys().cloned().chain(named).collect();
        prop_assert_eq!(collector.graph.len(), known.len());
    }

    #[test]
    fn however_late_the_news_nothing_good_goes_and_nothing_bad_stays(
        acts in acts(0.2),
        choices in prop::collection::vec((0..3u8, 0..16usize), 0..120),
    ) {
        let (mut world, mut collector) = (World::default(), Collector::default());
        let (mut acts, mut choices) = (acts.iter(), choices.into_iter());
        loop {
            match choices.next() {
                Some((0, _)) => { collector.hear(&mut world); }
                Some((1, choice)) => { collector.look(&mut world, choice); }
                _ => match acts.next() {
                    Some(act) => world.act(act),
                    None => break,
                },
            }
        }
        collector.settle(&mut world);
        let settled = world.sum();
        collect_naively(&mut world);
        prop_assert_eq!(settled, world.sum());
    }
}
