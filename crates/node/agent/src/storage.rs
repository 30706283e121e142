//! How much of the host's disk a pod may take, and whether it takes more.
//!
//! Order, comparisons and messages follow `localStorageEviction` in `pkg/kubelet/eviction`, Kubernetes 1.36. There as here a pod
//! is measured now and then and evicted afterwards: nothing holds a program that writes fast. Memory volumes are not measured:
//! their size is that of their file system. What a container writes at its `terminationMessagePath` counts here, and not
//! there (`calcEphemeralStorage` in `pkg/kubelet/stats`).

mod usage;

use hotmap_object::Quantity;

use crate::pod::{Container, EmptyDirSource, Pod};
pub(crate) use usage::disk_usage;

/// The resource that limits a container's disk.
const EPHEMERAL_STORAGE: &str = "ephemeral-storage";

/// What of a pod is limited.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct StorageLimits {
    /// By the name of an emptyDir on disk.
    volumes: Vec<(String, Limit)>,
    /// By the name of a container.
    containers: Vec<(String, Limit)>,
    /// Of everything together.
    pod: Option<Limit>,
}

/// So many bytes, and how the pod writes them.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Limit {
    bytes: u64,
    shown: String,
}

/// Something that can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part<'a> {
    /// An emptyDir on disk.
    Volume(&'a str),
    /// A container's own layer, its logs and its termination message.
    Container(&'a str),
}

impl StorageLimits {
    /// `None` if nothing of the pod is limited, so that nobody needs to measure it.
    pub(crate) fn of(pod: &Pod) -> Option<Self> {
        let on_disk = pod.spec.volumes.iter().filter_map(|volume| {
            let source = volume
                .empty_dir
                .as_ref()
                .filter(|source| !source.is_in_memory())?;
            Some((volume.name.clone(), Limit::parse(&source.size_limit)?))
        });
        let main = pod.spec.containers.iter();
        let own = main.filter_map(|container| {
            Some((
                container.name.clone(),
                Limit::of(container).filter(|one| one.bytes > 0)?,
            ))
        });
        let limits = Self {
            volumes: on_disk.collect(),
            containers: own.collect(),
            pod: Limit::of_all(pod),
        };
        (limits != Self::default()).then_some(limits)
    }

    /// Why the pod has to go, in upstream's words, with their full stop and the blank behind it; measures no more than it needs.
    pub(crate) fn exceeded(&self, pod: &Pod, measure: impl Fn(Part<'_>) -> u64) -> Option<String> {
        for (name, limit) in &self.volumes {
            if measure(Part::Volume(name)) > limit.bytes {
                let shown = &limit.shown;
                return Some(format!(
                    "Usage of EmptyDir volume {name:?} exceeds the limit {shown:?}. "
                ));
            }
        }
        // Whoever limits a container limits the pod.
        let limit = self.pod.as_ref()?;
        let volumes = pod.spec.volumes.iter().filter(|volume| {
            let source = volume.empty_dir.as_ref();
            source.is_some_and(|source| !source.is_in_memory())
        });
        let of_volumes: u64 = volumes.map(|volume| measure(Part::Volume(&volume.name))).sum();
        let of_containers: Vec<(&str, u64)> = pod
            .all_containers()
            .map(|one| (one.name.as_str(), measure(Part::Container(&one.name))))
            .collect();
        if of_volumes + of_containers.iter().map(|(_, bytes)| bytes).sum::<u64>() > limit.bytes {
            let shown = &limit.shown;
            return Some(format!(
                "Pod ephemeral local storage usage exceeds the total limit of containers {shown}. "
            ));
        }
        self.containers.iter().find_map(|(name, limit)| {
            let used = of_containers.iter().find(|(known, _)| known == name)?.1;
            let shown = &limit.shown;
            (used > limit.bytes)
                .then(|| format!("Container {name} exceeded its local ephemeral storage limit {shown:?}. "))
        })
    }
}

impl Limit {
    /// `None` for nothing, and for zero, which upstream takes for no limit.
    fn parse(text: &str) -> Option<Self> {
        Some(Self {
            bytes: bytes(text).filter(|bytes| *bytes > 0)?,
            shown: text.to_owned(),
        })
    }

    fn of(container: &Container) -> Option<Self> {
        let text = container.resources.limits.get(EPHEMERAL_STORAGE)?;
        Some(Self {
            bytes: bytes(text)?,
            shown: text.clone(),
        })
    }

    /// What the containers that run beside each other may take together, or an init container alone if that is more.
    fn of_all(pod: &Pod) -> Option<Self> {
        let beside: Vec<Self> = pod.lasting_containers().filter_map(Self::of).collect();
        let sum = beside.iter().map(|limit| limit.bytes).sum();
        let together = match beside.as_slice() {
            [] => None,
            [only] => Some(only.clone()),
            _ => Some(Self {
                bytes: sum,
                shown: binary(sum),
            }),
        };
        let init = pod.spec.init_containers.iter().filter_map(Self::of);
        init.chain(together).max_by_key(|limit| limit.bytes)
    }
}

/// How large the file system of a memory volume is made: what the pod says of it, or what its containers may take of memory if
/// that is less and all of them say (`calculateEmptyDirMemorySize` in `pkg/volume/emptydir`, Kubernetes 1.36).
pub(crate) fn memory_volume_bytes(pod: &Pod, source: &EmptyDirSource) -> Option<u64> {
    let memory = |container: &Container| bytes(container.resources.limits.get("memory")?);
    let beside: Option<Vec<u64>> = pod.lasting_containers().map(memory).collect();
    let alone: Option<Vec<u64>> = pod.spec.init_containers.iter().map(memory).collect();
    let of_pod = beside.zip(alone).and_then(|(beside, alone)| {
        let together = beside.into_iter().sum::<u64>();
        alone
            .into_iter()
            .chain([together])
            .max()
            .filter(|bytes| *bytes > 0)
    });
    let own = Limit::parse(&source.size_limit).map(|limit| limit.bytes);
    own.into_iter().chain(of_pod).min()
}

/// A quantity of bytes, a part of one rounded up; `None` if it is none.
fn bytes(text: &str) -> Option<u64> {
    let quantity: Quantity = text.parse().ok()?;
    u64::try_from(quantity.div_ceil(Quantity::whole(1))).ok()
}

/// A number of bytes in its canonical form.
fn binary(bytes: u64) -> String {
    let units = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];
    let power = (bytes.trailing_zeros() / 10).min(units.len() as u32 - 1);
    let power = if bytes == 0 { 0 } else { power };
    format!("{}{}", bytes >> (10 * power), units[power as usize])
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(containers: Value, volumes: Value) -> Pod {
        let document = json!({"metadata": {}, "spec": {"containers": containers, "volumes": volumes,
            "initContainers": [{"name": "i", "resources": {"limits": {"ephemeral-storage": "1Ki"}}}]}});
        Pod::from_document(&document).expect("a pod")
    }

    #[test]
    fn a_pod_goes_when_a_part_of_it_takes_more_than_its_limit() {
        const MI: u64 = 1 << 20;
        let limited = |name: &str, limit: &str| json!({"name": name, "resources": {"limits": {"ephemeral-storage": limit}}});
        let volumes = json!([{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}, {"name": "w", "emptyDir": {}},
            {"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "1Ki"}}, {"name": "z", "emptyDir": {"sizeLimit": "0"}}]);
        let both = pod(
            json!([limited("a", "2Mi"), limited("b", "1536Ki"), {"name": "c"}]),
            volumes.clone(),
        );
        for (of, used, message) in [
            ("v", MI, None),
            (
                "v",
                MI + 1,
                Some("Usage of EmptyDir volume \"v\" exceeds the limit \"1Mi\". "),
            ),
            ("w", 3 * MI, None),
            (
                "w",
                4 * MI,
                Some("Pod ephemeral local storage usage exceeds the total limit of containers 3584Ki. "),
            ),
            (
                "b",
                2 * MI,
                Some("Container b exceeded its local ephemeral storage limit \"1536Ki\". "),
            ),
            ("a", 2 * MI, None),
            ("c", 3 * MI, None),
        ] {
            let limits = StorageLimits::of(&both).expect("limits");
            let measure = |part: Part<'_>| match part {
                Part::Volume(name) => {
                    assert!(!["m", "i"].contains(&name), "{name} is not on disk");
                    if name == of { used } else { 0 }
                }
                Part::Container(name) => {
                    if name == of {
                        used
                    } else {
                        0
                    }
                }
            };
            assert_eq!(limits.exceeded(&both, measure).as_deref(), message, "{of} {used}");
        }
    }

    #[test]
    fn who_has_no_limit_is_not_measured() {
        let free = json!({"metadata": {}, "spec": {"containers": [{"name": "a"}], "volumes": [{"name": "v", "emptyDir": {}},
            {"name": "m", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}}]}});
        assert_eq!(
            StorageLimits::of(&Pod::from_document(&free).expect("a pod")),
            None
        );
        let volumes_alone = pod(
            json!([{"name": "a"}]),
            json!([{"name": "v", "emptyDir": {"sizeLimit": "1Mi"}}]),
        );
        let limits = StorageLimits::of(&volumes_alone).expect("limits");
        assert_eq!(limits.pod.map(|limit| limit.shown), Some("1Ki".to_owned()));
    }

    #[test]
    fn a_memory_volume_is_as_large_as_it_says_or_as_its_pod_may_take() {
        let limited = |memory: &str| json!({"name": "c", "resources": {"limits": {"memory": memory}}});
        for (containers, size_limit, expected) in [
            (json!([{"name": "c"}]), "", None),
            (json!([{"name": "c"}]), "0", None),
            (json!([{"name": "c"}]), "1Mi", Some(1 << 20)),
            (json!([limited("3Mi")]), "", Some(3 << 20)),
            (json!([limited("3Mi")]), "1Mi", Some(1 << 20)),
            (json!([limited("3Mi")]), "4Mi", Some(3 << 20)),
            (json!([limited("3Mi"), limited("2Mi")]), "", Some(5 << 20)),
            (json!([limited("3Mi"), {"name": "free"}]), "", None),
        ] {
            let document = json!({"metadata": {}, "spec": {"containers": containers}});
            let pod = Pod::from_document(&document).expect("a pod");
            let source = EmptyDirSource {
                medium: "Memory".into(),
                size_limit: size_limit.into(),
            };
            assert_eq!(
                memory_volume_bytes(&pod, &source),
                expected,
                "{document} {size_limit}"
            );
        }
    }

    #[test]
    fn sums_are_written_as_quantities_are() {
        for (bytes, shown) in [
            (0, "0"),
            (1_000, "1000"),
            (1 << 10, "1Ki"),
            (3 << 20, "3Mi"),
            ((1 << 30) + (1 << 20), "1025Mi"),
        ] {
            assert_eq!(binary(bytes), shown);
        }
    }
}
