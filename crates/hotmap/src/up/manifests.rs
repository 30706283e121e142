//! `-f`: applies manifests as `kubectl apply` would, and follows directories of them.
//!
//! A file is applied once, at start, and whatever is wrong with it ends the start. A directory is followed for as long as `up`
//! runs: a file in it that is wrong is named, and the rest is applied. What is in neither any more stays, unless `--prune` was
//! given: then what this instance has applied from the directory is deleted (ADR 56).

mod apply;
mod complaint;
mod directory;
mod files;
mod follow;
mod record;
mod target;

use std::path::PathBuf;

use anyhow::Context;
use hotmap_client::Client;
use tokio::task::spawn_blocking;

use apply::{Applied, apply};
pub(super) use follow::Followed;

/// Where manifests come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Source {
    /// Standard input, to its end.
    StandardInput,
    /// One file.
    File(PathBuf),
    /// The .yaml, .yml and .json files in a directory, not those beneath it.
    Directory(PathBuf),
}

impl Source {
    /// What is meant by the value of `-f`; `None` if nothing is there.
    pub(crate) fn of(path: PathBuf) -> Option<Self> {
        if path.as_os_str() == "-" {
            Some(Self::StandardInput)
        } else if path.is_dir() {
            Some(Self::Directory(path))
        } else {
            path.exists().then_some(Self::File(path))
        }
    }
}

/// Applies every manifest once, file by file in order.
///
/// Stops at the first that is refused: what was applied before it stays.
pub(in crate::up) async fn apply_once(client: &Client, sources: &[Source]) -> anyhow::Result<Vec<Applied>> {
    let mut all = Vec::new();
    for source in sources {
        let read = source.clone();
        for file in spawn_blocking(move || files::of_source(&read)).await?? {
            for document in files::objects(&file.bytes).with_context(|| file.label.clone())? {
                let applied = apply(client, document).await;
                all.push(applied.with_context(|| file.label.clone())?);
            }
        }
    }
    Ok(all)
}
