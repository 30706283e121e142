//! The dashboard and the alerts ask for what is there.

use std::{collections::BTreeSet, fs, path::PathBuf, process::Command};

use crate::{
    harness::{finish, tool},
    host::Node,
};

/// Suffixes of the series that one metric has.
const SERIES: [&str; 4] = ["_total", "_bucket", "_count", "_sum"];

fn deploy(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../deploy")
        .join(file)
}

/// Names of metrics in a text, without the suffix of a series.
fn metrics(text: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    let words = text.split(|c| !is_part(c));
    let ours = words.filter(|word| {
        ["hotmap_", "apiserver_", "process_"]
            .iter()
            .any(|prefix| word.starts_with(prefix))
    });
    ours.map(|word| {
        let metric = SERIES.iter().find_map(|suffix| word.strip_suffix(suffix));
        metric.unwrap_or(word).to_owned()
    })
    .collect()
}

#[test]
fn every_metric_of_the_dashboard_and_the_alerts_is_shown() {
    let Some(node) = Node::start() else { return };
    let shown = metrics(&node.ok("get --raw /metrics"));
    for file in ["prometheus/hotmap.rules.yaml", "grafana/hotmap.json"] {
        let wanted = metrics(&fs::read_to_string(deploy(file)).expect("it is in the repository"));
        assert!(wanted.len() > 3, "{file}: {wanted:?}");
        let missing: Vec<_> = wanted.difference(&shown).collect();
        assert_eq!(missing, Vec::<&String>::new(), "{file}");
    }
}

#[test]
fn the_alerts_say_what_their_own_tests_expect() {
    let Some(promtool) = tool("promtool") else { return };
    let directory = deploy("prometheus");
    for arguments in [
        ["check", "rules", "hotmap.rules.yaml"],
        ["test", "rules", "hotmap.rules.test.yaml"],
    ] {
        finish(
            Command::new(&promtool).args(arguments).current_dir(&directory),
            None,
        )
        .ok();
    }
}
