//! What the container's own `/etc/passwd` and `/etc/group` say of a user. The root is the container's already.

use std::fs;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;

use crate::config::IdRange;

/// Of either file, more is not read.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// The home directory in `/etc/passwd`, `/` when it says nothing, as runc has it.
pub(crate) fn home_of(uid: u32) -> String {
    let home = account(&read("/etc/passwd"), uid).and_then(|fields| fields.get(5).cloned());
    home.filter(|home| !home.is_empty())
        .unwrap_or_else(|| "/".to_owned())
}

/// The groups in `/etc/group` that name the user, as containerd's `WithAdditionalGIDs` finds them (`pkg/oci`, release 2): a user
/// who is not in `/etc/passwd` has none. Those that a pod has no id for are left out.
pub(crate) fn groups_of(uid: u32) -> Vec<u32> {
    groups(&read("/etc/passwd"), &read("/etc/group"), uid)
}

fn groups(passwd: &str, group: &str, uid: u32) -> Vec<u32> {
    let Some(name) = account(passwd, uid).and_then(|fields| fields.into_iter().next()) else {
        return Vec::new();
    };
    let of_line = |line: &str| {
        let mut fields = line.split(':').skip(2);
        let gid = fields.next()?.parse().ok().filter(|gid| *gid < IdRange::LEN)?;
        let mut members = fields.next()?.split(',');
        members.any(|member| member == name).then_some(gid)
    };
    group.lines().filter_map(of_line).collect()
}

/// The fields of the first line about a user.
fn account(passwd: &str, uid: u32) -> Option<Vec<String>> {
    let mut lines = passwd.lines().map(|line| line.split(':'));
    let found = lines.find(|fields| fields.clone().nth(2).and_then(|field| field.parse().ok()) == Some(uid));
    found.map(|fields| fields.map(str::to_owned).collect())
}

/// A file that is not there, or not readable, says nothing. A container may have put anything in its place: nothing of that
/// may keep its shim waiting.
fn read(path: &str) -> String {
    let mut bytes = Vec::new();
    let mut options = fs::File::options();
    let opened = options
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path);
    if let Ok(file) = opened
        && file.metadata().is_ok_and(|metadata| metadata.is_file())
    {
        let _ = file.take(FILE_BYTES_MAX).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_of_an_unknown_user_is_the_root() {
        assert_eq!(home_of(0), "/root");
        assert_eq!(home_of(64_999), "/");
    }

    #[test]
    fn groups_are_those_that_name_the_user() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\nweb:x:33:33::/:/x\n\nother:x:33:1::/:/x\nbroken\n";
        let group = "root:x:0:\nmail:x:8:web,root\nbig:x:70000:web\nlogs:x:9:x,web\nweb:x:33:\nhalf:x:5\nnone:x::web\nw:x:7:we\n";
        for (uid, found) in [(0, vec![8]), (33, vec![8, 9]), (34, vec![])] {
            assert_eq!(groups(passwd, group, uid), found, "{uid}");
        }
    }
}
