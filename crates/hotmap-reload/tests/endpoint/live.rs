//! hotmap-live over the endpoint.

use std::time::{Duration, Instant};

use hotmap_live::{Live, LoadError, Missing};
use serde::Deserialize;

use super::served::{PATIENCE, Served, Volume};

#[derive(Debug, Deserialize)]
struct Config {
    level: String,
    limit: u32,
}

fn live(address: &str, volume: Option<&str>) -> Live<Config> {
    Live::builder()
        .missing(Missing::Wait(PATIENCE))
        .endpoint(address, volume)
        .agent_socket(None)
        .start()
        .expect("it is served")
}

/// Waits until the last change is live, or until it is known why it is not.
fn wait_for(live: &Live<Config>, is_right: impl Fn(Option<&LoadError>) -> bool) {
    let deadline = Instant::now() + PATIENCE;
    let mut changes = live.changes();
    while !is_right(live.error().as_deref()) {
        assert!(Instant::now() < deadline, "it is {:?}", live.error());
        // An error is no change: there is nothing to be woken by.
        let soon = Instant::now() + Duration::from_millis(20);
        changes.wait_until(soon).expect("it is followed");
    }
}

#[test]
fn a_live_configuration_follows_the_endpoint_and_acknowledges() {
    let directory = tempfile::tempdir().expect("a directory can be made");
    let mut volume = Volume::new(
        directory.path().join("app"),
        &[("app.json", "{\"level\": \"info\"}"), ("limit", "1\n")],
    );
    let socket = directory.path().join("hotmap.sock");
    let volume_dir = volume.path.to_str().expect("it is UTF-8").to_owned();
    let flags = ["--volume-dir", &volume_dir, "--serve-public", &volume_dir];
    let served = Served::start(&socket, &flags);
    let address = format!("unix:{}", socket.display());
    let local = live(&address, None);
    let over_tcp = live(&format!("127.0.0.1:{}", served.port), Some("app"));
    for live in [&local, &over_tcp] {
        let config = live.load();
        assert_eq!((config.level.as_str(), config.limit), ("info", 1));
    }
    let acknowledged = |volume: &Volume, ok: bool| {
        let revision = volume.revision();
        format!("\"ok\":{ok},\"revision\":\"{revision}\"")
    };
    served.wait_for("/v1/config?values=false", &[&acknowledged(&volume, true)]);

    let mut changes = [local.changes(), over_tcp.changes()];
    volume.swap(&[("app.json", "{\"level\": \"debug\"}"), ("limit", "2\n")]);
    for changes in &mut changes {
        let config = changes.wait().expect("it is followed");
        assert_eq!((config.level.as_str(), config.limit), ("debug", 2));
    }
    served.wait_for("/v1/config?values=false", &[&acknowledged(&volume, true)]);

    volume.swap(&[("app.json", "{\"level\": \"debug\"}"), ("limit", "many")]);
    for live in [&local, &over_tcp] {
        wait_for(live, |error| matches!(error, Some(LoadError::Type { .. })));
        assert_eq!(live.load().limit, 2);
    }
    served.wait_for("/v1/config?values=false", &["limit: wrong value"]);

    // It goes away, and another takes its place.
    volume.swap(&[("app.json", "{\"level\": \"info\"}"), ("limit", "3\n")]);
    wait_for(&local, |error| error.is_none());
    drop(served);
    wait_for(&local, |error| {
        matches!(error, Some(LoadError::Unreachable { .. }))
    });
    assert_eq!(local.load().limit, 3);
    let served = Served::start(&socket, &flags);
    wait_for(&local, |error| error.is_none());
    served.wait_for("/v1/config?values=false", &[&acknowledged(&volume, true)]);
}
