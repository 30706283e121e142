//! Requests and limits: in force, and shown when somebody runs into them.

use std::{fs, path::PathBuf};

use serde_json::json;

use crate::host::{Node, pod, shell};

/// Where a pod's first container is limited by a controller: on the host, out of what its own processes see.
pub(crate) fn cgroup(node: &Node, pod: &str, controller: &str) -> PathBuf {
    let seen = node.sh(pod, "cat /proc/self/cgroup");
    let of = |wanted: &str| {
        seen.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let names = fields.next()?.split(',').any(|name| name == wanted);
            fields.next().filter(|_| names).map(str::to_owned)
        })
    };
    let root = PathBuf::from("/sys/fs/cgroup");
    match (of(controller), of("")) {
        (Some(path), _) => root.join(controller).join(path.trim_start_matches('/')),
        (None, Some(path)) => root.join(path.trim_start_matches('/')),
        (None, None) => panic!("{controller} is nowhere in\n{seen}"),
    }
}

/// What stands in the first of these files that is there.
pub(crate) fn says(directory: &std::path::Path, files: &[&str]) -> String {
    let text = files
        .iter()
        .find_map(|file| fs::read_to_string(directory.join(file)).ok());
    text.unwrap_or_else(|| panic!("none of {files:?} is in {}", directory.display()))
        .trim()
        .to_owned()
}

#[test]
fn limits_are_the_kernels_and_who_exceeds_them_is_killed() {
    let Some(node) = Node::start_with(crate::harness::Release::Newest, &["--pod-max-pids", "100"]) else {
        return;
    };
    // Once for the node, and not for each pod.
    let lacks = |controller: &str| {
        let name = format!("hotmap_limits_not_enforced{{controller=\"{controller}\"}}");
        node.metric(&name) > 0.0
    };
    if ["cpu", "memory", "pids", "oom_score_adj"].into_iter().any(lacks) {
        node.event(
            "node-a",
            "LimitsNotEnforced: limits of pods that need these are not in force",
        );
    }
    if ["cpu", "memory", "pids"].into_iter().any(lacks) {
        return eprintln!("skipped: this machine has no cgroups to limit pods with");
    }

    // It takes too much once it is told to, and each attempt has a /run of its own.
    let hungry = "until [ -e /run/go ]; do inotifywait -qq -t 1 -e create /run || :; done; exec busybox tail -c 100m /dev/zero";
    let amounts = json!({"cpu": "500m", "memory": "32Mi"});
    node.create([
        pod(
            "hog",
            json!({"containers": [shell(hungry, json!({"resources": {"limits": amounts}}))]}),
        ),
        pod(
            "meek",
            json!({"containers": [shell(hungry, json!({"resources": {"requests": {"cpu": "250m"}}}))]}),
        ),
    ]);
    node.ready("hog meek");
    for (name, class, millis) in [("hog", "Guaranteed", "512 20"), ("meek", "Burstable", "256 10")] {
        assert_eq!(node.field(&format!("pod/{name}"), ".status.qosClass"), class);
        let share = says(&cgroup(&node, name, "cpu"), &["cpu.shares", "cpu.weight"]);
        assert!(millis.split(' ').any(|one| one == share), "{name}: {share}");
    }
    for (name, field, shown) in [
        (
            "hog",
            "resources",
            r#"{"limits":{"cpu":"500m","memory":"32Mi"},"requests":{"cpu":"500m","memory":"32Mi"}}"#,
        ),
        ("hog", "allocatedResources", r#"{"cpu":"500m","memory":"32Mi"}"#),
        ("meek", "resources", r#"{"requests":{"cpu":"250m"}}"#),
    ] {
        let path = format!(".status.containerStatuses[0].{field}");
        assert_eq!(node.field(&format!("pod/{name}"), &path), shown, "{name}");
    }
    // Who asked for something is killed after who asked for nothing (1000).
    assert_eq!(node.sh("meek", "cat /proc/1/oom_score_adj"), "999");
    let (memory, cpu) = (cgroup(&node, "hog", "memory"), cgroup(&node, "hog", "cpu"));
    let files = ["memory.limit_in_bytes", "memory.max"];
    for directory in [&memory, &memory.parent().expect("the pod's").to_owned()] {
        assert_eq!(
            says(directory, &files),
            (32 << 20).to_string(),
            "{}",
            directory.display()
        );
    }
    assert!(says(&cpu, &["cpu.cfs_quota_us", "cpu.max"]).starts_with("50000"));
    let pids = cgroup(&node, "hog", "pids");
    assert_eq!(says(pids.parent().expect("the pod's"), &["pids.max"]), "100");

    drop(node.exec("hog", "touch /run/go"));
    let last = ".status.containerStatuses[0].lastState.terminated";
    node.wait("hog", &format!("jsonpath={{{last}.reason}}=OOMKilled"));
    node.ready("hog");
    assert_eq!(node.field("pod/hog", &format!("{last}.exitCode")), "137");
    assert_eq!(
        node.field("pod/hog", ".status.containerStatuses[0].restartCount"),
        "1"
    );
    assert_eq!(
        says(&cgroup(&node, "hog", "memory"), &files),
        (32 << 20).to_string()
    );
    assert_eq!(
        node.field("pod/meek", ".status.containerStatuses[0].restartCount"),
        "0"
    );

    node.ok("delete pod hog meek");
    for directory in [&memory, &cpu, &pids] {
        let of_pod = directory.ancestors().nth(2).expect("the pod's");
        assert!(!of_pod.exists(), "{}", of_pod.display());
    }
}
