//! Who is told of a manifest that cannot be applied: whoever reads standard error, and whoever asks for events.

use hotmap_client::{Client, ResourcePath, WriteParams};
use hotmap_object::timestamp;
use jiff::Timestamp;
use serde_json::json;

use crate::output;

/// Manifests belong to no object; events about them are about the namespace that every instance has.
const NAMESPACE: &str = "default";
const COMPONENT: &str = "hotmap-up";
/// Bytes of an event's message.
const MESSAGE_BYTES_MAX: usize = 1_024;

/// What failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failed {
    Parse,
    Apply,
    Delete,
}

impl Failed {
    /// An event's `reason`; as k3s names what its deploy controller does.
    fn reason(self) -> &'static str {
        match self {
            Self::Parse => "ParseManifestFailed",
            Self::Apply => "ApplyManifestFailed",
            Self::Delete => "DeleteManifestFailed",
        }
    }
}

/// Says it on standard error and as a Warning event.
pub(super) async fn complain(client: &Client, failed: Failed, message: &str) {
    output::complain(message);
    let now = Timestamp::now();
    let event = json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"name": format!("manifests.{:x}", now.as_nanosecond()), "namespace": NAMESPACE},
        "involvedObject": {"apiVersion": "v1", "kind": "Namespace", "name": NAMESPACE},
        "type": "Warning", "reason": failed.reason(), "message": shortened(message), "count": 1,
        "firstTimestamp": timestamp::seconds(now), "lastTimestamp": timestamp::seconds(now),
        "source": {"component": COMPONENT}, "reportingComponent": COMPONENT, "reportingInstance": COMPONENT,
    });
    let events = ResourcePath::new("", "v1", "events").in_namespace(NAMESPACE);
    let created = client.create(&events, &event, &WriteParams::default()).await;
    if let Err(error) = created {
        tracing::warn!(%error, "event not sent");
    }
}

fn shortened(message: &str) -> &str {
    &message[..message.floor_char_boundary(MESSAGE_BYTES_MAX)]
}
