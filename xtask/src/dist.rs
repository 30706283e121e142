//! What a release is made of: static binaries, Debian packages, image layouts, bills of materials, checksums.
//!
//! ```text
//!   cargo build --target T, crt-static ─▶ binary ─┬─▶ NAME_VERSION_linux_ARCH.tar.gz
//!                                                 ├─▶ NAME_VERSION_ARCH.deb
//!                                                 └─▶ images/NAME_VERSION_linux_ARCH/   an OCI image layout
//!   cargo metadata, cargo tree, Cargo.lock ───────────▶ NAME_VERSION_linux_ARCH.cdx.json
//!   all of them ──────────────────────────────────────▶ SHA256SUMS
//! ```
//!
//! The same commit and the same compiler give the same bytes: all times are the commit's (or `SOURCE_DATE_EPOCH`), all
//! owners are root, entries are sorted.

mod bill;
mod debian;
mod image;
mod tarball;

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail, ensure};
use clap::Args;
use flate2::{Compression, GzBuilder};
use sha2::{Digest as _, Sha256};

use tarball::Tarball;

/// Flags of `cargo xtask dist`.
#[derive(Debug, Args)]
pub(crate) struct DistArgs {
    /// What to compile for: x86_64-unknown-linux-gnu or aarch64-unknown-linux-gnu. By default this machine.
    #[arg(long, value_name = "TRIPLE")]
    target: Option<String>,
    /// Only this program: `hotmap` or `hotmap-reload`. Repeatable.
    #[arg(long, value_name = "NAME")]
    program: Vec<String>,
    /// Take the binaries from here instead of compiling them.
    #[arg(long, value_name = "DIR")]
    binaries: Option<PathBuf>,
    /// Where everything goes; what is there under the same names is replaced.
    #[arg(long, value_name = "DIR", default_value = "target/dist")]
    out: PathBuf,
}

/// One program that is released.
struct Program {
    /// Of the binary, the package and the image.
    name: &'static str,
    /// The crate it is compiled from. Each is compiled by itself: together their dependencies would get the union of
    /// both's features.
    package: &'static str,
    /// The profile of Cargo.toml.
    profile: &'static str,
    /// One line for a person who looks through packages.
    summary: &'static str,
}

const PROGRAMS: [Program; 2] = [
    Program {
        name: "hotmap",
        package: "hotmap",
        profile: "release",
        summary: "delivers ConfigMap and Secret changes to the processes that use them",
    },
    Program {
        name: "hotmap-reload",
        package: "hotmap-reload-cli",
        profile: "slim",
        summary: "tells processes of changed configuration: reload, sync, run and probe",
    },
];

/// A target and what others call it.
#[derive(Debug, Clone, Copy)]
struct Architecture {
    triple: &'static str,
    /// Of Debian, Go and OCI alike.
    name: &'static str,
}

const ARCHITECTURES: [Architecture; 2] = [
    Architecture {
        triple: "x86_64-unknown-linux-gnu",
        name: "amd64",
    },
    Architecture {
        triple: "aarch64-unknown-linux-gnu",
        name: "arm64",
    },
];

/// What all artefacts of a release have in common.
struct Release {
    version: String,
    architecture: Architecture,
    /// Seconds since 1970: the time of everything in it.
    time: u64,
    license: Vec<u8>,
    notice: Vec<u8>,
}

pub(crate) fn run(args: &DistArgs) -> anyhow::Result<()> {
    let architecture = architecture(args.target.as_deref())?;
    let metadata = bill::Metadata::read(architecture.triple)?;
    let release = Release {
        version: metadata.version("hotmap")?.to_owned(),
        architecture,
        time: time_of_sources()?,
        license: read(Path::new("LICENSE"))?,
        notice: read(Path::new("NOTICE"))?,
    };
    let unknown = args
        .program
        .iter()
        .find(|name| PROGRAMS.iter().all(|program| program.name != **name));
    ensure!(
        unknown.is_none(),
        "there is no program {}",
        unknown.map_or("", |name| name)
    );
    fs::create_dir_all(&args.out)?;
    for program in PROGRAMS {
        if !args.program.is_empty() && !args.program.iter().any(|name| name == program.name) {
            continue;
        }
        let binary = match &args.binaries {
            Some(directory) => directory.join(program.name),
            None => compile(&program, architecture)?,
        };
        let binary = read(&binary)?;
        ensure!(
            is_static(&binary),
            "{} is not static: it names an interpreter (--binaries wants binaries of +crt-static)",
            program.name
        );
        release.write(&program, &binary, &metadata, &args.out)?;
    }
    write_sums(&args.out)
}

impl Release {
    fn write(
        &self,
        program: &Program,
        binary: &[u8],
        metadata: &bill::Metadata,
        out: &Path,
    ) -> anyhow::Result<()> {
        let stem = format!(
            "{}_{}_linux_{}",
            program.name, self.version, self.architecture.name
        );
        let mut archive = Tarball::new(self.time);
        archive.file("LICENSE", 0o644, &self.license)?;
        archive.file("NOTICE", 0o644, &self.notice)?;
        archive.file(program.name, 0o755, binary)?;
        write(out, &format!("{stem}.tar.gz"), &gzip(&archive.finish())?)?;

        let package = debian::package(self, program, binary)?;
        let name = format!("{}_{}_{}.deb", program.name, self.version, self.architecture.name);
        write(out, &name, &package)?;

        let bill = metadata.bill(program, self)?;
        write(out, &format!("{stem}.cdx.json"), &bill)?;

        let image = out.join("images").join(&stem);
        image::write_layout(&image, self, program, binary)?;
        println!("{}", image.display());
        Ok(())
    }
}

/// This machine's, if none is named.
fn architecture(triple: Option<&str>) -> anyhow::Result<Architecture> {
    let host = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let triple = triple.unwrap_or(&host);
    let found = ARCHITECTURES
        .into_iter()
        .find(|architecture| architecture.triple == triple);
    found.with_context(|| format!("{triple} is not among the targets of releases"))
}

/// Always with `--target`: without it the flags would hold for proc macros too, which are loaded dynamically.
fn compile(program: &Program, architecture: Architecture) -> anyhow::Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(PathBuf::from("target"), PathBuf::from);
    let status = Command::new(cargo)
        .args([
            "build",
            "--locked",
            "--profile",
            program.profile,
            "--package",
            program.package,
        ])
        .args(["--bin", program.name, "--target", architecture.triple])
        .env("RUSTFLAGS", "-C target-feature=+crt-static")
        .status()?;
    ensure!(status.success(), "{} cannot be compiled", program.name);
    Ok(target
        .join(architecture.triple)
        .join(program.profile)
        .join(program.name))
}

/// Whether an ELF file of 64 bits has no `PT_INTERP`: nothing is loaded beside it.
fn is_static(binary: &[u8]) -> bool {
    const PT_INTERP: u32 = 3;
    let number = |at: usize, len: usize| {
        let bytes = binary.get(at..at + len)?;
        Some(
            bytes
                .iter()
                .rev()
                .fold(0_u64, |number, byte| number << 8 | u64::from(*byte)),
        )
    };
    let has_interpreter = || {
        // The fields of Elf64_Ehdr and Elf64_Phdr, little-endian as both of our architectures are.
        let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
        let types = (0..count).map(|index| number(usize::try_from(table + index * size).ok()?, 4));
        types
            .collect::<Option<Vec<_>>>()
            .map(|types| types.contains(&u64::from(PT_INTERP)))
    };
    binary.starts_with(b"\x7fELF\x02\x01") && has_interpreter() == Some(false)
}

fn time_of_sources() -> anyhow::Result<u64> {
    if let Ok(given) = std::env::var("SOURCE_DATE_EPOCH") {
        return given.parse().context("SOURCE_DATE_EPOCH is no number of seconds");
    }
    let git = Command::new("git").args(["log", "-1", "--format=%ct"]).output()?;
    let text = String::from_utf8(git.stdout)?;
    text.trim()
        .parse()
        .context("git does not tell the commit's time; SOURCE_DATE_EPOCH can")
}

/// Without a name and a time inside, so that equal content is equal bytes.
fn gzip(content: &[u8]) -> anyhow::Result<Vec<u8>> {
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    encoder.write_all(content)?;
    Ok(encoder.finish()?)
}

fn sha256(content: &[u8]) -> String {
    Sha256::digest(content)
        .iter()
        .fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

fn read(path: &Path) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| format!("cannot read {}", path.display()))
}

fn write(out: &Path, name: &str, content: &[u8]) -> anyhow::Result<()> {
    let path = out.join(name);
    fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
    println!("{}", path.display());
    Ok(())
}

/// Of all files, and of the index of each image: it holds the digests of all its blobs.
fn write_sums(out: &Path) -> anyhow::Result<()> {
    let mut names: Vec<String> = Vec::new();
    for entry in fs::read_dir(out)? {
        let entry = entry?;
        let name = entry
            .file_name()
            .into_string()
            .ok()
            .context("a file's name is not UTF-8")?;
        if entry.file_type()?.is_file() && name != "SHA256SUMS" {
            names.push(name);
        }
    }
    if let Ok(images) = fs::read_dir(out.join("images")) {
        for image in images {
            let name = image?
                .file_name()
                .into_string()
                .ok()
                .context("an image's name is not UTF-8")?;
            names.push(format!("images/{name}/index.json"));
        }
    }
    if names.is_empty() {
        bail!("there is nothing in {}", out.display());
    }
    names.sort();
    let mut sums = String::new();
    for name in names {
        writeln!(sums, "{}  {name}", sha256(&read(&out.join(&name))?))?;
    }
    write(out, "SHA256SUMS", sums.as_bytes())
}

#[cfg(test)]
mod tests;
