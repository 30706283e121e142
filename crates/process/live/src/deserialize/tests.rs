use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::*;
use crate::format::Format;

#[derive(Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
struct Config {
    level: Level,
    server: Server,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    weights: BTreeMap<u16, f64>,
    #[serde(default)]
    output: Option<Output>,
}

#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Level {
    Info,
    Debug,
}

#[derive(Debug, Deserialize, PartialEq)]
struct Server {
    port: u16,
    #[serde(default)]
    is_tls: bool,
    #[serde(default)]
    allowed: Vec<u8>,
}

#[derive(Debug, Deserialize, PartialEq)]
enum Output {
    None,
    File { path: String },
    Both(String, u8),
}

fn config(files: &[(&str, &str)]) -> Result<Config, String> {
    let mut node = Node::empty(&"".into());
    for (name, text) in files {
        let source: Arc<str> = (*name).into();
        Format::of(name)
            .unwrap()
            .parse_onto(text, &source, &mut node)
            .map_err(|error| error.to_string())?;
    }
    from_node(&node).map_err(|error| error.to_string())
}

#[test]
fn values_of_every_source_become_what_their_fields_are() {
    let typed = r#"{"level": "debug", "server": {"port": 80, "is_tls": true, "allowed": [1, 2]},
        "tags": ["a", "b"], "weights": {"1": 0.5}, "output": {"File": {"path": "x"}}}"#;
    let text = "LEVEL=DEBUG\nSERVER__PORT=80\nSERVER__IS_TLS=yes\nSERVER__ALLOWED=1, 2\nTAGS=a,b\nWEIGHTS__1=0.5\nOUTPUT__FILE__PATH=x";
    let one = config(&[("a.json", typed)]).unwrap();
    assert_eq!(one.output, Some(Output::File { path: "x".into() }));
    // Names of variants are those of the type: there is none below to take the spelling from.
    let text = text.replace("OUTPUT__FILE__PATH=x", "OUTPUT=none");
    let mut expected = one;
    expected.output = Some(Output::None);
    assert_eq!(config(&[("a.env", &text)]).unwrap(), expected);
    expected.output = Some(Output::Both("x".into(), 1));
    let over = r#"{"output": {"Both": ["x", 1]}}"#;
    assert_eq!(config(&[("a.env", &text), ("b.json", over)]).unwrap(), expected);
}

#[test]
fn errors_name_place_and_field_and_no_value() {
    let cases = [
        (
            r#"{"level": "hunter2", "server": {"port": 1}}"#,
            "a.json:1: level: expected one of info, debug",
        ),
        (
            "{\"level\": \"info\",\n \"server\": {\n \"port\": \"hunter2\"}}",
            "a.json:3: server.port: expected u16, found a string",
        ),
        (
            "{\"level\": \"info\",\n \"server\": {\"port\": 70000}}",
            "a.json:2: server.port: expected u16",
        ),
        (
            "{\"level\": \"info\",\n \"server\": {\"port\": 1, \"allowed\": [1,\n \"hunter2\"]}}",
            "a.json:3: server.allowed[1]: expected u8, found a string",
        ),
        (
            "{\"level\": \"info\",\n \"server\": {}}",
            "a.json:2: server: missing field `port`",
        ),
        (
            "{\"level\": \"info\",\n \"sever\": {}}",
            "a.json:2: the whole: unknown field `sever`, expected one of `level`, `server`, `tags`, `weights`, `output`",
        ),
        (
            "{\"level\": \"info\", \"server\": {\"port\": 1},\n \"output\": {\"File\": {}}}",
            "a.json:2: output.File: missing field `path`",
        ),
        ("{}", "the whole: missing field `level`"),
    ];
    for (text, expected) in cases {
        assert_eq!(config(&[("a.json", text)]).unwrap_err(), expected, "{text}");
    }
    let base = r#"{"level": "info", "server": {"port": 1}}"#;
    for (text, expected) in [
        (
            "\nSERVER__PORT=hunter2",
            "b.env:2: server.port: expected an integer from 0 to 65535, found text that is none",
        ),
        (
            "SERVER__IS_TLS=hunter2",
            "b.env:1: server.is_tls: expected true or false",
        ),
        ("LEVEL=hunter2", "b.env:1: level: expected one of info, debug"),
    ] {
        let error = config(&[("a.json", base), ("b.env", text)]).unwrap_err();
        assert_eq!(error, expected, "{text}");
    }
}
