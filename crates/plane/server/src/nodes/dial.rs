//! The way to an agent: its Node says where it listens, our authority vouches for it.

use std::{net::IpAddr, sync::Arc, time::Duration};

use hotmap_object::Status;
use jiff::Timestamp;
use rustls::{ClientConfig, RootCertStore, crypto::ring};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use serde::Deserialize;
use tokio::{net::TcpStream, task::spawn_blocking, time::timeout};
use tokio_rustls::{TlsConnector, client::TlsStream};

use crate::{
    credentials::{Credentials, Identity},
    tokens::Held,
};

/// From the first packet to the end of the handshake; a node in another building answers in a fraction of it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where an agent listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) host: IpAddr,
    pub(super) port: u16,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct NodeView {
    status: StatusView,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct StatusView {
    addresses: Vec<Address>,
    daemon_endpoints: Endpoints,
}

#[derive(Deserialize)]
struct Address {
    #[serde(rename = "type")]
    kind: String,
    address: String,
}

#[derive(Deserialize, Default)]
#[serde(default, rename_all = "camelCase")]
struct Endpoints {
    kubelet_endpoint: KubeletEndpoint,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct KubeletEndpoint {
    #[serde(rename = "Port")]
    port: u16,
}

impl Endpoint {
    /// Reads it from a Node: its InternalIP, else its ExternalIP.
    fn of(node: &str, json: Option<&[u8]>) -> Result<Self, Status> {
        let Some(json) = json else {
            return Err(Status::bad_request(format!(
                "the pod is bound to node {node:?}, which does not exist"
            )));
        };
        let status = serde_json::from_slice::<NodeView>(json)
            .map_err(Status::internal)?
            .status;
        let port = status.daemon_endpoints.kubelet_endpoint.port;
        let address = |kind: &str| {
            let mut addresses = status.addresses.iter();
            addresses.find_map(|one| (one.kind == kind).then(|| one.address.parse().ok()).flatten())
        };
        match address("InternalIP").or_else(|| address("ExternalIP")) {
            Some(host) if port != 0 => Ok(Self { host, port }),
            _ => Err(Status::new(
                501,
                "NotImplemented",
                format!(
                    "node {node:?} serves no logs and no commands: its status names no address and port for them"
                ),
            )),
        }
    }

    pub(super) fn authority(&self) -> String {
        std::net::SocketAddr::new(self.host, self.port).to_string()
    }
}

/// Connects to agents.
pub(super) struct Dialer {
    objects: Arc<dyn Held>,
    credentials: Credentials,
}

impl Dialer {
    pub(super) fn new(objects: Arc<dyn Held>, credentials: Credentials) -> Self {
        Self { objects, credentials }
    }

    /// A connection to the agent of a node, which has shown a certificate of our authority for its address.
    ///
    /// # Errors
    ///
    /// 400 for a node that does not exist, 501 for one that says no port, 503 for one that cannot be reached.
    pub(super) async fn connect(&self, node: &str) -> Result<(TlsStream<TcpStream>, Endpoint), Status> {
        let held = self.objects.held("nodes", "", node);
        let endpoint = Endpoint::of(node, held.as_ref().map(|object| &object.json()[..]))?;
        let credentials = self.credentials.clone();
        let config = spawn_blocking(move || client_config(&credentials))
            .await
            .map_err(Status::internal)??;
        let connecting = async {
            let stream = TcpStream::connect((endpoint.host, endpoint.port)).await?;
            stream.set_nodelay(true)?;
            let name = ServerName::IpAddress(endpoint.host.into());
            TlsConnector::from(config).connect(name, stream).await
        };
        let unreachable = |why: &dyn std::fmt::Display| {
            let message = format!("node {node:?} ({}) does not answer: {why}", endpoint.authority());
            Status::new(503, "ServiceUnavailable", message)
        };
        match timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(Ok(stream)) => Ok((stream, endpoint)),
            Ok(Err(error)) => Err(unreachable(&error)),
            Err(_) => Err(unreachable(&format_args!(
                "no connection within {} s",
                CONNECT_TIMEOUT.as_secs()
            ))),
        }
    }
}

/// Read anew for each connection: these are rare, and certificates are renewed in between.
fn client_config(credentials: &Credentials) -> Result<Arc<ClientConfig>, Status> {
    let pair = credentials
        .client(&Identity::ApiServer, Timestamp::now())
        .map_err(Status::internal)?;
    let mut roots = RootCertStore::empty();
    let authority = CertificateDer::from_pem_slice(credentials.authority_pem().as_bytes());
    roots
        .add(authority.map_err(Status::internal)?)
        .map_err(Status::internal)?;
    let chain = CertificateDer::from_pem_slice(pair.certificate_pem.as_bytes()).map_err(Status::internal)?;
    let key = PrivateKeyDer::from_pem_slice(pair.key_pem.as_bytes()).map_err(Status::internal)?;
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(Status::internal)?
        .with_root_certificates(roots)
        .with_client_auth_cert(vec![chain], key)
        .map_err(Status::internal)?;
    Ok(Arc::new(config))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_node_says_where_its_agent_listens() {
        let addresses = json!([{"type": "Hostname", "address": "n"}, {"type": "ExternalIP", "address": "192.0.2.1"},
            {"type": "InternalIP", "address": "10.0.0.1"}]);
        for (status, expected) in [
            (
                json!({"addresses": addresses, "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}),
                Ok("10.0.0.1:10250"),
            ),
            (
                json!({"addresses": [{"type": "ExternalIP", "address": "fd00::1"}],
                    "daemonEndpoints": {"kubeletEndpoint": {"Port": 1}}}),
                Ok("[fd00::1]:1"),
            ),
            (json!({"addresses": addresses}), Err(501)),
            (
                json!({"daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}),
                Err(501),
            ),
        ] {
            let node =
                json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": status});
            let json = node.to_string();
            let found = Endpoint::of("n", Some(json.as_bytes())).map(|endpoint| endpoint.authority());
            assert_eq!(
                found.as_deref().map_err(|status| status.code),
                expected,
                "{status}"
            );
        }
        assert_eq!(Endpoint::of("n", None).map_err(|status| status.code), Err(400));
    }
}
