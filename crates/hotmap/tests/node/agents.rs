//! `hotmap agent`: nodes that stand by themselves, and several of them, each in a network of its own.

use std::{env, path::PathBuf, process::Command};

use serde_json::{Value, json};

use crate::{
    harness::{Kubectl, PATIENCE, Release, Running, Server, ServerOptions, exit_code, finish, hotmap, wait},
    has,
    host::{Turn, can_run_pods, config_map, idle, pod, shell},
};

/// An agent beside a server; dropping it ends its pods and removes its directory.
pub(crate) struct Agent {
    name: String,
    data_dir: PathBuf,
    /// The network namespace it lives in; `None`: this one.
    network: Option<String>,
    pub(crate) running: Option<Running>,
}

impl Agent {
    pub(crate) fn new(name: &str, server: &Server) -> Self {
        Self {
            name: name.to_owned(),
            data_dir: server.home().join(format!("agent-{name}")),
            network: None,
            running: None,
        }
    }

    fn hotmap(&self) -> Command {
        let Some(network) = &self.network else {
            return hotmap();
        };
        let inside = hotmap();
        let mut command = Command::new("nsenter");
        command
            .arg(format!("--net=/run/netns/{network}"))
            .arg(inside.get_program());
        for (name, value) in inside.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        command
    }

    pub(crate) fn command(&self, flags: &[&str]) -> Command {
        let mut command = self.hotmap();
        command
            .args(["agent", "--node-name", &self.name, "--data-dir"])
            .arg(&self.data_dir);
        if self.network.is_none() {
            // Agents of other tests have the usual port.
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.args(flags);
        command
    }

    #[track_caller]
    pub(crate) fn start(&mut self, flags: &[&str]) {
        let mut running = Running::start(&mut self.command(flags));
        running.line_with("is ready");
        self.running = Some(running);
    }

    #[track_caller]
    pub(crate) fn stop(&mut self) {
        let running = self.running.take().expect("it runs");
        running.terminate();
        let (lines, code) = running.rest();
        assert_eq!(code, 0, "{lines:#?}");
    }

    /// Waits until it ends by itself.
    #[track_caller]
    fn ended(&mut self) -> i32 {
        self.running.take().expect("it runs").rest().1
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.running.take());
        if self.data_dir.exists() {
            let mut down = self.hotmap();
            down.args(["down", "--purge", "--data-dir"]).arg(&self.data_dir);
            let purged = finish(&mut down, None);
            if !std::thread::panicking() {
                purged.ok();
            }
        }
        if let Some(network) = &self.network {
            ip(&format!("netns delete {network}"));
        }
    }
}

/// `hotmap token create`, as JSON.
pub(crate) fn token(server: &Server) -> Value {
    let mut command = hotmap();
    command
        .args(["token", "create", "-o", "json", "--kubeconfig"])
        .arg(server.kubeconfig());
    serde_json::from_str(&finish(&mut command, None).ok()).expect("JSON")
}

#[track_caller]
pub(crate) fn ip(arguments: &str) {
    finish(Command::new("ip").args(arguments.split_whitespace()), None).ok();
}

/// Set in the process that has a network of its own.
const OWN_NETWORK: &str = "HOTMAP_E2E_OWN_NETWORK";
/// Where the server is in it.
const SERVER_ADDRESS: &str = "192.0.2.1";

/// Runs a test again, in a process with a network of its own; true in that process.
pub(crate) fn in_own_network(test: &str) -> bool {
    if env::var_os(OWN_NETWORK).is_some() {
        return true;
    }
    let this = env::current_exe().expect("a test binary");
    let mut command = Command::new("unshare");
    command
        .arg("--net")
        .arg(this)
        .args(["--exact", test, "--nocapture"])
        .env(OWN_NETWORK, "1");
    let mut child = command.spawn().expect("unshare is a part of every Debian");
    let status = wait(&mut child, test);
    assert_eq!(exit_code(status), 0, "{test} within {PATIENCE:?}");
    false
}

/// An agent in a network of its own, plugged into ours.
fn plugged(name: &str, number: u8, server: &Server) -> Agent {
    let network = format!("hm-e2e-{}-{name}", std::process::id());
    ip(&format!("netns add {network}"));
    let mut agent = Agent::new(name, server);
    agent.network = Some(network.clone());
    ip(&format!(
        "link add to-{name} type veth peer name eth0 netns {network}"
    ));
    ip(&format!("link set to-{name} master hub up"));
    ip(&format!("-n {network} address add 192.0.2.{number}/24 dev eth0"));
    ip(&format!("-n {network} link set eth0 up"));
    ip(&format!("-n {network} link set lo up"));
    agent
}

#[test]
fn several_nodes_are_cut_off_and_come_back_and_none_acts_twice() {
    if !can_run_pods()
        || !in_own_network("agents::several_nodes_are_cut_off_and_come_back_and_none_acts_twice")
    {
        return;
    }
    let _turn = Turn::take();
    ip("link set lo up");
    ip("link add hub type bridge");
    ip(&format!("address add {SERVER_ADDRESS}/24 dev hub"));
    ip("link set hub up");
    let options = ServerOptions {
        flags: Vec::new(),
        listen: Some(format!("{SERVER_ADDRESS}:0")),
        ..ServerOptions::default()
    };
    let Some(kubectl) = Kubectl::with_options(Release::Newest, options) else {
        return;
    };
    let made = token(&kubectl.server);
    let text = |field: &str| made[field].as_str().expect("text");
    let url = kubectl.server.url().to_owned();
    let join = [
        "--join",
        &url,
        "--token",
        text("token"),
        "--ca-hash",
        text("authorityHash"),
    ];
    let (mut a, mut b) = (
        plugged("a", 11, &kubectl.server),
        plugged("b", 12, &kubectl.server),
    );
    a.start(&join);
    b.start(&join);
    kubectl.ok("wait node/a node/b --for=condition=Ready --timeout=120s");

    // Logs and commands come through each node's own port.
    kubectl.apply(&config_map("c", json!({"k": "one"})).to_string());
    let on = |node: &str, name: &str, container: Value| {
        let volumes = json!([{"name": "c", "configMap": {"name": "c"}}]);
        pod(
            name,
            json!({"nodeName": node, "restartPolicy": "Never", "containers": [container], "volumes": volumes}),
        )
    };
    let mount = || json!({"volumeMounts": [{"name": "c", "mountPath": "/c"}]});
    for node in ["a", "b"] {
        let script = format!("echo here is {node}; trap exit TERM; sleep infinity & wait");
        kubectl.apply(&on(node, &format!("talks-{node}"), shell(&script, mount())).to_string());
        // It ends once it sees the change.
        let script = r#"until [ "$(cat /c/k)" = two ]; do inotifywait -qq -t 1 -e moved_to /c || :; done"#;
        kubectl.apply(&on(node, &format!("waits-{node}"), shell(script, mount())).to_string());
    }
    kubectl.ok("wait pod --all --for=condition=Ready --timeout=120s");
    for node in ["a", "b"] {
        assert_eq!(
            kubectl.ok(&format!("logs talks-{node}")),
            format!("here is {node}\n")
        );
        assert_eq!(kubectl.ok(&format!("exec talks-{node} -- cat /c/k")), "one");
    }

    // A node that is cut off keeps what it has, and catches up.
    ip("link set to-a down");
    kubectl.apply(&config_map("c", json!({"k": "two"})).to_string());
    kubectl.ok("wait pod/waits-b --for=jsonpath={.status.phase}=Succeeded --timeout=120s");
    assert_eq!(kubectl.field("pod/waits-a", ".status.phase"), "Running");
    ip("link set to-a up");
    kubectl.ok("wait pod/waits-a --for=jsonpath={.status.phase}=Succeeded --timeout=120s");

    // A second agent of the name does not start, and a pod of no node stays where it is.
    let mut twin = plugged("twin", 13, &kubectl.server);
    twin.name = "a".to_owned();
    let kubeconfig = kubectl.server.kubeconfig();
    let known = ["--kubeconfig", kubeconfig.to_str().expect("text")];
    let refused = finish(&mut twin.command(&known), None).refused();
    has(&refused, &["node name \"a\" is held by another agent (a_"]);
    kubectl.apply(&on("nowhere", "lost", idle(json!({}))).to_string());
    assert_eq!(kubectl.field("pod/lost", ".status.phase"), "Pending");
    has(
        &kubectl.run("logs lost").refused(),
        &["node \"nowhere\", which does not exist"],
    );

    // Another agent has taken the Lease over: this one ends, and its pods with it.
    let now = jiff::Timestamp::now();
    let spec = json!({"spec": {"holderIdentity": "a_elsewhere", "renewTime": format!("{now:.6}")}});
    kubectl
        .call(&[
            "patch",
            "lease",
            "a",
            "-n",
            "kube-node-lease",
            "--type=merge",
            "-p",
            &spec.to_string(),
        ])
        .ok();
    assert_eq!(a.ended(), 1);
    assert_eq!(
        crate::host::processes(|pid| {
            let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&command).contains("here is a")
        }),
        Vec::<u32>::new()
    );
}
