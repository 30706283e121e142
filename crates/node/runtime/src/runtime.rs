//! The agent's side: sandboxes and containers as async calls.

mod addresses;
pub(crate) mod attach;
mod cleanup;
mod compare;
mod connection;
mod containers;
mod ending;
mod exec;
mod instance;
mod mount_swap;
mod pod_network;
mod pods;
mod removal;
mod spawn;
mod state_dir;
mod validate;
mod zygote;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::spawn_blocking;
use tracing::{info, warn};

use crate::cgroup::{self, Unenforced};
use crate::config::{IdRange, RuntimeConfig};
use crate::error::{OpenError, PurgeError, SandboxError};
use crate::events::Events;
use crate::netlink::Netlink;
use crate::pod_cidr::PodCidr;
use crate::protocol::{self, Call, Reply, STATE_FILE, VERSION};
use crate::spec::SandboxConfig;
use crate::status::{NetworkRecord, Sandbox, SandboxRecord};

use addresses::Addresses;
pub(crate) use connection::Connection;
use instance::Instance;
pub use mount_swap::{MountSwap, MountSwaps, Swapped};
pub use pod_network::{NetworkTrouble, PodNetwork};
use pods::{IDS_FILE, Pod, Pods};
use removal::remove_tree;
use zygote::Zygote;

/// A shim answers everything but `stop` and `exec` at once; a start may wait for a slow disk.
const REPLY_PATIENCE: Duration = Duration::from_secs(40);

/// How long a shim found in the state directory may take to show itself.
const ATTACH_PATIENCE: Duration = Duration::from_secs(5);

/// How long what a shim has acknowledged may take to be seen in the table.
const VISIBLE_PATIENCE: Duration = Duration::from_secs(5);

/// All sandboxes of one instance. Cheap to clone; needs a tokio runtime.
#[derive(Debug, Clone)]
pub struct Runtime {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: RuntimeConfig,
    instance: Instance,
    network: PodNetwork,
    unenforced: Vec<Unenforced>,
    pods: Arc<Pods>,
    zygote: Zygote,
    addresses: Mutex<Addresses>,
    /// Taken for as long as ids or addresses are chosen and written down.
    choosing: tokio::sync::Mutex<()>,
}

/// A runtime whose bridge is up while its pods are not attached yet, so that something may begin to listen there first.
#[derive(Debug)]
pub struct Prepared {
    config: RuntimeConfig,
    instance: Instance,
    network: PodNetwork,
    addresses: Addresses,
    unenforced: Vec<Unenforced>,
    found: Vec<(String, Pod)>,
}

impl Prepared {
    /// What pods are connected to.
    pub fn network(&self) -> &PodNetwork {
        &self.network
    }

    /// The bridge's name on the host, if pods have a network of their own.
    pub fn bridge(&self) -> Option<String> {
        let id = &self.config.instance_id;
        self.network.cidr.map(|_| pod_network::bridge_name(id))
    }

    /// Attaches to every shim that runs.
    pub async fn open(self) -> Runtime {
        Runtime::attach_all(self).await
    }
}

impl Runtime {
    /// Opens the state directory, removes what an earlier boot left, and sees to the bridge.
    pub async fn prepare(mut config: RuntimeConfig) -> Result<Prepared, OpenError> {
        blocking(move || {
            state_dir::require_root_and_kernel()?;
            state_dir::prepare(&mut config)?;
            let recorded = Instance::read(&config.state_dir)?;
            if recorded
                .as_ref()
                .is_some_and(|known| !known.is_of_boot(&config.boot_id))
            {
                info!("the machine was started anew, pods of the earlier boot are removed");
                state_dir::remove_stale(&config, recorded.as_ref())?;
            }
            let found = state_dir::read_pods(&config.state_dir)?;
            let busy = found.iter().any(|(_, pod)| pod.address().is_some());
            let (instance, network) = Instance::settle(&config, recorded, busy)?;
            let addresses = state_dir::read_addresses(&config.state_dir).unwrap_or_else(|| {
                Addresses::behind(found.iter().filter_map(|(_, pod)| pod.address()).max())
            });
            // After what an earlier boot left is gone.
            let all_pods = cgroup::resources_of_all_pods();
            let (_, mut unenforced) = cgroup::Instance::make(config.instance_id.as_str(), &all_pods);
            unenforced.extend(cgroup::unprotected());
            Ok(Prepared {
                config,
                instance,
                network,
                addresses,
                unenforced,
                found,
            })
        })
        .await
    }

    /// [`prepare`](Self::prepare), and then attaches to every shim that runs.
    pub async fn open(config: RuntimeConfig) -> Result<Self, OpenError> {
        Ok(Self::prepare(config).await?.open().await)
    }

    async fn attach_all(prepared: Prepared) -> Self {
        let Prepared {
            config,
            instance,
            network,
            addresses,
            unenforced,
            found,
        } = prepared;
        let inner = Inner {
            zygote: Zygote::of(&config),
            config,
            instance,
            network,
            unenforced,
            pods: Pods::new(),
            addresses: Mutex::new(addresses),
            choosing: tokio::sync::Mutex::new(()),
        };
        let runtime = Self {
            inner: Arc::new(inner),
        };
        for (pod_uid, pod) in found {
            let has_sandbox = pod.record.is_some();
            runtime
                .inner
                .pods
                .with(|table| table.insert(pod_uid.clone(), pod));
            if has_sandbox && let Err(error) = runtime.attach(&pod_uid).await {
                warn!(pod = %pod_uid, %error, "the pod's shim is gone, its containers are counted as killed");
                runtime.lost(&pod_uid).await;
            }
        }
        runtime
    }

    /// What pods are connected to.
    pub fn network(&self) -> &PodNetwork {
        &self.inner.network
    }

    /// The controllers that this machine does not give: limits that need them are not in force. As found when the runtime was
    /// opened.
    pub fn unenforced(&self) -> &[Unenforced] {
        &self.inner.unenforced
    }

    /// The host ids that a pod will have, so that its volumes can be owned before its sandbox exists. Kept until
    /// [`remove_pod`](Self::remove_pod), also across restarts and sandboxes; the same answer every time.
    pub async fn reserve_ids(&self, pod_uid: &str) -> Result<IdRange, SandboxError> {
        validate::pod_uid(pod_uid).map_err(SandboxError::Invalid)?;
        let _turn = self.inner.choosing.lock().await;
        self.reserve(pod_uid).await
    }

    async fn reserve(&self, pod_uid: &str) -> Result<IdRange, SandboxError> {
        let pods = &self.inner.pods;
        if let Some(ids) = pods.with_pod(pod_uid, |pod| pod.ids) {
            return Ok(ids);
        }
        let used = pods.ids_in_use();
        let free = self.inner.instance.free_ids(|ids| used.contains(&ids.base));
        let ids = free.ok_or(SandboxError::Exhausted("range of host ids"))?;
        let dir = self.pod_dir(pod_uid);
        blocking(move || {
            let path = dir.join(IDS_FILE);
            let write = || -> io::Result<()> {
                fs::DirBuilder::new().mode(0o700).recursive(true).create(&dir)?;
                write_json(&path, &ids)
            };
            write().map_err(|source| SandboxError::Files {
                path: path.clone(),
                source,
            })
        })
        .await?;
        pods.with(|table| table.insert(pod_uid.to_owned(), Pod::reserved(ids)));
        Ok(ids)
    }

    /// Makes a sandbox and returns once it can run containers. If it fails, nothing is left but the reservation of ids.
    pub async fn run_sandbox(&self, config: SandboxConfig) -> Result<Sandbox, SandboxError> {
        validate::sandbox(&config).map_err(SandboxError::Invalid)?;
        let pod_uid = config.pod_uid.clone();
        let record = self.choose(config).await?;
        let made = self.spawn(record).await;
        if let Err(error) = made {
            self.clean_up(&pod_uid).await?;
            self.forget_sandbox(&pod_uid).await;
            return Err(error);
        }
        let gone = || SandboxError::Shim(io::ErrorKind::UnexpectedEof.into());
        self.inner.pods.sandbox(&pod_uid).ok_or_else(gone)
    }

    /// Ids and address, taken in the table before anybody else chooses.
    async fn choose(&self, config: SandboxConfig) -> Result<SandboxRecord, SandboxError> {
        let _turn = self.inner.choosing.lock().await;
        let ids = self.reserve(&config.pod_uid).await?;
        let pods = &self.inner.pods;
        if pods
            .with_pod(&config.pod_uid, |pod| pod.record.is_some())
            .unwrap_or(false)
        {
            return Err(SandboxError::Exists(config.pod_uid));
        }
        let cidr = self.inner.network.cidr.filter(|_| !config.host_network);
        let network = match cidr {
            Some(cidr) => Some(self.choose_address(cidr).await?),
            None => None,
        };
        let record = SandboxRecord {
            version: VERSION,
            instance_id: self.inner.config.instance_id.to_string(),
            ids,
            network,
            mask: self.inner.config.mask.clone(),
            allow_privileged: self.inner.config.allow_privileged,
            config,
        };
        pods.with_pod(&record.config.pod_uid, |pod| pod.record = Some(record.clone()));
        Ok(record)
    }

    async fn choose_address(&self, cidr: PodCidr) -> Result<NetworkRecord, SandboxError> {
        let used: BTreeSet<Ipv4Addr> = self.inner.pods.addresses();
        let address = self.inner.addresses.lock().take(cidr, &used);
        let address = address.ok_or(SandboxError::Exhausted("address"))?;
        self.keep_addresses().await?;
        Ok(pod_network::record(&self.inner.config.instance_id, cidr, address))
    }

    /// Writes down where the turn is, so that it goes on there after a restart.
    async fn keep_addresses(&self) -> Result<(), SandboxError> {
        let path = state_dir::addresses_path(&self.inner.config.state_dir);
        let inner = Arc::clone(&self.inner);
        blocking(move || {
            // Held while it is written: a later state must not be overtaken by this one.
            let addresses = inner.addresses.lock();
            write_json(&path, &*addresses).map_err(|source| SandboxError::Files { path, source })
        })
        .await
    }

    /// Nothing of the sandbox is left; its address rests.
    async fn forget_sandbox(&self, pod_uid: &str) {
        let address = self.inner.pods.with_pod(pod_uid, |pod| {
            let address = pod.address();
            (pod.record, pod.state, pod.attached) = (None, None, false);
            address
        });
        let Some(address) = address.flatten() else { return };
        self.inner.addresses.lock().give_back(address);
        if let Err(error) = self.keep_addresses().await {
            warn!(pod = %pod_uid, %error, "after a restart the address of this pod does not rest");
        }
    }

    async fn spawn(&self, record: SandboxRecord) -> Result<(), SandboxError> {
        let pod_uid = record.config.pod_uid.clone();
        let (dir, inner) = (self.pod_dir(&pod_uid), Arc::clone(&self.inner));
        blocking(move || {
            if let (Some(network), Some(cidr)) = (&record.network, inner.network.cidr) {
                pod_network::mend(&inner.config.instance_id, cidr).map_err(|source| {
                    SandboxError::Bridge {
                        bridge: network.bridge.clone(),
                        source,
                    }
                })?;
            }
            spawn::shim(&inner.zygote, &dir, &record)
        })
        .await?;
        self.attach(&pod_uid).await.map_err(SandboxError::Shim)
    }

    /// Hears the pod's state once, and follows it from then on.
    async fn attach(&self, pod_uid: &str) -> io::Result<()> {
        let dir = self.pod_dir(pod_uid);
        let first = async {
            let mut connection = Connection::open(&dir).await?;
            let reply = connection.call(Call::Watch, &[]).await?;
            io::Result::Ok((connection, reply))
        };
        let (mut connection, reply) = tokio::time::timeout(ATTACH_PATIENCE, first).await??;
        let Reply::State { state } = reply else {
            return Err(io::ErrorKind::InvalidData.into());
        };
        self.inner.pods.update(pod_uid, state);
        // The task must not keep the runtime alive, or a dropped runtime would go on following.
        let (inner, uid) = (Arc::downgrade(&self.inner), pod_uid.to_owned());
        let follower = tokio::spawn(async move {
            loop {
                let reply = connection.reply().await;
                let Some(inner) = inner.upgrade() else { return };
                match reply {
                    Ok(Reply::State { state }) => inner.pods.update(&uid, state),
                    Ok(_) => {}
                    Err(error) => {
                        warn!(pod = %uid, %error, "the pod's shim is gone");
                        return Self { inner }.lost(&uid).await;
                    }
                }
            }
        });
        let handle = follower.abort_handle();
        let before = self
            .inner
            .pods
            .with_pod(pod_uid, |pod| pod.follower.replace(handle))
            .flatten();
        if let Some(before) = before {
            before.abort();
        }
        Ok(())
    }

    /// The shim died. Its containers were told to die with it; make sure, and keep what is known of them.
    async fn lost(&self, pod_uid: &str) {
        let Some(turn) = self.inner.pods.with_pod(pod_uid, |pod| Arc::clone(&pod.turn)) else {
            return;
        };
        let turn = turn.lock_owned().await;
        let known = self
            .inner
            .pods
            .with_pod(pod_uid, |pod| (pod.ids, pod.state.clone()));
        let Some((ids, before)) = known else { return };
        let (inner, dir, uid) = (Arc::clone(&self.inner), self.pod_dir(pod_uid), pod_uid.to_owned());
        let result = blocking(move || {
            // Here and not above: this goes on when the task that follows the shim is ended.
            let _turn = turn;
            let id = &inner.config.instance_id;
            let killed = cleanup::kill_pod(id, &uid, before.as_ref(), |id| id == ids.base);
            inner
                .pods
                .lost(&uid, |state| write_json(&dir.join(STATE_FILE), state))
                .and(killed)
        })
        .await;
        if let Err(error) = result {
            warn!(pod = %pod_uid, %error, "what a dead shim left could not be cleaned up");
        }
    }

    /// Every sandbox, also those found after a restart and those that can only be removed, sorted by pod uid.
    pub fn sandboxes(&self) -> Vec<Sandbox> {
        self.inner.pods.sandboxes()
    }

    /// One pod's sandbox.
    pub fn sandbox(&self, pod_uid: &str) -> Option<Sandbox> {
        self.inner.pods.sandbox(pod_uid)
    }

    /// Where an attempt of a container keeps what it writes outside its volumes, if the host's root is no overlay itself.
    pub fn layer(&self, pod_uid: &str, container: &str, attempt: u32) -> PathBuf {
        self.pod_dir(pod_uid)
            .join(protocol::layer_dir(container, attempt))
    }

    /// Kills whatever still runs in a sandbox and takes its network away; exit codes stay readable. Idempotent.
    pub async fn stop_sandbox(&self, pod_uid: &str) -> Result<(), SandboxError> {
        if !self.is_attached(pod_uid) {
            return Ok(());
        }
        let reply = self
            .call(pod_uid, Call::StopSandbox, Some(REPLY_PATIENCE))
            .await
            .map_err(SandboxError::Shim)?;
        match reply {
            Reply::Done => Ok(()),
            reply => Err(SandboxError::Setup(format!("unexpected answer {reply:?}"))),
        }
    }

    /// Every pod that has a sandbox, or ids and nothing else yet or any more, sorted.
    pub fn pods(&self) -> Vec<String> {
        self.inner.pods.with(|table| table.keys().cloned().collect())
    }

    /// Removes a pod's sandbox as [`remove_sandbox`](Self::remove_sandbox) does, and gives its ids back: nothing that it owned
    /// may be left. Idempotent.
    pub async fn remove_pod(&self, pod_uid: &str) -> Result<(), SandboxError> {
        self.remove_sandbox(pod_uid).await?;
        let dir = self.pod_dir(pod_uid);
        blocking(move || remove_tree(&dir).map_err(|source| SandboxError::Files { path: dir, source }))
            .await?;
        self.inner.pods.with(|table| table.remove(pod_uid));
        Ok(())
    }

    /// Stops a sandbox and removes all that was made for it: processes, cgroups, links and files. The pod's ids stay its own.
    /// Idempotent. Log files stay, they are the caller's. Exits from here on are not told.
    pub async fn remove_sandbox(&self, pod_uid: &str) -> Result<(), SandboxError> {
        validate::pod_uid(pod_uid).map_err(SandboxError::Invalid)?;
        let follower = self
            .inner
            .pods
            .with_pod(pod_uid, |pod| (pod.follower.take(), Arc::clone(&pod.turn)));
        let Some((follower, turn)) = follower else {
            return Ok(());
        };
        if let Some(follower) = follower {
            follower.abort();
        }
        // A shim that died may be being written off right now.
        let _turn = turn.lock().await;
        let polite = async {
            let mut connection = Connection::open(&self.pod_dir(pod_uid)).await?;
            let reply = connection.call(Call::Shutdown, &[]).await?;
            connection.closed().await;
            io::Result::Ok(reply)
        };
        // A shim that does not do it is killed.
        let _ = tokio::time::timeout(REPLY_PATIENCE, polite).await;
        self.clean_up(pod_uid).await?;
        self.forget_sandbox(pod_uid).await;
        let dir = self.pod_dir(pod_uid);
        blocking(move || {
            cleanup::remove_all_but(&dir, IDS_FILE)
                .map_err(|source| SandboxError::Files { path: dir, source })
        })
        .await
    }

    /// Whatever there is of a pod but the reservation of its ids, gone by force.
    async fn clean_up(&self, pod_uid: &str) -> Result<(), SandboxError> {
        let known = self
            .inner
            .pods
            .with_pod(pod_uid, |pod| (pod.ids, pod.record.clone(), pod.state.clone()));
        let Some((ids, record, state)) = known else {
            return Ok(());
        };
        let (inner, dir, uid) = (Arc::clone(&self.inner), self.pod_dir(pod_uid), pod_uid.to_owned());
        blocking(move || {
            let id = &inner.config.instance_id;
            let killed = cleanup::kill_pod(id, &uid, state.as_ref(), |id| id == ids.base);
            killed.map_err(|_| SandboxError::StillRunning(uid.clone()))?;
            let files = |path: &Path| {
                let path = path.to_owned();
                move |source| SandboxError::Files { path, source }
            };
            cleanup::remove_cgroups(id, Some(&uid)).map_err(files(Path::new("cgroup")))?;
            if let Some(network) = record.and_then(|record| record.network) {
                let removed = Netlink::open().and_then(|mut netlink| netlink.remove_link(&network.host_link));
                removed.map_err(|source| SandboxError::Bridge {
                    bridge: network.bridge,
                    source,
                })?;
            }
            for name in [protocol::RECORD_FILE, protocol::STATE_FILE, protocol::SOCKET_FILE] {
                match fs::remove_file(dir.join(name)) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => {
                        return Err(files(&dir.join(name))(error));
                    }
                    _ => {}
                }
            }
            let layers = dir.join(protocol::LAYERS_DIR);
            remove_tree(&layers).map_err(files(&layers))
        })
        .await
    }

    /// What happens from now on, after every exit that is still on record.
    pub fn events(&self) -> Events {
        self.inner.pods.events()
    }

    /// Asks every container of an instance to end: SIGTERM to all at once, SIGKILL after `grace`. Returns when they have ended; what
    /// did not is left to [`purge`](Self::purge). No [`Runtime`] of the instance may be open.
    pub async fn end_containers(config: &RuntimeConfig, grace: Duration) {
        ending::end_all(config.state_dir.clone(), grace).await;
    }

    /// Ends every pod of an instance and removes every process, cgroup, link, route, nftables table and file of it, the state
    /// directory included.
    /// No [`Runtime`] of the instance may be open. Idempotent.
    pub async fn purge(config: RuntimeConfig) -> Result<(), PurgeError> {
        blocking(move || state_dir::purge(&config)).await
    }

    fn pod_dir(&self, pod_uid: &str) -> PathBuf {
        self.inner.config.state_dir.join(pod_uid)
    }

    fn is_attached(&self, pod_uid: &str) -> bool {
        self.inner
            .pods
            .with_pod(pod_uid, |pod| pod.attached)
            .unwrap_or(false)
    }

    /// One request over a connection of its own.
    async fn call(&self, pod_uid: &str, call: Call, patience: Option<Duration>) -> io::Result<Reply> {
        let dir = self.pod_dir(pod_uid);
        let call = async {
            let mut connection = Connection::open(&dir).await?;
            connection.call(call, &[]).await
        };
        match patience {
            Some(patience) => tokio::time::timeout(patience, call).await?,
            None => call.await,
        }
    }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}

fn write_json<T: serde::Serialize>(path: &Path, value: &T) -> io::Result<()> {
    use std::os::unix::fs::OpenOptionsExt;
    let staged = path.with_extension("json.new");
    let mut file = fs::File::options()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&staged)?;
    io::Write::write_all(&mut file, &serde_json::to_vec(value)?)?;
    fs::rename(staged, path)
}
