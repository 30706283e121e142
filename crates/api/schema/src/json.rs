//! JSON documents.

use serde::de::DeserializeSeed;
use serde_json::Value;

use crate::{Duplicate, ParseError, document::Tree, path::At};

/// Parses one JSON document; of duplicate keys the last one wins, and all are reported (at most 100).
///
/// Nesting is limited to 127 levels, where upstream allows 10,000: the deepest Kubernetes types stay far below, and
/// every later walk over the value may recurse without a check of its own. The size is the caller's business.
///
/// # Errors
/// [`ParseError::Json`] for anything else than one JSON value with white space around it.
pub fn parse(bytes: &[u8]) -> Result<(Value, Vec<Duplicate>), ParseError> {
    let mut duplicates = Vec::new();
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let tree = Tree {
        at: &At::ROOT,
        duplicates: &mut duplicates,
        whole_floats_are_integers: false,
    };
    let value = tree.deserialize(&mut deserializer).map_err(ParseError::Json)?;
    deserializer.end().map_err(ParseError::Json)?;
    Ok((value, duplicates))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn duplicates_are_reported_with_their_path_and_the_last_one_wins() {
        let (value, duplicates) =
            parse(br#"{"data":{"k":"1","k":"2"},"spec":{"containers":[{"name":"a","name":"b"}]}}"#)
                .expect("valid");
        assert_eq!(
            value,
            json!({"data": {"k": "2"}, "spec": {"containers": [{"name": "b"}]}})
        );
        let paths: Vec<_> = duplicates
            .iter()
            .map(|duplicate| duplicate.path.as_str())
            .collect();
        assert_eq!(paths, ["data.k", "spec.containers[0].name"]);
        assert_eq!(duplicates[0].to_string(), r#"duplicate field "data.k""#);
    }

    #[test]
    fn deep_nesting_is_an_error() {
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(parse(deep(127).as_bytes()).is_ok());
        assert!(parse(deep(128).as_bytes()).is_err());
        assert!(parse("[".repeat(1_000_000).as_bytes()).is_err());
    }

    #[test]
    fn integers_keep_all_digits() {
        let (value, _) = parse(b"[9223372036854775807, -9223372036854775808, 1.0]").expect("valid");
        assert_eq!(
            value.to_string(),
            "[9223372036854775807,-9223372036854775808,1.0]"
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }
}
