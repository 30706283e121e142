//! What is written, read again by other means.

use std::collections::BTreeMap;
use std::io::Read as _;

use flate2::read::GzDecoder;
use serde_json::Value;

use super::*;

fn release() -> Release {
    Release {
        version: "1.2.3".to_owned(),
        architecture: ARCHITECTURES[1],
        time: 1_769_850_307,
        license: b"license".to_vec(),
        notice: b"notice".to_vec(),
    }
}

/// Path, mode and content of what is in an archive, by the format's fields and not by our writer.
fn entries(tar: &[u8]) -> Vec<(String, u32, Vec<u8>)> {
    let text = |bytes: &[u8]| {
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        String::from_utf8(bytes[..end].to_vec()).unwrap()
    };
    let octal = |bytes: &[u8]| u32::from_str_radix(text(bytes).trim(), 8).unwrap();
    let (mut at, mut found) = (0, Vec::new());
    while tar[at] != 0 {
        let header = &tar[at..at + 512];
        let without_sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum::<u32>()
            - header[148..156].iter().map(|byte| u32::from(*byte)).sum::<u32>()
            + 8 * u32::from(b' ');
        assert_eq!(octal(&header[148..156]), without_sum);
        assert_eq!(
            (&header[257..263], octal(&header[136..148])),
            (&b"ustar\0"[..], 1_769_850_307)
        );
        let size = octal(&header[124..136]) as usize;
        found.push((
            text(&header[..100]),
            octal(&header[100..108]),
            tar[at + 512..at + 512 + size].to_vec(),
        ));
        at += 512 + size.next_multiple_of(512);
    }
    assert!(tar[at..].iter().all(|byte| *byte == 0) && tar.len() == at + 1_024);
    found
}

fn unpacked(gzip: &[u8]) -> Vec<u8> {
    let mut content = Vec::new();
    GzDecoder::new(gzip).read_to_end(&mut content).unwrap();
    content
}

#[test]
fn an_image_layout_is_whole_and_every_digest_is_that_of_its_blob() {
    let files = image::layout(&release(), &PROGRAMS[1], b"binary").unwrap();
    let files: BTreeMap<&str, &[u8]> = files
        .iter()
        .map(|(path, content)| (path.as_str(), &content[..]))
        .collect();
    let blob = |descriptor: &Value| {
        let digest = descriptor["digest"]
            .as_str()
            .unwrap()
            .strip_prefix("sha256:")
            .unwrap();
        let blob = files[&format!("blobs/sha256/{digest}")[..]];
        assert_eq!(
            (sha256(blob), blob.len() as u64),
            (digest.to_owned(), descriptor["size"].as_u64().unwrap())
        );
        blob
    };
    assert_eq!(files["oci-layout"], br#"{"imageLayoutVersion":"1.0.0"}"#);
    let index: Value = serde_json::from_slice(files["index.json"]).unwrap();
    assert_eq!(index["manifests"][0]["platform"]["architecture"], "arm64");
    let manifest: Value = serde_json::from_slice(blob(&index["manifests"][0])).unwrap();
    let config: Value = serde_json::from_slice(blob(&manifest["config"])).unwrap();
    assert_eq!(config["config"]["Entrypoint"][0], "/hotmap-reload");
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["created"], "2026-01-31T09:05:07Z");
    let tar = unpacked(blob(&manifest["layers"][0]));
    assert_eq!(
        config["rootfs"]["diff_ids"][0],
        format!("sha256:{}", sha256(&tar))
    );
    assert_eq!(files.len(), 5, "two files and three blobs");

    let entries = entries(&tar);
    let paths: Vec<(&str, u32)> = entries
        .iter()
        .map(|(path, mode, _)| (path.as_str(), *mode))
        .collect();
    let expected = [
        ("etc/", 0o755),
        ("etc/group", 0o644),
        ("etc/nsswitch.conf", 0o644),
        ("etc/passwd", 0o644),
        ("hotmap-reload", 0o755),
    ];
    assert_eq!(paths, expected);
    assert_eq!(entries[4].2, b"binary");
}

#[test]
fn the_same_release_is_the_same_bytes() {
    let twice = [0, 1].map(|_| {
        let image = image::layout(&release(), &PROGRAMS[0], b"binary").unwrap();
        let package = debian::package(&release(), &PROGRAMS[0], b"binary").unwrap();
        (image, package)
    });
    assert_eq!(twice[0], twice[1]);
}

#[test]
fn a_debian_package_has_its_three_members() {
    let package = debian::package(&release(), &PROGRAMS[0], b"odd").unwrap();
    let mut rest = package.strip_prefix(b"!<arch>\n").unwrap();
    let mut members = BTreeMap::new();
    while !rest.is_empty() {
        let header = std::str::from_utf8(&rest[..60]).unwrap();
        assert!(header.ends_with("`\n"));
        let size: usize = header[48..58].trim().parse().unwrap();
        members.insert(header[..16].trim().to_owned(), &rest[60..60 + size]);
        rest = &rest[60 + size.next_multiple_of(2)..];
    }
    assert_eq!(members["debian-binary"], b"2.0\n");
    let control = entries(&unpacked(members["control.tar.gz"]));
    let fields = String::from_utf8(control[1].2.clone()).unwrap();
    for field in [
        "Package: hotmap\n",
        "Version: 1.2.3\n",
        "Architecture: arm64\n",
        "Installed-Size: 1\n",
    ] {
        assert!(fields.contains(field), "{field} in {fields}");
    }
    let data = entries(&unpacked(members["data.tar.gz"]));
    let program = data
        .iter()
        .find(|(path, _, _)| path == "./usr/bin/hotmap")
        .unwrap();
    assert_eq!((program.1, &program.2[..]), (0o755, &b"odd"[..]));
}

#[test]
fn times_are_written_as_dates() {
    for (seconds, text) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_399, "2000-02-28T23:59:59Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (1_769_850_307, "2026-01-31T09:05:07Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
    ] {
        assert_eq!(image::rfc3339(seconds), text);
    }
}

#[test]
fn only_elf_files_without_an_interpreter_are_static() {
    let this = std::fs::read("/proc/self/exe").unwrap();
    assert!(!is_static(&this), "tests are linked dynamically");
    assert!(!is_static(b"#!/bin/sh\n"));
    assert!(!is_static(b"\x7fELF\x02\x01"));
    let mut small = [0_u8; 120];
    small[..6].copy_from_slice(b"\x7fELF\x02\x01");
    // One entry of 56 bytes at 64, of type PT_LOAD, then of type PT_INTERP.
    (small[32], small[54], small[56], small[64]) = (64, 56, 1, 1);
    assert!(is_static(&small));
    small[64] = 3;
    assert!(!is_static(&small));
}

#[test]
fn targets_of_releases_have_names_that_others_use() {
    assert_eq!(
        architecture(Some("aarch64-unknown-linux-gnu")).unwrap().name,
        "arm64"
    );
    assert!(architecture(Some("x86_64-unknown-linux-musl")).is_err());
    assert!(architecture(None).is_ok());
}
