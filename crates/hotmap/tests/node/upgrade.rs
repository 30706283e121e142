//! `up` goes and comes back, as another file too, and the pods do not notice.

use std::{env, fs, path::Path};

use serde_json::json;

use crate::{
    harness::{Running, finish, hotmap},
    host::{Node, config_map, pod, processes, shell},
};

/// How often it is restarted: 5 times in a test run, `HOTMAP_TEST_RESTARTS` times in a soak.
fn restarts() -> u32 {
    env::var("HOTMAP_TEST_RESTARTS")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(5)
}

const PODS: [&str; 3] = ["one", "two", "three"];

#[test]
fn restarts_and_upgrades_leave_pods_alone() {
    let Some(mut node) = Node::start() else { return };
    node.create([config_map("c", json!({"n": "0"}))]);
    let count = "trap exit TERM; i=0; while :; do i=$((i+1)); echo $i; sleep 0.05; done";
    let mount = json!({"volumeMounts": [{"name": "c", "mountPath": "/c"}]});
    node.create(PODS.map(|name| {
        let volumes = json!([{"name": "c", "configMap": {"name": "c"}}]);
        pod(
            name,
            json!({"containers": [shell(count, mount.clone())], "volumes": volumes}),
        )
    }));
    node.ready(&PODS.join(" "));
    let before = PODS.map(|name| node.process(name));
    let shims_before = shims(&node);
    assert_eq!((shims_before.len(), zygotes(&node).len()), (PODS.len(), 1));

    // Nobody else may have the directory meanwhile, and who has it is said.
    let mut second = hotmap();
    second
        .args([
            "up",
            "--node-name",
            "node-b",
            "--listen",
            "127.0.0.1:0",
            "--data-dir",
        ])
        .arg(node.server.data_dir());
    let refused = finish(&mut second, None).refused();
    crate::has(
        &refused,
        &["another hotmap", &format!("process {}", node.server.pid())],
    );

    let other = node.server.home().join("other-hotmap");
    let mut at_first = None;
    for round in 1..=restarts() {
        // A new program takes the place of the old one, as an installation does it: the old file is gone.
        match round % 2 {
            1 => {
                let staged = node.server.home().join("staged");
                fs::copy(env!("CARGO_BIN_EXE_hotmap"), &staged).expect("ours");
                fs::rename(&staged, &other).expect("ours");
                node.server.set_program(Some(&other));
            }
            _ => node.server.set_program(None),
        }
        match round % 3 {
            0 => node.server.crash(),
            _ => {
                let last = node.server.stop().pop().unwrap_or_default();
                crate::has(&last, &["3 pods go on running"]);
            }
        }
        // What shims are forked from goes with who asked for them, kill -9 included; the pods of before need no other.
        while !zygotes(&node).is_empty() {
            std::thread::yield_now();
        }
        node.server.restart();
        let text = round.to_string();
        node.create([config_map("c", json!({"n": text}))]);
        for name in PODS {
            node.until_file(name, "/c/n", &text);
        }
        let now = kernel_objects(&node);
        let first = at_first.get_or_insert_with(|| now.clone());
        assert_eq!(now, *first, "round {round}");
    }
    assert_eq!(PODS.map(|name| node.process(name)), before);
    assert_eq!(shims(&node), shims_before);
    for shim in &shims_before {
        // Its door, and what the last of all those processes has open; none of those before it.
        assert!(sockets(*shim) <= 5, "shim {shim} has {} sockets", sockets(*shim));
    }
    // Logs went on without a gap, and go on.
    let mut following = Running::start(&mut node.command(&["logs", "--follow", "one"]));
    following.line_with("1");
    drop(following);
    let log = node.ok("logs one");
    let numbers = Vec::from_iter(log.lines().map(|line| line.parse::<u64>().expect("a number")));
    assert!(numbers.len() > 1 && numbers.windows(2).all(|pair| pair[1] == pair[0] + 1));
    // What was started by the old program is ended by the new one.
    node.ok("delete pod one two three");
    assert_eq!(shims(&node), Vec::<u32>::new());
}

/// The shims of this node's pods.
fn shims(node: &Node) -> Vec<u32> {
    let argument = format!("__hotmap-shim\0{}\0", node.id());
    let mut found = processes(|pid| read(&format!("/proc/{pid}/cmdline")).contains(&argument));
    found.sort_unstable();
    found
}

/// What the shims of this node's pods are forked from.
fn zygotes(node: &Node) -> Vec<u32> {
    let argument = format!("__hotmap-zygote\0{}\0", node.id());
    processes(|pid| read(&format!("/proc/{pid}/cmdline")).contains(&argument))
}

/// What the instance has of the kernel beside its own process: mounts, links and cgroups.
fn kernel_objects(node: &Node) -> Vec<String> {
    let (id, directory) = (node.id(), node.server.data_dir().display().to_string());
    let mut found = Vec::new();
    let mounts = read("/proc/self/mountinfo");
    let ours = |line: &&str| line.contains(&directory) || line.contains(&id);
    found.push(format!("{} mounts", mounts.lines().filter(ours).count()));
    let links = fs::read_dir("/sys/class/net").expect("sysfs").flatten();
    let links = links.filter(|link| link.file_name().to_string_lossy().contains(&id));
    found.push(format!("{} links", links.count()));
    for root in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
        let group = Path::new(root).join(format!("hotmap-{id}"));
        found.push(format!("{} cgroups in {root}", directories(&group)));
    }
    found
}

fn sockets(pid: u32) -> usize {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("it lives")
        .flatten();
    let targets = descriptors.filter_map(|fd| fs::read_link(fd.path()).ok());
    targets
        .filter(|target| target.to_string_lossy().starts_with("socket:"))
        .count()
}

fn directories(path: &Path) -> usize {
    let Ok(entries) = fs::read_dir(path) else { return 0 };
    let below = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir());
    1 + below.map(|path| directories(&path)).sum::<usize>()
}

fn read(path: &str) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
