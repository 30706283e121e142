//! What is said on the socket. Strict: what is not understood is refused by name, so that a program hears of a slip.

use hotmap_volume::RevisionName;
use serde::Deserialize;
use serde_json::json;

use crate::report::Load;

/// Bytes of a volume's name.
const VOLUME_BYTES_MAX: usize = 63;

/// One line of a program.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) volume: Option<String>,
    pub(super) revision: String,
    pub(super) load: Load,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    loaded: Projection,
    ok: bool,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Projection {
    #[serde(default)]
    volume: Option<String>,
    revision: String,
}

impl Message {
    pub(super) fn parse(line: &[u8]) -> Result<Self, String> {
        let line: Line = serde_json::from_slice(line).map_err(|error| error.to_string())?;
        let Projection { volume, revision } = line.loaded;
        if volume
            .as_ref()
            .is_some_and(|volume| volume.len() > VOLUME_BYTES_MAX)
        {
            return Err(format!("a volume's name has at most {VOLUME_BYTES_MAX} bytes"));
        }
        // `readlink` gives no slash, a path made by hand may end in one.
        let revision = revision.trim_end_matches('/').to_owned();
        if RevisionName::parse(&revision).is_none() {
            return Err("loaded.revision is not the name that ..data points to".to_owned());
        }
        let load = match line.ok {
            true => Load::Done,
            false => Load::Failed(line.message),
        };
        Ok(Self {
            volume,
            revision,
            load,
        })
    }
}

/// The line that goes back.
pub(super) fn answer(outcome: &Result<(), String>) -> String {
    let answer = match outcome {
        Ok(()) => json!({"ok": true}),
        Err(error) => json!({"error": error}),
    };
    format!("{answer}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const REVISION: &str = "..2026_01_31_09_05_07.1234567890";

    #[test]
    fn lines_are_understood_or_refused() {
        let line =
            |more: &str| format!(r#"{{"loaded": {{"volume": "cfg", "revision": "{REVISION}"}}{more}}}"#);
        let message = |load| Message {
            volume: Some("cfg".to_owned()),
            revision: REVISION.to_owned(),
            load,
        };
        assert_eq!(
            Message::parse(line(r#", "ok": true"#).as_bytes()),
            Ok(message(Load::Done))
        );
        assert_eq!(
            Message::parse(line(r#", "ok": false, "message": "line 3""#).as_bytes()),
            Ok(message(Load::Failed("line 3".to_owned())))
        );
        let bare = format!(r#"{{"loaded": {{"revision": "{REVISION}/"}}, "ok": true}}"#);
        assert_eq!(
            Message::parse(bare.as_bytes()).map(|message| message.volume),
            Ok(None)
        );
        for (line, error) in [
            (line(""), "missing field `ok`"),
            (line(r#", "ok": true, "pod": "other""#), "unknown field `pod`"),
            ("x".to_owned(), "expected value"),
            (line(r#", "ok": true"#).replace("..2026", "2026"), "..data"),
            (
                line(r#", "ok": true"#).replace("cfg", &"x".repeat(64)),
                "63 bytes",
            ),
            (
                r#"{"loaded": {"revision": "../../etc"}, "ok": true}"#.to_owned(),
                "..data",
            ),
        ] {
            let told = Message::parse(line.as_bytes()).expect_err(&line);
            assert!(told.contains(error), "{told}");
        }
        assert_eq!(answer(&Ok(())), "{\"ok\":true}\n");
        assert_eq!(
            answer(&Err("no \"x\"".to_owned())),
            "{\"error\":\"no \\\"x\\\"\"}\n"
        );
    }
}
