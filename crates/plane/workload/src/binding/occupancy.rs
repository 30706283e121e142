//! How many pods each node has, those included that were bound a moment ago.

use std::collections::HashMap;

/// Pods by the node they are on. Finished pods take no place.
#[derive(Debug, Default)]
pub(super) struct Occupancy {
    node_of: HashMap<String, String>,
    pods_on: HashMap<String, usize>,
}

impl Occupancy {
    pub(super) fn pods_on(&self, node: &str) -> usize {
        self.pods_on.get(node).copied().unwrap_or_default()
    }

    /// The pod with this uid is on this node.
    pub(super) fn take(&mut self, uid: &str, node: &str) {
        if self.node_of.get(uid).is_some_and(|held| held == node) {
            return;
        }
        self.leave(uid);
        self.node_of.insert(uid.to_owned(), node.to_owned());
        *self.pods_on.entry(node.to_owned()).or_default() += 1;
    }

    /// The pod with this uid is on no node.
    pub(super) fn leave(&mut self, uid: &str) {
        let Some(node) = self.node_of.remove(uid) else {
            return;
        };
        if let Some(pods) = self.pods_on.get_mut(&node) {
            *pods -= 1;
            if *pods == 0 {
                self.pods_on.remove(&node);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_counts_once_where_it_is() {
        let mut occupancy = Occupancy::default();
        occupancy.take("a", "n");
        occupancy.take("a", "n");
        occupancy.take("b", "n");
        assert_eq!((occupancy.pods_on("n"), occupancy.pods_on("m")), (2, 0));
        occupancy.take("a", "m");
        assert_eq!((occupancy.pods_on("n"), occupancy.pods_on("m")), (1, 1));
        occupancy.leave("b");
        occupancy.leave("b");
        occupancy.leave("a");
        assert_eq!((occupancy.pods_on("n"), occupancy.pods_on("m")), (0, 0));
        assert!(occupancy.pods_on.is_empty() && occupancy.node_of.is_empty());
    }
}
