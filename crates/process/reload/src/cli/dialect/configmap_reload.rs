//! configmap-reload 0.14 (configmap-reload.go of jimmidyson/configmap-reload).

use super::{Call, DialectError, Flag};

/// The flags by which it is known. `volume-dir` and `webhook-url` are ours as well, but ours come after a command.
pub(super) const NAMES: &[&str] = &[
    "volume-dir",
    "volume-dir-archive",
    "webhook-url",
    "webhook-method",
    "webhook-status-code",
    "webhook-retries",
    "web.listen-address",
    "web.telemetry-path",
];

/// Where it listens if it is not told.
const LISTEN_ADDRESS: &str = ":9533";
/// Its pause between two calls.
const PAUSE: &str = "10s";

pub(super) fn translate(flags: Vec<Flag>) -> Result<Call, DialectError> {
    let mut call = Call {
        arguments: vec!["reload".into()],
        notes: Vec::new(),
    };
    let mut listen_address = LISTEN_ADDRESS.into();
    for flag in flags {
        match flag.name.as_str() {
            "volume-dir" => call.flag("--volume-dir", flag.value),
            "webhook-url" => call.flag("--webhook-url", flag.value),
            "webhook-method" => call.flag("--webhook-method", flag.value),
            "webhook-status-code" => call.flag("--webhook-status", flag.value),
            "webhook-retries" => retries(&mut call, &flag.text())?,
            "web.listen-address" => listen_address = flag.value,
            "web.telemetry-path" if flag.value == "/metrics" => {}
            "web.telemetry-path" => {
                return Err(DialectError::Unsupported {
                    flag: "web.telemetry-path",
                    message: "metrics are at /metrics; change the path that is scraped",
                });
            }
            "volume-dir-archive" => {
                return Err(DialectError::Unsupported {
                    flag: "volume-dir-archive",
                    message: "archives are not unpacked; --render TEMPLATE:OUT unpacks single files with gzip",
                });
            }
            _ => {
                return Err(DialectError::Unknown {
                    program: "configmap-reload",
                    flag: flag.name,
                });
            }
        }
    }
    call.flag("--metrics-address", listen_address);
    call.flag("--metric-names", "configmap-reload");
    Ok(call)
}

/// There it is the number of calls, and a negative one is no limit.
fn retries(call: &mut Call, text: &str) -> Result<(), DialectError> {
    match text.parse::<i64>() {
        Ok(calls @ 1..) => call.flag("--retries", (calls - 1).to_string()),
        Ok(..=-1) => {}
        Ok(0) | Err(_) => {
            let message = "the number of calls is expected, or -1 for no limit";
            return Err(DialectError::Value {
                flag: "webhook-retries",
                value: text.to_owned(),
                message,
            });
        }
    }
    call.flag("--retry-delay", PAUSE);
    call.flag("--retry-delay-max", PAUSE);
    Ok(())
}
