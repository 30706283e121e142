//! What a table is made of.

/// The fields of one type of the API.
#[derive(Debug)]
pub struct Table {
    /// The type, without its package: `PodSpec`.
    pub message: &'static str,
    /// One row per field.
    pub rows: &'static [Row],
}

/// What becomes of one field.
#[derive(Debug)]
pub struct Row {
    /// Its name in JSON.
    pub field: &'static str,
    /// What becomes of it.
    pub state: State,
    /// What is done with it, or why nothing is. For people: without a full stop.
    pub sentence: &'static str,
    /// Values that fare differently.
    pub values: Values,
    /// `FILE::FUNCTION`, beneath the repository; what works has at least one.
    pub tests: &'static [&'static str],
}

/// What becomes of a field that is set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    /// It has its effect. If it is a structure, the table of its type says more.
    Works,
    /// It is kept in the API and has no effect, which a Warning and an event say. Holds for everything in it.
    Warned,
    /// The pod fails, and its status names the field; an ephemeral container fails alone. Holds for everything in it.
    Refused,
}

impl State {
    /// The state in a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Works => "works",
            Self::Warned => "warned",
            Self::Refused => "refused",
        }
    }
}

/// Which values a row is about.
#[derive(Debug)]
pub enum Values {
    /// All of them.
    Any,
    /// All but these, which ask for nothing that is not there anyway.
    Except(&'static [&'static str]),
    /// These alone; others fare as said here, for the reason given.
    Only(&'static [&'static str], State, &'static str),
}

pub(crate) const fn works(
    field: &'static str,
    sentence: &'static str,
    tests: &'static [&'static str],
) -> Row {
    row(field, State::Works, sentence, tests)
}

pub(crate) const fn warned(field: &'static str, why: &'static str) -> Row {
    row(field, State::Warned, why, &[])
}

pub(crate) const fn refused(field: &'static str, why: &'static str) -> Row {
    row(field, State::Refused, why, &[])
}

const fn row(
    field: &'static str,
    state: State,
    sentence: &'static str,
    tests: &'static [&'static str],
) -> Row {
    Row {
        field,
        state,
        sentence,
        values: Values::Any,
        tests,
    }
}

impl Row {
    /// These values ask for nothing.
    pub(crate) const fn except(mut self, values: &'static [&'static str]) -> Self {
        self.values = Values::Except(values);
        self
    }

    /// Holds for these values only.
    pub(crate) const fn only(
        mut self,
        values: &'static [&'static str],
        others: State,
        why: &'static str,
    ) -> Self {
        self.values = Values::Only(values, others, why);
        self
    }

    /// What becomes of the field with this value, and why.
    pub(crate) fn outcome(&self, value: &str) -> (State, &'static str) {
        match self.values {
            Values::Except(fine) if fine.contains(&value) => (State::Works, self.sentence),
            Values::Only(held, others, why) if !held.contains(&value) => (others, why),
            _ => (self.state, self.sentence),
        }
    }
}
