//! What is mounted where, from a `mountinfo` of `/proc`: which file systems of the host lie under its root, and what is stacked
//! at one place.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// File systems that hold the host's own files. Others (proc, sysfs, tmpfs, cgroups, FUSE, other overlays) are made anew for a
/// container or have no business in it.
const REAL: [&str; 13] = [
    "ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs", "zfs", "bcachefs", "jfs", "nilfs2", "erofs", "squashfs",
    "reiserfs",
];

/// Trees that a container gets its own of.
const OWN: [&str; 5] = ["/proc", "/sys", "/dev", "/run", "/tmp"];

/// One line of mountinfo, as far as we need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) id: u64,
    pub(crate) parent: u64,
    pub(crate) target: PathBuf,
    pub(crate) fs_type: String,
    /// The file system's own options: of a cgroup v1 hierarchy its controllers.
    pub(crate) super_options: String,
}

/// The mount points of this process, in the order they were made.
pub(crate) fn current() -> io::Result<Vec<Mount>> {
    Ok(parse(&std::fs::read("/proc/self/mountinfo")?))
}

/// Lines that do not have the documented form are left out.
pub(crate) fn parse(text: &[u8]) -> Vec<Mount> {
    text.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    // 36 35 98:0 /root /target rw,noatime optional:1 fields:2 - type source options
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let separator = fields.iter().position(|field| *field == b"-")?;
    let target = PathBuf::from(OsString::from_vec(unescape(fields.get(4)?)));
    let fs_type = String::from_utf8(fields.get(separator + 1)?.to_vec()).ok()?;
    let super_options = fields.get(separator + 3).copied().unwrap_or_default();
    let super_options = String::from_utf8_lossy(super_options).into_owned();
    let number = |index: usize| std::str::from_utf8(fields.get(index)?).ok()?.parse().ok();
    let (id, parent) = (number(0)?, number(1)?);
    (separator >= 6).then_some(Mount {
        id,
        parent,
        target,
        fs_type,
        super_options,
    })
}

/// A mount and those that it lies in, up to the root.
pub(crate) fn ancestors(mounts: &[Mount], id: u64) -> impl Iterator<Item = &Mount> {
    let find = |id: u64| mounts.iter().find(|mount| mount.id == id);
    // A table that is read while it changes may go round in circles.
    std::iter::successors(find(id), move |mount| {
        find(mount.parent).filter(|above| above.id != mount.id)
    })
    .take(mounts.len())
}

/// A mount and those that it covers at the same place, from the top down.
pub(crate) fn stack(mounts: &[Mount], top: u64) -> impl Iterator<Item = &Mount> {
    let mut place = None;
    ancestors(mounts, top).take_while(move |mount| *place.get_or_insert(&mount.target) == &mount.target)
}

/// Space, tab, newline and backslash are written as three octal digits.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let octal = (first == b'\\')
            .then(|| after.get(..3))
            .flatten()
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        if let Some(byte) = octal {
            plain.push(byte);
            rest = &after[3..];
        } else {
            plain.push(first);
            rest = after;
        }
    }
    plain
}

/// The mount points below the root that a container shows as well: real file systems, outside the trees that it has its own of
/// and outside `hidden`. Parents come first; of several mounts on one place, one is named.
pub(crate) fn shown(mounts: &[Mount], hidden: &[PathBuf]) -> Vec<PathBuf> {
    let mut targets: Vec<PathBuf> = Vec::new();
    for mount in mounts {
        let own = OWN.iter().any(|tree| mount.target.starts_with(tree));
        let masked = hidden.iter().any(|path| mount.target.starts_with(path));
        if REAL.contains(&mount.fs_type.as_str()) && mount.target != Path::new("/") && !own && !masked {
            targets.push(mount.target.clone());
        }
    }
    targets.sort();
    targets.dedup();
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "\
22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
40 27 254:1 / /var rw,relatime shared:7 master:1 - xfs /dev/vdb rw
41 40 254:2 / /var/lib/my\\040disk rw,relatime shared:8 - ext4 /dev/vdc rw
42 27 0:50 / /home rw - nfs4 server:/home rw
43 27 254:0 /etc/hosts /etc/hosts rw - ext4 /dev/vda rw
44 27 254:3 / /srv/state rw - ext4 /dev/vdd rw
45 27 254:3 / /tmp/disk rw - ext4 /dev/vdd rw
46 40 254:4 / /var rw - ext4 /dev/vde rw
nonsense
";

    #[test]
    fn real_file_systems_below_the_root_are_shown() {
        let shown = shown(&parse(SAMPLE.as_bytes()), &[PathBuf::from("/srv/state")]);
        assert_eq!(
            shown,
            ["/etc/hosts", "/var", "/var/lib/my disk"].map(PathBuf::from)
        );
    }

    #[test]
    fn what_is_stacked_at_one_place_is_told_from_what_it_lies_in() {
        let mounts = parse(SAMPLE.as_bytes());
        let ids = |found: &mut dyn Iterator<Item = &Mount>| found.map(|mount| mount.id).collect::<Vec<_>>();
        assert_eq!(ids(&mut stack(&mounts, 46)), [46, 40]);
        assert_eq!(ids(&mut stack(&mounts, 41)), [41]);
        assert_eq!(ids(&mut ancestors(&mounts, 46)), [46, 40, 27]);
        assert!(ids(&mut stack(&mounts, 7)).is_empty());
    }

    #[test]
    fn escapes_are_undone_and_broken_ones_kept() {
        for (field, plain) in [
            ("a\\040b", "a b"),
            ("a\\134", "a\\"),
            ("a\\9", "a\\9"),
            ("\\", "\\"),
        ] {
            assert_eq!(unescape(field.as_bytes()), plain.as_bytes(), "{field}");
        }
    }
}
