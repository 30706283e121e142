//! Which address a pod gets: in turn, and none that another pod had until just now. Decides; reads and writes nothing.

use std::collections::{BTreeSet, VecDeque};
use std::net::Ipv4Addr;

use serde::{Deserialize, Serialize};

use crate::pod_cidr::PodCidr;

/// As many as pods can run: a whole node may end at once.
const RESTING_MAX: usize = 256;

/// Where the turn is and who rests. Which addresses are in use is told by the pods themselves, so none is ever lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Addresses {
    last: Option<Ipv4Addr>,
    /// Given back, the longest ago first.
    resting: VecDeque<Ipv4Addr>,
}

impl Addresses {
    /// Where an instance stands that has kept nothing but its pods.
    pub(crate) fn behind(last: Option<Ipv4Addr>) -> Self {
        Self {
            last,
            resting: VecDeque::new(),
        }
    }

    /// The next address of the round that is neither in use nor resting; where there is none, the one that has rested longest.
    pub(crate) fn take(&mut self, network: PodCidr, used: &BTreeSet<Ipv4Addr>) -> Option<Ipv4Addr> {
        self.resting
            .retain(|address| network.is_for_pods(*address) && !used.contains(address));
        let fresh = network
            .pod_addresses_after(self.last)
            .find(|address| !used.contains(address) && !self.resting.contains(address));
        let found = fresh.or_else(|| self.resting.front().copied())?;
        self.resting.retain(|address| *address != found);
        self.last = Some(found);
        Some(found)
    }

    /// A pod that had it is gone.
    pub(crate) fn give_back(&mut self, address: Ipv4Addr) {
        self.resting.retain(|resting| *resting != address);
        self.resting.push_back(address);
        if self.resting.len() > RESTING_MAX {
            self.resting.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn network(text: &str) -> PodCidr {
        text.parse().expect("a network")
    }

    #[test]
    fn addresses_go_round_and_who_was_given_back_rests() {
        let ip = |last: u8| Ipv4Addr::new(10, 9, 0, last);
        let (small, mut used) = (network("10.9.0.0/28"), BTreeSet::new());
        let mut addresses = Addresses::default();
        for last in 2..=14 {
            assert_eq!(addresses.take(small, &used), Some(ip(last)));
            used.insert(ip(last));
        }
        assert_eq!(addresses.take(small, &used), None, "all are in use");
        for last in [7, 3] {
            used.remove(&ip(last));
            addresses.give_back(ip(last));
        }
        // Both rest; the one that has longer comes first, although it is not its turn.
        assert_eq!(addresses.take(small, &used), Some(ip(7)));
        // A network that was chosen anew starts at its beginning.
        assert_eq!(
            Addresses::behind(Some(ip(7))).take(network("10.8.0.0/16"), &BTreeSet::new()),
            Some(Ipv4Addr::new(10, 8, 0, 2))
        );
    }

    #[derive(Debug, Clone, Copy)]
    enum Step {
        Start,
        /// The pod at this place, counted round.
        End(usize),
        /// Killed, and read again from what was kept; the last release may not have been.
        Crash {
            is_release_kept: bool,
        },
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => Just(Step::Start),
            3 => any::<usize>().prop_map(Step::End),
            1 => any::<bool>().prop_map(|is_release_kept| Step::Crash { is_release_kept }),
        ]
    }

    proptest! {
        #[test]
        fn no_address_is_given_twice_or_lost_or_too_soon(
            steps in prop::collection::vec(step(), 1..120),
            length in prop_oneof![Just(28u8), Just(27), Just(24)],
        ) {
            let network = network(&format!("10.9.0.0/{length}"));
            let capacity = network.pod_addresses_after(None).count();
            let (mut addresses, mut used) = (Addresses::default(), Vec::<Ipv4Addr>::new());
            // Given back and not given out since, the longest ago first: the model.
            let mut free_again = Vec::<Ipv4Addr>::new();
            let mut kept = addresses.clone();
            for step in steps {
                match step {
                    Step::Start => {
                        let in_use: BTreeSet<_> = used.iter().copied().collect();
                        let Some(address) = addresses.take(network, &in_use) else {
                            prop_assert_eq!(used.len(), capacity, "refused while some are free");
                            continue;
                        };
                        prop_assert!(network.is_for_pods(address) && !in_use.contains(&address));
                        if let Some(place) = free_again.iter().position(|one| *one == address) {
                            prop_assert_eq!(used.len() + free_again.len(), capacity, "a fresh one was free");
                            prop_assert_eq!(place, 0, "another one has rested longer");
                            free_again.remove(place);
                        }
                        used.push(address);
                        kept = addresses.clone();
                    }
                    Step::End(place) if !used.is_empty() => {
                        let address = used.remove(place % used.len());
                        kept = addresses.clone();
                        addresses.give_back(address);
                        free_again.push(address);
                    }
                    Step::End(_) => {}
                    Step::Crash { is_release_kept } => {
                        let state = if is_release_kept { &addresses } else { &kept };
                        let text = serde_json::to_vec(state).expect("written");
                        addresses = serde_json::from_slice(&text).expect("read");
                        if !is_release_kept {
                            // What nobody wrote down does not rest any more, and is free all the same.
                            free_again.retain(|address| addresses.resting.contains(address));
                        }
                    }
                }
            }
            // Once every pod is gone, every address can be had again.
            let mut in_use = BTreeSet::new();
            while let Some(address) = addresses.take(network, &in_use) {
                prop_assert!(in_use.insert(address));
            }
            prop_assert_eq!(in_use.len(), capacity);
        }
    }
}
