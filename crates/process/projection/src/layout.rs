//! Names that mean something in watched directories.

/// The link that a kubelet, and everything that writes as it does, replaces by one rename.
pub(crate) const DATA_LINK: &str = "..data";

/// Whether a name in a directory of plain files is content. Names that begin with `..` belong to the writers of projected
/// volumes; the rest are what editors leave beside a file while it is open or after it was saved: swap files of vim
/// (`.NAME.swp`), backups (`NAME~`), autosaves of Emacs (`#NAME#`).
pub(crate) fn is_content_name(name: &[u8]) -> bool {
    let is_swap_file = name.starts_with(b".")
        && name
            .rsplit(|byte| *byte == b'.')
            .next()
            .is_some_and(|end| matches!(end, [b's', b'w', b'a'..=b'p' | b'x']));
    let is_autosave = name.starts_with(b"#") && name.ends_with(b"#");
    !(name.starts_with(b"..") || name.ends_with(b"~") || is_swap_file || is_autosave)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_writers_and_editors_leave_is_no_content() {
        for (name, is_content) in [
            ("app.yaml", true),
            (".dockerconfigjson", true),
            (".swp", false),
            ("a.swp", true),
            (".app.yaml.swp", false),
            (".app.yaml.swx", false),
            ("app.yaml~", false),
            ("#app.yaml#", false),
            ("..data", false),
            ("..2026_01_31_09_05_07.1", false),
            ("a..b", true),
        ] {
            assert_eq!(is_content_name(name.as_bytes()), is_content, "{name:?}");
        }
    }
}
