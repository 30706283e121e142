//! Checks that the rules of several kinds share, and the paths and texts they answer with.
//!
//! Texts follow `apimachinery/pkg/util/validation/validation.go`, Kubernetes 1.36.

use std::net::{IpAddr, Ipv4Addr};

use hotmap_object::{FieldError, names};
pub(crate) use names::{
    dns_1035_label as dns_1035, dns_1123_label as label, dns_1123_subdomain as subdomain,
};
use serde_json::Value;

pub(crate) const IMMUTABLE: &str = "field is immutable";
pub(crate) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
pub(crate) const FROZEN: &str = "field is immutable when `immutable` is set";
pub(crate) const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];

const HTTP_HEADER_RULE: &str = "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
const ENV_NAME_RULE: &str =
    "a valid environment variable name must consist only of printable ASCII characters other than '='";

/// What is wrong so far.
pub(crate) type Errors = Vec<FieldError>;

/// One error at `path` for each broken rule.
pub(crate) fn broken(errors: &mut Errors, path: &str, value: &str, rules: Vec<String>) {
    errors.extend(
        rules
            .into_iter()
            .map(|rule| FieldError::invalid(path, value, rule)),
    );
}

/// `path.name`.
pub(crate) fn child(path: &str, name: &str) -> String {
    format!("{path}.{name}")
}

/// `path[at]`.
pub(crate) fn index(path: &str, at: usize) -> String {
    format!("{path}[{at}]")
}

/// `path[key]`.
pub(crate) fn key(path: &str, key: &str) -> String {
    format!("{path}[{key}]")
}

/// What breaks a prefix that a random suffix will follow: one dash at its end does not count.
pub(crate) fn without_trailing_dash(prefix: &str) -> String {
    match prefix.strip_suffix('-') {
        // Upstream cuts two characters and appends one, so that the length is never blamed on the dash.
        Some(head) if !head.is_empty() => {
            let mut masked = head.to_owned();
            masked.pop();
            masked.push('a');
            masked
        }
        _ => prefix.to_owned(),
    }
}

/// What breaks a number that must lie in a range, its ends included.
pub(crate) fn in_range(number: i64, low: i64, high: i64) -> Vec<String> {
    if (low..=high).contains(&number) {
        Vec::new()
    } else {
        vec![format!("must be between {low} and {high}, inclusive")]
    }
}

/// Checks a TCP, UDP or SCTP port number.
pub(crate) fn port_number(errors: &mut Errors, path: &str, port: i64) {
    number_in(errors, path, port, 1, 65_535);
}

/// Checks a user or group id.
pub(crate) fn posix_id(errors: &mut Errors, path: &str, id: i64) {
    number_in(errors, path, id, 0, i64::from(i32::MAX));
}

fn number_in(errors: &mut Errors, path: &str, number: i64, low: i64, high: i64) {
    let rules = in_range(number, low, high);
    errors.extend(
        rules
            .into_iter()
            .map(|rule| FieldError::invalid(path, number, rule)),
    );
}

/// Checks a count that may not be below zero.
pub(crate) fn not_negative(errors: &mut Errors, path: String, number: Option<i64>) {
    if let Some(number) = number.filter(|number| *number < 0) {
        errors.push(FieldError::invalid(path, number, NOT_NEGATIVE));
    }
}

/// Checks a port given by number or by name; an absent one is number 0.
pub(crate) fn port_or_name(errors: &mut Errors, path: &str, port: Option<&Value>) {
    match port {
        Some(Value::String(name)) => broken(errors, path, name, port_name(name)),
        other => port_number(errors, path, other.and_then(Value::as_i64).unwrap_or_default()),
    }
}

/// What breaks the name of a port.
pub(crate) fn port_name(name: &str) -> Vec<String> {
    let is_allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    let checks = [
        (name.len() > 15, "must be no more than 15 characters"),
        (
            name.is_empty() || !name.bytes().all(is_allowed),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (
            !name.bytes().any(|b| b.is_ascii_lowercase()),
            "must contain at least one letter (a-z)",
        ),
        (name.contains("--"), "must not contain consecutive hyphens"),
        (
            name.starts_with('-') || name.ends_with('-'),
            "must not begin or end with a hyphen",
        ),
    ];
    checks
        .into_iter()
        .filter(|(is_broken, _)| *is_broken)
        .map(|(_, rule)| rule.to_owned())
        .collect()
}

/// What breaks the name of an environment variable.
pub(crate) fn env_name(name: &str) -> Vec<String> {
    if name.is_empty() {
        vec!["environment variable name must be non-empty".to_owned()]
    } else if name.bytes().all(|b| matches!(b, b' '..=b'~') && b != b'=') {
        Vec::new()
    } else {
        vec![ENV_NAME_RULE.to_owned()]
    }
}

/// What breaks the name of an HTTP header.
pub(crate) fn http_header(name: &str) -> Vec<String> {
    if !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        Vec::new()
    } else {
        vec![HTTP_HEADER_RULE.to_owned()]
    }
}

/// Checks a transport protocol.
pub(crate) fn protocol(errors: &mut Errors, path: String, protocol: &str) {
    if protocol.is_empty() {
        errors.push(FieldError::required(path, ""));
    } else if !PROTOCOLS.contains(&protocol) {
        errors.push(FieldError::not_supported(path, protocol, PROTOCOLS));
    }
}

/// Checks a label key, an annotation key in lower case, or another qualified name.
pub(crate) fn qualified_name(errors: &mut Errors, path: &str, name: &str) {
    broken(errors, path, name, names::qualified_name(name));
}

/// Checks an IP address; leading zeros in IPv4 parts are read as decimal, as ever.
pub(crate) fn ip(errors: &mut Errors, path: &str, text: &str) -> Option<IpAddr> {
    let address = parse_ip(text);
    if address.is_none() {
        errors.push(FieldError::invalid(
            path,
            text,
            "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
        ));
    }
    address
}

/// Checks an address that traffic is sent to: no loopback, no link-local, not the unspecified one.
pub(crate) fn endpoint_ip(errors: &mut Errors, path: &str, text: &str) {
    let Some(address) = parse_ip(text) else {
        errors.push(FieldError::invalid(path, text, "must be a valid IP address"));
        return;
    };
    if address.is_unspecified() {
        errors.push(FieldError::invalid(
            path,
            text,
            format!("may not be unspecified ({text})"),
        ));
    }
    if address.is_loopback() {
        let rule = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
        errors.push(FieldError::invalid(path, text, rule));
    }
    let (unicast, multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(v6) => (v6.is_unicast_link_local(), v6.segments()[0] & 0xff0f == 0xff02),
    };
    if unicast {
        let rule = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        errors.push(FieldError::invalid(path, text, rule));
    }
    if multicast {
        let rule = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        errors.push(FieldError::invalid(path, text, rule));
    }
}

fn parse_ip(text: &str) -> Option<IpAddr> {
    if let Ok(address) = text.parse::<IpAddr>() {
        return Some(match address {
            IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
            IpAddr::V4(_) => address,
        });
    }
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || part.len() > 16 || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        *octet = part
            .trim_start_matches('0')
            .parse()
            .or_else(|error| {
                if part.bytes().all(|b| b == b'0') {
                    Ok(0)
                } else {
                    Err(error)
                }
            })
            .ok()?;
    }
    parts.next().is_none().then(|| Ipv4Addr::from(octets).into())
}

/// Checks permission bits of a file.
pub(crate) fn file_mode(errors: &mut Errors, path: String, mode: Option<i64>) {
    if let Some(mode) = mode.filter(|mode| !(0..=0o777).contains(mode)) {
        let rule = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(FieldError::invalid(path, mode, rule));
    }
}

/// Checks a path that may not climb.
pub(crate) fn no_backsteps(errors: &mut Errors, path: &str, target: &str) {
    if target.split('/').any(|item| item == "..") {
        errors.push(FieldError::invalid(path, target, "must not contain '..'"));
    }
}

/// Checks a path below a directory.
pub(crate) fn descending_path(errors: &mut Errors, path: &str, target: &str) {
    if target.starts_with('/') {
        errors.push(FieldError::invalid(path, target, "must be a relative path"));
    }
    no_backsteps(errors, path, target);
}

/// Checks the path of a projected file: names that start with two dots belong to the writer.
pub(crate) fn unreserved_path(errors: &mut Errors, path: &str, target: &str) {
    descending_path(errors, path, target);
    if target.starts_with("..") && !target.starts_with("../") {
        errors.push(FieldError::invalid(path, target, "must not start with '..'"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_go_reads_them() {
        for (text, valid) in [
            ("10.0.0.1", true),
            ("010.000.0.01", true),
            ("::1", true),
            ("::ffff:10.0.0.1", true),
            ("10.0.0", false),
            ("10.0.0.256", false),
            ("10.0.0.1.2", false),
            ("a", false),
            ("", false),
        ] {
            assert_eq!(parse_ip(text).is_some(), valid, "{text:?}");
        }
    }

    #[test]
    fn names_of_ports_have_their_alphabet() {
        let table: [(&str, &[&str]); 6] = [
            ("http", &[]),
            ("80", &["must contain at least one letter (a-z)"]),
            ("a-very-long-port-name", &["must be no more than 15 characters"]),
            ("a--b", &["must not contain consecutive hyphens"]),
            ("-a", &["must not begin or end with a hyphen"]),
            (
                "A",
                &[
                    "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                    "must contain at least one letter (a-z)",
                ],
            ),
        ];
        for (name, rules) in table {
            assert_eq!(port_name(name), rules, "{name:?}");
        }
    }

    #[test]
    fn a_dotted_label_is_told_so() {
        assert_eq!(label("a.b"), ["must not contain dots"]);
        assert_eq!(label("a"), [""; 0]);
        assert_eq!(label(&"a".repeat(64)), ["must be no more than 63 characters"]);
        assert_eq!(
            subdomain(&"a".repeat(254)),
            ["must be no more than 253 characters"]
        );
    }

    #[test]
    fn paths_stay_below() {
        let table: [(&str, &[&str]); 6] = [
            ("a/b", &[]),
            ("/a", &["must be a relative path"]),
            ("a/../b", &["must not contain '..'"]),
            ("../../a", &["must not contain '..'"]),
            ("..data", &["must not start with '..'"]),
            ("a..b", &[]),
        ];
        for (target, rules) in table {
            let mut errors = Vec::new();
            unreserved_path(&mut errors, "p", target);
            let found: Vec<&str> = errors.iter().map(|error| error.detail.as_str()).collect();
            assert_eq!(found, rules, "{target:?}");
        }
    }
}
