//! A request to a resource, parsed and allowed: what the front of the server hands to the objects behind it.

use bytes::Bytes;
use hotmap_kinds::{Resource, Subresource};

use crate::http::negotiation::Accept;

/// What a request wants done, in the words of discovery and permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
}

impl Verb {
    /// The spelling of discovery, permissions and metrics.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
        }
    }
}

/// Who asks. Two requests of one connection share it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct User {
    /// User name, such as `kubernetes-admin` or `system:node:a`.
    pub(crate) name: String,
    /// Groups, `system:authenticated` or `system:unauthenticated` included.
    pub(crate) groups: Vec<String>,
    /// Unique id, if the authenticator knows one.
    pub(crate) uid: String,
    /// Further facts, in the order given.
    pub(crate) extra: Vec<(String, Vec<String>)>,
}

impl User {
    /// Whether the user is in a group.
    pub(crate) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|held| held == group)
    }
}

/// One request to one resource. Authentication, authorization, the body limit and the verb table are behind it.
#[derive(Clone)]
pub(crate) struct ApiRequest {
    pub(crate) verb: Verb,
    pub(crate) resource: &'static Resource,
    /// The sub-resource named in the path, such as `status`. `log` and `exec` never come here.
    pub(crate) subresource: Option<&'static Subresource>,
    /// From the path; `None` for cluster-scoped kinds and for requests across namespaces. For a Namespace itself it is
    /// `None` and `name` is its name.
    pub(crate) namespace: Option<String>,
    /// From the path alone: a `metadata.name` field selector does not fill it.
    pub(crate) name: Option<String>,
    pub(crate) query: Query,
    pub(crate) user: std::sync::Arc<User>,
    /// The `User-Agent` header, empty if absent.
    #[expect(
        dead_code,
        reason = "the default field manager of a write comes from it, once fields have managers"
    )]
    pub(crate) user_agent: String,
    pub(crate) accept: Accept,
    /// The `Content-Type` header without parameters, in lower case.
    pub(crate) content_type: Option<String>,
    /// At most 3 MiB.
    pub(crate) body: Bytes,
    /// Whether the user may also `create` here: asked for by writes that create what is missing (PUT of a kind with
    /// create-on-update).
    pub(crate) may_create: bool,
}

impl ApiRequest {
    /// Name of the sub-resource, empty for the object itself.
    pub(crate) fn subresource_name(&self) -> &'static str {
        self.subresource.map_or("", |subresource| subresource.name)
    }
}

/// The parameters of a URL, decoded, in order, with repetitions.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what stands behind the `?`. Broken percent escapes are kept as they are.
    pub(crate) fn parse(raw: &str) -> Self {
        let pairs = raw.split('&').filter(|pair| !pair.is_empty());
        let decoded = pairs.map(|pair| {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            (percent_decode(key, true), percent_decode(value, true))
        });
        Self(decoded.collect())
    }

    /// The first value of a parameter; empty is a value.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(held, _)| held == key)
            .map(|(_, value)| value.as_str())
    }

    /// The first value of a parameter, unless it is empty.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.get(key).filter(|value| !value.is_empty())
    }

    /// Every value of a parameter.
    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(held, _)| held == key)
            .map(|(_, value)| value.as_str())
    }

    /// A boolean as upstream converts it (`apimachinery/pkg/runtime/conversion.go`, 1.36): present means true, but for
    /// `0` and `false`.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.get(key)
            .is_some_and(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }
}

/// Encodes everything but letters, digits, `-`, `.`, `_` and `~` (RFC 3986, unreserved).
pub(crate) fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte.into()),
            _ => encoded += &format!("%{byte:02X}"),
        }
    }
    encoded
}

/// Decodes percent escapes, and `+` as a space where the text is a query. What is no UTF-8 afterwards is replaced by
/// U+FFFD, which no name and no selector matches.
pub(crate) fn percent_decode(raw: &str, plus_is_space: bool) -> String {
    if !raw.contains(['%', '+']) {
        return raw.to_owned();
    }
    let bytes = raw.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = match bytes[at] {
            b'%' => bytes.get(at + 1..at + 3).and_then(hex_pair),
            _ => None,
        };
        match (bytes[at], escape) {
            (_, Some(byte)) => {
                decoded.push(byte);
                at += 2;
            }
            (b'+', _) if plus_is_space => decoded.push(b' '),
            (byte, _) => decoded.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

fn hex_pair(pair: &[u8]) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    Some((digit(pair[0])? * 16 + digit(pair[1])?) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_decoded_and_may_repeat() {
        let query = Query::parse("command=a%20b&command=c+d&empty=&bare&%zz=1&watch=0");
        assert_eq!(query.all("command").collect::<Vec<_>>(), ["a b", "c d"]);
        assert_eq!(
            (query.get("empty"), query.text("empty"), query.get("none")),
            (Some(""), None, None)
        );
        assert_eq!(query.get("%zz"), Some("1"));
    }

    #[test]
    fn a_flag_is_true_unless_it_says_no() {
        for (raw, set) in [
            ("", false),
            ("watch=true", true),
            ("watch=1", true),
            ("watch", true),
            ("watch=yes", true),
            ("watch=0", false),
            ("watch=False", false),
        ] {
            assert_eq!(Query::parse(raw).flag("watch"), set, "{raw:?}");
        }
    }
}
