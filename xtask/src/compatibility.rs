//! Writes docs/compatibility.md from docs/compatibility.yaml: what a kubelet does for configuration, row by row, what
//! hotmap does, and the test that shows it; and from the table of a pod's fields. A row without a test or a reason is an
//! error; so is a test that is gone.

mod fields;

use std::{collections::BTreeSet, fmt::Write, fs, path::Path};

use anyhow::{Context, bail, ensure};
use serde::Deserialize;

/// Where the rows are, beneath the repository.
const ROWS: &str = "docs/compatibility.yaml";
/// What is written from them.
const TABLE: &str = "docs/compatibility.md";

const INTRODUCTION: &str = "\
# Compatibility

What a kubelet of Kubernetes 1.36 does to bring configuration into containers, row by row; what hotmap does; and the
test that shows it. Sources are paths in the repository of Kubernetes. *Same* is what a client or a process can observe.
*Better* is different on purpose. *Absent* says why. Written by `cargo xtask compatibility` from
[compatibility.yaml](compatibility.yaml); a row without a test or a reason, and a test that is no longer there, fail
the build. The last section lists every field of a pod.
";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Section {
    section: String,
    source: String,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    /// Names the row for good.
    id: String,
    /// What a kubelet does.
    fact: String,
    state: State,
    /// What hotmap does instead, for `better`.
    #[serde(default)]
    here: String,
    /// `FILE::FUNCTION`, beneath the repository.
    #[serde(default)]
    tests: Vec<String>,
    /// Why there is no test, or why it is absent.
    #[serde(default)]
    reason: String,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Same,
    Better,
    Absent,
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Better => "better",
            Self::Absent => "absent",
        }
    }
}

/// Writes the table, or with `check` only says whether it is what would be written.
pub(crate) fn run(check: bool) -> anyhow::Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let sections = read(&root)?;
    validate(&root, &sections)?;
    let table = render(&sections);
    let path = root.join(TABLE);
    if !check {
        return fs::write(&path, table).with_context(|| format!("cannot write {TABLE}"));
    }
    let written = fs::read_to_string(&path).with_context(|| format!("cannot read {TABLE}"))?;
    ensure!(
        written == table,
        "{TABLE} is not what {ROWS} says: run `cargo xtask compatibility`"
    );
    Ok(())
}

fn read(root: &Path) -> anyhow::Result<Vec<Section>> {
    let text = fs::read_to_string(root.join(ROWS)).with_context(|| format!("cannot read {ROWS}"))?;
    serde_saphyr::from_str(&text).with_context(|| format!("cannot understand {ROWS}"))
}

/// Tells everything that is wrong, at once.
fn validate(root: &Path, sections: &[Section]) -> anyhow::Result<()> {
    let mut ids = BTreeSet::new();
    let mut wrong = Vec::new();
    for row in sections.iter().flat_map(|section| &section.rows) {
        let mut say = |text: String| wrong.push(format!("{}: {text}", row.id));
        if !ids.insert(&row.id) {
            say("the id is there twice".to_owned());
        }
        let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if row.id.is_empty() || !row.id.bytes().all(word) {
            say("an id is small letters, digits and dashes".to_owned());
        }
        match row.state {
            State::Same if row.tests.is_empty() && row.reason.is_empty() => {
                say("no test, and no reason why".to_owned());
            }
            State::Better if row.tests.is_empty() => say("better needs a test".to_owned()),
            State::Better if row.here.is_empty() => {
                say("better needs a word on what is done here".to_owned())
            }
            State::Absent if row.reason.is_empty() => say("absent needs a reason".to_owned()),
            _ => {}
        }
        for test in &row.tests {
            if let Err(error) = find(root, test) {
                say(error.to_string());
            }
        }
    }
    fields::validate(root, &mut wrong);
    ensure!(wrong.is_empty(), "{ROWS}:\n  {}", wrong.join("\n  "));
    Ok(())
}

/// Finds a test function in the source.
fn find(root: &Path, test: &str) -> anyhow::Result<()> {
    let Some((file, function)) = test.split_once("::") else {
        bail!("{test:?} is not FILE::FUNCTION");
    };
    let text = fs::read_to_string(root.join(file)).with_context(|| format!("cannot read {file}"))?;
    let mut is_test = false;
    for line in text.lines().map(str::trim_start) {
        let signature = line.strip_prefix("async ").unwrap_or(line);
        let name = signature
            .strip_prefix("fn ")
            .and_then(|rest| rest.split_once('('));
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some((name, _)) = name {
            if is_test && name == function {
                return Ok(());
            }
            is_test = false;
        }
    }
    bail!("no test {function} in {file}")
}

fn render(sections: &[Section]) -> String {
    let mut page = INTRODUCTION.to_owned();
    let count = |sections: &[Section], state: State| -> usize {
        let rows = sections.iter().flat_map(|section| &section.rows);
        rows.filter(|row| row.state == state).count()
    };
    let states = [State::Same, State::Better, State::Absent];
    let counts = states.map(|state| format!("{} {}", count(sections, state), state.word()));
    let rows = || sections.iter().flat_map(|section| &section.rows);
    let untested = rows()
        .filter(|row| row.state == State::Same && row.tests.is_empty())
        .count();
    put(
        &mut page,
        format_args!(
            "\n{} rows: {}; {untested} of the same without a test, for the reason given.\n",
            rows().count(),
            counts.join(", ")
        ),
    );
    for section in sections {
        put(
            &mut page,
            format_args!("\n## {}\n\nSource: {}\n\n", section.section, section.source),
        );
        page.push_str("| id | a kubelet | here | shown by |\n|---|---|---|---|\n");
        for row in &section.rows {
            let here = match (row.state, row.here.as_str()) {
                (state, "") => state.word().to_owned(),
                (state, here) => format!("**{}**: {here}", state.word()),
            };
            let tests = row.tests.iter().map(|test| link(test));
            let reason = (!row.reason.is_empty()).then(|| row.reason.clone());
            let proof: Vec<String> = tests.chain(reason).collect();
            put(
                &mut page,
                format_args!(
                    "| `{}` | {} | {} | {} |\n",
                    row.id,
                    cell(&row.fact),
                    cell(&here),
                    cell(&proof.join("<br>"))
                ),
            );
        }
    }
    fields::render(&mut page);
    page
}

/// Text that does not end its column.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn link(test: &str) -> String {
    let (file, function) = test.split_once("::").expect("tests were looked up before");
    format!("[{}](../{file})", function.replace('_', " "))
}

fn put(page: &mut String, text: std::fmt::Arguments<'_>) {
    page.write_fmt(text).expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn repository() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
    }

    #[test]
    fn every_row_has_a_test_or_a_reason_and_the_page_is_written_from_them() {
        run(true).unwrap_or_else(|error| panic!("{error:#}"));
    }

    #[test]
    fn a_row_without_proof_is_told() {
        let check = |row: &str, text: &str| {
            let rows = format!("[{{section: S, source: x, rows: [{{id: a-1, fact: f, {row}}}]}}]");
            let sections: Vec<Section> = serde_saphyr::from_str(&rows).expect("YAML");
            let error = validate(&repository(), &sections).expect_err("no proof");
            assert!(error.to_string().contains(text), "{error}");
        };
        check("state: same", "no test, and no reason why");
        check("state: better, reason: r", "better needs a test");
        check("state: absent", "absent needs a reason");
        let here = "xtask/src/compatibility.rs";
        check(
            &format!("state: same, tests: ['{here}::gone']"),
            "no test gone in",
        );
        check(
            &format!("state: same, tests: ['{here}::repository']"),
            "no test repository in",
        );
        check("state: same, tests: ['nowhere.rs::x']", "cannot read nowhere.rs");
    }
}
