//! What the consumer was told, and what is new against it.

use std::collections::BTreeMap;

use crate::follower::FollowEvent;
use crate::object::RawObject;

/// Every object as it was told last, by namespace and name. The bytes are shared with the consumer's.
#[derive(Default)]
pub(super) struct Known {
    objects: BTreeMap<(String, String), RawObject>,
}

impl Known {
    /// Takes over a complete list; the events are the way there.
    pub(super) fn replace(&mut self, items: Vec<RawObject>) -> Vec<FollowEvent> {
        let mut vanished = std::mem::take(&mut self.objects);
        let mut changes = Vec::new();
        for item in items {
            if let Some(before) = vanished.remove(&key(&item)) {
                self.objects.insert(key(&before), before);
            }
            changes.extend(self.apply(item));
        }
        // What is gone comes first: a name may have moved on.
        vanished
            .into_values()
            .map(FollowEvent::Deleted)
            .chain(changes)
            .collect()
    }

    /// An object that exists. Under another uid it is another object: the one before is gone.
    pub(super) fn apply(&mut self, object: RawObject) -> Vec<FollowEvent> {
        let before = self.objects.insert(key(&object), object.clone());
        match before {
            Some(before) if before.uid() != object.uid() => {
                vec![FollowEvent::Deleted(before), FollowEvent::Applied(object)]
            }
            Some(before) if before.resource_version() == object.resource_version() => Vec::new(),
            _ => vec![FollowEvent::Applied(object)],
        }
    }

    /// An object that is gone; nothing, if it was never told.
    pub(super) fn delete(&mut self, object: RawObject) -> Option<FollowEvent> {
        self.objects
            .remove(&key(&object))
            .map(|_| FollowEvent::Deleted(object))
    }
}

fn key(object: &RawObject) -> (String, String) {
    (object.namespace().to_owned(), object.name().to_owned())
}
