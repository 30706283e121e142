//! Files of the downward API that hold annotations: what hotmap itself writes into them is not a change.

/// An object's annotations have at most 256 KiB (upstream: `TotalAnnotationSizeLimitB`, Kubernetes 1.36), and quoting makes
/// a byte four at most (`\x07`). A larger file is not one of these, and is never held in memory as a whole.
pub(crate) const ANNOTATIONS_BYTES_MAX: u64 = 4 * 256 * 1024;

const OURS: &[u8] = b"hotmap.dev/";

/// The parts of a file that count as its content, in order: all of it, or, if it is a file of annotations (each line is
/// `key="value"`, as `fieldRef: metadata.annotations` writes them), the lines whose key does not begin with `hotmap.dev/`.
pub(crate) fn parts_that_count(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let lines = || bytes.split(|byte| *byte == b'\n');
    let is_filtered = lines().any(is_ours) && lines().all(|line| line.is_empty() || is_annotation(line));
    let whole = (!is_filtered).then_some(bytes);
    let rest = is_filtered.then(|| lines().filter(|line| !is_ours(line) && !line.is_empty()));
    whole.into_iter().chain(rest.into_iter().flatten())
}

fn is_ours(line: &[u8]) -> bool {
    line.starts_with(OURS)
}

/// `key="value"`: the key is a qualified name, the value is quoted as Go does it, so no line ends within.
fn is_annotation(line: &[u8]) -> bool {
    let Some(equals) = line.iter().position(|byte| *byte == b'=') else {
        return false;
    };
    let (key, value) = (&line[..equals], &line[equals + 1..]);
    let is_key = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._/".contains(byte);
    !key.is_empty()
        && key.iter().all(is_key)
        && value.len() >= 2
        && value.starts_with(b"\"")
        && value.ends_with(b"\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> String {
        parts_that_count(text.as_bytes())
            .map(|part| String::from_utf8_lossy(part))
            .collect::<Vec<_>>()
            .join("|")
    }

    #[test]
    fn lines_of_hotmap_in_files_of_annotations_do_not_count() {
        for (text, expected) in [
            ("", ""),
            ("level: info\n", "level: info\n"),
            ("a=\"1\"\nb=\"2\"", "a=\"1\"\nb=\"2\""),
            ("a=\"1\"\nhotmap.dev/refresh=\"7\"\nz=\"2\"", "a=\"1\"|z=\"2\""),
            ("hotmap.dev/refresh=\"7\"", ""),
            // Not a file of annotations: every byte counts.
            ("hotmap.dev/refresh: 7\n", "hotmap.dev/refresh: 7\n"),
            (
                "hotmap.dev/refresh=\"7\"\nlevel: info",
                "hotmap.dev/refresh=\"7\"\nlevel: info",
            ),
            ("# hotmap.dev/x=\"1\"", "# hotmap.dev/x=\"1\""),
        ] {
            assert_eq!(counts(text), expected, "{text:?}");
        }
    }
}
