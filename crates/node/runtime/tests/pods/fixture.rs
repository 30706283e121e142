//! An instance of its own for each test, gone afterwards whatever happened.

use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hotmap_runtime::{
    BootId, Capabilities, ContainerConfig, ContainerState, ContainerStatus, Event, Events, ExecSyncOutput,
    Exit, InstanceId, LogLimits, PodNetworkConfig, ProcessUser, Resources, Runtime, RuntimeConfig, Sandbox,
    SandboxConfig, SeccompProfile, Stdin,
};

pub(crate) const POD: &str = "11111111-2222-3333-4444-555555555555";

pub(crate) struct Fixture {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) config: RuntimeConfig,
}

impl Fixture {
    /// As [`Fixture::new`]; `None` also where the kernel does not mount beneath a mount.
    pub(crate) fn that_swaps_mounts() -> Option<Self> {
        if let Err(too_old) = hotmap_runtime::can_mount_beneath() {
            eprintln!("skipped: no mount changes here: {too_old}");
            return None;
        }
        Self::new()
    }

    /// `None`, with the reason on stderr, where pods cannot run.
    pub(crate) fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: pods need root");
            return None;
        }
        let may_namespace = std::process::Command::new("unshare")
            .args(["-n", "-m", "-p", "-f", "-U", "true"])
            .status();
        if !may_namespace.is_ok_and(|status| status.success()) {
            eprintln!("skipped: this machine does not let root make namespaces");
            return None;
        }
        // An agent that is to be killed cannot clean up, so it works in the directory of who kills it.
        let place = std::env::var_os("HOTMAP_TEST_AGENT").unwrap_or_else(|| "/var/tmp".into());
        let dir = tempfile::Builder::new()
            .prefix("hotmap-runtime-")
            .tempdir_in(place)
            .expect("a directory");
        let name = dir
            .path()
            .file_name()
            .and_then(|name| name.to_str())
            .expect("utf-8");
        let suffix: String = name
            .bytes()
            .rev()
            .take(6)
            .map(|byte| format!("{byte:x}"))
            .collect();
        let hash = suffix.bytes().fold(7u32, |hash, byte| {
            hash.wrapping_mul(31).wrapping_add(u32::from(byte))
        });
        let instance_id: InstanceId = format!("{hash:08x}").parse().expect("valid");
        let config = RuntimeConfig {
            state_dir: dir.path().join("data/pods"),
            instance_id,
            allow_privileged: false,
            mask: vec![dir.path().join("data")],
            self_exe: PathBuf::from(env!("CARGO_BIN_EXE_hotmap-shim")),
            boot_id: BootId::current().expect("a boot id"),
            pod_network: PodNetworkConfig::default(),
        };
        Some(Self { dir, config })
    }

    pub(crate) async fn open(&self) -> Runtime {
        Runtime::open(self.config.clone()).await.expect("opened")
    }

    pub(crate) async fn pod(&self, runtime: &Runtime) -> Sandbox {
        runtime.run_sandbox(sandbox(POD)).await.expect("a sandbox")
    }

    pub(crate) fn log_path(&self, name: &str) -> PathBuf {
        self.dir.path().join("logs").join(name).join("0.log")
    }

    /// A container that runs a script of Debian's busybox.
    pub(crate) fn script(&self, name: &str, script: &str) -> ContainerConfig {
        self.container(name, &["/bin/busybox", "sh", "-c", script])
    }

    pub(crate) fn container(&self, name: &str, argv: &[&str]) -> ContainerConfig {
        ContainerConfig {
            name: name.to_owned(),
            attempt: 0,
            argv: argv.iter().map(|argument| (*argument).to_owned()).collect(),
            env: Vec::new(),
            cwd: "/".into(),
            user: ProcessUser::default(),
            capabilities: Capabilities::default(),
            no_new_privileges: true,
            seccomp: SeccompProfile::Unconfined,
            privileged: false,
            read_only_root: false,
            mounts: Vec::new(),
            writable: Vec::new(),
            links: Vec::new(),
            files: Vec::new(),
            log_path: self.log_path(name),
            log_limits: LogLimits::default(),
            tty: false,
            stdin: Stdin::Empty,
            resources: Resources::default(),
            oom_score_adj: None,
            target: None,
        }
    }

    /// The messages of a container's log.
    pub(crate) fn log(&self, name: &str) -> Vec<String> {
        let text = std::fs::read(self.log_path(name)).expect("a log");
        String::from_utf8_lossy(&text)
            .lines()
            .map(|line| {
                line.splitn(4, ' ')
                    .nth(3)
                    .expect("time, stream, tag, message")
                    .to_owned()
            })
            .collect()
    }

    /// Runs a script to its end; its exit code and log.
    pub(crate) async fn run(&self, runtime: &Runtime, config: ContainerConfig) -> (i32, Vec<String>) {
        let name = config.name.clone();
        let mut events = runtime.events();
        runtime.start_container(POD, config).await.expect("started");
        let exit = exit_of(&mut events, &name, 0).await;
        (exit.exit_code, self.log(&name))
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        let config = self.config.clone();
        let purge = move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime");
            runtime.block_on(Runtime::purge(config))
        };
        let purged = std::thread::spawn(purge).join().expect("no panic");
        if let Err(error) = purged {
            eprintln!("not purged: {error}");
        }
    }
}

pub(crate) fn sandbox(pod_uid: &str) -> SandboxConfig {
    SandboxConfig {
        pod_uid: pod_uid.to_owned(),
        namespace: "default".to_owned(),
        name: "web".to_owned(),
        hostname: "web".to_owned(),
        share_process_namespace: false,
        host_network: false,
        resources: Resources::default(),
    }
}

/// A pod's own address.
pub(crate) fn address(pod: &Sandbox) -> Ipv4Addr {
    pod.ip.expect("a network of its own")
}

/// The end of an attempt; fails after half a minute.
pub(crate) async fn exit_of(events: &mut Events, name: &str, attempt: u32) -> Exit {
    let wait = async {
        loop {
            if let Event::ContainerExited(exited) = events.next().await.expect("the runtime is open")
                && exited.container == name
                && exited.attempt == attempt
            {
                return exited.exit;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait)
        .await
        .expect("the container ended")
}

pub(crate) async fn exec(runtime: &Runtime, container: &str, script: &str) -> ExecSyncOutput {
    let argv = ["/bin/busybox", "sh", "-c", script].map(str::to_owned).to_vec();
    runtime
        .exec_sync(POD, container, argv, Duration::from_secs(30), 1 << 20)
        .await
        .expect("executed")
}

pub(crate) async fn stdout_of(runtime: &Runtime, container: &str, script: &str) -> String {
    String::from_utf8(exec(runtime, container, script).await.stdout)
        .expect("utf-8")
        .trim()
        .to_owned()
}

pub(crate) fn host_pid(status: &ContainerStatus) -> i32 {
    match status.state {
        ContainerState::Running { pid, .. } => pid,
        ContainerState::Exited(_) => panic!("it has ended"),
    }
}

/// Fetches `/` of a pod over HTTP/1.0; tries again while nobody listens yet.
pub(crate) async fn http_get(ip: Ipv4Addr, path: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let fetch = async {
        loop {
            if let Ok(mut stream) = tokio::net::TcpStream::connect((ip, 80)).await {
                let request = format!("GET {path} HTTP/1.0\r\n\r\n");
                stream.write_all(request.as_bytes()).await.expect("sent");
                let mut text = String::new();
                stream.read_to_string(&mut text).await.expect("received");
                return text;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), fetch)
        .await
        .expect("an answer")
}

pub(crate) fn mount(source: &Path, target: &str, read_only: bool) -> hotmap_runtime::MountConfig {
    hotmap_runtime::MountConfig {
        source: source.to_owned(),
        target: target.into(),
        read_only,
        id_mapped: false,
    }
}
