//! How many pods a rolling update may add and take away.

use crate::view::{Deployment, IntOrPercent, deployment::StrategyType, int_or_percent::Round};

/// What a rollout keeps to, in pods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    /// More than `replicas` by at most this.
    pub(crate) max_surge: i64,
    /// Fewer available than `replicas` by at most this.
    pub(crate) max_unavailable: i64,
}

impl Bounds {
    /// The bounds of a deployment; zero for both when it re-creates its pods.
    ///
    /// Source: `ResolveFenceposts`, `MaxSurge` and `MaxUnavailable` in `pkg/controller/deployment/util/deployment_util.go`,
    /// Kubernetes 1.36.
    pub(crate) fn of(deployment: &Deployment) -> Self {
        let replicas = i64::from(deployment.spec.replicas);
        let strategy = &deployment.spec.strategy;
        if strategy.kind == StrategyType::Recreate {
            return Self {
                max_surge: 0,
                max_unavailable: 0,
            };
        }
        let share = |share: Option<IntOrPercent>, round| share.map_or(0, |share| share.of(replicas, round));
        let max_surge = share(strategy.rolling_update.max_surge, Round::Up);
        let mut max_unavailable = share(strategy.rolling_update.max_unavailable, Round::Down);
        if max_surge == 0 && max_unavailable == 0 {
            // Both can round down to nothing, and then no rollout would ever take a step.
            max_unavailable = 1;
        }
        Self {
            max_surge,
            max_unavailable: max_unavailable.min(replicas),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn bounds(replicas: i32, surge: Value, unavailable: Value) -> (i64, i64) {
        let deployment = json!({"spec": {
            "replicas": replicas,
            "template": {},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}},
        }});
        let bounds = Bounds::of(&serde_json::from_value(deployment).expect("a deployment"));
        (bounds.max_surge, bounds.max_unavailable)
    }

    #[test]
    fn surge_rounds_up_and_unavailable_down() {
        for (replicas, surge, unavailable, expected) in [
            (10, json!("25%"), json!("25%"), (3, 2)),
            (1, json!("25%"), json!("25%"), (1, 0)),
            (4, json!("25%"), json!("25%"), (1, 1)),
            (3, json!(1), json!(0), (1, 0)),
            (3, json!(0), json!(1), (0, 1)),
            (5, json!("100%"), json!("100%"), (5, 5)),
            (5, json!("0%"), json!("50%"), (0, 2)),
        ] {
            assert_eq!(
                bounds(replicas, surge.clone(), unavailable.clone()),
                expected,
                "{replicas} {surge} {unavailable}"
            );
        }
    }

    #[test]
    fn bounds_that_both_round_to_zero_let_one_pod_go() {
        for (replicas, surge, unavailable) in [
            (2, json!("0%"), json!("1%")),
            (1, json!(0), json!("1%")),
            (99, json!(0), json!("1%")),
            (3, json!(null), json!(null)),
        ] {
            assert_eq!(bounds(replicas, surge, unavailable), (0, 1), "{replicas}");
        }
    }

    #[test]
    fn no_more_can_be_unavailable_than_there_are() {
        assert_eq!(bounds(3, json!(0), json!(10)), (0, 3));
        assert_eq!(bounds(0, json!(0), json!(1)), (0, 0));
        assert_eq!(bounds(0, json!("25%"), json!("25%")), (0, 0));
    }

    #[test]
    fn recreating_needs_no_bounds() {
        let deployment = json!({"spec": {"replicas": 3, "template": {}, "strategy": {"type": "Recreate"}}});
        let deployment = serde_json::from_value(deployment).expect("a deployment");
        let none = Bounds {
            max_surge: 0,
            max_unavailable: 0,
        };
        assert_eq!(Bounds::of(&deployment), none);
    }
}
