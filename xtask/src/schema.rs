//! Three public sources become one table per API package.
//!
//! ```text
//! generated.proto   number, wire type               ┐
//! types.go          JSON name, omitempty, pointer    ├─▶ tables/<group>_v1.rs, tables/kinds.rs
//! OpenAPI v3        list type, keys, merge strategy  ┘
//! ```
//!
//! Fields of the first two are joined by their wire number. Descriptions are not taken over.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use anyhow::{Context, Result};

use crate::packages::PACKAGES;

mod golang;
mod join;
mod openapi;
mod print;
mod proto;

pub(crate) fn generate(from: &Path, to: &Path) -> Result<()> {
    let sources = join::Sources {
        proto: proto::read_all(from)?,
        golang: golang::read_all(from)?,
        openapi: openapi::read_all(from)?,
    };
    let tables = join::join(&sources)?;
    fs::create_dir_all(to).with_context(|| format!("cannot create {}", to.display()))?;
    for package in PACKAGES {
        let text = print::table(package, &tables);
        write(&to.join(format!("{}.rs", package.module)), &text)?;
    }
    write(&to.join("kinds.rs"), &print::kinds(&tables))?;
    let messages: BTreeMap<_, _> = tables.messages.iter().collect();
    let kinds: BTreeSet<_> = tables.kinds.iter().collect();
    println!("{} messages, {} kinds", messages.len(), kinds.len());
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
}
