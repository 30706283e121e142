//! The system calls of process 1 that no safe crate has: signals one by one, and orphans.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

/// Signals that tell of a fault in this very process; to hold them back would make a crash a hang.
const FAULTS: [i32; 7] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
    libc::SIGABRT,
    libc::SIGSYS,
];

/// Every signal that this process takes one by one with [`SignalSet::wait`].
#[derive(Clone, Copy)]
pub(crate) struct SignalSet(libc::sigset_t);

impl SignalSet {
    /// Blocks all signals but faults and SIGPIPE in this thread and in those that it starts. A blocked signal is kept
    /// until it is taken, also by process 1 of a pid namespace, for which the kernel drops what has no handler.
    ///
    /// SIGPIPE stays as it is: our own writes to a log that nobody reads any more raise it.
    pub(crate) fn block() -> io::Result<Self> {
        let mut set = MaybeUninit::uninit();
        // SAFETY: sigfillset initialises the set, without the signals that the C library keeps for itself.
        let set = unsafe {
            libc::sigfillset(set.as_mut_ptr());
            let mut set = set.assume_init();
            for signal in FAULTS.into_iter().chain([libc::SIGPIPE]) {
                libc::sigdelset(&mut set, signal);
            }
            set
        };
        // SAFETY: the set is initialised; the former mask is not asked for.
        match unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, &set, ptr::null_mut()) } {
            0 => Ok(Self(set)),
            error => Err(io::Error::from_raw_os_error(error)),
        }
    }

    /// Waits for the next signal and takes it.
    pub(crate) fn wait(&self) -> i32 {
        loop {
            // SAFETY: the set is initialised; who sent the signal is not asked for.
            let signal = unsafe { libc::sigwaitinfo(&self.0, ptr::null_mut()) };
            // Else it is EINTR: a tracer came by, or a debugger stopped us.
            if signal > 0 {
                return signal;
            }
        }
    }
}

/// Sends this process a signal.
pub(crate) fn signal_self(signal: i32) {
    // SAFETY: no memory is touched.
    unsafe { libc::kill(libc::getpid(), signal) };
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

/// Sends a signal by number to a process group; 0 only asks whether it has members.
pub(crate) fn signal_group(group: i32, signal: i32) -> io::Result<()> {
    // SAFETY: no memory is touched.
    if unsafe { libc::kill(-group, signal) } == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Reaps one ended child of *the calling thread* and returns its pid, if there is one.
///
/// An orphan becomes a child of the main thread of process 1 or of the nearest subreaper; a process that a thread has
/// started is a child of that thread (`find_new_reaper` and `copy_process` in Linux). So what the main thread reaps here
/// was never started by a supervisor on another thread, and neither can take the other's.
pub(crate) fn reap_child_of_this_thread() -> Option<i32> {
    let mut info = MaybeUninit::<libc::siginfo_t>::zeroed();
    let options = libc::WEXITED | libc::WNOHANG | libc::__WNOTHREAD;
    // SAFETY: the kernel fills in the structure, which is valid when zero; si_pid is there for ended children, and
    // zero when there was none.
    unsafe {
        if libc::waitid(libc::P_ALL, 0, info.as_mut_ptr(), options) != 0 {
            return None;
        }
        let pid = info.assume_init().si_pid();
        (pid != 0).then_some(pid)
    }
}

// rustix's `getpgrp` takes it for granted that the group is in the pid namespace; that of process 1 need not be.

/// The process group of this process; zero if it is one outside of this pid namespace.
pub(crate) fn own_group() -> i32 {
    // SAFETY: no memory is touched.
    unsafe { libc::getpgrp() }
}

/// The group in the foreground of the terminal on standard input.
pub(crate) fn foreground_group() -> Option<i32> {
    // SAFETY: no memory is touched.
    let group = unsafe { libc::tcgetpgrp(libc::STDIN_FILENO) };
    (group >= 0).then_some(group)
}

/// Puts a group into the foreground of the terminal on standard input, if there is one.
pub(crate) fn set_foreground_group(group: i32) {
    // SAFETY: no memory is touched.
    unsafe { libc::tcsetpgrp(libc::STDIN_FILENO, group) };
}

// rustix's `UCred` takes it for granted that the sender is in the pid namespace; in a pod it may be a neighbour.

/// Receives a message from a socket with SO_PASSCRED: its length, and the pid of the sender; zero if that is outside of
/// this pid namespace. Descriptors that come along are closed by the kernel, for which there is no room.
pub(crate) fn receive_from_process(socket: impl AsFd, message: &mut [u8]) -> io::Result<(usize, i32)> {
    /// Large enough for one `ucred` and nothing else, aligned as the kernel's macros want it.
    #[repr(C)]
    struct Control {
        header: libc::cmsghdr,
        sender: libc::ucred,
    }
    let mut part = libc::iovec {
        iov_base: message.as_mut_ptr().cast(),
        iov_len: message.len(),
    };
    // SAFETY: both are plain numbers and pointers, for which zero is "nothing".
    let (mut control, mut header): (Control, libc::msghdr) = unsafe { std::mem::zeroed() };
    header.msg_iov = &raw mut part;
    header.msg_iovlen = 1;
    header.msg_control = (&raw mut control).cast();
    header.msg_controllen = size_of::<Control>() as _;
    // SAFETY: all pointers in `header` are to live buffers of the lengths that stand beside them.
    let length = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &mut header, libc::MSG_CMSG_CLOEXEC) };
    let Ok(length) = usize::try_from(length) else {
        return Err(io::Error::last_os_error());
    };
    let is_sender = control.header.cmsg_level == libc::SOL_SOCKET
        && control.header.cmsg_type == libc::SCM_CREDENTIALS
        && header.msg_controllen >= size_of::<libc::cmsghdr>() + size_of::<libc::ucred>();
    Ok((length, if is_sender { control.sender.pid } else { 0 }))
}

/// The process group of a process; none if it is gone.
pub(crate) fn group_of(pid: i32) -> Option<i32> {
    // SAFETY: no memory is touched.
    let group = unsafe { libc::getpgid(pid) };
    (group > 0).then_some(group)
}
