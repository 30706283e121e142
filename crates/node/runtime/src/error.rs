//! One error per operation.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::pod_cidr::PodCidr;

/// Why a runtime could not be opened. Pods that run keep running.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Containers need root of the host: it makes mounts, namespaces and links.
    #[error("containers need root (the effective uid is {uid}, not 0)")]
    NotRoot {
        /// The effective uid.
        uid: u32,
    },
    /// The kernel lacks something that containers need.
    #[error("this kernel cannot run containers: {what}")]
    Unsupported {
        /// What is missing.
        what: String,
    },
    /// A file of the state directory could not be read or written.
    #[error("cannot use the state directory: {}", .path.display())]
    State {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The state directory was written by a newer release.
    #[error("{} has version {found}, newer than {supported}", .path.display())]
    NewerState {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// The newest version that this program reads.
        supported: u32,
    },
    /// No pod network is free.
    #[error(
        "cannot choose a pod network: every /16 of 10.88.0.0 to 10.95.0.0 overlaps an address or route of this host; \
         name another network with --pod-cidr; links named hm… belong to instances of hotmap: end those that nobody needs \
         with `hotmap down --data-dir DIR`, or remove their link"
    )]
    NoFreeNetwork,
    /// The pod network that was asked for is somebody's already.
    #[error("the pod network {wanted} overlaps this host's {taken}: name another one with --pod-cidr")]
    PodCidrTaken {
        /// What was asked for.
        wanted: PodCidr,
        /// The route or address in the way.
        taken: String,
    },
    /// Pods run in another network than the one that was asked for.
    #[error("pods run in the network {held}: end them with `hotmap down` before they have {wanted}")]
    PodCidrInUse {
        /// What was asked for.
        wanted: PodCidr,
        /// What the pods have.
        held: PodCidr,
    },
    /// No range of host ids is free.
    #[error("cannot choose host ids for pods: every window is taken by another instance")]
    NoFreeIds,
    /// The host's network could not be read.
    #[error("cannot read the host's links, addresses and routes")]
    Network(#[source] io::Error),
}

/// Why a sandbox could not be made, stopped or removed.
#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    /// The configuration breaks a rule.
    #[error("{0}")]
    Invalid(String),
    /// A sandbox of that pod is already there.
    #[error("pod {0} already has a sandbox")]
    Exists(String),
    /// The instance's window of 256 id ranges, or its network, is used up.
    #[error("no {0} is free for another pod")]
    Exhausted(&'static str),
    /// A file of the sandbox could not be written or removed.
    #[error("cannot use the sandbox's files: {}", .path.display())]
    Files {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The bridge could not be made.
    #[error("cannot set up the pod bridge {bridge}")]
    Bridge {
        /// The bridge.
        bridge: String,
        /// What the system said.
        source: io::Error,
    },
    /// The shim could not be started.
    #[error("cannot start the pod's shim")]
    Spawn(#[source] io::Error),
    /// The shim started and gave up; what it had made is gone again.
    #[error("cannot make the sandbox: {0}")]
    Setup(String),
    /// The shim does not answer.
    #[error("the pod's shim does not answer")]
    Shim(#[source] io::Error),
    /// Processes of the pod are still there after SIGKILL; try again later.
    #[error("processes of pod {0} did not end")]
    StillRunning(String),
}

/// Why a container did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// No sandbox, or one that can only be removed.
    #[error("pod {0} has no ready sandbox")]
    NoSandbox(String),
    /// The configuration breaks a rule.
    #[error("{0}")]
    Invalid(String),
    /// The container is privileged and this runtime refuses that.
    #[error("privileged containers are not allowed")]
    Privileged,
    /// The same name runs already, or the attempt was used.
    #[error("container {name} attempt {attempt} already exists, or {name} still runs")]
    Exists {
        /// The container.
        name: String,
        /// The attempt.
        attempt: u32,
    },
    /// The container whose processes it is to share does not run.
    #[error("target container {0} does not run: there are no processes to share")]
    NoTarget(String),
    /// The pod's shim is of a release that gives containers no targets.
    #[error(
        "the pod was started by an earlier release, whose containers cannot share the processes of a target: delete it and create it anew, or leave the target out"
    )]
    NoTargets,
    /// A mount, an identity or a file could not be made. CRI calls this a create error.
    #[error("{0}")]
    Setup(String),
    /// The program could not be executed, in the words that runc and containerd use: `exec: "foo": executable file not found in
    /// $PATH`. CRI calls this a run error; upstream reports exit code 128 and reason `StartError`.
    #[error("{0}")]
    Exec(String),
    /// The shim does not answer; the container may or may not run.
    #[error("the pod's shim does not answer")]
    Shim(#[source] io::Error),
}

/// Why a container could not be stopped or removed.
#[derive(Debug, thiserror::Error)]
pub enum ContainerError {
    /// No such sandbox.
    #[error("pod {0} has no sandbox")]
    NoSandbox(String),
    /// It runs; stop it first.
    #[error("container {0} still runs")]
    Running(String),
    /// The request breaks a rule.
    #[error("{0}")]
    Invalid(String),
    /// The container's files could not be removed.
    #[error("cannot remove {}", .path.display())]
    Files {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The shim does not answer.
    #[error("the pod's shim does not answer")]
    Shim(#[source] io::Error),
}

/// Why a mount still shows what it showed.
#[derive(Debug, thiserror::Error)]
pub enum SwapError {
    /// No such container, or it has ended: there is nothing to swap any more.
    #[error("the container is not running")]
    NotRunning,
    /// The kernel or the container stands in the way, and will for as long as this attempt runs.
    #[error("{0}")]
    Unavailable(String),
    /// The pod was started by a release that could not do this.
    #[error("the pod's shim is of an earlier release and cannot do this: it takes a new sandbox")]
    OldShim,
    /// It may work another time.
    #[error("{0}")]
    Failed(String),
    /// The shim does not answer; the mount may show either.
    #[error("the pod's shim does not answer")]
    Shim(#[source] io::Error),
}

/// Why nobody knows whether a container would start with another environment.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// No such container, or it has ended.
    #[error("the container is not running")]
    NotRunning,
    /// The pod was started by a release that could not do this.
    #[error("the pod's shim is of an earlier release and cannot do this: it takes a new sandbox")]
    OldShim,
    /// The shim refused.
    #[error("{0}")]
    Failed(String),
    /// The shim does not answer.
    #[error("the pod's shim does not answer")]
    Shim(#[source] io::Error),
}

/// Why a command did not run in a container.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// No sandbox, or one that can only be removed.
    #[error("pod {0} has no ready sandbox")]
    NoSandbox(String),
    /// No such container, or it has ended. kubectl users know the text.
    #[error("container {0} is not running")]
    NotRunning(String),
    /// The request breaks a rule.
    #[error("{0}")]
    Invalid(String),
    /// Joining the container failed.
    #[error("{0}")]
    Setup(String),
    /// The program could not be executed, in runc's words. Upstream shows exit code 126 or 127 for these.
    #[error("{message}")]
    Exec {
        /// `exec: "foo": executable file not found in $PATH` and the like.
        message: String,
        /// 127 when nothing of that name is there, else 126.
        exit_code: i32,
    },
    /// The command took longer than it may, and was killed.
    #[error("command timed out after {0:?}")]
    Timeout(Duration),
    /// More sessions than a pod may have at once.
    #[error("too many exec sessions in pod {0}")]
    TooMany(String),
    /// The shim does not answer.
    #[error("the pod's shim does not answer")]
    Shim(#[source] io::Error),
}

/// Why nobody takes part in a container's streams, or no longer.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// No sandbox, or one that can only be removed.
    #[error("pod {0} has no ready sandbox")]
    NoSandbox(String),
    /// No such container, or it has ended. kubectl users know the text.
    #[error("container {0} is not running")]
    NotRunning(String),
    /// As many as there may be have attached.
    #[error("too many clients are attached to container {container} of pod {pod_uid}")]
    TooMany {
        /// The container.
        container: String,
        /// The pod.
        pod_uid: String,
    },
    /// Output was not read as fast as it came.
    #[error(
        "cut off: 1 MiB of output was waiting for this client, and the container waits for nobody; kubectl logs has all of it"
    )]
    TooSlow,
    /// The pod was started by a release that could not do this.
    #[error(
        "the pod was started by an earlier release, which nobody can attach to: delete it and create it anew"
    )]
    OldShim,
    /// It may work another time.
    #[error("{0}")]
    Failed(String),
    /// The shim does not answer.
    #[error("the pod's shim does not answer")]
    Shim(#[source] io::Error),
}

/// Why there is no connection to a port of a pod.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No sandbox, or one that can only be removed.
    #[error("pod {0} has no ready sandbox")]
    NoSandbox(String),
    /// Nobody listens, or nothing answers.
    #[error("failed to connect to localhost:{port} inside the pod's network: {}", plain(.source))]
    Port {
        /// The port.
        port: u16,
        /// What the system said.
        source: io::Error,
    },
    /// The pod was started by a release that could not do this.
    #[error(
        "the pod was started by an earlier release, which cannot forward ports: delete it and create it anew"
    )]
    OldShim,
    /// It may work another time.
    #[error("{0}")]
    Failed(String),
    /// The shim does not answer.
    #[error("the pod's shim does not answer")]
    Shim(#[source] io::Error),
}

/// As kubectl users know it: `connection refused`, without a capital letter and a number.
fn plain(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::TimedOut => "connection timed out".to_owned(),
        _ => error.to_string(),
    }
}

/// Why an instance could not be purged; what is named is still there.
#[derive(Debug, thiserror::Error)]
pub enum PurgeError {
    /// Processes are still there after SIGKILL.
    #[error("processes of the instance did not end")]
    Processes,
    /// A link of the instance, or its nftables table, could not be removed.
    #[error("cannot remove the instance's network")]
    Links(#[source] io::Error),
    /// A file or cgroup could not be removed.
    #[error("cannot remove {}", .path.display())]
    Files {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
