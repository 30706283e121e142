//! Whether the kernel mounts beneath a mount, without which no mount of a running container changes.

/// `MOVE_MOUNT_BENEATH` came with Linux 6.5.
const SINCE: (u32, u32) = (6, 5);

/// The kernel is older than what mounts need that change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("it needs Linux 6.5 or newer (MOVE_MOUNT_BENEATH), and this is {release}")]
pub struct KernelTooOld {
    /// As the kernel calls itself.
    pub release: String,
}

/// Whether the mounts of running containers can be swapped here, as far as the kernel's release tells.
///
/// # Errors
/// [`KernelTooOld`], in words for a person.
pub fn can_mount_beneath() -> Result<(), KernelTooOld> {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy().into_owned();
    if is_older_than(&release, SINCE) {
        return Err(KernelTooOld { release });
    }
    Ok(())
}

fn is_older_than(release: &str, wanted: (u32, u32)) -> bool {
    let mut numbers = release
        .split(['.', '-', '+'])
        .map_while(|part| part.parse::<u32>().ok());
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    found < wanted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_release_says_whether_the_kernel_is_too_old() {
        for (release, older) in [
            ("6.1.0-28-amd64", true),
            ("6.4", true),
            ("6.5.0", false),
            ("6.18.44-fc", false),
            ("7.0-rc1", false),
            ("7.0+", false),
            ("5.15", true),
            ("Plan 9", true),
        ] {
            assert_eq!(is_older_than(release, SINCE), older, "{release}");
        }
    }
}
