//! `/livez`, `/readyz` and `/healthz`.
//!
//! Texts follow `apiserver/pkg/server/healthz/healthz.go`, Kubernetes 1.36. A store that only reads fails readiness, not
//! liveness: a full disk heals without a restart.

use hotmap_store::Health;

use crate::request::Query;

/// One question about the server's health.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    Ping,
    Log,
    /// The store; the name is the one that tools ask for.
    Etcd,
    InformerSync,
    Shutdown,
}

impl Check {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Check::Ping => "ping",
            Check::Log => "log",
            Check::Etcd => "etcd",
            Check::InformerSync => "informer-sync",
            Check::Shutdown => "shutdown",
        }
    }
}

/// What is true now.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    pub(crate) store: Health,
    pub(crate) is_synced: bool,
    pub(crate) is_stopping: bool,
}

/// A plain-text answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Report {
    pub(crate) code: u16,
    pub(crate) text: String,
}

/// The endpoint and the check of a path such as `/readyz` or `/livez/ping`; `None` for other paths.
pub(crate) fn endpoint(path: &str) -> Option<(&'static str, Option<Check>)> {
    let mut parts = path.trim_matches('/').splitn(2, '/');
    let first = parts.next()?;
    let endpoint = ["livez", "readyz", "healthz"]
        .into_iter()
        .find(|name| *name == first)?;
    let check = match parts.next() {
        None => None,
        Some(name) => Some(*checks(endpoint).iter().find(|check| check.name() == name)?),
    };
    Some((endpoint, check))
}

/// The answer of `/<endpoint>` or of one of its checks.
pub(crate) fn report(endpoint: &str, only: Option<Check>, query: &Query, facts: &Facts) -> Report {
    match only {
        Some(check) => match failure(check, endpoint, facts) {
            None => Report {
                code: 200,
                text: "ok".to_owned(),
            },
            Some(reason) => Report {
                code: 500,
                text: format!("internal server error: {reason}\n"),
            },
        },
        None => all(endpoint, query, facts),
    }
}

fn all(endpoint: &str, query: &Query, facts: &Facts) -> Report {
    let mut excluded: Vec<&str> = query.all("exclude").collect();
    excluded.sort_unstable();
    excluded.dedup();
    let (mut lines, mut is_failed) = (String::new(), false);
    for check in checks(endpoint) {
        let name = check.name();
        if let Some(at) = excluded.iter().position(|excluded| *excluded == name) {
            excluded.remove(at);
            lines += &format!("[+]{name} excluded: ok\n");
        } else if let Some(reason) = failure(*check, endpoint, facts) {
            tracing::debug!(check = name, reason, "health check failed");
            lines += &format!("[-]{name} failed: reason withheld\n");
            is_failed = true;
        } else {
            lines += &format!("[+]{name} ok\n");
        }
    }
    if !excluded.is_empty() {
        let names: Vec<String> = excluded.iter().map(|name| format!("{name:?}")).collect();
        lines += &format!(
            "warn: some health checks cannot be excluded: no matches for {}\n",
            names.join(",")
        );
    }
    match (is_failed, query.get("verbose").is_some()) {
        (true, _) => Report {
            code: 500,
            text: format!("{lines}{endpoint} check failed\n"),
        },
        (false, true) => Report {
            code: 200,
            text: format!("{lines}{endpoint} check passed\n"),
        },
        (false, false) => Report {
            code: 200,
            text: "ok".to_owned(),
        },
    }
}

fn checks(endpoint: &str) -> &'static [Check] {
    match endpoint {
        "readyz" => &[
            Check::Ping,
            Check::Log,
            Check::Etcd,
            Check::InformerSync,
            Check::Shutdown,
        ],
        _ => &[Check::Ping, Check::Log, Check::Etcd],
    }
}

fn failure<'a>(check: Check, endpoint: &str, facts: &'a Facts) -> Option<&'a str> {
    match (check, &facts.store) {
        (Check::Etcd, Health::ReadOnly { reason }) if endpoint != "livez" => Some(reason),
        (Check::InformerSync, _) if !facts.is_synced => Some("caches are not synced yet"),
        (Check::Shutdown, _) if facts.is_stopping => Some("process is shutting down"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            store: Health::Ok,
            is_synced: true,
            is_stopping: false,
        }
    }

    #[test]
    fn texts_are_upstreams() {
        let broken = Facts {
            store: Health::ReadOnly {
                reason: "the disk is full".into(),
            },
            is_synced: false,
            is_stopping: false,
        };
        for (url, query, facts, code, text) in [
            ("/livez", "", facts(), 200, "ok"),
            (
                "/livez",
                "verbose",
                facts(),
                200,
                "[+]ping ok\n[+]log ok\n[+]etcd ok\nlivez check passed\n",
            ),
            ("/livez", "", broken.clone(), 200, "ok"),
            ("/livez/ping", "", broken.clone(), 200, "ok"),
            (
                "/readyz/etcd",
                "",
                broken.clone(),
                500,
                "internal server error: the disk is full\n",
            ),
            (
                "/readyz",
                "",
                broken.clone(),
                500,
                "[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\n[-]informer-sync failed: reason withheld\n[+]shutdown ok\nreadyz check failed\n",
            ),
            (
                "/healthz",
                "exclude=etcd&exclude=b&exclude=a&verbose=1",
                broken,
                200,
                "[+]ping ok\n[+]log ok\n[+]etcd excluded: ok\nwarn: some health checks cannot be excluded: no matches for \"a\",\"b\"\nhealthz check passed\n",
            ),
        ] {
            let (endpoint, check) = endpoint(url).expect(url);
            let report = report(endpoint, check, &Query::parse(query), &facts);
            assert_eq!((report.code, report.text.as_str()), (code, text), "{url}?{query}");
        }
    }

    #[test]
    fn unknown_checks_have_no_path() {
        for path in ["/livez/informer-sync", "/readyz/x", "/health", "/version"] {
            assert_eq!(endpoint(path), None, "{path}");
        }
    }
}
