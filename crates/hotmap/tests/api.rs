//! `hotmap up --no-node` under real, unmodified clients.

#[path = "support/harness.rs"]
mod harness;

/// Each test once with every release of kubectl, each against a server of its own.
macro_rules! each_kubectl {
    ($(fn $name:ident($kubectl:ident) $body:block)*) => {$(
        mod $name {
            #[allow(unused_imports, reason = "a test may use nothing beside its argument")]
            use super::*;

            fn check($kubectl: &$crate::harness::Kubectl) $body

            #[test]
            fn newest() {
                let kubectl = $crate::harness::Kubectl::with_server($crate::harness::Release::Newest);
                if let Some(kubectl) = kubectl { check(&kubectl) }
            }

            #[test]
            fn v1_32() {
                let kubectl = $crate::harness::Kubectl::with_server($crate::harness::Release::V1_32);
                if let Some(kubectl) = kubectl { check(&kubectl) }
            }
        }
    )*};
}

/// Fails unless `text` has every one of these in it.
#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

#[path = "api/articles.rs"]
mod articles;
#[path = "api/audit.rs"]
mod audit;
#[path = "api/certificates.rs"]
mod certificates;
#[path = "api/crash.rs"]
mod crash;
#[path = "api/create.rs"]
mod create;
#[path = "api/delete.rs"]
mod delete;
#[path = "api/discover.rs"]
mod discover;
#[path = "api/edit.rs"]
mod edit;
#[path = "api/examples.rs"]
mod examples;
#[path = "api/garbage.rs"]
mod garbage;
#[path = "api/history.rs"]
mod history;
#[path = "api/install.rs"]
mod install;
#[path = "api/join.rs"]
mod join;
#[path = "api/limits.rs"]
mod limits;
#[path = "api/manifests.rs"]
mod manifests;
#[path = "api/node_life.rs"]
mod node_life;
#[path = "api/python.rs"]
mod python;
#[path = "api/rbac.rs"]
mod rbac;
#[path = "api/read.rs"]
mod read;
#[path = "api/refuse.rs"]
mod refuse;
#[path = "api/start.rs"]
mod start;
#[path = "api/sync.rs"]
mod sync;
#[path = "api/temp.rs"]
mod temp;
#[path = "api/tokens.rs"]
mod tokens;
#[path = "api/watch.rs"]
mod watch;
#[path = "api/wire.rs"]
mod wire;
#[path = "api/workloads.rs"]
mod workloads;
