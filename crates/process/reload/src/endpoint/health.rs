//! `/healthz`.

use hyper::StatusCode;

use super::answer::{Answer, whole};
use crate::progress::{Phase, Progress};

/// What does not make it bad.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct HealthRule {
    /// The last reload failed, or was held back.
    pub(crate) ignores_reload: bool,
    /// Changes may be missed.
    pub(crate) ignores_deaf: bool,
}

/// 200 and `ok`, or 503 and what is wrong.
pub(crate) fn answer(rule: HealthRule, progress: &Progress) -> Answer {
    let wrong = wrong(rule, progress);
    let mut answer = whole(
        "text/plain; charset=utf-8",
        format!("{}\n", wrong.as_deref().unwrap_or("ok")),
    );
    if wrong.is_some() {
        *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    }
    answer
}

fn wrong(rule: HealthRule, progress: &Progress) -> Option<String> {
    if let Some(why) = &progress.deaf
        && !rule.ignores_deaf
    {
        return Some(format!("changes may be missed: {why}"));
    }
    match &progress.phase {
        _ if rule.ignores_reload => None,
        Phase::HeldBack(why) => Some(format!("the last change was held back: {why}")),
        Phase::Failed(why) => Some(format!("the last change is not loaded: {why}")),
        Phase::Starting | Phase::Loading | Phase::Loaded => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_makes_it_bad_is_said_unless_it_is_ignored() {
        let strict = HealthRule::default();
        let lenient = HealthRule {
            ignores_reload: true,
            ignores_deaf: true,
        };
        let held = || Phase::HeldBack("exit code 1".to_owned());
        let failed = || Phase::Failed("no process".to_owned());
        for (rule, phase, deaf, expected) in [
            (strict, Phase::Starting, None, None),
            (strict, Phase::Loading, None, None),
            (strict, Phase::Loaded, None, None),
            (
                strict,
                held(),
                None,
                Some("the last change was held back: exit code 1"),
            ),
            (
                strict,
                failed(),
                None,
                Some("the last change is not loaded: no process"),
            ),
            (
                strict,
                Phase::Loaded,
                Some("no watches left"),
                Some("changes may be missed: no watches left"),
            ),
            (
                strict,
                failed(),
                Some("no watches left"),
                Some("changes may be missed: no watches left"),
            ),
            (
                HealthRule {
                    ignores_deaf: true,
                    ..strict
                },
                failed(),
                Some("x"),
                Some("the last change is not loaded: no process"),
            ),
            (
                HealthRule {
                    ignores_reload: true,
                    ..strict
                },
                failed(),
                None,
                None,
            ),
            (lenient, held(), Some("x"), None),
        ] {
            let progress = Progress {
                volumes: Vec::new(),
                phase,
                deaf: deaf.map(str::to_owned),
            };
            assert_eq!(wrong(rule, &progress).as_deref(), expected, "{progress:?}");
            let status = answer(rule, &progress).status();
            assert_eq!(status == StatusCode::OK, expected.is_none());
        }
    }
}
