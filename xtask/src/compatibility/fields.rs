//! The page's last part: every field of a pod, from the table that nodes judge pods by.

use std::path::Path;

use hotmap_support::{Row, State, TABLES, Values};

use super::{cell, find, link, put};

const INTRODUCTION: &str = "
## Every field of a pod

What becomes of each field, by the type it belongs to, from the table that a node judges pods by (`crates/api/support`).
*Works* names the tests that show it. *Warned*: kept in the API and without effect; a Warning on `kubectl apply` and an
event say so. *Refused*: the pod fails, and its status names the field; an ephemeral container alone
does not start. What is warned of or refused is so with everything in it. A field without a row fails the build, as does a row without its test.
";

/// Says which tests of the table are not there.
pub(super) fn validate(root: &Path, wrong: &mut Vec<String>) {
    for table in TABLES {
        for row in table.rows {
            for test in row.tests {
                if let Err(error) = find(root, test) {
                    wrong.push(format!("{}.{}: {error}", table.message, row.field));
                }
            }
            if row.state == State::Works && row.tests.is_empty() {
                wrong.push(format!(
                    "{}.{}: works, and no test shows it",
                    table.message, row.field
                ));
            }
        }
    }
}

pub(super) fn render(page: &mut String) {
    page.push_str(INTRODUCTION);
    let count = |state: State| {
        let rows = TABLES.iter().flat_map(|table| table.rows);
        rows.filter(|row| row.state == state).count()
    };
    let states = [State::Works, State::Warned, State::Refused]
        .map(|state| format!("{} {}", count(state), state.word()));
    put(
        page,
        format_args!("\n{} types; {}.\n", TABLES.len(), states.join(", ")),
    );
    for table in TABLES {
        put(page, format_args!("\n### {}\n\n", table.message));
        page.push_str("| field | here | shown by |\n|---|---|---|\n");
        for row in table.rows {
            let tests: Vec<String> = row.tests.iter().map(|test| link(test)).collect();
            put(
                page,
                format_args!(
                    "| `{}` | {} | {} |\n",
                    row.field,
                    cell(&here(row)),
                    tests.join("<br>")
                ),
            );
        }
    }
}

fn here(row: &Row) -> String {
    let said = |state: State, sentence: &str| match state {
        State::Works => format!("works: {sentence}"),
        State::Warned | State::Refused => format!("**{}**: {sentence}", state.word()),
    };
    let first = said(row.state, row.sentence);
    match row.values {
        Values::Any => first,
        Values::Except(values) => format!("{first} (not for {})", quoted(values)),
        Values::Only(_, others, why) => format!("{first}; other values **{}**: {why}", others.word()),
    }
}

fn quoted(values: &[&str]) -> String {
    let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
    values.join(", ")
}
