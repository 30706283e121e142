//! What pods are connected to: outside, names, ports, the host's network.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener},
    process::Command,
    thread,
};

use serde_json::{Value, json};

use crate::{
    agents::{Agent, in_own_network, ip, token},
    harness::{Kubectl, PATIENCE, Release, Running, ServerOptions, finish, hotmap},
    has,
    host::{Node, can_run_pods, idle, pod},
};

const FORWARDING: &str = "/proc/sys/net/ipv4/ip_forward";

/// A host beyond this one, that knows no way back to pods.
struct Outside {
    name: String,
    address: SocketAddr,
}

impl Outside {
    /// `up0` leads there. It answers every request with the address that it came from.
    fn plugged() -> Self {
        let name = format!("hm-e2e-{}-out", std::process::id());
        ip(&format!("netns add {name}"));
        ip(&format!("link add up0 type veth peer name eth0 netns {name}"));
        ip("address add 198.51.100.1/24 dev up0");
        ip("link set up0 up");
        ip(&format!("-n {name} address add 198.51.100.2/24 dev eth0"));
        ip(&format!("-n {name} link set eth0 up"));
        let space = fs::File::open(format!("/run/netns/{name}")).expect("just made");
        let listening = thread::spawn(move || {
            let kind = Some(rustix::thread::LinkNameSpaceType::Network);
            rustix::thread::move_into_link_name_space(std::os::fd::AsFd::as_fd(&space), kind)
                .expect("root may");
            TcpListener::bind("198.51.100.2:0").expect("its address")
        });
        let listener = listening.join().expect("no panic");
        let address = listener.local_addr().expect("bound");
        thread::spawn(move || {
            for (mut stream, from) in listener.incoming().flatten().map(|stream| {
                let from = stream.peer_addr().expect("connected");
                (stream, from)
            }) {
                let mut head = [0; 1_024];
                let _ = stream.read(&mut head);
                let _ = write!(stream, "HTTP/1.0 200 OK\r\n\r\n{}", from.ip());
            }
        });
        Self { name, address }
    }

    /// What it says to a pod.
    #[track_caller]
    fn answers(&self, node: &Node, pod: &str) -> String {
        node.sh(pod, &format!("busybox wget -q -O - http://{}/", self.address))
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        ip(&format!("netns delete {}", self.name));
    }
}

#[test]
fn pods_reach_outside_as_their_host_and_two_instances_leave_each_other_alone() {
    let this = "network::pods_reach_outside_as_their_host_and_two_instances_leave_each_other_alone";
    if !can_run_pods() || !in_own_network(this) {
        return;
    }
    ip("link set lo up");
    let outside = Outside::plugged();
    fs::write(FORWARDING, "0").expect("a network of our own");
    let collides = [
        "up",
        "--listen",
        "127.0.0.1:0",
        "--pod-cidr",
        "198.51.0.0/16",
        "--data-dir",
    ];
    let home = tempfile::tempdir().expect("a directory");
    let refused = finish(hotmap().args(collides).arg(home.path()), None).refused();
    has(
        &refused,
        &["the pod network 198.51.0.0/16 overlaps this host's route 198.51.100.0/24 dev up0"],
    );
    let purged = finish(
        hotmap().args(["down", "--purge", "--data-dir"]).arg(home.path()),
        None,
    );
    purged.ok();

    let Some(mut one) = Node::start_with(Release::Newest, &["--pod-cidr", "10.20.0.0/24"]) else {
        return;
    };
    let told = "pods reach this host and each other and nothing beyond: net.ipv4.ip_forward is 0";
    has(&one.server.line_with("  warning "), &[told]);
    one.event("node-a", &format!("PodNetworkDegraded: {told}"));
    assert_eq!(
        one.metric("hotmap_pod_network_troubles{reason=\"forwarding\"}"),
        1.0
    );
    one.create([pod("p", json!({"containers": [idle(json!({}))]}))]);
    one.ready("p");
    assert!(one.field("pod/p", ".status.podIP").starts_with("10.20.0."));
    fs::write(FORWARDING, "1").expect("a network of our own");
    assert_eq!(outside.answers(&one, "p"), "198.51.100.1");

    let Some(two) = Node::start_with(Release::Newest, &[]) else {
        return;
    };
    assert_eq!(
        two.metric("hotmap_pod_network_troubles{reason=\"forwarding\"}"),
        0.0
    );
    two.create([pod("q", json!({"containers": [idle(json!({}))]}))]);
    two.ready("q");
    assert_eq!(outside.answers(&two, "q"), "198.51.100.1");
    drop(two);
    assert_eq!(outside.answers(&one, "p"), "198.51.100.1");

    // The flag alone turns it on, and the pod that runs keeps its address and network whatever the next flags say.
    fs::write(FORWARDING, "0").expect("a network of our own");
    one.server
        .set_flags(&["--node-name", "node-a", "--enable-ip-forward"]);
    let before = one.field("pod/p", ".status.podIP");
    one.server.crash_and_restart();
    one.ready("p");
    assert_eq!(outside.answers(&one, "p"), "198.51.100.1");
    assert_eq!(one.field("pod/p", ".status.podIP"), before);
    // Its successor has another address.
    one.ok("delete pod p --timeout=120s");
    one.create([pod("p", json!({"containers": [idle(json!({}))]}))]);
    one.ready("p");
    let after = one.field("pod/p", ".status.podIP");
    assert!(
        after.starts_with("10.20.0.") && after != before,
        "{before} {after}"
    );
}

#[test]
fn a_pod_has_names_a_resolver_and_where_it_asks_the_hosts_network() {
    if !can_run_pods() {
        return;
    }
    let home = tempfile::tempdir().expect("a directory");
    let resolver = home.path().join("resolv.conf");
    fs::write(&resolver, "search lab\nnameserver 192.0.2.53\noptions ndots:2\n").expect("written");
    let flag = resolver.to_str().expect("text");
    let Some(mut node) = Node::start_with(Release::Newest, &["--resolv-conf", flag]) else {
        return;
    };
    let named = json!({"hostname": "web", "subdomain": "sites", "setHostnameAsFQDN": true,
        "hostAliases": [{"ip": "192.0.2.7", "hostnames": ["db", "db.example.org"]}],
        "dnsConfig": {"nameservers": ["198.51.100.1"], "searches": ["more"], "options": [{"name": "ndots", "value": "5"}]},
        "containers": [idle(json!({}))]});
    // A port that clients of this host do not get, so that no other test has it.
    let port = json!([{"containerPort": 29_713}]);
    let on_host = |name: &str| {
        pod(
            name,
            json!({"hostNetwork": true, "dnsPolicy": "ClusterFirstWithHostNet", "containers": [idle(json!({"ports": port}))]}),
        )
    };
    node.create([pod("named", named), on_host("host")]);
    node.ready("named host");

    let address = node.field("pod/named", ".status.podIP");
    let full = "web.sites.default.svc.cluster.local";
    assert_eq!(
        node.sh("named", "hostname; cat /etc/hostname; cat /etc/resolv.conf"),
        format!(
            "{full}\n{full}\nsearch lab more\nnameserver 192.0.2.53\nnameserver 198.51.100.1\noptions ndots:5"
        )
    );
    let hosts = node.sh("named", "cat /etc/hosts");
    assert!(
        hosts.starts_with("# Kubernetes-managed hosts file.\n127.0.0.1\tlocalhost\n"),
        "{hosts}"
    );
    let line = format!("\n{address}\t{full}\tweb\n");
    has(
        &hosts,
        &[
            &line,
            "\n# Entries added by HostAliases.\n192.0.2.7\tdb\tdb.example.org",
        ],
    );
    assert_eq!(
        node.sh(
            "named",
            "getent ahostsv4 db.example.org | head -n 1 | cut -d ' ' -f 1"
        ),
        "192.0.2.7"
    );
    node.event("node-a", "MissingClusterDNS: there is no cluster DNS");

    // On the host's network: its address, its name, its ports from 1024 on, and the API where the host has it.
    assert_eq!(
        node.field("pod/host", ".status.podIP"),
        node.field("pod/host", ".status.hostIP")
    );
    let own = fs::read_link("/proc/self/ns/net").expect("a network");
    assert_eq!(
        node.sh("host", "readlink /proc/self/ns/net"),
        own.display().to_string()
    );
    let uname = rustix::system::uname();
    let hosts_name = uname.nodename().to_string_lossy().into_owned();
    assert_eq!(
        node.sh("host", "hostname; head -n 1 /etc/hosts"),
        format!("{hosts_name}\n# Kubernetes-managed hosts file (host network).")
    );
    let refused = node.exec("host", "busybox nc -l -p 81 -w 1");
    has(&refused.stderr, &["ermission denied"]);
    let api = node.server.address().to_owned();
    assert_eq!(
        node.sh("host", "echo $KUBERNETES_SERVICE_HOST:$KUBERNETES_SERVICE_PORT"),
        api
    );
    node.create([on_host("second")]);
    node.event(
        "second",
        "HostPortConflict: port TCP/29713 of this host is declared by pod default/host too",
    );

    // The same for all pods, once the node is started so; those that run keep what they have.
    node.server
        .set_flags(&["--node-name", "node-a", "--pod-network", "host"]);
    node.server.crash_and_restart();
    node.ready("named host");
    node.create([pod("plain", json!({"containers": [idle(json!({}))]}))]);
    node.ready("plain");
    assert_eq!(
        node.sh("plain", "readlink /proc/self/ns/net; hostname"),
        format!("{}\nplain", own.display())
    );
    assert_eq!(node.field("pod/named", ".status.podIP"), address);
    assert_ne!(
        node.sh("named", "readlink /proc/self/ns/net"),
        own.display().to_string()
    );
}

#[test]
fn without_the_right_to_make_networks_pods_share_the_hosts_and_it_is_said() {
    if !can_run_pods() {
        return;
    }
    let _turn = crate::host::Turn::take();
    let Some(kubectl) = Kubectl::with_options(Release::Newest, ServerOptions::default()) else {
        return;
    };
    let mut agent = Agent::new("bare", &kubectl.server);
    let made = token(&kubectl.server);
    let text = |field: &str| made[field].as_str().expect("text");
    let url = kubectl.server.url().to_owned();
    let plain = agent.command(&[
        "--join",
        &url,
        "--token",
        text("token"),
        "--ca-hash",
        text("authorityHash"),
    ]);
    let mut command = Command::new("setpriv");
    command
        .args(["--bounding-set=-net_admin", "--inh-caps=-net_admin"])
        .arg(plain.get_program())
        .args(plain.get_args());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let mut running = Running::start(&mut command);
    let told = "pods share this host's network and its ports, as they cannot have one of their own here";
    has(&running.line_with("  pods "), &["share this host's network"]);
    has(
        &running.line_with("  warning "),
        &[told, "Operation not permitted"],
    );
    agent.running = Some(running);
    let waits: Value = json!({"nodeName": "bare", "containers": [idle(json!({}))]});
    kubectl.apply(&pod("p", waits).to_string());
    kubectl.ok(&format!(
        "wait pod/p --for=condition=Ready --timeout={}s",
        PATIENCE.as_secs()
    ));
    assert_eq!(
        kubectl.field("pod/p", ".status.podIP"),
        kubectl.field("pod/p", ".status.hostIP")
    );
    let own = fs::read_link("/proc/self/ns/net").expect("a network");
    assert_eq!(
        kubectl.ok("exec p -- readlink /proc/self/ns/net").trim(),
        own.display().to_string()
    );
    kubectl.ok("delete pod p --timeout=120s");
}
