//! A Debian package: an `ar` archive of two tarballs (`deb(5)`).

use std::fmt::Write as _;

use super::tarball::Tarball;
use super::{Program, Release, gzip};

pub(super) fn package(release: &Release, program: &Program, binary: &[u8]) -> anyhow::Result<Vec<u8>> {
    let name = program.name;
    let mut data = Tarball::new(release.time);
    for directory in [".", "./usr", "./usr/bin"] {
        data.directory(directory, 0o755)?;
    }
    data.file(&format!("./usr/bin/{name}"), 0o755, binary)?;
    let papers = format!("./usr/share/doc/{name}");
    for directory in ["./usr/share", "./usr/share/doc", &papers] {
        data.directory(directory, 0o755)?;
    }
    let copyright = [&release.notice[..], b"\n", &release.license[..]].concat();
    data.file(&format!("{papers}/copyright"), 0o644, &copyright)?;

    let mut control = Tarball::new(release.time);
    control.directory(".", 0o755)?;
    let fields = fields(release, program, binary.len() + copyright.len());
    control.file("./control", 0o644, fields.as_bytes())?;

    let mut archive = b"!<arch>\n".to_vec();
    member(&mut archive, release.time, "debian-binary", b"2.0\n");
    member(
        &mut archive,
        release.time,
        "control.tar.gz",
        &gzip(&control.finish())?,
    );
    member(&mut archive, release.time, "data.tar.gz", &gzip(&data.finish())?);
    Ok(archive)
}

/// The binary is static: it depends on nothing. Certificates for https are a suggestion of the system's.
fn fields(release: &Release, program: &Program, installed_bytes: usize) -> String {
    let mut fields = String::new();
    for (name, value) in [
        ("Package", program.name),
        ("Version", &release.version),
        ("Architecture", release.architecture.name),
        ("Maintainer", "the hotmap authors <noreply@hotmap.dev>"),
        ("Installed-Size", &installed_bytes.div_ceil(1_024).to_string()),
        ("Suggests", "ca-certificates"),
        ("Section", "admin"),
        ("Priority", "optional"),
        ("Homepage", env!("CARGO_PKG_REPOSITORY")),
        ("Description", program.summary),
    ] {
        let _ = writeln!(fields, "{name}: {value}");
    }
    fields
}

fn member(archive: &mut Vec<u8>, time: u64, name: &str, content: &[u8]) {
    let header = format!(
        "{name:<16}{time:<12}{:<6}{:<6}{:<8}{:<10}`\n",
        0,
        0,
        "100644",
        content.len()
    );
    archive.extend_from_slice(header.as_bytes());
    archive.extend_from_slice(content);
    if content.len() % 2 == 1 {
        archive.push(b'\n');
    }
}
