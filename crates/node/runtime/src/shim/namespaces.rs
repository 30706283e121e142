//! The namespaces that a pod's containers share, held by the shim through descriptors: there is no pause process, unless they
//! share a pid namespace too.
//!
//! A short-lived helper makes them. The user namespace comes before the network, ipc and uts ones, so that these belong to it:
//! the pod's root may bind port 80 and nothing of the host's.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, OpenTreeFlags, UnmountFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::thread::{CapabilitySets, LinkNameSpaceType, ThreadNameSpaceType, Uid, UnshareFlags};

use super::rootfs::{Setup, attach, filesystem, what};
use super::shared_pids::{Home, Pause};
use crate::config::IdRange;
use crate::netlink::{LOOPBACK, Netlink};
use crate::protocol::Refusal;
use crate::status::{NetworkRecord, SandboxRecord};
use crate::sys::{self, Cloned};

/// No step of the helper takes this long.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// What the helper says when it has made something, and hears when it may go on.
const STEP: &[u8] = b".";

/// The pod's namespaces, and the ones the shim must come back to.
#[derive(Debug)]
pub(crate) struct Namespaces {
    pub(crate) users: OwnedFd,
    /// `None`: the shim's own, which is the host's.
    pub(crate) network: Option<OwnedFd>,
    pub(crate) ipc: OwnedFd,
    pub(crate) uts: OwnedFd,
    /// A mount namespace with nothing in it but the pod's `/dev/shm`.
    shared_memory: OwnedFd,
    host_mounts: OwnedFd,
    host_pids: OwnedFd,
    /// The first process of the pid namespace that the containers share, if they do.
    pub(crate) pause: Option<Pause>,
}

impl Namespaces {
    /// Makes them, connects the network, and leaves no process behind.
    pub(crate) fn create(record: &SandboxRecord) -> Setup<Self> {
        let (mut ours, theirs) = what(UnixStream::pair(), || "cannot make a socket pair".to_owned())?;
        what(ours.set_read_timeout(Some(PATIENCE)), || {
            "cannot limit a wait".to_owned()
        })?;
        let cloned = what(sys::clone_process(0, None), || "cannot start a helper".to_owned())?;
        let Cloned::Parent { pid, pidfd } = cloned else {
            drop(ours);
            let code = helper(record, theirs);
            sys::exit_now(code);
        };
        drop(theirs);
        let made = Self::attend(record, pid, &mut ours);
        if made.is_err() {
            // It may wait for us; what it holds goes with it.
            let _ = sys::signal_process(&pidfd, libc::SIGKILL);
        }
        drop(ours);
        let _ = rustix::process::waitpid(
            rustix::process::Pid::from_raw(pid),
            rustix::process::WaitOptions::empty(),
        );
        let mut made = made?;
        if record.config.share_process_namespace {
            made.pause = Some(made.start_pause()?);
        }
        Ok(made)
    }

    fn start_pause(&self) -> Setup<Pause> {
        Pause::start(&Home {
            users: &self.users,
            network: self.network.as_ref(),
            ipc: &self.ipc,
            uts: &self.uts,
            mounts: &self.shared_memory,
        })
    }

    fn attend(record: &SandboxRecord, helper: i32, channel: &mut UnixStream) -> Setup<Self> {
        hear(channel)?;
        write_id_maps(helper, record.ids)?;
        tell(channel)?;
        hear(channel)?;
        let open = |what_for: &str, pid: &str| {
            let flags = OFlags::RDONLY | OFlags::CLOEXEC;
            what(
                rustix::fs::open(format!("/proc/{pid}/ns/{what_for}"), flags, Mode::empty()),
                || format!("cannot open the {what_for} namespace"),
            )
        };
        let pid = helper.to_string();
        let namespaces = Self {
            users: open("user", &pid)?,
            network: record.network.as_ref().map(|_| open("net", &pid)).transpose()?,
            ipc: open("ipc", &pid)?,
            uts: open("uts", &pid)?,
            shared_memory: open("mnt", &pid)?,
            host_mounts: open("mnt", "self")?,
            host_pids: open("pid", "self")?,
            pause: None,
        };
        if let Some(network) = &record.network {
            connect(network, helper)?;
        }
        tell(channel)?;
        hear(channel)?;
        Ok(namespaces)
    }

    /// Joins network, ipc and uts; the user namespace comes last, in `identity`.
    pub(crate) fn join(&self) -> Setup<()> {
        let network = self.network.as_ref().map(|fd| (fd, LinkNameSpaceType::Network));
        for (fd, kind) in network.into_iter().chain([
            (&self.ipc, LinkNameSpaceType::InterProcessCommunication),
            (&self.uts, LinkNameSpaceType::HostNameAndNISDomainName),
        ]) {
            what(
                rustix::thread::move_into_link_name_space(fd.as_fd(), Some(kind)),
                || format!("cannot join the pod's {kind:?} namespace"),
            )?;
        }
        Ok(())
    }

    /// A TCP socket of the pod's network, connected to nothing: it stays there wherever it is used.
    pub(crate) fn open_socket(&self, ipv6: bool) -> Setup<OwnedFd> {
        let failed = || "cannot open a socket in the pod's network".to_owned();
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let home = what(
            rustix::fs::open("/proc/self/ns/net", flags, Mode::empty()),
            failed,
        )?;
        let enter = |space: &OwnedFd| {
            let kind = Some(LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(space.as_fd(), kind)
        };
        if let Some(network) = &self.network {
            what(enter(network), failed)?;
        }
        let family = if ipv6 {
            AddressFamily::INET6
        } else {
            AddressFamily::INET
        };
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None);
        what(enter(&home), || {
            "cannot return to the host's network namespace".to_owned()
        })?;
        what(socket, failed)
    }

    /// A mount of the pod's `/dev/shm`, to attach elsewhere.
    pub(crate) fn open_shared_memory(&self) -> Setup<OwnedFd> {
        let enter = || {
            let space = Some(LinkNameSpaceType::Mount);
            rustix::thread::move_into_link_name_space(self.shared_memory.as_fd(), space)
        };
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let tree = self.elsewhere(enter, || rustix::mount::open_tree(CWD, "/", flags))?;
        let tree = what(tree, || "cannot enter a mount namespace".to_owned())?;
        what(tree, || "cannot open the pod's shared memory".to_owned())
    }

    /// Does something in the mount namespace of a process, whose root is then ours.
    pub(crate) fn inside_mounts_of<T>(
        &self,
        process: &OwnedFd,
        work: impl FnOnce() -> T,
    ) -> Result<T, Refusal> {
        let enter =
            || rustix::thread::move_into_thread_name_spaces(process.as_fd(), ThreadNameSpaceType::MOUNT);
        match self.elsewhere(enter, work) {
            Ok(Ok(done)) => Ok(done),
            // It has ended, and only its exit status is left.
            Ok(Err(Errno::SRCH)) => Err(Refusal::NotRunning),
            Ok(Err(error)) => Err(Refusal::Setup {
                message: format!("cannot enter the container's mount namespace: {error}"),
            }),
            Err(message) => Err(Refusal::Setup { message }),
        }
    }

    /// Enters another mount namespace, does something, and comes back to the host's and the working directory.
    fn elsewhere<T>(
        &self,
        enter: impl FnOnce() -> Result<(), Errno>,
        work: impl FnOnce() -> T,
    ) -> Setup<Result<T, Errno>> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let here = what(rustix::fs::open(".", flags, Mode::empty()), || {
            "cannot open the working directory".to_owned()
        })?;
        if let Err(error) = enter() {
            return Ok(Err(error));
        }
        let done = work();
        let home = Some(LinkNameSpaceType::Mount);
        what(
            rustix::thread::move_into_link_name_space(self.host_mounts.as_fd(), home),
            || "cannot return to the host's mount namespace".to_owned(),
        )?;
        what(rustix::process::fchdir(&here), || {
            "cannot return to the working directory".to_owned()
        })?;
        Ok(Ok(done))
    }

    /// Forks into a new mount namespace, and into the pid namespace of the pod or of `target`, or a new one.
    pub(crate) fn clone_container(
        &self,
        target: Option<&OwnedFd>,
        cgroup: Option<BorrowedFd<'_>>,
    ) -> io::Result<Cloned> {
        match target.or(self.pause.as_ref().map(|pause| &pause.pidfd)) {
            Some(process) => self.clone_inside(process, libc::CLONE_NEWNS, cgroup),
            None => sys::clone_process((libc::CLONE_NEWPID | libc::CLONE_NEWNS) as u64, cgroup),
        }
    }

    /// Forks into the pid namespace of a process.
    pub(crate) fn clone_beside(
        &self,
        process: &OwnedFd,
        cgroup: Option<BorrowedFd<'_>>,
    ) -> io::Result<Cloned> {
        self.clone_inside(process, 0, cgroup)
    }

    fn clone_inside(
        &self,
        process: &OwnedFd,
        namespaces: i32,
        cgroup: Option<BorrowedFd<'_>>,
    ) -> io::Result<Cloned> {
        rustix::thread::move_into_thread_name_spaces(process.as_fd(), ThreadNameSpaceType::PROCESS_ID)?;
        let cloned = sys::clone_process(namespaces as u64, cgroup);
        // The child has nowhere to return to, and must not come back from here with an error.
        if matches!(cloned, Ok(Cloned::Child)) {
            return cloned;
        }
        rustix::thread::move_into_link_name_space(
            self.host_pids.as_fd(),
            Some(LinkNameSpaceType::ProcessID),
        )?;
        cloned
    }
}

/// The helper's whole life; returns its exit code.
fn helper(record: &SandboxRecord, mut channel: UnixStream) -> i32 {
    match make(record, &mut channel) {
        Ok(()) => 0,
        Err(message) => {
            let _ = channel.write_all(message.as_bytes());
            1
        }
    }
}

fn make(record: &SandboxRecord, channel: &mut UnixStream) -> Setup<()> {
    let proc = shared_memory(record.ids)?;
    become_creator(record.ids)?;
    unshare(UnshareFlags::NEWUSER, "user")?;
    tell(channel)?;
    hear(channel)?;
    let mut flags = UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    if record.network.is_some() {
        flags |= UnshareFlags::NEWNET;
    }
    unshare(flags, "network, ipc or host name")?;
    what(
        rustix::system::sethostname(record.config.hostname.as_bytes()),
        || "cannot set the host name".to_owned(),
    )?;
    tell(channel)?;
    hear(channel)?;
    if let Some(network) = &record.network {
        configure(network, &proc)?;
    }
    tell(channel)
}

/// Of what the kernel counts for each user (inotify instances and watches, namespaces, …) the pod's own counts for whoever made its
/// user namespace as well. That is not root, whose limits are those of the node's agent and of all other pods, but the pod's
/// first id. Its capabilities stay: a host may let nobody else make user namespaces.
fn become_creator(ids: IdRange) -> Setup<()> {
    let failed = || "cannot act for the pod's first id".to_owned();
    let (root, creator) = (Uid::ROOT, Uid::from_raw(ids.base));
    what(rustix::thread::set_thread_res_uid(root, creator, root), failed)?;
    let held = what(rustix::thread::capabilities(None), failed)?;
    let sets = CapabilitySets {
        effective: held.permitted,
        ..held
    };
    what(rustix::thread::set_capabilities(None, sets), failed)
}

fn unshare(flags: UnshareFlags, name: &str) -> Setup<()> {
    // SAFETY: descriptors stay shared with nobody: this process has one thread, and FILES is not among the flags.
    what(unsafe { rustix::thread::unshare_unsafe(flags) }, || {
        format!("cannot make a {name} namespace")
    })
}

/// A mount namespace whose root is the pod's `/dev/shm`. It belongs to the host's root and holds no other mount. Returns
/// the host's `/proc`, which no longer has a path, for one setting of the network namespace to come.
fn shared_memory(ids: IdRange) -> Setup<OwnedFd> {
    unshare(UnshareFlags::NEWNS, "mount")?;
    let failed = || "cannot make the pod's shared memory".to_owned();
    what(
        rustix::mount::mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE),
        failed,
    )?;
    let owner = ids.base.to_string();
    // 64 MiB as containerd has it.
    let options = [
        ("mode", "1777"),
        ("size", "64m"),
        ("uid", owner.as_str()),
        ("gid", owner.as_str()),
    ];
    let attributes = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV | libc::MOUNT_ATTR_NOEXEC;
    let memory = filesystem("tmpfs", &options, attributes)?;
    attach(&memory, CWD, ".")?;
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let proc = what(rustix::fs::open("/proc", flags, Mode::empty()), failed)?;
    let here = what(rustix::process::getcwd(Vec::new()), failed)?;
    what(rustix::process::chdir(here), failed)?;
    what(rustix::process::pivot_root(".", "."), failed)?;
    what(rustix::mount::unmount(".", UnmountFlags::DETACH), failed)?;
    what(rustix::process::chdir("/"), failed)?;
    Ok(proc)
}

fn write_id_maps(pid: i32, ids: IdRange) -> Setup<()> {
    for file in ["uid_map", "gid_map"] {
        let map = format!("0 {} {}\n", ids.base, IdRange::LEN);
        what(fs::write(format!("/proc/{pid}/{file}"), map), || {
            format!("cannot write the pod's {file}")
        })?;
    }
    Ok(())
}

/// From the host's side: a pair of links, one end on the bridge.
fn connect(network: &NetworkRecord, helper: i32) -> Setup<()> {
    let failed = || format!("cannot connect the pod to the bridge {}", network.bridge);
    let mut netlink = what(Netlink::open(), failed)?;
    let bridge = what(netlink.index_of(&network.bridge), failed)?;
    let added = match netlink.add_veth(&network.host_link, bridge, "eth0", helper as u32) {
        // Of a shim that was killed, and whose network has not ended yet.
        Err(error) if error.raw_os_error() == Some(libc::EEXIST) => {
            what(netlink.remove_link(&network.host_link), failed)?;
            netlink.add_veth(&network.host_link, bridge, "eth0", helper as u32)
        }
        added => added,
    };
    what(added, failed)
}

/// From the pod's side: loopback, address, route.
fn configure(network: &NetworkRecord, proc: &OwnedFd) -> Setup<()> {
    let failed = || "cannot configure the pod's network".to_owned();
    // The pods' network is IPv4. With ::1 alone a client that takes the first address of `localhost` finds nobody there,
    // since most servers listen on IPv4 (as moby does without an IPv6 network).
    set(proc, "sys/net/ipv6/conf/all/disable_ipv6", b"1")?;
    let mut netlink = what(Netlink::open(), failed)?;
    what(netlink.set_up(LOOPBACK), failed)?;
    let link = what(netlink.index_of("eth0"), failed)?;
    what(
        netlink.add_address(link, network.address, network.prefix_len),
        failed,
    )?;
    what(netlink.set_up(link), failed)?;
    what(netlink.add_default_route(network.gateway), failed)?;
    // As containerd sets it (`enable_unprivileged_ports`): a user other than 0 may serve port 80.
    set(proc, "sys/net/ipv4/ip_unprivileged_port_start", b"0")
}

/// Makes a setting of the network namespace that this process is in. A kernel without IPv6 has none for it.
fn set(proc: &OwnedFd, setting: &str, value: &[u8]) -> Setup<()> {
    match rustix::fs::openat(proc, setting, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
        Err(Errno::NOENT) if setting.starts_with("sys/net/ipv6/") => Ok(()),
        file => {
            let mut file = File::from(what(file, || format!("cannot open {setting}"))?);
            what(file.write_all(value), || format!("cannot write {setting}"))
        }
    }
}

pub(super) fn tell(channel: &mut UnixStream) -> Setup<()> {
    what(channel.write_all(STEP), || {
        "the other side of the setup is gone".to_owned()
    })
}

/// Waits for the other side's step; anything else is its last words.
pub(super) fn hear(channel: &mut UnixStream) -> Setup<()> {
    let gone = || "the other side of the setup is gone".to_owned();
    let mut first = [0; 1];
    what(channel.read_exact(&mut first), gone)?;
    if first == STEP {
        return Ok(());
    }
    let mut message = first.to_vec();
    what(channel.take(4_096).read_to_end(&mut message), gone)?;
    Err(String::from_utf8_lossy(&message).into_owned())
}
