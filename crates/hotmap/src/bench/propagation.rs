//! From sending a change to reading it in the volumes that show it.
//!
//! ```text
//!   PUT ──▶ server ──watch──▶ node ──rename──▶ volumes of running pods
//!    │                                            │ inotify on each volume's directory
//!    └── sent                          a thread that reads through ..data ── arrived
//! ```
//!
//! The reader sits on the host's side of the volumes, which is the very directory the containers see.

use std::{
    collections::{HashMap, HashSet},
    fs, io,
    mem::MaybeUninit,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};
use bytes::Bytes;
use clap::Args;
use hyper::Method;
use rustix::fs::inotify;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use super::{Bench, config_map, connection::Connection, report::Row};

pub(super) const NAME: &str = "watched";
const KEY: &str = "app.conf";
/// Where a pod has the key as a single file.
const LIVE_DIRECTORY: &str = "/etc/live";
const PODS_TIMEOUT: Duration = Duration::from_secs(120);
const POD_POLL: Duration = Duration::from_millis(20);
const ARRIVAL_TIMEOUT: Duration = Duration::from_secs(30);

/// Flags of `bench propagation`.
#[derive(Debug, Args)]
pub(super) struct PropagationArgs {
    /// Changes that are measured, one after the other.
    #[arg(long, env = "HOTMAP_BENCH_CHANGES", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    changes: u32,
    /// Pods that mount the ConfigMap.
    #[arg(long, env = "HOTMAP_BENCH_PODS", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    pods: u16,
    /// Volumes of each pod that show the ConfigMap.
    #[arg(long, env = "HOTMAP_BENCH_VOLUMES", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    volumes: u16,
    /// Rest between two changes, in milliseconds: an edit now and then, not a storm.
    #[arg(long, env = "HOTMAP_BENCH_PAUSE_MS", default_value_t = 20)]
    pause_ms: u16,
    /// Mount the key by subPath as well, have it follow, and measure when the container sees it there.
    #[arg(long, env = "HOTMAP_BENCH_LIVE_SUBPATH")]
    live_subpath: bool,
}

/// For each change the times from sending it to its answer, and to its content in the first and the last volume.
pub(super) async fn measure(bench: &Bench<'_>, args: &PropagationArgs) -> anyhow::Result<Vec<Row>> {
    let (_, data_dir) = bench.server.context("the server is not ours")?;
    let connection = bench.connector.connect().await?;
    connection
        .exchange(Method::POST, &bench.config_maps(), config_map(NAME, 0))
        .await?;
    super::progress(&format!("starting {} pods", args.pods));
    let pods = format!("/api/v1/namespaces/{}/pods", bench.namespace);
    for number in 0..args.pods {
        let mut pod = pod(&format!("reader-{number}"), args.volumes);
        if args.live_subpath {
            follow_by_sub_path(&mut pod);
        }
        let pod = pod.to_string();
        connection.exchange(Method::POST, &pods, pod.into()).await?;
    }
    let running = timeout(PODS_TIMEOUT, running_pods(&connection, &pods, args.pods.into())).await;
    let uids = running.context("the pods did not run in time").flatten()?;
    let mut directories = Vec::new();
    for uid in &uids {
        let pod = data_dir.join("volumes").join(uid);
        directories.extend((0..args.volumes).map(|number| pod.join(volume_name(number))));
    }
    let volumes = directories.len();
    let mut arrivals = Arrivals::listen(directories)?;
    let mut followers = match args.live_subpath {
        true => Some(Arrivals::listen_for(
            live_directories(data_dir, &uids)?,
            Sign::LIVE,
        )?),
        false => None,
    };

    super::progress(&format!("changing the ConfigMap {} times", args.changes));
    let target = format!("{}/{NAME}", bench.config_maps());
    let (mut answered, mut first, mut last) = (Vec::new(), Vec::new(), Vec::new());
    let (mut followed, mut shown) = (Vec::new(), Vec::new());
    let cpu_before = bench.cpu_time()?;
    let mut busy = Duration::ZERO;
    for change in 1..=args.changes as usize {
        sleep(Duration::from_millis(args.pause_ms.into())).await;
        let body = config_map(NAME, change);
        let sent = Instant::now();
        let write = async {
            connection.exchange(Method::PUT, &target, body).await?;
            anyhow::Ok(sent.elapsed())
        };
        let follow = async {
            match &mut followers {
                Some(followers) => followers.round(change, uids.len()).await.map(Some),
                None => Ok(None),
            }
        };
        let (written, (earliest, latest), live) =
            tokio::try_join!(write, arrivals.round(change, volumes), follow)?;
        if let Some((_, live)) = live {
            followed.push(live.saturating_duration_since(earliest));
            shown.push(live - sent);
        }
        answered.push(written);
        first.push(earliest - sent);
        last.push(latest - sent);
        busy += latest - sent;
    }
    let cpu = bench.cpu_since(cpu_before)?;
    let changes = args.changes as usize;
    let answered = Row::new("change sent → answered", answered, changes, busy, None)?;
    let mut live = Vec::new();
    if args.live_subpath {
        let name = "read in the volume → read at the subPath";
        live.push(Row::new(name, followed, changes, busy, None)?);
        live.push(Row::new(
            "change sent → read at the subPath",
            shown,
            changes,
            busy,
            None,
        )?);
    }
    if volumes == 1 {
        let read = Row::new("change sent → read in the volume", last, changes, busy, cpu)?;
        return Ok([answered, read].into_iter().chain(live).collect());
    }
    let first = Row::new(
        "change sent → read in the first volume",
        first,
        changes,
        busy,
        None,
    )?;
    let name = format!("change sent → read in the last of {volumes} volumes");
    let whole = Row::new(name, last, changes * volumes, busy, cpu)?;
    let whole = whole.noted("rate and server CPU are per volume");
    Ok([answered, first, whole].into_iter().chain(live).collect())
}

pub(super) fn pod(name: &str, volumes: u16) -> Value {
    let mounts = (0..volumes).map(|number| {
        let name = volume_name(number);
        let path = format!("/etc/bench/{name}");
        json!({"name": name, "mountPath": path})
    });
    let volumes =
        (0..volumes).map(|number| json!({"name": volume_name(number), "configMap": {"name": NAME}}));
    json!({
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "containers": [{
                "name": "sleep",
                "image": "busybox",
                "command": ["sleep", "infinity"],
                "volumeMounts": mounts.collect::<Vec<_>>(),
            }],
            "volumes": volumes.collect::<Vec<_>>(),
        },
    })
}

/// Makes the first volume's key a single file, too, that follows its volume.
fn follow_by_sub_path(pod: &mut Value) {
    pod["metadata"]["annotations"] = json!({"hotmap.dev/live-subpath": "true"});
    let mount =
        json!({"name": volume_name(0), "mountPath": format!("{LIVE_DIRECTORY}/{KEY}"), "subPath": KEY});
    if let Some(mounts) = pod["spec"]["containers"][0]["volumeMounts"].as_array_mut() {
        mounts.push(mount);
    }
}

/// The directory with the live mount, as each pod's container sees it.
fn live_directories(data_dir: &Path, uids: &[String]) -> anyhow::Result<Vec<PathBuf>> {
    let directory = |uid: &String| {
        let state = fs::read(data_dir.join("pods").join(uid).join("state.json"))?;
        let state: Value = serde_json::from_slice(&state)?;
        let pid = state["containers"][0]["state"]["Running"]["pid"].as_i64();
        let pid = pid.context("the pod's container does not run")?;
        Ok(PathBuf::from(format!("/proc/{pid}/root{LIVE_DIRECTORY}")))
    };
    uids.iter().map(directory).collect()
}

pub(super) fn volume_name(number: u16) -> String {
    format!("config-{number}")
}

/// The uids of the pods once all of them run.
pub(super) async fn running_pods(
    connection: &Connection,
    path: &str,
    count: usize,
) -> anyhow::Result<Vec<String>> {
    loop {
        let list = connection.exchange(Method::GET, path, Bytes::new()).await?;
        let list: Value = serde_json::from_slice(&list).context("cannot read the list of pods")?;
        let pods = list["items"].as_array().map_or(&[][..], Vec::as_slice);
        if let Some(failed) = pods.iter().find(|pod| pod["status"]["phase"] == "Failed") {
            bail!("a pod failed: {}", failed["status"]);
        }
        let uids: Vec<String> = pods
            .iter()
            .filter(|pod| pod["status"]["phase"] == "Running")
            .filter_map(|pod| Some(pod["metadata"]["uid"].as_str()?.to_owned()))
            .collect();
        if uids.len() == count {
            return Ok(uids);
        }
        sleep(POD_POLL).await;
    }
}

/// How a directory tells that its content is new.
#[derive(Clone, Copy)]
struct Sign {
    event: inotify::WatchFlags,
    name: &'static str,
    /// What is read then.
    file: &'static str,
}

impl Sign {
    const VOLUME: Self = Self {
        event: inotify::WatchFlags::MOVED_TO,
        name: "..data",
        file: "..data/app.conf",
    };
    const LIVE: Self = Self {
        event: inotify::WatchFlags::CLOSE_WRITE,
        name: KEY,
        file: KEY,
    };
}

/// Contents as they arrive in directories.
pub(super) struct Arrivals {
    arrived: mpsc::UnboundedReceiver<Arrival>,
}

type Arrival = io::Result<(usize, PathBuf, Instant)>;

impl Arrivals {
    /// Starts the reader. It ends with the first change that nobody waits for, or with the process.
    pub(super) fn listen(directories: Vec<PathBuf>) -> anyhow::Result<Self> {
        Self::listen_for(directories, Sign::VOLUME)
    }

    fn listen_for(directories: Vec<PathBuf>, sign: Sign) -> anyhow::Result<Self> {
        let inotify = inotify::init(inotify::CreateFlags::CLOEXEC).context("cannot watch files")?;
        let mut watched = HashMap::new();
        for directory in directories {
            let watch = inotify::add_watch(&inotify, &directory, sign.event)
                .with_context(|| format!("cannot watch {}", directory.display()))?;
            watched.insert(watch, directory);
        }
        // Bounded by what is sent: an event per volume and change, and the next change waits for all of them.
        let (sender, arrived) = mpsc::unbounded_channel();
        std::thread::Builder::new()
            .name("volume-reader".to_owned())
            .spawn(move || {
                if let Err(error) = read_arrivals(inotify, &watched, sign, &sender) {
                    // Nobody waits any more if this fails.
                    let _ = sender.send(Err(error));
                }
            })
            .context("cannot start the reader")?;
        Ok(Self { arrived })
    }

    /// Waits until all volumes show this change; when the first and the last did.
    pub(super) async fn round(
        &mut self,
        change: usize,
        volumes: usize,
    ) -> anyhow::Result<(Instant, Instant)> {
        let collected = timeout(ARRIVAL_TIMEOUT, async {
            let mut seen = HashSet::with_capacity(volumes);
            let mut span: Option<(Instant, Instant)> = None;
            while seen.len() < volumes {
                let arrival = self.arrived.recv().await.context("the reader has ended")?;
                let (content, directory, at) = arrival.context("cannot read a volume")?;
                if content == change && seen.insert(directory) {
                    span = Some(span.map_or((at, at), |(first, last)| (first.min(at), last.max(at))));
                }
            }
            span.context("no volumes")
        });
        collected
            .await
            .with_context(|| format!("change {change} did not reach every volume in time"))
            .flatten()
    }
}

fn read_arrivals(
    inotify: impl std::os::fd::AsFd,
    watched: &HashMap<i32, PathBuf>,
    sign: Sign,
    arrived: &mpsc::UnboundedSender<Arrival>,
) -> io::Result<()> {
    let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
    let mut events = inotify::Reader::new(inotify, &mut buffer);
    loop {
        let event = events.next()?;
        let is_new = event
            .file_name()
            .is_some_and(|name| name.to_bytes() == sign.name.as_bytes());
        let Some(directory) = watched.get(&event.wd()).filter(|_| is_new) else {
            continue;
        };
        let content = revision_in(&directory.join(sign.file))?;
        let arrival = (content, directory.clone(), Instant::now());
        if arrived.send(Ok(arrival)).is_err() {
            return Ok(());
        }
    }
}

/// Reads the file as a program would, and which revision it holds.
pub(super) fn read_revision(directory: &Path) -> io::Result<usize> {
    revision_in(&directory.join("..data").join(KEY))
}

fn revision_in(file: &Path) -> io::Result<usize> {
    let content = fs::read_to_string(file)?;
    let revision = content
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("# revision "));
    revision
        .and_then(|revision| revision.parse().ok())
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "the file is not one of ours"))
}
