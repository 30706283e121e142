//! Which system calls a container may make under the profile `RuntimeDefault`.
//!
//! The set is that of `seccomp/default.json` in moby/profiles, which containerd's `contrib/seccomp` follows: what is on neither
//! list of ours is refused with `EPERM`. Calls of 32-bit programs are not on it: these do not run under the profile here.

#![expect(non_upper_case_globals, reason = "the names of the kernel, as libc has them")]

use libc::*;

use crate::spec::Capabilities;

macro_rules! calls {
    ($($name:ident)*) => { &[$($name),*] };
}

/// Numbers that are the same everywhere, of calls that libc has no name for yet.
const SYS_cachestat: c_long = 451;
const SYS_fchmodat2: c_long = 452;
const SYS_map_shadow_stack: c_long = 453;
const SYS_futex_wake: c_long = 454;
const SYS_futex_wait: c_long = 455;
const SYS_futex_requeue: c_long = 456;
const SYS_statmount: c_long = 457;
const SYS_listmount: c_long = 458;
const SYS_lsm_get_self_attr: c_long = 459;
const SYS_lsm_set_self_attr: c_long = 460;
const SYS_lsm_list_modules: c_long = 461;
const SYS_setxattrat: c_long = 463;
const SYS_getxattrat: c_long = 464;
const SYS_listxattrat: c_long = 465;
const SYS_removexattrat: c_long = 466;

/// Calls that every architecture has.
#[rustfmt::skip]
const EVERYWHERE: &[&[c_long]] = &[
    // Processes, threads and their ends.
    calls![
        SYS_execve SYS_execveat SYS_exit SYS_exit_group SYS_wait4 SYS_waitid SYS_kill SYS_tkill SYS_tgkill
        SYS_pidfd_open SYS_pidfd_send_signal SYS_getpid SYS_getppid SYS_gettid SYS_getpgid SYS_setpgid
        SYS_getsid SYS_setsid SYS_set_tid_address SYS_set_robust_list SYS_get_robust_list SYS_rseq SYS_getrusage
        SYS_times SYS_prctl SYS_process_mrelease SYS_process_vm_readv SYS_process_vm_writev SYS_ptrace
        SYS_capget SYS_capset SYS_seccomp SYS_landlock_create_ruleset SYS_landlock_add_rule
        SYS_landlock_restrict_self SYS_prlimit64 SYS_restart_syscall SYS_uname SYS_umask
    ],
    // Who they are.
    calls![
        SYS_getuid SYS_geteuid SYS_getresuid SYS_setuid SYS_setreuid SYS_setresuid SYS_setfsuid SYS_getgid
        SYS_getegid SYS_getresgid SYS_setgid SYS_setregid SYS_setresgid SYS_setfsgid SYS_getgroups SYS_setgroups
    ],
    // Signals.
    calls![
        SYS_rt_sigaction SYS_rt_sigprocmask SYS_rt_sigpending SYS_rt_sigsuspend SYS_rt_sigtimedwait
        SYS_rt_sigqueueinfo SYS_rt_tgsigqueueinfo SYS_rt_sigreturn SYS_sigaltstack SYS_signalfd4
    ],
    // Scheduling.
    calls![
        SYS_sched_yield SYS_sched_getaffinity SYS_sched_setaffinity SYS_sched_getattr SYS_sched_setattr
        SYS_sched_getparam SYS_sched_setparam SYS_sched_getscheduler SYS_sched_setscheduler
        SYS_sched_get_priority_max SYS_sched_get_priority_min SYS_sched_rr_get_interval SYS_getpriority
        SYS_setpriority SYS_ioprio_get SYS_ioprio_set SYS_getcpu SYS_membarrier
    ],
    // Waiting for each other.
    calls![
        SYS_futex SYS_futex_wait SYS_futex_wake SYS_futex_waitv SYS_futex_requeue
    ],
    // Time.
    calls![
        SYS_clock_gettime SYS_clock_getres SYS_clock_nanosleep SYS_clock_adjtime SYS_adjtimex SYS_gettimeofday
        SYS_nanosleep SYS_getitimer SYS_setitimer SYS_timer_create SYS_timer_delete SYS_timer_gettime
        SYS_timer_settime SYS_timer_getoverrun SYS_timerfd_create SYS_timerfd_gettime SYS_timerfd_settime
    ],
    // Memory.
    calls![
        SYS_brk SYS_mmap SYS_munmap SYS_mremap SYS_mprotect SYS_madvise SYS_mincore SYS_msync SYS_mlock
        SYS_mlock2 SYS_mlockall SYS_munlock SYS_munlockall SYS_mseal SYS_memfd_create SYS_memfd_secret
        SYS_map_shadow_stack SYS_pkey_alloc SYS_pkey_free SYS_pkey_mprotect SYS_remap_file_pages SYS_cachestat
    ],
    // Descriptors.
    calls![
        SYS_close SYS_close_range SYS_dup SYS_dup3 SYS_fcntl SYS_flock SYS_ioctl SYS_pipe2 SYS_eventfd2
        SYS_epoll_create1 SYS_epoll_ctl SYS_epoll_pwait SYS_epoll_pwait2 SYS_ppoll SYS_pselect6
        SYS_inotify_init1 SYS_inotify_add_watch SYS_inotify_rm_watch SYS_fanotify_mark
    ],
    // Reading and writing.
    calls![
        SYS_read SYS_readv SYS_pread64 SYS_preadv SYS_preadv2 SYS_write SYS_writev SYS_pwrite64 SYS_pwritev
        SYS_pwritev2 SYS_lseek SYS_sendfile SYS_splice SYS_tee SYS_vmsplice SYS_copy_file_range SYS_readahead
        SYS_fadvise64 SYS_fallocate SYS_truncate SYS_ftruncate SYS_sync SYS_syncfs SYS_fsync SYS_fdatasync
        SYS_io_setup SYS_io_destroy SYS_io_submit SYS_io_cancel SYS_io_getevents
    ],
    // Files and directories.
    calls![
        SYS_openat SYS_openat2 SYS_name_to_handle_at SYS_faccessat SYS_faccessat2 SYS_fstat SYS_newfstatat
        SYS_statx SYS_statfs SYS_fstatfs SYS_statmount SYS_listmount SYS_getdents64 SYS_readlinkat SYS_linkat
        SYS_symlinkat SYS_unlinkat SYS_renameat2 SYS_mkdirat SYS_mknodat SYS_chdir SYS_fchdir SYS_getcwd
        SYS_fchmod SYS_fchmodat SYS_fchmodat2 SYS_fchown SYS_fchownat SYS_utimensat SYS_getxattr SYS_lgetxattr
        SYS_fgetxattr SYS_getxattrat SYS_setxattr SYS_lsetxattr SYS_fsetxattr SYS_setxattrat SYS_listxattr
        SYS_llistxattr SYS_flistxattr SYS_listxattrat SYS_removexattr SYS_lremovexattr SYS_fremovexattr
        SYS_removexattrat
    ],
    // Sockets.
    calls![
        SYS_socketpair SYS_bind SYS_listen SYS_accept SYS_accept4 SYS_connect SYS_shutdown SYS_getsockname
        SYS_getpeername SYS_getsockopt SYS_setsockopt SYS_sendto SYS_sendmsg SYS_sendmmsg SYS_recvfrom
        SYS_recvmsg SYS_recvmmsg
    ],
    // System V and POSIX queues, semaphores, shared memory.
    calls![
        SYS_msgget SYS_msgctl SYS_msgsnd SYS_msgrcv SYS_semget SYS_semctl SYS_semop SYS_semtimedop SYS_shmget
        SYS_shmctl SYS_shmat SYS_shmdt SYS_mq_open SYS_mq_unlink SYS_mq_getsetattr SYS_mq_notify
        SYS_mq_timedsend SYS_mq_timedreceive
    ],
    // The machine.
    calls![
        SYS_sysinfo SYS_getrandom
    ],
];

/// Calls that this architecture has besides: the older forms of those above.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const HERE: &[c_long] = calls![
    SYS_access SYS_alarm SYS_chmod SYS_chown SYS_creat SYS_dup2 SYS_epoll_create SYS_epoll_ctl_old
    SYS_epoll_wait SYS_epoll_wait_old SYS_eventfd SYS_fork SYS_futimesat SYS_getdents SYS_getpgrp
    SYS_get_thread_area SYS_inotify_init SYS_lchown SYS_link SYS_lstat SYS_mkdir SYS_mknod SYS_open SYS_pause
    SYS_pipe SYS_poll SYS_readlink SYS_rename SYS_rmdir SYS_select SYS_set_thread_area SYS_signalfd SYS_stat
    SYS_symlink SYS_time SYS_unlink SYS_utime SYS_utimes SYS_vfork SYS_arch_prctl SYS_modify_ldt SYS_getrlimit
    SYS_setrlimit SYS_sync_file_range SYS_renameat SYS_io_pgetevents SYS_uretprobe
];
#[cfg(target_arch = "x86_64")]
const SYS_io_pgetevents: c_long = 333;
#[cfg(target_arch = "x86_64")]
const SYS_uretprobe: c_long = 335;

/// As above, by number: `renameat`, `sync_file_range`, `getrlimit`, `setrlimit`, `io_pgetevents`.
#[cfg(target_arch = "aarch64")]
const HERE: &[c_long] = &[38, 84, 163, 164, 292];

/// Calls that go with a capability of the container.
#[rustfmt::skip]
const WITH_CAPABILITY: &[(&str, &[c_long])] = &[
    ("DAC_READ_SEARCH", calls![SYS_open_by_handle_at]),
    ("SYS_ADMIN", calls![
        SYS_bpf SYS_clone SYS_clone3 SYS_fanotify_init SYS_fsconfig SYS_fsmount SYS_fsopen SYS_fspick SYS_lookup_dcookie
        SYS_lsm_get_self_attr SYS_lsm_set_self_attr SYS_lsm_list_modules SYS_mount SYS_mount_setattr SYS_move_mount
        SYS_open_tree SYS_perf_event_open SYS_quotactl SYS_quotactl_fd SYS_setdomainname SYS_sethostname SYS_setns SYS_syslog
        SYS_umount2 SYS_unshare
    ]),
    ("SYS_BOOT", calls![SYS_reboot]),
    ("SYS_CHROOT", calls![SYS_chroot]),
    ("SYS_MODULE", calls![SYS_delete_module SYS_init_module SYS_finit_module]),
    ("SYS_PACCT", calls![SYS_acct]),
    ("SYS_PTRACE", calls![SYS_kcmp SYS_pidfd_getfd SYS_process_madvise]),
    #[cfg(target_arch = "x86_64")]
    ("SYS_RAWIO", calls![SYS_iopl SYS_ioperm]),
    ("SYS_TIME", calls![SYS_settimeofday SYS_clock_settime]),
    ("SYS_TTY_CONFIG", calls![SYS_vhangup]),
    ("SYS_NICE", calls![SYS_get_mempolicy SYS_mbind SYS_set_mempolicy SYS_set_mempolicy_home_node]),
    ("SYSLOG", calls![SYS_syslog]),
    ("BPF", calls![SYS_bpf]),
    ("PERFMON", calls![SYS_perf_event_open]),
];

/// The highest number that the profile was written with: what the kernel has above it is unknown here, and looks as if it were
/// not there (`ENOSYS`), so that a program falls back to an older call, as runc has it.
pub(super) const HIGHEST: c_long = SYS_removexattrat;

/// Protocol families that a socket may have, as ranges: not those of `AF_VSOCK` and `AF_ALG`, nor ones that nobody uses.
pub(super) const SOCKET_FAMILIES: &[(u64, u64)] = &[
    (0, 11),
    (13, 18),
    (21, 22),
    (24, 24),
    (26, 33),
    (35, 36),
    (39, 39),
    (41, 45),
];

/// What `personality` may be called with: to ask, and the few that change nothing but layouts.
pub(super) const PERSONALITIES: &[u64] = &[0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff];

/// Calls that are allowed whatever they are called with.
pub(super) fn allowed(capabilities: Capabilities) -> impl Iterator<Item = c_long> {
    let with_capability = WITH_CAPABILITY
        .iter()
        .filter(move |(name, _)| capabilities.holds(name))
        .map(|(_, calls)| calls);
    let lists = EVERYWHERE.iter().chain([&HERE]).chain(with_capability);
    lists.flat_map(|calls| calls.iter().copied())
}
