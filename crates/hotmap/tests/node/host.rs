//! A node on this machine for one test, and the proof that nothing of it is left.

use std::{
    cell::Cell,
    fs,
    ops::{Deref, DerefMut},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::harness::{Finished, Kubectl, Release, Running, ServerOptions, finish, hotmap, skipped};

/// Nodes that run at a time: a machine has eight pod networks, and other users.
const NODES_MAX: u32 = 4;

/// `hotmap up` with a node named `node-a`, and the newest kubectl beside it. Dropping it stops and removes everything.
pub(crate) struct Node {
    kubectl: Kubectl,
    _turn: Turn,
}

impl Deref for Node {
    type Target = Kubectl;

    fn deref(&self) -> &Kubectl {
        &self.kubectl
    }
}

impl DerefMut for Node {
    fn deref_mut(&mut self) -> &mut Kubectl {
        &mut self.kubectl
    }
}

impl Node {
    /// Starts one. `None`: not here, which was said.
    #[track_caller]
    pub(crate) fn start() -> Option<Self> {
        Self::start_with(Release::Newest, &[])
    }

    /// As [`Node::start`], with a release of kubectl and more flags of `up`.
    #[track_caller]
    pub(crate) fn start_with(release: Release, flags: &[&str]) -> Option<Self> {
        Self::start_like(release, flags, ServerOptions::default())
    }

    /// As [`Node::start_with`], with a server that is started like this beside its flags.
    #[track_caller]
    pub(crate) fn start_like(release: Release, flags: &[&str], options: ServerOptions) -> Option<Self> {
        if !can_run_pods() {
            return None;
        }
        let turn = Turn::take();
        let flags: Vec<String> = ["--node-name", "node-a"]
            .iter()
            .chain(flags)
            .map(|flag| (*flag).to_owned())
            .collect();
        let kubectl = Kubectl::with_options(release, ServerOptions { flags, ..options })?;
        Some(Self { kubectl, _turn: turn })
    }

    /// `hotmap down` on the node's data directory.
    #[track_caller]
    pub(crate) fn down(&self, flags: &[&str]) -> Finished {
        let mut command = hotmap();
        command
            .arg("down")
            .arg("--data-dir")
            .arg(self.server.data_dir())
            .args(flags);
        finish(&mut command, None)
    }

    /// What names the kernel objects of this node.
    pub(crate) fn id(&self) -> String {
        let id = fs::read_to_string(self.server.data_dir().join("id")).expect("an instance has an id");
        id.trim().to_owned()
    }

    /// Waits until these pods are ready.
    #[track_caller]
    pub(crate) fn ready(&self, pods: &str) {
        for pod in pods.split_whitespace() {
            self.wait(pod, "condition=Ready");
        }
    }

    /// Waits for what `kubectl wait --for` understands; when it does not come, the events tell why.
    #[track_caller]
    pub(crate) fn wait(&self, pod: &str, what: &str) {
        let target = format!("pod/{pod}");
        let waited = self.call(&["wait", "--timeout=120s", &format!("--for={what}"), &target]);
        if waited.code != 0 {
            let pods = self.run("get pods -o wide").stdout;
            let events = self.run("get events").stdout;
            panic!("{}\n{pods}\n{events}\n{}", waited.stderr, self.server.log());
        }
    }

    /// Waits for the phase of a pod.
    #[track_caller]
    pub(crate) fn phase(&self, pod: &str, phase: &str) {
        self.wait(pod, &format!("jsonpath={{.status.phase}}={phase}"));
    }

    /// Waits for the reason a pod's first container waits for.
    #[track_caller]
    pub(crate) fn waiting(&self, pod: &str, reason: &str) {
        let path = ".status.containerStatuses[0].state.waiting.reason";
        self.wait(pod, &format!("jsonpath={{{path}}}={reason}"));
    }

    /// Waits for an event of a pod whose reason and message hold `text`; they are joined by a colon.
    #[track_caller]
    pub(crate) fn event(&self, pod: &str, text: &str) -> String {
        let selector = format!("involvedObject.name={pod}");
        let shape = r#"jsonpath={.reason}: {.message}{"\n"}"#;
        let arguments = [
            "get",
            "events",
            "--watch",
            "--field-selector",
            &selector,
            "-o",
            shape,
        ];
        Running::start(&mut self.command(&arguments)).line_with(text)
    }

    /// Runs a shell script in a pod.
    #[track_caller]
    pub(crate) fn exec(&self, pod: &str, script: &str) -> Finished {
        self.call(&["exec", pod, "--", "sh", "-c", script])
    }

    /// Standard output of a script that succeeds, without the last line feed.
    #[track_caller]
    pub(crate) fn sh(&self, pod: &str, script: &str) -> String {
        self.exec(pod, script).ok().trim_end_matches('\n').to_owned()
    }

    /// Waits in a pod until a file says this; woken by every change of its directory.
    #[track_caller]
    pub(crate) fn until_file(&self, pod: &str, file: &str, says: &str) {
        // The limit of one second is for a change between the look and the watch.
        let directory = Path::new(file).parent().expect("an absolute path").display();
        let script = format!(
            r#"until [ "$(cat {file})" = "{says}" ]; do inotifywait -qq -t 1 -e moved_to -e delete {directory} || :; done"#
        );
        self.exec(pod, &script).ok();
    }

    /// Applies objects, all in one call.
    #[track_caller]
    /// The value that `/metrics` shows, labels included in the name; 0 for one that has not been counted yet.
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let text = self.ok("get --raw /metrics");
        let value = text
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.map_or(0.0, |value| value.parse().expect("a number"))
    }

    pub(crate) fn create(&self, objects: impl IntoIterator<Item = Value>) {
        let items = Vec::from_iter(objects);
        self.apply(&json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string());
    }

    /// What names process 1 of a pod's first container, for as long as it is the same one.
    #[track_caller]
    pub(crate) fn process(&self, pod: &str) -> String {
        let started = self.sh(pod, "cut -d ' ' -f 22 /proc/1/stat");
        let status = ".status.containerStatuses[0]";
        let restarts = self.field(&format!("pod/{pod}"), &format!("{status}.restartCount"));
        format!("restart {restarts}, started at tick {started}")
    }
}

/// Whether pods can run here; if not, that was said.
#[track_caller]
pub(crate) fn can_run_pods() -> bool {
    if !rustix::process::geteuid().is_root() {
        skipped("running pods needs root");
        return false;
    }
    for program in ["nginx", "busybox", "inotifywait"] {
        let directories = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];
        if !directories
            .iter()
            .any(|directory| Path::new(directory).join(program).exists())
        {
            skipped(&format!("{program} is not here; scripts/tools installs it"));
            return false;
        }
    }
    true
}

/// Whether the kernel mounts beneath a mount, without which a live subPath stays as it is.
pub(crate) fn can_swap_mounts() -> bool {
    match hotmap_runtime::can_mount_beneath() {
        Ok(()) => true,
        Err(too_old) => {
            eprintln!("skipped: live subPath mounts do not follow here: {too_old}");
            false
        }
    }
}

/// A pod that goes within two seconds unless its spec says otherwise: a shell that is asked to stop before it has
/// set its trap does not hear it.
pub(crate) fn pod(name: &str, mut spec: Value) -> Value {
    if let Some(spec) = spec.as_object_mut() {
        spec.entry("terminationGracePeriodSeconds").or_insert(2.into());
    }
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
}

/// A ConfigMap.
pub(crate) fn config_map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

/// A Secret; values as plain text.
pub(crate) fn secret(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data})
}

/// A container named `main` that runs a shell script, with more fields.
pub(crate) fn shell(script: &str, more: Value) -> Value {
    let mut container = json!({"name": "main", "image": "busybox", "command": ["sh", "-c", script]});
    for (field, value) in more.as_object().into_iter().flatten() {
        container[field] = value.clone();
    }
    container
}

/// A container that does nothing until it is asked to stop.
pub(crate) fn idle(more: Value) -> Value {
    shell("trap exit TERM; sleep infinity & wait", more)
}

impl Drop for Node {
    fn drop(&mut self) {
        let id = fs::read_to_string(self.server.data_dir().join("id")).unwrap_or_default();
        self.server.crash();
        if id.is_empty() {
            return;
        }
        let purged = self.down(&["--purge"]);
        let left = leftovers(id.trim(), &self.server.data_dir());
        if std::thread::panicking() {
            eprintln!(
                "{}\n{}{}{left:#?}",
                self.server.log(),
                purged.stdout,
                purged.stderr
            );
            return;
        }
        assert_eq!(
            (purged.code, left),
            (0, Vec::<String>::new()),
            "{}",
            purged.stderr
        );
    }
}

/// Every trace of an instance on this machine: processes, mounts, cgroups, links, routes, files.
pub(crate) fn leftovers(id: &str, data_dir: &Path) -> Vec<String> {
    let directory = data_dir.display().to_string();
    let mut left = Vec::new();
    let named = processes(|pid| {
        let read = |name: &str| {
            let bytes = fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        // Who has ended and waits for the init of this machine to notice is gone.
        pid != std::process::id()
            && !read("stat").contains(") Z ")
            && (read("cmdline").contains(&directory)
                || read("cgroup").contains(&format!("hotmap-{id}"))
                || read("mountinfo").contains(&directory))
    });
    left.extend(named.into_iter().map(|pid| {
        let command = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        format!("process {pid} {}", command.replace('\0', " "))
    }));
    let mounts = fs::read_to_string("/proc/self/mountinfo").expect("/proc is mounted");
    left.extend(
        mounts
            .lines()
            .filter(|mount| mount.contains(&directory) || mount.contains(id))
            .map(|mount| format!("mount {mount}")),
    );
    left.extend(
        entries("/sys/class/net")
            .into_iter()
            .filter(|link| link.contains(id))
            .map(|link| format!("link {link}")),
    );
    let routes = Command::new("ip")
        .args(["route", "show", "table", "all"])
        .output();
    let routes = routes.map(|output| output.stdout).unwrap_or_default();
    left.extend(
        String::from_utf8_lossy(&routes)
            .lines()
            .filter(|route| route.contains(id))
            .map(|route| format!("route {route}")),
    );
    for root in [
        "/sys/fs/cgroup",
        "/sys/fs/cgroup/unified",
        "/run",
        "/run/hotmap",
        "/tmp",
        "/run/netns",
    ] {
        let found = entries(root).into_iter().filter(|name| name.contains(id));
        left.extend(found.map(|name| format!("{root}/{name}")));
    }
    if data_dir.exists() {
        left.push(directory);
    }
    left
}

fn entries(directory: &str) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Ids of the processes of this machine that are like this.
pub(crate) fn processes(like: impl Fn(u32) -> bool) -> Vec<u32> {
    let ids = entries("/proc").into_iter().filter_map(|name| name.parse().ok());
    ids.filter(|pid| like(*pid)).collect()
}

/// One of the few nodes that may run at a time.
pub(crate) struct Turn(#[expect(dead_code, reason = "holds a lock until it is dropped")] Option<fs::File>);

thread_local! {
    static TURNS: Cell<u32> = const { Cell::new(0) };
}

impl Drop for Turn {
    fn drop(&mut self) {
        TURNS.set(TURNS.get() - 1);
    }
}

impl Turn {
    pub(crate) fn take() -> Self {
        TURNS.set(TURNS.get() + 1);
        // A test with a second node does not wait for a turn: it could be its own.
        Self((TURNS.get() == 1).then(Self::lock))
    }

    fn lock() -> fs::File {
        let directory = std::env::temp_dir();
        let path = |number: u32| -> PathBuf { directory.join(format!("hotmap-e2e-turn-{number}")) };
        let open = |number: u32| {
            let mut options = fs::OpenOptions::new();
            options.create(true).write(true).truncate(false).mode(0o600);
            options.open(path(number)).expect("a temporary directory")
        };
        for number in 0..NODES_MAX {
            let file = open(number);
            if file.try_lock().is_ok() {
                return file;
            }
        }
        let file = open(std::process::id() % NODES_MAX);
        file.lock().expect("a lock of ours");
        file
    }
}
