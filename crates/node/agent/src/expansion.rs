//! `$(VAR)` in env values, commands and arguments.
//!
//! Rules follow `third_party/forked/golang/expansion/expand.go`, Kubernetes 1.36: an unknown name stays as it is
//! written, `$$` is a literal `$`, anything else after `$` is left alone.

/// `input` with every known `$(NAME)` replaced by `value_of(NAME)`.
pub(crate) fn expand<'a>(input: &str, value_of: impl Fn(&str) -> Option<&'a str>) -> String {
    let mut out = String::with_capacity(input.len());
    let mut rest = input;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        if let Some(tail) = after.strip_prefix('$') {
            out.push('$');
            rest = tail;
        } else if let Some((name, tail)) = after.strip_prefix('(').and_then(|inner| inner.split_once(')')) {
            match value_of(name) {
                Some(value) => out.push_str(value),
                None => out.push_str(&rest[at..at + name.len() + 3]),
            }
            rest = tail;
        } else {
            out.push('$');
            rest = after;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_expand_as_a_kubelet_expands_them() {
        let value_of = |name: &str| match name {
            "A" => Some("1"),
            "EMPTY" => Some(""),
            _ => None,
        };
        for (input, output) in [
            ("", ""),
            ("plain", "plain"),
            ("$(A)", "1"),
            ("x$(A)y$(A)", "x1y1"),
            ("$(NO)", "$(NO)"),
            ("$$(A)", "$(A)"),
            ("$$$(A)", "$1"),
            ("$A", "$A"),
            ("$(A", "$(A"),
            ("a$", "a$"),
            ("$$", "$"),
            ("$(EMPTY)", ""),
            ("$()", "$()"),
            ("é$(A)é", "é1é"),
        ] {
            assert_eq!(expand(input, value_of), output, "{input:?}");
        }
    }
}
