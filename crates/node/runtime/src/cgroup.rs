//! Where the processes of a pod are counted, limited and killed: the same small tree in every hierarchy that is good for something.
//!
//! ```text
//! <mount>/hotmap-<instance>/      all pods: their share of the CPUs, and what they leave of the pids
//!   <pod uid>/                    the pod's share; killed and removed as one
//!     _shim/                      the shim: the pod's share is its own too, the pod's limits are not
//!     _pod/                       the pod's limits
//!       <container>/              the container's
//! ```
//!
//! A controller is used where it is: in the cgroup v2, else in a hierarchy of v1. The cgroup v2 is used even without any: it kills
//! all processes of a cgroup as one (`cgroup.kill`, Linux 5.14) and says when none is left. The agent makes the tree of the
//! instance and finds out what is not to be had; shims take what they find there.

mod hierarchies;
mod plan;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{Mode, OFlags};
use rustix::thread::CapabilitySet;

use crate::mountinfo;
use crate::spec::Resources;
use hierarchies::Hierarchy;
use plan::{Controller, Level, Version};

/// The cgroup of the shim, beside those of its containers. No container name has an underscore.
const SHIM: &str = "_shim";
const CONTAINERS: &str = "_pod";

/// Who cannot be removed at once has a process that is just dying.
const REMOVE_PATIENCE: Duration = Duration::from_secs(2);
const REMOVE_PAUSE: Duration = Duration::from_millis(2);

/// A means of the kernel that cannot be used on this machine: limits that need it are not in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unenforced {
    /// `cpu`, `memory`, `pids`, or `oom_score_adj`.
    pub controller: &'static str,
    /// What stands in the way, for a person.
    pub reason: String,
}

/// What all pods of an instance have together: the weight of all CPUs, as a kubelet gives its pods, against that of one process; and
/// three quarters of what pids there are, so that the host keeps some however many pods do their worst.
pub(crate) fn resources_of_all_pods() -> Resources {
    let cpus = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
    let kernel = |name: &str| -> Option<u64> {
        let text = fs::read_to_string(Path::new("/proc/sys/kernel").join(name)).ok()?;
        text.trim().parse().ok()
    };
    let pids = [kernel("pid_max"), kernel("threads-max")]
        .into_iter()
        .flatten()
        .min();
    Resources {
        cpu_shares: Some(cpus * 1_024),
        pids: pids.map(|pids| pids / 4 * 3),
        ..Resources::default()
    }
}

/// Why processes cannot be protected from the kernel's out-of-memory killer, if they cannot.
pub(crate) fn unprotected() -> Option<Unenforced> {
    let capabilities = rustix::thread::capabilities(None).ok()?;
    let may_lower = capabilities.effective.contains(CapabilitySet::SYS_RESOURCE);
    (!may_lower).then(|| Unenforced {
        controller: "oom_score_adj",
        reason: "CAP_SYS_RESOURCE is missing: Guaranteed pods and shims are killed as others are when memory runs out".to_owned(),
    })
}

/// The tree of one instance in all hierarchies.
#[derive(Debug, Clone)]
pub(crate) struct Instance {
    trees: Vec<Tree>,
}

/// One directory in one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tree {
    version: Version,
    controllers: Vec<Controller>,
    dir: PathBuf,
}

impl Instance {
    /// Makes the tree of an instance, with what `resources` give to all its pods, and finds out what is not to be had.
    pub(crate) fn make(instance_id: &str, resources: &Resources) -> (Self, Vec<Unenforced>) {
        match mountinfo::current() {
            Ok(mounts) => Self::make_in(&hierarchies::find(&mounts), instance_id, resources),
            Err(error) => {
                let all = Controller::ALL.into_iter();
                let reason = format!("the mount table cannot be read: {error}");
                (
                    Self { trees: Vec::new() },
                    all.map(|one| unenforced(one, &reason)).collect(),
                )
            }
        }
    }

    fn make_in(found: &[Hierarchy], instance_id: &str, resources: &Resources) -> (Self, Vec<Unenforced>) {
        let (mut trees, mut missing) = (Vec::new(), Vec::new());
        for hierarchy in found {
            let mut tree = Tree::of(hierarchy, instance_id);
            if let Err(error) = make_dir(&tree.dir) {
                let reason = format!("cannot make the cgroup {}: {error}", tree.dir.display());
                missing.extend(tree.controllers.iter().map(|one| unenforced(*one, &reason)));
                continue;
            }
            let usable = |controller: &Controller| {
                let enabled = match tree.version {
                    Version::V1 => Ok(()),
                    Version::V2 => [&hierarchy.mount, &tree.dir]
                        .into_iter()
                        .try_for_each(|dir| enable(dir, *controller)),
                };
                let set = enabled.and_then(|()| tree.set_one(*controller, Level::Instance, resources));
                set.map_err(|reason| missing.push(unenforced(*controller, &reason)))
                    .is_ok()
            };
            tree.controllers = tree.controllers.clone().into_iter().filter(usable).collect();
            trees.push(tree);
        }
        for controller in Controller::ALL {
            let is_there = |one: &Hierarchy| one.controllers.contains(&controller);
            if !found.iter().any(is_there) {
                let reason = "no cgroup hierarchy that is mounted has it";
                missing.push(unenforced(controller, reason));
            }
        }
        (Self { trees }, missing)
    }

    /// What there is of the tree, as far as [`make`](Self::make) could make it.
    pub(crate) fn find(instance_id: &str) -> Self {
        let found = mountinfo::current().map(|mounts| hierarchies::find(&mounts));
        Self::find_in(&found.unwrap_or_default(), instance_id)
    }

    fn find_in(found: &[Hierarchy], instance_id: &str) -> Self {
        let trees = found.iter().map(|hierarchy| Tree::of(hierarchy, instance_id));
        let mut trees: Vec<Tree> = trees.filter(|tree| tree.dir.is_dir()).collect();
        for tree in trees.iter_mut().filter(|tree| tree.version == Version::V2) {
            tree.controllers = hierarchies::listed(&tree.dir.join("cgroup.subtree_control"));
        }
        Self { trees }
    }

    /// One pod's part of it.
    pub(crate) fn pod(&self, pod_uid: &str) -> Group {
        Group::below(&self.trees, Path::new(pod_uid))
    }

    /// All of it.
    pub(crate) fn whole(&self) -> Group {
        Group::below(&self.trees, Path::new(""))
    }
}

impl Tree {
    fn of(hierarchy: &Hierarchy, instance_id: &str) -> Self {
        Self {
            version: hierarchy.version,
            controllers: hierarchy.controllers.clone(),
            dir: hierarchy.mount.join(format!("hotmap-{instance_id}")),
        }
    }

    fn below(&self, path: &Path) -> Self {
        Self {
            dir: self.dir.join(path),
            ..self.clone()
        }
    }

    fn set(&self, level: Level, resources: &Resources) -> Result<(), String> {
        let mut controllers = self.controllers.iter();
        controllers.try_for_each(|controller| self.set_one(*controller, level, resources))
    }

    fn set_one(&self, controller: Controller, level: Level, resources: &Resources) -> Result<(), String> {
        for setting in plan::settings(self.version, controller, level, resources) {
            let file = self.dir.join(setting.file);
            match fs::write(&file, &setting.text) {
                Err(error) if setting.is_required => {
                    return Err(format!(
                        "cannot write {} to {}: {error}",
                        setting.text,
                        file.display()
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Lets the cgroups below have controllers of their own.
    fn enable_below(&self) -> Result<(), String> {
        match self.version {
            Version::V1 => Ok(()),
            Version::V2 => self
                .controllers
                .iter()
                .try_for_each(|one| enable(&self.dir, *one)),
        }
    }
}

fn enable(dir: &Path, controller: Controller) -> Result<(), String> {
    let file = dir.join("cgroup.subtree_control");
    if hierarchies::listed(&file).contains(&controller) {
        return Ok(());
    }
    fs::write(&file, format!("+{}", controller.name())).map_err(|error| {
        let hint = if error.kind() == io::ErrorKind::ResourceBusy {
            "; move the processes of that cgroup into one below it"
        } else {
            ""
        };
        format!("cannot enable it in {}: {error}{hint}", file.display())
    })
}

fn unenforced(controller: Controller, reason: &str) -> Unenforced {
    Unenforced {
        controller: controller.name(),
        reason: reason.to_owned(),
    }
}

fn make_dir(dir: &Path) -> io::Result<()> {
    match fs::create_dir(dir) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

/// One cgroup in all hierarchies: of an instance, a pod, a shim or a container.
#[derive(Debug, Clone, Default)]
pub(crate) struct Group {
    trees: Vec<Tree>,
}

impl Group {
    fn below(trees: &[Tree], path: &Path) -> Self {
        Self {
            trees: trees.iter().map(|tree| tree.below(path)).collect(),
        }
    }

    /// Makes a pod's cgroups and moves this process, its shim, into them.
    pub(crate) fn make_pod(&self, resources: &Resources) -> Result<(), String> {
        let made = |tree: &Tree| {
            make_dir(&tree.dir)
                .map_err(|error| format!("cannot make the cgroup {}: {error}", tree.dir.display()))
        };
        for tree in &self.trees {
            made(tree)?;
            tree.set(Level::Pod, resources)?;
            tree.enable_below()?;
            let containers = tree.below(Path::new(CONTAINERS));
            made(&containers)?;
            containers.set(Level::Containers, resources)?;
            containers.enable_below()?;
            // The other hierarchies of v1 have nothing for a shim but work: to move a process takes milliseconds there.
            if tree.version == Version::V2 || tree.controllers.contains(&Controller::Cpu) {
                let shim = tree.below(Path::new(SHIM));
                made(&shim)?;
                let joined = fs::write(shim.dir.join("cgroup.procs"), "0");
                joined.map_err(|error| format!("cannot enter the cgroup {}: {error}", shim.dir.display()))?;
            }
        }
        Ok(())
    }

    /// A container's cgroups in those of its pod.
    pub(crate) fn container(&self, name: &str) -> Self {
        Self::below(&self.trees, &Path::new(CONTAINERS).join(name))
    }

    /// Makes a container's cgroups, with its limits.
    pub(crate) fn make_container(&self, resources: &Resources) -> Result<(), String> {
        for tree in &self.trees {
            make_dir(&tree.dir)
                .map_err(|error| format!("cannot make the cgroup {}: {error}", tree.dir.display()))?;
            tree.set(Level::Container, resources)?;
        }
        Ok(())
    }

    /// The way in for a process that is about to be started.
    pub(crate) fn entrance(&self) -> Result<Entrance, String> {
        let mut entrance = Entrance::default();
        for tree in &self.trees {
            let failed = |error: io::Error| format!("cannot use the cgroup {}: {error}", tree.dir.display());
            match tree.version {
                Version::V2 => {
                    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
                    let dir = rustix::fs::open(&tree.dir, flags, Mode::empty());
                    entrance.unified = Some(dir.map_err(|error| failed(error.into()))?);
                }
                Version::V1 => {
                    let file = OpenOptions::new().write(true).open(tree.dir.join("cgroup.procs"));
                    entrance.others.push(file.map_err(failed)?);
                }
            }
        }
        Ok(entrance)
    }

    /// How many times the kernel's out-of-memory killer ended a process here; 0 where nobody counts.
    pub(crate) fn oom_kills(&self) -> u64 {
        let counts = |tree: &&Tree| tree.controllers.contains(&Controller::Memory);
        let Some(tree) = self.trees.iter().find(counts) else {
            return 0;
        };
        let file = match tree.version {
            Version::V1 => "memory.oom_control",
            Version::V2 => "memory.events",
        };
        let text = fs::read_to_string(tree.dir.join(file)).unwrap_or_default();
        let count = text
            .lines()
            .find_map(|line| line.strip_prefix("oom_kill ")?.parse().ok());
        count.unwrap_or(0)
    }

    /// Whether [`kill_all`](Self::kill_all) can do anything.
    pub(crate) fn can_kill(&self) -> bool {
        self.unified().is_some_and(|dir| dir.join("cgroup.kill").exists())
    }

    /// Kills every process here and below, and waits until the kernel says that none is left. Without cgroup v2 it does nothing.
    pub(crate) fn kill_all(&self, patience: Duration) -> io::Result<()> {
        let Some(dir) = self.unified() else { return Ok(()) };
        match fs::write(dir.join("cgroup.kill"), "1") {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            result => result?,
        }
        wait_empty(dir, patience)
    }

    /// Removes it and what is below. Processes must be gone; what is not there is fine.
    pub(crate) fn remove(&self) -> io::Result<()> {
        let deadline = Instant::now() + REMOVE_PATIENCE;
        self.trees.iter().try_for_each(|tree| remove(&tree.dir, deadline))
    }

    /// Removes a container's as far as it can be removed now.
    pub(crate) fn try_remove(&self) {
        for tree in &self.trees {
            let _ = fs::remove_dir(&tree.dir);
        }
    }

    fn unified(&self) -> Option<&Path> {
        let mut trees = self.trees.iter();
        Some(&trees.find(|tree| tree.version == Version::V2)?.dir)
    }
}

/// Opened before a process is started, so that it begins its life within its limits.
#[derive(Debug, Default)]
pub(crate) struct Entrance {
    unified: Option<OwnedFd>,
    others: Vec<File>,
}

impl Entrance {
    /// For the call that makes the process.
    pub(crate) fn unified(&self) -> Option<BorrowedFd<'_>> {
        self.unified.as_ref().map(AsFd::as_fd)
    }

    /// For the new process itself, before it does anything else.
    pub(crate) fn enter_others(&self) -> io::Result<()> {
        self.others.iter().try_for_each(|mut file| file.write_all(b"0"))
    }
}

/// Waits until `cgroup.events` says that no process is left; `TimedOut` otherwise.
fn wait_empty(dir: &Path, patience: Duration) -> io::Result<()> {
    let deadline = Instant::now() + patience;
    let mut events = match File::open(dir.join("cgroup.events")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        result => result?,
    };
    loop {
        let mut text = String::new();
        events.rewind()?;
        events.read_to_string(&mut text)?;
        if !text.lines().any(|line| line == "populated 1") {
            return Ok(());
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        // The kernel marks the file as changed with POLLPRI.
        let mut poll = [PollFd::from_borrowed_fd(events.as_fd(), PollFlags::PRI)];
        let left = Timespec {
            tv_sec: left.as_secs() as i64,
            tv_nsec: left.subsec_nanos().into(),
        };
        rustix::event::poll(&mut poll, Some(&left))?;
    }
}

fn remove(dir: &Path, deadline: Instant) -> io::Result<()> {
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        result => result?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove(&entry.path(), deadline)?;
        }
    }
    loop {
        match fs::remove_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            // A hierarchy of v1 has no event for that.
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && Instant::now() < deadline => {
                std::thread::sleep(REMOVE_PAUSE);
            }
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Every file below a directory that is no cgroup file system, and what it holds.
    fn files(root: &Path) -> BTreeMap<String, String> {
        let mut found = BTreeMap::new();
        let mut left = vec![root.to_owned()];
        while let Some(dir) = left.pop() {
            for entry in fs::read_dir(&dir).expect("listed") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    left.push(path);
                } else {
                    let name = path.strip_prefix(root).expect("below").display().to_string();
                    found.insert(name, fs::read_to_string(&path).expect("text"));
                }
            }
        }
        found
    }

    fn hierarchy(root: &Path, version: Version, name: &str, controllers: &[Controller]) -> Hierarchy {
        let mount = root.join(name);
        fs::create_dir(&mount).expect("made");
        Hierarchy {
            version,
            mount,
            controllers: controllers.to_vec(),
        }
    }

    const POD: Resources = Resources {
        cpu_shares: Some(256),
        cpu_quota_micros: Some(50_000),
        memory_bytes: Some(64 << 20),
        pids: Some(64),
    };

    const CONTAINER: Resources = Resources {
        cpu_shares: Some(2),
        cpu_quota_micros: None,
        memory_bytes: Some(32 << 20),
        pids: None,
    };

    /// Makes an instance, a pod and a container in a fake root; what stands in its files then.
    fn grown(found: &[Hierarchy], root: &Path) -> BTreeMap<String, String> {
        let all_pods = Resources {
            cpu_shares: Some(2_048),
            pids: Some(24_576),
            ..Resources::default()
        };
        let (_, missing) = Instance::make_in(found, "x", &all_pods);
        assert_eq!(missing, []);
        // As the kernel shows what it was told.
        for one in found.iter().filter(|one| one.version == Version::V2) {
            let names: Vec<&str> = one.controllers.iter().map(|one| one.name()).collect();
            fs::write(one.mount.join("hotmap-x/cgroup.subtree_control"), names.join(" ")).expect("written");
        }
        let pod = Instance::find_in(found, "x").pod("u");
        pod.make_pod(&POD).expect("made");
        pod.container("web").make_container(&CONTAINER).expect("made");
        files(root)
    }

    #[test]
    fn a_tree_in_cgroup_v2_has_the_shim_outside_the_limits() {
        let fake = tempfile::tempdir().expect("a directory");
        let unified = hierarchy(fake.path(), Version::V2, "cgroup", &Controller::ALL);
        let files = grown(&[unified], fake.path());
        let expected = [
            ("cgroup/cgroup.subtree_control", "+pids"),
            ("cgroup/hotmap-x/cgroup.subtree_control", "cpu memory pids"),
            ("cgroup/hotmap-x/cpu.weight", "79"),
            ("cgroup/hotmap-x/pids.max", "24576"),
            ("cgroup/hotmap-x/u/_pod/cgroup.subtree_control", "+pids"),
            ("cgroup/hotmap-x/u/_pod/cpu.max", "50000 100000"),
            ("cgroup/hotmap-x/u/_pod/memory.max", "67108864"),
            ("cgroup/hotmap-x/u/_pod/memory.swap.max", "0"),
            ("cgroup/hotmap-x/u/_pod/pids.max", "64"),
            ("cgroup/hotmap-x/u/_pod/web/cpu.max", "max 100000"),
            ("cgroup/hotmap-x/u/_pod/web/cpu.weight", "1"),
            ("cgroup/hotmap-x/u/_pod/web/memory.max", "33554432"),
            ("cgroup/hotmap-x/u/_pod/web/memory.oom.group", "1"),
            ("cgroup/hotmap-x/u/_pod/web/memory.swap.max", "0"),
            ("cgroup/hotmap-x/u/_shim/cgroup.procs", "0"),
            ("cgroup/hotmap-x/u/cgroup.subtree_control", "+pids"),
            ("cgroup/hotmap-x/u/cpu.weight", "10"),
        ];
        let shown: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn hierarchies_of_v1_have_one_controller_each_and_v2_only_kills() {
        let fake = tempfile::tempdir().expect("a directory");
        let root = fake.path();
        let found = [
            hierarchy(root, Version::V2, "unified", &[]),
            hierarchy(root, Version::V1, "cpu", &[Controller::Cpu]),
            hierarchy(root, Version::V1, "memory", &[Controller::Memory]),
            hierarchy(root, Version::V1, "pids", &[Controller::Pids]),
        ];
        let files = grown(&found, root);
        let expected = [
            ("cpu/hotmap-x/cpu.shares", "2048"),
            ("cpu/hotmap-x/u/_pod/cpu.cfs_period_us", "100000"),
            ("cpu/hotmap-x/u/_pod/cpu.cfs_quota_us", "50000"),
            ("cpu/hotmap-x/u/_pod/web/cpu.cfs_period_us", "100000"),
            ("cpu/hotmap-x/u/_pod/web/cpu.cfs_quota_us", "-1"),
            ("cpu/hotmap-x/u/_pod/web/cpu.shares", "2"),
            ("cpu/hotmap-x/u/_shim/cgroup.procs", "0"),
            ("cpu/hotmap-x/u/cpu.shares", "256"),
            ("memory/hotmap-x/u/_pod/memory.limit_in_bytes", "67108864"),
            ("memory/hotmap-x/u/_pod/memory.memsw.limit_in_bytes", "67108864"),
            ("memory/hotmap-x/u/_pod/web/memory.limit_in_bytes", "33554432"),
            (
                "memory/hotmap-x/u/_pod/web/memory.memsw.limit_in_bytes",
                "33554432",
            ),
            ("pids/hotmap-x/pids.max", "24576"),
            ("pids/hotmap-x/u/_pod/pids.max", "64"),
            ("unified/hotmap-x/cgroup.subtree_control", ""),
            ("unified/hotmap-x/u/_shim/cgroup.procs", "0"),
        ];
        let shown: Vec<(&str, &str)> = files.iter().map(|(name, text)| (&**name, &**text)).collect();
        assert_eq!(shown, expected);
        // The kernel's files go with their directory; these stay and are in the way, which is as good as a process.
        let whole = Instance::find_in(&found, "x").whole();
        assert_eq!(whole.trees.len(), 4);
        let web = Instance::find_in(&found, "x").pod("u").container("web");
        for (count, text) in [
            (0, "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n"),
            (3, "oom_kill 3\n"),
            (0, ""),
        ] {
            fs::write(root.join("memory/hotmap-x/u/_pod/web/memory.oom_control"), text).expect("written");
            assert_eq!(web.oom_kills(), count, "{text}");
        }
    }

    #[test]
    fn what_is_not_to_be_had_is_named_with_its_reason() {
        let fake = tempfile::tempdir().expect("a directory");
        let root = fake.path();
        let unified = hierarchy(root, Version::V2, "unified", &[Controller::Cpu]);
        // A directory in the place of a file refuses to be written.
        fs::create_dir(root.join("unified/cgroup.subtree_control")).expect("made");
        let gone = Hierarchy {
            version: Version::V1,
            mount: root.join("gone"),
            controllers: vec![Controller::Pids],
        };
        let (instance, missing) = Instance::make_in(&[unified, gone], "x", &Resources::default());
        let shown: Vec<String> = missing
            .iter()
            .map(|one| {
                format!(
                    "{}: {}",
                    one.controller,
                    one.reason.replace(&root.display().to_string(), "")
                )
            })
            .collect();
        assert_eq!(
            shown,
            [
                "cpu: cannot enable it in /unified/cgroup.subtree_control: Is a directory (os error 21)",
                "pids: cannot make the cgroup /gone/hotmap-x: No such file or directory (os error 2)",
                "memory: no cgroup hierarchy that is mounted has it",
            ]
        );
        // What is left still kills.
        assert_eq!(instance.trees.len(), 1);
        assert_eq!(instance.trees[0].controllers, []);
        instance.pod("u").make_pod(&POD).expect("nothing to set");
    }
}
