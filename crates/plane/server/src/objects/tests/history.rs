//! Random writes: every revision reads back as it was, in one piece or in pages, and every watch tells the same story.

use std::collections::BTreeMap;

use proptest::{collection::vec, prelude::*};
use serde_json::Value;

use super::{Server, config_map, revision};

#[derive(Debug, Clone)]
struct Step {
    name: u8,
    /// `None` deletes.
    value: Option<u8>,
}

type State = BTreeMap<String, String>;

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0..6u8, prop::option::weighted(0.7, 0..4u8)).prop_map(|(name, value)| Step { name, value });
    vec(step, 1..25)
}

/// Applies the steps; answers with the state at each revision.
async fn apply(server: &Server, steps: &[Step]) -> Vec<(u64, State)> {
    let mut state = State::new();
    let mut states = vec![(server.objects.cache.revision().0, state.clone())];
    for Step { name, value } in steps {
        let name = format!("m{name}");
        match value {
            Some(value) if state.contains_key(&name) => {
                server
                    .ok(
                        &format!("update default/configmaps/{name}"),
                        config_map(&name, &value.to_string()),
                    )
                    .await;
                state.insert(name, value.to_string());
            }
            Some(value) => {
                server.config_map(&name, &value.to_string()).await;
                state.insert(name, value.to_string());
            }
            None if state.contains_key(&name) => {
                server
                    .ok(&format!("delete default/configmaps/{name}"), Value::Null)
                    .await;
                state.remove(&name);
            }
            None => continue,
        }
        let now = server.objects.cache.revision().0;
        if states.last().is_some_and(|(last, _)| *last != now) {
            states.push((now, state.clone()));
        }
    }
    states
}

fn collect(list: &Value, into: &mut State) {
    for item in list["items"].as_array().expect("items") {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        into.insert(text(&item["metadata"]["name"]), text(&item["data"]["k"]));
    }
}

async fn check(steps: Vec<Step>, page: usize) {
    let server = Server::start().await;
    let states = apply(&server, &steps).await;
    for (at, wanted) in &states {
        let exact = format!("resourceVersion={at}&resourceVersionMatch=Exact");
        let mut listed = State::new();
        let whole = server
            .ok(&format!("list default/configmaps?{exact}"), Value::Null)
            .await;
        assert_eq!(revision(&whole), *at);
        collect(&whole, &mut listed);
        assert_eq!(&listed, wanted, "at {at}");
        let mut paged = State::new();
        let mut query = format!("limit={page}&{exact}");
        loop {
            let listed = server
                .ok(&format!("list default/configmaps?{query}"), Value::Null)
                .await;
            collect(&listed, &mut paged);
            let Some(token) = listed["metadata"]["continue"].as_str() else {
                break;
            };
            query = format!("limit={page}&continue={token}");
        }
        assert_eq!(&paged, wanted, "in pages at {at}");
    }
    let (_, end) = states.last().expect("a first state");
    for (at, (since, begun)) in states.iter().enumerate() {
        let mut state = begun.clone();
        let mut frames = server.watch(&format!("resourceVersion={since}")).await;
        for _ in at + 1..states.len() {
            let event = frames.next().await.expect("an event");
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let (name, value) = (
                text(&event["object"]["metadata"]["name"]),
                text(&event["object"]["data"]["k"]),
            );
            match event["type"].as_str() {
                Some("DELETED") => assert_eq!(state.remove(&name), Some(value)),
                Some("ADDED") => assert_eq!(state.insert(name, value), None),
                _ => assert!(state.insert(name, value).is_some()),
            }
        }
        assert_eq!(&state, end, "watched since {since}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_revision_reads_back_and_every_watch_leads_to_the_end(steps in steps(), page in 1..4usize) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(check(steps, page));
    }
}
