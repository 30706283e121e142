//! The bill of materials of a program: CycloneDX 1.5, JSON.
//!
//! What is linked is what `cargo tree` says for this program alone and this target; names, licences and edges are those of
//! `cargo metadata`, hashes those of Cargo.lock.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use anyhow::{Context, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use super::image::rfc3339;
use super::{Program, Release, sha256};

/// What cargo knows of all packages.
#[derive(Debug, Deserialize)]
pub(super) struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
    #[serde(skip)]
    checksums: BTreeMap<(String, String), String>,
}

#[derive(Debug, Deserialize)]
struct Package {
    id: String,
    name: String,
    version: String,
    license: Option<String>,
    repository: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Debug, Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

#[derive(Debug, Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Debug, Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

impl Metadata {
    pub(super) fn read(triple: &str) -> anyhow::Result<Self> {
        let json = cargo(&[
            "metadata",
            "--format-version",
            "1",
            "--locked",
            "--filter-platform",
            triple,
        ])?;
        let lock: Lock = toml::from_str(&fs::read_to_string("Cargo.lock")?)?;
        let mut metadata: Self = serde_json::from_slice(&json)?;
        metadata.checksums = lock
            .package
            .into_iter()
            .filter_map(|package| Some(((package.name, package.version), package.checksum?)))
            .collect();
        Ok(metadata)
    }

    pub(super) fn version(&self, name: &str) -> anyhow::Result<&str> {
        let package = self.packages.iter().find(|package| package.name == name);
        Ok(&package
            .with_context(|| format!("there is no package {name}"))?
            .version)
    }

    pub(super) fn bill(&self, program: &Program, release: &Release) -> anyhow::Result<Vec<u8>> {
        let tree = cargo(&[
            "tree",
            "--locked",
            "--package",
            program.package,
            "--target",
            release.architecture.triple,
            "--edges",
            "normal,no-proc-macro",
            "--prefix",
            "none",
            "--format",
            "{p}",
        ])?;
        let linked = linked(&String::from_utf8(tree)?);
        let bill = self.document(program, release, &linked)?;
        let mut text = serde_json::to_vec_pretty(&bill)?;
        text.push(b'\n');
        Ok(text)
    }

    fn document(
        &self,
        program: &Program,
        release: &Release,
        linked: &BTreeSet<(String, String)>,
    ) -> anyhow::Result<Value> {
        let mut parts: Vec<&Package> = self
            .packages
            .iter()
            .filter(|package| linked.contains(&(package.name.clone(), package.version.clone())))
            .collect();
        parts.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
        ensure!(
            parts.len() == linked.len(),
            "cargo tree and cargo metadata name different packages"
        );
        let references: BTreeMap<&str, String> = parts
            .iter()
            .map(|package| (package.id.as_str(), package.reference()))
            .collect();
        let edges: Vec<Value> = self
            .resolve
            .nodes
            .iter()
            .filter_map(|node| {
                let mut to: Vec<&String> = node
                    .dependencies
                    .iter()
                    .filter_map(|id| references.get(id.as_str()))
                    .collect();
                to.sort();
                Some(json!({"ref": references.get(node.id.as_str())?, "dependsOn": to}))
            })
            .collect();
        let root = parts.iter().find(|package| package.name == program.package);
        let root = root.context("a program is part of itself")?;
        let components: Vec<Value> = parts
            .iter()
            .filter(|package| package.id != root.id)
            .map(|package| self.component(package))
            .collect();
        Ok(json!({
            "bomFormat": "CycloneDX",
            "specVersion": "1.5",
            "serialNumber": serial_number(&components),
            "version": 1,
            "metadata": {
                "timestamp": rfc3339(release.time),
                "component": {
                    "bom-ref": root.reference(),
                    "type": "application",
                    "name": program.name,
                    "version": release.version,
                    "licenses": [{"expression": env!("CARGO_PKG_LICENSE")}],
                },
            },
            "components": components,
            "dependencies": edges,
        }))
    }

    fn component(&self, package: &Package) -> Value {
        let mut component = json!({
            "bom-ref": package.reference(),
            "type": "library",
            "name": package.name,
            "version": package.version,
            "purl": package.reference(),
        });
        if let Some(license) = &package.license {
            // Old manifests separate alternatives with a slash.
            component["licenses"] = json!([{"expression": license.replace('/', " OR ")}]);
        }
        if let Some(repository) = &package.repository {
            component["externalReferences"] = json!([{"type": "vcs", "url": repository}]);
        }
        if let Some(hash) = self
            .checksums
            .get(&(package.name.clone(), package.version.clone()))
        {
            component["hashes"] = json!([{"alg": "SHA-256", "content": hash}]);
        }
        component
    }
}

impl Package {
    fn reference(&self) -> String {
        format!("pkg:cargo/{}@{}", self.name, self.version)
    }
}

/// The names and versions in lines such as `hyper v1.12.0` or `hotmap v0.1.0 (/home/…)`.
fn linked(tree: &str) -> BTreeSet<(String, String)> {
    tree.lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once(" v")?;
            let version = rest.split_whitespace().next()?;
            Some((name.to_owned(), version.to_owned()))
        })
        .collect()
}

/// A UUID (version 8: of our own making) that follows from what is listed, so that equal releases have equal bills.
fn serial_number(components: &[Value]) -> String {
    let mut hex = sha256(Value::from(components.to_vec()).to_string().as_bytes());
    hex.replace_range(12..13, "8");
    hex.replace_range(16..17, "8");
    format!(
        "urn:uuid:{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..32]
    )
}

fn cargo(arguments: &[&str]) -> anyhow::Result<Vec<u8>> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let output = Command::new(cargo).args(arguments).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo {} failed: {said}", arguments[0]);
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_cargo_tree_are_names_and_versions() {
        let tree = "hotmap-reload-cli v0.1.0 (/home/a/crates/hotmap-reload)\nhyper v1.12.0\nhyper v1.12.0 (*)\n\nserde v1.0.1\n";
        let expected = [
            ("hotmap-reload-cli", "0.1.0"),
            ("hyper", "1.12.0"),
            ("serde", "1.0.1"),
        ];
        let expected: BTreeSet<_> = expected
            .map(|(name, version)| (name.to_owned(), version.to_owned()))
            .into();
        assert_eq!(linked(tree), expected);
    }

    #[test]
    fn a_serial_number_is_a_uuid_that_follows_from_the_parts() {
        let one = serial_number(&[json!({"name": "a"})]);
        assert_eq!(one, serial_number(&[json!({"name": "a"})]));
        assert_ne!(one, serial_number(&[json!({"name": "b"})]));
        let groups: Vec<usize> = one
            .trim_start_matches("urn:uuid:")
            .split('-')
            .map(str::len)
            .collect();
        assert_eq!(groups, [8, 4, 4, 4, 12]);
    }
}
