//! What differs between two payloads, by path.

use std::sync::Arc;

use hotmap_projection::KeyChange;
use hotmap_volume::Payload;

/// From what was there to what is there now; another mode alone is a change, too.
pub(crate) fn changed_keys(before: Option<&Payload>, now: &Payload) -> Vec<KeyChange> {
    let key = |path: &str| Arc::<str>::from(path);
    let mut keys = Vec::new();
    for (path, file) in now.iter() {
        match before.and_then(|before| before.get(path.as_str())) {
            None => keys.push(KeyChange::Added(key(path.as_str()))),
            Some(former) if former != file => keys.push(KeyChange::Modified(key(path.as_str()))),
            Some(_) => {}
        }
    }
    let gone = before
        .into_iter()
        .flat_map(Payload::iter)
        .filter(|(path, _)| now.get(path.as_str()).is_none())
        .map(|(path, _)| KeyChange::Removed(key(path.as_str())));
    keys.extend(gone);
    keys
}

#[cfg(test)]
mod tests {
    use hotmap_volume::{FileMode, PayloadFile};

    use super::*;

    #[test]
    fn keys_come_change_and_go() {
        let payload = |files: &[(&str, &str, u32)]| {
            let mut payload = Payload::new();
            for (path, content, mode) in files {
                let mode = FileMode::new(*mode).expect("a mode");
                let file = PayloadFile::new(content.as_bytes().to_vec(), mode);
                payload
                    .insert(path.parse().expect("a path"), file)
                    .expect("no conflict");
            }
            payload
        };
        let before = payload(&[
            ("same", "1", 0o644),
            ("mode", "1", 0o644),
            ("text", "1", 0o644),
            ("gone", "1", 0o644),
        ]);
        let now = payload(&[
            ("same", "1", 0o644),
            ("mode", "1", 0o600),
            ("text", "2", 0o644),
            ("new", "1", 0o644),
        ]);
        let changed = |before, now| {
            changed_keys(before, now)
                .iter()
                .map(|change| match change {
                    KeyChange::Added(key) => format!("+{key}"),
                    KeyChange::Modified(key) => format!("~{key}"),
                    KeyChange::Removed(key) => format!("-{key}"),
                })
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(changed(Some(&before), &now), "~mode +new ~text -gone");
        assert_eq!(changed(None, &before), "+gone +mode +same +text");
        assert_eq!(changed(Some(&now), &now), "");
    }
}
