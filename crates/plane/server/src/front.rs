//! Where every request goes: who asks, what for, may they, and who answers.

mod lanes;
mod served;
mod sessions;

use std::{any::Any, net::SocketAddr, panic::AssertUnwindSafe, sync::Arc, time::Instant};

use futures_util::FutureExt;
use hotmap_kinds::{Resource, Subresource};
use hotmap_object::Status;
use hotmap_store::Store;
use hotmap_trace::TraceContext;
use hyper::{
    Method, Request, Response,
    body::Incoming,
    header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderMap, HeaderValue, IF_NONE_MATCH, USER_AGENT, VARY},
};
use jiff::Timestamp;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::{Instrument, Span, debug_span, field};

use crate::{
    access_reviews,
    answer::{Answer, Body},
    audit::{AUDIT_ID, Audit, Record},
    authentication::{Peer, acting, authenticate},
    authorization::{Attributes, Authorizer, refusal, writes_itself},
    discovery::Discovery,
    health,
    http::{
        body,
        connection::Answers,
        deadline,
        response::{self, ResponseBody, Wishes},
    },
    metrics::{self, Counted, Labels, Metrics},
    nodes::Nodes,
    objects::Objects,
    openapi::OpenApi,
    path::{ResourcePath, Target},
    request::{ApiRequest, Query, User, Verb},
    token_reviews,
    tokens::Tokens,
    version,
};
use lanes::Lanes;
use served::{allowed, find};

/// What upstream's router says.
const NOT_FOUND: &str = "404 page not found\n";
/// Where those who check tokens themselves look for our keys.
const OPENID_CONFIGURATION: &str = "/.well-known/openid-configuration";
/// Where a client says which trace its request belongs to (W3C Trace Context).
const TRACEPARENT: &str = "traceparent";
const KEY_SET: &str = "/openid/v1/jwks";

/// What the front is made of.
pub(crate) struct Parts {
    pub(crate) version: String,
    pub(crate) address: SocketAddr,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) objects: Arc<Objects>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) nodes: Nodes,
    pub(crate) metrics: Metrics,
    pub(crate) audit: Option<Arc<Audit>>,
    /// Cancelled when the server stops.
    pub(crate) stopping: CancellationToken,
    /// What outlives its request: sessions with pods.
    pub(crate) tasks: TaskTracker,
}

/// Answers requests. One for all connections.
pub(crate) struct Front {
    version: String,
    store: Arc<dyn Store>,
    objects: Arc<Objects>,
    nodes: Nodes,
    stopping: CancellationToken,
    tasks: TaskTracker,
    tokens: Arc<Tokens>,
    authorizer: Authorizer,
    address: SocketAddr,
    discovery: Discovery,
    openapi: OpenApi,
    metrics: Metrics,
    audit: Option<Arc<Audit>>,
    lanes: Lanes,
}

/// What a part of the front came up with.
enum Reply {
    Answer(Answer),
    /// Plain text with a code.
    Text(u16, String),
    /// A failure whose message some clients hide: it is a warning too.
    Warned(Status),
    /// Ready as it is: an upgrade.
    Response(Box<Response<ResponseBody>>),
}

/// How a request is counted and traced.
struct Counting {
    labels: Labels,
    is_long_running: bool,
    span: Span,
}

impl Front {
    pub(crate) fn new(parts: Parts) -> Self {
        let Parts {
            version,
            address,
            store,
            objects,
            tokens,
            nodes,
            metrics,
            audit,
            stopping,
            tasks,
        } = parts;
        let resources = hotmap_kinds::resources();
        Self {
            authorizer: Authorizer::new(objects.clone(), objects.roles().clone()),
            discovery: Discovery::new(resources, address),
            openapi: OpenApi::new(resources),
            metrics,
            audit,
            lanes: Lanes::new(),
            tokens,
            address,
            version,
            store,
            objects,
            nodes,
            stopping,
            tasks,
        }
    }
}

impl Answers for Front {
    fn connected(&self) -> Counted {
        self.metrics.connection()
    }

    /// A panic is a 500.
    async fn answer(
        &self,
        peer: &Peer,
        source: Option<SocketAddr>,
        mut request: Request<Incoming>,
    ) -> Response<ResponseBody> {
        let started = Instant::now();
        let mut record = self.audit.as_ref().map(|audit| audit.begin(source, &request));
        let query = Query::parse(request.uri().query().unwrap_or_default());
        let wishes = Wishes::new(request.headers(), &query, request.method() == Method::HEAD);
        let mut counting = Counting {
            labels: Labels {
                verb: method_name(request.method()),
                group: "",
                version: "",
                resource: "",
                subresource: "",
            },
            is_long_running: false,
            span: span_of(request.headers()),
        };
        let span = counting.span.clone();
        let handled =
            AssertUnwindSafe(self.route(peer, &mut request, query, &wishes, &mut counting, &mut record))
                .catch_unwind()
                .instrument(span.clone())
                .await;
        let reply = handled.unwrap_or_else(|panic| {
            self.metrics.record_panic();
            if let Some(record) = &mut record {
                record.panicked();
            }
            tracing::error!(error = panic_text(&*panic), "a request ended in a panic");
            Err(Status::internal(
                "the server failed while it answered this request; its log says more",
            ))
        });
        if !matches!(reply, Ok(Reply::Response(_))) {
            body::drain(&mut request).await;
        }
        let failure = reply.as_ref().err().filter(|_| record.is_some()).cloned();
        let mut response = match reply {
            Ok(Reply::Answer(answer)) => response::of_answer(answer, &wishes, &self.stopping).await,
            Ok(Reply::Text(code, text)) => response::of_text(code, text, &wishes),
            Ok(Reply::Warned(status)) => {
                response::warned(response::of_status(&status, &wishes), status.message.clone())
            }
            Ok(Reply::Response(response)) => *response,
            Err(status) => response::of_status(&status, &wishes),
        };
        span.record("code", response.status().as_u16());
        drop(span);
        let took = (!counting.is_long_running).then(|| started.elapsed());
        self.metrics
            .record(counting.labels, response.status().as_u16(), took);
        if counting.is_long_running && response.status().is_success() {
            let counted = self.metrics.long_running();
            response = response.map(|body| body.counted(counted));
        }
        if let Some(record) = record {
            response = audited(response, record, failure.as_ref(), counting.is_long_running);
        }
        response
    }
}

impl Front {
    async fn route(
        &self,
        peer: &Peer,
        request: &mut Request<Incoming>,
        query: Query,
        wishes: &Wishes,
        counting: &mut Counting,
        record: &mut Option<Record>,
    ) -> Result<Reply, Status> {
        let target = Target::parse(request.uri().path());
        if let (Some(record), Target::Resource(path)) = (&mut *record, &target) {
            record.wanted(&path.attributes(path.verb(request.method(), &query), &query));
        }
        let known = authenticate(peer, request.headers(), &self.tokens, Timestamp::now())?;
        if let Some(record) = record {
            record.user(&known);
        }
        let user = acting(known.clone(), request.headers(), &self.authorizer)?;
        if let Some(record) = record.as_mut().filter(|_| !Arc::ptr_eq(&known, &user)) {
            record.impersonated(&user);
        }
        counting.span.record("user", &*user.name);
        match target {
            Target::Path(path) => {
                let wanted = Attributes::of_path(request.method().as_str(), &path);
                self.authorize(&user, &wanted, record)?;
                self.path(&path, request, &query, wishes).await
            }
            Target::DeprecatedWatch => Err(Status::new(
                404,
                "NotFound",
                "paths below /watch/ are not served: watch a list with ?watch=true",
            )),
            Target::Resource(path) => {
                let verb = path.verb(request.method(), &query);
                let wanted = path.attributes(verb, &query);
                self.authorize(&user, &wanted, record)?;
                if verb == Some(Verb::Create)
                    && hotmap_kinds::find(&path.group, &path.version, &path.resource).is_none()
                {
                    return not_served(&path);
                }
                let Some((resource, subresource)) = find(&path)? else {
                    return Ok(Reply::Text(404, NOT_FOUND.to_owned()));
                };
                let verb = allowed(&path, resource, subresource, verb)?;
                let call = Call {
                    user,
                    path,
                    verb,
                    resource,
                    subresource,
                    wanted,
                };
                counting.labels = call.labels();
                counting.is_long_running = call.is_long_running();
                call.name(&counting.span);
                self.resource(call, request, query, wishes, record).await
            }
        }
    }

    /// # Errors
    ///
    /// 403.
    fn authorize(&self, user: &User, wanted: &Attributes, record: &mut Option<Record>) -> Result<(), Status> {
        if let Some(record) = record {
            let (allowed, reason) = self.authorizer.explain(user, wanted);
            record.decided(allowed, reason);
            if allowed {
                return Ok(());
            }
        }
        self.authorizer.authorize(user, wanted)
    }

    async fn path(
        &self,
        path: &str,
        request: &Request<Incoming>,
        query: &Query,
        wishes: &Wishes,
    ) -> Result<Reply, Status> {
        let trimmed = if path.len() > 1 {
            path.trim_end_matches('/')
        } else {
            path
        };
        let is_known = health::endpoint(trimmed).is_some()
            || self.discovery.holds(trimmed)
            || trimmed == "/openapi/v2"
            || trimmed.starts_with("/openapi/v3")
            || matches!(trimmed, "/version" | "/metrics" | OPENID_CONFIGURATION | KEY_SET);
        if !is_known {
            return Ok(Reply::Text(404, NOT_FOUND.to_owned()));
        }
        if !matches!(request.method(), &Method::GET | &Method::HEAD) {
            return Ok(Reply::Text(405, "405: Method Not Allowed".to_owned()));
        }
        if let Some((endpoint, check)) = health::endpoint(trimmed) {
            let report = health::report(endpoint, check, query, &self.facts());
            return Ok(Reply::Text(report.code, report.text));
        }
        if self.discovery.holds(trimmed) {
            return self.discovery(trimmed, request.headers(), wishes);
        }
        match trimmed {
            "/version" => {
                let text =
                    serde_json::to_vec_pretty(&version::document(&self.version)).map_err(Status::internal)?;
                Ok(Reply::Answer(Answer::ok("application/json", text)))
            }
            OPENID_CONFIGURATION => Ok(Reply::Answer(issuer_document(
                "application/json",
                &Tokens::open_id_configuration(self.address),
            ))),
            KEY_SET => Ok(Reply::Answer(issuer_document(
                "application/jwk-set+json",
                &self.tokens.key_set(),
            ))),
            "/metrics" => {
                let text = self.metrics.render(self.store.revision());
                Ok(Reply::Answer(Answer::ok(metrics::CONTENT_TYPE, text)))
            }
            _ => Ok(
                match self
                    .openapi
                    .answer(trimmed, query, request.headers(), &wishes.accept)
                    .await?
                {
                    Some(answer) => Reply::Answer(answer),
                    None => Reply::Text(404, NOT_FOUND.to_owned()),
                },
            ),
        }
    }

    fn discovery(&self, path: &str, headers: &HeaderMap, wishes: &Wishes) -> Result<Reply, Status> {
        let document = self.discovery.document(path, &wishes.accept)?;
        let is_held = headers
            .get(IF_NONE_MATCH)
            .is_some_and(|held| held.as_bytes() == document.etag.as_bytes());
        let (code, body) = if is_held {
            (304, bytes::Bytes::new())
        } else {
            (200, document.body.clone())
        };
        let etag = HeaderValue::try_from(&document.etag).expect("a hash is plain text");
        let answer = Answer::new(code, document.content_type, Body::Full(body))
            .with_header(ETAG, etag)
            .with_header(VARY, HeaderValue::from_static("Accept"))
            .with_header(CACHE_CONTROL, HeaderValue::from_static("public"));
        Ok(Reply::Answer(answer))
    }

    async fn resource(
        &self,
        call: Call,
        request: &mut Request<Incoming>,
        query: Query,
        wishes: &Wishes,
        record: &mut Option<Record>,
    ) -> Result<Reply, Status> {
        match (call.resource.plural, call.subresource.map_or("", |one| one.name)) {
            ("pods", "exec" | "attach" | "portforward") => {
                let response = self.session(&call, &query, request, record).await?;
                return Ok(Reply::Response(Box::new(response::finish(
                    101,
                    response,
                    ResponseBody::full(bytes::Bytes::new()),
                    wishes,
                ))));
            }
            ("pods", "log") => return self.log(&call, &query).await.map(Reply::Answer),
            _ => {}
        }
        if call.verb == Verb::Watch {
            let request = self.api_request(call, request, query, bytes::Bytes::new(), wishes);
            return self.objects.handle(request).await.map(Reply::Answer);
        }
        let time = deadline::of(&query)?;
        let mutates = !matches!(call.verb, Verb::Get | Verb::List);
        let answering = async {
            let _permit = self.lanes.enter(mutates).await?;
            let _counted = self.metrics.answering(mutates);
            let body = if mutates {
                body::read(request).await?
            } else {
                bytes::Bytes::new()
            };
            let content_type = content_type(request.headers());
            if let Some(record) = record.as_mut() {
                record.body(content_type.as_deref(), &body);
            }
            if !writes_itself(&call.user, &call.wanted, content_type.as_deref(), &body) {
                if let Some(record) = record {
                    record.decided(false, "a node may only create its own".to_owned());
                }
                return Err(refusal(
                    &call.user,
                    &call.wanted,
                    "a node may only create its own",
                ));
            }
            let is_token_review = call.resource.kind == "TokenReview";
            if is_token_review || access_reviews::serves(call.resource) {
                let review = access_reviews::Review {
                    resource: call.resource,
                    namespace: call.path.namespace.as_deref(),
                    user: &call.user,
                    accept: &wishes.accept,
                    content_type: content_type.as_deref(),
                    body: &body,
                };
                return match is_token_review {
                    true => token_reviews::answer(&review, &self.tokens, Timestamp::now()),
                    false => review.answer(&self.authorizer),
                };
            }
            let request = self.api_request(call, request, query, body, wishes);
            if (request.resource.plural, request.subresource_name()) == ("serviceaccounts", "token") {
                return self.objects.request_token(&request, &self.tokens).await;
            }
            self.objects.handle(request).await
        };
        match tokio::time::timeout(time, answering).await {
            Ok(answer) => answer.map(Reply::Answer),
            Err(_) => Err(deadline::exceeded()),
        }
    }

    fn api_request(
        &self,
        call: Call,
        request: &Request<Incoming>,
        query: Query,
        body: bytes::Bytes,
        wishes: &Wishes,
    ) -> ApiRequest {
        let creating = Attributes {
            verb: "create".to_owned(),
            ..call.wanted
        };
        let may_create = matches!(call.verb, Verb::Update | Verb::Patch | Verb::Create)
            && self.authorizer.decide(&call.user, &creating).is_allowed();
        let user_agent = request
            .headers()
            .get(USER_AGENT)
            .and_then(|value| value.to_str().ok());
        ApiRequest {
            verb: call.verb,
            resource: call.resource,
            subresource: call.subresource,
            namespace: call.path.namespace,
            name: call.path.name,
            query,
            user: call.user,
            user_agent: user_agent.unwrap_or_default().to_owned(),
            accept: wishes.accept.clone(),
            content_type: content_type(request.headers()),
            body,
            may_create,
        }
    }

    fn facts(&self) -> health::Facts {
        health::Facts {
            store: self.store.health(),
            is_synced: self.objects.is_synced(),
            is_stopping: self.stopping.is_cancelled(),
        }
    }
}

/// A request to a resource that exists, with a verb that it has.
struct Call {
    user: Arc<User>,
    path: ResourcePath,
    verb: Verb,
    resource: &'static Resource,
    subresource: Option<&'static Subresource>,
    wanted: Attributes,
}

impl Call {
    /// Says in the span what the request is about; never what is in it.
    fn name(&self, span: &Span) {
        if span.is_disabled() {
            return;
        }
        let labels = self.labels();
        span.record("verb", labels.verb)
            .record("group", labels.group)
            .record("resource", labels.resource)
            .record("subresource", labels.subresource)
            .record("namespace", self.path.namespace.as_deref())
            .record("name", self.path.name.as_deref());
    }

    fn is_long_running(&self) -> bool {
        self.verb == Verb::Watch
            || self
                .subresource
                .is_some_and(|one| matches!(one.name, "log" | "exec" | "attach" | "portforward"))
    }

    fn labels(&self) -> Labels {
        Labels {
            verb: match self.verb {
                Verb::Get => "GET",
                Verb::List => "LIST",
                Verb::Watch => "WATCH",
                Verb::Create => "POST",
                Verb::Update => "PUT",
                Verb::Patch => "PATCH",
                Verb::Delete => "DELETE",
                Verb::DeleteCollection => "DELETECOLLECTION",
            },
            group: self.resource.group,
            version: self.resource.version,
            resource: self.resource.plural,
            subresource: self.subresource.map_or("", |one| one.name),
        }
    }
}

/// The span of a request: of the client's trace if it names one, else of a new one.
fn span_of(headers: &HeaderMap) -> Span {
    let span = debug_span!(
        target: hotmap_trace::TARGET, "request",
        verb = field::Empty, group = field::Empty, resource = field::Empty, subresource = field::Empty,
        namespace = field::Empty, name = field::Empty, user = field::Empty, code = field::Empty,
    );
    if !span.is_disabled() {
        let named = headers.get(TRACEPARENT);
        let parent = named.and_then(|value| TraceContext::parse(value.as_bytes()));
        hotmap_trace::continue_from(&span, parent);
    }
    span
}

/// A sentence for those who create without a look at discovery, as some commands of kubectl do.
///
/// # Errors
///
/// 404.
fn not_served(path: &ResourcePath) -> Result<Reply, Status> {
    let separator = if path.group.is_empty() { "" } else { "/" };
    let message = format!(
        "the server could not find the requested resource: {} of {}{separator}{} are not served here; kubectl \
         api-resources lists what is",
        path.resource, path.group, path.version
    );
    let status = Status::new(404, "NotFound", message);
    // `kubectl autoscale` of 1.37 says "empty input" to any error; warnings it prints.
    match path.resource.as_str() {
        "horizontalpodautoscalers" => Ok(Reply::Warned(status)),
        _ => Err(status),
    }
}

/// Ends the record with the answer: at once, or for a watch or a stream with its body.
fn audited(
    mut response: Response<ResponseBody>,
    mut record: Record,
    failure: Option<&Status>,
    is_long_running: bool,
) -> Response<ResponseBody> {
    let status = response.status();
    record.answered(status.as_u16(), failure);
    if let Ok(id) = HeaderValue::try_from(record.audit_id()) {
        response.headers_mut().insert(AUDIT_ID, id);
    }
    if is_long_running
        && (status.is_success() || status.is_informational())
        && let Some(record) = record.started()
    {
        response = response.map(|body| body.audited(record));
    }
    response
}

/// A document about our keys; clients may keep it for an hour, as upstream's.
fn issuer_document(content_type: &'static str, document: &serde_json::Value) -> Answer {
    Answer::ok(content_type, document.to_string())
        .with_header(CACHE_CONTROL, HeaderValue::from_static("public, max-age=3600"))
}

fn content_type(headers: &HeaderMap) -> Option<String> {
    let raw = headers.get(CONTENT_TYPE)?.to_str().ok()?;
    let bare = raw
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    Some(bare).filter(|bare| !bare.is_empty())
}

fn method_name(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        _ => "OTHER",
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no text")
}
