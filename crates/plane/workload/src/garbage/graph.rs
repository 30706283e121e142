//! Who belongs to whom, over all kinds; and what is to be done about it.
//!
//! ```text
//!   what a follower tells ──▶ applied · deleted ──▶ Changes { check, invalid }
//!                                  │
//!                      objects and who depends on them
//!                                  │
//!                uid to check ──▶ step() ──▶ the one thing to do about this object now
//! ```
//!
//! Pure: no clock, no request. A step is a function of what is known, never of which event came; doing it twice, or
//! checking more objects than necessary, changes nothing. What is known is a little old, so whatever a step destroys is
//! made conditional on the server's state by whoever carries it out.
//!
//! Rules follow `pkg/controller/garbagecollector/{garbagecollector,graph_builder}.go`, Kubernetes 1.36. Two things differ:
//! a cycle of objects that wait for each other is found exactly, not guessed, and its references stay as they are; and a
//! reference that can never be an owner blocks nobody.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::object::{Deletion, FOREGROUND, ORPHAN, Object, Owner, Place, Uid, Whereabouts};

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

/// Every object there is, and every one that somebody says is their owner.
#[derive(Debug, Default)]
pub(super) struct Graph {
    nodes: HashMap<Uid, Node>,
}

#[derive(Debug, Default)]
struct Node {
    /// Nothing if it is only known as an owner: not there yet, not there any more, or never.
    object: Option<Object>,
    /// Who says to belong to it. An object that is not there is kept for as long as somebody does.
    dependents: BTreeSet<Uid>,
    /// Where the server said that it is not.
    absent: Vec<Place>,
}

/// What a piece of news leads to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Changes {
    /// Who deserves a look.
    pub(super) check: BTreeSet<Uid>,
    /// Dependent and owner that are in different namespaces, or of the cluster and of a namespace.
    pub(super) invalid: Vec<(Uid, Uid)>,
}

/// A state of an object that a step is about; it is taken only if this is still its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    pub(super) uid: Uid,
    pub(super) place: Place,
    pub(super) resource_version: Box<str>,
}

/// What becomes of the dependents of something that is deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    Background,
    Foreground,
    Orphan,
}

/// The next thing to do about an object.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing, until something changes.
    Rest,
    /// Ask the server whether these owners are there, and say so if they are not.
    Verify(Vec<(Uid, Place)>),
    /// Delete it: nobody it belongs to is left.
    Delete(Target, Policy),
    /// Take the references to these owners away: it has better ones.
    Disown(Target, Vec<Uid>),
    /// Take the references to it away from those who depend on it, then leave it these finalizers.
    Orphan {
        owner: Target,
        left: Vec<Box<str>>,
        dependents: Vec<Target>,
    },
    /// Leave it these finalizers: what it waited for has happened.
    Release(Target, Vec<Box<str>>),
}

impl Graph {
    /// Takes in an object as it is now.
    pub(super) fn applied(&mut self, object: Object) -> Changes {
        let uid = object.uid.clone();
        let (is_changed, deletion) = {
            let node = self.nodes.entry(uid.clone()).or_default();
            let old = node.object.as_ref();
            let is_changed = old.is_none_or(|old| old.owners != object.owners || old.place != object.place);
            let was = old.map_or(Deletion::None, Object::deletion);
            (is_changed, (was, object.deletion()))
        };
        let mut changes = Changes::default();
        let node = self.nodes.get_mut(&uid).expect("it was put there above");
        let old = node.object.replace(object);
        if is_changed {
            if old.is_none() {
                // Those who named it before it was seen may have named it wrongly.
                changes.check.extend(node.dependents.iter().cloned());
                changes.invalid = self.invalid_dependents(&uid);
            }
            self.relink(&uid, old.as_ref(), &mut changes);
        }
        if deletion.0 != deletion.1 {
            self.deletion_moves(&uid, deletion.1, &mut changes);
        }
        changes
    }

    /// An object is gone.
    pub(super) fn deleted(&mut self, uid: &str) -> Changes {
        let mut changes = Changes::default();
        let Some(node) = self.nodes.get_mut(uid) else {
            return changes;
        };
        let Some(last) = node.object.take() else {
            return changes;
        };
        changes.check.extend(node.dependents.iter().cloned());
        changes.check.remove(uid);
        for owner in &last.owners {
            self.unlink(&owner.uid, uid);
            self.check_if_waiting(&owner.uid, &mut changes);
        }
        self.forget_if_useless(uid);
        changes
    }

    /// The server said that no such object is there: what belongs to it deserves a look.
    pub(super) fn absent(&mut self, uid: &str, place: Place) -> Changes {
        let mut changes = Changes::default();
        if let Some(node) = self.nodes.get_mut(uid)
            && !node.absent.contains(&place)
        {
            node.absent.push(place);
            changes.check.extend(node.dependents.iter().cloned());
        }
        changes
    }

    /// An object as it was last told.
    pub(super) fn object(&self, uid: &str) -> Option<&Object> {
        self.nodes.get(uid)?.object.as_ref()
    }

    /// What is to be done about an object now.
    pub(super) fn step(&self, uid: &str) -> Step {
        let Some((node, object)) = self
            .nodes
            .get(uid)
            .and_then(|node| Some((node, node.object.as_ref()?)))
        else {
            return Step::Rest;
        };
        match object.deletion() {
            Deletion::None => self.step_of_dependent(node, object),
            Deletion::OnItsWay => Step::Rest,
            Deletion::WaitsForOrphans => self.step_of_orphaning(node, object),
            Deletion::WaitsForDependents
                if self.is_blocked(object) || self.is_awaited_below(node, object) =>
            {
                Step::Rest
            }
            Deletion::WaitsForDependents => {
                Step::Release(target(object), finalizers_without(object, FOREGROUND))
            }
        }
    }

    fn step_of_dependent(&self, node: &Node, object: &Object) -> Step {
        let owners: Vec<(&Owner, Standing)> = object
            .owners
            .iter()
            .map(|owner| (owner, self.standing(owner)))
            .collect();
        let is_any = |standing| owners.iter().any(|(_, one)| *one == standing);
        // Who cannot be judged may be a good owner: better to keep too much.
        if owners.is_empty() || is_any(Standing::Unknowable) {
            return Step::Rest;
        }
        if is_any(Standing::Unverified) {
            return Step::Verify(unverified(&owners));
        }
        let is_deserted = !is_any(Standing::Solid);
        if !is_deserted && (is_any(Standing::Dangling) || is_any(Standing::Waiting)) {
            let solid = |uid: &Uid| {
                owners
                    .iter()
                    .any(|(one, standing)| one.uid == *uid && *standing == Standing::Solid)
            };
            let bad = owners.iter().map(|(owner, _)| owner.uid.clone());
            let bad: BTreeSet<Uid> = bad.filter(|uid| !solid(uid)).collect();
            return match bad.is_empty() {
                // Named twice, once rightly: a reference cannot be taken away without the other.
                true => Step::Rest,
                false => Step::Disown(target(object), bad.into_iter().collect()),
            };
        }
        if !is_deserted {
            return Step::Rest;
        }
        let policy = if is_any(Standing::Waiting) && !node.dependents.is_empty() {
            // Its owner waits for all that is below it.
            Policy::Foreground
        } else if object.has_finalizer(ORPHAN) {
            Policy::Orphan
        } else if object.has_finalizer(FOREGROUND) {
            Policy::Foreground
        } else {
            Policy::Background
        };
        Step::Delete(target(object), policy)
    }

    fn step_of_orphaning(&self, node: &Node, object: &Object) -> Step {
        let dependents = node.dependents.iter().filter_map(|uid| self.object(uid));
        let dependents: Vec<Target> = dependents.map(target).collect();
        let (owner, left) = (target(object), finalizers_without(object, ORPHAN));
        match dependents.is_empty() {
            true => Step::Release(owner, left),
            false => Step::Orphan {
                owner,
                left,
                dependents,
            },
        }
    }

    fn standing(&self, owner: &Owner) -> Standing {
        let Whereabouts::At(place) = &owner.at else {
            return Standing::Unknowable;
        };
        let node = self.nodes.get(&owner.uid);
        let held = node.and_then(|node| node.object.as_ref());
        match held.filter(|held| held.place == *place) {
            Some(held) if held.deletion() == Deletion::WaitsForDependents => Standing::Waiting,
            Some(_) => Standing::Solid,
            None if node.is_some_and(|node| node.absent.contains(place)) => Standing::Dangling,
            None => Standing::Unverified,
        }
    }

    /// Whether an object that is deleted in the foreground has to wait for somebody.
    ///
    /// Those who only wait for each other in a circle need not: whoever it waits for, directly or not, waits for it.
    fn is_blocked(&self, object: &Object) -> bool {
        let mut waits_for: HashMap<&str, Vec<&str>> = HashMap::new();
        let mut open = vec![object];
        while let Some(next) = open.pop() {
            let blocking: Vec<&Object> = self.blocking(next).collect();
            if blocking
                .iter()
                .any(|one| one.deletion() != Deletion::WaitsForDependents)
            {
                return true;
            }
            let uids = blocking.iter().map(|one| &*one.uid).collect();
            waits_for.insert(&next.uid, uids);
            open.extend(
                blocking
                    .into_iter()
                    .filter(|one| !waits_for.contains_key(&*one.uid)),
            );
        }
        let mut in_circle: HashSet<&str> = HashSet::from([&*object.uid]);
        loop {
            let reaches = |uids: &Vec<&str>| uids.iter().any(|uid| in_circle.contains(uid));
            let more: Vec<&str> = waits_for
                .iter()
                .filter(|(uid, uids)| !in_circle.contains(*uid) && reaches(uids))
                .map(|(uid, _)| *uid)
                .collect();
            if more.is_empty() {
                return in_circle.len() < waits_for.len();
            }
            in_circle.extend(more);
        }
    }

    /// Whether a dependent still needs to see that the object waits: once it does not, it is as good an owner as any other
    /// until it is gone, and somebody's finalizer may make that long.
    fn is_awaited_below(&self, node: &Node, object: &Object) -> bool {
        let names = |dependent: &Object| {
            let mut references = dependent.references_to(&object.uid);
            references.any(|one| one.at == Whereabouts::At(object.place.clone()))
        };
        let dependents = node
            .dependents
            .iter()
            .filter_map(|uid| Some((self.nodes.get(uid)?, self.object(uid)?)));
        let mut alive = dependents.filter(|(_, one)| one.deletion() == Deletion::None && names(one));
        alive.any(|(node, one)| self.step_of_dependent(node, one) != Step::Rest)
    }

    /// Who has to be gone before `owner` goes.
    fn blocking<'a>(&'a self, owner: &'a Object) -> impl Iterator<Item = &'a Object> {
        let node = self.nodes.get(&owner.uid);
        let dependents = node.into_iter().flat_map(|node| &node.dependents);
        dependents.filter_map(|uid| self.object(uid)).filter(|dependent| {
            let mut references = dependent.references_to(&owner.uid);
            references.any(|one| one.blocks && one.at == Whereabouts::At(owner.place.clone()))
        })
    }

    fn relink(&mut self, uid: &Uid, old: Option<&Object>, changes: &mut Changes) {
        let uids = |object: &Object| -> BTreeSet<Uid> {
            object.owners.iter().map(|owner| owner.uid.clone()).collect()
        };
        let before = old.map(uids).unwrap_or_default();
        let now = self.object(uid).map(uids).unwrap_or_default();
        for owner in &before {
            // It may have waited for this object, and need not any more.
            self.check_if_waiting(owner, changes);
        }
        for gone in before.difference(&now) {
            self.unlink(gone, uid);
        }
        for new in now.difference(&before) {
            let node = self.nodes.entry(new.clone()).or_default();
            node.dependents.insert(uid.clone());
        }
        if !now.is_empty() {
            changes.check.insert(uid.clone());
        }
        changes.invalid.extend(self.invalid_owners(uid));
    }

    fn deletion_moves(&self, uid: &Uid, deletion: Deletion, changes: &mut Changes) {
        let node = &self.nodes[uid];
        if deletion.is_waiting() {
            changes.check.insert(uid.clone());
            changes.check.extend(node.dependents.iter().cloned());
        }
        // They may have waited for just that; or a circle has closed in which all wait for each other.
        let owners = node.object.iter().flat_map(|object| object.owners.iter());
        for owner in owners {
            self.check_if_waiting(&owner.uid, changes);
        }
    }

    fn check_if_waiting(&self, uid: &Uid, changes: &mut Changes) {
        if self
            .object(uid)
            .is_some_and(|owner| owner.deletion().is_waiting())
        {
            changes.check.insert(uid.clone());
        }
    }

    fn unlink(&mut self, owner: &str, dependent: &str) {
        if let Some(node) = self.nodes.get_mut(owner) {
            node.dependents.remove(dependent);
            self.forget_if_useless(owner);
        }
    }

    fn forget_if_useless(&mut self, uid: &str) {
        if let Some(node) = self.nodes.get(uid)
            && node.object.is_none()
            && node.dependents.is_empty()
        {
            self.nodes.remove(uid);
        }
    }

    fn invalid_owners(&self, uid: &Uid) -> Vec<(Uid, Uid)> {
        let object = self.object(uid).into_iter();
        let owners = object.flat_map(|object| object.owners.iter().map(move |owner| (object, owner)));
        owners
            .filter(|(object, owner)| self.is_in_another_namespace(object, &owner.uid))
            .map(|(object, owner)| (object.uid.clone(), owner.uid.clone()))
            .collect()
    }

    fn invalid_dependents(&self, uid: &Uid) -> Vec<(Uid, Uid)> {
        let dependents = self.nodes[uid]
            .dependents
            .iter()
            .filter_map(|one| self.object(one));
        dependents
            .filter(|dependent| self.is_in_another_namespace(dependent, uid))
            .map(|dependent| (dependent.uid.clone(), uid.clone()))
            .collect()
    }

    fn is_in_another_namespace(&self, dependent: &Object, owner: &str) -> bool {
        self.object(owner).is_some_and(|owner| {
            !owner.place.namespace.is_empty() && owner.place.namespace != dependent.place.namespace
        })
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }
}

/// What an owner is worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It is there.
    Solid,
    /// It is there, and waits for its dependents to go.
    Waiting,
    /// It is not there; the server says so.
    Dangling,
    /// It has not been seen; only the server knows.
    Unverified,
    /// It is of an unknown kind, or can be nobody's owner.
    Unknowable,
}

fn unverified(owners: &[(&Owner, Standing)]) -> Vec<(Uid, Place)> {
    let unverified = owners
        .iter()
        .filter(|(_, standing)| *standing == Standing::Unverified);
    unverified
        .filter_map(|(owner, _)| match &owner.at {
            Whereabouts::At(place) => Some((owner.uid.clone(), place.clone())),
            _ => None,
        })
        .collect()
}

fn finalizers_without(object: &Object, finalizer: &str) -> Vec<Box<str>> {
    let left = object.finalizers.iter().filter(|held| &***held != finalizer);
    left.cloned().collect()
}

fn target(object: &Object) -> Target {
    Target {
        uid: object.uid.clone(),
        place: object.place.clone(),
        resource_version: object.resource_version.clone(),
    }
}
