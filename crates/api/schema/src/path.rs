//! Where in a tree a walk is: a list of steps that lives on the stack, so that a clean document costs nothing.

use std::fmt::Write;

/// One step of a walk, linked to the steps before it.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    parent: Option<&'a At<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> At<'a> {
    pub(crate) const ROOT: At<'static> = At {
        parent: None,
        step: Step::Root,
    };

    /// Into a field of a structure.
    pub(crate) fn field(&'a self, name: &'a str) -> At<'a> {
        At {
            parent: Some(self),
            step: Step::Field(name),
        }
    }

    /// Into a value of a map.
    pub(crate) fn key(&'a self, key: &'a str) -> At<'a> {
        At {
            parent: Some(self),
            step: Step::Key(key),
        }
    }

    /// Into an element of a list.
    pub(crate) fn index(&'a self, index: usize) -> At<'a> {
        At {
            parent: Some(self),
            step: Step::Index(index),
        }
    }

    /// As strict decoding prints it: `spec.containers[0].imagee`, `data.k`.
    pub(crate) fn dotted(&self) -> String {
        self.render(|path, key| {
            let dot = if path.is_empty() { "" } else { "." };
            let _ = write!(path, "{dot}{key}");
        })
    }

    /// As the causes of a `Status` print it: `data[bootstrap.yml]`.
    pub(crate) fn bracketed(&self) -> String {
        self.render(|path, key| {
            let _ = write!(path, "[{key}]");
        })
    }

    /// As type errors print it, field names only: `spec.containers.image`.
    pub(crate) fn fields_only(&self) -> String {
        let names = self.steps().into_iter().filter_map(|step| match step {
            Step::Field(name) => Some(name),
            _ => None,
        });
        names.collect::<Vec<_>>().join(".")
    }

    fn render(&self, write_key: impl Fn(&mut String, &str)) -> String {
        let mut path = String::new();
        for step in self.steps() {
            match step {
                Step::Root => {}
                Step::Field(name) => {
                    let dot = if path.is_empty() { "" } else { "." };
                    let _ = write!(path, "{dot}{name}");
                }
                Step::Key(key) => write_key(&mut path, key),
                Step::Index(index) => {
                    let _ = write!(path, "[{index}]");
                }
            }
        }
        path
    }

    fn steps(&self) -> Vec<Step<'_>> {
        let mut steps = Vec::new();
        let mut at = Some(self);
        while let Some(here) = at {
            steps.push(here.step);
            at = here.parent;
        }
        steps.reverse();
        steps
    }
}
