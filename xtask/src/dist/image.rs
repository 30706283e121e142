//! An image with one program and nothing else, as an OCI image layout (image-spec 1.0): no registry, no daemon, no root.
//!
//! ```text
//!   oci-layout
//!   index.json ─▶ blobs/sha256/<manifest> ─┬─▶ blobs/sha256/<config>
//!                                          └─▶ blobs/sha256/<layer>   /NAME, /etc/{passwd,group,nsswitch.conf}
//! ```

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::tarball::Tarball;
use super::{Program, Release, gzip, sha256};

/// Who the program runs as if the pod says nothing: the user that distroless images call nonroot.
const NONROOT: u32 = 65_532;

/// Writes the layout; what was in the directory is replaced.
pub(super) fn write_layout(
    directory: &Path,
    release: &Release,
    program: &Program,
    binary: &[u8],
) -> anyhow::Result<()> {
    if directory.exists() {
        fs::remove_dir_all(directory)?;
    }
    let blobs = directory.join("blobs/sha256");
    fs::create_dir_all(&blobs)?;
    for (path, content) in layout(release, program, binary)? {
        fs::write(directory.join(path), content)?;
    }
    Ok(())
}

/// The files of a layout by their paths in it.
pub(super) fn layout(
    release: &Release,
    program: &Program,
    binary: &[u8],
) -> anyhow::Result<Vec<(String, Vec<u8>)>> {
    let tar = layer(release, program, binary)?;
    let layer = gzip(&tar)?;
    let config = serde_json::to_vec(&config(release, program, &sha256(&tar)))?;
    let manifest = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor("application/vnd.oci.image.config.v1+json", &config),
        "layers": [descriptor("application/vnd.oci.image.layer.v1.tar+gzip", &layer)],
    }))?;
    let mut entry = descriptor("application/vnd.oci.image.manifest.v1+json", &manifest);
    entry["platform"] = json!({"architecture": release.architecture.name, "os": "linux"});
    entry["annotations"] = json!({"org.opencontainers.image.ref.name": release.version});
    let index = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [entry],
    }))?;
    let mut files = vec![
        (
            "oci-layout".to_owned(),
            br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec(),
        ),
        ("index.json".to_owned(), index),
    ];
    files.extend([layer, config, manifest].map(|blob| (format!("blobs/sha256/{}", sha256(&blob)), blob)));
    Ok(files)
}

fn layer(release: &Release, program: &Program, binary: &[u8]) -> anyhow::Result<Vec<u8>> {
    let passwd =
        format!("root:x:0:0:root:/:/sbin/nologin\nnonroot:x:{NONROOT}:{NONROOT}:nonroot:/:/sbin/nologin\n");
    let group = format!("root:x:0:\nnonroot:x:{NONROOT}:\n");
    let mut tar = Tarball::new(release.time);
    tar.directory("etc", 0o755)?;
    tar.file("etc/group", 0o644, group.as_bytes())?;
    // What a static glibc can do by itself.
    tar.file(
        "etc/nsswitch.conf",
        0o644,
        b"passwd: files\ngroup: files\nhosts: files dns\n",
    )?;
    tar.file("etc/passwd", 0o644, passwd.as_bytes())?;
    tar.file(program.name, 0o755, binary)?;
    Ok(tar.finish())
}

fn config(release: &Release, program: &Program, diff_id: &str) -> Value {
    let created = rfc3339(release.time);
    let name = program.name;
    json!({
        "created": created,
        "architecture": release.architecture.name,
        "os": "linux",
        "config": {
            "User": format!("{NONROOT}:{NONROOT}"),
            "Entrypoint": [format!("/{name}")],
            "WorkingDir": "/",
            "Labels": {
                "org.opencontainers.image.title": name,
                "org.opencontainers.image.description": program.summary,
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": env!("CARGO_PKG_LICENSE"),
                "org.opencontainers.image.source": env!("CARGO_PKG_REPOSITORY"),
            },
        },
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{diff_id}")]},
        "history": [{"created": created, "created_by": "cargo xtask dist"}],
    })
}

fn descriptor(media_type: &str, blob: &[u8]) -> Value {
    json!({"mediaType": media_type, "digest": format!("sha256:{}", sha256(blob)), "size": blob.len()})
}

/// Seconds since 1970 as `2026-01-31T09:05:07Z`. Days to a date by the algorithm of Howard Hinnant's `civil_from_days`.
pub(super) fn rfc3339(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let since_0000_03_01 = days + 719_468;
    let (era, day_of_era) = (since_0000_03_01 / 146_097, since_0000_03_01 % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
