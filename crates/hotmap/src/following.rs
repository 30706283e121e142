//! Flags of who runs a node: how it finds changes of ConfigMaps and Secrets.

use std::time::Duration;

use clap::Args;
use hotmap_agent::ChangeDetection;
use jiff::SignedDuration;

/// Below a second the net is a storm, above a day it is none.
const SYNC_FREQUENCY_MIN: Duration = Duration::from_secs(1);
const SYNC_FREQUENCY_MAX: Duration = Duration::from_secs(24 * 60 * 60);

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct FollowingArgs {
    /// How changes of ConfigMaps and Secrets are found: the API tells of each (watch), or pods are looked at now and then,
    /// with what was read a while ago (cache) or with a read each time (get).
    #[arg(
        long,
        env = "HOTMAP_CHANGE_DETECTION",
        value_name = "watch|cache|get",
        value_parser = str::parse::<ChangeDetection>,
        default_value = "watch"
    )]
    pub(crate) change_detection: ChangeDetection,
    /// How often pods, their files and objects are looked at although nothing was heard, from 1s to 24h.
    #[arg(
        long,
        env = "HOTMAP_SYNC_FREQUENCY",
        value_name = "DURATION",
        value_parser = sync_frequency,
        default_value = "1m"
    )]
    pub(crate) sync_frequency: Duration,
    /// Follow each object by itself, as beside a stock API server; for tests.
    #[arg(long, hide = true, env = "HOTMAP_FAULT_AVOID_NODE_SELECTOR")]
    pub(crate) fault_avoid_node_selector: bool,
    /// Keep what watches of ConfigMaps and Secrets bring from the node; for tests.
    #[arg(long, hide = true, env = "HOTMAP_FAULT_HOLD_WATCHES")]
    pub(crate) fault_hold_watches: bool,
}

fn sync_frequency(given: &str) -> Result<Duration, String> {
    let parsed: SignedDuration = given
        .parse()
        .map_err(|_| "not a duration such as 90s or 1m".to_owned())?;
    let allowed = SYNC_FREQUENCY_MIN..=SYNC_FREQUENCY_MAX;
    Duration::try_from(parsed)
        .ok()
        .filter(|frequency| allowed.contains(frequency))
        .ok_or_else(|| "not between 1s and 24h".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequencies_have_bounds() {
        for (given, seconds) in [
            ("1m", Some(60)),
            ("1m30s", Some(90)),
            ("1s", Some(1)),
            ("24h", Some(86_400)),
            ("0s", None),
            ("-5s", None),
            ("25h", None),
            ("60", None),
            ("", None),
        ] {
            let parsed = sync_frequency(given).ok();
            assert_eq!(parsed, seconds.map(Duration::from_secs), "{given}");
        }
    }
}
