//! A node that loses the API, and gets it back.

use serde_json::Value;

use crate::{
    harness::{finish, hotmap},
    host::Turn,
};

#[test]
fn a_change_that_was_made_while_the_api_was_away_arrives_once_it_is_back() {
    if !crate::host::can_run_pods() {
        return;
    }
    let _turn = Turn::take();
    // It fails unless every change arrives by its watch: after an API that refuses, and after a way that swallows.
    let mut bench = hotmap();
    bench.args(["bench", "faults", "--away", "1s", "--rounds", "1", "-o", "json"]);
    let report: Value = serde_json::from_str(&finish(&mut bench, None).ok()).expect("a report");
    assert_eq!(report["rows"].as_array().map(Vec::len), Some(4));
}
