//! The few system calls that rustix has no safe form for. All `unsafe` of this crate that is not a `dup2` is here.

use std::ffi::{CStr, CString};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec};

/// libc's constant of this name overflows its type.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

/// Which side of a [`clone_process`] this is.
pub(crate) enum Cloned {
    /// The new process. It must end in `execve` or [`exit_now`].
    Child,
    /// The caller, with the child's pid and a descriptor for it.
    Parent { pid: i32, pidfd: OwnedFd },
}

/// `clone3` without shared memory: a fork with namespaces. `cgroup` is a cgroup v2 directory to start in.
///
/// The process must have one thread: the child goes on with a copy of this one's memory.
pub(crate) fn clone_process(namespaces: u64, cgroup: Option<BorrowedFd<'_>>) -> io::Result<Cloned> {
    clone3(namespaces, libc::SIGCHLD, cgroup)
}

/// A fork whose parent is that of this process: nothing of it is left here to be reaped. The process must have one thread.
pub(crate) fn clone_sibling() -> io::Result<Cloned> {
    // Its end is told as that of this process would be.
    clone3(libc::CLONE_PARENT as u64, 0, None)
}

fn clone3(flags: u64, exit_signal: i32, cgroup: Option<BorrowedFd<'_>>) -> io::Result<Cloned> {
    debug_assert_eq!(thread_count(), 1, "only a single-threaded process may fork here");
    let mut pidfd: RawFd = -1;
    // SAFETY: clone_args is plain integers, for which zero is "absent".
    let mut args: libc::clone_args = unsafe { std::mem::zeroed() };
    args.flags = flags | libc::CLONE_PIDFD as u64;
    args.pidfd = ptr::from_mut(&mut pidfd) as u64;
    args.exit_signal = exit_signal as u64;
    if let Some(cgroup) = cgroup {
        args.flags |= CLONE_INTO_CGROUP;
        args.cgroup = cgroup.as_raw_fd() as u64;
    }
    // SAFETY: without CLONE_VM and with no stack this is a fork; args and pidfd outlive the call. One thread only, so no
    // lock is held that the child could wait for.
    let pid = unsafe {
        libc::syscall(
            libc::SYS_clone3,
            ptr::from_mut(&mut args),
            size_of::<libc::clone_args>(),
        )
    };
    match pid {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Cloned::Child),
        // SAFETY: the kernel has just opened the descriptor for us.
        pid => Ok(Cloned::Parent {
            pid: pid as i32,
            pidfd: unsafe { OwnedFd::from_raw_fd(pidfd) },
        }),
    }
}

fn thread_count() -> usize {
    fs::read_dir("/proc/self/task").map_or(1, Iterator::count)
}

/// Ends the process at once: no destructors, no buffers.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: _exit has no preconditions.
    unsafe { libc::_exit(code) }
}

/// What [`mount_setattr`] changes.
#[derive(Default)]
pub(crate) struct MountChange<'fd> {
    pub(crate) set: u64,
    pub(crate) clear: u64,
    pub(crate) private: bool,
    pub(crate) recursive: bool,
    pub(crate) id_map: Option<BorrowedFd<'fd>>,
}

/// `mount_setattr` (Linux 5.12) on the mount behind a descriptor.
pub(crate) fn mount_setattr(mount: impl AsFd, change: &MountChange<'_>) -> io::Result<()> {
    let mut attr = libc::mount_attr {
        attr_set: change.set,
        attr_clr: change.clear,
        propagation: 0,
        userns_fd: 0,
    };
    if change.private {
        attr.propagation = libc::MS_PRIVATE;
    }
    if let Some(user_namespace) = change.id_map {
        attr.attr_set |= libc::MOUNT_ATTR_IDMAP;
        attr.userns_fd = user_namespace.as_raw_fd() as u64;
    }
    let flags = libc::AT_EMPTY_PATH | if change.recursive { libc::AT_RECURSIVE } else { 0 };
    // SAFETY: the path is a constant C string, attr is a valid structure of the length given.
    let result = unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_fd().as_raw_fd(),
            c"".as_ptr(),
            flags,
            ptr::from_mut(&mut attr),
            size_of::<libc::mount_attr>(),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Blocks SIGCHLD and returns a descriptor that is readable when one is pending.
pub(crate) fn child_signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before it is used.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGCHLD);
        if libc::sigprocmask(libc::SIG_BLOCK, &set, ptr::null_mut()) != 0 {
            return Err(io::Error::last_os_error());
        }
        match libc::signalfd(-1, &set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK) {
            -1 => Err(io::Error::last_os_error()),
            fd => Ok(OwnedFd::from_raw_fd(fd)),
        }
    }
}

/// Ignores what a terminal or a service manager would stop us with.
pub(crate) fn ignore_signals(signals: &[i32]) {
    for signal in signals {
        // SAFETY: SIG_IGN is a valid disposition and no handler of ours exists.
        unsafe { libc::signal(*signal, libc::SIG_IGN) };
    }
}

/// Sleeps until a signal that is not ignored has come; ignored ones wake nobody.
pub(crate) fn wait_for_signals() {
    // SAFETY: pause has no preconditions.
    unsafe { libc::pause() };
}

/// Overwrites what `/proc/<pid>/cmdline` shows of this process, which anybody may read. Best effort.
pub(crate) fn hide_arguments() {
    change_arguments(|area| area.fill(0));
}

/// Makes `/proc/<pid>/cmdline` show these arguments behind the program's name, as far as the present ones leave room. Best effort.
pub(crate) fn set_arguments(arguments: &[&str]) {
    change_arguments(|area| fill_arguments(area, arguments));
}

fn change_arguments(change: impl FnOnce(&mut [u8])) {
    let Ok(stat) = fs::read_to_string("/proc/self/stat") else {
        return;
    };
    let fields = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let mut fields = fields.split_ascii_whitespace().skip(45);
    let mut address = || fields.next()?.parse::<usize>().ok();
    if let (Some(start), Some(end)) = (address(), address())
        && 0 < start
        && start < end
    {
        // SAFETY: fields 48 and 49 are where the kernel put the arguments of this process, in memory that is ours to write;
        // nothing of ours refers to them, and this process reads its arguments no more.
        change(unsafe { std::slice::from_raw_parts_mut(start as *mut u8, end - start) });
    }
}

/// The last byte stays zero: without it the kernel takes the environment for more of the arguments.
fn fill_arguments(area: &mut [u8], arguments: &[&str]) {
    let program = area.iter().position(|byte| *byte == 0);
    let rest = &mut area[program.map_or(0, |end| end + 1)..];
    let text: String = arguments.iter().map(|one| format!("{one}\0")).collect();
    let length = text.len().min(rest.len());
    rest.fill(0);
    rest[..length].copy_from_slice(&text.as_bytes()[..length]);
    if let Some(last) = rest.last_mut() {
        *last = 0;
    }
}

/// Waits until a process has ended; `TimedOut` after the deadline.
pub(crate) fn wait_end(pidfd: &OwnedFd, deadline: Instant) -> io::Result<()> {
    let left = deadline.saturating_duration_since(Instant::now());
    let timeout = Timespec {
        tv_sec: left.as_secs() as i64,
        tv_nsec: left.subsec_nanos().into(),
    };
    // A pid descriptor is readable once the process has ended.
    if rustix::event::poll(&mut [PollFd::new(pidfd, PollFlags::IN)], Some(&timeout))? == 0 {
        return Err(io::ErrorKind::TimedOut.into());
    }
    Ok(())
}

/// Every signal back to its default and none blocked, as a new program expects it.
pub(crate) fn reset_signals() {
    // SAFETY: SIG_DFL is always valid; the empty set is initialised. KILL, STOP and libc's own refuse, which is fine.
    unsafe {
        for signal in 1..=64 {
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &none, ptr::null_mut());
    }
}

/// Sends a signal by number through a pid descriptor.
pub(crate) fn signal_process(pidfd: impl AsFd, signal: i32) -> io::Result<()> {
    // SAFETY: no pointers but a null siginfo, which means "as kill does".
    let result = unsafe {
        libc::syscall(
            libc::SYS_pidfd_send_signal,
            pidfd.as_fd().as_raw_fd(),
            signal,
            ptr::null_mut::<libc::siginfo_t>(),
            0,
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Adds a seccomp filter to this thread. It needs `no_new_privs`, or `CAP_SYS_ADMIN` in the thread's user namespace.
pub(crate) fn install_filter(program: &[libc::sock_filter]) -> io::Result<()> {
    let length = u16::try_from(program.len()).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))?;
    let program = libc::sock_fprog {
        len: length,
        filter: program.as_ptr().cast_mut(),
    };
    // SAFETY: the kernel copies the program, of the length given, and writes nothing to it.
    let result = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_SET_MODE_FILTER,
            0,
            ptr::from_ref(&program),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Drops a capability from the bounding set, by number; true when the kernel knows that number.
pub(crate) fn drop_bounding(capability: u32) -> io::Result<bool> {
    // SAFETY: PR_CAPBSET_DROP takes one integer.
    if unsafe { libc::prctl(libc::PR_CAPBSET_DROP, libc::c_ulong::from(capability), 0, 0, 0) } == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    if error.raw_os_error() == Some(libc::EINVAL) {
        Ok(false)
    } else {
        Err(error)
    }
}

/// Replaces the program. Comes back only with the error.
pub(crate) fn execute(path: &CStr, argv: &[CString], env: &[CString]) -> io::Error {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings
            .iter()
            .map(|string| string.as_ptr())
            .chain([ptr::null()])
            .collect()
    };
    let (argv, env) = (pointers(argv), pointers(env));
    // SAFETY: both arrays end in null and point to C strings that live until the call is over.
    unsafe { libc::execve(path.as_ptr(), argv.as_ptr(), env.as_ptr()) };
    io::Error::last_os_error()
}

/// Closes every descriptor but the ones given.
///
/// # Safety
/// No owned descriptor outside `keep` may be used or dropped afterwards: their owners do not know.
pub(crate) unsafe fn close_all_but(keep: &[RawFd]) -> io::Result<()> {
    let mut keep: Vec<u32> = keep.iter().map(|fd| *fd as u32).collect();
    keep.sort_unstable();
    let mut first = 0u32;
    for fd in keep.into_iter().chain([u32::MAX]) {
        if first < fd {
            // SAFETY: closing descriptors by number; the caller answers for their owners.
            let result = unsafe { libc::syscall(libc::SYS_close_range, first, fd - 1, 0) };
            if result != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        first = fd.saturating_add(1);
    }
    Ok(())
}

/// Makes `from` the descriptor `to`, which survives an exec.
pub(crate) fn duplicate_onto(from: impl AsFd, to: RawFd) -> io::Result<()> {
    // SAFETY: `to` is one of 0, 1, 2, which no owned descriptor of ours stands for.
    if unsafe { libc::dup2(from.as_fd().as_raw_fd(), to) } < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// Gives this thread a mount namespace, root and working directory of its own.
pub(crate) fn unshare_mounts_of_thread() -> io::Result<()> {
    let flags = rustix::thread::UnshareFlags::NEWNS | rustix::thread::UnshareFlags::FS;
    // SAFETY: descriptors stay shared: FILES is not among the flags.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// The start time of a process in clock ticks since boot (field 22 of its `stat`), which with its pid names it for good.
pub(crate) fn start_ticks(pid: i32) -> io::Result<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The second field is the command in parentheses and may hold anything, so count from the last one.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks = after
        .split_ascii_whitespace()
        .nth(19)
        .and_then(|field| field.parse().ok());
    ticks.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no start time in stat"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_written_over_others_and_end_where_those_ended() {
        for (uid, shown) in [
            ("abcd", "/program\0shim\0abcd\0"),
            ("ab", "/program\0shim\0ab\0\0\0"),
            ("abcdefg", "/program\0shim\0abcd\0"),
        ] {
            let mut area = *b"/program\0zygote\0--\0";
            fill_arguments(&mut area, &["shim", uid]);
            assert_eq!(String::from_utf8_lossy(&area), shown);
        }
    }
}
