//! Logs, and sessions with what runs in a pod: commands, a container's own streams, its ports.

use hotmap_object::Status;
use hyper::{Request, body::Incoming, header::HeaderMap};
use jiff::Timestamp;

use super::{Call, Front};
use crate::{
    answer::{Answer, Body},
    audit::Record,
    authorization::Attributes,
    request::{ApiRequest, Query, Verb},
    streams,
};

impl Front {
    pub(super) async fn log(&self, call: &Call, query: &Query) -> Result<Answer, Status> {
        let pod = self.pod(call).await?;
        let request = streams::log_request(&pod, query, Timestamp::now())?;
        let Some(request) = request else {
            return Ok(Answer::ok("text/plain", bytes::Bytes::new()));
        };
        let log = self.nodes.logs(request).await?;
        Ok(streams::log_answer(log))
    }

    /// Begins a session that goes on once the answer is out; these headers go into it.
    pub(super) async fn session(
        &self,
        call: &Call,
        query: &Query,
        request: &mut Request<Incoming>,
        record: &mut Option<Record>,
    ) -> Result<HeaderMap, Status> {
        self.require_create(call)?;
        let pod = self.pod(call).await?;
        match call.subresource.map_or("", |one| one.name) {
            "attach" => {
                let wanted = streams::attach_request(&pod, query)?;
                let handshake = streams::handshake(request)?;
                let attached = self.nodes.attach(wanted).await;
                let upgrade = hyper::upgrade::on(request);
                self.go_on(streams::session(upgrade, handshake.protocol, attached), record);
                Ok(handshake.headers)
            }
            "portforward" => {
                let wanted = streams::port_forward_request(&pod)?;
                // Before the handshake: a client whose upgrade is refused tries SPDY, and shows what that is told.
                let way = self.nodes.port_forward(wanted.clone()).await?;
                let headers = streams::tunnel_handshake(request)?;
                let upgrade = hyper::upgrade::on(request);
                self.go_on(streams::port_forward_session(upgrade, wanted, way), record);
                Ok(headers)
            }
            _ => {
                let wanted = streams::exec_request(&pod, query)?;
                let handshake = streams::handshake(request)?;
                let started = self.nodes.exec(wanted).await;
                let upgrade = hyper::upgrade::on(request);
                self.go_on(streams::session(upgrade, handshake.protocol, started), record);
                Ok(handshake.headers)
            }
        }
    }

    /// A WebSocket is a GET, and does what POST may do (`pkg/registry/core/pod/rest/authorize.go`, Kubernetes 1.36).
    ///
    /// # Errors
    ///
    /// 403.
    fn require_create(&self, call: &Call) -> Result<(), Status> {
        if call.verb == Verb::Create {
            return Ok(());
        }
        let creating = Attributes {
            verb: Verb::Create.as_str().to_owned(),
            ..call.wanted.clone()
        };
        self.authorizer.authorize(&call.user, &creating)
    }

    fn go_on(&self, session: impl Future<Output = ()> + Send + 'static, record: &mut Option<Record>) {
        let stopping = self.stopping.clone();
        let counted = self.metrics.long_running();
        let record = record.as_mut().map(Record::session);
        self.tasks.spawn(async move {
            // The record comes with the answer, and its last line is written when this drops it.
            let (_counted, _record) = (counted, record);
            tokio::select! {
                () = session => {}
                () = stopping.cancelled() => {}
            }
        });
    }

    /// The pod of a stream, read as any client would.
    async fn pod(&self, call: &Call) -> Result<serde_json::Value, Status> {
        let request = ApiRequest {
            verb: Verb::Get,
            resource: call.resource,
            subresource: None,
            namespace: call.path.namespace.clone(),
            name: call.path.name.clone(),
            query: Query::default(),
            user: call.user.clone(),
            user_agent: String::new(),
            accept: Default::default(),
            content_type: None,
            body: bytes::Bytes::new(),
            may_create: false,
        };
        match self.objects.handle(request).await?.body {
            Body::Full(json) => serde_json::from_slice(&json).map_err(Status::internal),
            Body::Stream(_) => Err(Status::internal("one object came as a stream")),
        }
    }
}
