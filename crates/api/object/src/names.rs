//! The alphabets of names, labels and annotations, with upstream's sentences for what breaks them.
//!
//! Rules follow `apimachinery/pkg/util/validation/validation.go`, Kubernetes 1.36. Each check returns the broken
//! rules in words; none means valid. Lengths are in bytes.

const SUBDOMAIN_MAX: usize = 253;
const LABEL_MAX: usize = 63;

const SUBDOMAIN_RULE: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_RULE: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED_NAME_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE_RULE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const DNS_1035_RULE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const CONFIG_KEY_RULE: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";

/// What breaks `name` as a DNS-1123 subdomain: the rule for most object names.
pub fn dns_1123_subdomain(name: &str) -> Vec<String> {
    subdomain(name, too_many_characters(name, SUBDOMAIN_MAX))
}

fn subdomain(name: &str, mut broken: Vec<String>) -> Vec<String> {
    if !name.split('.').all(is_dns_label) {
        broken.push(SUBDOMAIN_RULE.to_owned());
    }
    broken
}

/// What breaks `name` as a DNS-1123 label: namespaces, containers, volumes.
pub fn dns_1123_label(name: &str) -> Vec<String> {
    let mut broken = too_many_characters(name, LABEL_MAX);
    if !is_dns_label(name) {
        // A name that is only too dotted gets a sentence of its own.
        let is_dotted = name.contains('.') && dns_1123_subdomain(name).is_empty();
        broken.push(if is_dotted {
            "must not contain dots".to_owned()
        } else {
            LABEL_RULE.to_owned()
        });
    }
    broken
}

/// What breaks `name` as a DNS-1035 label: services.
pub fn dns_1035_label(name: &str) -> Vec<String> {
    let mut broken = too_many_characters(name, LABEL_MAX);
    if !is_dns_label(name) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        broken.push(DNS_1035_RULE.to_owned());
    }
    broken
}

/// What breaks `name` as one segment of a URL path, whatever the kind.
pub fn path_segment(name: &str) -> Vec<String> {
    if name == "." || name == ".." {
        return vec![format!("may not be '{name}'")];
    }
    let held = ['/', '%']
        .into_iter()
        .filter(|forbidden| name.contains(*forbidden));
    held.map(|forbidden| format!("may not contain '{forbidden}'"))
        .collect()
}

/// What breaks `key` as a label or annotation key: an optional DNS prefix, a slash, a name.
pub fn qualified_name(key: &str) -> Vec<String> {
    let (prefix, name) = match key.split_once('/') {
        None => (None, key),
        Some((_, rest)) if rest.contains('/') => {
            return vec![format!(
                "a qualified name {QUALIFIED_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
        Some((prefix, name)) => (Some(prefix), name),
    };
    let mut broken = Vec::new();
    match prefix {
        None => {}
        Some("") => broken.push("prefix part must be non-empty".to_owned()),
        Some(prefix) => {
            broken.extend(
                subdomain(prefix, too_long(prefix, SUBDOMAIN_MAX))
                    .into_iter()
                    .map(|rule| format!("prefix part {rule}")),
            );
        }
    }
    if name.is_empty() {
        broken.push("name part must be non-empty".to_owned());
    } else {
        broken.extend(
            too_long(name, LABEL_MAX)
                .into_iter()
                .map(|rule| format!("name part {rule}")),
        );
    }
    if !is_qualified(name) {
        broken.push(format!("name part {QUALIFIED_NAME_RULE}"));
    }
    broken
}

/// What breaks `value` as the value of a label; empty is valid.
pub fn label_value(value: &str) -> Vec<String> {
    let mut broken = too_long(value, LABEL_MAX);
    if !value.is_empty() && !is_qualified(value) {
        broken.push(LABEL_VALUE_RULE.to_owned());
    }
    broken
}

/// What breaks `key` as a key of a ConfigMap or Secret: it becomes a file name.
pub fn config_key(key: &str) -> Vec<String> {
    let mut broken = Vec::new();
    if key.len() > SUBDOMAIN_MAX {
        broken.push(format!("must be no more than {SUBDOMAIN_MAX} characters"));
    }
    if key.is_empty()
        || !key
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_'))
    {
        broken.push(CONFIG_KEY_RULE.to_owned());
    }
    match key {
        "." => broken.push("must not be '.'".to_owned()),
        ".." => broken.push("must not be '..'".to_owned()),
        key if key.starts_with("..") => broken.push("must not start with '..'".to_owned()),
        _ => {}
    }
    broken
}

fn too_long(text: &str, max: usize) -> Vec<String> {
    if text.len() > max {
        vec![format!("must be no more than {max} bytes")]
    } else {
        Vec::new()
    }
}

/// Upstream tells the limit of a DNS name in characters and that of a label or its prefix in bytes; both count bytes.
fn too_many_characters(name: &str, max: usize) -> Vec<String> {
    if name.len() > max {
        vec![format!("must be no more than {max} characters")]
    } else {
        Vec::new()
    }
}

fn is_dns_label(label: &str) -> bool {
    let edge = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    has_alphabet(label, edge, |b| edge(b) || b == b'-')
}

fn is_qualified(name: &str) -> bool {
    has_alphabet(
        name,
        |b| b.is_ascii_alphanumeric(),
        |b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'),
    )
}

fn has_alphabet(text: &str, edge: impl Fn(u8) -> bool, middle: impl Fn(u8) -> bool) -> bool {
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else {
        return false;
    };
    edge(*first) && edge(*last) && bytes.iter().all(|b| middle(*b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alphabets_hold() {
        type Check = fn(&str) -> Vec<String>;
        let long = "a".repeat(254);
        let table: [(Check, &str, usize); 22] = [
            (dns_1123_subdomain, "a.b-c.9", 0),
            (dns_1123_subdomain, "A", 1),
            (dns_1123_subdomain, "", 1),
            (dns_1123_subdomain, "a..b", 1),
            (dns_1123_subdomain, &long, 1),
            (dns_1123_label, "a-b", 0),
            (dns_1123_label, "a.b", 1),
            (dns_1035_label, "a9", 0),
            (dns_1035_label, "9a", 1),
            (path_segment, "a", 0),
            (path_segment, "..", 1),
            (path_segment, "a/b%", 2),
            (qualified_name, "a", 0),
            (qualified_name, "x.io/A_b", 0),
            (qualified_name, "/a", 1),
            (qualified_name, "x/y/z", 1),
            (qualified_name, "x/", 2),
            (label_value, "", 0),
            (label_value, "-a", 1),
            (config_key, "a..b", 0),
            (config_key, "..x", 1),
            (config_key, "a/b", 1),
        ];
        for (check, text, broken) in table {
            assert_eq!(check(text).len(), broken, "{text:?}: {:?}", check(text));
        }
    }
}
