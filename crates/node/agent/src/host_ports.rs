//! Which ports of the host's network pods say they use, so that two who want the same one are told.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    net::IpAddr,
};

use parking_lot::Mutex;

use crate::pod::Pod;

/// The declared ports of all pods that share the host's network.
#[derive(Debug, Default)]
pub(crate) struct HostPorts(Mutex<BTreeMap<String, Claim>>);

#[derive(Debug)]
struct Claim {
    /// `namespace/name`.
    pod: String,
    ports: BTreeSet<Port>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Port {
    number: u16,
    protocol: String,
    /// `None`: every address of the host.
    ip: Option<IpAddr>,
}

impl Port {
    fn meets(&self, other: &Self) -> bool {
        let same_place = self.ip.is_none() || other.ip.is_none() || self.ip == other.ip;
        self.number == other.number && self.protocol == other.protocol && same_place
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.protocol, self.number)
    }
}

impl HostPorts {
    /// Notes the ports of a pod; the first time it says who has some of them already, in sentences.
    pub(crate) fn claim(&self, pod: &Pod) -> Vec<String> {
        let mut claims = self.0.lock();
        let uid = &pod.metadata.uid;
        if claims.contains_key(uid) {
            return Vec::new();
        }
        let ports = declared(pod);
        let mut conflicts = Vec::new();
        for port in &ports {
            let holders = claims
                .values()
                .filter(|claim| claim.ports.iter().any(|held| held.meets(port)));
            conflicts.extend(holders.map(|claim| {
                format!(
                    "port {port} of this host is declared by pod {} too, which shares its network as this pod does: only one of \
                     them can listen there",
                    claim.pod
                )
            }));
        }
        let shown = format!("{}/{}", pod.metadata.namespace, pod.metadata.name);
        claims.insert(uid.clone(), Claim { pod: shown, ports });
        conflicts
    }

    /// The pod has no processes any more.
    pub(crate) fn release(&self, uid: &str) {
        self.0.lock().remove(uid);
    }
}

fn declared(pod: &Pod) -> BTreeSet<Port> {
    // Init containers that end have given their ports back when the others start.
    let ports = pod.lasting_containers().flat_map(|container| &container.ports);
    ports
        .filter(|port| port.container_port != 0)
        .map(|port| Port {
            number: port.container_port,
            protocol: match port.protocol.as_str() {
                "" => "TCP".to_owned(),
                protocol => protocol.to_owned(),
            },
            ip: port
                .host_ip
                .parse()
                .ok()
                .filter(|ip: &IpAddr| !ip.is_unspecified()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(name: &str, ports: serde_json::Value) -> Pod {
        Pod::from_document(&json!({"metadata": {"name": name, "namespace": "n", "uid": name},
            "spec": {"containers": [{"name": "c", "ports": ports}]}}))
        .expect("a pod")
    }

    #[test]
    fn who_declares_the_port_of_another_pod_is_told_once() {
        let ports = HostPorts::default();
        let web = json!([{"containerPort": 8080}, {"containerPort": 53, "protocol": "UDP"}]);
        for (name, declared, conflicts) in [
            ("a", web.clone(), vec![]),
            ("a", web, vec![]),
            (
                "b",
                json!([{"containerPort": 53}, {"containerPort": 8081, "hostIP": "192.0.2.1"}]),
                vec![],
            ),
            (
                "c",
                json!([{"containerPort": 8081, "hostIP": "192.0.2.2"}]),
                vec![],
            ),
            (
                "d",
                json!([{"containerPort": 8081, "hostIP": "0.0.0.0"}]),
                vec!["TCP/8081 n/b", "TCP/8081 n/c"],
            ),
            (
                "e",
                json!([{"containerPort": 53, "protocol": "UDP"}]),
                vec!["UDP/53 n/a"],
            ),
        ] {
            let told = ports.claim(&pod(name, declared));
            let told: Vec<String> = told
                .iter()
                .map(|said| {
                    let words: Vec<&str> = said.split(' ').collect();
                    format!("{} {}", words[1], words[9])
                })
                .collect();
            assert_eq!(told, conflicts, "{name}");
        }
        ports.release("a");
        assert_eq!(ports.claim(&pod("f", json!([{"containerPort": 8080}]))), [""; 0]);
    }
}
