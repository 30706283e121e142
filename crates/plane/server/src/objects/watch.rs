//! Watches: a cursor into the cache, frames shared with every other watcher, one timer.
//!
//! Rules follow `apiserver/pkg/storage/cacher/cacher.go` and `apiserver/pkg/endpoints/handlers/watch.go`, Kubernetes 1.36.

use std::{
    collections::VecDeque,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::{BufMut, Bytes, BytesMut};
use futures_core::Stream;
use hotmap_object::{Object, Revision, Status};
use hotmap_trace::TraceContext;
use serde_json::json;
use tokio::{
    sync::futures::OwnedNotified,
    time::{Instant, Sleep, sleep_until},
};

use super::{
    Objects,
    node_selection::{Happened, NodeFeed},
    options::{ListOptions, include_object},
    read::unreadable,
    rendering::Rendering,
    selector::Selector,
};
use crate::{
    answer::Answer,
    cache::{Cache, CachedEvent, EventType, FrameKey, Lagged, Page, Selection, States, Subscription},
    http::negotiation::{Form, Media, Offer},
    request::ApiRequest,
};

/// Events copied under one hold of the lock, and frames encoded between two looks at the client.
const EVENTS_PER_STEP: usize = 64;

/// Steps without a frame for this client before other tasks get their turn.
const QUIET_STEPS_MAX: usize = 16;

/// Bytes sent as one chunk; what is ready goes out together up to here.
const CHUNK_BYTES_MAX: usize = 64 * 1024;

/// A watch without `timeoutSeconds` ends after 30 to 60 minutes, so that clients spread over restarted servers.
const LIFETIME_MIN: Duration = Duration::from_secs(30 * 60);

/// The longest `timeoutSeconds` that is taken literally: no connection lives so long, and clocks can count it.
const LIFETIME_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Upstream's pace of bookmarks.
const BOOKMARK_PERIOD: Duration = Duration::from_secs(60);

/// The pace for nodes: two missed ones tell a stalled stream within 10 s.
const NODE_BOOKMARK_PERIOD: Duration = Duration::from_secs(5);

/// The last bookmark comes this long before the end, as upstream's does.
const BOOKMARK_BEFORE_END: Duration = Duration::from_secs(2);

impl Objects {
    pub(super) async fn watch(&self, request: &ApiRequest) -> Result<Answer, Status> {
        let negotiated = request.accept.negotiate(Offer::Watch)?;
        let include = include_object(&request.query)?;
        let options = ListOptions::of(&request.query, true)?;
        let cache = self.cache_of(request.resource)?;
        let selector = Selector::new(request.resource, request.namespace.as_deref(), &options)?;
        let since = match options.resource_version.as_str() {
            "" => None,
            raw => Some(
                raw.parse::<Revision>()
                    .map_err(|_| Status::new(500, "", unreadable(raw)))?,
            ),
        };
        let rendering = Rendering {
            resource: request.resource,
            stored: cache.resource(),
            negotiated,
            include,
            now: self.now(),
        };
        let content_type = negotiated.media.stream_content_type();
        let begun = self.place(&selector, &options, since, cache).await;
        let Begun {
            initial,
            subscription,
            node,
        } = match begun {
            Ok(begun) => begun,
            Err(status) => {
                let frame = error_frame(&rendering, &status);
                return Ok(Answer::stream(
                    content_type,
                    Box::pin(futures_util::stream::iter([frame])),
                ));
            }
        };
        // An agent may come with any identity: then it is known by what no other client asks for.
        let is_node = request.user.is_in("system:nodes") || options.commit_time;
        let period = if is_node {
            NODE_BOOKMARK_PERIOD
        } else {
            BOOKMARK_PERIOD
        };
        let asked = options.timeout_seconds.map(Duration::from_secs);
        let lifetime = asked.unwrap_or_else(random_lifetime).min(LIFETIME_MAX);
        let deadline = Instant::now() + lifetime;
        let body = WatchBody {
            phase: match initial {
                Some(page) => Phase::Initial {
                    bookmark: options.allow_bookmarks && options.send_initial_events == Some(true),
                    items: page.items.into(),
                    revision: page.revision,
                },
                None => Phase::Live,
            },
            notified: Box::pin(subscription.changed().clone().notified_owned()),
            subscription,
            cache: self.cache.clone(),
            selector,
            rendering,
            clock: self.clock.clone(),
            has_columns: false,
            node,
            commit_time: options.commit_time,
            events: Vec::new(),
            bookmark_period: options.allow_bookmarks.then_some(period),
            last_bookmark_done: lifetime <= BOOKMARK_BEFORE_END,
            deadline,
            timer: Box::pin(sleep_until(deadline)),
        };
        Ok(Answer::stream(content_type, Box::pin(body.with_timer())))
    }

    /// Finds the watch's place, and the objects it begins with where it begins with any.
    async fn place(
        &self,
        selector: &Selector,
        options: &ListOptions,
        since: Option<Revision>,
        cache: &Arc<crate::cache::ResourceCache>,
    ) -> Result<Begun, Status> {
        let wants_initial = match options.send_initial_events {
            Some(wants) => wants,
            None => since.is_none_or(Revision::is_zero),
        };
        let applied = match (since, options.send_initial_events) {
            (None, Some(_)) => self.cache.fresh().await?,
            (Some(since), _) if !since.is_zero() => self.cache.wait_for(since).await?,
            _ => self.cache.revision(),
        };
        if !wants_initial {
            // Without a revision the live stream begins where the cache stands.
            let after = since.filter(|since| !since.is_zero()).unwrap_or(applied);
            let expired = |lagged| too_old(after, lagged);
            let members = self.members(cache.resource(), selector, after).map_err(expired)?;
            let node = members.map(|members| self.follow_members(cache, members, after));
            return Ok(Begun {
                initial: None,
                subscription: cache.subscribe(selector.key(), after).map_err(expired)?,
                node: node.transpose().map_err(expired)?,
            });
        }
        let prefix = selector.prefix();
        let matches = |index: &hotmap_object::ObjectIndex| selector.matches(index);
        let selection = Selection {
            start: "",
            prefix: &prefix,
            key: selector.key(),
            limit: None,
            matches: &matches,
        };
        let expired = |lagged| too_old(applied, lagged);
        if let Some(members) = self
            .members(cache.resource(), selector, applied)
            .map_err(expired)?
        {
            let page = self.page_of_members(cache, &members, &selection, applied);
            return Ok(Begun {
                initial: Some(page.map_err(expired)?),
                subscription: cache.subscribe(None, applied).map_err(expired)?,
                node: Some(self.follow_members(cache, members, applied).map_err(expired)?),
            });
        }
        let (page, subscription) = cache.list_and_subscribe(&selection, applied);
        Ok(Begun {
            initial: Some(page),
            subscription,
            node: None,
        })
    }
}

/// Where a watch begins.
struct Begun {
    /// The objects it begins with.
    initial: Option<Page>,
    subscription: Subscription,
    /// What a watch by node reads beside.
    node: Option<NodeFeed>,
}

fn too_old(wanted: Revision, lagged: Lagged) -> Status {
    Status::expired(format!("too old resource version: {wanted} ({})", lagged.oldest))
}

fn random_lifetime() -> Duration {
    let mut seed = [0; 4];
    // Without randomness all watches end together, which is allowed.
    let _ = getrandom::fill(&mut seed);
    LIFETIME_MIN + LIFETIME_MIN.mul_f64(f64::from(u32::from_le_bytes(seed)) / f64::from(u32::MAX))
}

enum Phase {
    /// Objects that exist already come first, as ADDED.
    Initial {
        items: VecDeque<Arc<Object>>,
        revision: Revision,
        /// The end of the initial objects is marked.
        bookmark: bool,
    },
    Live,
    Ended,
}

/// The frames of one watch.
struct WatchBody {
    phase: Phase,
    subscription: Subscription,
    /// Registered before the lane is read, so that no wake-up is lost.
    notified: Pin<Box<OwnedNotified>>,
    cache: Arc<Cache>,
    selector: Selector,
    rendering: Rendering,
    clock: super::Clock,
    /// What a watch by node reads beside.
    node: Option<NodeFeed>,
    /// A table's columns have been sent.
    has_columns: bool,
    /// Scratch, empty between two steps.
    commit_time: bool,
    events: Vec<Arc<CachedEvent>>,
    bookmark_period: Option<Duration>,
    last_bookmark_done: bool,
    deadline: Instant,
    /// The next bookmark or the deadline.
    timer: Pin<Box<Sleep>>,
}

impl Stream for WatchBody {
    type Item = Bytes;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut chunk = Chunk::default();
        for _ in 0..QUIET_STEPS_MAX {
            match &mut self.phase {
                Phase::Ended => return Poll::Ready(None),
                Phase::Initial { .. } => self.initial(&mut chunk),
                Phase::Live => {
                    if self.notified.as_mut().poll(context).is_ready() {
                        let changed = self.subscription.changed().clone();
                        self.notified.set(changed.notified_owned());
                        let _ = self.notified.as_mut().poll(context);
                    }
                    if let Some(node) = &mut self.node {
                        node.poll_notified(context);
                    }
                    if !self.live(&mut chunk) && chunk.is_empty() {
                        ready!(self.timer.as_mut().poll(context));
                        self.on_timer(&mut chunk);
                    }
                }
            }
            if !chunk.is_empty() {
                return Poll::Ready(Some(chunk.finish()));
            }
        }
        context.waker().wake_by_ref();
        Poll::Pending
    }
}

impl WatchBody {
    fn with_timer(mut self) -> Self {
        self.set_timer();
        self
    }

    fn initial(&mut self, chunk: &mut Chunk) {
        loop {
            let Phase::Initial {
                items,
                revision,
                bookmark,
            } = &mut self.phase
            else {
                return;
            };
            let Some(object) = items.pop_front() else {
                let (revision, bookmark) = (*revision, *bookmark);
                self.phase = Phase::Live;
                if bookmark {
                    chunk.push(self.bookmark(revision, true));
                }
                return;
            };
            let frame = self.frame(EventType::Added, &object);
            chunk.push(frame);
            if chunk.is_full() {
                return;
            }
        }
    }

    /// Encodes what is next in the lane. Whether there was anything.
    fn live(&mut self, chunk: &mut Chunk) -> bool {
        if let Some(mut node) = self.node.take() {
            let any = self.live_of_node(&mut node, chunk);
            self.node = Some(node);
            return any;
        }
        let mut events = std::mem::take(&mut self.events);
        if let Err(lagged) = self.subscription.read(EVENTS_PER_STEP, &mut events) {
            self.lagged(lagged, chunk);
            return true;
        }
        let any = !events.is_empty();
        for event in events.drain(..) {
            if let Some((kind, object)) = self.seen(&event) {
                let frame = self.shared_frame(&event, kind, &object);
                chunk.push(frame);
            }
        }
        self.events = events;
        any
    }

    /// The same for a watch by node. Pods bring objects along that have not changed: a bookmark behind them says how far the
    /// watch has come, which their own revisions do not.
    fn live_of_node(&mut self, node: &mut NodeFeed, chunk: &mut Chunk) -> bool {
        // Read before the lanes are: what is published up to here is in them.
        let reached = self.cache.revision();
        for step in 0..EVENTS_PER_STEP {
            let happened = match node.next(&mut self.subscription, reached) {
                Ok(Some(happened)) => happened,
                Ok(None) => return step > 0,
                Err(lagged) => {
                    self.lagged(lagged, chunk);
                    return true;
                }
            };
            match happened {
                Happened::Elsewhere => {}
                Happened::Changed(event) => {
                    if let Some((kind, object)) = self.seen(&event) {
                        let frame = self.shared_frame(&event, kind, &object);
                        chunk.push(frame);
                    }
                }
                Happened::Shifted { entered, left, at } => self.shifted(&entered, &left, at, chunk),
            }
        }
        true
    }

    fn shifted(&mut self, entered: &[Arc<Object>], left: &[Arc<Object>], at: Revision, chunk: &mut Chunk) {
        for object in entered {
            if self.selector.matches(object.index()) {
                let frame = self.frame(EventType::Added, object);
                chunk.push(frame);
            }
        }
        for object in left {
            if self.selector.matches(object.index()) {
                let frame = self.frame(EventType::Deleted, &object.at_deletion(at));
                chunk.push(frame);
            }
        }
        if self.bookmark_period.is_some() {
            chunk.push(self.bookmark(at, false));
        }
    }

    fn lagged(&mut self, lagged: Lagged, chunk: &mut Chunk) {
        let message = format!(
            "the watch has fallen behind: events up to {} are gone",
            lagged.oldest
        );
        chunk.push(error_frame(&self.rendering, &Status::expired(message)));
        self.phase = Phase::Ended;
    }

    /// What a change means to this watcher: selectors turn it into an entrance, an exit, or nothing.
    fn seen(&self, event: &CachedEvent) -> Option<(EventType, Arc<Object>)> {
        let is_selected = |object: &Arc<Object>| self.selector.matches(object.index());
        let States { object, previous } = event.states();
        let now = object.filter(is_selected);
        let before = previous.as_ref().is_some_and(is_selected);
        match (now, before) {
            (Some(object), false) => Some((EventType::Added, object)),
            (Some(object), true) => Some((EventType::Modified, object)),
            (None, true) => event.farewell().map(|object| (EventType::Deleted, object)),
            (None, false) => None,
        }
    }

    fn shared_frame(&mut self, event: &CachedEvent, kind: EventType, object: &Arc<Object>) -> Bytes {
        // The first event of a table carries the columns, so it is this watcher's own.
        if self.needs_columns() {
            return self.frame(kind, object);
        }
        let key = FrameKey {
            kind,
            group: self.rendering.resource.group,
            negotiated: self.rendering.negotiated,
            include: self.rendering.include,
            commit_time: self.commit_time,
        };
        let (rendering, clock) = (&mut self.rendering, &self.clock);
        event.frame(key, || {
            rendering.now = clock();
            let json = rendering.json(object);
            let told = if key.commit_time {
                Told {
                    committed: event.committed,
                    trace: event.trace,
                }
            } else {
                Told::default()
            };
            frame(rendering, kind, &json, false, told)
        })
    }

    fn needs_columns(&self) -> bool {
        !self.has_columns && matches!(self.rendering.negotiated.form, Form::Table(_))
    }

    /// A frame for this watcher alone.
    fn frame(&mut self, kind: EventType, object: &Object) -> Bytes {
        let with_columns = self.needs_columns();
        self.has_columns = true;
        self.rendering.now = (self.clock)();
        let json = self.rendering.json(object);
        frame(&self.rendering, kind, &json, with_columns, Told::default())
    }

    fn on_timer(&mut self, chunk: &mut Chunk) {
        let now = Instant::now();
        if now >= self.deadline {
            self.phase = Phase::Ended;
            return;
        }
        // Read before the lane is looked at again: every change up to here has been sent once the lane is empty.
        let reached = self.cache.revision();
        if !self.live(chunk) {
            chunk.push(self.bookmark(reached, false));
            self.last_bookmark_done = now + BOOKMARK_BEFORE_END >= self.deadline;
        }
        self.set_timer();
    }

    fn set_timer(&mut self) {
        let now = Instant::now();
        let next = match self.bookmark_period {
            Some(_) if self.last_bookmark_done => self.deadline,
            Some(period) => (now + period)
                .min(self.deadline - BOOKMARK_BEFORE_END.min(self.deadline - now))
                .max(now),
            None => self.deadline,
        };
        self.timer.as_mut().reset(next.min(self.deadline));
    }

    fn bookmark(&self, revision: Revision, ends_initial_events: bool) -> Bytes {
        let gvk = self.rendering.resource.gvk();
        let mut object = json!({
            "kind": gvk.kind, "apiVersion": gvk.api_version(),
            "metadata": {"resourceVersion": revision.to_string()},
        });
        if ends_initial_events {
            object["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        frame(
            &self.rendering,
            EventType::Bookmark,
            &object.to_string().into(),
            false,
            Told::default(),
        )
    }
}

/// Frames that go out together. A single one is passed on without a copy.
#[derive(Default)]
struct Chunk {
    first: Option<Bytes>,
    joined: BytesMut,
}

impl Chunk {
    fn push(&mut self, frame: Bytes) {
        match self.first.take() {
            None if self.joined.is_empty() => self.first = Some(frame),
            first => {
                self.joined.extend_from_slice(&first.unwrap_or_default());
                self.joined.extend_from_slice(&frame);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.first.is_none() && self.joined.is_empty()
    }

    fn is_full(&self) -> bool {
        self.joined.len() >= CHUNK_BYTES_MAX
    }

    fn finish(self) -> Bytes {
        self.first.unwrap_or_else(|| self.joined.freeze())
    }
}

/// What is said of a change beside its object, to those who ask.
#[derive(Default)]
struct Told {
    committed: Option<SystemTime>,
    trace: Option<TraceContext>,
}

/// One event on the wire. An object that cannot be encoded, which its schema rules out, becomes an ERROR event.
fn frame(rendering: &Rendering, kind: EventType, json: &Bytes, with_columns: bool, told: Told) -> Bytes {
    match rendering.watched(json, with_columns) {
        Ok(document) => wrap(rendering, kind, &document, told),
        Err(status) => error_frame(rendering, &status),
    }
}

fn error_frame(rendering: &Rendering, status: &Status) -> Bytes {
    let value = status.to_value();
    let document = match rendering.negotiated.media {
        Media::Protobuf => hotmap_schema::kind("", "v1", "Status")
            .and_then(|kind| hotmap_schema::encode_object(kind, &value).ok())
            .unwrap_or_default(),
        Media::Json | Media::Yaml => value.to_string().into_bytes(),
    };
    wrap(rendering, EventType::Error, &document, Told::default())
}

/// Room for what is around an object: a type, and of JSON a time and a trace. Less would double the memory of a frame.
const WRAPPING_BYTES: usize = 160;

fn wrap(rendering: &Rendering, kind: EventType, document: &[u8], told: Told) -> Bytes {
    let kind = kind.as_str();
    let mut frame = BytesMut::with_capacity(document.len() + WRAPPING_BYTES);
    match rendering.negotiated.media {
        Media::Json | Media::Yaml => {
            frame.extend_from_slice(br#"{"type":""#);
            frame.extend_from_slice(kind.as_bytes());
            frame.extend_from_slice(br#"","object":"#);
            frame.extend_from_slice(document);
            if let Some(since_epoch) = told.committed.and_then(|at| at.duration_since(UNIX_EPOCH).ok()) {
                frame.extend_from_slice(
                    format!(r#","committedUnixNano":{}"#, since_epoch.as_nanos()).as_bytes(),
                );
            }
            if let Some(trace) = told.trace {
                frame.extend_from_slice(format!(r#","traceparent":"{trace}""#).as_bytes());
            }
            frame.extend_from_slice(b"}\n");
        }
        // metav1.WatchEvent { 1: type, 2: RawExtension { 1: raw } } behind four bytes of length.
        Media::Protobuf => {
            let extension = 1 + varint_len(document.len()) + document.len();
            let event = 2 + kind.len() + 1 + varint_len(extension) + extension;
            frame.put_u32(u32::try_from(event).expect("an object is far below 4 GiB"));
            put_field(&mut frame, 1, kind.as_bytes());
            frame.put_u8(2 << 3 | 2);
            put_varint(&mut frame, extension);
            put_field(&mut frame, 1, document);
        }
    }
    frame.freeze()
}

fn put_field(out: &mut BytesMut, number: u8, bytes: &[u8]) {
    out.put_u8(number << 3 | 2);
    put_varint(out, bytes.len());
    out.extend_from_slice(bytes);
}

fn put_varint(out: &mut BytesMut, mut value: usize) {
    while value >= 0x80 {
        out.put_u8((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.put_u8(value as u8);
}

fn varint_len(value: usize) -> usize {
    (usize::BITS - (value | 1).leading_zeros()).div_ceil(7) as usize
}
