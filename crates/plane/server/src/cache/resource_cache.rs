//! The objects of one resource as they are, and as they were a short while ago.

use std::{
    collections::{BTreeMap, HashMap},
    ops::{Bound, ControlFlow},
    sync::Arc,
    time::SystemTime,
};

use hotmap_kinds::Resource;
use hotmap_object::{Object, ObjectIndex, Revision};
use hotmap_trace::TraceContext;
use parking_lot::RwLock;
use tokio::sync::Notify;

use super::{
    CachedEvent, Lagged, Subscription,
    event::{States, Stored},
    lane::Lane,
};

/// The objects of one key prefix.
pub(crate) struct ResourceCache {
    resource: &'static Resource,
    state: RwLock<State>,
}

struct State {
    objects: BTreeMap<Arc<str>, Arc<Object>>,
    lane: Lane,
    /// The lanes of objects that are watched by name.
    named: HashMap<Arc<str>, NamedLane>,
}

struct NamedLane {
    lane: Lane,
    watchers: usize,
}

/// What has happened to one object, on its way into the cache.
pub(super) struct Change {
    pub(super) revision: Revision,
    /// Without the resource's prefix.
    pub(super) key: Arc<str>,
    /// `None` if it is gone.
    pub(super) object: Option<Arc<Object>>,
    pub(super) stored: Stored,
    pub(super) trace: Option<TraceContext>,
}

/// Which objects a list wants.
pub(crate) struct Selection<'a> {
    /// The first key, prefix included where there is one; empty: from the beginning.
    pub(crate) start: &'a str,
    /// Only keys with this beginning: `namespace/`, or empty.
    pub(crate) prefix: &'a str,
    /// The one key wanted.
    pub(crate) key: Option<&'a str>,
    /// Most objects to return; `None`: all.
    pub(crate) limit: Option<usize>,
    pub(crate) matches: &'a (dyn Fn(&ObjectIndex) -> bool + Sync),
}

/// What a list found.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) items: Vec<Arc<Object>>,
    /// The revision at which this is the truth.
    pub(crate) revision: Revision,
    /// Matching objects beyond the limit.
    pub(crate) remaining: usize,
    /// The key of the last item; what a continue token is made of.
    pub(crate) last_key: Option<Arc<str>>,
}

impl ResourceCache {
    pub(super) fn new(resource: &'static Resource) -> Self {
        let state = State {
            objects: BTreeMap::new(),
            lane: Lane::new(Revision::ZERO),
            named: HashMap::new(),
        };
        Self {
            resource,
            state: RwLock::new(state),
        }
    }

    /// The resource whose shape is stored.
    pub(crate) fn resource(&self) -> &'static Resource {
        self.resource
    }

    /// The key prefix.
    pub(crate) fn prefix(&self) -> &'static str {
        self.resource.prefix
    }

    /// One object; `key` is without the prefix.
    pub(crate) fn get(&self, key: &str) -> Option<Arc<Object>> {
        self.state.read().objects.get(key).cloned()
    }

    /// The selected objects, as they are. `applied` is the cache's revision, read before.
    pub(crate) fn list(&self, selection: &Selection<'_>, applied: Revision) -> Page {
        let state = self.state.read();
        let mut page = Page::at(state.revision(applied));
        let no_overlay = BTreeMap::new();
        state.visit(selection, &no_overlay, |key, object| {
            page.take(selection, key, object)
        });
        page
    }

    /// The selected objects as they were at `revision`, which the cache must have reached.
    ///
    /// # Errors
    ///
    /// [`Lagged`] if the ring does not reach back so far.
    pub(crate) fn list_at(&self, selection: &Selection<'_>, revision: Revision) -> Result<Page, Lagged> {
        let state = self.state.read();
        if revision < state.lane.floor() {
            return Err(Lagged {
                oldest: state.lane.floor(),
            });
        }
        let mut overlay: BTreeMap<&str, &CachedEvent> = BTreeMap::new();
        for event in state
            .lane
            .after(revision)
            .filter(|event| selection.spans(&event.key))
        {
            // The first change after the revision knows what the key held at it.
            overlay.entry(&event.key).or_insert(event);
        }
        let mut page = Page::at(revision);
        state.visit(selection, &overlay, |key, object| {
            page.take(selection, key, object)
        });
        Ok(page)
    }

    /// The selected objects as they are, and a place right behind them in the stream of changes.
    pub(crate) fn list_and_subscribe(
        self: &Arc<Self>,
        selection: &Selection<'_>,
        applied: Revision,
    ) -> (Page, Subscription) {
        let list = |state: &State| {
            let mut page = Page::at(state.revision(applied));
            state.visit(selection, &BTreeMap::new(), |key, object| {
                page.take(selection, key, object)
            });
            page
        };
        // A lane of its own is for one object: only then something is to be written.
        if selection.key.is_some() {
            let mut state = self.state.write();
            let page = list(&state);
            let subscription = self.subscribe_in(&mut state, selection.key, page.revision);
            return (page, subscription);
        }
        let state = self.state.read();
        let page = list(&state);
        let cursor = state.lane.cursor_after(page.revision);
        let subscription = Subscription::new(self.clone(), None, cursor, state.lane.changed.clone());
        (page, subscription)
    }

    /// A place behind the changes up to `revision`. With `key`, only that object's changes.
    ///
    /// # Errors
    ///
    /// [`Lagged`] if the ring does not reach back so far.
    pub(crate) fn subscribe(
        self: &Arc<Self>,
        key: Option<&str>,
        revision: Revision,
    ) -> Result<Subscription, Lagged> {
        let mut state = self.state.write();
        let oldest = state.lane.floor();
        let named = key.and_then(|key| state.named.get(key));
        if revision < oldest && named.is_none_or(|named| revision < named.lane.floor()) {
            return Err(Lagged { oldest });
        }
        Ok(self.subscribe_in(&mut state, key, revision))
    }

    fn subscribe_in(
        self: &Arc<Self>,
        state: &mut State,
        key: Option<&str>,
        revision: Revision,
    ) -> Subscription {
        let Some(key) = key else {
            let cursor = state.lane.cursor_after(revision);
            return Subscription::new(self.clone(), None, cursor, state.lane.changed.clone());
        };
        let key: Arc<str> = key.into();
        let end = state.revision(revision);
        let named = state.named.entry(key.clone()).or_insert_with(|| NamedLane {
            lane: Lane::new(end),
            watchers: 0,
        });
        named.watchers += 1;
        if revision < named.lane.floor() {
            let begun = named.lane.floor();
            let missed = state
                .lane
                .after(revision)
                .take_while(|event| event.revision <= begun);
            let missed = missed.filter(|event| *event.key == *key).cloned().collect();
            named.lane.reach_back(revision, missed);
        }
        let cursor = named.lane.cursor_after(revision);
        let changed = named.lane.changed.clone();
        Subscription::new(self.clone(), Some(key), cursor, changed)
    }

    pub(super) fn unsubscribe(&self, key: &str) {
        let mut state = self.state.write();
        if let Some(named) = state.named.get_mut(key) {
            named.watchers -= 1;
            if named.watchers == 0 {
                state.named.remove(key);
            }
        }
    }

    pub(super) fn with_lane<T>(&self, key: Option<&str>, read: impl FnOnce(&Lane) -> T) -> T {
        let state = self.state.read();
        match key {
            None => read(&state.lane),
            Some(key) => read(&state.named.get(key).expect("a subscription keeps its lane").lane),
        }
    }

    /// Applies changes in order, all committed at about one time. Answers with the bytes each adds to the history; those to wake are appended to `wake`.
    pub(super) fn apply(
        &self,
        changes: impl IntoIterator<Item = Change>,
        committed: SystemTime,
        wake: &mut Vec<Arc<Notify>>,
    ) -> Vec<(Revision, usize)> {
        let mut state = self.state.write();
        let mut sizes = Vec::new();
        for change in changes {
            let Change {
                revision,
                key,
                object,
                stored,
                trace,
            } = change;
            let previous = match &object {
                Some(object) => state.objects.insert(key.clone(), object.clone()),
                None => state.objects.remove(&*key),
            };
            if object.is_none() && previous.is_none() {
                // Gone is what could not be decoded: nobody has ever seen it.
                continue;
            }
            let states = States { object, previous };
            let event = CachedEvent::new(self.resource, revision, key, states, stored)
                .at(committed)
                .of(trace);
            let event = Arc::new(event);
            sizes.push((revision, event.history_bytes()));
            state.record(event, wake);
        }
        if !sizes.is_empty() {
            wake.push(state.lane.changed.clone());
        }
        sizes
    }

    /// Nobody is expected to read the change of `revision` any more.
    pub(super) fn cool(&self, revision: Revision) {
        if let Some(event) = self.state.read().lane.at(revision) {
            event.cool();
        }
    }

    /// Drops the oldest change, which happened at `revision`.
    pub(super) fn forget(&self, revision: Revision) {
        let mut state = self.state.write();
        let State { lane, named, .. } = &mut *state;
        let forgotten = lane
            .after(Revision::ZERO)
            .take_while(|event| event.revision <= revision);
        for event in forgotten {
            if let Some(named) = named.get_mut(&event.key) {
                named.lane.forget(event.revision);
            }
        }
        lane.forget(revision);
    }

    /// Starts over with these objects as of `now`; `history` is what led there, complete after `floor`.
    pub(super) fn reset(
        &self,
        objects: BTreeMap<Arc<str>, Arc<Object>>,
        history: Vec<CachedEvent>,
        floor: Revision,
        now: Revision,
    ) -> Vec<(Revision, usize)> {
        let mut state = self.state.write();
        state.objects = objects;
        state.lane.reset(floor);
        let sizes = history
            .iter()
            .map(|event| (event.revision, event.history_bytes()))
            .collect();
        for event in history {
            state.lane.push(Arc::new(event));
        }
        for named in state.named.values_mut() {
            named.lane.reset(now);
            named.lane.changed.notify_waiters();
        }
        state.lane.changed.notify_waiters();
        sizes
    }
}

impl State {
    /// The revision at which the objects are the truth, given that everything up to `applied` has been applied: changes
    /// of this resource may be ahead of the others'.
    fn revision(&self, applied: Revision) -> Revision {
        self.lane
            .last_revision()
            .map_or(applied, |last| last.max(applied))
    }

    fn record(&mut self, event: Arc<CachedEvent>, wake: &mut Vec<Arc<Notify>>) {
        if let Some(named) = self.named.get_mut(&event.key) {
            named.lane.push(event.clone());
            wake.push(named.lane.changed.clone());
        }
        self.lane.push(event);
    }

    /// Walks the selected keys in order, with what the changes of `overlay` found in place of what the map holds.
    fn visit(
        &self,
        selection: &Selection<'_>,
        overlay: &BTreeMap<&str, &CachedEvent>,
        mut visitor: impl FnMut(&str, &Arc<Object>) -> ControlFlow<()>,
    ) {
        let start = selection.key.unwrap_or(selection.start.max(selection.prefix));
        let range = (Bound::Included(start), Bound::Unbounded);
        let mut now = self.objects.range::<str, _>(range).peekable();
        let mut then = overlay.range::<str, _>(range).peekable();
        loop {
            let is_changed = match (now.peek(), then.peek()) {
                (None, None) => return,
                (Some((key, _)), Some((changed, _))) if ***key == ***changed => {
                    now.next();
                    true
                }
                (Some((key, _)), Some((changed, _))) => ***changed < ***key,
                (None, Some(_)) => true,
                (Some(_), None) => false,
            };
            let past;
            let (key, object) = if is_changed {
                let (key, event) = then.next().expect("peeked");
                past = event.previous();
                (*key, past.as_ref())
            } else {
                let (key, object) = now.next().expect("peeked");
                (&**key, Some(object))
            };
            if !selection.spans(key) {
                return;
            }
            if let Some(object) = object
                && visitor(key, object).is_break()
            {
                return;
            }
        }
    }
}

impl Selection<'_> {
    /// Whether a key lies in what is walked, where it begins apart.
    fn spans(&self, key: &str) -> bool {
        match self.key {
            Some(wanted) => key == wanted,
            None => key.starts_with(self.prefix),
        }
    }
}

impl Page {
    fn at(revision: Revision) -> Self {
        Self {
            items: Vec::new(),
            revision,
            remaining: 0,
            last_key: None,
        }
    }

    fn take(&mut self, selection: &Selection<'_>, key: &str, object: &Arc<Object>) -> ControlFlow<()> {
        if !(selection.matches)(object.index()) {
            return ControlFlow::Continue(());
        }
        if selection.limit.is_some_and(|limit| self.items.len() >= limit) {
            self.remaining += 1;
            return ControlFlow::Continue(());
        }
        self.items.push(object.clone());
        if selection.limit == Some(self.items.len()) {
            self.last_key = Some(key.into());
        }
        ControlFlow::Continue(())
    }
}
