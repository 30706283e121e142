//! Whether a node is alive, as far as its signs of life tell.

use std::time::{Duration, Instant};

/// A node that has not shown a sign of life for so long is taken for dead; `--node-monitor-grace-period` has this default.
pub(super) const GRACE: Duration = Duration::from_secs(50);
/// The same for a node that has never said how it is (`--node-startup-grace-period`).
pub(super) const STARTUP_GRACE: Duration = Duration::from_secs(60);

/// The signs of life of one node. Times are those of this process: a node's clock may be wrong, what was written before
/// this process began says nothing about now, and a clock that is set takes no node's life.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Health {
    /// A node re-created under its name is another one.
    uid: String,
    renewed: String,
    is_ready: bool,
    alive_at: Instant,
}

/// What a node shows of itself.
#[derive(Debug, Clone, Copy)]
pub(super) struct Signs<'a> {
    pub(super) uid: &'a str,
    /// The renewal time of its lease; empty without one.
    pub(super) renewed: &'a str,
    /// Its Ready condition says so; nothing if there is none.
    pub(super) is_ready: Option<bool>,
}

impl Health {
    pub(super) fn first(signs: Signs<'_>, now: Instant) -> Self {
        Self {
            uid: signs.uid.to_owned(),
            renewed: signs.renewed.to_owned(),
            is_ready: signs.is_ready.unwrap_or_default(),
            alive_at: now,
        }
    }

    /// Takes in what the node shows now.
    pub(super) fn observe(&mut self, signs: Signs<'_>, now: Instant) {
        let is_ready = signs.is_ready.unwrap_or_default();
        let is_renewed = !signs.renewed.is_empty() && signs.renewed != self.renewed;
        if signs.uid != self.uid || is_renewed || (is_ready && !self.is_ready) {
            *self = Self::first(signs, now);
        }
        self.is_ready = is_ready;
    }

    /// How long it may still be silent before it is taken for dead; zero from then on.
    pub(super) fn patience(&self, signs: Signs<'_>, now: Instant) -> Duration {
        let grace = match signs.is_ready {
            Some(_) => GRACE,
            None => STARTUP_GRACE,
        };
        grace.saturating_sub(now.saturating_duration_since(self.alive_at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Instant {
        static BEGUN: std::sync::LazyLock<Instant> = std::sync::LazyLock::new(Instant::now);
        *BEGUN + Duration::from_secs(seconds)
    }

    fn signs(renewed: &'static str, is_ready: Option<bool>) -> Signs<'static> {
        let uid = "u";
        Signs {
            uid,
            renewed,
            is_ready,
        }
    }

    #[test]
    fn a_node_is_alive_for_fifty_seconds_after_each_renewal() {
        let mut health = Health::first(signs("1", Some(true)), at(0));
        for (renewed, seconds, patience) in [
            ("1", 10, 40),
            ("2", 20, 50),
            ("2", 69, 1),
            ("2", 70, 0),
            ("2", 700, 0),
            ("3", 701, 50),
        ] {
            let signs = signs(renewed, Some(true));
            health.observe(signs, at(seconds));
            assert_eq!(
                health.patience(signs, at(seconds)).as_secs(),
                patience,
                "{renewed} at {seconds}"
            );
        }
    }

    #[test]
    fn an_old_lease_says_nothing_before_a_whole_period_has_passed() {
        let signs = signs("long ago", Some(true));
        let health = Health::first(signs, at(0));
        assert_eq!(health.patience(signs, at(0)), GRACE);
    }

    #[test]
    fn a_node_that_says_nothing_at_all_gets_a_little_longer() {
        let never = signs("", None);
        let mut health = Health::first(never, at(0));
        health.observe(never, at(59));
        assert_eq!(health.patience(never, at(59)).as_secs(), 1);
        assert_eq!(health.patience(never, at(60)).as_secs(), 0);
    }

    #[test]
    fn getting_ready_and_being_made_anew_are_signs_of_life() {
        let mut health = Health::first(signs("1", Some(false)), at(0));
        let ready = signs("1", Some(true));
        health.observe(ready, at(30));
        assert_eq!(health.patience(ready, at(30)), GRACE);
        health.observe(ready, at(60));
        assert_eq!(
            health.patience(ready, at(60)).as_secs(),
            20,
            "staying ready is none"
        );
        let another = Signs { uid: "v", ..ready };
        health.observe(another, at(70));
        assert_eq!(health.patience(another, at(70)), GRACE);
    }
}
