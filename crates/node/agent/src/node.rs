//! The Node object and its Lease: how the API knows that this node is there.

mod lease;

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use hotmap_client::{Client, ClientError, PatchType, ResourcePath, WriteParams};
use hotmap_object::{Quantity, timestamp};
use jiff::Timestamp;
use serde_json::{Value, json};
use tracing::{info, warn};

use crate::{api_clock::ApiClock, objects::ServerKind};

pub use lease::HeldByAnother;
pub(crate) use lease::{LeaseError, NodeLease};

/// How often the lease is renewed: upstream's default.
const LEASE_RENEWAL: Duration = Duration::from_secs(10);
/// How often the status is told although nothing has changed (`nodeStatusReportFrequency`, Kubernetes 1.36).
const STATUS_REFRESH: Duration = Duration::from_secs(300);
/// Keeps pods that did not ask for it from a node that runs them over the host's own files.
const HOST_RUNTIME_TAINT: &str = "hotmap.dev/host-runtime";
/// Pods a node takes: upstream's default.
const PODS_MAX: u32 = 110;

/// Facts about the machine, read once.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    pub(crate) name: String,
    pub(crate) internal_ip: String,
    /// Where logs and commands are served; `None` where the API server reaches them in its own process.
    port: Option<u16>,
    capacity: BTreeMap<&'static str, String>,
    info: Value,
}

impl Machine {
    /// Reads the host's facts.
    pub(crate) fn read(name: &str, internal_ip: &str, port: Option<u16>, data_dir: &Path) -> Self {
        let uname = rustix::system::uname();
        let release = |key: &str| os_release(key).unwrap_or_default();
        let text = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
        let architecture = match uname.machine().to_bytes() {
            b"x86_64" => "amd64".to_owned(),
            b"aarch64" => "arm64".to_owned(),
            other => String::from_utf8_lossy(other).into_owned(),
        };
        let version = format!("v1.36.0+hotmap.{}", env!("CARGO_PKG_VERSION"));
        Self {
            name: name.to_owned(),
            internal_ip: internal_ip.to_owned(),
            port,
            capacity: capacity(data_dir),
            info: json!({
                "architecture": architecture, "bootID": text("/proc/sys/kernel/random/boot_id"),
                "containerRuntimeVersion": concat!("hotmap://", env!("CARGO_PKG_VERSION")),
                "kernelVersion": uname.release().to_string_lossy(), "kubeProxyVersion": "", "kubeletVersion": version,
                "machineID": text("/etc/machine-id"), "operatingSystem": "linux", "osImage": release("PRETTY_NAME"),
                "systemUUID": text("/sys/class/dmi/id/product_uuid"),
            }),
        }
    }

    /// What pods may use, by resource name.
    pub(crate) fn allocatable(&self) -> BTreeMap<String, Quantity> {
        self.capacity
            .iter()
            .filter_map(|(name, text)| Some(((*name).to_owned(), text.parse().ok()?)))
            .collect()
    }

    /// All memory there is; 0 if nobody knows.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let memory = self
            .capacity
            .get("memory")
            .and_then(|text| text.parse::<Quantity>().ok());
        memory.map_or(0, |memory| {
            u64::try_from(memory.div_ceil(Quantity::whole(1))).unwrap_or(0)
        })
    }

    /// What a node begins with. In a cluster that is not ours nothing comes to it by accident: a pod whose image is a
    /// program of the host must ask for this node.
    fn first_document(&self, server: ServerKind) -> Value {
        let mut document = self.document();
        if server == ServerKind::Stock {
            document["spec"]["taints"] = json!([{"key": HOST_RUNTIME_TAINT, "effect": "NoSchedule"}]);
        }
        document
    }

    fn document(&self) -> Value {
        let architecture = &self.info["architecture"];
        json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.name, "labels": {
            "kubernetes.io/hostname": self.name, "kubernetes.io/os": "linux", "kubernetes.io/arch": architecture,
            "hotmap.dev/runtime": "host",
        }}})
    }

    /// Upstream's name for where logs and commands are served.
    fn daemon_endpoints(&self) -> Value {
        match self.port {
            Some(port) => json!({"kubeletEndpoint": {"Port": port}}),
            None => json!({}),
        }
    }

    fn status(&self, held: &Value, now: Timestamp) -> Value {
        let conditions = [
            (
                "MemoryPressure",
                "False",
                "KubeletHasSufficientMemory",
                "memory pressure is not measured",
            ),
            (
                "DiskPressure",
                "False",
                "KubeletHasNoDiskPressure",
                "disk pressure is not measured",
            ),
            (
                "PIDPressure",
                "False",
                "KubeletHasSufficientPID",
                "pid pressure is not measured",
            ),
            ("Ready", "True", "KubeletReady", "the node runs pods"),
        ];
        let conditions: Vec<Value> = conditions
            .iter()
            .map(|(kind, status, reason, message)| {
                let same = held["status"]["conditions"].as_array().into_iter().flatten();
                let mut same = same.filter(|one| one["type"] == *kind && one["status"] == *status);
                let since = same.find_map(|one| one["lastTransitionTime"].as_str().map(str::to_owned));
                json!({"type": kind, "status": status, "reason": reason, "message": message,
                    "lastHeartbeatTime": timestamp::seconds(now),
                    "lastTransitionTime": since.unwrap_or_else(|| timestamp::seconds(now))})
            })
            .collect();
        json!({"status": {
            "addresses": [{"type": "InternalIP", "address": self.internal_ip}, {"type": "Hostname", "address": self.name}],
            "capacity": self.capacity, "allocatable": self.capacity, "conditions": conditions, "nodeInfo": self.info,
            "daemonEndpoints": self.daemon_endpoints(),
        }})
    }
}

fn capacity(data_dir: &Path) -> BTreeMap<&'static str, String> {
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get());
    let memory_kib = fs::read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    let disk = rustix::fs::statvfs(data_dir)
        .map(|stat| stat.f_blocks * stat.f_frsize / 1024)
        .ok();
    let mut capacity = BTreeMap::from([("cpu", cpus.to_string()), ("pods", PODS_MAX.to_string())]);
    capacity.extend(memory_kib.map(|kib| ("memory", format!("{kib}Ki"))));
    capacity.extend(disk.map(|kib| ("ephemeral-storage", format!("{kib}Ki"))));
    capacity
}

fn os_release(key: &str) -> Option<String> {
    let text = fs::read_to_string(PathBuf::from("/etc/os-release")).ok()?;
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
    Some(value.trim_matches('"').to_owned())
}

/// Registers the node, or takes over the object of that name, and says that it is ready.
pub(crate) async fn register(
    client: &Client,
    machine: &Machine,
    server: ServerKind,
) -> Result<(), ClientError> {
    let nodes = ResourcePath::new("", "v1", "nodes");
    let path = nodes.clone().name(machine.name.as_str());
    let write = WriteParams::default();
    let held = match client
        .create(&nodes, &machine.first_document(server), &write)
        .await
    {
        Ok(created) => created,
        Err(error) if error.is_already_exists() => {
            client
                .patch(&path, PatchType::StrategicMerge, &machine.document(), &write)
                .await?
        }
        Err(error) => return Err(error),
    };
    tell_status(client, machine, &held.parse()?).await?;
    info!(node = %machine.name, "node registered");
    Ok(())
}

/// Says that the node is there, until another agent does: a heartbeat needs a clock. When that jumps the lease may look run
/// out, or renewed in the future, to others: it is renewed at once. The answers tell what time it is for the API server.
pub(crate) async fn keep_alive(
    client: Client,
    machine: Machine,
    mut lease: NodeLease,
    server: ServerKind,
    api_clock: ApiClock,
) -> HeldByAnother {
    let mut told = Instant::now();
    let mut clock_jumps = api_clock.own_jumps();
    loop {
        match lease.renew(&client).await {
            Ok(()) => {}
            Err(LeaseError::Held(by)) => return by,
            Err(LeaseError::Client(error)) => warn!(node = %machine.name, %error, "lease not renewed"),
        }
        match refresh(&client, &machine, server, told.elapsed() >= STATUS_REFRESH).await {
            Ok(true) => told = Instant::now(),
            Ok(false) => {}
            Err(error) => warn!(node = %machine.name, %error, "node status not refreshed"),
        }
        if let Some(answer) = client.newest_date() {
            api_clock.observe(answer);
        }
        tokio::select! {
            () = tokio::time::sleep(LEASE_RENEWAL) => {}
            () = clock_jumps.next() => {}
        }
    }
}

/// Looks whether the Node is still there and makes it anew if not; tells its status if that `is_due`. True if it was told.
async fn refresh(
    client: &Client,
    machine: &Machine,
    server: ServerKind,
    is_due: bool,
) -> Result<bool, ClientError> {
    let path = ResourcePath::new("", "v1", "nodes").name(machine.name.as_str());
    let held = match client.get(&path).await {
        Ok(held) => held,
        Err(error) if error.is_not_found() => {
            warn!(node = %machine.name, "the node was deleted from the API, registering it again");
            return register(client, machine, server).await.map(|()| true);
        }
        Err(error) => return Err(error),
    };
    let held: Value = held.parse()?;
    // While no lease was renewed the API may have given the node up: it is to hear at once that this was too early.
    let is_due = is_due || !is_ready(&held);
    if is_due {
        tell_status(client, machine, &held).await?;
    }
    Ok(is_due)
}

fn is_ready(node: &Value) -> bool {
    let mut conditions = node["status"]["conditions"].as_array().into_iter().flatten();
    conditions.any(|one| one["type"] == "Ready" && one["status"] == "True")
}

async fn tell_status(client: &Client, machine: &Machine, held: &Value) -> Result<(), ClientError> {
    let path = ResourcePath::new("", "v1", "nodes").name(machine.name.as_str());
    let status = machine.status(held, Timestamp::now());
    let (path, write) = (path.subresource("status"), WriteParams::default());
    client
        .patch(&path, PatchType::StrategicMerge, &status, &write)
        .await
        .map(drop)
}
