//! The environment of the program: that of `run`, and what `--env-from` adds.

mod file;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use hotmap_projection::{Snapshot, SnapshotError};

use file::{LineError, Variable};

/// The longest `NAME=value` that Linux gives to a program (`MAX_ARG_STRLEN`), without the zero byte at its end.
const VARIABLE_BYTES_MAX: usize = 128 * 1_024 - 1;
/// How often a source is read again because it was replaced meanwhile.
const READINGS_MAX: u32 = 10;

/// Variables by name.
pub(crate) type Environment = BTreeMap<OsString, OsString>;

/// Where variables come from. Of two that have the same name the later source wins, and every source wins over what
/// `run` itself was started with.
#[derive(Debug, Clone)]
pub(crate) struct EnvironmentSources {
    /// What `run` itself was started with.
    pub(crate) inherited: Environment,
    pub(crate) sources: Vec<EnvironmentSource>,
    /// Only these names are taken, without their prefix; all if there are none. A `*` at the end stands for any rest.
    pub(crate) names: Vec<String>,
}

/// A directory with a file for each variable, as a ConfigMap or Secret is mounted, or a file of `KEY=VALUE` lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct EnvironmentSource {
    pub(crate) path: PathBuf,
    /// Comes before each name.
    pub(crate) prefix: String,
    /// Whether it may be missing.
    pub(crate) is_optional: bool,
}

/// What was read.
#[derive(Debug)]
pub(crate) struct Read {
    pub(crate) environment: Environment,
    /// What could not become a variable.
    pub(crate) skipped: Vec<Skipped>,
}

/// A key that is no variable; its value is not shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Skipped {
    path: PathBuf,
    name: String,
    why: &'static str,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {}: {}", self.name, self.path.display(), self.why)
    }
}

/// The sources make no environment.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EnvironmentError {
    #[error("--env-from {}: it is not there; write {}? if it may be missing", .path.display(), .path.display())]
    Missing { path: PathBuf },
    #[error("--env-from {}: {}", .path.display(), sentence(.source))]
    Read { path: PathBuf, source: SnapshotError },
    #[error("--env-from {}: {source}", .path.display())]
    Line { path: PathBuf, source: LineError },
    #[error("--env-from {}: {name} has more than the 128 KiB that Linux takes in one variable", .path.display())]
    TooLong { path: PathBuf, name: String },
}

fn sentence(error: &SnapshotError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

impl EnvironmentSources {
    /// What is to be watched.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.sources.iter().map(|source| &source.path)
    }

    /// Reads all sources, each one revision of it.
    ///
    /// # Errors
    /// [`EnvironmentError`]: nothing of it should be used.
    pub(crate) fn read(&self) -> Result<Read, EnvironmentError> {
        let mut read = Read {
            environment: self.inherited.clone(),
            skipped: Vec::new(),
        };
        for source in &self.sources {
            for (name, value) in source.read()? {
                self.add(source, &name, value, &mut read)?;
            }
        }
        Ok(read)
    }

    fn add(
        &self,
        source: &EnvironmentSource,
        name: &[u8],
        value: Vec<u8>,
        read: &mut Read,
    ) -> Result<(), EnvironmentError> {
        if !self.names.is_empty() && !self.names.iter().any(|pattern| is_meant(pattern, name)) {
            return Ok(());
        }
        let why = if name.contains(&b'/') {
            Some("it lies in a directory of its own")
        } else if !is_variable_name(name) {
            Some("a name of a variable has printable ASCII characters other than '=' only")
        } else if value.contains(&0) {
            Some("its value has a zero byte, which no program can be given")
        } else {
            None
        };
        if let Some(why) = why {
            let name = String::from_utf8_lossy(name).into_owned();
            read.skipped.push(Skipped {
                path: source.path.clone(),
                name,
                why,
            });
            return Ok(());
        }
        let name = [source.prefix.as_bytes(), name].concat();
        if name.len() + 1 + value.len() > VARIABLE_BYTES_MAX {
            let name = String::from_utf8_lossy(&name).into_owned();
            return Err(EnvironmentError::TooLong {
                path: source.path.clone(),
                name,
            });
        }
        read.environment
            .insert(OsString::from_vec(name), OsString::from_vec(value));
        Ok(())
    }
}

impl EnvironmentSource {
    fn read(&self) -> Result<Vec<Variable>, EnvironmentError> {
        let mut readings = 0;
        loop {
            readings += 1;
            match self.read_once() {
                Err(EnvironmentError::Read {
                    source: SnapshotError::Replaced,
                    ..
                }) if readings < READINGS_MAX => {}
                read => return read,
            }
        }
    }

    fn read_once(&self) -> Result<Vec<Variable>, EnvironmentError> {
        let failed = |source| EnvironmentError::Read {
            path: self.path.clone(),
            source,
        };
        let snapshot = match Snapshot::open(&self.path) {
            Ok(snapshot) => snapshot,
            Err(SnapshotError::Missing { .. }) if self.is_optional => return Ok(Vec::new()),
            Err(SnapshotError::Missing { .. }) => {
                return Err(EnvironmentError::Missing {
                    path: self.path.clone(),
                });
            }
            Err(error) => return Err(failed(error)),
        };
        let files = snapshot.read_all().map_err(failed)?;
        if self.path.is_dir() {
            return Ok(files
                .into_iter()
                .map(|(name, value)| (name.into_bytes(), value))
                .collect());
        }
        let lines = files.into_values().next().unwrap_or_default();
        file::parse(&lines).map_err(|source| EnvironmentError::Line {
            path: self.path.clone(),
            source,
        })
    }
}

/// Kubernetes 1.36, `IsRelaxedEnvVarName` (`apimachinery/pkg/util/validation`): what `envFrom` takes.
fn is_variable_name(name: &[u8]) -> bool {
    !name.is_empty()
        && name
            .iter()
            .all(|byte| (b' '..=b'~').contains(byte) && *byte != b'=')
}

fn is_meant(pattern: &str, name: &[u8]) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start.as_bytes()),
        None => name == pattern.as_bytes(),
    }
}

/// `PATH` or `PATH?`, as typed.
pub(crate) fn source(raw: &OsStr) -> (PathBuf, bool) {
    match raw.as_bytes().strip_suffix(b"?") {
        Some(path) if !Path::new(raw).exists() => (PathBuf::from(OsStr::from_bytes(path)), true),
        _ => (PathBuf::from(raw), false),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(sources: &[(&Path, &str)], names: &[&str]) -> Result<Read, EnvironmentError> {
        let source = |(path, prefix): &(&Path, &str)| EnvironmentSource {
            path: path.to_path_buf(),
            prefix: (*prefix).to_owned(),
            is_optional: false,
        };
        let sources = EnvironmentSources {
            inherited: Environment::from([("A".into(), "inherited".into()), ("HOME".into(), "/".into())]),
            sources: sources.iter().map(source).collect(),
            names: names.iter().map(|name| (*name).to_owned()).collect(),
        };
        sources.read()
    }

    fn shown(read: &Read) -> Vec<String> {
        let entry = |(name, value): (&OsString, &OsString)| format!("{}={}", name.display(), value.display());
        read.environment.iter().map(entry).collect()
    }

    #[test]
    fn later_sources_win_and_keep_their_last_line_feed() {
        let directory = tempfile::tempdir().expect("a directory");
        let (keys, file) = (directory.path().join("keys"), directory.path().join("file.env"));
        fs::create_dir(&keys).expect("a directory");
        for (name, value) in [("A", "key"), ("B.c-d", "two\n"), ("1", "a digit")] {
            fs::write(keys.join(name), value).expect("a file");
        }
        fs::write(&file, "A=line\n").expect("a file");
        for (sources, names, expected) in [
            (
                vec![(&*keys, "")],
                vec![],
                vec!["1=a digit", "A=key", "B.c-d=two\n", "HOME=/"],
            ),
            (
                vec![(&*keys, ""), (&*file, "")],
                vec!["A"],
                vec!["A=line", "HOME=/"],
            ),
            (
                vec![(&*file, ""), (&*keys, "")],
                vec!["A"],
                vec!["A=key", "HOME=/"],
            ),
            (
                vec![(&*keys, "P_")],
                vec!["B*", "A"],
                vec!["A=inherited", "HOME=/", "P_A=key", "P_B.c-d=two\n"],
            ),
        ] {
            assert_eq!(shown(&read(&sources, &names).expect("it is there")), expected);
        }
    }

    #[test]
    fn what_cannot_be_a_variable_is_skipped_and_named_without_its_value() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("file.env");
        fs::write(&file, "Ä=1\nGOOD=2\nZERO=secret\0\n").expect("a file");
        let read = read(&[(&file, "")], &["*"]).expect("it is there");
        assert_eq!(shown(&read), ["A=inherited", "GOOD=2", "HOME=/"]);
        let skipped: Vec<String> = read.skipped.iter().map(ToString::to_string).collect();
        assert_eq!(skipped.len(), 2);
        assert!(
            skipped[0].starts_with("\"Ä\"") && skipped[1].starts_with("\"ZERO\""),
            "{skipped:?}"
        );
        assert!(!skipped[1].contains("secret"));
    }

    #[test]
    fn what_is_wrong_is_named_without_its_content() {
        let directory = tempfile::tempdir().expect("a directory");
        let (file, long) = (
            directory.path().join("file.env"),
            directory.path().join("long.env"),
        );
        fs::write(&file, "password").expect("a file");
        fs::write(&long, format!("LONG={}", "x".repeat(VARIABLE_BYTES_MAX))).expect("a file");
        for (path, says) in [
            (&file, "line 1 is no KEY=VALUE"),
            (&long, "LONG has more than"),
            (&directory.path().join("none"), "it is not there"),
        ] {
            let error = read(&[(path, "")], &[]).expect_err(says).to_string();
            assert!(error.contains(says) && !error.contains("password"), "{error}");
        }
    }

    #[test]
    fn a_question_mark_makes_a_source_optional() {
        assert_eq!(source(OsStr::new("/no/such?")), (PathBuf::from("/no/such"), true));
        assert_eq!(source(OsStr::new("/no/such")), (PathBuf::from("/no/such"), false));
    }
}
