//! From the objects as they are now to the files that shall be: no clock, no disk, no network.
//!
//! ```text
//!   labelled objects, by namespace, name ─┐
//!   named objects, in the order typed    ─┴─▶ one payload: of two that have the same key, the later one wins
//! ```

use std::collections::BTreeMap;
use std::fmt;

use hotmap_volume::{FileMode, Payload, PayloadFile, PayloadPath};

use crate::sync::contents::{Address, Found, UrlContents, UrlKey};
use crate::sync::object::{Document, ObjectKind, ObjectVersion};
use crate::sync::sidecar::{KeyFile, SidecarRules};

/// All files of one revision together; what is larger is no configuration, and is held in memory twice.
const PAYLOAD_BYTES_MAX: usize = 64 * 1024 * 1024;

/// One set of objects that is followed with one watch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Selection {
    pub(crate) kind: ObjectKind,
    /// `None`: all namespaces.
    pub(crate) namespace: Option<String>,
    pub(crate) who: Who,
    /// Where beneath DIR the keys go.
    pub(crate) subdirectory: Option<String>,
}

/// Which objects of a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Who {
    /// The one of this name: it has to be there.
    Named(String),
    /// All whose labels match, of which there may be none.
    Labelled(String),
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = match &self.namespace {
            Some(namespace) => format!("in namespace {namespace:?}"),
            None => "in all namespaces".to_owned(),
        };
        match &self.who {
            Who::Named(name) => write!(f, "{}/{name} {place}", self.kind),
            Who::Labelled(selector) => {
                write!(f, "{} with labels {selector:?} {place}", self.kind.resource())
            }
        }
    }
}

/// The modes of files by where their content comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Modes {
    pub(crate) config_map: FileMode,
    pub(crate) secret: FileMode,
}

impl Modes {
    fn of(self, kind: ObjectKind) -> FileMode {
        match kind {
            ObjectKind::ConfigMap => self.config_map,
            ObjectKind::Secret => self.secret,
        }
    }
}

/// Everything that has been heard of the objects.
#[derive(Debug)]
pub(crate) struct World {
    followed: Vec<Followed>,
    modes: Modes,
    is_optional: bool,
    sidecar: Option<SidecarRules>,
    /// What was found at the URLs of keys.
    contents: UrlContents,
}

#[derive(Debug)]
struct Followed {
    selection: Selection,
    is_heard: bool,
    objects: BTreeMap<(String, String), Document>,
}

/// What became of the content of an object that is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removal {
    /// It was named: its last content stays.
    Kept,
    /// It was one of those that matched, or optional: its files go.
    Removed,
}

/// What the directory shall hold.
#[derive(Debug)]
pub(crate) enum Desired {
    /// Not yet everything is there.
    Waiting(Waiting),
    /// The objects make no set of files; why.
    Impossible(String),
    /// This.
    Revision(DesiredRevision),
}

/// Whom the first revision waits for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Waiting {
    /// The API has not told about these.
    pub(crate) unheard: Vec<String>,
    /// The API has told that these do not exist.
    pub(crate) missing: Vec<String>,
}

/// One state of all objects, as files.
#[derive(Debug, Clone)]
pub(crate) struct DesiredRevision {
    pub(crate) payload: Payload,
    /// What it was made from, in order.
    pub(crate) versions: Vec<ObjectVersion>,
    /// Paths that more than one object has: the path, who lost, who won.
    pub(crate) overridden: Vec<Overridden>,
    /// Objects and keys that were left out, each with a sentence.
    pub(crate) refused: Vec<String>,
    /// Whether the versions alone do not say what it holds, because content of URLs is in it.
    pub(crate) has_fetched: bool,
}

/// A path that two objects have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Overridden {
    pub(crate) path: String,
    pub(crate) loser: String,
    pub(crate) winner: String,
}

impl World {
    /// Knows nothing yet. `selections` are in the order in which they are merged.
    pub(crate) fn new(
        selections: Vec<Selection>,
        modes: Modes,
        is_optional: bool,
        sidecar: Option<SidecarRules>,
    ) -> Self {
        let followed = selections
            .into_iter()
            .map(|selection| Followed {
                selection,
                is_heard: false,
                objects: BTreeMap::new(),
            })
            .collect();
        Self {
            followed,
            modes,
            is_optional,
            sidecar,
            contents: UrlContents::default(),
        }
    }

    /// The selection with this number.
    pub(crate) fn selection(&self, number: usize) -> &Selection {
        &self.followed[number].selection
    }

    /// All objects of a selection, for the first time or anew.
    pub(crate) fn replace(&mut self, number: usize, documents: Vec<Document>) {
        let keeps_gone = self.keeps_gone(number);
        let followed = &mut self.followed[number];
        followed.is_heard = true;
        if !keeps_gone || !documents.is_empty() {
            followed.objects.clear();
        }
        for document in documents {
            followed.objects.insert(key(&document), document);
        }
    }

    /// An object is new or another than before.
    pub(crate) fn apply(&mut self, number: usize, document: Document) {
        self.followed[number].objects.insert(key(&document), document);
    }

    /// An object is gone, or matches no longer.
    pub(crate) fn delete(&mut self, number: usize, namespace: &str, name: &str) -> Removal {
        if self.keeps_gone(number) {
            return Removal::Kept;
        }
        let key = (namespace.to_owned(), name.to_owned());
        self.followed[number].objects.remove(&key);
        Removal::Removed
    }

    /// A named object has to be there, unless it is optional, and keeps its last content when it goes.
    fn keeps_gone(&self, number: usize) -> bool {
        matches!(self.followed[number].selection.who, Who::Named(_)) && !self.is_optional
    }

    /// The URLs that are to be asked for anew, because of what was heard.
    pub(crate) fn urls_to_ask(&mut self) -> Vec<(UrlKey, Address)> {
        let Some(rules) = self.sidecar.as_ref().filter(|rules| rules.fetches_urls) else {
            return Vec::new();
        };
        let mut wanted = BTreeMap::new();
        for document in self
            .followed
            .iter()
            .flat_map(|followed| followed.objects.values())
        {
            if rules.subdirectory(document).is_err() {
                continue;
            }
            for (key, value) in &document.keys {
                if matches!(rules.file(document, key), Ok(KeyFile::OfUrl(_))) {
                    let address = Address {
                        url: value.clone(),
                        resource_version: document.version.resource_version.clone(),
                    };
                    wanted.insert(UrlKey::of(&document.version, key), address);
                }
            }
        }
        self.contents.want(wanted)
    }

    /// What came of asking for URLs.
    pub(crate) fn contents(&self) -> &UrlContents {
        &self.contents
    }

    /// See [`UrlContents::answered`].
    pub(crate) fn contents_mut(&mut self) -> &mut UrlContents {
        &mut self.contents
    }

    /// What all that makes.
    pub(crate) fn desired(&self) -> Desired {
        let waiting = self.waiting();
        if waiting != Waiting::default() {
            return Desired::Waiting(waiting);
        }
        let mut merge = Merge::default();
        for followed in &self.followed {
            for document in followed.objects.values() {
                if let Err(why) = self.add(&mut merge, followed, document) {
                    return Desired::Impossible(why);
                }
            }
        }
        Desired::Revision(DesiredRevision {
            payload: merge.payload,
            versions: merge.versions,
            overridden: merge.overridden,
            refused: merge.refused,
            has_fetched: !self.contents.is_empty(),
        })
    }

    fn waiting(&self) -> Waiting {
        let mut waiting = Waiting::default();
        for (number, followed) in self.followed.iter().enumerate() {
            if !followed.is_heard {
                waiting.unheard.push(followed.selection.to_string());
            } else if self.keeps_gone(number) && followed.objects.is_empty() {
                waiting.missing.push(followed.selection.to_string());
            }
        }
        waiting
            .unheard
            .extend(self.contents.unanswered().map(UrlKey::to_string));
        waiting
    }

    fn add(&self, merge: &mut Merge, followed: &Followed, document: &Document) -> Result<(), String> {
        let subdirectory = match &self.sidecar {
            None => followed.selection.subdirectory.clone(),
            Some(rules) => match rules.subdirectory(document) {
                Ok(subdirectory) => subdirectory,
                Err(why) => {
                    merge.refused.push(why);
                    return Ok(());
                }
            },
        };
        let kind = document.version.kind;
        merge.versions.push(document.version.clone());
        for (key, bytes) in &document.keys {
            let file = match &self.sidecar {
                None => Ok(KeyFile::OfValue(key.clone())),
                Some(rules) => rules.file(document, key),
            };
            let named = file.and_then(|file| match file {
                KeyFile::OfValue(name) => Ok((name, bytes)),
                KeyFile::OfUrl(name) => {
                    let url = UrlKey::of(&document.version, key);
                    match self.contents.find(&url) {
                        Found::Content(bytes) => Ok((name, bytes)),
                        Found::Nothing(why) => Err(format!("{url} is left out: {why}")),
                    }
                }
            });
            let (name, bytes) = match named {
                Ok(named) => named,
                Err(why) => {
                    merge.refused.push(why);
                    continue;
                }
            };
            let path = match &subdirectory {
                Some(subdirectory) => format!("{subdirectory}/{name}"),
                None => name,
            };
            merge.add(
                &path,
                PayloadFile::new(bytes.clone(), self.modes.of(kind)),
                document,
            )?;
        }
        Ok(())
    }
}

#[derive(Default)]
struct Merge {
    payload: Payload,
    versions: Vec<ObjectVersion>,
    overridden: Vec<Overridden>,
    refused: Vec<String>,
    owners: BTreeMap<String, String>,
    bytes: usize,
}

impl Merge {
    fn add(&mut self, path: &str, file: PayloadFile, document: &Document) -> Result<(), String> {
        let who = shown(&document.version);
        let path: PayloadPath = path.parse().map_err(|error| format!("{who}: {error}"))?;
        let name = path.as_str().to_owned();
        self.bytes += file.bytes.len();
        let replaced = self
            .payload
            .insert(path, file)
            .map_err(|error| format!("{who}: {error}"))?;
        if let Some(replaced) = replaced {
            self.bytes -= replaced.bytes.len();
        }
        if self.bytes > PAYLOAD_BYTES_MAX {
            return Err(format!(
                "all files together have more than {PAYLOAD_BYTES_MAX} bytes"
            ));
        }
        if let Some(loser) = self.owners.insert(name.clone(), who.clone()) {
            self.overridden.push(Overridden {
                path: name,
                loser,
                winner: who,
            });
        }
        Ok(())
    }
}

fn key(document: &Document) -> (String, String) {
    (document.version.namespace.clone(), document.version.name.clone())
}

/// `shop/configmap/app`.
pub(crate) fn shown(version: &ObjectVersion) -> String {
    let ObjectVersion {
        kind,
        namespace,
        name,
        ..
    } = version;
    format!("{namespace}/{kind}/{name}")
}

#[cfg(test)]
mod tests;
