//! The seccomp profile `RuntimeDefault`: two filters of system calls, made in the new process and taken over by its program.
//!
//! ```text
//!   first    what the table allows is allowed, the rest fails with EPERM
//!   second   clone3 without CAP_SYS_ADMIN, and what is newer than the table, fail with ENOSYS
//! ```
//!
//! The kernel asks both and takes the stricter answer; of two errors it takes that of the filter that came last. `clone3` hides
//! its flags in memory, where no filter can look: C libraries fall back to `clone` when it is not there, and to nothing when it
//! is forbidden.

mod table;

use std::collections::BTreeMap;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};

use super::rootfs::{Setup, what};
use crate::spec::Capabilities;
use crate::sys;

/// The flags of `clone` that make namespaces.
const CLONE_NAMESPACES: u64 = (libc::CLONE_NEWNS
    | libc::CLONE_NEWCGROUP
    | libc::CLONE_NEWUTS
    | libc::CLONE_NEWIPC
    | libc::CLONE_NEWUSER
    | libc::CLONE_NEWPID
    | libc::CLONE_NEWNET) as u64;

/// Confines this thread, and every program it becomes. It needs `no_new_privs`, or `CAP_SYS_ADMIN` in its user namespace.
pub(crate) fn install_default(capabilities: Capabilities) -> Setup<()> {
    let failed = || "cannot install the seccomp profile".to_owned();
    let allowed =
        allowed(capabilities).map_err(|error| format!("cannot make the seccomp profile: {error}"))?;
    what(sys::install_filter(&allowed), failed)?;
    what(sys::install_filter(&absent(capabilities)), failed)
}

fn allowed(capabilities: Capabilities) -> Result<Vec<libc::sock_filter>, seccompiler::BackendError> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = table::allowed(capabilities)
        .map(|call| (call, Vec::new()))
        .collect();
    // The kernel reads these arguments as 32 bits, whatever the other half says.
    let is = |argument: u8, operator: SeccompCmpOp, value: u64| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, operator, value)
    };
    let mut families = Vec::new();
    for (first, last) in table::SOCKET_FAMILIES {
        let range = vec![is(0, SeccompCmpOp::Ge, *first)?, is(0, SeccompCmpOp::Le, *last)?];
        families.push(SeccompRule::new(range)?);
    }
    rules.insert(libc::SYS_socket, families);
    let mut personalities = Vec::new();
    for personality in table::PERSONALITIES {
        personalities.push(SeccompRule::new(vec![is(0, SeccompCmpOp::Eq, *personality)?])?);
    }
    rules.insert(libc::SYS_personality, personalities);
    if let std::collections::btree_map::Entry::Vacant(clone) = rules.entry(libc::SYS_clone) {
        let makes_none = is(0, SeccompCmpOp::MaskedEq(CLONE_NAMESPACES), 0)?;
        clone.insert(vec![SeccompRule::new(vec![makes_none])?]);
    }
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(
        rules,
        refused,
        SeccompAction::Allow,
        std::env::consts::ARCH.try_into()?,
    )?;
    let program: BpfProgram = filter.try_into()?;
    let instructions = program.into_iter().map(|one| libc::sock_filter {
        code: one.code,
        jt: one.jt,
        jf: one.jf,
        k: one.k,
    });
    Ok(instructions.collect())
}

/// What is not there: the crate compares arguments, not numbers, so these few instructions are written out.
fn absent(capabilities: Capabilities) -> Vec<libc::sock_filter> {
    let load_number = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let equals = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let exceeds = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
    let answer = (libc::BPF_RET | libc::BPF_K) as u16;
    let step = |code, k, jt, jf| libc::sock_filter { code, jt, jf, k };
    let mut program = vec![step(load_number, 0, 0, 0)];
    if !capabilities.holds("SYS_ADMIN") {
        program.push(step(equals, libc::SYS_clone3 as u32, 2, 0));
    }
    program.push(step(exceeds, table::HIGHEST as u32, 1, 0));
    program.push(step(answer, libc::SECCOMP_RET_ALLOW, 0, 0));
    program.push(step(answer, libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32, 0, 0));
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_follow_the_capabilities() {
        let has = |capabilities, call| table::allowed(capabilities).any(|one| one == call);
        let admin = Capabilities::from_default(["SYS_ADMIN"], []).expect("a capability");
        for (call, plain, with_admin) in [
            (libc::SYS_read, true, true),
            (libc::SYS_openat, true, true),
            (libc::SYS_chroot, true, true),
            (libc::SYS_mount, false, true),
            (libc::SYS_unshare, false, true),
            (libc::SYS_bpf, false, true),
            (libc::SYS_clone3, false, true),
            (libc::SYS_keyctl, false, false),
            (libc::SYS_add_key, false, false),
            (libc::SYS_kexec_load, false, false),
            (libc::SYS_userfaultfd, false, false),
            (libc::SYS_io_uring_setup, false, false),
            (libc::SYS_open_by_handle_at, false, false),
        ] {
            assert_eq!(
                (has(Capabilities::default(), call), has(admin, call)),
                (plain, with_admin),
                "{call}"
            );
        }
        assert!(!has(Capabilities::NONE, libc::SYS_chroot));
    }

    #[test]
    fn the_profile_fits_the_kernels_limit_with_every_capability() {
        for capabilities in [Capabilities::NONE, Capabilities::default(), Capabilities::ALL] {
            let program = allowed(capabilities).expect("a filter");
            assert!(program.len() < 4096, "{}", program.len());
        }
        let highest = table::allowed(Capabilities::ALL).max();
        assert_eq!(highest, Some(table::HIGHEST));
    }
}
