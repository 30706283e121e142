//! `hotmap up` with its node, under unmodified clients: pods run as root on this machine and leave nothing behind.

#[path = "support/harness.rs"]
mod harness;
#[path = "node/host.rs"]
mod host;

/// Fails unless `text` has every one of these in it.
#[track_caller]
fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
}

#[path = "node/agents.rs"]
mod agents;
#[path = "node/article_001.rs"]
mod article_001;
#[path = "node/article_002.rs"]
mod article_002;
#[path = "node/article_004.rs"]
mod article_004;
#[path = "node/broken_config.rs"]
mod broken_config;
#[path = "node/change_detection.rs"]
mod change_detection;
#[path = "node/clients_in_pods.rs"]
mod clients_in_pods;
#[path = "node/crash.rs"]
mod crash;
#[path = "node/daemon_sets.rs"]
mod daemon_sets;
#[path = "node/debug.rs"]
mod debug;
#[path = "node/deployments.rs"]
mod deployments;
#[path = "node/down.rs"]
mod down;
#[path = "node/draining.rs"]
mod draining;
#[path = "node/endings.rs"]
mod endings;
#[path = "node/exec.rs"]
mod exec;
#[path = "node/faults.rs"]
mod faults;
#[path = "node/fields.rs"]
mod fields;
#[path = "node/full_disk.rs"]
mod full_disk;
#[path = "node/full_volume.rs"]
mod full_volume;
#[path = "node/hooks.rs"]
mod hooks;
#[path = "node/hostile.rs"]
mod hostile;
#[path = "node/images.rs"]
mod images;
#[path = "node/isolation.rs"]
mod isolation;
#[path = "node/jobs.rs"]
mod jobs;
#[path = "node/join.rs"]
mod join;
#[path = "node/lifecycle.rs"]
mod lifecycle;
#[path = "node/limits.rs"]
mod limits;
#[path = "node/live_subpath.rs"]
mod live_subpath;
#[path = "node/logs.rs"]
mod logs;
#[path = "node/network.rs"]
mod network;
#[path = "node/nginx.rs"]
mod nginx;
#[path = "node/observed.rs"]
mod observed;
#[path = "node/probes.rs"]
mod probes;
#[path = "node/real_shapes.rs"]
mod real_shapes;
#[path = "node/reload_examples.rs"]
mod reload_examples;
#[path = "node/reload_sidecar.rs"]
mod reload_sidecar;
#[path = "node/restart_env.rs"]
mod restart_env;
#[path = "node/rolling.rs"]
mod rolling;
#[path = "node/run.rs"]
mod run;
#[path = "node/security.rs"]
mod security;
#[path = "node/shared_pids.rs"]
mod shared_pids;
#[path = "node/sidecars.rs"]
mod sidecars;
#[path = "node/stateful_sets.rs"]
mod stateful_sets;
#[path = "node/status.rs"]
mod status;
#[path = "node/storage.rs"]
mod storage;
#[path = "node/streams.rs"]
mod streams;
#[path = "node/tokens_in_pods.rs"]
mod tokens_in_pods;
#[path = "node/traces.rs"]
mod traces;
#[path = "node/upgrade.rs"]
mod upgrade;
#[path = "node/volumes.rs"]
mod volumes;
