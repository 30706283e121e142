//! The body of a webhook: a text with places for what has changed.

use std::fmt::Write as _;
use std::str::FromStr;

use hotmap_projection::{Change, KeyChange};

/// A body with placeholders, as `--webhook-body` says it. What goes in is escaped for JSON strings; only
/// `$(keys)` and `$(changes)` are JSON values of their own.
///
/// | placeholder | what goes in |
/// |---|---|
/// | `$(revision)` | the revisions of the changed volumes, joined by commas |
/// | `$(volume)` | the changed volumes' paths, joined by commas |
/// | `$(keys)` | a JSON array of all keys that were added, modified or removed |
/// | `$(changes)` | a JSON array with an object for each changed volume: `volume`, `revision`, `added`, `modified`, `removed` |
/// | `$$(` | `$(` itself |
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BodyTemplate(Vec<Part>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Revision,
    Volume,
    Keys,
    Changes,
}

impl FromStr for BodyTemplate {
    type Err = String;

    fn from_str(template: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = template;
        while let Some(at) = rest.find("$(") {
            if rest[..at].ends_with('$') {
                parts.push(Part::Text(format!("{}$(", &rest[..at - 1])));
                rest = &rest[at + 2..];
                continue;
            }
            parts.push(Part::Text(rest[..at].to_owned()));
            let (name, after) = rest[at + 2..]
                .split_once(')')
                .ok_or("a placeholder $(… does not end; $$( stands for $( itself")?;
            parts.push(match name {
                "revision" => Part::Revision,
                "volume" => Part::Volume,
                "keys" => Part::Keys,
                "changes" => Part::Changes,
                _ => {
                    return Err(format!(
                        "there is no placeholder $({name}), but $(revision), $(volume), $(keys) and $(changes)"
                    ));
                }
            });
            rest = after;
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self(parts))
    }
}

impl BodyTemplate {
    pub(crate) fn render(&self, changes: &[Change]) -> String {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Revision => joined(
                    &mut out,
                    changes.iter().map(|change| change.revision.as_str().to_owned()),
                ),
                Part::Volume => joined(&mut out, changes.iter().map(volume)),
                Part::Keys => array(
                    &mut out,
                    changes.iter().flat_map(|change| change.keys.iter()),
                    KeyChange::key,
                ),
                Part::Changes => list_changes(&mut out, changes),
            }
        }
        out
    }

    /// What it is, as far as a look at it tells.
    pub(crate) fn content_type(&self) -> &'static str {
        match serde_json::from_str::<serde::de::IgnoredAny>(&self.render(&[])) {
            Ok(_) => "application/json",
            Err(_) => "text/plain; charset=utf-8",
        }
    }
}

fn volume(change: &Change) -> String {
    change.path.display().to_string()
}

fn joined(out: &mut String, texts: impl Iterator<Item = String>) {
    for (at, text) in texts.enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push_str(&escaped(&text));
    }
}

fn array<'a>(
    out: &mut String,
    keys: impl Iterator<Item = &'a KeyChange>,
    text: impl Fn(&'a KeyChange) -> &'a str,
) {
    out.push('[');
    for (at, key) in keys.enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let _ = write!(out, "{comma}\"{}\"", escaped(text(key)));
    }
    out.push(']');
}

fn list_changes(out: &mut String, changes: &[Change]) {
    out.push('[');
    for (at, change) in changes.iter().enumerate() {
        let comma = if at > 0 { "," } else { "" };
        let (path, revision) = (volume(change), change.revision.as_str());
        let _ = write!(
            out,
            "{comma}{{\"volume\":\"{}\",\"revision\":\"{}\"",
            escaped(&path),
            escaped(revision)
        );
        for (name, is_wanted) in [
            (
                "added",
                (|key| matches!(key, KeyChange::Added(_))) as fn(&KeyChange) -> bool,
            ),
            ("modified", |key| matches!(key, KeyChange::Modified(_))),
            ("removed", |key| matches!(key, KeyChange::Removed(_))),
        ] {
            let _ = write!(out, ",\"{name}\":");
            array(
                out,
                change.keys.iter().filter(|key| is_wanted(key)),
                KeyChange::key,
            );
        }
        out.push('}');
    }
    out.push(']');
}

/// As the inside of a JSON string.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::Arc;
    use std::time::Instant;

    use hotmap_projection::Revision;

    use super::*;

    fn change(path: &str, revision: &str, keys: &[KeyChange]) -> Change {
        Change {
            path: Arc::new(PathBuf::from(path)),
            revision: Revision::new(revision),
            keys: keys.into(),
            is_initial: false,
            seen: Instant::now(),
        }
    }

    fn two_changes() -> Vec<Change> {
        vec![
            change(
                "/etc/a",
                "..1",
                &[KeyChange::Added("x".into()), KeyChange::Modified("y\"z".into())],
            ),
            change("/etc/\"b", "..2", &[KeyChange::Removed("w".into())]),
        ]
    }

    #[test]
    fn placeholders_are_filled_and_escaped() {
        for (template, expected) in [
            ("", ""),
            ("reload", "reload"),
            ("$(revision) of $(volume)", r#"..1,..2 of /etc/a,/etc/\"b"#),
            ("$(keys)", r#"["x","y\"z","w"]"#),
            ("costs $5 $$(keys) $", "costs $5 $(keys) $"),
            (
                "$(changes)",
                r#"[{"volume":"/etc/a","revision":"..1","added":["x"],"modified":["y\"z"],"removed":[]},{"volume":"/etc/\"b","revision":"..2","added":[],"modified":[],"removed":["w"]}]"#,
            ),
        ] {
            let template: BodyTemplate = template.parse().unwrap();
            assert_eq!(template.render(&two_changes()), expected);
        }
    }

    #[test]
    fn a_body_that_is_json_stays_json_whatever_has_changed_and_is_sent_as_such() {
        for (template, content_type) in [
            (
                r#"{"at":"$(revision)","in":"$(volume)","keys":$(keys),"all":$(changes)}"#,
                "application/json",
            ),
            ("$(keys)", "application/json"),
            ("reload $(keys)", "text/plain; charset=utf-8"),
            ("", "text/plain; charset=utf-8"),
        ] {
            let template: BodyTemplate = template.parse().unwrap();
            assert_eq!(template.content_type(), content_type);
            let body = template.render(&two_changes());
            let is_json = serde_json::from_str::<serde_json::Value>(&body).is_ok();
            assert_eq!(is_json, content_type == "application/json", "{body}");
        }
    }

    #[test]
    fn what_is_no_template_is_refused() {
        for (template, why) in [
            ("$(nothing)", "no placeholder $(nothing)"),
            ("a $(revision", "does not end"),
        ] {
            let error = template.parse::<BodyTemplate>().unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
