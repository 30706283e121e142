//! How a node learns that a ConfigMap or Secret has changed, and how often it looks although nothing was heard.

use std::{str::FromStr, time::Duration};

/// How changes are found: the kubelet's `configMapAndSecretChangeDetectionStrategy` (`pkg/kubelet/util/manager`,
/// Kubernetes 1.36).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ChangeDetection {
    /// The API tells of each change, and it is delivered at once.
    #[default]
    Watch,
    /// Objects are read again at each look at a pod, once what is held is older than the node's annotation
    /// `node.alpha.kubernetes.io/ttl` says (whole seconds), or than 60 s without it.
    Cache,
    /// Objects are read again at each look at a pod.
    Get,
}

/// No way to find changes has this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown change detection {0:?}: there are watch, cache and get")]
pub struct UnknownChangeDetection(String);

impl FromStr for ChangeDetection {
    type Err = UnknownChangeDetection;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        match name {
            "watch" => Ok(Self::Watch),
            "cache" => Ok(Self::Cache),
            "get" => Ok(Self::Get),
            other => Err(UnknownChangeDetection(other.to_owned())),
        }
    }
}

/// How long after one look at a pod the next one comes: `frequency` times 1.0 to 1.5, so that pods spread
/// (`pkg/kubelet/pod_workers.go`, Kubernetes 1.36). `fraction` is drawn from [0, 1).
pub(crate) fn sync_period(frequency: Duration, fraction: f64) -> Duration {
    frequency.mul_f64(1.0 + fraction.clamp(0.0, 1.0) / 2.0)
}

/// A fraction of the system's randomness; the middle one if it has none to give, which only costs the spread.
pub(crate) fn random_fraction() -> f64 {
    getrandom::u32().map_or(0.5, |random| f64::from(random) / (f64::from(u32::MAX) + 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_ways_have_names_and_no_other_is_taken() {
        for (name, way) in [
            ("watch", Ok(ChangeDetection::Watch)),
            ("cache", Ok(ChangeDetection::Cache)),
            ("get", Ok(ChangeDetection::Get)),
            (
                "Watch",
                Err("unknown change detection \"Watch\": there are watch, cache and get"),
            ),
        ] {
            let parsed = name.parse::<ChangeDetection>().map_err(|error| error.to_string());
            assert_eq!(parsed, way.map_err(str::to_owned), "{name}");
        }
    }

    #[test]
    fn looks_at_pods_spread_over_half_a_period() {
        for (fraction, millis) in [(0.0, 60_000), (0.5, 75_000), (1.0, 90_000), (7.0, 90_000)] {
            let period = sync_period(Duration::from_secs(60), fraction);
            assert_eq!(period, Duration::from_millis(millis), "{fraction}");
        }
        for _ in 0..100 {
            assert!((0.0..1.0).contains(&random_fraction()));
        }
    }
}
