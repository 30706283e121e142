//! From objects to a payload: which key becomes which file.
//!
//! Pure functions over plain data. The caller fetches objects and resolves downward values; what is decided
//! here is `items`, `optional`, modes, precedence and the error texts clients match on.
//!
//! Source of the rules: Kubernetes 1.36 `pkg/volume/{configmap,secret,downwardapi,projected}/*.go`.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::payload::{FileMode, PathConflict, PathError, Payload, PayloadFile, PayloadPath};

/// The keys of an object with their decoded values.
///
/// For a ConfigMap this is `data` and `binaryData` together (the API bars a key that is in both), for a Secret
/// the decoded `data`.
pub type Keys = BTreeMap<String, Bytes>;

/// What fetching an object brought.
#[derive(Clone)]
pub enum Lookup {
    /// The object is there.
    Found(Arc<Keys>),
    /// The object does not exist; the text is the fetcher's, for example `configmap "app" not found`.
    /// An optional source treats it as an object without keys.
    NotFound(String),
    /// It could not be found out; the text is the fetcher's. `optional` does not help here.
    Failed(String),
}

/// One entry of `items`: which key goes where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyToPath {
    /// The key in the object.
    pub key: String,
    /// The relative path in the volume; may be nested.
    pub path: String,
    /// The mode of this file; the volume's `defaultMode` when absent.
    pub mode: Option<FileMode>,
}

/// A ConfigMap to project.
#[derive(Clone)]
pub struct ConfigMapSource {
    /// The object.
    pub object: Lookup,
    /// The keys to project; all of them when empty.
    pub items: Vec<KeyToPath>,
    /// Whether the object and each key of `items` may be missing.
    pub optional: bool,
}

/// A Secret to project.
#[derive(Clone)]
pub struct SecretSource {
    /// The object.
    pub object: Lookup,
    /// The keys to project; all of them when empty.
    pub items: Vec<KeyToPath>,
    /// Whether the object and each key of `items` may be missing.
    pub optional: bool,
}

/// One file of a downward API source, its value already resolved.
#[derive(Clone)]
pub struct DownwardFile {
    /// The relative path in the volume.
    pub path: String,
    /// The content, or why it could not be resolved (`unsupported fieldPath: …`).
    pub value: Result<Bytes, String>,
    /// The mode of this file; the volume's `defaultMode` when absent.
    pub mode: Option<FileMode>,
}

/// The token of a service account, as one file.
#[derive(Clone)]
pub struct TokenFile {
    /// The relative path in the volume.
    pub path: String,
    /// The token, or why there is none (`failed to fetch token: …`).
    pub token: Result<Bytes, String>,
    /// The mode of this file; the volume's `defaultMode` when absent.
    pub mode: Option<FileMode>,
    /// Who owns it instead of the volume's owner, as an id of the host.
    pub owner: Option<u32>,
}

/// One source of a volume. A configMap, secret or downwardAPI volume has exactly one, a projected volume any
/// number of them.
#[derive(Clone)]
pub enum Source {
    /// Keys of a ConfigMap.
    ConfigMap(ConfigMapSource),
    /// Keys of a Secret.
    Secret(SecretSource),
    /// Fields of the pod itself.
    DownwardApi(Vec<DownwardFile>),
    /// A token of the pod's service account.
    ServiceAccountToken(TokenFile),
}

/// Builds the payload of a volume from its sources, in their order: a later source overwrites an earlier one at
/// the same path.
///
/// # Errors
/// Every source is looked at and all failures are collected; with any failure there is no payload, so a refresh
/// never shows part of a change.
pub fn project(sources: &[Source], default_mode: FileMode) -> Result<Payload, ProjectionError> {
    let mut projection = Projection {
        payload: Payload::new(),
        default_mode,
        failures: Vec::new(),
    };
    for source in sources {
        match source {
            Source::ConfigMap(source) => {
                let missing = |key: &str| Failure::ConfigMapKey { key: key.to_owned() };
                projection.object(&source.object, &source.items, source.optional, missing);
            }
            Source::Secret(source) => {
                let missing = |key: &str| Failure::SecretKey { key: key.to_owned() };
                projection.object(&source.object, &source.items, source.optional, missing);
            }
            Source::DownwardApi(files) => projection.downward(files),
            Source::ServiceAccountToken(file) => projection.token(file),
        }
    }
    projection.finish()
}

/// The sources of a volume do not make a payload; what is projected stays as it is.
///
/// Prints as upstream's aggregate does: one failure as it is, several as `[first, second]`, repeats once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", print_aggregate(.failures))]
pub struct ProjectionError {
    failures: Vec<Failure>,
}

impl ProjectionError {
    /// True when nothing but missing objects, keys or tokens stands in the way: their coming is the cure, and who
    /// provides them hears of it.
    pub fn is_only_missing(&self) -> bool {
        self.failures.iter().all(|failure| {
            matches!(
                failure,
                Failure::NotFound(_)
                    | Failure::ConfigMapKey { .. }
                    | Failure::SecretKey { .. }
                    | Failure::Token(_)
            )
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    NotFound(String),
    #[error("{0}")]
    Lookup(String),
    #[error("configmap references non-existent config key: {key}")]
    ConfigMapKey { key: String },
    #[error("references non-existent secret key: {key}")]
    SecretKey { key: String },
    #[error("{0}")]
    Downward(String),
    #[error("{0}")]
    Token(String),
    #[error(transparent)]
    Path(#[from] PathError),
    #[error(transparent)]
    Conflict(#[from] PathConflict),
}

fn print_aggregate(failures: &[Failure]) -> String {
    let mut texts: Vec<String> = Vec::new();
    for text in failures.iter().map(Failure::to_string) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    match &texts[..] {
        [single] => single.clone(),
        several => format!("[{}]", several.join(", ")),
    }
}

struct Projection {
    payload: Payload,
    default_mode: FileMode,
    failures: Vec<Failure>,
}

impl Projection {
    fn object(
        &mut self,
        object: &Lookup,
        items: &[KeyToPath],
        optional: bool,
        missing: impl Fn(&str) -> Failure,
    ) {
        let nothing = Arc::default();
        let keys: &Arc<Keys> = match object {
            Lookup::Found(keys) => keys,
            Lookup::NotFound(_) if optional => &nothing,
            Lookup::NotFound(text) => return self.failures.push(Failure::NotFound(text.clone())),
            Lookup::Failed(text) => return self.failures.push(Failure::Lookup(text.clone())),
        };
        if items.is_empty() {
            for (key, bytes) in keys.iter() {
                self.place(key, self.file(bytes, None));
            }
            return;
        }
        for item in items {
            match keys.get(&item.key) {
                Some(bytes) => self.place(&item.path, self.file(bytes, item.mode)),
                None if optional => {}
                // The first missing key ends its source, as upstream does: one sentence per source.
                None => return self.failures.push(missing(&item.key)),
            }
        }
    }

    fn downward(&mut self, files: &[DownwardFile]) {
        for file in files {
            match &file.value {
                Ok(bytes) => self.place(&file.path, self.file(bytes, file.mode)),
                Err(text) => self.failures.push(Failure::Downward(text.clone())),
            }
        }
    }

    fn token(&mut self, file: &TokenFile) {
        match &file.token {
            Ok(token) => {
                let owner = file.owner;
                let placed = self.file(token, file.mode);
                self.place(&file.path, PayloadFile { owner, ..placed });
            }
            Err(text) => self.failures.push(Failure::Token(text.clone())),
        }
    }

    fn file(&self, bytes: &Bytes, mode: Option<FileMode>) -> PayloadFile {
        PayloadFile::new(bytes.clone(), mode.unwrap_or(self.default_mode))
    }

    fn place(&mut self, path: &str, file: PayloadFile) {
        let placed = path
            .parse::<PayloadPath>()
            .map_err(Failure::from)
            .and_then(|path| self.payload.insert(path, file).map_err(Failure::from));
        if let Err(failure) = placed {
            self.failures.push(failure);
        }
    }

    fn finish(self) -> Result<Payload, ProjectionError> {
        if self.failures.is_empty() {
            Ok(self.payload)
        } else {
            Err(ProjectionError {
                failures: self.failures,
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(keys: &[(&str, &str)]) -> Lookup {
        let keys = keys
            .iter()
            .map(|(key, value)| ((*key).to_owned(), Bytes::copy_from_slice(value.as_bytes())));
        Lookup::Found(Arc::new(keys.collect()))
    }

    fn absent() -> Lookup {
        Lookup::NotFound("configmap \"app\" not found".to_owned())
    }

    fn item(key: &str, path: &str, mode: Option<u32>) -> KeyToPath {
        let mode = mode.map(|bits| FileMode::new(bits).unwrap());
        KeyToPath {
            key: key.to_owned(),
            path: path.to_owned(),
            mode,
        }
    }

    fn config_map(object: Lookup, items: Vec<KeyToPath>, optional: bool) -> Source {
        Source::ConfigMap(ConfigMapSource {
            object,
            items,
            optional,
        })
    }

    fn secret(object: Lookup, items: Vec<KeyToPath>, optional: bool) -> Source {
        Source::Secret(SecretSource {
            object,
            items,
            optional,
        })
    }

    fn downward(files: &[(&str, Result<&'static str, &str>)]) -> Source {
        let file = |(path, value): &(&str, Result<&'static str, &str>)| DownwardFile {
            path: (*path).to_owned(),
            value: value.map(Bytes::from).map_err(str::to_owned),
            mode: None,
        };
        Source::DownwardApi(files.iter().map(file).collect())
    }

    /// `path=content@mode`, space separated, or the error text.
    fn check(sources: &[Source], expected: &str) {
        let shown = match project(sources, FileMode::DEFAULT) {
            Ok(payload) => payload
                .iter()
                .map(|(path, file)| {
                    format!(
                        "{path}={}@{:o}",
                        String::from_utf8_lossy(&file.bytes),
                        file.mode.bits()
                    )
                })
                .collect::<Vec<_>>()
                .join(" "),
            Err(error) => error.to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn without_items_every_key_is_a_file() {
        check(
            &[config_map(found(&[("a", "1"), ("b", "2")]), vec![], false)],
            "a=1@644 b=2@644",
        );
        check(&[secret(found(&[]), vec![], false)], "");
    }

    #[test]
    fn items_choose_keys_paths_and_modes_and_the_last_path_wins() {
        let object = || found(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let items = vec![item("a", "x/y", Some(0o400)), item("b", "z", None)];
        check(&[config_map(object(), items, false)], "x/y=1@400 z=2@644");
        check(
            &[config_map(
                object(),
                vec![item("a", "z", None), item("b", "z", None)],
                false,
            )],
            "z=2@644",
        );
    }

    #[test]
    fn a_missing_object_or_key_is_an_error_unless_optional() {
        let items = || vec![item("k", "k", None), item("a", "a", None)];
        let object = || found(&[("a", "1")]);
        check(
            &[config_map(object(), items(), false)],
            "configmap references non-existent config key: k",
        );
        check(
            &[secret(object(), items(), false)],
            "references non-existent secret key: k",
        );
        check(&[config_map(object(), items(), true)], "a=1@644");
        check(
            &[config_map(absent(), items(), false)],
            "configmap \"app\" not found",
        );
        check(&[config_map(absent(), items(), true)], "");
    }

    #[test]
    fn a_failed_lookup_is_an_error_even_when_optional() {
        let text = "failed to sync configmap cache: timed out waiting for the condition";
        check(&[config_map(Lookup::Failed(text.to_owned()), vec![], true)], text);
    }

    #[test]
    fn a_projected_volume_merges_in_order_and_collects_every_error() {
        let one = || config_map(found(&[("a", "config"), ("b", "config")]), vec![], false);
        let two = || secret(found(&[("b", "secret")]), vec![], false);
        check(
            &[one(), two(), downward(&[("labels", Ok("x=\"y\""))])],
            "a=config@644 b=secret@644 labels=x=\"y\"@644",
        );
        check(
            &[
                config_map(found(&[]), vec![item("k", "k", None)], false),
                secret(found(&[]), vec![item("s", "s", None)], false),
                config_map(found(&[]), vec![item("k", "other", None)], false),
                downward(&[("f", Err("unsupported fieldPath: spec.x"))]),
            ],
            "[configmap references non-existent config key: k, references non-existent secret key: s, \
             unsupported fieldPath: spec.x]",
        );
    }

    #[test]
    fn a_token_brings_its_own_mode_and_owner() {
        let token = |token: Result<&'static str, &str>| {
            Source::ServiceAccountToken(TokenFile {
                path: "token".to_owned(),
                token: token.map(Bytes::from).map_err(str::to_owned),
                mode: Some(FileMode::new(0o600).unwrap()),
                owner: Some(7),
            })
        };
        check(&[token(Ok("ey"))], "token=ey@600");
        let payload = project(&[token(Ok("ey"))], FileMode::DEFAULT).unwrap();
        assert_eq!(payload.get("token").and_then(|file| file.owner), Some(7));
        check(
            &[token(Err("failed to fetch token: no route"))],
            "failed to fetch token: no route",
        );
    }

    #[test]
    fn bad_paths_and_conflicts_are_refused_before_anything_is_written() {
        let object = || found(&[("a", "1"), ("b", "2")]);
        check(
            &[config_map(object(), vec![item("a", "../x", None)], false)],
            "invalid path: must not contain '..': ../x",
        );
        check(
            &[config_map(
                object(),
                vec![item("a", "foo", None), item("b", "foo/bar", None)],
                false,
            )],
            r#""foo" cannot be a file and the directory of "foo/bar""#,
        );
    }

    #[test]
    fn only_missing_things_are_told_apart_from_other_failures() {
        let missing = project(&[config_map(absent(), vec![], false)], FileMode::DEFAULT).expect_err("absent");
        assert!(missing.is_only_missing());
        let failed = Lookup::Failed("no route".to_owned());
        let failed = project(&[config_map(failed, vec![], false)], FileMode::DEFAULT).expect_err("failed");
        assert!(!failed.is_only_missing());
    }
}
