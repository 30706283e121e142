//! Which file systems do not tell of every change.

use std::path::Path;

/// The name of the file system of `path` if a change can happen on it without an event here: because another machine or a
/// program makes it, or because it is made in a layer beneath. `None` too when it cannot be asked.
pub(crate) fn without_events(path: &Path) -> Option<&'static str> {
    let magic = rustix::fs::statfs(path).ok()?.f_type;
    name_of(u64::from_ne_bytes(magic.to_ne_bytes()) & 0xffff_ffff)
}

/// Upstream of the numbers: linux/magic.h and the file systems' own sources, Linux 6.18.
fn name_of(magic: u64) -> Option<&'static str> {
    Some(match magic {
        0x6969 => "NFS",
        0xff53_4d42 | 0xfe53_4d42 | 0x517b => "SMB",
        0x6573_5546 => "FUSE or virtiofs",
        0x0102_1997 => "9p",
        0x794c_7630 => "overlay",
        0xf15f => "ecryptfs",
        0x00c3_6400 => "Ceph",
        0x5346_414f | 0x6b41_4653 => "AFS",
        0x0bd0_0bd0 => "Lustre",
        0x4750_4653 => "GPFS",
        0x0116_1970 => "GFS2",
        0x7461_636f => "OCFS2",
        0x786f_4256 => "vboxsf",
        0xbacb_acbc => "vmhgfs",
        0x9fa0 => "proc",
        0x6265_6572 => "sysfs",
        0x0027_e0eb => "cgroup",
        0x6367_7270 => "cgroup2",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_file_systems_tell_of_everything() {
        assert_eq!(without_events(Path::new("/proc/self")), Some("proc"));
        for (magic, name) in [
            (0xef53, None),
            (0x0102_1994, None),
            (0x9123_683e, None),
            (0x6969, Some("NFS")),
        ] {
            assert_eq!(name_of(magic), name, "{magic:x}");
        }
    }
}
