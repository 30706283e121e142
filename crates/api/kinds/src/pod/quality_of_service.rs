//! The quality-of-service class: who is killed first when memory runs out.
//!
//! Rules follow `pkg/apis/core/helper/qos/qos.go` (`ComputePodQOS`), Kubernetes 1.36.

use std::collections::BTreeMap;

use hotmap_object::Quantity;
use serde_json::{Map, Value};

use crate::{fields::Fields, quantity};

const COMPUTE: [&str; 2] = ["cpu", "memory"];

/// `BestEffort` without any amount, `Guaranteed` if every container limits cpu and memory to what it requests,
/// `Burstable` otherwise.
pub(super) fn class(spec: &Map<String, Value>) -> &'static str {
    let holders: Vec<&Map<String, Value>> = match spec.member("resources").and_then(Value::as_object) {
        Some(resources) => vec![resources],
        None => ["containers", "initContainers"]
            .into_iter()
            .flat_map(|list| spec.list(list))
            .map(|container| container.map("resources"))
            .collect(),
    };
    let amounts: Vec<_> = holders
        .into_iter()
        .map(|resources| {
            (
                positive(resources.map("requests")),
                positive(resources.map("limits")),
            )
        })
        .collect();
    if amounts
        .iter()
        .all(|(requests, limits)| requests.is_empty() && limits.is_empty())
    {
        return "BestEffort";
    }
    // Requests never exceed limits, so equal sums mean equal parts.
    let is_guaranteed = amounts
        .iter()
        .all(|(requests, limits)| limits.len() == COMPUTE.len() && requests == limits);
    if is_guaranteed { "Guaranteed" } else { "Burstable" }
}

fn positive(amounts: &Map<String, Value>) -> BTreeMap<&str, Quantity> {
    COMPUTE
        .into_iter()
        .filter_map(|name| Some((name, quantity::parse(amounts.member(name)?)?)))
        .filter(|(_, amount)| *amount > Quantity::whole(0))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::map;

    #[test]
    fn the_class_follows_requests_and_limits() {
        let both = json!({"cpu": "1", "memory": "1Gi"});
        let table = [
            (json!({"containers": [{}]}), "BestEffort"),
            (
                json!({"containers": [{"resources": {"requests": {"cpu": "0"}}}]}),
                "BestEffort",
            ),
            (
                json!({"containers": [{"resources": {"requests": both, "limits": both}}]}),
                "Guaranteed",
            ),
            (
                json!({"containers": [{"resources": {"requests": {"cpu": "1000m", "memory": "1024Mi"}, "limits": both}}]}),
                "Guaranteed",
            ),
            (
                json!({"containers": [{"resources": {"requests": both, "limits": both}}, {}]}),
                "Burstable",
            ),
            (
                json!({"containers": [{"resources": {"requests": {"cpu": "1"}}}]}),
                "Burstable",
            ),
            (
                json!({"containers": [{"resources": {"requests": both, "limits": both}}],
                       "initContainers": [{"resources": {"limits": {"cpu": "1"}}}]}),
                "Burstable",
            ),
            (
                json!({"containers": [{}], "resources": {"requests": both, "limits": both}}),
                "Guaranteed",
            ),
        ];
        for (spec, wanted) in table {
            assert_eq!(class(&map(spec.clone())), wanted, "{spec}");
        }
    }
}
