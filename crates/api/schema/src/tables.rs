//! The tables. Everything below `tables/` is written by `cargo xtask schema`, `hotmap_v1alpha1` apart.

use crate::Kind;

mod apps_v1;
mod authentication_v1;
mod authorization_v1;
mod autoscaling_v1;
mod batch_v1;
mod certificates_v1;
mod coordination_v1;
mod core_v1;
mod discovery_v1;
mod events_v1;
mod hotmap_v1alpha1;
mod kinds;
mod meta_v1;
mod policy_v1;
mod rbac_v1;

/// The kind of a group (`""` for core) and version; lists, options and reviews are kinds too.
///
/// The kinds of `meta.k8s.io` (`Status`, `DeleteOptions`, `WatchEvent` …) are found under the core group as well, which
/// is what clients send.
pub fn kind(group: &str, version: &str, kind: &str) -> Option<&'static Kind> {
    let wanted = (kind, group, version);
    [kinds::KINDS, hotmap_v1alpha1::KINDS]
        .into_iter()
        .find_map(|kinds| {
            let at = kinds.binary_search_by(|known| (known.kind, known.group, known.version).cmp(&wanted));
            at.ok().map(|at| &kinds[at])
        })
}

/// Every kind of every table: the generated ones sorted by name, then our own.
pub fn kinds() -> impl Iterator<Item = &'static Kind> + Clone {
    kinds::KINDS.iter().chain(hotmap_v1alpha1::KINDS)
}

#[cfg(test)]
mod tests {
    use crate::{ListType, Message, PatchStrategy, Type, kind, kinds};

    #[test]
    fn every_kind_is_found_by_its_name() {
        for known in kinds() {
            let found = kind(known.group, known.version, known.kind).expect(known.kind);
            assert!(std::ptr::eq(found, known), "{known:?}");
        }
        assert!(kind("", "v1", "Nonsense").is_none());
    }

    #[test]
    fn numbers_ascend_in_every_message() {
        fn check(message: &'static Message, depth: usize) {
            assert!(
                message.fields.is_sorted_by_key(|field| field.number),
                "{message:?}"
            );
            for field in message.fields {
                if let Type::Message(nested) = field.kind
                    && depth < 20
                {
                    check(nested, depth + 1);
                }
            }
        }
        kinds().for_each(|known| check(known.message, 0));
    }

    #[test]
    fn merge_rules_come_along() {
        let pod = kind("", "v1", "Pod").expect("served").message;
        let Some(Type::Message(spec)) = pod.field("spec").map(|field| field.kind) else {
            panic!("a message")
        };
        let containers = spec.field("containers").expect("known");
        assert_eq!(containers.merge_key, Some("name"));
        assert_eq!(containers.patch_strategy, PatchStrategy::Merge);
        assert_eq!(containers.list_type, ListType::Map(&["name"]));
        let volumes = spec.field("volumes").expect("known");
        assert!(volumes.patch_strategy.retains_keys() && volumes.patch_strategy.merges());
        let Type::Message(volume) = volumes.kind else {
            panic!("a message")
        };
        assert_eq!(
            volume.field("configMap").map(|field| field.number),
            Some(19),
            "seen through the inlined source"
        );
    }
}
