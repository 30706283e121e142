//! Reads what only OpenAPI knows: list types and keys, merge strategies, required fields.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};
use serde_json::Value;

/// Schema by name: `io.k8s.api.core.v1.PodSpec`.
pub(crate) type Schemas = BTreeMap<String, Value>;

pub(crate) fn read_all(tree: &Path) -> Result<Schemas> {
    let dir = tree.join("api/openapi-spec/v3");
    let mut paths = Vec::new();
    for entry in fs::read_dir(&dir).with_context(|| format!("cannot read {}", dir.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut schemas = Schemas::new();
    for path in paths {
        let document: Value = serde_json::from_slice(&fs::read(&path)?)
            .with_context(|| format!("{} is no JSON", path.display()))?;
        if let Some(found) = document.pointer("/components/schemas").and_then(Value::as_object) {
            schemas.extend(found.iter().map(|(name, schema)| (name.clone(), schema.clone())));
        }
    }
    Ok(schemas)
}
