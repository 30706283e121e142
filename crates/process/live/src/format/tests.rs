use super::*;
use crate::node::Value;

/// What a file says, as lines `path=value@line`.
fn says(name: &str, text: &str) -> Vec<String> {
    let source: Arc<str> = name.into();
    let mut node = Node::empty(&source);
    match Format::of(name).unwrap().parse_onto(text, &source, &mut node) {
        Ok(()) => {
            let mut lines = Vec::new();
            walk(&node, "", &mut lines);
            lines
        }
        Err(error) => vec![error.to_string()],
    }
}

fn walk(node: &Node, path: &str, lines: &mut Vec<String>) {
    let line = node.place.line.unwrap_or(0);
    match &node.value {
        Value::Mapping(entries) => {
            for (key, node) in entries {
                walk(node, &format!("{path}.{key}"), lines);
            }
        }
        Value::Sequence(items) => {
            for (index, node) in items.iter().enumerate() {
                walk(node, &format!("{path}[{index}]"), lines);
            }
        }
        value => lines.push(format!("{path}={value:?}@{line}")),
    }
}

#[test]
fn every_format_knows_its_lines() {
    let cases: &[(&str, &str, &[&str])] = &[
        (
            "a.json",
            "{\n \"a\": {\"b\": -1},\n \"c\": [true,\n 2.5, null, \"x\"]}",
            &[
                ".a.b=Signed(-1)@2",
                ".c[0]=Bool(true)@3",
                ".c[1]=Float(2.5)@4",
                ".c[2]=Null@4",
                ".c[3]=String(\"x\")@4",
            ],
        ),
        (
            "a.properties",
            "# comment\n! too\na.b = 1\nc:two \\\n   lines\nd\\ e x\\u00e9\\n\nempty\n",
            &[
                ".a.b=Text(\"1\")@3",
                ".c=Text(\"two lines\")@4",
                ".d e=Text(\"xé\\n\")@6",
                ".empty=Text(\"\")@7",
            ],
        ),
        (
            ".env",
            "# comment\nexport SERVER__PORT=80 # why\nNAME=\"a\\nb\"\nRAW='$x'\n",
            &[
                ".name=Text(\"a\\nb\")@3",
                ".raw=Text(\"$x\")@4",
                ".server.port=Text(\"80\")@2",
            ],
        ),
        ("empty.json", " \n", &[]),
        ("broken.json", "{\n \"a\": }", &["broken.json:2: expected value"]),
        ("broken.env", "a=1\nb", &["broken.env:2: a line without `=`"]),
        (
            "b.env",
            "a=\"1",
            &["b.env:1: a quote that does not end on its line"],
        ),
        (
            "broken.properties",
            "a=\\u12",
            &["broken.properties:1: a broken \\u escape"],
        ),
    ];
    for (name, text, expected) in cases {
        assert_eq!(says(name, text), *expected, "{name}");
    }
}

#[cfg(feature = "yaml")]
#[test]
fn yaml_knows_its_lines() {
    let text = "a:\n  b: 1\nc:\n  - x\n  - true\nd: ~\n";
    assert_eq!(
        says("a.yaml", text),
        [
            ".a.b=Unsigned(1)@2",
            ".c[0]=String(\"x\")@4",
            ".c[1]=Bool(true)@5",
            ".d=Null@6"
        ]
    );
    assert_eq!(says("a.yml", "# nothing\n"), [""; 0]);
    let broken = says("a.yaml", "a: 1\nb: [\n");
    assert!(broken[0].starts_with("a.yaml:"), "{broken:?}");
}

#[cfg(feature = "toml")]
#[test]
fn toml_knows_its_lines() {
    let text = "x = 1\n[a]\nb = [1.5,\n  'y']\nwhen = 2026-01-31\n";
    assert_eq!(
        says("a.toml", text),
        [
            ".a.b[0]=Float(1.5)@3",
            ".a.b[1]=String(\"y\")@4",
            ".a.when=String(\"2026-01-31\")@5",
            ".x=Signed(1)@1"
        ]
    );
    let broken = says("a.toml", "x = 1\ny = \n");
    assert!(broken[0].starts_with("a.toml:2: "), "{broken:?}");
}
