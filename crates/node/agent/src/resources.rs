//! What requests and limits come to in numbers of the kernel, as a kubelet translates them.
//!
//! Rules follow `pkg/kubelet/cm/helpers_linux.go`, `pkg/kubelet/kuberuntime/kuberuntime_container_linux.go`,
//! `pkg/kubelet/qos/policy.go` and `component-helpers/resource`, Kubernetes 1.36.

use std::cmp::{max, min};

use hotmap_object::Quantity;
use hotmap_runtime::Resources;

use crate::pod::{self, Container, Pod};

/// Shares of one CPU, and the least and the most there are.
const SHARES_PER_CPU: u64 = 1_024;
const SHARES_MIN: u64 = 2;
const SHARES_MAX: u64 = 262_144;

/// Microseconds of each 100 ms that one thousandth of a CPU is, and the least that the kernel takes.
const QUOTA_MICROS_PER_MILLI: u64 = 100;
const QUOTA_MICROS_MIN: u64 = 1_000;

const GUARANTEED_OOM_SCORE_ADJ: i32 = -997;
const BEST_EFFORT_OOM_SCORE_ADJ: i32 = 1_000;

/// What is asked for, or allowed: thousandths of a CPU, and bytes. Zero is nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Amount {
    cpu_millis: u64,
    memory_bytes: u64,
}

impl Amount {
    fn requested(resources: &pod::Resources) -> Self {
        Self::of(&resources.requests)
    }

    fn limited(resources: &pod::Resources) -> Self {
        Self::of(&resources.limits)
    }

    fn of(list: &std::collections::BTreeMap<String, String>) -> Self {
        let whole = |name: &str, unit: &str| -> u64 {
            let read = |text: &str| text.parse::<Quantity>().ok();
            let unit = read(unit).unwrap_or_default();
            let amount = list.get(name).and_then(|text| read(text)).unwrap_or_default();
            // Of kubelets nothing larger comes either: their numbers are signed.
            u64::try_from(amount.div_ceil(unit).clamp(0, i64::MAX.into())).unwrap_or_default()
        };
        Self {
            cpu_millis: whole("cpu", "1m"),
            memory_bytes: whole("memory", "1"),
        }
    }

    fn with(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            cpu_millis: combine(self.cpu_millis, other.cpu_millis),
            memory_bytes: combine(self.memory_bytes, other.memory_bytes),
        }
    }

    /// Its own where it has some, the other's otherwise.
    fn or(self, other: Self) -> Self {
        self.with(other, |own, other| if own == 0 { other } else { own })
    }

    /// What a pod comes to: its containers at work together, or its init containers, one at a time beside the sidecars that
    /// were started before.
    fn of_containers(pod: &Pod, amount: impl Fn(&pod::Resources) -> Self) -> Self {
        let plus = |one: Self, other: Self| one.with(other, u64::saturating_add);
        let sum = |all: &[Container]| {
            let amounts = all.iter().map(|one| amount(&one.resources));
            amounts.fold(Self::default(), plus)
        };
        let (mut sidecars, mut starting) = (Self::default(), Self::default());
        for container in &pod.spec.init_containers {
            let own = amount(&container.resources);
            let now = plus(sidecars, own);
            if container.is_lasting() {
                sidecars = now;
            }
            starting = starting.with(now, max);
        }
        plus(sum(&pod.spec.containers), sidecars).with(starting, max)
    }
}

fn shares(millis: u64) -> u64 {
    (millis.saturating_mul(SHARES_PER_CPU) / 1_000).clamp(SHARES_MIN, SHARES_MAX)
}

fn quota(millis: u64) -> Option<u64> {
    (millis > 0).then(|| max(millis.saturating_mul(QUOTA_MICROS_PER_MILLI), QUOTA_MICROS_MIN))
}

fn bytes(amount: u64) -> Option<u64> {
    (amount > 0).then_some(amount)
}

/// What all containers of a pod may use together. Without a limit of the pod's own there is one where every container has one.
pub(crate) fn of_pod(pod: &Pod, pids_max: Option<u64>) -> Resources {
    let own = pod.spec.resources.clone().unwrap_or_default();
    let requests = requested_by_pod(pod);
    let limits = Amount::limited(&own).or({
        let every = |has: fn(Amount) -> u64| {
            let limits = pod.workload().map(|one| has(Amount::limited(&one.resources)));
            limits.into_iter().all(|limit| limit > 0)
        };
        let declared = Amount {
            cpu_millis: every(|limit| limit.cpu_millis).into(),
            memory_bytes: every(|limit| limit.memory_bytes).into(),
        };
        Amount::of_containers(pod, Amount::limited).with(declared, |sum, declared| sum * declared)
    });
    Resources {
        cpu_shares: Some(shares(requests.cpu_millis)),
        cpu_quota_micros: quota(limits.cpu_millis),
        memory_bytes: bytes(limits.memory_bytes),
        pids: pids_max,
    }
}

fn requested_by_pod(pod: &Pod) -> Amount {
    let own = pod.spec.resources.clone().unwrap_or_default();
    let of_containers = Amount::of_containers(pod, Amount::requested);
    // The API fills in what is missing in this order.
    Amount::requested(&own)
        .or(of_containers)
        .or(Amount::limited(&own))
}

/// What one container may use, within what its pod may.
pub(crate) fn of_container(pod: &Pod, container: &Container) -> Resources {
    let own = &container.resources;
    let of_pod = pod
        .spec
        .resources
        .as_ref()
        .map(Amount::limited)
        .unwrap_or_default();
    let limits = Amount::limited(own).or(of_pod);
    // A request of zero is one.
    let requested = match own.requests.contains_key("cpu") {
        true => Amount::requested(own),
        false => limits,
    };
    Resources {
        cpu_shares: Some(shares(requested.cpu_millis)),
        cpu_quota_micros: quota(limits.cpu_millis),
        memory_bytes: bytes(limits.memory_bytes),
        pids: None,
    }
}

/// How soon the kernel kills a container's processes when the machine has no memory left: best effort first, guaranteed last, and
/// between them whoever asked for less of the machine's `capacity` in bytes goes earlier.
pub(crate) fn oom_score_adj(pod: &Pod, container: &Container, capacity: u64) -> i32 {
    match pod.status["qosClass"].as_str() {
        Some("Guaranteed") => return GUARANTEED_OOM_SCORE_ADJ,
        Some("BestEffort") | None => return BEST_EFFORT_OOM_SCORE_ADJ,
        Some(_) => {}
    }
    // What the pod asks for beyond its containers is shared out among them.
    let requested = requested_by_pod(pod).memory_bytes;
    let of_containers = Amount::of_containers(pod, Amount::requested).memory_bytes;
    let is_pods_own = pod
        .spec
        .resources
        .as_ref()
        .is_some_and(|own| own.requests.contains_key("memory"));
    let beyond = if is_pods_own {
        requested.saturating_sub(of_containers) / (pod.workload().count().max(1) as u64)
    } else {
        0
    };
    let own = |one: &Container| {
        Amount::requested(&one.resources)
            .memory_bytes
            .saturating_add(beyond)
    };
    let score = |request: u64| -> i32 {
        let thousandths = u128::from(request) * 1_000 / u128::from(max(capacity, 1));
        1_000 - i32::try_from(min(thousandths, 1_000)).unwrap_or(1_000)
    };
    let mut adjusted = score(own(container));
    if container.is_lasting() && pod.is_init(&container.name) {
        // A sidecar goes no earlier than whom it serves.
        let least = pod.spec.containers.iter().map(own).min();
        adjusted = min(adjusted, score(least.unwrap_or_default()));
    }
    adjusted.clamp(1_000 + GUARANTEED_OOM_SCORE_ADJ, BEST_EFFORT_OOM_SCORE_ADJ - 1)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const GIB: u64 = 1 << 30;

    fn pod(spec: Value, class: &str) -> Pod {
        let document = json!({"metadata": {}, "spec": spec, "status": {"qosClass": class}});
        Pod::from_document(&document).expect("a pod")
    }

    /// Shares, quota and MiB, as `-` where there is none.
    fn shown(resources: Resources) -> String {
        let text = |number: Option<u64>| number.map_or("-".to_owned(), |number| number.to_string());
        let memory = resources.memory_bytes.map(|bytes| bytes >> 20);
        format!(
            "{} {} {}",
            text(resources.cpu_shares),
            text(resources.cpu_quota_micros),
            text(memory)
        )
    }

    #[test]
    fn a_container_has_what_a_kubelet_would_give_it() {
        let none = json!({});
        for (own, of_pod, expected) in [
            (json!({}), &none, "2 - -"),
            (
                json!({"requests": {"cpu": "250m", "memory": "64Mi"}}),
                &none,
                "256 - -",
            ),
            (
                json!({"limits": {"cpu": "500m", "memory": "32Mi"}}),
                &none,
                "512 50000 32",
            ),
            (
                json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "2"}}),
                &none,
                "102 200000 -",
            ),
            (
                json!({"requests": {"cpu": "0"}, "limits": {"cpu": "1"}}),
                &none,
                "2 100000 -",
            ),
            // The kernel takes no less than a millisecond, and no share of less than 2.
            (json!({"limits": {"cpu": "1m"}}), &none, "2 1000 -"),
            (json!({"requests": {"cpu": "0.0001"}}), &none, "2 - -"),
            (json!({"requests": {"cpu": "100k"}}), &none, "262144 - -"),
            (json!({"limits": {"memory": "100E"}}), &none, "2 - 8796093022207"),
            (json!({"limits": {"cpu": "0", "memory": "0"}}), &none, "2 - -"),
            (
                json!({}),
                &json!({"limits": {"cpu": "1", "memory": "1Gi"}}),
                "1024 100000 1024",
            ),
            (
                json!({"limits": {"cpu": "1"}}),
                &json!({"limits": {"cpu": "2", "memory": "1Gi"}}),
                "1024 100000 1024",
            ),
        ] {
            let mut spec = json!({"containers": [{"name": "c", "resources": own}]});
            if *of_pod != none {
                spec["resources"] = of_pod.clone();
            }
            let pod = pod(spec, "Burstable");
            assert_eq!(
                shown(of_container(&pod, &pod.spec.containers[0])),
                expected,
                "{own} {of_pod}"
            );
        }
    }

    #[test]
    fn a_pod_has_the_sum_and_limits_only_if_all_have_one() {
        let both = |cpu: &str, memory: &str| json!({"requests": {"cpu": cpu, "memory": memory}, "limits": {"cpu": cpu, "memory": memory}});
        let sidecar =
            |resources: Value| json!({"name": "s", "restartPolicy": "Always", "resources": resources});
        let one = |resources: Value| json!({"name": "c", "resources": resources});
        for (spec, expected) in [
            (json!({"containers": [{"name": "c"}]}), "2 - -"),
            (
                json!({"containers": [one(both("1", "64Mi")), one(both("500m", "32Mi"))]}),
                "1536 150000 96",
            ),
            (
                json!({"containers": [one(both("1", "64Mi")), {"name": "d"}]}),
                "1024 - -",
            ),
            (
                json!({"containers": [one(both("1", "64Mi")), one(json!({"limits": {"memory": "8Mi"}}))]}),
                "1024 - 72",
            ),
            // An init container runs alone, but for the sidecars before it.
            (
                json!({"initContainers": [one(both("3", "1Mi"))], "containers": [one(both("1", "64Mi"))]}),
                "3072 300000 64",
            ),
            (
                json!({"initContainers": [sidecar(both("1", "8Mi")), one(both("3", "1Mi"))], "containers": [one(both("1", "64Mi"))]}),
                "4096 400000 72",
            ),
            (
                json!({"initContainers": [one(both("3", "1Mi")), sidecar(both("1", "8Mi"))], "containers": [one(both("1", "64Mi"))]}),
                "3072 300000 72",
            ),
            (
                json!({"resources": {"limits": {"cpu": "2", "memory": "1Gi"}}, "containers": [{"name": "c"}]}),
                "2048 200000 1024",
            ),
            (
                json!({"resources": {"requests": {"cpu": "3"}, "limits": {"memory": "1Gi"}},
                    "containers": [one(both("1", "64Mi"))]}),
                "3072 100000 1024",
            ),
        ] {
            let resources = of_pod(&pod(spec.clone(), "Burstable"), Some(64));
            assert_eq!(
                (shown(resources), resources.pids),
                (expected.to_owned(), Some(64)),
                "{spec}"
            );
        }
    }

    #[test]
    fn who_goes_first_when_memory_runs_out_follows_the_class_and_the_request() {
        let asks = |memory: &str| json!({"requests": {"memory": memory}});
        let with_sidecar = |own: &str, main: &str| {
            json!({"initContainers": [{"name": "c", "restartPolicy": "Always", "resources": asks(own)}],
                "containers": [{"name": "m", "resources": asks(main)}, {"name": "n", "resources": asks("8Gi")}]})
        };
        for (class, spec, expected) in [
            ("Guaranteed", json!({"containers": [{"name": "c"}]}), -997),
            ("BestEffort", json!({"containers": [{"name": "c"}]}), 1_000),
            ("Burstable", json!({"containers": [{"name": "c"}]}), 999),
            (
                "Burstable",
                json!({"containers": [{"name": "c", "resources": asks("1Gi")}]}),
                900,
            ),
            (
                "Burstable",
                json!({"containers": [{"name": "c", "resources": asks("10Gi")}]}),
                3,
            ),
            (
                "Burstable",
                json!({"containers": [{"name": "c", "resources": asks("90Gi")}]}),
                3,
            ),
            ("Burstable", with_sidecar("1Gi", "2Gi"), 800),
            ("Burstable", with_sidecar("3Gi", "2Gi"), 700),
            (
                "Burstable",
                json!({"resources": asks("5Gi"), "containers": [{"name": "c", "resources": asks("1Gi")}, {"name": "d"}]}),
                700,
            ),
        ] {
            let pod = pod(spec.clone(), class);
            let container = pod.all_containers().next().expect("one").clone();
            assert_eq!(
                oom_score_adj(&pod, &container, 10 * GIB),
                expected,
                "{class} {spec}"
            );
        }
    }
}
