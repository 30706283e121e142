//! YAML documents, as Kubernetes reads them: YAML becomes the JSON it stands for.

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, Options};

use crate::{Duplicate, ParseError, document::Tree, path::At};

/// Less than JSON allows, because the parser needs much stack for each level; manifests stay below 30.
const DEPTH_MAX: usize = 48;
/// Scalars, lists and mappings of all documents; a manifest of 3 MiB, the API's limit for bodies, stays below.
const NODES_MAX: usize = 500_000;
/// Events that aliases may repeat: enough for shared snippets, too few for a document that explodes.
const REPLAYED_MAX: usize = 100_000;
/// Documents in one stream.
const DOCUMENTS_MAX: usize = 10_000;

/// Parses one YAML document; an empty one is `null`. Of duplicate keys the last one wins, and all are reported.
///
/// Only `true` and `false` are booleans (`no` stays text), `0644` is octal, and a float with an integral value is that
/// integer.
///
/// # Errors
/// [`ParseError::ManyDocuments`] for more than one document, [`ParseError::Yaml`] for text that is not YAML or exceeds
/// the limits on depth, nodes and aliases.
pub fn parse(bytes: &[u8]) -> Result<(Value, Vec<Duplicate>), ParseError> {
    let mut documents = parse_all(bytes)?;
    match documents.len() {
        0 => Ok((Value::Null, Vec::new())),
        1 => Ok(documents.remove(0)),
        many => Err(ParseError::ManyDocuments(many)),
    }
}

/// Parses a stream of documents divided by `---`; empty ones are left out.
///
/// # Errors
/// As [`parse`], but for the number of documents.
pub fn parse_all(bytes: &[u8]) -> Result<Vec<(Value, Vec<Duplicate>)>, ParseError> {
    let documents: Vec<Document> = serde_saphyr::from_slice_multiple_with_options(bytes, options())
        .map_err(|error| ParseError::Yaml(error.to_string()))?;
    Ok(documents
        .into_iter()
        .map(|document| (document.value, document.duplicates))
        .collect())
}

fn options() -> Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            flow_nesting_limit: DEPTH_MAX,
            max_nodes: NODES_MAX,
            max_documents: DOCUMENTS_MAX,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: REPLAYED_MAX,
        },
        duplicate_keys: DuplicateKeyPolicy::LastWins,
        strict_booleans: true,
        legacy_octal_numbers: true,
        with_snippet: false,
    }
}

struct Document {
    value: Value,
    duplicates: Vec<Duplicate>,
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut duplicates = Vec::new();
        let tree = Tree {
            at: &At::ROOT,
            duplicates: &mut duplicates,
            whole_floats_are_integers: true,
        };
        let value = deserializer.deserialize_any(tree)?;
        Ok(Self { value, duplicates })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn scalars_become_the_json_that_kubernetes_reads() {
        for (text, expected) in [
            ("a: no", json!({"a": "no"})),
            ("a: true", json!({"a": true})),
            ("a: 0644", json!({"a": 420})),
            ("a: 1.0", json!({"a": 1})),
            ("a: 1.5", json!({"a": 1.5})),
            ("a: \"1\"", json!({"a": "1"})),
            ("a: ~\nb:", json!({"a": null, "b": null})),
            ("a: 2024-01-01T00:00:00Z", json!({"a": "2024-01-01T00:00:00Z"})),
            ("a: |\n  x\n  y\n", json!({"a": "x\ny\n"})),
            ("1: x", json!({"1": "x"})),
            ("a: &a [1]\nb: *a", json!({"a": [1], "b": [1]})),
            ("{\"a\": [1, {\"b\": null}]}", json!({"a": [1, {"b": null}]})),
            ("", json!(null)),
        ] {
            assert_eq!(parse(text.as_bytes()).expect(text).0, expected, "{text}");
        }
    }

    #[test]
    fn duplicates_are_reported_with_their_path_and_the_last_one_wins() {
        let (value, duplicates) = parse(b"data:\n  k: a\n  k: b\n").expect("valid");
        assert_eq!(value, json!({"data": {"k": "b"}}));
        assert_eq!(
            duplicates,
            [Duplicate {
                path: "data.k".to_owned()
            }]
        );
    }

    #[test]
    fn one_document_means_one() {
        assert!(matches!(
            parse(b"a: 1\n---\nb: 2\n"),
            Err(ParseError::ManyDocuments(2))
        ));
        assert_eq!(parse_all(b"---\na: 1\n---\n---\nb: 2\n").expect("valid").len(), 2);
        assert!(parse(b"---\na: 1\n").is_ok());
    }

    #[test]
    fn documents_that_explode_are_refused() {
        let mut bomb = String::from("a0: &a0 [x,x,x,x,x,x,x,x,x]\n");
        for level in 1..10 {
            let before = format!("*a{}", level - 1);
            bomb += &format!("a{level}: &a{level} [{}]\n", [before.as_str(); 9].join(","));
        }
        for (name, text) in [
            ("aliases", bomb),
            ("flow lists", "[".repeat(100_000)),
            ("flow mappings", "{a: ".repeat(100_000)),
            ("lists", "- ".repeat(100_000)),
            ("mappings", "a: ".repeat(100_000)),
            (
                "indented mappings",
                (0..1_000).map(|depth| " ".repeat(depth) + "a:\n").collect(),
            ),
            ("keys", "? ".repeat(100_000)),
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{name}");
        }
    }

    #[test]
    fn the_deepest_document_fits_a_small_stack() {
        /// Less than the 2 MiB a thread has; unoptimised code needs the most.
        const STACK_BYTES: usize = 3 << 19;
        for unit in ["- ", "a:\n", "["] {
            let deep = |levels: usize| match unit {
                "a:\n" => (0..levels).map(|depth| " ".repeat(depth) + unit).collect(),
                "[" => "[".repeat(levels) + &"]".repeat(levels),
                _ => unit.repeat(levels),
            };
            let (allowed, refused) = (deep(DEPTH_MAX), deep(DEPTH_MAX + 1));
            let parse_both = move || {
                (
                    parse(allowed.as_bytes()).is_ok(),
                    parse(refused.as_bytes()).is_ok(),
                )
            };
            let thread = std::thread::Builder::new()
                .stack_size(STACK_BYTES)
                .spawn(parse_both)
                .expect("a thread");
            assert_eq!(thread.join().expect("no panic"), (true, false), "{unit}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "[ \\n:{}\\[\\]&*!a-c0-9'\"|>#-]{0,80}") {
            let _ = parse(&bytes);
            let _ = parse(text.as_bytes());
        }
    }
}
