//! Which node answers for a pod: the one in this process, or an agent elsewhere, at the port its Node names.

mod dial;
mod remote;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hotmap_object::Status;

use crate::{
    credentials::Credentials,
    node_access::{
        AttachRequest, ExecRequest, ExecStreams, LogRequest, LogStream, NodeAccess, PortForward,
        PortForwardRequest,
    },
    nodes::remote::RemoteNode,
    tokens::Held,
};

/// The node that runs in the server's own process.
pub struct LocalNode {
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub access: Arc<dyn NodeAccess>,
}

/// Reaches the pods of every node.
pub(crate) struct Nodes {
    local: Option<LocalNode>,
    remote: RemoteNode,
}

impl Nodes {
    pub(crate) fn new(local: Option<LocalNode>, objects: Arc<dyn Held>, credentials: Credentials) -> Self {
        Self {
            local,
            remote: RemoteNode::new(objects, credentials),
        }
    }

    pub(crate) fn logs(&self, request: LogRequest) -> BoxFuture<'_, Result<LogStream, Status>> {
        self.of(&request.node).logs(request)
    }

    pub(crate) fn exec(&self, request: ExecRequest) -> BoxFuture<'_, Result<ExecStreams, Status>> {
        self.of(&request.node).exec(request)
    }

    pub(crate) fn attach(&self, request: AttachRequest) -> BoxFuture<'_, Result<ExecStreams, Status>> {
        self.of(&request.node).attach(request)
    }

    pub(crate) fn port_forward(
        &self,
        request: PortForwardRequest,
    ) -> BoxFuture<'_, Result<PortForward, Status>> {
        self.of(&request.node).port_forward(request)
    }

    fn of(&self, node: &str) -> &dyn NodeAccess {
        match &self.local {
            Some(local) if local.name == node => &*local.access,
            _ => &self.remote,
        }
    }
}
