//! JSON for people: two spaces a level, members in the order they have.

use bytes::Bytes;

/// Indents a JSON document. It is walked as text, so the order of members stays; it must be valid.
pub(super) fn indent(json: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(json.len() * 2);
    let (mut depth, mut in_text, mut escaped) = (0, false, false);
    let mut rest = json.iter().copied().peekable();
    while let Some(byte) = rest.next() {
        if in_text {
            out.push(byte);
            in_text = escaped || byte != b'"';
            escaped = !escaped && byte == b'\\';
            continue;
        }
        match byte {
            b'{' | b'[' => {
                out.push(byte);
                while rest.peek().is_some_and(u8::is_ascii_whitespace) {
                    rest.next();
                }
                if rest.peek().is_some_and(|next| matches!(next, b'}' | b']')) {
                    out.extend(rest.next());
                } else {
                    depth += 1;
                    line(&mut out, depth);
                }
            }
            b'}' | b']' => {
                depth -= 1;
                line(&mut out, depth);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                line(&mut out, depth);
            }
            b':' => out.extend_from_slice(b": "),
            b' ' | b'\n' | b'\r' | b'\t' => {}
            _ => {
                in_text = byte == b'"';
                out.push(byte);
            }
        }
    }
    out.into()
}

fn line(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.resize(out.len() + 2 * depth, b' ');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_members_stays() {
        let pretty = indent(br#"{"b":{"x":"a\"{,:","e":{}, "l":[ ]},"a":[1,{"c":null}]}"#);
        let expected = r#"{
  "b": {
    "x": "a\"{,:",
    "e": {},
    "l": []
  },
  "a": [
    1,
    {
      "c": null
    }
  ]
}"#;
        assert_eq!(std::str::from_utf8(&pretty).expect("text"), expected);
    }
}
